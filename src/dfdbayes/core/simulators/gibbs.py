"""Gibbs sampling: coordinates drawn in turn from their distributions given all others, many chains side by side.

There is one sweep, that of `Conditionals`: these say what is drawn together, and give the log masses of its values
given the rest. Those of models with interactions are here (`OnGraph`), and those of any model from its log mass alone
(`FromLogMass`); networks, maps and rows with missing entries have their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float
from scipy import special

from ...errors import ModelError
from ..domain import Coordinate, Domain, beyond, side_by_side, until_negligible
from ..graphs import Graph
from ..parameters import Rows, over_rows
from ..terms import static, terms
from .base import Interactions, Simulable

FIRST_LISTED, MOST_LISTED = 32, 4096  # counts of each coordinate: so many conditional masses of every chain are held
NEGLIGIBLE_IN_CHAIN = 1e-9
"""Share beyond the list in any state that is visited. More than independent draws leave out (`domain.NEGLIGIBLE`): a
longer list means another start, so that a smaller share would change the data that a seed gives."""
TOO_LARGE = "at these parameters very large counts are likely: the model cannot be simulated"


class Conditionals(ABC):
    """Log masses of some coordinates given all others, at the states of all chains; a pytree (see `terms.terms`)."""

    endless: ClassVar[Any] = None
    """By coordinate, whether its list of values may be too short, where a list may be."""

    @property
    @abstractmethod
    def blocks(self) -> Any:
        """Coordinates that are drawn together: rows of an array, or a tuple where their numbers differ."""

    @abstractmethod
    def log_masses(self, state: Any, block: Any) -> Float[Array, "... s"]:
        """Of each listed value of a block's coordinates, in every chain."""

    @abstractmethod
    def put(self, state: Any, block: Any, place: Array) -> Any:
        """The state with values at these places of their lists."""

    def watched(self, state: Any) -> Any:
        """What mixing is judged by."""
        return ()

    def keys(self, key: Array) -> Array:
        """The random keys of the blocks of a sweep."""
        return jax.vmap(lambda block: jax.random.fold_in(key, block))(jnp.arange(len(self.blocks)))

    def sweep(self, carry: tuple[Any, Array], key: Array) -> tuple[tuple[Any, Array], Any]:
        """All blocks once; with the state goes the largest share of mass that any list left out."""

        def update(carry: tuple[Any, Array], own: tuple[Any, Array]) -> tuple[tuple[Any, Array], None]:
            (state, left), (block, key) = carry, own
            log = self.log_masses(state, block)
            u = jax.random.uniform(key, log.shape[:-1])
            if log.shape[-1] == 2:  # half the time of the sums
                place = jnp.where(u < jax.nn.sigmoid(log[..., 0] - log[..., 1]), 0, 1)
                return (self.put(state, block, place), left), None
            mass = jnp.exp(log - jnp.max(log, axis=-1, keepdims=True))
            cumulated = jnp.cumsum(mass, axis=-1)
            place = jnp.sum((u * cumulated[..., -1])[..., None] > cumulated[..., :-1], axis=-1)
            if self.endless is not None:
                share = beyond(mass[..., -1], mass[..., -2], jnp) / cumulated[..., -1]
                left = jnp.maximum(left, jnp.max(jnp.where(jnp.broadcast_to(self.endless[block], u.shape), share, 0.0)))
            return (self.put(state, block, place), left), None

        blocks, keys = self.blocks, self.keys(key)
        if isinstance(blocks, tuple):
            for block, own in zip(blocks, keys, strict=True):
                carry, _ = update(carry, (block, own))
        else:  # one piece of compiled code for all
            carry, _ = jax.lax.scan(update, carry, (blocks, keys))
        return carry, self.watched(carry[0])


@partial(jax.jit, static_argnums=1)
def swept(conditionals: Conditionals, sweeps: int, key: Array, state: Any) -> tuple[Any, Array, Any]:
    """The state after so many sweeps, the largest share of mass that any list left out, and the trace."""
    (state, left), trace = jax.lax.scan(conditionals.sweep, (state, jnp.zeros(())), jax.random.split(key, sweeps))
    return state, left, trace


def together(colours: Sequence[np.ndarray]) -> Any:
    """Classes of nodes as blocks: an array where all have one size."""
    return np.array(colours) if len({len(nodes) for nodes in colours}) == 1 else tuple(colours)


# -- models with interactions ------------------------------------------------------------------


@terms
class OnGraph(Conditionals):
    """An intercept a node and an interaction an edge; nodes of one colour have no edges among them.

    States are (parameters, chains, nodes). Of two values the higher comes first: a small uniform number draws it.
    """

    graph: Graph = static()
    kind: str = static()
    values: Float[Array, " s"]
    intercept: Float[Array, "c d"]
    interaction: Float[Array, "c e"]
    nu: Float[Array, "c d"] | None

    @classmethod
    def of(cls, model: Interactions, domain: Domain) -> OnGraph:
        """The values of counts are listed until a negligible share lies beyond where no neighbour weakens a node."""
        coordinate = domain.coordinate(0)
        values = _listed(coordinate, model) if model.nu is not None else np.array(coordinate.levels, float)
        if model.kind == "product" and model.nu is None:
            values = values[::-1]
        intercept, interaction = (jnp.asarray(np.array(part, float)) for part in (model.intercept, model.interaction))
        nu = None if model.nu is None else jnp.asarray(np.array(model.nu, float))
        return cls(model.graph, model.kind, jnp.asarray(values), intercept, interaction, nu)

    @property
    def blocks(self) -> Any:
        return together(self.graph.colours)

    def log_masses(self, x: Array, nodes: Any) -> Float[Array, "c n nodes s"]:
        own = self.intercept[:, None, nodes, None]
        if self.graph.pairs:
            around, edges, present = (jnp.asarray(part)[nodes] for part in self.graph.neighbours)
            seen = x.at[:, :, around].get(mode="promise_in_bounds")
            weight = (self.interaction[:, edges] * present[None])[:, None]
            alike = [jnp.where(seen == value, 1.0, 0.0) for value in self.values] if self.kind == "match" else [seen]
            own = own + jnp.stack([jnp.sum(part * weight, axis=-1) for part in alike], axis=-1)
        if self.kind == "match":
            return jnp.broadcast_to(own, (*x.shape[:2], own.shape[2], len(self.values)))
        values = self.values[None, None, None]
        log = jnp.broadcast_to(own, (*x.shape[:2], *own.shape[2:])) * values
        return log if self.nu is None else log - self.nu[:, None, nodes, None] * gammaln(values + 1.0)

    def put(self, x: Array, nodes: Any, place: Array) -> Array:
        two = len(self.values) == 2
        drawn = jnp.where(place == 0, self.values[0], self.values[1]) if two else self.values[place]
        return x.at[:, :, nodes].set(drawn)

    def watched(self, x: Array) -> Array:
        """Sum over edges of what they weigh."""
        if not self.graph.pairs:
            return jnp.sum(x, axis=-1)
        i, j = self.graph.edges.T
        a, b = x[..., i], x[..., j]
        return jnp.sum(a * b if self.kind == "product" else jnp.where(a == b, 1.0, 0.0), axis=-1)


def _listed(coordinate: Coordinate, model: Interactions) -> np.ndarray:
    if np.any(np.asarray(model.interaction) > 0):
        raise ModelError("counts with positive interactions have no finite sum: nothing can be drawn")

    def attempt(number: int) -> tuple[np.ndarray, np.ndarray]:
        values = coordinate.listed(number).astype(float)
        log_rate, nu = (np.reshape(np.asarray(part), (-1, 1)) for part in (model.intercept, model.nu))
        mass = special.softmax(log_rate * values - nu * special.gammaln(values + 1.0), axis=1)
        return values, beyond(mass[:, -1], mass[:, -2])

    return until_negligible(attempt, FIRST_LISTED, 4 * MOST_LISTED, TOO_LARGE)


def by_gibbs(
    model: Interactions, domain: Domain, per: int, rng: np.random.Generator, sweeps: int
) -> tuple[np.ndarray, np.ndarray]:
    """States after ``sweeps`` sweeps, and the trace of the watched statistic (sweeps, parameters, chains)."""
    conditionals = OnGraph.of(model, domain)
    shape, levels = (len(conditionals.intercept), per, domain.d), np.asarray(domain.coordinate(0).levels)
    x = rng.poisson(1.0, shape) if model.nu is not None else levels[rng.integers(len(levels), size=shape)]
    key = jax.random.key(int(rng.integers(2**31)))
    x, _, trace = swept(conditionals, sweeps, key, jnp.asarray(x, float))
    return np.asarray(x).astype(np.int64), np.asarray(trace)


# -- any model ---------------------------------------------------------------------------------


@terms
class FromLogMass(Conditionals):
    """One chain of a model that is known by its log mass: a coordinate at a time."""

    model: Simulable
    row: Rows
    values: Float[Array, "d s"]
    allowed: Bool[Array, "d s"]
    endless: Bool[Array, " d"] | None  # type: ignore[misc]

    @property
    def blocks(self) -> Any:
        return jnp.arange(len(self.values))

    def log_masses(self, x: Array, j: Array) -> Float[Array, " s"]:
        log = jax.vmap(lambda value: self.model.log_mass_at(self.row, x.at[j].set(value)))(self.values[j])
        return jnp.where(self.allowed[j], log, -jnp.inf)

    def put(self, x: Array, j: Array, place: Array) -> Array:
        return x.at[j].set(self.values[j, place])

    def watched(self, x: Array) -> Array:
        return jnp.sum(x)


@partial(jax.jit, static_argnums=(0, 1))
def _each_swept(
    model: Simulable, sweeps: int, key: Array, x: Array, thetas: Array, listed: Any, given: Array | None
) -> tuple[Array, Array, Array]:
    """Chains (parameters, rows) of their own; with covariates every row has its own parameters, too."""

    def of_row(row: Rows, key: Array, x: Array) -> Any:
        return swept(FromLogMass(model, row, *listed), sweeps, key, x)

    def of_theta(keys: Array, x: Array, theta: Array) -> Any:
        rows = model.at_rows(model.space.unflatten(theta), given)
        return over_rows(of_row, rows, x.shape[0], model.ranks, keys, x)

    return jax.vmap(of_theta)(jax.random.split(key, x.shape[:2]), x, thetas)


def by_log_mass(
    model: Simulable, thetas: np.ndarray, per: int, rng: np.random.Generator, sweeps: int, given: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """States (parameters, rows, d) and the trace of their sums, of chains with covariates ``given`` or without."""
    coordinates = [model.domain.coordinate(j) for j in range(model.domain.d)]
    if model.domain.has_integers:
        raise ModelError("models on all integers cannot be simulated from their log mass; give a simulator of your own")
    key = jax.random.key(int(rng.integers(2**31)))

    def attempt(number: int) -> tuple[tuple[np.ndarray, np.ndarray], float]:
        values, allowed = side_by_side([one.listed(number) for one in coordinates])
        endless = None if model.domain.is_finite else np.array([one.endless for one in coordinates])
        begin = values[np.arange(model.domain.d), rng.integers(2, size=(len(thetas), per, model.domain.d))]
        x, left, trace = _each_swept(
            model, sweeps, key, jnp.asarray(begin), thetas, (values, allowed, endless),
            None if given is None else jnp.asarray(given),
        )  # fmt: skip
        return (np.asarray(x).astype(np.int64), np.moveaxis(np.asarray(trace), -1, 0)), float(jnp.max(left))

    return until_negligible(attempt, FIRST_LISTED, MOST_LISTED, TOO_LARGE, NEGLIGIBLE_IN_CHAIN)
