"""How a minimiser varies: the loss is minimised again under resampled weights, all replicates at once.

``"multinomial"`` draws observations with replacement (Efron, 1979); ``"dirichlet"`` gives every observation a random
share (the Bayesian bootstrap; Rubin, 1981), so no value is ever left out altogether. What is resampled are rows, with
their observation weights if they have any, or blocks of sites where there is a single observation of a lattice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .errors import SettingError
from .minimise import Minima, Minimum, minimise_many
from .objective import Objective

KINDS = ("multinomial", "dirichlet")


@dataclass(frozen=True)
class Bootstrap:
    """Minimisers of resampled data.

    Attributes
    ----------
    kind : str
        How the weights were drawn.
    weights : (b, u) floats
        Weights of the resampling units, one row a replicate.
    minima : Minima
    degenerate : int
        In how many replicates a column that varies in the data is constant.
    """

    kind: str
    weights: Float[np.ndarray, "b u"]
    minima: Minima
    degenerate: int


def bootstrap(
    objective: Objective,
    minimum: Minimum,
    size: int = 400,
    *,
    kind: str = "multinomial",
    seed: int = 0,
    advance: Callable[[int], None] = lambda done: None,
) -> Bootstrap:
    """Minimise the loss under ``size`` resampled weights, from the full data's minimum."""
    if size < 2:
        raise SettingError(f"bootstrap is {size}; calibration needs at least 2 replicates, better 100 or more")
    weights = resample(objective, np.random.default_rng([seed, 1]), size, kind)
    return Bootstrap(kind, weights, minimise_many(objective, weights, minimum, advance), degenerate(objective, weights))


def resample(
    objective: Objective, rng: np.random.Generator, size: int, kind: str = "multinomial"
) -> Float[np.ndarray, "size u"]:
    """Weights of bootstrap replicates of the objective's units."""
    observations, each = objective.observations, objective.unit_weights
    total = observations.sum()
    if kind == "multinomial":
        drawn = rng.multinomial(round(float(total)), observations / total, size=size).astype(float)
    elif kind == "dirichlet":
        drawn = rng.dirichlet(observations, size=size) * total
    else:
        raise SettingError(f"there is no resampling '{kind}'; known: {', '.join(KINDS)}")
    return drawn * each


def degenerate(objective: Objective, weights: Float[np.ndarray, "b u"]) -> int:
    """How many replicates hold a single value of a column that has several in the data."""
    if objective.blocks is not None:
        return 0
    rows = objective.data.rows.astype(float)
    rows = rows - rows[0]
    varies = np.ptp(rows, axis=0) > 0
    shares = weights / weights.sum(axis=1, keepdims=True)
    means, squares = shares @ rows, shares @ rows**2
    return int(np.sum(((squares - means**2 <= 1e-12 * squares) & varies).any(axis=1)))
