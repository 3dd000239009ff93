"""Statistics that say whether data look like a model's, in families: of one column, of pairs, of lattices, of totals.

A statistic is the mean over observations of a number that each has. `goodness_of_fit` compares it with its expectation
under the model; here is what is compared, and how a person would say it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int

from ..core.domain import Domain
from ..core.graphs import Graph
from ..core.simulators.given import Tails

LEAST_EXPECTED = 5.0  # observations in a cell of a distribution
MOST_POINTS = 4096  # of a finite domain whose points are compared one by one

MEAN, VARIANCE, SKEWNESS, ZEROS, DISTRIBUTION = "mean", "variance", "skewness", "zeros", "distribution"
SPREAD_BY = "spread by covariate"
BEND, PAIRS, EQUAL, TOTAL, COMBINATIONS = "bend", "pairs", "equal pairs", "total", "combinations"
WRAPPED, DIAGONAL, TWO_APART, BALANCE = "wrapped", "diagonal", "two apart", "balance"


@dataclass(frozen=True)
class Rows:
    """Observations, each with a weight; of a regression also where each lies in the distribution of its row.

    ``above`` says of every covariate whether it is above its average there: of a level of a factor, whether it is that.
    """

    x: Int[np.ndarray, "m d"]
    weights: Float[np.ndarray, " m"]
    tails: Tails | None = None
    above: Bool[np.ndarray, "m q"] | None = None

    def average(self, values: np.ndarray) -> np.ndarray:
        """The weighted mean of values, one for each observation."""
        return np.asarray(self.weights @ values / self.weights.sum())


@dataclass(frozen=True)
class Family:
    """Statistics of one kind.

    Attributes
    ----------
    kind : str
    places : tuple
        What each statistic is of: columns by number, a pair of them, or the values of a cell.
    values : callable
        Of `Rows`, a number for each observation and statistic.
    measured : callable
        Of `Rows` and the number of a statistic, what a person would call it: a variance, a share, a correlation.
    summed : bool
        Whether the squares of all are summed, as in Pearson's chi-squared; otherwise the largest counts.
    """

    kind: str
    places: tuple[tuple[int, ...], ...]
    values: Callable[[Rows], Float[np.ndarray, "m k"]]
    measured: Callable[[Rows, int], float]
    summed: bool = False


def families(domain: Domain, graph: Graph | None, pool: Rows, n: int) -> list[Family]:
    """What to look at, from observations that the model makes; the plainest first."""
    if pool.tails is not None:
        return _of_regression(pool, pool.tails, domain, n)
    if graph is not None and graph.shape is not None and domain.d > 1:
        return [*_of_lattice(graph), *([] if domain.has_categories else [_balance(pool), _total(pool, n)])]
    if domain.has_categories:
        return [*([_equal_pairs(domain)] if domain.d > 1 else []), _combinations(pool, n)]
    found = _of_columns(domain, pool)
    if domain.d == 1:
        return [*found, _in_cells(lambda rows: rows.x[:, 0], pool, n, DISTRIBUTION)]
    few = domain.is_finite and domain.size <= MOST_POINTS
    return [*found, _correlated_pairs(domain, pool), _total(pool, n), *([_combinations(pool, n)] if few else [])]


# -- columns -----------------------------------------------------------------------------------


def _standardised_by(pool: Rows) -> Callable[[Rows], np.ndarray]:
    centre = pool.average(pool.x)
    scale = np.sqrt(np.maximum(pool.average((pool.x - centre) ** 2), 1e-12))
    return lambda rows: (rows.x - centre) / scale


def _of_columns(domain: Domain, pool: Rows) -> list[Family]:
    wide = tuple((j,) for j in range(domain.d) if len(domain.coordinate(j).levels) != 2)
    z = _standardised_by(pool)

    def power(k: int, which: tuple[tuple[int, ...], ...]) -> Callable[[Rows], np.ndarray]:
        at = [j for (j,) in which]
        return lambda rows: z(rows)[:, at] ** k

    every = tuple((j,) for j in range(domain.d))
    found = [Family(VARIANCE, wide, power(2, wide), lambda rows, k: _variance(rows, wide[k][0]))] if wide else []
    lowest = tuple((j, _lowest(domain, j)) for (j,) in wide if domain.coordinate(j).kind == "above")
    if lowest:
        at, least = [j for j, _ in lowest], np.array([value for _, value in lowest])
        found.append(
            Family(
                ZEROS,
                lowest,
                lambda rows: (rows.x[:, at] == least).astype(float),
                lambda rows, k: float(rows.average(rows.x[:, at[k]] == least[k])),
            )
        )
    found.append(Family(MEAN, every, power(1, every), lambda rows, k: float(rows.average(rows.x[:, k]))))
    if wide:
        found.append(Family(SKEWNESS, wide, power(3, wide), lambda rows, k: _skewness(rows.x[:, wide[k][0]], rows)))
    return found


def _lowest(domain: Domain, j: int) -> int:
    return int(domain.coordinate(j).end or 0)


def _variance(rows: Rows, j: int) -> float:
    x = rows.x[:, j].astype(float)
    return float(rows.average((x - rows.average(x)) ** 2))


def _skewness(x: np.ndarray, rows: Rows) -> float:
    away = x - rows.average(x)
    return float(rows.average(away**3) / max(float(rows.average(away**2)), 1e-300) ** 1.5)


def pooled(expected: Float[np.ndarray, " s"]) -> Int[np.ndarray, " s"]:
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


def _in_cells(values: Callable[[Rows], np.ndarray], pool: Rows, n: int, kind: str) -> Family:
    """The distribution of one number that each observation has, in cells of neighbouring values."""
    seen = values(pool)
    points, where = np.unique(seen, return_inverse=True)
    shares = np.bincount(where.reshape(-1), weights=pool.weights) / pool.weights.sum()
    cells = pooled(n * shares)
    firsts = points[np.flatnonzero(np.diff(cells, prepend=-1))]
    chance = np.bincount(cells, weights=shares)

    def cell(rows: Rows) -> np.ndarray:
        return np.maximum(np.searchsorted(firsts, values(rows), side="right") - 1, 0)

    return Family(
        kind,
        (*((int(a), int(b) - 1) for a, b in pairwise(firsts)), (int(firsts[-1]),)),
        lambda rows: (cell(rows)[:, None] == np.arange(len(firsts))) / np.sqrt(np.maximum(chance, 1e-300)),
        lambda rows, k: float(rows.average(cell(rows) == k)),
        summed=True,
    )


# -- several columns ---------------------------------------------------------------------------


def _pairs(domain: Domain) -> tuple[np.ndarray, np.ndarray, tuple[tuple[int, ...], ...]]:
    # all pairs of 40 columns
    i, j = (part[:780] for part in np.triu_indices(domain.d, 1))
    return i, j, tuple(zip(i.tolist(), j.tolist(), strict=True))


def _correlated_pairs(domain: Domain, pool: Rows) -> Family:
    i, j, places = _pairs(domain)
    z = _standardised_by(pool)

    def measured(rows: Rows, k: int) -> float:
        a, b = (rows.x[:, m] - rows.average(rows.x[:, m]) for m in (i[k], j[k]))
        return float(rows.average(a * b) / np.sqrt(max(rows.average(a**2) * rows.average(b**2), 1e-300)))

    return Family(PAIRS, places, lambda rows: z(rows)[:, i] * z(rows)[:, j], measured)


def _equal_pairs(domain: Domain) -> Family:
    i, j, places = _pairs(domain)
    return Family(
        EQUAL,
        places,
        lambda rows: (rows.x[:, i] == rows.x[:, j]).astype(float),
        lambda rows, k: float(rows.average(rows.x[:, i[k]] == rows.x[:, j[k]])),
    )


def _total(pool: Rows, n: int) -> Family:
    """Of the sum of each observation's values: what a group of observations that differ moves."""
    return _in_cells(lambda rows: rows.x.sum(axis=1), pool, n, TOTAL)


def _combinations(pool: Rows, n: int) -> Family:
    """The distribution over points that have no order: rare ones are pooled with rare ones."""
    points, where = np.unique(pool.x, axis=0, return_inverse=True)
    shares = np.bincount(where.reshape(-1), weights=pool.weights) / pool.weights.sum()
    order = np.argsort(-shares, kind="stable")
    cells = np.empty(len(points), dtype=np.int64)
    cells[order] = pooled(n * shares[order])
    chance = np.bincount(cells, weights=shares)
    known = {point: int(cell) for point, cell in zip(map(tuple, points.tolist()), cells, strict=True)}

    def cell(rows: Rows) -> np.ndarray:
        return np.array([known.get(row, len(chance) - 1) for row in map(tuple, rows.x.tolist())])

    return Family(
        COMBINATIONS,
        tuple((k,) for k in range(len(chance))),
        lambda rows: (cell(rows)[:, None] == np.arange(len(chance))) / np.sqrt(np.maximum(chance, 1e-300)),
        lambda rows, k: float(rows.average(cell(rows) == k)),
        summed=True,
    )


# -- lattices ----------------------------------------------------------------------------------


def _of_lattice(graph: Graph) -> list[Family]:
    """Agreement of sites that a lattice of four neighbours does not join, and of those that a torus does."""
    assert graph.shape is not None
    rows, columns = graph.shape
    cell = np.arange(rows * columns).reshape(rows, columns)
    lags = {
        WRAPPED: [(cell[:, -1], cell[:, 0])] * (columns > 2) + [(cell[-1], cell[0])] * (rows > 2),
        DIAGONAL: [(cell[:-1, :-1], cell[1:, 1:]), (cell[:-1, 1:], cell[1:, :-1])],
        TWO_APART: [(cell[:, :-2], cell[:, 2:]), (cell[:-2], cell[2:])],
    }
    found = []
    for kind, pairs in lags.items():
        i, j = (np.concatenate([np.empty(0, int), *(pair[k].reshape(-1) for pair in pairs)]) for k in (0, 1))
        if len(i):
            found.append(_agreement(kind, i, j))
    return found


def _agreement(kind: str, i: np.ndarray, j: np.ndarray) -> Family:
    def equal(rows: Rows) -> np.ndarray:
        return (rows.x[:, i] == rows.x[:, j]).mean(axis=1)

    return Family(kind, ((),), lambda rows: equal(rows)[:, None], lambda rows, k: float(rows.average(equal(rows))))


def _balance(pool: Rows) -> Family:
    """How far the mean of each observation's sites is from the middle, squared."""
    middle = float(pool.average(pool.x.mean(axis=1)))

    def away(rows: Rows) -> np.ndarray:
        return (rows.x.mean(axis=1) - middle) ** 2

    return Family(BALANCE, ((),), lambda rows: away(rows)[:, None], lambda rows, k: float(rows.average(away(rows))))


# -- regressions of one column -----------------------------------------------------------------


def _tails(rows: Rows) -> Tails:
    assert rows.tails is not None
    return rows.tails


def _residual(rows: Rows) -> np.ndarray:
    own = _tails(rows)
    return (rows.x[:, 0] - own.mean) / np.sqrt(np.maximum(own.variance, 1e-12))


def _of_regression(rows: Rows, pool: Tails, domain: Domain, n: int) -> list[Family]:
    level = np.log(np.maximum(pool.mean - _lowest(domain, 0), 0.0) + 0.1)
    centre, scale = level.mean(), max(float(level.std()), 1e-12)

    def bend(rows: Rows) -> np.ndarray:
        own = _tails(rows)
        at = (np.log(np.maximum(own.mean - _lowest(domain, 0), 0.0) + 0.1) - centre) / scale
        return (_residual(rows) * (np.minimum(at**2, 9.0) - 1.0))[:, None]

    def power(kind: str, k: int) -> Family:
        """The mean of a power of standardised residuals."""
        return Family(
            kind, ((0,),), lambda rows: _residual(rows)[:, None] ** k, lambda r, _: float(r.average(_residual(r) ** k))
        )

    found = [] if domain.is_binary else [power(VARIANCE, 2), *_spread_by(rows, n)]
    if domain.coordinate(0).kind == "above":
        least = _lowest(domain, 0)
        zero = Family(
            ZEROS,
            ((0, least),),
            lambda rows: (rows.x == least).astype(float),
            lambda rows, k: float(rows.average(rows.x[:, 0] == least)),
        )
        found.append(zero)
    if float(level.std()) > 1e-6:
        found.append(Family(BEND, ((0,),), bend, lambda rows, k: float(rows.average(bend(rows)[:, 0]))))
    found.append(power(MEAN, 1))
    return found if domain.is_binary else [*found, power(SKEWNESS, 3), _quantiles(pool, n)]


def _spread_by(pool: Rows, n: int) -> list[Family]:
    """Squared residuals where a covariate is above its average beside those where it is not."""
    assert pool.above is not None
    share = pool.average(pool.above)
    kept = np.flatnonzero(np.minimum(share, 1.0 - share) * n >= 10)  # rows of each of the two groups
    _, first = np.unique(pool.above[:, kept], axis=1, return_index=True)
    at = kept[np.sort(first)]
    if not len(at):
        return []

    def inside(rows: Rows) -> np.ndarray:
        assert rows.above is not None
        return rows.above[:, at]

    def measured(rows: Rows, k: int) -> float:
        own, squares = inside(rows)[:, k], _residual(rows) ** 2
        there, elsewhere = (rows.average(squares * part) / rows.average(part) for part in (own, ~own))
        return float(there / max(elsewhere, 1e-300))

    return [
        Family(
            SPREAD_BY,
            tuple((int(column),) for column in at),
            lambda rows: _residual(rows)[:, None] ** 2 * (inside(rows) / share[at] - ~inside(rows) / (1 - share[at])),
            measured,
        )
    ]


def _quantiles(pool: Tails, n: int) -> Family:
    """Where quantile residuals fall (Dunn and Smyth, 1996), by the expected value; shared by cells on whose edge."""
    bins = int(np.clip(n // LEAST_EXPECTED, 2, 10))
    groups = int(np.clip(n // (LEAST_EXPECTED * bins), 1, 5))
    edges = np.linspace(0.0, 1.0, bins + 1)
    ends = np.unique(np.quantile(pool.mean, np.arange(1, groups) / groups))

    def shares(rows: Rows) -> np.ndarray:
        own = _tails(rows)
        begin, end = own.below[:, None], (own.below + np.maximum(own.here, 1e-12))[:, None]
        overlap = np.maximum(np.minimum(end, edges[1:]) - np.maximum(begin, edges[:-1]), 0.0)
        overlap[overlap.sum(axis=1) <= 0.0, -1] = 1.0  # beyond all values that are not negligible
        overlap /= overlap.sum(axis=1, keepdims=True)
        inside = np.searchsorted(ends, own.mean, side="right")[:, None] == np.arange(len(ends) + 1)
        return (inside[:, :, None] * overlap[:, None, :]).reshape(len(overlap), -1)

    return Family(
        DISTRIBUTION,
        tuple((g, b) for g in range(len(ends) + 1) for b in range(bins)),
        lambda rows: shares(rows) * np.sqrt(bins * (len(ends) + 1.0)),
        lambda rows, k: float(rows.average(shares(rows)[:, k])),
        summed=True,
    )


def columns_of(family: Family, place: Sequence[int]) -> tuple[int, ...]:
    """The columns that a statistic is of; none where it is of all."""
    if family.kind in (ZEROS, VARIANCE, MEAN, SKEWNESS, BEND):
        return tuple(place[:1])
    return tuple(place) if family.kind in (PAIRS, EQUAL) else ()
