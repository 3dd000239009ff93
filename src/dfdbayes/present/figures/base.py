"""What all pictures share: colours, panels, and names that fit."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib import figure
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import Ellipse
from scipy.special import gammaincinv

from .smoothing import smoothed

INK, BLUE, ORANGE, GREY = "#22303c", "#2a6f97", "#d1495b", "#8a9aa5"
COLOURS = (BLUE, ORANGE, "#6a994e", "#e09f3e", "#6d597a", INK)
MOST = 12  # parameters or columns drawn one by one: three rows of panels
LONGEST = 26  # characters of a name, in the margin that a panel has for it


class Figure(figure.Figure):
    """A figure that a notebook shows by itself, without magic."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return png(self), {"width": wide(self)}


def wide(picture: figure.Figure) -> int:
    """How wide a notebook shows a figure, in pixels."""
    return round(84 * picture.get_figwidth())


def png(picture: figure.Figure) -> bytes:
    """A figure as PNG. `savefig` would draw one that arranges itself twice."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # an unusual letter becomes a box
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        picture.set_dpi(150)
        canvas, engine = FigureCanvasAgg(picture), picture.get_layout_engine()
        if engine is not None:
            engine.execute(picture)
            picture.set_layout_engine("none")
        runs = {"compress_type": 3}  # zlib's strategy for few colours: half the time for a tenth more bytes
        canvas.print_png(buffer, pil_kwargs=runs)
    return buffer.getvalue()


def shortened(name: Any, longest: int = LONGEST) -> str:
    """A name on one line, and not too long; the middle goes, for names often differ at their ends."""
    text = " ".join(str(name).split()) or " "
    if len(text) > longest:
        text = f"{text[: longest // 2]}…{text[-(longest - 1 - longest // 2) :]}"
    return text


def fitted(name: Any, longest: int = LONGEST) -> str:
    """A name as a picture can show it: on one line, not too long, and with dollar signs that mean dollars."""
    return shortened(name, longest).replace("$", r"\$")


def in_legend(name: Any) -> str:
    """The same for a legend, which would leave out a name that begins with an underscore."""
    text = fitted(name)
    return f" {text}" if text.startswith("_") else text


def clean(axes: Any) -> None:
    """Take away what does not carry information."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8)


def panels(count: int, width: float = 2.35, height: float = 2.1, across: int = 4) -> tuple[Figure, Iterator[Any]]:
    """A figure of ``count`` panels in rows, and the panels in reading order."""
    columns = min(across, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(max(width * columns, 4.2), height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for spare in axes[count:]:
        spare.remove()
    return figure, iter(axes[:count])


def density(axes: Any, values: np.ndarray, color: str, shade: bool = False, label: str = "") -> None:
    """A smoothed density, drawn over a histogram's place; values that are all equal become a line."""
    values = np.asarray(values, float).reshape(-1)
    values = values[np.isfinite(values)]
    if not len(values) or np.ptp(values) <= 1e-12 * max(1.0, np.abs(values).max()):
        axes.axvline(values[0] if len(values) else 0.0, color=color, lw=1.5, label=label or None)
        return
    grid, height = smoothed(values)
    if shade:
        low, high = np.quantile(values, [0.025, 0.975])
        inside = (grid >= low) & (grid <= high)
        axes.fill_between(grid[inside], height[inside], color=color, alpha=0.25, lw=0)
    axes.plot(grid, height, color=color, lw=1.5, label=label or None)


def bare(axes: Any) -> None:
    """For densities: no vertical scale."""
    axes.set_yticks([])
    axes.set_ylim(bottom=0)
    clean(axes)


def region(cloud: np.ndarray, color: str) -> Ellipse:
    """The 95 % region of a cloud's normal approximation."""
    values, vectors = np.linalg.eigh(np.cov(cloud))
    width, height = 2 * np.sqrt(np.maximum(values, 0) * 2.0 * gammaincinv(1.0, 0.95))
    angle = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
    return Ellipse(tuple(cloud.mean(axis=1)), width, height, angle=angle, fill=False, color=color, lw=1.5)


def thinned(values: np.ndarray, most: int = 2000) -> np.ndarray:
    """At most so many of them, evenly."""
    return values[:: max(1, -(-len(values) // most))]


def tilted(axes: Any, names: Sequence[str]) -> None:
    """Names of bars under a horizontal axis, upright where they would collide."""
    longest = max(map(len, names))
    crowded = len(names) * min(longest, LONGEST) > 70
    style = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    axes.set_xticks(range(len(names)), [fitted(name) for name in names], fontsize=8, **style)
