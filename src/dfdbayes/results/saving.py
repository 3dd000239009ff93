"""A fit in one file, and in plain values."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from .._util.codec import to_plain
from .._util.tables import Table, netcdf
from ..core.calibration import Curvature
from ..core.model import AbstractModel
from . import selections
from .fitted import Fitted
from .tree import data_table

FORMAT = 3  # and 2 can be read, which version 0.2 writes: see `fitting.loading.up_to_date`
POSTERIOR, UNFINISHED = (
    "posterior.nc",
    "UNFINISHED",
)  # a fit in the folder of its run; a mark while that is written
BESIDE = ("format", "identity", "data", "regression")  # what stands beside the fields of a fit
OWN = ("calibration", "curvature", "selections", "incomplete_data", "regression")  # groups that are no group of a fit


def versions() -> dict[str, str]:
    """Versions of this package and of those its numbers come from."""
    found = {"python": platform.python_version()}
    for name in ("dfdbayes", "jax", "numpyro", "blackjax", "arviz-stats", "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def written(fit: Fitted) -> bytes:
    """A fit as one netCDF file."""
    groups = dict(fit.groups)
    groups["calibration"] = Table.of(
        {
            "minimisers": (("replicate", "parameter"), fit.calibration.minimisers),
            "outcomes": (("replicate",), np.array(fit.calibration.outcomes, dtype="U16")),
        },
        {"parameter": list(fit.calibration.names)},
    )
    shape = fit.calibration.curvature
    if shape is not None:
        axes = {0: (), 1: ("parameter",), 2: ("parameter", "other")}
        parts = {field.name: np.asarray(getattr(shape, field.name)) for field in fields(Curvature)}
        groups["curvature"] = Table.of({name: (axes[a.ndim], a) for name, a in parts.items()})
    drawn = selections.to_table(fit.selections)
    if drawn is not None:
        groups["selections"] = drawn
    if fit.incomplete is not None:
        groups["incomplete_data"] = data_table(fit.incomplete)
    observed: dict[str, Any] | None = None
    if fit.model is not None and fit.model.designs:
        arrays, observed = fit.model.observed.to_file()
        of_data = ("index", "place")  # of all rows, also those that were left out
        axes_of = {name: ("line",) if name.startswith(of_data) else ("row",) for name in arrays}
        groups["regression"] = Table.of({name: (axes_of[name], a) for name, a in arrays.items()})
    return netcdf(groups, dfdbayes=json.dumps(_beside(fit) | {"regression": observed} | to_plain(fit)))


def _beside(fit: Fitted) -> dict[str, Any]:
    """What is said of a fit beside its fields: of its model and its data, whose arrays are groups."""
    data = fit.data
    return {
        "format": FORMAT,
        "identity": None if fit.model is None else structure_of(fit.model),
        "data": {
            "columns": list(data.columns), "dropped": data.dropped, "source": data.source, "named": data.named,
            "notes": list(data.notes), "given": list(data.given_columns),
        },
    }  # fmt: skip


def plain(fit: Fitted, interval: float = 0.95) -> dict[str, Any]:
    """The run in plain values, for JSON: estimates, weight, minimum, settings, warnings, versions."""
    table, own = fit.summary(interval), to_plain(fit)
    return _finite({
        "answer": fit.answer,
        "converged": fit.converged,
        "model": fit.settings["model"],
        "loss": fit.settings["loss"],
        "n": fit.data.n,
        "distinct_rows": len(fit.data.rows),
        "dropped_rows": fit.data.dropped,
        "beta": fit.beta,
        "parameters": {str(name): row.to_dict() for name, row in table.iterrows()},
        "calibration": own["calibration"] | {"outcomes": fit.calibration.tally},
        "minimum": {name: own["minimum"][name] for name in ("theta", "value", "gradient_norm", "outcome")},
        **{name: own[name] for name in ("imputation", "clusters", "settings", "warnings", "timings", "versions")},
    })  # fmt: skip


def structure_of(model: AbstractModel) -> dict[str, Any]:
    """What makes two models the same but for their priors, in values JSON can hold."""
    about = {name: part for name, part in model.identity.items() if name not in ("priors", "parameters")}
    return json.loads(json.dumps(about | {"parameters": [p.name for p in model.space.parameters]}))


def _finite(value: Any) -> Any:
    """The same in values that JSON can hold: numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value
