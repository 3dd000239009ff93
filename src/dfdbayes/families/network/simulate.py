"""Gibbs sampling of networks whose columns are each of their own kind, all chains at once.

The values of every node are listed, with their own part of the log mass and what neighbours see of them; counts are
listed until a negligible share of the mass lies beyond. A chain's state is the place of each node's value in its list.
"""

from __future__ import annotations

from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ...core.domain import side_by_side, until_negligible
from ...core.graphs import Graph
from ...core.parameters import Space
from ...core.simulators.base import Simulable
from ...core.simulators.gibbs import (
    FIRST_LISTED,
    MOST_LISTED,
    NEGLIGIBLE_IN_CHAIN,
    TOO_LARGE,
    Conditionals,
    swept,
    together,
)
from ...core.terms import static, terms
from .kinds import Kind


class Levels(Simulable, Protocol):
    """A network as its simulator sees it; see `Pairwise`."""

    @property
    def graph(self) -> Graph: ...
    @property
    def kinds(self) -> tuple[Kind, ...]: ...
    @property
    def plain(self) -> Levels: ...
    @property
    def row_space(self) -> Space: ...
    def matrix(self, edge: Array) -> Array: ...
    def interaction_of(self, theta: dict[str, Any]) -> Any: ...
    def node_statistics(self, x: np.ndarray) -> np.ndarray: ...
    def edge_statistics(self, x: np.ndarray) -> np.ndarray: ...
    def coefficients(self, theta: Array) -> Array: ...


@terms
class OfLevels(Conditionals):
    """Places of values in their lists, of nodes of one colour together; a state has their edge statistics, too.

    Attributes
    ----------
    listed_nodes, listed_s : arrays
        Of each of the ``l`` listed values of each node its own part of the log mass, and its edge statistic.
    matrix : (c, d, d) floats
        Signed interactions.
    """

    graph: Graph = static()
    listed_nodes: Float[Array, "c d l"]
    listed_s: Float[Array, "d l"]
    matrix: Float[Array, "c d d"]
    endless: Bool[Array, " d"]  # type: ignore[misc]

    @property
    def blocks(self) -> Any:
        return together(self.graph.colours)

    def log_masses(self, state: tuple[Array, Array], nodes: Any) -> Float[Array, "c p nodes l"]:
        local = jnp.einsum("cnd,cpd->cpn", self.matrix[:, nodes], state[1])
        return self.listed_nodes[:, None, nodes] + local[..., None] * self.listed_s[None, None, nodes]

    def put(self, state: tuple[Array, Array], nodes: Any, place: Array) -> tuple[Array, Array]:
        s = self.listed_s[jnp.asarray(nodes)[None, None], place]
        return state[0].at[:, :, nodes].set(place), state[1].at[:, :, nodes].set(s)

    def watched(self, state: tuple[Array, Array]) -> Array:
        return jnp.sum(state[1], axis=-1)


def by_levels(
    model: Levels, thetas: np.ndarray, per: int, rng: np.random.Generator, sweeps: int
) -> tuple[np.ndarray, np.ndarray]:
    """States, and the trace of their sums (sweeps, parameters, chains)."""
    key, each = jax.random.key(int(rng.integers(2**31))), np.arange(len(model.kinds))
    matrix = jax.vmap(lambda theta: model.matrix(model.interaction_of(model.space.unflatten(theta))))(thetas)
    endless = np.array([kind.coordinate.endless for kind in model.kinds])

    def attempt(number: int) -> tuple[tuple[np.ndarray, np.ndarray], Array]:
        values, allowed = side_by_side([kind.coordinate.listed(number) for kind in model.kinds])
        t, s = model.node_statistics(values.T), model.edge_statistics(values.T)
        nodes = jax.vmap(lambda theta: jnp.einsum("fd,fdl->dl", model.coefficients(theta), t))(thetas)
        nodes = jnp.where(allowed[None], nodes, -jnp.inf)
        begin = rng.integers(2, size=(len(thetas), per, len(each)))
        conditionals = OfLevels(model.graph, nodes, jnp.asarray(s), matrix, jnp.asarray(endless))
        (state, _), left, trace = swept(conditionals, sweeps, key, (jnp.asarray(begin), jnp.asarray(s[each, begin])))
        return (values[each, np.asarray(state)].astype(np.int64), np.asarray(trace)), left

    return until_negligible(attempt, FIRST_LISTED, MOST_LISTED, TOO_LARGE, NEGLIGIBLE_IN_CHAIN)


def by_levels_given(
    model: Levels, thetas: np.ndarray, given: np.ndarray, rng: np.random.Generator, sweeps: int
) -> tuple[np.ndarray, np.ndarray]:
    """States (parameters, rows, d) of a network whose parameters depend on covariates, and the trace of their sums.

    Rows with the same covariates share their parameters, and are drawn in blocks of one size.
    """
    patterns, place = np.unique(given, axis=0, return_inverse=True)
    place = place.reshape(-1)
    counts = np.bincount(place)
    per = max(1, len(given) // len(patterns))
    blocks = -(-counts // per)
    first = np.concatenate([[0], np.cumsum(blocks)])
    order = np.argsort(place, kind="stable")
    rank = np.empty(len(place), int)
    rank[order] = np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts, counts)
    each = np.repeat(_at_rows(model, thetas, patterns), blocks, axis=1)
    states, trace = by_levels(model.plain, each.reshape(-1, each.shape[-1]), per, rng, sweeps)
    block = first[place] + rank // per
    found = states.reshape(len(thetas), first[-1], per, -1)[:, block, rank % per]
    return found, trace.reshape(len(trace), len(thetas), first[-1], per)[:, :, block, rank % per]


def _at_rows(model: Levels, thetas: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The parameters of the network without covariates, flat, at every vector of coefficients and row of covariates."""

    def of(theta: Array) -> Array:
        rows = model.at_rows(model.space.unflatten(theta), jnp.asarray(given))
        parts = [jnp.broadcast_to(rows[p.name], (len(given), p.size)) for p in model.row_space.parameters]
        return jnp.concatenate(parts, axis=1)

    return np.asarray(jax.vmap(of)(jnp.asarray(thetas)))
