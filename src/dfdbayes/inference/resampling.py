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

from .._util.checkpoint import NOTHING, Checkpoint
from ..data.distinct import BUCKETS, bucket_of
from ..errors import SettingError
from ..models.tables import LARGE
from .minimise import Minima, Minimum, Outcome, minimise_many
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
    many: Callable[..., Minima] = minimise_many,
    checkpoint: Checkpoint = NOTHING,
) -> Bootstrap:
    """Minimise the loss under ``size`` resampled weights, from the full data's minimum.

    ``many`` does the fits, and ``checkpoint`` keeps them.
    """
    if size < 2:
        raise SettingError(f"bootstrap is {size}; calibration needs at least 2 replicates, better 100 or more")
    weights = resample(objective, seed, size, kind)
    minima = in_parts(
        checkpoint, lambda part: many(objective, part, minimum, advance), weights, 4 * objective.batch, advance
    )
    return Bootstrap(kind, weights, minima, degenerate(objective, weights))


def in_parts(
    checkpoint: Checkpoint,
    many: Callable[[np.ndarray], Minima],
    weights: np.ndarray,
    size: int,
    advance: Callable[[int], None] = lambda done: None,
) -> Minima:
    """Fits, some at a time if they are kept; without a checkpoint all at once."""
    if checkpoint is NOTHING:
        return many(weights)
    parts = []
    for first in range(0, len(weights), size):
        computed: list[bool] = []

        def of_part(first: int = first, computed: list[bool] = computed) -> dict[str, np.ndarray]:
            computed.append(True)
            found = many(weights[first : first + size])
            outcomes = np.array(list(map(str, found.outcomes)))
            return {"v": found.vectors, "f": found.values, "g": found.gradient_norms, "outcomes": outcomes}

        parts.append(checkpoint.part(f"bootstrap-{first}", of_part))
        if not computed:
            advance(len(parts[-1]["v"]))
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Minima(whole["v"], whole["f"], whole["g"], tuple(Outcome(str(o)) for o in whole["outcomes"]))


def resample(objective: Objective, seed: int, size: int, kind: str = "multinomial") -> Float[np.ndarray, "size u"]:
    """Weights of bootstrap replicates of the objective's units."""
    observations, each = objective.observations, objective.unit_weights
    if not objective.rowwise or len(observations) <= LARGE:
        return draw([seed, 1], observations, size, kind) * each
    buckets = bucket_of(objective.data.rows.T)
    shares = of_buckets(seed, np.bincount(buckets, weights=observations, minlength=BUCKETS), size, kind)
    drawn = np.empty((size, len(observations)))
    for bucket in range(BUCKETS):
        inside = buckets == bucket
        drawn[:, inside] = in_bucket(seed, bucket, shares[:, bucket], observations[inside], kind)
    return drawn * each


def of_buckets(seed: int, totals: Float[np.ndarray, " k"], size: int, kind: str) -> Float[np.ndarray, "size k"]:
    """How much of each replicate falls to each bucket of rows."""
    return draw([seed, 1], totals, size, kind)


def in_bucket(
    seed: int, bucket: int, share: Float[np.ndarray, " size"], observations: Float[np.ndarray, " u"], kind: str
) -> Float[np.ndarray, "size u"]:
    """A bucket's share of each replicate spread over its rows.

    A bucket is given by its rows' values and has random numbers of its own. So many rows can be resampled wherever
    they are, and replicates do not depend on how the data were cut or ordered.
    """
    if not len(observations):
        return np.empty((len(share), 0))
    return draw([seed, 1, bucket], observations, len(share), kind, share)


def draw(
    seed: list[int],
    observations: Float[np.ndarray, " u"],
    size: int,
    kind: str,
    totals: Float[np.ndarray, " size"] | None = None,
) -> Float[np.ndarray, "size u"]:
    """Resampled weights that sum to as many observations as there are, or to ``totals``."""
    rng, total = np.random.default_rng(seed), observations.sum()
    if kind == "multinomial":
        wanted = round(float(total)) if totals is None else np.round(totals).astype(int)
        return rng.multinomial(wanted, observations / total, size=size).astype(float)
    if kind == "dirichlet":
        return rng.dirichlet(observations, size=size) * (total if totals is None else totals[:, None])
    raise SettingError(f"there is no resampling '{kind}'; known: {', '.join(KINDS)}")


def degenerate(objective: Objective, weights: Float[np.ndarray, "b u"]) -> int:
    """How many replicates hold a single value of a column that has several in the data."""
    if not objective.rowwise or len(objective.units) > LARGE:
        return 0
    rows = objective.data.rows.astype(float)
    rows = rows - rows[0]
    varies = np.ptp(rows, axis=0) > 0
    shares = weights / weights.sum(axis=1, keepdims=True)
    means, squares = shares @ rows, shares @ rows**2
    return int(np.sum(((squares - means**2 <= 1e-12 * squares) & varies).any(axis=1)))
