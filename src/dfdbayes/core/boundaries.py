"""Edges of supports: losses are calibrated and sampled on both sides of them, and draws brought back onto the support.

An interaction that may not be negative is estimated next to zero as often as not. Were its posterior cut off there, all
interactions that are zero would lie above it, and together they would push the intercepts up. So where losses are
defined beyond the edge, the posterior is that of the whole line, with the prior mirrored at the edge. Its draws are
brought back in two ways:

* each parameter by itself (`clipped`), which is what intervals of single parameters are made of: a draw beyond the edge
  becomes the edge, and no other parameter moves;
* all of them together (`projected`), for what depends on many at once, such as predictions: a draw becomes the nearest
  point of the support, near as the posterior measures it, so that what goes with a parameter follows it (posterior
  projection: Dunson and Neelon, 2003; Sen, Patra and Dunson, 2022).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from .curvature import Curvature
from .minimise import Minimum
from .objective import Objective
from .parameters import Space

NOISE = 2.0  # standard deviations that an estimate may lie beyond an edge by chance: one side of a 95 % interval


def beyond(objective: Objective, minimum: Minimum) -> tuple[Objective, Minimum]:
    """The same loss on the whole line where it is defined there, and the box of its search as wide beyond the edge."""
    own, wide = objective.space, objective.space.continued
    if wide == own:
        return objective, minimum
    at_lower, at_upper = own.beyond & np.isfinite(own.lower), own.beyond & np.isfinite(own.upper)
    with np.errstate(invalid="ignore"):
        lower = np.where(at_lower, 2.0 * own.lower - minimum.upper, minimum.lower)
        upper = np.where(at_upper, 2.0 * own.upper - minimum.lower, minimum.upper)
    return objective.within(wide), replace(minimum, lower=lower, upper=upper)


def clipped(space: Space, shape: Curvature, theta: Float[np.ndarray, "*batch p"]) -> np.ndarray:
    """Draws of the whole line, each parameter at its edge where it is beyond.

    Where data contradict the support, an estimate lies beyond the edge by more than chance explains. Then all draws
    move first, by as much as brings the estimate within `NOISE` of the edge, and what goes with it follows.
    """
    if not space.beyond.any():
        return theta
    wide, held, low, high = _limits(space)
    y = wide.to_y(theta)
    sd = np.sqrt(np.diag(shape.covariance))
    centre = np.median(y.reshape(1, -1, space.size), axis=1)
    y = y + (_nearest(shape.covariance, centre, held, low - NOISE * sd, high + NOISE * sd) - centre)[0]
    return wide.from_y(np.clip(y, low, high))


def projected(space: Space, shape: Curvature, theta: Float[np.ndarray, "*batch p"]) -> np.ndarray:
    """Draws of the whole line, each moved to the nearest point of the support."""
    wide, held, low, high = _limits(space)
    y = wide.to_y(theta).reshape(-1, space.size)
    return wide.from_y(np.clip(_nearest(shape.covariance, y, held, low, high), low, high)).reshape(theta.shape)


def _limits(space: Space) -> tuple[Space, np.ndarray, np.ndarray, np.ndarray]:
    """The continued parameters, which entries must be brought back, and between which limits."""
    low, high = np.where(space.beyond, space.lower, -np.inf), np.where(space.beyond, space.upper, np.inf)
    return space.continued, np.flatnonzero(space.beyond), low, high


def _nearest(
    covariance: np.ndarray, points: np.ndarray, held: np.ndarray, low: np.ndarray, high: np.ndarray
) -> Float[np.ndarray, "n p"]:
    """For each row the nearest one whose coordinates ``held`` lie between ``low`` and ``high``.

    Accelerated projected gradients in those coordinates, all rows at once; the others follow by regression.
    """
    outside = np.flatnonzero(((points < low) | (points > high))[:, held].any(axis=1))
    if not len(outside):
        return points
    inner = covariance[np.ix_(held, held)]
    scale = np.sqrt(np.diag(inner))
    metric = np.linalg.inv(inner / scale / scale[:, None])
    step = 1.0 / np.linalg.eigvalsh(metric)[-1]
    low, high, wanted = low[held] / scale, high[held] / scale, points[np.ix_(outside, held)] / scale
    at = ahead = np.clip(wanted, low, high)
    momentum = 1.0
    for _ in range(2000):
        new = np.clip(ahead - step * (ahead - wanted) @ metric, low, high)
        if np.sum((ahead - new) * (new - at)) > 0.0:  # past the lowest point: begin again from here
            momentum = 1.0
        grown = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = new + (momentum - 1.0) / grown * (new - at)
        change, at, momentum = np.abs(new - at).max(), new, grown
        if change < 1e-6:  # standard deviations
            break
    found = points.copy()
    found[outside] += np.linalg.solve(inner, ((at - wanted) * scale).T).T @ covariance[held]
    return found
