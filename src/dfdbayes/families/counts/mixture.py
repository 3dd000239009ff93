"""Mixtures of Poisson distributions with known rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jaxtyping import Array

from ...core.dataset import Dataset
from ...core.domain import Counts
from ...core.model import Model, Row
from ...core.parameters import Parameter
from ...errors import ModelError
from ..named import Option, named
from .narrative import MixtureNarrative


class _LogMixture:
    """log of proportion Poisson(first) + (1 - proportion) Poisson(second)."""

    def __init__(self, rates: tuple[float, float]) -> None:
        self.rates = rates

    def __call__(self, theta: dict[str, Array], x: Row) -> Array:
        first, second = (x[0] * np.log(rate) - rate for rate in self.rates)
        return jnp.logaddexp(jnp.log(theta["proportion"]) + first, jnp.log1p(-theta["proportion"]) + second) - gammaln(
            x[0] + 1.0
        )


def _nothing(theta: dict[str, Array]) -> Array:
    return jnp.zeros(())  # the mass function is normalised as it stands


@named("poisson-mixture", takes=(Option("rates", "--rates 5,15"),))
def PoissonMixture(rates: Sequence[float]) -> Model:
    """Proportion Poisson(rates[0]) + (1 - proportion) Poisson(rates[1]) for one column of counts; uniform prior.

    The discrete Fisher divergence hardly sees the proportion when the rates are far apart: the ratios of neighbouring
    probabilities inside one component do not depend on it. The library warns where that happens.
    """
    if len(rates) != 2 or min(rates) <= 0 or rates[0] == rates[1]:
        raise ModelError(f"rates must be two different positive numbers, not {list(rates)}")
    low, high = float(rates[0]), float(rates[1])

    def moments(data: Dataset) -> dict[str, Any]:
        mean = np.average(data.rows[:, 0], weights=data.counts)
        return {"proportion": np.clip((high - mean) / (high - low), 0.02, 0.98)}

    return Model(
        _LogMixture((low, high)),
        domain=Counts(1),
        parameters=[Parameter("proportion", dist.Beta(1.0, 1.0), lower=0.0, upper=1.0)],
        name="poisson-mixture",
        title="a mixture of two Poisson distributions with known rates",
        formula=f"p(x) = proportion Poisson(x; {low:g}) + (1 − proportion) Poisson(x; {high:g})",
        narrative=MixtureNarrative(),
        meanings={"proportion": f"the share of counts from the Poisson distribution with mean {low:g}"},
        start=moments,
        log_normaliser=_nothing,
        options={"rates": [low, high]},
    )
