"""Pareto-smoothed importance weights (Vehtari, Simpson, Gelman, Yao and Gabry, 2024).

The same numbers as ArviZ's (`tests/unit/test_pareto.py` compares the two), without what importing ArviZ takes.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

EVEN = np.finfo(float).tiny  # a difference of logarithms below which weights are the same
PRIOR = 10  # observations that the prior of k, which is 1/2, counts for


def smoothed(logarithms: Float[np.ndarray, " n"]) -> tuple[Float[np.ndarray, " n"], float]:
    """Logarithms of weights that sum to one, the largest ones replaced by quantiles of a Pareto tail; and its k.

    They stay as they are, with k = 0, where all large ones are the same.
    """
    found = logarithms - logarithms.max()
    n = len(found)
    size = int(3.0 * np.sqrt(n)) if n > 225 else n // 5
    order = np.argsort(found)
    tail, k = order[n - size :], 0.0
    if np.ptp(found[tail]) >= EVEN:
        cutoff = np.exp(found[order[n - size - 1]])
        k, scale = _fitted(np.exp(found[tail]) - cutoff)
        if np.isfinite(k):
            shares = np.arange(0.5, size) / size
            found[tail] = np.minimum(np.log(cutoff + _quantiles(shares, k, scale)), 0.0)
    return found - logsumexp(found), float(k)


def _fitted(ordered: Float[np.ndarray, " m"]) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto distribution (Zhang and Stephens, 2009), the shape drawn to 1/2."""
    n = len(ordered)
    points = 30 + int(n**0.5)
    grid = 1.0 - np.sqrt(points / (np.arange(1, points + 1) - 0.5))
    grid = grid / (3.0 * ordered[int(n / 4 + 0.5) - 1]) + 1.0 / ordered[-1]
    shapes = np.log1p(-grid[:, None] * ordered).mean(axis=1)
    heights = n * (np.log(-grid / shapes) - shapes - 1.0)
    shares = np.exp(heights - logsumexp(heights))
    kept = shares >= 10.0 * np.finfo(float).eps
    mean = np.sum(grid[kept] * (shares[kept] / shares[kept].sum()))
    shape = np.log1p(-mean * ordered).mean()
    return (n * shape + PRIOR * 0.5) / (n + PRIOR), -shape / mean


def _quantiles(shares: Float[np.ndarray, " m"], shape: float, scale: float) -> Float[np.ndarray, " m"]:
    if scale <= 0.0:
        return np.full_like(shares, np.nan)
    return -scale * np.log1p(-shares) if shape == 0.0 else scale * np.expm1(-shape * np.log1p(-shares)) / shape
