"""D_n(theta; w): a model, a data set and a loss, as a function with gradient and Hessian."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._util.resources import require_unforked
from ..errors import DataError, ModelError, SettingError
from . import windows
from .dataset import BLOCKS, ROWS, WINDOWS, Dataset, Sites, Units, rows_of
from .losses.base import AbstractLoss
from .model import AbstractModel
from .parameters import Space, Theta
from .terms import AbstractTerms, Prepared, SecondOrder

OnHost = tuple[np.ndarray, np.ndarray, np.ndarray]

BATCH = 50  # minimisations or evaluations that run as one compiled call
FEW_DERIVATIVES = 256  # up to so many, each term's gradient is taken alone, by code that is compiled already
MAX_CELLS = 2**26  # numbers of terms times evaluations at once


@dataclass(frozen=True)
class Problem:
    """What compiled code depends on: the model's structure and the loss, never the data or the priors."""

    model: AbstractModel
    loss: AbstractLoss

    def value(self, theta: Theta, terms: AbstractTerms, weights: Any) -> Float[Array, ""]:
        return terms.value(self.loss, theta, weights)

    def second_order(self, theta: Theta, terms: AbstractTerms, weights: Any) -> SecondOrder:
        """Value, gradient and Hessian."""
        return terms.second_order(self.loss, theta, weights)

    def second_order_along(
        self, path: Callable[[Array], Array], point: Array, terms: AbstractTerms, weights: Any
    ) -> SecondOrder:
        """The same in other coordinates: ``path`` takes each of them to one parameter."""
        ones = jnp.ones_like(point)

        def slope(point: Array) -> Array:
            return jax.jvp(path, (point,), (ones,))[1]

        return chain_rule(self.second_order(path(point), terms, weights), *jax.jvp(slope, (point,), (ones,)))


def chain_rule(found: tuple[Any, Any, Any], first: Any, second: Any) -> tuple[Any, Any, Any]:
    """Value, gradient and Hessian in coordinates of which each belongs to one parameter, by its derivatives there."""
    value, gradient, hessian = found
    bend = jnp.diag(second * gradient) if isinstance(hessian, jax.Array) else np.diag(second * gradient)
    return value, first * gradient, first[:, None] * hessian * first[None, :] + bend


@partial(jax.jit, static_argnums=0)
def _value(problem: Problem, theta: Theta, terms: AbstractTerms, weights: Any) -> Float[Array, ""]:
    return problem.value(theta, terms, weights)


@partial(jax.jit, static_argnums=0)
def _gradient(problem: Problem, theta: Theta, terms: AbstractTerms, weights: Any) -> Float[Array, " p"]:
    return jax.grad(problem.value)(theta, terms, weights)


@partial(jax.jit, static_argnums=0)
def _second_order(problem: Problem, theta: Theta, terms: AbstractTerms, weights: Any) -> SecondOrder:
    """The one compiled function that all Newton steps share: coordinates and priors are added on the host."""
    return problem.second_order(theta, terms, weights)


@partial(jax.jit, static_argnums=0)
def _derivatives(problem: Problem, thetas: Array, terms: AbstractTerms, weights: Any) -> tuple[Array, Array]:
    """Gradients and Hessians at many parameters under one set of weights."""
    return jax.vmap(lambda theta: problem.second_order(theta, terms, weights)[1:])(thetas)


@partial(jax.jit, static_argnums=(0, 1))
def _hessians_at_z(problem: Problem, space: Space, z: Array, terms: AbstractTerms, weights: Any) -> Array:
    """Hessians in unconstrained coordinates, each under its own weights."""
    return jax.vmap(lambda z, w: problem.second_order_along(space.from_z, z, terms, w)[2])(z, weights)


@partial(jax.jit, static_argnums=0)
def _gradients(problem: Problem, theta: Theta, terms: AbstractTerms, weights: Any) -> Float[Array, "b p"]:
    """Gradients at one parameter under many weights."""
    return jax.vmap(lambda w: jax.grad(problem.value)(theta, terms, w))(weights)


@partial(jax.jit, static_argnums=(0, 1))
def _per_term_gradients(problem: Problem, at_once: int, theta: Theta, terms: AbstractTerms, weights: Any) -> Any:
    return terms.per_term_gradients(problem.loss, theta, weights, at_once)


@partial(jax.jit, static_argnums=(0, 1))
def _values(problem: Problem, at_once: int, thetas: Array, terms: AbstractTerms, weights: Any) -> Array:
    return jax.lax.map(lambda theta: problem.value(theta, terms, weights), thetas, batch_size=at_once)


@partial(jax.jit, static_argnums=0)
def _per_term_values(problem: Problem, thetas: Array, terms: AbstractTerms, weights: Any) -> Any:
    """The value of every term at many parameters, the parameters last: a loss is linear in the weights of its terms."""
    found = jax.lax.map(lambda theta: jax.grad(problem.value, argnums=2)(theta, terms, weights), thetas)
    return jax.tree.map(lambda part: jnp.moveaxis(part, 0, -1), found)


def second_order_of(problem: Problem, theta: Any, terms: AbstractTerms, weights: Any) -> OnHost:
    """Value, gradient and Hessian at a flat vector, as NumPy's."""
    value, gradient, hessian = map(np.asarray, _second_order(problem, theta, terms, weights))
    return value, gradient, hessian


def in_batches(
    function: Callable[[np.ndarray], tuple[Any, ...]], items: np.ndarray, size: int = BATCH
) -> tuple[np.ndarray, ...]:
    """Apply a compiled function to slices of one size (the last one filled up), so it compiles once."""
    parts = []
    for first in range(0, len(items), size):
        part = items[first : first + size]
        filled = np.concatenate([part, np.repeat(part[:1], size - len(part), axis=0)])
        parts.append([np.asarray(out)[: len(part)] for out in function(filled)])
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


@dataclass(frozen=True)
class Objective:
    """The loss of a model on a data set: call it with parameters to get D_n, a sum over the data.

    Parameters may be a dict by name or a flat vector. ``weights`` (one for each of ``units``) replace
    the data's own, which is how a bootstrap replicate is evaluated.

    Attributes
    ----------
    model : AbstractModel
    data : Dataset
    loss : AbstractLoss
    resampled : Units, optional
        What weights and resamples are of: the distinct rows by default.
    coordinates : Space, optional
        The parameters with supports and priors other than the model's own.
    held : bool
        Whether replicates are minimised together with the prior.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> objective = dfd.objective(dfd.models.Poisson(), [1, 2, 3])
    >>> round(objective({"rate": 2.0}), 9)  # sum of (x / rate)^2 - 2 (x + 1) / rate
    -5.5
    """

    model: AbstractModel
    data: Dataset
    loss: AbstractLoss
    resampled: Units | None = None
    coordinates: Space | None = None
    held: bool = False

    @property
    def space(self) -> Space:
        """The parameters, with their supports and priors: the loss itself depends on neither."""
        return self.model.space if self.coordinates is None else self.coordinates

    def within(self, space: Space) -> Objective:
        """The same loss with other supports and priors; nothing is prepared or compiled anew for it."""
        made = copy.copy(self)
        object.__setattr__(made, "coordinates", space)
        return made

    # -- weights that depend on the parameters: `missing` overrides these, nothing else does -----

    @property
    def observed(self) -> Dataset:
        """The data as they were read."""
        return self.data

    def imputed_at(self, theta: Any) -> Objective:
        """The same loss with missing entries weighed as the model has them at ``theta``; nothing is prepared anew."""
        return self

    def weights_derivative(self, theta: Any) -> Float[np.ndarray, "p p"]:
        """How the gradient changes because weights depend on the parameters; zero where no entry is missing."""
        return np.zeros((self.model.space.size,) * 2)

    def minimise_each(
        self, search: Callable[..., Any], weights: np.ndarray, around: Any, advance: Callable[[int], None]
    ) -> Any:
        """What ``search(objective, weights, around, advance)`` finds of minimisers under each row of weights."""
        return search(self, weights, around, advance)

    def by_rows(self) -> Objective:
        """The same loss with rows as units."""
        return replace(self, resampled=None)

    def require_rows(self) -> None:
        """Refuse data whose rows are not known, so that none could have been left out."""

    @cached_property
    def problem(self) -> Problem:
        return Problem(self.model, self.loss)

    @cached_property
    def sites(self) -> Sites:
        return Sites(self.data, self.model.domain, self.resampled or rows_of(self.data), self.loss.scales)

    @cached_property
    def _prepared(self) -> Prepared:
        require_unforked()
        return self.loss.prepare(self.model, self.sites)

    @property
    def terms(self) -> AbstractTerms:
        return self._prepared.terms

    @cached_property
    def units(self) -> Units:
        """What is resampled: distinct rows, classes of such, clusters, or blocks of sites."""
        own, classes = self.sites.units, self._prepared.unit_weights
        return own if classes is None else replace(own, weights=classes, observations=classes)

    @property
    def rowwise(self) -> bool:
        """Whether the units are the distinct rows."""
        return self.units.kind == ROWS and self._prepared.unit_weights is None

    @property
    def elsewhere(self) -> bool:
        """Whether the rows are on other machines."""
        return self._prepared.is_remote

    @property
    def note(self) -> str:
        """How the loss is estimated, where it is too long to compute on these data; otherwise nothing."""
        return self._prepared.note

    @property
    def _moves(self) -> int:
        """How many ratios of neighbours the rows have either way."""
        return len(self.data.rows) * len(self.model.domain.moves)

    @property
    def batch(self) -> int:
        """How many parameters are evaluated at once: fewer where terms are so many that all would fill memory."""
        cells = min(sum(leaf.size for leaf in jax.tree.leaves(self.terms)), 6 * self._moves)
        cells = max(cells, 8 * self.model.space.size**2)  # Hessians, and what their factorisation needs
        return max(1, min(BATCH, 2 ** (MAX_CELLS // max(cells, 1)).bit_length() // 2))

    @property
    def size(self) -> float:
        """How many observations (or sites, of a single observation) the loss sums over."""
        return float(self.data.counts.sum()) * (self.data.d if self.units.kind == BLOCKS else 1)

    def weigh(self, weights: np.ndarray) -> Any:
        """Weights of the loss's terms from weights of the units (or a stack of such)."""
        return self._prepared.term_weights(np.asarray(weights, float))

    @cached_property
    def own_weights(self) -> Any:
        return self.weigh(self.units.weights)

    def _weights(self, weights: np.ndarray | None) -> Any:
        return self.own_weights if weights is None else self.weigh(weights)

    def __call__(self, theta: Any, weights: np.ndarray | None = None) -> float:
        theta = self.model.space.flatten(theta)
        return float(_value(self.problem, theta, self.terms, self._weights(weights)))

    def traced(self, theta: Any) -> Float[Array, ""]:
        """D_n as a pure JAX function: `jax.jit`, `jax.grad` and `jax.vmap` go through it.

        For use inside another model, as a factor of NumPyro or a potential of PyMC: add ``-beta * traced(theta)`` to
        the log density. Nothing is checked but names and shapes, and no prior is part of it.

        Parameters
        ----------
        theta : mapping or vector
            All parameters by name, or one flat vector in the order of ``model.space.names``; traced values are welcome.

        Examples
        --------
        >>> import dfdbayes as dfd, jax
        >>> objective = dfd.objective(dfd.models.Poisson(), [1, 2, 3])
        >>> slope = jax.jit(jax.grad(lambda rate: objective.traced({"rate": rate})))
        >>> round(float(slope(2.0)), 9)  # sum of -2 x^2 / rate^3 + 2 (x + 1) / rate^2
        1.0
        """
        space = self.model.space
        if isinstance(theta, Mapping):
            names = [p.name for p in space.parameters]
            if set(theta) != set(names):
                raise ModelError(f"the parameters are {', '.join(names)}; got {', '.join(map(str, theta))}")
            try:
                parts = [jnp.broadcast_to(jnp.asarray(theta[p.name], float), p.shape) for p in space.parameters]
            except ValueError as problem:
                raise ModelError(f"a parameter has the wrong shape: {problem}") from problem
            theta = jnp.concatenate([part.reshape(-1) for part in parts])
        with jax.ensure_compile_time_eval():  # terms are made once, also if the first call is traced
            terms, weights = self.terms, self.own_weights
        return self.problem.value(space.flatten(theta), terms, weights)

    def gradient(self, theta: Any, weights: np.ndarray | None = None) -> Float[np.ndarray, " p"]:
        theta = self.model.space.flatten(theta)
        return np.asarray(_gradient(self.problem, theta, self.terms, self._weights(weights)))

    def hessian(self, theta: Any, weights: np.ndarray | None = None) -> Float[np.ndarray, "p p"]:
        theta = self.model.space.flatten(theta)
        return np.asarray(_second_order(self.problem, theta, self.terms, self._weights(weights))[2])

    def second_order(self, theta: Float[np.ndarray, " p"]) -> OnHost:
        """Value, gradient and Hessian at a flat vector, on the full data."""
        return second_order_of(self.problem, theta, self.terms, self.own_weights)

    def derivatives(self, thetas: np.ndarray) -> tuple[np.ndarray, ...]:
        """Gradients (b, p) and Hessians (b, p, p) at many parameters, on the full data."""
        return in_batches(
            lambda part: _derivatives(self.problem, part, self.terms, self.own_weights), thetas, self.batch
        )

    def hessians_at_z(self, z: np.ndarray, weights: np.ndarray) -> Float[np.ndarray, "b p p"]:
        """Hessians in unconstrained coordinates at many points, each under its own row of ``weights``."""

        def of(part: np.ndarray) -> tuple[Array]:
            return (_hessians_at_z(self.problem, self.space, z[part], self.terms, self.weigh(weights[part])),)

        return in_batches(of, np.arange(len(z)), self.batch)[0]

    def unit_gradients(self, theta: Any) -> Float[np.ndarray, "u p"]:
        """What one more observation of each unit adds to the gradient.

        For losses that are sums over observations this is the observation's own gradient.
        """
        if self.elsewhere:
            raise SettingError(
                "the gradient of every row was asked for, and the rows are on other machines. What to do: load the "
                "data here, without a client."
            )
        flat = self.model.space.flatten(theta)
        if self._prepared.added_gradient is not None:
            return self._prepared.added_gradient(np.asarray(flat))
        if self._prepared.gradient_by_unit is not None and self.loss.separable:
            return self.row_gradients(flat)

        def of(part: np.ndarray) -> tuple[Array]:
            plus_one = np.repeat(self.units.weights[None], len(part), axis=0)
            plus_one[np.arange(len(part)), part] += 1.0
            return (_gradients(self.problem, flat, self.terms, self.weigh(plus_one)),)

        return in_batches(of, np.arange(len(self.units.weights)), self.batch)[0] - self.gradient(theta)

    def row_gradients(self, theta: Any) -> Float[np.ndarray, "u p"]:
        """The gradients of single rows, for a loss that is a sum over rows, each of which is a unit of its own."""
        by_unit = self._prepared.gradient_by_unit
        assert by_unit is not None
        return np.asarray(by_unit(self._per_term_gradients(self.model.space.flatten(theta))))

    def unit_values(self, thetas: np.ndarray) -> Float[np.ndarray, "b u"]:
        """What one observation of each unit adds to the loss at many parameters, where that is a sum of such."""
        by_unit = self._prepared.gradient_by_unit
        if by_unit is None or not self.loss.separable:
            raise SettingError(f"'{self.loss.name}' is no sum over observations; ask for another loss, such as 'ratio'")

        def of(part: np.ndarray) -> tuple[np.ndarray]:
            return (np.asarray(by_unit(_per_term_values(self.problem, part, self.terms, self.own_weights))).T,)

        return in_batches(of, thetas, self.batch)[0]

    def _per_term_gradients(self, theta: Theta) -> Any:
        """The gradient of every term, in the shape of the weights."""
        terms = sum(leaf.size for leaf in jax.tree.leaves(self.own_weights))
        if terms * len(theta) > FEW_DERIVATIVES:
            at_once = max(1, min(len(theta), MAX_CELLS // max(self._moves, 1)))
            return _per_term_gradients(self.problem, at_once, theta, self.terms, self.own_weights)
        leaves, structure = jax.tree.flatten(self.own_weights)
        ends = np.cumsum([leaf.size for leaf in leaves])[:-1]

        def placed(lines: np.ndarray) -> Any:
            parts = zip(np.split(lines, ends), leaves, strict=True)
            return jax.tree.unflatten(structure, [part.reshape(leaf.shape + lines.shape[1:]) for part, leaf in parts])

        alone = [second_order_of(self.problem, theta, self.terms, placed(one))[1] for one in np.eye(terms)]
        return placed(np.stack(alone))

    def moments(self, theta: Any) -> tuple[float, Float[np.ndarray, " p"], Float[np.ndarray, "p p"]]:
        """Of gradients of single observations (windows of a series): how many, their sum, the sum of their squares."""
        if self._prepared.gradient_moments is not None:
            return self._prepared.gradient_moments(np.asarray(self.model.space.flatten(theta)))
        lines = self.unit_gradients(theta) * self.units.each[:, None]
        weighted = lines * self.units.observations[:, None]
        if self.units.kind == WINDOWS:
            return windows.moments(self.units, weighted)
        return float(self.units.observations.sum()), weighted.sum(axis=0), weighted.T @ lines

    def values(self, thetas: np.ndarray) -> Float[np.ndarray, " b"]:
        """D_n at many parameters, on the full data."""
        at_once = BATCH if self.elsewhere else 1

        def of(part: np.ndarray) -> tuple[Array]:
            return (_values(self.problem, at_once, part, self.terms, self.own_weights),)

        return in_batches(of, thetas)[0]


def arranged(model: AbstractModel, data: Dataset) -> Dataset:
    """The data with their columns in the order of the model's nodes, where these have names."""
    names = model.node_names
    if not names:
        return data
    if not data.named or set(names) != set(data.columns):
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        have = ", ".join(data.columns[:6]) + (", ..." if data.d > 6 else "") if data.named else "have no names"
        raise DataError(
            f"the nodes of the graph are called {shown}; the columns of the data {have}. Give data whose columns have "
            "those names, or a graph whose nodes are 0, 1, 2, ... for the columns in order."
        )
    return data.in_order(names)
