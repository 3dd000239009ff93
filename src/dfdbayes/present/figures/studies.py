"""Pictures over several fits: losses compared, and coverage."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from ...errors import SettingError
from ...results.fitted import Fitted
from .base import COLOURS, GREY, INK, MOST, Figure, bare, clean, density, fitted, in_legend, panels


class Compared(Protocol):
    """Fits by name."""

    @property
    def fits(self) -> Mapping[str, Fitted]: ...


class Covered(Protocol):
    """How often intervals and regions held the truth, by level."""

    @property
    def joint(self) -> Mapping[float, float]: ...
    @property
    def marginal(self) -> Mapping[str, Mapping[float, float]]: ...
    @property
    def replicates(self) -> int: ...


def comparison(compared: Compared, most: int = 8) -> Figure:
    """Posterior densities of each parameter that all fits share (at most ``most``), the fits overlaid."""
    entries = {name: fit.entries for name, fit in compared.fits.items()}
    shared = [p for p in next(iter(entries.values())) if all(p in e for e in entries.values())][:most]
    if not shared:
        raise SettingError("the fits share no parameter, so there is nothing to overlay")
    figure, places = panels(len(shared), 2.6, 2.4)
    for axes, parameter in zip(places, shared, strict=True):
        for (name, draws), colour in zip(entries.items(), itertools.cycle(COLOURS), strict=False):
            density(axes, draws[parameter], colour, label=in_legend(name))
        axes.set_title(fitted(parameter), fontsize=9, color=INK)
        bare(axes)
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


def coverage(found: Covered, most: int = MOST) -> Figure:
    """Coverage against level for the joint region and each parameter, with two binomial errors around nominal."""
    figure = Figure(figsize=(4.6, 4.2), layout="constrained")
    axes = figure.subplots()
    levels = np.array(list(found.joint))
    band = 2 * np.sqrt(levels * (1 - levels) / found.replicates)
    axes.fill_between(levels, levels - band, levels + band, color=GREY, alpha=0.25, lw=0)
    axes.plot(levels, levels, color=GREY, lw=1)
    for name, shares in list(found.marginal.items())[:most]:
        axes.plot(levels, list(shares.values()), "o-", ms=3, lw=1, label=in_legend(name))
    axes.plot(levels, list(found.joint.values()), "s-", color=INK, ms=4, label="joint")
    axes.set_xlabel("level")
    axes.set_ylabel(f"coverage over {found.replicates} data sets")
    axes.legend(frameon=False, fontsize=8 if len(found.marginal) < 8 else 6)
    clean(axes)
    return figure
