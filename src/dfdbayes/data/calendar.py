"""Times of a series as whole steps: 0, 1, 2, ... from the first, and what a step is called."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int

from ..errors import DataError

OFF = 0.1  # of a step, that a time may lie beside the place that it is taken for
KINDS = ("rows", "numbers", "dates", "months")


@dataclass(frozen=True)
class Calendar:
    """Which times there are: an origin and a step.

    Attributes
    ----------
    kind : {"rows", "numbers", "dates", "months"}
        Rows in their order, numbers, dates a fixed time apart, or dates one or more months apart.
    origin : float
        The first time: a number, or seconds or months since 1970.
    step : float
        From one time to the next, in the same unit.
    """

    kind: str
    origin: float = 0.0
    step: float = 1.0

    @classmethod
    def of(cls, values: pd.Series) -> Calendar:
        """The calendar of a column of times, which are in no order and may occur more than once."""
        name = str(values.name)
        if values.isna().any():
            row = int(np.argmax(values.isna().to_numpy())) + 1
            raise DataError(f"row {row} has no '{name}', the time of the series. What to do: fill it in, or remove it.")
        for kind in _kinds(values):
            numbers = np.unique(cls(kind).numbers(values))
            apart = np.diff(numbers)
            if not len(apart):
                return cls(kind, float(numbers[0]))
            steps = np.round(apart / apart.min())
            found = cls(kind, float(numbers[0]), float((numbers[-1] - numbers[0]) / steps.sum()))
            beside = np.abs(found._exact(numbers) - np.round(found._exact(numbers)))
            if beside.max() <= OFF:
                return found
        at = values.iloc[int(np.argmax(np.isin(cls(kind).numbers(values), numbers[np.argmax(beside)])))]
        raise DataError(
            f"the times in '{name}' are not a whole number of steps apart (at {at}, for example). What to do: number "
            "the steps (1, 2, 3, ...) in a column, and name that one."
        )

    def numbers(self, values: Any) -> np.ndarray:
        """Times as numbers, in the unit of the origin."""
        if self.kind in ("rows", "numbers"):
            return np.asarray(values, float)
        dates = pd.DatetimeIndex(_dates(pd.Series(values)))
        if self.kind == "months":
            return np.asarray(12.0 * (dates.year - 1970) + dates.month - 1)
        return np.asarray((dates - pd.Timestamp(0)) / pd.Timedelta(seconds=1), float)

    def _exact(self, numbers: np.ndarray) -> np.ndarray:
        return (numbers - self.origin) / self.step

    def places(self, values: Any) -> Int[np.ndarray, " n"]:
        """How many steps after the first time each is."""
        return np.round(self._exact(self.numbers(values))).astype(np.int64)

    def at(self, places: Int[np.ndarray, " n"]) -> Any:
        """The times at these places, as a user would write them."""
        numbers = self.origin + self.step * np.asarray(places, float)
        if self.kind in ("rows", "numbers"):
            whole = np.round(numbers)
            return whole.astype(np.int64) if np.abs(numbers - whole).max(initial=0.0) < 1e-9 else np.round(numbers, 6)
        if self.kind == "months":
            months = np.round(numbers).astype(np.int64)
            return pd.DatetimeIndex([pd.Timestamp(1970 + m // 12, 1 + m % 12, 1) for m in months])
        return pd.DatetimeIndex(pd.Timestamp(0) + pd.to_timedelta(np.round(numbers), unit="s"))

    def counted(self, values: Any) -> np.ndarray:
        """Times as formulas see them: numbers as they are, dates as steps from the first."""
        return np.asarray(values) if self.kind in ("rows", "numbers") else self.places(values)

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def _kinds(values: pd.Series) -> tuple[str, ...]:
    """What a column of times may be, most likely first."""
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        return ("numbers",)
    days = pd.DatetimeIndex(_dates(values)).day
    ends = pd.DatetimeIndex(_dates(values)).is_month_end
    return ("months",) if len(values) > 1 and (ends.all() or (len(set(days)) == 1 and days[0] < 29)) else ("dates",)


def _dates(values: pd.Series) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(values):
        return values
    try:
        return pd.to_datetime(values.astype(str), format="ISO8601")
    except ValueError as problem:
        raise DataError(
            f"the time '{values.iloc[0]}' is neither a number nor a date such as 2024-01-31. What to do: write dates "
            "year first, or number the steps (1, 2, 3, ...) in a column."
        ) from problem
