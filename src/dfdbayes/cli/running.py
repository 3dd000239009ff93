"""What the commands share: fitting, showing and writing."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

CHECKPOINT = "checkpoint"  # the folder inside --out that keeps finished parts
BEGAN = time.perf_counter() - time.process_time()  # about when the process began: importing is all it did


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
    from .._util.declared import unlike
    from .._util.files import alone_in, leftovers, require_here, require_writable
    from ..errors import SettingError
    from ..fitting.runs import Settings, is_finished
    from ..results.saving import UNFINISHED

    assert unlike(settings, Settings) is None, "what is written here is what can be read back"
    if resume and out is None:
        raise SettingError("--resume needs --out, the folder of the run that was interrupted")
    if resume and force:
        raise SettingError("--resume goes on from an interrupted run and --force begins anew: choose one")
    if out is None:
        return _fit_and_show(source, None, timings, dask, True, as_json, settings, instead or {})
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
        resumes = _resumes(require_here(folder / CHECKPOINT), resume, force)
        return _fit_and_show(source, folder, timings, dask, resumes, as_json, settings, instead or {})


OUTPUTS = (
    "posterior.nc", "summary.csv", "summary.json", "report.html", "run.json", "edges.csv", "nodes.csv",
    "differences.csv",
)  # fmt: skip


def folder_for(source: Any, out: Path | None, names: Sequence[str]) -> Path | None:
    """The folder for these files, made where there is none; None where none was asked for."""
    from .._util.files import require_writable

    if out is None:
        return None
    require_outputs(source, out, names)
    return require_writable(out)


def require_outputs(source: Any, folder: Path, names: Sequence[str], force: bool = False) -> None:
    """Refuse to write over the data themselves, or over files that no run of this package wrote."""
    from ..errors import SettingError
    from ..fitting.runs import is_run

    targets = [folder / name for name in names]
    if isinstance(source, (str, Path)) and any(
        t.exists() and Path(source).exists() and t.samefile(source) for t in targets
    ):
        raise SettingError(f"'{source}' is the data, and would be written over. Choose another folder with --out.")
    there = [target.name for target in targets if target.exists()]
    if there and not force and not is_run(folder):
        raise SettingError(
            f"'{folder}' holds {there[0]}, which is not from a run of dfdbayes. What to do: choose another folder, or "
            "--force to replace it."
        )


def require_free(folder: Path, names: Sequence[str], force: bool) -> None:
    """Refuse to write over earlier results, unless that was asked for."""
    from ..errors import SettingError

    there = [name for name in names if (folder / name).exists()]
    if there and not force:
        raise SettingError(
            f"'{folder}' holds {there[0]} already. What to do: another folder, or --force to replace it."
        )


def _resumes(checkpoint: Path, resume: bool, force: bool) -> bool:
    """Whether to go on from what an interrupted run left; an error where that is there and nobody said what to do."""
    from .._util.checkpoint import unfinished
    from ..errors import SettingError

    if unfinished(checkpoint) and not (resume or force):
        raise SettingError(
            f"'{checkpoint.parent}' holds an interrupted run. What to do: --resume goes on from there (with the same "
            "settings), --force begins anew and discards it."
        )
    return resume


def _fit_and_show(
    source: Any,
    folder: Path | None,
    timings: bool,
    dask: str | None,
    resume: bool,
    as_json: bool,
    settings: dict[str, Any],
    instead: Mapping[str, Any],
) -> Any:
    from .._util.checkpoint import forget
    from ..families.own.from_file import model_of
    from ..fitting.fit import fit
    from ..fitting.runs import write_run

    if folder is not None:  # the page's pictures are imported while the compiler is at work, which needs no Python
        threading.Thread(target=import_module, args=("dfdbayes.present.page",)).start()
    imported = time.perf_counter() - BEGAN
    checkpoint = None if folder is None else folder / CHECKPOINT
    about = {
        "data": printable(
            source if isinstance(source, (str, Path)) else getattr(source, "source", "the data of a run")
        ),
        "settings": dict(settings),
    }
    try:
        with warnings.catch_warnings(), cluster_at(dask) as client:
            warnings.simplefilter("ignore")  # they are on the result, and shown with it
            used = settings | dict(instead)
            model = model_of(used.pop("model"))
            result = fit(model, data_of(source), client=client, checkpoint=checkpoint, resume=resume, **used)
        began, names = time.perf_counter(), () if folder is None else write_run(folder, result, about)
    except KeyboardInterrupt:
        kept = "" if checkpoint is None else f"; what is done is kept in {checkpoint}: repeat the command with --resume"
        say(f"interrupted{kept}", error=True)
        sys.exit(130)
    writing = time.perf_counter() - began
    if checkpoint is not None:
        forget(checkpoint)
    show(result, 0.95, as_json)  # after it is written, whatever becomes of what is printed
    if folder is not None:
        tell(f"written to {folder}{os.sep}: {', '.join(names)}", as_json)
    if timings:
        show_timings(result, imported, writing)
    return result


def printable(text: object) -> str:
    """A text that a terminal shows and does not obey: control characters are written out."""
    plain = str(text).encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in plain)


def say(text: object = "", error: bool = False) -> None:
    """Print a line; names from data may hold anything."""
    print(printable(text), file=sys.stderr if error else sys.stdout)


def tell(text: str, as_json: bool) -> None:
    """A line for people; beside JSON it goes to standard error."""
    say(text, error=as_json)


def plain_table(table: Any) -> list[dict[str, Any]]:
    """A table as JSON can hold it."""
    return json.loads(table.to_json(orient="records"))


def cluster_at(address: str | None) -> Any:
    """A client of the cluster at an address; None without one."""
    if address is None:
        return nullcontext()
    from ..backends.dask import connected

    return connected(address)


def draw(path: Path, figure: Any) -> None:
    """Write a figure, completely or not at all."""
    from .._util.files import write_atomically

    write_atomically(path, lambda scratch: figure.savefig(scratch, format="png", dpi=130))


def options_of(
    graph: str | None,
    states: str | None,
    rates: str | None,
    kinds: str | None = None,
    levels: Sequence[str] | None = None,
    terms: str | None = None,
    nodes: Path | None = None,
    directed: bool | None = None,
    at: str | None = None,
    neighbours: int | None = None,
) -> dict[str, Any]:
    """What a model given by name may take."""
    own: dict[str, Any] = {"kinds": kinds_of(kinds), "levels": levels_of(levels)}
    whole: dict[str, Any] = {"terms": terms, "nodes": None if nodes is None else str(nodes), "directed": directed}
    whole |= {"at": None if at is None else [name.strip() for name in at.split(",")], "neighbours": neighbours}
    own |= {name: value for name, value in whole.items() if value is not None}
    return {"graph": graph, "states": states, "rates": numbers_of(rates)} | own


def formulas_of(nu: str | None, zeros: str | None, interaction: str | None = None) -> dict[str, str]:
    """Formulas of parameters, by name; those that were asked for."""
    return {name: text for name, text in {"nu": nu, "zeros": zeros, "interaction": interaction}.items() if text}


def kinds_of(kinds: str | None) -> str | dict[str, str] | None:
    """Kinds of columns: one word for all that can have it, or ``name=word`` for each."""
    if kinds is None or "=" not in kinds:
        return kinds
    pairs = [part.partition("=") for part in kinds.split(",")]
    return {name.strip(): word.strip() for name, _, word in pairs}


def levels_of(levels: Sequence[str] | None) -> dict[str, list[Any]] | list[Any] | None:
    """Levels of scales in their order: ``name=never,often``, once for each, or ``never,often`` for all columns."""
    from ..errors import SettingError

    if not levels:
        return None
    pairs = [part.rpartition("=") for part in levels]
    lists = [[_level(word.strip()) for word in words.split(",")] for _, _, words in pairs]
    if len(pairs) == 1 and not pairs[0][1]:
        return lists[0]
    if not all(equals for _, equals, _ in pairs):
        raise SettingError("--levels is either of all columns, or NAME=LOWEST,...,HIGHEST for each")
    return {name.strip(): own for (name, _, _), own in zip(pairs, lists, strict=True)}


def _level(word: str) -> int | str:
    return int(word) if word.lstrip("-").isdigit() else word


def codes_of(codes: str | None) -> Any:
    """Codes of missing values: one list for all columns, or ``name=code`` for each."""
    from ..errors import SettingError

    if codes is None:
        return None
    parts = [part.strip() for part in codes.split(",") if part.strip()]
    if parts == ["none"] or not parts:
        return []
    pairs = [part.rpartition("=") for part in parts]
    if not any(equals for _, equals, _ in pairs):
        return parts
    if not all(equals for _, equals, _ in pairs):
        raise SettingError(f"--missing-codes is {codes!r}; give codes for all columns, or NAME=CODE for each")
    found: dict[str, list[str]] = {}
    for name, _, code in pairs:
        found.setdefault(name.strip(), []).append(code.strip())
    return found


def data_of(source: Any) -> Any:
    """A file's path, or built-in data of that name if there is no such file; other data as they are."""
    from ..data.read import builtin as datasets

    if not isinstance(source, str):
        return source
    return datasets.BY_NAME[source]() if source in datasets.BY_NAME and not Path(source).exists() else source


def numbers_of(text: str | None) -> list[float] | None:
    """Numbers separated by commas."""
    from ..errors import SettingError

    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise SettingError(f"'{text}' must be numbers separated by commas") from None


def write_text(path: Path, text: str) -> None:
    """Write a text, completely or not at all."""
    from .._util.files import write_atomically

    write_atomically(path, lambda scratch: scratch.write_text(text, encoding="utf-8"))


def show(result: Any, interval: float, as_json: bool = False) -> None:
    """Print a fit: the answer, the table, how sure and why, how it was found."""
    from ..present.renderers import console

    if as_json:
        print(json.dumps(result.describe(interval), allow_nan=False))
        return
    say(console(result, interval))


def show_timings(result: Any, imported: float, written: float) -> None:
    """Print where the time went."""
    print(f"{'stage':<12}{'seconds':>9}{'of these compiling':>21}")
    print(f"{'import':<12}{imported:>9.2f}{0:>21.2f}")
    for stage, seconds in result.timings["seconds"].items():
        print(f"{stage:<12}{seconds:>9.2f}{result.timings['compiling'][stage]:>21.2f}")
    print(f"{'write':<12}{written:>9.2f}{0:>21.2f}")
    print(f"{'total':<12}{time.perf_counter() - BEGAN:>9.2f}")
