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


def test_an_edge_with_one_draw_in_twenty_on_it_is_in_the_interval():
    """Draws clipped at zero: it counts from a share of 5 % on, below that not, though the 2.5 % quantile is zero."""
    for share, counts in ((0.06, True), (0.04, False), (0.01, False)):
        draws = np.concatenate([np.zeros(int(10_000 * share)), np.linspace(0.01, 2.0, 10_000 - int(10_000 * share))])
        low, high, one_sided = interval(draws, 0.95, (0.0, np.inf))
        assert (low == 0.0) == counts == one_sided and high == pytest.approx(np.quantile(draws, 0.975))
    low, high, _ = interval(-draws, 0.95, (-np.inf, 0.0))
    assert high < 0.0


def test_a_clipped_normal_covers_a_zero_as_often_as_it_says():
    """Estimates of a zero with unit error, 4000 of them; binomial error 0.34 points, the limits are 4 of it."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(2000)
    held = [interval(np.maximum(z + noise, 0.0), 0.95, (0.0, np.inf))[0] == 0.0 for z in rng.standard_normal(4000)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.0137)
