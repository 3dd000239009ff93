"""Small runs for the tests of this folder: each test was written for a defect that users met."""

import warnings

import pytest

import dfdbayes as dfd

QUICK = {"sampler": "laplace", "bootstrap": 60, "draws": 100, "progress": False}


@pytest.fixture
def quick():
    """A fit in a fraction of a second, its warnings kept on it and not raised."""

    def fit(model, data, **settings):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dfd.fit(model, data, **(QUICK | settings))

    return fit
