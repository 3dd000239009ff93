"""Models of one count or one binary variable: Bernoulli, Poisson, Conway-Maxwell-Poisson."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jaxtyping import Array, Float
from scipy import special

from ...core.dataset import Dataset
from ...core.domain import Binary, Counts
from ...core.exponential import ExponentialFamily
from ...core.model import Row
from ...core.parameters import LOCATION, SHAPE, Parameter
from ..named import named
from .families import BinaryFamily, CountFamily
from .narrative import CountNarrative, ShareNarrative
from .normaliser import log_normaliser

# -- Bernoulli ---------------------------------------------------------------------------------


def _steps_of_counts(rows: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Changes of x and of -log x! with a step of one, exact where log x! itself has lost its digits."""
    step = (moved - rows).astype(float)
    return step, -step * np.log(np.maximum(np.maximum(rows, moved), 1))


def _value(x: Row) -> Float[Array, " 1"]:
    return x


def _logit(theta: dict[str, Array]) -> Float[Array, " 1"]:
    return jnp.stack([jnp.log(theta["probability"]) - jnp.log1p(-theta["probability"])])


def _share_of_ones(data: Dataset) -> dict[str, Any]:
    return {"probability": np.average(data.rows[:, 0], weights=data.counts)}


@named("bernoulli")
def Bernoulli() -> ExponentialFamily:
    """p(1) = probability (the paper's theta), for one binary column; uniform prior."""
    return ExponentialFamily(
        T=_value,
        b=None,
        eta=_logit,
        domain=Binary(1),
        parameters=[Parameter("probability", dist.Beta(1.0, 1.0), lower=0.0, upper=1.0, role=LOCATION)],
        name="bernoulli",
        title="a Bernoulli model",
        formula="p(1) = probability, &nbsp; p(0) = 1 − probability",
        narrative=ShareNarrative(),
        meanings={"probability": "the probability of a 1"},
        start=_share_of_ones,
        family=BinaryFamily(),
    )


# -- Poisson -----------------------------------------------------------------------------------


def _log_factorial(x: Row) -> Float[Array, ""]:
    return -gammaln(x[0] + 1.0)


def _log_rate(theta: dict[str, Array]) -> Float[Array, " 1"]:
    return jnp.stack([jnp.log(theta["rate"])])


def _rate(theta: dict[str, Array]) -> Array:
    return theta["rate"]


def _mean_count(data: Dataset) -> dict[str, Any]:
    return {"rate": np.average(data.rows[:, 0], weights=data.counts)}


def _poisson_differences(rows: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, g = _steps_of_counts(rows, moved)
    return x[..., None], g


@named("poisson", with_formula=("form",))
def Poisson() -> ExponentialFamily:
    """p(x) proportional to rate^x / x! (the paper's theta), for one column of counts.

    Its log has a normal prior with standard deviation 3; the paper's is chi-squared(3) for the rate.
    """
    return ExponentialFamily(
        T=_value,
        b=_log_factorial,
        eta=_log_rate,
        domain=Counts(1),
        parameters=[Parameter("rate", dist.LogNormal(0.0, 3.0), lower=0.0, role=LOCATION)],
        name="poisson",
        title="a Poisson model",
        formula="p(x) ∝ λ<sup>x</sup> / x!, &nbsp; λ = rate",
        narrative=CountNarrative(),
        meanings={"rate": "the mean count, and its variance too"},
        start=_mean_count,
        differences=_poisson_differences,
        log_normaliser=_rate,
        family=CountFamily(dispersed=False),
    )


# -- Conway-Maxwell-Poisson --------------------------------------------------------------------


def _count_and_log_factorial(x: Row) -> Float[Array, " 2"]:
    return jnp.stack([x[0], -gammaln(x[0] + 1.0)])


def _log_rate_and_nu(theta: dict[str, Array]) -> Float[Array, " 2"]:
    return jnp.stack([jnp.log(theta["rate"]), theta["nu"]])


def _log_constant(theta: dict[str, Array]) -> Array:
    return log_normaliser(jnp.log(theta["rate"]), theta["nu"])


def _regression_of_log_ratios(data: Dataset) -> dict[str, Any]:
    """Fit log p(x-1)/p(x) = nu log x - log rate to the observed frequencies.

    Weighted least squares with the inverse variances of the log ratios; consistent, because observed
    frequencies are. Where too few neighbouring values were seen, the first two moments serve.
    """
    x, counts = data.rows[:, 0], data.counts
    below = np.searchsorted(x, x - 1)
    paired = (below < len(x)) & (x[np.minimum(below, len(x) - 1)] == x - 1) & (x > 0)
    if paired.sum() >= 2:
        here, there = counts[paired], counts[below[paired]]
        weight = here * there / (here + there)
        design = np.stack([np.ones(paired.sum()), np.log(x[paired])], axis=1)
        response = np.log(there / here)
        scaled = design * weight[:, None]
        intercept, slope = np.linalg.lstsq(scaled.T @ design, scaled.T @ response, rcond=None)[0]
        shape, rate = np.clip(slope, 0.01, 30.0), np.exp(np.clip(-intercept, -30.0, 30.0))
        if slope > 0.01:
            return {"rate": rate, "nu": shape}
    mean = np.average(x, weights=counts)
    variance = max(np.average((x - mean) ** 2, weights=counts), 1e-3)
    shape = np.clip(mean / variance, 0.05, 30.0)
    centre = max(mean + (shape - 1.0) / (2.0 * shape), 0.1)
    return {"rate": centre**shape, "nu": shape}


def moments(rate: np.ndarray, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of Conway-Maxwell-Poisson distributions, one for each pair of parameters.

    Sums of the mass function up to where the remaining tail is below 1e-12 of the total; where the
    mode rate^(1/nu) exceeds 10^4, the first terms of its asymptotic expansion, whose relative
    error is then below 1e-8.
    """
    log_rate, shape = np.log(np.ravel(rate)), np.ravel(np.asarray(nu, float))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_mode = np.where(shape > 0, log_rate / np.maximum(shape, 1e-300), np.where(log_rate < 0, -1.0, np.inf))
    far = log_mode > np.log(1e4)
    mean, variance = np.empty_like(shape), np.empty_like(shape)
    if far.any():
        mode = np.exp(np.minimum(log_mode[far], 100.0))  # 1e43 stands for all that is larger
        power = np.maximum(shape[far], 1e-10)
        mean[far] = mode - (power - 1) / (2 * power)
        variance[far] = mode / power
    near = np.flatnonzero(~far)
    for i in np.array_split(near, max(1, len(near) // 256)):
        if len(i):
            mean[i], variance[i] = _summed_moments(log_rate[i], shape[i])
    return mean.reshape(np.shape(rate)), variance.reshape(np.shape(rate))


def _summed_moments(log_rate: np.ndarray, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    terms = 64
    while True:
        x = np.arange(terms, dtype=float)
        log_mass = log_rate[:, None] * x - shape[:, None] * special.gammaln(x + 1.0)
        mass = np.exp(log_mass - log_mass.max(axis=1, keepdims=True))
        ratio = np.exp(log_rate - shape * np.log(terms))
        tail = mass[:, -1] * ratio / np.maximum(1.0 - ratio, 1e-300)
        enough = (ratio < 1.0) & (tail * terms**2 < 1e-12 * mass.sum(axis=1))
        if enough.all() or terms >= 2**18:
            break
        terms *= 2
    mass /= mass.sum(axis=1, keepdims=True)
    mean = mass @ x
    return mean, mass @ x**2 - mean**2


def _mean_and_index(theta: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    mean, variance = moments(theta["rate"], theta["nu"])
    return {"mean": mean, "dispersion_index": variance / mean}


def _cmp_differences(rows: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.stack(_steps_of_counts(rows, moved), axis=-1), np.zeros(rows.shape)


@named("cmp", with_formula=("form",))
def ConwayMaxwellPoisson() -> ExponentialFamily:
    """p(x) proportional to rate^x / (x!)^nu, for one column of counts.

    ``nu`` < 1 is over-dispersed, 1 is Poisson, > 1 is under-dispersed; ``nu`` = 0 is geometric.
    In the paper ``rate`` is theta_1 and ``nu`` is theta_2. The log of the rate, which is about the mean to the power
    nu, has a normal prior with standard deviation 5, ``nu`` a chi-squared(3) one, as both have in the paper. Derived
    quantities: ``mean`` and ``dispersion_index`` (the variance divided by the mean).
    """
    return ExponentialFamily(
        T=_count_and_log_factorial,
        b=None,
        eta=_log_rate_and_nu,
        domain=Counts(1),
        parameters=[
            Parameter("rate", dist.LogNormal(0.0, 5.0), lower=0.0, role=LOCATION),
            Parameter("nu", dist.Chi2(3.0), lower=0.0, closed=True, role=SHAPE),
        ],
        name="cmp",
        title="a Conway-Maxwell-Poisson model",
        formula="p(x) ∝ λ<sup>x</sup> / (x!)<sup>ν</sup>, &nbsp; λ = rate, ν = nu",
        narrative=CountNarrative(),
        meanings={
            "rate": "lambda of the formula (the paper's theta_1), about the mean to the power nu: read the mean",
            "nu": "the shape (the paper's theta_2): below 1 counts vary more than Poisson's, at 1 alike, above 1 less",
            "mean": "the mean count",
            "dispersion_index": "the variance divided by the mean, which is 1 for Poisson counts",
        },
        start=_regression_of_log_ratios,
        derived=_mean_and_index,
        differences=_cmp_differences,
        log_normaliser=_log_constant,
        family=CountFamily(dispersed=True),
    )
