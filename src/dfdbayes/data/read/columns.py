"""How a table is read: which columns, which weights, what values may be. Refusals say row, column and remedy."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..._util.resources import NUMBERS_AT_ONCE
from ...core.dataset import MISSING, Tally, condense, keys, match, tell_outside, wrong_width
from ...core.domain import Domain
from ...errors import DataError, Problems, SettingError, affected
from .reading import ROWS_AT_ONCE, Memory, Table, unmasked
from .text import NO_WORDS, ROWS_LOOKED_AT, Columns, MissingCodes, Ragged, both, doubtful, repeated


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
        if weighting not in ("auto", "frequency", "sampling"):
            raise SettingError(f"weighting must be 'auto', 'frequency' or 'sampling', not {weighting!r}")
        require_missing(missing)
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
            for twice in repeated(names):
                raise DataError(f"the column '{twice}' is asked for twice")
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
        whole = len(table.parts) == 1 and table.size <= ROWS_AT_ONCE
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
        size = max(1, NUMBERS_AT_ONCE // self.domain.d)
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
            numbers = as_numbers(chunk[name][where])
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
    """Whether all are whole numbers, or truth values."""
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
    chunks = table.parts[0].chunks(names, ROWS_LOOKED_AT, NO_WORDS, Ragged())
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


def require_missing(rule: str) -> None:
    """Refuse what says nothing of missing values."""
    if rule not in ("refuse", "drop", "impute"):
        raise SettingError(f"missing must be 'refuse', 'drop' or 'impute', not {rule!r}")


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
        numbers = as_numbers(known)
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


def as_numbers(values: Any) -> np.ndarray:
    """Values as numbers, NaN where one is none."""
    return pd.to_numeric(pd.Series(values), errors="coerce").to_numpy(dtype=float)


def label(value: Any) -> str:
    """A node, a site or a level as text: the numbers 7.0 and 7 are the same, the texts '007' and '7' are not."""
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if whole else str(value)


def as_label(value: Any) -> str:
    """A level as text; a number, or a text that is one, without needless decimals: 2500 for 2500.0."""
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
            f"row {{row}}, column '{name}' is '{texts[0]}', which may be {both(texts[0])}, and nothing tells which",
            "Say decimal='.' (on the command line: --decimal .) for decimal points or decimal=',' for decimal commas.",
            where,
        )


def tell_mistakes(
    texts: np.ndarray, name: str, where: np.ndarray, problems: Problems, remedies: Sequence[str] = ()
) -> None:
    """Add texts of a column that are no numbers, as most of its values are."""
    if len(texts):
        said = str(texts[0])
        codes = f"say missing_codes=[{said!r}] (--missing-codes) if it stands for a missing value"
        *others, last = ["Correct it", codes, *remedies]
        problems.add(
            f"row {{row}}, column '{name}' is the text '{said}', and most of its values are numbers",
            f"{'; '.join(others)}{';' if remedies else ','} or {last}.",
            where,
        )


def _is_time(column: np.ndarray) -> bool:
    if column.dtype.kind in "mM":
        return len(column) > 0
    times = (datetime.date, datetime.time, datetime.timedelta, pd.Period, np.datetime64, np.timedelta64)
    return column.dtype == object and any(isinstance(value, times) for value in column)


def _as_weights(weights: np.ndarray, name: str, start: int, problems: Problems) -> np.ndarray:
    numbers = as_numbers(np.asarray(weights))
    wrong = ~np.isfinite(numbers) | (numbers < 0)
    if wrong.any():
        problems.add(
            f"row {{row}}, column '{name}' is {weights[int(np.argmax(wrong))]}; a weight must be a number >= 0",
            "Correct the value.",
            start + np.flatnonzero(wrong),
        )
    return np.where(wrong, 1.0, numbers)


NO = ("no", "n", "false", "absent", "nein", "nee", "non", "não", "nao", "nej")
YES = ("yes", "y", "true", "present", "ja", "oui", "sí", "sì", "si", "sim")
ANSWERS = dict.fromkeys(NO, 0) | dict.fromkeys(YES, 1)


def read_answers(column: np.ndarray) -> tuple[np.ndarray, bool]:
    """Words for no and yes as 0 and 1, what is missing as it is; a column of other words or numbers as it is.

    Also whether there were such words.
    """
    known = ~np.asarray(pd.isna(column))
    if column.dtype.kind not in "OUT" or not known.any() or not all(isinstance(v, str) for v in column[known]):
        return column, False
    words = {word: ANSWERS.get(word.strip().casefold()) for word in set(column[known].tolist())}
    if None in words.values():
        return column, False
    found = np.array([words.get(value, value) for value in column.tolist()], dtype=object)
    return found.astype(np.int64) if known.all() else found, True


def two_answers(texts: list[str]) -> tuple[str, ...]:
    """Two words for no and yes, in this order; nothing where these are others."""
    values = {ANSWERS.get(text.strip().casefold()): text for text in texts}
    return (values[0], values[1]) if len(texts) == 2 and set(values) == {0, 1} else ()


def told_answers(names: Iterable[str]) -> tuple[str, ...]:
    """A note on columns whose words were read."""
    shown = ", ".join(names)
    return (
        (f"words in {shown} were read as no = 0 and yes = 1. What to do: nothing, if that is meant.",) if shown else ()
    )


NAMES = re.compile(
    r"(^|[_. ])(id|ids|nr|no|number|index|obs|case|subject|subj|person|patient|key|rownames)$", re.IGNORECASE
)


def identifier(name: str, rows: np.ndarray) -> str:
    """Whether whole numbers are an "id", different in every row, or a "group", an id that repeats; "" if neither.

    Numbers that rise from row to row count the rows, whatever they are called.
    """
    distinct = len(np.unique(rows))
    if distinct <= 10:  # it may be a short scale, whatever its name
        return ""
    if distinct == len(rows) and ((np.diff(rows) > 0).all() or NAMES.search(name)):
        return "id"
    few_rows_each = len(rows) < 20 * distinct  # with more of them a column is one of groups to be modelled
    return "group" if NAMES.search(name) and few_rows_each else ""


def without_identifiers(columns: Mapping[str, np.ndarray], weighted: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of columns that are no identifiers, and what to say of the others; all where fewer than two are left.

    Two columns alone may be values and how often each occurs. In a table with weights rows are not people: numbers that
    rise are identifiers only by their name.
    """
    found = {name: identifier(name, rows) for name, rows in columns.items() if _counts(rows)}
    if weighted:
        found = {name: kind for name, kind in found.items() if NAMES.search(name)}
    kept = tuple(name for name in columns if not found.get(name))
    if len(kept) < 2 or len(kept) == len(columns):
        return tuple(columns), ()
    return kept, tuple(_note(name, kind) for name, kind in found.items() if kind)


def _counts(rows: np.ndarray) -> bool:
    """Whether rows hold whole numbers, all of them finite, and no truth values."""
    return rows.dtype.kind != "b" and _whole(rows) and bool(np.isfinite(rows).all())


def _note(name: str, kind: str) -> str:
    keep = f"columns=['{name}', ...] (--columns) names the columns to use, if it is data"
    if kind == "id":
        return f"'{name}' numbers the rows and was left out. What to do: nothing; or {keep}."
    whose = f"cluster='{name}' (--cluster {name}) if rows of the same '{name}' belong together"
    return f"'{name}' says whose row it is and was left out. What to do: {whose}; or {keep}."


def are_durations(column: pd.Series) -> bool:
    """Whether a column holds lengths of time, which are numbers only in a unit."""
    if column.dtype == object:
        return any(isinstance(value, (datetime.timedelta, np.timedelta64)) for value in column)
    return str(column.dtype).startswith(("timedelta64", "duration"))


def are_nested(column: pd.Series) -> bool:
    """Whether rows hold several values each: lists, mappings."""
    return column.dtype == object and any(isinstance(value, (list, dict, set, np.ndarray)) for value in column)


def told_of_weights(tally: Tally, name: str) -> tuple[str, ...]:
    """A note where weights taken for frequencies may be a survey's, of more than 50 rows; `DataError` where they are.

    ``tally`` has the weights still apart from the rows, and ``name`` is what the user calls them.
    """
    weights, rows = tally.weights, float(tally.repeats.sum())
    if weights is None or rows <= 50 or not (weights == np.round(weights)).all():
        return ()
    with np.errstate(over="ignore"):
        total = float(tally.repeats @ weights)
    if not np.isfinite(total):  # refused where weights are read
        return ()
    counted = tally.repeats[weights == 1].sum() >= 0.05 * rows  # rare values of counts occur once
    if counted or total <= 10.0 * rows:  # a survey's weights are rarely so small: one person for ten
        return ()
    distinct, combinations = _distinct(tally)
    listed = rows >= 0.2 * combinations  # as a table of large frequencies lists most of what can occur
    if distinct == rows and listed:
        return ()
    how = f"only {distinct} of them differ" if distinct < rows else "few combinations of values occur"
    said = (
        f"'{name}' holds whole numbers, {total / rows:,.0f} on average: as frequencies {total:,.0f} observations in "
        f"{rows:,.0f} rows, of which {how}"
    )
    sampling = "weighting='sampling' (--weighting sampling)"
    if distinct < rows <= 500 and listed:  # the longest published table of large frequencies known to us has 306
        return (
            f"{said}. They were taken for frequencies. What to do: nothing if each says how many observations its row "
            f"stands for; {sampling} if they are a survey's weights.",
        )
    raise DataError(
        f"{said}. These look like a survey's weights, each row being one person. What to do: {sampling}; or "
        "weighting='frequency' (--weighting frequency) if every row was observed as often as that."
    )


def _distinct(tally: Tally) -> tuple[int, float]:
    """How many rows differ in their values, and how many combinations there are of all values of the columns.

    Covariates, which may be one factor in several columns, and the cluster are one column here. A column that says in
    other words what others say, as an age group does of an age, adds no combinations.
    """
    codes = [np.unique(part, return_inverse=True)[1] for part in (() if tally.extra is None else tally.extra)]
    columns = [
        np.unique(part, return_inverse=True)[1] for part in (*tally.columns, *([keys(codes)[0]] if codes else []))
    ]
    joint, combinations = np.zeros(tally.size, np.int64), 1.0
    for column in sorted(columns, key=lambda own: -own.max()):
        before = joint.max() + 1
        joint = np.unique(keys([joint, column])[0], return_inverse=True)[1]
        if (
            joint.max() + 1 > before or before > 2 / 3 * tally.size
        ):  # any column is a function of rows that hardly repeat
            combinations *= column.max() + 1
    return int(joint.max()) + 1, combinations
