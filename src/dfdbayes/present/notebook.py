"""What a notebook shows of results: the answer, a table, warnings and one picture, each as one piece of HTML."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..core.calibration import Calibration
from . import html
from .blocks import cell, factors
from .document import Document
from .figures.base import png, wide
from .figures.draws import weights

LINES = 20  # of a table, so that the picture below it is still in sight


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
    more = 0 if table is None else len(table) - LINES
    image = None if picture is None else (base64.b64encode(png(picture)).decode(), wide(picture))
    return html.macros("notebook.html").result(
        title, sentences[:1].upper() + sentences[1:], None if table is None else _cells(table.iloc[:LINES]),
        f"{more} more rows are in {rest}." if more > 0 else "", warnings, image, caption, details,
    )  # fmt: skip


def _cells(table: pd.DataFrame) -> dict[str, Any]:
    """A table's columns and rows, with which cells are words."""
    names = [" · ".join(map(str, name)) if isinstance(name, tuple) else name for name in table.index]
    rows = [[(cell(value), isinstance(value, str)) for value in row] for row in table.to_numpy(dtype=object)]
    return {"columns": list(table.columns), "rows": list(zip(names, rows, strict=True))}


def rendered(document: Document) -> str:
    """The answer, the estimates, and the picture that shows them."""
    whole, known = document.estimates, document.meanings
    table = whole[["mean", "sd", "eti95_lb", "eti95_ub", *document.judgements]].copy()
    if table["mean"].isna().any():
        table.insert(0, "median", whole["median"])
    if document.ratios is not None:
        table[document.ratio] = factors(document.ratios).reindex(table.index, fill_value="")
    if known:
        table["what it is"] = _once([known.get(str(name).partition("[")[0], "") for name in table.index])
    return shown(
        f"{document.title}, {document.size}", document.answer, table, document.picture(), document.answer,
        document.warnings, document.found, "fit.summary()",
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
    return shown(title, f"{found.message}.", table, weights(found), title, warned, rest="the calibration")
