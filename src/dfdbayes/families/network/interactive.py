"""The network of a report as a picture that answers: inline SVG, shown by a script (`network.js`) where scripts run.

Every number stands in the page itself; the script only fades, highlights, sorts, and shows as text what is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from ...present import html
from ...present.figures.base import shortened
from . import evidence, figure

HERE = "families/network"
RADIUS = 195  # of the circle that nodes are on, in a picture 720 wide: names beside it keep their room

Facts = Mapping[str, str]


def network(
    names: Sequence[str],
    edges: pd.DataFrame,
    chance: np.ndarray,
    begin: float,
    meaning: str,
    of_edges: Sequence[Facts],
    of_nodes: Mapping[str, Facts],
) -> Markup:
    """The columns on a circle; a slider hides edges whose chance is below it. Hidden itself where no script runs.

    Parameters
    ----------
    names : sequence of str
        The columns.
    edges : DataFrame
        Of `evidence.edges`, the strongest first.
    chance : (e,) floats
        What the slider is compared with.
    begin : float
        Where the slider is at first.
    meaning : str
        What it is about, in words.
    of_edges, of_nodes
        What is told of each edge, in order, and of each node, by name.
    """
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / len(names)
    places = dict(zip(names, RADIUS * np.stack([np.cos(angles), -np.sin(angles)], axis=1), strict=True))
    number = {name: j for j, name in enumerate(names)}
    largest = max(float(edges["mean"].abs().max()), 1e-12)
    lines = []
    for place, (_, edge) in enumerate(edges.iloc[: figure.MOST_EDGES].iterrows()):
        a, b, verdict = edge["from"], edge["to"], edge["evidence"]
        ends = zip(("x1", "y1", "x2", "y2"), (*places[a], *places[b]), strict=True)
        width = 1.2 if verdict == evidence.ABSENT else 1.2 + 7.0 * abs(edge["mean"]) / largest
        look = f"edge {verdict} {'negative' if edge['sign'] < 0 else 'positive'}"
        lines.append(
            _about(f"{a} – {b}", of_edges[place], f"{number[a]} {number[b]}", look)
            | {"at": {end: f"{at:.1f}" for end, at in ends}, "width": f"{width:.1f}"}
            | {"chance": f"{chance[place]:.4f}"}
        )
    dots, many = [], len(names) > figure.MANY_NODES
    for name, (x, y) in places.items():
        dots.append(
            _about(name, of_nodes[name], str(number[name]), "node")
            | {"x": f"{x:.1f}", "y": f"{y:.1f}", "radius": 5 if many else 8, "at": _place(x, y, many)}
            | {"long": shortened(name, 15), "short": shortened(name, 10)}
        )
    high = 630 if many else 530  # names that point outwards make the picture higher
    view = f"-360 {-high // 2} 720 {high}"
    return html.macros("network.html", HERE).network(view, many, lines, dots, meaning, f"{100 * begin:.0f}")


def _about(name: str, facts: Facts, ends: str, look: str) -> dict[str, Any]:
    """What an edge and a node have in common, with all that is told of it."""
    told = "; ".join(f"{what}: {value}" for what, value in facts.items())
    return {"look": look, "name": name, "ends": ends, "told": told}


def _place(x: float, y: float, outwards: bool) -> dict[str, str]:
    """Where a node's name stands."""
    if outwards:
        turned, side, across = np.degrees(np.arctan2(y, x)), 1, "start"
        if abs(turned) > 90:  # never upside down
            turned, side, across = turned - 180, -1, "end"
        where = {"transform": f"rotate({turned:.1f})", "x": f"{side * 1.05 * RADIUS:.1f}", "dy": ".35em"}
        return where | {"text-anchor": across}
    across = "middle" if abs(x) < 0.25 * RADIUS else "start" if x > 0 else "end"
    down = 0.35 if abs(y) < 0.9 * RADIUS else 0.0 if y < 0 else 0.75
    return {"x": f"{1.09 * x:.1f}", "y": f"{1.09 * y:.1f}", "dy": f"{down}em", "text-anchor": across}
