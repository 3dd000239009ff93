"""What a notebook shows of results: the answer, a table, warnings and one picture, each as one piece of HTML."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...core.calibration import Calibration
from ...families.network.evidence import Evidence, edges_first
from ...fitting.comparison import Comparison
from ...fitting.coverage import Coverage
from ...results.fitted import Fitted
from .. import figures as plots
from ..figures.base import png, wide
from ..text_report import lines_of
from . import html

MOST = 20  # lines of a table


def shown(
    title: str,
    sentences: str,
    table: pd.DataFrame | None,
    picture: Any = None,
    caption: str = "",
    warnings: Sequence[str] = (),
    details: Sequence[str] = (),
    rest: str = "",
) -> str:
    """One piece of HTML; of a long table the first lines, ``rest`` being where the others are."""
    more = 0 if table is None else len(table) - MOST
    image = None if picture is None else (base64.b64encode(png(picture)).decode(), wide(picture))
    return html.macros("notebook.html").result(
        title, sentences[:1].upper() + sentences[1:], None if table is None else _cells(table.iloc[:MOST]),
        f"{more} more rows are in {rest}." if more > 0 else "", warnings, image, caption, details,
    )  # fmt: skip


def _cells(table: pd.DataFrame) -> dict[str, Any]:
    """A table's columns and rows, with which cells are words."""
    names = [" · ".join(map(str, name)) if isinstance(name, tuple) else name for name in table.index]
    rows = [[(html.cell(value), isinstance(value, str)) for value in row] for row in table.to_numpy(dtype=object)]
    return {"columns": list(table.columns), "rows": list(zip(names, rows, strict=True))}


def of_fit(fit: Fitted) -> str:
    """The answer, the estimates, and the picture that shows them."""
    summary = edges_first(fit, fit.summary())
    judged = [name for name in ("converged", "Bayes factor", "evidence") if name in summary]
    table = summary[["mean", "sd", "eti95_lb", "eti95_ub", *judged]].copy()
    if table["mean"].isna().any():
        table.insert(0, "median", summary["median"])
    table = html.with_ratios(table, fit)
    known = fit.meanings
    if known:
        table["what it is"] = _once([known.get(str(name).partition("[")[0], "") for name in table.index])
    title = f"{fit.settings['model']} fitted to {fit.data.source}, {fit.size}"
    return shown(
        title, fit.answer, table, plots.answer(fit), fit.answer, fit.warnings, lines_of(fit), "fit.summary()"
    )  # fmt: skip


def _once(texts: list[str]) -> list[str]:
    """Each text where it first appears."""
    return [text if text not in texts[:i] else "" for i, text in enumerate(texts)]


def of_calibration(found: Calibration) -> str:
    """How the weight came about, and the weights of directions or the bootstrap minimisers."""
    shape, table = found.curvature, None
    if shape is not None:
        parts = {"moved by the prior (sd)": shape.moved, "known from the data": shape.from_data}
        table = pd.DataFrame(parts, index=list(found.names))
    elif len(found.minimisers):
        usable = found.minimisers[np.isfinite(found.minimisers).all(axis=1)]
        parts = {"mean of minimisers": usable.mean(axis=0), "sd": usable.std(axis=0)}
        table = pd.DataFrame(parts, index=list(found.names))
    warned = [found.instead_of] if found.instead_of else []
    title = f"Calibration by {found.method}"
    return shown(title, f"{found.message}.", table, plots.weights(found), title, warned, rest="the calibration")


def of_comparison(found: Comparison) -> str:
    """The table and overlaid densities; fits that were not possible as warnings."""
    one = next(iter(found.fits.values()))
    title = f"{', '.join(found.fits)}, fitted to {one.data.source}"
    failed = [f"{name}: {why}" for name, why in found.failed.items()]
    answers = " ".join(f"{name}: {fit.answer}" for name, fit in found.fits.items()) if len(found.fits) < 3 else ""
    return shown(title, answers, found.table, plots.comparison(found), title, failed, rest="comparison.table")


def of_coverage(found: Coverage) -> str:
    """The table and coverage against level."""
    failed = [f"{number} fits failed: {why}" for why, number in found.failures.items()]
    return shown("Coverage", f"{found!r}.", found.table, plots.coverage(found), "Coverage against level", failed,
                 rest="coverage.table")  # fmt: skip


def of_evidence(found: Evidence) -> str:
    """How many edges are there, the table, and the network."""
    fit = found.of
    title = f"Edges of {fit.settings['model']}, fitted to {fit.data.source}"
    picture, table = plots.network(fit, found), pd.DataFrame(found)
    return shown(title, fit.sentences[0], table, picture, "The network", rest="this table")
