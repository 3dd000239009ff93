"""Are the stated probabilities of edges right? Two hundred simulated networks of ten binary columns.

    python docs/studies/selection.py [--networks N]

Writes docs/tables/selection.md and docs/images/selection.png. Network r comes from seed 90000 + r: 500 rows, a fifth of
the 45 edges present with interactions N(0, 1) (the slab), the prior odds given to ``fit.evidence`` being 1 to 4. Beside
it the same with the loss as it is (beta = 1), and scikit-learn's l1-penalised logistic regressions of each column on
the others (penalty by five-fold cross-validation, an edge where both regressions have it).
"""

import argparse
import itertools
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # two processes on two cores

import numpy as np

import dfdbayes as dfd
from dfdbayes.families.network import selection

ROOT = Path(__file__).parents[2]
D, ROWS, SHARE, FIRST = 10, 500, 0.2, 90_000
BINS = np.array([0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0])


def one(seed: int) -> dict[str, np.ndarray]:
    """Which edges a network has, and what the three ways say."""
    warnings.simplefilter("ignore")
    rng, model = np.random.default_rng(seed), dfd.models.IsingNetwork(D)
    pairs = len(model.graph.pairs)
    present = rng.random(pairs) < SHARE
    theta = {"intercept": rng.normal(-0.5, 0.5, D), "interaction": np.where(present, rng.standard_normal(pairs), 0.0)}
    rows = dfd.simulate(model, theta, ROWS, seed=seed).rows
    fit = dfd.fit(model, rows, seed=seed, sampler="laplace", check=False, progress=False)
    odds = SHARE / (1.0 - SHARE)
    calibrated = selection.select(fit, odds).inclusion
    b, precision = selection.information_of_edges(fit)
    loose = 1.0 / fit.calibration.beta  # the loss as it is has the common weight's share of the information
    plain = selection.drawn(loose * b, loose * precision, selection.slabs(fit), odds, np.random.default_rng(seed))
    default = selection.select(fit, 1.0).inclusion  # even odds, which fit.evidence() has unless told otherwise
    ways = {"calibrated": calibrated, "plain": plain.inclusion, "default": default, "lasso": lasso(rows, model.graph)}
    return {"present": present} | ways


def lasso(rows: np.ndarray, graph: dfd.graphs.Graph) -> np.ndarray:
    from sklearn.linear_model import LogisticRegressionCV

    found = np.zeros((D, D), bool)
    for j in range(D):
        others = np.delete(np.arange(D), j)
        search = LogisticRegressionCV(Cs=8, cv=5, penalty="l1", solver="liblinear", scoring="neg_log_loss")
        found[j, others] = search.fit(rows[:, others], rows[:, j]).coef_[0] != 0.0
    i, j = graph.edges.T
    return (found & found.T)[i, j].astype(float)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--networks", type=int, default=200)
    networks = asked.parse_args().networks
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(one, range(FIRST, FIRST + networks), chunksize=5))
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    lines = [
        "| stated probability | edges | of them there: calibrated | edges | of them there: beta = 1 |",
        "|---|---:|---:|---:|---:|",
    ]
    curves: dict[str, list[tuple[float, float, int]]] = {"calibrated": [], "plain": []}
    for low, high in itertools.pairwise(BINS):
        cells = [f"{low:.2f} to {high:.2f}"]
        for name, curve in curves.items():
            inside = (found[name] >= low) & ((found[name] < high) | (high == 1.0))
            share = float(found["present"][inside].mean()) if inside.any() else float("nan")
            curve.append(
                (float(found[name][inside].mean()) if inside.any() else float("nan"), share, int(inside.sum()))
            )
            cells += [str(int(inside.sum())), f"{share:.3f}"]
        lines.append("| " + " | ".join(cells) + " |")
    rates = ["| edges called present | absent edges so called | present ones so called | wrong of these |"]
    rates.append("|---|---:|---:|---:|")
    factor = found["default"] / np.maximum(1.0 - found["default"], 1e-12)
    for title, called in (
        ("inclusion above 0.5, calibrated", found["calibrated"] > 0.5),
        ("inclusion above 0.5, beta = 1", found["plain"] > 0.5),
        ("Bayes factor above 10 (`fit.evidence()`)", factor > 10.0),
        ("Bayes factor below 1/10: called absent", factor < 0.1),
        ("lasso, both regressions", found["lasso"] > 0.5),
    ):
        there = found["present"]
        wrong = f"{(there if 'absent' in title else ~there)[called].mean():.3f}" if called.any() else "none so called"
        rates.append(f"| {title} | {called[~there].mean():.3f} | {called[there].mean():.3f} | {wrong} |")
    text = f"""# Edges that are there, and stated probabilities

{networks} networks of {D} binary columns and {ROWS} rows, a fifth of the edges present. Made by
`python docs/studies/selection.py` (network r from seed {FIRST} + r). Probabilities are right where the share of edges
that are there is the stated one.

{chr(10).join(lines)}

{chr(10).join(rates)}
"""
    (ROOT / "docs" / "tables" / "selection.md").write_text(text)
    draw(curves)


def draw(curves: dict[str, list[tuple[float, float, int]]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=1)
    for (name, curve), colour in zip(curves.items(), ("#30638e", "#d1495b"), strict=True):
        stated, share, _ = np.array(curve).T
        axes.plot(stated, share, "o-", color=colour, label="calibrated" if name == "calibrated" else "beta = 1")
    axes.set(xlabel="stated probability of an edge", ylabel="share of such edges that are there")
    axes.legend(frameon=False)
    figure.savefig(ROOT / "docs" / "images" / "selection.png", dpi=130)


if __name__ == "__main__":
    main()
