"""What the fitted model would produce: replicated data, and checks of the data against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from .data import Dataset
from .errors import ModelError, SettingError
from .graphs import Graph
from .models.base import AbstractModel
from .simulate import Mixing, draw
from .simulate.exact import MOST_POINTS
from .stein import goodness_of_fit

MOST_CORRELATIONS = 200


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
    discrepancy, p_value : float
        The squared kernel Stein discrepancy at the posterior mean, and its wild-bootstrap p-value.
    """

    replicates: Int[np.ndarray, "draws size d"]
    data: Dataset
    method: str
    mixing: Mixing | None
    discrepancy: float
    p_value: float

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
        ``total_variation`` is the distance between the column's observed and mean predicted distribution.
        """
        counts = self.data.counts
        mean = np.average(self.data.rows, axis=0, weights=counts)
        variance = np.average((self.data.rows - mean) ** 2, axis=0, weights=counts)
        means, variances = self.replicates.mean(axis=1), self.replicates.var(axis=1)
        table = pd.DataFrame({"mean": mean, "predicted_mean": means.mean(axis=0)}, index=list(self.data.columns))
        table["mean_tail"] = (means >= mean).mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            index, indices = variance / mean, variances / means
        table["dispersion"], table["predicted_dispersion"] = index, np.nanmean(indices, axis=0)
        table["dispersion_tail"] = (indices >= index).mean(axis=0)
        table["total_variation"] = [
            0.5 * float(np.abs(m["observed"] - m["predicted"]).sum()) for m in map(self.marginal, range(self.data.d))
        ]
        return table

    def agreement(self, graph: Graph) -> pd.DataFrame:
        """The share of a graph's edges whose ends have equal values, observed and predicted, with its ``tail``."""
        i, j = graph.edges.T
        own = (self.data.rows[:, i] == self.data.rows[:, j]).mean(axis=1)
        observed = float(np.average(own, weights=self.data.counts))
        predicted = (self.replicates[..., i] == self.replicates[..., j]).mean(axis=(1, 2))
        row = {"observed": observed, "predicted": predicted.mean(), "sd": predicted.std()}
        return pd.DataFrame([row | {"tail": np.mean(predicted >= observed)}], index=["edges with equal ends"])

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


def predict(
    model: AbstractModel | None,
    thetas: Float[np.ndarray, "all p"],
    data: Dataset,
    draws: int = 100,
    size: int | None = None,
    method: str | None = None,
    seed: int = 0,
    most: int = 2000,
) -> Predictive:
    """Replicate the data at ``draws`` of the posterior draws ``thetas``, ``size`` observations each.

    The test of fit uses at most ``most`` observations.
    """
    if model is None:
        raise ModelError("this fit was loaded without its model; give it: dfd.load(path, model=...)")
    if draws < 1 or (size is not None and size < 1):
        raise SettingError("draws and size must be at least 1")
    rng = np.random.default_rng([seed, 3])
    size = int(min(data.n, 500)) if size is None else size
    chosen = thetas[np.linspace(0, len(thetas) - 1, min(draws, len(thetas))).astype(int)]
    rows, used, mixing = draw(model, chosen, size, method, rng)
    if data.n > 1:
        discrepancy, p_value = goodness_of_fit(model, thetas.mean(axis=0), data, rng, most=most)
    else:
        discrepancy = p_value = float("nan")
    return Predictive(rows, data, used, mixing, discrepancy, p_value)


def affordable(model: AbstractModel, data: Dataset) -> dict[str, Any]:
    """Settings of `predict` that take about a second: as many draws as the model's simulator is quick."""
    most = int(np.clip(np.sqrt(2e8 / data.d), 100, 2000))  # the test of fit costs rows x rows x columns
    if model.domain.d == 1 or (model.domain.is_finite and model.domain.size <= MOST_POINTS):
        return {"draws": 100, "most": most}
    size = int(min(data.n, np.clip(100_000 // (40 * data.d), 20, 100)))
    clusters = model.name in ("ising", "potts") and model.options.get("states") != "binary"
    method = "swendsen-wang" if clusters and not model.options.get("field") else None  # it needs no compilation
    return {"draws": 40, "size": size, "method": method, "most": most}


def parameters_of(posterior: Any, names: list[str]) -> Float[np.ndarray, "all p"]:
    """Flat parameters of all draws, from a posterior by name."""
    parts = [posterior[name].values.reshape(posterior.sizes["chain"] * posterior.sizes["draw"], -1) for name in names]
    return np.concatenate(parts, axis=1)
