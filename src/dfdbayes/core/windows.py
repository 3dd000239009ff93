"""Windows of neighbouring rows of a series: what their gradients share, and resamples of them.

Given a right model of each row given its past, gradients of rows are uncorrelated (martingale differences), and rows
could be drawn one by one. Given a wrong one they are not, and the variance of their sum is the long-run variance. Both
the moving-window bootstrap (Kuensch, 1989) and the estimate of that variance with Bartlett's weights (Newey and West,
1987) add what rows up to ``length`` steps apart have in common. Places in time that do not follow one another (a gap,
another unit) share no window.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from numpy.lib.stride_tricks import sliding_window_view

from .dataset import Units

DEGREES = 1.5  # windows side by side for a degree of freedom of the long-run variance (docs/tables/series-coverage.md)


def automatic_length(lines: Float[np.ndarray, "n p"], place: Int[np.ndarray, " n"]) -> float:
    """How long windows should be: by first autocorrelations (Andrews, 1991), and not below a multiple of n^(1/3).

    The multiple, 1.5, is what coverage at a misspecified model asks for: docs/tables/series-coverage.md. At least ten
    windows fit side by side.
    """
    n = len(lines)
    scale = np.sqrt(np.maximum(np.mean(lines**2, axis=0), 1e-300))
    unit = lines / scale
    follows = np.diff(place) == 1
    before, after = unit[:-1][follows], unit[1:][follows]
    rho = np.sum(before * after, axis=0) / np.maximum(np.sum(before**2, axis=0), 1e-300)
    rho = np.clip(rho, -0.97, 0.97)  # Andrews and Monahan's (1992) bound
    left = (1.0 - rho**2) ** 2
    growth = np.sum(4 * rho**2 * left / ((1 - rho) ** 6 * (1 + rho) ** 2)) / np.sum(left / (1 - rho) ** 4)
    return float(max(min(max(1.1447 * (growth * n) ** (1 / 3), 1.5 * n ** (1 / 3)), n / 10), 1.0))


def long_run(lines: Float[np.ndarray, "n p"], place: Int[np.ndarray, " n"], length: float) -> Float[np.ndarray, "p p"]:
    """The long-run variance of lines in the order of time, times their number: squares and products with later ones."""
    centred = lines - lines.mean(axis=0)
    found = centred.T @ centred
    for apart in range(1, int(np.ceil(length))):
        at = np.minimum(np.searchsorted(place, place + apart), len(place) - 1)
        there = place[at] == place + apart
        products = centred[there].T @ centred[at[there]]
        found = found + (1.0 - apart / length) * (products + products.T)
    return found


def length_of(units: Units, lines: Float[np.ndarray, "n p"]) -> float:
    """The length that was asked for, or one that these gradients ask for."""
    assert units.place is not None
    if units.length is not None:
        return float(units.length)
    order = np.argsort(units.place)
    return automatic_length(lines[order], units.place[order])


def moments(
    units: Units, lines: Float[np.ndarray, "n p"]
) -> tuple[float, Float[np.ndarray, " p"], Float[np.ndarray, "p p"]]:
    """How many windows there are side by side, the sum of all gradients, and the sum of squares of windows' gradients.

    As for independent units: the squares less those of the mean are an estimate of the variance of the sum.
    """
    assert units.place is not None
    order = np.argsort(units.place)
    length, total = length_of(units, lines), lines.sum(axis=0)
    size = max(len(lines) / length, 2.0)
    return size, total, long_run(lines[order], units.place[order], length) + np.outer(total, total) / size


def runs_of(place: Int[np.ndarray, " n"]) -> list[np.ndarray]:
    """Rows that follow one another without a gap, in the order of time."""
    order = np.argsort(place)
    return np.split(order, np.flatnonzero(np.diff(place[order]) != 1) + 1)


def starts_of(place: Int[np.ndarray, " n"], length: int) -> int:
    """How many windows there are: every row is in ``length`` of them, as windows may reach beyond the ends."""
    return sum(len(run) + length - 1 for run in runs_of(place))


def of_windows(drawn: Float[np.ndarray, "b s"], place: Int[np.ndarray, " n"], length: int) -> Float[np.ndarray, "b n"]:
    """Weights of rows from how often each window was drawn."""
    weights, first = np.empty((len(drawn), len(place))), 0
    for run in runs_of(place):
        many = len(run) + length - 1
        weights[:, run] = sliding_window_view(drawn[:, first : first + many], length, axis=1).sum(axis=-1)
        first += many
    return weights
