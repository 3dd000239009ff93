"""What comes after a fit, from the folder of its run: predictions for new rows, and forecasts."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from . import arguments as arg
from .printing import draw, plain_table, say, tell_written, write_text
from .running import folder_for

PREDICTIONS = ("predictions.csv",)
FORECASTS = ("forecast.csv", "forecast.png", "report.html")


def predict(
    run: Annotated[Path, typer.Argument(help="A folder written by fit --formula ... --out, or its posterior.nc.")],
    newdata: Annotated[str, typer.Argument(help="A file with the covariates of new rows.")],
    interval: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.95,
    out: Annotated[Path | None, typer.Option(help=f"Folder for {', '.join(PREDICTIONS)}.")] = None,
    as_json: arg.Json = False,
) -> None:
    """Predict new rows by a regression that was fitted: the expected value, and the range of a new observation."""
    import pandas as pd

    from ..data.read.reading import frame_of
    from ..fitting.runs import read_fit

    folder = folder_for(newdata, out, PREDICTIONS)
    rows, fit = frame_of(newdata), read_fit(run)
    with _warnings_kept() as said:
        found = pd.concat([rows, fit.predict(rows, interval)], axis=1)
    if folder is not None:
        write_text(folder / PREDICTIONS[0], found.to_csv(index=False))
    if as_json:
        print(json.dumps({"interval": interval, "rows": plain_table(found), "warnings": said}))
    else:
        say(f"expected values, and {interval:.0%} intervals of these (mean_) and of new observations (new_)")
        say(found.to_string(float_format=lambda value: f"{value:.4g}", index=False))
        for text in said:
            say(f"warning: {text}")
    tell_written(folder, PREDICTIONS, as_json)


def forecast(
    run: Annotated[Path, typer.Argument(help="A folder written by fit --out --time COLUMN, or its posterior.nc.")],
    steps: Annotated[
        int | None, typer.Option(help="Steps ahead, at most 2000; by default the rows of --newdata.")
    ] = None,
    newdata: Annotated[str | None, typer.Option(help="A file with the covariates of the steps to come.")] = None,
    interval: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.95,
    seed: arg.Seed = 0,
    out: Annotated[Path | None, typer.Option(help=f"Folder for {', '.join(FORECASTS)}.")] = None,
    as_json: arg.Json = False,
) -> None:
    """Say what comes next in a series that was fitted: mean, median and interval of each step."""
    from ..fitting.runs import read_fit

    folder = folder_for(newdata, out, FORECASTS)
    fit = read_fit(run)
    with _warnings_kept() as said:
        found = fit.forecast(steps, newdata, interval, seed=seed)
    if folder is not None:
        from .. import plots

        write_text(folder / FORECASTS[0], found.table.to_csv())
        draw(folder / FORECASTS[1], plots.forecast(found))
        fit.report(folder / FORECASTS[2], found)
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
    tell_written(folder, FORECASTS, as_json)


@contextmanager
def _warnings_kept() -> Iterator[list[str]]:
    """The texts of warnings, which are shown with the result."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield said
    said += [str(warning.message) for warning in told]
