"""Draws and data as tables, in the groups that ArviZ knows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from .._util.tables import Table
from ..core.dataset import Dataset

if TYPE_CHECKING:
    import xarray as xr

LINE = "unconstrained_posterior"  # draws on both sides of an edge that parameters may lie on


def assemble(
    named: Mapping[str, np.ndarray],
    stats: Mapping[str, np.ndarray],
    data: Dataset,
    labels: Mapping[str, tuple[str, ...]],
    line: Mapping[str, np.ndarray] | None = None,
) -> dict[str, Table]:
    """Draws, those of the whole line if others, sampler statistics and the data, with the user's names."""
    groups = {"posterior": named, LINE: line or {}, "sample_stats": stats}
    found = {title: drawn(arrays, labels) for title, arrays in groups.items() if arrays}
    return found | {"observed_data": data_table(data)}


def data_table(data: Dataset) -> Table:
    """Distinct rows with all that belongs to them."""
    return Table.of(
        {
            "rows": (("distinct", "column"), data.rows),
            "counts": (("distinct",), data.counts),
            "observations": (("distinct",), data.observations),
            "first": (("distinct",), data.first),
        }
        | ({} if data.given is None else {"given": (("distinct", "covariate"), data.given)})
        | ({} if data.cluster is None else {"cluster": (("distinct",), data.cluster)})
        | ({} if data.observed is None else {"observed": (("distinct", "column"), data.observed.astype(np.int8))}),
        {"column": list(data.columns)},
    )


def drawn(arrays: Mapping[str, np.ndarray], entries: Mapping[str, tuple[str, ...]]) -> Table:
    """Arrays whose first axes are chains and draws; others have the user's labels or numbers, as ArviZ names them."""
    given: dict[str, Any] = {}
    labels: dict[str, Any] = {}
    for name, values in arrays.items():
        shape = np.shape(values)
        axes = [f"{name}_entry"] if name in entries else [f"{name}_dim_{i}" for i in range(len(shape) - 2)]
        given[name] = (("chain", "draw", *axes), values)
        labels |= {axis: np.arange(size) for axis, size in zip(("chain", "draw"), shape, strict=False)}
        labels |= {axis: entries.get(name, np.arange(size)) for axis, size in zip(axes, shape[2:], strict=True)}
    about = {
        "created_at": datetime.now(UTC).isoformat(),
        "creation_library": "ArviZ",  # whose scheme this is
        "creation_library_version": version("arviz-base"),
        "creation_library_language": "Python",
    }
    return Table.of(given, labels, **about)


def tree_of(groups: Mapping[str, Table]) -> xr.DataTree:
    """The groups as ArviZ's data tree."""
    import xarray as xr

    return xr.DataTree.from_dict({title: table.dataset() for title, table in groups.items()})
