"""Smoothed densities of draws, as ArviZ draws them (`tests/present/test_figures.py` compares the two).

Counts on a fine grid, mirrored at both ends, are smoothed by a normal kernel. Its width is the mean of Silverman's rule
and of the improved Sheather-Jones rule (Botev, Grotowski and Kroese, 2010).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

GRID = 512  # bins, as ArviZ has them
MIRRORED = GRID // 5  # of them that are mirrored at each end
STAGES = 7  # of the improved Sheather-Jones rule, as its authors choose


def smoothed(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Midpoints of a grid and the density there; the values must be finite and not all equal."""
    low, high = values.min(), values.max()
    counts, edges = np.histogram(values, bins=GRID, range=(low, high))
    step = edges[1] - edges[0]
    rule = _silverman(values)
    width = 0.5 * (rule + _sheather_jones(counts, rule / (high - low)) * (high - low)) / step
    reach = int(np.ceil(4.0 * width))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    wide = np.concatenate([counts[MIRRORED - 1 :: -1], counts, counts[: -MIRRORED - 1 : -1]])
    whole = np.convolve(wide, kernel)[reach : reach + len(wide)]
    height = whole[MIRRORED : MIRRORED + GRID]
    return 0.5 * (edges[1:] + edges[:-1]), height / (height.sum() * step)


def _silverman(values: np.ndarray) -> float:
    low, high = np.quantile(values, [0.25, 0.75])
    return 0.9 * min(np.std(values), (high - low) / 1.34) * len(values) ** -0.2


def _sheather_jones(counts: np.ndarray, otherwise: float) -> float:
    """The width over the range; ``otherwise`` where the rule has no answer."""
    n, size = counts.sum(), len(counts)
    folded = np.concatenate([counts[::2], counts[size - 1 : 0 : -2]]) / n
    turned = 2.0 * np.exp(-0.5j * np.pi * np.arange(1, size) / size) * np.fft.fft(folded)[1:]
    square = np.arange(1, size) ** 2.0
    power = np.real(turned) ** 2

    def excess(time: float) -> float:
        return time - _next(time, n, square, power)

    root = _root(excess, 0.0, 0.01)
    return otherwise if root is None else float(np.sqrt(root))


def _next(time: float, n: int, square: np.ndarray, power: np.ndarray) -> float:
    """What a squared width implies for itself: equation (30) of Botev and others."""
    norm = 0.0
    for stage in range(STAGES, 1, -1):
        if stage < STAGES:
            odd = np.prod(np.arange(1.0, 2.0 * stage, 2.0)) / np.sqrt(np.pi / 2.0)
            time = ((1.0 + 0.5 ** (stage + 0.5)) / 3.0 * odd / (n * norm)) ** (2.0 / (3.0 + 2.0 * stage))
        norm = 0.5 * np.pi ** (2.0 * stage) * np.sum(square**stage * power * np.exp(-square * np.pi**2 * time))
    return float((2.0 * n * np.sqrt(np.pi) * norm) ** -0.4)


def _root(function: Callable[[float], float], low: float, high: float) -> float | None:
    """A root between two points by false position (the Illinois rule); None where the function has one sign at both."""
    at_low, at_high = function(low), function(high)
    if not at_low * at_high < 0.0:
        return None
    for _ in range(100):
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        at = function(middle)
        if at * at_high < 0.0:
            low, at_low = high, at_high
        else:
            at_low *= 0.5
        if abs(high - middle) < 1e-14 or at == 0.0:
            return middle
        high, at_high = middle, at
    return high
