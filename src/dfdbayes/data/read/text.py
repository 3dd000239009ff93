"""Text files a chunk at a time: every cell is read as text, and becomes a number only where it is one.

Lines with too many or too few cells are never filled up or cut: they are problems, and named.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ...errors import DataError
from .dialect import Dialect, long_cells, tidied
from .encodings import shown_name
from .missing_codes import AMONG_NUMBERS, WORDS, MissingCodes
from .numerals import COMMA, POINT, Marks, doubtful
from .problems import ROWS, Problem, Problems, readable

BLOCK = 2**22  # bytes that are taken apart at a time
ROWS_A_BLOCK = 2  # that a block must hold, of the longest kind: one may be cut
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
                shown = [self.begins + self.rows[i] + 1 for i in which[:ROWS]]
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
                block_size=max(BLOCK, ROWS_A_BLOCK * 4 * dialect.longest),  # a letter has up to four bytes
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
            f"{shown_name(path)} has a row of more than {BLOCK / 2**20:g} MB. What to do: leave out the column of long "
            "texts; a quotation mark that nothing closes makes one of many rows."
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
