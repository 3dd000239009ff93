"""A data set as its distinct rows with weights; reading and validation happen here, once.

Whatever a user has (an array, a frame, a frequency table, a file) becomes a `Dataset`. Everything
after that works on distinct rows, so the number of observations no longer matters, and a bootstrap
replicate is a new vector of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from ..data.read.interpreting import MISSING, Reading, listed, position, tell_outside, wrong_width
from ..data.read.missing_codes import by_meaning, note, suspects
from ..data.read.problems import Problems, affected
from ..data.read.reading import CHUNK, Table, table_of
from ..data.read.survey_weights import told_of_weights
from ..data.read.text import Ragged
from ..errors import DataError, SettingError
from .distinct import Tallies, Tally, condense
from .domain import Domain

MOST_WEIGHT = 1e100  # whose square, times any number of rows, is a number
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

    def __repr__(self) -> str:
        columns = ", ".join(self.columns[:6]) + (f" and {self.d - 6} more" if self.d > 6 else "")
        return (
            f"Dataset of {self.n} observations, {len(self.rows)} distinct rows, columns {columns} (from {self.source})"
        )

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
        weighting: str = "auto",
        missing_codes: Any = None,
        decimal: str | None = None,
        advance: Callable[[int, int], None] = lambda done, total: None,
    ) -> Dataset:
        """Make a data set from what a user has.

        Parameters
        ----------
        source
            A NumPy array (1-d, or rows by columns, or records), a pandas or polars frame or series, a mapping
            ``{name: values}`` or ``{value: count}``, the path of a CSV or Parquet file or of a folder of such files, or
            a `Dataset`. Files and arrays are read in chunks, so they may be larger than memory. Contingency tables
            (``frame.value_counts()``, ``groupby(...).size()``, ``pd.crosstab`` of binary columns) are frequencies.
        domain : Domain, optional
            If given, the data are checked against it and labelled categories are read by label. A function is called
            with the number of columns, before any row is read.
        columns : sequence of str, optional
            Which columns to use, in this order. All by default, but for row numbers and identifiers beside two or more
            others: these are left out, and a note says so.
        weights : str or array, optional
            The column that holds the weights, or the weights themselves. Whole numbers are frequencies: how often a
            row occurs, and refused where they look like a survey's weights (see ``weighting``). If any is fractional
            they are observation weights: each row is one observation that counts so much, as in a survey, and a
            bootstrap draws rows with their weights.
        missing : {"refuse", "drop", "impute"}
            What to do with rows that have a missing value: stop; leave them out, which is right where values are
            missing completely at random; or keep them for a fit that weighs what they may be (fractional imputation),
            which is right where what is missing depends on observed values only (missing at random).
        given : sequence of str, optional
            Columns of covariates, which must be numbers.
        cluster : str, optional
            The column that says which rows belong together.
        weighting : {"auto", "frequency", "sampling"}
            What weights are: how often a row occurs, or how many people one observation stands for. Whole numbers are
            taken for frequencies unless this says otherwise, and refused without it where they can hardly be: hardly
            any is 1, they are large, and the rows do not list the combinations of values once each.
        missing_codes : number, str, sequence or mapping, optional
            Values that stand for missing ones, ``[-9, "unknown"]``, or by column, ``{"age": 999}``. Numbers that look
            like such codes are named in a note (see ``notes``) and read as numbers; ``[]`` says that there are none.
        decimal : {".", ","}, optional
            The decimal mark of text files; by default it is told from them, and refused where it cannot be.
        advance : callable, optional
            Called after every chunk with how much was read, and how much there is.
        """
        if isinstance(source, Dataset):
            data = source
            if columns is not None:
                data = data._select(listed(columns))
            opened(source, missing_codes, decimal)
            if weights is not None or given or cluster is not None:
                raise SettingError("weights, covariates and clusters are part of a Dataset; give them where it is made")
            domain = domain(data.d) if callable(domain) else domain
            if domain is not None:
                data.check(domain)
            return data
        table = table_of(source, decimal, missing_codes)
        reading = Reading.of(source, table, domain, columns, weights, missing, given, cluster, weighting)
        return _from_table(table, reading, advance)

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
        rows, observed = _filled(np.ascontiguousarray(found.columns.T))
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


def opened(source: Any, missing_codes: Any = None, decimal: str | None = None) -> Any:
    """What a user has, with what is said of its codes and decimal mark; as it is where nothing is said."""
    if missing_codes is None and decimal is None:
        return source
    if isinstance(source, Dataset):
        raise SettingError("codes of missing values are part of a Dataset; give them where it is made")
    return table_of(source, decimal, missing_codes)


def _from_table(table: Table, reading: Reading, advance: Callable[[int, int], None]) -> Dataset:
    found, done = Tallies(), 0
    for part in table.parts:
        ragged = Ragged(begins=found.total)
        for chunk, read in part.chunks(reading.needed, CHUNK, reading.words, ragged):
            found.add(reading.tally(chunk, found.total, ragged))
            done += read
            advance(done, table.size)
        ragged.refuse(table.name, len(table.columns))
    return of_all_rows(found.merged(), table.name, reading)


def of_all_rows(tally: Tally | None, source: str, reading: Reading) -> Dataset:
    """A data set from the distinct rows of a whole table, whose weights can be frequencies."""
    told: tuple[str, ...] = ()
    if tally is not None and reading.weights is not None and reading.weighting == "auto":
        told = told_of_weights(tally, reading.weights if isinstance(reading.weights, str) else "weights")
    made = of_tally(tally, source, reading)
    return replace(made, notes=(*made.notes, *told))


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
    largest = 1.0 if weights is None else float(np.max(weights))
    if not 1.0 / MOST_WEIGHT < largest < MOST_WEIGHT:
        raise DataError(
            f"the largest weight is {largest:.3g}, and sums of such weights, or of their squares, are no numbers. What "
            "to do: divide the weights by their mean (sampling weights may have any unit)."
        )
    if weights is not None and reading.weighting != "sampling":
        whole = bool((weights == np.round(weights)).all())
        if reading.weighting == "frequency" and not whole:
            raise DataError("a frequency is a whole number, and some weights are not; say weighting='sampling'")
        if whole:
            tally, weights = tally.without_weights(), None
    rows, observed = _filled(np.ascontiguousarray(tally.columns.T))
    if observed is not None:
        _require_seen(observed, reading.columns)
    if rows.size <= MANY_CELLS:
        rows = rows.astype(np.int64)
    counts = tally.repeats if weights is None else tally.repeats * weights
    repeats = None if weights is None else tally.repeats
    names, extra, q, notes = reading.columns, tally.extra, len(reading.given), reading.told
    if reading.missing == "impute" and dropped:
        notes, dropped = (*notes, f"{dropped} row{'s' * (dropped > 1)} without any value left out: nothing is lost"), 0
    return Dataset(
        rows, counts, names, tally.first, dropped, source, repeats, reading.named,
        notes + _suspicions(tally.columns, counts, reading),
        given=None if extra is None or not q else np.ascontiguousarray(extra[:q].T), given_columns=reading.given,
        cluster=None if extra is None or reading.cluster is None else extra[-1].astype(np.int64), observed=observed,
    )  # fmt: skip


def _filled(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows with a value that occurs in the column in place of missing ones, and where values were observed."""
    absent = rows == MISSING
    if not absent.any():
        return rows, None
    lowest = np.where(absent, np.iinfo(np.int64).max, rows.astype(np.int64)).min(axis=0)
    return np.where(absent, lowest, rows.astype(np.int64)), ~absent


def _require_seen(observed: np.ndarray, columns: Sequence[str]) -> None:
    for j in np.flatnonzero(~observed.any(axis=0))[:1]:
        raise DataError(f"column '{columns[j]}' has no value in any row. What to do: leave it out (columns=[...]).")


def _tallied(column: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of a column, sorted, and how often each occurs."""
    low = int(column.min())
    if int(column.max()) - low < 2**20:
        often = np.bincount(column.astype(np.int64) - low, weights=counts)  # weights of rows are above zero
        return np.flatnonzero(often) + low, often[often > 0]
    values, inverse = np.unique(column, return_inverse=True)
    return values, np.bincount(inverse, weights=counts)


def _suspicions(columns: np.ndarray, counts: np.ndarray, reading: Reading) -> tuple[str, ...]:
    """What to say of numbers that look like codes for missing values, unless the user has spoken about these."""
    if reading.codes.given:
        return ()
    found = {}
    for j, (name, column) in enumerate(zip(reading.columns, columns, strict=True)):
        known = column != MISSING
        if not known.all():
            column, own = column[known], counts[known]
        else:
            own = counts
        labelled = reading.domain is not None and reading.domain.coordinate(j).labels
        if labelled or (column.min() > -7 and column.max() < 9 and name not in reading.labels):  # none can be there
            continue
        values, often = _tallied(column, own)
        by_name = by_meaning(reading.labels.get(name, {}), values)
        found[name] = tuple(sorted({*suspects(values.astype(float), often), *by_name}))
    return note(found)
