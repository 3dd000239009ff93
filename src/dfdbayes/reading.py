"""Whatever a user has, as a table that is read a chunk at a time.

A `Table` is a sequence of parts: arrays in memory (or mapped from a file), text files, row groups of Parquet files.
Each part can be read alone, in chunks of a fixed number of rows, so data need not fit into memory and parts can be
read by different machines.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from .errors import DataError

CHUNK = 2**20  # rows read at a time
TEXT = {".csv": ",", ".txt": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")

Columns = dict[str, np.ndarray]


class Part(Protocol):
    """A stretch of a table. ``size`` counts its work, of which every chunk says how much it was."""

    @property
    def size(self) -> int: ...

    def chunks(self, columns: Sequence[str], rows: int) -> Iterator[tuple[Columns, int]]: ...


@dataclass(frozen=True)
class Table:
    """Named columns in parts; ``frequencies`` are there if the source holds its own."""

    name: str
    columns: tuple[str, ...]
    parts: tuple[Part, ...]
    frequencies: np.ndarray | None = None

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)


@dataclass(frozen=True)
class Memory:
    """Arrays of one length, which may be mapped from a file."""

    arrays: Mapping[str, np.ndarray]

    @property
    def size(self) -> int:
        return len(next(iter(self.arrays.values()))) if self.arrays else 0

    def chunks(self, columns: Sequence[str], rows: int) -> Iterator[tuple[Columns, int]]:
        for first in range(0, self.size, rows):
            part = {name: np.asarray(self.arrays[name][first : first + rows]) for name in columns}
            yield part, min(rows, self.size - first)


@dataclass(frozen=True)
class TextFile:
    """A file of separated values; its size is in bytes."""

    path: Path
    separator: str
    names: tuple[str, ...]
    headed: bool
    begins: int = 0

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    def chunks(self, columns: Sequence[str], rows: int) -> Iterator[tuple[Columns, int]]:
        with warnings.catch_warnings(), _readable(self.path), self.path.open("rb") as handle:
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a line longer than the first would lose cells
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # mixed columns are looked at value by value later
            done = 0
            reader = pd.read_csv(
                handle,
                sep=self.separator,
                header=0 if self.headed else None,
                names=None if self.headed else list(self.names),
                skipinitialspace=True,
                index_col=False,
                chunksize=rows,
                encoding="utf-8-sig",
            )
            for frame in reader:
                frame.columns = pd.Index(self.names)
                read, done = handle.tell() - done, handle.tell()
                yield {name: frame[name].to_numpy() for name in columns}, read


@dataclass(frozen=True)
class ParquetGroups:
    """Some row groups of a Parquet file, from its row ``begins`` on; its size is in rows."""

    path: Path
    groups: tuple[int, ...]
    size: int
    begins: int

    def chunks(self, columns: Sequence[str], rows: int) -> Iterator[tuple[Columns, int]]:
        with _readable(self.path), pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(rows, row_groups=list(self.groups), columns=list(columns)):
                yield {name: _as_numpy(batch.column(name)) for name in columns}, batch.num_rows


def table_of(source: Any) -> Table:
    """A table from an array, a frame, a series, a mapping ``{value: count}``, a file or a folder of files."""
    if isinstance(source, (str, Path)):
        return _of_path(Path(source))
    if isinstance(source, Mapping):
        values, counts = np.asarray(list(source)), np.asarray(list(source.values()))
        return Table("frequency table", ("value",), (Memory({"value": values}),), counts)
    if isinstance(source, pd.DataFrame):
        names = _unique(tuple(map(str, source.columns)))
        return _in_memory("data frame", {name: source.iloc[:, j].to_numpy() for j, name in enumerate(names)})
    if isinstance(source, pd.Series):
        return _in_memory("series", {str(source.name or "x"): source.to_numpy()})
    if type(source).__module__.startswith("polars"):
        if hasattr(source, "columns"):
            return _in_memory("data frame", {str(c): source[c].to_numpy() for c in source.columns})
        return _in_memory("series", {source.name or "x": source.to_numpy()})
    array = np.asanyarray(source)
    if array.ndim == 0 or array.ndim > 2:
        raise DataError(f"data must be a vector or rows by columns, not an array of shape {array.shape}")
    if array.ndim == 1:
        return _in_memory("array", {"x": array})
    return _in_memory("array", {f"x{j + 1}": array[:, j] for j in range(array.shape[1])})


def _in_memory(name: str, arrays: Columns) -> Table:
    return Table(name, tuple(arrays), (Memory(arrays),))


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = sorted({c for c in names if names.count(c) > 1})
    if twice:
        raise DataError(f"two columns are called '{twice[0]}': rename one")
    return names


def _of_path(path: Path) -> Table:
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file() and p.suffix.lower() in (*TEXT, *PARQUET))
        if not files:
            raise DataError(f"the folder '{path}' holds no .csv, .tsv, .txt or .parquet files")
    elif path.is_file():
        files = [path]
    else:
        raise DataError(f"there is no file '{path}'")
    tables = [_of_file(file) for file in files]
    first = tables[0]
    for table in tables[1:]:
        if set(table.columns) != set(first.columns):
            differing = sorted(set(table.columns) ^ set(first.columns))
            raise DataError(
                f"{first.name} and {table.name} in '{path}' have different columns ({', '.join(differing[:5])}); "
                "the files of a folder must have the same"
            )
    return Table(path.name, first.columns, tuple(part for table in tables for part in table.parts))


def _of_file(path: Path) -> Table:
    suffix = path.suffix.lower()
    if suffix in TEXT:
        names, headed = _heading(path, TEXT[suffix])
        return Table(path.name, _unique(names), (TextFile(path, TEXT[suffix], names, headed),))
    if suffix not in PARQUET:
        raise DataError(f"'{path.name}': files must end in .csv, .tsv, .txt or .parquet")
    with _readable(path), pq.ParquetFile(path) as file:
        about = file.metadata
        sizes = [about.row_group(g).num_rows for g in range(about.num_row_groups)]
        names = tuple(file.schema_arrow.names)
        kept = (file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
    names = tuple(name for name in names if name not in [k for k in kept if isinstance(k, str)])
    groups: list[list[int]] = []
    for g, size in enumerate(sizes):  # parts of about four chunks
        if groups and sum(sizes[i] for i in groups[-1]) + size <= 4 * CHUNK:
            groups[-1].append(g)
        else:
            groups.append([g])
    parts = tuple(
        ParquetGroups(path, tuple(part), sum(sizes[g] for g in part), sum(sizes[: part[0]])) for part in groups
    )
    return Table(path.name, _unique(names), parts)


def _heading(path: Path, separator: str) -> tuple[tuple[str, ...], bool]:
    """Names of the columns, and whether the file has them: a first line of numbers is data."""
    with _readable(path), path.open(encoding="utf-8-sig") as lines:
        heading = lines.readline().strip()
    if not heading:
        raise DataError(f"{path.name} is empty: it needs a line of column names and at least two rows")
    cells = [cell.strip().strip('"') for cell in heading.split(separator)]
    if all(_is_number(cell) for cell in cells):
        return tuple(f"x{j + 1}" if len(cells) > 1 else "x" for j in range(len(cells))), False
    with _readable(path):
        names = pd.read_csv(path, sep=separator, skipinitialspace=True, index_col=False, nrows=0).columns
    return tuple(map(str, names)), True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_numpy(column: pa.Array) -> np.ndarray:
    if column.null_count == 0 and pa.types.is_integer(column.type):
        return column.to_numpy()
    return np.asarray(column.to_pandas())


class _readable:
    """What goes wrong while a file is read, as an error that names the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, problem: BaseException | None, trace: Any) -> None:
        if isinstance(problem, pd.errors.ParserWarning):
            text = f"{self._path.name}: a line has more cells than the first line has columns"
            raise DataError(text) from problem
        unreadable = (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, OSError, pa.ArrowException)
        if isinstance(problem, unreadable) or (isinstance(problem, ValueError) and not isinstance(problem, DataError)):
            raise DataError(f"{self._path.name} cannot be read: {str(problem).splitlines()[0]}") from problem
