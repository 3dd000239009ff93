"""Numbers as a sentence has them: rounded to what their interval can tell, with the interval beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

LEVEL = 0.95  # of the intervals in sentences, which say so


class Estimate(NamedTuple):
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, fit: Any, entry: str) -> Estimate:
        """An entry of a fit's summary; its median where a few huge draws decide the mean."""
        row = fit.summary(LEVEL).loc[entry].to_dict()
        return cls(row["median"] if np.isnan(row["mean"]) else row["mean"], row["eti95_lb"], row["eti95_ub"])

    @classmethod
    def of_draws(cls, draws: np.ndarray) -> Estimate:
        """The median of draws, and their equal-tailed interval."""
        low, value, high = np.quantile(draws, [0.5 * (1 - LEVEL), 0.5, 0.5 * (1 + LEVEL)])
        return cls(float(value), float(low), float(high))

    def excludes(self, value: float) -> bool:
        """Whether a value lies outside the interval."""
        return not self.low <= value <= self.high

    def _texts(self, factor: float = 1.0) -> list[str]:
        spread = factor * (self.high - self.low)
        return [rounded(factor * part, spread) for part in self]

    @property
    def full(self) -> str:
        """As an answer first has it: 3.56 (95 % interval 3.44 to 3.71)."""
        value, low, high = self._texts()
        return f"{value} (95 % interval {low} to {high})"

    @property
    def brief(self) -> str:
        """As it goes on: 3.56 (3.44 to 3.71)."""
        value, low, high = self._texts()
        return f"{value} ({low} to {high})"

    @property
    def inside(self) -> str:
        """Inside brackets: 3.56, 95 % interval 3.44 to 3.71."""
        value, low, high = self._texts()
        return f"{value}, 95 % interval {low} to {high}"

    @property
    def ends(self) -> str:
        """The interval alone: 3.44 to 3.71."""
        return " to ".join(self._texts()[1:])

    @property
    def percent(self) -> str:
        """A share: 36 % (95 % interval 33 % to 39 %)."""
        value, low, high = self._texts(100.0)
        return f"{value} % (95 % interval {low} % to {high} %)"

    @property
    def times(self) -> str:
        """A factor: 2.1 times (1.9 to 2.3)."""
        value, low, high = self._texts()
        return f"{value} times ({low} to {high})"


class Ratio(Estimate):
    """A factor and its 95 % interval: two digits of each, and no end that reads as 1 without being 1."""

    def _texts(self, factor: float = 1.0) -> list[str]:
        spread = self.high - self.low
        ends = (self._end(end, min(spread, end)) for end in (self.low, self.high))
        return [rounded(self.value, min(spread, self.value)), *ends]

    def _end(self, end: float, spread: float, digits: int = 4) -> str:
        text = rounded(end, spread)
        unclear = digits and np.isfinite(end) and float(text) == 1.0 != end
        return self._end(end, 0.1 * spread, digits - 1) if unclear else text


def rounded(value: float, spread: float) -> str:
    """A number with the decimals that a spread leaves: two digits of the spread itself."""
    if not np.isfinite(value):
        return "beyond all bounds" if value > 0 else "–"
    if not np.isfinite(spread) or spread <= 0 or abs(value) >= 1e7 or spread < 1e-6:
        return f"{value:.3g}"
    return f"{value:z.{int(np.clip(1 - np.floor(np.log10(spread)), 0, 6))}f}"


def named(name: object) -> str:
    """A name of the user's on one line, its middle left out where it is long."""
    text = " ".join(str(name).split()) or "(no name)"
    return text if len(text) <= 40 else f"{text[:20]}…{text[-19:]}"


def listed(parts: Sequence[str], most: int = 4) -> str:
    """a, b and c; of many the first ones and how many more there are."""
    shown = list(parts[:most])
    more = len(parts) - len(shown)
    if more:
        shown.append(f"{more} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def counted(number: int, one: str, many: str = "") -> str:
    """1 row, 2 rows."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def untold(names: Sequence[str]) -> str:
    """Effects whose direction the data cannot tell."""
    whose = "its 95 % interval includes" if len(names) == 1 else "their 95 % intervals include"
    return f"For {listed(names)} the data cannot tell the direction: {whose} zero."


def also(names: Sequence[str]) -> str:
    """Effects that are clear, and not among those that are told one by one."""
    have = "has a clear effect" if len(names) == 1 else "have clear effects"
    return f"{listed(names)} {have} too."


def multiplied(draws: np.ndarray) -> Estimate:
    """What the exponential of a coefficient multiplies by."""
    return Ratio.of_draws(np.exp(np.clip(draws, -700.0, 700.0)))
