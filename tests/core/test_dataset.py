import numpy as np
import pandas as pd
import polars as pl
import pytest

import dfdbayes as dfd

VALUES = [3, 0, 1, 1, 0, 5, 1]
DISTINCT = ([[0], [1], [3], [5]], [2, 3, 1, 1])


def same(data):
    assert data.rows.tolist() == DISTINCT[0]
    assert data.counts.tolist() == DISTINCT[1]
    assert data.n == 7


@pytest.mark.parametrize(
    "source",
    [
        np.array(VALUES),
        VALUES,
        np.array(VALUES, float)[:, None],
        pd.Series(VALUES, name="x"),
        pd.DataFrame({"x": VALUES}),
        pl.DataFrame({"x": VALUES}),
        pl.Series("x", VALUES),
        {0: 2, 1: 3, 3: 1, 5: 1, 9: 0},
    ],
    ids=["array", "list", "column", "series", "pandas", "polars", "polars series", "frequencies"],
)
def test_every_source_gives_the_same_data(source):
    same(dfd.Dataset.of(source, dfd.Counts(1)))


def test_files(tmp_path):
    frame = pd.DataFrame({"visits": VALUES})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "no_names.csv", index=False, header=False)
    for name in ("a.csv", "a.parquet", "no_names.csv"):
        same(dfd.Dataset.of(tmp_path / name, dfd.Counts(1)))
    assert dfd.Dataset.of(str(tmp_path / "a.csv")).columns == ("visits",)
    pd.DataFrame({"v": [0, 1, 3, 5], "k": [2, 3, 1, 1]}).to_csv(tmp_path / "table.csv", index=False)
    same(dfd.Dataset.of(tmp_path / "table.csv", dfd.Counts(1), weights="k"))


def test_columns_are_chosen_by_name():
    frame = pd.DataFrame({"name": ["a", "b"], "x": [1, 2], "y": [3, 4]})
    data = dfd.Dataset.of(frame, columns=["y", "x"])
    assert data.columns == ("y", "x")
    assert data.rows.tolist() == [[3, 1], [4, 2]]
    assert dfd.Dataset.of(data, columns=["x"]).rows.tolist() == [[1], [2]]


def test_categories_are_read_by_label():
    domain = dfd.Categories(1, ["low", "middle", "high"])
    data = dfd.Dataset.of(pd.DataFrame({"size": ["high", "low", "high"]}), domain)
    assert data.rows.tolist() == [[0], [2]]
    with pytest.raises(dfd.errors.DataError, match=r"row 2, column 'size' is 'huge'.*low, middle, high"):
        dfd.Dataset.of(pd.DataFrame({"size": ["high", "huge"]}), domain)


def test_missing_values_are_refused_or_counted():
    frame = pd.DataFrame({"x": [1, None, 2, None], "y": [1, 1, None, 0]})
    with pytest.raises(dfd.errors.DataError, match=r"3 of 4 rows have missing values \(first: row 2, column 'x'\)"):
        dfd.Dataset.of(frame, dfd.Counts(2))
    data = dfd.Dataset.of(frame, dfd.Counts(2), missing="drop")
    assert data.dropped == 3 and data.n == 1
    with pytest.raises(dfd.errors.DataError, match="nothing is left"):
        dfd.Dataset.of(pd.DataFrame({"x": [None, None]}, dtype=float), missing="drop")


@pytest.mark.parametrize(
    ("source", "domain", "match"),
    [
        ([1, 2, -1, 4], dfd.Counts(1), r"row 3, column 'x' is -1; Counts needs integers >= 0 \(1 of 4"),
        ([1.0, 2.5], dfd.Counts(1), "row 2, column 'x' is 2.5; discrete data need whole numbers"),
        ([1.0, np.inf], dfd.Counts(1), "row 2, column 'x' is inf"),
        ([0, 1, 2], dfd.Binary(1), "row 3, column 'x' is 2; Binary needs one of 0, 1"),
        ([1, 2, 9], dfd.CountsBelow(1, maximum=3), "row 3, column 'x' is 9; CountsBelow needs integers <= 3"),
        (["1", "two"], dfd.Counts(1), "row 2, column 'x' is the text 'two'.*--columns"),
        ([], dfd.Counts(1), "holds no rows"),
        (np.ones((3, 2), int), dfd.Counts(1), r"needs 1 column, the data have 2.*--weights x2"),
        (np.ones((2, 2, 2)), dfd.Counts(1), "vector or rows by columns"),
        ("nowhere.csv", dfd.Counts(1), "no file 'nowhere.csv'"),
    ],
)
def test_bad_data_are_refused_with_place_and_remedy(source, domain, match):
    with pytest.raises(dfd.errors.DataError, match=match):
        dfd.Dataset.of(source, domain)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty"),
        (b"x\n", "holds no rows"),
        (b"\xff\xfe\x00ba", "cannot be read"),
        (b"a,b\n1,2,3,4\n1\n", "more cells"),
    ],
)
def test_broken_files(tmp_path, content, match):
    path = tmp_path / "broken.csv"
    path.write_bytes(content)
    with pytest.raises(dfd.errors.DataError, match=match):
        dfd.Dataset.of(path)


def test_bad_weights():
    for weights, match in [([1, -1], "row 2"), ([1, np.nan], "row 2"), ([1], "1 weights for 2 rows"), ([0, 0], "zero")]:
        with pytest.raises(dfd.errors.DataError, match=match):
            dfd.Dataset.of([3, 4], weights=weights)


def test_fractional_weights_are_of_observations():
    """Equal rows stay apart where their weights differ, so a bootstrap can draw them with their weights."""
    data = dfd.Dataset.of([3, 4, 3, 3], weights=[0.5, 1.0, 2.0, 0.5])
    assert data.n == 4 and data.counts.sum() == 4.0
    found = sorted(zip(data.rows[:, 0].tolist(), data.counts.tolist(), data.repeats.tolist(), strict=True))
    assert found == [(3, 1.0, 2.0), (3, 2.0, 1.0), (4, 1.0, 1.0)]
    whole = dfd.Dataset.of([3, 4, 3, 3], weights=[1, 1, 2, 1])
    assert whole.repeats is None and whole.n == 5 and whole.counts.tolist() == [4.0, 1.0]


def test_choosing_columns_of_weighted_data_keeps_observations():
    frame = pd.DataFrame({"a": [1, 1, 2], "b": [5, 6, 7], "w": [0.5, 0.5, 1.5]})
    data = dfd.Dataset.of(frame, weights="w")
    chosen = dfd.Dataset.of(data, columns=["a"])
    assert chosen.rows[:, 0].tolist() == [1, 2]
    assert chosen.counts.tolist() == [1.0, 1.5] and chosen.repeats.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("no", "yes"), [("No", "YES"), ("nein", "ja"), ("non", "oui"), ("no", "sí"), ("absent", "present")]
)
def test_words_for_no_and_yes_in_several_languages(no, yes):
    found = dfd.Dataset.of({"answer": [yes, no, yes]}, dfd.Binary(1))
    assert dict(zip(found.rows[:, 0].tolist(), found.counts.tolist(), strict=True)) == {0: 1.0, 1: 2.0}
