"""A data set as its distinct rows with weights; reading and validation happen here, once.

Whatever a user has (an array, a frame, a frequency table, a file) becomes a `Dataset`. Everything
after that works on distinct rows, so the number of observations no longer matters, and a bootstrap
replicate is a new vector of weights.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from ..errors import DataError, SettingError
from .distinct import Tallies, Tally, condense
from .domain import Domain
from .reading import CHUNK, Columns, Memory, Table, table_of

MANY_CELLS = 2**24  # beyond so many values distinct rows are kept in the smallest integers that hold them


@dataclass(frozen=True)
class Dataset:
    """Distinct rows, how often each occurs, and what the columns are called.

    Attributes
    ----------
    rows : (u, d) integers
        The distinct rows, sorted; in small integers where there are very many. Labelled categories are 0, 1, ...
    counts : (u,) floats
        Weight of each distinct row: how many observations equal it.
    columns : tuple of str
        The user's names of the coordinates.
    dropped : int
        How many rows were left out because a value was missing.
    source : str
        Where the data came from, for messages and reports.
    repeats : (u,) floats, optional
        Only with observation weights: how many observations have this row and weight, which is ``counts / repeats``.
        Otherwise the counts are frequencies, and every observation weighs 1.
    named : bool
        Whether the columns' names are the user's; an array has none, and its columns are called x1, x2, ...
    notes : tuple of str
        What the user should know about how the data were read.
    given : (u, q) floats, optional
        Covariates of every row, called ``given_columns``: part of what makes a row distinct, never modelled.
    cluster : (u,) integers, optional
        The cluster of every row; rows of one cluster are resampled together.
    observed : (u, d) bool, optional
        Where values were observed; everywhere by default.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> data = dfd.Dataset.of({0: 514, 1: 503, 2: 457})
    >>> data.n, len(data.rows)
    (1474, 3)
    """

    rows: Int[np.ndarray, "u d"]
    counts: Float[np.ndarray, " u"]
    columns: tuple[str, ...]
    first: Int[np.ndarray, " u"]
    dropped: int = 0
    source: str = "data"
    repeats: Float[np.ndarray, " u"] | None = None
    named: bool = True
    notes: tuple[str, ...] = ()
    given: Float[np.ndarray, "u q"] | None = None
    given_columns: tuple[str, ...] = ()
    cluster: Int[np.ndarray, " u"] | None = None
    observed: Bool[np.ndarray, "u d"] | None = None

    @classmethod
    def of(
        cls,
        source: Any,
        domain: Domain | Callable[[int], Domain] | None = None,
        *,
        columns: Sequence[str] | None = None,
        weights: Any = None,
        missing: str = "refuse",
        given: Sequence[str] = (),
        cluster: str | None = None,
        advance: Callable[[int, int], None] = lambda done, total: None,
    ) -> Dataset:
        """Make a data set from what a user has.

        Parameters
        ----------
        source
            A NumPy array (1-d, or rows by columns, or records), a pandas or polars frame or series, a mapping
            ``{name: values}`` or ``{value: count}``, the path of a CSV or Parquet file or of a folder of such files, or
            a `Dataset`. Files and arrays are read in chunks, so they may be larger than memory.
        domain : Domain, optional
            If given, the data are checked against it and labelled categories are read by label. A function is called
            with the number of columns, before any row is read.
        columns : sequence of str, optional
            Which columns to use, in this order. All by default.
        weights : str or array, optional
            The column that holds the weights, or the weights themselves. Whole numbers are frequencies: how often a
            row occurs. If any is fractional they are observation weights: each row is one observation that counts so
            much, as in a survey, and a bootstrap draws rows with their weights.
        missing : {"refuse", "drop"}
            What to do with rows that have a missing value.
        given : sequence of str, optional
            Columns of covariates, which must be numbers.
        cluster : str, optional
            The column that says which rows belong together.
        advance : callable, optional
            Called after every chunk with how much was read, and how much there is.
        """
        if isinstance(source, Dataset):
            data = source
            if columns is not None:
                data = data._select(columns)
            if weights is not None or given or cluster is not None:
                raise SettingError("weights, covariates and clusters are part of a Dataset; give them where it is made")
            domain = domain(data.d) if callable(domain) else domain
        else:
            table = table_of(source)
            reading = Reading.of(source, table, domain, columns, weights, missing, given, cluster)
            data, domain = _from_table(table, reading, advance), reading.domain
        if domain is not None:
            data.check(domain)
        return data

    @property
    def n(self) -> int:
        """The number of observations."""
        return round(float(self.observations.sum()))

    @property
    def observations(self) -> Float[np.ndarray, " u"]:
        """How many observations stand behind each row."""
        return self.counts if self.repeats is None else self.repeats

    @property
    def digest(self) -> str:
        """A fingerprint of the rows, their weights and the columns' names."""
        found = sha256("\n".join(self.columns).encode())
        for part in (self.rows.astype(np.int64), self.counts, self.observations, self.given, self.cluster):
            found.update(b"" if part is None else np.ascontiguousarray(part).tobytes())
        return found.hexdigest()

    @property
    def d(self) -> int:
        return self.rows.shape[1]

    def slices(self, size: int = 2**16) -> Iterator[np.ndarray]:
        """The distinct rows, so many at a time, as 64-bit integers."""
        for first in range(0, len(self.rows), size):
            yield self.rows[first : first + size].astype(np.int64)

    def at(self, chosen: np.ndarray, counts: np.ndarray | None = None) -> Dataset:
        """Some of the distinct rows, with their own counts or with others as frequencies."""

        def of(part: np.ndarray | None) -> np.ndarray | None:
            return None if part is None else part[chosen]

        return replace(
            self, rows=self.rows[chosen].astype(np.int64), first=self.first[chosen], given=of(self.given),
            counts=self.counts[chosen] if counts is None else counts, cluster=of(self.cluster),
            repeats=of(self.repeats) if counts is None else None, observed=of(self.observed),
        )  # fmt: skip

    def thinned(self, most: int = 2**16) -> Dataset:
        """Every so-many-th distinct row with its weight, at most ``most``: enough for a first guess."""
        if len(self.rows) <= most:
            return self
        return self.at(np.linspace(0, len(self.rows) - 1, most).astype(int))

    def check(self, domain: Domain) -> None:
        """Raise `DataError`, naming row, column and remedy, unless every row lies in ``domain``."""
        if self.d != domain.d:
            raise DataError(_wrong_width(self.columns, domain.d))
        outside = np.concatenate([~domain.contains(rows).all(axis=1) for rows in self.slices()])
        if not outside.any():
            return
        bad = np.flatnonzero(outside)
        worst = bad[np.argmin(self.first[bad])]
        j = int(np.argmin(domain.contains(self.rows[worst][None])[0]))
        coordinate = domain.coordinate(j)
        affected = int(self.counts[bad].sum())
        raise DataError(
            f"row {self.first[worst] + 1}, column '{self.columns[j]}' is {self.rows[worst, j]}; "
            f"{coordinate.label} needs {coordinate.needs} ({affected} of {self.n} rows are affected). "
            "Correct or remove those rows, or choose a model whose domain holds them."
        )

    def reweighted(self, counts: np.ndarray) -> Dataset:
        """The same distinct rows under other frequencies; rows of frequency 0 are left out."""
        counts = np.asarray(counts, float)
        kept = counts > 0
        return self.at(kept, counts[kept])

    def _select(self, columns: Sequence[str]) -> Dataset:
        order = [_position(self.columns, name) for name in columns]
        early = np.argsort(self.first, kind="stable")  # so that of equal rows the first one is kept
        each = None if self.repeats is None else (self.counts / self.repeats)[early]
        part = [self.rows[early, j] for j in order]
        lines = [*([] if self.given is None else self.given.T), *([] if self.cluster is None else [self.cluster])]
        extra = np.stack(lines)[:, early] if lines else None
        found = condense(part, self.first[early], self.observations[early], each, extra=extra)
        counts = found.repeats if found.weights is None else found.repeats * found.weights
        repeats = None if found.weights is None else found.repeats
        rows = found.columns.T.astype(self.rows.dtype)
        q = 0 if self.given is None else self.given.shape[1]
        given = None if found.extra is None or not q else np.ascontiguousarray(found.extra[:q].T)
        cluster = None if found.extra is None or self.cluster is None else found.extra[-1].astype(np.int64)
        return replace(
            self, rows=rows, counts=counts, columns=tuple(columns), first=found.first, repeats=repeats, given=given,
            cluster=cluster,
        )  # fmt: skip

    def in_order(self, names: Sequence[str]) -> Dataset:
        """The same data with the columns in another order."""
        return self if tuple(names) == self.columns else self._select(names)


def _from_table(table: Table, reading: Reading, advance: Callable[[int, int], None]) -> Dataset:
    found, done = Tallies(), 0
    for part in table.parts:
        for chunk, read in part.chunks(reading.needed, CHUNK, reading.words):
            found.add(reading.tally(chunk, found.total))
            done += read
            advance(done, table.size)
    return of_tally(found.merged(), table.name, reading)


@dataclass(frozen=True)
class Reading:
    """How a table is read: which columns, which weights, what values may be.

    Attributes
    ----------
    columns : tuple of str
    weights : str or array, optional
        The column of weights, or the weights themselves, one for each row of the table.
    whole : bool
        Whether the table is read as one chunk, so that what is said of it is said of all.
    """

    name: str
    columns: tuple[str, ...]
    weights: str | np.ndarray | None
    domain: Domain | None
    missing: str
    whole: bool
    named: bool = True
    notes: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    cluster: str | None = None
    numbers: dict[Any, int] = field(default_factory=dict)
    """Of the clusters, in the order in which they were met."""

    @classmethod
    def of(
        cls,
        source: Any,
        table: Table,
        domain: Domain | Callable[[int], Domain] | None,
        columns: Sequence[str] | None = None,
        weights: Any = None,
        missing: str = "refuse",
        given: Sequence[str] = (),
        cluster: str | None = None,
    ) -> Reading:
        if missing not in ("refuse", "drop"):
            raise SettingError(f"missing must be 'refuse' or 'drop', not {missing!r}")
        if weights is not None and table.frequencies is not None:
            raise SettingError("the data are {value: count} and hold their own weights; leave out weights=")
        weights = table.frequencies if weights is None else weights
        names, notes = tuple(table.columns), table.notes
        if isinstance(weights, str):
            _match(weights, names)
            names = tuple(name for name in names if name != weights)
        elif weights is not None:
            weights = _aligned(weights, source)
            total = table.parts[0].size
            if isinstance(table.parts[0], Memory) and len(weights) != total:
                raise DataError(f"there are {len(weights)} weights for {total} rows")
        besides = tuple(_match(str(name), table.columns) for name in (*given, *([] if cluster is None else [cluster])))
        names = tuple(name for name in names if name not in besides)
        if columns is not None:
            columns = [columns] if isinstance(columns, str) else columns
            names = tuple(_match(str(c), table.columns) for c in columns)
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise DataError(f"the column '{twice[0]}' is asked for twice")
        elif set(names) & set(table.nameless):
            left = [name for name in names if name in table.nameless]
            names = tuple(name for name in names if name not in left)
            notes = (
                *notes,
                f"a column without a name ('{left[0]}') was left out: it looks like the row numbers that pandas "
                "writes. What to do: nothing, or name it in columns=[...] if it is data.",
            )
        if not names:
            raise DataError(f"{table.name} holds no columns")
        domain = domain(len(names)) if callable(domain) else domain
        if domain is not None and len(names) != domain.d:
            raise DataError(_wrong_width(names, domain.d))
        whole = len(table.parts) == 1 and table.size <= CHUNK
        covariates = besides[: len(given)]
        return cls(table.name, names, weights, domain, missing, whole, table.named, notes, covariates, cluster)

    @property
    def words(self) -> dict[str, tuple[str, ...]]:
        """Labels of the columns' categories, which are values even where they usually mean that one is missing."""
        if self.domain is None:
            return {}
        return {name: self.domain.coordinate(j).labels for j, name in enumerate(self.columns)}

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that must be read."""
        more = (self.weights if isinstance(self.weights, str) else None, self.cluster)
        return self.columns + self.given + tuple(name for name in more if name is not None)

    def tally(self, chunk: Columns, start: int) -> Tally:
        """The distinct rows of a chunk whose first row is number ``start`` of the table (from 0)."""
        total = len(chunk[self.columns[0]])
        kept = np.ones(total, bool)
        for name in self._complete:
            if not np.issubdtype(chunk[name].dtype, np.integer):
                kept &= ~np.asarray(pd.isna(chunk[name]))
        if not kept.all() and self.missing == "refuse":
            self._refuse_missing(chunk, start, int(total - kept.sum()), total)
        weights = self._weights_of(chunk, start, total)
        used = kept if weights is None else kept & (weights > 0)
        everything = used.all()
        where = np.arange(total) if everything else np.flatnonzero(used)
        codes = [
            self._codes(chunk[name] if everything else chunk[name][where], name, j, start + where)
            for j, name in enumerate(self.columns)
        ]
        each = None if weights is None else weights[where]
        extra = self._extra(chunk, where, start)
        return condense(codes, start + where, None, each, total, int(total - kept.sum()), extra)

    @property
    def _complete(self) -> tuple[str, ...]:
        """The columns in which nothing may be missing."""
        return self.columns + self.given + (() if self.cluster is None else (self.cluster,))

    def _extra(self, chunk: Columns, where: np.ndarray, start: int) -> np.ndarray | None:
        """Covariates and the clusters' numbers, one line each."""
        lines = []
        for name in self.given:
            numbers = pd.to_numeric(pd.Series(chunk[name][where]), errors="coerce").to_numpy(dtype=float)
            if not np.isfinite(numbers).all():
                i = int(np.argmin(np.isfinite(numbers)))
                raise DataError(
                    f"row {start + where[i] + 1}, column '{name}' is {chunk[name][where][i]!r}; a covariate must be a "
                    "finite number. Correct the value or leave the covariate out."
                )
            lines.append(numbers)
        if self.cluster is not None:
            found = chunk[self.cluster][where].tolist()
            lines.append(np.array([self.numbers.setdefault(label, len(self.numbers)) for label in found], float))
        return np.stack(lines) if lines else None

    def _codes(self, column: np.ndarray, name: str, j: int, where: np.ndarray) -> np.ndarray:
        coordinate = self.domain.coordinate(j) if self.domain is not None else None
        return _as_integers(column, name, where, coordinate, "" if self.whole else "at least ")

    def _weights_of(self, chunk: Columns, start: int, total: int) -> np.ndarray | None:
        if self.weights is None:
            return None
        if isinstance(self.weights, str):
            return _as_weights(chunk[self.weights], self.weights, start)
        part = self.weights[start : start + total]
        if len(part) != total:
            raise DataError(f"there are {len(self.weights)} weights for more than {start + len(part)} rows")
        return _as_weights(part, "weights", start)

    def _refuse_missing(self, chunk: Columns, start: int, dropped: int, total: int) -> None:
        absent = np.stack([np.asarray(pd.isna(chunk[name])) for name in self._complete], axis=1)
        i, j = np.argwhere(absent)[0]
        of = f"of {total} rows" if self.whole else f"of the {total} rows from row {start + 1} on"
        raise DataError(
            f"{dropped} {of} have missing values (first: row {start + i + 1}, column '{self._complete[j]}'). "
            "Pass missing='drop' (on the command line: --missing drop) to leave them out."
        )


def of_tally(tally: Tally | None, source: str, reading: Reading) -> Dataset:
    """A data set from the distinct rows of a table."""
    if tally is None or tally.total == 0:
        raise DataError(f"{source} holds no rows: give at least two observations")
    if tally.size == 0:
        if tally.dropped == tally.total:
            raise DataError(
                f"every one of the {tally.total} rows of {source} has a missing value: nothing is left to fit"
            )
        named = reading.weights if isinstance(reading.weights, str) else "weights"
        raise DataError(f"all weights in '{named}' are zero: there are no observations")
    weights, dropped = tally.weights, tally.dropped
    if weights is not None and (weights == np.round(weights)).all():  # frequencies
        tally, weights = tally.without_weights(), None
    rows = np.ascontiguousarray(tally.columns.T)
    if rows.size <= MANY_CELLS:
        rows = rows.astype(np.int64)
    counts = tally.repeats if weights is None else tally.repeats * weights
    repeats = None if weights is None else tally.repeats
    names, extra, q = reading.columns, tally.extra, len(reading.given)
    return Dataset(
        rows, counts, names, tally.first, dropped, source, repeats, reading.named, reading.notes,
        given=None if extra is None or not q else np.ascontiguousarray(extra[:q].T), given_columns=reading.given,
        cluster=None if extra is None or reading.cluster is None else extra[-1].astype(np.int64),
    )  # fmt: skip


def _aligned(weights: Any, source: Any) -> np.ndarray:
    """Weights as a vector; those of a pandas series belong to the rows of a frame by their index."""
    pandas = isinstance(weights, pd.Series) and isinstance(source, (pd.DataFrame, pd.Series))
    if pandas and not weights.index.equals(source.index):
        if not (weights.index.is_unique and source.index.is_unique and set(source.index) == set(weights.index)):
            raise DataError(
                "the weights' index is not the data's, so nobody can tell which weight belongs to which row. Give "
                "weights with the same index, or as an array (weights.to_numpy()) if their order is the rows'."
            )
        weights = weights.reindex(source.index)
    array = np.asarray(weights)
    if array.ndim != 1:
        raise DataError(f"weights must be a vector, one for each row, not of shape {array.shape}")
    return array


def _as_integers(column: np.ndarray, name: str, where: np.ndarray, coordinate: Any, least: str = "") -> np.ndarray:
    """Codes of one column without missing values; every refusal says row, column and remedy."""
    labels = coordinate.labels if coordinate is not None else ()
    if labels:
        codes = pd.Index(labels).get_indexer(pd.Index(column.astype(str)))
        if (codes < 0).any():
            i = int(np.argmax(codes < 0))
            raise DataError(
                f"row {where[i] + 1}, column '{name}' is '{column[i]}'; Categories needs {coordinate.needs}. "
                "Correct the value or add it to the model's labels."
            )
        return codes.astype(np.int64)
    if _is_time(column):
        raise DataError(
            f"column '{name}' holds dates or times (row {where[0] + 1}: {column[0]}), which are no counts. Leave the "
            "column out (columns=..., on the command line --columns), or recode it."
        )
    if column.dtype == bool or (np.issubdtype(column.dtype, np.integer) and column.dtype != np.uint64):
        return column if column.dtype != bool else column.astype(np.int64)
    if column.dtype.kind == "c":
        raise DataError(f"column '{name}' holds complex numbers; discrete data need whole numbers")
    numbers = pd.to_numeric(pd.Series(column), errors="coerce").to_numpy(dtype=float)
    if np.isnan(numbers).any():
        i = int(np.argmax(np.isnan(numbers)))
        raise DataError(
            f"row {where[i] + 1}, column '{name}' is the text '{column[i]}'; the model needs whole numbers. "
            "Leave the column out (columns=..., on the command line --columns), or recode it."
        )
    fractional = (numbers != np.round(numbers)) | (np.abs(numbers) > 2**53)
    if fractional.any():
        i = int(np.argmax(fractional))
        raise DataError(
            f"row {where[i] + 1}, column '{name}' is {numbers[i]:g}; discrete data need whole numbers "
            f"({least}{int(fractional.sum())} rows are affected). Round or recode the column, or leave it out."
        )
    return numbers.astype(np.int64)


def _is_time(column: np.ndarray) -> bool:
    if column.dtype.kind in "mM":
        return len(column) > 0
    times = (datetime.date, datetime.time, datetime.timedelta, pd.Period, np.datetime64, np.timedelta64)
    return column.dtype == object and any(isinstance(value, times) for value in column)


def _as_weights(weights: np.ndarray, name: str, start: int) -> np.ndarray:
    numbers = pd.to_numeric(pd.Series(np.asarray(weights)), errors="coerce").to_numpy(dtype=float)
    wrong = ~np.isfinite(numbers) | (numbers < 0)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise DataError(f"row {start + i + 1}, column '{name}' is {weights[i]}; a weight must be a number >= 0")
    return numbers


def _match(name: str, table: Sequence[str]) -> str:
    if name not in table:
        raise DataError(f"there is no column '{name}'; the columns are {', '.join(map(repr, table))}")
    return name


def _position(columns: tuple[str, ...], name: str) -> int:
    return columns.index(_match(name, columns))


def _wrong_width(columns: tuple[str, ...], needed: int) -> str:
    shown = ", ".join(f"'{c}'" for c in columns[:8]) + (", ..." if len(columns) > 8 else "")
    text = (
        f"the model needs {needed} column{'s' if needed > 1 else ''}, the data have {len(columns)} ({shown}). "
        "Choose with columns=[...] (on the command line: --columns NAME,...)"
    )
    if len(columns) == needed + 1:
        text += f"; if '{columns[-1]}' holds frequencies, say weights='{columns[-1]}' (--weights {columns[-1]})"
    return text + "."
