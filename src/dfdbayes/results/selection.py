"""Which edges a network has, all of them considered together: spike and slab on the calibrated estimate.

Calibrated, the data say b' theta - theta' Q theta / 2 about the interactions theta, up to a constant, with Q their
information (all other parameters integrated out) and b = Q times the estimate. Each edge is absent (its interaction is
zero) or present, with a normal slab; a Gibbs sampler goes over the edges in turn. With few edges the same can be had by
going over all graphs, which the sampler is tested against.

The slab's scale is such that the log odds between values two standard deviations apart in both columns are standard
normal, which for binary columns is the prior of an interaction itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy import linalg

from ..errors import ModelError, SettingError
from ..models.regression import Regression
from .evidence import ODDS, PRESENT, Evidence, edges, network_of, regions

if TYPE_CHECKING:
    from .fit_result import Fit

CHAINS, SWEEPS, SETTLING = 64, 400, 100


@dataclass(frozen=True)
class Selection:
    """Graphs drawn from their posterior.

    Attributes
    ----------
    inclusion : (e,) floats
        The probability that each edge is there.
    present : (s, e) booleans
        Which edges each drawn graph has.
    """

    inclusion: Float[np.ndarray, " e"]
    present: Bool[np.ndarray, "s e"]


def chooses(fit: Fit) -> bool:
    """Whether graphs can be drawn for this fit; see `information_of_edges`."""
    free = not isinstance(fit.model, Regression) and not network_of(fit).lowers
    return free and fit.calibration.curvature is not None


def information_of_edges(fit: Fit) -> tuple[Float[np.ndarray, " e"], Float[np.ndarray, "e e"]]:
    """(b, Q): what the calibrated loss says of the interactions, all else integrated out under its prior."""
    model = network_of(fit)
    shape = fit.calibration.curvature
    if isinstance(fit.model, Regression) or model.lowers:
        raise ModelError(
            "graphs are chosen where edges are free of covariates and may have either sign; dfd.evidence.edges says "
            "what the others have"
        )
    if shape is None:
        raise SettingError("graphs are chosen with calibration='curvature', the default, whose information they need")
    first, size = model.space.first["interaction"], len(model.graph.pairs)
    inside = np.zeros(len(shape.centre), bool)
    inside[first : first + size] = True
    prior = np.where(inside | inside[:, None], 0.0, shape.precision)
    full = shape.information + prior
    away = full @ shape.centre - shape.pull + np.where(inside, 0.0, shape.force)
    beside = np.column_stack([full[np.ix_(~inside, inside)], away[~inside]])
    across = linalg.solve(full[np.ix_(~inside, ~inside)], beside, assume_a="pos")
    precision = full[np.ix_(inside, inside)] - full[np.ix_(inside, ~inside)] @ across[:, :-1]
    return away[inside] - full[np.ix_(inside, ~inside)] @ across[:, -1], 0.5 * (precision + precision.T)


def slabs(fit: Fit) -> Float[np.ndarray, " e"]:
    """The standard deviation that each interaction has where the edge is there."""
    return regions(fit) / ODDS


def select(fit: Fit, odds: float = 1.0, seed: int = 0) -> Selection:
    """Draw graphs from their posterior; ``odds`` are the prior's, of an edge being there."""
    if not np.isfinite(odds) or odds <= 0:
        raise SettingError(f"odds are {odds}; prior odds of an edge are a positive number, 1 for even ones")
    return drawn(*information_of_edges(fit), slabs(fit), odds, np.random.default_rng([seed, 11]))


def drawn(b: np.ndarray, precision: np.ndarray, scale: np.ndarray, odds: float, rng: np.random.Generator) -> Selection:
    """The Gibbs sampler, many chains side by side; an edge's probability is the mean of its conditional ones."""
    size = len(b)
    theta = np.zeros((CHAINS, size))
    pulled = theta @ precision
    width = np.diag(precision) + 1.0 / scale**2
    inclusion, kept = np.zeros(size), []
    for sweep in range(SETTLING + SWEEPS):
        noise, heights = rng.standard_normal((size, CHAINS)), rng.random((size, CHAINS))
        for j in rng.permutation(size):
            rest = b[j] - pulled[:, j] + precision[j, j] * theta[:, j]
            log = np.log(odds) - 0.5 * np.log(scale[j] ** 2 * width[j]) + 0.5 * rest**2 / width[j]
            chance = 1.0 / (1.0 + np.exp(-np.clip(log, -700.0, 700.0)))
            value = np.where(heights[j] < chance, rest / width[j] + noise[j] / np.sqrt(width[j]), 0.0)
            pulled += np.outer(value - theta[:, j], precision[j])
            theta[:, j] = value
            if sweep >= SETTLING:
                inclusion[j] += chance.mean() / SWEEPS
        if sweep >= SETTLING and sweep % 10 == 0:
            kept.append(theta != 0.0)
    return Selection(inclusion, np.concatenate(kept))


def log_weight(present: np.ndarray, b: np.ndarray, precision: np.ndarray, scale: np.ndarray, odds: float) -> float:
    """The log posterior weight of one graph, its interactions integrated out."""
    at = np.flatnonzero(present)
    if not len(at):
        return 0.0
    inner = precision[np.ix_(at, at)] + np.diag(1.0 / scale[at] ** 2)
    lower = linalg.cholesky(inner, lower=True)
    half = linalg.solve_triangular(lower, b[at], lower=True)
    shape = np.sum(np.log(np.diag(lower))) + np.sum(np.log(scale[at]))
    return float(len(at) * np.log(odds) - shape + 0.5 * half @ half)


def bayes_factors(b: np.ndarray, precision: np.ndarray, scale: np.ndarray) -> Float[np.ndarray, " e"]:
    """For each edge being there, all others being so: the slab's density at zero over the posterior's."""
    covariance = linalg.inv(precision + np.diag(1.0 / scale**2))
    mean, variance = covariance @ b, np.diag(covariance)
    return np.exp(np.minimum(0.5 * mean**2 / variance, 700.0)) * np.sqrt(variance) / scale


def evidence_table(fit: Fit, odds: float, seed: int) -> pd.DataFrame:
    """`edges` with the Bayes factor of each edge and its probability, all edges considered together."""
    table, model = edges(fit), network_of(fit)
    b, precision = information_of_edges(fit)
    scale, names = slabs(fit), np.array(fit.data.columns, dtype=object)
    i, j = model.graph.edges.T
    more = pd.DataFrame(
        {
            "from": names[i],
            "to": names[j],
            "bayes_factor": bayes_factors(b, precision, scale),
            "inclusion": select(fit, odds, seed).inclusion,
        }
    )
    found = table.merge(more, on=["from", "to"], how="left", validate="one_to_one")
    shown = found["evidence"] == PRESENT
    found.attrs = {"prior_odds": odds, "expected_false_edges": float((1.0 - found["inclusion"])[shown].sum())}
    return Evidence.made(found, fit)
