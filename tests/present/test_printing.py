"""Looking at a fit computes nothing that takes time: no sampler runs, whether it was made here or loaded."""

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
import small_fits
from dfdbayes.families.network import selection


def by_group():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.integers(0, 2, (400, 3)), columns=["tea", "cake", "sun"])
    frame["cake"] = np.where(rng.random(400) < 0.5, frame["tea"], frame["cake"])
    frame["town"] = rng.choice(["a", "b", "c"], 400)
    return small_fits.quietly("ising-network", frame, formula="~ town", interaction="~ town", check=False)


FITS = {
    name: getattr(small_fits, name)
    for name in (
        "network", "count_network", "ordinal", "incomplete", "lattice", "counts", "regression", "random_graph", "own",
        "on_a_map", "series",
    )
} | {"network by group": by_group}  # fmt: skip


def refused(*arguments, **settings):
    raise AssertionError("a sampler was started")


@pytest.mark.parametrize("name", FITS)
@pytest.mark.daily("counts", "regression", "lattice", "random_graph", "series")
def test_printing_a_fit_starts_no_sampler(name, tmp_path, monkeypatch):
    fit = FITS[name]()
    loaded = dfd.load(fit.save(tmp_path / "fit.nc"), fit.model if name == "own" else None)
    monkeypatch.setattr(selection, "drawn", refused)
    monkeypatch.setattr(np.random, "default_rng", refused)
    assert repr(loaded) == repr(fit)
    assert str(loaded) == str(fit)
    assert fit._repr_html_() and loaded._repr_html_() and fit.answer == loaded.answer
    monkeypatch.undo()
    again = dfd.load(loaded.save(tmp_path / "again.nc"), fit.model if name == "own" else None)
    monkeypatch.setattr(selection, "drawn", refused)
    assert repr(again) == repr(fit)
