"""Gibbs sampling of networks whose columns are each of their own kind, all chains at once.

The values of every node are listed, with their own part of the log mass and what neighbours see of them; counts are
listed up to where the mass left out is below 1e-9. A chain's state is the place of each node's value in its list.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..errors import ModelError
from ..models.graphs import Graph
from ..models.network import Pairwise

FIRST, MOST = 32, 4096  # counts listed at first, and at most
TAIL = 1e-9


@partial(jax.jit, static_argnums=(0, 1))
def _sweeps(
    graph: Graph, count: int, key: Array, state: Array, level: Array, seen: Array, matrix: Array, endless: Array
) -> tuple[Array, Array, Array]:
    """States (c, chains, d) after sweeps, the largest share of a last listed value, and the sums of scores."""
    each = np.arange(seen.shape[0])

    def scores(state: Array) -> Array:
        return seen[each[None, None, :], state]

    def sweep(carry: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], Array]:
        state, tail = carry
        for colour, nodes in enumerate(graph.colours):
            local = jnp.einsum("cnd,cpd->cpn", matrix[:, nodes], scores(state))
            log = level[:, None, nodes, :] + local[..., None] * seen[None, None, nodes, :]
            mass = jnp.exp(log - jnp.max(log, axis=-1, keepdims=True))
            cumulated = jnp.cumsum(mass, axis=-1)
            u = jax.random.uniform(jax.random.fold_in(key, colour), local.shape)[..., None]
            place = jnp.sum(u * cumulated[..., -1:] > cumulated, axis=-1)
            state = state.at[:, :, nodes].set(jnp.minimum(place, seen.shape[1] - 1))
            tail = jnp.maximum(tail, jnp.max(endless[nodes][None, None, :] * mass[..., -1] / cumulated[..., -1]))
        return (state, tail), jnp.sum(scores(state), axis=-1)

    (state, tail), trace = jax.lax.scan(sweep, (state, jnp.zeros(())), jax.random.split(key, count))
    return state, tail, trace


def by_levels(
    model: Pairwise, thetas: np.ndarray, per: int, rng: np.random.Generator, sweeps: int
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
        own = model.own(values.T)
        level = jax.vmap(lambda theta, own=own: jnp.einsum("fd,fdk->dk", model.coefficients(theta), own))(thetas)
        level = jnp.where(allowed[None], level, -jnp.inf)
        begin = rng.integers(2, size=(len(thetas), per, len(listed)))
        state, tail, trace = _sweeps(
            model.graph, sweeps, key, jnp.asarray(begin), level, jnp.asarray(model.scores(values.T)), matrix, endless
        )
        if float(tail) < TAIL:
            return values[np.arange(len(listed)), np.asarray(state)].astype(np.int64), np.asarray(trace)
        width *= 2
    raise ModelError("at these parameters very large counts are likely: the network cannot be simulated")
