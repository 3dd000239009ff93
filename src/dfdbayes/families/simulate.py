"""Data from a model, at parameters that are given (`simulate`) or drawn from its priors (`prior_predictive`)."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from jaxtyping import Int

from .._util.resources import require_seed, require_unforked
from ..core.model import AbstractModel
from ..core.simulators.base import Sample
from ..errors import SettingError
from . import by_name, paper_priors
from .graph.chains import Graphs
from .graph.model import RandomGraph
from .map.model import Autologistic, Maps


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
    found: Sample | Graphs | Maps = model.simulate(theta, n, method=method, seed=seed, sweeps=sweeps)
    return found


def prior_predictive(
    model: AbstractModel | str, size: int = 100, draws: int = 100, *, columns: int = 1, prior: Any = None,
    options: Any = None, method: str | None = None, seed: int = 0,
) -> tuple[dict[str, np.ndarray], Int[np.ndarray, "draws size d"]]:  # fmt: skip
    """Data that a model's priors expect: parameters from the priors, and a data set from each.

    Parameters
    ----------
    model : AbstractModel or str
        With a name, ``columns`` says for how many columns, and ``options`` are those of its function.
    size, draws : int
        Observations in each data set, and how many data sets.
    prior : mapping or "paper", optional
        As for `fit`.
    method : str, optional
        The simulator; see `simulate`.
    seed : int

    Returns
    -------
    parameters : dict of arrays
        By name, one entry a draw.
    rows : (draws, size, d) integers

    Examples
    --------
    >>> import dfdbayes as dfd, numpyro.distributions as dist
    >>> parameters, rows = dfd.prior_predictive("poisson", 50, 20, prior={"rate": dist.Gamma(2.0, 1.0)})
    >>> rows.shape, parameters["rate"].shape
    ((20, 50, 1), (20,))
    """
    if draws < 1 or size < 1:
        raise SettingError("draws and size must be at least 1")
    require_seed(seed)
    made = by_name(model, columns, options, prior) if isinstance(model, str) else model.current()
    made = made.with_priors(paper_priors(made) if isinstance(prior, str) else prior)
    rng = np.random.default_rng([seed, 4])
    thetas = made.space.draw_priors(draws, int(rng.integers(2**31)))
    return made.space.unflatten(thetas), made.draw(thetas, size, rng, method=method).rows
