"""Draws and data as one tree of tables, in the groups that ArviZ knows."""

from __future__ import annotations

from collections.abc import Mapping

import arviz_base
import numpy as np
import xarray as xr

from ..data.dataset import Dataset

LINE = "unconstrained_posterior"  # draws on both sides of an edge that parameters may lie on


def assemble(
    named: Mapping[str, np.ndarray],
    stats: Mapping[str, np.ndarray],
    data: Dataset,
    labels: Mapping[str, tuple[str, ...]],
    line: Mapping[str, np.ndarray] | None = None,
) -> xr.DataTree:
    """Draws, those of the whole line if others, and sampler statistics as a data tree with the user's names."""
    dims = {name: [f"{name}_entry"] for name in labels}
    coords = {f"{name}_entry": list(entries) for name, entries in labels.items()}
    groups = {"posterior": dict(named), LINE: dict(line or {}), "sample_stats": dict(stats)}
    tree = arviz_base.from_dict({k: v for k, v in groups.items() if v}, dims=dims, coords=coords)
    tree["observed_data"] = xr.DataTree(
        xr.Dataset(
            {
                "rows": (("distinct", "column"), data.rows),
                "counts": (("distinct",), data.counts),
                "observations": (("distinct",), data.observations),
                "first": (("distinct",), data.first),
            }
            | ({} if data.given is None else {"given": (("distinct", "covariate"), data.given)})
            | ({} if data.cluster is None else {"cluster": (("distinct",), data.cluster)}),
            coords={"column": list(data.columns)},
        )
    )
    return tree
