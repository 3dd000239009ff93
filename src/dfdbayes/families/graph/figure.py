"""Pictures of random graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ...errors import SettingError
from ...present.figures.base import BLUE, GREY, INK, ORANGE, Figure, clean, panels
from ...results.fitted import Fitted
from ...results.graph_goodness import GraphGoodness

TITLES = {
    "degree": ("degree", "share of nodes"),
    "sent": ("ties sent", "share of nodes"),
    "received": ("ties received", "share of nodes"),
    "distance": ("geodesic distance", "share of pairs"),
    "shared partners": ("edgewise shared partners", "share of ties"),
    "triads": ("ties in a triad", "share of triples"),
}


def graph_goodness(fit: Fitted | GraphGoodness) -> Figure:
    """The observed graph's degrees, distances, shared partners and triads, over those of simulated graphs.

    Bands hold 95 % of the simulated graphs, the line inside is their median, and points are the observed graph, red
    where they lie outside.

    Parameters
    ----------
    fit : Fit or GraphGoodness
        Of a random graph; a fit with its checks.
    """
    found = fit if isinstance(fit, GraphGoodness) else None if fit.checks is None else fit.checks.graph
    if found is None:
        raise SettingError(
            "there are no simulated graphs to compare with. What to do: fit a RandomGraph with check=True, or give "
            "what dfd.graph_goodness(fit.model, theta) returns."
        )
    figure, places = panels(len(found.features), 3.5, 2.6, across=2 if len(found.features) == 4 else 3)
    for (name, table), axes in zip(found.features.items(), places, strict=True):
        _panel(axes, name, table)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False,
                  fontsize=8)  # fmt: skip
    return figure


def _panel(axes: Any, name: str, table: pd.DataFrame) -> None:
    title, unit = TITLES[name]
    shown = table.iloc[:24]  # that many names can be read
    places = np.arange(len(shown))
    outside = ((shown["observed"] < shown["low"]) | (shown["observed"] > shown["high"])).to_numpy()
    axes.bar(places, shown["high"] - shown["low"], bottom=shown["low"], color=GREY, alpha=0.45, width=0.8, lw=0,
             label="95 % of simulated graphs")  # fmt: skip
    axes.hlines(shown["median"], places - 0.4, places + 0.4, color=BLUE, lw=1.5, label="median of simulated graphs")
    axes.plot(places, shown["observed"], color=INK, lw=0.8, zorder=3, label="observed, red where outside")
    axes.scatter(places, shown["observed"], c=np.where(outside, ORANGE, INK), s=14, zorder=4)
    words = name == "triads" and len(shown) > 4
    step = 1 if words else max(1, -(-len(shown) // 12))
    axes.set_xticks(places[::step], list(shown.index[::step]), fontsize=7 if words else 8, rotation=60 if words else 0)
    unseen = "" if len(shown) == len(table) else f" (first {len(shown)} values)"
    axes.set_xlabel(("triad census" if name == "triads" and words else title) + unseen, fontsize=9)
    axes.set_ylabel(unit, fontsize=9)
    axes.set_ylim(bottom=0)
    clean(axes)
