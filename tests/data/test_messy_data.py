"""Data are read as what they are, or refused in a sentence; nothing is misread without a word."""

import os

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes import graphs

DataError = dfd.errors.DataError


def rows_of(data):
    return np.repeat(data.rows, data.counts.astype(int), axis=0)


def test_masked_values_are_missing():
    masked = np.ma.masked_equal(np.array([[1, 2], [99, 3], [4, 5]]), 99)
    with pytest.raises(DataError, match="missing values"):
        dfd.Dataset.of(masked)
    data = dfd.Dataset.of(masked, missing="drop")
    assert data.dropped == 1 and data.rows.tolist() == [[1, 2], [4, 5]]
    assert dfd.Dataset.of(np.ma.array([1, 2, 2], mask=False)).n == 3


@pytest.mark.parametrize(
    "column",
    [
        pd.to_datetime(["2024-01-01", "2024-01-02"]),
        pd.to_timedelta([1, 2], unit="s"),
        pd.period_range("2024-01", periods=2, freq="M"),
        pd.Series([pd.Timestamp("2024-01-01").date(), pd.Timestamp("2024-01-02").date()]),
        np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]"),
    ],
)
def test_times_are_no_counts(column):
    for data in ({"when": column}, pd.DataFrame({"when": column})):
        with pytest.raises(DataError, match="'when' holds dates or times"):
            dfd.Dataset.of({k: np.asarray(v) for k, v in data.items()} if isinstance(data, dict) else data)


def test_complex_numbers_are_no_counts():
    with pytest.raises(DataError, match="complex"):
        dfd.Dataset.of(np.array([1 + 2j, 3]))


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("heading", ["0,1,2", "1,2,3", "2019,2020,2021"])
def test_numbers_that_may_be_names_are_not_guessed(tmp_path, heading):
    with pytest.raises(DataError, match="names of columns or a row of data"):
        dfd.Dataset.of(write(tmp_path, "x.csv", f"{heading}\n4,5,6\n7,8,9\n"))


def test_quoted_numbers_are_names(tmp_path):
    data = dfd.Dataset.of(write(tmp_path, "x.csv", '"2019","2020"\n4,5\n7,8\n'))
    assert data.columns == ("2019", "2020") and data.n == 2


def test_a_lone_zero_on_top_is_read_and_told(tmp_path, quick):
    path = write(tmp_path, "x.csv", "0\n" + "\n".join(map(str, np.random.default_rng(0).poisson(3, 80))) + "\n")
    data = dfd.Dataset.of(path)
    assert data.n == 81 and "read as a row" in data.notes[0]
    assert any("read as a row" in text for text in quick("poisson", path).warnings)


@pytest.mark.parametrize("first", ["3,,5", "3,NA,5", "nan,4,5"])
def test_a_first_row_with_a_missing_value_is_a_row(tmp_path, first):
    path = write(tmp_path, "x.csv", f"{first}\n4,5,6\n7,8,9\n")
    data = dfd.Dataset.of(path, missing="drop")
    assert (data.n, data.dropped, data.columns) == (2, 1, ("x1", "x2", "x3"))


def test_files_of_a_folder_count_once(tmp_path):
    folder = tmp_path / "parts"
    (folder / ".ipynb_checkpoints").mkdir(parents=True)
    for k in range(2):
        write(folder, f"part-{k}.csv", "x\n1\n2\n")
    write(folder / ".ipynb_checkpoints", "part-0-checkpoint.csv", "x\n1\n2\n")
    write(folder, "._part-0.csv", "x\n9\n")
    (folder / "again.csv").symlink_to(folder / "part-0.csv")
    os.link(folder / "part-1.csv", folder / "hard.csv")
    (folder / "broken.csv").symlink_to(folder / "nowhere.csv")
    assert dfd.Dataset.of(folder).n == 4


def test_row_numbers_that_pandas_writes_are_no_variable(tmp_path, quick):
    frame = pd.DataFrame({"a": [1, 0, 1, 1, 0] * 20, "b": [0, 1, 1, 0, 1] * 20})
    frame.to_csv(tmp_path / "x.csv")
    for source in (tmp_path / "x.csv", pd.read_csv(tmp_path / "x.csv")):
        data = dfd.Dataset.of(source)
        assert data.columns == ("a", "b") and "left out" in data.notes[0]
        assert dfd.Dataset.of(source, columns=["Unnamed: 0", "a"]).d == 2
    fit = quick("ising-network", tmp_path / "x.csv", loss="pseudo")
    assert fit.data.d == 2 and any("'Unnamed: 0'" in text for text in fit.warnings)


def test_weights_of_pandas_belong_to_rows_by_index():
    frame = pd.DataFrame({"x": [1, 2, 3]}, index=["a", "b", "c"])
    weights = pd.Series([30, 10, 20], index=["c", "a", "b"])
    np.testing.assert_array_equal(dfd.Dataset.of(frame, weights=weights).counts, [10, 20, 30])
    np.testing.assert_array_equal(dfd.Dataset.of(frame["x"], weights=weights).counts, [10, 20, 30])
    with pytest.raises(DataError, match="index is not the data's"):
        dfd.Dataset.of(frame, weights=pd.Series([1, 2, 3]))
    np.testing.assert_array_equal(dfd.Dataset.of([1, 2, 3], weights=weights).counts, [30, 10, 20])


def test_weights_are_given_once_and_in_a_row():
    with pytest.raises(dfd.errors.SettingError, match="their own weights"):
        dfd.Dataset.of({1: 5, 2: 6}, weights=[1, 2])
    with pytest.raises(DataError, match="must be a vector"):
        dfd.Dataset.of([1, 2], weights=np.ones((2, 1)))


def test_labels_that_look_missing_are_labels(tmp_path):
    model_domain = dfd.Categories(1, ["NA", "None", "yes"]) * dfd.Counts(1)
    path = write(tmp_path, "x.csv", "answer,n\nNA,1\nNone,2\nyes,3\nNA,NA\n")
    data = dfd.Dataset.of(path, model_domain, missing="drop")
    assert rows_of(data).tolist() == [[0, 1], [1, 2], [2, 3]] and data.dropped == 1


def test_other_shapes_of_data():
    import polars as pl

    assert dfd.Dataset.of({"a": [1, 2], "b": [3, 4]}).columns == ("a", "b")
    records = np.array([(1, 2), (3, 4)], dtype=[("a", int), ("b", int)])
    assert dfd.Dataset.of(records).rows.tolist() == [[1, 2], [3, 4]]
    assert dfd.Dataset.of(pl.DataFrame({"a": [1, 2]}).lazy()).n == 2
    for wrong in ([[1, 2], [3]], {"a": [1, 2], "b": [3]}, {"a": [1, 2], "b": 3}, {(1, 2): 3}):
        with pytest.raises(DataError):
            dfd.Dataset.of(wrong)
    with pytest.raises(DataError, match="twice"):
        dfd.Dataset.of({"a": [1, 2]}, columns=["a", "a"])
    assert dfd.Dataset.of({"abc": [1, 2]}, columns="abc").columns == ("abc",)


def test_a_file_name_that_is_no_text(call, tmp_path):
    name = os.fsencode(tmp_path) + b"/visits-\xff.csv"
    with open(name, "w") as file:
        file.write("visits\n" + "\n".join(map(str, np.random.default_rng(0).poisson(3, 80))))
    out = tmp_path / "out"
    words = ("--model", "poisson", "--sampler", "laplace", "--bootstrap", "60", "--draws", "100")
    assert call("fit", os.fsdecode(name), *words, "--out", out)[0] == 0
    assert {"report.html", "run.json"} <= {p.name for p in out.iterdir()}
    assert call("rerun", out)[0] == 0


def test_misreadings(tmp_path):
    (tmp_path / "q.csv").write_text('"3"\n"5"\n"2"\n"3"\n')
    assert dfd.Dataset.of(tmp_path / "q.csv").n == 4
    for weights in (np.ma.array([5, 6, 7], mask=[0, 1, 0]), pd.to_datetime(["2024-01-01"] * 3), np.array([1j, 1, 1])):
        with pytest.raises(dfd.errors.DataError):
            dfd.Dataset.of([0, 1, 2], weights=weights)
    for make in (lambda: dfd.Finite(1, [0.5, 1.5]), lambda: dfd.Counts(1.5), lambda: graphs.grid(2.5, 3)):
        with pytest.raises(dfd.errors.ModelError):
            make()
    with pytest.raises(dfd.errors.DataError, match="two columns"):
        dfd.Dataset.of({1: [1, 2], "1": [2, 3]})
    with pytest.raises(dfd.errors.DataError, match="different indexes"):
        dfd.Dataset.of({"a": pd.Series([1, 2]), "b": pd.Series([1, 2], index=[1, 0])})
    data = dfd.Dataset.of({"a": [1, 2], "b": [3, 4], "ab": [5, 6]})
    assert dfd.Dataset.of(data, columns="ab").columns == ("ab",)
    for columns in ([], 0):
        with pytest.raises(dfd.errors.DataError, match="names of columns"):
            dfd.Dataset.of(data, columns=columns)
