"""When a difference between model and data is told: where it is beyond chance, and large enough to matter.

Both are defined here once, for counts, networks, maps and graphs. Beyond chance is a matter of tail probabilities, of
both tails, adjusted for how many statistics were looked at. What matters is a matter of the data's scale: with enough
rows any model differs from any data beyond chance. A difference matters where it moves the probability of some event by
`PROBABILITY`; what that is in a mean, a variance, a skewness or a correlation follows from the normal distribution.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from . import test_statistics as features

LEVEL = 0.05  # of everything that a check looks at together: one right model in twenty is suspected
PROBABILITY = 0.02  # two in a hundred: a 95 % interval that is off by it still holds 93 % to 97 %
_HEIGHT = 1.0 / np.sqrt(2.0 * np.pi)  # of the normal density at its mean
MEAN = PROBABILITY / _HEIGHT  # standard deviations by which a mean moves P(x > 0) so much: 0.05
VARIANCE = 2.0 * PROBABILITY / (_HEIGHT * np.exp(-0.5))  # change of its logarithm that moves P(x > 1 sd) so much: 0.17
SKEWNESS = 6.0 * PROBABILITY / _HEIGHT  # moves P(x > mean) so much, by the Edgeworth expansion: 0.30
CORRELATION = np.pi * PROBABILITY  # moves the chance that both are on the same side of their means so much: 0.06
LIKE = "neighbours alike"  # the statistic that a map is about
SHIFT = 1.0  # standard errors of an estimate: one that is nearer lies well inside its interval, and conclusions stay


def tail_probability(observed: float, drawn: np.ndarray) -> float:
    """How often simulated values are as far from the middle as the observed one, in either direction (two-sided).

    Beyond all of them, where their number can tell no more, a normal tail says how far.
    """
    above, below = int(np.sum(drawn >= observed)), int(np.sum(drawn <= observed))
    by_rank = min(1.0, 2.0 * (1.0 + min(above, below)) / (1.0 + len(drawn)))
    spread = float(np.std(drawn))
    if min(above, below) or not spread > 0:
        return by_rank
    return min(by_rank, float(2.0 * special.ndtr(-abs(observed - float(np.mean(drawn))) / spread)))


def beyond_chance(p_value: float, number: int = 1) -> bool:
    """Whether one of so many tail probabilities is too small for chance (Bonferroni)."""
    return p_value * number < LEVEL


def share_matters(observed: float, predicted: float) -> bool:
    """Whether two shares differ by what matters: by two in a hundred, or, where they are small, by a tenth of them."""
    away = abs(observed - predicted)
    # shares that differ by less than a thousandth read alike
    return away >= PROBABILITY or (away >= 0.001 and total_matters(observed, predicted))


def total_matters(observed: float, predicted: float) -> bool:
    """Whether two totals, of ties or of triangles, differ by a tenth."""
    return abs(observed - predicted) >= 0.1 * max(abs(observed), abs(predicted))


def statistic_matters(kind: str, observed: float, predicted: float, spread: float) -> bool:
    """Whether a statistic of the test of fit differs by what matters; means are measured by ``spread``, a sd."""
    if kind in (features.MEAN, features.BEND):
        return abs(observed - predicted) >= MEAN * spread
    if kind in (features.VARIANCE, features.SPREAD_BY, features.BALANCE):
        return abs(np.log(max(observed, 1e-300) / max(predicted, 1e-300))) >= VARIANCE
    if kind == features.SKEWNESS:
        return abs(observed - predicted) >= SKEWNESS
    if kind == features.PAIRS:
        return abs(observed - predicted) >= CORRELATION
    return share_matters(observed, predicted)
