"""The likelihood of one graph about its maximum, from graphs simulated there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..dataset import Sites
from ..model import AbstractModel
from ..parameters import Theta
from ..terms import AbstractTerms, Loss, Prepared, SecondOrder, terms
from .likelihood import Likelihood


@dataclass(frozen=True)
class SimulatedLikelihood(Likelihood):
    """The negative log-likelihood of an exponential family about a point t0, less that at t0, to second order.

    It is K(t - t0) - (t - t0).s, with the observed statistics s and the cumulant function K of the statistics at t0. K
    is known by its first two derivatives, the mean and the covariance of the statistics of simulated graphs (Hummel,
    Hunter and Handcock, 2012), so it serves where t0 is near the maximum.

    Attributes
    ----------
    at : (p,) floats
        The point t0.
    gap : (p,) floats
        The mean of simulated statistics less the observed ones.
    covariance : (p, p) floats
        Of simulated statistics.
    graphs : int
        How many were simulated.
    """

    at: Float[np.ndarray, " p"] = field(compare=False)
    gap: Float[np.ndarray, " p"] = field(compare=False)
    covariance: Float[np.ndarray, "p p"] = field(compare=False)
    graphs: int = field(compare=False)

    references = ("hummel",)

    def prepare(self, model: AbstractModel, sites: Sites) -> Prepared:
        parts = jax.device_put((self.at, self.gap, self.covariance))
        note = f"from the statistics of {self.graphs} graphs simulated near its maximum"
        return Prepared(Cumulants(model, *parts), lambda weights: jnp.ones(()), note=note)


@terms
class Cumulants(AbstractTerms):
    """Mean and covariance of statistics at a point; the data's weights have no say."""

    model: AbstractModel
    at: Float[Array, " p"]
    gap: Float[Array, " p"]
    covariance: Float[Array, "p p"]

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        away = theta - self.at
        return jnp.dot(away, self.gap + 0.5 * self.covariance @ away)

    def second_order(self, loss: Loss, theta: Theta, weights: Any) -> SecondOrder:
        return self.value(loss, theta, weights), self.gap + self.covariance @ (theta - self.at), self.covariance
