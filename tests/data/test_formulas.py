"""What formulas say: names whatever columns are called, arithmetic in offsets, levels of any kind, weights of rows."""

import datetime
import decimal
import re
import unicodedata

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes.data.formulas import Design, as_factor, parse, split_offsets, variables
from dfdbayes.data.grammar import tokens_of, written
from dfdbayes.data.series import canonical, lags_of
from dfdbayes.errors import DataError, SettingError
from dfdbayes.families.map.observed import ObservedMap

QUICK = {"progress": False, "check": False, "sampler": "laplace", "draws": 200, "seed": 1}
N = 60


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(7)
    columns = {name: random.uniform(1, 2, N) for name in ("x", "z", "d", "e")}
    groups = {"g": random.choice(list("abc"), N), "k": pd.Categorical(random.choice([1, 2], N))}
    return pd.DataFrame(columns | groups).assign(y=random.poisson(3.0, N))


def made(right, frame):
    return Design.of("mean", right, frame)


# -- Parts of a formula ------------------------------------------------------------------------


def test_tokens_of_a_formula():
    found = [(part.kind, part.value) for part in tokens_of("log(body.mass) + `a ~ b`*1.5e3 - 'x + y' + .5")]
    assert found == [
        ("name", "log"), ("sign", "("), ("name", "body.mass"), ("sign", ")"), ("sign", "+"), ("quoted", "a ~ b"),
        ("sign", "*"), ("number", "1.5e3"), ("sign", "-"), ("text", "'x + y'"), ("sign", "+"), ("number", ".5"),
    ]  # fmt: skip
    assert [written(name) for name in ("x", "body.mass", "a b", "class", "1", "np.log")] == [
        "x", "body.mass", "`a b`", "`class`", "`1`", "`np.log`",
    ]  # fmt: skip


def test_what_stands_between_backticks_is_a_name():
    assert parse("`a+b` ~ x") == (("a+b",), "x")
    assert parse("`a~b` + c ~ `d~e`") == (("a~b", "c"), "`d~e`")
    assert parse("y ~ C(g, contr.treatment('a~b'))") == (("y",), "C(g, contr.treatment('a~b'))")
    assert split_offsets("`offset(a)` + x") == ("`offset(a)` + x", ())
    assert split_offsets("x + offset(`a)` - b) - 1") == ("x - 1", ("`a)` - b",))
    assert canonical("lag(`a, 2`, k = 3) + `lag(x)`") == "lag(`a, 2`, 3) + `lag(x)`"
    assert [lag.column for lag in lags_of(["lag(`a, 2`) + `lag(x)` + lag(a, 2)"])] == ["a, 2", "a"]
    assert len({lag.name for lag in lags_of(["lag(`a, 2`) + lag(a, 2)"])}) == 2
    assert as_factor("x + `x y` + g:`g`", "g") == "x + `x y` + C(g):C(g)"


# -- Offsets -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inside", "value"),
    [
        ("log(x) - log(z)", lambda f: np.log(f["x"] / f["z"])),
        ("-d", lambda f: -f["d"]),
        ("d/e", lambda f: f["d"] / f["e"]),
        ("d*e", lambda f: f["d"] * f["e"]),
        ("d + e", lambda f: f["d"] + f["e"]),
        ("d - 1", lambda f: f["d"] - 1),
        ("2*d", lambda f: 2 * f["d"]),
        ("2", lambda f: 2.0 + 0 * f["d"]),
        ("x > 1.5", lambda f: (f["x"] > 1.5).astype(float)),
        ("I(d/e)", lambda f: f["d"] / f["e"]),
    ],
)
def test_an_offset_is_arithmetic(frame, inside, value):
    design, _, offset = made(f"x + offset({inside})", frame)
    np.testing.assert_allclose(offset, value(frame), rtol=1e-12)
    np.testing.assert_allclose(design.matrix(frame.iloc[3:7])[1], value(frame)[3:7], rtol=1e-12)
    assert design.labels == ("Intercept", "x") and "_naught" not in variables(f"offset({inside})", frame)


@pytest.mark.parametrize(
    ("right", "said"),
    [
        ("offset(g)", "'g', which holds texts"), ("offset(k)", "'k', which holds categories"),
        ("x - offset(d)", r"offset\(d\)', with the sign"), ("x:offset(d)", "term of its own"),
        ("(x + offset(d)) * g", "term of its own"), ("offset()", "empty"),
    ],
)  # fmt: skip
def test_what_is_no_offset_is_refused(frame, right, said):
    with pytest.raises((DataError, SettingError), match=said):
        made(right, frame)


def test_the_offset_of_a_map_is_arithmetic():
    random = np.random.default_rng(1)
    cells = pd.DataFrame({"row": np.repeat(range(6), 6), "col": np.tile(range(6), 6)})
    cells = cells.assign(present=random.integers(0, 2, 36), z=random.normal(size=36), d=random.normal(size=36))
    found = ObservedMap.of(cells, "present ~ offset(z - d)", ("row", "col"), 4, None, "refuse")
    np.testing.assert_allclose(found.offset, cells["z"] - cells["d"])


# -- Names -------------------------------------------------------------------------------------


def test_a_column_never_stands_for_what_is_spelt_like_it(frame):
    odd = {
        "1": 5.0,
        "x + g": 5.0,
        "x-1": 5.0,
        "x:g": 5.0,
        "log(z)": 5.0,
        "4": 5.0,
        "+": 5.0,
        "": 5.0,
        "df": 5.0,
        "in": 5.0,
        "True": 5.0,
        "contr.sum": 5.0,
    }
    wide = frame.assign(**odd)
    for right in (
        "1",
        "x + g",
        "x-1",
        "x:g",
        "log(z)",
        "bs(x, df=4)",
        "I(x + 1)",
        "x %in% g",
        "C(g, contr.sum)",
        "bs(x, df=4, include_intercept=True) - 1",
    ):
        (one, matrix, _), (other, wider, _) = made(right, frame), made(right, wide)
        assert one.labels == other.labels
        np.testing.assert_array_equal(matrix, wider)
        assert variables(right, wide) == variables(right, frame)


@pytest.mark.parametrize(
    "name",
    ["1", "x + g", "x-1", "x:g", "log(z)", "a~b", "class", "lambda", "in", "None", "body.mass", "np.log", "log", "lag",
     "offset", "Intercept", "a b", "_x", "é.è", "[b]", "a\\b", "'q'", "{x}", "offset(x)", "50%"],
)  # fmt: skip
def test_any_column_has_its_name_between_backticks(frame, name):
    wide = frame.assign(**{name: frame["d"] + 1.0})
    right = f"`{name}` + x + offset(log(`{name}`))"
    design, matrix, offset = made(right, wide)
    np.testing.assert_array_equal(matrix[:, 1], wide[name])
    np.testing.assert_allclose(offset, np.log(wide[name]))
    np.testing.assert_array_equal(design.matrix(wide.iloc[:4])[0], matrix[:4])
    assert variables(right, wide) == ("x", name)
    assert made(f"{written(name)} + x", wide)[0].labels == design.labels


def test_names_that_are_words_need_no_backticks(frame):
    wide = frame.assign(**dict.fromkeys(("class", "lambda", "body.mass", "log", "if"), frame["d"]))
    design, matrix, _ = made("class + log(lambda) + body.mass + log + if", wide)
    assert design.labels == ("Intercept", "class", "log(lambda)", "body.mass", "log", "if")
    np.testing.assert_allclose(matrix[:, 2], np.log(frame["d"]))


def test_no_name_of_a_column_is_that_of_another(frame):
    wide = frame.assign(**{"a b": frame["d"], "a_20_b": frame["e"], "_a_20_b": frame["x"], "_naught": frame["z"]})
    design, matrix, offset = made("`a b` + a_20_b + `_a_20_b` + offset(`_naught`)", wide)
    np.testing.assert_array_equal(matrix[:, 1:], frame[["d", "e", "x"]])
    np.testing.assert_array_equal(offset, frame["z"])
    assert design.labels == ("Intercept", "a b", "a_20_b", "_a_20_b")


def test_no_two_terms_have_one_label(frame):
    wide = frame.assign(**{"x:z": frame["d"], "log(z)": frame["e"]})
    design, matrix, _ = made("`x:z` + x:z + `log(z)` + log(z)", wide)
    assert len(set(design.labels)) == 5
    np.testing.assert_array_equal(matrix[:, design.labels.index("`x:z`")], frame["d"])


def test_a_column_called_intercept_is_a_column(frame):
    wide = frame.assign(Intercept=frame["d"])
    fit = dfd.fit("poisson", wide, formula="y ~ Intercept", **QUICK)
    other = dfd.fit("poisson", wide, formula="y ~ d", **QUICK)
    np.testing.assert_allclose(fit.joint_draws, other.joint_draws)
    assert list(fit.effects().index) == ["`Intercept`"]
    assert made("0 + Intercept", wide)[0].labels == ("`Intercept`",)
    cells = pd.DataFrame({"row": np.repeat(range(6), 6), "col": np.tile(range(6), 6), "present": [0, 1, 1] * 12})
    cells["intercept"] = np.random.default_rng(1).normal(size=36)
    found = ObservedMap.of(cells, "present ~ intercept", ("row", "col"), 4, None, "refuse")
    assert found.labels == ("intercept", "`intercept`")
    np.testing.assert_array_equal(found.matrix, np.column_stack([np.ones(36), cells["intercept"]]))


def test_what_is_suggested_runs():
    random = np.random.default_rng(3)
    frame = pd.DataFrame({"class": random.poisson(3.0, 200), "lambda": random.normal(size=200)})
    frame = frame.assign(**{"a+b": random.normal(size=200), "c~d": random.normal(size=200)})
    for columns in (["class", "lambda", "a+b"], ["class", "c~d"]):
        for names in (columns, ["a+b", "x", "z"], ["a~b", "0", "1"], [0, 1, 2]):
            names = dict(zip(columns, names, strict=False))
            data = frame[columns].rename(columns=names)
            call = dfd.suggest(data)[0].python
            assert "formula" in call
            fit = eval(call.removesuffix(")") + ", **QUICK)", {"dfd": dfd, "data": data, "QUICK": QUICK})
            assert fit.data.columns == (str(names["class"]),)


def test_columns_may_be_called_by_numbers():
    random = np.random.default_rng(3)
    frame = pd.DataFrame({"y": random.poisson(3.0, N), 0: random.normal(size=N), 1: random.normal(size=N)})
    assert list(dfd.fit("poisson", frame, formula="y ~ 1", **QUICK).entries) == ["mean[Intercept]"]
    fit = dfd.fit("poisson", frame, formula="y ~ `0` + `1`", **QUICK)
    assert list(fit.effects().index) == ["0", "1"]
    assert len(fit.predict(frame.iloc[:3])) == 3


def test_two_columns_of_one_name_are_refused(frame):
    twice = pd.concat([frame[["y", "x"]], frame[["x"]]], axis=1)
    cells = pd.DataFrame({"row": np.repeat(range(6), 6), "col": np.tile(range(6), 6), "y": [0, 1, 1] * 12})
    both = pd.concat([cells, cells[["y"]]], axis=1)
    for call in (
        lambda: dfd.fit("poisson", twice, formula="y ~ x", **QUICK),
        lambda: dfd.fit("poisson", twice.set_axis(["y", 0, "0"], axis=1), formula="y ~ `0`", **QUICK),
        lambda: dfd.fit("autologistic", both, formula="y ~ 1", options={"at": ["row", "col"]}, **QUICK),
    ):
        with pytest.raises(DataError, match="two columns are called"):
            call()


# -- Kinds of columns --------------------------------------------------------------------------


def test_complex_covariates_are_refused(frame):
    for own in (frame["x"] + 1j, (frame["x"] + 1j).astype(object)):
        for right in ("c", "log(c)", "I(c * 2)"):
            with pytest.raises(DataError, match="'c' holds complex numbers"):
                dfd.fit("poisson", frame.assign(c=own), formula=f"y ~ {right}", **QUICK)


def test_dates_are_groups_or_refused(frame):
    days = frame.assign(day=pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(N) % 3, unit="D"))
    with pytest.raises(DataError, match=r"C\(day\)"):
        made("day", days)
    assert len(made("C(day)", days)[0].labels) == 3


def test_a_factor_with_a_level_for_each_row_is_refused_before_it_is_computed(frame):
    days = pd.DataFrame({"d": pd.date_range("2020-01-01", periods=400), "y": np.arange(400) % 5})
    names = days.assign(d=[f"p{i}" for i in range(400)])
    weights = np.r_[np.ones(200), np.zeros(200)]
    half = names.assign(d=names["d"].where(weights > 0, "p0"))
    for one, right, more in ((days, "C(d)", {}), (names, "d", {}), (names, "C(d, contr.sum)", {}),
                             (half, "d", {"weights": weights})):  # fmt: skip
        with pytest.raises(DataError, match=r"'d' has a level of its own for each of .00 rows.*leave it out"):
            dfd.fit("poisson", one, formula=f"y ~ {right}", **QUICK, **more)
    assert len(dfd.fit("poisson", frame, formula="y ~ g", **QUICK).entries) == 3


def test_dates_that_all_differ_are_not_advised_to_be_groups():
    days = pd.DataFrame({"d": pd.date_range("2020-01-01", periods=40), "y": np.arange(40) % 5})
    with pytest.raises(DataError, match="days since the first") as told:
        dfd.fit("poisson", days, formula="y ~ d", **QUICK)
    assert "C(d)" not in str(told.value)


def test_nullable_columns_are_what_they_hold(frame):
    plain = frame.assign(b=frame["x"] > 1.5, w=np.arange(N) % 4)
    nullable = plain.convert_dtypes()
    assert isinstance(nullable["g"].dtype, pd.StringDtype)
    right = "g + b + w + x"
    fits = [dfd.fit("poisson", one, formula=f"y ~ {right}", **QUICK) for one in (plain, nullable)]
    np.testing.assert_array_equal(fits[0].joint_draws, fits[1].joint_draws)
    for fit in fits:
        for new in (plain, nullable, plain.astype({"b": object, "g": "category", "w": object}), plain.to_dict("list")):
            pd.testing.assert_frame_equal(
                fit.predict(new).reset_index(drop=True), fits[0].predict(plain), check_index_type=False
            )
    items = pd.DataFrame(np.random.default_rng(1).integers(0, 2, (N, 3)), columns=list("abc")).assign(s=frame["g"])
    for one in (items, items.convert_dtypes()):
        fit = dfd.fit("network", one, formula="~ s", columns=["a", "b", "c"], **QUICK)
        assert any("s=b" in name for name in fit.entries)
    cells = pd.DataFrame({"row": np.repeat(range(6), 6), "col": np.tile(range(6), 6), "y": [0, 1, 1] * 12})
    cells["s"] = np.random.default_rng(1).choice(["u", "v"], 36)
    read = ObservedMap.of(cells.convert_dtypes(), "y ~ s", ("row", "col"), 4, None, "refuse")
    assert read.labels == ("intercept", "s=v")


def test_a_reference_level_that_no_row_has_is_named(frame):
    unused = frame.assign(g=pd.Categorical(frame["g"], ["d", "a", "b", "c"]))
    for right in ("g", "C(g)", "x * g"):
        with pytest.raises(DataError, match=r"no row has 'g=d'.*remove_unused_categories"):
            made(right, unused)
    assert made("I(g == 'a')", unused)[0].labels[0] == "Intercept"


def test_a_failed_prediction_leaves_the_fit_as_it_was(frame):
    fit = dfd.fit("poisson", frame, formula="y ~ x + g", **QUICK)
    before = fit.predict({"x": 1.3, "g": "b"})
    for wrong in ({"x": "0.3", "g": "b"}, {"x": 1.3, "g": 5}, {"x": 1.3, "g": "new"}, {"x": 1j, "g": "b"}):
        with pytest.raises(DataError, match=r"'x'|'g'"):
            fit.predict(wrong)
        pd.testing.assert_frame_equal(fit.predict({"x": 1.3, "g": "b"}), before)
    with pytest.raises(DataError, match=r"'x' is '0.3' in the new data, and was a number.*to_numeric"):
        fit.predict({"x": "0.3", "g": "b"})


# -- Levels in files ---------------------------------------------------------------------------


def _each(*values):
    held = np.empty(3, object)
    held[:] = values
    return held


KINDS = {
    "dates": lambda k: _each(*(datetime.date(2020, 1, day) for day in (1, 2, 3)))[k],
    "times": lambda k: pd.to_datetime(["2020-01-01", "2020-01-02", "2021-01-01"])[k],
    "zoned": lambda k: pd.to_datetime(["2020-01-01", "2020-01-02", "2021-01-01"]).tz_localize("Europe/Berlin")[k],
    "periods": lambda k: pd.period_range("2020-01", periods=3, freq="M")[k],
    "spans": lambda k: pd.to_timedelta([1, 2, 3], unit="D")[k],
    "decimals": lambda k: _each(*map(decimal.Decimal, ("1.5", "2", "3")))[k],
    "tuples": lambda k: _each((1, "a"), (2, "b"), (3, "c"))[k],
    "intervals": lambda k: pd.cut(k.astype(float), 3),
    "quantiles": lambda k: pd.qcut(k + 0.0, [0, 0.4, 0.7, 1.0], duplicates="drop"),
    "truth": lambda k: _each(True, False, True)[k],
    "whole": lambda k: pd.Categorical(k),
    "mixed": lambda k: _each("a", 1, 2.5)[k],
    "texts": lambda k: np.array(["x", "y", "nan"])[k],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.daily("zoned", "quantiles", "truth", "mixed")
def test_levels_come_back_from_a_file_as_they_were(kind, tmp_path):
    random = np.random.default_rng(5)
    data = pd.DataFrame({"y": random.poisson(3.0, N), "g": KINDS[kind](random.integers(0, 3, N))})
    fit = dfd.fit("poisson", data, formula="y ~ C(g)", checkpoint=tmp_path / "parts", **QUICK | {"check": True})
    fit.save(tmp_path / "fit.nc")
    back = dfd.load(tmp_path / "fit.nc")
    pd.testing.assert_frame_equal(back.model.observed.frame, fit.model.observed.frame)
    assert back.model.designs[0].levels == fit.model.designs[0].levels
    pd.testing.assert_frame_equal(back.predict(data.iloc[:5]), fit.predict(data.iloc[:5]))


def test_rows_called_by_periods_come_back(tmp_path, frame):
    data = frame.set_index(pd.period_range("2020-01", periods=N, freq="M"))
    fit = dfd.fit("poisson", data, formula="y ~ x", **QUICK)
    fit.save(tmp_path / "fit.nc")
    pd.testing.assert_frame_equal(dfd.load(tmp_path / "fit.nc").residuals(), fit.residuals())


def test_levels_that_no_file_keeps_are_refused(frame):
    data = frame.assign(g=_each(frozenset([1]), frozenset([2]), frozenset([3]))[np.arange(N) % 3])
    with pytest.raises(DataError, match=r"'g' holds .*frozenset.*\.map\(str\)"):
        dfd.fit("poisson", data, formula="y ~ g", **QUICK)
    lists = frame.assign(g=[[1], [2]] * (N // 2))
    with pytest.raises(DataError, match=r"'g' holds \[1\], a list"):
        dfd.fit("poisson", lists, formula="y ~ g", **QUICK)


# -- Weights and clusters ----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::dfdbayes.errors.DroppedRowsWarning")
def test_weights_of_a_series_belong_to_the_rows_of_their_index(frame):
    data = frame.assign(w=np.where(frame["y"] > 3, 4.5, 0.5), gap=frame["x"].where(frame.index != 4))
    mixed = data.sample(frac=1.0, random_state=1)
    for source in (mixed, mixed[mixed["x"] > 1.2]):
        by_name = dfd.fit("poisson", source, formula="y ~ 1", weights="w", **QUICK)
        for weights in (source["w"], source["w"].sort_index(), source["w"].to_numpy(), iter(source["w"])):
            fit = dfd.fit("poisson", source, formula="y ~ 1", weights=weights, **QUICK)
            np.testing.assert_allclose(fit.joint_draws, by_name.joint_draws)
    by_name = dfd.fit("poisson", mixed, formula="y ~ gap", weights="w", missing="drop", **QUICK)
    fit = dfd.fit("poisson", mixed, formula="y ~ gap", weights=data["w"], missing="drop", **QUICK)
    np.testing.assert_allclose(fit.joint_draws, by_name.joint_draws)
    items = mixed.assign(a=mixed["y"] % 2, b=(mixed["y"] > 2) * 1, c=(mixed["x"] > 1.5) * 1)
    fits = [
        dfd.fit("network", items, formula="~ z", columns=["a", "b", "c"], weights=weights, **QUICK)
        for weights in ("w", data["w"])
    ]
    np.testing.assert_allclose(fits[0].joint_draws, fits[1].joint_draws)


def test_weights_that_are_too_few_are_counted(frame):
    for missing in ("refuse", "drop"):
        with pytest.raises(DataError, match=f"there are {N - 1} weights for {N} rows"):
            dfd.fit("poisson", frame, formula="y ~ x", weights=np.ones(N - 1), missing=missing, **QUICK)
    with pytest.raises(DataError, match="index"):
        dfd.fit("poisson", frame, formula="y ~ x", weights=pd.Series(np.ones(N), range(5, N + 5)), **QUICK)


def test_a_cluster_is_the_name_of_a_column(frame):
    for cluster in (np.arange(N) % 6, pd.Series(np.arange(N) % 6), [1] * N):
        for formula in ("y ~ x", None):
            with pytest.raises(SettingError, match="cluster is the name of a column"):
                dfd.fit("poisson", frame, formula=formula, columns=["y"], cluster=cluster, **QUICK)
    lists = frame.assign(c=[[1], [2]] * (N // 2))
    for formula in ("y ~ x", None):
        with pytest.raises(DataError, match=r"'c' says which rows belong together, and holds \[1\], a list"):
            dfd.fit("poisson", lists, formula=formula, columns=["y"], cluster="c", **QUICK)


# -- Columns that a fit makes ------------------------------------------------------------------


def test_a_column_that_a_series_makes_is_not_overwritten():
    data = pd.DataFrame({"t": range(40), "y": np.random.default_rng(1).poisson(3.0, 40)})
    for name in ("place in time", "lag(y)"):
        with pytest.raises(DataError, match="rename the column"):
            dfd.fit("poisson", data.assign(**{name: 0.5}), formula="y ~ lag(y)", time="t", **QUICK)
    with pytest.raises(DataError, match="'y_lag1' already"):
        dfd.lagged(data.assign(y_lag1=0), ["y"], time="t")


def test_lags_of_columns_with_odd_names():
    random = np.random.default_rng(1)
    data = pd.DataFrame({"a + b": random.poisson(3.0, 60), "class": random.poisson(2.0, 60)})
    fit = dfd.fit("poisson", data, formula="`a + b` ~ lag(`a + b`) + lag(class) + log1p(lag(`class`, 2))", **QUICK)
    plain = data.set_axis(["y", "x"], axis=1)
    other = dfd.fit("poisson", plain, formula="y ~ lag(y) + lag(x) + log1p(lag(x, 2))", **QUICK)
    np.testing.assert_allclose(fit.joint_draws, other.joint_draws)


@pytest.mark.parametrize(
    "right", ["2*x", "x + 2", "0.5*x", "x + 0.5", "2", "x*1", "1.0 + x", "00 + x", "x + 0.0", "x:3", "2020"]
)
def test_numbers_among_terms_are_refused_with_what_to_write(frame, right):
    with pytest.raises(SettingError, match=r"I\(.* \* x\)"):
        made(right, frame)
    for fine in ("1 + x", "0 + x", "x - 1", "(x + d)**2", "I(2 * x)", "I(x + 0.5)"):
        made(fine, frame)


@pytest.mark.parametrize("right", ["0", "-1", "x - x - 1", "0 + offset(x)"])
def test_a_formula_without_terms_is_refused(frame, right):
    with pytest.raises(DataError, match="has no terms; write '~ 1'"):
        made(right, frame)
    with pytest.raises(DataError, match="has no terms; write '~ 1'"):
        dfd.fit("poisson", frame.assign(y=1), formula=f"y ~ {right}", progress=False)


def test_names_that_begin_with_a_digit_stand_between_backticks(frame):
    odd = frame.assign(**{"2nd": frame["d"], "1e3": frame["d"]})
    for right in ("2nd + x", "1e3 + x"):
        with pytest.raises(SettingError, match=r"backticks|among its terms"):
            made(right, odd)
    assert made("`2nd` + `1e3`", odd.assign(**{"1e3": frame["x"]}))[0].labels == ("Intercept", "2nd", "1e3")


def test_rows_of_levels_that_a_formula_leaves_out_are_no_reference(frame):
    """Formulaic codes them as zeros, which are the reference level's."""
    three = frame.assign(g=np.resize(list("abc"), len(frame)))
    with pytest.raises(DataError, match=r"levels listed .* leave out 'c'.*list what is left out"):
        made("C(g, levels=['a', 'b'])", three)
    with pytest.raises(DataError, match=r"no row has 'g=d'.*leave it out of levels"):
        made("C(g, levels=['a', 'b', 'c', 'd'])", three)
    with pytest.raises(DataError, match=r"leave out 3\.0"):
        made("C(round(x), levels=[1, 2])", frame.assign(x=np.resize([1.0, 2.0, 3.0], len(frame))))
    made("C(g, levels=['c', 'b', 'a'])", three)


@pytest.mark.parametrize("right", ["C(round(x))", "C(x + 0)", "C(floor(x), contr.sum)", "C(x)"])
def test_levels_that_were_not_seen_are_no_reference(frame, right):
    """Also where they are computed of a column."""
    known = frame.assign(x=np.resize([1.0, 2.0, 3.0], len(frame)))
    design = made(right, known)[0]
    assert len(design.matrix(known)[0]) == len(known)
    with pytest.raises(DataError, match=r"50\.0.*fit again with rows of that level"):
        design.matrix(pd.DataFrame({"x": [1.0, 50.0]}))


@pytest.mark.parametrize("spline", ["cr(x, df=4)", "cs(x, df=4)", "cc(x, df=4)"])
def test_advice_on_a_spline_beside_the_constant_works(frame, spline):
    from dfdbayes.data.formulas import require_full_rank

    design, matrix, _ = made(spline, frame)
    with pytest.raises(DataError, match="constraints='center'") as told:
        require_full_rank("mean", matrix, design.labels, np.ones(len(matrix)))
    (advised,) = re.findall(r"write (c.\(.*?\)),", str(told.value))
    design, matrix, _ = made(advised, frame)
    require_full_rank("mean", matrix, design.labels, np.ones(len(matrix)))


@pytest.mark.parametrize("formula", ["y ~ y", "y ~ x + log1p(y)", "y ~ offset(y)", "y ~ x + C(y)"])
def test_a_response_is_no_covariate_of_its_own(frame, formula):
    data = frame.assign(y=np.random.default_rng(3).poisson(3.0, len(frame)), x=np.arange(len(frame)) % 5)
    with pytest.raises(SettingError, match=r"'y'.*both sides"):
        dfd.fit("poisson", data, formula=formula, **QUICK)
    assert np.isfinite(dfd.fit("poisson", data, formula="y ~ x + lag(y)", **QUICK).beta)


def test_a_name_is_the_same_composed_or_with_combining_accents():
    rng = np.random.default_rng(3)
    composed, apart = "Größe", unicodedata.normalize("NFD", "Größe")
    table = pd.DataFrame({"x": rng.normal(size=60), "Zähler": rng.poisson(3.0, 60)}).rename(columns={"x": composed})
    decomposed = table.set_axis([unicodedata.normalize("NFD", name) for name in table.columns], axis=1)
    formula = "Zähler ~ Größe + I(`Größe`**2) + lag(Zähler)"
    expected = dfd.fit("poisson", table, formula=formula, **QUICK)
    for data, text in ((decomposed, formula), (table, unicodedata.normalize("NFD", formula)),
                       (decomposed, unicodedata.normalize("NFD", formula))):  # fmt: skip
        fit = dfd.fit("poisson", data, formula=text, **QUICK)
        np.testing.assert_allclose(fit.summary()["mean"], expected.summary()["mean"], rtol=1e-12)
    assert apart in fit.model.observed.frame
