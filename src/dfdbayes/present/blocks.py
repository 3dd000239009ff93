"""What documents are made of. A block says what there is to read or to see; renderers decide what it looks like.

A new kind of block needs a macro in `templates/pieces.html`, and a line in `html.BLOCKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Paragraph:
    """Plain text; ``quiet`` where it explains what stands beside it."""

    text: str
    quiet: bool = False


@dataclass(frozen=True)
class Caution:
    """A warning, with what to do after "What to do:"."""

    text: str


@dataclass(frozen=True)
class Formula:
    """A formula, in HTML."""

    markup: str


@dataclass(frozen=True)
class Facts:
    """Names and texts, one a line; empty ones are left out."""

    rows: Mapping[str, str]


@dataclass(frozen=True)
class Meanings:
    """What parameters are, by name."""

    known: Mapping[str, str]


@dataclass(frozen=True)
class Table:
    """A table, of which a long one is shown in part.

    Attributes
    ----------
    frame : pandas.DataFrame
    label : str
        What it is called for those who cannot see it.
    corner : str
        What the lines are; by default the name of the index.
    most : int
        Lines that are shown; ``rest`` says where the others are.
    sortable : bool
        Whether a reader may sort it.
    """

    frame: pd.DataFrame
    label: str = "Table"
    corner: str = ""
    most: int = 150
    rest: str = "in fit.summary()"
    sortable: bool = False


@dataclass(frozen=True)
class Picture:
    """A figure, drawn when it is shown; ``draw`` gives None where there is nothing to see.

    A ``large`` one scrolls on a telephone instead of shrinking.
    """

    draw: Callable[[], Any]
    caption: str
    large: bool = False


@dataclass(frozen=True)
class Interactive:
    """A picture that answers where scripts run, and the still one that takes its place elsewhere and in a paper.

    Attributes
    ----------
    markup, style, script : str
        Of the page: HTML in which names are escaped, and what the page needs once for all of its kind.
    still : Picture
    title : str
        Of the still picture.
    """

    markup: str
    style: str
    script: str
    still: Picture
    title: str


@dataclass(frozen=True)
class Paper:
    """What to report in a paper."""

    result: str
    method: str
    references: tuple[str, ...]
    citation: str


Block: TypeAlias = Paragraph | Caution | Formula | Facts | Meanings | Table | Picture | Interactive | Paper


@dataclass(frozen=True)
class Section:
    """Blocks under a title."""

    title: str
    blocks: tuple[Block, ...]


UNMIXED = " The simulated chains may not have mixed: treat this check with care."


def cell(value: Any) -> str:
    """A value as it stands in a table."""
    if isinstance(value, (float, np.floating)):
        return "–" if np.isnan(value) else f"{value:.4g}"
    return str(value)


def between(low: Iterable[Any], high: Iterable[Any]) -> list[str]:
    """Intervals as text."""
    return [f"[{a:.4g}, {b:.4g}]" for a, b in zip(low, high, strict=True)]


def factors(ratios: pd.DataFrame) -> pd.Series:
    """What coefficients multiply, as text: the factor and its interval."""
    return ratios["ratio"].map("{:.3g}".format) + " " + between(ratios["eti95_lb"], ratios["eti95_ub"])
