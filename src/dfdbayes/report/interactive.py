"""The network of a report as a picture that answers: inline SVG, shown by a script (`network.js`) where scripts run.

Every number stands in the page itself; the script only fades, highlights, sorts, and shows as text what is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

import numpy as np
import pandas as pd

from ..plots import MOST_EDGES
from ..plots.base import shortened
from ..results import evidence

WIDE, HIGH, RADIUS = 720, 530, 195  # of the picture, and of the circle that nodes are on
CROWD = 20  # nodes from which names are small and point outwards, which makes the picture
HIGHER = 630
LONG, SHORT = 15, 10  # characters of names, and on a telephone

STYLE = """
.live svg{display:block;width:100%;max-width:45rem;height:auto;margin:0 auto}
.live .edge line{stroke:var(--blue);stroke-linecap:round} .live .negative line{stroke:var(--red)}
.live .inconclusive line{stroke-dasharray:9 7;opacity:.55} .live .absent line{stroke:#8a9aa5;stroke-dasharray:1 6}
.live .edge .hit{stroke:transparent;stroke-width:16;stroke-dasharray:none} .live .faded line{opacity:.07}
.live .faded .hit{pointer-events:none} .live .edge,.live .node{cursor:pointer;outline:none}
.live .pointing .edge:not(.lit,.faded) line{opacity:.12} .live .lit:not(.faded) line{opacity:1}
.live circle{fill:#fff;stroke:var(--ink);stroke-width:2}
.live .lit circle,.live .node:focus-visible circle{fill:var(--ink)}
.live text{font-size:16px;fill:var(--ink)} .live .crowd text{font-size:11px} .live .short{display:none}
.live label{display:flex;flex-wrap:wrap;gap:.2rem .8rem;align-items:center} .live input{flex:1 1 12rem;max-width:24rem}
.told{min-height:8.2rem;background:#f5f8fa;padding:.5rem .8rem;overflow-wrap:anywhere}
.told dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.5rem,1fr));gap:.3rem 1rem;margin:.3rem 0 0}
.told dt{color:var(--quiet);font-size:.85rem} .told dd{margin:0;font-variant-numeric:tabular-nums}
.sortable button{all:unset;cursor:pointer;font-weight:600} .sortable button:focus-visible{outline:2px solid var(--blue)}
.sortable [aria-sort=ascending] button::after{content:" ▲"} .sortable [aria-sort=descending] button::after{content:" ▼"}
.sortable tr.faded{opacity:.45}
@media(max-width:600px){.live text{font-size:22px} .live .crowd text{font-size:15px} .live circle{stroke-width:3}
.live .long{display:none} .live .short{display:inline} .told{min-height:15.5rem}}
summary{cursor:pointer;color:var(--blue)}
@media print{.live,summary{display:none}}
"""

Facts = Mapping[str, str]


def script() -> str:
    """What makes the picture answer."""
    return files(__package__).joinpath("network.js").read_text(encoding="utf-8")


def network(
    names: Sequence[str],
    edges: pd.DataFrame,
    chance: np.ndarray,
    begin: float,
    meaning: str,
    of_edges: Sequence[Facts],
    of_nodes: Mapping[str, Facts],
) -> str:
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
    for place, (_, edge) in enumerate(edges.iloc[:MOST_EDGES].iterrows()):
        a, b, verdict = edge["from"], edge["to"], edge["evidence"]
        ends = "x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}'".format(*places[a], *places[b])
        width = 1.2 if verdict == evidence.ABSENT else 1.2 + 7.0 * abs(edge["mean"]) / largest
        look = f"edge {verdict} {'negative' if edge['sign'] < 0 else 'positive'}"
        about = _about(f"{a} – {b}", of_edges[place], f"{number[a]} {number[b]}", look)
        drawn = f"<line class=hit {ends} /><line {ends} stroke-width='{width:.1f}' />"
        lines.append(f"<g {about} data-chance='{chance[place]:.4f}'>{drawn}</g>")
    dots, many = [], len(names) > CROWD
    for name, (x, y) in places.items():
        about = _about(name, of_nodes[name], str(number[name]), "node")
        dot = f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{5 if many else 8}' />"
        dots.append(f"<g {about}>{dot}{_name(name, x, y, many)}</g>")
    crowd, high = (" class=crowd", HIGHER) if many else ("", HIGH)
    view = f"{-WIDE // 2} {-high // 2} {WIDE} {high}"
    picture = f"<svg{crowd} viewBox='{view}' role=group aria-label='Network'>{''.join([*lines, *dots])}</svg>"
    slider = f"<input type=range min=0 max=100 step=1 value={100 * begin:.0f}>"
    return (
        f"<figure class=live hidden><label>{escape(meaning)} at least {slider}<output></output></label>{picture}"
        "<div class=told aria-live=polite>Point at an edge or a node, or move to it with the Tab key.</div>"
        "<figcaption>Move the slider: edges below it fade, also in the table. Width: strength. Blue: positive, red: "
        "negative. Full line: present; dashed: inconclusive; dotted grey: absent.</figcaption></figure>"
    )


def _about(name: str, facts: Facts, ends: str, look: str) -> str:
    """The attributes of an edge or a node, with all that is told of it."""
    told = "; ".join(f"{what}: {value}" for what, value in facts.items())
    known = {"class": look, "data-name": name, "data-ends": ends, "data-told": told, "aria-label": f"{name}; {told}"}
    return "tabindex=0 role=img " + " ".join(f"{key}='{escape(value)}'" for key, value in known.items())


def _name(name: str, x: float, y: float, outwards: bool) -> str:
    across = "middle" if abs(x) < 0.25 * RADIUS else "start" if x > 0 else "end"
    down = 0.35 if abs(y) < 0.9 * RADIUS else 0.0 if y < 0 else 0.75
    at = f"x='{1.09 * x:.1f}' y='{1.09 * y:.1f}' dy='{down}em' text-anchor='{across}'"
    if outwards:
        turned, side, across = np.degrees(np.arctan2(y, x)), 1, "start"
        if abs(turned) > 90:  # never upside down
            turned, side, across = turned - 180, -1, "end"
        at = f"transform='rotate({turned:.1f})' x='{side * 1.05 * RADIUS:.1f}' dy='.35em' text-anchor='{across}'"
    long, short = shortened(name, LONG), shortened(name, SHORT)
    return f"<text class=long {at}>{escape(long)}</text><text class=short aria-hidden=true {at}>{escape(short)}</text>"
