"""Conway-Maxwell-Poisson distributions by their mean: the rate that gives a mean, and the constant there.

The mean has no formula in rate and nu. Both follow from one smooth function of the mean and nu, psi of `mean_table`,
and from a table of polynomials for it: a row costs some dozen multiplications, and nothing is solved or summed for it.
Derivatives are those of the polynomials. Where rows share nu, the polynomials are taken at that nu first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import comb, factorial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .mean_terms import FINEST, LARGEST_S, ORDER, SPLITS, TO_POWERS, TOP, table

LARGE = 0.8 * TOP  # nu from where it is held back


def held(log_nu: Any) -> Float[Array, ...]:
    """Nu as the mean form takes it: beyond `LARGE` it only tends to `TOP`, where hardly anything is left to vary."""
    nu = jnp.exp(jnp.minimum(log_nu, 30.0))
    return jnp.where(nu > LARGE, LARGE - (TOP - LARGE) * jnp.expm1((LARGE - nu) / (TOP - LARGE)), nu)


@jax.custom_jvp
def of_mean(log_mean: Float[Array, ...], nu: Float[Array, ...]) -> tuple[Array, Array]:
    """Log rate and log constant of every mean; ``nu``, up to `TOP`, is one number for all or one for each."""
    return _plain(log_mean, nu)


@of_mean.defjvp
def _of_mean_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Any, Any]:
    rate, constant, mean, in_mean, in_nu, potential = _with_slopes(*primals)
    moved = in_mean * tangents[0] + in_nu * tangents[1]
    return (rate, constant), (moved, mean * moved - potential * tangents[1])


@jax.custom_jvp
def _with_slopes(log_mean: Array, nu: Array) -> tuple[Array, ...]:
    """Log rate, log constant, mean; the rate's slopes in log mean and nu, and the potential's in nu, E log x!."""
    return _differentiated(1)(log_mean, nu)


@_with_slopes.defjvp
def _with_slopes_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Any, Any]:
    *here, twice_mean, mixed, twice_nu, potential = _differentiated(2)(*primals)
    mean, in_mean, in_nu, expected = here[2:]
    along, across = tangents
    moved = in_mean * along + in_nu * across
    slopes = (
        twice_mean * along + mixed * across,
        mixed * along + twice_nu * across,
        mean * in_nu * along + potential * across,
    )
    return tuple(here), (moved, mean * moved - expected * across, mean * along, *slopes)


@jax.jit
def _plain(log_mean: Array, nu: Array) -> tuple[Array, Array]:
    """Without derivatives: one loop over rows that takes what it needs from the table itself."""
    mean, s = _means(log_mean)
    near = jnp.minimum(s, LARGEST_S - FINEST)
    cell, place, more = _placed(near, nu)
    coefficients = _at_points(cell, nu, 0)[0] @ TO_POWERS.T
    flat = coefficients.reshape(-1)
    value = slope = jnp.zeros_like(place)
    for power in range(ORDER - 1, -1, -1):
        slope = slope * place + value
        value = value * place + (coefficients[..., power] if nu.ndim else _taken(flat, ORDER * cell + power))
    slope = near * (2.0 * value + near * slope * more)
    share = 1.0 / (1.0 + mean)
    rate = log_mean - s + nu * s + share * slope
    return rate, s + nu * (mean - s) + (1.0 - share) * slope - near**2 * value


@cache
def _differentiated(order: int) -> Callable[[Array, Array], tuple[Array, ...]]:
    """As `_with_slopes`; of the second order also the rate's second derivatives, and the potential's in nu."""

    @jax.jit
    def of(log_mean: Array, nu: Array) -> tuple[Array, ...]:
        mean, s = _means(log_mean)
        near = jnp.minimum(s, LARGEST_S - FINEST)
        inside = s < LARGEST_S - FINEST
        psi = _jet(near, nu, order)
        # derivatives of s^2 psi, by order in s and in nu
        f = [[near**2 * psi[0][j] for j in range(order + 1)]]
        f.append([near * (2.0 * psi[0][j] + near * psi[1][j]) for j in range(order + 1)])
        f.append(
            [
                jnp.where(inside, 2.0 * psi[0][j] + near * (4.0 * psi[1][j] + near * psi[2][j]), 0.0)
                for j in range(order)
            ]
        )
        share = 1.0 / (1.0 + mean)
        rest = 1.0 - share
        rate = log_mean - s + nu * s + share * f[1][0]
        bent = share * (f[2][0] - f[1][0])
        found = (
            rate, s + nu * (mean - s) + rest * f[1][0] - f[0][0], mean, 1.0 + rest * (nu - 1.0 + bent),
            s + share * f[1][1], s / share - mean + f[0][1],
        )  # fmt: skip
        if order == 1:
            return found
        third = 6.0 * psi[1][0] + near * (6.0 * psi[2][0] + near * psi[3][0])
        third = jnp.where(inside, third, 0.0)
        return (
            *found, rest * share * (nu - 1.0 + bent) + rest**2 * share * (third - 2.0 * f[2][0] + f[1][0]),
            rest * (1.0 + share * (f[2][1] - f[1][1])), share * f[1][2], f[0][2],
        )  # fmt: skip

    return of


def _means(log_mean: Array) -> tuple[Array, Array]:
    """The mean, finite however absurd, and log(1 + mean); `log1p` takes longer."""
    mean = jnp.exp(jnp.minimum(log_mean, 690.0))
    return mean, jnp.where(mean < 1e-4, mean * (1.0 - mean * (0.5 - mean / 3.0)), jnp.log(1.0 + mean))


def _jet(s: Array, nu: Array, order: int) -> list[list[Array]]:
    """Derivatives of psi, by their order in s, up to ``order + 1``, and in nu, up to ``order``."""
    cell, place, more = _placed(s, nu)
    parts = jnp.stack(_at_points(cell, nu, order), axis=-2) @ _shifted(order + 1)
    parts = parts.reshape(*parts.shape[:-2], -1, ORDER)
    own = parts if nu.ndim else _taken(parts, cell)
    found = own[..., -1]
    for power in range(ORDER - 2, -1, -1):
        found = found * place[..., None] + own[..., power]
    orders = range(order + 2)
    found = found @ np.diag([float(factorial(i)) for _ in range(order + 1) for i in orders])  # ends a loop over rows
    return [[found[..., len(orders) * j + i] * more**i for j in range(order + 1)] for i in orders]


@cache
def _shifted(order: int) -> Float[np.ndarray, "points orders*powers"]:
    """From values at points to coefficients of powers, those of all derivatives, divided by their factorials."""
    found = np.zeros((ORDER, order + 1, ORDER))
    for i in range(order + 1):
        for power in range(i, ORDER):
            found[power, i, power - i] = comb(power, i)
    return TO_POWERS.T @ found.reshape(ORDER, -1)


def _placed(s: Array, nu: Array) -> tuple[Array, Array, Array]:
    """The cell of every row, its place there, from -1 to 1, and how fast that moves with s."""
    known = table()
    sheet = sum((nu > split).astype(jnp.int32) for split in SPLITS)
    step = (s / FINEST).astype(jnp.int32) + known.cells.shape[1] * sheet
    cell = jnp.asarray(known.cells.reshape(-1)).at[step].get(mode="clip")
    centre, more = (_taken(jnp.asarray(part), cell) for part in (known.centre, 1.0 / known.half))
    return cell, (s - centre) * more, more


def _at_points(cell: Array, nu: Array, order: int) -> list[Float[Array, "*cells points"]]:
    """Psi at points along s, and so many derivatives in nu: of all cells where rows share nu, or of each row's."""
    known = table()
    of_cells = (known.first, known.number, known.scale, known.begin, known.width)
    first, number, scale, begin, width = (_taken(jnp.asarray(part), cell) for part in of_cells) if nu.ndim else of_cells
    steps = (jnp.log1p(scale * nu) - begin) / width
    patch = jnp.clip(jnp.floor(jax.lax.stop_gradient(steps)).astype(jnp.int32), 0, number - 1)
    place = jnp.clip(2.0 * (steps - patch) - 1.0, -1.0, 1.0)[..., None]
    own = _taken(jnp.asarray(known.patches), first + patch)
    found = [own[..., -1, :]] + [jnp.zeros_like(own[..., 0, :])] * order  # derivatives, divided by their factorials
    for power in range(ORDER - 2, -1, -1):
        for i in range(order, 0, -1):
            found[i] = found[i] * place + found[i - 1]
        found[0] = found[0] * place + own[..., power, :]
    if order == 0:
        return found
    rate = jnp.asarray(2.0 * scale / (width * (1.0 + scale * nu)))[..., None]
    slope = rate * found[1]
    if order == 1:
        return [found[0], slope]
    return [found[0], slope, 2.0 * rate**2 * found[2] - jnp.asarray(scale / (1.0 + scale * nu))[..., None] * slope]


def _taken(values: Array, places: Any) -> Array:
    return values.at[places].get(mode="promise_in_bounds")
