"""Data from a model. `simulate` picks a method, says which, and reports mixing where it is not exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from jaxtyping import Float, Int

from .._util.process import require_seed, require_unforked
from ..errors import ModelError, SettingError
from ..models.base import AbstractModel
from ..models.network import Pairwise
from ..models.random_graph import RandomGraph
from ..models.regression import Regression
from .cluster import by_swendsen_wang
from .degeneracy import require_sound
from .exact import MOST_POINTS, by_enumeration, by_inversion, probabilities
from .general import by_general_gibbs
from .gibbs import by_gibbs
from .given import by_listing, is_listable
from .graphs import GraphMixing, Graphs, simulate_graphs
from .levels import by_levels
from .metropolis import by_metropolis
from .perfect import by_coupling_from_the_past

__all__ = [
    "METHODS",
    "GraphMixing",
    "Graphs",
    "Mixing",
    "Sample",
    "draw",
    "draw_given",
    "probabilities",
    "require_sound",
    "simulate",
    "simulate_graphs",
]

METHODS = ("enumeration", "inversion", "perfect", "swendsen-wang", "gibbs", "metropolis")
EXACT = ("enumeration", "inversion", "perfect")
SWEEPS = {"gibbs": 200, "swendsen-wang": 60, "metropolis": 100_000}
WATCHED = 200  # chains of many that mixing is judged by
COUNT_SWEEPS = 40  # count graphs interact weakly, and a sweep of theirs costs more


@dataclass(frozen=True)
class Mixing:
    """How well chains that are not exact have forgotten their start.

    Attributes
    ----------
    sweeps : int
    autocorrelation_time : float
        Sweeps over which the watched statistic (a sum over edges, or over all values) forgets itself.
    drift : float
        Difference of its means in the third and the last quarter of the sweeps, in standard errors.
    """

    sweeps: int
    autocorrelation_time: float
    drift: float

    @property
    def good(self) -> bool:
        return self.sweeps > 20 * self.autocorrelation_time and abs(self.drift) < 4


@dataclass(frozen=True)
class Sample:
    """Simulated rows, the method that made them, and its mixing (None where it is exact)."""

    rows: Int[np.ndarray, "n d"]
    method: str
    mixing: Mixing | None

    @property
    def exact(self) -> bool:
        return self.method in EXACT

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.rows, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.rows)


@overload
def simulate(
    model: RandomGraph, theta: Any, n: int, *, method: str | None = None, seed: int = 0, sweeps: int | None = None
) -> Graphs: ...


@overload
def simulate(
    model: AbstractModel, theta: Any, n: int, *, method: str | None = None, seed: int = 0, sweeps: int | None = None
) -> Sample: ...


def simulate(
    model: AbstractModel, theta: Any, n: int, *, method: str | None = None, seed: int = 0, sweeps: int | None = None
) -> Sample | Graphs:
    """``n`` independent observations from a model; of a `RandomGraph` as many graphs (`Graphs`).

    Parameters
    ----------
    model : AbstractModel
    theta : dict or vector
        The parameters.
    n : int
    method : str, optional
        ``"enumeration"``, ``"inversion"``, ``"perfect"`` (coupling from the past), ``"swendsen-wang"``, ``"gibbs"`` or
        ``"metropolis"`` (the paper's). By default an exact one where that is cheap. Graphs: ``"enumeration"`` or
        ``"tie-no-tie"``.
    seed : int
    sweeps : int, optional
        Length of the chains of methods that are not exact; each observation has a chain of its own.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> sample = dfd.simulate(dfd.models.Ising(dfd.graphs.grid(3, 3)), {"temperature": 5.0}, n=4)
    >>> sample.rows.shape, sample.method, sample.exact
    ((4, 9), 'enumeration', True)
    """
    require_unforked()
    require_seed(seed)
    if n < 1:
        raise SettingError(f"n is {n}; at least one observation is needed")
    model = model.current()
    if isinstance(model, RandomGraph):
        return simulate_graphs(model, theta, n, method=method, seed=seed)
    thetas = np.asarray(model.space.flatten(theta))[None]
    rows, chosen, mixing = draw(model, thetas, n, method, np.random.default_rng([seed, 7]), sweeps)
    return Sample(rows[0], chosen, mixing)


def draw(
    model: AbstractModel,
    thetas: Float[np.ndarray, "c p"],
    per: int,
    method: str | None,
    rng: np.random.Generator,
    sweeps: int | None = None,
) -> tuple[Int[np.ndarray, "c per d"], str, Mixing | None]:
    """``per`` observations at each of many parameters; also the method and its mixing."""
    require_unforked()
    chosen = method or _default(model)
    if chosen not in METHODS:
        raise SettingError(f"there is no simulation method '{chosen}'; known: {', '.join(METHODS)}")
    if chosen == "enumeration":
        return by_enumeration(model, thetas, per, rng), chosen, None
    if chosen == "inversion":
        return by_inversion(model, thetas, per, rng), chosen, None
    usual = COUNT_SWEEPS if chosen == "gibbs" and not model.domain.is_finite else SWEEPS.get(chosen, 0)
    count = usual if sweeps is None else sweeps
    interactions = None if model.interactions is None else model.interactions(model.space.unflatten(thetas))
    if interactions is None:
        if chosen != "gibbs":
            raise ModelError(f"'{chosen}' needs a model with interactions; use method='gibbs'")
        if isinstance(model, Pairwise):
            rows, trace = by_levels(model, thetas, per, rng, count)
        else:
            rows, trace = by_general_gibbs(model, thetas, per, rng, count)
        return rows, chosen, _mixing(trace)
    if chosen == "perfect":
        return by_coupling_from_the_past(interactions, model.domain, per, rng), chosen, None
    if chosen == "metropolis":
        rows = by_metropolis(interactions, model.domain, per, rng, count)
        return rows, chosen, Mixing(count // model.domain.d, float("nan"), float("nan"))
    run = by_gibbs if chosen == "gibbs" else by_swendsen_wang
    rows, trace = run(interactions, model.domain, per, rng, count)
    return rows, chosen, _mixing(trace)


def draw_given(
    model: Regression, thetas: Float[np.ndarray, "c p"], given: Float[np.ndarray, "n q"], rng: np.random.Generator
) -> tuple[Int[np.ndarray, "c n d"], str, Mixing | None]:
    """One observation for every row of covariates at each of many parameters; also the method and its mixing."""
    require_unforked()
    if is_listable(model):
        return by_listing(model, thetas, given, rng), "enumeration" if model.domain.is_finite else "inversion", None
    sweeps = SWEEPS["gibbs"] if model.domain.is_finite else COUNT_SWEEPS
    rows, trace = by_general_gibbs(model, thetas, len(given), rng, sweeps, given)
    return rows, "gibbs", _mixing(trace)


def _default(model: AbstractModel) -> str:
    if model.domain.is_finite and model.domain.size <= MOST_POINTS:
        return "enumeration"
    if model.domain.d == 1 and model.domain.coordinate(0).kind in ("above", "below"):
        return "inversion"
    return "gibbs"


def _mixing(trace: Float[np.ndarray, "t c per"]) -> Mixing:
    """Autocorrelation time and drift of a statistic of many independent chains."""
    from arviz_stats.base import array_stats  # not before there are chains: it takes a while

    values = trace.reshape(len(trace), -1)
    half = values[len(values) // 2 :]
    third, last = np.array_split(half, 2)
    step = last.mean(axis=0) - third.mean(axis=0)
    drift = step.mean() / max(step.std() / np.sqrt(step.size), 1e-300) if step.size > 1 else 0.0
    few = half[:, :WATCHED]
    worth = float(array_stats.ess(few, chain_axis=1, draw_axis=0, method="mean")) if few.shape[0] > 3 else few.size
    return Mixing(len(trace), few.size / worth if np.isfinite(worth) else 1.0, float(drift))
