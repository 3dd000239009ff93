"""How a table is read: which columns, which weights, what values may be. Refusals say row, column and remedy."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ...core.distinct import Tally, condense
from ...core.domain import Coordinate, Domain
from ...errors import DataError, SettingError, close, some
from .identifiers import LOOKED_AT, without_identifiers
from .missing_codes import MissingCodes
from .numerals import both, doubtful
from .problems import Problems, affected
from .reading import CHUNK, Memory, Table, repeated, unmasked
from .text import NO_WORDS, Columns, Ragged
from .yes_no import read_answers, told_answers

MISSING = np.iinfo(np.int32).min  # stands for a missing entry until rows are distinct
HANDLED = ("refuse", "drop", "impute")
WEIGHTINGS = ("auto", "frequency", "sampling")


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
    words_read: dict[str, None] = field(default_factory=dict)
    """Columns of words that were read as no = 0 and yes = 1."""
    weighting: str = "auto"
    codes: MissingCodes = field(default_factory=MissingCodes)
    """Values that the user says stand for missing ones."""
    labels: Mapping[str, Mapping[float, str]] = field(default_factory=dict)
    """What values of columns mean, where their file knows it."""
    width: int = 0
    """How many columns the table has."""
    converted: bool = False
    """Whether texts that are numbers have become numbers, so that those which are left are none."""

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
        weighting: str = "auto",
    ) -> Reading:
        if weighting not in WEIGHTINGS:
            raise SettingError(f"weighting must be 'auto', 'frequency' or 'sampling', not {weighting!r}")
        if missing not in HANDLED:
            raise SettingError(f"missing must be 'refuse', 'drop' or 'impute', not {missing!r}")
        if weights is not None and table.frequencies is not None:
            raise SettingError("the data are {value: count} and hold their own weights; leave out weights=")
        weights = table.frequencies if weights is None else weights
        if table.frequencies is not None and weighting == "auto" and _whole(table.frequencies):
            weighting = "frequency"
        require_column(cluster)
        names, notes = tuple(table.columns), table.notes
        if isinstance(weights, str):
            match(weights, names)
            names = tuple(name for name in names if name != weights)
        elif weights is not None:
            weights = _aligned(weights, source)
            if isinstance(table.parts[0], Memory):
                _require_as_many(weights, table.parts[0].size)
        besides = tuple(match(str(name), table.columns) for name in (*given, *([] if cluster is None else [cluster])))
        names = tuple(name for name in names if name not in besides)
        if columns is not None:
            names = tuple(match(str(c), table.columns) for c in listed(columns))
            twice = repeated(names)
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
        width = domain.d if isinstance(domain, Domain) else None
        if columns is None and len(names) > 2 and len(names) != width:
            names, told = without_identifiers(first_rows(table, names), weights is not None)
            notes += told
        if not names:
            raise DataError(f"{table.name} holds no columns")
        domain = domain(len(names)) if callable(domain) else domain
        if domain is not None and len(names) != domain.d:
            raise DataError(wrong_width(names, domain.d))
        undeclared = [n for n in table.without_levels if n in names and not _has_order(domain, names.index(n))]
        notes += tuple(map(_without_levels, undeclared))
        whole = len(table.parts) == 1 and table.size <= CHUNK
        covariates = besides[: len(given)]
        return cls(
            table.name, names, weights, domain, missing, whole, table.named, notes, covariates, cluster,
            weighting=weighting,
            codes=table.codes, labels=table.labels, width=len(table.columns), converted=table.converted,
        )  # fmt: skip

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

    def tally(self, chunk: Columns, start: int, ragged: Ragged | None = None) -> Tally:
        """The distinct rows of a chunk whose first row is number ``start`` of the table (from 0).

        All that is wrong with the chunk is refused at once.
        """
        problems = Problems(self.name)
        if ragged is not None:
            ragged.tell(problems, self.width)
        chunk = {name: self.codes.taken_out(name, column) for name, column in chunk.items()}
        total = len(chunk[self.columns[0]])
        kept = self._usable(chunk, start, total, problems)
        weights = self._weights_of(chunk, start, total, problems)
        used = kept if weights is None else kept & (weights > 0)
        everything = used.all()
        where = np.arange(total) if everything else np.flatnonzero(used)
        codes = [
            self._codes(chunk[name] if everything else chunk[name][where], name, j, start + where, problems)
            for j, name in enumerate(self.columns)
        ]
        each = None if weights is None else weights[where]
        extra = self._extra(chunk, where, start, problems)
        if problems.found:
            self._tell_outside(codes, start + where, total, problems)
            problems.refuse()
        found = condense(codes, start + where, None, each, total, int(total - kept.sum()), extra)
        if self.domain is not None and found.size and not self._holds(found):
            self._tell_outside(codes, start + where, total, problems)
            problems.refuse()
        return found

    def _holds(self, found: Tally) -> bool:
        """Whether the domain holds all of some rows."""
        assert self.domain is not None
        size = max(1, 2**22 // self.domain.d)
        rows = (found.columns[:, i : i + size].T.astype(np.int64) for i in range(0, found.size, size))
        return all((self.domain.contains(part) | (part == MISSING)).all() for part in rows)

    def _tell_outside(self, codes: list[np.ndarray], where: np.ndarray, total: int, problems: Problems) -> None:
        """What lies outside the domain, column by column; cells that could not be read are masked."""
        for j, column in enumerate(codes if self.domain is not None else ()):
            assert self.domain is not None
            coordinate, name = self.domain.coordinate(j), self.columns[j]
            known = ~np.ma.getmaskarray(column) & (np.ma.getdata(column) != MISSING)
            outside = ~coordinate.contains(np.ma.getdata(column)) & known
            if outside.any():
                value = int(np.ma.getdata(column)[outside][0])
                count = (
                    f"{int(outside.sum())} of {total} rows are" if self.whole else f"at least {outside.sum()} rows are"
                )
                tell_outside(problems, name, value, coordinate, where[outside], f" ({count} affected)")

    def _usable(self, chunk: Columns, start: int, total: int, problems: Problems) -> np.ndarray:
        """Rows that are not left out for what they lack: those that have everything, or anything at all to go by."""
        none, d = np.zeros(total, bool), len(self.columns)
        columns = [chunk[name] for name in self._complete]
        absent = [none if np.issubdtype(c.dtype, np.integer) else np.asarray(pd.isna(c)) for c in columns]
        kept = ~np.any(absent, axis=0)
        if self.missing == "impute":
            beside = np.any([none, *absent[d:]], axis=0)
            if beside.any():
                self._tell_missing(chunk, start, int(beside.sum()), total, self._complete[d:], problems)
            return ~np.all(absent[:d], axis=0) & ~beside
        if not kept.all() and self.missing == "refuse":
            self._tell_missing(chunk, start, int(total - kept.sum()), total, self._complete, problems)
        return kept

    @property
    def _complete(self) -> tuple[str, ...]:
        """The columns in which nothing may be missing, unless entries are imputed."""
        return self.columns + self.given + (() if self.cluster is None else (self.cluster,))

    def _extra(self, chunk: Columns, where: np.ndarray, start: int, problems: Problems) -> np.ndarray | None:
        """Covariates and the clusters' numbers, one line each."""
        lines = []
        for name in self.given:
            numbers = pd.to_numeric(pd.Series(chunk[name][where]), errors="coerce").to_numpy(dtype=float)
            wrong = ~np.isfinite(numbers)
            if wrong.any():
                problems.add(
                    f"row {{row}}, column '{name}' is {chunk[name][where][wrong][0]!r}; a covariate must be a finite "
                    "number",
                    "Correct the value or leave the covariate out.",
                    start + where[wrong],
                )
            lines.append(numbers)
        if self.cluster is not None:
            require_groups(chunk[self.cluster], self.cluster)
            found = chunk[self.cluster][where].tolist()
            lines.append(np.array([self.numbers.setdefault(label, len(self.numbers)) for label in found], float))
        return np.stack(lines) if lines else None

    def _codes(self, column: np.ndarray, name: str, j: int, where: np.ndarray, problems: Problems) -> np.ndarray:
        coordinate = self.domain.coordinate(j) if self.domain is not None else None
        if coordinate is not None and coordinate.labels and name in self.labels:
            meanings = self.labels[name]
            column = np.array([meanings.get(value, value) for value in column.tolist()], dtype=object)
        if coordinate is not None and coordinate.levels == (0, 1) and not coordinate.labels:
            column, found = read_answers(column)
            self.words_read.update({name: None} if found else {})
        least = "" if self.whole else "at least "
        absent = np.asarray(pd.isna(column)) if self.missing == "impute" else np.zeros(len(column), bool)
        if not absent.any():
            return _as_integers(column, name, where, coordinate, problems, least, self.converted)
        codes = np.ma.array(np.full(len(column), MISSING, dtype=np.int64))
        codes[~absent] = _as_integers(
            column[~absent], name, where[~absent], coordinate, problems, least, self.converted
        )
        return codes if np.ma.is_masked(codes) else codes.data

    @property
    def told(self) -> tuple[str, ...]:
        """Notes for the user, those of the reading itself included."""
        return self.notes + told_answers(self.words_read)

    def _weights_of(self, chunk: Columns, start: int, total: int, problems: Problems) -> np.ndarray | None:
        if self.weights is None:
            return None
        if isinstance(self.weights, str):
            return _as_weights(chunk[self.weights], self.weights, start, problems)
        part = self.weights[start : start + total]
        if len(part) != total:
            raise DataError(f"there are {len(self.weights)} weights for more than {start + len(part)} rows")
        return _as_weights(part, "weights", start, problems)

    def _tell_missing(
        self, chunk: Columns, start: int, affected: int, total: int, columns: tuple[str, ...], problems: Problems
    ) -> None:
        absent = np.stack([np.asarray(pd.isna(chunk[name])) for name in columns], axis=1)
        i, j = np.argwhere(absent)[0]
        of = f"of {total} rows" if self.whole else f"of the {total} rows from row {start + 1} on"
        remedy = (
            "What to do: missing='impute' (--missing impute) weighs what the missing entries may be, which is right "
            "where they are missing at random given the observed ones; missing='drop' (--missing drop) leaves those "
            "rows out, which is right only where they are missing completely at random."
        )
        if self.missing == "impute":
            remedy = (
                "Entries of the modelled columns are imputed, covariates and clusters are not. What to do: leave those "
                f"rows out of the data, frame.dropna(subset={[str(name) for name in columns]})."
            )
        told = f"{affected} {of} have missing values (first: row {{row}}, column '{columns[j]}')"
        problems.add(told, remedy, [start + i])


def _whole(numbers: np.ndarray) -> bool:
    kind = numbers.dtype.kind
    return kind in "biu" or (kind == "f" and np.array_equal(numbers, np.round(numbers)))


def _has_order(domain: Domain | None, j: int) -> bool:
    return domain is not None and domain.coordinate(j).ordered


def _without_levels(name: str) -> str:
    return (
        f"'{name}' is an ordered category whose levels are numbers, and a Parquet file does not keep these. What to "
        f"do: declare them, options={{'levels': {{'{name}': [lowest, ..., highest]}}}} "
        f"(--levels '{name}=lowest,...,highest')."
    )


def first_rows(table: Table, names: Sequence[str]) -> Columns:
    """Some columns of the first rows, by which columns are told from each other before the others are read."""
    chunks = table.parts[0].chunks(names, LOOKED_AT, NO_WORDS, Ragged())
    return next((chunk for chunk, _ in chunks), {name: np.empty(0) for name in names})


def listed(columns: Any) -> list[Any]:
    """The columns that were asked for."""
    if isinstance(columns, str):
        return [columns]
    try:
        found = list(columns)
    except TypeError:
        found = []
    if not found:
        raise DataError(f"columns must be names of columns, not {columns!r}; leave it out to use all")
    return found


def weights_for(frame: pd.DataFrame, weights: Any) -> Any:
    """Weights as they are where a column holds them, or else one for each row of a frame, in its order."""
    if weights is None or isinstance(weights, str):
        return weights
    found = _aligned(weights, frame)
    _require_as_many(found, len(frame))
    return found


def _require_as_many(weights: np.ndarray, rows: int) -> None:
    if len(weights) != rows:
        raise DataError(f"there are {len(weights)} weights for {rows} rows; give one weight per row")


def require_column(cluster: Any, frame: pd.DataFrame | None = None) -> None:
    """Refuse a cluster that is no name of a column, and one whose values cannot be told apart."""
    if cluster is None:
        return
    if not isinstance(cluster, str):
        raise SettingError(
            f"cluster is the name of a column, not {type(cluster).__name__}. What to do: make a column of it, "
            "frame['group'] = ..., and say cluster='group'."
        )
    if frame is not None and cluster in frame:
        require_groups(frame[cluster].to_numpy(), cluster)


def require_groups(values: np.ndarray, name: str) -> None:
    """Refuse clusters that cannot be told apart, such as lists."""
    strange = [own for own in values if not isinstance(own, Hashable)][:1] if values.dtype == object else []
    if strange:
        raise DataError(
            f"'{name}' says which rows belong together, and holds {strange[0]!r}, a {type(strange[0]).__name__}. What "
            "to do: name the groups by texts or numbers."
        )


def _aligned(weights: Any, source: Any) -> np.ndarray:
    """Weights as a vector; those of a pandas series belong to the rows of a frame by their index."""
    own = source.index if isinstance(source, (pd.DataFrame, pd.Series, Table)) else None
    if isinstance(weights, pd.Series) and own is not None and not weights.index.equals(own):
        if not (weights.index.is_unique and own.is_unique and set(own) == set(weights.index)):
            raise DataError(
                "the weights' index is not the data's, so nobody can tell which weight belongs to which row. Give "
                "weights with the same index, or as an array (weights.to_numpy()) if their order is the rows'."
            )
        weights = weights.reindex(own)
    if isinstance(weights, Iterator):
        weights = list(weights)
    array = unmasked(np.asanyarray(weights))
    if array.dtype.kind in "mMc" or _is_time(array):
        raise DataError(f"weights must be numbers, not {array.dtype}")
    if array.ndim != 1:
        raise DataError(f"weights must be a vector, one for each row, not of shape {array.shape}")
    return array


def _as_integers(
    column: np.ndarray, name: str, where: np.ndarray, coordinate: Any, problems: Problems, least: str, converted: bool
) -> np.ndarray:
    """Codes of one column without missing values, masked where there are problems: each has row, column and remedy."""
    labels = coordinate.labels if coordinate is not None else ()
    if labels:
        codes = _label_codes(column, labels)
        wrong = codes < 0
        if wrong.any():
            problems.add(
                f"row {{row}}, column '{name}' is '{column[wrong][0]}'; {coordinate.label} needs {coordinate.needs}",
                "Correct the value or add it to the model's labels.",
                where[wrong],
            )
        return np.ma.array(codes.astype(np.int64), mask=wrong) if wrong.any() else codes.astype(np.int64)
    if column.dtype.kind == "b" or (column.dtype.kind in "iu" and column.dtype != np.uint64):
        return column if column.dtype != bool else column.astype(np.int64)
    elsewhere = "Leave the column out (columns=..., on the command line --columns), or recode it."
    nothing = np.ma.masked_all(len(column), dtype=np.int64)
    if _is_time(column):
        problems.add(
            f"column '{name}' holds dates or times (row {{row}}: {column[0]}), which are no counts",
            elsewhere, where, said="",
        )  # fmt: skip
        return nothing
    if column.dtype.kind == "c":
        problems.add(f"column '{name}' holds complex numbers; discrete data need whole numbers", elsewhere)
        return nothing
    try:
        known = [None if isinstance(value, str) else value for value in column] if converted else column
        numbers = pd.to_numeric(pd.Series(known), errors="coerce").to_numpy(dtype=float)
    except (OverflowError, TypeError, ValueError):
        problems.add(f"column '{name}' holds values that are no whole numbers, or too large for any count", elsewhere)
        return nothing
    texts = np.isnan(numbers)
    if texts.any():
        unclear = np.array([converted and isinstance(value, str) and doubtful(value) for value in column[texts]], bool)
        _tell_texts(column[texts][~unclear], name, where[texts][~unclear], problems)
        tell_unclear(column[texts][unclear], name, where[texts][unclear], problems)
    with np.errstate(invalid="ignore"):
        fractional = ~texts & ((numbers != np.round(numbers)) | (np.abs(numbers) > 2**53))
    if fractional.any():
        problems.add(
            f"row {{row}}, column '{name}' is {numbers[fractional][0]:g}; discrete data need whole numbers",
            "Round or recode the column, or leave it out.",
            where[fractional],
            said=affected(int(fractional.sum()), least),
        )
    wrong = texts | fractional
    whole = np.where(wrong, 0, numbers).astype(np.int64)
    return np.ma.array(whole, mask=wrong) if wrong.any() else whole


def as_label(value: Any) -> str:
    """A level as text; a number as it is written without needless decimals: 2500 for 2500.0."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return str(int(number)) if number.is_integer() and not isinstance(value, (bool, np.bool_)) else str(value)


def _label_codes(column: np.ndarray, labels: Sequence[str]) -> np.ndarray:
    """Which label each value is, -1 where it is none; numbers are the same however they are written."""
    codes, distinct = pd.factorize(column)
    exact = pd.Index(labels).get_indexer(pd.Index([str(value) for value in distinct], dtype=object))
    plain = pd.Index(labels).get_indexer(pd.Index([as_label(value) for value in distinct], dtype=object))
    return np.where(exact < 0, plain, exact)[codes]


def _tell_texts(texts: np.ndarray, name: str, where: np.ndarray, problems: Problems) -> None:
    if len(texts):
        problems.add(
            f"row {{row}}, column '{name}' is the text '{texts[0]}'; the model needs whole numbers",
            "Leave the column out (columns=..., on the command line --columns), or recode it; if the text stands for a "
            f"missing value, say missing_codes=[{str(texts[0])!r}] (--missing-codes).",
            where,
        )


def tell_unclear(texts: np.ndarray, name: str, where: np.ndarray, problems: Problems) -> None:
    """Add texts of a column that may be two numbers."""
    if len(texts):
        problems.add(
            f"row {{row}}, column '{name}' is '{texts[0]}', which may be {both(texts[0])}, and nothing in the file "
            "tells which",
            "Say decimal='.' (on the command line: --decimal .) for decimal points or decimal=',' for decimal commas.",
            where,
        )


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


def _is_time(column: np.ndarray) -> bool:
    if column.dtype.kind in "mM":
        return len(column) > 0
    times = (datetime.date, datetime.time, datetime.timedelta, pd.Period, np.datetime64, np.timedelta64)
    return column.dtype == object and any(isinstance(value, times) for value in column)


def _as_weights(weights: np.ndarray, name: str, start: int, problems: Problems) -> np.ndarray:
    numbers = pd.to_numeric(pd.Series(np.asarray(weights)), errors="coerce").to_numpy(dtype=float)
    wrong = ~np.isfinite(numbers) | (numbers < 0)
    if wrong.any():
        problems.add(
            f"row {{row}}, column '{name}' is {weights[int(np.argmax(wrong))]}; a weight must be a number >= 0",
            "Correct the value.",
            start + np.flatnonzero(wrong),
        )
    return np.where(wrong, 1.0, numbers)


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
