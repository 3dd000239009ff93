"""Tables, trees and files are those that ArviZ and xarray make."""

import arviz_base
import numpy as np
import pytest
import xarray as xr

from dfdbayes._util.tables import Table, netcdf
from dfdbayes.results.tree import drawn, tree_of

RNG = np.random.default_rng(0)
ARRAYS = {
    "rate": RNG.normal(size=(2, 5)),
    "node": RNG.normal(size=(2, 5, 3)),
    "edge": RNG.normal(size=(2, 5, 2, 2)),
    "diverging": RNG.random((2, 5)) < 0.5,
    "steps": RNG.integers(9, size=(2, 5)),
}
LABELS = {"node": ("a", "ß c", "<b>")}
OTHERS = Table.of(
    {
        "rows": (("distinct", "column"), np.arange(6).reshape(3, 2)),
        "missing": (("distinct",), np.array([1.5, np.nan, np.inf])),
        "outcomes": (("replicate",), np.array([], dtype="U16")),
        "none": (("replicate", "column"), np.empty((0, 2))),
        "texts": (("distinct",), np.array(["x", "", "long text"])),
        "objects": (("distinct",), np.array(["x", "", "long text"], dtype=object)),
        "beta": ((), np.float64(0.3)),
        "first": (("distinct",), np.array([True, False, True])),
    },
    {"column": ["one", "two"]},
)


@pytest.fixture
def groups():
    return {"posterior": drawn(ARRAYS, LABELS), "others": OTHERS}


def test_draws_are_named_as_arviz_names_them(groups):
    dims, coords = {"node": ["node_entry"]}, {"node_entry": list(LABELS["node"])}
    theirs = arviz_base.from_dict({"posterior": ARRAYS}, dims=dims, coords=coords)["posterior"].to_dataset()
    ours = tree_of(groups)["posterior"].to_dataset()
    assert set(ours.attrs) == set(theirs.attrs)
    for kept in (ours, theirs):
        kept.attrs.pop("created_at")
    xr.testing.assert_identical(ours, theirs)


def test_files_are_those_of_xarray(groups, tmp_path):
    (tmp_path / "ours.nc").write_bytes(netcdf(groups, dfdbayes="x" * 10**5))
    tree = tree_of(groups)
    tree.attrs["dfdbayes"] = "x" * 10**5
    tree.to_netcdf(tmp_path / "theirs.nc", engine="h5netcdf")
    ours, theirs = (xr.load_datatree(tmp_path / name, engine="h5netcdf") for name in ("ours.nc", "theirs.nc"))
    xr.testing.assert_identical(ours, theirs)
    for title, group in ours.children.items():
        for name, one in group.to_dataset().variables.items():
            same = theirs[title].to_dataset().variables[name]
            assert one.dtype == same.dtype and one.encoding["dtype"] == same.encoding["dtype"], name
            assert str(one.encoding.get("_FillValue")) == str(same.encoding.get("_FillValue")), name


def test_tables_come_back_from_datasets(groups):
    for table in groups.values():
        again = Table.of_dataset(table.dataset())
        assert again.axes == table.axes and again.sizes == table.sizes and again.about == table.about
        for name, values in (table.arrays | table.labels).items():
            np.testing.assert_array_equal((again.arrays | again.labels)[name], values)
