"""Findings -> figures, numbers, and one page that shows them beside the paper's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from .._util.files import write_atomically
from ..errors import SettingError
from .base import Finding, Number

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;color:#22303c;max-width:64rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem} h2{font-size:1.2rem;margin-top:2.5rem;border-top:1px solid #d5dde2;padding-top:1.2rem}
.wide{overflow-x:auto} table{border-collapse:collapse;font-size:.85rem} td,th{padding:.2rem .6rem;text-align:left}
td.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap} tr:nth-child(even){background:#f4f7f9}
img{max-width:100%;height:auto} .quiet{color:#5a6a75} nav a{margin-right:.8rem;white-space:nowrap} nav{line-height:2}
@media print{h2{break-before:page}}
"""


def write_finding(name: str, finding: Finding, folder: Path, seconds: float, quick: bool) -> dict[str, Any]:
    """Write an experiment's figures (PNG and SVG) and its numbers (JSON); give back what the page needs."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = []
    for label, figure in finding.figures.items():
        for kind in ("png", "svg"):
            picture = folder / f"{name}-{label}.{kind}"
            write_atomically(picture, partial(figure.savefig, format=kind, dpi=130))
        pictures.append(f"{name}-{label}")
    about = {
        "name": name, "title": finding.title, "where": finding.where, "text": finding.text, "pictures": pictures,
        "numbers": [_plain(number) for number in finding.numbers], "skipped": finding.skipped, "quick": quick,
        "seconds": round(seconds, 1),
    }  # fmt: skip
    text = json.dumps(about, indent=1)
    write_atomically(folder / f"{name}.json", lambda scratch: scratch.write_text(text, encoding="utf-8"))
    return about


def kept(name: str, folder: Path, quick: bool) -> bool:
    """Whether the folder has an experiment's numbers, made with the same settings; an error if with others."""
    path = folder / f"{name}.json"
    about = json.loads(path.read_text()) if path.is_file() else {"skipped": True}
    if about["skipped"]:
        return False
    if about["quick"] != quick:
        made = "quick" if about["quick"] else "full"
        raise SettingError(f"'{folder}' holds {name} with {made} settings. What to do: another --out, or --force.")
    return True


def _plain(number: Number) -> dict[str, Any]:
    def known(value: float | None) -> float | None:
        return None if value is None or not np.isfinite(value) else float(value)

    return {
        "what": number.what, "paper": known(number.paper), "ours": known(number.ours), "error": known(number.error),
        "verdict": number.verdict,
    }  # fmt: skip


def write_page(names: tuple[str, ...], folder: Path, version: str) -> Path:
    """One page over all experiments whose numbers lie in the folder."""
    found = [json.loads((folder / f"{name}.json").read_text()) for name in names if (folder / f"{name}.json").is_file()]
    links = " ".join(f"<a href='#{about['name']}'>{escape(about['title'])}</a>" for about in found)
    body = "\n".join(_section(about) for about in found)
    page = (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>The paper's experiments, "
        f"reproduced</title><meta name=viewport "
        f"content='width=device-width,initial-scale=1'><style>{STYLE}</style></head><body><h1>The paper's "
        f"experiments, reproduced</h1><p>Matsubara, Knoblauch, Briol and Oates, <em>Generalised Bayesian Inference "
        f"for Discrete Intractable Likelihood</em>. For every figure and number: the paper's value, ours, its "
        f"Monte-Carlo error, and a remark where they differ. Made by <code>dfdbayes reproduce</code>, version "
        f"{escape(version)}.</p><nav>{links}</nav>{body}</body></html>"
    )
    return write_atomically(folder / "index.html", lambda scratch: scratch.write_text(page, encoding="utf-8"))


def _section(about: Mapping[str, Any]) -> str:
    kind = "" if about["skipped"] else f"; {'quick' if about['quick'] else 'full'} settings, {about['seconds']:g} s"
    parts = [
        f"<h2 id='{about['name']}'>{escape(about['title'])}</h2>",
        f"<p class=quiet>{escape(about['where'])}; <code>dfdbayes reproduce {about['name']}</code>{kind}</p>",
        f"<p>{escape(about['text'])}</p>",
    ]
    parts += [
        f"<p><a href='{picture}.svg'><img src='{picture}.png' alt='{escape(about['title'])}: {picture}'></a></p>"
        for picture in about["pictures"]
    ]
    if about["numbers"]:
        rows = "".join(
            f"<tr><td>{escape(n['what'])}</td><td class=number>{_shown(n['paper'])}</td>"
            f"<td class=number>{_shown(n['ours'])}{_error(n['error'])}</td><td>{escape(n['verdict'])}</td></tr>"
            for n in about["numbers"]
        )
        heading = "<tr><th>quantity</th><th>paper</th><th>ours</th><th>remark</th></tr>"
        parts.append(f"<div class=wide><table>{heading}{rows}</table></div>")
    return "\n".join(parts)


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _error(value: float | None) -> str:
    return "" if value is None else f" &plusmn; {value:.2g}"
