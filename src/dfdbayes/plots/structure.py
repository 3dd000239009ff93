"""The network that a pairwise model found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..results import evidence
from ..results.fit_result import Fit
from .base import BLUE, GREY, INK, ORANGE, fitted

MOST_EDGES = 300
LOOKS: dict[str, dict[str, Any]] = {
    evidence.PRESENT: {"ls": "-", "alpha": 0.95},
    evidence.INCONCLUSIVE: {"ls": (0, (4, 2)), "alpha": 0.45},
    evidence.ABSENT: {"ls": ":", "alpha": 0.35},
}


def network(fit: Fit, table: pd.DataFrame | None = None) -> Figure:
    """The columns on a circle, joined by their interactions.

    Width shows strength (posterior mean) and colour the sign; a full line is an edge that is present, a dashed one is
    inconclusive, and a thin dotted grey one is absent. See `dfdbayes.evidence` for what that means.

    Parameters
    ----------
    fit : Fit
        Of `IsingNetwork`, `PoissonGraphical` or `ConwayMaxwellPoissonGraphical`.
    table : DataFrame, optional
        What ``evidence.edges(fit)`` gave, if it was computed before.
    """
    table = evidence.edges(fit) if table is None else table
    names = fit.data.columns
    side = 6.0 if len(names) <= 20 else 8.0
    figure = Figure(figsize=(side + 1.4, side), layout="constrained")
    axes = figure.subplots()
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / len(names)
    places = dict(zip(names, np.stack([np.cos(angles), np.sin(angles)], axis=1), strict=True))
    strongest = max(float(table["mean"].abs().max()), 1e-12)
    for _, edge in table.iloc[:MOST_EDGES].iloc[::-1].iterrows():  # the strongest on top
        _edge(axes, places[edge["from"]], places[edge["to"]], edge, strongest)
    for name, (x, y) in places.items():
        axes.plot(x, y, "o", ms=9 if len(names) <= 20 else 6, color="white", mec=INK, mew=1.2, zorder=3)
        _name(axes, name, x, y, 10 if len(names) <= 20 else 7)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_xlim(-1.35, 1.35)
    axes.set_ylim(-1.25, 1.25)
    figure.legend(handles=_key(table), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def _edge(axes: Any, start: np.ndarray, end: np.ndarray, edge: pd.Series, strongest: float) -> None:
    gone = edge["evidence"] == evidence.ABSENT
    width = 0.7 if gone else 0.7 + 5.0 * abs(edge["mean"]) / strongest
    colour = GREY if gone else BLUE if edge["sign"] >= 0 else ORANGE
    axes.plot([start[0], end[0]], [start[1], end[1]], color=colour, lw=width, **LOOKS[edge["evidence"]])


def _name(axes: Any, name: str, x: float, y: float, size: float) -> None:
    across = "center" if abs(x) < 0.25 else "left" if x > 0 else "right"
    up = "center" if abs(y) < 0.9 else "bottom" if y > 0 else "top"
    axes.text(1.09 * x, 1.09 * y, fitted(name, 18), ha=across, va=up, fontsize=size, color=INK)


def _key(table: pd.DataFrame) -> list[Line2D]:
    """What the lines mean, with how many there are of each kind."""
    count = table["evidence"].value_counts()
    kinds = []
    for kind, look in LOOKS.items():
        colour = GREY if kind == evidence.ABSENT else INK
        kinds.append(Line2D([], [], color=colour, lw=2, label=f"{kind} ({count.get(kind, 0)})", **look))
    signs = [
        Line2D([], [], color=colour, lw=3, label=label)
        for colour, label, sign in ((BLUE, "positive", 1), (ORANGE, "negative", -1))
        if (table["sign"] == sign).any()
    ]
    return kinds + signs
