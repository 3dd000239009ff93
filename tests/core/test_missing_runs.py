"""Fits with missing entries: other calibrations, and runs that are interrupted midway through imputation."""

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes.core import missing, replicates


@pytest.fixture(scope="module")
def answers():
    """Two hundred people, three yes/no items, a fifth of the entries of two of them missing."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, 2, 200)
    frame = pd.DataFrame({"a": first, "b": rng.integers(0, 2, 200), "c": (rng.random(200) < 0.35 + 0.3 * first)})
    gone = (rng.random(frame.shape) < 0.3) & (np.arange(3) > 0)
    return frame.astype(float).mask(gone)


def fitted(frame, **settings):
    settings = {"calibration": "score-matching-invariant", "bootstrap": 250, "sampler": "laplace"} | settings
    return dfd.fit("ising-network", frame, missing="impute", loss="pseudo", progress=False, check=False, **settings)


@pytest.fixture(scope="module")
def whole(answers):
    return fitted(answers)


@pytest.mark.parametrize("calibration", ["score-matching-invariant", "score-matching", "gpc", "lyddon"])
@pytest.mark.daily("score-matching-invariant")
def test_one_weight_makes_intervals_as_wide_as_a_weight_in_every_direction(answers, whole, calibration):
    """On average over parameters, and as nearly as these rules agree on complete data."""
    other = whole if calibration == "score-matching-invariant" else fitted(answers, calibration=calibration)
    ratio = other.summary()["sd"] / fitted(answers, calibration="curvature").summary()["sd"]
    assert 0.7 < np.exp(np.log(ratio).mean()) < 1.4


def test_matched_information_is_that_of_an_equation_whose_shares_move(answers):
    fit = fitted(answers, calibration="lyddon")
    data = dfd.Dataset.of(answers, missing="impute")
    model = fit.model
    begin = missing.objective_with_missing(model, data, fit.loss, None, 0)
    theta, step = fit.minimum.vector, 1e-5
    at = begin.imputed_at(theta)
    slopes = [
        begin.imputed_at(theta + e).gradient(theta + e) - begin.imputed_at(theta - e).gradient(theta - e)
        for e in step * np.eye(len(theta))
    ]
    whole = np.array(slopes).T / (2 * step)
    squares = at.moments(theta)[2]
    information = whole.T @ np.linalg.solve(squares, whole)
    assert fit.beta == pytest.approx(np.trace(information) / np.trace(at.hessian(theta)), rel=5e-3)  # the prior apart


def test_what_takes_completed_rows_for_observed_ones_is_refused(answers):
    for settings in ({"calibration": "none"}, {"calibration": None, "beta": 0.7}):
        with pytest.raises(dfd.errors.SettingError, match="intervals would be too narrow"):
            fitted(answers, **settings)
    with pytest.raises(dfd.errors.SettingError, match="simulates complete data"):
        fitted(answers, resampling="parametric")


class Killed(BaseException):
    """No handler of errors stops this."""


def interrupted_at(number, function):
    calls = []

    def called(*arguments, **settings):
        calls.append(1)
        if len(calls) == number:
            raise Killed
        return function(*arguments, **settings)

    return called


MOMENTS = {
    "settling": (missing, "evaluate", 3),
    "the first part of the bootstrap": (replicates, "_search_each", 4),
    "the second part of the bootstrap": (missing.ObjectiveWithMissing, "minimise_each", 2),
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.daily("the second part of the bootstrap")
def test_killed_midway_through_imputation_and_called_again_it_gives_the_same_draws(
    answers, whole, tmp_path, monkeypatch, moment
):
    module, name, number = MOMENTS[moment]
    with monkeypatch.context() as patch:
        patch.setattr(module, name, interrupted_at(number, getattr(module, name)))
        with pytest.raises(Killed):
            fitted(answers, checkpoint=tmp_path / "kept")
    kept = {file.name for file in (tmp_path / "kept").glob("bootstrap-*")}
    assert kept == ({"bootstrap-0.npz"} if moment == "the second part of the bootstrap" else set())
    again = fitted(answers, checkpoint=tmp_path / "kept")
    np.testing.assert_array_equal(again.posterior["interaction"], whole.posterior["interaction"])
    assert again.beta == whole.beta
