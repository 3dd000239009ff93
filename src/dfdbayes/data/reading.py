"""Whatever a user has, as a table that is read a chunk at a time.

A `Table` is a sequence of parts: arrays in memory (or mapped from a file), text files, row groups of Parquet files.
Each part can be read alone, in chunks of a fixed number of rows, so data need not fit into memory and parts can be
read by different machines.
"""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import DataError

CHUNK = 2**20  # rows read at a time
TEXT = {".csv": ",", ".txt": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")

Columns = dict[str, np.ndarray]
Words = Mapping[str, Sequence[str]]
Scales = Mapping[str, tuple[Any, ...]]
NO_WORDS: Words = MappingProxyType({})
# Texts that stand for a missing value, as pandas has them.
MISSING = frozenset(
    ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
     "NULL", "NaN", "None", "n/a", "nan", "null"]
)  # fmt: skip


class Part(Protocol):
    """A stretch of a table. ``size`` counts its work, of which every chunk says how much it was.

    ``words`` are, by column, texts that are values there even if they usually mean that one is missing ("NA").
    """

    @property
    def size(self) -> int: ...

    def chunks(self, columns: Sequence[str], rows: int, words: Words = NO_WORDS) -> Iterator[tuple[Columns, int]]: ...


@dataclass(frozen=True)
class Table:
    """Named columns in parts; ``frequencies`` are there if the source holds its own.

    ``nameless`` are columns that a file does not name, as the row numbers that pandas writes; ``named`` says whether
    the names are the source's own; ``notes`` are what a user should know about how it was read; ``scales`` are the
    levels of columns that the source says are ordered categories, from the lowest to the highest.
    """

    name: str
    columns: tuple[str, ...]
    parts: tuple[Part, ...]
    frequencies: np.ndarray | None = None
    nameless: tuple[str, ...] = ()
    named: bool = True
    notes: tuple[str, ...] = ()
    scales: Scales = field(default_factory=dict)

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

    def chunks(self, columns: Sequence[str], rows: int, words: Words = NO_WORDS) -> Iterator[tuple[Columns, int]]:
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

    @property
    def first(self) -> str:
        """The first line."""
        with self.path.open(encoding="utf-8-sig") as lines:
            return lines.readline().strip()

    def chunks(self, columns: Sequence[str], rows: int, words: Words = NO_WORDS) -> Iterator[tuple[Columns, int]]:
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
                keep_default_na=False,
                na_values={c: sorted(MISSING - set(words.get(c, ()))) for c in self.names},
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

    def chunks(self, columns: Sequence[str], rows: int, words: Words = NO_WORDS) -> Iterator[tuple[Columns, int]]:
        with _readable(self.path), pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(rows, row_groups=list(self.groups), columns=list(columns)):
                yield {name: _as_numpy(batch.column(name)) for name in columns}, batch.num_rows


def table_of(source: Any) -> Table:
    """A table from an array, a frame, a series, a mapping, a file or a folder of files.

    A mapping is ``{name: values}``, or ``{value: count}`` where its values are numbers.
    """
    if isinstance(source, (str, Path)):
        return _of_path(Path(source))
    if isinstance(source, Mapping):
        return _of_mapping(source)
    if isinstance(source, pd.DataFrame):
        names = _unique(tuple(map(str, source.columns)))
        table = _in_memory("data frame", {name: source.iloc[:, j].to_numpy() for j, name in enumerate(names)})
        nameless = tuple(name for name in names if name.startswith("Unnamed: "))
        ordered = _ordered({name: source.iloc[:, j] for j, name in enumerate(names)})
        return replace(table, nameless=nameless, scales=ordered)
    if isinstance(source, pd.Series):
        name = str(source.name or "x")
        table = _in_memory("series", {name: source.to_numpy()}, named=source.name is not None)
        return replace(table, scales=_ordered({name: source}))
    if type(source).__module__.startswith("polars"):
        if hasattr(source, "collect"):
            source = source.collect()
        if hasattr(source, "columns"):
            return _in_memory("data frame", {str(c): source[c].to_numpy() for c in source.columns})
        return _in_memory("series", {source.name or "x": source.to_numpy()}, named=bool(source.name))
    return _of_array(source)


def _of_array(source: Any) -> Table:
    try:
        array = np.asarray(source) if isinstance(source, np.matrix) else np.asanyarray(source)
    except ValueError as problem:
        raise DataError(f"the data are not a table: their rows have different lengths ({problem})") from problem
    if array.ndim == 0 or array.ndim > 2:
        raise DataError(f"data must be a vector or rows by columns, not an array of shape {array.shape}")
    if array.dtype.names is not None:
        if array.ndim != 1:
            raise DataError(f"an array of records must be a vector, not of shape {array.shape}")
        return _in_memory("array", {name: unmasked(array[name]) for name in array.dtype.names})
    if array.ndim == 1:
        return _in_memory("array", {"x": unmasked(array)}, named=False)
    return _in_memory("array", {f"x{j + 1}": unmasked(array[:, j]) for j in range(array.shape[1])}, named=False)


def _of_mapping(source: Mapping[Any, Any]) -> Table:
    values = list(source.values())
    if values and all(np.ndim(value) == 1 and not isinstance(value, str) for value in values):
        _unique(tuple(map(str, source)))
        series = [value for value in values if isinstance(value, pd.Series)]
        if any(not value.index.equals(series[0].index) for value in series):
            raise DataError("the columns are series with different indexes; put them into one frame first")
        arrays = {str(name): unmasked(np.asanyarray(value)) for name, value in source.items()}
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"the columns have different lengths: {', '.join(f'{k}: {v}' for k, v in lengths.items())}")
        return replace(_in_memory("mapping", arrays), scales=_ordered({str(n): v for n, v in source.items()}))
    if any(np.ndim(value) != 0 for value in values):
        raise DataError("a mapping must be {name: values}, all of them vectors, or {value: count}")
    keys, counts = np.asarray(list(source)), np.asarray(values)
    if keys.ndim > 1:
        raise DataError("a mapping {value: count} is of one column; give several as rows, with weights=")
    return Table("frequency table", ("value",), (Memory({"value": keys}),), counts, named=False)


def _ordered(columns: Mapping[str, Any]) -> Scales:
    """The levels of pandas' ordered categories."""
    known = {name: getattr(column, "dtype", None) for name, column in columns.items()}
    ordered = {name: kind for name, kind in known.items() if isinstance(kind, pd.CategoricalDtype) and kind.ordered}
    return {name: tuple(kind.categories) for name, kind in ordered.items()}


def unmasked(array: np.ndarray) -> np.ndarray:
    """A plain array; what is masked is missing."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if not np.ma.getmaskarray(array).any():
        return np.asarray(array.data)
    plain = np.array(array.data, dtype=object)
    plain[np.ma.getmaskarray(array)] = None
    return plain


def _in_memory(name: str, arrays: Columns, named: bool = True) -> Table:
    return Table(name, tuple(arrays), (Memory(arrays),), named=named)


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = sorted({c for c in names if names.count(c) > 1})
    if twice:
        raise DataError(f"two columns are called '{twice[0]}': rename one")
    return names


def _of_path(path: Path) -> Table:
    if path.is_dir():
        files = _inside(path)
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
    parts = tuple(part for table in tables for part in table.parts)
    return replace(first, name=shown_name(path), parts=parts)


def shown_name(path: Path) -> str:
    """A file's name as text, whatever bytes it is made of."""
    return os.fsencode(path.name or path.absolute().name).decode("utf-8", "replace")


def _inside(folder: Path) -> list[Path]:
    """The data files below a folder, each once: hidden ones are left out, and links to files that are there anyway."""
    found: dict[tuple[int, int], Path] = {}
    candidates = (p for p in folder.rglob("*") if p.suffix.lower() in (*TEXT, *PARQUET))
    for path in sorted(candidates, key=lambda p: (p.is_symlink(), p)):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and path.is_file():
            about = path.stat()
            found.setdefault((about.st_dev, about.st_ino), path)
    return sorted(found.values())


def _of_file(path: Path) -> Table:
    suffix = path.suffix.lower()
    if suffix in TEXT:
        names, headed = _heading(path, TEXT[suffix])
        nameless = tuple(name for name in names if headed and name.startswith("Unnamed: "))
        part, notes = TextFile(path, TEXT[suffix], names, headed), tuple[str, ...]()
        if not headed and len(names) == 1 and part.first == "0":
            notes = (
                f"the first line of {shown_name(path)} is 0 and was read as a row; pandas writes such a line as the "
                "name of a column without one. What to do: write a name above the data.",
            )
        return Table(shown_name(path), _unique(names), (part,), None, nameless, headed, notes)
    if suffix not in PARQUET:
        raise DataError(f"'{shown_name(path)}': files must end in .csv, .tsv, .txt or .parquet")
    with _readable(path), pq.ParquetFile(path) as file:
        about = file.metadata
        sizes = [about.row_group(g).num_rows for g in range(about.num_row_groups)]
        names = tuple(file.schema_arrow.names)
        kept = (file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
        ordered = [f.name for f in file.schema_arrow if pa.types.is_dictionary(f.type) and f.type.ordered]
        first = next(file.iter_batches(1, columns=ordered), None) if ordered else None
        scales = {} if first is None else {name: tuple(first.column(name).dictionary.to_pylist()) for name in ordered}
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
    return Table(shown_name(path), _unique(names), parts, scales=scales)


def _heading(path: Path, separator: str) -> tuple[tuple[str, ...], bool]:
    """Names of the columns, and whether the file has them: a first line of numbers is data.

    Numbers that are counted up (0, 1, 2 or 2019, 2020) may be names as well, and nobody can tell.
    """
    with _readable(path), path.open(encoding="utf-8-sig", newline="") as lines:
        heading, second = lines.readline().strip(), lines.readline().strip()
    if not heading:
        raise DataError(f"{shown_name(path)} is empty: it needs a line of column names and at least two rows")
    cells = [cell.strip() for cell in next(csv.reader([heading], delimiter=separator, skipinitialspace=True))]
    numbers = [cell for cell in cells if _is_number(cell)]
    known = [cell for cell in cells if cell not in MISSING and not _is_number(cell)]
    quoted = '"' in heading and '"' not in second  # as some programs write names, and numbers without
    if numbers and not known and not quoted:
        if len(numbers) == len(cells) and _counted_up(cells):
            raise DataError(
                f"the first line of {shown_name(path)} is {heading}: are these names of columns or a row of data? "
                "Write a line of names that are not numbers above the data, or in place of the numbers."
            )
        return tuple(f"x{j + 1}" if len(cells) > 1 else "x" for j in range(len(cells))), False
    with _readable(path):
        names = pd.read_csv(path, sep=separator, skipinitialspace=True, index_col=False, nrows=0).columns
    return tuple(map(str, names)), True


def _counted_up(cells: list[str]) -> bool:
    """Whether cells are what a program writes as names where there are none: 0, 1, 2, ... or a run of numbers."""
    try:
        values = [int(cell) for cell in cells]
    except ValueError:
        return False
    run = values == list(range(values[0], values[0] + len(values)))
    return run and len(values) > 1


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # which Python reads as a number, and people as a name


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
            text = f"{shown_name(self._path)}: a line has more cells than the first line has columns"
            raise DataError(text) from problem
        unreadable = (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, OSError, pa.ArrowException)
        if isinstance(problem, unreadable) or (isinstance(problem, ValueError) and not isinstance(problem, DataError)):
            raise DataError(f"{shown_name(self._path)} cannot be read: {str(problem).splitlines()[0]}") from problem
