"""Small runs for the tests of this folder: each test was written for a defect that users met."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes import cli

QUICK = {"sampler": "laplace", "bootstrap": 60, "draws": 100, "progress": False}


@pytest.fixture
def quick():
    """A fit in a fraction of a second, its warnings kept on it and not raised."""

    def fit(model, data, **settings):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dfd.fit(model, data, **(QUICK | settings))

    return fit


@pytest.fixture
def call(monkeypatch, capsys):
    """The command in this process: (exit code, standard output, standard error)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dfdbayes", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return ended.value.code or 0, out, err

    return run


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits.csv"
    pd.DataFrame({"visits": np.random.default_rng(0).poisson(3.0, 200)}).to_csv(path, index=False)
    return path
