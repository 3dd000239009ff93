"""The constant of the Conway-Maxwell-Poisson distribution, log sum over x of exp(eta x - nu log x!).

Terms are added, and beyond some hundreds integrated, until a geometric series bounds the rest below a tolerance; where
the mode exp(eta / nu) is so large that the terms are nearly normal, an asymptotic expansion takes over (Gaunt, Iyengar,
Olde Daalhuis and Simsek, 2019), whose error there is below 1e-12. First and second derivatives come from moments, so
nothing differentiates the loop.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import special

EXPANDED_FROM = 400.0  # nu times the mode from where the expansion is used: its error is below 1e-12 there
CHUNK, SUMMED = 128, 512  # nodes at a time, and terms that are added before an integral takes over


def log_normaliser(eta: Any, nu: Any) -> Float[Array, ...]:
    """Log Z for every pair of ``eta`` = log rate and ``nu`` >= 0; infinite where the sum is."""
    eta, nu = jnp.broadcast_arrays(jnp.asarray(eta, float), jnp.asarray(nu, float))
    far, near, beyond = _regions(eta, nu)
    return jnp.where(far, _expansion(*beyond), _summed(*near))


def moments_of(eta: Array, nu: Array) -> tuple[Array, Array, Array]:
    """Mean and variance of x, and its covariance with log x!, for every pair of ``eta`` and ``nu``."""
    far, near, beyond = _regions(eta, nu)

    def mean(eta: Array, nu: Array) -> Array:
        return jax.jvp(lambda e: _expansion(e, nu), (eta,), (jnp.ones_like(eta),))[1]

    ones, zeros = jnp.ones_like(eta), jnp.zeros_like(eta)
    mean_far, variance_far = jax.jvp(mean, beyond, (ones, zeros))
    _, less = jax.jvp(mean, beyond, (zeros, ones))
    _, mean_near, _, variance_near, covariance_near, _ = _moments(*near)
    pairs = ((mean_far, mean_near), (variance_far, variance_near), (-less, covariance_near))
    first, second, third = (jnp.where(far, a, b) for a, b in pairs)
    return first, second, third


def _regions(eta: Array, nu: Array) -> tuple[Array, tuple[Array, Array], tuple[Array, Array]]:
    """Where the expansion is used; arguments for the sum, and for the expansion, that are harmless elsewhere."""
    safe = jnp.maximum(nu, 1e-3)
    far = (eta / safe + jnp.log(safe) > jnp.log(EXPANDED_FROM)) & (nu > 1e-3)
    # nu times the mode must not overflow even where the expansion is not used
    beyond = jnp.where(far, eta, safe * jnp.log(EXPANDED_FROM / safe)), safe
    return far, (jnp.where(far, 0.0, eta), jnp.where(far, 1.0, nu)), beyond


def _expansion(eta: Array, nu: Array) -> Array:
    mode = jnp.exp(jnp.minimum(eta / nu, 690.0))  # finite, however absurd the rate
    t = nu * mode
    square = nu**2
    first = (square - 1) / 24
    second = (square - 1) / 1152 * (square + 23)
    third = (square - 1) / 414720 * (5 * square**2 - 298 * square + 11237)
    small = 1.0 / t  # and its powers: those of t itself would overflow
    series = jnp.log1p(small * (first + small * (second + small * third)))
    return t - (nu - 1) / (2 * nu) * eta - 0.5 * (nu - 1) * jnp.log(2 * jnp.pi) - 0.5 * jnp.log(nu) + series


def _nodes() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Where the summand is taken, chunk by chunk, with what weights; where each chunk ends, and whether a sum may end.

    The first terms are added as they are, the others by an integral, octave by octave with Gauss and Legendre's nodes:
    a smooth step hands over from the one to the other, and then the two differ by less than exp(-2 pi^2 width^2).
    """
    width, octaves, stretches = 16.0, 40, 4  # of the step; beyond its middle; of an octave, with nodes of their own
    points, shares = np.polynomial.legendre.leggauss(CHUNK // stretches)
    x = [np.arange(CHUNK) + CHUNK * k for k in range(SUMMED // CHUNK)]
    weights = [special.ndtr((0.75 * SUMMED - part) / width) for part in x]
    begins = 0.5 * SUMMED * 2.0 ** np.arange(octaves)
    for begin in begins:
        length = begin / stretches
        inside = begin + length * (np.arange(stretches)[:, None] + 0.5 * (1.0 + points))
        x.append(inside.reshape(-1))
        step = special.ndtr((x[-1] - 0.75 * SUMMED) / width)
        weights.append(np.tile(0.5 * length * shares, stretches) * step)
    ends = np.array([CHUNK * (k + 1.0) for k in range(SUMMED // CHUNK)] + list(2.0 * begins))
    handed_over = np.arange(len(x)) >= SUMMED // CHUNK
    return np.array(x, float), np.array(weights), ends, handed_over | (ends <= 0.5 * SUMMED)


X, WEIGHTS, ENDS, MAY_END = _nodes()
LOG_FACTORIALS = special.gammaln(X + 1.0)


def listing(reach: int) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Counts up to ``reach`` or somewhat more, and how many each stands for: many, among the large ones of a list."""
    if reach <= SUMMED // 2:
        return np.arange(reach + 1.0), np.ones(reach + 1)
    chunks = max(SUMMED // CHUNK + 1, 1 + int(np.searchsorted(ENDS, reach)))
    return X[:chunks].reshape(-1), WEIGHTS[:chunks].reshape(-1)


def _moments(eta: Array, nu: Array) -> tuple[Array, ...]:
    """Log Z, means of x and log x!, and their variances and covariance."""
    zero = jnp.zeros_like(eta)
    endless = eta > nu * jnp.log(ENDS[-1])  # terms that still grow where the sum would be given up

    def unfinished(state: Any) -> Array:
        return jnp.any(~state[2] & ~endless) & (state[0] < len(ENDS))

    def add(state: Any) -> Any:
        chunk, peak, _, *sums = state
        shape = (1,) * eta.ndim + (CHUNK,)
        xs, gs, weights = (jnp.asarray(part)[chunk].reshape(shape) for part in (X, LOG_FACTORIALS, WEIGHTS))
        log = eta[..., None] * xs - nu[..., None] * gs
        new_peak = jnp.maximum(peak, jnp.max(log, axis=-1))
        shrink = jnp.exp(peak - new_peak)
        mass = weights * jnp.exp(log - new_peak[..., None])
        parts = [jnp.ones_like(xs), xs, gs, xs * xs, xs * gs, gs * gs]
        sums = [s * shrink + jnp.sum(mass * part, axis=-1) for s, part in zip(sums, parts, strict=True)]
        end = jnp.asarray(ENDS)[chunk]
        log_ratio = eta - nu * jnp.log(end)
        ratio = jnp.exp(jnp.minimum(log_ratio, 0.0))
        # the second moments' tails weigh more than the mass's: x^2 log(x!)^0 and log(x!)^2 grow slower than end^4
        tail = jnp.exp(log[..., -1] - new_peak) * ratio / jnp.maximum(1.0 - ratio, 1e-300) * end**4
        done = (log_ratio < 0) & (tail < 1e-13 * sums[0]) & jnp.asarray(MAY_END)[chunk]
        return (chunk + 1, new_peak, done, *sums)

    begin = (jnp.asarray(0), zero, jnp.zeros(eta.shape, bool), *(zero,) * 6)
    _, peak, done, total, x, g, xx, xg, gg = jax.lax.while_loop(unfinished, add, begin)
    mean_x, mean_g = x / total, g / total
    log = jnp.where(done & ~endless, peak + jnp.log(total), jnp.inf)
    return log, mean_x, mean_g, xx / total - mean_x**2, xg / total - mean_x * mean_g, gg / total - mean_g**2


@jax.custom_jvp
def _with_means(eta: Array, nu: Array) -> tuple[Array, ...]:
    return _moments(eta, nu)[:3]


@_with_means.defjvp
def _with_means_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    log, x, g, xx, xg, gg = _moments(*primals)
    d_eta, d_nu = tangents
    return (log, x, g), (x * d_eta - g * d_nu, xx * d_eta - xg * d_nu, xg * d_eta - gg * d_nu)


@jax.custom_jvp
def _summed(eta: Array, nu: Array) -> Array:
    return _moments(eta, nu)[0]


@_summed.defjvp
def _summed_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    log, x, g = _with_means(*primals)  # one loop gives the value and all that its derivatives need
    return log, x * tangents[0] - g * tangents[1]
