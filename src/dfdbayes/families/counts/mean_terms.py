"""A table of the Conway-Maxwell-Poisson family by its mean: polynomials from which its rate and its constant follow.

With the mean mu and s = log(1 + mu), the dual potential of the family, sup over eta of (eta mu - log Z(eta, nu)), is

    mu log mu - (1 + mu) s + nu ((1 + mu) s - mu) + s^2 psi(s, nu).

Its derivative in mu is the log rate eta, and log Z follows from both. What stands before psi is the potential of a
geometric distribution at nu = 0 and of Poisson's at nu = 1, where psi is zero. It is smooth, tends to limits where nu
or the mean tend to zero, and is bounded for large means: some hundred polynomials in two variables give ten digits.
They go through psi at Chebyshev's points of their patches, from sums over x, or from the expansion of Gaunt, Iyengar,
Olde Daalhuis and Simsek (2019) where nu times the mean is large.

Patches are arranged in sheets, each for a range of nu. The larger nu, the nearer to certain is a count whose mean is a
whole number k: psi has branch points at a distance of 2 (k / (k + 1))^(nu / 2) from there, and patches are the smaller.
So there is a largest nu, `TOP`: all that is left of a distribution there are the two or three numbers next to its mean.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
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
