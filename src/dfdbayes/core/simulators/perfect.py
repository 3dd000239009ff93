"""Perfect sampling of attractive Ising models: monotone coupling from the past (Propp and Wilson, 1996).

Two chains start at the highest and at the lowest state ever further in the past and share their random numbers. When
they meet before time zero, every chain would have: the common state at time zero is an exact draw.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...errors import ModelError
from .base import Interactions
from .gibbs import OnGraph


@jax.jit
def _from_the_past(conditionals: OnGraph, key: Array, steps: Array, ends: Array) -> Array:
    """Run both chains (the lowest and the highest state) from time -steps to 0; a time's numbers depend on it only."""

    def sweep(t: Array, states: Array) -> Array:
        at = jax.random.fold_in(key, steps - t)
        return jax.vmap(lambda x: conditionals.sweep((x, jnp.zeros(())), at)[0][0])(states)

    return jax.lax.fori_loop(0, steps, sweep, ends)


def by_coupling_from_the_past(
    model: Interactions, domain: Any, per: int, rng: np.random.Generator, most: int = 2**14
) -> np.ndarray:
    """Exact draws, (parameters, chains, nodes)."""
    levels = domain.coordinate(0).levels
    if model.kind != "product" or model.nu is not None or np.any(np.asarray(model.interaction) < 0):
        raise ModelError("coupling from the past needs an attractive Ising model (no negative interactions)")
    conditionals = OnGraph.of(model, domain)
    shape = (len(conditionals.intercept), per, domain.d)
    ends = jnp.stack([jnp.full(shape, float(level)) for level in levels])
    key, steps = jax.random.key(int(rng.integers(2**31))), 4
    while steps <= most:
        bottom, top = _from_the_past(conditionals, key, jnp.asarray(steps), ends)
        if bool(jnp.all(bottom == top)):
            return np.asarray(top).astype(np.int64)
        steps *= 2
    raise ModelError(
        f"coupling from the past did not meet within {most} sweeps: the temperature is too low for it. "
        "Use method='swendsen-wang'."
    )
