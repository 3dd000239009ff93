"""The folder of a run: what `fit --out` writes, as one whole or marked as unfinished."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from .._util.checkpoint import ABOUT
from .._util.codec import UnlikeError, from_plain
from .._util.files import write_together
from .._util.resources import threads
from ..core.model import AbstractModel
from ..errors import DataError, OutputError, SettingError
from ..families import named_model
from ..families.own.from_file import is_code
from ..present.renderers import page
from ..results.saving import POSTERIOR, UNFINISHED, versions
from .fit import fit
from .fit_result import Fit
from .loading import load

RUN, CHECKPOINT = "run.json", "checkpoint"
KNOWN = ("data", "settings", "versions")


class Options(TypedDict, total=False):
    """The options of models given by name, as the command line takes them."""

    graph: str | None
    states: str | None
    rates: list[float] | None
    kinds: str | dict[str, str] | None
    levels: list[int | str] | dict[str, list[int | str]] | None
    terms: str
    nodes: str
    directed: bool
    at: list[str]
    neighbours: int


class Settings(TypedDict, total=False):
    """What a run on the command line was asked to do: all that is written of it, and all that is read back."""

    model: str
    formula: str | None
    nu: str
    zeros: str
    interaction: str
    loss: str
    beta: float | None
    calibration: str | None
    prior: str | None
    on_failure: str
    bootstrap: int | None
    resampling: str
    sampler: str
    draws: int | None
    warmup: int | None
    chains: int | None
    seed: int
    columns: list[str] | None
    weights: str | None
    weighting: str
    missing: str
    missing_codes: list[str] | dict[str, list[str]] | None
    decimal: str | None
    cluster: str | None
    time: str | None
    check: bool
    options: Options


def write_run(folder: Path, fit: Fit, about: Mapping[str, Any]) -> tuple[str, ...]:
    """Write all files of a run, and return their names.

    Everything is made before anything is written. While files are moved into place the folder is marked, so that a
    process that ends in between does not leave the draws of one run beside the summary of another unnoticed.

    Raises
    ------
    OutputError
        If a file cannot be written; or if one that shows the fit, such as its report, could not be made. Then all
        others are there.
    """
    files = {
        POSTERIOR: fit.to_bytes(),
        RUN: json.dumps(
            dict(about) | {"command": "fit", "versions": versions(), "threads": threads()}, indent=2
        ).encode(),
    }
    shown: list[Callable[[], Mapping[str, bytes]]] = [
        lambda: {"summary.csv": fit.summary().to_csv(index_label="parameter").encode()},
        lambda: {"summary.json": json.dumps(fit.describe(), indent=2, allow_nan=False).encode()},
        lambda: {"report.html": page(fit, "summary.json").encode()},
        *(getattr(fit, name).files for name in fit.accessors),
    ]
    failed: list[Exception] = []
    for make in shown:
        try:
            files |= make()
        except Exception as problem:  # a mistake in showing a fit must not lose it
            failed.append(problem)
    write_together(folder, files, UNFINISHED)
    if failed:
        told = "; ".join(f"{type(problem).__name__}: {problem}" for problem in failed)
        lacking = [name for name in ("summary.csv", "summary.json", "report.html") if name not in files]
        raise OutputError(
            f"not all that shows the fit could be made ({', '.join(lacking) or 'a table'} is not there): {told}. The "
            f"fit itself is in '{folder / POSTERIOR}'. What to do: load it with dfd.load, and report this as a defect."
        ) from failed[0]
    return tuple(files)


def read_fit(path: Path) -> Fit:
    """The fit in a run's folder, or in a file."""
    if not path.is_dir():
        return load(path)
    _require_finished(path)
    return load(path / POSTERIOR)


def read_about(folder: Path) -> dict[str, Any]:
    """What a run's folder says about it: the data's name, the settings, the versions."""
    _require_finished(folder)
    try:
        about = json.loads((folder / RUN).read_text(encoding="utf-8"))
        if not all(isinstance(about[name], str if name == "data" else dict) for name in KNOWN):
            raise TypeError("its entries are not those of a run")
        if not isinstance(about["settings"]["model"], str):
            raise TypeError("the model has no name")
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise DataError(f"'{folder}' is not the folder of a run: {RUN} cannot be read ({problem})") from problem
    return about


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run, finished or not."""
    try:
        return (folder / UNFINISHED).exists() or bool(read_about(folder))
    except DataError:
        return (folder / CHECKPOINT).is_dir() and (folder / CHECKPOINT / ABOUT).exists()


def is_finished(folder: Path) -> bool:
    """Whether a folder holds a whole run, and no other was begun there since."""
    whole = all((folder / name).exists() for name in (RUN, POSTERIOR))
    return whole and not (folder / UNFINISHED).exists() and not (folder / CHECKPOINT / ABOUT).exists()


def _require_finished(folder: Path) -> None:
    kept = (folder / CHECKPOINT / ABOUT).exists() and not (folder / RUN).exists()
    if kept or (folder / UNFINISHED).exists() or ((folder / RUN).exists() and not (folder / POSTERIOR).exists()):
        raise DataError(
            f"the run in '{folder}' was not finished: it ended while its files were written, and they may be of two "
            "runs. Repeat its fit command with --resume."
        )


def rerun(folder: str | Path, model: AbstractModel | None = None) -> Fit:
    """Repeat a run from its folder: the data it keeps, its settings, its seed.

    Parameters
    ----------
    folder : path
        What ``dfdbayes fit --out`` wrote.
    model : AbstractModel, optional
        Needed if the run used a model of a user's own, whose code no folder holds.
    """
    folder = Path(folder)
    about = read_about(folder)
    named = about["settings"]["model"]
    earlier, settings = rerun_settings(folder, about, named if model is not None else None)
    return fit(**(settings | {"model": model or named} | again(earlier, settings)))


def again(earlier: Fit, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The data of an earlier fit as `fit` takes them: columns, weights and clusters are part of a `Dataset` by now.

    So are the codes of labelled levels, and a network needs the levels that were declared.
    """
    done: dict[str, Any] = {"missing_codes": None, "decimal": None}
    if settings.get("options"):
        done["options"] = {name: own for name, own in settings["options"].items() if name != "nodes"}
    if earlier.model is not None and earlier.model.designs:
        weights = earlier.model.observed.weights
        counted = isinstance(weights, np.ndarray)  # equal rows; a command's own weights are a column
        done |= {"weighting": "frequency"} if counted else {}
        return {"data": earlier.model.observed.frame, "weights": weights} | done
    if earlier.model is None:
        return {"data": earlier.as_read, "columns": None, "weights": None} | done
    declared = earlier.model.declared(earlier.as_read)
    options = {"options": dict(settings.get("options") or {}) | declared} if declared else {}
    return {"data": earlier.model.source_of(earlier.as_read), "columns": None, "weights": None} | done | options


def rerun_settings(folder: Path, about: Mapping[str, Any], model: str | None) -> tuple[Fit, dict[str, Any]]:
    """The earlier fit, and what to call `fit` with; ``model`` names the code of a user's own, which must be named.

    Nothing else is read back than what the command line writes: a folder may come from a stranger.
    """
    settings = dict(about["settings"])
    try:
        from_plain(settings, Settings)
    except UnlikeError as problem:
        raise DataError(
            f"'{folder}' is not the folder of a run: the setting '{problem.name}' in {RUN} is none of a run's"
        ) from None
    if is_code(settings["model"]):
        if model is None:
            raise SettingError(
                f"this run used the model {settings['model']}. Files execute code only when they are named: if you "
                f"trust that file, repeat the command with --model {settings['model']}"
            )
        settings["model"] = model
    earlier = read_fit(folder)
    if not is_code(about["settings"]["model"]) and named_model(settings["model"]).name != earlier.settings["model"]:
        raise DataError(
            f"'{folder}' is not the folder of one run: {RUN} is about {settings['model']}, {POSTERIOR} about "
            f"{earlier.settings['model']}"
        )
    return earlier, settings


def same_draws(one: Fit, other: Fit) -> bool:
    """Whether two fits have the same draws, number by number."""
    arrays = one.groups["posterior"].arrays
    pairs = [(arrays.get(name), values) for name, values in other.groups["posterior"].arrays.items()]
    return all(now is not None and np.array_equal(now, values) for now, values in pairs)


def why_different(about: Mapping[str, Any]) -> str:
    """What changed since a run, versions and the number of threads, as the end of a sentence."""
    was = about["versions"]
    changed = [f"{name} {was[name]} (now {now})" for name, now in versions().items() if was.get(name, now) != now]
    told = f"; versions differ: {', '.join(changed)}" if changed else ""
    before, now = about.get("threads"), threads()
    if before is not None and before != now:
        told += (
            f"; it was computed by {before} threads (now {now}), which add up sums in another order, so that draws "
            "differ in their last digits, and where a proposal is then accepted that was not, in more: both are right"
        )
    return told
