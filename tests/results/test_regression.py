"""After a regression: predictions, residuals, checks, effects, nested fits, second opinions, by their definitions."""

import re

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import dfdbayes as dfd
from dfdbayes import plots
from dfdbayes.core.mixing import evenly
from dfdbayes.core.simulators import draw as simulators
from dfdbayes.core.simulators.given import by_listing, distributions, tails
from dfdbayes.errors import DataError, DataWarning, DisagreementWarning, SettingError
from dfdbayes.families.counts.models import moments
from dfdbayes.present import sections
from dfdbayes.present.renderers import page as render
from dfdbayes.results.ratios import ratios

pytestmark = [  # the visits have more zeros than a Poisson model expects, by chance (p = 0.018)
    pytest.mark.filterwarnings(f"ignore::dfdbayes.errors.{kind}") for kind in ("PriorWarning", "MisfitWarning")
]
QUICK = {"progress": False, "sampler": "laplace", "draws": 250}
VALUES = np.arange(400)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"age": rng.normal(0.0, 1.0, 400).round(2), "clinic": rng.choice(["A", "B", "C"], 400)})
    frame["days"] = rng.integers(10, 40, 400)
    mean = np.exp(-2.0 + 0.4 * frame["age"] + 0.5 * (frame["clinic"] == "B")) * frame["days"]
    frame["visits"] = rng.poisson(mean)
    frame["wild"] = rng.poisson(mean * rng.gamma(1.0, 1.0, 400))
    return frame


@pytest.fixture(scope="module")
def poisson(people):
    return dfd.fit("poisson", people, formula="visits ~ age + clinic + offset(log(days))", check=True, **QUICK)


@pytest.fixture(scope="module")
def hurdle(people):
    settings = {"formula": "visits ~ age", "zeros": "~ 1", "options": {"form": "location"}}
    return dfd.fit("cmp", people.head(150), **settings, **QUICK)


@pytest.fixture(scope="module")
def network():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.integers(0, 2, (300, 3)), columns=["a", "b", "c"])
    frame["group"] = rng.integers(0, 2, 300)
    return dfd.fit("ising-network", frame, formula="~ group", check=True, **QUICK)


def log_masses(fit, theta, given):
    """Of every value, for a row with these covariates, of a location form with a hurdle."""
    location, nu = theta[0] + theta[1] * given[1], np.exp(theta[2])
    log = nu * (VALUES * location - special.gammaln(VALUES + 1.0)) + np.where(VALUES == 0, theta[3], 0.0)
    return log - special.logsumexp(log)


# -- Expected values ---------------------------------------------------------------------------


@pytest.mark.parametrize("zeros", [None, 0.8])
@pytest.mark.parametrize("form", ["poisson", "mean", "location"])
def test_expected_counts_are_sums(form, zeros):
    made = dfd.models.Poisson() if form == "poisson" else dfd.models.ConwayMaxwellPoisson()
    model = made.by("mean" if form == "poisson" else form, zeros is not None)
    predictor, nu = np.array([-1.0, 0.5, 2.0]), 1.0 if form == "poisson" else 0.7
    rows = model.of_predictors(
        {model.form: jnp.asarray(predictor), "nu": jnp.log(nu), "zeros": jnp.asarray(zeros or 0.0)}
    )
    found = np.asarray(model.means_at(rows, 3))
    for i in range(3):
        log = float(rows["log_rate"][i]) * VALUES - nu * special.gammaln(VALUES + 1.0)
        log[0] += zeros or 0.0
        assert found[i] == pytest.approx(special.softmax(log) @ VALUES, rel=1e-9)
    if form == "location" and zeros is None:
        np.testing.assert_allclose(found, moments(np.exp(nu * predictor), np.full(3, nu))[0], rtol=1e-9)
    if form == "mean" and zeros is None:
        np.testing.assert_allclose(found, np.exp(predictor), rtol=1e-12)


def test_predictions_of_a_poisson_regression(poisson):
    new = pd.DataFrame({"age": [0.5, -1.0, 2.0], "clinic": ["A", "B", "C"], "days": [20, 30, 10]}, index=[9, 4, 7])
    table = poisson.predict(new, interval=0.9)
    assert list(table.index) == [9, 4, 7]
    design = np.stack([np.ones(3), new["age"], new["clinic"] == "B", new["clinic"] == "C"], axis=1).astype(float)
    order = [poisson.minimum.names.index(f"mean[{name}]") for name in ("Intercept", "age", "clinic=B", "clinic=C")]
    mean = np.exp(evenly(poisson.joint_draws, 1000)[:, order] @ design.T + np.log(new["days"].to_numpy()))
    np.testing.assert_allclose(table["mean"], mean.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(table[["mean_low", "mean_high"]], np.quantile(mean, [0.05, 0.95], axis=0).T, rtol=1e-9)
    mixed = stats.poisson.cdf(VALUES[:, None, None], evenly(mean, 200)).mean(axis=1)
    for column, chance in (("new_low", 0.05), ("new_high", 0.95)):
        np.testing.assert_array_equal(table[column], np.argmax(mixed >= chance, axis=0))
        assert table[column].dtype == np.int64


def test_predictions_of_a_hurdle_in_the_location_form(hurdle):
    table = hurdle.predict({"age": [0.0, 1.5]})
    for i, age in enumerate((0.0, 1.5)):
        masses = np.exp([log_masses(hurdle, theta, [1.0, age]) for theta in hurdle.joint_draws])
        means = masses @ VALUES
        assert table["mean"][i] == pytest.approx(means.mean(), rel=1e-7)
        np.testing.assert_allclose(
            table.loc[i, ["mean_low", "mean_high"]], np.quantile(means, [0.025, 0.975]), rtol=1e-7
        )
        cumulated = evenly(masses, 200).mean(axis=0).cumsum()
        assert table["new_high"][i] == np.argmax(cumulated >= 0.975)


def test_predictions_at_the_own_rows(poisson, people):
    pd.testing.assert_frame_equal(poisson.predict(), poisson.predict(people), check_names=False, rtol=1e-12)
    assert poisson.predict(people.head(0)).empty
    with pytest.warns(DataWarning, match=r"'age' is 12 in the new data, and the fit has seen -"):
        poisson.predict({"age": 12.0, "clinic": "B", "days": 20})
    one = {"age": 0.5, "clinic": "B", "days": 20}
    pd.testing.assert_frame_equal(poisson.predict(one), poisson.predict(pd.DataFrame([one])))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"clinic": ["D"]}, "is 'D' in the new data; the fit has seen A, B, C"),
        ({"days": [0]}, "offset"),
        ({"age": [np.nan]}, "or leave these rows out of the new data"),
        ({"clinic": None}, "the new data lack 'clinic'"),
    ],
)
def test_new_data_that_cannot_be_predicted(poisson, change, said):
    new = {"age": [0.0], "clinic": ["A"], "days": [10]} | change
    frame = pd.DataFrame({name: values for name, values in new.items() if values is not None})
    with pytest.raises(DataError) as told, np.errstate(divide="ignore"):
        poisson.predict(frame)
    assert said in str(told.value)


def test_who_has_no_predictions(network, poisson, tmp_path):
    with pytest.raises(SettingError, match="this one has 3"):
        network.predict()
    plain = dfd.fit("poisson", [1, 2, 3, 4] * 9, **QUICK)
    for ask in (plain.predict, plain.residuals, plain.effects):
        with pytest.raises(SettingError, match="this fit has no covariates"):
            ask()
    with pytest.raises(SettingError, match="between 0 and 1"):
        poisson.predict(interval=95)
    again = dfd.load(poisson.save(tmp_path / "f.nc"))
    pd.testing.assert_frame_equal(again.predict(), poisson.predict())
    pd.testing.assert_frame_equal(again.checks.residuals, poisson.checks.residuals, check_names=False, rtol=1e-12)


# -- Distributions and residuals ---------------------------------------------------------------


def test_tails_of_small_and_large_counts(poisson):
    """Means from 0.01 to 100,000 in one call, each listed about its own; an outlier is beyond all values."""
    model, theta = poisson.model, np.zeros(4)
    mean = np.array([0.01, 1.0, 30.0, 2000.0, 1e5, 3.0])
    x = np.array([0, 2, 31, 1950, 100_500, 5000])
    given = np.concatenate([np.zeros((6, 4)), np.log(mean)[:, None]], axis=1)
    found = tails(model, theta, given, x)
    np.testing.assert_allclose(found.below, stats.poisson.cdf(x - 1, mean), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.here, stats.poisson.pmf(x, mean), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.above, stats.poisson.sf(x, mean), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)


def test_tails_of_widely_spread_counts(hurdle):
    """Far more spread than a Poisson count: the values that are listed first are widened on both sides."""
    model = hurdle.model.changed(hurdle=False)
    theta, x, values = np.array([np.log(300.0), 0.0, np.log(0.05), 0.0]), np.array([60, 330, 700]), np.arange(6000)
    masses = special.softmax(0.05 * (values * np.log(300.0) - special.gammaln(values + 1.0)))
    found = tails(model, theta, np.repeat([[1.0, 0.0, 1.0, 1.0]], 3, axis=0), x)
    np.testing.assert_allclose(found.below, [masses[:one].sum() for one in x], rtol=1e-7)
    np.testing.assert_allclose(found.above, [masses[one + 1 :].sum() for one in x], rtol=1e-7)


def test_distributions_of_a_hurdle(hurdle):
    theta = hurdle.joint_draws.mean(axis=0)
    for part in distributions(hurdle.model, theta[None], hurdle.data.given):
        for row, masses in zip(part.rows[:5], part.masses, strict=False):
            log = log_masses(hurdle, theta, hurdle.data.given[row])
            np.testing.assert_allclose(masses, np.exp(log[part.points[:, 0]]), rtol=1e-8, atol=1e-12)


def test_residuals_of_a_right_model_and_of_a_wrong_one(poisson, people):
    """Kolmogorov and Smirnov's test with a false-alarm rate of 1 in 1000."""
    table = poisson.residuals(seed=1)
    assert len(table) == 400 and stats.kstest(table["residual"], "norm").pvalue > 0.001
    seen = people.loc[table.index, "visits"].to_numpy()
    np.testing.assert_array_equal(table["observed"], seen)
    at = stats.norm.cdf(table["residual"])
    assert (at > stats.poisson.cdf(seen - 1, table["fitted"]) - 1e-9).all()
    assert (at < stats.poisson.cdf(seen, table["fitted"]) + 1e-9).all()
    assert poisson.checks.p_value > 0.001 and poisson.checks.goodness.test == "corrected moments"
    wrong = dfd.fit("poisson", people, formula="wild ~ age + clinic + offset(log(days))", check=True, **QUICK)
    assert stats.kstest(wrong.residuals(seed=1)["residual"], "norm").pvalue < 1e-6
    assert wrong.checks.p_value < 0.002
    assert wrong.checks.table["dispersion_index_tail"].iloc[0] < 0.02


def test_equal_rows_have_residuals_of_their_own():
    frame = pd.DataFrame({"x": [0, 1, 0, 1, 1] * 120, "sex": ["f", "f", "m", "m", "m"] * 120})
    fit = dfd.fit("bernoulli", frame, formula="x ~ sex", check=True, **QUICK)
    table = fit.residuals()
    assert len(table) == table["residual"].nunique() == 600 and len(fit.data.rows) == 4
    np.testing.assert_array_equal(table["observed"], frame["x"])
    assert stats.kstest(table["residual"], "norm").pvalue > 0.001
    assert fit.checks.size == 600


def shuffled(people, index):
    frame = people.head(120).sample(frac=1.0, random_state=1)
    return frame.set_axis(index(len(frame)))


@pytest.mark.parametrize(
    "index",
    [
        lambda n: [f"p{i % 50}" for i in range(n)],  # repeated
        lambda n: np.arange(n)[::-1] * 2,
        lambda n: pd.date_range("2020-01-31", periods=n, tz="Europe/Berlin", name="day"),
        lambda n: pd.MultiIndex.from_product([["a", "b"], range(n // 2)], names=["half", None]),
    ],
    ids=["repeated texts", "numbers", "dates", "several levels"],
)
@pytest.mark.daily("several levels")
def test_what_belongs_to_a_row_stands_at_its_row(people, index, tmp_path):
    frame = shuffled(people, index)
    fit = dfd.fit("poisson", frame, formula="visits ~ age + clinic", check=False, **QUICK)
    fit.save(tmp_path / "fit.nc")
    for one in (fit, dfd.load(tmp_path / "fit.nc")):
        table = one.residuals()
        assert table.index.equals(frame.index) and table.index.names == frame.index.names
        np.testing.assert_array_equal(table["observed"], frame["visits"])
        np.testing.assert_allclose(table["fitted"], fit.predict(frame)["mean"], rtol=0.02)
        np.testing.assert_allclose(one.predict(), fit.predict(frame), rtol=1e-9)
    first = fit.influence(1)
    assert frame["visits"].iloc[first.index[0]] == first["visits"].iloc[0]


@pytest.mark.filterwarnings("ignore::dfdbayes.errors.DroppedRowsWarning")
def test_rows_that_were_left_out_have_no_numbers(people):
    frame = shuffled(people, lambda n: np.repeat("same", n)).astype({"visits": float})
    frame.iloc[3, frame.columns.get_loc("age")] = np.nan
    frame.iloc[[7, 9], frame.columns.get_loc("visits")] = np.nan
    fit = dfd.fit("poisson", frame, formula="visits ~ age", missing="drop", check=False, **QUICK)
    table = fit.residuals()
    assert fit.data.dropped == 3 and len(table) == len(fit.predict()) == len(frame)
    np.testing.assert_array_equal(np.flatnonzero(table["residual"].isna()), [3, 7, 9])
    assert fit.predict().isna().all(axis=1).sum() == 3
    np.testing.assert_array_equal(table["observed"].dropna(), frame.dropna()["visits"])
    first = fit.influence(5)
    np.testing.assert_array_equal(frame["visits"].iloc[first.index], first["visits"])
    assert plots.residuals(fit)


def test_weighted_rows_and_clusters_have_a_line_each(people):
    frame = people.head(120).assign(often=np.tile([1, 3, 2], 40), school=np.tile(np.arange(20), 6))
    for settings in ({"weights": "often"}, {"weights": "often", "weighting": "sampling"}, {"cluster": "school"}):
        fit = dfd.fit("poisson", frame, formula="visits ~ age", check=False, **settings, **QUICK)
        np.testing.assert_array_equal(fit.residuals()["observed"], frame["visits"])
        np.testing.assert_allclose(fit.predict()["mean"], fit.predict(frame)["mean"], rtol=1e-12)


def test_counted_rows_have_a_line_each(people, monkeypatch):
    frame = pd.DataFrame({"x": [1, 0, 0, 1, 1] * 120, "sex": ["f", "f", "m", "m", "m"] * 120})
    monkeypatch.setattr("dfdbayes.data.formulas.MIN_ROWS_TO_COUNT", 400)
    fit = dfd.fit("bernoulli", frame, formula="x ~ sex", check=False, **QUICK)
    assert len(fit.model.observed.rows) == 4
    np.testing.assert_array_equal(fit.residuals()["observed"], frame["x"])
    assert fit.residuals()["residual"].nunique() == 600
    assert set(fit.data.first) == {0, 1, 2, 3}


def test_rows_of_a_series_keep_their_order():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"week": np.arange(80), "cases": rng.poisson(4.0, 80)}).sample(frac=1.0, random_state=2)
    fit = dfd.fit("poisson", frame, formula="cases ~ lag(cases)", time="week", check=False, **QUICK)
    table = fit.residuals()
    pd.testing.assert_index_equal(table.index, frame.index)
    first = (frame["week"] == 0).to_numpy()
    assert table["residual"].isna().to_numpy().tolist() == first.tolist()
    np.testing.assert_array_equal(table["observed"][~first], frame["cases"][~first])
    before = frame.set_index("week")["cases"].reindex(frame["week"] - 1).to_numpy()
    grows = pd.Series(fit.predict()["mean"].to_numpy()[~first]).corr(pd.Series(before[~first]))
    assert abs(grows) > 0.99


@pytest.mark.filterwarnings("ignore::dfdbayes.errors.PriorWarning")
def test_a_level_with_one_answer_only_is_told_by_its_terms():
    """Separation: of these two terms the data know the sum."""
    frame = pd.DataFrame({"x": [0, 0, 1] * 200, "sex": ["f", "m", "m"] * 200})
    known = r"only a combination of probability\[Intercept\], probability\[sex=m\].*all rows of a level"
    with pytest.warns(dfd.errors.IdentificationWarning, match=known):
        dfd.fit("bernoulli", frame, formula="x ~ sex", check=False, **QUICK)


# -- Replicates --------------------------------------------------------------------------------


def test_replicates_have_the_rows_covariates(poisson):
    theta = np.repeat(poisson.joint_draws.mean(axis=0)[None], 300, axis=0)
    rows = by_listing(poisson.model, theta, poisson.data.given, np.random.default_rng(0))
    mean = tails(poisson.model, theta[0], poisson.data.given, poisson.data.rows[:, 0]).mean
    error = (rows[..., 0].mean(axis=0) - mean) / np.sqrt(mean / 300)
    assert np.abs(error).max() < 4.5 and np.abs(error.std() - 1.0) < 0.15  # of 400: false alarms below 1 in 300
    variance = rows[..., 0].var(axis=0, ddof=1) / mean
    assert np.abs(variance.mean() - 1.0) < 0.03
    assert poisson.checks.problem == "" and poisson.checks.method == "inversion"
    assert 0.02 < poisson.checks.table["mean_tail"].iloc[0] < 0.98
    with pytest.raises(SettingError, match="leave out method"):
        poisson.replicate(method="gibbs")


@pytest.mark.slow
def test_networks_with_covariates_are_listed_or_sampled(network, monkeypatch):
    theta = np.tile([0.5, -0.5, 0.0, -1.0, 1.0, 0.0, 1.0, 0.0, -1.0], (40, 1))
    assert network.model.space.size == 9
    given = np.stack([np.ones(100), np.arange(100) % 2], axis=1).astype(float)
    found = network.model.draw(theta, 100, np.random.default_rng(1), context=given)
    exact, method = found.rows, found.method
    assert method == "enumeration" and network.checks.problem == "" and network.checks.p_value > 0.001
    monkeypatch.setattr(simulators, "is_listable", lambda model: False)
    monkeypatch.setattr(
        "dfdbayes.core.model.by_log_mass", None
    )  # which is slow: rows share what their covariates share
    found = network.model.draw(theta, 100, np.random.default_rng(2), context=given)
    chains, method, mixing = found.rows, found.method, found.mixing
    assert method == "gibbs" and mixing.good
    for group in (0, 1):
        means, others = (rows[:, group::2].reshape(-1, 3) for rows in (exact, chains))
        np.testing.assert_allclose(means.mean(axis=0), others.mean(axis=0), atol=0.07)  # 4.5 standard errors
        np.testing.assert_allclose(np.cov(means.T), np.cov(others.T), atol=0.05)
    assert np.abs(exact[:, ::2].mean(axis=(0, 1)) - exact[:, 1::2].mean(axis=(0, 1))).max() > 0.1


# -- Effects -----------------------------------------------------------------------------------


def test_effects_are_averages_over_the_rows(poisson, people):
    table = poisson.effects(interval=0.9)
    names = ("Intercept", "age", "clinic=B", "clinic=C")
    order = [poisson.minimum.names.index(f"mean[{name}]") for name in names]
    draws = poisson.joint_draws[:, order]
    age, days = people["age"].to_numpy(), people["days"].to_numpy()
    for term, change in (("clinic=B", draws[:, 2]), ("clinic=C", draws[:, 3])):
        base = np.exp(draws[:, :1] + draws[:, 1:2] * age) * days
        effect = (base * np.exp(change)[:, None] - base).mean(axis=1)
        assert table["change"][term] == f"A to {term[-1]}"
        assert table["effect"][term] == pytest.approx(effect.mean(), rel=1e-9)
        assert table["effect_low"][term] == pytest.approx(np.quantile(effect, 0.05), rel=1e-9)
    shift = np.stack([np.zeros(400), people["clinic"] == "B", people["clinic"] == "C"], axis=1).astype(float)[:, 1:]
    mean = np.exp(draws[:, :1] + draws[:, 1:2] * age + draws[:, 2:] @ shift.T) * days
    slope = (mean * draws[:, 1:2]).mean(axis=1)
    assert table["change"]["age"] == "per unit" and table["effect"]["age"] == pytest.approx(slope.mean(), rel=1e-9)
    assert table["ratio"]["age"] == pytest.approx(np.median(np.exp(draws[:, 1])), rel=1e-6)
    assert table["ratio_high"]["age"] == pytest.approx(np.quantile(np.exp(draws[:, 1]), 0.95), rel=1e-9)


def test_one_ratio_for_one_thing_and_what_levels_are_against(poisson):
    """The sentence, the effects, the printed table and the picture; all name the reference level."""
    ratio = poisson.effects()["ratio"]["clinic=B"]
    told = ratios(poisson).set_index("term").loc["clinic=B against A"]
    assert told["ratio"] == pytest.approx(ratio, rel=1e-6)
    assert re.search(rf"clinic = B rather than A.* {ratio:.2f}", poisson.answer)
    assert "clinic=B against A" in str(poisson) and "rate ratio (IRR)" in str(poisson)
    assert "rate ratio (IRR)" in poisson._repr_html_() and "levels are against clinic=A" in poisson.meanings["mean"]
    axes = poisson.plot().axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert axes.get_xscale() == "log" and "clinic=B against A" in labels and not any("Intercept" in x for x in labels)


def test_the_effect_of_a_hurdles_mean_is_a_derivative(hurdle):
    table, theta = hurdle.effects(), hurdle.joint_draws

    def average(step):
        means = [
            [np.exp(log_masses(hurdle, one, [1.0, row[1] + step])) @ VALUES for row in hurdle.data.given]
            for one in theta[:2]
        ]
        return np.array(means) @ hurdle.data.counts / hurdle.data.n

    from dfdbayes.results.regression import _in_blocks, _points, _slopes

    along = np.array([0.0, 1.0, 0.0, 0.0])
    found = _in_blocks(_slopes, hurdle.model, theta[:2], hurdle.data.given, _points(hurdle.model, theta), along)
    wanted = (average(1e-4) - average(-1e-4)) / 2e-4
    np.testing.assert_allclose(found @ hurdle.data.counts / hurdle.data.n, wanted, rtol=1e-5)
    assert np.isfinite(table.loc["age", "effect"])


@pytest.mark.parametrize("form", ["mean", "location"])
@pytest.mark.daily("mean")
def test_effects_are_of_the_expected_count_with_the_part_for_zeros(people, form):
    """What predictions at changed covariates say, for whatever formulas the covariates are in."""
    rng = np.random.default_rng(5)
    frame = people.head(200).assign(treated=np.tile([0, 1], 100))
    gone = rng.random(200) < 0.2 + 0.4 * frame["treated"]
    frame["visits"] = np.where(gone, 0, 1 + rng.poisson(np.exp(0.9 - 0.4 * frame["treated"] + 0.3 * frame["age"])))
    settings = {"formula": "visits ~ treated + age + clinic", "zeros": "~ age + treated + clinic"}
    model, more = ("poisson", {}) if form == "mean" else ("cmp", {"options": {"form": form}, "nu": "~ treated"})
    fit = dfd.fit(model, frame, check=False, **settings, **more, **QUICK)
    table = fit.effects()

    def mean(**changed):
        return fit.predict(frame.assign(**changed))["mean"].mean()

    assert table["change"].to_dict() == {
        "treated": "0 to 1",
        "age": "per unit",
        "clinic=B": "A to B",
        "clinic=C": "A to C",
    }
    assert table["effect"]["treated"] == pytest.approx(mean(treated=1) - mean(treated=0), rel=1e-6)
    assert table["effect"]["clinic=B"] == pytest.approx(mean(clinic="B") - mean(clinic="A"), rel=1e-6)
    slope = (mean(age=frame["age"] + 1e-4) - mean(age=frame["age"] - 1e-4)) / 2e-4
    assert table["effect"]["age"] == pytest.approx(slope, rel=1e-5)
    assert table.loc["treated", "effect_low"] < table.loc["treated", "effect"] < table.loc["treated", "effect_high"]


@pytest.mark.filterwarnings("ignore::dfdbayes.errors.InfluenceWarning")
@pytest.mark.slow
def test_a_variable_in_another_form_in_the_part_for_zeros_has_no_effect_by_term(people):
    frame = people.head(150)
    fit = dfd.fit("poisson", frame, formula="visits ~ age + days", zeros="~ age + I(age**2)", check=False, **QUICK)
    table = fit.effects()
    assert np.isnan(table["effect"]["age"]) and table["change"]["age"] == "in several terms"
    assert np.isfinite(table["effect"]["days"]) and np.isfinite(table["ratio"]["age"])
    plain = dfd.fit("cmp", frame, formula="visits ~ age", nu="~ age + I(age**2)", check=False, **QUICK)
    assert np.isfinite(plain.effects()["effect"]["age"])  # nu has no part in the mean


def test_variables_in_several_terms_have_no_effect_by_term(people):
    fit = dfd.fit("poisson", people, formula="visits ~ age * clinic + days", **QUICK)
    table = fit.effects()
    assert table["effect"].notna().sum() == 1 and np.isfinite(table["effect"]["days"])
    assert (table["change"].drop("days") == "in several terms").all() and table["ratio"].notna().all()
    fit = dfd.fit("bernoulli", people.assign(any=(people["visits"] > 2).astype(int)), formula="any ~ age", **QUICK)
    draws, age = fit.joint_draws, people["age"].to_numpy()
    p = special.expit(draws[:, :1] + draws[:, 1:] * age)
    assert fit.effects()["effect"]["age"] == pytest.approx((p * (1 - p) * draws[:, 1:]).mean(), rel=1e-9)
    assert fit.effects()["odds_ratio"]["age"] == pytest.approx(np.median(np.exp(draws[:, 1])), rel=1e-6)


@pytest.mark.slow
def test_own_models_of_one_column_have_all_of_it():
    import numpyro.distributions as dist

    rng = np.random.default_rng(0)
    age = rng.normal(0, 1, 200).round(1)
    frame = pd.DataFrame({"x": rng.geometric(1 / (1 + np.exp(0.5 + 0.3 * age))) - 1, "age": age})
    model = dfd.Model(
        lambda theta, x: x[0] * jnp.log(theta["share"]), dfd.Counts(1), {"share": dist.Uniform(0, 1)},
        formulas={"share": "~ age"}, log_normaliser=lambda theta: -jnp.log1p(-theta["share"]),
    )  # fmt: skip
    fit = dfd.fit(model, frame, columns=["x"], check=True, **QUICK)
    draws = evenly(fit.joint_draws, 200)
    odds = np.exp(draws[:, 0] + 0.5 * draws[:, 1])  # the mean of a geometric distribution
    assert fit.predict({"age": [0.5]})["mean"][0] == pytest.approx(odds.mean(), rel=1e-7)
    every = np.exp(fit.joint_draws[:, :1] + fit.joint_draws[:, 1:] * age) * fit.joint_draws[:, 1:]
    assert fit.effects()["effect"]["age"] == pytest.approx(every.mean(), rel=1e-5)
    assert fit.checks.problem == "" and fit.checks.p_value > 0.001 and fit.checks.method == "inversion"


# -- Nested fits and second opinions -----------------------------------------------------------


def test_nested_fits(poisson, people):
    smaller = dfd.fit("poisson", people, formula="visits ~ age + offset(log(days))", **QUICK)
    found = dfd.compare_nested(smaller, poisson)
    assert set(found.terms) == {"mean[clinic=B]", "mean[clinic=C]"} and found.degrees == 2
    draws = np.stack([poisson.entries[name].reshape(-1) for name in found.terms])
    wald = draws.mean(axis=1) @ np.linalg.inv(np.cov(draws)) @ draws.mean(axis=1)
    assert found.statistic == pytest.approx(wald, rel=1e-9)
    assert found.p_value == pytest.approx(stats.chi2.sf(wald, 2), rel=1e-9) and "2 df" in str(found)
    fitted = [tails(f.model, f.minimum.vector, f.data.given, f.data.rows[:, 0]).here for f in (smaller, poisson)]
    logs = [np.log(p) @ f.data.counts for p, f in zip(fitted, (smaller, poisson), strict=True)]
    np.testing.assert_allclose(found.table["log_likelihood"], logs, rtol=1e-9)
    np.testing.assert_allclose(found.table["aic"], -2 * np.array(logs) + [4, 8], rtol=1e-9)
    np.testing.assert_allclose(found.table["bic"], -2 * np.array(logs) + np.log(400) * np.array([2, 4]), rtol=1e-9)
    assert found.log_likelihood_difference == pytest.approx(logs[1] - logs[0], rel=1e-9)
    others = {
        "lacks mean\\[clinic=B\\]": (poisson, smaller),
        "same coefficients": (poisson, poisson),
        "only one of them has an offset": (dfd.fit("poisson", people, formula="visits ~ age", **QUICK), poisson),
        "not the same": (dfd.fit("poisson", people.assign(age=people["age"] + 1.0),
                                 formula="visits ~ age + offset(log(days))", **QUICK), poisson),
        "n = 300": (dfd.fit("poisson", people.head(300), formula="visits ~ age + offset(log(days))", **QUICK), poisson),
        "without a formula": (dfd.fit("poisson", people["visits"], **QUICK), poisson),
    }  # fmt: skip
    for said, fits in others.items():
        with pytest.raises(SettingError, match=said):
            dfd.compare_nested(*fits)


def test_a_second_opinion(poisson, people):
    found = poisson.second_opinion("ratio")
    assert (found["standardised"].abs() < 3.5).all()  # of four: a false alarm in 500
    ratio = dfd.Objective(poisson.model, poisson.data, dfd.losses.by_name("ratio"))
    minimum = dfd.minimise(ratio)
    np.testing.assert_allclose(found["ratio"], minimum.vector, atol=1e-8)
    likelihood = dfd.Objective(poisson.model, poisson.data, poisson.loss)
    moved = np.zeros((len(poisson.data.rows), 4))
    for objective, at, sign in ((likelihood, poisson.minimum.vector, 1.0), (ratio, minimum.vector, -1.0)):
        inverse = np.linalg.inv(objective.hessian(at))
        gradients = [objective.gradient(at, one) for one in np.eye(len(moved))]
        moved += sign * np.stack(gradients) @ inverse
    error = np.sqrt(poisson.data.counts @ (moved - poisson.data.counts @ moved / 400) ** 2)
    np.testing.assert_allclose(found["standard_error"], error, rtol=1e-6)
    assert (poisson.second_opinion("pseudo")["standardised"] == 0.0).all()  # of one column the same loss
    wild = dfd.fit("poisson", people, formula="wild ~ age + offset(log(days))", **QUICK)
    with pytest.warns(DisagreementWarning, match="What to do"):
        wild.second_opinion()
    with pytest.raises(SettingError, match="own loss"):
        poisson.second_opinion("likelihood")


# -- Pictures ----------------------------------------------------------------------------------


def test_pictures_and_the_report(poisson, network):
    figure = plots.coefficients(poisson)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == list(poisson.minimum.names)
    assert {text.get_text() for text in figure.legends[0].get_texts()} >= {"uncalibrated (beta = 1)"}
    assert [axes.get_xlabel() for axes in plots.residuals(poisson).axes] == ["normal quantile", "fitted value"]
    text = render(poisson)
    assert "<h2>Coefficients and residuals</h2>" in text and "Randomised quantile residuals" in text
    assert "moments corrected for the estimation" in text
    assert not any("Randomised quantile residuals" in picture.caption for picture in sections.regression(network))
    with pytest.raises(SettingError, match="without a formula"):
        plots.coefficients(dfd.fit("poisson", [1, 2, 3, 4] * 9, **QUICK))
