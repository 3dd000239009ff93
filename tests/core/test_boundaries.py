"""Draws of the whole line brought back onto a support, against slow solutions of the same problems."""

import warnings

import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import integrate, optimize

import dfdbayes as dfd
from dfdbayes.core.calibration import curvature
from dfdbayes.core.minimise import minimise
from dfdbayes.core.posterior import ERRORS_BEYOND_EDGE, _nearest, beyond, clipped, projected
from dfdbayes.core.priors import Mirrored

TRUTH = {"intercept": np.array([0.8, 1.0, 1.2]), "interaction": np.array([0.15, 0.0, 0.0])}


@pytest.fixture(scope="module")
def fit():
    rows = dfd.simulate(dfd.models.PoissonGraphical(3), TRUTH, 500, seed=4).rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dfd.fit("poisson-graphical", rows, progress=False)


def slowly(covariance, point, low):
    """The nearest point by a general optimiser."""
    precision = np.linalg.inv(covariance)
    found = optimize.minimize(
        lambda t: 0.5 * (t - point) @ precision @ (t - point), np.maximum(point, low), method="L-BFGS-B",
        jac=lambda t: precision @ (t - point), bounds=[(one, None) for one in low], options={"gtol": 1e-12, "ftol": 0},
    )  # fmt: skip
    return found.x


def test_projections_are_nearest_points():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    covariance = root @ root.T + 0.1 * np.eye(6)
    points, low = rng.normal(0.0, 2.0, (40, 6)), np.array([-np.inf, 0.0, 0.0, -np.inf, 0.0, 0.0])
    found = _nearest(covariance, points, np.array([1, 2, 4, 5]), low, np.full(6, np.inf))
    assert (found[:, [1, 2, 4, 5]] >= -1e-9).all()
    for point, own in zip(points, found, strict=True):
        np.testing.assert_allclose(own, slowly(covariance, point, low), atol=2e-4)


def test_a_mirrored_prior_is_a_prior_on_both_sides():
    for base, edge, inward in ((dist.HalfNormal(2.0), 0.0, 1), (dist.Exponential(0.7), 0.0, 1)):
        whole = Mirrored(base, edge, inward)
        total = integrate.quad(lambda x, whole=whole: float(np.exp(whole.log_prob(x))), -40.0, 40.0, points=[0.0])[0]
        assert total == pytest.approx(1.0, abs=1e-6)
        assert float(whole.log_prob(-1.3)) == pytest.approx(float(whole.log_prob(1.3)))
        assert whole.quantile(0.25) == pytest.approx(-whole.quantile(0.75))
        below = integrate.quad(lambda x, whole=whole: float(np.exp(whole.log_prob(x))), -40.0, whole.quantile(0.1)[0])
        assert below[0] == pytest.approx(0.1, abs=1e-6)


def test_only_what_losses_allow_is_continued():
    space = dfd.models.ConwayMaxwellPoissonGraphical(3).space
    assert space.closed.sum() == 6 and space.beyond.sum() == 3 and not space.continued.closed.any()  # nu stays positive
    for model in (dfd.models.ConwayMaxwellPoisson(), dfd.models.PoissonGraphical(3, prior="squared")):
        assert not model.space.beyond.any()
    free = dfd.models.PoissonGraphical(3).with_priors({"interaction": dist.Normal(0.1, 1.0)}).space.continued
    assert isinstance(free.parameters[1].prior, dist.Normal)  # a prior of the whole line is its own continuation
    none = dfd.models.PoissonGraphical(3).with_priors({"interaction": dist.Gamma(2.0, 1.0)}).space
    assert not none.beyond.any()  # no mass at the edge


def test_draws_are_those_of_the_line_clipped(fit):
    line = fit.tree["unconstrained_posterior"].to_dataset()
    assert (line["interaction"].values < 0).any()
    assert (fit.posterior["interaction"].values >= 0).all()
    np.testing.assert_allclose(fit.posterior["interaction"], np.maximum(line["interaction"], 0.0), atol=1e-12)
    np.testing.assert_allclose(fit.posterior["intercept"], line["intercept"], atol=1e-12)
    joint = fit.joint_draws
    assert joint.shape[1] == 6 and (joint[:, 3:] >= 0).all()
    assert np.abs(joint[:, :3].mean(axis=0) - fit.posterior["intercept"].mean(("chain", "draw")).values).max() > 1e-3


def test_predictions_and_loaded_fits_use_the_joint_draws(fit, tmp_path):
    again = dfd.load(fit.save(tmp_path / "fit.nc"))
    np.testing.assert_array_equal(again.joint_draws, fit.joint_draws)
    predicted = fit.replicate(draws=40).checks()
    assert np.abs(predicted["predicted_mean"] / predicted["mean"] - 1).max() < 0.06


def test_counts_that_rise_together_are_named_and_held_at_zero():
    rng = np.random.default_rng(2)
    shared = rng.poisson(2.0, 500)
    rows = np.column_stack([rng.poisson(1.0, 500) + shared, rng.poisson(1.0, 500) + shared, rng.poisson(2.0, 500)])
    with pytest.warns(dfd.errors.BoundaryWarning, match=r"values of interaction\[x1,x2\].*the model does not allow"):
        fit = dfd.fit("poisson-graphical", rows, progress=False)
    table = fit.summary()
    assert table.loc["interaction[x1,x2]", "eti95_ub"] < 0.02
    # with no interaction left the intercepts are those of single counts, within the noise that is allowed
    assert abs(table.loc["intercept[x1]", "mean"] - np.log(3.0)) < 0.2
    assert np.abs(fit.replicate(draws=20).checks()["predicted_mean"] / rows.mean(axis=0) - 1).max() < 0.1


def test_a_contradiction_moves_what_goes_with_it():
    """All draws 5 sd beyond the edge: they move to 2 sd from it, the others along by regression, before clipping."""
    model = dfd.models.PoissonGraphical(2)
    objective = dfd.objective(model, dfd.simulate(model, {"intercept": [1.0, 1.0], "interaction": [0.0]}, 300).rows)
    shape = curvature(*beyond(objective, minimise(objective)))
    cov = shape.covariance
    sd = np.sqrt(np.diag(cov))
    theta = np.array([1.0, 1.0, -5.0 * sd[2]]) + np.zeros((2, 50, 3))
    wanted = 1.0 + cov[:2, 2] / cov[2, 2] * (5.0 - ERRORS_BEYOND_EDGE) * sd[2]
    found = clipped(model.space, shape, theta)
    np.testing.assert_allclose(found, np.broadcast_to([*wanted, 0.0], theta.shape), atol=1e-6)
    full = projected(model.space, shape, theta)
    np.testing.assert_allclose(full[0, 0, :2], 1.0 + cov[:2, 2] / cov[2, 2] * 5.0 * sd[2], atol=1e-6)
