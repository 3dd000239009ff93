"""`fit`: the road from data to a calibrated posterior."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

import jax
import numpy as np

from .. import losses, models
from .._util.checkpoint import NOTHING, Checkpoint, keeping
from .._util.identity import fingerprint
from .._util.process import require_unforked
from .._util.resources import LONG, Needs, estimate, require_memory
from .._util.timing import Clock
from ..backends import dask as distributed
from ..data.dataset import Dataset
from ..errors import CalibrationError, DataError, ModelError, SettingError
from ..inference import sampling
from ..inference.adjustment import METHODS as ADJUSTMENTS
from ..inference.adjustment import adjusted
from ..inference.calibration import RESAMPLING, Calibration, calibrate, require_positive
from ..inference.diagnostics import bounds_of, require_finite, require_in_basin, warnings_of
from ..inference.minimise import Minimum, minimise, require
from ..inference.objective import Objective, arranged
from ..inference.posterior import posterior
from ..inference.resampling import Bootstrap
from ..inference.resampling import bootstrap as run_bootstrap
from ..inference.sampling import Draws
from ..models import graphs
from ..models.base import AbstractModel, ExponentialFamily
from ..models.graphs import Graph
from ..models.graphs import blocks as cut_into_blocks
from ..models.parameters import Space, describe_prior, require_name
from ..results.fit_result import Fit, assemble, versions
from ..simulators import require_seed


class Progress(Protocol):
    """What shows progress: `begin` a stage of so many steps and call what it returns with steps done; `tell` a line."""

    def begin(self, stage: str, total: int) -> Callable[[int], None]: ...

    def tell(self, text: str) -> None: ...


class Silent:
    """No progress shown."""

    def begin(self, stage: str, total: int) -> Callable[[int], None]:
        return lambda done: None

    def tell(self, text: str) -> None:
        pass


def fit(
    model: AbstractModel | str,
    data: Any,
    *,
    loss: Any = "dfd",
    prior: Mapping[str, Any] | None = None,
    calibration: str | float | None = None,
    beta: float | None = None,
    adjust: str | None = "auto",
    on_failure: str = "raise",
    sampler: Any = "nuts",
    draws: int | None = None,
    warmup: int | None = None,
    chains: int | None = None,
    bootstrap: int = 400,
    resampling: str = "multinomial",
    seed: int = 0,
    columns: Any = None,
    weights: Any = None,
    missing: str = "refuse",
    options: Mapping[str, Any] | None = None,
    client: Any = None,
    checkpoint: str | Path | None = None,
    resume: bool = True,
    progress: bool | Progress = True,
) -> Fit:
    """Fit a model to discrete data: a generalised posterior whose width is calibrated by a bootstrap.

    Parameters
    ----------
    model : AbstractModel or str
        For example ``dfd.models.ConwayMaxwellPoisson()``, a `Model` of your own, or a short name such as ``"cmp"``.
    data
        Anything `Dataset.of` reads; ``columns``, ``weights`` and ``missing`` are passed to it.
    loss : str or loss
        ``"dfd"`` (discrete Fisher divergence), ``"ratio"`` (its bounded relative), ``"ksd"`` (kernel Stein
        discrepancy), ``"pseudo"`` (pseudo-likelihood), ``"likelihood"`` (standard Bayes), or an object such as
        ``dfd.losses.KernelStein(kernel=dfd.kernels.Robust(dfd.kernels.below(90)))``.
    prior : mapping, optional
        NumPyro distributions by parameter name, in place of the model's own.
    calibration : str or float, optional
        See `calibrate`. By default ``"score-matching-invariant"``, and ``"none"`` (beta = 1) for the likelihood;
        ``"score-matching"`` is the paper's.
    beta : float, optional
        A weight by hand; then nothing is calibrated.
    on_failure : {"raise", "fallback"}
        What to do where the calibration has no positive beta; see `calibrate`.
    adjust : {"auto", "bootstrap", "sandwich", None}
        Move the draws about their mean so that every direction has the estimator's width, as the bootstrap or the
        sandwich formula gives it. By default by the bootstrap if the calibration is the default too and the draws can
        be moved, which is what covers best (see docs/how-to/choose-a-calibration.md).
    sampler : str or sampler
        ``"nuts"``, ``"random-walk"`` (the paper's), ``"laplace"``, or e.g. ``dfd.samplers.RandomWalk(step=0.05)``.
    draws, warmup, chains : int, optional
        Lengths of the chains; each sampler has its own defaults.
    bootstrap : int
        Bootstrap replicates for the calibration.
    resampling : {"multinomial", "dirichlet"}
        Whether a bootstrap draws observations with replacement or gives each a random share.
    seed : int
        The same seed gives the same draws.
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
    require_seed(seed)
    clock, shown = Clock(), _progress(progress)
    loss = losses.by_name(loss)
    chosen = sampling.by_name(sampler, draws, warmup, chains, bounded=loss.bounded)
    if beta is not None:
        require_positive(beta)
    adjust = "none" if adjust is None else str(adjust).lower()
    if adjust not in ("none", "auto", *ADJUSTMENTS):
        raise SettingError(f"there is no adjustment '{adjust}'; known: {', '.join(ADJUSTMENTS)}, auto, none")
    method = beta if beta is not None else loss.calibration if calibration is None else calibration
    usual = beta is None and calibration is None and method in RESAMPLING
    wanted = {"auto": "bootstrap" if usual else None, "none": None}.get(adjust, adjust)
    resamples = method in RESAMPLING or wanted == "bootstrap"

    @cache
    def made(d: int) -> AbstractModel:
        """The model for so many columns; one that would not fit into memory is refused before any row is read."""
        found = models.by_name(model, d, options) if isinstance(model, str) else model.current()
        require_memory(estimate(found.space.size, d, 0, 0, bootstrap if resamples else 0, 0))
        return found

    with clock.stage("read"):
        reading = _by_percent(shown.begin("reading", 100))
        read = Dataset.of if client is None else partial(distributed.read, client)
        domain = (lambda d: made(d).domain) if isinstance(model, str) else made(0).domain
        columns = columns or _node_names(options if isinstance(model, str) else model.options)
        found = read(data, domain, columns=columns, weights=weights, missing=missing, advance=reading)
        dataset = found.sample if isinstance(found, distributed.Spread) else found
        model = made(dataset.d if isinstance(model, str) else 0)
        if isinstance(found, distributed.Spread) and isinstance(model, ExponentialFamily):
            found = dataset = found.whole()
        if client is not None:
            dataset.check(model.domain)
        dataset = arranged(model, dataset)
        model = model.with_priors(prior).labelled(dataset.columns)
        blocks = _blocks(model, dataset, resampled=resamples or wanted is not None or method == "lyddon")
    with clock.stage("tabulate"):
        if isinstance(found, distributed.Spread):
            objective = found.objective(model, loss)
        else:
            objective = Objective(model, dataset, loss, blocks)
        _ = objective.own_weights
    needs = _needs(objective, bootstrap if resamples else 0, chosen)
    require_memory(needs)
    if needs.seconds > LONG:
        shown.tell(f"this will take a while: {needs}")
    asked: dict[str, Any] = {
        "model": model.name,
        "options": models.plain_options(model),
        "loss": objective.loss.name,
        "priors": {p.name: describe_prior(p.prior) for p in model.space.parameters},
        "sampler": chosen.name,
        "draws": chosen.draws,
        "warmup": chosen.warmup,
        "chains": chosen.chains,
        "seed": seed,
    }
    with clock.stage("minimise"):
        minimum = require(minimise(objective), objective)

    def about() -> dict[str, Any]:
        parts = {"bootstrap": bootstrap, "resampling": resampling, "data": dataset.digest, "on_failure": on_failure}
        parts |= {
            "calibration": str(method),
            "sampler settings": fingerprint(chosen),
            "loss settings": fingerprint(loss),
        }
        # The minimum stands for what no identity sees: what a function calls outside of JAX.
        parts["minimum"] = [f"{number:.8g}" for number in (minimum.value, *minimum.vector)]
        return asked | parts | {"identity": model.identity, "versions": versions()}

    with keeping(checkpoint, about, resume) as kept:
        weight, sampled = _calibrated_draws(
            objective, minimum, chosen, clock, shown, kept, client=client, method=method, resamples=resamples,
            bootstrap=bootstrap, resampling=resampling, on_failure=on_failure, seed=seed,
        )  # fmt: skip
    with clock.stage("sample"):
        z, unmoved = sampled.z, ""
        try:
            z = adjusted(z, objective, minimum, weight, wanted)
        except CalibrationError as problem:
            if adjust != "auto":
                raise
            wanted, unmoved = None, str(problem).partition(" What to do")[0]
    with clock.stage("summarise"):
        named, left_out = require_finite(named_draws(model, model.space.from_z(z)), model.space)
        tree = assemble(named, sampled.stats, dataset, _labels(model.space))
        told = warnings_of(objective, minimum, weight, unmoved, wanted, sampled.stats, tree) + left_out
    for warning in told:
        warnings.warn(warning, stacklevel=2)
    settings = asked | {
        "resampling": resampling if len(weight.outcomes) else None,
        "units": "rows" if blocks is None else f"{len(objective.units)} blocks of sites of one observation",
        "calibration": weight.method,
        "adjust": wanted,
        "bounds": None if objective.loss.bounded else bounds_of(minimum),
        "bootstrap": bootstrap if len(weight.outcomes) else 0,
    }
    timings = {"seconds": clock.seconds, "compiling": clock.compiling}
    return Fit(model, dataset, minimum, weight, tree, settings, tuple(map(str, told)), timings, versions())


def _calibrated_draws(
    objective: Objective,
    minimum: Minimum,
    chosen: Any,
    clock: Clock,
    shown: Progress,
    kept: Checkpoint,
    *,
    client: Any,
    method: str | float,
    resamples: bool,
    bootstrap: int,
    resampling: str,
    on_failure: str,
    seed: int,
) -> tuple[Calibration, Draws]:
    """The weight of the loss, and draws of the posterior under it."""
    with clock.stage("calibrate"):
        replicates: int | Bootstrap = bootstrap
        if resamples:
            run = run_bootstrap if client is None else partial(distributed.bootstrap, client, here=run_bootstrap)
            advance = shown.begin("bootstrap", bootstrap)
            replicates = run(
                objective, minimum, bootstrap, kind=resampling, seed=seed, advance=advance, checkpoint=kept
            )
        weight = calibrate(objective, method, bootstrap=replicates, minimum=minimum, on_failure=on_failure)
    with clock.stage("sample"):
        advance = shown.begin("sampling", chosen.transitions)
        sampled = sample(objective, weight.beta, minimum, chosen, seed=seed, advance=advance, checkpoint=kept)
        if sampled.stats:  # chains may wander off; independent draws cannot
            require_in_basin(objective, minimum, objective.model.space.from_z(sampled.z))
    return weight, sampled


def _needs(objective: Objective, bootstrap: int, sampler: Any) -> Needs:
    p, d, rows = objective.model.space.size, objective.data.d, len(objective.data.rows)
    cells = min(sum(leaf.size for leaf in jax.tree.leaves(objective.arrays)), objective.data.rows.size)
    return estimate(p, d, rows, cells, bootstrap, sampler.chains * sampler.transitions)


def sample(
    objective: Objective,
    beta: float | Calibration,
    minimum: Minimum | None = None,
    sampler: Any = "nuts",
    *,
    seed: int = 0,
    advance: Callable[[int], None] = lambda done: None,
    checkpoint: Checkpoint = NOTHING,
) -> Draws:
    """Draws from the posterior pi(theta) exp(-beta D_n), in unconstrained coordinates."""
    if minimum is None:
        minimum = require(minimise(objective), objective)
    weight = beta.beta if isinstance(beta, Calibration) else beta
    chosen = sampling.by_name(sampler, bounded=objective.loss.bounded)
    log_density, inputs, start = posterior(objective, weight, minimum)
    around = sampling.centre(log_density, inputs, start)
    return chosen.run(log_density, inputs, around, seed, advance, checkpoint)


def named_draws(model: AbstractModel, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Draws by name, with the model's derived quantities after its parameters."""
    named = model.space.unflatten(theta)
    more = dict(model.derived(named)) if model.derived is not None else {}
    for name in more:
        require_name(name, "derived quantity")
        if name in named:
            raise ModelError(
                f"derived returns '{name}', which is a parameter: call the derived quantity something else"
            )
    return named | more


def _labels(space: Space) -> dict[str, tuple[str, ...]]:
    return {p.name: p.labels for p in space.parameters if p.labels and len(p.shape) == 1}


def _node_names(options: Mapping[str, Any] | None) -> tuple[str, ...] | None:
    """The columns that a graph asks for, where its nodes have names."""
    graph = (options or {}).get("graph")
    return None if graph is None or isinstance(graph, str) else graphs.of(graph).names or None


def _blocks(model: AbstractModel, data: Dataset, resampled: bool) -> np.ndarray | None:
    """What is resampled: rows (None), or blocks of sites if there is one observation of a lattice."""
    if data.n < 2 and not resampled:
        return None
    if data.n < 2 and isinstance(model.options.get("graph"), Graph) and data.d > 1:
        return cut_into_blocks(model.options["graph"])
    if data.n < 2:
        raise DataError("the data hold one row; at least two different rows are needed to calibrate a posterior")
    if len(data.rows) < 2:
        shown = ", ".join(f"{name} = {value}" for name, value in zip(data.columns[:5], data.rows[0], strict=False))
        raise DataError(
            f"the data are constant: all {data.n} rows have {shown}. The minimiser does not exist, and a bootstrap "
            "of constant data shows no variation. Check that the right column was read; otherwise "
            "collect data that vary."
        )
    return None


def _by_percent(advance: Callable[[int], None]) -> Callable[[int, int], None]:
    """Progress in percent from how much of how much was done."""
    shown = 0

    def of(done: int, total: int) -> None:
        nonlocal shown
        percent = 100 * done // max(total, 1)
        advance(percent - shown)
        shown = percent

    return of


def _progress(progress: bool | Progress) -> Progress:
    if progress is True:
        from .._util.progress import on_terminal  # only where bars are wanted

        return on_terminal()
    return Silent() if progress is False else progress
