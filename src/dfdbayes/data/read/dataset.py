"""Data sets from whatever a user has: the one place where sources become rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..._util.resources import NUMBERS_AT_ONCE
from ...core.dataset import MISSING, Dataset, Tallies, Tally, filled
from ...core.domain import Domain
from ...errors import DataError, SettingError
from .columns import Reading, listed, told_of_weights
from .reading import ROWS_AT_ONCE, Table, table_of
from .text import Ragged, by_meaning, note, suspects


def read(
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


Dataset.of = read  # as `dfd.Dataset.of`: what a data set is needs no reading, and nothing in `core` reads


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
        for chunk, read in part.chunks(reading.needed, ROWS_AT_ONCE, reading.words, ragged):
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
    if not 1e-100 < largest < 1e100:  # within these a square, times any number of rows, is a number
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
    rows, observed = filled(np.ascontiguousarray(tally.columns.T))
    if observed is not None:
        _require_seen(observed, reading.columns)
    if rows.size <= 4 * NUMBERS_AT_ONCE:  # larger ones stay in the smallest integers that hold them
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
