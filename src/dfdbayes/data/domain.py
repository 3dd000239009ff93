"""Where discrete data live, and which values are neighbours.

A domain is a product of coordinates. A coordinate is one of five kinds:

========== =============================== ==================================
kind       values                          neighbours at the ends
========== =============================== ==================================
integers   ..., -1, 0, 1, ...              there are no ends
above      minimum, minimum + 1, ...       the decrement of the minimum is
                                           "star": it does not exist
below      ..., maximum - 1, maximum       the mirror image of ``above``
finite     a set of levels                 they wrap around
ordered    a finite set with an order      there are none: the minimum has no
                                           decrement, the maximum no increment
========== =============================== ==================================

Two levels are each other's neighbours both ways, ordered or not.

The mirrored half-line reverses its order, so there the *decrement* of x is x + 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from ..errors import ModelError

Rows = Int[np.ndarray, "n d"]
Mask = Bool[np.ndarray, "n d"]


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of a domain; see the module's table for the kinds."""

    kind: str
    end: int | None = None
    levels: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    ordered: bool = False

    def neighbour(self, x: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Move ``x`` by one decrement (step -1) or increment (+1); also tell where the result exists.

        Where it does not exist, the value returned is ``x`` itself, which is safe to evaluate.
        """
        if self.kind == "integers":
            return x + step, np.ones(x.shape, bool)
        if self.kind == "finite":
            levels = np.asarray(self.levels)
            if len(levels) == 2:
                return levels[0] + levels[1] - x, np.ones(x.shape, bool)
            place = np.searchsorted(levels, x) + step
            if self.ordered:
                exists = (place >= 0) & (place < len(levels))
                return np.where(exists, levels[np.clip(place, 0, len(levels) - 1)], x), exists
            return levels[place % len(levels)], np.ones(x.shape, bool)
        towards = step if self.kind == "above" else -step
        exists = np.ones(x.shape, bool) if step > 0 else x != self.end
        return np.where(exists, x + towards, x), exists

    def contains(self, x: np.ndarray) -> np.ndarray:
        if self.kind == "integers":
            return np.ones(x.shape, bool)
        if self.kind == "finite":
            return np.isin(x, self.levels)
        return x >= self.end if self.kind == "above" else x <= self.end

    @property
    def needs(self) -> str:
        """What a value must be, in words for an error message."""
        if self.kind == "integers":
            return "integers"
        if self.kind == "finite":
            shown = [str(v) for v in (self.labels or self.levels)]
            return "one of " + (", ".join(shown) if len(shown) <= 12 else f"{shown[0]}, ..., {shown[-1]}")
        return f"integers {'>=' if self.kind == 'above' else '<='} {self.end}"

    @property
    def label(self) -> str:
        """The name of the kind, as a user writes it."""
        if self.ordered:
            return "Ordinal"
        if self.labels:
            return "Categories"
        if self.kind == "finite":
            return "Binary" if self.levels == (0, 1) else "Spins" if self.levels == (-1, 1) else "Finite"
        return {"integers": "Integers", "above": "Counts", "below": "CountsBelow"}[self.kind]


@dataclass(frozen=True)
class Domain:
    """A product of coordinates, kept as runs of equal ones: ``((coordinate, how many), ...)``.

    Domains are made by `Integers`, `Counts`, `CountsBelow`, `Finite`, `Ordinal`, `Binary`, `Spins` and
    `Categories`, and multiplied to mix them.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> domain = dfd.Counts(2) * dfd.Binary(1)
    >>> domain
    Counts(2) * Binary(1)
    >>> domain.d
    3
    """

    runs: tuple[tuple[Coordinate, int], ...]

    @cached_property
    def d(self) -> int:
        return sum(length for _, length in self.runs)

    def __mul__(self, other: Domain) -> Domain:
        if not isinstance(other, Domain):
            return NotImplemented
        runs = list(self.runs)
        for coordinate, length in other.runs:
            if runs and runs[-1][0] == coordinate:
                runs[-1] = (coordinate, runs[-1][1] + length)
            else:
                runs.append((coordinate, length))
        return Domain(tuple(runs))

    def __repr__(self) -> str:
        return " * ".join(f"{coordinate.label}({length})" for coordinate, length in self.runs)

    def slices(self) -> Iterator[tuple[Coordinate, slice]]:
        """Each run's coordinate with the columns it owns."""
        first = 0
        for coordinate, length in self.runs:
            yield coordinate, slice(first, first + length)
            first += length

    def coordinate(self, j: int) -> Coordinate:
        for coordinate, columns in self.slices():
            if j < columns.stop:
                return coordinate
        raise IndexError(j)

    def _moved(self, x: Rows, step: int) -> tuple[Rows, Mask]:
        values, exists = np.empty_like(x), np.empty(x.shape, bool)
        for coordinate, columns in self.slices():
            values[:, columns], exists[:, columns] = coordinate.neighbour(x[:, columns], step)
        return values, exists

    def decrement(self, x: Rows) -> tuple[Rows, Mask]:
        """Column j of the result is x_j^-; the mask says where that is not "star"."""
        return self._moved(x, -1)

    def increment(self, x: Rows) -> tuple[Rows, Mask]:
        """Column j of the result is x_j^+; the mask says where it exists: everywhere but at an ordered maximum."""
        return self._moved(x, +1)

    def contains(self, x: np.ndarray) -> Mask:
        inside = np.empty(x.shape, bool)
        for coordinate, columns in self.slices():
            inside[:, columns] = coordinate.contains(x[:, columns])
        return inside

    @property
    def wrapped(self) -> Domain:
        """The same points with ordered coordinates wrapped around: there sums by parts leave nothing at the ends."""
        return Domain(tuple((replace(coordinate, ordered=False), length) for coordinate, length in self.runs))

    @property
    def is_binary(self) -> bool:
        """Whether every coordinate has two states."""
        return all(len(coordinate.levels) == 2 for coordinate, _ in self.runs)

    @property
    def is_finite(self) -> bool:
        return all(coordinate.kind == "finite" for coordinate, _ in self.runs)

    @property
    def size(self) -> float:
        """How many points the domain has; infinity where a coordinate is unbounded."""
        if not self.is_finite:
            return float("inf")
        return float(np.prod([float(len(c.levels)) ** length for c, length in self.runs]))

    def points(self) -> Rows:
        """Every point of a finite domain, last coordinate fastest."""
        if not self.is_finite or self.size > 2**24:
            raise ModelError(f"{self!r} has {self.size:.3g} points: too many to list")
        axes = [c.levels for c, length in self.runs for _ in range(length)]
        return np.array(list(itertools.product(*axes)), dtype=np.int64)


def _repeated(d: int, coordinate: Coordinate) -> Domain:
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)) or d < 1:
        raise ModelError(f"a domain needs a whole number of coordinates, at least one, not {d!r}")
    return Domain(((coordinate, int(d)),))


def Integers(d: int = 1) -> Domain:
    """All integers, in ``d`` coordinates."""
    return _repeated(d, Coordinate("integers"))


def Counts(d: int = 1, minimum: int = 0) -> Domain:
    """Integers from ``minimum`` up, in ``d`` coordinates."""
    return _repeated(d, Coordinate("above", end=int(minimum)))


def CountsBelow(d: int = 1, maximum: int = 0) -> Domain:
    """Integers from ``maximum`` down, in ``d`` coordinates: the mirror image of `Counts`."""
    return _repeated(d, Coordinate("below", end=int(maximum)))


def Finite(d: int, levels: int | Sequence[int]) -> Domain:
    """A finite ordered set that wraps around: ``levels`` distinct integers, or a number k for 0..k-1."""
    given = range(levels) if isinstance(levels, int) else levels
    if any(int(v) != v for v in given):
        raise ModelError(f"levels must be whole numbers, not {list(given)}; recode them as 0, 1, 2, ...")
    values = tuple(int(v) for v in given)
    if len(values) < 2 or len(set(values)) < len(values):
        raise ModelError(f"a finite domain needs at least two distinct levels, not {list(values)}")
    return _repeated(d, Coordinate("finite", levels=tuple(sorted(values))))


def Ordinal(d: int, levels: int | Sequence[int]) -> Domain:
    """Ordered levels, such as the answers of a questionnaire: neighbours are one step apart, and the ends have one.

    ``levels`` are distinct integers, or a number k for 0..k-1.
    """
    ((coordinate, _),) = Finite(d, levels).runs
    return _repeated(d, replace(coordinate, ordered=True))


def Binary(d: int = 1) -> Domain:
    """The values 0 and 1, in ``d`` coordinates."""
    return Finite(d, (0, 1))


def Spins(d: int = 1) -> Domain:
    """The values -1 and +1, in ``d`` coordinates."""
    return Finite(d, (-1, 1))


def Categories(d: int, labels: Sequence[str]) -> Domain:
    """Labelled levels in the given order; a model sees them as 0, 1, ..., k-1."""
    names = tuple(str(label) for label in labels)
    if len(names) < 2 or len(set(names)) < len(names):
        raise ModelError(f"categories need at least two distinct labels, not {list(names)}")
    return _repeated(d, Coordinate("finite", levels=tuple(range(len(names))), labels=names))
