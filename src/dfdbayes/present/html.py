"""Blocks as HTML, by templates that escape everything a user named."""

from __future__ import annotations

import base64
import re
from functools import cache, singledispatch
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from .blocks import (
    Block,
    Caution,
    Facts,
    Formula,
    Interactive,
    Meanings,
    Paper,
    Paragraph,
    Picture,
    Section,
    Table,
    cell,
)
from .figures.base import png

HERE = "present/templates"


def breakable(name: object) -> Markup:
    """A name that may break after its commas."""
    return Markup(re.sub(r",(?=\S)", ",<wbr>", str(escape(name))))


@cache
def templates(folder: str = HERE) -> Environment:
    """The templates in a folder of the package; what is not Markup is escaped in all of them."""
    made = Environment(loader=PackageLoader("dfdbayes", folder), autoescape=True, undefined=StrictUndefined)
    made.filters["breakable"] = breakable
    return made


@cache
def macros(name: str, folder: str = HERE) -> Any:
    """The macros of a template."""
    return templates(folder).get_template(name).module


def text_of(name: str, folder: str = HERE) -> Markup:
    """A style or a script in a folder of the package."""
    return Markup(files("dfdbayes").joinpath(folder, name).read_text(encoding="utf-8"))


def body(section: Section) -> Markup:
    """What stands under the title of a section."""
    return Markup("\n").join(map(block, section.blocks))


@singledispatch
def block(one: Block) -> Markup:
    """A block as HTML; a kind of block that another folder defines registers its own."""
    raise TypeError(f"{type(one).__name__} is no kind of block")


def _piece(name: str, *arguments: Any) -> Markup:
    return getattr(macros("pieces.html"), name)(*arguments)


@block.register
def _(one: Paragraph) -> Markup:
    return _piece("paragraph", one.text, "quiet" * one.quiet)


@block.register
def _(one: Caution) -> Markup:
    happened, _, remedy = one.text.partition("What to do:")
    return _piece("warning", happened.strip(), remedy)


@block.register
def _(one: Formula) -> Markup:
    return _piece("formula", Markup(one.markup))


@block.register
def _(one: Facts) -> Markup:
    return _piece("facts", one.rows)


@block.register
def _(one: Meanings) -> Markup:
    return _piece("meanings", one.known) if one.known else Markup("")


@block.register
def _(one: Table) -> Markup:
    """The table scrolls if it is too wide."""
    frame, shown = one.frame, one.frame.iloc[: one.most]
    rows = [(name, map(cell, row)) for name, row in zip(shown.index, shown.to_numpy(dtype=object), strict=True)]
    kind, corner = "wide" + " sortable" * one.sortable, one.corner or frame.index.name or ""
    text = _piece("table", kind, corner, list(frame.columns), rows, one.label)
    more = len(frame) - len(shown)
    return text + (_piece("paragraph", f"{more} more rows are {one.rest}.", "quiet") if more > 0 else "")


@block.register
def _(one: Picture) -> Markup:
    figure = one.draw()
    if figure is None:
        return Markup("")
    data = base64.b64encode(png(figure)).decode()
    return _piece("figure", data, one.caption, round(96 * figure.get_figwidth()), one.large)


@block.register
def _(one: Interactive) -> Markup:
    return Markup(one.markup) + _piece("still", one.title, block(one.still))


@block.register
def _(one: Paper) -> Markup:
    return _piece("paper", one.result, one.method, one.references, one.citation)
