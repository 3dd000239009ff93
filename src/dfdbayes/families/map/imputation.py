"""Maps whose values were not observed everywhere: sites without one are drawn from the model, given the others.

The estimating equation is the expectation of the loss's gradient given what was observed (fractional imputation, Kim,
2011). Completions follow from the parameters and the parameters from the completions: both in turn, until they agree
(Wei and Tanner, 1990). In a parametric bootstrap every simulated map loses the same sites and is completed in the same
way, so that what is missing makes intervals wider.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from ...core.dataset import Dataset
from ...core.losses.base import AbstractLoss
from ...core.minimise import Minima, Minimum, minimise, mode
from ...core.objective import Objective
from ...core.refits import refit_many
from ...core.sites import Units
from .model import Autologistic
from .simulate import by_colours

COMPLETIONS, ROUNDS = 40, 12  # of the observed map, and how often completions and parameters follow each other
OF_SIMULATED, AGAIN = 3, 4  # the same of every simulated map
SWEEPS = 10  # of Gibbs sampling of the sites without a value, from the last completions


def is_incomplete(model: object) -> bool:
    """Whether a model is of a map whose unobserved sites are to be drawn."""
    return isinstance(model, Autologistic) and model.map.missing == "impute" and not bool(model.map.observed.all())


def completed(model: Autologistic, loss: AbstractLoss, units: Units | None, seed: int) -> Objective:
    """The loss on completions of a map, drawn at parameters that agree with them and the prior."""
    rng = np.random.default_rng([seed, 23])
    values = _filled(model, np.repeat(model.map.values[None], COMPLETIONS, axis=0), rng)
    objective = Objective(model, model.map.dataset(values), loss)
    minimum = minimise(objective)
    y = objective.space.to_y(minimum.vector)
    for _ in range(ROUNDS):
        y = mode(objective, 1.0, minimum, y)
        theta = np.asarray(objective.space.from_y(y))[None]
        values, _ = by_colours(model, theta, values, ~model.map.observed, rng, SWEEPS)
        objective = replace(objective, data=model.map.dataset(values))
    return replace(objective, resampled=units)


def refit_incomplete(
    objective: Objective, model: Autologistic, maps: Int[np.ndarray, "size n"], around: Minimum, seed: int,
    refit: Callable[..., Minima] = refit_many,
) -> Minima:  # fmt: skip
    """Estimates of simulated maps after each lost the sites that were not observed, and had them drawn anew."""
    rng = np.random.default_rng([seed, 29])
    values = np.repeat(np.where(model.map.observed, maps, -1), OF_SIMULATED, axis=0)
    values = _filled(model, values, rng)
    thetas = np.repeat(around.vector[None], len(maps), axis=0)
    for _ in range(AGAIN):
        each = np.repeat(thetas, OF_SIMULATED, axis=0)
        values, _ = by_colours(model, each, values, ~model.map.observed, rng, SWEEPS)
        found = refit(objective, _datasets(model, values), around)
        thetas = np.where(found.usable[:, None], found.vectors, around.vector)
    return found


def _datasets(model: Autologistic, values: Int[np.ndarray, "all n"]) -> list[Dataset]:
    parts = values.reshape(-1, OF_SIMULATED, values.shape[1])
    return [model.map.dataset(part) for part in parts]


def _filled(model: Autologistic, values: Int[np.ndarray, "b n"], rng: np.random.Generator) -> np.ndarray:
    """Any value where there is none: by the observed shares."""
    seen = model.map.values[model.map.observed]
    shares: Float[np.ndarray, " k"] = np.bincount(seen, minlength=model.states) / len(seen)
    return np.where(values < 0, rng.choice(model.states, size=values.shape, p=shares), values)
