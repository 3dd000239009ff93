"""Which edges a network has, all of them considered together: spike and slab on the calibrated estimate.

Calibrated, and with all other parameters integrated out under their prior, the data say of the interactions theta

    log L(theta) = b' theta - theta' Q theta / 2 = -(theta - theta_hat)' Q (theta - theta_hat) / 2 + constant,

Q being their information and theta_hat = Q^-1 b the estimate without a prior of theirs. In a graph gamma an edge is
absent (theta_j = 0) or present, with a normal slab theta_j ~ N(0, tau_j^2). With T = diag(tau^2) and prior odds o of an
edge the interactions integrate out (George and McCulloch, 1997):

    log p(gamma | data) = size(gamma) log o - sum_gamma log tau_j - log det(Q_gamma + T_gamma^-1) / 2
                          + b_gamma' (Q_gamma + T_gamma^-1)^-1 b_gamma / 2 + constant.

A Gibbs sampler goes over the edges in turn, and is tested against going over all graphs. Where interactions depend on
covariates, the same is said of a combination of their coefficients: of the edges at the average, or of the difference
between two groups.

The slab's tau is such that the log odds between values two standard deviations apart in both columns are standard
normal, which for binary columns is the prior of an interaction itself.

How b and Q follow from the calibrated loss: with m its mode, G its Hessian and g its gradient there (`Curvature`:
``centre``, ``information``, ``pull``), and P, f those of the others' log prior (``precision``, ``force``), let
F = G + P and a = F m - g + f, where P and f are zero for the interactions. For interactions e and all others n,

    Q = F_ee - F_en F_nn^-1 F_ne,        b = a_e - F_en F_nn^-1 a_n.
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
    return not network_of(fit).nonpositive_edges and fit.calibration.curvature is not None


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
    if network.nonpositive_edges:
        raise ModelError(
            "graphs are drawn for networks whose edges may have either sign, and those of counts here only lower rates"
        )
    if shape is None:
        raise SettingError("graphs are drawn with calibration='curvature', the default, whose information they need")
    if terms is None:
        terms, offset = model.average("interaction", fit.data) if model.designs else (np.ones(1), 0.0)
    size = len(network.graph.pairs)
    places = model.space.first["interaction"] + np.arange(len(terms) * size).reshape(len(terms), size)
    replaced = int(np.flatnonzero(terms)[0])  # the coefficient whose place the combination takes
    edges = np.zeros(len(shape.centre), bool)
    edges[places[replaced]] = True
    back = np.eye(len(edges))  # parameters from coordinates in which the combination takes that place
    for term, place in zip(terms, places, strict=True):
        back[places[replaced], place] = -term / terms[replaced]
    back[places[replaced], places[replaced]] = 1.0 / terms[replaced]
    centre = np.array(shape.centre)
    centre[edges] = terms @ shape.centre[places]
    b, q = _marginal(shape, edges, back, centre)
    return b + offset * q.sum(axis=1), q


def _marginal(
    shape: Curvature, edges: Bool[np.ndarray, " p"], back: Float[np.ndarray, "p p"], centre: Float[np.ndarray, " p"]
) -> tuple[Float[np.ndarray, " e"], Float[np.ndarray, "e e"]]:
    """(b, Q) of the module's last formula, in coordinates from which ``back`` leads to the parameters."""
    prior = np.where(edges | edges[:, None], 0.0, shape.precision)
    f = back.T @ shape.information @ back + prior
    a = f @ centre - back.T @ shape.pull + np.where(edges, 0.0, shape.force)
    f_en, sides = f[np.ix_(edges, ~edges)], np.column_stack([f[np.ix_(~edges, edges)], a[~edges]])
    solved = linalg.solve(f[np.ix_(~edges, ~edges)], sides, assume_a="pos")
    q = f[np.ix_(edges, edges)] - f_en @ solved[:, :-1]
    return a[edges] - f_en @ solved[:, -1], 0.5 * (q + q.T)


def select_coefficients(
    fit: Fitted, places: Int[np.ndarray, " k"], scale: Float[np.ndarray, " k"], odds: float = 1.0, seed: int = 0
) -> Selection:
    """Which of some coefficients are there, by the rule for edges; ``scale`` is the slab's standard deviation of each.

    ``places`` are their positions among all parameters, in ascending order.
    """
    shape = fit.calibration.curvature
    assert shape is not None
    among = np.zeros(len(shape.centre), bool)
    among[places] = True
    return _selected(*_marginal(shape, among, np.eye(len(among)), np.array(shape.centre)), scale, odds, seed)


def slabs(fit: Fitted) -> Float[np.ndarray, " e"]:
    """Tau: the standard deviation that each interaction has where the edge is there."""
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


def _selected(b: np.ndarray, q: np.ndarray, tau: np.ndarray, odds: float, seed: int) -> Selection:
    """Drawn together, or judged one at a time where there are too many."""
    if len(b) > MAX_EDGES_TOGETHER:
        factor = bayes_factors(b, q, tau)
        return Selection(special.expit(np.log(odds * factor)), factor, np.zeros((0, len(b)), bool))
    return drawn(b, q, tau, odds, np.random.default_rng([seed, 11]))


def drawn(b: np.ndarray, q: np.ndarray, tau: np.ndarray, odds: float, rng: np.random.Generator) -> Selection:
    """The Gibbs sampler, many chains side by side; an edge's probability is the mean of its conditional ones.

    Given the others, edge j has r = b_j - sum_k Q_jk theta_k over k other than j and v = Q_jj + tau_j^-2: the log odds
    of its being there are log o - log(tau_j^2 v) / 2 + r^2 / (2 v), and if it is, theta_j ~ N(r / v, 1 / v).
    """
    size, chains = len(b), 64
    sweeps = int(np.clip(60_000 // size, 60, 400))  # fewer over many edges: so many steps, but for the least
    settling = sweeps // 4
    theta = np.zeros((chains, size))
    q_theta = theta @ q
    v = np.diag(q) + 1.0 / tau**2
    included, excluded, graphs = np.zeros(size), np.zeros(size), []
    for sweep in range(settling + sweeps):
        normal, uniform = rng.standard_normal((size, chains)), rng.random((size, chains))
        for j in rng.permutation(size):
            r = b[j] - q_theta[:, j] + q[j, j] * theta[:, j]
            log_odds = np.log(odds) - 0.5 * np.log(tau[j] ** 2 * v[j]) + 0.5 * r**2 / v[j]
            log_odds = np.clip(log_odds, -700.0, 700.0)
            probability = special.expit(log_odds)
            value = np.where(uniform[j] < probability, r / v[j] + normal[j] / np.sqrt(v[j]), 0.0)
            q_theta += np.outer(value - theta[:, j], q[j])
            theta[:, j] = value
            if sweep >= settling:
                included[j] += probability.mean() / sweeps
                excluded[j] += special.expit(-log_odds).mean() / sweeps
        if sweep >= settling and sweep % 10 == 0:
            graphs.append(theta != 0.0)
    return Selection(included, included / excluded / odds, np.concatenate(graphs))


def bayes_factors(b: np.ndarray, q: np.ndarray, tau: np.ndarray) -> Float[np.ndarray, " e"]:
    """For each edge being there, all others being so: the slab's density at zero over the posterior's."""
    covariance = linalg.inv(q + np.diag(1.0 / tau**2))
    mean, variance = covariance @ b, np.diag(covariance)
    return np.exp(np.minimum(0.5 * mean**2 / variance, 700.0)) * np.sqrt(variance) / tau
