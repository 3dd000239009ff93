import warnings

import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.stats import chi2

import dfdbayes as dfd
from dfdbayes.core.calibration import information
from dfdbayes.core.resampling import degenerate, resample

VALUES = [0, 0, 0, 1, 1, 2, 5]


@pytest.fixture(scope="module")
def poisson():
    return dfd.objective(dfd.models.Poisson(), VALUES)


def test_multinomial_weights_are_resamples(poisson):
    weights = resample(poisson, 0, 4000)
    assert (weights.sum(axis=1) == 7).all() and (weights == np.round(weights)).all()
    # means of 4000 multinomial counts: a deviation of 5 standard errors has chance below 1e-5 for all four together
    shares = poisson.data.counts / 7
    error = np.sqrt(7 * shares * (1 - shares) / 4000)
    assert (np.abs(weights.mean(axis=0) - poisson.data.counts) < 5 * error).all()


def test_dirichlet_weights_have_their_mean_and_variance(poisson):
    """Shares of a Dirichlet(counts) times n: variance n^2 a (n - a) / (n^2 (n + 1)). False alarms below 1e-4."""
    weights = resample(poisson, 0, 20_000, "dirichlet")
    np.testing.assert_allclose(weights.sum(axis=1), 7.0)
    assert (weights > 0).all()
    a = poisson.data.counts
    variance = a * (7 - a) / 8
    assert (np.abs(weights.mean(axis=0) - a) < 5 * np.sqrt(variance / 20_000)).all()
    np.testing.assert_allclose(weights.var(axis=0), variance, rtol=0.1)


def test_observation_weights_travel_with_their_rows():
    """Against the slow way: draw rows of the table, add up their weights. Means and covariances, 5 standard errors."""
    x, w = np.array([2, 3, 3, 5, 3]), np.array([0.5, 1.5, 1.0, 2.0, 1.5])
    objective = dfd.objective(dfd.models.Poisson(), dfd.Dataset.of(x, weights=w))
    rng = np.random.default_rng(1)
    fast = resample(objective, 1, 20_000)
    units = list(zip(objective.data.rows[:, 0], objective.units.each, strict=True))
    drawn = rng.integers(5, size=(20_000, 5))
    slow = np.stack([((x[drawn] == v) & (w[drawn] == g)) @ np.full(5, g) for v, g in units], axis=1)
    spread = slow.std(axis=0) * np.sqrt(2 / 20_000)
    assert (np.abs(fast.mean(axis=0) - slow.mean(axis=0)) < 5 * spread).all()
    np.testing.assert_allclose(np.cov(fast.T), np.cov(slow.T), atol=0.06)
    assert fast.sum(axis=1).std() > 0.1  # the total weight varies too


def test_observation_weights_in_the_information():
    """The sum over observations of squared weighted gradients, the slow way."""
    x, w = [2, 3, 3, 5, 3], [0.5, 1.5, 1.0, 2.0, 1.5]
    objective = dfd.objective(dfd.models.Poisson(), dfd.Dataset.of(x, weights=w))
    single = [dfd.objective(dfd.models.Poisson(), [value]).gradient({"rate": 3.0})[0] for value in x]
    expected = sum((weight * gradient) ** 2 for weight, gradient in zip(w, single, strict=True))
    assert information(objective, np.array([3.0]))[1][0, 0] == pytest.approx(expected, rel=1e-12)


def test_the_scale_of_observation_weights_changes_no_interval():
    rng = np.random.default_rng(2)
    x, w = rng.poisson(4.0, 300), rng.uniform(0.5, 2.0, 300)
    flat = {"rate": dist.Gamma(1.0, 1e-6)}
    fits = [
        dfd.fit("poisson", x, weights=scale * w, prior=flat, sampler="laplace", progress=False) for scale in (1.0, 10.0)
    ]
    assert fits[1].beta * 10 == pytest.approx(fits[0].beta, rel=1e-6)
    np.testing.assert_allclose(fits[1].summary()["sd"], fits[0].summary()["sd"], rtol=1e-6)


def test_weighted_data_survive_saving(tmp_path):
    fit = dfd.fit("poisson", [2, 3, 1, 4] * 20, weights=[0.5, 1.0, 2.0, 1.0] * 20, sampler="laplace", progress=False)
    again = dfd.load(fit.save(tmp_path / "f.nc"))
    assert again.data.n == 80 and again.data.repeats.tolist() == fit.data.repeats.tolist()
    assert np.isfinite(fit.replicate(draws=5).checks().to_numpy()).all()


def test_degenerate_resamples_are_counted_and_reported():
    """One rare 1 among twelve answers is missing from (11/12)^12 = 35 % of resamples; all the rest still count."""
    x = [0] * 11 + [1]
    objective = dfd.objective(dfd.models.Poisson(), x)
    weights = resample(objective, 0, 400)
    slow = sum(len(np.unique(np.repeat([0, 1], w.astype(int)))) == 1 for w in weights)
    assert degenerate(objective, weights) == slow and 100 < slow < 180
    assert degenerate(objective, resample(objective, 0, 400, "dirichlet")) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dfd.fit("poisson", x, loss="ratio", calibration="gpc", sampler="laplace", progress=False)
    assert any(f"in {slow} of 400 resamples a column" in warning for warning in fit.warnings)
    assert fit.calibration.degenerate == slow
    assert np.isfinite(fit.summary()[["mean", "sd"]].to_numpy()).all()


def test_blocks_are_resampled_both_ways():
    graph = dfd.graphs.grid(8, 8)
    x = dfd.simulate(dfd.models.Ising(graph), {"temperature": 4.0}, 1, seed=0).rows
    fits = [
        dfd.fit(
            dfd.models.Ising(graph),
            x,
            loss="pseudo",
            calibration="score-matching-invariant",
            resampling=kind,
            sampler="laplace",
            progress=False,
        )
        for kind in ("multinomial", "dirichlet")
    ]
    assert [fit.calibration.resampling for fit in fits] == ["multinomial", "dirichlet"]
    assert fits[0].beta != fits[1].beta and 0.3 < fits[0].beta / fits[1].beta < 3.0


def test_unknown_resampling(poisson):
    with pytest.raises(dfd.errors.SettingError, match="no resampling 'jackknife'"):
        dfd.bootstrap(poisson, dfd.minimise(poisson), 10, resampling="jackknife")


def test_gpc_the_slow_way():
    """Coverage of credible sets of resampled data, by quadrature of each posterior on a grid, over a grid of beta.

    The fast one replaces each posterior by a normal in log rate, so the two differ by a few percent.
    """
    x = np.random.default_rng(5).poisson(4.0, 200)
    model = dfd.models.Poisson()
    objective = dfd.objective(model, x)
    minimum = dfd.minimise(objective)
    replicates = dfd.bootstrap(objective, minimum, 400, seed=3)
    found = dfd.calibrate(objective, "gpc", bootstrap=replicates, minimum=minimum)
    z = np.linspace(np.log(2.0), np.log(8.0), 1500)
    theta = np.exp(z)
    rows = objective.data.rows[:, 0]
    terms = (rows[:, None] / theta) ** 2 - 2 * (rows[:, None] + 1) / theta
    log_prior = np.asarray(model.space.parameters[0].prior.log_prob(theta)) + z
    middle = np.argmin(np.abs(theta - minimum.vector[0]))

    def coverage(beta):
        held = 0
        for weights in replicates.weights:
            log = log_prior - beta * weights @ terms
            mass = np.exp(log - log.max())
            mass /= mass.sum()
            held += mass[mass > mass[middle]].sum() <= 0.95
        return held / len(replicates.weights)

    assert found.reached == pytest.approx(0.95, abs=1 / 400)
    assert coverage(found.beta) == pytest.approx(0.95, abs=0.015)
    assert coverage(1.5 * found.beta) < 0.93 and coverage(found.beta / 1.5) > 0.97
    assert "gpc" in found.message and "hold the minimiser" in found.message
    assert found.condition is None and 0 < found.error < 0.3 * found.beta


def test_gpc_on_normal_means_is_the_ratio_of_precisions():
    """A flat prior and a loss nearly quadratic: the weight is chi2's quantile over that of standardised distances."""
    x = np.random.default_rng(6).poisson(30.0, 5000)
    model = dfd.models.Poisson().with_priors({"rate": dist.Gamma(1.0, 1e-6)})
    objective = dfd.objective(model, x)
    minimum = dfd.minimise(objective)
    replicates = dfd.bootstrap(objective, minimum, 2000, seed=1)
    found = dfd.calibrate(objective, "gpc", bootstrap=replicates, minimum=minimum)
    distance = (replicates.minima.vectors[:, 0] - minimum.vector[0]) ** 2 * objective.hessian(minimum.vector)[0, 0]
    assert found.beta == pytest.approx(chi2.ppf(0.95, 1) / np.quantile(distance, 0.95), rel=0.03)


def test_gpc_refuses_where_it_cannot_work():
    x = np.random.default_rng(1).negative_binomial(0.5, 0.1, 500)
    with pytest.raises(dfd.errors.CalibrationError, match=r"boundary of the parameter space.*What to do"):
        dfd.calibrate(dfd.objective(dfd.models.ConwayMaxwellPoisson(), x), "gpc", bootstrap=50)
    narrow = dfd.models.Poisson().with_priors({"rate": dist.LogNormal(5.0, 1e-5)})
    counts = np.random.default_rng(0).poisson(3.0, 100)
    with pytest.raises(dfd.errors.CalibrationError, match=r"the prior decides.*widen the prior"):
        dfd.calibrate(dfd.objective(narrow, counts), "gpc", bootstrap=50)


def test_rows_without_weight_are_left_out():
    data = dfd.Dataset.of([2, 3, 3, 5, 7, 9])
    left = dfd.objective(dfd.models.Poisson(), data.reweighted([2, 0, 3, 1, 0]))
    fewer = dfd.objective(dfd.models.Poisson(), [2, 2, 5, 5, 5, 7])
    theta = np.array([4.0])
    assert dfd.calibrate(left, "lyddon").beta == pytest.approx(dfd.calibrate(fewer, "lyddon").beta, rel=1e-12)
    assert left.gradient(theta) == pytest.approx(fewer.gradient(theta), rel=1e-12)
    assert left.data.rows[:, 0].tolist() == [2, 5, 7] and left.data.n == 6
