"""Which edges a network has, all of them considered together: spike and slab on the calibrated estimate.

Calibrated, the data say b' theta - theta' Q theta / 2 about the interactions theta, up to a constant, with Q their
information (all other parameters integrated out) and b = Q times the estimate. Each edge is absent (its interaction is
zero) or present, with a normal slab; a Gibbs sampler goes over the edges in turn. With few edges the same can be had by
going over all graphs, which the sampler is tested against. Where interactions depend on covariates, the same is said of
a combination of their coefficients: of the edges at the average, or of the difference between two groups.

The slab's scale is such that the log odds between values two standard deviations apart in both columns are standard
normal, which for binary columns is the prior of an interaction itself.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import linalg, special

from ...core.calibration import Curvature
from ...errors import ModelError, SettingError
from ...results.fitted import Fitted
from ...results.selections import Selection
from .rope import ODDS, network_of, regions

MAX_EDGES_TOGETHER = 1000  # beyond which edges are judged one at a time: a sweep takes time with their square


def chooses(fit: Fitted) -> bool:
    """Whether graphs can be drawn for this fit: edges may have either sign, and the calibration is by curvature."""
    return not network_of(fit).lowers and fit.calibration.curvature is not None


def information_of_edges(
    fit: Fitted, terms: Float[np.ndarray, " q"] | None = None, offset: float = 0.0
) -> tuple[Float[np.ndarray, " e"], Float[np.ndarray, "e e"]]:
    """(b, Q): what the calibrated loss says of the interactions, all else integrated out under its prior.

    Parameters
    ----------
    fit : Fitted
    terms : array, optional
        Where interactions depend on covariates: which combination of their coefficients is meant, by default the edges
        at the average of the formula's terms.
    offset : float
        What is added to it.
    """
    network, shape, model = network_of(fit), fit.calibration.curvature, fit.model
    assert model is not None
    if network.lowers:
        raise ModelError(
            "graphs are drawn for networks whose edges may have either sign, and those of counts here only lower rates"
        )
    if shape is None:
        raise SettingError("graphs are drawn with calibration='curvature', the default, whose information they need")
    if terms is None:
        terms, offset = model.average("interaction", fit.data) if model.designs else (np.ones(1), 0.0)
    size = len(network.graph.pairs)
    places = model.space.first["interaction"] + np.arange(len(terms) * size).reshape(len(terms), size)
    own = int(np.flatnonzero(terms)[0])  # the coefficient whose place the combination takes
    inside = np.zeros(len(shape.centre), bool)
    inside[places[own]] = True
    turned = np.eye(len(inside))
    for term, place in zip(terms, places, strict=True):
        turned[places[own], place] = -term / terms[own]
    turned[places[own], places[own]] = 1.0 / terms[own]
    centre = np.array(shape.centre)
    centre[inside] = terms @ shape.centre[places]
    b, precision = _marginal(shape, inside, turned, centre)
    return b + offset * precision.sum(axis=1), precision


def _marginal(
    shape: Curvature, inside: Bool[np.ndarray, " p"], turned: np.ndarray, centre: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(b, Q) of the parameters inside, in turned coordinates, all others integrated out under their prior."""
    prior = np.where(inside | inside[:, None], 0.0, shape.precision)
    full = turned.T @ shape.information @ turned + prior
    away = full @ centre - turned.T @ shape.pull + np.where(inside, 0.0, shape.force)
    beside = np.column_stack([full[np.ix_(~inside, inside)], away[~inside]])
    across = linalg.solve(full[np.ix_(~inside, ~inside)], beside, assume_a="pos")
    precision = full[np.ix_(inside, inside)] - full[np.ix_(inside, ~inside)] @ across[:, :-1]
    return away[inside] - full[np.ix_(inside, ~inside)] @ across[:, -1], 0.5 * (precision + precision.T)


def select_coefficients(
    fit: Fitted, places: Int[np.ndarray, " k"], scale: Float[np.ndarray, " k"], odds: float = 1.0, seed: int = 0
) -> Selection:
    """Which of some coefficients are there, by the rule for edges; ``scale`` is the slab's standard deviation of each.

    ``places`` are their positions among all parameters, in ascending order.
    """
    shape = fit.calibration.curvature
    assert shape is not None
    inside = np.zeros(len(shape.centre), bool)
    inside[places] = True
    return _selected(*_marginal(shape, inside, np.eye(len(inside)), np.array(shape.centre)), scale, odds, seed)


def slabs(fit: Fitted) -> Float[np.ndarray, " e"]:
    """The standard deviation that each interaction has where the edge is there."""
    return regions(fit) / ODDS


def select(fit: Fitted, odds: float = 1.0, seed: int = 0, terms: Float[np.ndarray, " q"] | None = None) -> Selection:
    """Draw graphs from their posterior; ``odds`` are the prior's, of an edge being there.

    ``terms`` are those of `information_of_edges`. More than a thousand edges are judged one at a time, all others being
    there.
    """
    if not np.isfinite(odds) or odds <= 0:
        raise SettingError(f"odds are {odds}; prior odds of an edge are a positive number, 1 for even ones")
    asked = (odds, seed, None if terms is None else tuple(terms))
    if asked not in fit.selections:
        fit.selections[asked] = _selected(*information_of_edges(fit, terms), slabs(fit), odds, seed)
    return fit.selections[asked]


def _selected(b: np.ndarray, precision: np.ndarray, scale: np.ndarray, odds: float, seed: int) -> Selection:
    """Drawn together, or judged one at a time where there are too many."""
    if len(b) > MAX_EDGES_TOGETHER:
        factor = bayes_factors(b, precision, scale)
        return Selection(special.expit(np.log(odds * factor)), factor, np.zeros((0, len(b)), bool))
    return drawn(b, precision, scale, odds, np.random.default_rng([seed, 11]))


def drawn(b: np.ndarray, precision: np.ndarray, scale: np.ndarray, odds: float, rng: np.random.Generator) -> Selection:
    """The Gibbs sampler, many chains side by side; an edge's probability is the mean of its conditional ones."""
    size, chains = len(b), 64
    sweeps = int(np.clip(60_000 // size, 60, 400))  # fewer over many edges: so many steps, but for the least
    settling = sweeps // 4
    theta = np.zeros((chains, size))
    pulled = theta @ precision
    width = np.diag(precision) + 1.0 / scale**2
    there, gone, kept = np.zeros(size), np.zeros(size), []
    for sweep in range(settling + sweeps):
        noise, heights = rng.standard_normal((size, chains)), rng.random((size, chains))
        for j in rng.permutation(size):
            rest = b[j] - pulled[:, j] + precision[j, j] * theta[:, j]
            log = np.log(odds) - 0.5 * np.log(scale[j] ** 2 * width[j]) + 0.5 * rest**2 / width[j]
            log = np.clip(log, -700.0, 700.0)
            chance = special.expit(log)
            value = np.where(heights[j] < chance, rest / width[j] + noise[j] / np.sqrt(width[j]), 0.0)
            pulled += np.outer(value - theta[:, j], precision[j])
            theta[:, j] = value
            if sweep >= settling:
                there[j] += chance.mean() / sweeps
                gone[j] += special.expit(-log).mean() / sweeps
        if sweep >= settling and sweep % 10 == 0:
            kept.append(theta != 0.0)
    return Selection(there, there / gone / odds, np.concatenate(kept))


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
