"""Small fits that several test files share, each made once: one of every kind that a report treats in its own way."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
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


def wide(names: list[str], draws: int = 60) -> dfd.Fit:
    """A fit with as many entries as there are names, from random numbers."""
    values = np.random.default_rng(0).normal(size=(2, draws, len(names)))
    fit = counts()
    groups = assemble({"w": values}, {}, fit.data, {"w": tuple(names)})
    labels = tuple(f"w[{name}]" for name in names)
    known = replace(fit.calibration, names=labels, minimisers=values[0, :40], outcomes=("converged",) * 40)
    return replace(fit, groups=groups, calibration=known)
