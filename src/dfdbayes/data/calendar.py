"""Times of a series as whole steps: 0, 1, 2, ... from the first, and what a step is called."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int

from ..errors import DataError

OFF = 0.1  # of a step, that a time may lie beside the place that it is taken for
KINDS = ("rows", "numbers", "dates", "months")
LARGEST = 2**62  # in size, of whole times: differences of any two are 64-bit integers
DAY = 86400.0  # seconds
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
        if beside.max() > OFF:
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

    def plain(self) -> dict[str, Any]:
        return asdict(self)


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
    short = dates.zone is not None and apart.min(initial=DAY) < DAY * (1 - OFF)
    return Calendar("dates", zone=dates.zone if short else None)


def _are_numbers(values: pd.Series) -> bool:
    whole = pd.api.types.infer_dtype(values, skipna=False) == "integer"  # also those that no 64 bits hold
    return whole or (pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values))


def _numbers(values: pd.Series) -> np.ndarray:
    """Numbers, whole ones as 64-bit integers."""
    if pd.api.types.infer_dtype(values, skipna=False) != "integer":
        return values.to_numpy(dtype=float)
    exact = values.to_numpy(dtype=object)
    large = [value for value in (exact.min(), exact.max()) if abs(int(value)) > LARGEST] if len(exact) else []
    if large:
        raise DataError(
            f"'{values.name}' holds {large[0]}; times that are whole numbers lie between -2**62 and 2**62. What to do: "
            "subtract the first time from all, or number the steps (1, 2, 3, ...) in a column."
        )
    return exact.astype(np.int64)


def require_few_steps(steps: float, name: str) -> None:
    """Refuse a series whose steps cannot be numbered."""
    if steps > LARGEST:
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
