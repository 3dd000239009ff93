"""The folder of a run: what `fit --out` writes, as one whole or marked as unfinished."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._util.files import write_together
from ..errors import DataError
from ..results.fit_result import Fit, load, versions
from . import render

POSTERIOR, RUN = "posterior.nc", "run.json"
UNFINISHED = "UNFINISHED"
KNOWN = ("data", "settings", "versions")


def write_run(folder: Path, fit: Fit, about: Mapping[str, Any]) -> tuple[str, ...]:
    """Write all files of a run, and return their names.

    Everything is made before anything is written. While files are moved into place the folder is marked, so that a
    process that ends in between does not leave the draws of one run beside the summary of another unnoticed.
    """
    files = {
        POSTERIOR: fit.to_bytes(),
        "summary.csv": fit.summary().to_csv(index_label="parameter").encode(),
        "summary.json": json.dumps(fit.describe(), indent=2, allow_nan=False).encode(),
        "report.html": render(fit).encode(),
        RUN: json.dumps(dict(about) | {"command": "fit", "versions": versions()}, indent=2).encode(),
    }
    write_together(folder, files, UNFINISHED)
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


def _require_finished(folder: Path) -> None:
    if (folder / UNFINISHED).exists() or ((folder / RUN).exists() and not (folder / POSTERIOR).exists()):
        raise DataError(
            f"the run in '{folder}' was not finished: it ended while its files were written, and they may be of two "
            "runs. Repeat its fit command with --resume."
        )
