"""The discrete Fisher divergence of two mass functions, for tests and teaching."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ModelError
from ..domain import Domain


def divergence(p: Any, q: Any, domain: Domain | None = None) -> float:
    """DFD(p || q) of two mass functions on an enumerable domain, with its constant.

    Parameters
    ----------
    p, q : arrays
        One axis a coordinate; entry i of an axis is the coordinate's i-th value. Neither needs to be normalised.
    domain : Domain, optional
        Finite (wrap-around) axes by default. On half-lines and all integers the arrays are windows that hold
        all of q's mass: the first entry of a half-line's axis is its end.

    Returns
    -------
    float
        ``E_q |grad p / p - grad q / q|^2`` with the backward differences of the paper; categories have one to every
        other category.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> dfd.divergence([0.5, 0.5], [0.5, 0.5])
    0.0
    >>> round(dfd.divergence([0.25, 0.75], [0.5, 0.5]), 6)
    2.222222
    >>> colours = dfd.Categories(1, ["red", "green", "blue"])
    >>> round(dfd.divergence([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], colours), 6)
    4.254
    >>> round(dfd.divergence([0.3, 0.5, 0.2], [0.3, 0.2, 0.5], colours), 6)  # in another order
    4.254
    """
    p, q = np.asarray(p, float), np.asarray(q, float)
    if p.shape != q.shape or p.ndim == 0:
        raise ModelError(f"p has shape {p.shape} and q {q.shape}; they must be arrays over the same points")
    if (p < 0).any() or (q < 0).any() or p.sum() <= 0 or q.sum() <= 0:
        raise ModelError("mass functions must be non-negative, with a positive sum")
    if domain is None:
        wraps, moves = [True] * p.ndim, [1] * p.ndim
        if min(p.shape) < 2:
            raise ModelError(f"a finite axis needs at least two values, the arrays have shape {p.shape}")
    else:
        if domain.d != p.ndim:
            raise ModelError(f"the arrays have {p.ndim} axes, {domain!r} has {domain.d} coordinates")
        coordinates = [domain.coordinate(j) for j in range(domain.d)]
        wraps = [c.kind == "finite" and (len(c.levels) == 2 or not c.ordered) for c in coordinates]
        moves = [c.moves for c in coordinates]
        for j in range(domain.d):
            levels = domain.coordinate(j).levels
            if levels and len(levels) != p.shape[j]:
                raise ModelError(f"axis {j} has {p.shape[j]} entries, its coordinate {len(levels)} levels")
    seen = q > 0
    chance = q[seen] / q.sum()
    if (p[seen] <= 0).any():
        return float("inf")
    total = 0.0
    for axis, around in enumerate(wraps):
        for step in range(1, 1 + moves[axis]):
            p_before, q_before = (_decremented(mass, axis, step, wraps=around) for mass in (p, q))
            total += float(np.sum(chance * (p_before[seen] / p[seen] - q_before[seen] / q[seen]) ** 2))
    return total


def _decremented(mass: np.ndarray, axis: int, step: int, wraps: bool) -> np.ndarray:
    """The mass at the decrement along an axis; zero where that lies outside."""
    shifted = np.roll(mass, step, axis=axis)
    if not wraps:
        first = [slice(None)] * mass.ndim
        first[axis] = slice(0, 1)
        shifted[tuple(first)] = 0.0
    return shifted
