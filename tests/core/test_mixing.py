"""Diagnostics of many chains at once are ArviZ's, one at a time."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from dfdbayes.core import mixing

AXES = {"chain_axis": 0, "draw_axis": 1}


@pytest.fixture(scope="module", params=[(4, 200), (2, 101), (1, 50), (3, 7), (4, 4)], ids=str)
def draws(request):
    """White noise, slow and alternating chains, ties, chains that disagree, and a constant."""
    chains, length = request.param
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((chains, length, 6))
    slow, alternating = noise[..., 1].copy(), noise[..., 2].copy()
    for t in range(1, length):
        slow[:, t] += 0.95 * slow[:, t - 1]
        alternating[:, t] -= 0.8 * alternating[:, t - 1]
    noise[..., 1], noise[..., 2] = slow, alternating
    noise[..., 3] = np.round(noise[..., 3])
    noise[..., 4] += 3.0 * np.arange(chains)[:, None]
    noise[..., 5] = 2.0
    return noise


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (mixing.bulk_size, lambda x: array_stats.ess(x, method="bulk", **AXES)),
        (mixing.tail_size, lambda x: array_stats.ess(x, method="tail", prob=(0.05, 0.95), **AXES)),
        (mixing.r_hat, lambda x: array_stats.rhat(x, **AXES)),
        (lambda x: mixing.standard_errors(x)[0], lambda x: array_stats.mcse(x, method="mean", **AXES)),
        (lambda x: mixing.standard_errors(x)[1], lambda x: array_stats.mcse(x, method="sd", **AXES)),
    ],
    ids=["bulk", "tail", "r_hat", "error of mean", "error of sd"],
)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_many_at_once_are_those_of_arviz(draws, ours, theirs, monkeypatch):
    monkeypatch.setattr(mixing, "NUMBERS_AT_ONCE", 2 * draws.shape[0] * draws.shape[1])  # two quantities at a time
    expected = [float(theirs(draws[..., i])) for i in range(draws.shape[2])]
    np.testing.assert_allclose(ours(draws), expected, rtol=1e-9)


def test_what_is_not_finite_has_no_diagnostics(draws):
    broken = draws.copy()
    broken[0, 1, 0] = np.inf
    assert np.isnan(mixing.bulk_size(broken)[0])
    np.testing.assert_array_equal(mixing.bulk_size(broken)[1:], mixing.bulk_size(draws)[1:])
