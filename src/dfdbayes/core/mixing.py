"""How good draws are: effective sizes, R-hat and Monte-Carlo errors of chains; Pareto-smoothed importance weights.

The definitions are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), as ArviZ computes them one quantity
at a time, and weights those of Vehtari, Simpson, Gelman, Yao and Gabry (2024); `tests/core/test_mixing.py` and
`tests/core/test_pareto.py` compare the two. ArviZ is not used here, as importing it makes the first answer 15 % slower
(`benchmarks/results/diagnostics.md`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy import fft, special

from .._util.resources import NUMBERS_AT_ONCE
from .._util.tables import Table

MAX_R_HAT = 1.02  # Vehtari et al. (2021) ask for 1.01; here it is the largest of all parameters
MIN_EFFECTIVE = 400.0  # draws of all chains, as they advise

Chains = Float[np.ndarray, "chains draws q"]
Each = Float[np.ndarray, " q"]


def entries_of(posterior: Table) -> dict[str, Float[np.ndarray, "chains draws"]]:
    """Draws of every scalar entry of a posterior, by the name that ArviZ gives it: ``interaction[a,b]``."""
    found = {}
    for name, values in posterior.arrays.items():
        axes = [posterior.labels[axis] for axis in posterior.axes[name][2:]]
        draws = values.reshape(*values.shape[:2], -1)
        for place, index in enumerate(np.ndindex(values.shape[2:])):
            label = ", ".join(str(axis[i]) for axis, i in zip(axes, index, strict=True))
            found[f"{name}[{label}]" if axes else name] = draws[..., place]
    return found


def evenly(thetas: Float[np.ndarray, "all p"], most: int) -> Float[np.ndarray, "few p"]:
    """At most so many of the draws, evenly."""
    return thetas[np.linspace(0, len(thetas) - 1, min(most, len(thetas))).astype(int)]


def stacked(entries: dict[str, np.ndarray]) -> Chains:
    """Draws of many entries as one array."""
    return np.stack(list(entries.values()), axis=-1)


def bulk_size(draws: Chains) -> Each:
    """Effective draws for the middle of each distribution: of ranks, as quantiles of a normal distribution."""
    return _in_parts(lambda part: _effective(_normal_scores(_split(part))), draws)


def tail_size(draws: Chains) -> Each:
    """The smaller of the effective sizes for two far quantiles."""

    def of(part: Chains) -> Each:
        ends = np.quantile(part, (0.05, 0.95), axis=(0, 1))
        return np.minimum(*(_effective(_split((part <= end).astype(float))) for end in ends))

    return _in_parts(of, draws)


def r_hat(draws: Chains) -> Each:
    """Split R-hat of ranks, for places and for spreads, whichever is larger; not a number for one chain."""

    def of(part: Chains) -> Each:
        halves = _split(part)
        folded = np.abs(halves - np.median(halves, axis=(0, 1)))
        return np.maximum(_ratio(_normal_scores(halves)), _ratio(_normal_scores(folded)))

    return _in_parts(of, draws) if len(draws) > 1 else np.full(draws.shape[2], np.nan)


def standard_errors(draws: Chains) -> tuple[Each, Each]:
    """Monte-Carlo standard errors of means and of standard deviations."""
    size = _in_parts(lambda part: _effective(_split(part)), draws)
    square = (draws - draws.mean(axis=(0, 1))) ** 2
    variance = square.mean(axis=(0, 1))
    with np.errstate(invalid="ignore", divide="ignore"):  # of a constant
        of_variance = ((square**2).mean(axis=(0, 1)) - variance**2) / size
        return np.sqrt(draws.var(axis=(0, 1), ddof=1) / size), np.sqrt(of_variance / variance / 4.0)


def _in_parts(function: Callable[[Chains], Each], draws: Chains) -> Each:
    """A function of chains, some quantities at a time; not a number where chains are too short or not finite."""
    chains, length, q = draws.shape
    found = np.full(q, np.nan)
    good = np.flatnonzero(np.isfinite(draws).all(axis=(0, 1))) if length >= 4 else np.empty(0, int)
    step = max(1, NUMBERS_AT_ONCE // (chains * length))
    with np.errstate(invalid="ignore", divide="ignore"):
        for first in range(0, len(good), step):
            some = good[first : first + step]
            found[some] = function(draws[..., some])
    return found


def _split(draws: Chains) -> Chains:
    """Each chain as two: its halves."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: Chains) -> Chains:
    """Ranks over all chains (ties share their mean rank) as quantiles of the standard normal distribution."""
    flat = draws.reshape(-1, draws.shape[2]).T
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    size = flat.shape[1]
    new = np.diff(ordered, axis=1) != 0.0
    edge = np.ones((len(flat), 1), bool)
    places = np.broadcast_to(np.arange(size), flat.shape)
    first = np.maximum.accumulate(np.where(np.hstack([edge, new]), places, 0), axis=1)
    last = np.where(np.hstack([new, edge]), places, size)[:, ::-1]
    last = np.minimum.accumulate(last, axis=1)[:, ::-1]
    ranks = np.empty(flat.shape)
    np.put_along_axis(ranks, order, 0.5 * (first + last) + 1.0, axis=1)
    return special.ndtri((ranks - 0.375) / (size + 0.25)).T.reshape(draws.shape)  # Blom's (1958) plotting positions


def _ratio(draws: Chains) -> Each:
    """The potential scale reduction: how much wider all chains are together than each by itself."""
    length = draws.shape[1]
    between = length * draws.mean(axis=1).var(axis=0, ddof=1)
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    return np.sqrt((between / within + length - 1.0) / length)


def _effective(draws: Chains) -> Each:
    """Effective sizes, autocorrelations being summed as far as Geyer's (1992) monotone sequence goes."""
    chains, length, _ = draws.shape
    total = float(chains * length)
    along = np.moveaxis(draws, 1, -1)
    away = along - along.mean(axis=-1, keepdims=True)
    spectrum = fft.rfft(away, n=fft.next_fast_len(2 * length, real=True), axis=-1)
    covariance = fft.irfft(np.abs(spectrum) ** 2, n=fft.next_fast_len(2 * length, real=True), axis=-1)
    covariance = covariance[..., :length].mean(axis=0) / length
    within = covariance[:, :1] * length / (length - 1.0)
    together = covariance[:, :1].copy()
    if chains > 1:
        together += draws.mean(axis=1).var(axis=0, ddof=1)[:, None]
    rho = 1.0 - (within - covariance) / together
    rho[:, 0] = 1.0
    usable = max(1, (length - 1) // 2)  # pairs of lags that are looked at
    pairs = rho[:, 0 : 2 * usable : 2] + rho[:, 1 : 2 * usable : 2]
    stops = pairs <= 0.0
    stop = np.where(stops.any(axis=1), stops.argmax(axis=1), usable - 1)  # the first pair that is left out
    kept = np.arange(usable) < stop[:, None]
    summed = np.sum(np.where(kept, np.minimum.accumulate(np.where(kept, pairs, np.inf), axis=1), 0.0), axis=1)
    beyond = np.maximum(rho[np.arange(len(rho)), 2 * stop], 0.0)
    times = np.maximum(-1.0 + 2.0 * summed + beyond, 1.0 / np.log10(total))
    constant = np.ptp(draws, axis=(0, 1)) < 1e-15
    return np.where(constant, total, np.where(np.isnan(rho).any(axis=1), np.nan, total / times))


# -- importance weights --------------------------------------------------------------------------


def smoothed(logarithms: Float[np.ndarray, " n"]) -> tuple[Float[np.ndarray, " n"], float]:
    """Logarithms of weights that sum to one, the largest ones replaced by quantiles of a Pareto tail; and its k.

    They stay as they are, with k = 0, where all large ones are the same.
    """
    found = logarithms - logarithms.max()
    n = len(found)
    size = int(3.0 * np.sqrt(n)) if n > 225 else n // 5
    order = np.argsort(found)
    tail, k = order[n - size :], 0.0
    if np.ptp(found[tail]) >= np.finfo(float).tiny:
        cutoff = np.exp(found[order[n - size - 1]])
        k, scale = _fitted(np.exp(found[tail]) - cutoff)
        if np.isfinite(k):
            shares = np.arange(0.5, size) / size
            found[tail] = np.minimum(np.log(cutoff + _quantiles(shares, k, scale)), 0.0)
    return found - special.logsumexp(found), float(k)


def _fitted(ordered: Float[np.ndarray, " m"]) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto distribution (Zhang and Stephens, 2009), the shape drawn to 1/2."""
    n = len(ordered)
    points = 30 + int(n**0.5)
    grid = 1.0 - np.sqrt(points / (np.arange(1, points + 1) - 0.5))
    grid = grid / (3.0 * ordered[int(n / 4 + 0.5) - 1]) + 1.0 / ordered[-1]
    shapes = np.log1p(-grid[:, None] * ordered).mean(axis=1)
    heights = n * (np.log(-grid / shapes) - shapes - 1.0)
    shares = np.exp(heights - special.logsumexp(heights))
    kept = shares >= 10.0 * np.finfo(float).eps
    mean = np.sum(grid[kept] * (shares[kept] / shares[kept].sum()))
    shape = np.log1p(-mean * ordered).mean()
    return (n * shape + 10.0 * 0.5) / (n + 10.0), -shape / mean  # the prior of k, 1/2, counts for ten observations


def _quantiles(shares: Float[np.ndarray, " m"], shape: float, scale: float) -> Float[np.ndarray, " m"]:
    if scale <= 0.0:
        return np.full_like(shares, np.nan)
    return -scale * np.log1p(-shares) if shape == 0.0 else scale * np.expm1(-shape * np.log1p(-shares)) / shape
