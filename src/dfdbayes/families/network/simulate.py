"""Gibbs sampling of networks whose columns are each of their own kind, all chains at once.

The values of every node are listed, with their own part of the log mass and what neighbours see of them; counts are
listed up to where the mass left out is below 1e-9. A chain's state is the place of each node's value in its list.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...core.graphs import Graph
from ...core.parameters import Space
from ...core.simulators.base import Simulable
from ...errors import ModelError
from .kinds import Kind

FIRST, MOST = 32, 4096  # counts listed at first, and at most
TAIL = 1e-9
Carry = tuple[Array, Array, Array]
"""Places of values, what neighbours see of them, and the largest share of a last listed value."""


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


@partial(jax.jit, static_argnums=(0, 1))
def _sweeps(
    graph: Graph, count: int, key: Array, state: Array, level: Array, seen: Array, matrix: Array, endless: Array
) -> tuple[Array, Array, Array]:
    """States (c, chains, d) after sweeps, the largest share of a last listed value, and the sums of scores."""

    def update(carry: Carry, key: Array, nodes: Array) -> Carry:
        state, score, tail = carry
        local = jnp.einsum("cnd,cpd->cpn", matrix[:, nodes], score)
        log = level[:, None, nodes, :] + local[..., None] * seen[None, None, nodes, :]
        mass = jnp.exp(log - jnp.max(log, axis=-1, keepdims=True))
        cumulated = jnp.cumsum(mass, axis=-1)
        u = jax.random.uniform(key, local.shape)[..., None]
        place = jnp.minimum(jnp.sum(u * cumulated[..., -1:] > cumulated, axis=-1), seen.shape[1] - 1)
        last = endless[nodes][None, None, :] * mass[..., -1] / cumulated[..., -1]
        score = score.at[:, :, nodes].set(seen[nodes[None, None, :], place])
        return state.at[:, :, nodes].set(place), score, jnp.maximum(tail, jnp.max(last))

    def sweep(carry: Carry, key: Array) -> tuple[Carry, Array]:
        keys = jax.vmap(lambda colour: jax.random.fold_in(key, colour))(jnp.arange(len(graph.colours)))
        if len({len(nodes) for nodes in graph.colours}) == 1:  # one piece of compiled code for all colours
            nodes = jnp.asarray(np.array(graph.colours))
            carry = jax.lax.scan(lambda c, one: (update(c, *one), None), carry, (keys, nodes))[0]
        else:
            for own, some in zip(keys, graph.colours, strict=True):
                carry = update(carry, own, jnp.asarray(some))
        return carry, jnp.sum(carry[1], axis=-1)

    score = seen[jnp.arange(seen.shape[0])[None, None, :], state]
    (state, _, tail), trace = jax.lax.scan(sweep, (state, score, jnp.zeros(())), jax.random.split(key, count))
    return state, tail, trace


def by_levels(
    model: Levels, thetas: np.ndarray, per: int, rng: np.random.Generator, sweeps: int
) -> tuple[np.ndarray, np.ndarray]:
    """States, and the trace of their sums (sweeps, parameters, chains)."""
    key, width = jax.random.key(int(rng.integers(2**31))), FIRST
    matrix = jax.vmap(lambda theta: model.matrix(model.interaction_of(model.space.unflatten(theta))))(thetas)
    endless = np.array([float(kind.counts) for kind in model.kinds])
    while width <= MOST:
        listed = [np.arange(width) if kind.counts else np.asarray(kind.levels) for kind in model.kinds]
        longest = max(map(len, listed))
        values = np.array([np.pad(own, (0, longest - len(own)), mode="edge") for own in listed])
        allowed = np.array([np.arange(longest) < len(own) for own in listed])
        own = model.node_statistics(values.T)
        level = jax.vmap(lambda theta, own=own: jnp.einsum("fd,fdk->dk", model.coefficients(theta), own))(thetas)
        level = jnp.where(allowed[None], level, -jnp.inf)
        begin = rng.integers(2, size=(len(thetas), per, len(listed)))
        state, tail, trace = _sweeps(
            model.graph,
            sweeps,
            key,
            jnp.asarray(begin),
            level,
            jnp.asarray(model.edge_statistics(values.T)),
            matrix,
            jnp.asarray(endless),
        )
        if float(tail) < TAIL:
            return values[np.arange(len(listed)), np.asarray(state)].astype(np.int64), np.asarray(trace)
        width *= 2
    raise ModelError("at these parameters very large counts are likely: the network cannot be simulated")


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
    """The base's parameters, flat, at every vector of coefficients and row of covariates."""

    def of(theta: Array) -> Array:
        rows = model.at_rows(model.space.unflatten(theta), jnp.asarray(given))
        parts = [jnp.broadcast_to(rows[p.name], (len(given), p.size)) for p in model.row_space.parameters]
        return jnp.concatenate(parts, axis=1)

    return np.asarray(jax.vmap(of)(jnp.asarray(thetas)))
