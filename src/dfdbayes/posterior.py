"""The generalised posterior pi(theta) exp(-beta D_n(theta)) as a log density in coordinates z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .minimise import Minimum, interior
from .objective import Objective, Problem


class Inputs(NamedTuple):
    """All that may change without compiling anew: data, priors, weight and limits."""

    arrays: Any
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
            - inputs.beta * self.problem.value(space.from_v(v), inputs.arrays, inputs.weights)
        )
        inside = jnp.all((z > inputs.lower) & (z < inputs.upper)) & jnp.isfinite(log_density)
        return jnp.where(inside, log_density, -jnp.inf)


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
        objective.arrays,
        objective.own_weights,
        space.priors,
        jnp.asarray(float(beta)),
        jnp.asarray(ends[0]),
        jnp.asarray(ends[1]),
    )
    return LogPosterior(objective.problem), inputs, space.to_z(interior(space, minimum.vector))
