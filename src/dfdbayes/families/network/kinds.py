"""What a column of a network is: its values, its own part of the log mass, and what its neighbours see of it.

log p(x) = sum_j node_j(x_j) + sum over edges of w_ij s_i(x_i) s_j(x_j)   (up to a constant)

================ ============================================ ========== ==================================
kind             node(x)                                      s(x)       values
================ ============================================ ========== ==================================
binary           intercept x                                  x          0 and 1, or -1 and +1
ordinal          threshold_x, zero for the lowest level       x - min    levels with an order
blume-capel      intercept x + quadratic (x - reference)^2    x - min    levels with an order, two parameters
count            intercept x - nu log x!                      sqrt(x)    0, 1, 2, ...
poisson          intercept x - log x!                         sqrt(x)    0, 1, 2, ...
================ ============================================ ========== ==================================

Levels are counted from the lowest one in all that is linear. Square roots let counts rise together (Inouye, Ravikumar
and Dhillon, 2016); those of the paper's graphical models are seen as they are, and can only lower each other. Ordinal
thresholds are those of Marsman et al. (2025), two parameters for all of them are Blume and Capel's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from ...core.domain import Binary, Coordinate, Counts, Domain, Finite, Ordinal
from ...errors import ModelError

FACTORIAL, QUADRATIC = "nu", "quadratic"
Levels = int | Sequence[int] | Sequence[str] | Coordinate
NAMES = ("binary", "ordinal", "blume-capel", "count", "poisson")


@dataclass(frozen=True)
class Kind:
    """The kind of a column; see the module's table.

    Attributes
    ----------
    name : str
    coordinate : Coordinate
        Its values.
    linear : bool
        Whether an intercept multiplies its value.
    curve : {"", "nu", "quadratic"}
        What bends its own part: minus log x!, or the square of the distance from a reference.
    free : bool
        Whether the factor of that is a parameter; it is 1 otherwise.
    thresholds : bool
        Whether every level but the lowest has a parameter.
    root : bool
        Whether neighbours see the square root.
    """

    name: str
    coordinate: Coordinate
    linear: bool = True
    curve: str = ""
    free: bool = False
    thresholds: bool = False
    root: bool = False

    @property
    def levels(self) -> tuple[int, ...]:
        return self.coordinate.levels

    @property
    def counts(self) -> bool:
        return self.coordinate.kind == "above"

    @property
    def origin(self) -> int:
        """The value that is zero in all that is linear: the lowest one of ordered levels."""
        return self.levels[0] if self.coordinate.ordered else 0

    @property
    def middle(self) -> int:
        """The level that the quadratic part of a Blume-Capel column is counted from."""
        return self.levels[len(self.levels) // 2]

    def scores(self, x: np.ndarray) -> np.ndarray:
        """What neighbours see of values."""
        away = np.asarray(x, float) - self.origin
        return np.sqrt(away) if self.root else away

    def bends(self, x: np.ndarray) -> np.ndarray:
        """What the curve's factor multiplies."""
        if self.curve == FACTORIAL:
            return -gammaln(np.asarray(x, float) + 1.0)
        return (np.asarray(x, float) - self.middle) ** 2


MOST_POWERS = 32  # levels up to which a sum over them is written out as a polynomial


def evenly_seen(kinds: tuple[Kind, ...]) -> bool:
    """Whether all columns have few levels, and neighbours see these at equal distances."""
    if not all(kind.coordinate.kind == "finite" and len(kind.levels) <= MOST_POWERS for kind in kinds):
        return False
    return all(np.ptp(np.diff(kind.scores(np.asarray(kind.levels)))) == 0.0 for kind in kinds)


def binary(coordinate: Coordinate | None = None) -> Kind:
    """Two values, 0 and 1 unless others are given."""
    return Kind("binary", Binary(1).coordinate(0) if coordinate is None else coordinate)


def scale(levels: Levels) -> Coordinate:
    """Levels with an order."""
    return levels if isinstance(levels, Coordinate) else Ordinal(1, levels).coordinate(0)


def ordinal(levels: Levels) -> Kind:
    """Levels with an order, with a threshold for each but the lowest."""
    return Kind("ordinal", scale(levels), linear=False, thresholds=True)


def blume_capel(levels: Levels) -> Kind:
    """Levels with an order, with two parameters for all of them."""
    return Kind("blume-capel", scale(levels), curve=QUADRATIC, free=True)


def count(free: bool = True) -> Kind:
    """Counts whose neighbours see their square roots, with a ``nu`` that is a parameter or 1."""
    return Kind("count" if free else "poisson", Counts(1).coordinate(0), curve=FACTORIAL, free=free, root=True)


def of_the_paper(free: bool) -> Kind:
    """Counts that their neighbours see as they are."""
    return replace(count(free), root=False)


def by_name(name: str, levels: Sequence[int] | Sequence[str] | Coordinate = ()) -> Kind:
    """A kind from its word; ordered ones need their levels, and binary ones have 0 and 1 without any."""
    if name not in NAMES:
        raise ModelError(f"there is no kind of column '{name}'; known: {', '.join(NAMES)}")
    if name in ("ordinal", "blume-capel"):
        if not isinstance(levels, Coordinate) and len(levels) < 2:
            raise ModelError(f"a column of kind '{name}' needs at least two levels; the data have {list(levels)}")
        return (ordinal if name == "ordinal" else blume_capel)(levels)
    if name == "binary":
        own = levels if isinstance(levels, Coordinate) else Finite(1, list(map(int, levels or (0, 1)))).coordinate(0)
        return binary(own)
    return count(free=name == "count")


def family(name: str) -> str:
    """The values that a kind is for: "binary", "ordinal" or "count"."""
    return {"blume-capel": "ordinal", "poisson": "count"}.get(name, name)


def domain_of(kinds: tuple[Kind, ...]) -> Domain:
    """The product of the columns' values."""
    found = Domain(((kinds[0].coordinate, 1),))
    for kind in kinds[1:]:
        found = found * Domain(((kind.coordinate, 1),))
    return found
