"""Gibbs sampling of any model from its log mass alone: slower, for small models of one's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...errors import ModelError
from ..domain import Coordinate
from ..parameters import Rows, over_rows
from .base import Simulable

MOST_LEVELS = 4096


def _chain(
    log_mass: Callable[[Array], Array], count: int, key: Array, x: Array, values: Array, allowed: Array
) -> tuple[Array, Array, Array]:
    """``values`` (d, levels) are each coordinate's candidates, ``allowed`` masks padding."""

    def site(carry: tuple[Array, Array, Array], j: Array) -> tuple[tuple[Array, Array, Array], None]:
        x, tail, key = carry
        log = jax.vmap(lambda value: log_mass(x.at[j].set(value)))(values[j])
        log = jnp.where(allowed[j], log, -jnp.inf)
        mass = jnp.exp(log - jnp.max(log))
        cumulated = jnp.cumsum(mass)
        u = jax.random.uniform(jax.random.fold_in(key, j)) * cumulated[-1]
        chosen = values[j][jnp.minimum(jnp.sum(u > cumulated), values.shape[1] - 1)]
        return (x.at[j].set(chosen), jnp.maximum(tail, mass[-1] / cumulated[-1]), key), None

    def sweep(carry: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], Array]:
        (x, tail, _), _ = jax.lax.scan(site, (*carry, key), jnp.arange(carry[0].shape[0]))
        return (x, tail), jnp.sum(x)

    (x, tail), trace = jax.lax.scan(sweep, (x, jnp.zeros(())), jax.random.split(key, count))
    return x, tail, trace


@partial(jax.jit, static_argnums=(0, 1))
def _sweeps(
    model: Simulable, count: int, key: Array, x: Array, thetas: Array, values: Array, allowed: Array
) -> tuple[Array, Array, Array]:
    def of_chain(key: Array, x: Array, theta: Array) -> tuple[Array, Array, Array]:
        named = model.space.unflatten(theta)
        return _chain(lambda x: model.log_mass_at(named, x), count, key, x, values, allowed)

    keys = jax.random.split(key, x.shape[:2])
    return jax.vmap(jax.vmap(of_chain, in_axes=(0, 0, None)))(keys, x, thetas)


@partial(jax.jit, static_argnums=(0, 1))
def _sweeps_given(
    model: Simulable, count: int, key: Array, x: Array, thetas: Array, values: Array, allowed: Array, given: Array
) -> tuple[Array, Array, Array]:
    """The same where every chain has covariates, and with them parameters, of its own."""

    def of_row(row: Rows, key: Array, x: Array) -> tuple[Array, Array, Array]:
        return _chain(lambda x: model.log_mass_at(row, x), count, key, x, values, allowed)

    def of_draw(keys: Array, x: Array, theta: Array) -> Any:
        rows = model.at_rows(model.space.unflatten(theta), given)
        return over_rows(of_row, rows, len(given), model.ranks, keys, x)

    return jax.vmap(of_draw)(jax.random.split(key, x.shape[:2]), x, thetas)


def by_general_gibbs(
    model: Simulable,
    thetas: np.ndarray,
    per: int,
    rng: np.random.Generator,
    sweeps: int,
    given: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """States and the trace of their sums, of chains with covariates ``given`` where there are any.

    Unbounded coordinates are cut where the mass left out is below 1e-9.
    """
    domain, width = model.domain, 32
    unbounded = not domain.is_finite
    if any(coordinate.kind == "integers" for coordinate, _ in domain.runs):
        raise ModelError("models on all integers cannot be simulated from their log mass; give a simulator of your own")
    key = jax.random.key(int(rng.integers(2**31)))
    while True:
        columns = [_candidates(domain.coordinate(j), width) for j in range(domain.d)]
        longest = max(map(len, columns))
        values = np.array([np.pad(c, (0, longest - len(c)), mode="edge") for c in columns], float)
        allowed = np.array([np.arange(longest) < len(c) for c in columns])
        pick = rng.integers(2, size=(len(thetas), per, domain.d))
        start = np.take_along_axis(np.broadcast_to(values, (len(thetas), per, *values.shape)), pick[..., None], -1)
        inputs = (jnp.asarray(part) for part in (start[..., 0], thetas, values, allowed))
        if given is None:
            x, tail, trace = _sweeps(model, sweeps, key, *inputs)
        else:
            x, tail, trace = _sweeps_given(model, sweeps, key, *inputs, jnp.asarray(given))
        if not unbounded or float(jnp.max(tail)) < 1e-9:
            return np.asarray(x).astype(np.int64), np.moveaxis(np.asarray(trace), -1, 0)
        width *= 2
        if width > MOST_LEVELS:
            raise ModelError("at these parameters very large counts are likely: the model cannot be simulated")


def _candidates(coordinate: Coordinate, width: int) -> np.ndarray:
    if coordinate.kind == "finite":
        return np.asarray(coordinate.levels)
    step = 1 if coordinate.kind == "above" else -1
    return (coordinate.end or 0) + step * np.arange(width)
