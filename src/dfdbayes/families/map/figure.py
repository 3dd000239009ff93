"""Pictures of maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from ...errors import SettingError
from ...present.figures.base import BLUE, COLOURS, GREY, INK, Figure, fitted
from ...results.fitted import Fitted

ABSENT = "#eceff1"  # cells that are not there
UNSEEN = GREY


def sites(fit: Fitted) -> Figure:
    """A map as it was observed, beside what the model says of its sites.

    The probability of the second category given all other sites, and, where the fit was checked, without knowing them:
    what covariates alone say. Of more than two categories, the likeliest one.

    Parameters
    ----------
    fit : Fitted
        Of an autologistic model on a grid.
    """
    model: Any = fit.model
    seen = getattr(model, "map", None)
    if seen is None or seen.cells is None:
        raise SettingError("a picture needs the map of an autologistic model whose sites have coordinates, at=")
    cells, names = seen.cells, seen.categories
    table = model.predict(fit.joint_draws, 0.95, None if fit.checks is None else fit.checks.sites)
    binary = len(names) == 2
    kinds = {"probability": "given the other sites", "marginal": "whatever the other sites are"}
    shown = {kind: told for kind, told in kinds.items() if any(str(name).startswith(kind) for name in table)}
    height = np.clip(3.0 * (np.ptp(cells[:, 0]) + 1) / (np.ptp(cells[:, 1]) + 1), 1.6, 4.5)
    figure = Figure(figsize=(3.1 * (1 + len(shown)), height + 0.7), layout="constrained")
    places = figure.subplots(1, 1 + len(shown), squeeze=False)[0]
    _categories(places[0], cells, seen.values, names, f"{fitted(seen.response)}, observed", legend=True)
    picture = None
    for axes, (kind, told) in zip(places[1:], shown.items(), strict=True):
        if binary:
            title = f"probability of {fitted(names[1], 16)},\n{told}"
            picture = _shaded(axes, cells, table[kind].to_numpy(), title)
        else:
            rest = table[[f"{kind}[{name}]" for name in names[1:]]].to_numpy()
            whole = np.column_stack([1.0 - rest.sum(axis=1), rest])
            likeliest = np.where(np.isnan(whole).any(axis=1), -1, np.argmax(np.nan_to_num(whole), axis=1))
            _categories(axes, cells, likeliest, names, f"likeliest,\n{told}")
    if picture is not None:
        figure.colorbar(picture, ax=list(places[1:]), shrink=0.8).ax.tick_params(labelsize=7)
    return figure


def _grid(cells: np.ndarray, values: np.ndarray) -> np.ma.MaskedArray:
    found = np.ma.masked_all(tuple(cells.max(axis=0) + 1), dtype=float)
    found[cells[:, 0], cells[:, 1]] = values
    return found


def _bare(axes: Any, title: str) -> None:
    axes.set_facecolor(ABSENT)
    axes.set_title(title, fontsize=9, color=INK)
    axes.set_xticks([])
    axes.set_yticks([])


def _shaded(axes: Any, cells: np.ndarray, values: np.ndarray, title: str) -> Any:
    picture = axes.imshow(np.ma.masked_invalid(_grid(cells, values)), cmap="viridis", vmin=0.0, vmax=1.0)
    _bare(axes, title)
    return picture


def _categories(
    axes: Any, cells: np.ndarray, values: np.ndarray, names: tuple[str, ...], title: str, legend: bool = False
) -> None:
    colours = ["white", BLUE] if len(names) == 2 else [COLOURS[c % len(COLOURS)] for c in range(len(names))]
    palette = ListedColormap([UNSEEN, *colours])
    axes.imshow(_grid(cells, values + 1), cmap=palette, vmin=-0.5, vmax=len(colours) + 0.5, interpolation="nearest")
    _bare(axes, title)
    if legend:
        kinds = list(zip(colours, names, strict=True)) + ([(UNSEEN, "not observed")] if (values < 0).any() else [])
        marks = [Patch(facecolor=colour, edgecolor=GREY, lw=0.5, label=fitted(name, 18)) for colour, name in kinds]
        axes.legend(handles=marks, loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=3, fontsize=7, frameon=False)
