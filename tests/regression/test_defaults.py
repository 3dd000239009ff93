"""Fits as users run them: every default, checks and warnings included, of ten families.

The rest of the suite leaves checks out by default (`conftest.py`). Warnings are errors here as everywhere, so that a
default that warns of nothing fails.
"""

import inspect

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
import golden
from dfdbayes.fitting.fit import fit as as_released


def simulated(model, theta, n, columns, seed=1):
    return pd.DataFrame(dfd.simulate(model, theta, n, seed=seed).rows, columns=columns)


def visits():
    return pd.DataFrame({"visits": np.random.default_rng(3).poisson(3.0, 200)})


def spread():
    model = dfd.models.ConwayMaxwellPoisson()
    return simulated(model, {"rate": 4.0, "nu": 0.75}, 400, ["sold"])


def answers():
    model = dfd.models.IsingNetwork(3)
    return simulated(model, {"intercept": np.full(3, -0.2), "interaction": np.array([1.0, 0.0, 0.0])}, 300, list("abc"))


def clinics():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"age": rng.normal(40, 12, 300).round(), "clinic": rng.choice(["A", "B"], 300)})
    frame["visits"] = rng.poisson(np.exp(-0.5 + 0.03 * frame["age"] + 0.5 * (frame["clinic"] == "B")))
    frame["again"] = (rng.random(300) < 1 / (1 + np.exp(1.5 - 0.04 * frame["age"]))).astype(int)
    return frame


def weeks():
    rng, cases = np.random.default_rng(8), [4]
    for _ in range(149):
        cases.append(int(rng.poisson(np.exp(1.0 + 0.08 * cases[-1]))))
    return pd.DataFrame({"week": np.arange(150), "cases": cases})


FITS = {
    "poisson": lambda: dfd.fit("poisson", visits()),
    "cmp": lambda: dfd.fit("cmp", spread()),
    "bernoulli": lambda: dfd.fit("bernoulli", pd.DataFrame({"smokes": [0, 1, 0, 0, 1] * 40})),
    "regression of counts": lambda: dfd.fit("poisson", clinics(), formula="visits ~ age + clinic"),
    "regression of a binary column": lambda: dfd.fit("bernoulli", clinics(), formula="again ~ age"),
    "series": lambda: dfd.fit("poisson", weeks(), formula="cases ~ lag(cases)", time="week"),
    "network": lambda: dfd.fit("network", answers()),
    "lattice": lambda: dfd.fit(
        dfd.models.Ising(dfd.graphs.grid(3, 4)),
        dfd.simulate(dfd.models.Ising(dfd.graphs.grid(3, 4)), {"temperature": 4.0}, 150, seed=2).rows,
    ),
    "map": lambda: dfd.fit("autologistic", golden.sites(), formula="there ~ height", options={"at": ["row", "col"]}),
    "graph": lambda: dfd.fit(dfd.models.RandomGraph("edges + nodematch('colour')"), golden.pupils()),
    "a model of one's own": lambda: dfd.fit(
        golden.own(), simulated(golden.own(), {"tilt": 0.2, "bend": -0.1}, 250, ["score"])
    ),
}


@pytest.fixture(autouse=True)
def defaults_as_released(monkeypatch):
    """What `conftest.py` changed is put back; the signature says what users get."""
    assert "check: bool = True," in inspect.getsource(as_released)
    monkeypatch.setitem(dfd.fit.__kwdefaults__, "check", True)


@pytest.mark.parametrize("name", FITS)
@pytest.mark.daily("series", "network")
def test_a_right_model_is_fitted_checked_and_told_without_a_warning(name, tmp_path):
    fit = FITS[name]()
    assert fit.converged and not fit.warnings
    assert fit.checks is not None and not fit.checks.misfits
    said = {"bernoulli": "nothing to check", "graph": "resemble", "map": "reproduces the map"}
    assert said.get(name, "The model reproduces the data") in fit.answer
    table = fit.summary()
    assert np.isfinite(table[["mean", "sd"]].to_numpy()).all()
    assert str(fit).startswith("Fit of") or fit.answer.split(".")[0] in str(fit)
    fit.save(tmp_path / "fit.nc")
    pd.testing.assert_frame_equal(dfd.load(tmp_path / "fit.nc").summary(), table)
