"""The generalised posterior as a log density in coordinates z: pi exp(-beta D_n), or pi exp(-D_c) with D_c calibrated.

Both are pi(theta) exp(-beta D_n(m + C (y - m)) - l . (y - m)) in the minimiser's coordinates y; one weight for all
directions means that C is the identity and l is zero (see `curvature`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError
from ..models.base import AbstractModel
from ..models.parameters import require_name
from .calibration import Calibration
from .minimise import Minimum, interior
from .objective import Objective, Problem, second_order


class Inputs(NamedTuple):
    """All that may change without compiling anew: data, priors, weight and limits."""

    table: Any
    weights: Any
    priors: dict[str, Any]
    beta: Array
    centre: Float[Array, " p"]
    stretch: Float[Array, "p p"]
    tilt: Float[Array, " p"]
    lower: Float[Array, " p"]
    upper: Float[Array, " p"]


@dataclass(frozen=True)
class LogPosterior:
    """log pi(v(z)) + log |d v / d z| - beta D_n(m + C (y - m)) - l . (y - m); minus infinity outside the limits.

    The limits are of the point at which the loss is taken; a limit that is the edge of the support is none there.
    """

    problem: Problem

    def fold(self, z: np.ndarray) -> np.ndarray:
        """One of the points with the same density: the signs of roots mean nothing."""
        return self.problem.model.space.fold(z)

    def straighten(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates in which an edge does not stretch what is next to it, and the log of how they stretch z."""
        return self.problem.model.space.straighten(z)

    def bend(self, s: np.ndarray) -> np.ndarray:
        """Back to z; not a number where there is none."""
        return self.problem.model.space.bend(s)

    def __call__(self, z: Float[Array, " p"], inputs: Inputs) -> Float[Array, ""]:
        space = self.problem.model.space
        away = space.y_of_z(z) - inputs.centre
        at = inputs.centre + inputs.stretch @ away
        log_density = (
            space.log_prior(space.v_of_z(z), inputs.priors)
            + space.log_jacobian(z)
            - inputs.beta * self.problem.value(space.from_y(at), inputs.table, inputs.weights)
            - jnp.dot(inputs.tilt, away)
        )
        return self._within(at, inputs, log_density)

    def _within(self, at: Array, inputs: Inputs, log_density: Array) -> Float[Array, ""]:
        inside = jnp.all((at > inputs.lower) & (at < inputs.upper)) & jnp.isfinite(log_density)
        return jnp.where(inside, log_density, -jnp.inf)

    def second_order(self, z: Float[Array, " p"], inputs: Inputs) -> tuple[Array, Array, Array]:
        """Value, gradient and Hessian, by the loss's own formula where it has one."""
        space = self.problem.model.space

        def prior(z: Array) -> Array:
            return space.log_prior(space.v_of_z(z), inputs.priors) + space.log_jacobian(z)

        def slope(z: Array) -> Array:
            return jax.jvp(space.y_of_z, (z,), (jnp.ones_like(z),))[1]

        value, gradient, hessian = second_order(prior, z)
        away = space.y_of_z(z) - inputs.centre
        at = inputs.centre + inputs.stretch @ away
        loss = self.problem.second_order_along(space.from_y, at, inputs.table, inputs.weights)
        first, second = jax.jvp(slope, (z,), (jnp.ones_like(z),))
        pull = inputs.beta * inputs.stretch.T @ loss[1] + inputs.tilt
        bend = inputs.beta * inputs.stretch.T @ loss[2] @ inputs.stretch
        log_density = value - inputs.beta * loss[0] - jnp.dot(inputs.tilt, away)
        return (
            self._within(at, inputs, log_density),
            gradient - first * pull,
            hessian - first[:, None] * bend * first[None, :] - jnp.diag(second * pull),
        )


def posterior(
    objective: Objective, weight: float | Calibration, minimum: Minimum
) -> tuple[LogPosterior, Inputs, np.ndarray]:
    """The log density, its inputs, and a point inside to start from.

    The loss is taken in the box in which its minimum was sought: where it is unbounded below, only a bounded parameter
    space gives a proper posterior.
    """
    space = objective.model.space
    shape = weight.curvature if isinstance(weight, Calibration) else None
    beta = weight.beta if isinstance(weight, Calibration) else float(weight)
    lower, upper = np.sort(space.to_y(np.stack([minimum.lower, minimum.upper])), axis=0)
    edges = space.edges
    p = space.size
    inputs = Inputs(
        objective.table,
        objective.own_weights,
        space.priors,
        jnp.asarray(float(beta)),
        jnp.zeros(p) if shape is None else jnp.asarray(shape.centre),
        jnp.eye(p) if shape is None else jnp.asarray(shape.stretch),
        jnp.zeros(p) if shape is None else jnp.asarray(shape.tilt),
        jnp.asarray(np.where(lower <= edges[0], -np.inf, lower)),
        jnp.asarray(np.where(upper >= edges[1], np.inf, upper)),
    )
    start = minimum.vector if shape is None else space.from_y(shape.centre)
    return LogPosterior(objective.problem), inputs, space.to_z(interior(space, start))


def where_taken(objective: Objective, weight: Calibration, theta: np.ndarray) -> np.ndarray:
    """The parameters at which the loss of a posterior is evaluated for draws ``theta``."""
    space, shape = objective.model.space, weight.curvature
    if shape is None:
        return theta
    return space.from_y(shape.centre + (space.to_y(theta) - shape.centre) @ shape.stretch.T)


def named_draws(model: AbstractModel, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Draws by name, with the model's derived quantities after its parameters."""
    named = model.space.unflatten(theta)
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
