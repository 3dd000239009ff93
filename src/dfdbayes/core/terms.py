"""Tables: all that losses need of a model at the data, ready for compiled code.

A model makes its own tables, each for one purpose:

* log-ratios to neighbouring points (`AbstractTable`), for the discrete Fisher divergence and its relatives;
* log sums over the states of one coordinate (`AbstractConditionals`), for the pseudo-likelihood;
* the log-likelihood (`AbstractLikelihood`), where the constant can be had.

This file has those of a model that is known by its log mass alone; families with faster ones have them beside the
family (`exponential_tables.py`, `network_tables.py`). Tables are pytrees: their arrays enter compiled code as
arguments, and the model is part of their structure. They are padded with entries of weight zero to a few standard
sizes, so that data sets of similar size share compiled code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..errors import ModelError
from .domain import Domain
from .log_mass_errors import without_constant
from .parameters import Theta
from .sites import BLOCKS, Sites

if TYPE_CHECKING:
    from .model import AbstractModel

MOST_POINTS = 2**20  # of a domain that is listed
BEYOND = 4  # times the largest count seen, up to which counts are listed
Function = Callable[[Array], Array]
SecondOrder = tuple[Array, Array, Array]
T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def table(cls: type[T]) -> type[T]:
    """Make a dataclass a pytree: all its fields are arrays but ``model``, which is part of the structure."""
    made = dataclass(frozen=True)(cls)
    names = [field.name for field in fields(made)]  # type: ignore[arg-type]
    jax.tree_util.register_dataclass(made, [name for name in names if name != "model"], ["model"])
    return made


@dataclass(frozen=True)
class Prepared:
    """A table, and how weights of units become weights of its terms."""

    table: Any
    weigh: Callable[[Float[np.ndarray, "*batch v"]], Any]
    units: Float[np.ndarray, " v"] | None = None
    """The data's own weights of what is weighed, where that is not the sites' units."""
    elsewhere: bool = False
    """Whether the rows are on other machines, so that single ones cannot be weighed."""
    gather: Callable[[Any], Float[np.ndarray, "v p"]] | None = None
    """What each unit owns of lines that belong to the terms: the transpose of ``weigh``, where that is linear."""
    moments: Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]] | None = None
    """Of the observations' gradients at a parameter: their number, sum and sum of squares, where rows are elsewhere."""
    one_more: Callable[[np.ndarray], Float[np.ndarray, "v p"]] | None = None
    """What one more observation of each unit adds to the gradient, where a loss that is no sum has a formula for it."""
    note: str = ""
    """How the loss is estimated, where it is too long to compute on these data: "estimated from ..."."""


class AbstractTable(ABC):
    """Log-ratios between neighbouring points of the data."""

    @abstractmethod
    def log_ratios(self, theta: Theta) -> tuple[Array, Array]:
        """Entries' (log r^-, log r^+); where there is no such neighbour the entry is finite, with weight zero."""

    @abstractmethod
    def total(self, minus: Array, plus: Array, weights: Any) -> Float[Array, ""]:
        """Sum of terms ``minus`` and ``plus``, one for each entry, under the entries' weights."""

    def row_ratios(self, theta: Theta) -> Float[Array, "u d"]:
        """r_j^-(x) by row and coordinate, zero where the decrement does not exist."""
        raise ModelError(
            f"{type(self).__name__} has no ratios by row, which the kernel Stein discrepancy needs; use loss='dfd'"
        )

    def second_order(self, minus: Function, plus: Function, theta: Theta, weights: Any) -> SecondOrder | None:
        """Value, gradient and Hessian of ``total(minus(u), plus(v))`` by a formula; None to differentiate."""
        return None

    def lines(self, minus: Function, plus: Function, theta: Theta) -> Any:
        """The gradient of every term of that total at weight one, in the shape of weights; None to differentiate."""
        return None


class AbstractConditionals(ABC):
    """Full conditionals of the data's coordinates."""

    @abstractmethod
    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        """Minus the weighted sum over rows and coordinates of log p(x_j | the rest)."""

    def second_order(self, theta: Theta, weights: Any) -> SecondOrder | None:
        return None

    def lines(self, theta: Theta) -> Any:
        return None


class AbstractLikelihood(ABC):
    """The likelihood of the data."""

    @abstractmethod
    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        """Minus the weighted sum over rows of log p(x)."""

    def second_order(self, theta: Theta, weights: Any) -> SecondOrder | None:
        return None

    def lines(self, theta: Theta) -> Any:
        return None


# -- sizes -------------------------------------------------------------------------------------


def padded_size(size: int) -> int:
    """The standard size at or above ``size``: at most an eighth of it is padding beyond 64."""
    if size <= 8:
        return 8
    step = max(8, 2 ** (int(size - 1).bit_length() - 4))
    return -(-size // step) * step


def doubled_size(size: int) -> int:
    """The power of two at or above ``size``, from 64 on: for small tables whose sizes vary from one to the next."""
    return max(64, 1 << (int(size) - 1).bit_length())


def coarse_size(size: int) -> int:
    """The standard size at or above ``size`` for what takes long to compile: at most a fifth is padding beyond 512.

    Each size is compiled for by itself, and what is compiled takes megabytes that stay.
    """
    if size <= 512:  # a Newton step on so few rows takes no longer than its call
        return doubled_size(size)
    step = 2 ** (int(size - 1).bit_length() - 3)
    return -(-size // step) * step


def pad(array: np.ndarray, size: int, axis: int = 0) -> np.ndarray:
    """Zeros appended along ``axis`` up to ``size``."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, size - array.shape[axis])
    return np.pad(array, widths)


def filled(array: np.ndarray, size: int) -> Array:
    """Copies of the first row appended up to ``size``: there the mass function is known to be finite."""
    return jax.device_put(np.concatenate([array, np.repeat(array[:1], size - len(array), axis=0)]).astype(float))


def derivatives(function: Function, at: Array) -> tuple[Array, Array]:
    """First and second derivative of a function of one number, entry by entry."""
    ones = jnp.ones_like(at)

    def first(x: Array) -> Array:
        return jax.jvp(function, (x,), (ones,))[1]

    return jax.jvp(first, (at,), (ones,))


def by_row(sites: Sites, made: Any, size: int) -> Prepared:
    """A table with one weight for each row."""
    refuse_blocks(sites)
    return Prepared(
        made,
        lambda weights: jax.device_put(pad(sites.of_rows(weights), size, axis=-1)),
        gather=lambda lines: sites.by_unit(np.asarray(lines)[: len(sites.rows)]),
    )


def refuse_blocks(sites: Sites) -> None:
    """For tables whose terms do not belong to single sites."""
    if sites.units.kind == BLOCKS:
        raise ModelError(
            "one observation can be calibrated by resampling blocks of sites, and only for lattice models (Ising, "
            "Potts) with loss 'dfd', 'ratio' or 'pseudo'. Give more observations, or beta by hand (without adjust)."
        )


# -- of a model that is known by its log mass --------------------------------------------------


@table
class NeighbourTable(AbstractTable):
    """Distinct rows, and each coordinate's neighbours (`Domain.moves`); ratios are differences of the log mass."""

    model: AbstractModel
    rows: Float[Array, "u d"]
    down: Float[Array, "u m"]
    up: Float[Array, "u m"]
    minus: Float[Array, "u m"]
    plus: Float[Array, "u m"]

    @staticmethod
    def of(model: AbstractModel, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        moves = (filled(part, size) for part in (sites.rows, sites.down, sites.up))
        scales = (jax.device_put(pad(part, size)) for part in (sites.minus, sites.plus))
        return by_row(sites, NeighbourTable(model, *moves, *scales), size)

    def log_ratios(self, theta: Theta) -> tuple[Array, Array]:
        named = self.model.space.unflatten(theta)

        def of_row(x: Array, down: Array, up: Array) -> tuple[Array, Array]:
            here = self.model.log_mass_at(named, x)
            there = jax.vmap(lambda j, value: self.model.log_mass_at(named, x.at[j].set(value)), in_axes=(0, 0))
            j = self.model.domain.moves[: len(down)]  # on the domain wrapped around the first of every coordinate
            return there(j, down) - here, here - there(j, up)

        return jax.vmap(of_row)(self.rows, self.down, self.up)

    def total(self, minus: Array, plus: Array, weights: Any) -> Float[Array, ""]:
        return jnp.dot(weights, jnp.sum(self.minus * minus + self.plus * plus, axis=1))

    def row_ratios(self, theta: Theta) -> Float[Array, "u d"]:
        return ratios(self.minus, self.log_ratios(theta)[0])


def ratios(scale: Array, log: Array) -> Array:
    """Ratios from their logarithms, zero where there is no neighbour."""
    return jnp.where(scale != 0, jnp.exp(jnp.where(scale != 0, log, 0.0)), 0.0)


@table
class ListedConditionals(AbstractConditionals):
    """The data's rows, and the candidate values of each coordinate; states are listed."""

    model: AbstractModel
    rows: Float[Array, "u d"]
    values: Float[Array, "d s"]
    allowed: Bool[Array, "d s"]

    @staticmethod
    def of(model: AbstractModel, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        values, allowed = candidates(model.domain, sites.rows)
        made = ListedConditionals(model, filled(sites.rows, size), *jax.device_put((values, allowed)))
        return by_row(sites, made, size)

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        named = self.model.space.unflatten(theta)

        def of_row(x: Array) -> Array:
            here = self.model.log_mass_at(named, x)

            def of_coordinate(j: Array, values: Array, allowed: Array) -> Array:
                log = jax.vmap(lambda value: self.model.log_mass_at(named, x.at[j].set(value)))(values)
                return jax.nn.logsumexp(jnp.where(allowed, log - here, -jnp.inf))

            return jnp.sum(jax.vmap(of_coordinate)(jnp.arange(x.shape[0]), self.values, self.allowed))

        return jnp.dot(weights, jax.lax.map(of_row, self.rows, batch_size=256))


def listing(rows: np.ndarray) -> float:
    """How many values of counts `ListedConditionals` lists at most, over all rows and columns."""
    return rows.size * (BEYOND * float(np.abs(rows).max()) + 100.0)


def candidates(domain: Domain, rows: np.ndarray) -> tuple[Float[np.ndarray, "d s"], Bool[np.ndarray, "d s"]]:
    """The values that each coordinate may have; counts are listed up to four times the largest seen and 100 more."""
    columns = []
    for j in range(rows.shape[1]):
        coordinate = domain.coordinate(j)
        if coordinate.kind == "finite":
            columns.append(np.asarray(coordinate.levels, float))
        elif coordinate.kind == "integers":
            raise ModelError("the pseudo-likelihood of a model on all integers is not available; use loss='dfd'")
        else:
            reach = BEYOND * np.abs(rows[:, j] - (coordinate.end or 0)).max() + 100
            step = 1 if coordinate.kind == "above" else -1
            columns.append((coordinate.end or 0) + step * np.arange(reach + 1.0))
    longest = max(map(len, columns))
    values = np.array([np.pad(c, (0, longest - len(c)), mode="edge") for c in columns])
    return values, np.array([np.arange(longest) < len(c) for c in columns])


@table
class FlipConditionals(AbstractConditionals):
    """Coordinates with two states: the ratio to the other one is all that is needed."""

    model: AbstractModel
    table: AbstractTable

    @staticmethod
    def of(model: AbstractModel, prepared: Prepared) -> Prepared:
        return replace(prepared, table=FlipConditionals(model, prepared.table))

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        u, v = self.table.log_ratios(theta)
        return self.table.total(softplus(u), jnp.zeros_like(v), weights)

    def second_order(self, theta: Theta, weights: Any) -> SecondOrder | None:
        return self.table.second_order(softplus, jnp.zeros_like, theta, weights)

    def lines(self, theta: Theta) -> Any:
        return self.table.lines(softplus, jnp.zeros_like, theta)


@jax.custom_jvp
def softplus(u: Array) -> Array:
    """log(1 + exp(u)); twice as fast as `jax.nn.softplus`, which also looks after infinities."""
    return jnp.maximum(u, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(u)))


@softplus.defjvp
def _softplus_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Array, Array]:
    """The logistic function, which is smooth: the corner of |u| at zero has no second derivative of its own."""
    return softplus(primals[0]), 0.5 * (1.0 + jnp.tanh(0.5 * primals[0])) * tangents[0]


MOST_FACTORS = 1000  # of numbers up to two, whose product is a number


@jax.custom_jvp
def sum_softplus(u: Float[Array, "d w"]) -> Float[Array, " w"]:
    """The sum of softplus(u) over the first axis, with one logarithm for all of a column."""
    if len(u) > MOST_FACTORS:
        return jnp.sum(softplus(u), axis=0)
    return jnp.sum(jnp.maximum(u, 0.0), axis=0) + jnp.log(jnp.prod(1.0 + jnp.exp(-jnp.abs(u)), axis=0))


@sum_softplus.defjvp
def _sum_softplus_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Array, Array]:
    return sum_softplus(primals[0]), jnp.sum(jax.nn.sigmoid(primals[0]) * tangents[0], axis=0)


@table
class ListedLikelihood(AbstractLikelihood):
    """The data's distinct rows, and all points of the domain (none where the model knows its constant)."""

    model: AbstractModel
    rows: Float[Array, "u d"]
    points: Float[Array, "s d"]

    @staticmethod
    def of(model: AbstractModel, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        points = np.empty((0, sites.data.d)) if model.log_normaliser is not None else all_points(model)
        return by_row(
            sites, ListedLikelihood(model, filled(sites.rows, size), jax.device_put(points.astype(float))), size
        )

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        named = self.model.space.unflatten(theta)
        at = jax.vmap(lambda x: self.model.log_mass_at(named, x))
        known = self.model.log_normaliser
        constant = known(named) if known is not None else jax.nn.logsumexp(at(self.points))
        return jnp.sum(weights) * constant - jnp.dot(weights, at(self.rows))


@table
class LikelihoodConditionals(AbstractConditionals):
    """One coordinate: its conditional distribution is its distribution."""

    model: AbstractModel
    table: AbstractLikelihood

    @staticmethod
    def of(model: AbstractModel, prepared: Prepared) -> Prepared:
        return replace(prepared, table=LikelihoodConditionals(model, prepared.table))

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        return self.table.value(theta, weights)

    def second_order(self, theta: Theta, weights: Any) -> SecondOrder | None:
        return self.table.second_order(theta, weights)

    def lines(self, theta: Theta) -> Any:
        return self.table.lines(theta)


def all_points(model: AbstractModel) -> np.ndarray:
    """Every point of a model's domain, for its constant."""
    if model.domain.size > MOST_POINTS:
        points = f"{model.domain.size:.3g}" if model.domain.is_finite else "infinitely many"
        raise ModelError(
            f"the likelihood of '{model.name}' needs a sum over {points} points of {model.domain!r}; "
            f"at most {MOST_POINTS} can be listed. {without_constant(model)}"
        )
    return model.domain.points()
