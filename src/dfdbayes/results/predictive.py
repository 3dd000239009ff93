"""What the fitted model would produce: replicated data, and checks of the data against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from .._util.resources import require_seed
from .._util.tables import Table
from ..core.dataset import Dataset
from ..core.graphs import Graph
from ..core.mixing import evenly
from ..core.model import AbstractModel
from ..core.simulators.base import Mixing
from ..core.simulators.exact import MAX_SIMULATED_POINTS
from ..core.simulators.given import is_listable, width
from ..errors import ModelError, SettingError
from .goodness_of_fit import GoodnessOfFit, goodness_of_fit, some

MOST_CORRELATIONS = 200  # pairs of columns: a report says how many there are beyond

HOW = {
    "enumeration": "exactly (all values were listed)",
    "inversion": "exactly (by inversion of the distribution function)",
    "perfect": "exactly (coupling from the past)",
    "gibbs": "by Gibbs sampling",
    "swendsen-wang": "by clusters of equal neighbours (Swendsen and Wang)",
    "metropolis": "by Metropolis steps",
}


@dataclass(frozen=True)
class Predictive:
    """Data sets drawn from the posterior predictive distribution, beside the observed one.

    Attributes
    ----------
    replicates : (draws, size, d) integers
        One data set a posterior draw.
    data : Dataset
    method : str
        The simulator, with its ``mixing`` where it is not exact.
    goodness : GoodnessOfFit
        A test of fit at the estimate, on all of the data.
    """

    replicates: Int[np.ndarray, "draws size d"]
    data: Dataset
    method: str
    mixing: Mixing | None
    goodness: GoodnessOfFit

    @property
    def columns(self) -> tuple[str, ...]:
        return self.data.columns

    @property
    def means(self) -> Float[np.ndarray, " d"]:
        """Predicted mean of every column."""
        return self.replicates.mean(axis=(0, 1))

    @property
    def p_value(self) -> float:
        """That of the test of fit."""
        return self.goodness.p_value

    @property
    def compared(self) -> Dataset:
        """As many observations as a replicate has: statistics vary with the number they are computed from."""
        return some(self.data, self.replicates.shape[1])

    def marginal(self, column: int | str) -> pd.DataFrame:
        """Observed and predicted shares of each value of a column; ``sd`` is over replicated data sets."""
        j = self.data.columns.index(column) if isinstance(column, str) else column
        values = np.union1d(self.data.rows[:, j], self.replicates[..., j])
        counts = self.data.counts / self.data.counts.sum()
        observed = np.array([counts[self.data.rows[:, j] == v].sum() for v in values])
        shares = np.stack([(self.replicates[..., j] == v).mean(axis=1) for v in values], axis=1)
        return pd.DataFrame(
            {"observed": observed, "predicted": shares.mean(axis=0), "sd": shares.std(axis=0)},
            index=pd.Index(values, name=self.data.columns[j]),
        )

    def checks(self) -> pd.DataFrame:
        """For every column: mean, dispersion index and total variation, observed and predicted.

        ``tail`` is the share of replicated data sets whose statistic is at least the observed one: near 0 or 1 is bad.
        Where replicates are smaller than the data, that of as many observations is compared.
        ``total_variation`` is the distance between the column's observed and mean predicted distribution.
        """
        (mean, index), (own_mean, own_index) = _moments(self.data), _moments(self.compared)
        means, variances = self.replicates.mean(axis=1), self.replicates.var(axis=1)
        table = pd.DataFrame({"mean": mean, "predicted_mean": means.mean(axis=0)}, index=list(self.data.columns))
        table["mean_tail"] = (means >= own_mean).mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            indices = variances / means
        table["dispersion_index"], table["predicted_dispersion_index"] = index, np.nanmean(indices, axis=0)
        table["dispersion_index_tail"] = (indices >= own_index).mean(axis=0)
        table["total_variation"] = [
            0.5 * float(np.abs(m["observed"] - m["predicted"]).sum()) for m in map(self.marginal, range(self.data.d))
        ]
        return table

    def agreement(self, graph: Graph) -> pd.DataFrame:
        """The share of a graph's edges whose ends have equal values, observed and predicted, with its ``tail``."""
        i, j = graph.edges.T

        def agreeing(data: Dataset) -> float:
            own = (data.rows[:, i] == data.rows[:, j]).mean(axis=1)
            return float(np.average(own, weights=data.counts))

        predicted = (self.replicates[..., i] == self.replicates[..., j]).mean(axis=(1, 2))
        row = {"observed": agreeing(self.data), "predicted": predicted.mean(), "sd": predicted.std()}
        tail = np.mean(predicted >= agreeing(self.compared))
        return pd.DataFrame([row | {"tail": tail}], index=["edges with equal ends"])

    def correlations(self) -> pd.DataFrame:
        """Pairwise correlations, observed and predicted, of at most `MOST_CORRELATIONS` pairs of columns."""
        i, j = (part[:MOST_CORRELATIONS] for part in np.triu_indices(self.data.d, 1))
        observed = _correlation(self.data.rows[None], self.data.counts, i, j)[0]
        predicted = _correlation(self.replicates, None, i, j)
        names = self.data.columns
        return pd.DataFrame(
            {"observed": observed, "predicted": np.nanmean(predicted, axis=0), "sd": np.nanstd(predicted, axis=0)},
            index=[f"{names[a]},{names[b]}" for a, b in zip(i, j, strict=True)],
        )


def _moments(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Mean and dispersion index of every column."""
    mean = np.average(data.rows, axis=0, weights=data.counts)
    variance = np.average((data.rows - mean) ** 2, axis=0, weights=data.counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        return mean, variance / mean


def _correlation(
    rows: np.ndarray, weights: np.ndarray | None, i: np.ndarray, j: np.ndarray
) -> Float[np.ndarray, "r e"]:
    rows = rows.astype(float)
    centred = rows - np.average(rows, axis=1, weights=weights)[:, None, :]
    weight = np.ones(rows.shape[1]) if weights is None else weights
    norm = np.sqrt(np.einsum("rnd,n->rd", centred**2, weight))
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = centred / norm[:, None, :]
    return np.einsum("rne,rne,n->re", unit[..., i], unit[..., j], weight)


def replicate(
    model: AbstractModel | None,
    thetas: Float[np.ndarray, "all p"],
    data: Dataset,
    draws: int = 100,
    size: int | None = None,
    method: str | None = None,
    seed: int = 0,
    at: Float[np.ndarray, " p"] | None = None,
) -> Predictive:
    """Replicate the data at ``draws`` of the posterior draws ``thetas``, ``size`` observations each.

    The test of fit is at ``at``, or at the mean of the draws.
    """
    if model is None:
        raise ModelError("this fit was loaded without its model; give it: dfd.load(path, model=...)")
    if draws < 1 or (size is not None and size < 1):
        raise SettingError("draws and size must be at least 1")
    require_seed(seed)
    draws = min(draws, len(thetas))
    rng = np.random.default_rng([seed, 3])
    chosen = evenly(thetas, draws)
    size = min(data.n, _most(model, draws, data)) if size is None else size
    context = model.context_of(some(data, min(data.n, size)))
    found = model.draw(chosen, size, rng, context=context, method=method)
    goodness = goodness_of_fit(model, thetas.mean(axis=0) if at is None else at, data)
    return Predictive(found.rows, data, found.method, found.mixing, goodness)


def _most(model: AbstractModel, draws: int, data: Dataset) -> int:
    """How many observations a data set has by default, at most; with covariates every one has masses of its own."""
    if not _is_quick(model):
        return 500
    each = data.d
    if model.designs:
        each = width(model, float(np.average(np.abs(data.rows[:, 0]), weights=data.counts)))
    return int(max(50, 2e7 / (draws * each)))


def _is_quick(model: AbstractModel) -> bool:
    """Whether observations can be drawn exactly and at once."""
    if model.designs:
        return is_listable(model)
    return model.domain.d == 1 or (model.domain.is_finite and model.domain.size <= MAX_SIMULATED_POINTS)


def affordable(model: AbstractModel, data: Dataset) -> dict[str, Any]:
    """Settings of `replicate` that take about a second: as many draws as the model's simulator is quick."""
    if _is_quick(model):
        if not model.designs:
            return {"draws": 100}
        few = _most(model, 100, data)
        return {"draws": 100 if few > 1000 else 40, "size": min(data.n, few)}
    size = int(min(data.n, np.clip(100_000 // (40 * data.d), 20, 100)))
    method = "swendsen-wang" if model.has_clusters else None  # it needs no compilation
    return {"draws": 40, "size": size, "method": method}


def parameters_of(posterior: Table, names: list[str]) -> Float[np.ndarray, "all p"]:
    """Flat parameters of all draws, from a posterior by name."""
    parts = [posterior.arrays[name] for name in names]
    return np.concatenate([part.reshape(part.shape[0] * part.shape[1], -1) for part in parts], axis=1)
