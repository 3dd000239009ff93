"""The test of fit: its formula against a slow one, its level, what it says of wrong models."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dfdbayes as dfd
from dfdbayes._util.codec import from_plain, to_plain
from dfdbayes.errors import MisfitWarning
from dfdbayes.results import relevance
from dfdbayes.results import test_statistics as features
from dfdbayes.results.checking import check
from dfdbayes.results.checks import Checks
from dfdbayes.results.goodness_of_fit import Finding, _corrected, _observed, _pool, _scores, goodness_of_fit
from dfdbayes.results.misfit_messages import _inflated, _poisson, _two_groups, misfits, spread_of
from dfdbayes.results.relevance import statistic_matters
from small_fits import QUICK, quietly

RNG = np.random.default_rng(7)
SPREAD = RNG.negative_binomial(1.5, 1.0 / 3.0, 200)  # mean 3, variance 9


def checked(model, data, loss="auto"):
    read = dfd.Dataset.of(data, model.domain)
    word = model.advise(read)[0] if loss == "auto" else loss
    minimum = dfd.minimise(dfd.objective(model, read, word))
    return check(model, np.repeat(minimum.vector[None], 20, axis=0), read, at=minimum.vector)


def test_what_estimation_takes_away_is_taken_away():
    """Of Poisson counts the score is x - rate: the variance's remainder is (x - rate)^2 - x, its variance 2 rate^2."""
    model, rate = dfd.models.Poisson(), 3.0
    data = dfd.Dataset.of(np.arange(12))
    observed, given, _, n = _observed(model, np.array([rate]), data)
    pool = _pool(model, np.array([rate]), given, RNG)
    (family,) = [one for one in features.families(model.domain, None, pool.rows, n) if one.kind == "variance"]
    values = family.values(pool.rows), family.values(observed)
    scores = tuple(_scores(model, np.array([rate]), rows.x, None) for rows in (pool.rows, observed))
    _, mine, spread = _corrected(pool, values, scores)
    x = np.arange(12.0)
    np.testing.assert_allclose(mine[:, 0], ((x - rate) ** 2 - x) / rate, atol=1e-8)
    assert spread[0] == pytest.approx(np.sqrt(2.0), rel=1e-6)


def test_the_level_is_right_at_estimates_of_any_loss():
    """120 data sets of 100: rejections at 20 % are binomial(120, 0.2), false alarm below 1e-3; so is the plain test's
    failure, whose p-values at an estimate are far too large."""
    model, corrected, plain = dfd.models.Poisson(), [], []
    for seed in range(120):
        x = np.random.default_rng([5, seed]).poisson(3.0, 100)
        data = dfd.Dataset.of(x)
        corrected.append(goodness_of_fit(model, np.array([x.mean()]), data).p_value)
        cells = np.bincount(np.minimum(x, 7), minlength=8)
        chance = np.append(stats.poisson.pmf(np.arange(7), x.mean()), stats.poisson.sf(6, x.mean()))
        plain.append(stats.chisquare(cells, 100 * chance).pvalue)
    assert 11 <= np.sum(np.array(corrected) < 0.2) <= 40
    assert np.sum(np.array(plain) < 0.2) < np.sum(np.array(corrected) < 0.2)


def test_spread_groups_and_zeros_are_told_apart():
    mixed = np.concatenate([RNG.poisson(2.0, 150), RNG.poisson(12.0, 150)])
    empty = RNG.poisson(4.0, 300) * (RNG.random(300) < 0.7)
    for x, wanted in ((SPREAD, "spread"), (mixed, "groups"), (empty, "zeros")):
        values, counts = np.unique(x, return_counts=True)
        found, numbers = spread_of(values.astype(float), counts.astype(float))
        assert found == wanted
        if found == "groups":
            assert abs(numbers[0] - 2.0) < 0.6 and abs(numbers[1] - 12.0) < 1.2


def test_the_check_speaks():
    found = checked(dfd.models.Poisson(), SPREAD)
    assert found.p_value < 0.01 and found.misfits[0].finding.kind == "variance"
    numbers = found.misfits[0].finding
    assert numbers.observed == pytest.approx(SPREAD.var(), rel=1e-9)
    assert f"the data have {SPREAD.var():.3g}" in found.sentence and "model='cmp'" in found.sentence
    again = from_plain(to_plain(found), Checks)
    assert again.misfits == found.misfits and again.goodness == found.goodness and again.sentence == found.sentence
    fine = checked(dfd.models.Poisson(), RNG.poisson(3.0, 200))
    assert fine.p_value > 0.001 and not fine.misfits and "reproduces the data" in fine.sentence


def test_zeros_and_groups_have_their_model():
    zeros = checked(dfd.models.Poisson(), RNG.poisson(4.0, 300) * (RNG.random(300) < 0.7))
    assert "zeros='~ 1'" in zeros.sentence and "% zeros" in zeros.sentence
    groups = checked(dfd.models.Poisson(), np.concatenate([RNG.poisson(2.0, 150), RNG.poisson(12.0, 150)]))
    assert "PoissonMixture" in groups.sentence


def test_a_missing_edge_is_named():
    full = dfd.models.IsingNetwork(dfd.graphs.of([(0, 1), (0, 2), (1, 2)]))
    rows = dfd.simulate(full, {"intercept": np.full(3, -0.5), "interaction": np.full(3, 1.2)}, 600, seed=1).rows
    found = checked(dfd.models.IsingNetwork(dfd.graphs.of([(0, 1), (1, 2)])), rows, "pseudo")
    first = found.misfits[0]
    assert first.finding.kind == "pairs" and first.finding.columns == (0, 2)
    assert "an edge is missing: add (0, 2)" in first.remedy
    wanted = np.corrcoef(rows[:, 0], rows[:, 2])[0, 1]
    assert first.finding.observed == pytest.approx(wanted, rel=1e-9)


def test_a_torus_is_not_a_grid():
    torus, grid = (dfd.models.Ising(dfd.graphs.grid(3, 4, periodic=wrapped)) for wrapped in (True, False))
    rows = dfd.simulate(torus, {"temperature": 3.0}, 300, seed=2).rows
    found = checked(grid, rows, "ratio")
    assert found.misfits[0].finding.kind == "wrapped" and "periodic=True" in found.sentence
    other = checked(torus, dfd.simulate(grid, {"temperature": 2.0}, 300, seed=3).rows, "ratio")
    assert "A grid, not a torus" in other.sentence


def test_regressions_are_checked_too():
    x = RNG.normal(size=300)
    frame = pd.DataFrame({"y": RNG.poisson(np.exp(1.0 + 0.4 * x) * RNG.gamma(2.0, 0.5, 300)), "x": x})
    fit = quietly("poisson", frame, formula="y ~ x")
    first = fit.checks.misfits[0]
    assert first.finding.kind == "variance"
    expected = np.exp(fit.estimate[0] + fit.estimate[1] * x)  # the mean of Pearson residuals' squares, which was tested
    assert first.finding.observed == pytest.approx(np.mean((frame["y"] - expected) ** 2 / expected), rel=1e-6)
    assert f"vary {first.finding.observed:.3g} times as much" in first.sentence and "standard errors" in first.sentence


def counts_by_group(spread_a, spread_b, n=150):
    """Counts of mean 5 in two groups, with variances in them of so many times the mean."""
    rng = np.random.default_rng(11)
    groups = [rng.poisson(5.0 * rng.gamma(5.0 / (times - 1), (times - 1) / 5.0, n)) for times in (spread_a, spread_b)]
    return pd.DataFrame({"y": np.concatenate(groups), "g": np.repeat(["a", "b"], n)})


@pytest.mark.slow
def test_advice_names_the_group_that_varies_more_and_nothing_that_the_model_has():
    frame = counts_by_group(1.2, 3.0)
    first = quietly("cmp", frame, formula="y ~ g").checks.misfits[0]
    assert first.finding.kind == "spread by covariate" and first.finding.observed > 1.5
    assert "where g = b as elsewhere" in first.sentence and "nu='~ g' (on the command line: --nu '~ g')" in first.remedy
    apart = quietly("cmp", frame, formula="y ~ g", nu="~ g")
    assert not apart.checks.misfits and "more than Poisson counts where g = b (nu 0." in apart.answer
    zeros = pd.DataFrame({"y": np.where(RNG.random(300) < 0.4, 0, frame["y"]), "g": frame["g"]})
    with_zeros = quietly("cmp", zeros, formula="y ~ g", zeros="~ 1")
    assert with_zeros.checks.misfits and not any("zeros='~ 1'" in one.remedy for one in with_zeros.checks.misfits)


def test_rows_of_a_cluster_are_no_new_evidence():
    """Ten copies of every observation as clusters say no more than the observations: the p-value hardly falls."""
    rng = np.random.default_rng(1)
    model, x = dfd.models.Poisson(), rng.poisson(3.0 * rng.gamma(12.0, 1.0 / 12.0, 80))
    frame = pd.DataFrame({"x": np.repeat(x, 10), "who": np.repeat(np.arange(80), 10)})
    data = dfd.Dataset.of(frame, model.domain, columns=["x"], cluster="who")
    at = np.array([x.mean()])
    alone = goodness_of_fit(model, at, dfd.Dataset.of(x)).p_value
    together = goodness_of_fit(model, at, data).p_value
    apart = goodness_of_fit(model, at, dfd.Dataset.of(np.repeat(x, 10))).p_value
    assert apart < 0.01 < together and together > 0.3 * alone


def test_likelihoods_of_spread_are_scipys():
    values, counts = (part.astype(float) for part in np.unique(SPREAD, return_counts=True))
    np.testing.assert_allclose(_poisson(values, 2.5), stats.poisson.logpmf(values, 2.5), rtol=1e-10)
    (rates, log), (rate, inflated) = _two_groups(values, counts), _inflated(values, counts)
    assert rates[0] < SPREAD.mean() < rates[1] and log > stats.poisson.logpmf(SPREAD, SPREAD.mean()).sum()
    share = 1.0 - np.mean(SPREAD > 0) / (1.0 - np.exp(-rate))
    mixed = np.where(SPREAD == 0, share, 0.0) + (1.0 - share) * stats.poisson.pmf(SPREAD, rate)
    assert inflated == pytest.approx(np.log(mixed).sum(), rel=1e-6)


@pytest.mark.filterwarnings("ignore::dfdbayes.errors.IdentificationWarning", "ignore::dfdbayes.errors.PriorWarning")
def test_counts_beyond_the_most_that_a_model_has_are_a_misfit(monkeypatch):
    """Conway-Maxwell-Poisson ends at the geometric distribution: nu cannot take away what lies beyond."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=300)
    frame = pd.DataFrame({"y": rng.poisson(np.exp(1.0 + 0.3 * x) * rng.gamma(0.6, 1 / 0.6, 300)), "x": x})
    fit = dfd.fit("cmp", frame, formula="y ~ x", sampler="laplace", draws=50, check=False, progress=False)
    assert goodness_of_fit(fit.model, fit.estimate, fit.data).p_value < 0.005
    monkeypatch.setattr("dfdbayes.results.goodness_of_fit.NEAR", 1e-9)  # as if nu could move either way
    assert goodness_of_fit(fit.model, fit.estimate, fit.data).p_value > 0.02


def test_counts_at_the_edge_of_the_family_are_tested_there():
    """Geometric counts are those of nu = 0, where the loss goes; at the posterior mean they would be rejected."""
    rng = np.random.default_rng(990002)
    x = rng.normal(size=200)
    y = rng.geometric(1 / (1 + np.exp(1.0 + 0.4 * x))) - 1
    fit = quietly("cmp", pd.DataFrame({"y": y, "x": x}), formula="y ~ x")
    assert fit.minimum.outcome == "escaped" and fit.estimate[-1] < -10
    middle = fit.joint_draws.mean(axis=0)
    assert goodness_of_fit(fit.model, middle, fit.data).p_value < 0.05 < fit.checks.p_value


# -- what is told, and where ------------------------------------------------------------------


def overdispersed(n=300):
    """Counts with a variance of three times their mean."""
    rng = np.random.default_rng(21)
    return pd.DataFrame({"month": np.arange(n), "cases": rng.poisson(4.0 * rng.gamma(2.0, 0.5, n))})


@pytest.mark.parametrize("loss", ["likelihood", "dfd"])
def test_a_misfit_is_a_warning_once_and_again_where_intervals_rest_on_it(loss, tmp_path):
    frame = overdispersed()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit = dfd.fit("poisson", frame, formula="cases ~ 1", time="month", loss=loss, **QUICK)
    of_misfit = [str(one.message) for one in told if one.category is MisfitWarning]
    assert len(of_misfit) == 1 and of_misfit[0] in fit.warnings and told[-1].filename == __file__
    assert "does not reproduce the data" in of_misfit[0] and "What to do: try model='cmp'" in of_misfit[0]
    assert "does not reproduce the data" in fit.answer
    again = dfd.load(fit.save(tmp_path / "fit.nc"))
    for one in (fit, again):
        with pytest.warns(MisfitWarning, match="rest on the model, and the model does not reproduce"):
            one.predict()
        with pytest.warns(MisfitWarning, match="rest on the model"):
            one.forecast(3)


def test_a_right_model_and_a_fit_without_checks_are_silent():
    right = pd.DataFrame({"cases": np.random.default_rng(4).poisson(4.0, 300)})
    dfd.fit("poisson", right, formula="cases ~ 1", **QUICK).predict()
    dfd.fit("poisson", overdispersed(), formula="cases ~ 1", **QUICK | {"check": False}).predict()


@pytest.mark.parametrize(
    ("kind", "small", "large"),
    [
        ("mean", (2.001, 2.0), (2.2, 2.0)),
        ("variance", (4.1, 4.0), (6.0, 4.0)),
        ("skewness", (0.5, 0.4), (0.9, 0.4)),
        ("zeros", (0.301, 0.3), (0.34, 0.3)),
        ("zeros", (0.0021, 0.0019), (0.012, 0.005)),
        ("pairs", (0.31, 0.3), (0.4, 0.3)),
    ],
)
def test_what_matters_is_a_matter_of_the_datas_scale(kind, small, large):
    assert not statistic_matters(kind, *small, 2.0) and statistic_matters(kind, *large, 2.0)


def test_what_matters_moves_a_probability_by_two_in_a_hundred():
    """The thresholds of moments, by the distributions that they are derived from."""
    assert stats.norm.cdf(relevance.MEAN) - 0.5 == pytest.approx(0.02, rel=0.01)
    wider = np.exp(0.5 * relevance.VARIANCE)
    assert stats.norm.sf(1.0 / wider) - stats.norm.sf(1.0) == pytest.approx(0.02, rel=0.1)
    shape = 4.0 / relevance.SKEWNESS**2  # of a gamma distribution
    assert stats.gamma.cdf(shape, shape) - 0.5 == pytest.approx(0.02, rel=0.1)
    same = 0.5 + np.arcsin(relevance.CORRELATION) / np.pi
    assert same - 0.5 == pytest.approx(0.02, rel=0.01)


def test_a_difference_without_content_is_no_misfit():
    """Half a million residuals that lie 0.02 standard deviations too high are beyond chance, and fit."""
    model = dfd.models.Poisson()
    x = np.repeat(np.arange(15), np.round(500_000 * stats.poisson.pmf(np.arange(15), 3.0)).astype(int))
    data = dfd.Dataset.of(x)
    found = check(model, np.full((20, 1), 3.03), data, at=np.array([3.03]))
    moved = Finding("mean", (0,), (), 3.03, 3.0, 0.001, 12.0)
    assert misfits(model, data, [moved]) == ()
    quiet = replace(found, goodness=replace(found.goodness, p_value=0.005, findings=(moved,)), misfits=())
    assert "reproduces the data" in quiet.sentence and "too small to matter" in quiet.sentence
    assert not quiet.warnings


@pytest.mark.parametrize(
    ("shift", "apart", "told"),
    [
        (0.6, 0.5, False),  # 6.7 joint standard errors may be 0.6 of the estimate's own: of no matter
        (9.0, 0.001, False),  # nu of -3.8 and -21.6 on the log scale are 0.02 and 0: the same counts
        (1.5, 0.1, True),
        (1.5, float("nan"), True),  # where nobody knows what data the two make
    ],
)
def test_losses_disagree_where_an_estimate_and_the_data_differ(shift, apart, told):
    from dfdbayes.results.hausman import _matters

    assert _matters(pd.DataFrame({"shift": [-shift]}, index=["nu"]), apart).tolist() == [told]
