"""The calibrated loss inside other packages' models gives the posterior that `fit` gives.

The pages' own code runs. Means agree within 5 Monte-Carlo errors of their difference and standard deviations within
12 %, which for some 1000 effective draws on both sides is some 4 errors: false alarms about 1e-4. Seeds are fixed.
"""

import warnings

import numpy as np
import pytest

import dfdbayes as dfd
from pages import cells, python


def reference():
    weight = {"calibration": "score-matching-invariant", "prior": "paper"}
    return dfd.fit("cmp", dfd.datasets.sales(), loss="ratio", progress=False, **weight)


def assert_same(draws: dict, weight: float, effective: float) -> None:
    fit = reference()
    assert weight == pytest.approx(fit.beta, rel=1e-12)
    table = fit.summary()
    for name in ("rate", "nu"):
        row, values = table.loc[name], np.asarray(draws[name])
        error = row["sd"] * (1 / row["ess_bulk"] + 1 / effective) ** 0.5
        assert abs(values.mean() - row["mean"]) < 5 * error
        assert abs(values.std() / row["sd"] - 1) < 0.12


@pytest.mark.slow
def test_numpyro_factor():
    session: dict = {}
    for cell in cells("docs/how-to/use-inside-numpyro.md")[:2]:
        exec(cell, session)
    assert_same(session["mcmc"].get_samples(), session["weight"].beta, 800)


def test_pymc_potential(monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import pymc  # noqa: F401
        except Exception as problem:
            pytest.skip(f"needs PyMC (pip install pymc), which cannot be imported: {problem!r}")
        session: dict = {}
        for block in python("docs/how-to/use-inside-pymc.md"):
            exec(block, session)
    draws = {name: session["draws"].posterior[name].values for name in ("rate", "nu")}
    assert_same(draws, session["weight"].beta, 800)
