import numpy as np
import numpyro.distributions as dist
import pytest

import dfdbayes as dfd
from dfdbayes.core.replicates import minimise_many
from dfdbayes.core.resampling import resample


@pytest.fixture(scope="module")
def objective(shared_data):
    model = dfd.models.ConwayMaxwellPoisson().with_priors(dict.fromkeys(("rate", "nu"), dist.Chi2(3.0)))
    return dfd.objective(model, shared_data / "cmp_4.0_0.75_n2000.csv")


def test_theorem_3_the_slow_way(objective):
    """The formula, one bootstrap minimiser after another."""
    found = dfd.calibrate(objective, "score-matching", bootstrap=20, seed=4)
    whole = dfd.minimise(objective)
    again = minimise_many(objective, resample(objective, 4, 20), whole)
    np.testing.assert_array_equal(found.minimisers, again.vectors)
    others = [np.cov(np.delete(found.minimisers, b, axis=0).T) for b in range(20)]
    invariant = dfd.calibrate(objective, "score-matching-invariant", bootstrap=20, seed=4)
    for matrices, calibration in (([np.eye(2)] * 20, found), (others, invariant)):
        top = bottom = 0.0
        for theta, matrix in zip(found.minimisers, matrices, strict=True):
            gradient, hessian = objective.gradient(theta), objective.hessian(theta)
            prior = 0.5 / theta - 0.5  # of the chi-squared(3) log density
            top += gradient @ matrix @ prior + np.trace(matrix @ hessian)
            bottom += gradient @ matrix @ gradient
        assert calibration.beta == pytest.approx(top / bottom, rel=1e-9)
        assert calibration.condition is True and calibration.used == 20


def test_reference_values(objective):
    """beta* = 2.87 +- 0.07 at B = 4000, invariant 2.09; at B = 100 within its own error of that.

    Two Monte-Carlo estimates are compared at 4 combined standard errors: false-alarm rate below 1e-4 each.
    """
    many = dfd.calibrate(objective, "score-matching", bootstrap=4000, seed=0)
    assert abs(many.beta - 2.87) < 4 * np.hypot(0.07, many.error)
    assert many.error == pytest.approx(0.07, abs=0.03)
    assert many.tally == {"converged": 4000}
    invariant = dfd.calibrate(objective, "score-matching-invariant", bootstrap=4000, seed=0)
    assert abs(invariant.beta - 2.09) < 4 * np.hypot(0.05, invariant.error)
    few = [dfd.calibrate(objective, "score-matching", bootstrap=100, seed=seed) for seed in range(20)]
    assert all(abs(c.beta - many.beta) < 4 * np.hypot(c.error, many.error) for c in few)
    spread = np.std([c.beta for c in few])
    assert 0.5 < spread / np.mean([c.error for c in few]) < 2.0  # the reported error is the real one


def test_the_invariant_weight_does_not_fall_with_the_number_of_parameters():
    """21 parameters and 50 fits, where the covariance of all fits would give 30 % less; 4 combined errors."""
    model = dfd.models.IsingNetwork(6)
    rows = dfd.simulate(model, {"intercept": np.zeros(6), "interaction": np.full(15, 0.2)}, 1000, seed=3).rows
    objective = dfd.objective(model, rows, "pseudo")
    few, many = (dfd.calibrate(objective, "score-matching-invariant", bootstrap=size) for size in (50, 1000))
    assert abs(few.beta - many.beta) < 4 * np.hypot(few.error, many.error)
    assert 4 * np.hypot(few.error, many.error) < 0.28 * many.beta  # so that those 30 % would be seen


def test_the_invariant_weight_does_not_see_units():
    rng = np.random.default_rng(0)
    x = rng.poisson(3.0, 400)
    betas = {}
    for method in ("score-matching", "score-matching-invariant"):
        betas[method] = []
        for unit in (1.0, 1000.0):
            model = dfd.ExponentialFamily(
                T=dfd.models.ConwayMaxwellPoisson().T,
                b=None,
                eta=lambda t, unit=unit: np.array([1.0, 1.0 / unit]) * t["eta"],
                domain=dfd.Counts(1),
                parameters={"eta": dist.Normal(np.zeros(2), np.array([10.0, 10.0 * unit]))},
                start=lambda data, unit=unit: {"eta": np.array([1.1, 1.0 * unit])},
            )
            betas[method].append(dfd.calibrate(dfd.objective(model, x), method, bootstrap=50).beta)
    assert betas["score-matching-invariant"][1] == pytest.approx(betas["score-matching-invariant"][0], rel=1e-8)
    assert abs(betas["score-matching"][1] / betas["score-matching"][0] - 1) > 0.05


def test_a_prior_narrower_than_the_data_leaves_no_beta():
    model = dfd.models.Poisson().with_priors({"rate": dist.Normal(20.0, 0.01)})
    x = np.random.default_rng(0).poisson(3.0, 100)
    with pytest.raises(dfd.errors.CalibrationError, match=r"Theorem 3's condition fails.*negative in.*What to do"):
        dfd.calibrate(dfd.objective(model, x), "score-matching-invariant", bootstrap=100)


def test_weights_by_hand(objective):
    assert dfd.calibrate(objective, 0.5).beta == 0.5
    assert dfd.calibrate(objective, "none").beta == 1.0
    for wrong in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(dfd.errors.SettingError, match="positive"):
            dfd.calibrate(objective, wrong)
    with pytest.raises(dfd.errors.SettingError, match="no calibration 'magic'"):
        dfd.calibrate(objective, "magic")
    with pytest.raises(dfd.errors.SettingError, match="at least 2"):
        dfd.calibrate(objective, "gpc", bootstrap=1)


def test_too_many_escaped_fits_leave_no_weight():
    """Six spins, 21 parameters and 60 rows: resamples lack whole configurations, and the unbounded loss runs away."""
    model = dfd.models.IsingNetwork(dfd.graphs.complete(6), states="spins")
    x = dfd.simulate(model, {"intercept": np.zeros(6), "interaction": np.full(15, 0.2)}, 60, seed=3).rows
    objective = dfd.objective(model, x)
    around = dfd.minimise(dfd.objective(model, x, "ratio"))
    replicates = dfd.bootstrap(objective, around, 50)
    assert replicates.minima.tally.get("escaped", 0) > 25
    for method in ("score-matching", "score-matching-invariant", "gpc"):
        with pytest.raises(dfd.errors.CalibrationError, match=r"bootstrap fits have a minimum.*loss='ratio'"):
            dfd.calibrate(objective, method, bootstrap=replicates, minimum=around)


def test_minimisers_where_the_prior_has_no_slope():
    """Over-dispersed beyond the model: every minimiser has nu = 0, where the prior's slope is infinite."""
    x = np.random.default_rng(1).negative_binomial(0.5, 0.1, 500)
    objective = dfd.objective(dfd.models.ConwayMaxwellPoisson(), x)
    with pytest.raises(dfd.errors.CalibrationError, match=r"no finite slope.*What to do"):
        dfd.calibrate(objective, "score-matching-invariant", bootstrap=50)


def test_a_calibration_says_what_it_rests_on(objective):
    found = dfd.calibrate(objective, "score-matching-invariant", bootstrap=50)
    assert found.numerator == pytest.approx(found.from_prior + found.from_data)
    assert found.beta == pytest.approx(found.numerator / found.denominator)
    for part in ("Theorem 3's condition holds", "the prior gives", "50 multinomial bootstrap fits: 50 converged"):
        assert part in found.message
