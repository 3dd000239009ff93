"""Weights of rows, for robust losses: m(x) > 0, small for rows far from all others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtr, ndtri

from ..._util.codec import by_name
from ..registry import Registry


class AbstractWeight(ABC):
    """m(x) > 0 of every row x, given its covariates where it has some."""

    @abstractmethod
    def at(self, rows: Int[np.ndarray, "u d"], given: Float[np.ndarray, "u q"] | None) -> Float[np.ndarray, " u"]:
        """The weight of each row."""

    @property
    @abstractmethod
    def words(self) -> str:
        """Which rows count less."""


WEIGHTS: Registry[type[AbstractWeight]] = Registry("weight of rows")
by_name(AbstractWeight, WEIGHTS, tag="kind")


@dataclass(frozen=True)
class OfRows(AbstractWeight):
    """A user's weight: ``function(rows)`` gives m for each row."""

    function: Callable[[np.ndarray], Any]

    def at(self, rows: np.ndarray, given: np.ndarray | None) -> np.ndarray:
        return np.asarray(self.function(rows), float)

    @property
    def words(self) -> str:
        return "rows are weighted by a function of your own"


def kept(tail: Float[np.ndarray, " u"], level: float) -> Float[np.ndarray, " u"]:
    """What is left of a row with so much of a distribution beyond it: one half at ``level``, and little below."""
    squared = np.maximum(tail, 1e-150) ** 2  # so that every weight is positive
    return squared / (squared + level**2)


@WEIGHTS.register("totals")
@dataclass(frozen=True)
class Totals(AbstractWeight):
    """Rows count less as their columns together, or a count alone, lie far from the middle of the data.

    With g_j the value of a column, or 2 (x + 3/8)^(1/2) of a count: the total is the sum of slope_j g_j(x), and a row
    keeps `kept` of the normal tails beyond its total, and beyond each of its counts.

    Attributes
    ----------
    roots : tuple of bool
        Which columns are counts.
    slopes : tuple of float
        What each column adds to the total.
    middle, below, above : float
        Of the total: its median, and its spread on either side.
    columns : tuple of (float, float, float), one for each count
        The same of its g.
    level : float
        The tail that leaves one half.
    names : tuple of str
        Of the counts.
    """

    roots: tuple[bool, ...]
    slopes: tuple[float, ...]
    middle: float
    below: float
    above: float
    columns: tuple[tuple[float, float, float], ...]
    level: float
    names: tuple[str, ...] = ()

    def at(self, rows: np.ndarray, given: np.ndarray | None) -> np.ndarray:
        values = transformed(rows, self.roots)
        found = self._kept(values @ np.asarray(self.slopes), self.middle, self.below, self.above)
        for j, column in zip(np.flatnonzero(self.roots), self.columns, strict=True):
            found = found * self._kept(values[:, j], *column)
        return found

    def _kept(self, total: np.ndarray, middle: float, below: float, above: float) -> np.ndarray:
        far = np.abs(total - middle) / np.where(total < middle, below, above)
        return kept(ndtr(-far), self.level)

    @property
    def words(self) -> str:
        z = -float(ndtri(self.level))
        low, high = self.middle - z * self.below, self.middle + z * self.above
        if len(set(self.slopes)) == 1 and self.slopes[0] == 1.0 and not any(self.roots):
            return f"rows whose sum is below about {low:.3g} or above about {high:.3g} count less"
        text = f"rows whose columns together lie more than about {z:.1f} robust standard deviations out count less"
        counts = list(zip(self.names, self.columns, strict=True))
        ends = [f"{name} above about {_count(middle + z * above):.3g}" for name, (middle, _, above) in counts[:4]]
        more = "" if len(counts) <= 4 else f" and {len(counts) - 4} more"
        return text + (f", and so do rows with {', '.join(ends)}{more}" if ends else "")


def transformed(rows: np.ndarray, roots: tuple[bool, ...]) -> Float[np.ndarray, "u d"]:
    """Values, or of counts their stabilised roots, which vary by about one where counts are Poisson's."""
    values = np.asarray(rows, float)
    return np.where(roots, 2.0 * np.sqrt(np.maximum(values, 0.0) + 0.375), values)


def _count(root: float) -> float:
    return (0.5 * root) ** 2 - 0.375
