"""Gibbs sampling of models with interactions, all chains at once and one colour of the graph at a time.

Nodes of one colour have no edges among them, so given the rest they are independent and are drawn together.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float
from scipy import special

from ...errors import ModelError
from ..graphs import Graph
from .base import Interactions


class Weights(NamedTuple):
    """Interactions as arrays; the first axis stands for different parameters."""

    intercept: Float[Array, "c d"]
    interaction: Float[Array, "c e"]
    nu: Float[Array, "c d"]


def weights_of(model: Interactions) -> Weights:
    """The arrays of interactions, with nu = 1 where there is none."""
    nu = np.ones_like(model.intercept) if model.nu is None else model.nu
    return Weights(*(jnp.asarray(np.array(part, float)) for part in (model.intercept, model.interaction, nu)))


class Conditional(NamedTuple):
    """What is drawn at a site: the values it can take, and what an edge weighs."""

    kind: str
    levels: tuple[int, ...]
    counts: bool


def _local(x: Array, weights: Weights, graph: Graph, nodes: np.ndarray, level: int | None) -> Array:
    """Field at the nodes from their neighbours (or from those neighbours that equal ``level``)."""
    if not graph.pairs:
        return jnp.broadcast_to(weights.intercept[:, None, nodes], (*x.shape[:2], len(nodes)))
    around, edges, present = (part[nodes] for part in graph.neighbours)
    seen = x[:, :, around] if level is None else jnp.where(x[:, :, around] == level, 1.0, 0.0)
    pull = jnp.sum(seen * (weights.interaction[:, edges] * present[None])[:, None], axis=-1)
    return weights.intercept[:, None, nodes] + pull


def _drawn(key: Array, x: Array, weights: Weights, graph: Graph, site: Conditional, nodes: np.ndarray) -> Array:
    """New values at nodes without edges among them, given all others; ``x`` is (parameters, chains, nodes)."""
    u = jax.random.uniform(key, (*x.shape[:2], len(nodes)))
    if site.kind == "product" and not site.counts:
        low, high = site.levels
        return heat_bath(u, _local(x, weights, graph, nodes, None), low, high)
    values = jnp.asarray(site.levels, float)
    if site.counts:
        rate = _local(x, weights, graph, nodes, None)
        power = weights.nu[:, None, nodes]
        log = rate[..., None] * values[None, None, None] - power[..., None] * gammaln(values + 1.0)[None, None, None]
    else:
        log = jnp.stack([_local(x, weights, graph, nodes, level) for level in site.levels], axis=-1)
    cumulated = jnp.cumsum(jnp.exp(log - jnp.max(log, axis=-1, keepdims=True)), axis=-1)
    index = jnp.sum(u[..., None] * cumulated[..., -1:] > cumulated, axis=-1)
    return values[jnp.minimum(index, len(site.levels) - 1)]


def heat_bath(u: Array, local: Array, low: int, high: int) -> Array:
    """The higher state where ``u`` is below its probability: increasing in the local field."""
    return jnp.where(u < jax.nn.sigmoid((high - low) * local), float(high), float(low))


def statistic(x: Array, graph: Graph, kind: str) -> Array:
    """Sum over edges of what they weigh: the quantity whose mixing is watched."""
    i, j = graph.edges.T
    a, b = x[..., i], x[..., j]
    return jnp.sum(a * b if kind == "product" else jnp.where(a == b, 1.0, 0.0), axis=-1)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _sweeps(graph: Graph, site: Conditional, count: int, key: Array, x: Array, weights: Weights) -> tuple[Array, Array]:
    def sweep(x: Array, key: Array) -> tuple[Array, Array]:
        for colour, nodes in enumerate(graph.colours):
            x = x.at[:, :, nodes].set(_drawn(jax.random.fold_in(key, colour), x, weights, graph, site, nodes))
        return x, statistic(x, graph, site.kind) if len(graph.pairs) else jnp.sum(x, axis=-1)

    return jax.lax.scan(sweep, x, jax.random.split(key, count))


def by_gibbs(
    model: Interactions, domain: Any, per: int, rng: np.random.Generator, sweeps: int
) -> tuple[np.ndarray, np.ndarray]:
    """States after ``sweeps`` sweeps, and the trace of the watched statistic (sweeps, parameters, chains)."""
    weights = weights_of(model)
    site = conditional(model, domain)
    shape = (weights.intercept.shape[0], per, domain.d)
    levels = np.asarray(site.levels)
    x = rng.poisson(1.0, shape) if site.counts else levels[rng.integers(len(levels), size=shape)]
    key = jax.random.key(int(rng.integers(2**31)))
    x, trace = _sweeps(model.graph, site, sweeps, key, jnp.asarray(x, float), weights)
    return np.asarray(x).astype(np.int64), np.asarray(trace)


def conditional(model: Interactions, domain: Any) -> Conditional:
    """The values a site can take. Counts are listed up to where the heaviest possible tail is below 1e-10."""
    if model.nu is None:
        return Conditional(model.kind, domain.coordinate(0).levels, counts=False)
    if np.any(np.asarray(model.interaction) > 0):
        raise ModelError("counts with positive interactions have no finite sum: nothing can be drawn")
    log_rate, power = np.ravel(model.intercept), np.ravel(model.nu)
    largest = 32
    while largest <= 2**14:  # the last listed mass against the mode's bounds the tail by a geometric series
        mode = np.exp(np.minimum(log_rate / np.maximum(power, 1e-9), np.log(largest)))
        peak = log_rate * mode - power * special.gammaln(mode + 1.0)
        last = log_rate * largest - power * special.gammaln(largest + 1.0)
        ratio = np.exp(log_rate - power * np.log(largest))
        if np.all((ratio < 1) & (last - np.maximum(peak, 0.0) < np.log(1e-10 * np.maximum(1 - ratio, 1e-300)))):
            return Conditional("product", tuple(range(largest)), counts=True)
        largest += largest // 2
    raise ModelError("at these parameters counts above 10,000 are likely: the model cannot be simulated")
