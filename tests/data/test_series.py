"""Series: lags and seasons by formula, windows of neighbouring rows, forecasts."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes._util.codec import from_plain, to_plain
from dfdbayes.core.objective import _second_order
from dfdbayes.core.simulators.paths import Step, _each
from dfdbayes.core.windows import automatic_length, long_run, of_windows, starts_of
from dfdbayes.data.grammar import season
from dfdbayes.data.series import Calendar, canonical, lags_of, ordered
from dfdbayes.results.forecasts import _require_bounded

FORMULA = "cases ~ log1p(lag(cases)) + x"
QUICK = {"sampler": "laplace", "check": False, "progress": False}


def counts(n, seed, units=1):
    """A log-linear Poisson autoregression with a covariate."""
    rng = np.random.default_rng(seed)
    parts = []
    for unit in range(units):
        x, y = rng.standard_normal(n), np.zeros(n)
        for t in range(1, n):
            y[t] = rng.poisson(np.exp(0.5 + 0.4 * np.log1p(y[t - 1]) + 0.3 * x[t]))
        parts.append(pd.DataFrame({"unit": f"u{unit}", "week": np.arange(n), "cases": y.astype(int), "x": x}))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def frame():
    return counts(128, 5)


@pytest.fixture(scope="module")
def fit(frame):
    past = frame[:120].sample(frac=1.0, random_state=1)  # in no order
    return dfd.fit("poisson", past, formula=FORMULA, time="week", **QUICK)


# -- Order, lags and seasons -------------------------------------------------------------------


def test_lags_are_written_one_way_and_are_of_columns():
    assert canonical("lag(y,k=2)+ log1p( lag( `y` ) )") == "lag(y, 2)+ log1p( lag(y) )"
    assert [lag.name for lag in lags_of(["lag(y) + lag(x, 3)", "lag(y)"])] == ["lag(y)", "lag(x, 3)"]
    for wrong, said in (("lag(log(y))", "log1p"), ("lag(y, 0)", "at least 1"), ("lag(y", "not closed")):
        with pytest.raises(dfd.errors.SettingError, match=said):
            canonical(wrong)


def test_no_lag_crosses_a_gap_or_another_unit():
    """Every lag, beside the row that was looked up by hand."""
    panel = counts(30, 1, units=3)
    panel = panel.drop(index=[7, 40, 41]).sample(frac=1.0, random_state=2)
    found = ordered(panel, lags_of(["lag(cases) + lag(cases, 3)"]), "week", "unit", "refuse")
    known = panel.set_index(["unit", "week"])["cases"]
    for row in found.rows.itertuples(index=False):
        for steps, value in ((1, row[-3]), (3, row[-2])):
            assert value == known[(row.unit, row.week - steps)]
    wanted = [key for key in known.index if all((key[0], key[1] - k) in known.index for k in (1, 3))]
    assert len(found.rows) == len(wanted)
    assert "2 gaps" in found.notes[0] and "unit u0, week 6 and unit u0, week 8" in found.notes[0]
    assert f"{len(panel) - len(wanted)} without all their earlier values" in found.series.told


def test_repeated_times_and_missing_values_are_named():
    twice = pd.DataFrame({"day": [1, 2, 2, 3], "y": [1, 2, 3, 4]})
    with pytest.raises(dfd.errors.DataError, match=r"two rows have day 2.*cluster="):
        ordered(twice, lags_of(["lag(y)"]), "day", None, "refuse")
    holes = pd.DataFrame({"day": [1, 2, 3, 4], "y": [1, np.nan, 3, 4]})
    with pytest.raises(dfd.errors.DataError, match=r"'y' is missing at day 2, and later rows need it as lag\(y\)"):
        ordered(holes, lags_of(["lag(y)"]), "day", None, "refuse")
    found = ordered(holes, lags_of(["lag(y)"]), "day", None, "drop")
    assert found.series.used(found.whole)["day"].tolist() == [4]
    with pytest.raises(dfd.errors.DataError, match="did you mean 'day'"):
        ordered(holes, (), "days", None, "refuse")


@pytest.mark.parametrize(
    ("times", "places", "after"),
    [
        ([1969.0, 1969.083, 1969.167, 1969.5], [0, 1, 2, 6], 1969.583),
        ([3, 1, 2, 9], [2, 0, 1, 8], 10),
        (["2024-01-31", "2024-02-29", "2024-05-31"], [0, 1, 4], "2024-06-01"),
        (["2024-02-26", "2024-03-04", "2024-03-18"], [0, 1, 3], "2024-03-25"),
    ],
)
def test_times_are_whole_steps(times, places, after):
    column = pd.Series(times, name="time")
    calendar = Calendar.of(column)
    assert calendar.places(column).tolist() == places
    following = calendar.at(np.array([max(places) + 1]))[0]
    assert following == pytest.approx(after, abs=2e-3) if not isinstance(after, str) else str(following.date()) == after


def utc(first, n, step):
    return pd.date_range(first, periods=n, freq=step, tz="UTC")


@pytest.mark.parametrize(
    ("times", "after"),
    [
        (pd.date_range("2024-10-20", periods=14, tz="Europe/Berlin"), "2024-11-03"),
        (pd.date_range("2024-10-26 12:00", periods=30, freq="h", tz="Europe/Berlin"), "2024-10-27 17:00:00+01:00"),
        (pd.date_range("2024-01-01", periods=9, freq="MS", tz="America/New_York"), "2024-10-01"),
        ([f"2024-10-{day}T00:00:00+0{2 if day < 28 else 1}:00" for day in range(20, 31)], "2024-10-31"),
        ([f"{time:%Y-%m-%dT%H:%MZ}" for time in utc("2024-01-01", 9, "h")], "2024-01-01 09:00:00+00:00"),
        (np.arange("2300-01", "2301-06", dtype="datetime64[M]").astype("datetime64[s]"), "2301-06-01"),
        (np.arange("2300-01-01", "2300-02-01", dtype="datetime64[D]").astype("datetime64[s]"), "2300-02-01"),
        ([f"{year}-01-01" for year in range(2255, 2270)], "2270-01-01"),
        (2**60 + np.arange(20), 2**60 + 20),
        (np.append(7 * np.arange(20), 7 * 2**58), 7 * (2**58 + 1)),
        (-(2**62) + 3 * np.arange(20), 60 - 2**62),
        (pd.array([2**60, 2**60 + 1, 2**60 + 2], dtype="Int64"), 2**60 + 3),
    ],
    ids=["days", "hours", "months", "offsets", "Z", "far months", "far days", "years", "2**60", "span", "low", "Int64"],
)
def test_times_of_any_clock_and_century_are_exact(times, after):
    """Of a day or more the clock on the wall counts; shorter steps do not see it put back."""
    column = pd.Series(times, name="time")
    calendar = from_plain(json.loads(json.dumps(to_plain(Calendar.of(column)))), Calendar)
    places = calendar.places(column)
    assert places[:-1].tolist() == list(range(len(places) - 1)) and places[-1] > places[-2]
    following = calendar.at(places[-1:] + 1)[0]
    assert str(following).removesuffix(" 00:00:00") == str(after)
    assert calendar.places(column.astype(str)).tolist() == places.tolist() or calendar.kind == "numbers"
    series = ordered(pd.DataFrame({"time": times, "y": range(len(times))}), lags_of(["lag(y)"]), "time", None, "refuse")
    assert len(series.rows) == len(times) - 1 - (places[-1] > len(places))


def test_a_series_with_a_time_zone_is_fitted_forecast_and_loaded(frame, tmp_path):
    times = pd.date_range("2024-01-01", periods=len(frame), freq="MS", tz="Europe/Berlin")
    found = dfd.fit("poisson", frame.assign(week=times), formula="cases ~ log1p(lag(cases))", time="week", **QUICK)
    first = found.forecast(2).table
    assert str(first.index[0].date()) == "2034-09-01"
    again = dfd.load(found.save(tmp_path / "fit.nc")).forecast(2).table
    assert (again.index == first.index).all()


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (np.uint64(2**63) + np.arange(9, dtype=np.uint64), "'time' holds 9223372036854775808.*2\\*\\*62"),
        ([2**70 + i for i in range(9)], "'time' holds 1180591620717411303424.*2\\*\\*62"),
        (pd.Timestamp("2024-01-01") + pd.to_timedelta(100 * np.arange(9), unit="ns"), "closer together than.*'time'"),
        ([0.0, 1e-300, 1.0], r"'time' span 1e\+300 .*too many"),
    ],
    ids=["uint64", "int", "nanoseconds", "floats"],
)
def test_times_that_cannot_be_exact_are_refused(times, said):
    with pytest.raises(dfd.errors.DataError, match=said):
        Calendar.of(pd.Series(times, name="time"))


def test_earlier_rows_of_large_times_are_found():
    frame = pd.DataFrame({"t": 2**60 + np.array([0, 1, 2, 4, 5]), "y": range(5)})
    assert dfd.lagged(frame, ["y"], time="t")["y_lag1"].tolist() == [0, 1, 3]
    with pytest.raises(dfd.errors.DataError, match=r"'t' holds dates.*lag\(y\)"):
        dfd.lagged(frame.assign(t=utc("2024-01-01", 5, "D")), ["y"], time="t")


def test_times_that_are_no_steps_are_refused():
    with pytest.raises(dfd.errors.DataError, match="not a whole number of steps"):
        Calendar.of(pd.Series([0.0, 1.0, 2.5, 3.4], name="time"))
    with pytest.raises(dfd.errors.DataError, match="neither a number nor a date"):
        Calendar.of(pd.Series(["spring", "autumn"], name="time"))


def test_seasons_are_waves():
    found = season(np.arange(8), 4, 2)
    assert list(found) == ["sin", "cos", "cos2"]  # the second sine is zero at whole steps
    np.testing.assert_allclose(found["cos2"], np.tile([1.0, -1.0], 4), atol=1e-12)


# -- Windows ------------------------------------------------------------------------------------


def test_long_run_variance_is_that_of_all_windows():
    """The slow way: sums over every window of four places, also those that reach beyond an end or into a gap."""
    rng = np.random.default_rng(3)
    place = np.sort(rng.choice(60, 40, replace=False))
    lines = rng.standard_normal((40, 2)).cumsum(axis=0)
    centred = lines - lines.mean(axis=0)
    slow = np.zeros((2, 2))
    for start in range(-3, 60):
        inside = centred[(place >= start) & (place < start + 4)].sum(axis=0)
        slow += np.outer(inside, inside) / 4.0
    np.testing.assert_allclose(long_run(lines, place, 4.0), slow, rtol=1e-12)


def test_resampled_windows_vary_as_their_long_run_variance_says():
    """Variance of 20,000 resampled sums within 5 %: five standard errors (each 1 %)."""
    rng = np.random.default_rng(4)
    place = rng.permutation(np.r_[np.arange(40), np.arange(50, 90)])
    order = np.argsort(place)
    lines = np.empty(80)
    lines[order] = np.convolve(rng.standard_normal(84), np.ones(5), "valid")
    lines -= lines.mean()
    each = np.full(starts_of(place, 6), 1.0 / 6.0)
    drawn = rng.multinomial(round(each.sum()), each / each.sum(), 20_000).astype(float)
    weights = of_windows(drawn, place, 6)
    assert weights.mean() == pytest.approx(1.0, rel=0.01)
    wanted = long_run(lines[order, None], place[order], 6.0)[0, 0]
    assert np.var(weights @ lines) == pytest.approx(wanted, rel=0.05)


def test_correlated_gradients_ask_for_longer_windows():
    rng, place = np.random.default_rng(5), np.arange(1000)
    apart = rng.standard_normal((1000, 2))
    together = np.array([np.convolve(part, np.ones(30), "same") for part in apart.T]).T
    assert automatic_length(apart, place) == pytest.approx(15.0)  # 1.5 times the cube root
    assert 40.0 < automatic_length(together, place) <= 100.0


def test_windows_widen_what_neighbours_share_and_leave_what_they_do_not(frame):
    """Counts that share a hidden series, fitted without lags: the intercept varies more than rows say."""
    rng = np.random.default_rng(6)
    hidden = np.convolve(rng.standard_normal(124), np.ones(6) / np.sqrt(6), "valid")
    shared = frame[:119].assign(y=rng.poisson(np.exp(1.0 + 0.5 * hidden)), z=rng.standard_normal(119))
    sds = [
        dfd.fit("poisson", shared, formula="y ~ x + z", time="week", **QUICK, **how).summary()["sd"]
        for how in (
            {"resampling": "windows"},
            {"resampling": dfd.resampling.Rows()},
            {"resampling": dfd.resampling.Windows(length=1)},
        )
    ]
    assert sds[0].iloc[0] > 1.3 * sds[1].iloc[0]
    drawn = dfd.fit(
        "poisson", shared, formula="y ~ x + z", time="week", calibration="gpc", bootstrap=100, on_failure="fallback",
        **QUICK,
    )  # fmt: skip
    assert drawn.calibration.minimisers[:, 0].std() > 1.2 * sds[1].iloc[0]
    np.testing.assert_allclose(sds[2], sds[1], rtol=0.05)


def test_what_a_series_cannot_have_is_refused(frame):
    for settings, said in (
        ({"resampling": "parametric"}, "lags of a series"),
        ({"weights": "x"}, "offset"),
        ({"resampling": dfd.resampling.Windows(length=100)}, "far shorter"),
    ):
        with pytest.raises(dfd.errors.SettingError, match=said):
            dfd.fit("poisson", frame, formula=FORMULA, time="week", **QUICK, **settings)
    with pytest.raises(dfd.errors.SettingError, match="no order in time"):
        dfd.fit("poisson", frame, formula="cases ~ x", resampling="windows", **QUICK)
    with pytest.raises(dfd.errors.SettingError, match="time= is for formulas"):
        dfd.fit("poisson", frame["cases"], time="week", **QUICK)


# -- Fits and forecasts ------------------------------------------------------------------------


def test_a_fit_of_rows_in_no_order_is_that_of_lags_by_hand(frame, fit):
    by_hand = dfd.lagged(frame[:120], ["cases"], time="week").assign(past=lambda f: np.log1p(f["cases_lag1"]))
    other = dfd.fit("poisson", by_hand, formula="cases ~ past + x", **QUICK)
    np.testing.assert_allclose(fit.minimum.vector, other.minimum.vector, atol=1e-6)
    assert fit.minimum.names[1] == "mean[log1p(lag(cases))]"
    assert fit.settings["series"].endswith("0 to 119; 1 without all their earlier values (lags) left out")


def test_the_first_step_is_the_prediction_at_the_last_values(frame, fit):
    ahead = frame[120:]
    found = fit.forecast(8, ahead)
    at = {"lag(cases)": [frame["cases"][119]], "x": [frame["x"][120]]}
    wanted = fit.predict(at).iloc[0]
    first = found.table.iloc[0]
    assert first["mean"] == pytest.approx(wanted["mean"], rel=1e-9)
    assert (first["low"], first["high"]) == (wanted["new_low"], wanted["new_high"])
    assert found.table.index.tolist() == list(range(120, 128))
    assert found.paths.shape == (1, 1000, 8) and found.quantiles([0.025])[0.025].tolist() == found.table["low"].tolist()


def test_later_steps_are_those_of_brute_force(frame, fit):
    """Means of 200,000 futures within four of the forecast's standard errors (a false alarm in 2000, of 8 steps)."""
    found, rng = fit.forecast(8, frame[120:]), np.random.default_rng(8)
    draws = fit.joint_draws[np.linspace(0, len(fit.joint_draws) - 1, 1000).astype(int)]
    theta, y = np.repeat(draws, 200, axis=0), np.full(200_000, float(frame["cases"][119]))
    for h in range(8):
        mean = np.exp(theta[:, 0] + theta[:, 1] * np.log1p(y) + theta[:, 2] * frame["x"][120 + h])
        y = rng.poisson(mean).astype(float)
        error = mean.std() / np.sqrt(1000) + 1e-9
        line = found.table.iloc[h]
        assert abs(line["mean"] - mean.mean()) < 4 * error
        low, high = np.quantile(y, [0.025, 0.975])
        assert abs(line["low"] - low) <= 1 and abs(line["high"] - high) <= 1


def test_a_saved_fit_forecasts_the_same(frame, fit, tmp_path):
    loaded = dfd.load(fit.save(tmp_path / "fit.nc"))
    pd.testing.assert_frame_equal(loaded.forecast(4, frame[120:]).table, fit.forecast(4, frame[120:]).table)
    page = loaded.report(tmp_path / "page.html", loaded.forecast(4, frame[120:])).read_text()
    assert 'id="forecast"' in page and "95% from" in page


def test_what_a_forecast_lacks_is_named(frame, fit):
    for arguments, said in (
        ((3,), "needs 'x' of the 3 steps"),
        ((9, frame[120:]), "8 rows for 9 steps"),
        ((2, frame[121:]), "week 121 where 120 comes next"),
        ((2, frame[120:].assign(x=np.nan)), "'x' is missing in row 1"),
    ):
        with pytest.raises(dfd.errors.DataError, match=said):
            fit.forecast(*arguments)
    with pytest.raises(dfd.errors.SettingError, match="at least 1"):
        fit.forecast(0)


@pytest.mark.parametrize("steps", [2001, 10**30])
def test_a_forecast_farther_than_it_can_be_simulated_is_refused_at_once(fit, steps):
    with pytest.raises(dfd.errors.SettingError, match=f"steps is {steps}, .* at most 2000 steps.*fewer steps"):
        fit.forecast(steps)


def test_panels_have_a_forecast_for_each_unit():
    """Three units by windows, twelve by clusters; the first step of each is the prediction at its own last value."""
    for units in (3, 12):
        panel = counts(40, 9, units)
        past = panel[panel["week"] < 38]
        fit = dfd.fit("poisson", past, formula=FORMULA, time="week", cluster="unit", **QUICK)
        assert fit.settings["units"] == ("windows of neighbouring rows" if units == 3 else "12 clusters")
        table = fit.forecast(2, panel[panel["week"] >= 38]).table
        last = panel[panel["week"] == 37]["cases"].to_numpy()
        now = panel[panel["week"] == 38]["x"].to_numpy()
        wanted = fit.predict({"lag(cases)": last, "x": now})["mean"]
        found = table.xs(38, level="week")["mean"].sort_index(key=lambda index: index.str[1:].astype(int))
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_binary_series():
    """A logistic autoregression against brute force at the posterior's draws; chances within 0.02 (six errors)."""
    rng, y = np.random.default_rng(10), np.zeros(150, int)
    for t in range(1, 150):
        y[t] = rng.random() < 1 / (1 + np.exp(0.8 - 1.6 * y[t - 1]))
    fit = dfd.fit("bernoulli", {"rain": y}, formula="rain ~ lag(rain)", **QUICK)
    found = fit.forecast(3)
    chance, wet = np.empty(3), np.full(len(fit.joint_draws), float(y[-1]))
    for h in range(3):
        wet = 1 / (1 + np.exp(-fit.joint_draws[:, 0])) * (1 - wet) + wet / (1 + np.exp(-fit.joint_draws.sum(axis=1)))
        chance[h] = wet.mean()
    np.testing.assert_allclose(found.table["mean"], chance, atol=0.02)
    assert found.table.index.tolist() == [150, 151, 152]


@pytest.mark.slow
def test_conway_maxwell_poisson_series(frame):
    fit = dfd.fit("cmp", frame[:120], formula=FORMULA, time="week", **QUICK)
    wanted = fit.predict({"lag(cases)": [frame["cases"][119]], "x": [frame["x"][120]]}).iloc[0]
    found = fit.forecast(2, frame[120:]).table.iloc[0]
    assert found["mean"] == pytest.approx(wanted["mean"], rel=1e-9)
    assert abs(found["high"] - wanted["new_high"]) <= 1


def test_explosive_series_are_named(frame):
    """Growth without end: with raw lags in the exponent, simulated futures are beyond all bounds soon."""
    growing = frame.assign(cases=np.round(np.exp(0.035 * np.arange(128))).astype(int))
    fit = dfd.fit("poisson", growing[:120], formula="cases ~ lag(cases) + x", time="week", **QUICK)
    with pytest.raises(dfd.errors.ModelError, match=r"run away.*explosive.*log1p\(lag\(cases\)\)"):
        fit.forecast(8, growing[120:])


def test_a_few_futures_that_run_away_leave_intervals_but_no_mean():
    task = SimpleNamespace(times=[7, 8], response="y")
    steps = [Step(np.ones(100, int), np.r_[np.full(gone, np.nan), np.ones(100 - gone)], np.ones(1)) for gone in (0, 2)]
    with pytest.warns(dfd.errors.MisfitWarning, match=r"2.0% of the simulated futures run away \(from 8 on.*no mean"):
        _require_bounded(steps, (0.025, 0.975), 5.0, task)
    with pytest.raises(dfd.errors.ModelError, match="explosive"):
        _require_bounded(steps, (0.01, 0.99), 5.0, task)


def test_the_fan(fit, frame):
    found = fit.forecast(8, frame[120:])
    axes = dfd.plots.forecast(found).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["cases", "95%", "80%", "50%", "median"]
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), found.table["median"])


def test_a_second_series_of_the_same_length_compiles_nothing(frame, fit):
    fit.forecast(2, frame[120:])
    sizes = []
    for seed in (21, 22):
        other = counts(128, seed)
        dfd.fit("poisson", other[:120], formula=FORMULA, time="week", **QUICK).forecast(2, other[120:])
        sizes.append((_second_order._cache_size(), _each._cache_size()))
    assert sizes[0] == sizes[1]
