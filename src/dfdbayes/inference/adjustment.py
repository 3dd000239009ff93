"""An affine adjustment of draws: every direction gets its own width.

One weight beta cannot give all directions of a posterior their width. Here draws are moved about their own mean, in
unconstrained coordinates, so that their covariance becomes that of the estimator: as the bootstrap shows it
(``"bootstrap"``), or by the sandwich formula from the loss's derivatives (``"sandwich"``).
"""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Float
from scipy.stats import chi2

from ..errors import CalibrationError
from .calibration import Calibration, information
from .minimise import Minimum, Outcome
from .objective import Objective

METHODS = ("bootstrap", "sandwich")
FAR = 0.95  # draws are moved only if their centre lies in the estimator's region of this level


def adjusted(
    z: Float[np.ndarray, "chains draws p"],
    objective: Objective,
    minimum: Minimum,
    calibration: Calibration,
    method: str | None,
) -> Float[np.ndarray, "chains draws p"]:
    """Draws with the estimator's covariance; the draws themselves if ``method`` is None."""
    if method is None:
        return z
    space = objective.model.space
    if minimum.outcome is Outcome.BOUNDARY:
        raise CalibrationError(
            f"the minimiser lies on the boundary of {', '.join(minimum.edges[:3])}, where draws cannot be adjusted. "
            "What to do: leave out adjust."
        )
    wanted = _bootstrap(objective, calibration) if method == "bootstrap" else _sandwich(objective, minimum)
    folded = space.fold(z)
    present = np.cov(folded.reshape(-1, space.size).T).reshape(space.size, space.size)
    try:
        scale = np.sqrt(np.diag(wanted))
        if np.linalg.cond(wanted / scale / scale[:, None]) > 1e12:
            raise np.linalg.LinAlgError
        move = np.linalg.cholesky(wanted) @ np.linalg.inv(np.linalg.cholesky(present))
    except np.linalg.LinAlgError:
        raise CalibrationError(
            "the estimator's covariance is singular, so draws cannot be adjusted. What to do: more bootstrap fits "
            f"than parameters ({space.size}), or leave out adjust."
        ) from None
    centre = folded.reshape(-1, space.size).mean(axis=0)  # which knows the prior; the minimiser does not
    gap = centre - space.fold(space.to_z(minimum.vector))
    if gap @ np.linalg.solve(wanted, gap) > chi2.ppf(FAR, space.size):
        raise CalibrationError(
            "the posterior's centre lies outside the estimator's 95 % region about the minimiser: the prior decides "
            "where the draws are, and the estimator's width says nothing about them there. What to do: leave out "
            "adjust, widen the prior, or use loss='ratio', whose weight is seldom near zero."
        )
    return centre + (folded - centre) @ move.T


def _bootstrap(objective: Objective, calibration: Calibration) -> Float[np.ndarray, "p p"]:
    usable = np.isin(calibration.outcomes, (Outcome.CONVERGED, Outcome.BOUNDARY))
    if usable.sum() < 2:
        raise CalibrationError(
            f"adjust='bootstrap' needs bootstrap minimisers, and there are {int(usable.sum())}. What to do: "
            "more data, or adjust='sandwich'."
        )
    space = objective.model.space
    with np.errstate(divide="ignore"):
        points = space.to_z(calibration.minimisers[usable])
    if not np.isfinite(points).all():
        raise CalibrationError(
            "some bootstrap minimisers lie on a boundary, where draws cannot be adjusted. What to do: leave out adjust."
        )
    if len(points) < space.size + 2:
        raise CalibrationError(
            f"adjust='bootstrap' estimates the covariance of {space.size} parameters, and {len(points)} bootstrap fits "
            f"are too few. What to do: bootstrap={10 * space.size} or more, or leave out adjust."
        )
    # Each variance is right as it is. Hotelling's factor would mend the joint region alone, and at the cost of every
    # interval: it grows without bound as the parameters approach the bootstrap fits in number.
    return np.cov(points.T).reshape(space.size, space.size)


def _sandwich(objective: Objective, minimum: Minimum) -> Float[np.ndarray, "p p"]:
    space = objective.model.space
    z = space.to_z(minimum.vector)
    slope = np.asarray(jax.jvp(space.from_z, (z,), (np.ones_like(z),))[1])  # each theta depends on its own z alone
    _, squares = information(objective, minimum.vector)
    hessian = objective.hessians_at_z(z[None], objective.units.weights[None])[0]
    if np.linalg.cond(hessian) > 1e14:
        raise CalibrationError(
            "the loss's Hessian is singular at its minimiser, so the sandwich formula has no answer. What to do: use "
            "adjust='bootstrap', or leave out adjust."
        )
    bread = np.linalg.inv(hessian)
    return bread @ (slope[:, None] * squares * slope[None, :]) @ bread
