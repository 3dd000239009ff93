"""Data from a model. `simulate` picks a method, says which, and reports mixing where it is not exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from jaxtyping import Float, Int

from .._util.process import require_seed, require_unforked
from ..core.model import AbstractModel
from ..core.simulators.cluster import by_swendsen_wang
from ..core.simulators.exact import MOST_POINTS, by_enumeration, by_inversion, probabilities
from ..core.simulators.general import by_general_gibbs
from ..core.simulators.gibbs import by_gibbs
from ..core.simulators.given import by_listing, is_listable
from ..core.simulators.metropolis import by_metropolis
from ..core.simulators.mixing import Mixing, mixing_of
from ..core.simulators.perfect import by_coupling_from_the_past
from ..errors import ModelError, SettingError
from .graph.degeneracy import require_sound
from .graph.model import RandomGraph
from .graph.simulate import GraphMixing, Graphs, simulate_graphs
from .map.model import Autologistic
from .map.simulate import Maps, simulate_maps
from .network.model import Pairwise
from .network.simulate import by_levels, by_levels_given

__all__ = [
    "METHODS",
    "GraphMixing",
    "Graphs",
    "Maps",
    "Mixing",
    "Sample",
    "draw",
    "draw_given",
    "probabilities",
    "require_sound",
    "simulate",
    "simulate_graphs",
    "simulate_maps",
]

METHODS = ("enumeration", "inversion", "perfect", "swendsen-wang", "gibbs", "metropolis")
EXACT = ("enumeration", "inversion", "perfect")
SWEEPS = {"gibbs": 200, "swendsen-wang": 60, "metropolis": 100_000}
COUNT_SWEEPS = 40  # count graphs interact weakly, and a sweep of theirs costs more


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
    model: Autologistic, theta: Any, n: int, *, method: str | None = None, seed: int = 0, sweeps: int | None = None
) -> Maps: ...


@overload
def simulate(
    model: AbstractModel, theta: Any, n: int, *, method: str | None = None, seed: int = 0, sweeps: int | None = None
) -> Sample: ...


def simulate(
    model: AbstractModel, theta: Any, n: int, *, method: str | None = None, seed: int = 0, sweeps: int | None = None
) -> Sample | Graphs | Maps:
    """``n`` independent observations from a model; of a `RandomGraph` as many graphs (`Graphs`), of maps (`Maps`).

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
    if not isinstance(model, AbstractModel):
        raise SettingError(
            f"{model!r} is not a model. What to do: give the model itself, such as dfd.models.Poisson(); to simulate "
            "from a fit, fit.replicate() or fit.predict()"
        )
    model = model.current()
    if isinstance(model, RandomGraph):
        return simulate_graphs(model, theta, n, method=method, seed=seed)
    if isinstance(model, Autologistic):
        if method not in (None, "gibbs"):
            raise SettingError(f"maps are simulated by Gibbs sampling; leave out method={method!r}")
        return simulate_maps(model, theta, n, seed=seed, sweeps=sweeps)
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
        return rows, chosen, mixing_of(trace)
    if chosen == "perfect":
        return by_coupling_from_the_past(interactions, model.domain, per, rng), chosen, None
    if chosen == "metropolis":
        rows = by_metropolis(interactions, model.domain, per, rng, count)
        return rows, chosen, Mixing(count // model.domain.d, float("nan"), float("nan"))
    run = by_gibbs if chosen == "gibbs" else by_swendsen_wang
    rows, trace = run(interactions, model.domain, per, rng, count)
    return rows, chosen, mixing_of(trace)


def draw_given(
    model: AbstractModel, thetas: Float[np.ndarray, "c p"], given: Float[np.ndarray, "n q"], rng: np.random.Generator
) -> tuple[Int[np.ndarray, "c n d"], str, Mixing | None]:
    """One observation for every row of covariates at each of many parameters; also the method and its mixing."""
    require_unforked()
    if is_listable(model):
        return by_listing(model, thetas, given, rng), "enumeration" if model.domain.is_finite else "inversion", None
    sweeps = SWEEPS["gibbs"] if model.domain.is_finite else COUNT_SWEEPS
    if isinstance(model, Pairwise):
        rows, trace = by_levels_given(model, thetas, given, rng, sweeps)
    else:
        rows, trace = by_general_gibbs(model, thetas, len(given), rng, sweeps, given)
    return rows, "gibbs", mixing_of(trace)


def _default(model: AbstractModel) -> str:
    if model.domain.is_finite and model.domain.size <= MOST_POINTS:
        return "enumeration"
    if model.domain.d == 1 and model.domain.coordinate(0).kind in ("above", "below"):
        return "inversion"
    return "gibbs"
