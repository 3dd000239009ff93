"""Tests of fit: whether data such as these could come from the model, its parameters having been estimated from them.

Statistics are means over observations (`features`). At estimated parameters they vary less than at the true ones, so
that p-values which ignore the estimation are not uniform. Here what the estimation takes away is taken away first: each
statistic is used less its regression on the model's score (the derivative of the log mass), both under the model. What
is left does not depend on the parameters to first order, whichever loss they were estimated by (a C(alpha) or
conditional moment test: Neyman, 1959; Newey, 1985). So its distribution under the model is that of observations
simulated at the estimate, without refitting any, and it needs no normalising constant: the score and its regression
are those of simulated observations, or of a list of all values where there is one.

Families of statistics are combined by the smallest of their p-values, whose distribution is that of the same simulated
data sets (Westfall and Young, 1993). Random numbers are the data's own: the same data and parameters give the same
p-value, whatever else was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..core.dataset import Dataset
from ..core.model import AbstractModel
from ..core.parameters import SHAPE
from ..core.simulators.exact import listed
from ..core.simulators.given import tails
from ..core.terms import coarse_size, filled
from .relevance import LEVEL
from .test_statistics import MOST_POINTS, Family, Rows, columns_of, families

MOMENTS, NONE, SATURATED = "corrected moments", "none", "none: saturated"
REPLICATES = 1000
NEAR = 2.0  # standard errors from the edge of a parameter's range


@dataclass(frozen=True)
class Finding:
    """A statistic by which data and model differ.

    Attributes
    ----------
    kind : str
        "variance", "zeros", "pairs", "wrapped" and so on.
    columns : tuple of int
        The columns it is of; none where it is of all.
    values : tuple of int
        The values it is about: a range, where the statistic is the share of these.
    observed, predicted : float
        In the statistic's own terms: a variance, a share, a correlation.
    p_value : float
        Adjusted for all statistics that were looked at.
    errors : float
        How many standard errors the two are apart, once what estimation takes away is taken away.
    """

    kind: str
    columns: tuple[int, ...]
    values: tuple[int, ...]
    observed: float
    predicted: float
    p_value: float
    errors: float = float("nan")


@dataclass(frozen=True)
class GoodnessOfFit:
    """A test of fit: the smallest p-value, adjusted for all statistics, with its Monte-Carlo standard error.

    Attributes
    ----------
    test : str
        "corrected moments"; "none"; or "none: saturated", where the parameters match all that would be compared.
    statistic : float
        The smallest p-value as it was before that.
    p_value, error : float
    findings : tuple of Finding
        What differs, the surest and plainest first.
    """

    test: str
    statistic: float
    p_value: float
    error: float
    findings: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        if self.test in (NONE, SATURATED):
            return "no test of fit"
        least = self.p_value <= 1 / (1 + REPLICATES)
        value = f"p < {2 / (1 + REPLICATES):.2g}" if least else f"p = {self.p_value:.3g} (+- {self.error:.2g})"
        return f"test of {self.test}: {value}"


NO_TEST = GoodnessOfFit(NONE, float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True)
class Pool:
    """Observations as the model has them at the estimate, from which data sets are drawn.

    Attributes
    ----------
    rows : Rows
        A list of all values with their chances, or simulated ones.
    given : (m, q) floats, optional
        Covariates of each.
    per_row : int
        Where observations have covariates: how many in a row belong to the same observation. Otherwise 0.
    exact : bool
        Whether it is a list of all values.
    """

    rows: Rows
    given: Float[np.ndarray, "m q"] | None = None
    per_row: int = 0
    exact: bool = False

    def centred(self, values: Float[np.ndarray, "m k"]) -> tuple[np.ndarray, np.ndarray]:
        """Values less their expectation under the model, and the expectation, that of each observation or of all."""
        if not self.per_row:
            mean = self.rows.average(values)
            return values - mean, mean
        each = values.reshape(-1, self.per_row, values.shape[1])
        mean = each.mean(axis=1)
        return (each - mean[:, None]).reshape(values.shape), mean

    def data_sets(
        self, values: Float[np.ndarray, "m k"], n: int, weights: np.ndarray, rng: np.random.Generator
    ) -> Float[np.ndarray, "r k"]:
        """Means of values over each of many simulated data sets, of n observations or one for each with covariates."""
        chance, found = self.rows.weights / self.rows.weights.sum(), []
        begin, share = np.arange(len(weights)) * self.per_row, weights / weights.sum()
        each = 100  # data sets at once, which bounds memory
        for _ in range(0, REPLICATES, each):
            if self.per_row:
                chosen = begin + rng.integers(self.per_row, size=(each, len(weights)))
                found += [(share @ values[one])[None] for one in chosen]
            else:
                found.append(rng.multinomial(n, chance, size=each) @ values / n)
        return np.concatenate(found)


def goodness_of_fit(model: AbstractModel, theta: Float[np.ndarray, " p"], data: Dataset) -> GoodnessOfFit:
    """Test the data against the model; ``theta`` are parameters estimated from them, by whatever loss."""
    theta, graph = np.asarray(theta, float), model.graph
    if (data.n < 2 and (graph is None or graph.shape is None)) or not model.can_simulate:
        return NO_TEST
    rng = _rng(data, 4)
    seen = some(data, _most_observations(model), weighted=False)
    observed, given, cluster, n = _observed(model, theta, seen)
    pool = _pool(model, theta, given, rng)
    looked = families(model.domain, model.graph, pool.rows, n)
    sizes = [len(family.places) for family in looked]
    values = _joined(looked, pool.rows), _joined(looked, observed)
    beside = None if given is None or pool.given is None else np.concatenate([pool.given, given])
    both = _scores(model, theta, np.concatenate([pool.rows.x, observed.x]), beside)
    scores = both[: len(pool.rows.x)], both[len(pool.rows.x) :]
    if not all(np.isfinite(part).all() for part in (*values, *scores)):
        return NO_TEST
    free = _free(model, theta, pool.centred(scores[0])[0], pool.rows.weights, n)
    left, mine, spread = _corrected(pool, values, (scores[0][:, free], scores[1][:, free]))
    if cluster is not None:
        left = left * _design_effects(mine, observed.weights, cluster)
    own = observed.average(mine) * np.sqrt(n)
    drawn = pool.data_sets(left, n, observed.weights, rng) * np.sqrt(n) * _inflation(pool, n, len(theta))
    ends = np.cumsum(sizes)[:-1]
    parts = zip(looked, np.split(own, ends), np.split(drawn, ends, axis=1), np.split(spread, ends), strict=True)
    kept = [(family, *_strength(family, *part)) for family, *part in parts if (part[2] > 0).any()]
    if not kept:
        return replace(NO_TEST, test=SATURATED)
    return _judged(kept, observed, pool.rows)


def total_variation(
    model: AbstractModel, data: Dataset, first: Float[np.ndarray, " p"], second: Float[np.ndarray, " p"]
) -> float:
    """By how much two parameter vectors disagree about the probability of an observation at most, given covariates.

    NaN where the model cannot be simulated. Of rows with covariates it is the mean over rows.
    """
    if not model.can_simulate:
        return float("nan")
    _, given, _, _ = _observed(model, first, some(data, _most_observations(model), weighted=False))
    pool = _pool(model, first, given, _rng(data, 6))
    rows, beside = jnp.asarray(pool.rows.x), None if pool.given is None else jnp.asarray(pool.given)
    was, now = (np.asarray(model.log_masses(jnp.asarray(at), rows, beside)) for at in (first, second))
    per = pool.per_row or len(was)
    change = (now - was).reshape(-1, per)
    ratio = np.exp(change - change.max(axis=1, keepdims=True))  # of masses, up to the constants
    weights = pool.rows.weights.reshape(-1, per) / pool.rows.weights.reshape(-1, per).sum(axis=1, keepdims=True)
    ratio /= np.sum(weights * ratio, axis=1, keepdims=True)
    return float(np.mean(0.5 * np.sum(weights * np.abs(ratio - 1.0), axis=1)))


def _most_observations(model: AbstractModel) -> int:
    """How many observations are compared; fewer where each has covariates, and so simulated values of its own."""
    if not model.designs:
        return 20_000
    return int(np.clip(160_000 // (_per_row(model) * model.domain.d), 500, 4000))


def _per_row(model: AbstractModel) -> int:
    """How many values are simulated for each row with covariates; those of networks take longer."""
    return 20 if model.domain.d == 1 else 5


def some(data: Dataset, most: int, weighted: bool = True) -> Dataset:
    """At most so many of the observations, always the same ones; those with weights are drawn by them.

    Without ``weighted`` they keep their weights.
    """
    rng = _rng(data, 5)
    if not weighted and data.n <= most:
        return data
    counts = data.observations.astype(np.int64)
    if data.repeats is not None and weighted:
        counts = rng.multinomial(min(data.n, most), data.counts / data.counts.sum())
    elif counts.sum() > most:
        counts = rng.multivariate_hypergeometric(counts, most, method="marginals")
    kept = counts > 0
    if weighted or data.repeats is None:
        return data.at(kept, counts[kept].astype(float))
    part, repeats = data.at(kept), counts[kept].astype(float)
    return replace(part, counts=part.counts / part.observations * repeats, repeats=repeats)


def _rng(data: Dataset, purpose: int) -> np.random.Generator:
    """Random numbers that the data alone decide."""
    return np.random.default_rng([int(data.digest[:12], 16), purpose])


# -- observations and what the model has in their place ----------------------------------------


def _observed(
    model: AbstractModel, theta: np.ndarray, data: Dataset
) -> tuple[Rows, np.ndarray | None, np.ndarray | None, int]:
    """The observations, their covariates and clusters, and how many independent ones they are worth."""
    n = max(1, round(float(data.counts.sum() ** 2 / np.sum(data.counts**2 / data.observations))))
    if not model.designs:
        return Rows(data.rows.astype(np.int64), data.counts), None, data.cluster, n
    assert data.given is not None
    often = np.repeat(np.arange(len(data.rows)), np.round(data.observations).astype(int))
    x, given, weights = data.rows[often].astype(np.int64), data.given[often], (data.counts / data.observations)[often]
    cluster = None if data.cluster is None else data.cluster[often]
    return _placed(model, theta, x, weights, given, given.mean(axis=0)), given, cluster, n


def _placed(
    model: AbstractModel, theta: np.ndarray, x: np.ndarray, weights: np.ndarray, given: np.ndarray, middle: np.ndarray
) -> Rows:
    """Observations of a regression, and where they lie in the distributions of their rows."""
    if x.shape[1] > 1:
        return Rows(x, weights)
    return Rows(x, weights, tails(model, theta, given, x[:, 0]), given > middle)


def _pool(model: AbstractModel, theta: np.ndarray, given: np.ndarray | None, rng: np.random.Generator) -> Pool:
    if given is not None:
        per = _per_row(model)
        own = np.repeat(given, per, axis=0)
        x = model.draw(theta[None], len(own), rng, context=own).rows[0].astype(np.int64)
        return Pool(_placed(model, theta, x, np.ones(len(x)), own, given.mean(axis=0)), own, per)
    if model.domain.is_one_count or (model.domain.is_finite and model.domain.size <= MOST_POINTS):
        points, chances = listed(model, theta[None])
        if len(points) <= 2**16:
            return Pool(Rows(points, chances[0]), exact=True)
    most = 4000  # of 60,000 values in all, but enough rows for a regression on the scores
    size = max(int(np.clip(60_000 // model.domain.d, 400, most)), min(most, 4 * model.space.size))
    x = model.draw(theta[None], size, rng, method=_quick_method(model)).rows[0].astype(np.int64)
    return Pool(Rows(x, np.ones(len(x))))


def _quick_method(model: AbstractModel) -> str | None:
    """Clusters of equal neighbours where the model has nothing but these: it needs no compilation."""
    return "swendsen-wang" if model.has_clusters and model.domain.d > 16 else None


def _joined(looked: list[Family], rows: Rows) -> Float[np.ndarray, "m k"]:
    return np.concatenate([family.values(rows) for family in looked], axis=1)


@partial(jax.jit, static_argnums=0)
def _score(model: AbstractModel, theta: Array, rows: Array, given: Array | None) -> Float[Array, "m p"]:
    def along(direction: Array) -> Array:
        return jax.jvp(lambda t: model.log_masses(t, rows, given), (theta,), (direction,))[1]

    return jax.lax.map(along, jnp.eye(len(theta)), batch_size=8).T


def _scores(model: AbstractModel, theta: np.ndarray, x: np.ndarray, given: np.ndarray | None) -> np.ndarray:
    """The derivative of every observation's log mass, which lacks that of the constant."""
    size = coarse_size(len(x))
    beside = None if given is None else filled(given, size)
    return np.asarray(_score(model, jnp.asarray(theta), filled(x, size), beside))[: len(x)]


# -- the test ----------------------------------------------------------------------------------


def _free(
    model: AbstractModel, theta: np.ndarray, score: np.ndarray, weights: np.ndarray, n: int
) -> Bool[np.ndarray, " p"]:
    """Parameters that may move either way: not those within two standard errors of an edge of their range.

    An estimate at an edge has gone as far as it can; what it leaves of a statistic is a misfit, and is not taken away.
    Coefficients of a logarithm have the edge at minus infinity: two errors from it is an error of one half.
    """
    errors = 1.0 / np.sqrt(np.maximum(n * (weights @ score**2) / weights.sum(), 1e-300))
    if model.designs:
        shape = np.concatenate([np.full(p.size, p.role == SHAPE and bool(p.shape)) for p in model.space.parameters])
        return ~shape | (errors < 1.0 / NEAR)
    away = np.minimum(theta - model.space.lower, model.space.upper - theta)
    return away > NEAR * errors


def _corrected(
    pool: Pool, values: tuple[np.ndarray, np.ndarray], scores: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Statistics less their regression on the scores: the pool's, the data's, and the sd of each; 0 where none is left.

    With few simulated observations for each parameter the regression is held back, which makes the test conservative.
    """
    (value, mean), (score, centre) = pool.centred(values[0]), pool.centred(scores[0])
    weights = pool.rows.weights / pool.rows.weights.sum()
    information = (score * weights[:, None]).T @ score
    scale = np.sqrt(np.maximum(np.diag(information), 1e-300))
    ridge = 1e-9 if pool.exact else 1e-9 + score.shape[1] / len(score) / 10.0
    scaled = information / scale / scale[:, None] + ridge * np.eye(len(scale))
    slopes = np.linalg.solve(scaled, (score * weights[:, None] / scale).T @ value) / scale[:, None]
    left, mine = value - score @ slopes, (values[1] - mean) - (scores[1] - centre) @ slopes
    before, spread = weights @ value**2, np.sqrt(weights @ left**2)
    # less than a millionth of a statistic's variance is left where the parameters fit it by themselves
    return left, mine, np.where(spread**2 > 1e-6 * before, spread, 0.0)


def _inflation(pool: Pool, n: int, parameters: int) -> float:
    """How much wider statistics are because expectations and regressions are those of simulated observations."""
    if pool.exact:
        return 1.0
    size = len(pool.rows.x)
    regressed = size / max(size - 2.0 * parameters, 0.25 * size)
    if pool.per_row:
        return float(np.sqrt((1.0 + 1.0 / pool.per_row) * pool.per_row / (pool.per_row - 1.0) * regressed))
    return float(np.sqrt((1.0 + n / size) * regressed))


def _design_effects(mine: np.ndarray, weights: np.ndarray, cluster: np.ndarray) -> Float[np.ndarray, " k"]:
    """How much more sums over clusters vary than if their rows were independent: factors of standard deviations."""
    away = (mine - weights @ mine / weights.sum()) * weights[:, None]
    sums = np.zeros((int(cluster.max()) + 1, mine.shape[1]))
    np.add.at(sums, cluster, away)
    alone = np.maximum(np.sum(away**2 / weights[:, None], axis=0), 1e-300)
    return np.sqrt(np.maximum(1.0, np.sum(sums**2, axis=0) / alone))


def _strength(
    family: Family, own: np.ndarray, drawn: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The family's one number, of the data and of simulated data sets; the size of each statistic, and in errors."""
    scale = np.where(spread > 0, spread, 1.0)
    each, many = np.where(spread > 0, own / scale, 0.0), np.where(spread > 0, drawn / scale, 0.0)
    sizes = np.abs(np.stack([each, each / np.maximum(many.std(axis=0), 1e-300)]))
    if family.summed:
        return np.sum(own**2), np.sum(drawn**2, axis=1), sizes
    return np.max(sizes[0]), np.max(np.abs(many), axis=1), sizes


def _judged(kept: list[tuple[Family, Any, Any, Any]], observed: Rows, predicted: Rows) -> GoodnessOfFit:
    """P-values of families by rank, and those adjusted by the smallest of them.

    The data's own and the simulated ones are treated alike. Of those with the same rank in different families the one
    that is further beyond the bulk comes first: else as many as there are families would share the first place.
    """
    strengths = np.stack([np.concatenate([[own], drawn]) for _, own, drawn, _ in kept], axis=1)
    ordered = np.sort(strengths, axis=0)
    at = [np.searchsorted(ordered[:, k], strengths[:, k] * (1 - 1e-12), side="left") for k in range(len(kept))]
    # the ten largest of a thousand are beyond the bulk
    beyond = np.maximum(0.0, 1.0 - ordered[-10] / np.maximum(strengths, 1e-300))
    ranks = (len(strengths) - np.stack(at, axis=1) - 0.5 * beyond) / len(strengths)
    smallest = ranks.min(axis=1)
    adjusted = np.array([np.mean(smallest <= value + 1e-12) for value in ranks[0]])
    p_value = float(adjusted.min())
    findings = []
    for k in np.argsort(adjusted, kind="stable"):
        if adjusted[k] < LEVEL:
            family, _, _, (each, errors) = kept[k]
            place = int(np.argmax(each))
            columns = columns_of(family, family.places[place])
            values = tuple(family.places[place][len(columns) :])
            seen, made = family.measured(observed, place), family.measured(predicted, place)
            findings.append(Finding(family.kind, columns, values, seen, made, float(adjusted[k]), float(errors[place])))
    error = float(np.sqrt(p_value * (1 - p_value) / REPLICATES))
    return GoodnessOfFit(MOMENTS, float(ranks[0].min()), p_value, error, tuple(findings))
