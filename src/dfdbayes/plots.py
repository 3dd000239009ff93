"""Pictures of a fit, as matplotlib figures. They compute nothing but what is drawn."""

from __future__ import annotations

import itertools
from typing import Any

import matplotlib

matplotlib.use("agg")

import numpy as np
from arviz_stats.base import array_stats
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from scipy import stats

from .comparison import Comparison
from .coverage import Coverage
from .predictive import Predictive
from .result import Fit

INK, BLUE, ORANGE, GREY = "#22303c", "#2a6f97", "#d1495b", "#8a9aa5"
MOST = 12  # parameters drawn one by one; beyond that, intervals in one panel


def _entries(fit: Fit) -> dict[str, np.ndarray]:
    """Draws (chain, draw) of every scalar entry, by its name in the summary."""
    entries: dict[str, np.ndarray] = {}
    names = iter(fit.summary().index)
    for variable in fit.posterior.data_vars.values():
        values = variable.values.reshape(*variable.shape[:2], -1)
        for i in range(values.shape[-1]):
            entries[str(next(names))] = values[..., i]
    return entries


def _clean(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8)


def posterior(fit: Fit) -> Figure:
    """Posterior densities with mean and 95 % interval; many parameters as intervals in one panel."""
    entries = _entries(fit)
    if len(entries) > MOST:
        return intervals(fit)
    columns = min(4, len(entries))
    rows = -(-len(entries) // columns)
    figure = Figure(figsize=(3.0 * columns, 2.3 * rows), layout="constrained")
    for axes, (name, draws) in zip(figure.subplots(rows, columns, squeeze=False).flat, entries.items(), strict=False):
        grid, density, _ = array_stats.kde(draws.reshape(-1))
        low, high = np.quantile(draws, [0.025, 0.975])
        inside = (grid >= low) & (grid <= high)
        axes.fill_between(grid[inside], density[inside], color=BLUE, alpha=0.25, lw=0)
        axes.plot(grid, density, color=BLUE, lw=1.5)
        axes.axvline(draws.mean(), color=INK, lw=1)
        axes.set_title(f"{name}: {draws.mean():.4g} [{low:.4g}, {high:.4g}]", fontsize=9, color=INK)
        axes.set_yticks([])
        axes.set_ylim(bottom=0)
        _clean(axes)
    for axes in figure.axes[len(entries) :]:
        axes.set_visible(False)
    return figure


def intervals(fit: Fit) -> Figure:
    """Mean and 95 % interval of every entry, one line each."""
    entries = _entries(fit)
    figure = Figure(figsize=(7.0, 0.6 + 0.19 * len(entries)), layout="constrained")
    axes = figure.subplots()
    for i, draws in enumerate(entries.values()):
        low, high = np.quantile(draws, [0.025, 0.975])
        axes.plot([low, high], [i, i], color=BLUE, lw=2)
        axes.plot(draws.mean(), i, "o", color=INK, ms=3)
    axes.axvline(0, color=GREY, lw=0.8, ls=":")
    axes.set_yticks(range(len(entries)), list(entries), fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("mean and 95 % interval", fontsize=9)
    _clean(axes)
    return figure


def calibration(fit: Fit) -> Figure | None:
    """Bootstrap minimisers over the posterior draws of the first two parameters (or of the only one).

    In a calibrated posterior the two clouds are alike. None if nothing was bootstrapped.
    """
    minimisers = fit.calibration.minimisers
    if not len(minimisers):
        return None
    names = fit.calibration.names
    entries = _entries(fit)
    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    axes = figure.subplots()
    usable = np.isin(fit.calibration.outcomes, ("converged", "at the boundary"))
    points = minimisers[usable]
    if len(names) == 1:
        draws = entries[names[0]].reshape(-1)
        for values, color, label in (
            (draws, BLUE, "posterior draws"),
            (points[:, 0], ORANGE, "bootstrap minimisers"),
        ):
            grid, density, _ = array_stats.kde(values)
            axes.plot(grid, density, color=color, label=label)
        axes.set_xlabel(names[0])
        axes.set_yticks([])
        axes.set_ylim(bottom=0)
    else:
        x, y = (entries[name].reshape(-1) for name in names[:2])
        step = max(1, len(x) // 2000)
        axes.plot(x[::step], y[::step], ".", color=BLUE, ms=2, alpha=0.35, label="posterior draws")
        axes.plot(
            points[:, 0],
            points[:, 1],
            "o",
            color=ORANGE,
            ms=3,
            mec="white",
            mew=0.3,
            label="bootstrap minimisers",
        )
        for cloud, color in (((x, y), BLUE), (points[:, :2].T, ORANGE)):
            axes.add_patch(_region(np.asarray(cloud), color))
        axes.set_xlabel(names[0])
        axes.set_ylabel(names[1])
    axes.legend(frameon=False, fontsize=8)
    _clean(axes)
    return figure


def _region(cloud: np.ndarray, color: str) -> Ellipse:
    """The 95 % region of a cloud's normal approximation."""
    values, vectors = np.linalg.eigh(np.cov(cloud))
    width, height = 2 * np.sqrt(np.maximum(values, 0) * stats.chi2.ppf(0.95, 2))
    angle = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
    return Ellipse(tuple(cloud.mean(axis=1)), width, height, angle=angle, fill=False, color=color, lw=1.5)


COLOURS = ("#2a6f97", "#d1495b", "#6a994e", "#e09f3e", "#6d597a", "#22303c")


def comparison(compared: Comparison, most: int = 8) -> Figure:
    """Posterior densities of each parameter, the fits overlaid."""
    entries = {name: _entries(fit) for name, fit in compared.fits.items()}
    shared = [p for p in next(iter(entries.values())) if all(p in e for e in entries.values())][:most]
    columns = min(4, len(shared))
    rows = -(-len(shared) // columns)
    figure = Figure(figsize=(3.4 * columns, 2.6 * rows), layout="constrained")
    for axes, parameter in zip(figure.subplots(rows, columns, squeeze=False).flat, shared, strict=False):
        for (name, draws), colour in zip(entries.items(), itertools.cycle(COLOURS), strict=False):
            grid, density, _ = array_stats.kde(draws[parameter].reshape(-1))
            axes.plot(grid, density, color=colour, lw=1.5, label=name)
        axes.set_title(parameter, fontsize=9, color=INK)
        axes.set_yticks([])
        axes.set_ylim(bottom=0)
        _clean(axes)
    for axes in figure.axes[len(shared) :]:
        axes.set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


def coverage(found: Coverage, most: int = 12) -> Figure:
    """Coverage against level for the joint region and each parameter, with two binomial errors around nominal."""
    figure = Figure(figsize=(4.6, 4.2), layout="constrained")
    axes = figure.subplots()
    levels = np.array(list(found.joint))
    band = 2 * np.sqrt(levels * (1 - levels) / found.replicates)
    axes.fill_between(levels, levels - band, levels + band, color=GREY, alpha=0.25, lw=0)
    axes.plot(levels, levels, color=GREY, lw=1)
    for name, shares in list(found.marginal.items())[:most]:
        axes.plot(levels, list(shares.values()), "o-", ms=3, lw=1, label=name)
    axes.plot(levels, list(found.joint.values()), "s-", color=INK, ms=4, label="joint")
    axes.set_xlabel("level")
    axes.set_ylabel(f"coverage over {found.replicates} data sets")
    axes.legend(frameon=False, fontsize=8)
    _clean(axes)
    return figure


def predictive(checked: Predictive, most: int = 12) -> Figure:
    """Observed shares of each value as bars, predicted ones as points with one standard deviation, by column."""
    shown = min(most, checked.data.d)
    columns = min(4, shown)
    rows = -(-shown // columns)
    figure = Figure(figsize=(3.4 * columns, 2.4 * rows), layout="constrained")
    for j, axes in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        if j >= shown:
            axes.set_visible(False)
            continue
        table = checked.marginal(j)
        axes.bar(table.index, table["observed"], color=GREY, alpha=0.5, width=0.85, label="data")
        axes.errorbar(table.index, table["predicted"], table["sd"], fmt="o", ms=3, color=ORANGE, lw=1, label="model")
        axes.set_title(checked.data.columns[j], fontsize=9, color=INK)
        axes.set_ylim(bottom=0)
        _clean(axes)
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


def trace(fit: Fit) -> Figure:
    """Draws in order, one colour a chain, of at most the first `MOST` entries."""
    entries = dict(list(_entries(fit).items())[:MOST])
    figure = Figure(figsize=(8.0, 1.0 * len(entries) + 0.4), layout="constrained")
    shades = matplotlib.colormaps["viridis"](np.linspace(0.1, 0.85, len(next(iter(entries.values())))))
    for axes, (name, draws) in zip(figure.subplots(len(entries), 1, squeeze=False).flat, entries.items(), strict=True):
        for chain, shade in zip(draws, shades, strict=True):
            axes.plot(chain, color=shade, lw=0.4, alpha=0.8)
        axes.set_ylabel(name, fontsize=8, rotation=0, ha="right")
        _clean(axes)
    return figure
