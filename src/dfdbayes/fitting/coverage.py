"""Frequentist coverage of the whole road: simulate, fit, calibrate, and count how often the truth is inside."""

from __future__ import annotations

import json
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._util.files import require_writable
from .._util.identity import fingerprint
from .._util.progress import on_screen
from .._util.resources import kept, require_seed, require_unforked
from ..backends.local import Local
from ..core.calibration import Curvature
from ..core.model import AbstractModel
from ..core.parameters import Space
from ..errors import DataError, DfdbayesError, SettingError
from ..families.simulate import simulate
from ..results.intervals import interval
from ..results.predictive import parameters_of
from ..results.saving import versions
from ..results.tree import LINE
from .fit import fit
from .plan import Silent, backend_of


@dataclass(frozen=True)
class Coverage:
    """How often intervals and regions held the truth.

    Attributes
    ----------
    joint : dict
        Level to coverage of the joint region of all parameters.
    marginal : dict of dict
        Parameter to level to coverage of its interval.
    replicates : int
        How many fits the shares are of; ``failures`` more had none, by reason.
    """

    joint: dict[float, float]
    marginal: dict[str, dict[float, float]]
    replicates: int
    failures: dict[str, int]

    def __repr__(self) -> str:
        level = max(self.joint)
        return (
            f"Coverage over {self.replicates} data sets: joint {level:.0%} regions hold the truth in "
            f"{self.joint[level]:.1%} (± {self.error(self.joint[level]):.1%})"
        )

    def _repr_html_(self) -> str:
        from ..present.figures import coverage
        from ..present.notebook import shown

        failed = [f"{number} fits failed: {why}" for why, number in self.failures.items()]
        picture, caption = coverage(self), "Coverage against level"
        return shown("Coverage", f"{self!r}.", self.table, picture, caption, failed, rest="coverage.table")

    def error(self, share: float) -> float:
        """Binomial standard error of a coverage."""
        return float(np.sqrt(max(share * (1 - share), 0.25 / self.replicates) / self.replicates))

    @property
    def table(self) -> pd.DataFrame:
        """One row for the joint region and each parameter, one column a level, and the binomial error at the last."""
        frame = pd.DataFrame({"joint": self.joint} | self.marginal).T
        last = frame.columns[-1]
        return frame.assign(error=[self.error(share) for share in frame[last]])


def coverage(
    model: AbstractModel,
    theta: Any,
    n: int,
    replicates: int = 200,
    *,
    levels: Sequence[float] = (0.5, 0.8, 0.9, 0.95),
    source: Callable[[int], Any] | None = None,
    simulation: str | None = None,
    seed: int = 0,
    path: str | Path | None = None,
    workers: int = 2,
    client: Any = None,
    progress: bool = True,
    **settings: Any,
) -> Coverage:
    """Coverage of credible intervals over simulated data sets.

    Parameters
    ----------
    model : AbstractModel
    theta : dict or vector
        The truth: data are simulated at it, and intervals should hold it.
    n : int
        Observations in each data set.
    replicates : int
    levels : sequence of float
    source : callable, optional
        ``source(seed)`` gives a data set, in place of the model's own simulation; ``theta`` is then the target.
    simulation : str, optional
        The simulator's method; see `simulate`.
    seed : int
        Replicate r uses seed ``seed + r`` for its data and its fit.
    path : path, optional
        A file that keeps finished replicates, one line each: a run that was interrupted goes on from there.
    workers : int
        Replicates that run at the same time.
    client : dask.distributed.Client, optional
        A cluster to run the replicates on, in place of this machine.
    progress : bool
    **settings
        Passed to `fit`: loss, calibration, sampler, bootstrap and so on.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> model = dfd.models.Poisson()
    >>> found = dfd.coverage(model, {"rate": 3.0}, 200, replicates=10, sampler="laplace", progress=False)
    >>> sorted(found.marginal["rate"]) == [0.5, 0.8, 0.9, 0.95]
    True
    """
    if not isinstance(model, AbstractModel):
        raise SettingError(f"{model!r} is not a model; give one such as dfd.models.Poisson()")
    for name in ("checkpoint", "progress"):
        if name in settings:
            raise SettingError(f"{name} belongs to a single fit; coverage keeps its replicates with path=")
    if replicates < 1 or n < 2:
        raise SettingError("coverage needs at least one replicate of at least two observations")
    if any(not 0 < level < 1 for level in levels):
        raise SettingError(f"levels must lie between 0 and 1, not {list(levels)}")
    require_unforked()
    require_seed(seed)
    model = model.current()
    truth = np.asarray(model.space.flatten(theta))
    about = {"theta": truth.tolist(), "n": n, "seed": seed, "source": None if source is None else fingerprint(source)}
    about |= {"simulation": simulation, "version": versions()["dfdbayes"]} | model.identity
    about = json.loads(json.dumps(about | {key: _described(value) for key, value in settings.items()}))
    done = _kept(path, about)
    advance = (on_screen() if progress else Silent()).begin("coverage", replicates)

    job = _Job(uuid.uuid4().hex, model, theta, truth, n, simulation, source, {"check": False} | settings)
    missing = [r for r in range(replicates) if r not in done]
    advance(replicates - len(missing))
    backend = Local(workers) if client is None else backend_of(client)
    kept = (
        "give path= (on the command line --out), so that"
        if path is None
        else f"repeat it: '{path}' keeps what is done, and"
    )
    with warnings.catch_warnings(), backend.watched(f"{kept} a study goes on from its finished replicates."):
        warnings.simplefilter("ignore")
        found = backend.each(partial(_replicate, job), [seed + r for r in missing])
        for r, result in zip(missing, found, strict=True):
            done[r] = {"replicate": r, "run": about} | result
            if path is not None:
                with Path(path).open("a") as lines:
                    lines.write(json.dumps(done[r]) + "\n")
            advance(1)
    results = [done[r] for r in range(replicates)]
    return _counted(results, model.space.names, levels)


@dataclass(frozen=True)
class _Job:
    """All that a replicate needs, on whichever machine it runs; ``token`` names the model it shares with others."""

    token: str
    model: AbstractModel
    theta: Any
    truth: np.ndarray
    n: int
    simulation: str | None
    source: Callable[[int], Any] | None
    settings: dict[str, Any]


def _replicate(job: _Job, seed: int) -> dict[str, Any]:
    """Where the truth lies in one posterior: its tail probability by parameter, and jointly."""
    model = kept(job.token, job.model)
    rows = job.source(seed) if job.source else simulate(model, job.theta, job.n, seed=seed, method=job.simulation).rows
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = fit(model, rows, seed=seed, progress=False, **job.settings)
    except DfdbayesError as problem:
        return {"failure": type(problem).__name__}
    names, shape = [p.name for p in model.space.parameters], result.calibration.curvature
    draws, group = parameters_of(result.groups["posterior"], names), result.groups.get(LINE)
    line = None if group is None else parameters_of(group, names)
    return placed(model.space, job.truth, draws, line, shape)


def placed(
    space: Space,
    truth: np.ndarray,
    draws: np.ndarray,
    line: np.ndarray | None = None,
    shape: Curvature | None = None,
) -> dict[str, Any]:
    """The smallest level at which each parameter's interval, and the joint region, hold the truth.

    Intervals are as in a summary; the joint region is an ellipsoid about the mean in the minimiser's coordinates (of
    the draws of the whole ``line``, where they are others), of the calibration's own shape or of the draws' covariance.
    """
    below = (draws < truth).mean(axis=0) + 0.5 * (draws == truth).mean(axis=0)
    tails = 2 * np.abs(below - 0.5)
    for i in np.flatnonzero(space.closed):
        tails[i] = _level(draws[:, i], truth[i], (float(space.lower[i]), float(space.upper[i])))
    with np.errstate(divide="ignore", invalid="ignore"):
        y, at = space.to_y(draws if line is None else line), space.to_y(truth)
    centre = y.mean(axis=0)
    spread = np.cov(y.T).reshape(len(truth), len(truth)) if shape is None else _in_coordinates_of(space, shape)
    inverse = np.linalg.pinv(spread, hermitian=True)
    distance = np.einsum("si,ij,sj->s", y - centre, inverse, y - centre, optimize=True)
    own = (at - centre) @ inverse @ (at - centre)
    return {"tails": tails.tolist(), "joint": float((distance < own).mean())}


def _in_coordinates_of(space: Space, shape: Curvature) -> np.ndarray:
    """The covariance of a calibration, which was made without edges, in the minimiser's coordinates."""
    small = 1e-6 * np.sqrt(np.diag(shape.covariance))
    ahead, behind = (space.to_y(space.continued.from_y(shape.centre + side * small)) for side in (1.0, -1.0))
    slope = (ahead - behind) / (2.0 * small)
    return slope[:, None] * shape.covariance * slope


def _level(draws: np.ndarray, truth: float, edge: tuple[float, float]) -> float:
    """The smallest of a row of levels whose interval holds the truth."""
    for level in np.linspace(0.005, 0.995, 199):
        low, high, _ = interval(draws, level, edge)
        if low <= truth <= high:
            return float(level)
    return 1.0


def _counted(results: list[dict[str, Any]], names: tuple[str, ...], levels: Sequence[float]) -> Coverage:
    good = [r for r in results if "failure" not in r]
    failed = [r["failure"] for r in results if "failure" in r]
    failures = {reason: failed.count(reason) for reason in dict.fromkeys(failed)}
    if not good:
        raise DataError(f"none of {len(results)} replicates could be fitted: {failures}")
    tails, joint = np.array([r["tails"] for r in good]), np.array([r["joint"] for r in good])
    return Coverage(
        joint={level: float((joint <= level).mean()) for level in levels},
        marginal={
            name: {level: float((tails[:, i] <= level).mean()) for level in levels} for i, name in enumerate(names)
        },
        replicates=len(good),
        failures=failures,
    )


def _described(value: Any) -> Any:
    """A setting as JSON can hold it and a later run can compare it."""
    return value if value is None or isinstance(value, (str, int, float)) else fingerprint(value)


def _kept(path: str | Path | None, about: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Replicates finished by an earlier run with the same settings; a line cut off by its end is left out."""
    if path is None:
        return {}
    require_writable(Path(path).parent)
    if not Path(path).exists():
        return {}
    try:
        text, kept = Path(path).read_text(), {}
    except (OSError, UnicodeDecodeError) as problem:
        raise SettingError(f"'{path}' does not keep replicates and was not touched: {problem}") from problem
    if text.strip() and '"replicate"' not in text:
        raise SettingError(f"'{path}' does not keep replicates and was not touched; choose another file")
    if text and not text.endswith("\n"):  # so that the next entry begins a line of its own
        with Path(path).open("a") as lines:
            lines.write("\n")
    for line in text.splitlines():
        try:
            entry = json.loads(line)
            number, other = int(entry["replicate"]), dict(entry["run"])
            if "failure" not in entry:
                shares = [float(entry["joint"]), *map(float, entry["tails"])]
                if len(shares) != 1 + len(about["theta"]) or not all(0 <= share <= 1 for share in shares):
                    continue
            elif not isinstance(entry["failure"], str):
                continue
        except (ValueError, KeyError, TypeError):
            continue
        if other != about:
            differing = [key for key in other | about if other.get(key) != about.get(key)]
            raise SettingError(
                f"{path} keeps replicates of another run (it differs in {', '.join(differing)}); they cannot be mixed. "
                "Choose another file or folder, or remove that one."
            )
        kept[number] = entry
    return kept
