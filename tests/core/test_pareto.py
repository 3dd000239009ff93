"""Pareto-smoothed weights are ArviZ's."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from dfdbayes.core.mixing import smoothed


@pytest.mark.parametrize("size", [40, 225, 226, 1024, 4004])
@pytest.mark.parametrize("kind", ["normal", "light", "heavy", "bounded"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_smoothed_weights_are_those_of_arviz(size, kind):
    rng = np.random.default_rng(size)
    noise = rng.standard_normal(size)
    weights = {
        "normal": noise,
        "light": -0.01 * noise**2,
        "heavy": 5.0 * np.abs(noise),
        "bounded": np.log(rng.random(size)),
    }
    found, k = smoothed(weights[kind])
    theirs, of_theirs = array_stats.psislw(-weights[kind])
    np.testing.assert_allclose(found, theirs, rtol=0, atol=1e-12)
    np.testing.assert_allclose(k, of_theirs, rtol=1e-10)


def test_even_weights_stay_as_they_are():
    found, k = smoothed(np.full(50, 3.0))
    np.testing.assert_allclose(found, -np.log(50))
    assert k == 0.0
