"""How far each observation moves the estimates: one Newton step from the fit with it to the fit without it.

Leaving an observation with gradient g out moves the minimiser by H^-1 g, to first order. The posterior is that of the
calibrated loss, whose gradient is G H^-1 g with G its information: its centre moves by (G + P)^-1 G H^-1 g, with P
the prior's precision.

How much that is, is measured by the standard error that the *other* observations give: a calibrated standard error s
has seen the observation too, and one that decides everything moves an estimate by s, however far it moves it. Without
it the squared error is s^2 less the squared shift.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ..data.sites import ROWS, rows_of
from ..errors import SettingError
from .calibration import Calibration
from .edges import beyond
from .minimise import Minimum, evaluate, interior, prior_at_y
from .objective import Objective

LEAST = 1e-4  # of a squared standard error, that is left where an observation decides all
FEW = 2**20  # numbers, up to which every fit computes them


def require_rows(objective: Objective) -> None:
    """Influence is that of rows that could have been left out."""
    if objective.incomplete is not None:
        raise SettingError("the influence of rows is not known where entries are missing; use missing='drop'")
    if not objective.model.independent or objective.data.n < 2:
        raise SettingError("there is one observation, and nothing to leave out: rows have no influence of their own")


def is_quick(objective: Objective) -> bool:
    """Whether what each row does is found at once."""
    few = len(objective.data.rows) * objective.space.size <= FEW
    return few and objective.rowwise and not objective.elsewhere


def shifts(
    objective: Objective, minimum: Minimum, calibration: Calibration
) -> tuple[Float[np.ndarray, "u p"], Float[np.ndarray, "u p"]]:
    """What one observation of every distinct row does to each parameter: the change, and that in standard errors.

    The change is that from the estimate without it to the estimate with it.
    """
    require_rows(objective)
    shape, beta = calibration.curvature, calibration.beta
    wide = beyond(objective, minimum)[0] if shape is not None else objective
    space = wide.space
    y = shape.centre if shape is not None else space.to_y(interior(space, minimum.vector))
    slope = space.slopes_of_y(y)[0]
    lines = _lines(objective, np.asarray(space.from_y(y))) * slope
    if shape is not None:
        covariance = shape.covariance
        inner = np.linalg.lstsq(shape.information, shape.stretch.T @ lines.T)[0]
        lines = (shape.information @ shape.stretch @ inner).T
    else:
        covariance = np.linalg.pinv(beta * evaluate(wide, y)[2] - prior_at_y(space, y)[2], hermitian=True)
    moved = -beta * (lines @ covariance)
    own = np.where(shape is not None, moved**2, 0.0)
    variance = np.diag(covariance)
    return moved * slope, moved / np.sqrt(np.maximum(variance - own, LEAST * variance))


def _lines(objective: Objective, theta: np.ndarray) -> Float[np.ndarray, "u p"]:
    """The gradient of one observation of every distinct row."""
    own = objective.data
    each = (own.counts / own.observations)[:, None]
    by_row = (
        objective if objective.units.kind == ROWS else Objective(objective.model, own, objective.loss, rows_of(own))
    )
    if by_row.rowwise or not objective.loss.separable:
        return by_row.unit_gradients(theta) * each
    parts = [own.at(np.arange(first, min(first + 2**14, len(own.rows)))) for first in range(0, len(own.rows), 2**14)]
    found = [Objective(objective.model, part, objective.loss).unit_gradients(theta) for part in parts]
    return np.concatenate(found) * each
