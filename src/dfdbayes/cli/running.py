"""What the commands share: fitting, showing and writing."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

BEGAN = time.perf_counter() - time.process_time()  # about when the process began: importing is all it did


def run_fit(
    source: Any,
    out: Path | None,
    timings: bool,
    dask: str | None = None,
    resume: bool = False,
    as_json: bool = False,
    **settings: Any,
) -> Any:
    """Fit, show, and write what a folder of a run holds."""
    from ..errors import SettingError
    from ..files import require_writable
    from ..fit import fit
    from ..result import versions
    from ..state import forget
    from ..usermodel import model_of

    imported = time.perf_counter() - BEGAN
    if resume and out is None:
        raise SettingError("--resume needs --out, the folder of the run that was interrupted")
    folder = require_writable(out) if out is not None else None
    state = None if folder is None else folder / "state"
    about = {"data": str(source) if isinstance(source, (str, Path)) else source.source, "settings": dict(settings)}
    if state is not None and not resume:
        forget(state)
    try:
        with warnings.catch_warnings(), cluster_at(dask) as client:
            warnings.simplefilter("ignore")  # they are on the result, and shown with it
            model = model_of(settings.pop("model"))
            result = fit(model, data_of(source), client=client, state=state, **settings)
    except KeyboardInterrupt:
        kept = "" if state is None else f"; what is done is kept in {state}: repeat the command with --resume"
        print(f"interrupted{kept}", file=sys.stderr)
        sys.exit(130)
    show(result, 0.95, as_json)
    written = time.perf_counter()
    if folder is not None:
        result.save(folder / "posterior.nc")
        write_text(folder / "summary.csv", result.summary().to_csv(index_label="parameter"))
        write_text(folder / "summary.json", json.dumps(result.describe(), indent=2, allow_nan=False))
        result.report(folder / "report.html")
        write_text(folder / "run.json", json.dumps(about | {"command": "fit", "versions": versions()}, indent=2))
        forget(folder / "state")
        tell(f"written to {folder}{os.sep}: posterior.nc, summary.csv, summary.json, report.html, run.json", as_json)
    if timings:
        show_timings(result, imported, time.perf_counter() - written)
    return result


def tell(text: str, as_json: bool) -> None:
    """A line for people; beside JSON it goes to standard error."""
    print(text, file=sys.stderr if as_json else sys.stdout)


def plain_table(table: Any) -> list[dict[str, Any]]:
    """A table as JSON can hold it."""
    return json.loads(table.to_json(orient="records"))


def cluster_at(address: str | None) -> Any:
    """A client of the cluster at an address; None without one."""
    if address is None:
        return nullcontext()
    from ..distributed import connected

    return connected(address)


def draw(path: Path, figure: Any) -> None:
    """Write a figure, completely or not at all."""
    from ..files import write_atomically

    write_atomically(path, lambda scratch: figure.savefig(scratch, format="png", dpi=130))


def options_of(graph: str | None, states: str | None, rates: str | None) -> dict[str, Any]:
    """What a model given by name may take."""
    return {"graph": graph, "states": states, "rates": numbers_of(rates)}


def data_of(source: Any) -> Any:
    """A file's path, or built-in data of that name if there is no such file; other data as they are."""
    from .. import datasets

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
    from ..files import write_atomically

    write_atomically(path, lambda scratch: scratch.write_text(text, encoding="utf-8"))


def show(result: Any, interval: float, as_json: bool = False) -> None:
    """Print a fit: what was fitted, the weight, the table, every warning."""
    if as_json:
        print(json.dumps(result.describe(interval), allow_nan=False))
        return
    data, settings = result.data, result.settings
    print(f"{settings['model']} fitted to {data.source}: {data.n} observations, {len(data.rows)} distinct rows")
    print(f"loss {settings['loss']}, {result.calibration.message}")
    if settings.get("bounds"):
        print(f"the loss is unbounded below, so the parameters are bounded: {settings['bounds']}")
    table = result.summary(interval).drop(columns=["mcse_mean", "mcse_sd"])
    table[["ess_bulk", "ess_tail"]] = table[["ess_bulk", "ess_tail"]].round().astype(int)
    print()
    print(table.to_string(float_format=lambda value: f"{value:.4f}"))
    print()
    for caution in result.cautions:
        print(f"warning: {caution}")


def show_timings(result: Any, imported: float, written: float) -> None:
    """Print where the time went."""
    print(f"{'stage':<12}{'seconds':>9}{'of these compiling':>21}")
    print(f"{'import':<12}{imported:>9.2f}{0:>21.2f}")
    for stage, seconds in result.timings["seconds"].items():
        print(f"{stage:<12}{seconds:>9.2f}{result.timings['compiling'][stage]:>21.2f}")
    print(f"{'write':<12}{written:>9.2f}{0:>21.2f}")
    print(f"{'total':<12}{time.perf_counter() - BEGAN:>9.2f}")
