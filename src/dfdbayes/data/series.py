"""Series: rows in the order of time, and earlier values of columns beside them, as formulas ask for them.

``lag(cases)`` is the value of one step before and ``lag(cases, 2)`` that of two; ``season(week, 52)`` are waves of that
period. A lag becomes a column of the frame that is called what the formula calls it, so all that is known of columns
(names, new data, saved fits) holds for lags too. Nothing is taken across a gap, nor from another unit of a panel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from ..errors import DataError, SettingError, close, some
from .calendar import Calendar, require_few_steps
from .read.tokens import Token, calls_of, name_in, split, tokens_of, written

PLACE = "place in time"  # the covariate that keeps rows of different times apart, and says which are neighbours


@dataclass(frozen=True)
class Lag:
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


def season(t: Any, period: float, order: int = 1) -> dict[str, Any]:
    """Waves of a period: sine and cosine, and ``order`` - 1 overtones of them (harmonic terms).

    Parameters
    ----------
    t : array
        The time.
    period : float
        In the unit of the time: 52 where weeks are numbered, 1 where the time is in years.
    order : int
        How many sines and cosines; 1 is one wave a period.

    Examples
    --------
    >>> import numpy as np
    >>> from dfdbayes.data.series import season
    >>> np.round(season(np.arange(4), 4)["sin"], 9).tolist()
    [0.0, 1.0, 0.0, -1.0]
    """
    if isinstance(order, bool) or int(order) != order or order < 1 or not period > 0:
        raise SettingError(f"season(t, {period}, {order}): the period must be positive and the order a whole number")
    t = np.asarray(t, float)
    found, steps = {}, bool(np.all(t == np.round(t)))
    for k in range(1, int(order) + 1):
        angle, number = 2.0 * np.pi * k * t / period, "" if k == 1 else str(k)
        if not (steps and 2 * k == period):  # this sine is zero at all whole steps
            found[f"sin{number}"] = np.sin(angle)
        found[f"cos{number}"] = np.cos(angle)
    return found


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

    def plain(self) -> dict[str, Any]:
        """In values that JSON can hold."""
        lags = [[lag.column, lag.steps] for lag in self.lags]
        return {"time": self.time, "by": self.by, "lags": lags, "calendar": self.calendar.plain(), "told": self.told}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Series:
        """Back from `plain`."""
        lags = tuple(Lag(str(column), int(steps)) for column, steps in plain["lags"])
        return cls(plain["time"], plain["by"], lags, Calendar(**plain["calendar"]), plain["told"])


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
    names = list(frame.columns)
    for name in (*(lag.column for lag in lags), *(name for name in (time, by) if name is not None)):
        if name not in names:
            hint = close(name, names) or "."
            raise DataError(f"there is no column '{name}'{hint} The columns are {some(names)}.")
    for name in (PLACE, *(lag.name for lag in lags)):
        if name in names:
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
