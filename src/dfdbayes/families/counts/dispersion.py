"""How much counts vary at given covariates, beside Poisson counts and beside the most that the model has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._util.words import Estimate, listed, named
from ...core.model import AbstractModel
from ...core.parameters import SHAPE
from ...data.formulas import INTERCEPT
from .mean_form import of_mean

if TYPE_CHECKING:
    from ...results.fitted import Fitted

EDGE = "as much as this model allows, or more"


def dispersion(fit: Fitted) -> list[str]:
    """Where nu is one number, or one for each level of a factor."""
    assert fit.model is not None
    for shape in fit.model.row_space.of_role(SHAPE):
        return _told(fit, fit.model, shape.name)
    return []


def _told(fit: Fitted, model: AbstractModel, shape: str) -> list[str]:
    x, weights = fit.data.rows[:, 0], fit.data.counts
    if f"{shape}_value" in fit.entries:  # one for all rows
        nu = Estimate.of(fit, f"{shape}_value")
        at_edge = _is_edge(float(np.average(x, weights=weights)), nu.low)
        told = f": {EDGE}, its most being that of a geometric distribution (nu = 0)" if at_edge else ""
        return [f"At given covariates the counts vary {_beside(nu)} (nu {nu.inside}){told}."]
    parts = []
    for name, inside, draws in _levels(fit, model, shape):
        nu = Estimate.of_draws(draws)
        at_edge = _is_edge(float(np.average(x[inside], weights=weights[inside])), nu.low)
        parts.append(f"{f'{EDGE},' if at_edge else _beside(nu)} where {name} (nu {nu.inside})")
    return [f"At given covariates the counts vary {listed(parts, len(parts))}."] if parts else []


def _beside(nu: Estimate) -> str:
    if not nu.excludes(1.0):
        return "about as Poisson counts do"
    return f"{'less' if nu.low > 1 else 'more'} than Poisson counts"


def _levels(fit: Fitted, model: Any, shape: str) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """By level of the only factor of nu's formula: its name, which rows have it, and draws of nu."""
    if shape not in model.varying:
        return []
    design, data = model.design(shape), fit.data
    if len(design.factors) != 1 or design.offsets:
        return []
    levels, places, matrix = design.of_levels(design.factors[0])
    if len(levels) > 4 or {INTERCEPT, *(design.labels[k] for k in places)} < set(design.labels):
        return []  # more than four are a table, not a sentence
    first = model.space.predictor(shape).first
    assert data.given is not None
    found = []
    for level, terms in zip(levels, matrix, strict=True):
        inside = (data.given[:, [first + k for k in places]] == terms).all(axis=1)
        log_nu = sum(
            value * fit.entries[f"{shape}[{design.labels[k]}]"] for k, value in zip(places, terms, strict=True)
        )
        log_nu = log_nu + (fit.entries[f"{shape}[{INTERCEPT}]"] if INTERCEPT in design.labels else 0.0)
        found.append((f"{named(design.factors[0])} = {named(level)}", inside, np.exp(log_nu)))
    return found


def _is_edge(mean: float, nu: float) -> bool:
    """Whether a variance next to the largest is inside the interval, by the masses at its lower end."""
    if mean <= 0.0 or nu >= 1.0:
        return False
    slope = jax.grad(lambda log_mean: of_mean(log_mean, jnp.asarray(nu))[0])(jnp.log(mean))
    variance = mean / slope  # the mean's derivative in the log rate
    return bool(variance > 0.9 * (mean + mean**2))  # nine tenths of the largest, that of nu = 0
