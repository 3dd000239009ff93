"""Small fits that several test files share, each made once: one of every kind that a report treats in its own way."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import numpyro.distributions as dist
import pandas as pd

import dfdbayes as dfd
from dfdbayes.results.tree import assemble

QUICK = {"sampler": "laplace", "draws": 250, "bootstrap": 40, "check": True, "progress": False}
NAMES = ("sleep", "mood & <b>", "price_$x$", "_hidden")


def quietly(*arguments, **settings) -> dfd.Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dfd.fit(*arguments, **(QUICK | settings))


@cache
def counts() -> dfd.Fit:
    """The paper's model, loss and priors with one weight from a bootstrap; the others have the default calibration."""
    settings = {"loss": "dfd", "prior": "paper", "calibration": "score-matching-invariant"}
    return quietly("cmp", dfd.datasets.sales(), **settings)


@cache
def network() -> dfd.Fit:
    """Four binary columns; the first two go together, the second and third exclude each other."""
    model = dfd.models.IsingNetwork(4)
    interaction = np.array([1.5, 0.0, 0.0, -1.2, 0.0, 0.0])
    rows = dfd.simulate(model, {"intercept": np.full(4, -0.2), "interaction": interaction}, 1500).rows
    return quietly(model, pd.DataFrame(rows, columns=list(NAMES)), loss="ratio")


@cache
def lattice() -> dfd.Fit:
    model = dfd.models.Ising(dfd.graphs.grid(3, 4))
    return quietly(model, dfd.simulate(model, {"temperature": 4.0}, 150).rows)


@cache
def count_network() -> dfd.Fit:
    model = dfd.models.PoissonGraphical(3, prior="squared")
    truth = {"intercept": np.ones(3), "interaction": np.array([0.3, 0.0, 0.0])}
    rows = dfd.simulate(model, truth, 400).rows
    frame = pd.DataFrame(rows, columns=["wolves", "deer", "oaks"])
    return quietly(model, frame, loss="ratio", on_failure="fallback")


@cache
def poisson() -> dfd.Fit:
    """Counts that vary more than the model allows."""
    rows = np.random.default_rng(1).negative_binomial(2, 0.3, 300)
    return quietly("poisson", pd.DataFrame({"visits": rows}))


@cache
def binary() -> dfd.Fit:
    return quietly("bernoulli", pd.DataFrame({"smokes": [0, 1, 0, 0, 1] * 40}))


@cache
def mixture() -> dfd.Fit:
    rng = np.random.default_rng(2)
    rows = np.where(rng.random(400) < 0.3, rng.poisson(3, 400), rng.poisson(9, 400))
    return quietly(dfd.models.PoissonMixture([3, 9]), pd.DataFrame({"calls": rows}))


def _patients() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"age": rng.integers(20, 70, 240), "clinic": rng.choice(["A", "B"], 240)})
    frame["noise"] = rng.normal(size=240).round(1)
    frame["visits"] = rng.poisson(np.exp(-1.0 + 0.04 * frame["age"] - 0.5 * (frame["clinic"] == "B")))
    frame["again"] = (rng.random(240) < 1 / (1 + np.exp(2.0 - 0.05 * frame["age"]))).astype(int)
    return frame


@cache
def regression() -> dfd.Fit:
    """Counts that grow with age, and are fewer in clinic B."""
    return quietly("cmp", _patients(), formula="visits ~ age + clinic + noise")


@cache
def binary_regression() -> dfd.Fit:
    return quietly("bernoulli", _patients(), formula="again ~ age + noise")


@cache
def potts() -> dfd.Fit:
    model = dfd.models.Potts(dfd.graphs.grid(3, 3), 3)
    return quietly(model, dfd.simulate(model, {"temperature": 2.0}, 120).rows)


@cache
def random_graph() -> dfd.Fit:
    """A ring with chords: nodes of one colour know each other."""
    rng = np.random.default_rng(4)
    colour = np.array(["red", "blue"] * 8)
    names = [f"n{i}" for i in range(16)]
    pairs = [(i, j) for i in range(16) for j in range(i)]
    chance = [0.5 if colour[i] == colour[j] else 0.12 for i, j in pairs]
    ties = [(names[i], names[j]) for (i, j), p in zip(pairs, chance, strict=True) if rng.random() < p]
    graph = dfd.ObservedGraph.of(ties, nodes=pd.DataFrame({"node": names, "colour": colour}))
    return quietly(dfd.models.RandomGraph("edges + nodematch('colour')"), graph)


@cache
def own() -> dfd.Fit:
    """A model of one's own on scores from 0 to 4, one parameter with a meaning."""
    model = dfd.Model(
        lambda theta, x: theta["tilt"] * x[0] + theta["bend"] * (x[0] - 2.0) ** 2,
        domain=dfd.Ordinal(1, 5),
        parameters={"tilt": dist.Normal(0, 2), "bend": dist.Normal(0, 2)},
        name="tilted",
        meanings={"tilt": "how much high scores are preferred"},
    )
    return quietly(model, pd.DataFrame({"score": [0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4] * 20}))


@cache
def incomplete() -> dfd.Fit:
    """A network of which a tenth of the entries are missing, in clusters."""
    model = dfd.models.IsingNetwork(3)
    truth = {"intercept": np.full(3, -0.3), "interaction": np.array([1.2, 0.0, 0.0])}
    rows = dfd.simulate(model, truth, 600, seed=5).rows
    frame = pd.DataFrame(rows, columns=["tea", "cake", "rain"]).astype(float)
    frame = frame.mask(np.random.default_rng(5).random(frame.shape) < 0.1)
    frame["school"] = np.repeat(np.arange(60), 10)
    return quietly("ising-network", frame, columns=["tea", "cake", "rain"], missing="impute", cluster="school")


@cache
def ordinal() -> dfd.Fit:
    """A network of two scales and a binary column."""
    rng = np.random.default_rng(6)
    calm = rng.integers(1, 4, 400)
    frame = pd.DataFrame({"calm": calm, "sleep": np.clip(calm + rng.integers(-1, 2, 400), 1, 3)})
    frame["works"] = rng.integers(0, 2, 400)
    return quietly("network", frame)


@cache
def on_a_map() -> dfd.Fit:
    """Presence on a small map, more often where it is high."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame([(i, j) for i in range(8) for j in range(8)], columns=["row", "col"])
    frame["height"] = rng.normal(size=len(frame)).round(2)
    frame["there"] = (rng.random(len(frame)) < 1 / (1 + np.exp(-frame["height"]))).astype(int)
    return quietly("autologistic", frame, formula="there ~ height", options={"at": ["row", "col"]})


@cache
def series() -> dfd.Fit:
    """Counts by month, each depending on the one before."""
    rng, counts = np.random.default_rng(8), [4]
    for _ in range(119):
        counts.append(int(rng.poisson(2.0 + 0.5 * counts[-1])))
    frame = pd.DataFrame({"month": np.arange(120), "accidents": counts})
    return quietly("poisson", frame, formula="accidents ~ lag(accidents)", time="month")


ALL = {
    "counts": counts, "poisson": poisson, "binary": binary, "mixture": mixture, "regression": regression,
    "binary regression": binary_regression, "lattice": lattice, "potts": potts, "network": network,
    "ordinal network": ordinal, "count network": count_network, "incomplete network": incomplete,
    "random graph": random_graph, "map": on_a_map, "series": series, "own": own,
}  # fmt: skip
"""A fit of every family, by what it is."""


def wide(names: list[str], draws: int = 60) -> dfd.Fit:
    """A fit with as many entries as there are names, from random numbers."""
    values = np.random.default_rng(0).normal(size=(2, draws, len(names)))
    fit = counts()
    groups = assemble({"w": values}, {}, fit.data, {"w": tuple(names)})
    labels = tuple(f"w[{name}]" for name in names)
    known = replace(fit.calibration, names=labels, minimisers=values[0, :40], outcomes=("converged",) * 40)
    return replace(fit, groups=groups, calibration=known)
