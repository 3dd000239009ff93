"""Intervals next to an edge."""

import numpy as np
import pytest
from scipy.stats import norm, truncnorm

from dfdbayes.results.intervals import interval, intervals

EDGE = (0.0, np.inf)


def test_without_an_edge_they_are_equal_tailed():
    draws = np.random.default_rng(0).standard_normal(20_000)
    low, high, beside = interval(draws, 0.9)
    assert (low, high) == pytest.approx(tuple(np.quantile(draws, [0.05, 0.95]))) and not beside
    low, high, beside = interval(10.0 + draws, 0.9, EDGE)
    assert not beside and low == pytest.approx(10 - 1.645, abs=0.05)


def test_next_to_an_edge_they_begin_there():
    draws = np.random.default_rng(0).exponential(size=20_000)
    assert interval(draws, 0.95, EDGE) == (0.0, pytest.approx(-np.log(0.05), rel=0.05), True)
    low, high, beside = interval(-draws, 0.95, (-np.inf, 0.0))
    assert (high, beside) == (0.0, True) and low == pytest.approx(np.log(0.05), rel=0.05)


def test_a_parameter_on_the_edge_is_covered():
    """Estimates of a zero, each with a normal posterior cut off at zero: 95.2 % in theory; 2.6 errors of 1500."""
    rng = np.random.default_rng(1)
    held = 0
    for centre in rng.standard_normal(1500):
        draws = truncnorm.rvs(-centre, np.inf, loc=centre, size=2000, random_state=rng)
        held += interval(draws, 0.95, EDGE)[0] == 0.0
    assert abs(held / 1500 - 0.952) < 0.0145
    assert norm.cdf(1.67) == pytest.approx(0.9525, abs=1e-3)  # where the shortest interval leaves the edge


def test_names_of_one_sided_intervals():
    rng = np.random.default_rng(2)
    entries = {"a": rng.exponential(size=4000), "b": rng.standard_normal(4000)}
    low, high, beside = intervals(entries, 0.95, {"a": EDGE})
    assert beside == ["a"] and low[0] == 0.0 and low[1] < 0 < high[1]
