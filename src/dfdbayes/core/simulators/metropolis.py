"""The paper's simulator: one random site a step, flipped with the Metropolis probability."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...errors import ModelError
from .base import Interactions
from .gibbs import OnGraph


@partial(jax.jit, static_argnums=1)
def _flips(model: OnGraph, steps: int, key: Array, x: Array) -> Array:
    around, edges, present = map(jnp.asarray, model.graph.neighbours)
    batch = jnp.arange(x.shape[0])[:, None]
    chain = jnp.arange(x.shape[1])[None, :]

    def flip(t: Array, x: Array) -> Array:
        which, accept = jax.random.split(jax.random.fold_in(key, t))
        node = jax.random.randint(which, x.shape[:2], 0, x.shape[2])
        here = x[batch, chain, node]
        pull = x[batch[..., None], chain[..., None], around[node]] * present[node]
        local = model.intercept[batch, node] + jnp.sum(pull * model.interaction[batch[..., None], edges[node]], axis=-1)
        there = jnp.sum(model.values) - here
        u = jax.random.uniform(accept, x.shape[:2])
        moved = jnp.where(jnp.log(u) < (there - here) * local, there, here)
        return x.at[batch, chain, node].set(moved)

    return jax.lax.fori_loop(0, steps, flip, x)


def by_metropolis(model: Interactions, domain: Any, per: int, rng: np.random.Generator, steps: int) -> np.ndarray:
    """States after ``steps`` single-site steps from independent random starts."""
    levels = domain.coordinate(0).levels
    if model.kind != "product" or model.nu is not None or len(levels) != 2:
        raise ModelError("the single-site Metropolis chain is for Ising models and networks")
    start = np.asarray(levels, float)[rng.integers(2, size=(len(model.intercept), per, domain.d))]
    key = jax.random.key(int(rng.integers(2**31)))
    return np.asarray(_flips(OnGraph.of(model, domain), steps, key, jnp.asarray(start))).astype(np.int64)
