"""Missing entries: fractional imputation against the exact population, and what a fit says of it."""

import itertools

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from scipy import optimize

import dfdbayes as dfd
from dfdbayes.core.losses import by_name
from dfdbayes.core.minimise import prior_at_y
from dfdbayes.core.missing import joint_mode, objective_with_missing
from dfdbayes.core.objective import Objective
from dfdbayes.core.replicates import minimise_many

INTERCEPT = np.array([-0.8, -0.6, -0.9])
INTERACTION = np.array([0.8, 1.5, 0.5])  # of 1-2, 1-3, 2-3
POINTS = np.array(list(itertools.product([0, 1], repeat=3)))


def population():
    """All eight answers with their probabilities; the third is missing more often where the first is 1."""
    pairs = [(0, 1), (0, 2), (1, 2)]
    log = POINTS @ INTERCEPT + sum(
        w * POINTS[:, i] * POINTS[:, j] for w, (i, j) in zip(INTERACTION, pairs, strict=True)
    )
    chance = np.exp(log) / np.exp(log).sum()
    gone = np.where(POINTS[:, 0] == 1, 0.8, 0.1)
    whole = pd.DataFrame(POINTS, columns=list("abc")).astype(float).assign(weight=chance * (1 - gone))
    part = whole.assign(c=np.nan, weight=chance * gone)
    frame = pd.concat([whole, part], ignore_index=True)
    return frame.assign(weight=np.round(frame["weight"] * 1e9))


def estimate(frame, loss, missing):
    weak = {"intercept": dist.Normal(0.0, 100.0), "interaction": dist.Normal(0.0, 100.0)}
    fit = dfd.fit(
        "ising-network", frame, weights="weight", missing=missing, loss=loss, prior=weak, sampler="laplace",
        progress=False, check=False,
    )  # fmt: skip
    return np.concatenate([fit.minimum.theta["intercept"], fit.minimum.theta["interaction"]])


@pytest.mark.parametrize("loss", ["pseudo", "ratio", "likelihood", "dfd"])
def test_the_population_is_returned_where_values_are_missing_at_random(loss):
    truth = np.concatenate([INTERCEPT, INTERACTION])
    np.testing.assert_allclose(estimate(population(), loss, "impute"), truth, atol=1e-3)


def test_complete_cases_and_the_observed_margin_are_biased():
    frame = population()
    with pytest.warns(dfd.errors.DroppedRowsWarning):
        complete = estimate(frame, "pseudo", "drop")
    assert complete[0] == pytest.approx(-2.30, abs=0.01)  # for -0.8
    assert complete[4] == pytest.approx(1.5, abs=0.01)
    assert of_the_margin(frame)[4] == pytest.approx(2.53, abs=0.01)  # for 1.5


def of_the_margin(frame):
    """The pseudo-likelihood of what was observed, the missing entry summed out of the model."""

    def minus(theta):
        pairs = [(0, 1), (0, 2), (1, 2)]
        log = POINTS @ theta[:3] + sum(
            w * POINTS[:, i] * POINTS[:, j] for w, (i, j) in zip(theta[3:], pairs, strict=True)
        )
        mass = np.exp(log - log.max()).reshape(2, 2, 2)
        total = 0.0
        for a, b, c, weight in frame.itertuples(index=False):
            at = (int(a), int(b)) if np.isnan(c) else (int(a), int(b), int(c))
            table = mass.sum(axis=2) if np.isnan(c) else mass
            total -= (
                weight / 1e9 * sum(np.log(table[at] / table.sum(axis=j)[at[:j] + at[j + 1 :]]) for j in range(len(at)))
            )
        return total

    return optimize.minimize(minus, np.zeros(6), method="BFGS", options={"gtol": 1e-8}).x


@pytest.fixture(scope="module")
def answers():
    """Sixty people, three items of three levels and a count, a fifth of the entries missing."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.integers(0, 3, (60, 3)), columns=["a", "b", "c"]).astype(float)
    frame["n"] = rng.poisson(2.0 + frame["a"])
    gone = rng.random(frame.shape) < 0.2
    gone[gone.all(axis=1) | gone[:, :3].all(axis=1)] = False
    return frame.mask(gone)


def test_shares_settle_where_the_expected_gradient_vanishes(answers):
    model, objective = begin(answers[:15], "ratio")
    minimum = dfd.minimise(objective)
    found, y = joint_mode(objective, 1.0, minimum, model.space.to_y(minimum.vector))
    theta = np.asarray(model.space.from_y(y))
    slope = model.space.slopes_of_y(y)[0]
    prior = prior_at_y(model.space, y)[1]
    assert np.abs(slope * brute(found, theta) - prior).max() < 1e-5


def begin(frame, loss):
    data = dfd.Dataset.of(frame, missing="impute")
    model = dfd.models.Network(dfd.Ordinal(3, 3) * dfd.Counts(1)).labelled(data.columns)
    return model, objective_with_missing(model, data, by_name(loss), None, 0)


def brute(objective, theta):
    """The expected gradient given what was observed, one observed row after the other."""
    model, data = objective.model, objective.observed
    top = int(np.ceil(1.5 * data.rows[data.observed[:, 3], 3].max())) + 5
    values = [np.arange(3)] * 3 + [np.arange(top + 1)]
    named, total = model.space.unflatten(theta), np.zeros(len(theta))
    for row, seen, count in zip(data.rows, data.observed, data.counts, strict=True):
        lists = [[x] if s else v for v, s, x in zip(values, seen, row, strict=True)]
        every = np.array(list(itertools.product(*lists)))
        mass = np.exp([float(model.log_mass_at(named, jnp.asarray(x, float))) for x in every])
        plain = Objective(
            model, dfd.Dataset(every, np.ones(len(every)), data.columns, np.arange(len(every))), objective.loss
        )
        total += count * (mass / mass.sum()) @ plain.unit_gradients(theta)
    return total


def test_the_equations_derivative_is_that_of_finite_differences(answers):
    _, objective = begin(answers[:20], "pseudo")
    theta = np.asarray(dfd.minimise(objective).vector) + 0.1

    def gradient(theta):
        at = objective.imputed_at(theta)
        return at.gradient(theta)

    step = 1e-5
    slopes = [(gradient(theta + step * e) - gradient(theta - step * e)) / (2 * step) for e in np.eye(len(theta))]
    at = objective.imputed_at(theta)
    np.testing.assert_allclose(
        at.hessian(theta) + at.weights_derivative(theta), np.array(slopes).T, atol=1e-4, rtol=1e-4
    )


@pytest.mark.filterwarnings("ignore:levels with fewer than 5 rows")
@pytest.mark.slow
def test_drawn_completions_give_what_listed_ones_do(answers, monkeypatch):
    """The shares of 64 draws have an error of a few percent of what is missing."""
    listed, drawn = (fitted(answers, most, monkeypatch) for most in (2048, 4))
    assert drawn.imputation.drawn > 3 and listed.imputation.drawn == 0
    sd = listed.summary()["sd"].to_numpy()
    assert (np.abs(listed.summary()["mean"] - drawn.summary()["mean"]).to_numpy() < 0.25 * sd).all()


@pytest.mark.filterwarnings("ignore:levels with fewer than 5 rows")
def test_nothing_missing_is_the_plain_fit(answers):
    frame = answers.fillna(0).astype(int)
    plain, imputed = (plainly(frame, how) for how in ("refuse", "impute"))
    assert plain.summary().equals(imputed.summary())
    assert imputed.imputation is None


def plainly(frame, how):
    return dfd.fit("network", frame, missing=how, progress=False, sampler="laplace")


def fitted(frame, most, monkeypatch):
    monkeypatch.setattr("dfdbayes.core.missing.MAX_LISTED_OF_ROW", most)
    return dfd.fit("network", frame, missing="impute", sampler="laplace", progress=False)


def test_saved_loaded_and_done_again_it_is_the_same(answers, tmp_path):
    fit = dfd.fit("network", answers[["a", "b", "c"]], missing="impute", sampler="laplace", progress=False)
    loaded = dfd.load(fit.save(tmp_path / "fit.nc"))
    assert loaded.imputation == fit.imputation
    again = dfd.fit("network", loaded.incomplete, missing="impute", sampler="laplace", progress=False)
    assert again.summary().equals(fit.summary())
    assert 0.02 < max(fit.imputation.lost.values()) < 0.9
    assert "missing at random" in str(fit.imputation)


@pytest.mark.slow
def test_a_bootstrap_imputes_anew(answers):
    """Against replicates that are settled one by one, from other starts."""
    model, objective = begin(answers[["a", "b", "c"]].assign(n=answers["n"].fillna(1)), "pseudo")
    minimum = dfd.minimise(objective)
    objective, _ = joint_mode(objective, 1.0, minimum, model.space.to_y(minimum.vector))
    weights = objective.units.weights * (1 + 0.3 * np.random.default_rng(0).random((2, len(objective.units.weights))))
    found = minimise_many(objective, weights, dfd.minimise(objective))
    for one, vector in zip(weights, found.vectors, strict=True):
        at = objective.imputed_at(vector)
        assert np.abs(at.gradient(vector, one)).max() < 1e-2


def test_what_cannot_be_imputed_is_refused(answers):
    with pytest.raises(dfd.errors.DataError, match=r"missing='impute'.*missing at random.*missing='drop'"):
        dfd.fit("network", answers, progress=False)
    with pytest.raises(dfd.errors.DataError, match="column 'a' has no value"):
        dfd.fit("network", answers.assign(a=np.nan), missing="impute", progress=False)
    with pytest.raises(dfd.errors.ModelError, match="sums over rows, which ksd is not"):
        dfd.fit("network", answers[["a", "b"]], missing="impute", loss="ksd", progress=False)
    with pytest.raises(dfd.errors.SettingError, match="'refuse', 'drop' or 'impute'"):
        dfd.fit("network", answers, missing="guess", progress=False)
