"""Pictures of the data, alone and beside what the model predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from ...core.dataset import Dataset, column_summary, frequencies
from ...errors import SettingError
from ...results.checks import Checks
from ...results.fitted import Fitted
from ...results.predictive import Predictive
from .base import BLUE, GREY, INK, MOST, ORANGE, Figure, clean, fitted, panels, tilted


def grid_of(fit: Fitted) -> tuple[int, int] | None:
    """Rows and columns of the lattice that a fit is on, if it is on one."""
    graph = None if fit.model is None else fit.model.graph
    return None if graph is None else graph.shape


def data(observed: Dataset, shape: tuple[int, int] | None = None) -> Figure:
    """The data themselves: frequencies of one column, means by site if they have a ``shape``, else means by column."""
    if shape is not None:
        figure = Figure(figsize=(4.2, 3.4), layout="constrained")
        _sites(figure, figure.subplots(), column_summary(observed)["mean"].to_numpy().reshape(shape), "mean by site")
        return figure
    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    axes = figure.subplots()
    if observed.d == 1:
        values, weight = frequencies(observed)
        axes.bar(values, weight, color=BLUE, alpha=0.7, width=0.85)
        axes.set_xlabel(fitted(observed.columns[0], 60), fontsize=9)
        axes.set_ylabel("observations", fontsize=9)
    else:
        table = column_summary(observed)
        places = np.arange(observed.d)
        axes.bar(places, table["mean"], color=BLUE, alpha=0.7, width=0.8)
        counts = table["max"].max() > 1  # the spread of two values is known from their mean
        if counts:
            axes.errorbar(places, table["mean"], np.sqrt(table["variance"]), fmt="none", ecolor=INK, lw=0.8)
        axes.set_ylabel("mean, ± one sd" if counts else "mean", fontsize=9)
        if observed.d <= 40:
            tilted(axes, observed.columns)
        else:
            axes.set_xlabel(f"{observed.d} columns, from {fitted(observed.columns[0])}", fontsize=9)
    clean(axes)
    return figure


def _sites(figure: Figure, axes: Any, values: np.ndarray, title: str, limits: tuple[float, float] | None = None) -> Any:
    low, high = limits or (float(values.min()), float(values.max()))
    picture = axes.imshow(values, cmap="viridis", vmin=low, vmax=high if high > low else low + 1.0)
    axes.set_title(title, fontsize=9, color=INK)
    axes.set_xticks([])
    axes.set_yticks([])
    figure.colorbar(picture, ax=axes, shrink=0.8).ax.tick_params(labelsize=7)
    return picture


def lattice(fit: Fitted, checked: Predictive | Checks | None = None) -> Figure:
    """Observed mean of every site of a lattice, beside the predicted one if there are predictions.

    Parameters
    ----------
    fit : Fitted
        Of a model on `dfdbayes.graphs.grid`.
    checked : Predictive, optional
        What ``fit.replicate()`` gave; by default the fit's own checks.
    """
    shape = grid_of(fit)
    if shape is None:
        raise SettingError(f"'{fit.settings['model']}' is not on a lattice; make its graph with dfd.graphs.grid")
    observed = column_summary(fit.data)["mean"].to_numpy().reshape(shape)
    checked = fit.checks if checked is None else checked
    if checked is None or checked.means is None:
        return data(fit.data, shape)
    predicted = checked.means.reshape(shape)
    both = np.stack([observed, predicted])
    limits = (float(both.min()), float(both.max()))
    figure = Figure(figsize=(7.4, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _sites(figure, left, observed, "observed mean by site", limits)
    _sites(figure, right, predicted, "predicted mean by site", limits)
    return figure


def predictive(checked: Fitted | Predictive | Checks, most: int = MOST) -> Figure:
    """Observed shares of each value as bars, predicted ones as points with one standard deviation, by column.

    Parameters
    ----------
    checked : Fitted, Predictive or Checks
        A fit with its checks, or what ``fit.replicate()`` gave.
    most : int
        Columns that are shown.
    """
    checked = _checks_of(checked)
    shown = min(most, len(checked.columns))
    figure, places = panels(shown, 3.1, 2.3, across=3)
    for j, axes in enumerate(places):
        table = checked.marginal(j)
        axes.bar(table.index, table["observed"], color=GREY, alpha=0.5, width=0.85, label="data")
        axes.errorbar(table.index, table["predicted"], table["sd"], fmt="o", ms=3, color=ORANGE, lw=1, label="model")
        axes.set_title(fitted(checked.columns[j]), fontsize=9, color=INK)
        axes.set_ylim(bottom=0)
        if len(table) <= 3:
            axes.set_xticks(table.index)
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        clean(axes)
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


def _checks_of(checked: Fitted | Predictive | Checks) -> Predictive | Checks:
    if not isinstance(checked, Fitted):
        return checked
    if checked.checks is None or checked.checks.goodness is None:
        raise SettingError("this fit has no predictive checks; fit with check=True, or give fit.replicate()")
    return checked.checks


def correlations(checked: Fitted | Predictive | Checks) -> Figure:
    """Correlations of every two columns: predicted, with one standard deviation, against observed."""
    checked = _checks_of(checked)
    found = checked.correlations() if len(checked.columns) > 1 else None
    if found is None:
        raise SettingError("correlations need at least two columns")
    table = found.dropna()
    figure = Figure(figsize=(4.4, 3.8), layout="constrained")
    axes = figure.subplots()
    size, line = (3.5, 0.8) if len(table) <= 60 else (2.5, 0.3)
    axes.errorbar(table["observed"], table["predicted"], table["sd"], fmt="o", color=ORANGE, ms=size, elinewidth=line)
    ends = [table[["observed", "predicted"]].min().min(), table[["observed", "predicted"]].max().max()]
    axes.plot(ends, ends, color=GREY, lw=1, label="equal")
    gap = (table["observed"] - table["predicted"]).abs() / table["sd"].clip(lower=1e-9)
    for name in gap[gap > 3].nlargest(3).index:
        row = table.loc[name]
        axes.annotate(fitted(name), (row["observed"], row["predicted"]), fontsize=7, xytext=(4, -8),
                      textcoords="offset points")  # fmt: skip
    axes.set_xlabel("observed correlation", fontsize=9)
    axes.set_ylabel("predicted correlation, ± one sd", fontsize=9)
    axes.legend(frameon=False, fontsize=8)
    clean(axes)
    return figure
