"""Times of a series as whole steps: 0, 1, 2, ... from the first, and what a step is called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from ..core.dataset import PLACE, match
from ..errors import DataError, SettingError
from .grammar import Token, calls_of, name_in, split, tokens_of, written
from .read.columns import listed
from .read.text import are_numbers

MAX_WHOLE = 2**62  # in size, of whole numbers whose differences are 64-bit integers
OFFSET = r"\s*(?:[+-]\d{2}:?\d{2}|Z)$"  # of a time zone, at the end of a text


@dataclass(frozen=True)
class Calendar:
    """Which times there are: an origin and a step.

    Attributes
    ----------
    kind : {"rows", "numbers", "dates", "months"}
        Rows in their order, numbers, dates a fixed time apart, or dates one or more months apart.
    origin : float
        The first time: a number, or seconds or months since 1970. Whole numbers are exact.
    step : float
        From one time to the next, in the same unit.
    zone : str, optional
        The time zone of dates less than a day apart, which are counted in universal time: a clock that is put back
        shows the same hour twice. Dates further apart are those on the clock.
    """

    kind: str
    origin: float = 0.0
    step: float = 1.0
    zone: str | None = None

    @classmethod
    def of(cls, values: pd.Series) -> Calendar:
        """The calendar of a column of times, which are in no order and may occur more than once."""
        name = str(values.name)
        if values.isna().any():
            row = int(np.argmax(values.isna().to_numpy())) + 1
            raise DataError(f"row {row} has no '{name}', the time of the series. What to do: fill it in, or remove it.")
        begun = _begun(values)
        numbers = np.unique(begun.numbers(values))
        origin = numbers[0].item()
        _require_apart(len(numbers), values)
        apart = np.diff(numbers)
        if not len(apart):
            return replace(begun, origin=origin)
        require_few_steps(float(apart.sum() / apart.min()), name)
        steps = np.round(apart / apart.min())
        step = float((numbers[-1] - numbers[0]) / steps.sum())
        found = replace(begun, origin=origin, step=step)
        beside = found._beside(numbers)
        if beside.max() > 0.1:  # of a step
            at = values.iloc[int(np.argmax(begun.numbers(values) == numbers[np.argmax(beside)]))]
            raise DataError(
                f"the times in '{name}' are not a whole number of steps apart (at {at}, for example). What to do: "
                "number the steps (1, 2, 3, ...) in a column, and name that one."
            )
        _require_apart(len(np.unique(found._steps(numbers))), values)
        return found

    def numbers(self, values: Any) -> np.ndarray:
        """Times as numbers, in the unit of the origin; whole ones as integers."""
        if self.kind in ("rows", "numbers"):
            return _numbers(pd.Series(values))
        dates = self._on_its_clock(_dates(pd.Series(values)))
        if self.kind == "months":
            return np.asarray(12.0 * (dates.year - 1970) + dates.month - 1)
        return np.asarray(dates.as_unit("us").asi8 / 1e6)

    def _on_its_clock(self, dates: _Dates) -> pd.DatetimeIndex:
        if self.zone is None:
            return dates.clock
        if dates.universal is not None:
            return dates.universal
        try:
            return dates.clock.tz_localize(self.zone).tz_convert("UTC").tz_localize(None)
        except ValueError as problem:
            raise DataError(
                f"a time occurs twice, or never, on the clock of {self.zone}: {problem}. What to do: give times with "
                "their time zone."
            ) from problem

    def _steps(self, numbers: np.ndarray) -> Int[np.ndarray, " n"]:
        """How many steps after the origin numbers are, to the nearest."""
        away, step = self._away(numbers), self.step
        if away.dtype.kind == "i" and float(step).is_integer():
            return np.asarray((away + int(step) // 2) // int(step))
        return np.round(away / step).astype(np.int64)

    def _beside(self, numbers: np.ndarray) -> np.ndarray:
        """How far from a whole number of steps numbers are, in steps."""
        away, step = self._away(numbers), self.step
        if away.dtype.kind == "i" and float(step).is_integer():
            return np.abs(away - int(step) * self._steps(numbers)) / step
        return np.abs(away / step - np.round(away / step))

    def _away(self, numbers: np.ndarray) -> np.ndarray:
        whole = numbers.dtype.kind == "i" and float(self.origin).is_integer()
        return numbers - (int(self.origin) if whole else self.origin)

    def places(self, values: Any) -> Int[np.ndarray, " n"]:
        """How many steps after the first time each is."""
        return self._steps(self.numbers(values))

    def at(self, places: Int[np.ndarray, " n"]) -> Any:
        """The times at these places, as a user would write them."""
        places, exact = np.asarray(places), isinstance(self.origin, int) and float(self.step).is_integer()
        if exact:
            return self.origin + int(self.step) * places.astype(np.int64)
        numbers = self.origin + self.step * places.astype(float)
        if self.kind in ("rows", "numbers"):
            whole = np.round(numbers)
            return whole.astype(np.int64) if np.abs(numbers - whole).max(initial=0.0) < 1e-9 else np.round(numbers, 6)
        whole = np.round(numbers).astype(np.int64)
        if self.kind == "months":
            return pd.DatetimeIndex(whole.astype("datetime64[M]").astype("datetime64[s]"))
        dates = pd.DatetimeIndex(whole.astype("datetime64[s]"))
        return dates if self.zone is None else dates.tz_localize("UTC").tz_convert(self.zone)

    def counted(self, values: Any) -> np.ndarray:
        """Times as formulas see them: numbers as they are, dates as steps from the first."""
        return np.asarray(values) if self.kind in ("rows", "numbers") else self.places(values)


class _Dates(NamedTuple):
    """Dates as a clock shows them where they were taken, and in universal time where their time zone is known."""

    clock: pd.DatetimeIndex
    universal: pd.DatetimeIndex | None = None
    zone: str | None = None


def _begun(values: pd.Series) -> Calendar:
    """The kind of calendar that a column of times has, and its time zone, without an origin."""
    if _are_numbers(values):
        return Calendar("numbers")
    dates = _dates(values)
    days = dates.clock.day
    distinct = dates.clock.unique()
    once = len(set(zip(distinct.year, distinct.month, strict=True))) == len(distinct)
    if len(values) > 1 and once and (dates.clock.is_month_end.all() or (len(set(days)) == 1 and days[0] < 29)):
        return Calendar("months")
    apart = np.diff(np.unique(dates.clock.as_unit("us").asi8)) / 1e6
    day = 86400.0  # seconds; a tenth less, as of all steps, is a day still
    short = dates.zone is not None and apart.min(initial=day) < 0.9 * day
    return Calendar("dates", zone=dates.zone if short else None)


def _are_numbers(values: pd.Series) -> bool:
    whole = pd.api.types.infer_dtype(values, skipna=False) == "integer"  # also those that no 64 bits hold
    return whole or are_numbers(values)


def _numbers(values: pd.Series) -> np.ndarray:
    """Numbers, whole ones as 64-bit integers."""
    if pd.api.types.infer_dtype(values, skipna=False) != "integer":
        return values.to_numpy(dtype=float)
    exact = values.to_numpy(dtype=object)
    large = [value for value in (exact.min(), exact.max()) if abs(int(value)) > MAX_WHOLE] if len(exact) else []
    if large:
        raise DataError(
            f"'{values.name}' holds {large[0]}; times that are whole numbers lie between -2**62 and 2**62. What to do: "
            "subtract the first time from all, or number the steps (1, 2, 3, ...) in a column."
        )
    return exact.astype(np.int64)


def require_few_steps(steps: float, name: str) -> None:
    """Refuse a series whose steps cannot be numbered."""
    if steps > MAX_WHOLE:
        raise DataError(
            f"the times in '{name}' span {steps:.3g} of their smallest steps, too many to count. What to do: number "
            "the steps (1, 2, 3, ...) in a column, and name that one."
        )


def _require_apart(found: int, values: pd.Series) -> None:
    """Refuse times that differ and are the same in the precision of this calendar."""
    if found < values.nunique() and not any(isinstance(value, str) for value in values):
        raise DataError(
            f"times lie closer together than can be told apart in '{values.name}' (by microseconds, or as numbers of "
            "double precision). What to do: number the steps (1, 2, 3, ...) in a column, and name that one."
        )


def _dates(values: pd.Series) -> _Dates:
    if pd.api.types.is_datetime64_any_dtype(values):
        return _in_zone(pd.DatetimeIndex(values))
    texts = values.astype(str)
    try:
        if not texts.str.contains(r":\d{2}.*" + OFFSET).any():
            return _Dates(pd.DatetimeIndex(pd.to_datetime(texts, format="ISO8601")))
        clock = pd.DatetimeIndex(pd.to_datetime(texts.str.replace(OFFSET, "", regex=True), format="ISO8601"))
        universal = pd.DatetimeIndex(pd.to_datetime(texts, format="ISO8601", utc=True)).tz_localize(None)
    except ValueError as problem:
        raise DataError(
            f"the time '{values.iloc[0]}' is neither a number nor a date such as 2024-01-31. What to do: write dates "
            "year first, or number the steps (1, 2, 3, ...) in a column."
        ) from problem
    return _Dates(clock, universal, "UTC")


def _in_zone(dates: pd.DatetimeIndex) -> _Dates:
    if dates.tz is None:
        return _Dates(dates)
    return _Dates(dates.tz_localize(None), dates.tz_convert("UTC").tz_localize(None), str(dates.tz))


class Lag(NamedTuple):
    """An earlier value of a column."""

    column: str
    steps: int

    @property
    def name(self) -> str:
        """What the column is called."""
        plain = re.fullmatch(r"[\w. ]+", self.column)
        return self._of(self.column if plain else f"`{self.column}`")

    @property
    def written(self) -> str:
        """The lag as a formula takes it."""
        return self._of(written(self.column))

    def _of(self, column: str) -> str:
        return f"lag({column})" if self.steps == 1 else f"lag({column}, {self.steps})"


def _lag(inside: Sequence[Token], text: str) -> Lag:
    """What is in the brackets of ``lag``; ``text`` is how it is written."""
    (own, name), *more = split(",", inside, text)
    name = name_in(own, name)
    shown = written(name) if name else "cases"
    plain = (len(own) == 1 and own[0].is_name) or re.fullmatch(r"[\w. ]+", name)
    if not name or not plain:
        raise SettingError(
            f"lag({text}) is not of a column. What to do: take the lag first, for example log1p(lag(cases)), and "
            "make a column of what a formula cannot hold; a name with other signs in it stands between backticks."
        )
    steps = re.sub(r"^k\s*=\s*", "", ", ".join(part for _, part in more)) or "1"
    if not steps.isdecimal() or int(steps) < 1:
        raise SettingError(f"lag({text}): how many steps back must be a whole number, at least 1: lag({shown}, 2)")
    return Lag(name, int(steps))


def lag_calls(right: str, tokens: Sequence[Token]) -> list[tuple[int, int, Lag]]:
    """The lags of a right side, and where among its tokens each begins and ends."""
    found = []
    for call in calls_of("lag", tokens, right):
        begin, end = tokens[call.begin + 1].end, tokens[call.end - 1].begin
        shift = [part._replace(begin=part.begin - begin, end=part.end - begin) for part in call.inside]
        found.append((call.begin, call.end, _lag(shift, right[begin:end])))
    return found


def canonical(right: str) -> str:
    """A right side with its lags written one way."""
    tokens = tokens_of(right)
    for begin, end, lag in reversed(lag_calls(right, tokens)):
        right = right[: tokens[begin].begin] + lag.written + right[tokens[end - 1].end :]
    return right


def lags_of(rights: Sequence[str]) -> tuple[Lag, ...]:
    """The lags that right sides name."""
    return tuple(dict.fromkeys(lag for right in rights for _, _, lag in lag_calls(right, tokens_of(right))))


@dataclass(frozen=True)
class Series:
    """The order of rows in time.

    Attributes
    ----------
    time : str or None
        The column of times; None where rows are in their order.
    by : str or None
        The column that says whose row it is, where there are several series (a panel).
    lags : tuple of Lag
    calendar : Calendar
    told : str
        What was read, in a sentence.
    """

    time: str | None
    by: str | None
    lags: tuple[Lag, ...]
    calendar: Calendar
    told: str = ""

    @property
    def longest(self) -> int:
        """How many steps back the formulas look, at most."""
        return max((lag.steps for lag in self.lags), default=0)

    def places(self, frame: pd.DataFrame) -> Int[np.ndarray, " n"]:
        """Steps from the first time of all."""
        if self.time is None:
            order = frame.groupby(self.by, sort=False).cumcount() if self.by else pd.Series(np.arange(len(frame)))
            return order.to_numpy(dtype=np.int64)
        return self.calendar.places(frame[self.time])

    def lines(self, frame: pd.DataFrame) -> Int[np.ndarray, " n"]:
        """Places on one line: units one after the other, further apart than any window is long."""
        places = self.places(frame)
        unit = pd.factorize(frame[self.by])[0] if self.by else np.zeros(len(frame), np.int64)
        apart = 2 * int(places.max(initial=0)) + 2
        require_few_steps(apart * float(unit.max(initial=0) + 1), str(self.time))
        return places + unit * apart

    def order(self, frame: pd.DataFrame) -> Int[np.ndarray, " n"]:
        """Rows in order: units one after the other, each in the order of time."""
        place = self.places(frame)
        unit = pd.factorize(frame[self.by], sort=True)[0] if self.by else np.zeros(len(frame), np.int64)
        return np.lexsort((place, unit))

    def beside(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, Bool[np.ndarray, " n"]]:
        """Sorted rows with their lags as further columns, and whether all their earlier rows are there."""
        lines = self.lines(frame)
        known, made = np.ones(len(frame), bool), {}
        for lag in self.lags:
            at = np.minimum(np.searchsorted(lines, lines - lag.steps), len(lines) - 1)
            there = lines[at] == lines - lag.steps
            made[lag.name] = np.where(there, frame[lag.column].to_numpy(dtype=float)[at], np.nan)
            known &= there
        if self.time is not None:
            made[self.time] = self.calendar.counted(frame[self.time])
        return frame.assign(**made), known

    def used(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows that a fit used, of all sorted rows: those with a past and without missing values."""
        found, known = self.beside(frame)
        return found[known & found.notna().all(axis=1).to_numpy()].reset_index(drop=True)

    def at(self, places: Any) -> Any:
        """Times as a user would write them."""
        return self.calendar.at(places)


@dataclass(frozen=True)
class Ordered:
    """A frame in the order of time.

    Attributes
    ----------
    series : Series
    whole : DataFrame
        All rows as they were given, in order.
    rows : DataFrame
        Those with all their earlier rows, with lags as columns.
    notes : tuple of str
        Gaps, which a user should know of.
    origin : array
        Which row of the data each of ``rows`` is.
    """

    series: Series
    whole: pd.DataFrame
    rows: pd.DataFrame
    notes: tuple[str, ...]
    origin: Int[np.ndarray, " n"]

    @property
    def aside(self) -> tuple[str, ...]:
        """Columns that are no responses unless they are named."""
        made = [lag.name for lag in self.series.lags]
        return (PLACE, *made, *([] if self.series.time is None else [self.series.time]))

    def kept(self, columns: Sequence[str]) -> pd.DataFrame:
        """All rows, and of their columns those that were used and those that tell the time."""
        lagged = [lag.column for lag in self.series.lags]
        keys = [name for name in (self.series.time, self.series.by) if name is not None]
        return self.whole[[name for name in dict.fromkeys([*columns, *lagged, *keys]) if name in self.whole]]


def ordered(frame: pd.DataFrame, lags: Sequence[Lag], time: str | None, by: str | None, missing: str) -> Ordered:
    """Sort a frame by time and put lags beside its rows; gaps, repeated times and missing values are named."""
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
    for name in (*(lag.column for lag in lags), *(name for name in (time, by) if name is not None)):
        match(name, list(frame.columns))
    for name in (PLACE, *(lag.name for lag in lags)):
        if name in frame.columns:
            raise DataError(f"a series has a column '{name}' of its own. What to do: rename the column '{name}'.")
    for name in dict.fromkeys(lag.column for lag in lags):
        if not pd.api.types.is_numeric_dtype(frame[name]):
            raise DataError(f"lag({name}) needs numbers, and '{name}' holds others (use 0 and 1 for a binary series)")
    series = Series(time, by, tuple(lags), Calendar("rows") if time is None else Calendar.of(frame[time]))
    order = series.order(frame)
    whole = frame.iloc[order].reset_index(drop=True)
    _require_once(whole, series)
    found, known = series.beside(whole)
    found[PLACE] = series.lines(whole)
    if missing != "drop":
        _require_values(whole, series)
    if not known.any():
        named = " and ".join(lag.name for lag in series.lags)
        raise DataError(f"no row has all its earlier values ({named}): is the time in the right column?")
    told, notes = _told(whole, known, series)
    return Ordered(replace(series, told=told), whole, found[known].reset_index(drop=True), notes, order[known])


def _shown(frame: pd.DataFrame, series: Series, row: int) -> str:
    """A row by its unit and time, as a user would look for it."""
    keys = [name for name in (series.by, series.time) if name is not None]
    return ", ".join(f"{name} {frame[name].iloc[row]}" for name in keys) if series.time else f"row {row + 1}"


def _require_once(frame: pd.DataFrame, series: Series) -> None:
    twice = np.flatnonzero(np.diff(series.lines(frame)) == 0)
    if len(twice):
        remedy = (
            "keep one row for each time"
            if series.by
            else "keep one row for each time, or name the column that says whose row it is with cluster=..."
        )
        raise DataError(f"two rows have {_shown(frame, series, int(twice[0]))}. What to do: {remedy}.")


def _require_values(frame: pd.DataFrame, series: Series) -> None:
    for lag in series.lags:
        lost = np.flatnonzero(frame[lag.column].isna().to_numpy())
        if len(lost):
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            raise DataError(
                f"'{lag.column}' is missing at {_shown(frame, series, int(lost[0]))}{more}, and later rows need it as "
                f"{lag.name}. What to do: fill it in, or pass missing='drop' (--missing drop), which leaves out those "
                "rows and the ones after them that need it."
            )


def _told(frame: pd.DataFrame, known: np.ndarray, series: Series) -> tuple[str, tuple[str, ...]]:
    """What was read in a sentence, and what a user should know of gaps."""
    place, lines = series.places(frame), series.lines(frame)
    unit = pd.factorize(frame[series.by])[0] if series.by else np.zeros(len(frame), np.int64)
    inside = np.flatnonzero((np.diff(lines) > 1) & (np.diff(unit) == 0))
    many = f"{unit.max() + 1} series of '{series.by}', " if series.by else "a series of "
    first, last = (series.at(place[[row]])[0] for row in (int(place.argmin()), int(place.argmax())))
    span = f" by '{series.time}', {_written(first)} to {_written(last)}" if series.time else " in their order"
    lost = int((~known).sum())
    gone = f"; {lost} without all their earlier values (lags) left out" if lost else ""
    told = f"{many}{len(frame)} rows{span}{gone}"
    if not len(inside):
        return told, ()
    row = int(inside[0])
    note = (
        f"there {'is a gap' if len(inside) == 1 else f'are {len(inside)} gaps'} in time (first: between "
        f"{_shown(frame, series, row)} and {_shown(frame, series, row + 1)}). No lag is taken across a gap: rows after "
        "it without their earlier values are left out. What to do: nothing, or fill in the rows that are lacking."
    )
    return told, (note,)


def _written(time: Any) -> str:
    if isinstance(time, pd.Timestamp):
        return f"{time:%Y-%m-%d}"
    return str(time) if isinstance(time, (int, np.integer)) else f"{time:g}"


SUFFIX = "_lag"


def lagged(
    frame: pd.DataFrame, columns: Sequence[str], *, by: str | None = None, time: str | None = None, lags: int = 1
) -> pd.DataFrame:
    """The rows of a panel or a series, each with earlier values of some columns beside it.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row for each person (or other unit) and time.
    columns : sequence of str
        The columns whose earlier values are wanted: ``mood`` becomes ``mood_lag1``, ``mood_lag2``, ...
    by : str, optional
        The column that says whose row it is; without it the frame is one series.
    time : str, optional
        The column to sort by, and whose steps must be whole numbers: a value is the one of exactly one step earlier,
        so that a wave that somebody missed has no successor. Without it rows are in order and none is missing.
    lags : int
        How many earlier values.

    Returns
    -------
    pandas.DataFrame
        The rows that have all their earlier values, with these as further columns.

    Examples
    --------
    >>> import dfdbayes as dfd, pandas as pd
    >>> diary = pd.DataFrame({"who": ["a", "a", "a", "b", "b"], "day": [1, 2, 4, 1, 2], "mood": [0, 1, 1, 1, 0]})
    >>> dfd.lagged(diary, ["mood"], by="who", time="day").to_numpy().tolist()  # who, day, mood, mood_lag1
    [['a', 2, 1, 0], ['b', 2, 0, 1]]
    """
    if isinstance(lags, bool) or not isinstance(lags, int) or lags < 1:
        raise SettingError(f"lags is {lags!r}; it must be a whole number, at least 1")
    wanted = [str(name) for name in listed(columns)]
    for name in [*wanted, *(name for name in (by, time) if name is not None)]:
        match(name, list(frame.columns))
    if time is not None and not pd.api.types.is_numeric_dtype(frame[time]):
        raise DataError(
            f"'{time}' holds dates or texts, and steps here are whole numbers. What to do: number the steps (1, 2, 3, "
            f"...) in a column; or fit with formula='... ~ lag({wanted[0]})' and time='{time}', which takes "
            "dates."
        )
    made = [f"{name}{SUFFIX}{lag}" for name in wanted for lag in range(1, lags + 1)]
    there = next((name for name in made if name in frame.columns), None)
    if there is not None:
        raise DataError(
            f"there is a column '{there}' already, which the earlier values would overwrite. What to do: rename or "
            "drop it."
        )
    keys = [name for name in (by, time) if name is not None]
    if time is not None and frame.duplicated(keys).any():
        twice = frame.loc[frame.duplicated(keys), keys].iloc[0]
        shown = ", ".join(f"{name} {value}" for name, value in twice.items())
        raise DataError(f"two rows have {shown}. What to do: keep one row for each {' and '.join(keys)}.")
    ordered = frame.sort_values(keys, kind="stable") if keys else frame
    found = ordered.copy()
    for lag in range(1, lags + 1):
        earlier = _earlier(ordered, wanted, by, time, lag)
        for name in wanted:
            found[f"{name}{SUFFIX}{lag}"] = earlier[name].to_numpy()
    kept = found.dropna(subset=made).reset_index(drop=True)
    if kept.empty:
        raise DataError("no row has all its earlier values: check that by= and time= name the right columns")
    for name in made:  # whole numbers became others where some were missing
        if pd.api.types.is_integer_dtype(frame[name.rsplit(SUFFIX, 1)[0]]):
            kept[name] = kept[name].astype("int64")
    return kept


def _earlier(ordered: pd.DataFrame, wanted: list[str], by: str | None, time: str | None, lag: int) -> pd.DataFrame:
    """The values of so many steps before, missing where there are none."""
    if time is not None:  # from the first one: missing values make floats of what is shifted
        ordered = ordered.assign(**{time: ordered[time] - ordered[time].min()})
    grouped = ordered if by is None else ordered.groupby(by, sort=False)
    shifted = grouped[[*wanted, *([time] if time else [])]].shift(lag)
    if time is not None:
        late = (ordered[time] - shifted[time]) != lag
        shifted.loc[late, wanted] = float("nan")
    return shifted
