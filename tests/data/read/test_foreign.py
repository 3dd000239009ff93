"""Files of Excel, SPSS and Stata: values as they are; what a file declares missing is missing; nothing is computed."""

import datetime
import importlib
import time
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pyreadstat
import pytest

import dfdbayes as dfd
from dfdbayes._util import resources
from dfdbayes.data.read import foreign
from dfdbayes.data.read.reading import table_of

DataError = dfd.errors.DataError


def workbook(path, *sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for i, rows in enumerate(sheets):
        sheet = book.create_sheet(f"sheet {i + 1}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_workbook_is_read_as_it_is(tmp_path):
    rows = [
        ["visits", "dose", "place", "when", "ok"],
        [3, 0.5, "Zürich", datetime.date(2024, 1, 1), True],
        [0, "1,5", "Ulm", datetime.date(2024, 1, 2), False],
        [None, None, None, None, None],
        ["4", "NA", "NA", datetime.date(2024, 1, 3), True],
    ]
    frame = table_of(workbook(tmp_path / "x.xlsx", rows, [])).frame()
    assert frame["visits"].tolist() == [3, 0, 4]
    assert frame["dose"].tolist()[:2] == [0.5, 1.5] and np.isnan(frame["dose"][2])
    assert frame["place"].tolist()[:2] == ["Zürich", "Ulm"] and pd.isna(frame["place"][2])
    assert frame["ok"].tolist() == [True, False, True]
    assert dfd.Dataset.of(tmp_path / "x.xlsx", columns=["visits", "ok"]).rows.tolist() == [[0, 0], [3, 1], [4, 1]]
    with pytest.raises(DataError, match="'when' holds dates"):
        dfd.Dataset.of(tmp_path / "x.xlsx", columns=["when"])


def test_texts_of_a_workbook_that_may_be_two_numbers_are_no_numbers(tmp_path):
    path = workbook(tmp_path / "x.xlsx", [["a"], ["1,234"], ["2,345"]])
    with pytest.raises(DataError, match=r"row 1, column 'a' is '1,234', which may be 1234 .* or 1.234"):
        dfd.Dataset.of(path)
    assert dfd.Dataset.of(path, decimal=".").rows.tolist() == [[1234], [2345]]


def test_formulas_are_not_computed_and_not_missing(tmp_path):
    path = workbook(tmp_path / "x.xlsx", [["a", "b"], [1, 2], [3, "=A2+B2"]])
    with pytest.raises(DataError, match=r"cell B3 of x.xlsx holds the formula =A2\+B2 without its value"):
        dfd.Dataset.of(path)


@pytest.mark.parametrize(
    ("sheets", "why"),
    [
        (([["a"], [1]], [["b"], [2]]), "2 sheets with data .'sheet 1', 'sheet 2'.. What to do"),
        (([["Survey of 2024"], ["a", "b"], [1, 2], [3, 4]],), "remove the lines above the column names"),
        (([["a", "a"], [1, 2], [3, 4]],), "two columns are called 'a'"),
        (([],), "is empty"),
    ],
)
def test_workbooks_that_are_no_table_are_refused(tmp_path, sheets, why):
    with pytest.raises(DataError, match=why):
        dfd.Dataset.of(workbook(tmp_path / "x.xlsx", *sheets))


def test_a_broken_workbook_is_refused(tmp_path):
    for name in ("x.xlsx", "x.sav", "x.dta"):
        (tmp_path / name).write_bytes(b"PK\x03\x04 this is none")
        with pytest.raises(DataError, match=f"{name} cannot be read"):
            dfd.Dataset.of(tmp_path / name)


FRAME = pd.DataFrame(
    {
        "mood": [1.0, 2.0, 5.0, 9.0, -9.0, 3.0] * 5,
        "clinic": [1.0, 2.0] * 15,
        "name": ["a", ""] * 15,
        "age": ["7", "11", "."] * 10,
    }
)
LABELS = {"mood": {1: "never", 5: "always", 9: "no answer"}, "clinic": {1: "north", 2: "south"}}


@pytest.fixture(params=["x.sav", "x.zsav", "x.dta"])
def labelled(request, tmp_path):
    path = tmp_path / request.param
    if path.suffix == ".dta":
        pyreadstat.write_dta(FRAME, path, variable_value_labels=LABELS)
    else:
        pyreadstat.write_sav(
            FRAME, path, variable_value_labels=LABELS, compress=path.suffix == ".zsav", missing_ranges={"mood": [-9]}
        )
    return path


def test_values_of_statistical_packages(labelled):
    table = table_of(labelled)
    frame = table.frame()
    assert frame["clinic"].tolist() == [1, 2] * 15 and table.labels["clinic"] == {1.0: "north", 2.0: "south"}
    assert frame["name"][0] == "a" and pd.isna(frame["name"][1])
    assert frame["age"].tolist()[:2] == [7, 11] and np.isnan(frame["age"][2])  # numbers that are stored as texts
    declared = labelled.suffix != ".dta"  # only SPSS can say that -9 is missing
    assert frame["mood"].isna().sum() == (5 if declared else 0)
    data = dfd.Dataset.of(labelled, columns=["mood"], missing="drop")
    assert data.dropped == (5 if declared else 0)
    (note,) = data.notes  # 9 is called "no answer", and the file does not say that this is missing
    assert "9" in note and "missing_codes=" in note
    coded = dfd.Dataset.of(labelled, columns=["mood"], missing="drop", missing_codes=[9, -9])
    assert coded.dropped == 10 and coded.rows[:, 0].tolist() == [1, 2, 3, 5] and not coded.notes


def test_labels_of_categories_are_those_of_the_file(labelled):
    data = dfd.Dataset.of(labelled, dfd.Categories(1, ["south", "north"]), columns=["clinic"])
    assert data.rows.tolist() == [[0], [1]] and data.counts.tolist() == [15, 15]


@pytest.mark.parametrize(
    ("name", "library", "extra"), [("x.xlsx", "openpyxl", "excel"), ("x.sav", "pyreadstat", "spss")]
)
def test_a_library_that_is_missing_is_named(tmp_path, monkeypatch, name, library, extra):
    def absent(wanted):
        assert wanted == library
        raise ModuleNotFoundError(wanted)

    (tmp_path / name).write_bytes(b"")
    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(DataError, match=rf"needs {library}. What to do: pip install 'dfdbayes\[{extra}\]'"):
        table_of(tmp_path / name)


def _far(path, *cells):
    """A workbook of two columns and some cells far from them."""
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, 2], [3, 4]):
        book.active.append(row)
    for cell in cells:
        book.active[cell] = 1
    book.save(path)
    return path


def test_one_cell_at_the_end_of_a_sheet_does_not_take_for_ever(tmp_path):
    began = time.perf_counter()
    path = _far(tmp_path / "x.xlsx", "XFD1048576")
    assert path.stat().st_size < 10_000
    assert len(table_of(path).columns) == 16_384
    assert time.perf_counter() - began < 20


def test_a_workbook_has_a_limit_on_cells(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign, "MAX_SHEET_CELLS", 20_000)
    for cells in (("XFD4", "XFD5"), ("XFD1048576",)):
        with pytest.raises(DataError, match=r"more than 20,000 cells.*far from the others.*CSV"):
            table_of(_far(tmp_path / "x.xlsx", *cells))
    assert len(table_of(_far(tmp_path / "x.xlsx", "XX5")).columns) == 648


def _with(path, part, content):
    """A workbook in which the text of one part is another."""
    whole = _far(path.with_name("whole.xlsx"))
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, content(old.read(name)) if name == part else old.read(name))
    return path


@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/styles.xml", "xl/workbook.xml"])
def test_a_workbook_is_measured_before_it_is_unpacked(tmp_path, monkeypatch, part):
    monkeypatch.setattr(foreign, "MAX_UNPACKED_SHEETS", 2**24)
    monkeypatch.setattr(foreign, "MAX_UNPACKED_REST", 2**24)
    monkeypatch.setattr(openpyxl, "load_workbook", lambda *_, **__: pytest.fail("it was unpacked"))
    path = _with(tmp_path / "x.xlsx", part, lambda text: text + b" " * 2**25)
    assert path.stat().st_size < 10**5
    with pytest.raises(DataError, match=r"MiB when it is unpacked.*CSV"):
        table_of(path)


def test_rows_that_a_workbook_says_are_very_far_down_are_refused(tmp_path):
    for number in (b"999999999999", b"2000000"):
        path = _with(
            tmp_path / "x.xlsx", "xl/worksheets/sheet1.xml",
            lambda text, number=number: text.replace(b'<row r="3"', b'<row r="' + number + b'"'),
        )  # fmt: skip
        with pytest.raises(DataError, match=r"x.xlsx|more than"):
            table_of(path)


def test_files_that_say_they_are_larger_than_memory_are_refused(tmp_path, monkeypatch):
    frame = pd.DataFrame({"a": np.zeros(50_000), "b": np.ones(50_000)})
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=10_000)
    pyreadstat.write_sav(frame, tmp_path / "x.zsav", compress=True)
    monkeypatch.setattr(resources, "memory", lambda: 500_000.0)
    for name in ("x.parquet", "x.zsav"):
        with pytest.raises(DataError, match=f"{name} holds .* GiB of values"):
            table_of(tmp_path / name).frame()
    assert len(table_of(tmp_path / "x.parquet").frame(most=10)) == 10
