"""Tests of fit: whether data such as these could come from the model at these parameters.

Where the points of a domain can be listed, Pearson's chi-squared on the distinct values, rare ones pooled; of a
regression of one column, chi-squared on randomised quantile residuals (Dunn and Smyth, 1996), which are uniform
whatever the covariates, in groups of rows with similar expected values; elsewhere the kernel Stein discrepancy (Yang
et al., 2018). Networks with covariates have no test. Distributions under the model are simulated, with random numbers
of their own: the same data and parameters give the same p-value, whatever else was asked for. Parameters that were
estimated from the data make the tests a little conservative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from ..data.dataset import Dataset
from ..models.base import AbstractModel
from ..models.regression import Regression
from ..simulators.exact import listed
from ..simulators.given import tails
from .stein import stein_matrix

CHI_SQUARED, RESIDUALS, STEIN, NONE = "chi-squared", "quantile residual", "kernel Stein", "none"
REPLICATES = 1000
MOST_POINTS = 4096  # of a finite domain
MOST_LISTED = 2**16  # values of a count
LEAST_EXPECTED = 5.0  # observations in a cell of a chi-squared test
MOST_RESIDUALS = 100_000  # observations of a regression
BINS, GROUPS = 10, 5  # of quantile residuals, and of the expected values of their rows, at most


@dataclass(frozen=True)
class GoodnessOfFit:
    """A test of fit: its name, statistic and p-value, with the Monte-Carlo standard error of the latter."""

    test: str
    statistic: float
    p_value: float
    error: float

    def __str__(self) -> str:
        if self.test == NONE:
            return "no test of fit"
        least = self.p_value <= 1 / (1 + REPLICATES)
        value = f"p < {2 / (1 + REPLICATES):.2g}" if least else f"p = {self.p_value:.3g} (+- {self.error:.2g})"
        return f"{self.test} test: {value}"


_NO_TEST = GoodnessOfFit(NONE, float("nan"), float("nan"), float("nan"))


def goodness_of_fit(model: AbstractModel, theta: Float[np.ndarray, " p"], data: Dataset) -> GoodnessOfFit:
    """Test the data against the model at parameters ``theta``."""
    if data.n < 2:
        return _NO_TEST
    rng = _rng(data, 4)
    if isinstance(model, Regression):
        return _NO_TEST if data.d > 1 else _quantile_residuals(model, theta, data, rng)
    one_count = model.domain.d == 1 and model.domain.coordinate(0).kind in ("above", "below")
    if one_count or (model.domain.is_finite and model.domain.size <= MOST_POINTS):
        found = _chi_squared(model, theta, data, rng)
        if found is not None:
            return found
    return _stein(model, theta, data, rng)


def some(data: Dataset, most: int) -> Dataset:
    """At most so many of the observations, always the same ones; those with weights are drawn by them."""
    rng = _rng(data, 5)
    counts = data.observations.astype(np.int64)
    if data.repeats is not None:
        counts = rng.multinomial(min(data.n, most), data.counts / data.counts.sum())
    elif counts.sum() > most:
        counts = rng.multivariate_hypergeometric(counts, most, method="marginals")
    kept = counts > 0
    return data.at(kept, counts[kept].astype(float))


def _rng(data: Dataset, purpose: int) -> np.random.Generator:
    """Random numbers that the data alone decide."""
    return np.random.default_rng([int(data.digest[:12], 16), purpose])


def _p_value(observed: float, simulated: np.ndarray) -> tuple[float, float]:
    value = (1 + np.sum(simulated >= observed)) / (1 + len(simulated))
    return float(value), float(np.sqrt(value * (1 - value) / len(simulated)))


def _chi_squared(
    model: AbstractModel, theta: np.ndarray, data: Dataset, rng: np.random.Generator
) -> GoodnessOfFit | None:
    data = data if data.repeats is None else some(data, data.n)
    points, chances = listed(model, np.asarray(theta)[None])
    chance, n = chances[0], int(data.counts.sum())
    if len(points) > MOST_LISTED:
        return None
    where = _places(model, points, data.rows)
    observed = np.bincount(where, weights=data.counts, minlength=len(points) + 1)
    chance = np.append(chance, 0.0)  # beyond all that is listed
    if (
        model.domain.d > 1 or model.domain.has_categories
    ):  # points have no order, so that rare ones are pooled with rare ones
        order = np.argsort(-chance, kind="stable")
        chance, observed = chance[order], observed[order]
    cells = _pooled(n * chance)
    expected = np.bincount(cells, weights=n * chance)
    if len(expected) < 2:
        return None
    seen = np.bincount(cells, weights=observed)
    drawn = rng.multinomial(n, expected / expected.sum(), size=REPLICATES)
    statistic = float(np.sum((seen - expected) ** 2 / expected))
    return GoodnessOfFit(
        CHI_SQUARED, statistic, *_p_value(statistic, np.sum((drawn - expected) ** 2 / expected, axis=1))
    )


def _places(model: AbstractModel, points: np.ndarray, rows: np.ndarray) -> Int[np.ndarray, " u"]:
    """The number of each row's point; one past the last for a row that is not listed."""
    if not model.domain.is_finite:
        return np.minimum(np.abs(rows[:, 0] - points[0, 0]), len(points))
    place = {point: i for i, point in enumerate(map(tuple, points.tolist()))}
    return np.array([place[row] for row in map(tuple, rows.tolist())])


def _pooled(expected: Float[np.ndarray, " s"]) -> Int[np.ndarray, " s"]:
    """A cell for each point, so that neighbours share one until enough observations are expected in it."""
    cells, total, cell = np.empty(len(expected), dtype=np.int64), 0.0, 0
    for i, value in enumerate(expected):
        if total >= LEAST_EXPECTED:
            cell, total = cell + 1, 0.0
        cells[i] = cell
        total += value
    if total < LEAST_EXPECTED and cell > 0:  # what is left joins the last full one
        cells[cells == cell] = cell - 1
    return cells


def _quantile_residuals(model: Regression, theta: np.ndarray, data: Dataset, rng: np.random.Generator) -> GoodnessOfFit:
    """Where the residuals of each group of rows fall. At the true parameters they are uniform: no bootstrap is needed.

    An observation's residual is uniform between the chances of less than it and of not more than it, so that the
    residuals of equal rows fall into cells by a multinomial distribution.
    """
    data = some(data, min(data.n, MOST_RESIDUALS))
    assert data.given is not None
    found, counts, n = tails(model, theta, data.given, data.rows[:, 0]), data.counts.astype(np.int64), data.n
    bins = int(np.clip(n // LEAST_EXPECTED, 2, BINS))
    edges = np.linspace(0.0, 1.0, bins + 1)
    begin, end = found.below[:, None], (found.below + np.maximum(found.here, 1e-12))[:, None]
    overlap = np.maximum(np.minimum(end, edges[1:]) - np.maximum(begin, edges[:-1]), 0.0)
    overlap[overlap.sum(axis=1) <= 0.0, -1] = 1.0  # beyond all values that are not negligible
    fallen = rng.multinomial(counts, overlap / overlap.sum(axis=1, keepdims=True))
    order = np.argsort(found.mean, kind="stable")
    groups = int(np.clip(n // (LEAST_EXPECTED * bins), 1, GROUPS))
    group = np.empty(len(counts), dtype=np.int64)
    group[order] = np.minimum((np.cumsum(counts[order]) - counts[order]) * groups // n, groups - 1)
    sizes = np.bincount(group, weights=counts, minlength=groups)[:, None]
    seen = np.stack([np.bincount(group, weights=part, minlength=groups) for part in fallen.T], axis=1)
    sizes, seen = sizes[sizes[:, 0] > 0], seen[sizes[:, 0] > 0]
    drawn = rng.multinomial(sizes[:, 0].astype(np.int64), np.full(bins, 1.0 / bins), size=(REPLICATES, len(sizes)))
    statistic = float(np.sum((seen - sizes / bins) ** 2 / (sizes / bins)))
    simulated = np.sum((drawn - sizes / bins) ** 2 / (sizes / bins), axis=(1, 2))
    return GoodnessOfFit(RESIDUALS, statistic, *_p_value(statistic, simulated))


def _stein(model: AbstractModel, theta: np.ndarray, data: Dataset, rng: np.random.Generator) -> GoodnessOfFit:
    """Random signs of the observations imitate the discrepancy's distribution under the model (wild bootstrap)."""
    part = some(data, int(np.clip(np.sqrt(2e8 / data.d), 100, 2000)))  # the cost is rows x rows x columns
    matrix, counts, n = stein_matrix(model, theta, part), part.counts.astype(int), part.counts.sum()
    observed = float(part.counts @ matrix @ part.counts / n**2)
    signs = 2.0 * rng.binomial(counts, 0.5, size=(REPLICATES, len(counts))) - counts
    wild = np.einsum("bu,bu->b", signs @ matrix, signs) / n**2
    return GoodnessOfFit(STEIN, observed, *_p_value(observed, wild))
