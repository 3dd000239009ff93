"""What a table is, what is wrong with it, and a call that works."""

import ast
import json
import shlex
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd

RNG = np.random.default_rng(4)
N = 120
CLINICS = pd.DataFrame(
    {
        "id": np.arange(1, N + 1),
        "visits": RNG.poisson(2.0, N),
        "age": RNG.normal(40, 12, N).round(2),
        "sex": RNG.choice(["f", "m"], N),
        "smoker": RNG.integers(0, 2, N),
        "mood": RNG.integers(1, 8, N),
        "year": 2024,
        "when": pd.date_range("2024-01-01", periods=N).astype(str),
        "years": np.nan,
    }
)
CLINICS["gender"] = CLINICS["sex"].map({"f": 1, "m": 2})


def kinds(found):
    return {own.name: own.kind for own in found.columns}


def test_the_kind_of_each_column():
    found = dfd.describe(CLINICS)
    assert kinds(found) == {
        "id": "id", "visits": "count", "age": "continuous", "sex": "text", "smoker": "binary", "mood": "ordinal",
        "year": "constant", "when": "date", "years": "empty", "gender": "binary",
    }  # fmt: skip
    assert found.n == N and found.table.loc["years", "missing"] == 1
    assert "tells the same as 'sex' in other words" in found.table.loc["gender", "look at"]
    text = " ".join(found.problems)
    for said in ("'year' has the same value", "'years' has no value", "'gender' tells the same"):
        assert said in text, said
    assert "'when'" not in text and found.table.loc["when", "for"] == "time"
    with pytest.raises(AttributeError):
        found.n = 3


@pytest.mark.parametrize(
    ("columns", "python"),
    [
        (["visits"], 'dfd.fit("cmp", data)'),
        (["smoker"], 'dfd.fit("bernoulli", data)'),
        (["id", "visits"], 'dfd.fit("cmp", data, columns=["visits"])'),
        (["id", "visits", "age", "sex"], 'dfd.fit("cmp", data, formula="visits ~ age + sex")'),
        (["smoker", "age"], 'dfd.fit("bernoulli", data, formula="smoker ~ age")'),
        (["visits", "smoker", "mood"], 'dfd.fit("network", data)'),
        (["id", "visits", "smoker", "mood"], 'dfd.fit("network", data, columns=["visits", "smoker", "mood"])'),
    ],
)
def test_the_call_to_make(columns, python):
    assert dfd.describe(CLINICS[columns]).suggestions[0].python == python


def test_other_tables(tmp_path):
    counts = pd.Series(RNG.poisson(3, 500)).value_counts().sort_index()
    table = pd.DataFrame({"sales": counts.index, "stores": counts.to_numpy()})
    assert dfd.describe(table).suggestions[0].python == 'dfd.fit("cmp", data, weights="stores")'
    edges = dfd.describe({"from": [1, 1, 2, 3], "to": [2, 3, 3, 4]}).suggestions[0]
    assert "edge list" in edges.why and edges.python.startswith("dfd.fit(dfd.models.RandomGraph(")
    assert "--nodes people.csv" in edges.why and edges.command == ""
    (tmp_path / "law_edges.csv").write_text("from,to\n1,2\n1,3\n2,3\n3,4\n")
    assert "nodes" not in dfd.describe(tmp_path / "law_edges.csv").suggestions[0].command
    (tmp_path / "law_nodes.csv").write_text("node,office\n1,a\n2,b\n")
    beside = dfd.describe(tmp_path / "law_edges.csv").suggestions[0]
    assert f"--nodes {tmp_path / 'law_nodes.csv'} " in beside.command and "law_nodes.csv" in beside.python
    assert dfd.describe(tmp_path / "law_nodes.csv").suggestions[0].command == beside.command
    assert "No column holds discrete data" in dfd.describe({"x": RNG.normal(size=30)}).suggestions[0].why
    assert "text of two values" in dfd.describe({"x": ["a", "b"] * 20, "y": RNG.normal(size=40)}).suggestions[0].why
    assert "'bernoulli' needs 0 and 1" in dfd.describe({"x": [1, 2] * 20}).suggestions[0].why
    repeated = {"subject": np.repeat(np.arange(30), 4), "y": RNG.integers(0, 2, 120), "x": RNG.normal(size=120)}
    assert dfd.describe(repeated).suggestions[0].python.endswith('formula="y ~ x", cluster="subject")')
    assert kinds(dfd.describe(dfd.datasets.sales())) == {"sales": "count"}
    assert dfd.describe(dfd.datasets.sales()).n == 3168


def test_two_groups_beside_scales_are_compared():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(1, 7, (N, 4)), columns=list("abcd")).assign(gender=rng.integers(1, 3, N))
    frame["age"], frame.loc[3, "a"] = rng.integers(18, 80, N), None
    first, second, third = dfd.suggest(frame)
    assert first.python == 'dfd.fit("network", data, columns=["a", "b", "c", "d"], missing="impute")'
    assert 'formula="~ C(gender)", interaction="~ C(gender)", columns=["a", "b", "c", "d"]' in second.python
    assert all('missing="impute"' in one.python for one in (second, third)) and 'formula="~ age"' in third.python
    assert "1 of 120 rows lack one or more" in str(dfd.describe(frame))


def test_answers_in_words(tmp_path):
    answers = pd.DataFrame({name: RNG.choice(["Yes", "No"], N) for name in "abcd"})
    answers["id"] = np.arange(N)
    answers.to_csv(tmp_path / "x.csv", index=False)
    one = dfd.describe(tmp_path / "x.csv").suggestions[0]
    assert one.python.endswith('columns=["a", "b", "c", "d"], options={"levels": ["No", "Yes"]})')
    assert one.command.endswith("--columns a,b,c,d --levels No,Yes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = {"sampler": "laplace", "draws": 50, "progress": False, "options": {"levels": ["No", "Yes"]}}
        assert dfd.fit("network", tmp_path / "x.csv", columns=list("abcd"), **settings).data.n == N
    scale = ["never", "sometimes", "often"]
    words = pd.DataFrame({name: pd.Categorical(RNG.choice(scale, N), scale, ordered=True) for name in "abc"})
    found = dfd.describe(words)
    assert set(kinds(found).values()) == {"ordinal"} and found.suggestions[0].python == 'dfd.fit("network", data)'
    assert [level for level, _ in found.columns[0].levels] == scale
    assert "in their order" in dfd.describe(words.astype(str)).suggestions[0].why


def test_missing_entries_of_discrete_columns_are_imputed():
    frame = CLINICS[["visits", "smoker", "mood"]].astype(float)
    frame.loc[[3, 7], "mood"] = np.nan
    assert dfd.describe(frame).suggestions[0].python == 'dfd.fit("network", data, missing="impute")'
    frame["age"] = CLINICS["age"]
    frame["place"] = RNG.choice(["a", "b", "c"], N)
    assert dfd.describe(frame).suggestions[0].python.endswith('missing="drop")')


def test_suspected_codes_are_in_the_call_and_not_in_the_kind():
    frame = CLINICS[["visits"]].copy()
    frame.loc[[3, 7], "visits"] = -9
    found = dfd.describe(frame)
    assert found.columns[0].kind == "count" and found.columns[0].codes == (-9.0,)
    assert any("missing_codes=[-9]" in text for text in found.problems)
    assert found.suggestions[0].python == 'dfd.fit("cmp", data, missing_codes=[-9], missing="drop")'
    assert not dfd.describe(frame, missing_codes=[-9]).problems[0].startswith("'visits' holds")


def tables():
    """Tables whose rows are no plain observations, with the beginning and the end of the call for each."""
    rng = np.random.default_rng(0)
    visits, months = rng.poisson(2.0, N), pd.date_range("2015-01-01", periods=60, freq="MS")
    row, col = np.divmod(np.arange(N), 12)
    often = pd.Series(visits).value_counts()
    cells = pd.MultiIndex.from_product([(0, 1)] * 3, names=["tea", "cake", "sun"]).to_frame(False)
    pairs = cells[["tea", "cake"]][::2]
    sites = pd.DataFrame({"row": row, "col": col, "present": rng.integers(0, 2, N)})
    cases, rain, warmth = rng.poisson(4.0, 60), rng.integers(0, 2, 60), rng.normal(size=60)
    series = pd.DataFrame({"month": months.strftime("%Y-%m"), "cases": cases})
    dated = pd.DataFrame({"when": months.astype(str), "cases": cases, "warmth": warmth})
    return {
        "visits, count": (pd.DataFrame({"visits": often.index, "count": often.to_numpy()}), 'weights="count")'),
        "smokes, n": (pd.DataFrame({"smokes": [0, 1], "n": [120, 60]}), 'fit("bernoulli", data, weights="n")'),
        "three and Freq": (cells.assign(Freq=rng.integers(5, 50, 8)), 'fit("network", data, weights="Freq")'),
        "two and count": (pairs.assign(count=[40, 21, 33, 8]), 'formula="tea ~ cake", weights="count")'),
        "month, cases": (series, 'season(month, 12)", time="month")'),
        "dates": (dated, 'log1p(lag(cases)) + season(when, 12) + warmth", time="when")'),
        "week, rain": (pd.DataFrame({"week": np.arange(1, 61), "rain": rain}), '"rain ~ lag(rain)", time="week")'),
        "months of a year": (pd.DataFrame({"month": np.arange(1, 13), "count": cases[:12]}), 'time="month")'),
        "row, col, present": (sites, 'formula="present ~ 1", options={"at": ["row", "col"]})'),
        "x, y": (
            sites.rename(columns={"row": "y", "col": "x"}).assign(height=rng.normal(size=N)),
            'formula="present ~ height", options={"at": ["x", "y"]})',
        ),
    }


def test_tables_whose_rows_are_no_observations_have_a_call_of_their_own():
    for table, end in tables().values():
        assert dfd.suggest(table)[0].python.endswith(end)


@pytest.mark.parametrize("name", tables())
@pytest.mark.daily("visits, count", "two and count", "week, rain")
def test_tables_whose_rows_are_no_observations(name, tmp_path, call):
    """The calls work as they are written, in Python and on the command line."""
    table, _ = tables()[name]
    first = dfd.suggest(table)[0]
    table.to_csv(tmp_path / "table.csv", index=False)
    (one, *_) = dfd.suggest(tmp_path / "table.csv")
    assert one.python.replace(f'"{tmp_path / "table.csv"}"', "data") == first.python
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert eval(first.python, {"dfd": Quick, "data": table}).data.n > 0
        assert call(*shlex.split(one.command)[1:], "--sampler", "laplace", "--draws", "50", "--no-check")[0] == 0


@pytest.mark.slow
def test_an_array_of_few_categories_may_be_a_map():
    image = np.random.default_rng(0).integers(0, 2, (15, 20))
    first, second = dfd.suggest(image)
    assert first.python == 'dfd.fit("autologistic", data)' and second.python == 'dfd.fit("network", data)'
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert eval(first.python, {"dfd": Quick, "data": image}).data.n == 300
    answers = np.random.default_rng(0).integers(0, 2, (300, 6))
    assert [one.python for one in dfd.suggest(answers)] == ['dfd.fit("network", data)']


def test_a_column_called_weight_is_offered_as_one(tmp_path, call):
    frame = CLINICS[["visits", "age"]].assign(weight=np.random.default_rng(0).integers(100, 9000, N))
    first, second = dfd.suggest(frame)
    assert "weights=" not in first.python and "'weight' says how many people" in second.why
    assert second.python == 'dfd.fit("cmp", data, formula="visits ~ age", weights="weight", weighting="sampling")'
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert eval(second.python, {"dfd": Quick, "data": frame}).data.n == N
        frame.to_csv(tmp_path / "survey.csv", index=False)
        words = shlex.split(dfd.suggest(tmp_path / "survey.csv")[1].command)
        assert call(*words[1:], "--sampler", "laplace", "--draws", "50", "--no-check")[0] == 0


def test_times_and_places_that_repeat_are_none_of_a_series_or_a_map():
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"year": rng.integers(2000, 2020, N), "visits": rng.poisson(2.0, N)})
    plot = pd.DataFrame({"x": rng.integers(0, 9, N), "y": rng.integers(0, 9, N), "present": rng.integers(0, 2, N)})
    for frame in (people, plot):
        assert not any(word in dfd.suggest(frame)[0].python for word in ("time=", '"at"', "weights="))


class Quick:
    @staticmethod
    def fit(*args, **kwargs):
        return dfd.fit(*args, **kwargs, sampler="laplace", draws=50, progress=False)


@pytest.mark.parametrize(
    "columns", [["visits"], ["visits", "age", "sex"], ["smoker", "age"], ["visits", "smoker", "mood"]]
)
@pytest.mark.daily("columns1")
def test_the_suggested_calls_work(columns, tmp_path, monkeypatch, call):
    """In Python and on the command line, from a file."""
    CLINICS[columns].to_csv(tmp_path / "my data.csv", index=False, sep=";", decimal=",")
    monkeypatch.chdir(tmp_path)
    one = dfd.describe("my data.csv").suggestions[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert eval(one.python, {"dfd": Quick}).data.n == N
        words = shlex.split(one.command)
        assert words[0] == "dfdbayes"
        assert call(*words[1:], "--sampler", "laplace", "--draws", "50")[0] == 0


def test_all_that_is_wrong_is_told_with_row_and_column(tmp_path):
    lines = ["a;b;c", *(f"{i % 5};{i},5;{i % 2}" for i in range(30)), "x;1,5;0", "1;2,5", "2;y;1", "3;1,5;999"]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    text = "\n".join(dfd.describe(tmp_path / "x.csv").problems)
    for said in (
        "row 31, column 'a' is the text 'x'",
        "row 32 has fewer cells (2)",
        "row 33, column 'b' is the text 'y'",
        "'c' holds 999",
    ):
        assert said in text, said


HOSTILE = [
    'x"); import os; ("',
    "a`b",
    "__import__('os').system('true')",
    "new\nline",
    "[red]x[/red]",
    "a,b",
    "$(true)",
    "<b>",
]


def test_names_of_columns_stay_names(tmp_path, call):
    """Whatever they are: in code they are texts, in a shell one word, on a page escaped, on a terminal no markup."""
    frame = pd.DataFrame({name: RNG.integers(0, 2, 40) for name in HOSTILE})
    frame["n"] = np.r_[RNG.poisson(3, 39), 30]
    frame.to_csv(tmp_path / "x.csv", index=False)
    found = dfd.describe(tmp_path / "x.csv")
    for one in found.suggestions:
        (called,) = ast.parse(one.python).body
        assert isinstance(called.value, ast.Call) and ast.unparse(called.value.func) == "dfd.fit"
        parts = [ast.literal_eval(k.value) for k in called.value.keywords]
        assert all(isinstance(part, (str, list)) for part in parts)
        assert not one.command or shlex.split(one.command)[:2] == ["dfdbayes", "fit"]
    assert "<b>" not in found._repr_html_().replace("&lt;b&gt;", "") and "&lt;b&gt;" in found._repr_html_()
    code, out, _ = call("describe", tmp_path / "x.csv")
    assert code == 0 and "[red]x[/red]" in out


def test_on_the_command_line(call, tmp_path):
    CLINICS.to_csv(tmp_path / "x.csv", index=False)
    code, out, _ = call("describe", tmp_path / "x.csv")
    assert code == 0
    for said in (
        "120 rows, 10 columns",
        "separated by commas",
        "short scale",
        "What to look at:",
        "What to call:",
        "$" * 0,
    ):
        assert said in out
    code, out, _ = call("describe", tmp_path / "x.csv", "--json")
    found = json.loads(out)
    assert found["rows"] == N and {c["column"]: c["kind"] for c in found["columns"]} == kinds(dfd.describe(CLINICS))
    assert found["suggestions"][0]["command"].startswith("dfdbayes fit ")
    assert call("describe", tmp_path / "nowhere.csv")[0] == 2


def test_as_text_and_as_a_page():
    found = dfd.describe(CLINICS)
    assert str(found) == repr(found) and "What to call:" in str(found)
    assert "<table" in found._repr_html_() and "dfd.fit(" in found._repr_html_()


def test_real_tables(shared_data):
    """The first suggestion of each is the call that its source was collected for."""
    wanted = {
        "adhd.csv": "network", "attendance.csv": "daysabs ~", "bird_parasites.csv": "network", "boredom.csv": "network",
        "brca_10.csv": "network", "cmp_4.0_0.75_n2000.csv": '"cmp"', "sales_frequencies.csv": 'weights="stores"',
        "takeoverbids.csv": "numbids ~", "flomarriage_edges.csv": "RandomGraph",
    }  # fmt: skip
    for name, said in wanted.items():
        assert said in dfd.describe(shared_data / name).suggestions[0].python, name


def test_a_graph_gets_a_model_of_graphs():
    karate, plain = nx.karate_club_graph(), nx.DiGraph([(1, 2), (2, 1), (2, 3)])
    (call,) = dfd.suggest(karate)
    assert call.python == """dfd.fit(dfd.models.RandomGraph("edges + nodematch('club') + gwesp(0.25)"), data)"""
    model = eval(call.python.removeprefix("dfd.fit(").removesuffix(", data)"), {"dfd": dfd})
    assert model.bound(dfd.ObservedGraph.of(karate)).space.size == 3
    assert "edges + mutual + gwesp(0.25)" in dfd.suggest(plain)[0].python
    assert str(dfd.describe(plain)).splitlines()[1:3] == ["", "What to call:"]
    assert dfd.describe(dfd.ObservedGraph.of(karate)).table.loc["club", "kind"] == "texts"


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        (pd.to_timedelta(np.arange(60), "D"), "duration", "pandas.Timedelta"),
        (pd.Series(pd.to_timedelta(np.arange(60), "D"), dtype=object), "duration", "pandas.Timedelta"),
        ([[k] for k in range(60)], "nested", "several values"),
        ([{"a": k} for k in range(60)], "nested", "several values"),
        ([b"a", b"b", b"a"] * 20, "text", ""),
    ],
)
def test_columns_that_are_no_numbers_or_texts_are_told_apart(values, kind, said):
    """What no model takes is not suggested, and a formula with it is refused in words."""
    frame = pd.DataFrame({"visits": np.random.default_rng(0).poisson(3, 60), "stay": values})
    found = dfd.describe(frame)
    (own,) = (one for one in found.columns if one.name == "stay")
    assert own.kind == kind and said in " ".join(own.notes)
    suggested = any("stay" in call.python for call in dfd.suggest(frame))
    assert suggested == (kind == "text")
    if kind != "text":
        with pytest.raises(dfd.errors.DataError, match=r"'stay' holds .*(in a unit.*Timedelta|a list|a dict)"):
            dfd.fit("poisson", frame, formula="visits ~ stay", progress=False, check=False)
    if kind == "duration":
        days = frame.assign(stay=pd.to_timedelta(frame["stay"]) / pd.Timedelta(days=1))
        assert "duration" not in {own.kind for own in dfd.describe(days).columns}


def test_dates_that_a_suggestion_uses_are_not_to_be_left_out():
    times = pd.date_range("2015-01-01", periods=60, freq="MS")
    table = pd.DataFrame({"month": times, "count": np.random.default_rng(3).poisson(3.0, 60)})
    found = dfd.describe(table)
    assert 'time="month"' in found.suggestions[0].python
    assert not [said for said in found.problems if "month" in said] and found.table.loc["month", "for"] == "time"
    found = dfd.describe(table.assign(month=times[0] + pd.to_timedelta([1, 1, 9] * 20, unit="D")))
    assert any("'month' holds dates" in said for said in found.problems)
