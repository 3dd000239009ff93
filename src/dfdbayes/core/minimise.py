"""The minimum of a loss, and how sure that is; minima of resampled data are found by `replicates`.

Projected Newton steps with Levenberg-Marquardt damping, inside a box around a consistent start.
The box matters: some losses have no global minimum (the empirical discrete Fisher divergence can
fall without bound far from the data), and what is wanted is the local minimum in the basin of a consistent
start. Every run ends with an `Outcome`, never with a bare number.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float
from scipy.special import expit

from .._util.resources import require_unforked
from ..errors import MinimiserError
from .dataset import far_values
from .linalg import free_of, is_positive, newton
from .losses import RATIO
from .losses.base import AbstractLoss
from .objective import Objective, chain_rule
from .parameters import Named, Space
from .terms import SecondOrder, second_order

WANTED_GRADIENT = 1e-11  # the loop stops at this gradient per observation,
SUFFICIENT_GRADIENT = 1e-8  # and one that stops earlier, for want of digits, counts as converged below this
MAX_MOVE = 7.0  # how far log and logit coordinates may move from the start: a factor of about 1100


class Outcome(StrEnum):
    """How a minimisation ended."""

    CONVERGED = "converged"
    BOUNDARY = "at the boundary"
    ESCAPED = "escaped"
    FAILED = "failed"


@dataclass(frozen=True)
class Minimum:
    """Where the loss is smallest, and how sure that is.

    Attributes
    ----------
    theta : dict
        The minimiser by name; ``vector`` is the same, flat.
    value : float
        D_n at the minimiser.
    gradient_norm : float
        Euclidean norm of the gradient of D_n there (of its projection, at a boundary).
    outcome : Outcome
    bounds : dict
        The box the search was kept in, by name.
    """

    theta: Named
    names: tuple[str, ...]
    vector: Float[np.ndarray, " p"]
    value: float
    gradient_norm: float
    outcome: Outcome
    iterations: int
    edges: tuple[str, ...]
    lower: Float[np.ndarray, " p"]
    upper: Float[np.ndarray, " p"]

    def __repr__(self) -> str:
        shown = ", ".join(f"{n} = {v:.5g}" for n, v in zip(self.names[:8], self.vector, strict=False))
        more = f" and {len(self.names) - 8} more" if len(self.names) > 8 else ""
        return f"Minimum at {shown}{more}: {self.message}"

    def box_at_y(self, space: Space) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]]:
        """The box the search was kept in, in the minimiser's coordinates."""
        lower, upper = np.sort(space.to_y(np.stack([self.lower, self.upper])), axis=0)
        return lower, upper

    @property
    def usable(self) -> bool:
        """Whether it is a minimum: converged, inside or at the boundary."""
        return self.outcome in (Outcome.CONVERGED, Outcome.BOUNDARY)

    def is_smallest(self, loss: AbstractLoss | None) -> bool:
        """Whether the loss is smallest here; a bounded one that falls to the end of a range (nu to 0) is so there."""
        return self.usable or (loss is not None and loss.bounded and self.outcome is Outcome.ESCAPED)

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        return {
            name: (float(low), float(high)) for name, low, high in zip(self.names, self.lower, self.upper, strict=True)
        }

    @property
    def message(self) -> str:
        """The outcome as a sentence."""
        if self.outcome is Outcome.CONVERGED:
            return f"converged in {self.iterations} steps, gradient norm {self.gradient_norm:.1e}"
        if self.outcome is Outcome.BOUNDARY:
            return f"converged at the boundary of {_listed(self.edges)}"
        if self.outcome is Outcome.ESCAPED:
            return f"escaped: {_listed(self.edges)} ran into the limits of the search, where the loss still falls"
        return f"no minimum found in {self.iterations} steps (gradient norm {self.gradient_norm:.1e})"


@dataclass(frozen=True)
class Minima:
    """Minimisers under many weights: one row each."""

    vectors: Float[np.ndarray, "b p"]
    values: Float[np.ndarray, " b"]
    gradient_norms: Float[np.ndarray, " b"]
    outcomes: tuple[Outcome, ...]

    @property
    def usable(self) -> np.ndarray:
        """Which of them are minima: converged, inside or at the boundary."""
        return np.array([o in (Outcome.CONVERGED, Outcome.BOUNDARY) for o in self.outcomes])

    @property
    def tally(self) -> dict[str, int]:
        return {str(outcome): count for outcome, count in Counter(self.outcomes).items()}


@partial(jax.jit, static_argnums=0)
def _prior_at_y(space: Space, y: Array, priors: dict[str, Any], soft: Array) -> SecondOrder:
    return second_order(lambda y: space.log_prior_at_y(y, priors, soft), y)


def prior_at_y(space: Space, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Value, gradient and Hessian of the prior's log density at y.

    A little is added to squares, whose roots have no slope at zero.
    """
    soft = 1e-6 * space.prior_quantiles([0.84])[0] * space.square
    return tuple(map(np.asarray, _prior_at_y(space, y, space.prior_values, soft)))


def evaluate(objective: Objective, y: np.ndarray, beta: float | None = None) -> tuple[np.ndarray, ...]:
    """Value, gradient and Hessian at y on the full data, and d theta / d y: of the loss, or of beta D - log pi."""
    space = objective.space
    first, second = space.slopes_of_y(y)
    found = chain_rule(objective.second_order(space.from_y(y)), first, second)
    if beta is not None:
        return *(beta * a - b for a, b in zip(found, prior_at_y(space, y), strict=True)), np.abs(first)
    return *found, np.abs(first)


def box(space: Space, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The part of y-space around a start that a search may visit.

    Log and logit coordinates may move by `MAX_MOVE`; others by ten times the largest of 1, the
    start's size and the prior's standard deviation. Closed supports end where they end.
    """
    y = space.to_y(theta)
    transformed = ~space.closed & (np.isfinite(space.lower) | np.isfinite(space.upper))
    low, high = space.prior_quantiles([0.16, 0.84])
    spread = 0.5 * (high - low)
    reach = np.where(transformed, MAX_MOVE, 10.0 * np.maximum(np.maximum(1.0, np.abs(y)), spread))
    return np.maximum(y - reach, space.edges[0]), np.minimum(y + reach, space.edges[1])


def interior(space: Space, theta: Any, open_only: bool = False) -> np.ndarray:
    """Parameters away from the edges of the support; those that lie on one, or outside, move in a little.

    With ``open_only`` the edges of closed supports, where a minimum may lie, are left alone.
    """
    theta = np.asarray(theta)
    width = np.where(np.isfinite(space.upper - space.lower), space.upper - space.lower, 1.0)
    margin = np.where(space.square | (space.closed & open_only), 0.0, 1e-3 * width)
    inside = (theta > space.lower + 1e-3 * margin) & (theta < space.upper - 1e-3 * margin)  # however wide the support
    return np.where(inside, theta, np.clip(theta, space.lower + margin, space.upper - margin))


def first_guess(objective: Objective) -> np.ndarray:
    """A consistent start: the model's own, or the ratio-matching estimate from the prior's centre."""
    space = objective.space
    if objective.model.start is not None:
        return interior(space, space.flatten(objective.model.start(objective.data.thinned())), open_only=True)
    centre = interior(space, space.prior_quantiles([0.5])[0])
    if objective.loss == RATIO:
        return centre
    bounded = replace(objective, loss=RATIO)
    bounds = box(space, centre)
    found = judged(bounded, _search_one(bounded, space.to_y(centre), *bounds), *bounds)
    usable = found.outcomes[0] in (Outcome.CONVERGED, Outcome.BOUNDARY)
    return found.vectors[0] if usable else centre


class _Found(NamedTuple):
    vectors: np.ndarray
    values: np.ndarray
    gradient_norms: np.ndarray
    outcomes: tuple[Outcome, ...]
    iterations: np.ndarray
    y: np.ndarray


class Ends(NamedTuple):
    """Where searches ended, one row each."""

    y: np.ndarray
    values: np.ndarray
    gradient_norms: np.ndarray
    iterations: np.ndarray
    convex: np.ndarray


def _search_one(
    objective: Objective, y: np.ndarray, lower: np.ndarray, upper: np.ndarray, beta: float | None = None
) -> Ends:
    """Minimise on the data themselves; what ends on a saddle point is pushed off it and run again."""
    n = objective.size

    def at(y: np.ndarray) -> tuple[np.ndarray, ...]:
        return evaluate(objective, y, beta)

    y = np.clip(y, lower, upper)
    for _ in range(4):
        end = newton(at, y, lower, upper, WANTED_GRADIENT * n)
        y, free = end.y, free_of(end.y, end.gradient, lower, upper)
        norm = float(np.linalg.norm(np.where(free, end.gradient, 0.0) / at(y)[3]))
        convex = _is_convex(end.hessian, free)
        if convex or norm > SUFFICIENT_GRADIENT * n or not np.isfinite(end.value):
            break
        y = np.clip(y + 0.1 * np.linalg.eigh(end.hessian)[1][:, 0], lower, upper)
    return Ends(*(np.asarray(part)[None] for part in (end.y, end.value, norm, end.iterations, convex)))


def _is_convex(hessian: np.ndarray, free: np.ndarray) -> bool:
    at = np.flatnonzero(free)
    return is_positive(hessian[np.ix_(at, at)], -1e-10)  # a flat direction is no saddle


def judged(objective: Objective, ends: Ends, lower: np.ndarray, upper: np.ndarray) -> _Found:
    """How each search ended."""
    space, y = objective.space, ends.y
    small = ends.gradient_norms <= SUFFICIENT_GRADIENT * objective.size
    natural_low, natural_high = space.edges
    wall = ((y <= lower + 1e-9) & (lower > natural_low)) | ((y >= upper - 1e-9) & (upper < natural_high))
    edge = (y <= natural_low) | (y >= natural_high)
    outcomes = np.select(
        [~np.isfinite(ends.values), wall.any(axis=1), ~small | ~ends.convex, edge.any(axis=1)],
        [Outcome.FAILED, Outcome.ESCAPED, Outcome.FAILED, Outcome.BOUNDARY],
        Outcome.CONVERGED,
    )
    return _Found(space.from_y(y), ends.values, ends.gradient_norms, tuple(map(Outcome, outcomes)), ends.iterations, y)


def minimise(objective: Objective, start: Any = None) -> Minimum:
    """The minimum of an objective in the basin of a consistent start.

    Parameters
    ----------
    objective : Objective
    start : dict or vector, optional
        Where to begin; by default the model's consistent first guess.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> found = dfd.minimise(dfd.objective(dfd.models.Poisson(), [1, 2, 3]))
    >>> round(found.theta["rate"], 6), str(found.outcome)  # sum x^2 / sum (x + 1)
    (1.555556, 'converged')
    """
    require_unforked()
    space = objective.space
    begin = first_guess(objective) if start is None else interior(space, space.flatten(start), open_only=True)
    lower, upper = box(space, begin)
    found = judged(objective, _search_one(objective, space.to_y(begin), lower, upper), lower, upper)
    y, names = found.y[0], np.array(space.names)
    touching, theta = (y <= lower + 1e-9) | (y >= upper - 1e-9), space.unflatten(found.vectors[0])
    ends = space.from_y(np.stack([lower, upper]))
    return Minimum(
        theta={name: float(value) if value.ndim == 0 else value for name, value in theta.items()},
        names=space.names,
        vector=found.vectors[0],
        value=float(found.values[0]),
        gradient_norm=float(found.gradient_norms[0]),
        outcome=found.outcomes[0],
        iterations=int(found.iterations[0]),
        edges=tuple(str(name) for name in names[touching]),
        lower=np.minimum(*ends),
        upper=np.maximum(*ends),
    )


def mode(objective: Objective, beta: float, around: Minimum, start: np.ndarray) -> np.ndarray:
    """The mode of pi exp(-beta D) in the minimiser's coordinates, from a start in them.

    It exists for every proper prior where the loss is bounded below, though the loss itself may have no minimiser.
    """
    lower, upper = around.box_at_y(objective.space)
    return _search_one(objective, start, lower, upper, beta).y[0]


def require(minimum: Minimum, objective: Objective) -> Minimum:
    """The same minimum if it is one; otherwise an error that explains."""
    if minimum.usable:
        return minimum
    flat = flat_parameters(objective, minimum)
    if flat:
        raise MinimiserError(f"the loss has no usable minimum: {flatness(flat)}")
    remedy = _remedy(objective)
    if not objective.loss.bounded:
        remedy += "; or use loss='ratio', which is bounded below"
    raise MinimiserError(f"the loss has no usable minimum: {minimum.message}. What to do: {remedy}.")


def _remedy(objective: Objective) -> str:
    """What may be wrong with data whose loss has no minimum: a value far from all others, or too few values."""
    data = objective.data
    for name, row, value, others in far_values(data):
        return f"check row {row}, where '{name}' is {value} and elsewhere at most {others:.0f}"
    if len(data.rows) <= objective.space.size:
        few = f"{len(data.rows)} distinct rows are too few for {objective.space.size} parameters"
        return f"{few}: use a simpler model or more data"
    return "use a simpler model, a tighter prior, or more data"


def flat_parameters(objective: Objective, minimum: Minimum, least: float = 0.1) -> tuple[str, ...]:
    """Parameters that the loss hardly depends on.

    Such a parameter can move over the middle 90 % of its prior, and from there to the minimiser, with the loss changing
    by less than ``least``.
    """
    space = objective.space
    theta = interior(space, minimum.vector)
    ends = np.vstack([space.prior_quantiles([0.05, 0.95]), theta])
    grid = np.linspace(ends.min(axis=0), ends.max(axis=0), 9)
    _, _, hessian, slope = evaluate(objective, space.to_y(theta))
    curvature = np.abs(np.diagonal(hessian)) / slope**2
    suspects = np.flatnonzero(curvature * (grid[-1] - grid[0]) ** 2 < 100 * least)
    flat = []
    for i in suspects[:200]:
        moved = np.repeat(theta[None], len(grid), axis=0)
        moved[:, i] = interior(space, grid)[:, i]
        values = objective.values(moved)
        if np.isfinite(values).all() and np.ptp(values) < least:
            flat.append(space.names[i])
    return tuple(flat)


def flatness(names: tuple[str, ...]) -> str:
    """What to say about parameters that the loss hardly depends on."""
    return (
        f"the loss hardly depends on {_listed(names)}, so the data say nothing about it through this loss. "
        "Use another loss, fix the parameter, or gather data where it matters."
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


# -- starting points: small regressions on grouped data --------------------------------------------


def logistic(
    design: Float[np.ndarray, "m k"],
    ones: Float[np.ndarray, " m"],
    totals: Float[np.ndarray, " m"],
    ridge: float = 1e-3,
    offset: Float[np.ndarray, " m"] | float = 0.0,
) -> Float[np.ndarray, " k"]:
    """Coefficients of a logistic regression: ``ones`` of ``totals`` cases at each row of ``design``.

    A small ridge keeps separable data finite.
    """

    def evaluate(coefficients: np.ndarray) -> tuple[np.ndarray, ...]:
        odds = design @ coefficients + offset
        chance, penalty = expit(odds), ridge * coefficients
        value = totals @ np.logaddexp(0.0, odds) - ones @ odds + 0.5 * coefficients @ penalty
        hessian = (design * (totals * chance * (1.0 - chance))[:, None]).T @ design + ridge * np.eye(len(penalty))
        return value, design.T @ (totals * chance - ones) + penalty, hessian, np.ones_like(penalty)

    everywhere = np.full(design.shape[1], np.inf)
    return newton(evaluate, np.zeros(design.shape[1]), -everywhere, everywhere, 1e-10 * totals.sum()).y


def logarithmic(
    design: Float[np.ndarray, "m k"],
    values: Float[np.ndarray, " m"],
    weights: Float[np.ndarray, " m"],
    offset: Float[np.ndarray, " m"],
) -> Float[np.ndarray, " k"]:
    """Coefficients of a Poisson regression with the log link, by iterated weighted least squares.

    These, and not Newton's method of `newton`, as designs may be singular.
    """
    scale = np.maximum(np.abs(design).max(axis=0), 1e-300)
    matrix, mean = design / scale, values + 0.5
    for _ in range(25):
        response = np.log(mean) - offset + (values - mean) / mean
        root = np.sqrt(weights * mean)
        found = np.linalg.lstsq(matrix * root[:, None], response * root, rcond=None)[0]
        before, mean = mean, np.exp(np.clip(matrix @ found + offset, -30.0, 30.0))
        if np.abs(np.log(mean / before)).max() < 1e-8:
            break
    return found / scale
