"""Named arrays with named axes, in groups: what a netCDF file holds, and ArviZ's data tree.

Making such a tree and writing it by xarray takes a second of imports, of which neither a fit nor its file need any.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Table:
    """Arrays by name, each with the names of its axes; the labels along axes that have some; what is said of them."""

    arrays: Mapping[str, np.ndarray]
    axes: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, np.ndarray] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, given: Mapping[str, tuple[Sequence[str], Any]], labels: Mapping[str, Any] | None = None, **about: Any
    ) -> Table:
        """From pairs of axes and values, as xarray takes them."""
        arrays = {name: np.asarray(values) for name, (_, values) in given.items()}
        axes = {name: tuple(names) for name, (names, _) in given.items()}
        return cls(arrays, axes, {name: np.asarray(values) for name, values in (labels or {}).items()}, about)

    @classmethod
    def of_dataset(cls, dataset: xr.Dataset) -> Table:
        """The same of xarray's."""
        given = {str(name): (tuple(map(str, one.dims)), one.values) for name, one in dataset.data_vars.items()}
        labels = {str(name): one.values for name, one in dataset.coords.items()}
        return cls.of(given, labels, **{str(name): value for name, value in dataset.attrs.items()})

    def dataset(self) -> xr.Dataset:
        """The same as xarray's."""
        import xarray as xr

        arrays = {name: (self.axes[name], values) for name, values in self.arrays.items()}
        return xr.Dataset(arrays, coords=dict(self.labels), attrs=dict(self.about))

    @property
    def sizes(self) -> dict[str, int]:
        """The length of each axis."""
        found = {name: len(values) for name, values in self.labels.items()}
        for name, values in self.arrays.items():
            found |= dict(zip(self.axes[name], values.shape, strict=True))
        return found

    def columns(self) -> Iterator[tuple[str, tuple[str, ...], np.ndarray]]:
        """Labels and arrays alike: name, axes and values."""
        for name, values in self.labels.items():
            yield name, (name,), values
        for name, values in self.arrays.items():
            yield name, self.axes[name], values


def netcdf(groups: Mapping[str, Table], **about: str) -> bytes:
    """A netCDF file of groups, which xarray reads as it does its own.

    It is made in memory: HDF5 crashes where a disk is full.
    """
    import h5netcdf
    import h5py

    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        file.attrs.update(about)
        for title, table in groups.items():
            group = file.create_group(title)
            group.attrs.update(table.about)
            group.dimensions = table.sizes
            for name, axes, values in table.columns():
                kind = {"U": h5py.string_dtype(), "O": h5py.string_dtype(), "b": np.dtype("i1")}.get(values.dtype.kind)
                empty = np.nan if values.dtype.kind == "f" else None
                made = group.create_variable(name, axes, kind or values.dtype, fillvalue=empty)
                if values.dtype.kind == "b":
                    made.attrs["dtype"] = "bool"
                if values.size:
                    made[...] = values.astype(object) if values.dtype.kind == "U" else values
    return buffer.getvalue()
