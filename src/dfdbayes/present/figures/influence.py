"""Pictures of rows: how far each moves an estimate."""

from __future__ import annotations

import numpy as np

from ...results.fitted import Fitted
from ...results.influence import MOVED, influences
from .base import BLUE, GREY, INK, ORANGE, Figure, clean, fitted


def influence(fit: Fitted) -> Figure:
    """The rows that matter most: every one's largest shift of a parameter, in standard errors, the first ones named.

    Parameters
    ----------
    fit : Fitted
        It keeps the 200 distinct rows that matter most, or they are computed.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> fit = dfd.fit("poisson", [2, 3, 1, 4, 2, 0, 3, 5, 2, 25] * 5, progress=False, check=False)
    >>> figure = dfd.plots.influence(fit)
    """
    table = influences(fit, 200) if fit.influential is None else fit.influential
    figure = Figure(figsize=(7.4, 3.2), layout="constrained")
    axes = figure.subplots()
    at, size = table.index.to_numpy() + 1, table["shift"].to_numpy()
    far = np.abs(size) > MOVED
    axes.vlines(at, 0.0, size, color=np.where(far, ORANGE, BLUE).tolist(), lw=0.8)
    axes.scatter(at, size, c=np.where(far, ORANGE, BLUE).tolist(), s=9, zorder=3)
    reach = max(1.3, 1.25 * float(np.abs(size).max()))
    axes.axhline(0.0, color=GREY, lw=0.8)
    for line in (-MOVED, MOVED):
        axes.axhline(line, color=GREY, lw=0.8, ls=":")
    middle = 0.5 * (at.min() + at.max())
    named = max(1, min(5, int((np.abs(size) > 0.5 * MOVED).sum())))  # at most so many names find room
    for row, shift, parameter, alike in zip(at, size, table["parameter"], table["observations"], strict=True):
        if named == 0:
            break
        named, right = named - 1, row > middle
        text = f"{parameter}: row {row}" + (f" (1 of {alike} alike)" if alike > 1 else "")
        axes.annotate(
            fitted(text, 60), (row, shift), xytext=(-6 if right else 6, 4), textcoords="offset points",
            ha="right" if right else "left", fontsize=7, color=INK,
        )  # fmt: skip
    axes.set_ylim(-reach, reach)
    axes.set_xlabel("row", fontsize=9)
    axes.set_ylabel("shift, in standard errors", fontsize=9)
    clean(axes)
    return figure
