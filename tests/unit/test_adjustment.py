import warnings
from dataclasses import replace

import numpy as np
import numpyro.distributions as dist
import pytest
from jax.scipy.special import gammaln

import dfdbayes as dfd
from dfdbayes.inference.adjustment import adjusted

POISSON = dfd.objective(dfd.models.Poisson(), [1, 2, 3, 4])


@pytest.fixture(scope="module")
def objective(shared_data):
    return dfd.objective(dfd.models.ConwayMaxwellPoisson(), shared_data / "cmp_4.0_0.75_n2000.csv")


def test_unit_gradients_are_those_of_single_rows(objective):
    theta = np.array([3.8, 0.72])
    slow = [
        dfd.objective(objective.model, objective.data.rows[u][None]).gradient(theta)
        for u in range(len(objective.data.rows))
    ]
    np.testing.assert_allclose(objective.unit_gradients(theta), slow, rtol=1e-8, atol=1e-8)


def test_lyddon_the_slow_way(objective):
    """tr(H J^-1 H) / tr H with J the sum over all observations of squared gradients."""
    theta = dfd.minimise(objective).vector
    squares = np.zeros((2, 2))
    for row, count in zip(objective.data.rows, objective.data.counts, strict=True):
        gradient = dfd.objective(objective.model, row[None]).gradient(theta)
        squares += count * np.outer(gradient, gradient)
    hessian = objective.hessian(theta)
    expected = np.trace(hessian @ np.linalg.inv(squares) @ hessian) / np.trace(hessian)
    found = dfd.calibrate(objective, "lyddon")
    assert found.beta == pytest.approx(expected, rel=1e-8)
    assert "Lyddon" in found.message and found.condition is None


def test_lyddon_refuses_a_singular_matrix(objective):
    """One distinct row cannot show the covariance of two parameters' gradients."""
    alone = dfd.Objective(objective.model, dfd.Dataset.of([7, 7, 7]), objective.loss)
    with pytest.raises(dfd.errors.CalibrationError, match="singular"):
        dfd.calibrate(alone, "lyddon", minimum=dfd.minimise(objective))


@pytest.mark.parametrize("method", ["bootstrap", "sandwich"])
def test_adjusted_draws_have_the_estimators_covariance(objective, method):
    fit = dfd.fit(objective.model, objective.data, adjust=method, progress=False)
    z = np.log(np.stack([fit.posterior[name].values.reshape(-1) for name in ("rate", "nu")], axis=1))
    wanted = np.cov(np.log(fit.calibration.minimisers).T)
    tolerance = 1e-8 if method == "bootstrap" else 0.25  # the sandwich is the bootstrap's limit, not the same
    np.testing.assert_allclose(np.cov(z.T), wanted, rtol=tolerance)
    assert fit.settings["adjust"] == method
    assert abs(z.mean(axis=0) - np.log(fit.minimum.vector)).max() < 0.02


def test_a_named_alternative_stands_in_where_the_paper_has_no_weight(tmp_path):
    """A prior too narrow for Theorem 3: with on_failure='fallback' another method is used, and that is said."""
    x = np.random.default_rng(0).poisson(3.0, 100)
    prior = {"rate": dist.Normal(20.0, 0.01)}
    with pytest.raises(dfd.errors.CalibrationError, match="Theorem 3"):
        dfd.fit("poisson", x, prior=prior, progress=False)
    with pytest.warns() as warned:
        fit = dfd.fit("poisson", x, prior=prior, on_failure="fallback", sampler="laplace", progress=False)
    assert any("'lyddon' stands in for it" in str(warning.message) for warning in warned)
    assert fit.calibration.method == "lyddon" and fit.settings["calibration"] == "lyddon"
    assert any("stands in" in warning for warning in fit.warnings)
    assert "stands in" in fit.report(tmp_path / "r.html").read_text()
    assert dfd.load(fit.save(tmp_path / "f.nc")).calibration.instead_of == fit.calibration.instead_of
    with pytest.raises(dfd.errors.SettingError, match="'raise' or 'fallback'"):
        dfd.fit("poisson", x, on_failure="ignore", progress=False)


def test_adjustment_says_when_it_cannot():
    x = np.random.default_rng(1).negative_binomial(0.5, 0.1, 500)
    with pytest.raises(dfd.errors.CalibrationError, match="boundary"):
        dfd.fit("cmp", x, beta=1.0, adjust="sandwich", sampler="laplace", progress=False)
    with pytest.raises(dfd.errors.CalibrationError, match="minimisers, and there are 0"):
        adjusted(np.zeros((1, 9, 1)), POISSON, dfd.minimise(POISSON), dfd.calibrate(POISSON, 1.0), "bootstrap")
    with pytest.raises(dfd.errors.SettingError, match="no adjustment 'magic'"):
        dfd.fit("poisson", [1, 2, 3, 4], beta=1.0, adjust="magic", sampler="laplace", progress=False)


def test_a_weight_by_hand_can_be_adjusted_by_the_bootstrap():
    x = np.random.default_rng(3).poisson(4.0, 200)
    fit = dfd.fit("poisson", x, beta=0.3, adjust="bootstrap", sampler="laplace", progress=False)
    assert fit.beta == 0.3 and len(fit.calibration.outcomes) == 400
    z = np.log(fit.posterior["rate"].values.reshape(-1))
    wanted = np.log(fit.calibration.minimisers[:, 0]).std(ddof=1)
    assert z.std(ddof=1) == pytest.approx(wanted, rel=1e-6)


def attracting():
    """Two counts that attract each other: an interaction that may only repel sits at zero, where its root is flat."""
    rng = np.random.default_rng(0)
    common = rng.poisson(2.0, 300)
    x = np.stack([common + rng.poisson(1.0, 300), common + rng.poisson(1.0, 300)], axis=1)
    return dfd.models.PoissonGraphical(dfd.graphs.complete(2)), x


def test_draws_about_a_minimiser_on_a_boundary_are_not_moved():
    objective = dfd.objective(*attracting(), "ratio")
    minimum = dfd.minimise(objective)
    assert minimum.outcome is dfd.Outcome.BOUNDARY
    z = np.random.default_rng(1).normal(size=(1, 50, 3))
    with pytest.raises(dfd.errors.CalibrationError, match="lies on the boundary"):
        adjusted(z, objective, minimum, dfd.calibrate(objective, 1.0), "sandwich")


def test_the_default_adjusts_where_it_can_and_says_where_it_cannot(objective):
    fit = dfd.fit(objective.model, objective.data, sampler="laplace", progress=False)
    assert fit.settings["calibration"] == "score-matching-invariant" and fit.settings["adjust"] == "bootstrap"
    paper = dfd.fit(objective.model, objective.data, calibration="score-matching", sampler="laplace", progress=False)
    assert paper.settings["adjust"] is None and paper.calibration.method == "score-matching"
    for settings in ({"loss": "likelihood"}, {"beta": 2.0}, {"adjust": None}, {"adjust": "none"}):
        other = dfd.fit("poisson", [1, 2, 3, 4] * 9, sampler="laplace", progress=False, **settings)
        assert other.settings["adjust"] is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        edge = dfd.fit(*attracting(), loss="ratio", sampler="laplace", progress=False)
    assert edge.settings["adjust"] is None
    assert any("draws were not adjusted" in warning and "boundary" in warning for warning in edge.warnings)


def test_too_few_replicates_for_a_covariance():
    x = np.random.default_rng(0).poisson(4.0, 200)
    with pytest.raises(dfd.errors.CalibrationError, match="2 bootstrap fits are too few"):
        dfd.fit("poisson", x, bootstrap=2, adjust="bootstrap", sampler="laplace", progress=False)


def test_lyddon_refuses_a_negative_weight(objective):
    """Away from the basin the loss bends down, and the formula's number is no weight; the error keeps it."""
    elsewhere = replace(dfd.minimise(objective), vector=np.array([30.0, 0.5]))
    assert np.trace(objective.hessian(elsewhere.vector)) < 0
    with pytest.raises(dfd.errors.CalibrationError, match=r"not positive.*What to do") as caught:
        dfd.calibrate(objective, "lyddon", minimum=elsewhere)
    assert caught.value.calibration.beta < 0


def test_moving_draws_keeps_what_the_prior_says():
    """A prior beside the minimiser shifts the posterior; giving the draws their width must not multiply the shift."""
    x = np.random.default_rng(4).poisson(4.0, 60)
    prior = {"rate": dist.LogNormal(np.log(3.0), 0.1)}
    settings = {"prior": prior, "calibration": "lyddon", "sampler": "laplace", "progress": False}
    plain, moved = (dfd.fit("poisson", x, adjust=adjust, **settings) for adjust in (None, "bootstrap"))
    means = [np.log(fit.posterior["rate"].values).mean() for fit in (plain, moved)]
    assert means[1] == pytest.approx(means[0], abs=1e-9)
    assert means[0] < np.log(plain.minimum.theta["rate"]) - 0.05


def graphical():
    """Counts on which the divergence's weight is nearly zero, so that the prior places the posterior."""
    wide = {"interaction": dist.Normal(0.0, 1.0)}
    model = dfd.models.PoissonGraphical(dfd.graphs.complete(4)).with_priors(wide)
    truth = {"intercept": np.array([0.8, 1.0, 0.6, 0.9]), "interaction": np.array([0.1, 0.2, 0.1, 0.15, 0.1, 0.2])}
    return model, dfd.simulate(model, truth, 500, seed=1).rows


def test_draws_that_the_prior_places_are_not_given_the_estimators_width():
    with pytest.raises(dfd.errors.CalibrationError, match=r"the prior decides where.*loss='ratio'"):
        dfd.fit(*graphical(), beta=1e-4, adjust="bootstrap", sampler="laplace", progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dfd.fit(*graphical(), sampler="laplace", progress=False)
    assert fit.settings["adjust"] is None
    assert any("draws were not adjusted" in c and "the prior decides where" in c for c in fit.warnings)


def test_bootstrap_minimisers_on_a_boundary_have_no_width():
    """A hundred counts whose minimiser is inside while some resamples' lie at nu = 0."""
    model = dfd.models.ConwayMaxwellPoisson()
    x = dfd.simulate(model, {"rate": 4.0, "nu": 0.75}, 100, seed=72).rows
    with pytest.raises(dfd.errors.CalibrationError, match="some bootstrap minimisers lie on a boundary"):
        dfd.fit(model, x, beta=1.0, adjust="bootstrap", seed=72, sampler="laplace", progress=False)


@pytest.mark.parametrize("method", ["bootstrap", "sandwich"])
def test_parameters_that_only_their_sum_matters_of_have_no_covariance(method):
    model = dfd.Model(
        lambda theta, x: (theta["a"] + theta["b"]) * x[0] - gammaln(x[0] + 1.0),
        domain=dfd.Counts(1),
        parameters={"a": dist.Normal(0.0, 1.0), "b": dist.Normal(0.0, 1.0)},
    )
    objective = dfd.objective(model, np.random.default_rng(0).poisson(3.0, 200))
    minimum = replace(dfd.minimise(objective), outcome=dfd.Outcome.CONVERGED)
    weight = dfd.calibrate(objective, 1.0, bootstrap=dfd.bootstrap(objective, minimum, 30))
    weight = replace(weight, outcomes=("converged",) * 30)
    with pytest.raises(dfd.errors.CalibrationError, match="singular"):
        adjusted(np.random.default_rng(1).normal(size=(1, 90, 2)), objective, minimum, weight, method)
