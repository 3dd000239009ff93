"""The check of a fit: data are simulated from its posterior, and compared with those observed. A stage of `fit`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from ..core.dataset import Dataset
from ..core.graphs import Graph
from ..core.model import AbstractModel
from ..errors import DegeneracyError, DfdbayesError
from .checks import Checks
from .goodness_of_fit import some
from .misfit_messages import misfits
from .predictive import affordable, replicate
from .regression import residuals_of


def check(
    model: AbstractModel, thetas: Float[np.ndarray, "all p"], data: Dataset, seed: int = 0,
    at: Float[np.ndarray, " p"] | None = None, by_likelihood: bool = False,
) -> Checks:  # fmt: skip
    """Simulate from the posterior on a small budget, and compare with the data; the test of fit is at ``at``."""
    if at is not None and model.endless(at, data):
        return Checks(problem="the mass function has no finite sum, so no data can be drawn")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column that is constant in a replicate, say
            if model.single_observation:
                return Checks(**model.check(thetas, seed, by_likelihood))
            drawn = replicate(model, thetas, data, seed=seed, at=at, **affordable(model, data))
            graph = model.graph if model.graph is not None and model.graph.shape is not None else None
            told = misfits(model, data, drawn.goodness.findings, at)
            return replace(_checks(drawn, graph), residuals=_residuals(model, thetas, data), misfits=told)
    except DegeneracyError:  # which no result can stand beside
        raise
    except (DfdbayesError, ArithmeticError, ValueError, MemoryError) as problem:
        return Checks(problem=str(problem))


def _residuals(model: AbstractModel, thetas: np.ndarray, data: Dataset) -> pd.DataFrame | None:
    """Of some observations, for a picture."""
    if not model.designs or data.d > 1:
        return None
    return residuals_of(model, thetas.mean(axis=0), some(data, 2000))  # a picture shows no more


def _checks(found: Any, graph: Graph | None) -> Checks:
    d, shown = found.data.d, found.columns[:12]  # whose marginal distributions are kept: a page of pictures
    return Checks(
        goodness=found.goodness,
        table=found.checks() if d <= 40 and graph is None else None,
        marginals=tuple(found.marginal(j) for j in range(len(shown))) if graph is None else (),
        pairs=found.correlations() if d > 1 and found.data.n > 2 else None,
        equal=None if graph is None else found.agreement(graph),
        means=found.means,
        columns=shown,
        sets=found.replicates.shape[0],
        size=found.replicates.shape[1],
        method=found.method,
        mixed=found.mixing is None or bool(found.mixing.good),
    )
