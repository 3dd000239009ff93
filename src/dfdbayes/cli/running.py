"""What the commands share: fitting into a folder, and which files may be written there."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from .._util.checkpoint import forget, unfinished
from .._util.files import alone_in, leftovers, require_here, require_writable
from ..errors import SettingError
from .arguments import data_of
from .printing import BEGAN, printable, say, show, show_timings, tell_written

CHECKPOINT = "checkpoint"  # the folder inside --out that keeps finished parts


OUTPUTS = (
    "posterior.nc", "summary.csv", "summary.json", "report.html", "run.json", "edges.csv", "nodes.csv",
    "differences.csv",
)  # fmt: skip


def run_fit(
    source: Any,
    out: Path | None,
    timings: bool,
    dask: str | None = None,
    resume: bool = False,
    force: bool = False,
    as_json: bool = False,
    instead: Any = None,
    **settings: Any,
) -> Any:
    """Fit, write what a folder of a run holds, and show it.

    ``instead`` are settings as they are used where those that were asked for, and are written, stand for something else
    by now: columns of data that are a fit's, say.
    """
    from .._util.codec import from_plain
    from ..families.own.from_file import model_of
    from ..fitting.fit import fit
    from ..fitting.runs import Settings, write_run

    from_plain(settings, Settings)  # what is written here is what can be read back
    with _folder_of_run(source, out, resume, force) as folder:
        if folder is not None:  # the page's pictures are imported while the compiler is at work, which needs no Python
            threading.Thread(target=import_module, args=("dfdbayes.present.page",)).start()
        imported = time.perf_counter() - BEGAN
        checkpoint = None if folder is None else folder / CHECKPOINT
        data = source if isinstance(source, (str, Path)) else getattr(source, "source", "the data of a run")
        about = {"data": printable(data), "settings": dict(settings)}
        try:
            with warnings.catch_warnings(), cluster_at(dask) as client:
                warnings.simplefilter("ignore")  # they are on the result, and shown with it
                used = settings | (instead or {})
                model = model_of(used.pop("model"))
                result = fit(model, data_of(source), client=client, checkpoint=checkpoint, resume=resume, **used)
            began, names = time.perf_counter(), () if folder is None else write_run(folder, result, about)
        except KeyboardInterrupt:
            kept = f"; what is done is kept in {checkpoint}: repeat the command with --resume" if checkpoint else ""
            say(f"interrupted{kept}", error=True)
            sys.exit(130)
        writing = time.perf_counter() - began
        if checkpoint is not None:
            forget(checkpoint)
        show(result, 0.95, as_json)  # after it is written, whatever becomes of what is printed
        tell_written(folder, names, as_json)
        if timings:
            show_timings(result, imported, writing)
        return result


@contextmanager
def _folder_of_run(source: Any, out: Path | None, resume: bool, force: bool) -> Iterator[Path | None]:
    """The folder of a run, for this process alone; None where none was asked for.

    It is refused where it holds a run, finished or interrupted, and nobody said what is to become of that.
    """
    from ..fitting.runs import is_finished
    from ..results.saving import UNFINISHED

    if resume and out is None:
        raise SettingError("--resume needs --out, the folder of the run that was interrupted")
    if resume and force:
        raise SettingError("--resume goes on from an interrupted run and --force begins anew: choose one")
    if out is None:
        yield None
        return
    if not str(out).strip() or str(out) == ".":
        raise SettingError("--out needs the name of a folder for the run, for example --out runs/visits")
    require_outputs(source, out, OUTPUTS, force)
    if not (force or resume) and is_finished(out):
        raise SettingError(
            f"'{out}' holds a finished run. What to do: choose another folder with --out, or --force to replace it."
        )
    folder = require_writable(out)
    with alone_in(folder):
        for scratch in leftovers(folder, (*OUTPUTS, UNFINISHED)):
            scratch.unlink(missing_ok=True)
        if unfinished(require_here(folder / CHECKPOINT)) and not (resume or force):
            raise SettingError(
                f"'{folder}' holds an interrupted run. What to do: --resume goes on from there (with the same "
                "settings), --force begins anew and discards it."
            )
        yield folder


def folder_for(
    source: Any, out: Path | None, names: Sequence[str], force: bool = False, replaces: bool = True
) -> Path | None:
    """The folder for these files, made where there is none; None where none was asked for."""
    if out is None:
        return None
    require_outputs(source, out, names, force, replaces)
    return require_writable(out)


def require_outputs(
    source: Any, folder: Path, names: Sequence[str], force: bool = False, replaces: bool = True
) -> None:
    """Refuse to write over the data themselves, or over files that no run of this package wrote.

    Without ``replaces`` results of such a run are not written over either.
    """
    from ..fitting.runs import is_run

    there = [folder / name for name in names if (folder / name).exists()]
    if isinstance(source, (str, Path)) and Path(source).exists() and any(map(Path(source).samefile, there)):
        raise SettingError(f"'{source}' is the data, and would be written over. Choose another folder with --out.")
    if not there or force:
        return
    if not replaces:
        raise SettingError(
            f"'{folder}' holds {there[0].name} already. What to do: another folder, or --force to replace it."
        )
    if not is_run(folder):
        raise SettingError(
            f"'{folder}' holds {there[0].name}, which is not from a run of dfdbayes. What to do: choose another "
            "folder, or --force to replace it."
        )


def cluster_at(address: str | None) -> Any:
    """A client of the cluster at an address; None without one."""
    if address is None:
        return nullcontext()
    from ..backends.dask import connected

    return connected(address)
