"""Pieces of a page, by templates (`*.html` of this folder) that escape everything a user named."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ...results.fitted import Fitted
from ...results.ratios import ratios
from ..figures.base import png

LINE = Markup("\n")


def breakable(name: object) -> Markup:
    """A name that may break after its commas."""
    return Markup(re.sub(r",(?=\S)", ",<wbr>", str(escape(name))))


@cache
def templates() -> Environment:
    """The folder's templates; what is not Markup is escaped in all of them."""
    made = Environment(loader=PackageLoader("dfdbayes", "present/report"), autoescape=True, undefined=StrictUndefined)
    made.filters["breakable"] = breakable
    return made


@cache
def macros(name: str) -> Any:
    """The macros of a template."""
    return templates().get_template(name).module


def text_of(name: str) -> Markup:
    """A style or a script of this folder."""
    return Markup(files(__package__).joinpath(name).read_text(encoding="utf-8"))


def joined(parts: Iterable[Markup]) -> Markup:
    """One after the other."""
    return LINE.join(parts)


def paragraph(text: str, kind: str = "") -> Markup:
    """Plain text as a paragraph."""
    return macros("pieces.html").paragraph(text, kind)


def warning(text: str) -> Markup:
    """A warning, with its remedy apart."""
    happened, _, remedy = text.partition("What to do:")
    return macros("pieces.html").warning(happened.strip(), remedy)


def formula(text: Markup) -> Markup:
    """A formula, which is HTML."""
    return macros("pieces.html").formula(text)


def facts(rows: dict[str, str]) -> Markup:
    """Names and texts, one a line."""
    return macros("pieces.html").facts(rows)


def meanings(known: dict[str, str]) -> Markup:
    """What parameters are."""
    return macros("pieces.html").meanings(known) if known else Markup("")


def paper(result: str, method: str, references: list[str], citation: str) -> Markup:
    """What to report in a paper."""
    return macros("pieces.html").paper(result, method, references, citation)


def table(
    frame: pd.DataFrame, kind: str = "wide", most: int = 150, rest: str = "in fit.summary()", corner: str = "",
    label: str = "Table",
) -> Markup:  # fmt: skip
    """A table that scrolls if it is too wide; of a long one the first rows, and a note on where the rest is."""
    shown = frame.iloc[:most]
    rows = [(name, map(cell, row)) for name, row in zip(shown.index, shown.to_numpy(dtype=object), strict=True)]
    text = macros("pieces.html").table(kind, corner or frame.index.name or "", list(frame.columns), rows, label)
    more = len(frame) - len(shown)
    return text + (paragraph(f"{more} more rows are {rest}.", "quiet") if more > 0 else "")


def cell(value: Any) -> str:
    """A value as it stands in a table."""
    if isinstance(value, (float, np.floating)):
        return "–" if np.isnan(value) else f"{value:.4g}"
    return str(value)


def between(low: Any, high: Any) -> list[str]:
    """Intervals as text."""
    return [f"[{a:.4g}, {b:.4g}]" for a, b in zip(low, high, strict=True)]


def with_ratios(table: pd.DataFrame, fit: Fitted) -> pd.DataFrame:
    """A table of estimates, and beside coefficients what their exponentials multiply, where they multiply something."""
    found = ratios(fit)
    if found is None or fit.model is None:
        return table
    texts = found["ratio"].map("{:.3g}".format) + " " + between(found["eti95_lb"], found["eti95_ub"])
    return table.assign(**{fit.model.narrative.ratio: texts.reindex(table.index, fill_value="")})


def figure(picture: Any, caption: str, large: bool = False) -> Markup:
    """A matplotlib figure inside the page; a large one scrolls on a telephone instead of shrinking."""
    data = base64.b64encode(png(picture)).decode()
    return macros("pieces.html").figure(data, caption, round(96 * picture.get_figwidth()), large)
