"""One self-contained HTML page about a fit. Everything on it was computed before."""

from __future__ import annotations

import base64
import io
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from . import plots
from .files import write_atomically
from .result import Fit

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#22303c;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin-bottom:.2rem} h2{font-size:1.1rem;margin-top:2rem;border-bottom:1px solid #dde3e8}
table{border-collapse:collapse;font-variant-numeric:tabular-nums} td,th{padding:.2rem .7rem;text-align:right}
thead th{border-bottom:1px solid #8a9aa5} tbody th,th:first-child,.facts td{text-align:left;font-weight:400}
.wide{overflow-x:auto} img{max-width:100%;height:auto} figcaption{color:#5a6a75;font-size:.9rem}
.caution{background:#fdf1f2;border-left:4px solid #d1495b;padding:.5rem .8rem;margin:.5rem 0}
figure{margin:1rem 0} .quiet{color:#5a6a75}
@media print{body{margin:0;max-width:none} figure,table{break-inside:avoid}}
"""


def write_report(fit: Fit, path: str | Path) -> Path:
    """Write the page, completely or not at all."""
    page = render(fit)
    return write_atomically(path, lambda scratch: scratch.write_text(page, encoding="utf-8"))


def render(fit: Fit) -> str:
    """The page as text."""
    s = fit.settings
    parts = [
        f"<h1>{escape(s['model'])} fitted to {escape(fit.data.source)}</h1>",
        f"<p class=quiet>{fit.data.n} observations, {len(fit.data.rows)} distinct rows, column"
        f"{'s' if fit.data.d > 1 else ''} {escape(', '.join(fit.data.columns[:12]))}"
        f"{', ...' if fit.data.d > 12 else ''}; {fit.data.dropped} rows left out for missing values.</p>",
    ]
    parts += [f"<p class=caution>{escape(caution)}</p>" for caution in fit.cautions]
    parts += ["<h2>Estimates</h2>", _table(fit.summary())]
    parts.append(_figure(plots.posterior(fit), "Posterior densities; shaded: 95 % interval, line: mean."))
    parts += ["<h2>Calibration</h2>", f"<p>{escape(fit.calibration.message)}.</p>"]
    cloud = plots.calibration(fit)
    if cloud is not None:
        caption = "Where the loss is smallest on bootstrap data, over draws of the posterior: calibrated means alike."
        parts.append(_figure(cloud, caption))
    parts += ["<h2>Chains</h2>", _figure(plots.trace(fit), "Draws in order, one colour a chain.")]
    parts += ["<h2>What was done</h2>", _table(_facts(fit), "wide facts")]
    body = "\n".join(parts)
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(s['model'])}: "
        f"{escape(fit.data.source)}</title><meta name=viewport content='width=device-width,initial-scale=1'>"
        f"<style>{STYLE}</style></head><body>{body}</body></html>"
    )


def _facts(fit: Fit) -> pd.DataFrame:
    s, m = fit.settings, fit.minimum
    facts = {
        "loss": s["loss"],
        "priors": "; ".join(f"{name} ~ {prior}" for name, prior in s["priors"].items()),
        "minimiser": ", ".join(f"{n} = {v:.5g}" for n, v in zip(m.names[:12], m.vector, strict=False)),
        "search": m.message,
        "parameter space": ", ".join(f"{n} in [{a:.3g}, {b:.3g}]" for n, (a, b) in list(m.bounds.items())[:12]),
        "calibration": f"{s['calibration']}, {s['bootstrap']} bootstrap fits",
        "sampler": f"{s['sampler']}: {s['chains']} chains, {s['warmup']} warm-up, {s['draws']} draws each",
        "seed": str(s["seed"]),
        "versions": ", ".join(f"{name} {number}" for name, number in fit.versions.items()),
        "seconds": ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in fit.timings["seconds"].items()),
    }
    return pd.DataFrame({"": facts})


def _table(frame: pd.DataFrame, kind: str = "wide") -> str:
    def cell(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)

    text = frame.map(cell).to_html(border=0, escape=True)
    return f"<div class='{kind}'>{text}</div>"


def _figure(figure: Any, caption: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    picture = base64.b64encode(buffer.getvalue()).decode()
    image = f"<img alt='{escape(caption)}' src='data:image/png;base64,{picture}'>"
    return f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>"
