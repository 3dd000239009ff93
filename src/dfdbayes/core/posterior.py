"""The generalised posterior as a log density in coordinates z: pi exp(-beta D_n), or pi exp(-D_c) with D_c calibrated.

Both are pi(theta) exp(-beta D_n(m + C (y - m)) - l . (y - m)) in the minimiser's coordinates y; one weight for all
directions means that C is the identity and l is zero (see `calibration`).

Losses are calibrated and sampled on both sides of the edges of supports, and draws brought back onto the support. An
interaction that may not be negative is estimated next to zero as often as not. Were its posterior cut off there, all
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

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError
from .calibration import Calibration, Curvature
from .minimise import Minimum, interior
from .model import AbstractModel
from .objective import Objective, Problem, chain_rule, second_order_of
from .parameters import Space, require_name
from .terms import SecondOrder, second_order


class Inputs(NamedTuple):
    """All that may change without compiling anew: data, priors, weight and limits; no stretch is the identity."""

    terms: Any
    weights: Any
    priors: dict[str, Any]
    beta: Any
    centre: Any
    stretch: Any
    tilt: Any
    lower: Any
    upper: Any


@partial(jax.jit, static_argnums=0)
def _prior_at_z(space: Space, z: Array, priors: dict[str, Any]) -> SecondOrder:
    return second_order(lambda z: space.log_prior(space.v_of_z(z), priors) + space.log_jacobian(z), z)


@dataclass(frozen=True)
class LogPosterior:
    """log pi(v(z)) + log |d v / d z| - beta D_n(m + C (y - m)) - l . (y - m); minus infinity outside the limits.

    The limits are of the point at which the loss is taken; a limit that is the edge of the support is none there.
    """

    problem: Problem
    space: Space

    def fold(self, z: np.ndarray) -> np.ndarray:
        """One of the points with the same density: the signs of roots mean nothing."""
        return self.space.fold(z)

    def straighten(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates in which an edge does not stretch what is next to it, and the log of how they stretch z."""
        return self.space.straighten(z)

    def bend(self, s: np.ndarray) -> np.ndarray:
        """Back to z; not a number where there is none."""
        return self.space.bend(s)

    def __call__(self, z: Float[Array, " p"], inputs: Inputs) -> Float[Array, ""]:
        return self.many(z[None], inputs, 1)[0]

    def many(self, z: Float[Array, "b p"], inputs: Inputs, at_once: int) -> Float[Array, " b"]:
        """The log density at many points, the loss at ``at_once`` of them side by side."""
        space = self.space
        away = jax.vmap(lambda z: space.y_of_z(z) - inputs.centre)(z)
        at = inputs.centre[None, :] + (away if inputs.stretch is None else away @ inputs.stretch.T)

        def loss(point: Array) -> Array:
            return self.problem.value(space.from_y(point), inputs.terms, inputs.weights)

        def prior(z: Array) -> Array:
            return space.log_prior(space.v_of_z(z), inputs.priors) + space.log_jacobian(z)

        losses = loss(at[0])[None] if len(z) == 1 else jax.lax.map(loss, at, batch_size=at_once)
        log_density = jax.vmap(prior)(z) - inputs.beta * losses - away @ inputs.tilt
        inside = jnp.all((at > inputs.lower[None, :]) & (at < inputs.upper[None, :]), axis=1) & jnp.isfinite(
            log_density
        )
        return jnp.where(inside, log_density, -jnp.inf)

    def second_order(self, z: Float[np.ndarray, " p"], inputs: Inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Value, gradient and Hessian, on the host: only the loss and the prior are compiled."""
        space = self.space
        value, gradient, hessian = map(np.asarray, _prior_at_z(space, z, inputs.priors))
        with np.errstate(all="ignore"):  # a step may lead beyond all numbers, and is not taken then
            away = space.y_of_z(z) - inputs.centre
            at = inputs.centre + (away if inputs.stretch is None else inputs.stretch @ away)
            loss = second_order_of(self.problem, space.from_y(at), inputs.terms, inputs.weights)
            pull, bend = chain_rule(loss, *space.slopes_of_y(at))[1:]
            first, second = space.slopes_to_y(z)
            if inputs.stretch is not None:
                pull, bend = inputs.stretch.T @ pull, inputs.stretch.T @ bend @ inputs.stretch
            pull, bend = inputs.beta * pull + inputs.tilt, inputs.beta * bend
            log_density = value - inputs.beta * loss[0] - inputs.tilt @ away
            inside = np.all((at > inputs.lower) & (at < inputs.upper)) & np.isfinite(log_density)
            return (
                np.where(inside, log_density, -np.inf),
                gradient - first * pull,
                hessian - first[:, None] * bend * first[None, :] - np.diag(second * pull),
            )


def posterior(
    objective: Objective, weight: float | Calibration, minimum: Minimum
) -> tuple[LogPosterior, Inputs, np.ndarray]:
    """The log density, its inputs, and a point inside to start from.

    The loss is taken in the box in which its minimum was sought: where it is unbounded below, only a bounded parameter
    space gives a proper posterior.
    """
    space = objective.space
    shape = weight.curvature if isinstance(weight, Calibration) else None
    beta = weight.beta if isinstance(weight, Calibration) else float(weight)
    lower, upper = minimum.box_at_y(space)
    edges = space.edges
    p = space.size
    inputs = Inputs(
        objective.terms,
        objective.own_weights,
        space.prior_values,
        np.asarray(float(beta)),
        np.zeros(p) if shape is None else shape.centre,
        None if shape is None or shape.even else shape.stretch,
        np.zeros(p) if shape is None else shape.tilt,
        np.where(lower <= edges[0], -np.inf, lower),
        np.where(upper >= edges[1], np.inf, upper),
    )
    start = minimum.vector if shape is None else space.from_y(shape.centre)
    return LogPosterior(objective.problem, space), inputs, space.to_z(interior(space, start))


def where_taken(objective: Objective, weight: Calibration, theta: np.ndarray) -> np.ndarray:
    """The parameters at which the loss of a posterior is evaluated for draws ``theta``."""
    space, shape = objective.space, weight.curvature
    if shape is None:
        return theta
    return space.from_y(shape.centre + (space.to_y(theta) - shape.centre) @ shape.stretch.T)


def named_draws(model: AbstractModel, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Draws by name in the units of the data, with the model's derived quantities after its parameters."""
    named = model.space.unflatten(model.space.to_data_scale(theta))
    more = {} if model.derived is None else _derived(model, named)
    for name in more:
        require_name(name, "derived quantity")
        if name in named:
            raise ModelError(
                f"derived returns '{name}', which is a parameter: call the derived quantity something else"
            )
    return named | more


def _derived(model: AbstractModel, named: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the model's own function makes of copies of the draws, as numbers for every draw."""
    assert model.derived is not None
    axes = next(iter(named.values())).shape[:2]
    try:
        found = {name: np.asarray(values) for name, values in dict(model.derived(_copies(named))).items()}
    except Exception as problem:
        raise ModelError(f"derived of '{model.name}' ended with {type(problem).__name__}: {problem}") from problem
    for name, values in found.items():
        if values.shape[:2] != axes or values.dtype.kind not in "biuf":
            raise ModelError(
                f"derived returns '{name}' with shape {values.shape} and type {values.dtype}; it must be numbers, one "
                f"for each chain and draw {axes}"
            )
    return {name: values.astype(float) for name, values in found.items()}


def _copies(named: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.array(values) for name, values in named.items()}


ERRORS_BEYOND_EDGE = 2.0  # that an estimate may lie beyond an edge by chance: one side of a 95 % interval


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
    move first, by as much as brings the estimate within `ERRORS_BEYOND_EDGE` of it, and what goes with it follows.
    """
    if not space.beyond.any():
        return theta
    wide, held, low, high = _limits(space)
    y = wide.to_y(theta)
    sd = np.sqrt(np.diag(shape.covariance))
    centre = np.median(y.reshape(1, -1, space.size), axis=1)
    y = (
        y
        + (
            _nearest(shape.covariance, centre, held, low - ERRORS_BEYOND_EDGE * sd, high + ERRORS_BEYOND_EDGE * sd)
            - centre
        )[0]
    )
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
