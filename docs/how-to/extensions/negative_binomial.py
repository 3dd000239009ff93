"""Negative binomial counts, by their mean and their size; either may depend on covariates."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln

import dfdbayes as dfd
from dfdbayes.core.parameters import LOCATION, SHAPE


def log_mass(theta, x):
    """The log mass without what does not depend on x."""
    mean, size = theta["mean"], theta["size"]
    return gammaln(x[0] + size) - gammaln(x[0] + 1.0) + x[0] * (jnp.log(mean) - jnp.log(mean + size))


def log_normaliser(theta):
    """The log of the sum of all masses, which is Gamma(size) (1 + mean / size)^size."""
    mean, size = theta["mean"], theta["size"]
    return gammaln(size) + size * jnp.log1p(mean / size)


def start(data):
    """The first two moments: variance = mean + mean^2 / size."""
    x = data.rows[:, 0]
    mean = max(np.average(x, weights=data.counts), 0.05)
    variance = np.average((x - mean) ** 2, weights=data.counts)
    return {"mean": mean, "size": float(np.clip(mean**2 / max(variance - mean, 1e-9), 0.05, 100.0))}


@dataclass(frozen=True, repr=False)
class NegativeBinomialModel(dfd.Model):
    """The expected value has a formula, so that predictions need no sum over values."""

    has_means = True
    formula_for_all = True  # a constant where only the other parameter has a formula

    def means_at(self, at, size):
        return jnp.broadcast_to(at["mean"], (size,))


@dfd.models.named("negative-binomial", "negbin")
def NegativeBinomial():
    """Counts with variance mean + mean^2 / size."""
    return NegativeBinomialModel(
        log_mass,
        domain=dfd.Counts(1),
        parameters=[
            dfd.Parameter("mean", dist.LogNormal(0.0, 3.0), lower=0.0, role=LOCATION),
            dfd.Parameter("size", dist.LogNormal(1.0, 1.5), lower=0.0, role=SHAPE),
        ],
        name="negative-binomial",
        start=start,
        log_normaliser=log_normaliser,
        title="a negative binomial model",
        formula="p(x) ∝ Γ(x + size) / x! · (mean / (mean + size))<sup>x</sup>",
        meanings={
            "mean": "the expected count",
            "size": "small where counts vary much more than Poisson counts, which have an infinite size",
        },
    )
