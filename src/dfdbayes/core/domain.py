"""Where discrete data live, and which values are neighbours.

A domain is a product of coordinates. A coordinate is one of four kinds, and the values of a finite one have neighbours
of one of three:

============= =============================== ==================================
kind          values                          neighbours
============= =============================== ==================================
integers      ..., -1, 0, 1, ...              the next ones: there are no ends
above         minimum, minimum + 1, ...       the decrement of the minimum is
                                              "star": it does not exist
below         ..., maximum - 1, maximum       the mirror image of ``above``
finite, cycle a set of levels                 they wrap around
finite, path  levels with an order            the minimum has no decrement, the
                                              maximum no increment
finite, pairs labels without an order         every other label, both ways
============= =============================== ==================================

Two levels are each other's neighbours both ways, of whatever kind.

The mirrored half-line reverses its order, so there the *decrement* of x is x + 1.

A category has as many decrements as there are other ones: moves by 1, 2, ..., k - 1 places round the labels, which the
increments undo one by one. So each of them is one to one, as a cycle's is, and together they know no order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from ..errors import ModelError

Rows = Int[np.ndarray, "n d"]
Moved = Int[np.ndarray, "n m"]
Mask = Bool[np.ndarray, "n m"]
T = TypeVar("T")

CYCLE, PATH, PAIRS = "cycle", "path", "pairs"
NEGLIGIBLE = 1e-12  # share of a distribution that a list of counts may leave out: far below what 2**53 numbers can show


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of a domain; see the module's table for the kinds."""

    kind: str
    end: int | None = None
    levels: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    neighbours: str = CYCLE

    @property
    def ordered(self) -> bool:
        """Whether it is a finite set with an order."""
        return self.neighbours == PATH

    @property
    def moves(self) -> int:
        """How many decrements a value has, and as many increments: one, but all other values of a category."""
        return len(self.levels) - 1 if self.neighbours == PAIRS else 1

    def neighbour(self, x: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Move ``x`` by its first decrement (step -1) or increment (+1), or by the second (-2, +2) and so on.

        Also tell where the result exists.

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

    @property
    def endless(self) -> bool:
        """Whether it has infinitely many values."""
        return self.kind != "finite"

    def listed(self, number: int, first: int = 0) -> Int[np.ndarray, " s"]:
        """Its levels; of counts ``number`` values from the end on, the ``first`` ones next to it left out."""
        if self.kind == "finite":
            return np.asarray(self.levels)
        if self.kind == "integers":
            raise ModelError("all integers cannot be listed; declare a half-line, dfd.Counts or dfd.CountsBelow")
        return (self.end or 0) + (1 if self.kind == "above" else -1) * np.arange(first, first + number)

    def reach(self, seen: Int[np.ndarray, " n"], times: float = 4.0, more: int = 100) -> int:
        """How many values to list: of counts those up to ``times`` as far from the end as any ``seen``, and ``more``.

        That is how far counts are listed where data alone say how large they get; where masses are known,
        `until_negligible`.
        """
        return len(self.levels) or int(np.ceil(times * np.abs(seen - (self.end or 0)).max(initial=0))) + more + 1

    def contains(self, x: np.ndarray) -> np.ndarray:
        if self.kind == "integers":
            return np.ones(x.shape, bool)
        if self.kind == "finite":
            return np.isin(x, self.levels)
        return x >= self.end if self.kind == "above" else x <= self.end

    @property
    def names(self) -> tuple[str, ...]:
        """The levels as users call them."""
        return self.labels or tuple(map(str, self.levels))

    @property
    def needs(self) -> str:
        """What a value must be, in words for an error message."""
        if self.kind == "integers":
            return "integers"
        if self.kind == "finite":
            shown = self.names
            return "one of " + (", ".join(shown) if len(shown) <= 12 else f"{shown[0]}, ..., {shown[-1]}")
        return f"integers {'>=' if self.kind == 'above' else '<='} {self.end}"

    @property
    def label(self) -> str:
        """The name of the kind, as a user writes it."""
        if self.neighbours != CYCLE:
            return "Ordinal" if self.ordered else "Categories"
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

    def _rounds(self) -> Iterator[tuple[int, Coordinate, slice]]:
        """The first move of every run of coordinates, then the second of those that have one, and so on."""
        for step in range(1, 1 + max(coordinate.moves for coordinate, _ in self.runs)):
            for coordinate, columns in self.slices():
                if step <= coordinate.moves:
                    yield step, coordinate, columns

    @cached_property
    def moves(self) -> Int[np.ndarray, " m"]:
        """The coordinate that each column of `decrement` and `increment` moves: 0, 1, ..., d-1, then categories again.

        Examples
        --------
        >>> import dfdbayes as dfd
        >>> dfd.Counts(2).moves
        array([0, 1])
        >>> (dfd.Categories(1, ["red", "green", "blue"]) * dfd.Counts(1)).moves
        array([0, 1, 0])
        """
        return np.concatenate([np.arange(columns.start, columns.stop) for _, _, columns in self._rounds()])

    def _moved(self, x: Rows, sign: int) -> tuple[Moved, Mask]:
        shape, first = (len(x), len(self.moves)), 0
        values, exists = np.empty(shape, x.dtype), np.empty(shape, bool)
        for step, coordinate, columns in self._rounds():
            put = slice(first, first + columns.stop - columns.start)
            values[:, put], exists[:, put] = coordinate.neighbour(x[:, columns], sign * step)
            first = put.stop
        return values, exists

    def decrement(self, x: Rows) -> tuple[Moved, Mask]:
        """Column j of the result is x_j^-; the mask says where that is not "star".

        Categories have more than one: a column stands for the coordinate that `moves` says.
        """
        return self._moved(x, -1)

    def increment(self, x: Rows) -> tuple[Moved, Mask]:
        """Column j of the result is x_j^+; the mask says where it exists: everywhere but at an ordered maximum."""
        return self._moved(x, +1)

    def contains(self, x: np.ndarray) -> Bool[np.ndarray, "n d"]:
        inside = np.empty(x.shape, bool)
        for coordinate, columns in self.slices():
            inside[:, columns] = coordinate.contains(x[:, columns])
        return inside

    @property
    def wrapped(self) -> Domain:
        """The same points with every finite coordinate a cycle, of one move whose sums by parts leave nothing."""
        return Domain(tuple((replace(coordinate, neighbours=CYCLE), length) for coordinate, length in self.runs))

    @property
    def has_categories(self) -> bool:
        """Whether some coordinate has more than two labels without an order."""
        return any(coordinate.moves > 1 for coordinate, _ in self.runs)

    @property
    def is_binary(self) -> bool:
        """Whether every coordinate has two states."""
        return all(len(coordinate.levels) == 2 for coordinate, _ in self.runs)

    @property
    def is_finite(self) -> bool:
        return all(coordinate.kind == "finite" for coordinate, _ in self.runs)

    @property
    def has_integers(self) -> bool:
        """Whether some coordinate has no end on either side, from which its values could be listed."""
        return any(coordinate.kind == "integers" for coordinate, _ in self.runs)

    @property
    def is_one_count(self) -> bool:
        """Whether it is one half-line, whose values can be listed from its end on."""
        return self.d == 1 and self.coordinate(0).kind in ("above", "below")

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


def side_by_side(columns: Sequence[np.ndarray]) -> tuple[Float[np.ndarray, "d s"], Bool[np.ndarray, "d s"]]:
    """Lists of different lengths as one array, the last values of short ones repeated; and what is no repetition."""
    longest = max(map(len, columns))
    values = np.array([np.pad(own, (0, longest - len(own)), mode="edge") for own in columns], float)
    return values, np.arange(longest) < np.array([len(own) for own in columns])[:, None]


def beyond(last: Any, before: Any, xp: Any = np) -> Any:
    """The mass beyond the last of listed ones, by a geometric series; infinite where masses do not fall there."""
    ratio = xp.where(last > 0.0, last / xp.maximum(before, 1e-300), 0.0)
    return xp.where(ratio < 1.0, last * ratio / xp.where(ratio < 1.0, 1.0 - ratio, 1.0), xp.inf)


def until_negligible(
    attempt: Callable[[int], tuple[T, Any]], first: int, most: int, refusal: str | None, share: float = NEGLIGIBLE
) -> T:
    """What is made of ``first`` values of a count, or of twice as many until those `beyond` are a negligible share.

    Where more than ``most`` are needed that is an error, or what ``most`` give where there is nothing to refuse with.
    """
    number = first
    while True:
        if refusal is not None and number > most:  # also of those to begin with
            raise ModelError(refusal)
        found, left = attempt(number)
        if np.all(left <= share) or (refusal is None and 2 * number > most):
            return found
        number *= 2


def _repeated(d: int, coordinate: Coordinate) -> Domain:
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)) or d < 1:
        raise ModelError(f"a domain needs a whole number of coordinates, at least one, not {d!r}")
    return Domain(((coordinate, int(d)),))


def _is_whole(value: Any) -> bool:
    """Whether something is a whole number, of whatever type."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return number and float(value).is_integer()


def _whole(name: str, value: Any) -> int:
    if not _is_whole(value):
        raise ModelError(f"{name} must be a whole number, not {value!r}")
    return int(value)


def Integers(d: int = 1) -> Domain:
    """All integers, in ``d`` coordinates."""
    return _repeated(d, Coordinate("integers"))


def Counts(d: int = 1, minimum: int = 0) -> Domain:
    """Integers from ``minimum`` up, in ``d`` coordinates."""
    return _repeated(d, Coordinate("above", end=_whole("minimum", minimum)))


def CountsBelow(d: int = 1, maximum: int = 0) -> Domain:
    """Integers from ``maximum`` down, in ``d`` coordinates: the mirror image of `Counts`."""
    return _repeated(d, Coordinate("below", end=_whole("maximum", maximum)))


def Finite(d: int, levels: int | Sequence[int]) -> Domain:
    """A finite ordered set that wraps around: ``levels`` distinct integers, or a number k for 0..k-1."""
    given: Any = range(int(levels)) if _is_whole(levels) else levels  # type: ignore[arg-type]
    if not isinstance(given, Iterable):
        raise ModelError(f"levels are a list of whole numbers or how many there are, not {levels!r}")
    given = list(given)
    if not all(_is_whole(v) for v in given):
        raise ModelError(
            f"levels must be whole numbers, not {given}; recode them as 0, 1, 2, ..., or, if they have no order, give "
            "them to dfd.Categories as texts"
        )
    values = tuple(int(v) for v in given)
    if len(values) < 2 or len(set(values)) < len(values):
        raise ModelError(f"a finite domain needs at least two distinct levels, not {list(values)}")
    return _repeated(d, Coordinate("finite", levels=tuple(sorted(values))))


def Ordinal(d: int, levels: int | Sequence[int] | Sequence[str]) -> Domain:
    """Ordered levels, such as the answers of a questionnaire: neighbours are one step apart, and the ends have one.

    ``levels`` are distinct integers, a number k for 0..k-1, or labels from the lowest level to the highest, which a
    model sees as 0, 1, ..., k-1.
    """
    texts = [level for level in levels if isinstance(level, str)] if isinstance(levels, Iterable) else []
    if texts and len(texts) < len(levels):  # type: ignore[arg-type]
        raise ModelError(f"levels are whole numbers or texts, not both: {levels!r}")
    ((coordinate, _),) = (Categories(d, texts) if texts else Finite(d, levels)).runs  # type: ignore[arg-type]
    return _repeated(d, replace(coordinate, neighbours=PATH))


def Binary(d: int = 1) -> Domain:
    """The values 0 and 1, in ``d`` coordinates."""
    return Finite(d, (0, 1))


def Spins(d: int = 1) -> Domain:
    """The values -1 and +1, in ``d`` coordinates."""
    return Finite(d, (-1, 1))


def Categories(d: int, labels: Sequence[str]) -> Domain:
    """Labels without an order: every other one is a neighbour. A model sees them as 0, 1, ..., k-1, as they are given.

    In what order the labels are given makes no difference to a fit by ``"dfd"``, ``"ratio"``, ``"pseudo"`` or
    ``"likelihood"``; with ``"ksd"`` they are a cycle, as those of `Finite` are. For levels with an order there is
    `Ordinal`.

    Examples
    --------
    >>> import dfdbayes as dfd, numpyro.distributions as dist
    >>> def loss(labels):
    ...     red, green = labels.index("red"), labels.index("green")
    ...     def log_mass(theta, x):
    ...         return theta["red"] * (x[0] == red) + theta["green"] * (x[0] == green)
    ...     priors = {"red": dist.Normal(0, 2), "green": dist.Normal(0, 2)}
    ...     model = dfd.Model(log_mass, dfd.Categories(1, labels), priors)
    ...     return dfd.objective(model, ["red"] * 5 + ["green"] * 3 + ["blue"] * 2)({"red": 1.0, "green": 0.5})
    >>> round(loss(["red", "green", "blue"]), 6), round(loss(["green", "red", "blue"]), 6)
    (-29.10995, -29.10995)
    """
    if not isinstance(labels, Iterable):
        number = int(labels) if _is_whole(labels) and 2 <= labels <= 9 else 2
        shown = [str(k) for k in range(number)]
        raise ModelError(
            f"categories are a list of their labels, such as dfd.Categories({d!r}, {shown}), not {labels!r}"
        )
    names = tuple(str(label) for label in labels)
    if len(names) < 2 or len(set(names)) < len(names):
        raise ModelError(f"categories need at least two distinct labels, not {list(names)}")
    return _repeated(d, Coordinate("finite", levels=tuple(range(len(names))), labels=names, neighbours=PAIRS))
