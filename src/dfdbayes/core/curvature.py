"""The curvature-adjusted loss: the estimator's information in every direction, and then the prior.

One weight cannot serve all directions of a loss, and a weight that matches a *posterior* with the estimator's spread
counts the prior twice. So the loss alone is calibrated,

    D_c(y) = beta D(m + C (y - m)) + l . (y - m),     posterior: pi exp(-D_c),

with C such that the Hessian of D_c at m is the estimator's information G there (Godambe's, H J^-1 H), and l such that
its gradient there fits. Where data are strong the posterior is as wide as the estimator varies, where they are weak it
is as wide as the prior, and for a likelihood that is right it is Bayes. Chandler and Bate (2007), Ribatet, Cooley and
Davison (2012) and Shaby (2014) adjust composite likelihoods in this way.

All is in the minimiser's coordinates y: unconstrained, but parameters that may lie on the edge of their support are
left as they are, so that a loss is calibrated on the whole line and its posterior cut off at the edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy import linalg, special

from ..errors import CalibrationError, DfdbayesError, MinimiserError
from .linalg import cholesky, inverse, root
from .minimise import Minimum, evaluate, flat_parameters, flatness, interior, prior_at_y
from .missing import joint_mode
from .objective import Objective
from .parameters import Space
from .sites import CLUSTERS, WINDOWS
from .windows import DEGREES

ROUNDS = 8  # of mode and weight in turn; three are enough as a rule
SETTLED = 1e-3  # relative change of the weight at which they end
FLAT = 1e-3  # least curvature of the loss in a direction, as a share of the posterior's
SHRINK = 2.0  # times parameters per unit: how far weights of directions move to their median
MOST = 0.9  # of that, at most; from there on to their mean, which does not depend on how uneven they are by chance
CAP = 1.5  # times the common weight, at most, that a direction may have; less where there are many
KEPT = 0.02  # of the information in a direction, at least, that missing entries leave
LARGE = 1e6  # values from which the rounding of a loss is looked at: sums of y log y then lose nine digits of sixteen
MANY = 20.0  # units for each parameter from which weights that may differ are trusted the more


def cap(parameters: int, units: float = 0.0) -> float:
    """How much more than the common weight the best measured direction may get.

    Of many estimated weights the largest are too large by chance, and a direction in which no unit differs seems to be
    known exactly: this is what keeps both honest. Likelihoods and their relatives have nearly the same weight in all
    directions. The divergence has not: of ``units`` that are many, its weights are believed.
    """
    most = 1.0 + (CAP - 1.0) * min(1.0, (36.0 / parameters) ** 0.25)
    return most * max(1.0, units / (MANY * parameters))


def of_few(clusters: float) -> float:
    """How much more than its estimate a variance between few clusters has to be, for 95 % intervals to hold.

    Student's t with as many degrees of freedom as there are clusters, less one, in place of the normal distribution.
    """
    return float((special.stdtrit(max(clusters - 1.0, 1.0), 0.975) / special.ndtri(0.975)) ** 2)


@dataclass(frozen=True)
class Curvature:
    """A calibrated loss, by what it does to the loss as it is.

    Attributes
    ----------
    beta : float
        The common weight: the median over directions.
    centre : (p,) floats
        m, in the minimiser's coordinates.
    stretch : (p, p) floats
        C.
    tilt : (p,) floats
        l.
    information : (p, p) floats
        G, the Hessian of the calibrated loss at m.
    precision : (p, p) floats
        Minus the Hessian of the prior's log density there.
    pull, force : (p,) floats
        Gradients at m: of the calibrated loss, and of the prior's log density.
    weights : (p,) floats
        The weights of the directions.
    """

    beta: float
    centre: Float[np.ndarray, " p"]
    stretch: Float[np.ndarray, "p p"]
    tilt: Float[np.ndarray, " p"]
    information: Float[np.ndarray, "p p"]
    precision: Float[np.ndarray, "p p"]
    pull: Float[np.ndarray, " p"]
    force: Float[np.ndarray, " p"]
    weights: Float[np.ndarray, " p"]

    @property
    def even(self) -> bool:
        """Whether all directions have the same weight, so that nothing is stretched."""
        return bool(np.ptp(self.weights) == 0.0)

    @property
    def unchanged(self) -> bool:
        """Whether the loss is as it was: a likelihood whose own information is believed."""
        return bool(np.allclose(self.weights, 1.0, rtol=0.0, atol=1e-6))

    @cached_property
    def covariance(self) -> Float[np.ndarray, "p p"]:
        """Of the posterior's normal approximation."""
        return inverse(self.information + self.precision)

    @property
    def from_data(self) -> Float[np.ndarray, " p"]:
        """By parameter, the share of what is known that the data gave: 0 where the posterior is the prior."""
        prior = np.diag(inverse(self.precision, 1e-6))
        return np.clip(1.0 - np.diag(self.covariance) / prior, 0.0, 1.0)

    @property
    def moved(self) -> Float[np.ndarray, " p"]:
        """By parameter, how far the prior moved the estimate, in the posterior's standard deviations."""
        without = -inverse(self.information, 1e-4) @ self.pull
        held = self.covariance @ (self.force - self.pull)
        return (held - without) / np.sqrt(np.diag(self.covariance))


def curvature(
    objective: Objective, minimum: Minimum, simulated: tuple[np.ndarray, np.ndarray, int] | None = None
) -> Curvature:
    """Calibrate a loss on its data. ``minimum`` says where to begin; it need not be one.

    ``simulated`` are the covariance and the median bias of estimates of simulated data, and how many there were: in
    place of what the units say, where there are none to resample or the model is to say it.
    """
    space = objective.space
    beta, centre = 1.0, space.to_y(interior(space, minimum.vector))
    believed = simulated is None and objective.loss.normalised and not objective.model.sampled
    for _ in range(ROUNDS):
        objective, centre = joint_mode(objective, beta, minimum, centre)
        loss, gradient, hessian, _ = evaluate(objective, centre)
        _, force, bend = prior_at_y(space, centre)
        slope, _ = space.slopes_of_y(centre)
        if not all(np.isfinite(part).all() for part in (gradient, hessian, force, bend)):
            raise MinimiserError(
                f"the loss or the prior is not finite at the posterior's mode ({_where(space, centre)}). What to do: "
                "check the data for values that the model cannot have, or give a prior that is finite there."
            )
        if simulated is not None:
            size, posterior = float(simulated[2]), hessian - bend
            squares = posterior @ simulated[0] @ posterior
        elif believed:
            size, squares = float(objective.data.n), hessian
        else:
            size, total, squares = objective.moments(space.from_y(centre))
            about = (squares - np.outer(total, total) / size) * size / max(size - 1.0, 1.0)
            if objective.units.kind == CLUSTERS:
                about = about * of_few(size)
            if objective.units.kind == WINDOWS:
                about = about * of_few(1.0 + size / DEGREES)
            squares = slope[:, None] * about * slope
        apart = space.size < size
        moving = objective.weights_derivative(space.from_y(centre))
        if moving.any() and simulated is None:
            squares = _widened(squares, hessian, slope[:, None] * moving * slope)
        hessian, across, ratios = _directions(hessian, squares, beta, -bend, apart)
        if believed:
            ratios = np.ones_like(ratios)  # J = H: the weight is 1, and not 1 but for rounding
        shrink = min(MOST, SHRINK * space.size / size)
        ratios = (1.0 - shrink) * ratios + shrink * (np.mean(ratios) if shrink == MOST else np.median(ratios))
        before, beta = beta, 1.0 / max(float(np.median(ratios)), np.finfo(float).tiny)
        if beta * abs(float(loss)) * np.finfo(float).eps > 1.0:  # then rounding moves the log density by more than 1
            raise _too_flat(objective, minimum, centre, beta)
        if abs(np.log(beta / before)) < SETTLED:
            break
    most = cap(space.size, 0.0 if objective.loss.bounded else size) * beta
    held = 1.0 if simulated is None else _held(across, -bend, beta)
    weights = np.minimum(1.0 / ratios, most / held)
    pushed = hessian @ across
    information = (pushed * weights) @ pushed.T
    stretch = (across * np.sqrt(weights / beta)) @ pushed.T
    pull = (pushed * weights) @ (across.T @ gradient)
    if simulated is not None:
        pull = pull + information @ simulated[1]
    tilt = pull - beta * stretch.T @ gradient
    found = Curvature(beta, centre, stretch, tilt, information, -bend, pull, force, weights)
    if not objective.elsewhere and np.abs(objective.data.rows).max(initial=0) > LARGE:
        points = centre + np.linspace(-0.2, 0.2, 41)[:, None] * np.sqrt(np.diag(found.covariance))
        values = objective.values(np.stack([np.asarray(space.from_y(point)) for point in points]))
        if beta * np.std(np.diff(values, 2)) > 0.5:  # of a parabola they are all the same
            raise _too_flat(objective, minimum, centre, beta)
    return found


def _too_flat(objective: Objective, minimum: Minimum, y: np.ndarray, beta: float) -> DfdbayesError:
    """What to say where a loss hardly changes beside what rounding does to it."""
    flat = flat_parameters(objective, minimum)
    if flat:
        return MinimiserError(f"the loss has no usable minimum: {flatness(flat)}")
    return CalibrationError(
        f"at {_where(objective.space, y)} the loss hardly changes beside its size: it would be weighted by {beta:.1e}, "
        "and a computer rounds it too coarsely for that. What to do: count values that hardly vary beside their size "
        "from their smallest, or in larger units; leave terms out of a formula that reproduces every row exactly; a "
        "mass function of your own is to change smoothly with its parameters, without jnp.floor, rounding or "
        "comparisons of parameters."
    )


def _held(across: np.ndarray, precision: np.ndarray, beta: float) -> np.ndarray:
    """The prior's share of what is known in each direction.

    How estimates of simulated data spread is seen, not inferred from the units of one data set, so a direction that is
    better known than others may be so. Only where the prior holds estimates is a small spread no sign of information.
    """
    prior = np.maximum(np.einsum("ik,ij,jk->k", across, precision, across), 0.0)
    return np.maximum(prior / (prior + beta), 1e-9)


def _widened(squares: np.ndarray, hessian: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """J as it would be if the loss were as curved as an estimating equation whose shares of completions move.

    The estimator's covariance is A^-1 J A^-T with A = H + ``moved``, and this is H A^-1 J A^-T H.
    """
    factor, inverted = root(hessian, 1e-8)
    kept = np.eye(len(hessian)) + inverted @ moved @ inverted.T
    least = float(linalg.eigvalsh(0.5 * (kept + kept.T))[0])
    kept += max(0.0, KEPT - least) * np.eye(len(hessian))
    across = factor @ linalg.solve(kept, inverted)
    return across @ squares @ across.T


def _directions(
    hessian: np.ndarray, squares: np.ndarray, beta: float, precision: np.ndarray, apart: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The Hessian made positive, directions u with u' H u = 1 and u' J u = lambda, and the lambdas.

    Curvatures are measured against the posterior's own, beta H + P: those below `FLAT` of it are raised to that. Of
    fewer units than parameters directions cannot be told ``apart``: J is zero in most of them. Their mean lambda,
    tr(H^-1 J) / p, is right all the same, and is given to all.
    """
    posterior = beta * hessian + precision
    if cholesky(hessian - FLAT / beta * posterior) is not None:
        inverted = root(hessian)[1]
    else:
        factor, inverted = root(posterior, 1e-8)
        values, turn = linalg.eigh(inverted @ hessian @ inverted.T)
        values = np.maximum(values, FLAT / beta)
        raised = factor @ turn
        hessian = (raised * values) @ raised.T
        inverted = (turn / np.sqrt(values)).T @ inverted
    if not apart:
        return hessian, inverted.T, np.full(len(hessian), np.sum((inverted @ squares) * inverted) / len(hessian))
    ratios, last = linalg.eigh(inverted @ squares @ inverted.T, driver="evd")
    return hessian, inverted.T @ last, np.maximum(ratios, 1e-12 * max(float(ratios[-1]), 1e-300))


def _where(space: Space, y: np.ndarray) -> str:
    theta = np.asarray(space.from_y(y))
    return ", ".join(f"{name} = {value:.3g}" for name, value in list(zip(space.names, theta, strict=True))[:4])
