"""A data set as its distinct rows with weights.

Whatever a user has (an array, a frame, a frequency table, a file, a graph, a map) becomes a `Dataset`. Everything after
that works on distinct rows, so the number of observations no longer matters, and a bootstrap replicate is a new vector
of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from ..errors import DataError, Problems, affected, close, some
from .distinct import condense
from .domain import Coordinate, Domain

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
