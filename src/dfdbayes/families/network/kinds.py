"""Kinds of columns of a network: their values, their own part of the log mass, and what their neighbours see.

In log p(x) = sum_j node_j(x_j) + sum over edges of w_ij s_i(x_i) s_j(x_j) - log Z (see `model`), node_j is a sum of
coefficients times statistics:

================ ============================================ ========== ==================================
kind             node(x)                                      s(x)       values
================ ============================================ ========== ==================================
binary           intercept x                                  x          0 and 1, or -1 and +1
ordinal          threshold_x, zero for the lowest level       x - min    levels with an order
count            intercept x - nu log x!                      sqrt(x)    0, 1, 2, ...
poisson          intercept x - log x!                         sqrt(x)    0, 1, 2, ...
blume-capel      intercept x + quadratic (x - reference)^2    x - min    levels with an order, two parameters
================ ============================================ ========== ==================================

Levels are counted from the lowest one in all that is linear; the reference of a Blume-Capel column is its level in the
middle. Graphical count models have s(x) = x.

A kind is one class, registered by its word; `docs/how-to/add-a-column-kind.md` adds one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from scipy import special

from ...core.domain import Coordinate, Counts, Domain, Finite, Ordinal
from ...core.parameters import NODE, SHAPE, Parameter
from ...core.registry import Registry
from ...errors import ModelError

Levels = int | Sequence[int] | Sequence[str] | Coordinate


@dataclass(frozen=True)
class Coefficient:
    """A parameter of networks, with an entry (or several) for every column whose kind has it.

    Attributes
    ----------
    name : str
    prior : numpyro Distribution
        Of one entry; where columns of several kinds have the parameter, the widest of their priors serves for all.
    meaning : str
        What it is, a clause that ends without a full stop.
    role, spread, lower, closed
        As for `Parameter`.
    many : bool
        Whether a column has one for each of its levels; such parameters come last.
    """

    name: str
    prior: Any = field(compare=False)
    meaning: str = field(compare=False)
    role: str = NODE
    spread: tuple[float, float] = (3.0, 2.0)
    lower: float = -math.inf
    closed: bool = False
    many: bool = False

    def parameter(self, size: int) -> Parameter:
        """The parameter of a network with so many entries of this kind."""
        return Parameter(
            self.name, self.prior, shape=(size,), lower=self.lower, closed=self.closed, role=self.role,
            spread=self.spread,
        )  # fmt: skip


_LOWEST = "where its neighbours are at their lowest values"
INTERCEPT = Coefficient("intercept", dist.Normal(0.0, 5.0), f"how common high values of a column are {_LOWEST}")
NU = Coefficient(
    "nu", dist.HalfNormal(3.0), "the shape of a count: below 1 it varies more than a Poisson count, at 1 alike, above "
    "1 less", role=SHAPE, lower=0.0, closed=True,
)  # fmt: skip
QUADRATIC = Coefficient(
    "quadratic", dist.Normal(0.0, 5.0), "how much the ends of a scale are chosen rather than its middle",
    spread=(5.0, 2.5),
)  # fmt: skip
# Thresholds are many, and say how common levels are, which nobody asks of a network. They are many steps away from zero
# where levels are many, and from the margin where edges are strong.
THRESHOLD = Coefficient(
    "threshold", dist.Normal(0.0, 10.0), f"log odds of a level against the lowest level of a column, {_LOWEST}",
    spread=(10.0, 5.0), many=True,
)  # fmt: skip


@dataclass(frozen=True)
class Kind(ABC):
    """The kind of a column; see the module's table.

    Attributes
    ----------
    coordinate : Coordinate
        Its values.
    name : str
        The word for it.
    family : str
        What kinds for the same values have in common: a column of one may be made one of another.
    has_formula : bool
        Whether a column given the others is Bernoulli, its statistic being x, or Conway-Maxwell-Poisson, they being
        (x, -log x!): its constant has a formula, and it is drawn without a list of its values.
    step_told : str
        What an interaction is per step of, where neighbours do not see values as they are.
    """

    coordinate: Coordinate
    name: ClassVar[str]
    family: ClassVar[str]
    has_formula: ClassVar[bool] = False
    step_told: ClassVar[str] = ""

    # -- what a kind says of itself ------------------------------------------------------------

    @classmethod
    @abstractmethod
    def of(cls, levels: Levels) -> Self:
        """A column of this kind with these levels; counts have none."""

    @classmethod
    @abstractmethod
    def serves(cls, coordinate: Coordinate) -> bool:
        """Whether a column with these values can be of this kind; the kind registered first that can is the default."""

    @property
    @abstractmethod
    def coefficients(self) -> tuple[Coefficient | None, ...]:
        """What multiplies each of its `node_statistics`; None where that is 1."""

    @abstractmethod
    def node_statistics(self, x: Any) -> tuple[Any, ...]:
        """What its coefficients multiply at values x, arrays of NumPy or of JAX."""

    @abstractmethod
    def start(self, x: np.ndarray, weights: np.ndarray) -> Sequence[float]:
        """A first guess of its coefficients, from the column alone."""

    def edge_statistic(self, x: Any) -> Any:
        """What its neighbours see of values x, arrays of NumPy or of JAX: s(x)."""
        return x - self.origin

    def labels(self, column: str) -> tuple[str, ...]:
        """The names of its coefficients' entries."""
        return (column,) * sum(coefficient is not None for coefficient in self.coefficients)

    def contrast(self, sd: float) -> float:
        """The difference of edge statistics for which log odds ratios are told, given their standard deviation."""
        return max(2.0 * sd, 1e-6)

    # -- what follows --------------------------------------------------------------------------

    @property
    def is_auto(self) -> bool:
        """Whether the first node statistic is the edge statistic too, as in Besag's (1974) auto-models."""
        return False

    @property
    def is_logistic(self) -> bool:
        """Whether a column given the others is a logistic regression on what it sees of them."""
        return self.is_auto and self.has_formula and len(self.levels) == 2

    @property
    def is_even(self) -> bool:
        """Whether neighbours see its levels, which are few, at equal distances."""
        few = 0 < len(self.levels) <= 32  # a sum over levels is written out as a polynomial of so many powers
        return few and np.ptp(np.diff(self._seen_levels)) == 0.0

    @property
    def has_thresholds(self) -> bool:
        """Whether levels have coefficients of their own."""
        return any(coefficient is not None and coefficient.many for coefficient in self.coefficients)

    @property
    def distance(self) -> float:
        """How far apart neighbours see its two values; NaN where there are other than two."""
        return float(np.ptp(self._seen_levels)) if len(self.levels) == 2 else np.nan

    @property
    def _seen_levels(self) -> np.ndarray:
        return np.asarray(self.edge_statistic(np.array(self.levels, float)))

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


KINDS: Registry[type[Kind]] = Registry("kind of column", ModelError)
FIRST = ("binary", "ordinal", "count", "poisson", "blume-capel")


def names() -> tuple[str, ...]:
    """Kinds in the order of their parameters; the first that serves a column's values is its default."""
    return *FIRST, *(name for name in KINDS if name not in FIRST)


def log_factorial(x: Any) -> Any:
    """The log of x! of values of NumPy or of JAX."""
    return special.gammaln(x + 1.0) if isinstance(x, np.ndarray) else gammaln(x + 1.0)


@KINDS.register("binary")
@dataclass(frozen=True)
class BinaryKind(Kind):
    """Two values, 0 and 1 unless others are given."""

    name = "binary"
    family = "binary"
    has_formula = True

    @classmethod
    def of(cls, levels: Levels = ()) -> Self:
        if isinstance(levels, Coordinate):
            return cls(levels)
        return cls(Finite(1, list(map(int, levels or (0, 1)))).coordinate(0))  # type: ignore[arg-type]

    @classmethod
    def serves(cls, coordinate: Coordinate) -> bool:
        return len(coordinate.levels) == 2 and not coordinate.ordered

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        return (replace(INTERCEPT, prior=dist.Normal(0.0, 3.0)),)

    def node_statistics(self, x: Any) -> tuple[Any, ...]:
        return (x - self.origin,)

    @property
    def is_auto(self) -> bool:
        return True

    def contrast(self, sd: float) -> float:
        """From one value to the other."""
        return self.distance

    def start(self, x: np.ndarray, weights: np.ndarray) -> Sequence[float]:
        low, high = self.levels
        share = (np.average(x, weights=weights) - low) / (high - low)
        share = np.clip(share, 0.5 / weights.sum(), 1.0 - 0.5 / weights.sum())
        return (float(np.log(share / (1.0 - share)) / (high - low)),)


class AbstractScale(Kind):
    """Levels with an order."""

    family = "ordinal"

    @classmethod
    def of(cls, levels: Levels) -> Self:
        if not isinstance(levels, (int, Coordinate)) and len(levels) < 2:
            raise ModelError(f"a column of kind '{cls.name}' needs at least two levels; the data have {list(levels)}")
        return cls(levels if isinstance(levels, Coordinate) else Ordinal(1, levels).coordinate(0))

    @classmethod
    def serves(cls, coordinate: Coordinate) -> bool:
        return coordinate.ordered


@KINDS.register("ordinal")
@dataclass(frozen=True)
class OrdinalKind(AbstractScale):
    """Levels with an order, with a threshold for each but the lowest."""

    name = "ordinal"

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        return (THRESHOLD,) * (len(self.levels) - 1)

    def node_statistics(self, x: Any) -> tuple[Any, ...]:
        return tuple(x == level for level in self.levels[1:])

    def labels(self, column: str) -> tuple[str, ...]:
        return tuple(f"{column},{level}" for level in self.coordinate.names[1:])

    def start(self, x: np.ndarray, weights: np.ndarray) -> Sequence[float]:
        often = np.array([weights[x == level].sum() for level in self.levels]) + 0.5
        return tuple(np.log(often[1:] / often[0]))


@dataclass(frozen=True)
class AbstractCount(Kind):
    """Counts, whose neighbours see their square roots; or, in graphical count models, counts as they are.

    Attributes
    ----------
    root : bool
        Whether neighbours see the square root.
    """

    root: bool = True
    family = "count"
    step_told = "of a count, per step of its square root"

    @classmethod
    def of(cls, levels: Levels = ()) -> Self:
        return cls(Counts(1).coordinate(0))

    @classmethod
    def serves(cls, coordinate: Coordinate) -> bool:
        return coordinate.kind == "above" and coordinate.end == 0

    def seen_as_they_are(self) -> Self:
        """The same column with neighbours that see its counts, and not their roots."""
        return replace(self, root=False)

    def edge_statistic(self, x: Any) -> Any:
        return x**0.5 if self.root else x

    @property
    def is_auto(self) -> bool:
        return not self.root

    def start(self, x: np.ndarray, weights: np.ndarray) -> Sequence[float]:
        return (float(np.log(max(np.average(x, weights=weights), 0.05))),)


@KINDS.register("count")
@dataclass(frozen=True)
class CountKind(AbstractCount):
    """Counts with a shape nu that is a parameter."""

    name = "count"
    has_formula = True

    @property
    def coefficients(self) -> tuple[Coefficient | None, ...]:
        return INTERCEPT, NU

    def node_statistics(self, x: Any) -> tuple[Any, ...]:
        return x, -log_factorial(x)

    def start(self, x: np.ndarray, weights: np.ndarray) -> Sequence[float]:
        return *super().start(x, weights), 1.0


@KINDS.register("poisson")
@dataclass(frozen=True)
class PoissonKind(AbstractCount):
    """Counts that are Poisson given their neighbours."""

    name = "poisson"
    has_formula = True

    @property
    def coefficients(self) -> tuple[Coefficient | None, ...]:
        return INTERCEPT, None

    def node_statistics(self, x: Any) -> tuple[Any, ...]:
        return x, -log_factorial(x)


@KINDS.register("blume-capel")
@dataclass(frozen=True)
class BlumeCapelKind(AbstractScale):
    """Levels with an order, with two parameters for all of them."""

    name = "blume-capel"

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        return INTERCEPT, QUADRATIC

    def node_statistics(self, x: Any) -> tuple[Any, ...]:
        return x - self.origin, (x - self.levels[len(self.levels) // 2]) ** 2

    @property
    def is_auto(self) -> bool:
        return True

    def start(self, x: np.ndarray, weights: np.ndarray) -> Sequence[float]:
        return 0.0, 0.0


def by_name(name: str, levels: Levels = ()) -> Kind:
    """A kind from its word; ordered ones need their levels, and binary ones have 0 and 1 without any."""
    return KINDS.by_name(name).of(levels)


def default_of(coordinate: Coordinate) -> Kind | None:
    """A column of the first kind that serves these values; None if there is none."""
    return next(
        (KINDS.by_name(name).of(coordinate) for name in names() if KINDS.by_name(name).serves(coordinate)), None
    )


def domain_of(kinds: tuple[Kind, ...]) -> Domain:
    """The product of the columns' values."""
    found = Domain(((kinds[0].coordinate, 1),))
    for kind in kinds[1:]:
        found = found * Domain(((kind.coordinate, 1),))
    return found
