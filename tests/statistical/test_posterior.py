"""Draws against exact answers, with fixed seeds and stated false-alarm rates."""

import numpy as np
import pytest
from scipy import special, stats

import dfdbayes as dfd
from dfdbayes.core.posterior import posterior

Z_LIMIT = 5.0  # standard errors: a false alarm in fewer than one of 10^6 comparisons


@pytest.fixture(scope="module")
def reference(shared_data):
    return dfd.Dataset.of(shared_data / "cmp_4.0_0.75_n2000.csv")


def exact_poisson_moments(objective, beta):
    """Mean and sd of the one-dimensional posterior by quadrature."""
    grid = np.linspace(1.0, 6.0, 4001)
    log = stats.chi2(3).logpdf(grid) - beta * objective.values(grid[:, None])
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = weight @ grid
    return mean, np.sqrt(weight @ (grid - mean) ** 2)


@pytest.mark.parametrize("sampler", ["nuts", "hmc", "independence", "random-walk"])
@pytest.mark.daily("nuts", "independence")
def test_samplers_find_the_exact_posterior(sampler):
    data = dfd.Dataset.of(np.random.default_rng(3).poisson(3.0, 60))
    fit = dfd.fit("poisson", data, loss="dfd", prior="paper", beta=0.7, sampler=sampler, progress=False)
    mean, sd = exact_poisson_moments(dfd.objective(fit.model, data), 0.7)
    row = fit.summary().loc["rate"]
    assert abs(row["mean"] - mean) < Z_LIMIT * row["mcse_mean"]
    assert abs(row["sd"] - sd) < Z_LIMIT * row["mcse_sd"]


@pytest.mark.slow
def test_ten_random_walk_chains_mix_and_agree_with_nuts(reference):
    """The paper's sampler: R-hat below 1.02 for all ten chains; and the same posterior as NUTS."""
    model = dfd.models.ConwayMaxwellPoisson()
    walk = dfd.fit(model, reference, loss="dfd", beta=2.87, sampler="random-walk", seed=0, progress=False)
    nuts = dfd.fit(model, reference, loss="dfd", beta=2.87, sampler="nuts", seed=1, progress=False)
    assert walk.posterior.sizes["chain"] == 10
    a, b = walk.summary(), nuts.summary()
    assert (a["r_hat"] < 1.02).all() and (b["r_hat"] < 1.01).all()
    for quantity in ("mean", "sd"):
        error = np.hypot(a[f"mcse_{quantity}"], b[f"mcse_{quantity}"])
        assert (np.abs(a[quantity] - b[quantity]) < Z_LIMIT * error).all()
    assert (b["ess_bulk"] > 1000).all()
    assert not nuts.tree["sample_stats"]["diverging"].values.any()


def test_laplace_is_close_where_the_posterior_is_normal(reference):
    model = dfd.models.ConwayMaxwellPoisson()
    laplace = dfd.fit(model, reference, loss="dfd", beta=2.87, sampler="laplace", progress=False).summary()
    nuts = dfd.fit(model, reference, loss="dfd", beta=2.87, progress=False).summary()
    np.testing.assert_allclose(laplace["mean"], nuts["mean"], rtol=0.01)
    np.testing.assert_allclose(laplace["sd"], nuts["sd"], rtol=0.1)


def test_same_seed_same_draws_and_row_order_does_not_matter(reference):
    values = np.repeat(reference.rows[:, 0], reference.counts.astype(int))
    shuffled = np.random.default_rng(0).permutation(values)
    settings = {"loss": "dfd", "calibration": "gpc", "draws": 100, "bootstrap": 50, "progress": False}
    first, second = (dfd.fit("cmp", x, seed=3, **settings) for x in (values, shuffled))
    other = dfd.fit("cmp", values, seed=4, **settings)
    for name in ("rate", "nu"):
        np.testing.assert_array_equal(first.posterior[name], second.posterior[name])
        assert (first.posterior[name].values != other.posterior[name].values).all()
    assert first.beta == second.beta != other.beta


@pytest.mark.slow
def test_bernstein_von_mises():
    """Theorem 2: the posterior of sqrt(n) (theta - theta_n) nears its normal limit as n grows.

    The data are the expected frequencies of the model with theta = (4, 0.75), so there is no sampling noise;
    the limit's matrix H is computed at the truth. Total variation by quadrature on a grid of the limit's own shape.
    """
    truth = np.array([4.0, 0.75])
    x = np.arange(80)
    log = x * np.log(truth[0]) - truth[1] * special.gammaln(x + 1)
    p = np.exp(log - special.logsumexp(log))
    model = dfd.models.ConwayMaxwellPoisson()
    limit = dfd.objective(model, dfd.Dataset.of(x, weights=p)).hessian(truth)
    root = np.linalg.inv(np.linalg.cholesky(limit)).T
    side = np.linspace(-6, 6, 121)
    u = np.stack(np.meshgrid(side, side, indexing="ij"), -1).reshape(-1, 2)
    normal = np.exp(-0.5 * (u**2).sum(axis=1))
    normal /= normal.sum()
    distances = []
    for n in (100, 1000, 10_000, 100_000):
        objective = dfd.objective(model, dfd.Dataset.of(x, weights=n * p))
        centre = dfd.minimise(objective)
        log_density, inputs, _ = posterior(objective, 1.0, centre)
        theta = centre.vector + (u @ root.T) / np.sqrt(n)
        inside = (theta > 0).all(axis=1)
        values = objective.values(np.where(inside[:, None], theta, 1.0))
        log = stats.chi2(3).logpdf(np.where(inside[:, None], theta, 1.0)).sum(axis=1) - values
        weight = np.where(inside, np.exp(log - log[inside].max()), 0.0)
        distances.append(0.5 * np.abs(weight / weight.sum() - normal).sum())
        assert np.isfinite(float(log_density(model.space.to_z(centre.vector), inputs)))
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.02 < 0.2 < distances[0]
    # the error falls like 1 / sqrt(n)
    slope = np.polyfit(np.log([1000, 10_000, 100_000]), np.log(distances[1:]), 1)[0]
    assert -0.6 < slope < -0.4


@pytest.mark.slow
def test_concentration_on_the_truth():
    """The posterior's spread about the true parameter falls like 1 / sqrt(n) on simulated data (seed fixed)."""
    rng = np.random.default_rng(8)
    spreads = []
    for n in (400, 40_000):
        fit = dfd.fit("poisson", rng.poisson(5.0, n), progress=False)
        draws = fit.posterior["rate"].values
        spreads.append(np.sqrt(np.mean((draws - 5.0) ** 2)))
    assert spreads[1] < 0.25 * spreads[0]
