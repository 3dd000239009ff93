"""A data set as its distinct rows with weights.

Whatever a user has (an array, a frame, a frequency table, a file, a graph, a map) becomes a `Dataset`. Everything after
that works on distinct rows, so the number of observations no longer matters, and a bootstrap replicate is a new vector
of weights.

Rows are made distinct chunk by chunk (`Tally`). The outcome does not depend on how they were cut into chunks, nor on
their order (but for where each first stands).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from ..errors import DataError, Problems, SettingError, affected, close, some
from .domain import Coordinate, Domain

BUCKETS = 64


@dataclass(frozen=True)
class Tally:
    """Distinct rows, sorted; with observation weights a row is distinct by its weight too.

    Attributes
    ----------
    columns : (d, u) integers
        The distinct rows, one line a column, in the smallest type that holds them.
    repeats : (u,) floats
        How many observations each distinct row stands for.
    first : (u,) integers
        The number of the row where each is first seen.
    weights : (u,) floats, optional
        What one observation of it weighs.
    extra : (k, u) floats, optional
        What else makes a row distinct and is not modelled: covariates, and the cluster it belongs to.
    total, dropped : int
        Rows seen, and rows among them that were left out.
    """

    columns: Int[np.ndarray, "d u"]
    repeats: Float[np.ndarray, " u"]
    first: Int[np.ndarray, " u"]
    weights: Float[np.ndarray, " u"] | None = None
    total: int = 0
    dropped: int = 0
    extra: Float[np.ndarray, "k u"] | None = None

    @property
    def size(self) -> int:
        return self.columns.shape[1]

    def without_weights(self) -> Tally:
        """Rows by value alone, each observation repeated as often as it weighs."""
        assert self.weights is not None
        repeats = self.repeats * self.weights
        return condense(self.columns, self.first, repeats, None, self.total, self.dropped, self.extra)

    def buckets(self) -> Int[np.ndarray, " u"]:
        """A bucket for each row, given by its values alone, whatever else the data hold."""
        return bucket_of(self.columns)

    def part(self, chosen: np.ndarray) -> Tally:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        extra = None if self.extra is None else self.extra[:, chosen]
        return Tally(self.columns[:, chosen], self.repeats[chosen], self.first[chosen], weights, extra=extra)


def condense(
    columns: Sequence[np.ndarray] | np.ndarray,
    first: np.ndarray,
    repeats: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    total: int = 0,
    dropped: int = 0,
    extra: np.ndarray | None = None,
) -> Tally:
    """The distinct ones among rows given by column; ``first`` must be increasing among equal rows."""
    more = [*([] if extra is None else extra), *([] if weights is None else [weights])]
    codes = [*columns, *(np.unique(part, return_inverse=True)[1] for part in more)]
    key, size = keys(codes)
    if size <= max(4 * len(key), 2**16):
        summed = np.bincount(key, weights=repeats, minlength=size)
        place = np.empty(size, dtype=np.int64)
        place[key[::-1]] = np.arange(len(key) - 1, -1, -1)  # of equal keys the last written stays: the first row
        seen = np.bincount(key, minlength=size) > 0 if repeats is not None else summed > 0
        index, counts = place[seen], summed[seen].astype(float)
    else:
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        index = order[begins]
        counts = np.diff([*begins, len(key)]) if repeats is None else np.add.reduceat(repeats[order], begins)
    kept = [_compact(column[index]) for column in columns]
    held = None if weights is None else weights[index]
    besides = None if extra is None else extra[:, index]
    return Tally(np.stack(kept), np.asarray(counts, float), first[index], held, total, dropped, besides)


def merge(parts: Sequence[Tally]) -> Tally:
    """Tallies of stretches of a table, in order, as one."""
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate([part.columns[j] for part in parts]) for j in range(len(parts[0].columns))]
    weights = None
    if parts[0].weights is not None:
        weights = np.concatenate([part.weights for part in parts if part.weights is not None])
    return condense(
        columns,
        np.concatenate([part.first for part in parts]),
        np.concatenate([part.repeats for part in parts]),
        weights,
        sum(part.total for part in parts),
        sum(part.dropped for part in parts),
        None if parts[0].extra is None else np.concatenate([p.extra for p in parts if p.extra is not None], axis=1),
    )


class Tallies:
    """Tallies as they come, merged whenever half as much is waiting as is merged."""

    def __init__(self) -> None:
        self._parts: list[Tally] = []
        self.total = self.dropped = 0

    def add(self, part: Tally) -> None:
        self.total, self.dropped = self.total + part.total, self.dropped + part.dropped
        self._parts.append(part)
        waiting = sum(p.size for p in self._parts[1:])
        if waiting > max(self._parts[0].size // 2, 2**20) or len(self._parts) > 32:
            self._parts = [merge(self._parts)]

    def merged(self) -> Tally | None:
        self._parts = [merge(self._parts)] if self._parts else []
        return self._parts[0] if self._parts else None


def keys(columns: Sequence[np.ndarray]) -> tuple[Int[np.ndarray, " n"], int]:
    """One integer a row, ordered as the rows are, and a bound above all of them."""
    key, size = np.zeros(len(columns[0]), dtype=np.int64), 1
    if not len(key):
        return key, 1
    for column in columns:
        low, high = int(column.min()), int(column.max())
        span = high - low + 1
        if size * span < 2**62:
            key, size = key * span + (column.astype(np.int64) - low), size * span
        else:  # number what there is, which leaves no gaps
            (values, key), (levels, code) = (np.unique(part, return_inverse=True) for part in (key, column))
            key, size = key * len(levels) + code, len(values) * len(levels)
    return key, size


def _compact(column: np.ndarray) -> np.ndarray:
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return column.astype(kind)
    return column.astype(np.int64)


def bucket_of(columns: np.ndarray) -> Int[np.ndarray, " u"]:
    """A number below `BUCKETS` from each row's values: a fixed mixture of their bits."""
    mixed = np.full(columns.shape[1], 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in columns:
        mixed ^= column.astype(np.int64).view(np.uint64)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(58)).astype(np.int64)


MISSING = np.iinfo(np.int32).min  # stands for a missing entry until rows are distinct
PLACE = "place in time"  # the covariate that keeps rows of different times apart, and says which are neighbours


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

    of: ClassVar[Callable[..., Dataset]]
    """Make a data set from what a user has: `data.read.dataset.read`, which puts itself here."""

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

    def __repr__(self) -> str:
        columns = ", ".join(self.columns[:6]) + (f" and {self.d - 6} more" if self.d > 6 else "")
        return (
            f"Dataset of {self.n} observations, {len(self.rows)} distinct rows, columns {columns} (from {self.source})"
        )

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
        parts = (self.rows.astype(np.int64), self.counts, self.observations, self.given, self.cluster, self.observed)
        for part in parts:
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

    @property
    def is_complete(self) -> bool:
        """Whether no entry is missing."""
        return self.observed is None

    @property
    def seen(self) -> Bool[np.ndarray, "u d"]:
        """Which entries were observed."""
        return np.ones(self.rows.shape, bool) if self.observed is None else self.observed

    def thinned(self, most: int = 2**16) -> Dataset:
        """Every so-many-th distinct row with its weight, at most ``most``: enough for a first guess."""
        if len(self.rows) <= most:
            return self
        return self.at(np.linspace(0, len(self.rows) - 1, most).astype(int))

    def check(self, domain: Domain) -> None:
        """Raise `DataError`, naming row, column and remedy, unless every row lies in ``domain``."""
        if self.d != domain.d:
            raise DataError(wrong_width(self.columns, domain.d))
        outside = np.concatenate([~domain.contains(rows).all(axis=1) for rows in self.slices()])
        if not outside.any():
            return
        problems = Problems(self.source)
        for j in range(self.d):
            coordinate = domain.coordinate(j)
            bad = np.flatnonzero(~coordinate.contains(self.rows[:, j].astype(np.int64)))
            if len(bad):
                bad = bad[np.argsort(self.first[bad])]
                said = affected(int(self.counts[bad].sum()), of=self.n)
                tell_outside(problems, self.columns[j], int(self.rows[bad[0], j]), coordinate, self.first[bad], said)
        problems.refuse()

    def reweighted(self, counts: np.ndarray) -> Dataset:
        """The same distinct rows under other frequencies; rows of frequency 0 are left out."""
        counts = np.asarray(counts, float)
        kept = counts > 0
        return self.at(kept, counts[kept])

    def _select(self, columns: Sequence[str]) -> Dataset:
        order = [position(self.columns, name) for name in columns]
        early = np.argsort(self.first, kind="stable")  # so that of equal rows the first one is kept
        each = None if self.repeats is None else (self.counts / self.repeats)[early]
        part = [self.rows[early, j] for j in order]
        if self.observed is not None:
            part = [np.where(self.observed[early, j], codes, MISSING) for j, codes in zip(order, part, strict=True)]
        lines = [*([] if self.given is None else self.given.T), *([] if self.cluster is None else [self.cluster])]
        extra = np.stack(lines)[:, early] if lines else None
        found = condense(part, self.first[early], self.observations[early], each, extra=extra)
        counts = found.repeats if found.weights is None else found.repeats * found.weights
        repeats = None if found.weights is None else found.repeats
        rows, observed = filled(np.ascontiguousarray(found.columns.T))
        q = 0 if self.given is None else self.given.shape[1]
        given = None if found.extra is None or not q else np.ascontiguousarray(found.extra[:q].T)
        cluster = None if found.extra is None or self.cluster is None else found.extra[-1].astype(np.int64)
        return replace(
            self, rows=rows.astype(self.rows.dtype), counts=counts, columns=tuple(columns), first=found.first,
            repeats=repeats, given=given, cluster=cluster, observed=observed,
        )  # fmt: skip

    def in_order(self, names: Sequence[str]) -> Dataset:
        """The same data with the columns in another order."""
        return self if tuple(names) == self.columns else self._select(names)


def filled(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows with a value that occurs in the column in place of missing ones, and where values were observed."""
    absent = rows == MISSING
    if not absent.any():
        return rows, None
    lowest = np.where(absent, np.iinfo(np.int64).max, rows.astype(np.int64)).min(axis=0)
    return np.where(absent, lowest, rows.astype(np.int64)), ~absent


def tell_outside(
    problems: Problems, name: str, value: int, coordinate: Coordinate, rows: np.ndarray, said: str | None = None
) -> None:
    """Add values of a column that a domain does not hold."""
    code = f" If {value} stands for a missing value, say missing_codes=[{value}] (--missing-codes={value})."
    problems.add(
        f"row {{row}}, column '{name}' is {value}; {coordinate.label} needs {coordinate.needs}",
        f"Correct or remove those rows, or choose a model whose domain holds them.{code if value < 0 else ''}",
        rows,
        said,
    )


def match(name: str, table: Sequence[str]) -> str:
    """The name of a column that there is."""
    if name not in table:
        hint = close(name, list(map(str, table))) or "."
        raise DataError(f"there is no column '{name}'{hint} The columns are {some(map(repr, table))}.")
    return name


def position(columns: tuple[str, ...], name: str) -> int:
    """Where a column stands."""
    return columns.index(match(name, columns))


def wrong_width(columns: tuple[str, ...], needed: int) -> str:
    """What to say of data with more or fewer columns than a model has coordinates."""
    shown = ", ".join(f"'{c}'" for c in columns[:8]) + (", ..." if len(columns) > 8 else "")
    text = (
        f"the model needs {needed} column{'s' if needed > 1 else ''}, the data have {len(columns)} ({shown}). "
        "Choose with columns=[...] (on the command line: --columns NAME,...)"
    )
    if len(columns) == needed + 1:
        text += f"; if '{columns[-1]}' holds frequencies, say weights='{columns[-1]}' (--weights {columns[-1]})"
    if needed == 1:
        text += "; if others are covariates, give a formula='y ~ x' (--formula 'y ~ x')"
    return text + "."


def column_summary(data: Dataset) -> pd.DataFrame:
    """Mean, variance, smallest and largest value, and share of zeros of every column, under the data's weights.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> column_summary(dfd.Dataset.of({0: 2, 4: 2}))["zeros"].tolist()
    [0.5]
    """
    shares = data.counts / data.counts.sum()
    mean = shares @ data.rows
    return pd.DataFrame(
        {
            "mean": mean,
            "variance": shares @ (data.rows - mean) ** 2,
            "min": data.rows.min(axis=0),
            "max": data.rows.max(axis=0),
            "zeros": shares @ (data.rows == 0),
        },
        index=pd.Index(data.columns, name="column"),
    )


def pooled_summary(data: Dataset) -> pd.DataFrame:
    """The same over the values of all columns at once: for the sites of a lattice, say."""
    shares = data.counts / data.counts.sum() / data.d
    mean = float((shares @ data.rows).sum())
    row = {
        "mean": mean,
        "variance": float((shares @ (data.rows - mean) ** 2).sum()),
        "min": int(data.rows.min()),
        "max": int(data.rows.max()),
        "zeros": float((shares @ (data.rows == 0)).sum()),
    }
    return pd.DataFrame([row], index=pd.Index([f"all {data.d} sites"], name="column"))


def frequencies(data: Dataset, column: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of a column and how much weight each has."""
    values, inverse = np.unique(data.rows[:, column], return_inverse=True)
    return values, np.bincount(inverse, weights=data.counts)


def far_values(data: Dataset) -> list[tuple[str, int, int, float]]:
    """Values a thousand times as large as all others of their column: name, row, value, next largest."""
    found = []
    for j, name in enumerate(data.columns):
        size = np.abs(data.rows[:, j].astype(float))
        if len(size) < 2:
            continue
        next_one, largest = np.partition(size, -2)[-2:]
        if largest > 1e3 * max(next_one, 1.0):
            place = int(np.argmax(size))
            found.append((name, int(data.first[place]) + 1, int(data.rows[place, j]), float(next_one)))
    return found


ROWS, CLUSTERS, BLOCKS, WINDOWS = "rows", "clusters", "blocks", "windows"


@dataclass(frozen=True)
class Units:
    """What is resampled.

    Attributes
    ----------
    kind : {"rows", "clusters", "blocks", "windows"}
        Distinct rows, clusters of rows, blocks of sites of a single observation, or windows of neighbouring rows of a
        series, which overlap: the units themselves are rows then.
    weights : (v,) floats
        The data's own weight of each unit.
    observations : (v,) floats
        How many independent observations stand behind each; equal to the weights unless observations have weights.
    owner : integers, optional
        The unit of each row (u,) of clusters, or of each site (d,) of blocks; rows are their own units.
    place : (v,) integers, optional
        Where each row is in time, of windows.
    length : float, optional
        How many rows a window has; chosen from their gradients where it is not given.
    """

    kind: str
    weights: Float[np.ndarray, " v"]
    observations: Float[np.ndarray, " v"]
    owner: Int[np.ndarray, " k"] | None = None
    place: Int[np.ndarray, " v"] | None = None
    length: float | None = None

    @property
    def each(self) -> Float[np.ndarray, " v"]:
        """What one observation of each unit weighs: 1, unless the data have observation weights."""
        return self.weights / self.observations

    def __str__(self) -> str:
        if self.kind == ROWS:
            return "rows"
        if self.kind == WINDOWS:
            return f"windows of {f'{self.length:g} ' if self.length else ''}neighbouring rows"
        return f"{len(self.weights)} {self.kind}" + (" of sites of one observation" if self.kind == BLOCKS else "")


def rows_of(data: Dataset) -> Units:
    """Every distinct row as a unit, with the number of observations that equal it."""
    return Units(ROWS, data.counts, data.observations)


def clusters_of(data: Dataset) -> Units:
    """The data's clusters as units; rows of different clusters are distinct."""
    assert data.cluster is not None
    ones = np.ones(int(data.cluster.max()) + 1)
    return Units(CLUSTERS, ones, ones, data.cluster)


def blocks_of(blocks: Int[np.ndarray, " d"]) -> Units:
    """Blocks of the sites of one observation as units, from the block of each site."""
    ones = np.ones(int(blocks.max()) + 1)
    return Units(BLOCKS, ones, ones, blocks)


def windows_of(data: Dataset, length: float | None) -> Units:
    """Windows of rows of a series; an error where the data are none."""
    if PLACE not in data.given_columns or data.given is None:
        raise SettingError(
            "the data have no order in time. What to do: name its column with time=..., or use lag(...) in the formula."
        )
    place = data.given[:, data.given_columns.index(PLACE)].astype(np.int64)
    return Units(WINDOWS, data.counts, data.observations, None, place, length)


def blocks_of_rows(blocks: Int[np.ndarray, " u"]) -> Units:
    """Blocks of the sites of one map, whose rows are sites: clusters of rows."""
    ones = np.ones(int(blocks.max()) + 1)
    return Units(CLUSTERS, ones, ones, blocks)


def unscaled(sites: Sites) -> tuple[float, float]:
    """Every term counts once."""
    return 1.0, 1.0


@dataclass(frozen=True)
class Sites:
    """All sites of a data set, their neighbours computed when they are asked for.

    Attributes
    ----------
    data : Dataset
    domain : Domain
        Says which values are neighbours.
    units : Units
    scales : callable
        ``scales(sites)`` gives how much the terms of the two ratios of every move count.
    """

    data: Dataset
    domain: Domain
    units: Units
    scales: Callable[[Sites], tuple[Any, Any]] = unscaled

    @property
    def rows(self) -> Int[np.ndarray, "u d"]:
        return self.data.rows

    @property
    def given(self) -> Float[np.ndarray, "u q"] | None:
        """Covariates of every row."""
        return self.data.given

    @cached_property
    def _down(self) -> tuple[np.ndarray, np.ndarray]:
        return self.domain.decrement(self.rows)

    @cached_property
    def _up(self) -> tuple[np.ndarray, np.ndarray]:
        return self.domain.increment(self.rows)

    @property
    def j(self) -> Int[np.ndarray, " m"]:
        """The coordinate of each move."""
        return self.domain.moves

    @property
    def down(self) -> Int[np.ndarray, "u m"]:
        """The coordinate's value after a decrement; its own where there is no such neighbour."""
        return self._down[0]

    @property
    def up(self) -> Int[np.ndarray, "u m"]:
        """The same after an increment."""
        return self._up[0]

    @cached_property
    def _scales(self) -> tuple[Any, Any]:
        return self.scales(self)

    @cached_property
    def minus(self) -> Float[np.ndarray, "u m"]:
        """How much the term of the ratio to the decrement counts; 0 where there is no decrement."""
        return self._scaled(0, self._down[1])

    @cached_property
    def plus(self) -> Float[np.ndarray, "u m"]:
        """The same for the increment."""
        return self._scaled(1, self._up[1])

    def _scaled(self, which: int, exists: Bool[np.ndarray, "u m"]) -> Float[np.ndarray, "u m"]:
        scale = self._scales[which]
        if np.ndim(scale) and np.shape(scale) != exists.shape:
            raise SettingError(
                f"the loss scales its terms by an array of shape {np.shape(scale)}; {self.domain!r} has {len(self.j)} "
                f"moves for each of {len(exists)} rows. Give one number for each: columns are those of domain.moves."
            )
        return np.where(exists, scale, 0.0)

    def at(self, rows: Int[np.ndarray, " k"]) -> Sites:
        """The sites of some of the distinct rows."""
        data = self.data.at(rows)
        return replace(self, data=data, units=rows_of(data))

    def in_slices(self, size: int) -> Iterator[Sites]:
        """The same sites, so many rows at a time."""
        for first in range(0, len(self.rows), size):
            yield self.at(np.arange(first, min(first + size, len(self.rows))))

    def by_unit(self, lines: Float[np.ndarray, "u p"]) -> Float[np.ndarray, "v p"]:
        """Lines of rows summed over what each unit of weight 1 owns of them."""
        if self.units.owner is None:
            return lines
        found = np.zeros((len(self.units.weights), lines.shape[1]))
        np.add.at(found, self.units.owner, lines * self.data.counts[:, None])
        return found

    def of_rows(self, weights: Float[np.ndarray, "*batch v"]) -> Float[np.ndarray, "*batch u"]:
        """Weights of rows from weights of units that own whole rows."""
        weights = np.asarray(weights, float)
        return weights if self.units.owner is None else weights[..., self.units.owner] * self.data.counts
