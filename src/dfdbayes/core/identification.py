"""What the data leave to the prior: combinations of parameters, or the place of the whole posterior."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy import special
from scipy.sparse.csgraph import connected_components

from .calibration import Calibration
from .linalg import cholesky
from .minimise import Minimum, evaluate, interior, prior_at_y
from .objective import Objective

RIDGE = 1e-3  # least curvature in a direction, where that of every single parameter is scaled to 1
NONE = 1e-9  # of the same: below it is rounding
SHARE = 0.05  # of what is known in a direction, that the data should give
PART = 0.05  # of a direction, from which a parameter takes part in it
OUTSIDE = 0.01  # chance of estimates further from the minimiser than a posterior that the data do not contradict


def ridges(objective: Objective, minimum: Minimum, beta: float) -> list[list[str]]:
    """Groups of parameters of which the loss knows a combination only: along the others it is flat, and so is no prior.

    A direction counts where the loss bends far less than along its single parameters, and the prior more than the
    loss: then the prior alone tells these parameters apart.
    """
    space = objective.space
    y = space.to_y(interior(space, minimum.vector))
    hessian, precision = evaluate(objective, y)[2], -prior_at_y(space, y)[2]
    curvature = np.diag(hessian)
    free = np.flatnonzero((curvature > 0) & ~np.isin(space.names, minimum.edges))
    if len(free) < 2 or not (np.isfinite(hessian).all() and np.isfinite(precision).all()):
        return []
    scale = 1.0 / np.sqrt(curvature[free])
    scaled, prior = (part[np.ix_(free, free)] * scale * scale[:, None] for part in (hessian, precision))
    if cholesky(scaled - RIDGE * np.eye(len(free))) is not None:
        return []
    values, vectors = np.linalg.eigh(scaled)
    known = beta * np.where(values < NONE, 0.0, values)
    held = np.einsum("ik,ij,jk->k", vectors, prior, vectors)
    flat = vectors[:, (values < RIDGE) & (known <= SHARE * (known + np.abs(held)))]
    together = np.abs(flat @ flat.T) > PART
    groups = connected_components(together, directed=False)[1]
    members = [free[(groups == one) & together.any(axis=1)] for one in np.unique(groups)]
    return [[space.names[i] for i in group] for group in members if len(group) > 1]


def held_by_prior(
    objective: Objective, minimum: Minimum, calibration: Calibration, draws: Float[np.ndarray, "all p"]
) -> bool:
    """Whether the prior holds the posterior at parameters that the data contradict.

    The posterior mean is further from the minimiser than estimates vary, by the loss itself and by the information that
    it was calibrated to: either alone is misled, by weights that differ between directions or by a loss far from
    quadratic.
    """
    if not minimum.usable:
        return False
    space = objective.space
    y, mean = space.to_y(interior(space, minimum.vector)), space.to_y(draws).mean(axis=0)
    at, best = objective.values(np.stack([space.from_y(mean), minimum.vector]))
    further = 2.0 * calibration.beta * (at - best)
    if calibration.curvature is not None:
        away = mean - y
        further = min(further, away @ calibration.curvature.information @ away)
    return bool(further > special.chdtri(space.size, OUTSIDE))
