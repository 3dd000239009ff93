"""The network that a pairwise model found, and those of groups."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from ...present.figures.base import BLUE, GREY, INK, ORANGE, Figure, clean, fitted
from ...results.fitted import Fitted
from . import evidence, groups
from .groups import GroupDifferences
from .nodes import node_table
from .temporal import effects_over_time

MOST_EDGES = 300  # the strongest, that are drawn
MOST_NODES = 60  # the strongest, that have a line each
MANY_NODES = 20  # nodes from which names are small
THERE, UNKNOWN, NONE = {"ls": "-", "alpha": 0.95}, {"ls": (0, (4, 2)), "alpha": 0.45}, {"ls": ":", "alpha": 0.35}
LOOKS: dict[str, dict[str, Any]] = {
    evidence.PRESENT: THERE,
    groups.DIFFERENT: THERE,
    evidence.INCONCLUSIVE: UNKNOWN,
    evidence.NO_VERDICT: UNKNOWN,
    evidence.ABSENT: NONE,
    groups.ALIKE: NONE,
}
GONE = (evidence.ABSENT, groups.ALIKE)


def network(fit: Fitted, table: pd.DataFrame | None = None) -> Figure:
    """The columns on a circle, joined by their interactions.

    Width shows strength (posterior mean) and colour the sign; a full line is an edge that is present, a dashed one is
    inconclusive, and a thin dotted grey one is absent. See `dfdbayes.evidence` for what that means.

    Parameters
    ----------
    fit : Fitted
        Of `Network`, `IsingNetwork`, `PoissonGraphical` or `ConwayMaxwellPoissonGraphical`.
    table : DataFrame, optional
        What ``evidence.edges(fit)`` gave, if it was computed before.
    """
    table = evidence.edges(fit) if table is None else table
    side = 6.0 if len(fit.data.columns) <= MANY_NODES else 8.0
    figure = Figure(figsize=(side + 1.4, side), layout="constrained")
    axes = figure.subplots()
    strongest = max(float(table["mean"].abs().max()), 1e-12)
    lines = table.assign(kind=table["evidence"], size=table["mean"].abs() / strongest)
    _drawn(axes, fit.data.columns, lines)
    kinds = (evidence.PRESENT, evidence.INCONCLUSIVE, evidence.NO_VERDICT, evidence.ABSENT)
    figure.legend(handles=_key(lines, kinds), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def group_networks(fit: Fitted, factor: str, found: GroupDifferences | None = None) -> Figure:
    """The networks of groups side by side, and how each differs from the reference.

    All pictures have the same places and scale: width shows strength (posterior mean) and colour the sign. In pictures
    of differences a full line is an edge that is different, a dashed one is inconclusive, and a dotted grey one is
    alike. See `dfdbayes.group_differences` for what that means.

    Parameters
    ----------
    fit : Fitted
        Of a network whose edges depend on the factor.
    factor : str
    found : GroupDifferences, optional
        What ``dfdbayes.group_differences(fit, factor)`` gave, if it was computed before.
    """
    found = groups.group_differences(fit, factor) if found is None else found
    reference, *others = found.levels
    against = found.table[found.table["reference"] == reference]
    sign = evidence.network_of(fit).sign
    strongest = max(float(found.groups.abs().max().max()), float(against["difference"].abs().max()), 1e-12)

    def lines(ends: pd.DataFrame, values: Any, kinds: Any) -> pd.DataFrame:
        size, direction = np.abs(values) / strongest, np.sign(sign * values)
        made = ends[["from", "to"]].assign(size=size, sign=direction, kind=kinds)
        return made.sort_values("size", ascending=False, kind="stable")

    ends = found.groups.index.to_frame(index=False)
    whole = {level: lines(ends, found.groups[level].to_numpy(), "") for level in found.levels}
    apart = {
        level: lines(own, own["difference"], own["verdict"])
        for level, own in against.groupby("group", sort=False)
    }  # fmt: skip
    key = _key(
        pd.concat(apart.values()),
        (groups.DIFFERENT, groups.INCONCLUSIVE, evidence.NO_VERDICT, groups.ALIKE),
        [*whole.values()],
    )
    if len(others) == 1:  # all in one row
        figure = Figure(figsize=(11.7, 4.1), layout=ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.08))
        axes = figure.subplots(1, 3)
        figure.legend(handles=key, loc="outside lower center", ncols=len(key), frameon=False, fontsize=8)
    else:  # every difference below its group, and the key below the reference
        figure = Figure(figsize=(3.7 * len(found.levels), 7.6), layout=ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.08))
        above, below = figure.subplots(2, len(found.levels))
        below[0].legend(handles=key, loc="center", frameon=False, fontsize=9)
        below[0].set_axis_off()
        axes = [*above, *below[1:]]
    titles = [*whole, *(f"{level} − {reference}" for level in others)]
    for place, title, table in zip(axes, titles, [*whole.values(), *(apart[level] for level in others)], strict=True):
        _drawn(place, fit.data.columns, table, small=True)
        place.set_title(fitted(title, 40), fontsize=11, color=INK)
    return figure


def temporal(fit: Fitted) -> Figure:
    """What earlier values do to later ones, and what goes together at one time, side by side.

    Arrows point from the earlier value; one to itself is a ring. Width shows strength and colour the sign; a full line
    is an effect that is present, a dashed one inconclusive, and a dotted one absent (see `Fit.temporal`).

    Parameters
    ----------
    fit : Fitted
        Of a network whose intercepts depend on earlier values, made by `dfdbayes.lagged`.
    """
    effects, edges = effects_over_time(fit), evidence.edges(fit)
    figure = Figure(figsize=(10.4, 5.2), layout=ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.1))
    before, now = figure.subplots(1, 2)
    strongest = max(float(effects["mean"].abs().max()), 1e-12)
    arrows = effects.assign(
        kind=effects["evidence"], size=effects["mean"].abs() / strongest, sign=np.sign(effects["mean"])
    )
    _drawn(before, fit.data.columns, arrows, small=True, directed=True)
    largest = max(float(edges["mean"].abs().max()), 1e-12)
    lines = edges.assign(kind=edges["evidence"], size=edges["mean"].abs() / largest)
    _drawn(now, fit.data.columns, lines, small=True)
    before.set_title("from one time to the next", fontsize=11, color=INK)
    now.set_title("at one time, given the time before", fontsize=11, color=INK)
    kinds = (evidence.PRESENT, evidence.INCONCLUSIVE, evidence.NO_VERDICT, evidence.ABSENT)
    key = _key(pd.concat([arrows, lines]), kinds)
    figure.legend(handles=key, loc="outside lower center", ncols=len(key), frameon=False, fontsize=8)
    return figure


def centrality(fit: Fitted, table: pd.DataFrame | None = None) -> Figure:
    """Strength, expected influence and predictability of the nodes of a network, the strongest on top.

    Points are posterior means and lines calibrated 95 % intervals. A grey stroke is what a node without any edge would
    show on average, by chance alone: strength and predictability are never negative. See `Fit.nodes`.

    Parameters
    ----------
    fit : Fitted
        Of `Network`, `IsingNetwork`, `PoissonGraphical` or `ConwayMaxwellPoissonGraphical`.
    table : DataFrame, optional
        What ``fit.nodes()`` gave, if it was computed before.
    """
    shown = (node_table(fit) if table is None else table).iloc[:MOST_NODES]
    figure = Figure(figsize=(8.2, max(2.2, 1.1 + 0.24 * len(shown))), layout="constrained")
    place = np.arange(len(shown))[::-1]
    every = figure.subplots(1, 3, sharey=True)
    titles = {"strength": "strength", "influence": "expected influence", "predictability": "predictability"}
    for axes, (name, title) in zip(every, titles.items(), strict=True):
        axes.hlines(place, shown[f"{name}_low"], shown[f"{name}_high"], color=BLUE, lw=1.6)
        axes.plot(shown[name], place, "o", ms=4.5, color=BLUE)
        chance = shown.get(f"{name}_by_chance")
        if chance is None:
            axes.axvline(0.0, color=GREY, lw=0.8)
        else:
            axes.plot(chance, place, "|", ms=9, mew=1.6, color=GREY)
            axes.set_xlim(left=0.0)
        axes.set_title(title, fontsize=10, color=INK)
        axes.grid(axis="y", color=GREY, alpha=0.25, lw=0.6)
        clean(axes)
    every[0].set_yticks(place, [fitted(name) for name in shown.index], fontsize=8)
    every[0].set_ylim(-0.6, len(shown) - 0.4)
    return figure


def _drawn(axes: Any, names: Sequence[str], lines: pd.DataFrame, small: bool = False, directed: bool = False) -> None:
    """Nodes on a circle, and lines with ``from``, ``to``, ``size`` (1 is the largest), ``sign`` and ``kind``."""
    few = len(names) <= MANY_NODES
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / len(names)
    places = dict(zip(names, np.stack([np.cos(angles), np.sin(angles)], axis=1), strict=True))
    for _, edge in lines.iloc[:MOST_EDGES].iloc[::-1].iterrows():  # the strongest on top
        (_arrow if directed else _edge)(axes, places[edge["from"]], places[edge["to"]], edge)
    for name, (x, y) in places.items():
        axes.plot(x, y, "o", ms=9 if few and not small else 6, color="white", mec=INK, mew=1.2, zorder=3)
        shown = textwrap.fill(fitted(name, 22), 12, break_long_words=False) if small else fitted(name, 18)
        _name(axes, shown, x, y, (8 if small else 10) if few else 7 - small)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_xlim(-1.35, 1.35)
    axes.set_ylim(-1.25, 1.25)


def _edge(axes: Any, start: np.ndarray, end: np.ndarray, edge: pd.Series) -> None:
    gone = edge["kind"] in GONE
    width = 0.7 if gone else 0.7 + 5.0 * edge["size"]
    colour = GREY if gone else BLUE if edge["sign"] >= 0 else ORANGE
    look = LOOKS[edge["kind"]] if edge["kind"] else {"alpha": 0.25 + 0.7 * np.sqrt(edge["size"])}
    axes.plot([start[0], end[0]], [start[1], end[1]], color=colour, lw=width, **look)


def _arrow(axes: Any, start: np.ndarray, end: np.ndarray, edge: pd.Series) -> None:
    """A bent arrow, so that one back does not hide it; a ring outside the circle where it ends where it begins."""
    colour, look = BLUE if edge["sign"] >= 0 else ORANGE, LOOKS[edge["kind"]]
    style = {"color": colour, "lw": 0.7 + 4.0 * edge["size"], "alpha": look["alpha"], "ls": look["ls"]}
    if np.allclose(start, end):
        turn = np.linspace(0.0, 2.0 * np.pi, 60)
        centre = 0.9 * start
        axes.plot(centre[0] + 0.1 * np.cos(turn), centre[1] + 0.1 * np.sin(turn), **style)
        return
    how = {"arrowstyle": "-|>", "connectionstyle": "arc3,rad=0.15", "shrinkA": 6, "shrinkB": 7}
    axes.annotate("", xy=end, xytext=start, arrowprops=how | style | {"mutation_scale": 9 + 6 * edge["size"]})


def _name(axes: Any, name: str, x: float, y: float, size: float) -> None:
    across = "center" if abs(x) < 0.25 else "left" if x > 0 else "right"
    up = "center" if abs(y) < 0.9 else "bottom" if y > 0 else "top"
    axes.text(1.09 * x, 1.09 * y, name, ha=across, va=up, fontsize=size, color=INK)


def _key(judged: pd.DataFrame, kinds: Sequence[str], others: Sequence[pd.DataFrame] = ()) -> list[Line2D]:
    """What the lines mean, with how many there are of each kind."""
    count, signed = judged["kind"].value_counts(), pd.concat([judged, *others])["sign"]
    key = [
        Line2D([], [], color=GREY if kind in GONE else INK, lw=2, label=f"{kind} ({count.get(kind, 0)})", **LOOKS[kind])
        for kind in kinds
    ]
    return key + [
        Line2D([], [], color=colour, lw=3, label=label)
        for colour, label, sign in ((BLUE, "positive", 1), (ORANGE, "negative", -1))
        if (signed == sign).any()
    ]
