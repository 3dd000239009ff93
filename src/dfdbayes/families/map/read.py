"""Sites of a map from what a user has: a frame with a row for each site, rasters, or one image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int

from ...data.read.columns import label
from ...data.read.reading import frame_of, name_of
from ...data.series import MAX_WHOLE
from ...errors import DataError, SettingError

PLACES = ("row", "column")  # of rasters
NEIGHBOURHOODS = {
    4: ((0, 1), (1, 0)),
    8: ((0, 1), (1, 0), (1, 1), (1, -1)),
}  # half of the steps from a cell to its neighbours: the others are the same pairs
MAX_CATEGORIES = 12  # of a map, each with coefficients of its own: more are measurements, or names


class Sites(NamedTuple):
    """A table with a line for each site, and the two columns that say where it is."""

    frame: pd.DataFrame
    at: tuple[str, ...]
    source: str


def sites_of(source: Any, at: tuple[str, ...]) -> Sites:
    """The sites of a frame, a file, an image (one array), or of rasters by name (arrays of one shape)."""
    rasters = _rasters(source)
    if rasters is None:
        return Sites(frame_of(source).reset_index(drop=True), at, name_of(source, "data frame"))
    if at:
        raise SettingError("at= names columns of a frame; the cells of arrays have their places already. Leave it out.")
    shapes = {np.shape(array) for array in rasters.values()}
    if len(shapes) > 1:
        raise DataError(f"the rasters have different shapes: {', '.join(map(str, sorted(shapes)))}; give one for all")
    there = np.ones(shapes.pop(), bool)
    for array in rasters.values():
        there &= ~np.broadcast_to(np.ma.getmaskarray(np.ma.asarray(array)), there.shape)
    if len(rasters) > 1:  # a cell of which nothing is known is not part of the map
        there &= ~np.all([pd.isna(np.ma.getdata(array)) for array in rasters.values()], axis=0)
    places = dict(zip(PLACES, np.nonzero(there), strict=True))
    columns = {name: np.ma.getdata(array)[there] for name, array in rasters.items()}
    clash = [name for name in PLACES if name in columns]
    if clash:
        raise DataError(f"a raster cannot be called '{clash[0]}', which is where its cells are; rename it")
    return Sites(pd.DataFrame(places | columns), PLACES, "an image" if len(rasters) == 1 else "rasters")


def _rasters(source: Any) -> dict[str, Any] | None:
    """Arrays of two dimensions by name; None where the source is something else."""
    if isinstance(source, Mapping) and source and all(np.ndim(array) == 2 for array in source.values()):
        return {str(name): np.ma.asanyarray(array) for name, array in source.items()}
    if isinstance(source, np.ndarray) and source.ndim == 2 and source.dtype.names is None:
        return {"value": source}
    return None


def cells_of(frame: pd.DataFrame, at: tuple[str, ...]) -> Int[np.ndarray, "n 2"]:
    """Row and column of every site on a regular grid, from its two coordinates."""
    found = np.stack([_steps(frame[name].to_numpy(), name) for name in at], axis=1)
    if np.prod(found.max(axis=0, initial=0) + 3.0) > MAX_WHOLE:  # cells are numbered
        raise DataError(
            f"'{at[0]}' and '{at[1]}' span too many steps to number the cells of their grid ({found[:, 0].max():,} and "
            f"{found[:, 1].max():,}). What to do: leave out sites that are far from all others."
        )
    _, inverse, counts = np.unique(found, axis=0, return_inverse=True, return_counts=True)
    if (counts > 1).any():
        rows = np.flatnonzero(inverse.reshape(-1) == np.argmax(counts))
        places = [", ".join(f"{name} = {frame[name].iloc[row]}" for name in at) for row in rows]
        other = next((k for k, place in enumerate(places) if place != places[0]), None)
        if other is not None:
            raise DataError(
                f"rows {rows[0] + 1} and {rows[other] + 1} ({places[0]}, and {places[other]}) are closer together than "
                "sites of the grid that the others are on. What to do: correct the coordinates, or say which sites are "
                "neighbours, graph=[('a', 'b'), ...] with at= the column that names them."
            )
        raise DataError(
            f"{len(rows)} rows are at {places[0]}: a map has one value at each site. What to do: keep one row of "
            "each site, or tell the maps apart and fit one of them."
        )
    return found


def _steps(values: np.ndarray, name: str) -> Int[np.ndarray, " n"]:
    """Coordinates as whole numbers of the smallest step between two of them."""
    try:
        numbers = _from_the_lowest(values)
    except (TypeError, ValueError):
        raise DataError(f"'{name}' says where sites are, and must hold numbers; it holds {values[0]!r}") from None
    if not np.isfinite(numbers).all():
        raise DataError(
            f"'{name}' is missing in row {int(np.argmin(np.isfinite(numbers))) + 1}: give every site's place"
        )
    distinct = np.unique(numbers)
    gaps = np.diff(distinct)
    size = np.ptp(distinct) + float(np.abs(np.asarray(values, float)).max()) * (np.asarray(values).dtype.kind == "f")
    rounding = 1e-13 * size  # by which equal coordinates may differ: a few hundred times double precision
    projection = 1e-6 * np.ptp(distinct)  # the same after a projection, where no grid is seen without that
    if not (gaps > rounding).any():
        return np.zeros(len(numbers), np.int64)
    for least in (rounding, projection):
        apart = gaps[gaps > least] if (gaps > least).any() else gaps
        step = float(apart.min())
        along = numbers / step
        off = np.abs(along - np.round(along))
        uneven, fine = off.max() > 0.05, step < 1e-3 * np.median(apart)  # of a step; of the usual distance
        if not (uneven or fine):
            return np.round(along).astype(np.int64)
    raise DataError(
        f"'{name}' is not on a regular grid: {values[int(np.argmax(off))]:g} is no whole number of steps of "
        f"{step:g} from {np.min(values):g}. What to do: say which sites are neighbours, graph=[('a', 'b'), ...] with "
        "at= the column that names them."
    )


def _from_the_lowest(values: np.ndarray) -> np.ndarray:
    """Numbers without the lowest of them; of whole numbers without loss, however large they are."""
    if pd.api.types.infer_dtype(values, skipna=False) == "integer":
        exact = np.asarray(values, dtype=object)
        return np.asarray(exact - exact.min(), dtype=float)
    numbers = np.asarray(values, float)
    return numbers - numbers.min()


def neighbours_of(cells: Int[np.ndarray, "n 2"], neighbours: int) -> Int[np.ndarray, "e 2"]:
    """Pairs of sites whose cells touch, by sides (4) or also by corners (8)."""
    if neighbours not in NEIGHBOURHOODS:
        raise SettingError(f"neighbours is {neighbours!r}; give 4 (cells that share a side) or 8 (corners too)")
    width = int(cells[:, 1].max()) + 3
    key = (cells[:, 0] + 1) * width + cells[:, 1] + 1
    order = np.argsort(key)
    pairs = []
    for down, right in NEIGHBOURHOODS[neighbours]:
        wanted = key + down * width + right
        place = np.minimum(np.searchsorted(key, wanted, sorter=order), len(key) - 1)
        other = order[place]
        found = key[other] == wanted
        pairs.append(np.stack([np.flatnonzero(found), other[found]], axis=1))
    return np.concatenate(pairs)


def named_edges(
    frame: pd.DataFrame, at: tuple[str, ...], names: tuple[str, ...], edges: Int[np.ndarray, "e 2"], size: int
) -> Int[np.ndarray, "e 2"]:
    """The edges of a graph between rows of a frame, matched by the column that names the sites, or by position."""
    if not at:
        if names:
            raise SettingError(
                f"the nodes of the graph are called {', '.join(names[:4])}, ...: say which column holds these names, "
                "at='site'"
            )
        if size != len(frame):
            raise DataError(f"the graph has {size} nodes and the data {len(frame)} rows; give one row for each node")
        return edges
    if len(at) != 1:
        raise SettingError("with a graph, at= is the one column that names the sites: at='site'")
    names = names or tuple(map(str, range(size)))
    have = frame[at[0]].map(label).tolist()
    place = {name: i for i, name in enumerate(have)}
    if len(place) < len(have):
        twice = next(name for i, name in enumerate(have) if place[name] != i)
        raise DataError(f"'{twice}' has more than one row: a map has one value at each site")
    for known, others, what in ((names, place, "no row"), (have, set(names), "no node of the graph")):
        absent = [name for name in known if name not in others]
        if absent:
            raise DataError(
                f"{len(absent)} sites have {what}: {', '.join(absent[:5])}. What to do: remove those that are not part "
                f"of the map; give one whose value was not observed a row without it."
            )
    order = np.array([place[name] for name in names])
    return order[edges] if len(edges) else edges


def coded(column: pd.Series) -> tuple[Int[np.ndarray, " n"], tuple[str, ...]]:
    """Values as 0, 1, ... and what these are called; -1 where nothing was observed.

    Categories of pandas keep their order; others are sorted, so that 0, "no", "absent" and False come first.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.remove_unused_categories()
        levels, codes = list(column.cat.categories), column.cat.codes.to_numpy().astype(np.int64)
    else:
        known = column[column.notna()]
        levels = sorted(known.unique().tolist(), key=lambda value: (isinstance(value, str), value))
        codes = pd.Categorical(column, categories=levels).codes.astype(np.int64)
    names = tuple(map(label, levels))
    if len(names) < 2:
        said = f"the same at all sites ({names[0]})" if names else "missing at all sites"
        raise DataError(f"'{column.name}' is {said}: there is nothing to learn from this map")
    if len(names) > MAX_CATEGORIES:
        raise DataError(
            f"'{column.name}' has {len(names)} different values; a map of categories may have {MAX_CATEGORIES}. What "
            "to do: make it present or absent, or a few classes (pandas.cut)."
        )
    return codes, names
