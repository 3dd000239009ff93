"""`fit`: the road from data to a calibrated posterior, one stage after the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .. import families as models
from .._util.checkpoint import FITTED, NOTHING, Checkpoint, keeping
from .._util.codec import plain_or_none
from .._util.identity import fingerprint
from .._util.resources import Clock, estimate, forget_compiled, require_memory, require_unforked, threads
from ..backends.local import Backend, Source
from ..core import losses
from ..core import resampling as resamplings
from ..core import samplers as sampling
from ..core.calibration import Calibration, calibrate
from ..core.diagnostics import bounds_of, held_by_prior, require_finite, require_in_basin, warnings_of
from ..core.influence import summarised
from ..core.minimise import Minimum, Outcome, minimise, require
from ..core.missing import described, minimised, objective_with_missing
from ..core.model import AbstractModel
from ..core.objective import Objective, arranged
from ..core.parameters import Space
from ..core.posterior import beyond, clipped, named_draws, posterior, where_taken
from ..core.priors import describe_prior
from ..core.resampling import Bootstrap
from ..core.samplers import Draws
from ..data.read.dataset import opened, read
from ..errors import EscapedError, MinimiserError, SettingError
from ..results.checking import check
from ..results.checks import Checks
from ..results.hausman import another
from ..results.influence import of_rows
from ..results.saving import versions
from ..results.tree import assemble
from ..results.uncalibrated import uncalibrated_intervals
from .fit_result import Fit
from .plan import Plan, Progress, backend_of, by_percent, shown_on
from .reading import objective_of, own_priors, read_regression, read_rows, read_whole


def fit(
    model: AbstractModel | str,
    data: Any,
    *,
    formula: str | None = None,
    loss: Any = "auto",
    prior: Mapping[str, Any] | str | None = None,
    calibration: str | float | None = None,
    beta: float | None = None,
    on_failure: str = "raise",
    sampler: Any = "auto",
    draws: int | None = None,
    warmup: int | None = None,
    chains: int | None = None,
    bootstrap: int | None = None,
    resampling: Any = "multinomial",
    seed: int = 0,
    columns: Any = None,
    weights: Any = None,
    weighting: str = "auto",
    missing: str = "refuse",
    missing_codes: Any = None,
    decimal: str | None = None,
    cluster: str | None = None,
    time: str | None = None,
    options: Mapping[str, Any] | None = None,
    client: Any = None,
    checkpoint: str | Path | None = None,
    resume: bool = True,
    check: bool = True,
    progress: bool | Progress = True,
    **formulas: str,
) -> Fit:
    """Fit a model to discrete data: a generalised posterior with calibrated intervals.

    Parameters
    ----------
    model : AbstractModel or str
        For example ``dfd.models.ConwayMaxwellPoisson()``, a `Model` of your own, or a short name such as ``"cmp"``.
    data
        Anything `Dataset.of` reads; ``columns``, ``weights``, ``missing``, ``missing_codes`` and ``decimal`` are its.
        ``missing="impute"`` keeps rows with missing values: what they may be is weighed by how likely the model finds
        it (fractional imputation), which is right where values are missing at random.
        For ``dfd.models.RandomGraph`` a graph: anything `ObservedGraph.of` reads; ``nodes=`` is its table of nodes.
    formula : str, optional
        A regression: ``"visits ~ age + C(clinic) + offset(log(days))"`` for the mean of counts, the probability of a
        binary column, or the first parameter of another model; ``"~ group"`` for the intercepts of a network, whose
        columns are the others or those in ``columns``. Any parameter may have a formula, by its name:
        ``nu="~ clinic"``, ``interaction="~ group"``, ``zeros="~ 1"`` for counts with too many or too few zeros (a
        hurdle). A covariate very far from zero for its spread (a time stamp), or very large or small, is centred and
        scaled inside, its prior with it; results are of the covariate as it is.
    loss : str or loss
        ``"auto"`` chooses for the model and the data (see docs/how-to/choose-a-loss.md) and says why; ``"dfd"``
        (discrete Fisher divergence), ``"ratio"`` (its bounded relative), ``"ksd"`` (kernel Stein discrepancy),
        ``"pseudo"`` (pseudo-likelihood), ``"likelihood"``, ``"robust"`` (rows far from all others count less; see
        docs/how-to/dirty-data.md), or an object such as ``dfd.losses.Robust("dfd", weight=...)`` or
        ``dfd.losses.KernelStein(kernel=dfd.kernels.Robust(dfd.kernels.below(90)))``.
    prior : mapping or "paper", optional
        NumPyro distributions by parameter name, in place of the model's own; or the priors of Matsubara et al. (2024).
    calibration : str or float, optional
        See `calibrate`. By default ``"curvature"``: the loss gets the estimator's information in every direction, and
        the prior comes after. ``"score-matching"`` is the paper's weight; ``"none"`` is beta = 1, which for the
        likelihood is standard Bayes.
    beta : float, optional
        A weight by hand; then nothing is calibrated.
    on_failure : {"raise", "fallback"}
        What to do where the calibration has no positive beta; see `calibrate`.
    sampler : str or sampler
        ``"auto"`` (an independence chain where the posterior is nearly normal, else Hamiltonian Monte Carlo about its
        normal approximation, else NUTS), ``"nuts"``, ``"hmc"``, ``"independence"``, ``"random-walk"`` (the paper's),
        ``"laplace"``, or e.g. ``dfd.samplers.RandomWalk(step=0.05)``.
    draws, warmup, chains : int, optional
        Lengths of the chains; each sampler has its own defaults.
    bootstrap : int, optional
        Bootstrap replicates, for the calibrations that need them; the default one does not, but of graphs and maps. By
        default 400, and of a map 2000: its widths rest on simulated maps alone, and are known to 2 % by so many.
    resampling : {"multinomial", "dirichlet", "windows", "parametric"} or resampling
        Whether a bootstrap draws observations with replacement or gives each a random share; or, ``"parametric"``,
        whether data sets are simulated at the estimate and fitted again, which needs no independent observations and
        believes the model (graphs by default); or an object such as ``dfd.resampling.Blocks(side=5)``. Of a series
        windows of neighbouring rows are drawn, and the default calibration uses their long-run variance (Newey and
        West): ``dfd.resampling.Windows(length=12)`` says how long they are, and ``dfd.resampling.Rows()`` believes the
        model that rows share nothing given their past.
    seed : int
        The same seed gives the same draws.
    weighting : {"auto", "frequency", "sampling"}
        What weights are. Frequencies: how many observations each row stands for. Sampling weights: each row is one
        observation that stands for so many people (a survey's weights, or known precisions), so that its weight adds
        no information; widths then are those of linearisation. ``"auto"`` takes whole numbers for frequencies, and
        refuses those that look like a survey's: large ones, hardly any of them 1, of rows that do not list the
        combinations of values once each.
    cluster : str, optional
        The column that says which rows belong together (pupils of a school, shots of a patient): intervals allow for
        that by variances between clusters, which takes at least ten of them; ``fit.clusters`` says what they are worth.
    time : str, optional
        The column of times of a series (numbers or dates): rows are put in that order, ``lag(cases, 2)`` in a formula
        is the value of exactly two steps before, and intervals allow for what neighbouring rows share (see
        ``resampling``). With ``cluster`` there is a series for each of its values (a panel). Lags without ``time`` take
        rows in the order in which they are.
    options : mapping, optional
        With a model given by name, what its function takes: ``{"graph": dfd.graphs.grid(6, 6)}``.
    client : dask.distributed.Client, optional
        A cluster to read the data and run the bootstrap on; the results are the same. Where there are very many
        distinct rows they stay with its workers. Needs the extra ``distributed``.
    checkpoint : path, optional
        A folder that keeps finished parts of the run: the same call, after an interruption, goes on from there and
        gives the same result. Remove it when the result is saved. One run uses it at a time.
    resume : bool
        Whether to go on from what that folder keeps. Otherwise an earlier run's parts are removed from it, once the
        data and the model have been found sound.
    check : bool
        Whether to simulate from the posterior and compare with the data: ``fit.checks``, which reports show, and a
        `MisfitWarning` where the model does not reproduce them.
    progress : bool
        Whether to show progress bars (only on a terminal).

    Returns
    -------
    Fit

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> fit = dfd.fit("poisson", [2, 3, 1, 4, 2, 0, 3, 5, 2, 1] * 10, progress=False)
    >>> list(fit.summary().index)
    ['rate']
    """
    require_unforked()
    forget_compiled()
    plan = Plan.of(loss, calibration, beta, on_failure, sampler, draws, warmup, chains, bootstrap, resampling, seed)
    clock, shown, backend = Clock(), shown_on(progress), backend_of(client)
    watched = partial(backend.watched, _kept_in(checkpoint))
    with clock.stage("read"), watched():
        data = opened(data, missing_codes, decimal)
        reading = {"columns": columns, "weights": weights, "weighting": weighting, "missing": missing}
        reading["cluster"] = cluster
        formulas = (dict(model.formulas) if isinstance(model, AbstractModel) else {}) | formulas
        asked = reading | {"time": time}
        whole = read_whole(model, data, options, prior, asked | {"formula": formula, **formulas})
        if whole is not None:
            source, made = whole
        elif formula is None and not formulas:
            if time is not None:
                raise SettingError("time= is for formulas: give formula='cases ~ lag(cases)', for example")
            source, made = read_rows(backend, model, data, options, prior, reading, plan, shown)
        else:
            advance = by_percent(shown.begin("reading", 100))
            source, regressed = read_regression(backend, model, data, options, formula, formulas, asked, advance)
            made = regressed.with_priors(own_priors(prior)).labelled(source.data.columns)
        if source.data.is_complete:
            made.require_possible(source.data, "")
        plans = plan.of_data(made, source.data)
    for plan in plans:
        try:
            folder = checkpoint if plan is plans[0] else None  # it keeps parts of one loss
            with watched():
                inferred = _inferred(backend, source, made, plan, clock, folder, resume, shown)
            break
        except (EscapedError, MinimiserError):
            if plan is plans[-1]:
                raise
    objective, minimum, weight, drawn, theta = inferred
    with clock.stage("summarise"):
        inside = theta if weight.curvature is None else clipped(made.space, weight.curvature, theta)
        named, left_out = require_finite(named_draws(made, inside), made.space)
        line = {} if inside is theta else made.space.unflatten(theta)
        groups = assemble(named, drawn.stats, objective.data, _labels(made.space), line)
        target = getattr(plan.sampler, "target", None)
        told = warnings_of(objective, minimum, weight, drawn.stats, groups["posterior"], target) + left_out
        influential, moved = of_rows(objective, minimum, weight)
        imputed = described(objective, minimum.vector)
        told += moved
        found = Fit(
            made, objective.data, minimum, weight, groups, _settings(objective, minimum, weight, plan, drawn),
            tuple(map(str, told)), {"seconds": clock.seconds, "compiling": clock.compiling}, versions(), objective.loss,
            imputation=imputed, incomplete=None if imputed is None else objective.observed,
            clusters=None if weight.curvature is None else summarised(objective, minimum.vector),
            influential=influential,
        ).prepared()  # fmt: skip
    if check:
        if checkpoint is not None:
            found.save(Path(checkpoint) / FITTED)
        with clock.stage("check"), watched():
            found = _checked(found, objective, plan)
    for warning in told + ([] if found.checks is None else found.checks.warnings):
        warnings.warn(warning, stacklevel=2)
    return found


def _kept_in(checkpoint: str | Path | None) -> str:
    """What to do where machines went away."""
    if checkpoint is None:
        return (
            "the same call with a cluster that has workers; with checkpoint='folder' (on the command line: --out), "
            "finished parts are kept, and it goes on from there."
        )
    return (
        f"repeat the same call with a cluster that has workers (on the command line: with --resume); it goes on from "
        f"what is done, which is kept in '{checkpoint}'."
    )


def _inferred(
    backend: Backend, source: Source, made: AbstractModel, plan: Plan, clock: Clock, checkpoint: str | Path | None,
    resume: bool, shown: Progress,
) -> tuple[Objective, Minimum, Calibration, Draws, np.ndarray]:  # fmt: skip
    """The stages that depend on the loss, from its table to draws of the posterior, and these as parameters."""
    with clock.stage("tabulate"):
        objective = _tabulate(source, made, plan, shown)
    with clock.stage("minimise"):
        objective, minimum = minimised(objective)
        if plan.needs_minimum:
            require(minimum, objective)
        if plan.inside and minimum.outcome is Outcome.BOUNDARY:
            raise MinimiserError(minimum.message)
    wide, around = beyond(objective, minimum) if plan.continues else (objective, minimum)
    with keeping(checkpoint, lambda: _identity(objective, minimum, plan), resume) as kept:
        with clock.stage("calibrate"):
            weight = _calibrate(backend, wide, around, plan, kept, shown)
            if weight.curvature is not None:
                centre = np.asarray(wide.space.from_y(weight.curvature.centre))
                objective, wide = objective.imputed_at(centre), wide.imputed_at(centre)
        with clock.stage("sample"):
            drawn, theta = _sample(wide, around, weight, plan, kept, shown)
    return objective, minimum, weight, drawn, theta


def _tabulate(source: Source, model: AbstractModel, plan: Plan, shown: Progress) -> Objective:
    """The loss on the data, as long as the machine can hold what comes next."""
    if source.data.is_complete:
        model.require_possible(source.data, plan.loss.neighbours)
    units = None
    if plan.needs_units:
        units = resamplings.by_name(plan.resampling, model, source.data).units(model, source.data)
    objective = (
        objective_of(source, model, plan, units, shown)
        if source.data.is_complete
        else objective_with_missing(model, source.data, plan.loss, units, plan.seed)
    )
    _ = objective.own_weights
    cells = min(sum(leaf.size for leaf in jax.tree.leaves(objective.terms)), objective.data.rows.size)
    cells += 0 if objective.data.given is None else objective.data.given.size
    sampler, rows = plan.sampler, len(objective.data.rows)
    transitions = sampler.chains * sampler.transitions
    needs = estimate(model.space.size, objective.data.d, rows, cells, plan.fits, transitions, sampler.gradients)
    require_memory(needs)
    if needs.is_long:
        shown.tell(f"this will take a while: {needs}")
    return objective


def _calibrate(
    backend: Backend, objective: Objective, minimum: Minimum, plan: Plan, kept: Checkpoint, shown: Progress
) -> Calibration:
    """The weight of the loss, from bootstrap fits where it needs them."""
    replicates: int | Bootstrap = plan.bootstrap
    if plan.resamples:
        how = resamplings.by_name(plan.resampling, objective.model, objective.data)
        advance = shown.begin("bootstrap", plan.bootstrap)
        replicates = backend.bootstrap(
            how, objective, minimum, plan.bootstrap, seed=plan.seed, advance=advance, checkpoint=kept
        )
    return calibrate(objective, plan.calibration, bootstrap=replicates, minimum=minimum, on_failure=plan.on_failure)


def _sample(
    objective: Objective, minimum: Minimum, weight: Calibration, plan: Plan, kept: Checkpoint, shown: Progress
) -> tuple[Draws, np.ndarray]:
    """Draws of the posterior in unconstrained coordinates, and as parameters."""
    advance = shown.begin("sampling", plan.sampler.transitions)
    found = sample(objective, weight, minimum, plan.sampler, seed=plan.seed, advance=advance, checkpoint=kept)
    theta = objective.space.from_z(found.z)
    if found.stats:  # chains may wander off; independent draws cannot
        require_in_basin(objective, minimum, where_taken(objective, weight, theta))
    return found, theta


def sample(
    objective: Objective,
    beta: float | Calibration,
    minimum: Minimum | None = None,
    sampler: Any = "auto",
    *,
    seed: int = 0,
    advance: Callable[[int], None] = lambda done: None,
    checkpoint: Checkpoint = NOTHING,
) -> Draws:
    """Draws from the posterior pi(theta) exp(-beta D_n), or of a calibrated loss, in unconstrained coordinates."""
    if minimum is None:
        minimum = require(minimise(objective), objective)
    chosen = sampling.by_name(sampler, bounded=objective.loss.bounded)
    log_density, inputs, start = posterior(objective, beta, minimum)
    around = sampling.centre(log_density, inputs, start)
    return chosen.run(sampling.Task(log_density, inputs, around, seed, advance, checkpoint))


def objective(model: AbstractModel, data: Any, loss: Any = "dfd") -> Objective:
    """The loss ``loss`` of ``model`` on ``data`` (anything `Dataset.of` reads; a graph for `RandomGraph`)."""
    model = model.current()
    seen = model.observe(data)
    if seen is not None:
        return Objective(seen[1], seen[0], losses.by_name(loss))
    dataset, chosen = arranged(model, read(data, model.domain)), losses.by_name(loss)
    model.require_possible(dataset, chosen.neighbours)
    return Objective(model.labelled(dataset.columns), dataset, chosen)


def _checked(fit: Fit, objective: Objective, plan: Plan) -> Fit:
    """The same fit with its predictive checks, and the intervals that there would be without calibration."""
    checks = Checks(problem="the data are with the workers") if objective.elsewhere else check(
        objective.model, fit.joint_draws, objective.data, plan.seed, fit.estimate, objective.loss.normalised
    )  # fmt: skip
    checks = replace(checks, held=held_by_prior(objective, fit.minimum, fit.calibration, fit.joint_draws))
    if checks.goodness is not None and not objective.elsewhere and fit.imputation is None:
        checks = replace(checks, agreement=another(objective.model, objective.data, objective.loss, fit.minimum))
    plain = uncalibrated_intervals(objective, fit.minimum, plan.seed, list(fit.entries))
    told = (*fit.warnings, *map(str, checks.warnings))
    return replace(fit, checks=checks, uncalibrated=plain, warnings=told)


def _asked(objective: Objective, plan: Plan) -> dict[str, Any]:
    """Everything that was chosen, in values JSON can hold."""
    space, chosen = objective.model.space, plan.sampler
    return {
        "model": objective.model.name,
        "options": models.plain_options(objective.model),
        "formulas": dict(objective.model.formulas) or None,
        "loss": plan.loss.name,
        "loss_arguments": plain_or_none(plan.loss),
        "loss_reason": plan.reason,
        "priors": {p.name: describe_prior(p.prior) for p in space.parameters},
        "prior_arguments": {p.name: plain_or_none(p.prior) for p in space.parameters},
        "sampler": chosen.name,
        "draws": chosen.draws,
        "warmup": chosen.warmup,
        "chains": chosen.chains,
        "seed": plan.seed,
    }


def _settings(objective: Objective, minimum: Minimum, weight: Calibration, plan: Plan, drawn: Draws) -> dict[str, Any]:
    return _asked(objective, plan) | {
        **drawn.about,
        "loss_note": objective.note or None,
        "loss_weight": None if objective.elsewhere else objective.loss.words(objective.sites) or None,
        "resampling": weight.resampling or None,
        "units": str(objective.units),
        "calibration": weight.method,
        "edges": _edges(objective.model.space),
        "may_be_zero": _may_be_zero(objective.model.space),
        "kinds": objective.model.columns_told(objective.data.columns) or None,
        "series": objective.model.series_told,
        "bounds": None if objective.loss.bounded else bounds_of(minimum),
        "bootstrap": plan.bootstrap if len(weight.outcomes) else 0,
        "threads": threads(),
    }


def _edges(space: Space) -> dict[str, list[float | None]]:
    """The ends of the supports of entries that may lie on them."""
    ends = zip(space.names, space.lower, space.upper, space.closed, strict=True)
    return {name: [float(e) if np.isfinite(e) else None for e in (a, b)] for name, a, b, closed in ends if closed}


def _may_be_zero(space: Space) -> list[str]:
    """Parameters of which one may ask whether they are zero, by entry."""
    return [name for name, one in zip(space.names, space.may_be_zero, strict=True) if one]


def _identity(objective: Objective, minimum: Minimum, plan: Plan) -> dict[str, Any]:
    """What the parts of a run depend on."""
    parts = {"bootstrap": plan.bootstrap, "resampling": fingerprint(plan.resampling), "on_failure": plan.on_failure}
    parts |= {"data": objective.observed.digest, "calibration": fingerprint(plan.calibration)}
    parts |= {
        "sampler settings": fingerprint(plan.sampler),
        "loss settings": fingerprint(plain_or_none(plan.loss) or plan.loss),
    }
    # The minimum stands for what no identity sees: what a function calls outside of JAX.
    parts["minimum"] = [f"{number:.8g}" for number in (minimum.value, *minimum.vector)]
    return _asked(objective, plan) | parts | {"identity": objective.model.identity, "versions": versions()}


def _labels(space: Space) -> dict[str, tuple[str, ...]]:
    return {p.name: p.labels for p in space.parameters if p.labels and len(p.shape) == 1}
