import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax.scipy.special import gammaln

import dfdbayes as dfd
from dfdbayes.core.replicates import minimise_many
from dfdbayes.core.resampling import resample


def test_reference_data(shared_data):
    objective = dfd.objective(dfd.models.ConwayMaxwellPoisson(), shared_data / "cmp_4.0_0.75_n2000.csv")
    found = dfd.minimise(objective)
    assert found.outcome == "converged"
    assert [round(found.theta[name], 4) for name in ("rate", "nu")] == [4.0496, 0.7509]
    assert np.linalg.norm(objective.gradient(found.theta)) / 2000 < 1e-8
    assert found.gradient_norm / 2000 < 1e-8
    assert found.value == pytest.approx(objective(found.theta))


def test_closed_forms():
    x = np.array([0, 1, 1, 4, 2, 7])
    poisson = dfd.minimise(dfd.objective(dfd.models.Poisson(), x))
    assert poisson.theta["rate"] == pytest.approx((x**2).sum() / (x + 1).sum(), rel=1e-12)


def test_bootstrap_minimisers_are_those_of_resampled_data():
    rng = np.random.default_rng(2)
    objective = dfd.objective(dfd.models.ConwayMaxwellPoisson(), rng.poisson(4.0, 300))
    whole = dfd.minimise(objective)
    weights = resample(objective, 2, 7)
    many = minimise_many(objective, weights, whole)
    for b, w in enumerate(weights):
        alone = dfd.minimise(
            dfd.objective(dfd.models.ConwayMaxwellPoisson(), np.repeat(objective.data.rows, w.astype(int), axis=0))
        )
        np.testing.assert_allclose(many.vectors[b], alone.vector, rtol=1e-8)
        assert many.values[b] == pytest.approx(alone.value, rel=1e-12)
    assert many.tally == {"converged": 7}


def test_an_unbounded_loss_is_reported_as_escaped():
    """Nothing was seen above the largest value, so rate = x_max^nu with nu growing lowers the loss for ever."""
    objective = dfd.objective(dfd.models.ConwayMaxwellPoisson(), [2, 2, 2, 3, 2, 2, 3, 2])
    along = [objective({"rate": 3.0**nu, "nu": nu}) for nu in (5.0, 20.0, 60.0)]
    assert along[0] > along[1] > along[2]
    found = dfd.minimise(objective)
    assert found.outcome == "escaped"
    assert "rate ran into" in found.message
    with pytest.raises(dfd.errors.MinimiserError, match="loss='ratio'"):
        dfd.fit(dfd.models.ConwayMaxwellPoisson(), objective.data, loss="dfd", progress=False)


def test_over_dispersion_beyond_the_geometric_ends_at_the_boundary():
    rng = np.random.default_rng(1)
    x = rng.negative_binomial(0.5, 0.1, 2000)
    found = dfd.minimise(dfd.objective(dfd.models.ConwayMaxwellPoisson(), x))
    assert found.outcome == "at the boundary"
    assert found.theta["nu"] == 0.0
    assert found.edges == ("nu",)
    # there the model is geometric: D = sum (1/rate)^2 over x > 0 minus 2 n / rate
    assert found.theta["rate"] == pytest.approx((x > 0).mean(), rel=1e-8)


def test_saddle_points_are_left():
    """In squared coordinates zero is always stationary; a start there must not stay there."""
    model = dfd.ExponentialFamily(
        T=lambda x: jnp.stack([x[0]]),
        b=lambda x: -gammaln(x[0] + 1.0),
        eta=lambda t: jnp.stack([t["root"] ** 2]),
        domain=dfd.Counts(1),
        parameters={"root": dist.Normal(0.0, 1.0)},
    )
    x = np.random.default_rng(0).poisson(4.0, 200)
    objective = dfd.objective(model, x)
    assert objective.gradient([0.0]) == pytest.approx(0.0)
    assert objective.hessian([0.0])[0, 0] < 0
    found = dfd.minimise(objective, start=[0.0])
    assert found.outcome == "converged"
    assert np.exp(found.theta["root"] ** 2) == pytest.approx((x**2).sum() / (x + 1).sum(), rel=1e-8)


def test_a_users_model_without_a_start_finds_the_same_minimum(shared_data):
    """The ratio-matching estimate is its start."""

    def log_mass(theta, x):
        return theta["rate"] * x[0] - theta["shape"] * gammaln(x[0] + 1)

    model = dfd.Model(log_mass, dfd.Counts(1), {"rate": dist.Normal(0.0, 1.0), "shape": dist.HalfNormal(1.0)})
    found = dfd.minimise(dfd.objective(model, shared_data / "cmp_4.0_0.75_n2000.csv"))
    assert found.outcome == "converged"
    assert np.exp(found.theta["rate"]) == pytest.approx(4.04958, abs=1e-5)
    assert found.theta["shape"] == pytest.approx(0.75089, abs=1e-5)


def test_a_second_data_set_of_the_same_shape_compiles_nothing():
    from dfdbayes.core.objective import _second_order

    model, rng = dfd.models.Poisson(), np.random.default_rng(0)
    sizes = []
    for _ in range(6):
        dfd.minimise(dfd.objective(dfd.models.Poisson(), rng.choice([1, 2, 3, 5], 50)))
        sizes.append(_second_order._cache_size())
    assert sizes[0] == sizes[-1]
    assert model == dfd.models.Poisson()
