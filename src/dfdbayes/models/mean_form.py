"""Conway-Maxwell-Poisson distributions by their mean: the rate that gives a mean, and the constant there.

The mean has no formula in rate and nu, so the rate is found by Newton's method inside a bracket. In a regression every
row has a mean of its own, but both functions of it are smooth: where rows share nu they are computed at equidistant
nodes and interpolated between them (Lagrange, eight nodes, nine digits or more where nu is about one), so that a row
costs a few multiplications.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .normaliser import log_normaliser, moments_of

NODES = 64  # at which functions of the mean are computed
STENCIL = np.arange(-3, 5)  # nodes that a value is interpolated from, relative to the one below it
# Row i: the coefficients of 1, a, a^2 ... of node i's Lagrange polynomial, a being how far past the node below.
LAGRANGE = np.linalg.inv(np.vander(STENCIL.astype(float), increasing=True)).T
TOLERANCE = 1e-12
STEPS = 80


@jax.custom_jvp
def log_rate_of_mean(log_mean: Array, nu: Array) -> Array:
    """The log rate of Conway-Maxwell-Poisson distributions with given means, entry by entry."""

    def unfinished(state: Any) -> Array:
        return (state[0] < STEPS) & jnp.any(jnp.abs(state[4]) > TOLERANCE * (1.0 + jnp.abs(log_mean)))

    def step(state: Any) -> Any:
        count, at, low, high, _ = state
        mean, variance, _ = moments_of(at, nu)
        usable = jnp.isfinite(mean) & (mean > 0.0) & (variance > 0.0)
        short = jnp.where(usable, log_mean - jnp.log(jnp.where(usable, mean, 1.0)), -1.0)  # no mean: far too high
        low, high = jnp.where(short > 0.0, at, low), jnp.where(short <= 0.0, at, high)
        aim = at + short * jnp.where(usable, mean / jnp.where(usable, variance, 1.0), 1.0)
        middle = jnp.where(jnp.isfinite(low), jnp.where(jnp.isfinite(high), 0.5 * (low + high), low + 1.0), high - 1.0)
        aim = jnp.where(usable & (aim > low) & (aim < high), aim, middle)
        done = jnp.abs(short) <= TOLERANCE * (1.0 + jnp.abs(log_mean))
        return count + 1, jnp.where(done, at, aim), low, high, jnp.where(high - low < 1e-15, 0.0, short)

    # Near zero a count is nearly binary; far from it the distribution is nearly normal about its mode.
    mode = jnp.exp(log_mean) + (nu - 1.0) / (2.0 * jnp.maximum(nu, 1e-3))
    start = jnp.where(mode > 0.5, nu * jnp.log(jnp.maximum(mode, 0.5)), log_mean)
    below_one = log_mean - jnp.log1p(jnp.exp(log_mean))  # the rate of a geometric distribution
    start = jnp.where(nu < 0.3, below_one + nu * jnp.maximum(log_mean, 0.0), start)
    endless = jnp.full_like(start, jnp.inf)
    begin = (jnp.asarray(0), start, -endless, endless, jnp.ones_like(start))
    return jax.lax.while_loop(unfinished, step, begin)[1]


@log_rate_of_mean.defjvp
def _log_rate_of_mean_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    """Along a mean held fixed, more of nu is made up for by more of the rate: implicit differentiation."""
    log_mean, nu = primals
    found = log_rate_of_mean(log_mean, nu)
    mean, variance, with_nu = moments_of(found, nu)
    return found, (mean * tangents[0] + with_nu * tangents[1]) / variance


def of_mean(log_mean: Float[Array, " u"], nu: Float[Array, ...]) -> tuple[Array, Array]:
    """Log rate and log constant of every row; ``nu`` is one number for all rows or one for each."""
    if nu.ndim or log_mean.size <= NODES:
        every = jnp.broadcast_to(nu, log_mean.shape)
        rate = log_rate_of_mean(log_mean, every)
        return rate, log_normaliser(rate, every)

    def at(nodes: Array) -> Array:
        every = jnp.broadcast_to(nu, nodes.shape)
        rate = log_rate_of_mean(nodes, every)
        return jnp.stack([rate, log_normaliser(rate, every)], axis=1)

    found = interpolated(at, log_mean)
    return found[:, 0], found[:, 1]


def interpolated(function: Callable[[Array], Array], at: Float[Array, " u"]) -> Float[Array, "u k"]:
    """A smooth function with k values, computed at nodes that span ``at`` and interpolated to each of them."""
    fixed = jax.lax.stop_gradient(at)
    low, high = jnp.min(fixed), jnp.max(fixed)
    step = jnp.maximum((high - low) / (NODES - 9), 1e-3)
    begin = low - 4.0 * step
    values = function(begin + step * jnp.arange(NODES))
    place = (at - begin) / step
    below = jnp.clip(jnp.floor(jax.lax.stop_gradient(place)), 3, NODES - 5).astype(int)
    past = (place - below)[:, None]
    stencils = values[np.arange(NODES - len(STENCIL) + 1)[:, None] + np.arange(len(STENCIL))[None, :]]
    pieces = jnp.einsum("np,snk->spk", LAGRANGE, stencils)  # coefficients of a polynomial for each gap between nodes
    own = pieces.reshape(len(pieces), -1)[below + int(STENCIL[0])].reshape(len(at), len(STENCIL), -1)
    found = own[:, -1]
    for power in range(len(STENCIL) - 2, -1, -1):
        found = found * past + own[:, power]
    return found
