"""Conway-Maxwell-Poisson distributions by their mean: the rate that gives a mean, and the constant there.

The mean has no formula in rate and nu. With the mean mu and s = log(1 + mu), the dual potential of the family, sup over
eta of (eta mu - log Z(eta, nu)), is

    mu log mu - (1 + mu) s + nu ((1 + mu) s - mu) + s^2 psi(s, nu).

Its derivative in mu is the log rate eta, and log Z follows from both. What stands before psi is the potential of a
geometric distribution at nu = 0 and of Poisson's at nu = 1, where psi is zero. It is smooth, tends to limits where nu
or the mean tend to zero, and is bounded for large means: some hundred polynomials in two variables give ten digits.
They go through psi at Chebyshev's points of their patches, from sums over x, or from the expansion of Gaunt, Iyengar,
Olde Daalhuis and Simsek (2019) where nu times the mean is large. A row costs some dozen multiplications, and nothing is
solved or summed for it; derivatives are those of the polynomials.

Patches are arranged in sheets, each for a range of nu. The larger nu, the nearer to certain is a count whose mean is a
whole number k: psi has branch points at a distance of 2 (k / (k + 1))^(nu / 2) from there, and patches are the smaller.
So there is a largest nu, `TOP`: all that is left of a distribution there are the two or three numbers next to its mean.
Where rows share nu, the polynomials are taken at that nu first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from math import comb, factorial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.polynomial import chebyshev, legendre
from scipy import special

from .normaliser import EXPANDED_FROM

# Together they give the ten digits that `tests/families/counts/test_mean_form.py` asks for.
ORDER = 12  # points of a patch in each direction
SPLITS = (2.0, 8.0)  # values of nu between sheets,
TOP = 20.0  # and the largest one
LARGEST_S = 20.0  # means up to 5e8
SMOOTH_FROM_S = 5.0  # where the first sheet serves all nu
FINEST = 2.0**-10  # least width of a patch in s
GAUSS = {number: legendre.leggauss(number) for number in (12, 24)}  # nodes of an octave, or of a part of it


class Table(NamedTuple):
    """Patches, and how to find that of a mean and a nu.

    A cell is a stretch of s in one sheet; along nu it is divided into patches that are even in log(1 + scale nu).
    """

    patches: Float[np.ndarray, "patches v u"]
    """Coefficients of powers along nu, of values at `POINTS` along s; both coordinates go from -1 to 1."""
    first: Int[np.ndarray, " cells"]
    number: Int[np.ndarray, " cells"]
    scale: Float[np.ndarray, " cells"]
    begin: Float[np.ndarray, " cells"]
    width: Float[np.ndarray, " cells"]
    centre: Float[np.ndarray, " cells"]
    half: Float[np.ndarray, " cells"]
    cells: Int[np.ndarray, "sheets steps"]
    """The cell of each step of s by `FINEST`."""


def _powers() -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev's points, and the matrix from values there to coefficients of powers."""
    points = np.cos(np.pi * (np.arange(ORDER) + 0.5) / ORDER)
    matrix = np.zeros((ORDER, ORDER))
    for k in range(ORDER):
        matrix[: k + 1, k] = chebyshev.cheb2poly(np.eye(ORDER)[k])[: k + 1]
    return points, matrix @ np.linalg.inv(chebyshev.chebvander(points, ORDER - 1))


POINTS, TO_POWERS = _powers()


@cache
def table() -> Table:
    """The table, made when it is first asked for."""
    ends = (0.0, *SPLITS, TOP)
    bounds: list[tuple[float, float, float, float]] = []
    cells = np.zeros((len(ends) - 1, round(LARGEST_S / FINEST)), np.int32)
    for sheet, (least, most) in enumerate(pairwise(ends)):
        beyond = [(float(low), low + 1.0, 0.0, TOP) for low in range(round(SMOOTH_FROM_S), round(LARGEST_S))]
        own = [(low, high, least, most) for low, high in _divided(most)] + (beyond if sheet == 0 else [])
        cells[sheet] = cells[0]
        for low, high, *_ in own:
            cells[sheet, round(low / FINEST) : round(high / FINEST)] = len(bounds)
            bounds.append((low, high, least, most if low < SMOOTH_FROM_S else TOP))
    low, high, least, most = np.array(bounds).T
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    scale = 8.0 * np.exp(centre)  # patches are even in log(1 + scale nu),
    begin = np.log1p(scale * least)
    length = np.log1p(scale * most) - begin
    number = np.ceil(length / np.where(least == 0.0, 1.25, 0.5)).astype(np.int32)  # and narrower in later sheets
    width = length / number

    def of_cell(k: int) -> list[np.ndarray]:
        s = centre[k] + half[k] * POINTS
        places = begin[k] + width[k] * (np.arange(number[k])[:, None] + 0.5 + 0.5 * POINTS)
        return [TO_POWERS @ psi(s, np.expm1(place) / scale[k]) for place in places]

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        patches = [patch for found in threads.map(of_cell, range(len(bounds))) for patch in found]
    first = np.concatenate([[0], np.cumsum(number)[:-1]]).astype(np.int32)
    return Table(np.array(patches), first, number, scale, begin, width, centre, half, cells)


def _divided(nu: float) -> list[tuple[float, float]]:
    """Cells of s up to `SMOOTH_FROM_S`, halved until the branch points of psi at ``nu`` are far from each."""
    k = np.arange(1.0, np.exp(SMOOTH_FROM_S) + 1.0)
    away = np.maximum(2.0 * (k / (k + 1.0)) ** (0.5 * nu), np.pi * (k / nu - 0.15))  # sharp, and nearly normal
    branch = np.log(1.0 + k + 1j * away)
    found, waiting = [], [(float(low), low + 1.0) for low in reversed(range(round(SMOOTH_FROM_S)))]
    while waiting:
        low, high = waiting.pop()
        middle = 0.5 * (low + high)
        z = (branch - middle) / (0.5 * (high - low))
        axes = np.abs(z + np.sqrt(z - 1.0) * np.sqrt(z + 1.0))  # sums of half-axes of ellipses about a half-width of 1
        if high - low <= FINEST or axes.min() >= 4.0:
            found.append((low, high))
        else:
            waiting += [(middle, high), (low, middle)]
    return found


def psi(s: Float[np.ndarray, " u"], nu: Float[np.ndarray, " v"]) -> Float[np.ndarray, "v u"]:
    """What the table holds, for each of some similar ``nu`` and each of some similar ``s``."""
    mean = np.expm1(s)
    found = _expanded if nu.min() * mean.min() > EXPANDED_FROM else _summed
    return found(mean, s, nu[:, None]) / s**2


def _expanded(mean: np.ndarray, s: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """s^2 psi where a distribution is nearly normal; the log rate is nu (s + shift)."""
    square = nu**2
    first = (square - 1) / 24
    second = (square - 1) / 1152 * (square + 23)
    third = (square - 1) / 414720 * (5 * square**2 - 298 * square + 11237)
    shift = -1.0 / (1.0 + mean) - 0.5 * (1.0 - nu) / (nu * mean)
    for _ in range(5):
        t = nu * (1.0 + mean) * np.exp(shift)
        small = 1.0 / t
        series = small * (first + small * (second + small * third))
        slope = small * (first + small * (2.0 * second + small * 3.0 * third)) / (1.0 + series)
        shift = shift + (nu * mean - t + 0.5 * (nu - 1.0) + slope) / t
    linear = 0.5 * (nu - 1.0) * (s + shift + np.log(2.0 * np.pi)) + 0.5 * np.log(nu)
    quadratic = nu * (mean * (shift - np.expm1(shift)) - np.exp(shift) - s)
    return s + mean * np.log1p(1.0 / mean) + quadratic + linear - np.log1p(series)


def _summed(mean: np.ndarray, s: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """s^2 psi by sums over x; the log rate is log mean - s + nu s + more."""
    x, weights = _nodes(float(mean.min()), float(mean.max()), float(nu.min()))
    parts = weights[:, None] * np.stack([np.ones_like(x), x, x * x], axis=1)
    stirling = special.gammaln(x + 1.0) - special.xlogy(x, x) + x
    with_nu = x - mean[:, None] - special.xlogy(x, x / (1.0 + mean[:, None])) - stirling + s[:, None]
    fixed = nu[..., None] * with_nu - np.log1p(1.0 / mean)[:, None] * x
    more = _begun(mean, s, nu)
    low, high = np.full_like(more, -np.inf), np.full_like(more, np.inf)
    for _ in range(40):  # steps of Newton's method; three are enough as a rule
        log = fixed + more[..., None] * x
        peak = log.max(axis=-1)
        log -= peak[..., None]
        total, first, second = np.moveaxis(np.exp(log, out=log) @ parts, -1, 0)
        short = mean - first / total
        variance = second / total - (first / total) ** 2
        done = np.abs(short) < 2e-4 * np.minimum(mean, np.sqrt(variance))  # the potential's error has its third power
        if done.all():
            break
        low, high = np.where(short > 0.0, more, low), np.where(short <= 0.0, more, high)
        aim = more + short / variance
        middle = np.where(np.isfinite(low), np.where(np.isfinite(high), 0.5 * (low + high), low + 1.0), high - 1.0)
        more = np.where(done, more, np.where((aim > low) & (aim < high), aim, middle))
    return mean * more + s - peak - np.log(total) + 0.5 * short**2 / variance  # and what one more step would add


def _begun(mean: np.ndarray, s: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """Where the search begins: by the limits of small and large nu times the mean, or by three neighbouring values."""
    product = nu * mean
    wide = (1.0 - nu) * product / (1.0 + mean) * (1.0 - np.euler_gamma) / (1.0 + 2.0 * (1.0 - np.euler_gamma) * product)
    k = np.maximum(np.round(mean), 1.0)
    away, share = mean - k, (k / (k + 1.0)) ** (0.5 * nu)
    # of masses proportional to share / q, 1 and share q at k - 1, k and k + 1
    q = (away + np.sqrt(away**2 + 4.0 * share**2 * (1.0 - away**2))) / (2.0 * share * (1.0 - away))
    binary = np.log(mean / np.maximum(1.0 - mean, 0.4))
    rate = np.where(mean > 0.5, 0.5 * nu * np.log(k * (k + 1.0)) + np.log(q), binary)
    return np.where(mean < 0.4 * nu, rate - np.log(mean) + s - nu * s, wide)


def _nodes(least: float, most: float, nu: float) -> tuple[np.ndarray, np.ndarray]:
    """Values x with weights for means from ``least`` to ``most``: their sum is that over all x.

    The first terms are added as they are, and a smooth step hands over to an integral, octave by octave by Gauss and
    Legendre's rule: where the terms change little from one to the next, both are the same but for exp(-2 pi^2 soft^2).
    """
    handed_over, soft = 32.0, 2.0  # where, and how softly
    if nu >= SPLITS[0]:
        x = np.arange(max(0.0, np.floor(least - 12.0 * np.sqrt(least))), most + 12.0 * np.sqrt(most) + 16.0)
        return x, np.ones_like(x)
    product = nu * least
    end = most * (3.0 + 47.0 / (1.0 + product)) + 50.0
    if end < 200.0:
        return np.arange(end), np.ones(int(np.ceil(end)))
    sharp = int(np.searchsorted([2.0, 10.0, 30.0, 100.0, 200.0], product)) + 1  # parts of an octave near the mean
    parted = [np.arange(2.0 * handed_over)]
    weights = [special.ndtr((handed_over - parted[0]) / soft)]
    begin = 0.5 * handed_over
    while begin < end:
        inner = least / 16.0 < begin < 4.0 * most
        parts = sharp if inner else 1
        points, shares = GAUSS[24 if inner or begin < 4.0 * handed_over else 12]
        width = begin / parts
        inside = (begin + width * (np.arange(parts)[:, None] + 0.5 + 0.5 * points)).reshape(-1)
        parted.append(inside)
        weights.append(np.tile(0.5 * width * shares, parts) * special.ndtr((inside - handed_over) / soft))
        begin *= 2.0
    return np.concatenate(parted), np.concatenate(weights)


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
