"""How far each observation moves the estimates, and what clusters of them are worth.

Leaving one out is one Newton step from the fit with it to the fit without it.

Leaving an observation with gradient g out moves the minimiser by H^-1 g, to first order. The posterior is that of the
calibrated loss, whose gradient is G H^-1 g with G its information: its centre moves by (G + P)^-1 G H^-1 g, with P
the prior's precision.

How much that is, is measured by the standard error that the *other* observations give: a calibrated standard error s
has seen the observation too, and one that decides everything moves an estimate by s, however far it moves it. Without
it the squared error is less by the observation's share of all squared changes, of which s^2 is the sum where every
direction of the loss has a weight of its own. (Where parameters are many those weights are drawn together, and s^2 may
be less than a single squared change.) An estimate beyond the end of its support counts as the end.

One step is an approximation, and a poor one for the very observations that matter: `refitted` leaves them out in fact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from ..errors import DfdbayesError, SettingError
from .calibration import Calibration, curvature
from .dataset import CLUSTERS, ROWS, WINDOWS, clusters_of, rows_of, windows_of
from .linalg import sandwich
from .minimise import Minimum, evaluate, interior, minimise, prior_at_y, require
from .objective import Objective
from .posterior import beyond


def require_rows(objective: Objective) -> None:
    """Influence is that of rows that could have been left out."""
    objective.require_rows()
    if not objective.model.independent or objective.data.n < 2:
        raise SettingError("there is one observation, and nothing to leave out: rows have no influence of their own")


def is_quick(objective: Objective) -> bool:
    """Whether what each row does is found at once."""
    few = len(objective.data.rows) * objective.space.size <= 2**20
    return few and objective.rowwise and not objective.elsewhere


def shifts(
    objective: Objective, minimum: Minimum, calibration: Calibration
) -> tuple[Float[np.ndarray, "u p"], Float[np.ndarray, "u p"]]:
    """What one observation of every distinct row does to each parameter: the change, and that in standard errors.

    The change is that from the estimate without it to the estimate with it, by one step.
    """
    require_rows(objective)
    shape = calibration.curvature
    space = (objective if shape is None else beyond(objective, minimum)[0]).space
    y, covariance = _estimate(objective, minimum, calibration)
    slope = space.slopes_of_y(y)[0]
    lines = _lines(objective, np.asarray(space.from_y(y))) * slope
    if shape is not None:
        inner = np.linalg.lstsq(shape.information, shape.stretch.T @ lines.T)[0]
        lines = (shape.information @ shape.stretch @ inner).T
    moved = -calibration.beta * (lines @ covariance)
    variance, share = np.diag(covariance), np.zeros_like(moved)
    if shape is not None:
        share = moved**2 / np.maximum(objective.data.observations @ moved**2, variance)
    moved = _supported(objective, y) - _supported(objective, y - moved)
    return moved * slope, moved / np.sqrt(
        variance * np.maximum(1.0 - share, 1e-4)
    )  # where one observation decides all, something is left


def refitted(
    objective: Objective, minimum: Minimum, calibration: Calibration, row: int
) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]] | None:
    """The same for one observation of one distinct row, by a fit without it; None where there is no such fit."""
    space = (objective if calibration.curvature is None else beyond(objective, minimum)[0]).space
    y, _ = _estimate(objective, minimum, calibration)
    less = _without(objective, row)
    try:
        if calibration.curvature is None:
            around, found = require(minimise(less, minimum.vector), less), calibration
        else:
            around, found = minimum, replace(calibration, curvature=curvature(*beyond(less, minimum)))
        without, covariance = _estimate(less, around, found)
    except DfdbayesError:
        return None
    with_it, without = _supported(objective, y), _supported(objective, without)
    change = np.asarray(space.from_y(with_it)) - np.asarray(space.from_y(without))
    return change, (with_it - without) / np.sqrt(np.diag(covariance))


def _estimate(objective: Objective, minimum: Minimum, calibration: Calibration) -> tuple[np.ndarray, np.ndarray]:
    """Where the posterior is highest, in the minimiser's coordinates, and the covariance there."""
    shape, space = calibration.curvature, objective.space
    if shape is not None:
        return shape.centre, shape.covariance
    y = space.to_y(interior(space, minimum.vector))
    precision = calibration.beta * evaluate(objective, y)[2] - prior_at_y(space, y)[2]
    return y, np.linalg.pinv(precision, hermitian=True)


def _supported(objective: Objective, y: np.ndarray) -> np.ndarray:
    """Estimates, those beyond the end of a support at the end."""
    space = objective.space
    low, high = np.where(space.beyond, space.lower, -np.inf), np.where(space.beyond, space.upper, np.inf)
    return np.clip(y, low, high)


def _without(objective: Objective, row: int) -> Objective:
    """The loss on the data without one observation of a distinct row."""
    data, kind = objective.data, objective.units.kind
    if data.observations[row] < 1.5:  # the last one: numbers of observations are whole
        data = data.at(np.delete(np.arange(len(data.rows)), row))
    else:
        one = np.arange(len(data.rows)) == row
        counts = data.counts - one * data.counts[row] / data.observations[row]
        data = replace(data, counts=counts, repeats=None if data.repeats is None else data.repeats - one)
    units = None
    if kind == CLUSTERS:
        units = clusters_of(data)
    if kind == WINDOWS:
        units = windows_of(data, objective.units.length)
    return Objective(objective.model, data, objective.loss, units)


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


@dataclass(frozen=True)
class ClusterSummary:
    """Clusters of rows and what they are worth.

    Attributes
    ----------
    number : int
    smallest, median, largest : float
        Observations in a cluster.
    rows : float
        Observations in all.
    worth : float
        How many independent observations would tell as much, over all parameters: the observations divided by the
        mean design effect (Kish, 1965).
    design_effect : dict
        By parameter: its variance by clusters over the one that independent rows would have.
    """

    number: int
    smallest: float
    median: float
    largest: float
    rows: float
    worth: float
    design_effect: dict[str, float]

    def __str__(self) -> str:
        return (
            f"{self.rows:.0f} observations in {self.number} clusters of {self.smallest:.0f} to {self.largest:.0f} "
            f"(median {self.median:.0f}); they tell as much as {self.worth:.0f} independent ones would"
        )


def summarised(objective: Objective, theta: Any) -> ClusterSummary | None:
    """The clusters of an objective; None where rows are independent."""
    units = objective.units
    if units.kind != CLUSTERS or units.owner is None:
        return None
    data = objective.observed
    sizes = np.bincount(units.owner, weights=data.observations)
    hessian = objective.hessian(theta)
    alone = objective.by_rows().moments(theta)
    apart, together = (
        np.diag(sandwich(hessian, squares - np.outer(total, total) / size))
        for size, total, squares in (alone, objective.moments(theta))
    )
    effects = together / np.maximum(apart, 1e-300)
    rows = float(sizes.sum())
    return ClusterSummary(
        len(sizes), float(sizes.min()), float(np.median(sizes)), float(sizes.max()), rows,
        rows / max(float(np.mean(effects)), 1e-300), dict(zip(objective.space.names, map(float, effects), strict=True)),
    )  # fmt: skip
