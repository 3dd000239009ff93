"""Pictures of series: what was observed, and what comes next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ...results.forecasts import Forecast
from .base import BLUE, INK, Figure, clean, fitted, in_legend

LEVELS = (0.95, 0.8, 0.5)  # of the bands of a fan, as forecasts of epidemics have them


def forecast(found: Forecast, past: int | None = None) -> Figure:
    """A fan: the last values of a series, and intervals of 50, 80 and 95 % of those to come, about their median.

    Parameters
    ----------
    found : Forecast
        What `Fit.forecast` gives.
    past : int, optional
        How many observed values to draw; by default five times as many as there are steps ahead.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> cases = {"week": range(60), "cases": [3, 4, 2, 5, 6, 4, 3, 2, 4, 5, 3, 4] * 5}
    >>> fit = dfd.fit("poisson", cases, formula="cases ~ log1p(lag(cases))", time="week", sampler="laplace",
    ...               check=False, progress=False)
    >>> figure = dfd.plots.forecast(fit.forecast(8))
    """
    by = found.table.index.names[0] if found.table.index.nlevels > 1 else None
    units: list[Any] = [None] if by is None else list(dict.fromkeys(found.table.index.get_level_values(0)))[:6]
    ends = sorted({0.5 * (1 + side * level) for level in LEVELS for side in (-1, 1)} | {0.5})
    quantiles = found.quantiles(ends)
    figure = Figure(figsize=(7.6, 0.8 + 2.6 * len(units)), layout="constrained")
    panels = figure.subplots(len(units), 1, squeeze=False)[:, 0]
    for axes, unit in zip(panels, units, strict=True):
        band = quantiles if by is None else quantiles.loc[[unit]].droplevel(0)
        seen = found.observed if by is None else found.observed[found.observed[by] == unit]
        seen = seen.tail(5 * len(band) if past is None else past)
        _fan(axes, seen, band, found.response)
        if unit is not None:
            axes.set_title(fitted(unit), fontsize=9, loc="left")
    panels[0].legend(frameon=False, fontsize=8, ncols=5, loc="upper left", bbox_to_anchor=(0.0, 1.18))
    panels[-1].set_xlabel(fitted(found.table.index.names[-1]), fontsize=9)
    return figure


def _fan(axes: Any, seen: pd.DataFrame, band: pd.DataFrame, response: str) -> None:
    """One series: its values, and bands of quantiles."""
    axes.plot(seen.iloc[:, -2], seen.iloc[:, -1], "-o", color=INK, ms=2.5, lw=0.8, label=in_legend(response))
    at: Any = band.index
    if len(band) == 1:  # a band of one step has no width
        step = 0.4 * (at[0] - seen.iloc[-1, -2])
        at, band = [at[0] - step, at[0] + step], pd.concat([band, band])
    for level, alpha in zip(LEVELS, (0.18, 0.28, 0.4), strict=True):
        low, high = (band[0.5 * (1 + side * level)].to_numpy() for side in (-1, 1))
        axes.fill_between(at, low, high, color=BLUE, alpha=alpha, lw=0, label=f"{level:.0%}")
    axes.plot(at, band[0.5], color=BLUE, lw=1.5, label="median")
    axes.set_ylabel(fitted(response), fontsize=9)
    axes.set_ylim(bottom=min(0.0, float(np.min(seen.iloc[:, -1]))))
    clean(axes)
