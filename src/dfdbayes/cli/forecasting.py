"""Forecasts from the folder of a run."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Annotated

import typer

from .arguments import Json, Seed
from .running import draw, folder_for, plain_table, say, tell, write_text

FILES = ("forecast.csv", "forecast.png", "report.html")


def forecast_command(
    run: Annotated[Path, typer.Argument(help="A folder written by fit --out --time COLUMN, or its posterior.nc.")],
    steps: Annotated[
        int | None, typer.Option(help="Steps ahead, at most 2000; by default the rows of --newdata.")
    ] = None,
    newdata: Annotated[str | None, typer.Option(help="A file with the covariates of the steps to come.")] = None,
    interval: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.95,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help=f"Folder for {', '.join(FILES)}.")] = None,
    as_json: Json = False,
) -> None:
    """Say what comes next in a series that was fitted: mean, median and interval of each step."""
    from ..fitting.runs import read_fit

    folder = folder_for(newdata, out, FILES)
    fit = read_fit(run)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = fit.forecast(steps, newdata, interval, seed=seed)
    said = [str(warning.message) for warning in told]
    if folder is not None:
        from .. import plots

        write_text(folder / FILES[0], found.table.to_csv())
        draw(folder / FILES[1], plots.forecast(found))
        fit.report(folder / FILES[2], found)
    if as_json:
        table = found.table.reset_index()
        keys = [str(name) for name in found.table.index.names]
        table[keys] = table[keys].astype(str)
        rows = {"response": found.response, "interval": interval, "steps": plain_table(table), "warnings": said}
        print(json.dumps(rows))
    else:
        say(f"{found.response}: {interval:.0%} intervals of new observations")
        say(found.table.to_string(float_format=lambda value: f"{value:.3f}"))
        for text in said:
            say(f"warning: {text}")
    if folder is not None:
        tell(f"written to {folder}{os.sep}: {', '.join(FILES)}", as_json)
