"""Three hundred files written in as many ways: each is read right, or refused with its reason; none is misread.

The files are written here by hand, from values that are known, without any help from the package.
"""

import csv
import itertools
import math

import numpy as np
import pytest

import dfdbayes as dfd
from dfdbayes.data.read import text as encodings
from dfdbayes.data.read.reading import table_of
from dfdbayes.data.read.text import sniff

DataError = dfd.errors.DataError

SEPARATORS = [",", ";", "\t", "|", " "]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"]
DECIMALS = [".", ","]
GROUPS = ["", "other", "\u00a0", "'"]  # between thousands: nothing, the other mark, a hard space, an apostrophe
QUOTING = ["needed", "texts", "all"]
MISSING = ["", "NA", "N/A", "NaN", "null", ".", "-", "?", "-9", "999"]
CODES = ["-9", "999"]
NEWLINES = ["\n", "\r\n", "\r"]
EXTRAS = ["", "", "no names", "blank lines", "sep=", "comment", "last separator", "row names", "no last newline"]
NUMBERS = ["clear", "clear", "unclear"]  # whether some number tells the decimal mark
AXES = [SEPARATORS, ENCODINGS, DECIMALS, GROUPS, QUOTING, MISSING, NEWLINES, EXTRAS, NUMBERS]
COLUMNS = ["visits", "answer", "dose", "place"]
FILES = 300


def cases():
    rng = np.random.default_rng(0)
    return [tuple(axis[rng.integers(len(axis))] for axis in AXES) for _ in range(FILES)]


def truth(numbers):
    """Counts below and above a thousand, answers, doses, and places with whatever a text may hold; None is missing."""
    visits = [3, 0, 1204, None, 17, 12, 123456, 5, 3, 2, 41, 0]
    answers = [1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1]
    doses = [0.5, 12.25, 7.125, 3.0, None, 1234.5, 0.001, 2.5, 8.75, 6.5, 1.5, 9.25]
    if numbers == "unclear":
        visits = [v if v is None else v % 900 for v in visits]
        doses = [1.204, 12.251, 7.125, 3.062, None, 234.507, 1.001, 2.511, 8.753, 6.502, 1.599, 9.251]
    places = [
        "Zürich",
        "Bad Ems",
        "a, b; c",
        "Zürich",
        'the "Inn"',
        "x|y",
        "Orléans",
        "Zürich",
        "No",
        "Ulm",
        "Rom",
        "No",
    ]
    return list(zip(visits, answers, doses, places, strict=True))


def written(value, decimal, group):
    if isinstance(value, int):
        return f"{value:_}".replace("_", group)
    whole, _, rest = f"{value:.3f}".partition(".")
    return f"{int(whole):_}".replace("_", group) + decimal + rest if rest.strip("0") else f"{whole}{decimal}0"


def make(path, case):
    separator, encoding, decimal, group, quoting, missing, newline, extra, numbers = case
    group = {".": ",", ",": "."}[decimal] if group == "other" else group

    def cell(value):
        text = missing if value is None else value if isinstance(value, str) else written(value, decimal, group)
        odd = any(c in text for c in (separator, '"', "\n"))
        if quoting == "all" or odd or (quoting == "texts" and isinstance(value, str)):
            text = '"' + text.replace('"', '""') + '"'
        return text

    rows = truth(numbers)
    lines = [separator.join(map(cell, row)) for row in rows]
    if extra != "no names":
        lines.insert(0, separator.join(map(cell, COLUMNS)))
    if extra == "row names":
        lines = [lines[0]] + [f'"{i}"{separator}{line}' for i, line in enumerate(lines[1:], 1)]
    if extra == "last separator":
        lines = [line + separator for line in lines]
    if extra == "blank lines":
        lines = [*lines[:5], "", *lines[5:], "", ""]
    if extra == "sep=":
        lines.insert(0, f"sep={separator}")
    if extra == "comment":
        lines[:0] = ["# taken on a Monday", "#"]
    text = newline.join(lines) + ("" if extra == "no last newline" else newline)
    path.write_bytes(text.encode(encoding))
    return rows


def why_refused(case):
    """The reason why nobody can read a file right, if there is one."""
    separator, _, decimal, _, quoting, missing, _, _, numbers = case
    if separator == " " and missing == "" and quoting != "all":
        return "cells"
    if numbers == "unclear" and not (separator == "," and decimal == "." and missing not in CODES):
        return "may be"  # nothing but doses such as 1.204, and no number that tells
    return None


def same(found, wanted):
    if wanted is None or (isinstance(wanted, float) and math.isnan(wanted)):
        return found is None or found != found
    return type(found) is not bool and found == wanted


@pytest.mark.parametrize("case", cases(), ids=range(FILES))
def test_a_file_is_read_right_or_refused(tmp_path, case):
    rows = make(tmp_path / "x.csv", case)
    missing, reason = case[5], why_refused(case)
    codes = [missing] if missing in CODES else None
    settings = {"columns": [COLUMNS[0]] if case[7] != "no names" else ["x1"], "missing": "drop"}
    if reason == "cells":
        with pytest.raises(DataError, match=r"(more|fewer) cells"):
            dfd.Dataset.of(tmp_path / "x.csv", **settings)
        return
    frame = table_of(tmp_path / "x.csv").frame()
    frame = frame[[name for name in frame.columns if not name.startswith("Unnamed")]]
    assert len(frame.columns) == 4 and len(frame) == len(rows)
    assert list(frame.columns) == (COLUMNS if case[7] != "no names" else ["x1", "x2", "x3", "x4"])
    for j, name in enumerate(frame.columns):
        for found, row in zip(frame[name], rows, strict=True):
            wanted = row[j]
            if wanted is None and codes:
                wanted = float(missing)  # a number until somebody says that it is none
            if j == 2 and reason and wanted is not None and not codes:
                assert isinstance(found, str)  # in doubt it is no number
            elif not (j == 2 and reason):
                assert same(found, wanted), (name, found, wanted)
    if reason:
        with pytest.raises(DataError, match=r"(?s)row 1, column .* may be .* or .* tells which.* Say decimal="):
            dfd.Dataset.of(tmp_path / "x.csv", **settings | {"columns": [frame.columns[2]]})
        clear = table_of(tmp_path / "x.csv", decimal=case[2], codes=codes).frame()[frame.columns[2]]
        assert all(same(found, row[2]) for found, row in zip(clear, rows, strict=True))
    data = dfd.Dataset.of(tmp_path / "x.csv", missing_codes=codes, **settings)
    known = sorted(row[0] for row in rows if row[0] is not None)
    assert np.repeat(data.rows[:, 0], data.counts.astype(int)).tolist() == known and data.dropped == 1
    if missing == "-9":
        (note,) = [note for note in dfd.Dataset.of(tmp_path / "x.csv", **settings).notes if "stand for" in note]
        assert "holds -9" in note and "missing_codes=[-9]" in note


def test_the_files_meet_every_pair_of_ways():
    """Each two settings of each two axes stand together in some file, but for the few that chance left out."""
    pairs = {(i, a, j, b) for case in cases() for (i, a), (j, b) in itertools.combinations(enumerate(case), 2)}
    wanted = sum(len(set(a)) * len(set(b)) for a, b in itertools.combinations(AXES, 2))
    assert len(pairs) > 0.98 * wanted
    assert sum(why_refused(case) is None for case in cases()) > 0.6 * FILES


def frame_of(tmp_path, text, name="x.csv", **settings):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return table_of(path, **settings).frame()


READ = {
    "one column of decimal commas": ("x\n1,5\n2,5\n1,25\n", {"x": [1.5, 2.5, 1.25]}),
    "thousands beside a decimal point": ('a,b\n"1,234",3\n"567",4.5\n', {"a": [1234, 567], "b": [3.0, 4.5]}),
    "thousands in groups of groups": ("a;b\n1.234.567;3\n2.000;4\n", {"a": [1234567, 2000], "b": [3, 4]}),
    "texts of several lines": ('a,b\n1,"x\nand, y"\n2,z\n', {"a": [1, 2], "b": ["x\nand, y", "z"]}),
    "rows without names": ("male,3\nfemale,4\nmale,5\n", {"x1": ["male", "female", "male"], "x2": [3, 4, 5]}),
    "years as names": ("id,2019,2020\n1,3,4\n2,4,5\n", {"id": [1, 2], "2019": [3, 4], "2020": [4, 5]}),
    "boxes ticked by name": ("A,B\nA,\n,B\nA,B\n", {"A": ["A", None, "A"], "B": [None, "B", "B"]}),
    "rows of separators": ("a,b\n,\n1,2\n,\n", {"a": [1], "b": [2]}),
    "an empty line in one column": ("x\n1\n\n3\n\n\n", {"x": [1.0, None, 3.0]}),
    "columns by eye": ("a   b\n 1   2\n10  20\n", {"a": [1, 10], "b": [2, 20]}),
    "spaces before quotes": ('a, "b"\n1, "x, y"\n2, "z"\n', {"a": [1, 2], "b": ["x, y", "z"]}),
    "single quotes": ("'a';'b'\n'1';'2'\n'3';'4'\n", {"a": [1, 3], "b": [2, 4]}),
    "the end of a file of old": ("a,b\n1,2\n3,4\n   \n\x1a", {"a": [1, 3], "b": [2, 4]}),
    "numbers of other programs": ("a,b\n0x10,2\n1_000,3\n", {"a": ["0x10", "1_000"], "b": [2, 3]}),
    "truth": ("a,b\nTRUE,1\nFALSE,NA\nNA,2\n", {"a": [True, False, None], "b": [1.0, None, 2.0]}),
    "signs as levels": ("a\n+\n-\n+\n", {"a": ["+", "-", "+"]}),
    "none as a level": ("a\nNone\nSome\nMarked\n", {"a": ["None", "Some", "Marked"]}),
    "a typographic minus": ("a\n1\n\u22129\n3\n", {"a": [1, -9, 3]}),
    "times with spaces": ("t,n\n2020-01-01 10:00,5\n2020-01-02 11:00,6\n",
                          {"t": ["2020-01-01 10:00", "2020-01-02 11:00"], "n": [5, 6]}),
    "lists in cells": ("id,tags\n1,a;b\n2,c;d\n", {"id": [1, 2], "tags": ["a;b", "c;d"]}),
    "a formula of a spreadsheet": ("a,b\n=1+1,2\n=cmd|' /C calc'!A0,3\n",
                                   {"a": ["=1+1", "=cmd|' /C calc'!A0"], "b": [2, 3]}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), READ.values(), ids=READ)
def test_what_can_be_told_is_read(tmp_path, text, wanted):
    found = frame_of(tmp_path, text)
    assert list(found.columns) == list(wanted)
    for name, values in wanted.items():
        assert len(found) == len(values)
        assert all(f is w or same(f, w) for f, w in zip(found[name], values, strict=True)), (name, list(found[name]))


REFUSED = {
    "one column or two": ("x\n1,5\n2,5\n3,25\n", "one column of numbers such as 3,25, or two columns"),
    "thousands by spaces, or two": ("x\n1 234\n2 345\n", "one column of numbers such as 2 345, or two columns"),
    "a row or names": ("male,3\nfemale,4\nother,5\n", "names of columns or a row"),
    "answers or names": ("yes,no\nno,yes\nyes,yes\n", "names of columns or a row"),
    "the same name twice": ("a,a\n1,2\n", "two columns are called 'a'"),
    "an open quotation mark": ('a,b\n1,"x\n2,y\n3,z\n', "quotation mark near line 2"),
    "quotation marks that swallow lines": ('a,b\n1,"x\n2,"y\n3,z\n', "quotation mark near line 2"),
    "a workbook": (b"PK\x03\x04zzz", r"it is an Excel .* \(.xlsx\)"),
    "a page": (b"<!DOCTYPE html><table>", "a web page"),
    "a pickle": (b"\x80\x04\x95zz", "never loaded"),
    "zeros": (b"a\x00b\n1\n2", "zero bytes"),
    "no encoding": (b"x,y\n1,\x81\n", "neither UTF-8 nor Windows-1252"),
    "nothing": (b"\n\n  \n", "is empty"),
}


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_told_is_refused(tmp_path, text, why):
    with pytest.raises(DataError, match=why):
        frame_of(tmp_path, text)


@pytest.mark.parametrize("name", ["x.xls", "x.ods", "x.pkl", "x.rds", "x.csv.gz", "x.sas7bdat", "x.docx"])
def test_other_files_are_refused_with_a_way_out(tmp_path, name):
    with pytest.raises(DataError, match=r"files must end in .* What to do: \w+"):
        frame_of(tmp_path, b"a,b\n1,2\n", name)


def test_all_problems_are_told_at_once(tmp_path):
    """Lines that are too long or too short, texts, fractions, values outside, missing ones: one error has them all."""
    rows = ["a,b,c", "1,2,3", "x,2,3", "1,2", "1,2.5,3", "1,2,-4", "1,,3", "y,2,3", "1,2,3,4", "1,1,5"]
    (tmp_path / "x.csv").write_text("\n".join(rows))
    with pytest.raises(DataError) as caught:
        dfd.Dataset.of(tmp_path / "x.csv", dfd.Counts(3))
    said = str(caught.value)
    assert "x.csv has 6 problems" in said
    for part in (
        "row 8 has more cells (4) than there are columns (3)",
        "row 3 has fewer cells (2)",
        "1 of 7 rows have missing values (first: row 6, column 'b')",
        "row 2, column 'a' is the text 'x'; the model needs whole numbers (2 rows are affected: 2, 7)",
        "row 4, column 'b' is 2.5",
        "row 5, column 'c' is -4; Counts needs integers >= 0",
    ):
        assert part in said, part


def test_a_text_in_a_long_file_is_found_wherever_it_is(tmp_path, monkeypatch):
    """The same rows and the same refusal whatever the size of the blocks that a file is read in."""
    from dfdbayes.data.read import dataset, text

    lines = [str(i % 7) for i in range(3000)]
    (tmp_path / "x.csv").write_text("\n".join(["x", *lines]))
    whole = dfd.Dataset.of(tmp_path / "x.csv")
    (tmp_path / "y.csv").write_text("\n".join(["x", *lines[:2500], "oh", *lines[2501:]]))
    for block, chunk in ((64, 10), (1000, 10_000), (2**22, 7)):
        monkeypatch.setattr(text, "BLOCK_BYTES", block)
        monkeypatch.setattr(dataset, "ROWS_AT_ONCE", chunk)
        found = dfd.Dataset.of(tmp_path / "x.csv")
        assert found.rows.tolist() == whole.rows.tolist() and found.counts.tolist() == whole.counts.tolist()
        with pytest.raises(DataError, match="row 2501, column 'x' is the text 'oh'"):
            dfd.Dataset.of(tmp_path / "y.csv")


def test_a_later_part_in_another_encoding_is_refused(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"a,b\n" + b"1,x\n" * 100_000 + "1,Zürich\n".encode("latin-1"))
    with pytest.raises(DataError, match="a later part is not in the encoding of its beginning"):
        dfd.Dataset.of(tmp_path / "x.csv", columns=["a"])


def test_columns_of_numbers_are_no_factors(tmp_path):
    """A covariate with one text among its numbers is refused, and read where the text is said to be missing."""
    rows = [f"{i % 4},{20 + i % 9}" for i in range(40)]
    (tmp_path / "x.csv").write_text("\n".join(["visits,age", *rows, "2,old", "1,older"]))
    settings = {"formula": "visits ~ age", "sampler": "laplace", "draws": 50, "progress": False}
    with pytest.raises(DataError, match=r"row 41, column 'age' is the text 'old'.*2 rows are affected: 41, 42"):
        dfd.fit("poisson", tmp_path / "x.csv", **settings)
    with pytest.warns(dfd.errors.DroppedRowsWarning):
        found = dfd.fit("poisson", tmp_path / "x.csv", missing_codes=["old", "older"], missing="drop", **settings)
    assert found.data.n == 40 and list(found.summary().index)[:2] == ["mean[Intercept]", "mean[age]"]


def test_rows_of_a_folder_are_counted_through(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "b.csv").write_text("x,y\n5,6\n7\n8,oh\n")
    with pytest.raises(DataError) as caught:
        dfd.Dataset.of(tmp_path)
    assert "row 4 has fewer cells" in str(caught.value) and "row 5, column 'y' is the text 'oh'" in str(caught.value)
    assert any("row 4 has fewer cells" in text for text in dfd.describe(tmp_path).problems)


def in_file(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.daily(",")
def test_a_line_of_names_longer_than_what_is_looked_at_first(tmp_path, separator):
    """The names of 6,000 columns are 360 kB."""
    answers = np.random.default_rng(0).integers(0, 9, (4, 6000))
    names = ["question_" * 6 + f"{j:05d}" for j in range(6000)]
    lines = [separator.join(names), *(separator.join(map(str, row)) for row in answers)]
    path = in_file(tmp_path, "\n".join(lines) + "\n")
    data = dfd.Dataset.of(path)
    assert data.columns[-1] == names[-1] and data.n == 4
    assert sorted(data.rows[:, -1].tolist()) == sorted(answers[:, -1].tolist())
    with pytest.raises(dfd.errors.DataError) as refused:
        dfd.Dataset.of(path, columns=["question"])
    assert len(str(refused.value)) < 1000


LONG = {
    "cell": 'a,b,t\n1,2,"' + "x" * 300_000 + '"\n3,4,y\n5,6,z\n',
    "cell with lines": 'a,b,t\n1,2,"' + "x y, \n" * 50_000 + '"\n3,4,y\n5,6,z\n',
    "cell further down": "a,b,t\n" + "1,2,z\n" * 50_000 + '3,4,"' + "x, \n" * 100_000 + '"\n5,6,z\n',
    "spaces": 'a, b, t\n1, 2, "' + "x" * 300_000 + '"\n3, 4, "y"\n5, 6, "z"\n',
    "name": "a,b," + "t" * 300_000 + "\n1,2,3\n3,4,5\n5,6,6\n",
    "comment": "# " + "x" * 300_000 + "\na,b,t\n1,2,z\n3,4,z\n5,6,z\n",
    "cell of 5 MB": 'a,b,t\n1,2,"' + "x" * 5_000_000 + '"\n3,4,y\n5,6,z\n',
}


@pytest.mark.parametrize("name", LONG)
def test_long_cells_are_read(tmp_path, name):
    data = dfd.Dataset.of(in_file(tmp_path, LONG[name]), columns=["a", "b"])
    assert set(map(tuple, data.rows.tolist())) == {(1, 2), (3, 4), (5, 6)}


def test_cells_that_are_too_long_are_refused_in_words(tmp_path):
    late = "a,b,t\n" + "1,2,z\n" * 50_000 + '1,2,"' + "x" * 9_000_000 + '"\n3,4,y\n'
    with pytest.raises(dfd.errors.DataError, match=r"x\.csv has a row of more than 4 MB.*What to do"):
        dfd.Dataset.of(in_file(tmp_path, late), columns=["a", "b"])
    unclosed = 'a,b,t\n1,2,"' + "x\n" * 150_000 + "\n3,4,y\n5,6,z\n"
    with pytest.raises(dfd.errors.DataError, match=r"quotation mark near line 2 .* is not closed"):
        dfd.Dataset.of(in_file(tmp_path, unclosed), columns=["a", "b"])


def test_lines_without_an_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(encodings, "MAX_BEGINNING", 2**19)
    with pytest.raises(dfd.errors.DataError, match=r"the first lines of x\.csv are longer than 0\.5 MB"):
        dfd.Dataset.of(in_file(tmp_path, "a" * 2**20))


def test_the_limit_of_the_csv_module_is_given_back(tmp_path):
    """It belongs to the whole process, and others may rely on it."""
    before = csv.field_size_limit()
    path = tmp_path / "long.csv"
    path.write_text("a,b\n" + "".join(f'{i}, "{"x" * 200_000}"\n' for i in range(5)))
    assert dfd.Dataset.of(path, columns=["a"]).n == 5
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("suffix", [".csv", ".txt"])
def test_a_file_of_tabs_without_a_space_is_read_by_tabs(tmp_path, suffix):
    path = tmp_path / f"p{suffix}"
    path.write_text("y\tz\n3\t2\n4\t2\n1\t5\n2\t3\n2\t1\n")
    assert sniff(path, path.name).separator == "\t"
    path.write_text("y z\n3 2\n4 2\n1 5\n2 3\n2 1\n")
    assert sniff(path, path.name).separator == " "


@pytest.mark.parametrize("content", ["", "\n\n", '"', '""\n', '"\n"\n', "''"])
def test_a_file_of_nothing_but_quotation_marks_is_empty(tmp_path, content):
    path = tmp_path / "data.csv"
    path.write_text(content)
    with pytest.raises(dfd.errors.DataError):
        dfd.Dataset.of(path)
