"""How wide the posterior is: as wide as the estimator really varies.

One weight cannot serve all directions of a loss, and a weight that matches a *posterior* with the estimator's spread
counts the prior twice. So by default (``"curvature"``) the loss alone is calibrated,

    D_c(y) = beta D(m + C (y - m)) + l . (y - m),     posterior: pi exp(-D_c),

with C such that the Hessian of D_c at m is the estimator's information G there (Godambe's, H J^-1 H), and l such that
its gradient there fits. Where data are strong the posterior is as wide as the estimator varies, where they are weak it
is as wide as the prior, and for a likelihood that is right it is Bayes. Chandler and Bate (2007), Ribatet, Cooley and
Davison (2012) and Shaby (2014) adjust composite likelihoods in this way. All is in the minimiser's coordinates y:
unconstrained, but parameters that may lie on the edge of their support are left as they are, so that a loss is
calibrated on the whole line and its posterior cut off at the edge.

The other calibrations find one weight beta.

The bootstrap shows how the minimiser varies. Theorem 3 of the paper picks the beta whose posterior is closest, in the
score-matching sense, to the bootstrap minimisers. With gradients and Hessians of the full data's loss D_n there, and S,

    beta = sum_b [grad D . S grad log pi + tr(S Hess D)] / sum_b grad D . S grad D.

S is the identity in the paper (``"score-matching"``) and the bootstrap covariance in
``"score-matching-invariant"``, which does not change when a parameter is rescaled.

``"gpc"`` (Syring and Martin, 2019) looks for the beta at which 95 % credible sets of resampled data hold the full
data's minimiser 95 % of the time; ``"lyddon"`` (Lyddon, Holmes and Walker, 2019) matches information and needs no
resampling.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Array, Float
from scipy import linalg, special
from scipy.special import gammaincinv

from .._util.codec import APART
from .._util.words import LEVEL
from ..errors import CalibrationError, DfdbayesError, MinimiserError, SettingError
from .dataset import CLUSTERS, WINDOWS
from .linalg import cholesky, inverse, root
from .minimise import (
    Minima,
    Minimum,
    Outcome,
    evaluate,
    flat_parameters,
    flatness,
    interior,
    minimise,
    prior_at_y,
    require,
)
from .missing import joint_mode
from .objective import Objective, in_batches
from .parameters import Space
from .registry import Registry
from .renderers import renderer
from .resampling import Bootstrap, Parametric, noise, spread
from .resampling import bootstrap as run_bootstrap
from .windows import DEGREES

MAX_ROUNDS = 8  # of mode and weight in turn; three are enough as a rule
LEAST_CURVATURE = 1e-3  # least curvature of the loss in a direction, as a share of the posterior's
SHRINK = 2.0  # times parameters per unit: how far weights of directions move to their median
MAX_SHRINKAGE = 0.9  # at most; from there on to their mean, whatever their unevenness by chance
MAX_TIMES_COMMON = 1.5  # times the common weight, at most, that a direction may have; less where there are many
MANY_UNITS = 20.0  # units for each parameter from which weights that may differ are trusted the more


def cap(parameters: int, units: float = 0.0) -> float:
    """How much more than the common weight the best measured direction may get.

    Of many estimated weights the largest are too large by chance, and a direction in which no unit differs seems to be
    known exactly: this is what keeps both honest. Likelihoods and their relatives have nearly the same weight in all
    directions. The divergence has not: of ``units`` that are many, its weights are believed.
    """
    most = 1.0 + (MAX_TIMES_COMMON - 1.0) * min(1.0, (36.0 / parameters) ** 0.25)
    return most * max(1.0, units / (MANY_UNITS * parameters))


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

    With H the Hessian of the loss at the joint mode and J the covariance of the scores of its units, directions U have
    U' H U = 1 and U' J U = diag(lambda). Direction k gets the weight w_k = 1 / lambda_k, shrunk to the others' and not
    far above them; then G = H U diag(w) U' H, C = U diag(sqrt(w / beta)) U' H, and the tilt makes gradients agree.

    ``simulated`` are the covariance and the median bias of estimates of simulated data, and how many there were: in
    place of what the units say, where there are none to resample or the model is to say it.
    """
    space = objective.space
    beta, centre = 1.0, space.to_y(interior(space, minimum.vector))
    believed = simulated is None and objective.loss.normalised and not objective.model.sampled
    for _ in range(MAX_ROUNDS):
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
            scores = posterior @ simulated[0] @ posterior
        elif believed:
            size, scores = float(objective.data.n), hessian
        else:
            size, total, scores = objective.moments(space.from_y(centre))
            centred = (scores - np.outer(total, total) / size) * size / max(size - 1.0, 1.0)
            if objective.units.kind == CLUSTERS:
                centred = centred * of_few(size)
            if objective.units.kind == WINDOWS:
                centred = centred * of_few(1.0 + size / DEGREES)
            scores = slope[:, None] * centred * slope
        determined = space.size < size
        moving = objective.weights_derivative(space.from_y(centre))
        if moving.any() and simulated is None:
            scores = _widened(scores, hessian, slope[:, None] * moving * slope)
        hessian, directions, lambdas = _directions(hessian, scores, beta, -bend, determined)
        if believed:
            lambdas = np.ones_like(lambdas)  # J = H: the weight is 1, and not 1 but for rounding
        shrink = min(MAX_SHRINKAGE, SHRINK * space.size / size)
        common = np.mean(lambdas) if shrink == MAX_SHRINKAGE else np.median(lambdas)
        lambdas = (1.0 - shrink) * lambdas + shrink * common
        before, beta = beta, 1.0 / max(float(np.median(lambdas)), np.finfo(float).tiny)
        if beta * abs(float(loss)) * np.finfo(float).eps > 1.0:  # then rounding moves the log density by more than 1
            raise _too_flat(objective, minimum, centre, beta)
        # a relative change of the weight that no width shows
        if abs(np.log(beta / before)) < 1e-3:
            break
    most = cap(space.size, 0.0 if objective.loss.bounded else size) * beta
    prior_share = 1.0 if simulated is None else _held(directions, -bend, beta)
    weights = np.minimum(1.0 / lambdas, most / prior_share)
    duals = hessian @ directions
    information = (duals * weights) @ duals.T
    stretch = (directions * np.sqrt(weights / beta)) @ duals.T
    pull = (duals * weights) @ (directions.T @ gradient)
    if simulated is not None:
        pull = pull + information @ simulated[1]
    tilt = pull - beta * stretch.T @ gradient
    found = Curvature(beta, centre, stretch, tilt, information, -bend, pull, force, weights)
    # from such values on, sums of y log y lose nine digits of sixteen: is the loss still smooth?
    if not objective.elsewhere and np.abs(objective.data.rows).max(initial=0) > 1e6:
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
    # Missing entries leave 2 % of the information in a direction at least; with none left there would be no width.
    kept += max(0.0, 0.02 - least) * np.eye(len(hessian))
    across = factor @ linalg.solve(kept, inverted)
    return across @ squares @ across.T


def _directions(
    hessian: np.ndarray, squares: np.ndarray, beta: float, precision: np.ndarray, apart: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The Hessian made positive, directions u with u' H u = 1 and u' J u = lambda, and the lambdas.

    Curvatures are measured against the posterior's own, beta H + P: those below `LEAST_CURVATURE` of it are raised to
    that. Of fewer units than parameters directions cannot be told ``apart``: J is zero in most of them. Their mean
    lambda, tr(H^-1 J) / p, is right all the same, and is given to all.
    """
    posterior = beta * hessian + precision
    if cholesky(hessian - LEAST_CURVATURE / beta * posterior) is not None:
        inverted = root(hessian)[1]
    else:
        factor, inverted = root(posterior, 1e-8)
        values, turn = linalg.eigh(inverted @ hessian @ inverted.T)
        values = np.maximum(values, LEAST_CURVATURE / beta)
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


@dataclass(frozen=True)
class Calibration:
    """The weight, how it came about, and whether to believe it.

    Attributes
    ----------
    beta : float
    error : float
        Monte-Carlo standard error of ``beta``: the jackknife over bootstrap replicates.
    condition : bool or None
        Whether Theorem 3's condition holds (None where the method does not use it).
    numerator, denominator : float
        Of the formula above, averaged over replicates. ``from_prior`` and ``from_data`` make up the numerator.
    minimisers : (b, p) floats
        The bootstrap minimisers, one row each, with their ``outcomes``; the formula could use ``used`` of them.
    names : tuple of str
        The parameters, in the order of the columns.
    resampling : str
        How the bootstrap weights were drawn; ``degenerate`` replicates had a constant column that varies in the data.
    reached : float
        With ``"gpc"``, the share of bootstrap credible sets that hold the full data's minimiser.
    instead_of : str
        The method that was asked for and why it failed, where another one stands in for it.
    curvature : Curvature or None
        With ``"curvature"``, the calibrated loss; ``beta`` is then its common weight.
    """

    method: str
    beta: float
    error: float
    condition: bool | None
    numerator: float
    denominator: float
    from_prior: float
    from_data: float
    used: int
    names: tuple[str, ...] = field(metadata=APART)
    minimisers: Float[np.ndarray, "b p"] = field(metadata=APART)
    outcomes: tuple[str, ...] = field(metadata=APART)
    resampling: str = ""
    degenerate: int = 0
    reached: float = float("nan")
    instead_of: str = ""
    curvature: Curvature | None = field(default=None, metadata=APART)

    @property
    def simulated(self) -> bool:
        """Whether replicates were simulated at the estimate."""
        return self.resampling == Parametric.kind

    @property
    def tally(self) -> dict[str, int]:
        """How many bootstrap minimisers ended in which way."""
        return {outcome: self.outcomes.count(outcome) for outcome in dict.fromkeys(self.outcomes)}

    def __repr__(self) -> str:
        return self.message

    def _repr_html_(self) -> str:
        return renderer("calibration")(self)

    @property
    def how(self) -> AbstractCalibration:
        """The calibration that this is the outcome of."""
        return CALIBRATIONS.by_name(self.method) if self.method in CALIBRATIONS else Given(self.beta)

    @property
    def message(self) -> str:
        """The calibration as a sentence."""
        return self.how.told(self)

    @property
    def fits_told(self) -> str:
        """How many bootstrap fits there were, and how they ended."""
        ended = ", ".join(f"{count} {outcome}" for outcome, count in self.tally.items())
        return f"{len(self.outcomes)} {self.resampling} bootstrap fits: {ended}"


def require_positive(beta: float) -> None:
    """Refuse a weight that is not a positive number."""
    if not np.isfinite(beta) or beta <= 0:
        raise SettingError(f"beta is {beta}; it must be a positive number (beta > 0)")


def _of_weight(beta: float, space: Space, method: str) -> Calibration:
    nan = float("nan")
    empty = np.empty((0, space.size))
    return Calibration(method, float(beta), 0.0, None, nan, nan, nan, nan, 0, space.names, empty, ())


@partial(jax.jit, static_argnums=0)
def _prior_gradients(space: Space, v: Array, priors: dict[str, Any]) -> Float[Array, "b p"]:
    return jax.vmap(jax.grad(space.log_prior), in_axes=(0, None))(v, priors)


def _in_own_coordinates(
    space: Space, thetas: np.ndarray, gradients: np.ndarray, hessians: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Gradients and Hessians in the coordinates v of the priors (roots, where theta = v^2)."""
    slope = np.where(space.square, 2.0 * space.to_v(thetas), 1.0)
    curved = slope[:, :, None] * hessians * slope[:, None, :]
    i = np.flatnonzero(space.square)
    curved[:, i, i] += 2.0 * gradients[:, i]
    return slope * gradients, curved


def calibrate(
    objective: Objective,
    method: str | float | AbstractCalibration = "curvature",
    *,
    bootstrap: int | Bootstrap = 400,
    resampling: str = "multinomial",
    seed: int = 0,
    minimum: Minimum | None = None,
    on_failure: str = "raise",
    advance: Callable[[int], None] = lambda done: None,
) -> Calibration:
    """Choose the weight of a loss from bootstrap replicates of its minimiser.

    Parameters
    ----------
    objective : Objective
    method : str, float or calibration
        ``"curvature"`` (the estimator's information in every direction, without a bootstrap), ``"score-matching"``
        (the paper's Theorem 3), ``"score-matching-invariant"``, ``"gpc"`` (bootstrap coverage of credible sets),
        ``"lyddon"`` (information matching), ``"none"`` for beta = 1, or a number.
    bootstrap : int or Bootstrap
        How many replicates, or those already fitted.
    resampling : {"multinomial", "dirichlet"}
        See `dfdbayes.bootstrap`.
    seed : int
    minimum : Minimum, optional
        The full data's minimum, if already known.
    on_failure : {"raise", "fallback"}
        Where no positive beta exists: stop, or use ``"score-matching-invariant"``, then ``"lyddon"``, and say so.
    advance : callable, optional
        Called with the number of replicates just finished.

    Raises
    ------
    CalibrationError
        If no positive beta exists; the message says why and what to do.
    """
    if on_failure not in ("raise", "fallback"):
        raise SettingError(f"on_failure must be 'raise' or 'fallback', not {on_failure!r}")
    chosen = by_name(method)
    replicates = bootstrap if isinstance(bootstrap, Bootstrap) else None
    if minimum is None:
        minimum = minimise(objective)
        if chosen.needs_minimum:
            require(minimum, objective)
    if not isinstance(bootstrap, Bootstrap) and chosen.resamples:
        replicates = run_bootstrap(objective, minimum, bootstrap, resampling=resampling, seed=seed, advance=advance)
    others = [] if on_failure == "raise" or not chosen.needs_minimum else [
        other for other in (ScoreMatching("score-matching-invariant"), InformationMatching())
        if other != chosen and not (other.resamples and replicates is None)
    ]  # fmt: skip
    reasons: list[str] = []
    first: CalibrationError | None = None
    for candidate in (chosen, *others):
        try:
            found = candidate(objective, minimum, replicates)
        except CalibrationError as problem:
            reasons.append(f"{candidate.name}: {problem}")
            first = first or problem
            continue
        return replace(_with(found, replicates), instead_of="; ".join(reasons))
    assert first is not None
    raise first if len(reasons) == 1 else CalibrationError(" | ".join(reasons), first.calibration)


def _with(found: Calibration, replicates: Bootstrap | None) -> Calibration:
    """A calibration together with the bootstrap fits there are, whether its formula used them or not."""
    if replicates is None:
        return found
    return replace(
        found,
        minimisers=replicates.minima.vectors,
        outcomes=tuple(map(str, replicates.minima.outcomes)),
        resampling=replicates.kind,
        degenerate=replicates.degenerate,
    )


# -- ways to calibrate -------------------------------------------------------------------------


class AbstractCalibration(ABC):
    """A way to make a posterior as wide as the estimator varies.

    Calling it gives the `Calibration` of an objective at its minimum; ``replicates`` are bootstrap fits where it asks
    for them. What it asks for are plain facts, which `fit` reads.
    """

    name: str
    needs_minimum: ClassVar[bool] = True
    """Whether the loss itself needs a minimum: where single observations are looked at, or data sets made of them."""
    resamples: ClassVar[bool] = False
    """Whether it needs bootstrap fits."""
    by_direction: ClassVar[bool] = False
    """Whether every direction has a weight of its own, of a loss that goes on beyond the boundaries of supports."""
    adjusts: ClassVar[bool] = True
    """Whether the data decide; not where a weight was given."""

    @abstractmethod
    def __call__(self, objective: Objective, minimum: Minimum, replicates: Bootstrap | None) -> Calibration:
        """Calibrate; `CalibrationError` where there is no positive weight."""

    def told(self, found: Calibration) -> str:
        """What was found, as a sentence."""
        return f"beta = {found.beta:.4g} ({found.method})"


CALIBRATIONS: Registry[AbstractCalibration] = Registry("calibration", hint=", or a number")


def by_name(method: Any) -> AbstractCalibration:
    """The calibration that a word names, that of a weight given as a number, or the given one."""
    if isinstance(method, AbstractCalibration):
        return method
    if isinstance(method, (int, float)) and not isinstance(method, bool):
        require_positive(method)
        return Given(float(method))
    return CALIBRATIONS.by_name(method)


@dataclass(frozen=True)
class ByCurvature(AbstractCalibration):
    """The estimator's information in every direction: no single weight."""

    name: str = "curvature"
    needs_minimum: ClassVar[bool] = False
    by_direction: ClassVar[bool] = True

    def __call__(self, objective: Objective, minimum: Minimum, replicates: Bootstrap | None) -> Calibration:
        simulated = None
        if replicates is not None and replicates.truth is not None:
            simulated = (*spread(objective, replicates), len(replicates.minima.values))
        shape = curvature(objective, minimum, simulated)
        return replace(_of_weight(shape.beta, objective.space, self.name), curvature=shape)

    def told(self, found: Calibration) -> str:
        assert found.curvature is not None
        if found.curvature.unchanged:
            return "beta = 1: the likelihood says itself how sure it is, and needs no calibration"
        least, most = found.curvature.weights.min(), found.curvature.weights.max()
        made = "the spread of the data"
        if found.simulated:
            sets = len(found.outcomes)
            made = f"{sets} data sets simulated at the estimate (by which widths are known to {noise(sets):.1%})"
        return (
            f"intervals are as wide as estimates vary, by {made} "
            f"(sandwich information, a curvature adjustment): the loss is weighted by {least:.3g} to {most:.3g}, "
            f"each direction by its own (median beta = {found.beta:.4g})"
        )


@dataclass(frozen=True)
class ScoreMatching(AbstractCalibration):
    """Theorem 3 of the paper; ``"score-matching-invariant"`` does not change when a parameter is rescaled."""

    name: str = "score-matching"
    resamples: ClassVar[bool] = True

    def __call__(self, objective: Objective, minimum: Minimum, replicates: Bootstrap | None) -> Calibration:
        assert replicates is not None
        return _score_matching(objective, replicates.minima, self.name)

    def told(self, found: Calibration) -> str:
        return (
            f"beta = {found.beta:.4g} +- {found.error:.2g} ({found.method}, {found.fits_told}; Theorem 3's condition "
            f"{'holds' if found.condition else 'fails'}: {found.numerator:.4g} > 0, of which the prior gives "
            f"{found.from_prior:.3g} and the data {found.from_data:.4g}, over {found.denominator:.4g})"
        )


@dataclass(frozen=True)
class CoverageMatching(AbstractCalibration):
    """The weight at which bootstrap credible sets hold the minimiser as often as they say."""

    name: str = "gpc"
    resamples: ClassVar[bool] = True

    def __call__(self, objective: Objective, minimum: Minimum, replicates: Bootstrap | None) -> Calibration:
        assert replicates is not None
        return _coverage_matching(objective, minimum, replicates)

    def told(self, found: Calibration) -> str:
        held = f"{found.reached:.1%} of their {LEVEL:.0%} credible sets hold the minimiser"
        return f"beta = {found.beta:.4g} +- {found.error:.2g} (gpc, {found.fits_told}; {held})"


@dataclass(frozen=True)
class InformationMatching(AbstractCalibration):
    """Information matching, without a bootstrap (Lyddon, Holmes and Walker, 2019)."""

    name: str = "lyddon"

    def __call__(self, objective: Objective, minimum: Minimum, replicates: Bootstrap | None) -> Calibration:
        return _lyddon(objective, minimum)

    def told(self, found: Calibration) -> str:
        return f"beta = {found.beta:.4g} by information matching (Lyddon et al., 2019), without a bootstrap"


@dataclass(frozen=True)
class Given(AbstractCalibration):
    """A weight that was chosen by hand, or none: beta = 1."""

    beta: float = 1.0
    name: str = "given"
    needs_minimum: ClassVar[bool] = False
    adjusts: ClassVar[bool] = False

    def __call__(self, objective: Objective, minimum: Minimum, replicates: Bootstrap | None) -> Calibration:
        return _of_weight(self.beta, objective.space, self.name)

    def told(self, found: Calibration) -> str:
        return f"beta = {found.beta:g}" + (
            ": the loss was not calibrated" if found.method in CALIBRATIONS else ", given by hand"
        )


for each in (
    ByCurvature(), ScoreMatching(), ScoreMatching("score-matching-invariant"), CoverageMatching(),
    InformationMatching(), Given(name="none"),
):  # fmt: skip
    CALIBRATIONS.register(each.name)(each)


def information(objective: Objective, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The loss's Hessian, and the sum over observations of squared gradients, at ``theta``."""
    return objective.hessian(theta), objective.moments(theta)[2]


def _lyddon(objective: Objective, minimum: Minimum) -> Calibration:
    """Match the scale of the information: tr(H J^-1 H) / tr H (Lyddon et al., 2019), as `information` has H and J."""
    space = objective.space
    hessian, squares = information(objective, minimum.vector)
    slope = np.where(space.square, 2.0 * space.to_v(minimum.vector), 1.0)
    hessian = slope[:, None] * hessian * slope[None, :]
    hessian += np.diag(np.where(space.square, 2.0 * objective.gradient(minimum.vector), 0.0))
    squares = slope[:, None] * squares * slope[None, :]
    condition = np.linalg.cond(squares)
    if not np.isfinite(condition) or condition > 1e12:
        raise CalibrationError(
            f"information matching ('lyddon') needs the inverse of the gradients' covariance, which is singular here "
            f"(condition number {condition:.1e}). What to do: use calibration='score-matching-invariant'."
        )
    whole = hessian + slope[:, None] * objective.weights_derivative(minimum.vector) * slope[None, :]
    top, bottom = float(np.trace(whole.T @ np.linalg.solve(squares, whole))), float(np.trace(hessian))
    found = replace(_of_weight(top / bottom, space, "lyddon"), numerator=top, denominator=bottom)
    if found.beta <= 0:
        raise CalibrationError(
            f"information matching gives beta = {found.beta:.3g}, which is not positive: the Hessian has a negative "
            "trace. What to do: use calibration='score-matching-invariant', or give beta by hand.",
            found,
        )
    return found


def _score_matching(objective: Objective, minima: Minima, method: str) -> Calibration:
    space = objective.space
    used = _enough(minima)
    thetas = minima.vectors[used]
    points = space.to_v(thetas)
    (prior,) = in_batches(lambda part: (_prior_gradients(space, part, space.prior_values),), points)
    away = points - points.mean(axis=0)
    matrix = np.eye(space.size) if method == "score-matching" else np.atleast_2d(np.cov(points.T))

    def curved(part: np.ndarray) -> tuple[np.ndarray, ...]:
        """Gradients, tr(MH) and a'Ha: all that is kept of Hessians, of which only a batch is there at a time."""
        gradients, hessians = _in_own_coordinates(space, thetas[part], *objective.derivatives(thetas[part]))
        along = np.einsum("bi,bij,bj->b", away[part], hessians, away[part], optimize=True)
        return gradients, np.einsum("ij,bij->b", matrix, hessians), along

    gradients, traces, bends = in_batches(curved, np.arange(len(thetas)), objective.batch)
    if method == "score-matching":
        from_prior, from_data, squares = np.sum(gradients * prior, axis=1), traces, np.sum(gradients**2, axis=1)
    else:
        from_prior, from_data, squares = _by_covariance_of_the_others(matrix, away, gradients, prior, traces, bends)
    keep = np.isfinite(from_prior + from_data + squares)  # a prior may have no slope on a boundary
    if keep.sum() < 2:
        raise CalibrationError(
            f"{len(thetas)} bootstrap minimisers lie on the boundary of the parameter space, where the prior has no "
            "finite slope, so Theorem 3 does not apply. What to do: choose a prior with a finite density and slope "
            "at the boundary, or give beta by hand."
        )
    from_prior, from_data, squares = from_prior[keep], from_data[keep], squares[keep]
    tops = from_prior + from_data
    top, bottom = float(tops.mean()), float(squares.mean())
    found = replace(
        _of_weight(top / bottom if bottom > 0 else float("nan"), space, method),
        error=_jackknife(tops, squares),
        condition=bool(bottom > 0 and top > 0),
        numerator=top,
        denominator=bottom,
        from_prior=float(from_prior.mean()),
        from_data=float(from_data.mean()),
        used=int(keep.sum()),
    )
    if not found.condition:
        raise CalibrationError(
            f"no beta > 0 fits: Theorem 3's condition fails. The numerator is {top:.4g} on average over "
            f"{len(tops)} bootstrap fits (prior {found.from_prior:.4g}, data {found.from_data:.4g}; negative in "
            f"{np.mean(tops < 0):.0%} of them), so beta would be {found.beta:.3g} +- {found.error:.2g}. "
            "The prior is probably narrower than the estimator's spread. What to do: widen the prior, use "
            f"{_alternatives(method)}, or give beta by hand.",
            found,
        )
    return found


def _by_covariance_of_the_others(
    matrix: np.ndarray, away: np.ndarray, gradients: np.ndarray, prior: np.ndarray, traces: np.ndarray,
    bends: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """g'Mp, tr(MH) and g'Mg of each replicate, M being the covariance of all other replicates.

    With itself among them a replicate's gradient would seem too long, and beta too small by a factor of about
    1 + (parameters) / (replicates). ``matrix`` is the covariance of all, ``traces`` and ``bends`` are tr(H matrix) and
    a'Ha, a being a replicate's distance from the mean.
    """
    size = len(away)
    whole, own = ((size - 1) / (size - 2), size / ((size - 1) * (size - 2))) if size > 2 else (1.0, 0.0)
    along = np.sum(gradients * away, axis=1)
    with np.errstate(invalid="ignore"):  # a prior may have no slope on a boundary
        towards = np.sum(prior * away, axis=1)
        from_prior = whole * np.sum(gradients @ matrix * prior, axis=1) - own * along * towards
    squares = whole * np.sum(gradients @ matrix * gradients, axis=1) - own * along**2
    return from_prior, whole * traces - own * bends, squares


def _alternatives(method: str) -> str:
    """What else may work where Theorem 3's condition fails."""
    others = [m for m in ("score-matching-invariant", "gpc", "lyddon") if m != method]
    return " or ".join(f"calibration='{m}'" for m in others)


@partial(jax.jit, static_argnums=0)
def _prior_at_z(space: Space, z: Array, priors: dict[str, Any]) -> tuple[Array, Array]:
    """Gradients and Hessians of the prior's log density in unconstrained coordinates."""

    def density(z: Array) -> Array:
        return space.log_prior(space.v_of_z(z), priors) + space.log_jacobian(z)

    return jax.vmap(jax.grad(density))(z), jax.vmap(jax.hessian(density))(z)


def _coverage_matching(objective: Objective, minimum: Minimum, replicates: Bootstrap) -> Calibration:
    """The largest beta at which credible sets of resampled data hold the full data's minimiser often enough.

    A credible set is an ellipsoid of the posterior's normal approximation in unconstrained coordinates, the mode taken
    by one Newton step from the loss's minimiser. Each replicate's set shrinks as beta grows, and stops to hold the
    minimiser at some beta of its own; the weight is the quantile of those. (Syring and Martin search by stochastic
    approximation because every step of theirs costs a run of Markov chains; solving for each replicate's own beta finds
    the same crossing, to 1e-9.)
    """
    space = objective.space
    used = _enough(replicates.minima)
    with np.errstate(divide="ignore"):
        centre, z = space.to_z(minimum.vector), space.to_z(replicates.minima.vectors[used])
    if not (np.isfinite(centre).all() and np.isfinite(z).all()):
        raise CalibrationError(
            "'gpc' compares ellipsoids in unconstrained coordinates, and some minimisers lie on the boundary of the "
            "parameter space, where there are none. What to do: use calibration='score-matching-invariant'."
        )
    centre, z = space.fold(centre), space.fold(z)
    curvature = objective.hessians_at_z(z, replicates.weights[used])
    slope, bend = in_batches(lambda part: _prior_at_z(space, part, space.prior_values), z)
    limit = 2.0 * gammaincinv(0.5 * space.size, LEVEL)  # a quantile of chi squared

    def outside(beta: np.ndarray) -> np.ndarray:
        precision = beta[:, None, None] * curvature - bend
        gap = centre - z - np.linalg.solve(precision, slope[..., None])[..., 0]
        return np.einsum("bi,bij,bj->b", gap, precision, gap) > limit

    low, high = np.full(len(z), -25.0), np.full(len(z), 25.0)
    while np.max(high - low) > 1e-9:
        middle = 0.5 * (low + high)
        out = outside(np.exp(middle))
        low, high = np.where(out, low, middle), np.where(out, middle, high)
    own = 0.5 * (low + high)
    beta = float(np.quantile(own, 1 - LEVEL))
    if abs(beta) > 24.0:
        raise CalibrationError(
            f"no beta gives bootstrap credible sets {LEVEL:.0%} coverage: the prior decides where they lie. What to "
            "do: widen the prior, or give beta by hand."
        )
    again = np.random.default_rng(0).choice(own, size=(500, len(own)))
    error = float(np.exp(beta) * np.quantile(again, 1 - LEVEL, axis=1).std())
    reached = float(np.mean(own >= beta))
    return replace(_of_weight(np.exp(beta), space, "gpc"), error=error, used=int(used.sum()), reached=reached)


def _enough(minima: Minima) -> np.ndarray:
    used = minima.usable
    if used.sum() < max(2, len(used) / 2):
        escaped = sum(outcome is Outcome.ESCAPED for outcome in minima.outcomes)
        raise CalibrationError(
            f"only {int(used.sum())} of {len(used)} bootstrap fits have a minimum ({escaped} escaped): the data "
            "hold too little information to calibrate this loss. What to do: more data, a simpler model, "
            "loss='ratio' (bounded below), or beta by hand."
        )
    return used


def _jackknife(tops: np.ndarray, bottoms: np.ndarray) -> float:
    """Standard error of sum(tops) / sum(bottoms) by leaving each replicate out."""
    size = len(tops)
    with np.errstate(divide="ignore", invalid="ignore"):
        left_out = (tops.sum() - tops) / (bottoms.sum() - bottoms)
    return float(np.sqrt((size - 1) / size * np.sum((left_out - left_out.mean()) ** 2)))
