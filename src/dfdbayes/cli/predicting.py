"""Predictions for new rows from the folder of a run."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Annotated

import typer

from .arguments import Json
from .running import folder_for, plain_table, say, tell, write_text

FILES = ("predictions.csv",)


def predict(
    run: Annotated[Path, typer.Argument(help="A folder written by fit --formula ... --out, or its posterior.nc.")],
    newdata: Annotated[str, typer.Argument(help="A file with the covariates of new rows.")],
    interval: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.95,
    out: Annotated[Path | None, typer.Option(help=f"Folder for {', '.join(FILES)}.")] = None,
    as_json: Json = False,
) -> None:
    """Predict new rows by a regression that was fitted: the expected value, and the range of a new observation."""
    import pandas as pd

    from ..data.formulas import frame_of
    from ..fitting.runs import read_fit

    folder = folder_for(newdata, out, FILES)
    rows, fit = frame_of(newdata), read_fit(run)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = pd.concat([rows, fit.predict(rows, interval)], axis=1)
    said = [str(warning.message) for warning in told]
    if folder is not None:
        write_text(folder / FILES[0], found.to_csv(index=False))
    if as_json:
        print(json.dumps({"interval": interval, "rows": plain_table(found), "warnings": said}))
    else:
        say(f"expected values, and {interval:.0%} intervals of these (mean_) and of new observations (new_)")
        say(found.to_string(float_format=lambda value: f"{value:.4g}", index=False))
        for text in said:
            say(f"warning: {text}")
    if folder is not None:
        tell(f"written to {folder}{os.sep}: {', '.join(FILES)}", as_json)
