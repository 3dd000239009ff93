"""Terms: what a loss is made of at the data, ready for compiled code.

Nearly every loss here is a sum of terms, each a function of a few predictors that are linear in the parameters (or in
the natural parameters eta of an exponential family),

    D(theta) = sum_i w_i g_i(A_i eta(theta) + o_i).

A model gives its terms by `AbstractModel.terms_at(sites, view)`. The view says what a loss looks at, u:

* `View.NEIGHBOURS`: u = log p(x') - log p(x), for every neighbour x' of every row x (`Site` says which kind it is);
* `View.CONDITIONALS`: u = sum_j log p(x_j | the rest of x), for every row;
* `View.LIKELIHOOD`: u = log p(x), for every row.

The loss adds ``loss.term(u, site)``; in the views of probabilities it is linear in u (a log score). It never asks which
terms it has, and terms never ask which loss it is. What a model has to do for it:

* nothing: by default terms follow from `AbstractModel.log_mass_at`, and are differentiated (`Neighbours`,
  `Conditionals`, `Likelihood` below), with covariates or without;
* an explicit A_i, as the sites of a map and the dyads of a graph have it: `linear`;
* an exponential family's distinct differences of statistics, which make a small A whatever the number of rows:
  `linear.Dense`;
* formulas of its own: a subclass of `AbstractLinear` with `predictors`, their adjoint `pullback` and `gram`, from which
  values, gradients, Hessians and gradients of single terms follow (`families/network/terms.py`);
* anything else: a subclass of `AbstractTerms` with a `value`, which is differentiated.

Terms are pytrees: their arrays enter compiled code as arguments, and the model is part of their structure. They are
padded with entries of weight zero to a few standard sizes, so that data sets of similar size share compiled code.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..errors import ModelError
from .dataset import BLOCKS, Sites
from .domain import Domain, side_by_side
from .log_mass_errors import without_constant
from .parameters import Rows, Space, Theta, over_rows

MAX_LISTED_POINTS = 2**20  # of a domain that is listed
BLOCK = 2**14  # rows that are worked on together: the memory of a gradient or a Hessian is that of a block
Function = Callable[[Array], Array]
SecondOrder = tuple[Array, Array, Array]
T = TypeVar("T")


class View(Enum):
    """What a loss looks at; see the module's text."""

    NEIGHBOURS = "log-ratios to neighbours"
    CONDITIONALS = "log-probabilities of coordinates given the others"
    LIKELIHOOD = "log-probabilities of rows"


class Site(NamedTuple):
    """How much a term counts as that of a decrement, and as that of an increment; None where it is none of the kind.

    Of two values each is a decrement and an increment of the other, and so is one category of another.
    """

    minus: Any
    plus: Any


class Loss(Protocol):
    """What terms need of a loss."""

    def term(self, u: Array, site: Site | None) -> Array:
        """What a term adds, entry by entry."""


class Model(Protocol):
    """What terms need of a model that is known by its log mass."""

    @property
    def name(self) -> str: ...
    @property
    def domain(self) -> Domain: ...
    @property
    def space(self) -> Space: ...
    @property
    def ranks(self) -> Mapping[str, int]: ...
    @property
    def designs(self) -> tuple[Any, ...]: ...
    @property
    def log_normaliser(self) -> Callable[[dict[str, Array]], Array] | None: ...
    def at_rows(self, theta: Rows, context: Array | None) -> Rows: ...
    def log_mass_at(self, theta: dict[str, Array], x: Array) -> Array: ...
    def fixed(self, x: np.ndarray) -> np.ndarray: ...
    def log_masses_at(self, at: Rows, x: Array, fixed: Array) -> Array: ...
    def log_constants(self, at: Rows, size: int) -> Array | None: ...
    @property
    def has_likelihood(self) -> bool: ...
    @property
    def user_written(self) -> bool: ...


def static() -> Any:
    """A field of terms that is part of their structure, as the model is."""
    return field(metadata={"static": True})


@dataclass_transform(frozen_default=True, field_specifiers=(static,))
def terms(cls: type[T]) -> type[T]:
    """Make a dataclass a pytree: its fields are arrays, but for the model and those that are `static`."""
    made = dataclass(frozen=True)(cls)
    structure = [f.name for f in fields(made) if f.name == "model" or f.metadata.get("static")]  # type: ignore[arg-type]
    arrays = [f.name for f in fields(made) if f.name not in structure]  # type: ignore[arg-type]
    jax.tree_util.register_dataclass(made, arrays, structure)
    return made


@dataclass(frozen=True)
class Prepared:
    """Terms of a loss at the data, and what is known about them outside compiled code."""

    terms: AbstractTerms
    term_weights: Callable[[Float[np.ndarray, "*batch v"]], Any]
    """Weights of terms from weights of units."""
    unit_weights: Float[np.ndarray, " v"] | None = None
    """The data's own weights of what is weighed, where that is not the sites' units."""
    is_remote: bool = False
    """Whether the rows are on other machines, so that single ones cannot be weighed."""
    gradient_by_unit: Callable[[Any], Float[np.ndarray, "v p"]] | None = None
    """What each unit owns of gradients of terms: the transpose of ``term_weights``, where that is linear."""
    gradient_moments: Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]] | None = None
    """Of the observations' gradients at a parameter: their number, sum and sum of squares, where rows are elsewhere."""
    added_gradient: Callable[[np.ndarray], Float[np.ndarray, "v p"]] | None = None
    """What one more observation of each unit adds to the gradient, where a loss that is no sum has a formula for it."""
    note: str = ""
    """How the loss is estimated, where it is too long to compute on these data: "estimated from ..."."""


class AbstractTerms(ABC):
    """Terms of a loss at the data. A value is all that they need; the rest follows by differentiation."""

    at_once: int | None = None
    """At how many parameters to evaluate side by side, where that is known better than from the size of the terms."""

    @abstractmethod
    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        """The sum of ``loss.term`` under weights; linear in these."""

    def second_order(self, loss: Loss, theta: Theta, weights: Any) -> SecondOrder:
        """Value, gradient and Hessian."""
        return second_order(lambda t: self.value(loss, t, weights), theta)

    def per_term_gradients(self, loss: Loss, theta: Theta, weights: Any, at_once: int) -> Any:
        """The gradient of every term at weight one, in the shape of ``weights`` with the parameters last.

        ``at_once`` is the number of directions that are differentiated side by side.
        """

        def along(direction: Array) -> Any:
            return jax.jvp(lambda t: jax.grad(self.value, argnums=2)(loss, t, weights), (theta,), (direction,))[1]

        found = jax.lax.map(along, jnp.eye(len(theta)), batch_size=at_once)
        return jax.tree.map(lambda part: jnp.moveaxis(part, 0, -1), found)

    def row_ratios(self, theta: Theta) -> Float[Array, "u d"]:
        """p(x^{j-}) / p(x) by row and coordinate, zero where the decrement does not exist."""
        raise ModelError(
            f"{type(self).__name__} has no ratios by row, which the kernel Stein discrepancy needs; use loss='dfd'"
        )


def second_order(function: Callable[[Array], Array], point: Array) -> SecondOrder:
    """Value, gradient and Hessian by one forward pass over the gradient."""
    along = partial(jax.jvp, jax.value_and_grad(function), (point,))
    (value, gradient), (_, hessian) = jax.vmap(lambda v: along((v,)), out_axes=(None, 0))(jnp.eye(len(point)))
    return value, gradient, hessian


def weights_of_log_score(loss: Loss, weights: Any) -> Array:
    """What minus a log-probability counts in a loss of probabilities, which is linear in these."""
    scale: Array = -loss.term(jnp.ones(()), None) * weights
    return scale


# -- sizes -------------------------------------------------------------------------------------


def padded_size(size: int) -> int:
    """The standard size at or above ``size``: at most an eighth of it is padding beyond 64."""
    if size <= 8:
        return 8
    step = max(8, 2 ** (int(size - 1).bit_length() - 4))
    return -(-size // step) * step


def doubled_size(size: int) -> int:
    """The power of two at or above ``size``, from 64 on: for few terms whose number varies from one set to the next."""
    return max(64, 1 << (int(size) - 1).bit_length())


def coarse_size(size: int) -> int:
    """The standard size at or above ``size`` for what takes long to compile: at most a fifth is padding beyond 512.

    Each size is compiled for by itself, and what is compiled takes megabytes that stay.
    """
    if size <= 512:  # a Newton step on so few rows takes no longer than its call
        return doubled_size(size)
    step = 2 ** (int(size - 1).bit_length() - 3)
    return -(-size // step) * step


def rows_size(sites: Sites) -> int:
    """A standard number of rows: of few where rows with covariates are short, of whole blocks where there are many."""
    rows, columns = sites.rows.shape
    if sites.given is None:
        return padded_size(rows)
    if rows > BLOCK:
        return padded_size(-(-rows // BLOCK)) * BLOCK
    return coarse_size(rows) if columns == 1 else padded_size(rows)


def pad(array: np.ndarray, size: int, axis: int = 0) -> np.ndarray:
    """Zeros appended along ``axis`` up to ``size``."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, size - array.shape[axis])
    return np.pad(array, widths)


def filled(array: np.ndarray, size: int) -> Array:
    """Copies of the first row appended up to ``size``: there the mass function is known to be finite."""
    return jax.device_put(np.concatenate([array, np.repeat(array[:1], size - len(array), axis=0)]).astype(float))


def in_blocks(function: Callable[..., Array], parts: Any, block: int = BLOCK) -> Array:
    """A function of arrays of rows, block by block, its results side by side along the first axis.

    Nothing is kept of a block for derivatives but what it began with.
    """
    rows = jax.tree.leaves(parts)[0].shape[0]
    block = rows if rows <= block else math.gcd(rows, block)
    if block == rows:
        return function(*parts)
    blocks = jax.tree.map(lambda part: part.reshape(-1, block, *part.shape[1:]), parts)
    found = jax.lax.map(jax.checkpoint(lambda each: function(*each)), blocks)
    return found.reshape(rows, *found.shape[2:])


def by_row(sites: Sites, made: AbstractTerms, size: int) -> Prepared:
    """Terms with one weight for each row."""
    refuse_blocks(sites)
    return Prepared(
        made,
        lambda weights: jax.device_put(pad(sites.of_rows(weights), size, axis=-1)),
        gradient_by_unit=lambda gradients: sites.by_unit(np.asarray(gradients)[: len(sites.rows)]),
    )


def refuse_blocks(sites: Sites) -> None:
    """For terms that do not belong to single sites."""
    if sites.units.kind == BLOCKS:
        raise ModelError(
            "one observation can be calibrated by resampling blocks of sites, and only for lattice models (Ising, "
            "Potts) with loss 'dfd', 'ratio' or 'pseudo'. Give more observations, or beta by hand (without adjust)."
        )


# -- of a model that is known by its log mass --------------------------------------------------


class FromLogMass(AbstractTerms):
    """Terms that follow from a model's log mass alone: distinct rows with their contexts, worked on in blocks."""

    model: Model
    rows: Float[Array, "u d"]
    context: Float[Array, "u q"] | None
    block: ClassVar[int] = BLOCK

    def of_row(self, loss: Loss, at: dict[str, Array], x: Array, *own: Array) -> Array:
        """The terms of a row, from what `AbstractModel.at_rows` gives for it."""
        raise NotImplementedError

    @property
    def own(self) -> tuple[Array, ...]:
        """What else belongs to each row."""
        return ()

    def over_rows(self, function: Callable[..., Array], theta: Theta) -> Array:
        """A function of what belongs to one row, for all of them."""
        named = self.model.space.unflatten(theta)

        def of_block(context: Array | None, rows: Array, *own: Array) -> Array:
            return over_rows(function, self.model.at_rows(named, context), len(rows), self.model.ranks, rows, *own)

        return in_blocks(of_block, (self.context, self.rows, *self.own), self.block)

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        return jnp.dot(weights, self.over_rows(partial(self.of_row, loss), theta))


def _context(sites: Sites, size: int) -> Array | None:
    """Covariates of every row; those of the first row stand in for padding."""
    return None if sites.given is None else filled(sites.given, size)


@terms
class Neighbours(FromLogMass):
    """Distinct rows, and each coordinate's neighbours (`Domain.moves`); ratios are differences of the log mass."""

    model: Model
    rows: Float[Array, "u d"]
    context: Float[Array, "u q"] | None
    down: Float[Array, "u m"]
    up: Float[Array, "u m"]
    minus: Float[Array, "u m"]
    plus: Float[Array, "u m"]

    @staticmethod
    def of(model: Model, sites: Sites) -> Prepared:
        size = rows_size(sites)
        moves = (filled(part, size) for part in (sites.down, sites.up))
        scales = (jax.device_put(pad(part, size)) for part in (sites.minus, sites.plus))
        found = Neighbours(model, filled(sites.rows, size), _context(sites, size), *moves, *scales)
        return by_row(sites, found, size)

    @property
    def own(self) -> tuple[Array, ...]:
        return self.down, self.up, self.minus, self.plus

    def _ratios(self, at: dict[str, Array], x: Array, down: Array, up: Array) -> tuple[Array, Array]:
        here = self.model.log_mass_at(at, x)
        there = jax.vmap(lambda j, value: self.model.log_mass_at(at, x.at[j].set(value)))
        j = self.model.domain.moves[: len(down)]  # on the domain wrapped around the first of every coordinate
        return there(j, down) - here, there(j, up) - here

    def of_row(self, loss: Loss, at: dict[str, Array], x: Array, *own: Array) -> Array:
        down, up, minus, plus = own
        below, above = self._ratios(at, x, down, up)
        return jnp.sum(loss.term(below, Site(minus, None)) + loss.term(above, Site(None, plus)))

    def row_ratios(self, theta: Theta) -> Float[Array, "u d"]:
        return ratios(self.minus, self.over_rows(lambda at, x, *own: self._ratios(at, x, *own[:2])[0], theta))


def ratios(scale: Array, log: Array) -> Array:
    """Ratios from their logarithms, zero where there is no neighbour."""
    return jnp.where(scale != 0, jnp.exp(jnp.where(scale != 0, log, 0.0)), 0.0)


@terms
class Conditionals(FromLogMass):
    """The data's rows, and the candidate values of each coordinate; states are listed."""

    model: Model
    rows: Float[Array, "u d"]
    context: Float[Array, "u q"] | None
    values: Float[Array, "d s"]
    allowed: Bool[Array, "d s"]
    block: ClassVar[int] = 256  # the log masses of so many rows at all candidate values are in memory together

    @staticmethod
    def of(model: Model, sites: Sites) -> Prepared:
        size = rows_size(sites)
        listed = jax.device_put(candidates(model.domain, sites.rows))
        return by_row(sites, Conditionals(model, filled(sites.rows, size), _context(sites, size), *listed), size)

    def of_row(self, loss: Loss, at: dict[str, Array], x: Array, *own: Array) -> Array:
        here = self.model.log_mass_at(at, x)

        def of_coordinate(j: Array, values: Array, allowed: Array) -> Array:
            log = jax.vmap(lambda value: self.model.log_mass_at(at, x.at[j].set(value)))(values)
            return jax.nn.logsumexp(jnp.where(allowed, log - here, -jnp.inf))

        return loss.term(-jnp.sum(jax.vmap(of_coordinate)(jnp.arange(x.shape[0]), self.values, self.allowed)), None)


@terms
class Likelihood(FromLogMass):
    """The data's distinct rows, and all points of the domain where the constant is a sum over them (else none).

    Attributes
    ----------
    fixed : (u,) floats
        What of the rows' log masses no parameter changes.
    """

    model: Model
    rows: Float[Array, "u d"]
    context: Float[Array, "u q"] | None
    fixed: Float[Array, " u"]
    points: Float[Array, "s d"]

    @classmethod
    def of(cls, model: Model, sites: Sites) -> Prepared:
        size, own = rows_size(sites), bool(model.designs)
        if own and not model.has_likelihood:
            remedy = without_constant(model.user_written)
            raise ModelError(f"the likelihood of '{model.name}' needs a sum over too many points. {remedy}")
        points = np.empty((0, sites.data.d)) if own or model.log_normaliser is not None else all_points(model)
        fixed = filled(model.fixed(sites.rows), size)
        parts = (filled(sites.rows, size), _context(sites, size), fixed, jax.device_put(points.astype(float)))
        return by_row(sites, cls(model, *parts), size)

    @property
    def at_once(self) -> int | None:  # type: ignore[override]
        # so many parameters are worked on while a block is near the processor
        return 4 if self.context is not None and len(self.rows) > BLOCK else None

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        named = self.model.space.unflatten(theta)

        def of_block(context: Array | None, rows: Array, fixed: Array) -> Array:
            return loss.term(self.log_probabilities(self.model.at_rows(named, context), rows, fixed), None)

        return jnp.dot(weights, in_blocks(of_block, (self.context, self.rows, self.fixed)))

    def log_probabilities(self, at: Rows, rows: Array, fixed: Array) -> Float[Array, " u"]:
        """Log p of rows, from what `AbstractModel.at_rows` gives for them."""
        found = self.model.log_masses_at(at, rows, fixed) - self._constants(at, len(rows))
        # What is no number counts as far too much. The choice also keeps the sum that follows out of the loop over
        # rows: compiled together with it that loop falls into dozens.
        return jnp.where(jnp.isnan(found), -jnp.inf, found)

    def _constants(self, at: Rows, size: int) -> Float[Array, " u"]:
        if not len(self.points):
            found = self.model.log_constants(at, size)
            assert found is not None
            return found

        def of(row: dict[str, Array]) -> Array:
            return jax.nn.logsumexp(jax.vmap(lambda x: self.model.log_mass_at(row, x))(self.points))

        return over_rows(of, at, size, self.model.ranks)


def listing(domain: Domain, rows: np.ndarray) -> int:
    """How many values `Conditionals` lists at most, over all rows and columns."""
    return rows.size * max(domain.coordinate(j).reach(rows[:, j]) for j in range(domain.d))


def candidates(domain: Domain, rows: np.ndarray) -> tuple[Float[np.ndarray, "d s"], Bool[np.ndarray, "d s"]]:
    """The values that each coordinate may have, by the data; see `Coordinate.reach`."""
    if domain.has_integers:
        raise ModelError("the pseudo-likelihood of a model on all integers is not available; use loss='dfd'")
    coordinates = [domain.coordinate(j) for j in range(domain.d)]
    return side_by_side([one.listed(one.reach(seen)) for one, seen in zip(coordinates, rows.T, strict=True)])


def all_points(model: Model) -> np.ndarray:
    """Every point of a model's domain, for its constant."""
    if model.domain.size > MAX_LISTED_POINTS:
        points = f"{model.domain.size:.3g}" if model.domain.is_finite else "infinitely many"
        raise ModelError(
            f"the likelihood of '{model.name}' needs a sum over {points} points of {model.domain!r}; "
            f"at most {MAX_LISTED_POINTS} can be listed. {without_constant(model.user_written)}"
        )
    return model.domain.points()
