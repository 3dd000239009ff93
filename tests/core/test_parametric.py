"""The parametric bootstrap: widths against known ones, on models that can be simulated."""

import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes.core.calibration import curvature
from dfdbayes.core.losses import by_name
from dfdbayes.core.minimise import Minima, Outcome, minimise
from dfdbayes.core.objective import Objective
from dfdbayes.core.replicates import minimise_many
from dfdbayes.core.resampling import Bootstrap, Fits, Parametric, spread
from dfdbayes.core.simulators.replicas import replicas


@pytest.fixture(scope="module")
def counts():
    return np.random.default_rng(1).poisson(3.0, 60)


def fitted(model, data, **settings):
    return dfd.fit(model, data, resampling="parametric", bootstrap=300, sampler="laplace", progress=False, **settings)


@pytest.mark.slow
def test_a_poisson_mean_varies_as_theory_says(counts):
    """Also where the data vary more than the model has it: the model is believed. B = 300 has an error of 4 %."""
    wide = np.where(np.arange(60) % 2, 2 * counts, 0)
    for data in (counts, wide):
        fit = fitted("poisson", data, loss="likelihood", prior={"rate": dist.HalfNormal(100.0)})
        assert fit.summary()["sd"]["rate"] == pytest.approx(np.sqrt(np.mean(data) / 60), rel=0.15)
        assert fit.settings["resampling"] == "parametric"


def test_sets_that_are_tabulated_together_are_those_that_were_simulated():
    model, theta = dfd.models.IsingNetwork(3), np.array([0.2, -0.3, 0.1, 0.5, 0.0, -0.5])
    data = dfd.Dataset.of(np.random.default_rng(0).integers(0, 2, (40, 3)))
    found = list(replicas(model, theta, data, 120, 3))
    assert sum(len(weights) for _, weights in found) == 120
    for part, weights in found:
        assert (weights.sum(axis=1) == 40).all() and len(np.unique(part.rows, axis=0)) == len(part.rows)
    again = list(replicas(model, theta, data, 120, 3))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(found, again, strict=True))


def test_replicates_are_fitted_with_the_prior(counts):
    """Against minimising loss and prior one set at a time."""
    model = dfd.models.Poisson().with_priors({"rate": dist.Gamma(30.0, 20.0)})
    objective = Objective(model, dfd.Dataset.of(counts), by_name("ratio"), held=True)
    minimum = minimise(objective)
    weights = np.random.default_rng(0).multinomial(60, objective.units.weights / 60, size=3).astype(float)
    found = minimise_many(objective, weights, minimum)
    grid = np.linspace(0.5, 6.0, 20001)
    for one, vector in zip(weights, found.vectors, strict=True):
        values = [objective({"rate": rate}, one) for rate in grid[::400]]
        near = grid[::400][int(np.argmin(np.array(values) - np.asarray(dist.Gamma(30.0, 20.0).log_prob(grid[::400]))))]
        fine = np.linspace(near - 0.15, near + 0.15, 301)
        best = [objective({"rate": r}, one) - float(dist.Gamma(30.0, 20.0).log_prob(r)) for r in fine]
        # the mode is in the coordinate of the search, log rate, where the density has a factor rate more
        best = np.array(best) - np.log(fine)
        assert vector[0] == pytest.approx(fine[int(np.argmin(best))], abs=2e-3)


@pytest.mark.slow
def test_a_bias_is_taken_out(counts):
    """Ratio matching is biased for few counts; the centre moves against the median of simulated estimates."""
    objective = Objective(dfd.models.Poisson(), dfd.Dataset.of(counts[:25]), by_name("ratio"))
    minimum = minimise(objective)
    replicates = Parametric()(objective, minimum, 400, 0, Fits(minimise_many))
    _, bias = spread(objective, replicates)
    shape = dfd.calibrate(objective, bootstrap=replicates, minimum=minimum).curvature
    moved = shape.centre - shape.covariance @ (shape.pull - shape.force)
    assert (moved - shape.centre) == pytest.approx(-bias, abs=0.3 * np.abs(bias).max() + 0.02)


def test_a_regression_keeps_its_covariates():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.normal(size=80)})
    frame["y"] = rng.poisson(np.exp(0.5 + 0.4 * frame["x"]))
    fit = fitted("poisson", frame, formula="y ~ x")
    design = np.column_stack([np.ones(80), frame["x"]])
    mean = np.exp(design @ fit.minimum.vector)
    information = (design * mean[:, None]).T @ design
    np.testing.assert_allclose(fit.summary()["sd"], np.sqrt(np.diag(np.linalg.inv(information))), rtol=0.15)


@pytest.mark.slow
def test_one_lattice_has_a_width():
    model = dfd.models.Ising(dfd.graphs.grid(8, 8))
    one = dfd.simulate(model, {"temperature": 4.0}, 1, seed=1).rows
    fit = fitted(model, one, loss="pseudo")
    assert np.isfinite(fit.summary()["sd"]).all() and fit.calibration.resampling == "parametric"


def test_a_parameter_that_most_simulated_sets_say_nothing_of_is_not_known_from_that(counts):
    """Two thirds of estimates where the prior holds them: their range alone would be taken for certainty."""
    objective = Objective(dfd.models.Poisson(), dfd.Dataset.of(counts), by_name("ratio"))
    vectors = np.concatenate([np.full((260, 1), 3.0), 3.0 + np.linspace(-1.5, 1.5, 140)[:, None]])
    minima = Minima(vectors, np.zeros(400), np.zeros(400), (Outcome.CONVERGED,) * 400)
    covariance, _ = spread(objective, Bootstrap("parametric", np.empty((400, 0)), minima, 0, np.array([3.0])))
    assert 0.45 * np.log(vectors[:, 0]).std() < np.sqrt(covariance[0, 0]) < np.log(vectors[:, 0]).std()


def test_a_small_spread_is_believed_unless_the_prior_makes_it(counts):
    """Estimates of one parameter spread far less than the loss has it: a large weight, or the cap."""
    weights = {}
    for width in (100.0, 0.01):
        model = dfd.models.IsingNetwork(2).with_priors({"interaction": dist.Normal(0.0, width)})
        objective = Objective(model, dfd.Dataset.of(np.stack([counts % 2, counts // 2 % 2], axis=1)), by_name("pseudo"))
        minimum = minimise(objective)
        narrow = np.diag([1.0, 1.0, 1e-5])
        held = np.linalg.inv(objective.hessian(minimum.vector) + np.diag([1 / 9, 1 / 9, width**-2]))
        weights[width] = curvature(objective, minimum, (narrow @ held @ narrow, np.zeros(3), 400)).weights
    assert weights[100.0].max() > 50.0 * np.median(weights[100.0])
    assert weights[0.01].max() < 2.0 * np.median(weights[0.01])
