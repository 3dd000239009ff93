"""Text files: what stands for a missing value, their encoding, their numbers, how they write a table, and their cells.

Every cell is read as text, and becomes a number only where it is one: a text is read under each of the two decimal
marks. "1,5" is a number under one of them only, and so tells which one is in use. "1,234" is 1234 under the point and
1.234 under the comma: it is read where the rest of its column, or of its file, tells the mark, and stays a text
otherwise, which nobody takes for a number.

Words such as ``NA`` are missing everywhere. A lone ``.``, ``-`` or ``?`` is missing among numbers, and a level among
other texts. Numbers such as -9 or 999 are read as the numbers they are, and named in a note: only the user knows.

Separator, quotation marks, decimal mark and the line of names are told from the beginning of the file. What could be
read in two ways is refused with both of them named. Lines with too many or too few cells are never filled up or cut:
they are problems, and named.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ...errors import DataError, Problem, Problems, SettingError, require_known

WORDS = frozenset(
    ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
     "NAN", "NULL", "NaN", "Null", "n/a", "na", "nan", "null"]
)  # fmt: skip
AMONG_NUMBERS = frozenset([".", "-", "?", "--", "..", "\u2013", "\u2014", "None", "none", "n.a.", "N.A."])

_NINES = {float(code) for size in range(2, 7) for code in (int("9" * size), -int("9" * size))}
_BESIDE_NINES = {
    sign * float(code)
    for sign in (1, -1)
    for size in range(2, 5)
    for code in (int("7" * size), int("8" * size), int("9" * (size - 1) + "7"), int("9" * (size - 1) + "8"))
}
_NEGATIVE_DIGITS = frozenset([-7.0, -8.0, -9.0])
_ALL = sorted({9.0} | _NINES | _BESIDE_NINES | _NEGATIVE_DIGITS)
_MEANS_MISSING = re.compile(
    r"missing|no answer|not answered|no response|refus|don.?t know|do not know|not applicable|not asked|not stated|"
    r"not ascertained|unknown|keine angabe|weiss nicht|wei\u00df nicht|sans r.ponse|no sabe|no contesta|^n\.?/?a\.?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class MissingCodes:
    """Values that the user says stand for missing ones, everywhere or by column.

    ``given`` tells "there are none" (an empty list) from nothing said.
    """

    everywhere: tuple[Any, ...] = ()
    columns: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    given: bool = False

    @classmethod
    def of(cls, codes: Any) -> MissingCodes:
        """From None, one code, several, or several by column."""
        if isinstance(codes, MissingCodes):
            return codes
        if codes is None:
            return cls()
        if isinstance(codes, Mapping):
            return cls((), {str(name): _listed(own) for name, own in codes.items()}, True)
        return cls(_listed(codes), {}, True)

    def require(self, columns: Sequence[str]) -> None:
        """Refuse codes of columns that there are not."""
        for name in self.columns:
            require_known(name, columns, f"missing_codes names '{name}', which is not a column", error=SettingError)

    def of_column(self, name: str) -> tuple[Any, ...]:
        return (*self.everywhere, *self.columns.get(name, ()))

    def texts(self, name: str) -> frozenset[str]:
        """The codes of a column as texts of a file."""
        return frozenset(str(code).strip() for code in self.of_column(name))

    def numbers(self, name: str) -> tuple[float, ...]:
        """The codes of a column that are numbers."""
        found = (under(str(code), POINT) for code in self.of_column(name))
        return tuple(float(value) for value in found if value is not None)

    def taken_out(self, name: str, column: np.ndarray) -> np.ndarray:
        """A column with its codes as missing values."""
        codes = self.of_column(name)
        if not codes:
            return column
        if column.dtype.kind in "iuf":
            absent = np.isin(column, self.numbers(name))
            return np.where(absent, np.nan, column.astype(float)) if absent.any() else column
        texts, numbers = self.texts(name), self.numbers(name)
        absent = np.array([_is_code(value, texts, numbers) for value in column], bool)
        if not absent.any():
            return column
        plain = column.astype(object)
        plain[absent] = None
        return plain


def _is_code(value: Any, texts: frozenset[str], numbers: tuple[float, ...]) -> bool:
    if isinstance(value, str):
        return value.strip() in texts
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and float(value) in numbers


def _listed(codes: Any) -> tuple[Any, ...]:
    if isinstance(codes, (str, int, float, np.number)):
        return (codes,)
    try:
        found = tuple(codes)
    except TypeError:
        found = (None,)
    if any(not isinstance(code, (str, int, float, np.number)) for code in found):
        raise SettingError(
            f"missing_codes is {codes!r}; give numbers or texts, such as [-9, 'unknown'], for some columns "
            "{'age': [999]}, or [] if no number stands for a missing value"
        )
    return found


def suspects(values: np.ndarray, counts: np.ndarray) -> tuple[float, ...]:
    """Values of a column that look like codes for missing ones: -9 or 99 far from all others.

    Parameters
    ----------
    values : (k,) floats
        The column's distinct values, sorted.
    counts : (k,) floats
        How often each occurs.

    Examples
    --------
    >>> suspects(np.array([-9.0, 0.0, 1.0, 2.0]), np.array([3, 9, 5, 2]))
    (-9.0,)
    >>> suspects(np.array([0.0, 1.0, 2.0, 9.0]), np.array([9, 5, 2, 1]))
    ()
    """
    if not np.isin(values, _ALL).any():
        return ()
    often = dict(zip(values.tolist(), counts.tolist(), strict=True))
    candidates = [v for v in often if v in _NINES or v in _BESIDE_NINES or v in _NEGATIVE_DIGITS]
    others = [v for v in often if v not in candidates]
    if len(others) < 2:
        return ()
    low, high = min(others), max(others)
    whole = all(v == round(v) for v in others)
    found = []
    for code in candidates:
        if code in _NEGATIVE_DIGITS:
            far = low >= 0 and whole and not any(-7 < v < 0 for v in often)
        else:
            far = high <= code / 2 if code > 0 else low >= code / 2
        company = code in _NINES or code in _NEGATIVE_DIGITS or often[code] > 1
        if far and company:
            found.append(code)
    return tuple(sorted([*found, *_single_digits(often, others, whole)]))


def _single_digits(often: Mapping[float, float], others: list[float], whole: bool) -> list[float]:
    """A 9 above a short scale, with 7 and 8 beside it; not the far end of a tail of counts."""
    below = sorted(v for v in others if v < 7)
    above = sorted(v for v in often if v >= 7)
    if not whole or len(below) < 2 or 9.0 not in often or any(v not in (7.0, 8.0, 9.0) for v in above):
        return []
    top, total = below[-1], sum(often.values())
    steps = below == list(range(int(below[0]), int(top) + 1))  # of a scale, none of which is missing
    few = sum(often[v] for v in above) < 0.3 * total
    if below[0] < 0 or (top == 6 and len(above) > 1) or not (steps and few):
        return []
    thin = often[top] < 0.05 * total
    return above if often[9.0] > 1 and (not thin or often[9.0] > often[top]) else []


def means_missing(text: str) -> bool:
    """Whether a text says that something is missing, in words of several languages."""
    return _MEANS_MISSING.search(text) is not None


def by_meaning(labels: Mapping[float, str], values: np.ndarray) -> tuple[float, ...]:
    """Values among those that occur whose labels in the file say that something is missing."""
    there = set(np.asarray(values, float).tolist())
    return tuple(value for value, text in labels.items() if value in there and means_missing(text))


def note(found: Mapping[str, tuple[float, ...]]) -> tuple[str, ...]:
    """What to say of suspected codes, by column: nothing, or one sentence."""
    found = {name: codes for name, codes in found.items() if codes}
    if not found:
        return ()
    shown = [f"'{name}' holds {_written(codes)}" for name, codes in list(found.items())[:4]]
    more = f", and {len(found) - 4} more columns hold such values" if len(found) > 4 else ""
    codes = sorted({code for own in found.values() for code in own})
    return (
        f"{', '.join(shown)}{more}: far from all other values, or called missing in the file. These may stand for "
        f"missing values, and were read as the numbers they are. What to do: say missing_codes=[{_written(codes)}] (on "
        f"the command line: --missing-codes={_written(codes).replace(' ', '')}) if they do, or missing_codes=[] "
        "(--missing-codes=none) if they are numbers.",
    )


def _written(codes: Sequence[float]) -> str:
    return ", ".join(f"{code:g}" for code in codes)


def are_numbers(column: pd.Series) -> bool:
    """Whether a column is of numbers; truth values are none."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def suspected(frame: pd.DataFrame) -> dict[str, tuple[float, ...]]:
    """Suspected codes of a frame's columns of numbers."""
    found = {}
    for name in frame.columns:
        if are_numbers(frame[name]):
            values, counts = np.unique(frame[name].dropna().to_numpy(dtype=float), return_counts=True)
            found[str(name)] = suspects(values, counts)
    return found


MIN_LINES = 5  # the names, and rows of which one may be cut, and more than one is left to compare
MAX_BEGINNING = 2**26  # bytes that are looked at for so many lines

_OTHERS = (
    (b"PK\x03\x04", "an Excel or other zipped file", "give it its own ending (.xlsx), or save it as CSV"),
    (b"\xd0\xcf\x11\xe0", "a workbook of old Excel", "save it as .xlsx or CSV"),
    (b"\x1f\x8b", "compressed (gzip)", "unpack it first"),
    (b"BZh", "compressed (bzip2)", "unpack it first"),
    (b"\xfd7zXZ", "compressed (xz)", "unpack it first"),
    (b"PAR1", "a Parquet file", "let its name end in .parquet"),
    (b"$FL2", "an SPSS file", "let its name end in .sav"),
    (b"$FL3", "an SPSS file", "let its name end in .zsav"),
    (b"<stata_dta>", "a Stata file", "let its name end in .dta"),
    (b"%PDF", "a PDF document", "save the table it shows as CSV"),
    (b"\x80\x04\x95", "a pickled Python object, which is never loaded", "save the table as CSV or Parquet"),
    (b"RDX", "an R workspace", "save the table as CSV in R: write.csv(table, 'table.csv')"),
)
_MARKUP = ((b"<html", "a web page"), (b"<!doctype", "a web page"), (b"<table", "a web page"), (b"<?xml", "XML"))
_BYTE_ORDER_MARKS = (  # the longer ones first: that of UTF-32 begins as that of UTF-16 does
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NAMES = {"utf-8": "UTF-8", "cp1252": "Windows-1252 (Latin-1)"}


def shown(encoding: str) -> str:
    """An encoding's name as people write it."""
    return _NAMES.get(encoding, encoding.upper())


def beginning(path: Path, name: str) -> tuple[str, str, bool]:
    """The first part of a file as text with newlines alike, its encoding, and whether that part is all of it."""
    with path.open("rb") as handle:
        sample = handle.read(2**18)  # bytes, from which all is told if they hold enough lines
        while lines_in(sample) < MIN_LINES and len(sample) < MAX_BEGINNING and (more := handle.read(len(sample))):
            sample += more
        whole = not handle.read(1)
    for magic, what, remedy in _OTHERS:
        if sample.startswith(magic):
            raise DataError(f"{name} is no text: it is {what}. What to do: {remedy}.")
    for mark, what in _MARKUP:
        if sample.lstrip().lower().startswith(mark):
            raise DataError(f"{name} is {what}, not a table. What to do: save the table as CSV.")
    if not whole and lines_in(sample) < MIN_LINES:
        raise DataError(
            f"the first lines of {name} are longer than {MAX_BEGINNING / 2**20:g} MB, and nobody can tell how it is "
            "written. What to do: save the table with a line for each row; close quotation marks."
        )
    encoding = _encoding(sample, whole, name)
    text = codecs.getincrementaldecoder(encoding)("strict").decode(sample, whole)
    if "\0" in text:
        raise DataError(f"{name} holds zero bytes and is no text. What to do: save the table as CSV in UTF-8.")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), encoding, whole


def lines_in(sample: bytes) -> int:
    """How many lines end there, outside of double quotation marks."""
    outside = b"".join(sample.split(b'"')[::2])
    return max(outside.count(b"\n"), outside.count(b"\r"))


def _encoding(sample: bytes, whole: bool, name: str) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if sample.startswith(mark):
            return _required(sample, encoding, whole, name)
    zeros = [sample[first::2].count(0) for first in (0, 1)]
    if max(zeros) > 0.2 * len(sample) and min(zeros) < 0.1 * max(zeros):  # every second byte of Western text
        return _required(sample, "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le", whole, name)
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(sample, whole)
    except UnicodeDecodeError:
        return _required(sample, "cp1252", whole, name)  # which holds all of Latin-1 that is ever written
    return "utf-8"


def _required(sample: bytes, encoding: str, whole: bool, name: str) -> str:
    try:
        codecs.getincrementaldecoder(encoding)("strict").decode(sample, whole)
    except UnicodeDecodeError as problem:
        tried = "neither UTF-8 nor Windows-1252" if encoding == "cp1252" else f"not the {shown(encoding)} it says it is"
        raise DataError(
            f"{name} cannot be read: its text is {tried} (byte {problem.start + 1}). What to do: save it as UTF-8."
        ) from None
    return encoding


def shown_name(path: Path) -> str:
    """A file's name as text, whatever bytes it is made of."""
    return os.fsencode(path.name or path.absolute().name).decode("utf-8", "replace")


POINT, COMMA = ".", ","
DECIMALS = (POINT, COMMA)
_APART = " \u00a0\u2009\u202f'\u2019"  # spaces and apostrophes that group thousands whatever the decimal mark
_MINUS = str.maketrans({"\u2212": "-"})
_PLAIN = {
    mark: re.compile(rf"[+-]?(?:[0-9]+(?:[{mark}][0-9]*)?|[{mark}][0-9]+)(?:[eE][+-]?[0-9]+)?") for mark in DECIMALS
}
_GROUPED = {
    mark: re.compile(rf"[+-]?[1-9][0-9]{{0,2}}([{other}{_APART}])[0-9]{{3}}(?:\1[0-9]{{3}})*(?:[{mark}][0-9]+)?")
    for mark, other in ((POINT, COMMA), (COMMA, POINT))
}
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)

Number = int | float


def under(text: str, mark: str) -> Number | None:
    """The number that a text is under a decimal mark; None if it is none.

    Examples
    --------
    >>> under("1,234", "."), under("1,234", ","), under("1,23", ".")
    (1234, 1.234, None)
    """
    plain = text.strip().translate(_MINUS)
    if _GROUPED[mark].fullmatch(plain):
        plain = "".join(c for c in plain if c in f"0123456789+-{mark}")
    elif not _PLAIN[mark].fullmatch(plain):
        return float(plain) if _INFINITE.fullmatch(plain) else None
    plain = plain.replace(mark, POINT)
    digits = plain.lstrip("+-")
    return int(plain) if digits.isdigit() and len(digits) < 5000 else float(plain)


def readings(text: str) -> dict[str, Number]:
    """The numbers that a text may be, by decimal mark."""
    found = {mark: under(text, mark) for mark in DECIMALS}
    return {mark: value for mark, value in found.items() if value is not None}


def is_number(text: str) -> bool:
    """Whether a text is a number under some decimal mark."""
    return bool(readings(text))


def doubtful(text: str) -> bool:
    """Whether a text is two different numbers, by the decimal mark."""
    return len(set(readings(text).values())) > 1


def both(text: str) -> str:
    """What a doubtful text may be, in words."""
    found = readings(text)
    shown = {mark: f"{value:.15g}" for mark, value in found.items()}
    grouping = {POINT: "commas", COMMA: "points"}
    whole = next(mark for mark in DECIMALS if isinstance(found[mark], int))
    other = COMMA if whole == POINT else POINT
    name = {POINT: "decimal point", COMMA: "decimal comma"}[other]
    return f"{shown[whole]} ({grouping[whole]} group thousands) or {shown[other]} (a {name})"


def evidence(texts: Iterable[str]) -> dict[str, str]:
    """For each decimal mark a text that is a number under that one only.

    None where many of the texts are no numbers: those of dates, versions or lists tell nothing.
    """
    found: dict[str, str] = {}
    seen = strange = 0
    for text in texts:
        if POINT not in text and COMMA not in text:
            continue
        of = readings(text)
        seen, strange = seen + 1, strange + (not of)
        if len(of) == 1 and not _INFINITE.fullmatch(text):
            found.setdefault(next(iter(of)), text)
        if seen == CELLS_LOOKED_AT:  # texts of a column are evidence enough
            break
    return {} if strange > 0.1 * seen else found


@dataclass(frozen=True)
class Marks:
    """Which decimal mark a source uses, by column where a column's own numbers tell it.

    Attributes
    ----------
    given : str, optional
        What the user said, which nothing else overrules.
    columns : mapping
        Marks of columns by their own evidence.
    file : str, optional
        That of all columns with evidence, if they agree.
    comma_separates : bool
        Whether values are separated by commas, which speaks for decimal points.
    """

    given: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    file: str | None = None
    comma_separates: bool = False

    @classmethod
    def of(cls, columns: Mapping[str, Iterable[str]], given: str | None, comma_separates: bool) -> Marks:
        """From texts of each column."""
        if given is not None:
            return cls(given, comma_separates=comma_separates)
        seen = {name: evidence(texts) for name, texts in columns.items()}
        all_marks = {mark for found in seen.values() for mark in found}
        clear = {name: next(iter(found)) for name, found in seen.items() if len(found) == 1}
        return cls(None, clear, all_marks.pop() if len(all_marks) == 1 else None, comma_separates)

    def numbers(self, name: str, texts: Iterable[str]) -> dict[str, Number]:
        """The numbers among a column's texts; without those that may be two numbers where nothing tells which."""
        texts = list(texts)
        mark = self.given or self.columns.get(name)
        if mark is None:
            own = evidence(texts)
            if len(own) > 1:  # points and commas in one column: none of the marked texts is trusted
                return {text: under(text, POINT) for text in texts if _unmarked(text)}  # type: ignore[misc]
            mark = next(iter(own), self.file)
        if mark is not None:
            found = {text: under(text, mark) for text in texts}
        else:  # between commas a lone point is decimal, unless whole numbers stand beside it: thousands below 1000
            points = self.comma_separates and not any(map(_whole, texts))
            found = {text: _alone(text, points) for text in texts}
        return {text: value for text, value in found.items() if value is not None}

    def sure(self, name: str) -> str | None:
        """A column's decimal mark, if that is known before its texts are seen."""
        return self.given or self.columns.get(name) or self.file


def _alone(text: str, points: bool) -> Number | None:
    """The number that a text is by itself; points are decimal where that is known."""
    found = readings(text)
    if len(set(found.values())) > 1:
        return found[POINT] if points and POINT in text else None
    return next(iter(found.values()), None)


def _whole(text: str) -> bool:
    """Whether a text is a whole number without a mark; zeros aside, which nothing is told by."""
    return text.strip("+- ").isdigit() and text.strip("+-0 ") != ""


def _unmarked(text: str) -> bool:
    return len(set(readings(text).values())) == 1 and len(readings(text)) == 2


BLOCK_BYTES = 2**22  # that are taken apart at a time: larger blocks are no faster, as measured
_MISSING = pa.array(sorted(WORDS))
_TRUTH = {"true": True, "false": False}

Texts = dict[str, pa.Array]
Columns = dict[str, np.ndarray]
Words = Mapping[str, Sequence[str]]
NO_WORDS: Words = MappingProxyType({})


@dataclass
class Ragged:
    """Rows that have other than the right number of cells, counted from ``begins``, and how many each has."""

    rows: list[int] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)
    begins: int = 0

    def tell(self, problems: Problems, width: int) -> None:
        """Add to what is wrong with a table of so many columns."""
        problems.skipped += [self.begins + row for row in self.rows]
        for more in (True, False):
            which = [i for i, cells in enumerate(self.cells) if (cells > width) == more]
            if which:
                word, has = ("more", self.cells[which[0]]) if more else ("fewer", self.cells[which[0]])
                shown = [self.begins + self.rows[i] + 1 for i in which[:5]]
                problems.found.append(
                    Problem(
                        f"row {shown[0]} has {word} cells ({has}) than there are columns ({width})",
                        "Correct the lines; a text that holds a separator needs quotation marks around it.",
                        tuple(shown),
                        len(which),
                    )
                )

    def refuse(self, name: str, width: int) -> None:
        """Raise `DataError` if there are any."""
        problems = Problems(name)
        self.tell(problems, width)
        problems.refuse()


@dataclass(frozen=True)
class TextFile:
    """A file of separated values; its size is in bytes."""

    path: Path
    dialect: Dialect
    codes: MissingCodes
    begins: int = 0

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    @property
    def names(self) -> tuple[str, ...]:
        return self.dialect.names

    def chunks(
        self, columns: Sequence[str], rows: int, words: Words = NO_WORDS, ragged: Ragged | None = None
    ) -> Iterator[tuple[Columns, int]]:
        """So many rows at a time; texts among numbers stay texts. Rows that are ragged are left out, and told."""
        for texts, read in self.texts(rows, ragged):
            yield {name: self.column(texts[name], name, words.get(name, ())) for name in columns}, read

    def column(self, texts: pa.Array, name: str, words: Sequence[str] = ()) -> np.ndarray:
        """A column of numbers, truth values, or whatever it holds; with ``words`` of texts, which may be among them."""
        if words:
            return as_texts(texts, WORDS - set(words))
        return typed(texts, name, self.dialect.marks, self.codes.texts(name))

    def texts(self, rows: int, ragged: Ragged | None = None) -> Iterator[tuple[Texts, int]]:
        """All columns as they are written, so many rows at a time, and how many bytes were read for them."""
        given, done = ragged, 0
        ragged = Ragged() if given is None else given
        with readable(self.path), self.path.open("rb") as handle:
            for batch, last in _and_whether_last(self._filled(self._batches(handle, ragged))):
                for first in range(0, batch.num_rows, rows):
                    at = self.size if last and first + rows >= batch.num_rows else min(handle.tell(), self.size)
                    yield {name: batch.column(name).slice(first, rows) for name in self.names}, at - done
                    done = at
        if given is None:
            ragged.refuse(shown_name(self.path), len(self.names))

    def _batches(self, handle: BinaryIO, ragged: Ragged) -> Iterator[pa.RecordBatch]:
        """All rows below the names, as texts."""
        yield from self._by_csv(handle, ragged) if self.dialect.loose else self._by_arrow(handle, ragged)

    def _by_arrow(self, handle: BinaryIO, ragged: Ragged) -> Iterator[pa.RecordBatch]:
        dialect, headed, checked = self.dialect, self.dialect.headed, False

        def unlike(row: Any) -> str:
            nonlocal headed
            if headed and row.number == 1 + dialect.skipped:
                headed = False  # the line of names may be shorter than the others
            elif row.text.strip(" \t\x1a"):  # which ends files of old programs
                ragged.rows.append(row.number - 1 - dialect.skipped - dialect.headed)
                ragged.cells.append(row.actual_columns)
            return "skip"

        reader = pyarrow.csv.open_csv(
            handle,
            pyarrow.csv.ReadOptions(
                use_threads=False,  # for rows are numbered only then
                # Two rows of letters of up to four bytes, one of which may be cut.
                block_size=max(BLOCK_BYTES, 2 * 4 * dialect.longest),
                skip_rows=dialect.skipped,
                column_names=list(self.names),
                encoding=dialect.encoding,
            ),
            pyarrow.csv.ParseOptions(
                delimiter=dialect.separator,
                quote_char=dialect.quote,
                newlines_in_values=True,
                ignore_empty_lines=len(self.names) > 1,
                invalid_row_handler=unlike,
            ),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(self.names, pa.string()), strings_can_be_null=False, check_utf8=True
            ),
        )
        for batch in _of_rows(reader, self.path):
            if headed and batch.num_rows:
                batch, headed = batch.slice(1), False
            if not checked and any(b"\n" in raw or b"\r" in raw for raw in map(_raw, batch.columns)):
                checked = self._require_closed()
            yield batch

    def _require_closed(self) -> bool:
        """Refuse a file in which a quotation mark opens that nothing closes: it would swallow the lines after it."""
        with self.path.open(encoding=_python(self.dialect.encoding), newline="") as lines:
            reader = csv.reader(
                islice(lines, self.dialect.skipped, None),
                delimiter=self.dialect.separator,
                quotechar=self.dialect.quote,
                strict=True,
            )
            begins = 0
            try:
                with long_cells():
                    for _ in reader:
                        begins = reader.line_num
            except csv.Error:
                raise self._unclosed(begins + 1) from None
        return True

    def _unclosed(self, line: int) -> DataError:
        return DataError(
            f"a quotation mark near line {line + self.dialect.skipped} of {shown_name(self.path)} is not closed, or "
            "stands inside a text, so nobody can tell where cells end. What to do: close it, or double the marks "
            "inside a text."
        )

    def _by_csv(self, handle: BinaryIO, ragged: Ragged) -> Iterator[pa.RecordBatch]:
        """The same by Python's csv module, which is slower and knows of spaces around cells."""
        dialect, width = self.dialect, len(self.names)
        decoded = io.TextIOWrapper(handle, _python(dialect.encoding), newline="")
        lines = islice(decoded, dialect.skipped, None)
        reader = csv.reader(
            tidied(lines, dialect.separator),
            delimiter=dialect.separator,
            quotechar=dialect.quote,
            skipinitialspace=True,
            strict=True,
        )
        row = -dialect.headed

        def some_rows() -> list[list[str]]:
            with long_cells():
                return list(islice(reader, 50_000))

        try:
            while some := some_rows():
                kept = []
                for cells in some:
                    if not cells:
                        continue
                    if row >= 0 and len(cells) == width:
                        kept.append(cells)
                    elif row >= 0:
                        ragged.rows.append(row)
                        ragged.cells.append(len(cells))
                    row += 1
                columns = [pa.array(list(column), pa.string()) for column in zip(*kept, strict=True)] if kept else []
                yield pa.RecordBatch.from_arrays(columns, list(self.names)[: len(columns)])
        except csv.Error:
            raise self._unclosed(reader.line_num) from None
        finally:
            decoded.detach()  # the file is not ours to close

    def _filled(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Without rows in which every cell is empty; of a single column only those at the end: others are missing."""
        waiting = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            empty = pc.equal(batch.column(len(self.names) - 1), "")
            if not pc.any(empty).as_py():
                blank = np.zeros(batch.num_rows, bool)
            else:
                blank = np.logical_and.reduce([np.asarray(pc.equal(column, "")) for column in batch.columns])
            if len(self.names) > 1:
                batch = batch.filter(pa.array(~blank)) if blank.any() else batch
            else:
                if waiting and not blank.all():
                    yield pa.RecordBatch.from_arrays([pa.array([""] * waiting)], list(self.names))
                    waiting = 0
                kept = 0 if blank.all() else len(blank) - int(np.argmin(blank[::-1]))
                waiting += len(blank) - kept
                batch = batch.slice(0, kept)
            if batch.num_rows:
                yield batch


def _of_rows(reader: Iterator[pa.RecordBatch], path: Path) -> Iterator[pa.RecordBatch]:
    """The batches of a reader; a row that no block holds is refused."""
    try:
        yield from reader
    except pa.ArrowInvalid as problem:
        if "straddling" not in str(problem):
            raise
        raise DataError(
            f"{shown_name(path)} has a row of more than {BLOCK_BYTES / 2**20:g} MB. What to do: leave out the column "
            "of long texts; a quotation mark that nothing closes makes one of many rows."
        ) from problem


def _and_whether_last(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, bool]]:
    before = None
    for batch in batches:
        if before is not None:
            yield before, False
        before = batch
    if before is not None:
        yield before, True


def _python(encoding: str) -> str:
    return "utf-8-sig" if encoding == "utf-8" else encoding


def _raw(column: pa.Array) -> bytes:
    """The memory that holds a column's texts, and may hold more."""
    data = column.buffers()[2]
    return b"" if data is None else memoryview(data).tobytes()


def as_texts(texts: pa.Array, missing: frozenset[str] | set[str] = WORDS) -> np.ndarray:
    """A column of texts; None where one is missing."""
    trimmed = pc.utf8_trim_whitespace(texts)
    absent = pc.is_in(trimmed, value_set=pa.array(sorted(missing), pa.string()))
    return np.asarray(pc.if_else(absent, None, trimmed).to_pylist(), dtype=object)


def typed(texts: pa.Array, name: str, marks: Marks, codes: frozenset[str] = frozenset()) -> np.ndarray:
    """A column as integers, floats or truth values if all of it is that; else numbers, and texts where they are none.

    What is missing is NaN, and None beside texts.
    """
    found = _quickly(texts, marks.sure(name))
    if found is not None:
        return found
    coded = pc.utf8_trim_whitespace(texts).dictionary_encode()
    distinct, index = coded.dictionary.to_pylist(), coded.indices.to_numpy()
    known = [text for text in distinct if text not in WORDS and text not in codes]
    numbers = marks.numbers(name, known)
    among = bool(numbers) or any(map(doubtful, known))
    rest = [text for text in known if text not in numbers and not (among and text in AMONG_NUMBERS)]
    if not rest:
        if len(numbers) == len(distinct) and all(isinstance(v, int) and abs(v) < 2**63 for v in numbers.values()):
            return np.array([numbers[text] for text in distinct], dtype=np.int64)[index]
        return np.array([float(numbers.get(text, np.nan)) for text in distinct], dtype=float)[index]
    if not numbers and all(text.lower() in _TRUTH for text in rest):
        truth = np.array([_TRUTH.get(text.lower()) for text in distinct], dtype=object)[index]
        return truth.astype(bool) if len(rest) == len(distinct) else truth
    kept = dict.fromkeys(rest) | numbers
    values = np.empty(len(distinct), dtype=object)
    for i, text in enumerate(distinct):
        values[i] = text if text in kept and text not in numbers else numbers.get(text)
    return values[index]


def _quickly(texts: pa.Array, mark: str | None) -> np.ndarray | None:
    """A column of plain numbers by the library's own conversion; None if it holds anything else."""
    raw = _raw(texts)
    if any(letter in raw for letter in (b"x", b"X")):
        return None  # the library would read hexadecimal numbers
    marked = [sign for sign in (b".", b",", b"e", b"E") if sign in raw]
    if not marked:
        try:
            return pc.cast(texts, pa.int64()).to_numpy()
        except pa.ArrowInvalid:
            pass
    elif mark is None or (mark == COMMA and b"." in marked):
        return None
    known = pc.if_else(pc.is_in(texts, value_set=_MISSING), None, texts)
    try:
        if marked:
            plain = known if mark == POINT else pc.replace_substring(known, COMMA, POINT)
            return pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False)
        return pc.cast(pc.cast(known, pa.int64()), pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None


def whole_column(pieces: Sequence[tuple[Any, Any]], name: str) -> np.ndarray:
    """A column of all rows, of numbers or truth values if all of it is that, and of texts otherwise.

    Each piece is a part of a table with what it holds: texts of a file, or an array.
    """
    if not pieces:
        return np.array([], dtype=object)
    parts = [part.column(own, name) if isinstance(own, pa.Array) else own for part, own in pieces]
    if any(part.dtype == object and any(isinstance(value, str) for value in part) for part in parts):
        parts = [
            as_texts(own, WORDS | part.codes.texts(name)) if isinstance(own, pa.Array) else own for part, own in pieces
        ]
    return np.concatenate(parts)


SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
ROWS_LOOKED_AT = 1000  # from which separator, names and kinds of columns are told
CELLS_LOOKED_AT = 200  # of a column, of these, which are read as numbers or dates to tell its kind
Cells = list[list[str]]


@contextmanager
def long_cells() -> Iterator[None]:
    """Let the csv module read cells beyond its usual 128 kB; its limit is the whole process's, and is given back."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


@dataclass(frozen=True)
class Dialect:
    """How a text file is written.

    Attributes
    ----------
    names : tuple of str
        Of all columns, also of those that the file does not name (``nameless``).
    headed : bool
        Whether its first line holds the names.
    skipped : int
        Lines before that, which are none of the table: ``sep=;``, or comments.
    loose : bool
        Whether there may be spaces around separators and quoted texts.
    longest : int
        Letters in the longest row of its beginning, where this is long.
    """

    encoding: str
    separator: str
    quote: str
    names: tuple[str, ...]
    headed: bool
    skipped: int
    loose: bool
    marks: Marks
    nameless: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    longest: int = 0

    @property
    def words(self) -> str:
        """In words, for people."""
        apart = "one column" if len(self.names) == 1 else f"separated by {SEPARATORS[self.separator]}"
        mark = {".": ", decimal points", ",": ", decimal commas", None: ""}[self.marks.given or self.marks.file]
        return f"{apart}{mark}, {shown(self.encoding)}"


def sniff(path: Path, name: str, decimal: str | None = None) -> Dialect:
    """How a file is written; ``decimal`` is what the user says of its decimal mark."""
    text, encoding, whole = beginning(path, name)
    lines = text.split("\n")
    skipped, declared = 0, None
    while skipped < len(lines) and (not lines[skipped].strip() or re.match(r'#|"?sep=', lines[skipped], re.I)):
        if lines[skipped].strip('"')[:4].lower() == "sep=":
            declared = lines[skipped].strip('"')[4:5]
        skipped += 1
    body = "\n".join(lines[skipped:])
    empty = DataError(f"{name} is empty: it needs a line of column names and at least two rows")
    if not body.strip():
        raise empty
    quote = _quote(body)
    few = "\n".join(lines[skipped : skipped + ROWS_LOOKED_AT])
    if lines_in(few.encode()) < MIN_LINES:  # a cell has more lines than that
        few = body
    tables = {s: _cells(few, s, quote, whole and len(few) == len(body)) for s in SEPARATORS}
    separator = declared if declared in SEPARATORS else _separator(tables, path.suffix.lower(), name)
    cells = tables[separator]
    if not cells:  # a quotation mark and nothing else
        raise empty
    padded = re.search(rf"{re.escape(separator)} +{quote}", body) is not None
    heading = body.lstrip("\n").split("\n", 1)
    quoted = quote in heading[0] and quote not in "".join(heading[1:])[:2000].split("\n")[0]
    names, headed = names_of(cells, name, quoted)
    marks = _marks(cells[headed:], names, decimal, separator)
    longer, marked = len(lines) > skipped + ROWS_LOOKED_AT, "." in body or "," in body.replace(separator, "")
    if marks.file is None and longer and marked:
        marks = _marks(_cells(body, separator, quote, whole)[headed:], names, decimal, separator)
    notes: tuple[str, ...] = (_zero(name),) if not headed and len(names) == 1 and cells[0] == ["0"] else ()
    if encoding == "cp1252":
        odd = next((word for word in re.findall(r"\w+", text) if not word.isascii()), "")
        notes += (
            f"{name} is not in UTF-8 and was read as Windows-1252 (Latin-1){f': {odd!r}, for example' if odd else ''}. "
            "What to do: nothing if names and texts look right; else save it as UTF-8.",
        )
    return Dialect(
        encoding,
        separator,
        quote,
        names,
        headed,
        skipped,
        padded or separator == " ",
        marks,
        nameless(names),
        notes,
        max(sum(map(len, row)) + len(row) for row in cells),
    )


def _marks(rows: Cells, names: tuple[str, ...], decimal: str | None, separator: str) -> Marks:
    rows = [row for row in rows if len(row) == len(names)]
    columns = {own: dict.fromkeys(row[j] for row in rows) for j, own in enumerate(names)}
    return Marks.of(columns, decimal, separator == "," and len(names) > 1)


def _zero(name: str) -> str:
    return (
        f"the first line of {name} is 0 and was read as a row; pandas writes such a line as the name of a column "
        "without one. What to do: write a name above the data."
    )


def _quote(body: str) -> str:
    """Double quotation marks, or single ones where only these stand around the first line's cells."""
    first = body.lstrip("\n").split("\n", 1)[0].strip()
    return "'" if '"' not in body and re.fullmatch(r"'[^']*'([,;\t| ]+'[^']*')*", first) else '"'


def tidied(lines: Iterator[str] | Sequence[str], separator: str) -> Iterator[str]:
    """Lines as the csv module reads them: where spaces separate, none at the ends, and no tabs between."""
    for line in lines:
        yield f"{line.strip().expandtabs(1)}\n" if separator == " " else line


def _cells(body: str, separator: str, quote: str, whole: bool) -> Cells:
    """The cells of a text, without empty lines; the last line of a part of a file may be cut, and is left out."""
    lines = tidied(io.StringIO(body), separator)
    reader = csv.reader(lines, delimiter=separator, quotechar=quote, skipinitialspace=True)
    try:
        with long_cells():
            found = [row for row in reader if row and row != [""]]
    except csv.Error:  # a cell of more than 2 GB
        return []
    return [[cell.strip() for cell in row] for row in (found if whole or len(found) < 2 else found[:-1])]


def _separator(tables: dict[str, Cells], suffix: str, name: str) -> str:
    """The separator under which all lines have as many cells; none of two that both make a table of numbers."""
    regular = {s: _share(cells) for s, cells in tables.items() if _width(cells) > 1}
    alone = _share(tables["\t"]) if _width(tables["\t"]) == 1 else 0.0  # as one column, commas and all
    if regular:
        if " " in regular and len(regular) > 1 and regular[" "] < 1:
            del regular[" "]  # names and texts hold spaces, too
        if list(regular) == [" "] and regular[" "] == 0:
            return "\t"  # texts of so many words each
        if regular.get("\t") == regular.get(" "):
            regular.pop(" ", None)  # whose columns are those of the tabs, which are read as spaces there
        best = max(regular, key=lambda s: regular[s])
        rivals = [s for s in regular if s != best and regular[s] == regular[best]]
        rivals = [] if rivals and "\t" in (best, *rivals) and suffix == ".tsv" else rivals
        if rivals:
            raise DataError(
                f"{name} may be separated by {SEPARATORS[best]} or by {SEPARATORS[rivals[0]]}: under both, all lines "
                f"have as many cells. What to do: put a first line that says which, for example sep={best}"
            )
        if alone == 1 and best in ", " and _width(tables[best]) == 2:
            _require_two(tables, best, suffix, name)
        return best
    if alone == 1 and all(len(cells[0]) == 1 for cells in tables.values() if cells):
        return "\t"  # a column of decimal commas
    if all(_width(tables[s]) == 1 for s in ",;\t|"):
        return "\t"
    default = "\t" if suffix == ".tsv" else ","
    return max((default, *SEPARATORS), key=lambda s: _agreement(tables[s]))


def _require_two(tables: dict[str, Cells], separator: str, suffix: str, name: str) -> None:
    """Refuse two columns that may be one of numbers with decimal commas, or with spaces between thousands."""
    first, alone = tables[separator][0], tables["\t"]
    bare = _numeric(alone[0][0]) and (separator == " " or suffix != ".csv")  # commas are what .csv says
    if len(first) == 1 or bare:
        raise DataError(
            f"{name} may be one column of numbers such as {alone[-1][0]}, or two columns separated by "
            f"{SEPARATORS[separator]}. What to do: write sep=; above the data if it is one column; if it is two, put "
            "semicolons between them, and a line with the names of both above."
        )


def _width(cells: Cells) -> int:
    """How many cells all lines have; 0 if they differ. The first line may have one less, or a last one without name."""
    if not cells:
        return 0
    first, widths = len(cells[0]), {len(row) for row in cells[1:]}
    if len(widths) > 1:
        return 0
    width = widths.pop() if widths else first
    if first == width:
        return width
    if first == width - 1 and (_trailing(cells) or _row_names(cells)):
        return width
    return width if first == width + 1 and cells[0][-1] == "" else 0


def _trailing(cells: Cells) -> bool:
    """Whether every line but the first ends in a separator."""
    return all(row[-1] == "" for row in cells[1:])


def _row_names(cells: Cells) -> bool:
    """Whether the lines below the first begin with names of rows, as R writes them."""
    return len({row[0] for row in cells[1:]}) == len(cells) - 1 and not all(map(is_number, cells[0]))


def _share(cells: Cells) -> float:
    """The share of numbers and missing values among the cells below the first line."""
    below = [cell for row in cells[1 : 1 + CELLS_LOOKED_AT] or cells for cell in row]
    return sum(map(_numeric, below)) / max(1, len(below))


def _agreement(cells: Cells) -> float:
    """The share of lines with as many cells as most, which are several."""
    if not cells or len(cells[0]) < 2:
        return 0.0
    return Counter(len(row) for row in cells).get(len(cells[0]), 0) / len(cells)


def _numeric(cell: str) -> bool:
    return cell in WORDS or cell in AMONG_NUMBERS or is_number(cell)


def repeated(names: Sequence[str]) -> list[str]:
    """The names that occur more than once, sorted."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def unique(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of columns, no two of which may be the same."""
    for twice in repeated(names):
        raise DataError(f"two columns are called '{twice}': rename one")
    return names


def nameless(names: Sequence[str]) -> tuple[str, ...]:
    """Those that stand for a column without a name, here and in pandas."""
    return tuple(name for name in names if name.startswith("Unnamed: "))


def names_of(cells: Cells, name: str, quoted: bool = False) -> tuple[tuple[str, ...], bool]:
    """Names of the columns, and whether the file has them: a first line of numbers is data.

    Numbers that are counted up (0, 1, 2 or 2019, 2020) may be names as well, and nobody can tell.
    """
    names, headed = _first_line(cells, name, quoted)
    return tuple(own or f"Unnamed: {j}" for j, own in enumerate(names)), headed


def _first_line(cells: Cells, name: str, quoted: bool) -> tuple[tuple[str, ...], bool]:
    first, width = cells[0], _width(cells) or len(cells[0])
    below = [row for row in cells[1:] if len(row) == width]
    if len(first) == width - 1:
        return ((*first, "") if _trailing(cells) else ("", *first)), True
    if len(first) == width + 1:
        return tuple(first[:-1]), True
    numbers = [cell for cell in first if is_number(cell)]
    words = [j for j, cell in enumerate(first) if not _numeric(cell)]
    unnamed = tuple(f"x{j + 1}" if width > 1 else "x" for j in range(width))
    if quoted or (not numbers and not words):
        return tuple(first), True
    varied = [j for j in words if len({row[j] for row in below} - WORDS) > 1]  # some tick boxes by their names
    again = [j for j in varied if any(row[j] == first[j] for row in below)]
    if not words:
        if len(numbers) == len(first) and _counted_up(first):
            raise DataError(_names_or_row(name, first))
        return unnamed, False
    if again == words:
        return unnamed, False  # a row like those below
    like = all(_numeric(row[j]) for row in below[:CELLS_LOOKED_AT] for j, cell in enumerate(first) if is_number(cell))
    if again or (numbers and like and not _counted_up(numbers) and below):
        raise DataError(_names_or_row(name, first))
    return tuple(first), True


def _names_or_row(name: str, first: list[str]) -> str:
    shown = ", ".join(first[:6]) + (", ..." if len(first) > 6 else "")
    return (
        f"the first line of {name} is {shown}: are these names of columns or a row of data? "
        "Write a line of names that are not numbers above the data, or in place of the numbers."
    )


def _counted_up(cells: Sequence[str]) -> bool:
    """Whether cells are what a program writes as names where there are none: 0, 1, 2, ... or a run of numbers."""
    try:
        values = [int(cell) for cell in cells]
    except ValueError:
        return False
    run = values == list(range(values[0], values[0] + len(values)))
    return run and len(values) > 1


@contextmanager
def readable(path: Path, *errors: type[Exception]) -> Iterator[None]:
    """What goes wrong while a file is read, as an error that names the file; ``errors`` are a library's own."""
    try:
        yield
    except DataError:
        raise
    except (ValueError, OSError, pa.ArrowException, *errors) as problem:
        said = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        if isinstance(problem, UnicodeDecodeError) or "UTF8" in said:
            said = f"a later part is not in the encoding of its beginning ({said}). What to do: save it as UTF-8"
        raise DataError(f"{shown_name(path)} cannot be read: {said}") from problem
