"""One contract for every pair of model and loss: value, gradient, weights, minimiser, calibration, 200 draws."""

import warnings

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import dfdbayes as dfd
import oracles
from dfdbayes.core.resampling import resample

COLOURS = dfd.ExponentialFamily(
    T=lambda x: jnp.stack([jnp.where(x[0] == x[1], 1.0, 0.0), jnp.where(x[0] == 1.0, 1.0, 0.0)]),
    b=None,
    eta=lambda theta: jnp.stack([theta["alike"], theta["red"]]),
    domain=dfd.Categories(2, "012"),
    parameters={"alike": dist.Normal(0.0, 1.0), "red": dist.Normal(0.0, 1.0)},
)
MODELS = {
    "bernoulli": (dfd.models.Bernoulli(), {"probability": 0.4}, 400),
    "poisson": (dfd.models.Poisson(), {"rate": 3.0}, 400),
    "cmp": (dfd.models.ConwayMaxwellPoisson(), {"rate": 3.0, "nu": 0.8}, 800),
    "ising": (dfd.models.Ising(dfd.graphs.grid(3, 3)), {"temperature": 3.0}, 400),
    "ising intercept": (
        dfd.models.Ising(dfd.graphs.grid(2, 3), states="binary", intercept=True),
        {"temperature": 3.0, "intercept": -0.3},
        600,
    ),
    "potts": (dfd.models.Potts(dfd.graphs.grid(2, 3), states=3), {"temperature": 2.0}, 400),
    "ising network": (
        dfd.models.IsingNetwork(3),
        {"intercept": np.array([0.2, -0.1, 0.1]), "interaction": np.array([0.4, -0.3, 0.2])},
        1500,
    ),
    "poisson graphical": (
        dfd.models.PoissonGraphical(2, prior="half-normal"),
        {"intercept": np.array([1.0, 0.6]), "interaction": np.array([0.1])},
        800,
    ),
    "cmp graphical": (
        dfd.models.ConwayMaxwellPoissonGraphical(2),
        {"intercept": np.array([1.0, 0.6]), "interaction": np.array([0.1]), "nu": np.array([0.9, 1.1])},
        1500,
    ),
    "poisson mixture": (dfd.models.PoissonMixture((3.0, 9.0)), {"proportion": 0.4}, 600),
    "categories": (COLOURS, {"alike": 0.7, "red": -0.4}, 600),
}
LOSSES = ("dfd", "ratio", "ksd", "pseudo", "likelihood")
NO_CONSTANT = {"poisson graphical", "cmp graphical"}


PAIRS = [(m, loss) for m in MODELS for loss in LOSSES if not (loss == "likelihood" and m in NO_CONSTANT)]


@pytest.fixture(params=PAIRS, ids="-".join, scope="module")
def pair(request):
    name, loss = request.param
    model, theta, n = MODELS[name]
    rows = dfd.simulate(model, theta, n, seed=6).rows
    return model, theta, dfd.objective(model, rows, loss)


@pytest.mark.parametrize("name", sorted(NO_CONSTANT))
def test_a_constant_out_of_reach_is_refused(name):
    model, theta, n = MODELS[name]
    rows = dfd.simulate(model, theta, n, seed=6).rows
    with pytest.raises(dfd.errors.ModelError, match="need no such sum"):
        dfd.objective(model, rows, "likelihood")(theta)


@pytest.mark.daily(
    "bernoulli-dfd", "poisson-ksd", "cmp-ratio", "ising-pseudo", "ising intercept-likelihood", "potts-dfd",
    "ising network-ratio", "poisson graphical-pseudo", "cmp graphical-ratio", "poisson mixture-likelihood",
    "categories-ksd",
)  # fmt: skip
def test_value_gradient_and_weights(pair):
    model, theta, objective = pair
    flat = np.asarray(model.space.flatten(theta))
    gradient = objective.gradient(flat)
    scale = max(1.0, np.abs(gradient).max())
    np.testing.assert_allclose(gradient, oracles.finite_difference(objective, flat), rtol=1e-5, atol=1e-5 * scale)
    weights = resample(objective, 0, 1)[0]
    copied = np.repeat(objective.data.rows, weights.astype(int), axis=0)
    again = dfd.objective(model, copied, objective.loss)(flat)
    assert objective(flat, weights=weights) == pytest.approx(again, rel=1e-10)


@pytest.mark.daily("cmp-dfd", "poisson-likelihood")
def test_minimise_calibrate_and_draw(pair):
    """The minimiser is near the truth (5 bootstrap standard errors), beta exists, 200 draws are finite."""
    model, theta, objective = pair
    found = dfd.minimise(objective)
    assert found.outcome in ("converged", "at the boundary")
    calibration = dfd.calibrate(objective, "score-matching-invariant", bootstrap=60, minimum=found)
    assert calibration.beta > 0 and np.isfinite(calibration.error)
    spread = calibration.minimisers[[o in ("converged", "at the boundary") for o in calibration.outcomes]].std(axis=0)
    assert (np.abs(found.vector - np.asarray(model.space.flatten(theta))) < 5 * spread + 1e-9).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dfd.fit(
            model, objective.data, loss=objective.loss, beta=calibration.beta,
            sampler=dfd.samplers.RandomWalk(step=0.05, thin=1), warmup=250, draws=50, chains=4, progress=False,
        )  # fmt: skip
    assert fit.posterior.sizes["chain"] * fit.posterior.sizes["draw"] == 200
    assert np.isfinite(fit.summary()[["mean", "sd"]].to_numpy()).all()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.daily("cmp", "potts", "ising network")
def test_ratio_matching_stays_within_its_bounds(name):
    """10^5 random parameters for each of eleven models: every term lies in [-1, 1]."""
    model, _, _ = MODELS[name]
    theta = MODELS[name][1]
    rows = dfd.simulate(model, theta, 10, seed=1).rows
    objective = dfd.objective(model, rows, "ratio")
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 6.0, (100_000, model.space.size))
    thetas = np.clip(model.space.from_z(z), -1e6, 1e6)
    values = objective.values(thetas)
    assert np.isfinite(values).all()
    assert (np.abs(values) <= 10 * len(model.domain.moves) + 1e-9).all()
