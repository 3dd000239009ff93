"""Pieces of a page: sections, tables, figures. Everything a user named is escaped here."""

from __future__ import annotations

import base64
import io
import re
import warnings
from html import escape
from typing import Any

import numpy as np
import pandas as pd

STYLE = """
:root{--ink:#22303c;--quiet:#5a6a75;--line:#dde3e8;--blue:#2a6f97;--red:#d1495b}
body{font:15px/1.55 system-ui,sans-serif;color:var(--ink);max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;line-height:1.25;margin-bottom:.2rem;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin-top:2.4rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
h3{font-size:1rem;margin:1.4rem 0 .3rem} p,li,td{overflow-wrap:anywhere}
nav{font-size:.9rem;line-height:1.9} nav a{margin-right:.9rem;white-space:nowrap;color:var(--blue)}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;margin:.6rem 0}
td,th{padding:.22rem .7rem;text-align:right;vertical-align:top}
thead th{border-bottom:1px solid #8a9aa5;font-weight:600;vertical-align:bottom}
tbody th{text-align:left;font-weight:400;min-width:7rem;max-width:22rem;overflow-wrap:anywhere}
thead th:first-child{text-align:left}
tbody tr:nth-child(even){background:#f5f8fa} td{white-space:nowrap}
.facts td,.facts th{text-align:left;white-space:normal}
.facts tbody th{color:var(--quiet);white-space:nowrap;overflow-wrap:normal}
.wide{overflow-x:auto} img{max-width:100%;height:auto} figure{margin:1rem 0}
figcaption,.quiet{color:var(--quiet);font-size:.9rem}
.formula{background:#f5f8fa;padding:.6rem .9rem;margin:.6rem 0;overflow-x:auto;
font-family:Georgia,serif;font-size:1.05rem}
.warning{background:#fdf1f2;border-left:4px solid var(--red);padding:.5rem .8rem;margin:.5rem 0}
.good{background:#eff6f1;border-left:4px solid #6a994e;padding:.5rem .8rem;margin:.5rem 0}
.paste{border-left:4px solid var(--line);padding-left:.9rem} ol{padding-left:1.4rem;font-size:.92rem}
@media(max-width:600px){td,th{padding:.2rem .4rem} .facts tbody th{white-space:normal;min-width:6rem}
.wide:not(.facts) tbody th{min-width:10rem} figure{overflow-x:auto} img.large{max-width:none;width:36rem}}
@media print{body{margin:0;max-width:none;font-size:10.5pt} nav{display:none} h2,h3{break-after:avoid}
figure,tr,.warning,.formula{break-inside:avoid} .wide{overflow:visible} table{font-size:8.5pt} td{white-space:normal}
figure img{max-height:22cm}}
"""


RUNS = 3  # zlib's strategy for pictures of few colours: half the time for a tenth more bytes


def page(title: str, body: str, style: str = "", script: str = "") -> str:
    """A whole page that needs nothing else."""
    runs = f"<script>{script}</script>" if script else ""
    return (
        f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{escape(title)}</title>"
        f"<meta name=viewport content='width=device-width,initial-scale=1'><style>{STYLE}{style}</style></head>"
        f"<body>{body}{runs}</body></html>"
    )


def paragraph(text: str, kind: str = "") -> str:
    """Plain text as a paragraph."""
    return f"<p class='{kind}'>{escape(text)}</p>" if kind else f"<p>{escape(text)}</p>"


def table(
    frame: pd.DataFrame, kind: str = "wide", most: int = 150, rest: str = "in fit.summary()", corner: str = ""
) -> str:
    """A table that scrolls if it is too wide; of a long one the first rows, and a note on where the rest is."""
    shown = frame.iloc[:most].map(cell)
    text = shown.to_html(border=0, escape=True, index_names=False).replace("<th></th>", f"<th>{corner}</th>", 1)
    text = re.sub("<th>[^<]*</th>", lambda name: re.sub(r",(?=\S)", ",<wbr>", name[0]), text)  # names may break there
    text = f"<div class='{kind}'>{text}</div>"
    more = len(frame) - len(shown)
    return text + (paragraph(f"{more} more rows are {rest}.", "quiet") if more > 0 else "")


def cell(value: Any) -> str:
    """A value as it stands in a table."""
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else f"{value:.4g}"
    return str(value)


def between(low: Any, high: Any) -> list[str]:
    """Intervals as text."""
    return [f"[{a:.4g}, {b:.4g}]" for a, b in zip(low, high, strict=True)]


def facts(rows: dict[str, str]) -> str:
    """Names and texts, one a line."""
    lines = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows.items() if text)
    return f"<div class='wide facts'><table><tbody>{lines}</tbody></table></div>"


def figure(picture: Any, caption: str, large: bool = False) -> str:
    """A matplotlib figure inside the page; a large one scrolls on a telephone instead of shrinking."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # an unusual letter becomes a box
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        _print(picture, buffer)
    data = base64.b64encode(buffer.getvalue()).decode()
    text, wide = escape(caption), round(96 * picture.get_figwidth())
    image = f"<img{' class=large' if large else ''} width={wide} alt='{text}' src='data:image/png;base64,{data}'>"
    return f"<figure>{image}<figcaption>{text}</figcaption></figure>"


def _print(picture: Any, buffer: io.BytesIO) -> None:
    """A figure as PNG. `savefig` would draw one that arranges itself twice."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    picture.set_dpi(150)
    canvas, engine = FigureCanvasAgg(picture), picture.get_layout_engine()
    if engine is not None:
        engine.execute(picture)
        picture.set_layout_engine("none")
    canvas.print_png(buffer, pil_kwargs={"compress_type": RUNS})
