"""The generalised posterior pi(theta) exp(-beta D_n(theta)) as a log density in coordinates z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError
from ..models.base import AbstractModel
from ..models.parameters import require_name
from .minimise import Minimum, interior
from .objective import Objective, Problem, second_order


class Inputs(NamedTuple):
    """All that may change without compiling anew: data, priors, weight and limits."""

    table: Any
    weights: Any
    priors: dict[str, Any]
    beta: Array
    lower: Float[Array, " p"]
    upper: Float[Array, " p"]


@dataclass(frozen=True)
class LogPosterior:
    """log pi(v(z)) + log |d v / d z| - beta D_n(theta(z)); minus infinity outside the limits."""

    problem: Problem

    def fold(self, z: np.ndarray) -> np.ndarray:
        """One of the points with the same density: the signs of roots mean nothing."""
        return self.problem.model.space.fold(z)

    def __call__(self, z: Float[Array, " p"], inputs: Inputs) -> Float[Array, ""]:
        space = self.problem.model.space
        v = space.v_of_z(z)
        log_density = (
            space.log_prior(v, inputs.priors)
            + space.log_jacobian(z)
            - inputs.beta * self.problem.value(space.from_v(v), inputs.table, inputs.weights)
        )
        return self._within(z, inputs, log_density)

    def _within(self, z: Array, inputs: Inputs, log_density: Array) -> Float[Array, ""]:
        inside = jnp.all((z > inputs.lower) & (z < inputs.upper)) & jnp.isfinite(log_density)
        return jnp.where(inside, log_density, -jnp.inf)

    def second_order(self, z: Float[Array, " p"], inputs: Inputs) -> tuple[Array, Array, Array]:
        """Value, gradient and Hessian, by the loss's own formula where it has one."""
        space = self.problem.model.space

        def prior(z: Array) -> Array:
            return space.log_prior(space.v_of_z(z), inputs.priors) + space.log_jacobian(z)

        value, gradient, hessian = second_order(prior, z)
        loss = self.problem.second_order_along(space.from_z, z, inputs.table, inputs.weights)
        log_density = self._within(z, inputs, value - inputs.beta * loss[0])
        return log_density, gradient - inputs.beta * loss[1], hessian - inputs.beta * loss[2]


def posterior(objective: Objective, beta: float, minimum: Minimum) -> tuple[LogPosterior, Inputs, np.ndarray]:
    """The log density, its inputs, and a point inside to start from.

    The posterior lives on the box in which the minimum was sought: where a loss is unbounded below,
    only a bounded parameter space gives a proper posterior.
    """
    space = objective.model.space
    with np.errstate(divide="ignore"):
        ends = np.sort(space.to_z(np.stack([minimum.lower, minimum.upper])), axis=0)
        ends[0] = np.where(space.square, -ends[1], ends[0])  # a root may have either sign
    inputs = Inputs(
        objective.table,
        objective.own_weights,
        space.priors,
        jnp.asarray(float(beta)),
        jnp.asarray(ends[0]),
        jnp.asarray(ends[1]),
    )
    return LogPosterior(objective.problem), inputs, space.to_z(interior(space, minimum.vector))


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
