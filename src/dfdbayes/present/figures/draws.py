"""Pictures of the posterior's draws."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
import numpy as np

from ...core.calibration import Calibration
from ...errors import SettingError
from ...results.fitted import Fitted
from ...results.predictive import parameters_of
from ...results.uncalibrated import is_calibrated, side_by_side
from .base import BLUE, GREY, INK, MOST, ORANGE, Figure, bare, clean, density, fitted, panels, region, thinned

MOST_PAIRS = 6  # entries drawn in pairs: 15 panels of points, the most whose labels can be read on a page


def posterior(fit: Fitted) -> Figure:
    """Posterior densities with mean and 95 % interval; more than `MOST` parameters as intervals in one panel."""
    entries = fit.entries
    if len(entries) > MOST:
        return intervals(fit)
    figure, places = panels(len(entries))
    for axes, (name, draws) in zip(places, entries.items(), strict=True):
        low, high = np.quantile(draws, [0.025, 0.975])
        density(axes, draws, BLUE, shade=True)
        axes.axvline(draws.mean(), color=INK, lw=1)
        axes.set_title(f"{fitted(name)}\n{draws.mean():.4g} [{low:.4g}, {high:.4g}]", fontsize=9, color=INK)
        axes.locator_params(axis="x", nbins=4)
        bare(axes)
    return figure


def intervals(fit: Fitted, most: int = 120) -> Figure:
    """Mean and 95 % interval of every entry, one line each (of at most the first ``most``)."""
    entries = dict(list(fit.entries.items())[:most])
    figure = Figure(figsize=(7.0, 0.9 + 0.19 * len(entries)), layout="constrained")
    axes = figure.subplots()
    for i, draws in enumerate(entries.values()):
        low, high = np.quantile(draws, [0.025, 0.975])
        axes.plot([low, high], [i, i], color=BLUE, lw=2)
        axes.plot(draws.mean(), i, "o", color=INK, ms=3)
    axes.axvline(0, color=GREY, lw=0.8, ls=":")
    axes.set_yticks(range(len(entries)), [fitted(name, 40) for name in entries], fontsize=7)
    axes.set_ylim(len(entries) - 0.5, -0.5)
    more = len(fit.entries) - len(entries)
    axes.set_xlabel("mean and 95 % interval" + (f" ({more} more are in the summary)" if more else ""), fontsize=9)
    clean(axes)
    return figure


def pairs(fit: Fitted, names: Sequence[str] | None = None) -> Figure:
    """Draws of every pair of at most `MOST_PAIRS` entries: scatter below the diagonal, densities on it.

    ``names`` chooses them, as the summary names them; by default the first ones are shown.
    """
    entries = fit.entries
    for name in names or ():
        if name not in entries:
            raise SettingError(f"there is no entry '{name}'; the first are {', '.join(list(entries)[:6])}")
    if names is not None and len(names) > MOST_PAIRS:
        raise SettingError(f"{len(names)} names were given; a picture of pairs holds at most {MOST_PAIRS}")
    shown = list(names or list(entries)[:MOST_PAIRS])
    size = len(shown)
    wide, high = max(1.5 * size, 3.0) + 1.0, max(1.4 * size, 2.2) + 0.7
    figure = Figure(figsize=(wide, high))
    grid = figure.add_gridspec(size, size)
    figure.subplots_adjust(0.85 / wide, 0.6 / high, 1 - 0.15 / wide, 1 - 0.1 / high, 0.15, 0.15)
    for i, below in enumerate(shown):
        for j, across in enumerate(shown[: i + 1]):
            axes = figure.add_subplot(grid[i, j])
            if i == j:
                density(axes, entries[below], BLUE, shade=True)
                bare(axes)
            else:
                x, y = (thinned(entries[name].reshape(-1)) for name in (across, below))
                axes.plot(x, y, ".", color=BLUE, ms=1.5, alpha=0.3, rasterized=True)
                clean(axes)
            axes.tick_params(labelsize=6, labelbottom=i == size - 1, labelleft=j == 0 and i > 0)
            axes.locator_params(axis="x", nbins=3)
            if j < i:
                axes.locator_params(axis="y", nbins=4)
            if i == size - 1:
                axes.set_xlabel(fitted(across, 18), fontsize=8)
            if j == 0:
                axes.set_ylabel(fitted(below, 18), fontsize=8)
                axes.yaxis.set_label_coords(-0.62 / (wide - 1.0) * size, 0.5)
    return figure


def calibration(fit: Fitted) -> Figure | None:
    """What calibration did: how many times as wide each interval became, or bootstrap minimisers over the draws.

    Of a loss with one weight from a bootstrap, the first two parameters (or the only one): in a calibrated posterior
    the two clouds are alike. None if nothing was bootstrapped, or if the uncalibrated intervals are not known.
    """
    known = fit.calibration
    if known.curvature is not None:
        return _width_ratios(fit) if fit.uncalibrated is not None and is_calibrated(fit) else None
    usable = np.isin(known.outcomes, ("converged", "at the boundary"))
    if not len(known.minimisers) or usable.sum() < 2:
        return None
    points = known.minimisers[usable]
    parameters = list(dict.fromkeys(name.partition("[")[0] for name in known.names))
    draws = parameters_of(fit.groups["posterior"], parameters)
    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(fitted(known.names[0], 40))
    if len(known.names) == 1:
        density(axes, draws, BLUE, label="posterior draws")
        density(axes, points, ORANGE, label="bootstrap minimisers")
        bare(axes)
    else:
        few = thinned(draws)
        axes.plot(few[:, 0], few[:, 1], ".", color=BLUE, ms=2, alpha=0.35, label="posterior draws")
        axes.plot(
            points[:, 0], points[:, 1], "o", color=ORANGE, ms=3, mec="white", mew=0.3, label="bootstrap minimisers"
        )
        for cloud, color in ((draws[:, :2].T, BLUE), (points[:, :2].T, ORANGE)):
            axes.add_patch(region(cloud, color))
        axes.set_ylabel(fitted(known.names[1], 40))
        clean(axes)
    axes.legend(frameon=False, fontsize=8)
    return figure


def weights(known: Calibration) -> Figure | None:
    """A calibration by itself: the weights of directions, or bootstrap minimisers of the first two parameters.

    None where the weight was given, or is one number without a bootstrap.
    """
    if known.curvature is not None:
        figure = Figure(figsize=(5.6, 1.4), layout="constrained")
        axes = figure.subplots()
        axes.axvline(1.0, color=GREY, lw=1)
        axes.plot(known.curvature.weights, np.zeros(len(known.curvature.weights)), "o", color=BLUE, ms=6, alpha=0.5)
        axes.set_yticks([])
        axes.set_xlabel("weight of the loss, a point for each direction; 1 is the loss as it is")
        clean(axes)
        return figure
    points = known.minimisers[np.isfinite(known.minimisers).all(axis=1)]
    if len(points) < 2:
        return None
    figure = Figure(figsize=(4.6, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(fitted(known.names[0], 40))
    if len(known.names) == 1:
        density(axes, points, ORANGE)
        bare(axes)
        return figure
    axes.plot(points[:, 0], points[:, 1], "o", color=ORANGE, ms=3)
    axes.set_ylabel(fitted(known.names[1], 40))
    clean(axes)
    return figure


def _width_ratios(fit: Fitted) -> Figure:
    """A dot for every entry, at most the first 30: the width of its interval over that at beta = 1."""
    whole = side_by_side(fit)
    table = whole.head(30)
    high = 0.9 + 0.24 * len(table)
    figure = Figure(figsize=(5.6, high), layout="constrained")
    axes = figure.subplots()
    at = np.arange(len(table))[::-1]
    axes.axvline(1.0, color="#8a9aa5", lw=1)
    axes.plot(table["width_ratio"], at, "o", color=BLUE, ms=5)
    axes.set_yticks(at, [fitted(name, 28) for name in table.index], fontsize=8)
    axes.set_ylim(-0.7, len(table) - 0.3)
    axes.set_xlabel("width of the calibrated interval, times that at beta = 1")
    if len(whole) > len(table):
        axes.set_title(f"the first {len(table)} of {len(whole)} entries", fontsize=8, loc="left")
    clean(axes)
    return figure


def trace(fit: Fitted) -> Figure:
    """Draws in order, one colour a chain, of at most the first `MOST` entries."""
    entries = dict(list(fit.entries.items())[:MOST])
    high = 0.9 * len(entries) + 0.6
    figure = Figure(figsize=(8.0, high))
    shades = matplotlib.colormaps["viridis"](np.linspace(0.1, 0.85, len(next(iter(entries.values())))))
    places = figure.subplots(len(entries), 1, squeeze=False, sharex=True).reshape(-1)
    longest = max(len(fitted(name)) for name in entries)
    figure.subplots_adjust((0.55 + 0.075 * longest) / 8.0, 0.45 / high, 0.99, 1 - 0.1 / high, hspace=0.25)
    for axes, (name, draws) in zip(places, entries.items(), strict=True):
        for chain, shade in zip(draws, shades, strict=True):
            axes.plot(chain, color=shade, lw=0.4, alpha=0.8)
        axes.set_ylabel(fitted(name), fontsize=8, rotation=0, ha="right", va="center")
        clean(axes)
    places[-1].set_xlabel("draw", fontsize=8)
    return figure
