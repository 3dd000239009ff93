"""Whatever a user has, as a table that is read a chunk at a time.

A `Table` is a sequence of parts: arrays in memory (or mapped from a file), text files, row groups of Parquet files.
Each part can be read alone, in chunks of a fixed number of rows, so data need not fit into memory and parts can be
read by different machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..._util.files import misspelt
from ..._util.resources import NUMBERS_AT_ONCE
from ...errors import DataError, SettingError
from .foreign import ELSEWHERE, EXCEL, LABELLED, excel, labelled, require_held
from .text import (
    DECIMALS,
    NO_WORDS,
    Columns,
    MissingCodes,
    Ragged,
    TextFile,
    Words,
    nameless,
    readable,
    shown_name,
    sniff,
    unique,
    whole_column,
)

ROWS_AT_ONCE = NUMBERS_AT_ONCE // 4  # of a table of a few columns
TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
Scales = Mapping[str, tuple[Any, ...]]
FROM_FILE = "converted"  # the attribute of a frame that tells whether its texts are those of a file
ENDINGS = ".csv, .tsv, .txt, .parquet, .xlsx, .sav or .dta"


class Part(Protocol):
    """A stretch of a table. ``size`` counts its work, of which every chunk says how much it was.

    ``words`` are, by column, texts that are values there even if they usually mean that one is missing ("NA").
    Rows that cannot be taken apart are added to ``ragged``, or refused without it.
    """

    @property
    def size(self) -> int: ...

    def chunks(
        self, columns: Sequence[str], rows: int, words: Words = NO_WORDS, ragged: Ragged | None = None
    ) -> Iterator[tuple[Columns, int]]: ...


@dataclass(frozen=True)
class Table:
    """Named columns in parts; ``frequencies`` are there if the source holds its own.

    ``nameless`` are columns that a file does not name, as the row numbers that pandas writes; ``named`` says whether
    the names are the source's own; ``notes`` are what a user should know about how it was read; ``scales`` are the
    levels of columns that the source says are ordered categories, from the lowest to the highest. ``codes`` are the
    values that the user says stand for missing ones; ``labels`` what values mean, by column, in files that know it;
    ``written`` how a text file is written, in words; ``index`` that of a pandas object;
    ``converted`` says that texts which are numbers have become numbers, so that those which are left are none;
    ``without_levels`` are columns of ordered categories whose levels the source does not keep.
    """

    name: str
    columns: tuple[str, ...]
    parts: tuple[Part, ...]
    frequencies: np.ndarray | None = None
    nameless: tuple[str, ...] = ()
    named: bool = True
    notes: tuple[str, ...] = ()
    scales: Scales = field(default_factory=dict)
    codes: MissingCodes = field(default_factory=MissingCodes)
    labels: Mapping[str, Mapping[float, str]] = field(default_factory=dict)
    written: str = ""
    index: pd.Index | None = None
    converted: bool = False
    without_levels: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def frame(self, most: int | None = None, ragged: Ragged | None = None) -> pd.DataFrame:
        """All rows, or the first ``most``; a column of a text file is of numbers only if all of it is."""
        pieces: dict[str, list[tuple[Part, Any]]] = {name: [] for name in self.columns}
        left, total = np.inf if most is None else most, 0
        rows = sum(part.size for part in self.parts if isinstance(part, ParquetGroups))  # which may be packed by far
        require_held(min(rows, left) * len(self.columns) * 8, self.name)
        for part in self.parts:
            rows, own = int(min(ROWS_AT_ONCE, left)), Ragged(begins=total)
            chunks = part.texts(rows, own) if isinstance(part, TextFile) else part.chunks(self.columns, rows)
            found = []
            for chunk, _ in chunks if rows else ():
                found.append(chunk)
                left, total = left - len(chunk[self.columns[0]]), total + len(chunk[self.columns[0]])
                if left <= 0:
                    break
            if ragged is None:
                own.refuse(self.name, len(self.columns))
            else:
                ragged.rows += [own.begins + row for row in own.rows]
                ragged.cells += own.cells
            for name in self.columns if found else ():
                together = pa.concat_arrays if isinstance(part, TextFile) else np.concatenate
                pieces[name].append((part, together([chunk[name] for chunk in found])))
        columns = {name: self.codes.taken_out(name, whole_column(own, name)) for name, own in pieces.items()}
        frame = pd.DataFrame(columns).iloc[:most]
        frame.attrs = {"name": self.name, "notes": self.notes, FROM_FILE: self.converted}
        return frame

    def as_written(self) -> pd.DataFrame:
        """All rows as they stand in the source: texts of a file stay texts, also where they are numbers, as 007."""
        cells: dict[str, list[Any]] = {name: [] for name in self.columns}
        for part in self.parts:
            if isinstance(part, TextFile):
                for texts, _ in part.texts(ROWS_AT_ONCE):
                    for name in self.columns:
                        cells[name] += pc.utf8_trim_whitespace(texts[name]).to_pylist()
                continue
            own = Memory(part.written) if isinstance(part, Memory) and part.written is not None else part
            for chunk, _ in own.chunks(self.columns, ROWS_AT_ONCE):
                for name in self.columns:
                    cells[name] += list(chunk[name])
        return pd.DataFrame({name: pd.Series(own, dtype=object) for name, own in cells.items()})


@dataclass(frozen=True)
class Memory:
    """Arrays of one length, which may be mapped from a file; ``written`` are the same before texts became numbers."""

    arrays: Mapping[str, np.ndarray]
    written: Mapping[str, np.ndarray] | None = None

    @property
    def size(self) -> int:
        return len(next(iter(self.arrays.values()))) if self.arrays else 0

    def chunks(
        self, columns: Sequence[str], rows: int, words: Words = NO_WORDS, ragged: Ragged | None = None
    ) -> Iterator[tuple[Columns, int]]:
        for first in range(0, self.size, rows):
            part = {name: np.asarray(self.arrays[name][first : first + rows]) for name in columns}
            yield part, min(rows, self.size - first)


@dataclass(frozen=True)
class ParquetGroups:
    """Some row groups of a Parquet file, from its row ``begins`` on; its size is in rows."""

    path: Path
    groups: tuple[int, ...]
    size: int
    begins: int

    def chunks(
        self, columns: Sequence[str], rows: int, words: Words = NO_WORDS, ragged: Ragged | None = None
    ) -> Iterator[tuple[Columns, int]]:
        with readable(self.path), pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(rows, row_groups=list(self.groups), columns=list(columns)):
                yield {name: _as_numpy(batch.column(name)) for name in columns}, batch.num_rows


def table_of(source: Any, decimal: str | None = None, codes: Any = None) -> Table:
    """A table from an array, a frame, a series, a mapping, a file or a folder of files.

    A mapping is ``{name: values}``, or ``{value: count}`` where its values are numbers. ``decimal`` is the decimal
    mark of text files, told from them by default; ``codes`` are values that stand for missing ones.
    """
    if decimal is not None and decimal not in DECIMALS:
        raise SettingError(f"decimal must be '.' or ',', not {decimal!r}")
    if isinstance(source, Table):
        return source
    codes = MissingCodes.of(codes)
    table = _of_path(Path(source), decimal, codes) if isinstance(source, (str, Path)) else _of_object(source)
    codes.require(table.columns)
    require_names(table.columns)
    return replace(table, codes=codes)


def frame_of(source: Any) -> pd.DataFrame:
    """All rows of what a user has, as a frame whose columns have texts as names and types of numpy's."""
    frame = _frame_of(source)
    names = list(unique(tuple(map(str, frame.columns))))
    found = frame if names == list(frame.columns) else frame.set_axis(names, axis=1)
    changed = {str(name): other for name, column in found.items() if (other := usual(column)) is not column}
    found = found.assign(**changed) if changed else found
    found.attrs = frame.attrs
    return found


def usual(column: pd.Series) -> pd.Series:
    """A column in a type that formulaic knows: texts as objects, pandas' nullable numbers as numpy's."""
    kind = column.dtype
    if isinstance(kind, pd.StringDtype) and str(kind) != "str":  # pandas' own type of texts, which formulaic knows
        return column.astype(object).where(column.notna(), None)
    plain = getattr(kind, "numpy_dtype", None)  # of nullable types, also Arrow's
    if plain is None or not isinstance(kind, pd.api.extensions.ExtensionDtype):
        return column
    if plain.kind in "iuf" and column.hasnans:
        return pd.Series(column.to_numpy(dtype=float, na_value=np.nan), column.index, name=column.name)
    if plain.kind == "O" and isinstance(kind, pd.ArrowDtype):
        return column.astype(object).where(column.notna(), None)
    return column if column.hasnans else column.astype(plain)


def _frame_of(source: Any) -> pd.DataFrame:
    if isinstance(source, pd.DataFrame):
        found = source
    elif isinstance(source, Mapping) and source and all(map(pd.api.types.is_scalar, source.values())):
        found = pd.DataFrame([dict(source)])
    elif isinstance(source, (str, Path)) or not hasattr(source, "to_pandas"):
        table = table_of(source)
        if not table.named:
            raise DataError("a formula needs columns with names: give a frame, a mapping of names to values, or a file")
        return table.frame()
    else:
        found = source.to_pandas()
    require_names(found.columns)
    return found


def name_of(source: Any, default: str) -> str:
    """What a source is called in messages and reports."""
    return source.name if isinstance(source, Table) else str(source) if isinstance(source, str) else default


def require_names(names: Iterable[Any], what: str = "column") -> None:
    """Refuse names of columns or levels that no file can hold: results could not be saved."""
    odd = next((name for name in map(str, names) if "\0" in name), None)
    if odd is not None:
        raise DataError(f"the {what} {odd!r} has a zero byte (NUL) in its name. What to do: rename it.")


def _of_object(source: Any) -> Table:
    if isinstance(source, Mapping):
        return _of_mapping(source)
    if isinstance(source, (pd.DataFrame, pd.Series)) and (crossed := _crossed(source)) is not None:
        return crossed
    if isinstance(source, pd.DataFrame):
        names = unique(tuple(map(str, source.columns)))
        table = _in_memory("data frame", {name: source.iloc[:, j].to_numpy() for j, name in enumerate(names)})
        ordered = _ordered({name: source.iloc[:, j] for j, name in enumerate(names)})
        return replace(table, nameless=nameless(names), scales=ordered, index=source.index)
    if isinstance(source, pd.Series):
        name = str(source.name or "x")
        table = _in_memory("series", {name: source.to_numpy()}, named=source.name is not None)
        return replace(table, scales=_ordered({name: source}), index=source.index)
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
    if array.ndim == 0:
        raise DataError(
            f"data must be a vector or rows by columns, not one {type(source).__name__}. What to do: give a file, a "
            "data frame or an array as the data; arguments may be in the wrong order."
        )
    if array.ndim > 2:
        raise DataError(
            f"data must be a vector or rows by columns, not an array of shape {array.shape}. If each of its "
            f"{array.shape[0]} entries is an observation, give array.reshape({array.shape[0]}, -1)."
        )
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
        unique(tuple(map(str, source)))
        series = [value for value in values if isinstance(value, pd.Series)]
        if any(not value.index.equals(series[0].index) for value in series):
            raise DataError("the columns are series with different indexes; put them into one frame first")
        arrays = {str(name): unmasked(np.asanyarray(value)) for name, value in source.items()}
        require_one_length(arrays)
        return replace(_in_memory("mapping", arrays), scales=_ordered({str(n): v for n, v in source.items()}))
    if any(np.ndim(value) != 0 for value in values):
        raise DataError("a mapping must be {name: values}, all of them vectors, or {value: count}")
    keys, counts = np.asarray(list(source)), np.asarray(values)
    if keys.ndim > 1:
        raise DataError("a mapping {value: count} is of one column; give several as rows, with weights=")
    return Table("frequency table", ("value",), (Memory({"value": keys}),), counts, named=False)


def require_one_length(columns: Mapping[str, Sized]) -> None:
    """Refuse columns of different lengths."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"the columns have different lengths: {', '.join(f'{k}: {v}' for k, v in lengths.items())}")


def _crossed(source: pd.DataFrame | pd.Series) -> Table | None:
    """A contingency table, the frequencies of what its index (and columns) name; None where it is no such table.

    What pandas makes by `value_counts`, `groupby(...).size()` and `crosstab`. A series with one index is such a table
    where it is called "count" and falls, a frame where all of its labels are values of binary columns.
    """
    if isinstance(source, pd.DataFrame):
        labels = [*source.index.tolist(), *source.columns.tolist()]
        flat = [part for label in labels for part in (label if isinstance(label, tuple) else (label,))]
        named = None not in (*source.index.names, *source.columns.names)
        if not named or not set(flat) <= {-1, 0, 1} or not source.index.is_unique:
            return None
        melted = source.melt(value_name="count", ignore_index=False)
        source = melted.set_index(list(source.columns.names), append=True)["count"]
    elif not _is_tally(source):
        return None
    names = tuple(str(name) for name in source.index.names if name is not None) or ("value",)
    values = [source.index.get_level_values(j).to_numpy() for j in range(source.index.nlevels)]
    columns = dict(zip(unique(names), values, strict=True))
    told = (
        f"the series was read as frequencies of {names[0]}, as value_counts() has them. What to do: nothing; or give "
        "its to_numpy(), if it is of observations.",
    ) * (len(names) == 1)
    return Table("frequency table", names, (Memory(columns),), source.to_numpy(), named=names != ("value",), notes=told)


def _is_tally(source: pd.Series) -> bool:
    """Whether a series is of counts of what its index has."""
    index, numbers = source.index, source.dtype.kind in "iu"
    if not numbers or not index.is_unique or isinstance(index, pd.RangeIndex):
        return False
    if index.nlevels > 1:
        return source.name in (None, "count") and None not in index.names
    return source.name == "count" and bool(source.is_monotonic_decreasing) and index.dtype.kind in "iu"


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


def _of_path(path: Path, decimal: str | None, codes: MissingCodes) -> Table:
    if path.is_dir():
        files = _inside(path)
        if not files:
            raise DataError(f"the folder '{path}' holds no .csv, .tsv, .txt or .parquet files")
    elif path.is_file():
        files = [path]
    else:
        raise DataError(f"there is no file '{path}'{misspelt(path)}")
    tables = [_of_file(file, decimal, codes) for file in files]
    first = tables[0]
    for table in tables[1:]:
        if set(table.columns) != set(first.columns):
            differing = sorted(set(table.columns) ^ set(first.columns))
            raise DataError(
                f"{first.name} and {table.name} in '{path}' have different columns ({', '.join(differing[:5])}); "
                "the files of a folder must have the same"
            )
    parts = tuple(part for table in tables for part in table.parts)
    notes = tuple(dict.fromkeys(note for table in tables for note in table.notes))
    return replace(first, name=shown_name(path), parts=parts, notes=notes)


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


def _of_file(path: Path, decimal: str | None, codes: MissingCodes) -> Table:
    suffix, name = path.suffix.lower(), shown_name(path)
    if suffix in TEXT:
        with readable(path):
            dialect = sniff(path, name, decimal)
        part = TextFile(path, dialect, codes)
        return Table(
            name, unique(dialect.names), (part,), None, dialect.nameless, dialect.headed, dialect.notes,
            written=dialect.words, converted=True,
        )  # fmt: skip
    if suffix in EXCEL + LABELLED:
        found = excel(path, decimal, codes) if suffix in EXCEL else labelled(path, codes)
        if not found.arrays:
            raise DataError(f"{name} holds no columns")
        names = tuple(found.arrays)
        return Table(
            name, names, (Memory(found.arrays, found.written),), None, nameless(names), found.named,
            labels=found.labels, converted=True,
        )  # fmt: skip
    if suffix not in PARQUET:
        remedy = ELSEWHERE.get(suffix, "rename it if it is one of these")
        raise DataError(f"'{name}': files must end in {ENDINGS}. What to do: {remedy}.")
    return _of_parquet(path)


def _of_parquet(path: Path) -> Table:
    with readable(path), pq.ParquetFile(path) as file:
        about = file.metadata
        sizes = [about.row_group(g).num_rows for g in range(about.num_row_groups)]
        names, said = tuple(file.schema_arrow.names), file.schema_arrow.pandas_metadata or {}
        ordered = [f.name for f in file.schema_arrow if pa.types.is_dictionary(f.type) and f.type.ordered]
        scales_said = [own["field_name"] for own in said.get("columns", ()) if (own["metadata"] or {}).get("ordered")]
        lost = tuple(name for name in scales_said if name in names and name not in ordered)
        first = next(file.iter_batches(1, columns=ordered), None) if ordered else None
        scales = {} if first is None else {name: tuple(first.column(name).dictionary.to_pylist()) for name in ordered}
    names = tuple(name for name in names if name not in said.get("index_columns", ()))
    groups: list[list[int]] = []
    for g, size in enumerate(sizes):  # parts of about four chunks
        if groups and sum(sizes[i] for i in groups[-1]) + size <= 4 * ROWS_AT_ONCE:
            groups[-1].append(g)
        else:
            groups.append([g])
    parts = tuple(
        ParquetGroups(path, tuple(part), sum(sizes[g] for g in part), sum(sizes[: part[0]])) for part in groups
    )
    return Table(shown_name(path), unique(names), parts, scales=scales, without_levels=lost)


def _as_numpy(column: pa.Array) -> np.ndarray:
    if column.null_count == 0 and pa.types.is_integer(column.type):
        return column.to_numpy()
    return np.asarray(column.to_pandas())
