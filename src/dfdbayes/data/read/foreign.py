"""Files of other programs, read into memory: Excel workbooks, SPSS and Stata files.

Values only: no macro runs, and no formula is computed.
"""

from __future__ import annotations

import importlib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..._util.resources import fits_memory, memory
from ...errors import DataError
from .text import AMONG_NUMBERS, CELLS_LOOKED_AT, WORDS, Marks, MissingCodes, names_of, readable, shown_name, unique

EXCEL = (".xlsx",)
LABELLED = (".sav", ".zsav", ".dta")
# Files that other programs can save as one of those we read.
ELSEWHERE = {
    **dict.fromkeys((".xls", ".xlsb", ".ods"), "save it as .xlsx or CSV"),
    ".xlsm": "save it as .xlsx, without its macros, or as CSV",
    ".sas7bdat": "save it as CSV, or read it with pandas.read_sas and give the frame",
    ".por": "save it as .sav",
    **dict.fromkeys(
        (".rds", ".rda", ".rdata"),
        "save the table as CSV in R: write.csv(table, 'table.csv', row.names = FALSE)",
    ),
    ".json": "save the table as CSV, or read it with pandas.read_json and give the frame",
    **dict.fromkeys(
        (".pkl", ".pickle"),
        "pickled files run code when they are loaded, and never are here: save the table as CSV or Parquet",
    ),
    ".npy": "load it with numpy.load and give the array",
    **dict.fromkeys((".gz", ".zip", ".bz2", ".xz"), "unpack it first"),
}


MAX_SHEET_CELLS = 10_000_000  # a minute to read, and a gigabyte
MAX_SHEET_ROWS = 2**20  # that Excel has
MAX_UNPACKED_SHEETS = 2**29  # bytes, at some 50 for each cell
MAX_UNPACKED_REST = 2**26  # bytes of all else in a workbook, such as texts and styles, which is read as a whole


class Foreign(NamedTuple):
    """The columns of a file; what values mean there, by column; whether the names are the file's own.

    ``written`` are the columns before texts that are numbers became numbers.
    """

    arrays: dict[str, np.ndarray]
    labels: Mapping[str, Mapping[float, str]]
    written: Mapping[str, np.ndarray]
    named: bool = True


def _library(name: str, extra: str, path: Path, kind: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise DataError(
            f"{shown_name(path)} is {kind}, and reading it needs {name}. What to do: pip install 'dfdbayes[{extra}]', "
            "or save the table as CSV."
        ) from None


def labelled(path: Path, codes: MissingCodes) -> Foreign:
    """An SPSS or Stata file: codes as numbers, and what they mean; what the file declares missing is missing."""
    library = _library("pyreadstat", "spss", path, "an SPSS or Stata file")
    read = library.read_dta if path.suffix.lower() == ".dta" else library.read_sav
    with readable(path, Exception):  # the library has errors of its own, and passes on those of C
        _, about = read(str(path), metadataonly=True)
        wide = sum(map(int, about.variable_storage_width.values())) + 8 * len(about.column_names)
        require_held((about.number_rows or 0) * wide, shown_name(path))
        frame, about = read(str(path))
    arrays = {}
    texts = {str(c): [v for v in frame[c] if isinstance(v, str)] for c in frame.columns}
    marks = Marks.of(texts, None, False)
    for column in frame.columns:
        values = frame[column].to_numpy()
        if values.dtype == object:
            values = _column([None if _absent(value) else value for value in values], str(column), marks, codes)
        elif values.dtype.kind == "f" and np.isfinite(values).all() and (values == np.round(values)).all():
            values = values.astype(np.int64) if np.abs(values).max(initial=0) < 2**53 else values
        arrays[str(column)] = values
    meanings = {
        str(column): {float(value): str(text) for value, text in own.items() if _is_plain(value)}
        for column, own in about.variable_value_labels.items()
    }
    return Foreign(arrays, meanings, {str(column): frame[column].to_numpy() for column in frame.columns})


def require_held(needed: float, name: str) -> None:
    """Refuse a table that says that it is larger than the machine's memory, before it is read there."""
    if not fits_memory(needed):
        raise DataError(
            f"{name} holds {needed / 2**30:,.0f} GiB of values, and the machine has {memory() / 2**30:,.0f} GiB of "
            "memory. What to do: save the columns that are needed in a file of their own."
        )


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip() in WORDS) or value != value


def _is_plain(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def excel(path: Path, decimal: str | None, codes: MissingCodes) -> Foreign:
    """The one sheet of a workbook that holds data."""
    name = shown_name(path)
    library = _library("openpyxl", "excel", path, "an Excel workbook")
    with readable(path, Exception):  # of zip, XML and the library alike
        _require_unpackable(path)
        book = library.load_workbook(path, read_only=True, data_only=True)
        sheets = {sheet.title: _rows(sheet) for sheet in book.worksheets}
        book.close()
    sheets = {title: rows for title, rows in sheets.items() if rows}
    if not sheets:
        raise DataError(f"{name} is empty: it needs a line of column names and at least two rows")
    if len(sheets) > 1:
        titles = ", ".join(f"'{title}'" for title in list(sheets)[:6])
        raise DataError(
            f"{name} has {len(sheets)} sheets with data ({titles}). What to do: save the one to use in a file of its "
            f"own, or give pandas.read_excel({name!r}, sheet_name={next(iter(sheets))!r})."
        )
    ((title, rows),) = sheets.items()
    _require_computed(library, path, title, rows)
    top, width = rows[0], len(rows[0])
    if sum(cell is not None for cell in top) < 2 <= width and sum(cell is not None for cell in rows[-1]) > 1:
        raise DataError(
            f"the first row of {name} holds {top[0]!r} alone, and the table below is {width} columns wide. What to do: "
            "remove the lines above the column names."
        )
    shown = [["" if cell is None else str(cell) for cell in row] for row in rows[: 1 + CELLS_LOOKED_AT]]
    names, headed = names_of(shown, name)
    body = rows[1:] if headed else rows
    raw = {own: [row[j] for row in body] for j, own in enumerate(unique(names))}
    marks = Marks.of(
        {own: dict.fromkeys(c.strip() for c in cells if isinstance(c, str)) for own, cells in raw.items()},
        decimal,
        False,
    )
    written = {own: _objects([c.strip() if isinstance(c, str) else c for c in cells]) for own, cells in raw.items()}
    return Foreign({own: _column(cells, own, marks, codes) for own, cells in raw.items()}, {}, written, headed)


def _require_unpackable(path: Path) -> None:
    """Refuse a workbook that is small as a file and has no end when it is unpacked."""
    size, sheets, beside = path.stat().st_size, 0, 0
    with zipfile.ZipFile(path) as packed:
        for part in packed.infolist():
            added = part.file_size - min(part.compress_size, size)  # pictures are as large as they say
            if "/worksheets/" in f"/{part.filename}".lower():
                sheets += added
            else:
                beside += added
    if sheets > MAX_UNPACKED_SHEETS or beside > MAX_UNPACKED_REST:
        raise DataError(
            f"{shown_name(path)} holds {(sheets + beside) / 2**20:,.0f} MiB when it is unpacked, more than is read of "
            "a workbook. What to do: save the table as CSV."
        )


def _rows(sheet: Any) -> list[tuple[Any, ...]]:
    """The rows of a sheet that hold something, cut to the columns that do."""
    rows = []
    for row in _measured(sheet):
        cells = [None if _blank(cell) else cell for cell in row]
        if any(cell is not None for cell in cells):
            rows.append(cells)
    width = max((max(j for j, cell in enumerate(row) if cell is not None) + 1 for row in rows), default=0)
    first = min((min(j for j, cell in enumerate(row) if cell is not None) for row in rows), default=0)
    _require_fewer(len(rows) * (width - first), sheet.title)
    return [tuple((row + [None] * width)[first:width]) for row in rows]


def _measured(sheet: Any, values_only: bool = True) -> Iterator[tuple[Any, ...]]:
    """The rows of a sheet as they are in the file, as long as they are not too many."""
    sheet.reset_dimensions()  # some programs write wrong ones
    cells = 0
    for number, row in enumerate(sheet.iter_rows(values_only=values_only)):
        cells += len(row)
        _require_fewer(cells if number < MAX_SHEET_ROWS else MAX_SHEET_CELLS + 1, sheet.title)
        yield row


def _require_fewer(cells: int, title: str) -> None:
    if cells > MAX_SHEET_CELLS:
        raise DataError(
            f"the sheet '{title}' has more than {MAX_SHEET_CELLS:,} cells, or more than {MAX_SHEET_ROWS:,} rows; a "
            "cell far from the others makes all between them part of the table. What to do: remove such cells, or save "
            "the table as CSV."
        )


def _blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _require_computed(library: Any, path: Path, title: str, rows: list[tuple[Any, ...]]) -> None:
    """Refuse formulas whose values the file does not hold: they would look like missing values."""
    if all(cell is not None for row in rows for cell in row):
        return
    values = library.load_workbook(path, read_only=True, data_only=True)[title]
    formulas = library.load_workbook(path, read_only=True, data_only=False)[title]
    for here, there in zip(_measured(values, False), _measured(formulas, False), strict=True):
        for cell, formula in zip(here, there, strict=True):
            if cell.value is None and formula.data_type == "f":
                raise DataError(
                    f"cell {formula.coordinate} of {shown_name(path)} holds the formula {formula.value} without its "
                    "value. What to do: open the file in Excel, save it, and try again."
                )


def _column(cells: list[Any], name: str, marks: Marks, codes: MissingCodes) -> np.ndarray:
    """Cells as numbers where all are, also those that are stored as text; else as they are."""
    missing = WORDS | codes.texts(name)
    texts = {cell: cell.strip() for cell in cells if isinstance(cell, str)}
    numbers = marks.numbers(name, {text for text in texts.values() if text not in missing})
    native = [cell for cell in cells if _is_plain(cell)]
    values: list[Any] = []
    for cell in cells:
        text = texts.get(cell) if isinstance(cell, str) else None
        if text is None:
            values.append(cell)
        elif text in missing or ((native or numbers) and text in AMONG_NUMBERS):
            values.append(None)
        else:
            values.append(numbers.get(text, text))
    kinds = {type(value) for value in values}
    if kinds <= {int}:
        return np.array(values, dtype=np.int64) if max(map(abs, values), default=0) < 2**63 else np.array(values, float)
    if kinds <= {int, float, type(None)}:
        return np.array([np.nan if value is None else float(value) for value in values])
    if kinds <= {bool}:
        return np.array(values, dtype=bool)
    return _objects(values)


def _objects(values: list[Any]) -> np.ndarray:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
