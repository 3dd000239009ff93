"""Simulated data sets, each as large as the data: replicates of a parametric bootstrap.

A replicate is a vector of weights here too: simulated sets are tabulated together, as the distinct rows of all of them,
and each set is how often it has every row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from ...errors import ModelError
from ..dataset import Dataset, keys
from .base import Simulable


def replicas(
    model: Simulable, theta: Float[np.ndarray, " p"], data: Dataset, size: int, seed: int
) -> Iterator[tuple[Dataset, Float[np.ndarray, "b u"]]]:
    """``size`` simulated data sets in parts: the distinct rows of some of them, and how often each has every one."""
    if not model.can_simulate:
        raise ModelError(f"'{model.name}' cannot be simulated, which a parametric bootstrap needs")
    rng = np.random.default_rng([seed, 17])
    at_once = int(np.clip(2**22 // max(data.n, 1) ** 2, 1, 50))  # the weights of distinct rows are 32 MB
    for first in range(0, size, at_once):
        yield _tabulated(data, _simulated(model, theta, data, min(at_once, size - first), rng))


def _simulated(
    model: Simulable, theta: np.ndarray, data: Dataset, sets: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows (sets, n, d) and their covariates (n, q), those of the data."""
    given = model.context_of(data)
    if given is not None:
        return model.draw(np.repeat(theta[None], sets, axis=0), data.n, rng, context=given).rows, given
    rows = model.draw(theta[None], sets * data.n, rng).rows
    return rows[0].reshape(sets, data.n, data.d), None


def _tabulated(data: Dataset, simulated: tuple[np.ndarray, np.ndarray | None]) -> tuple[Dataset, np.ndarray]:
    rows, given = simulated
    sets, n, d = rows.shape
    flat = rows.reshape(-1, d).astype(np.int64)
    beside = None if given is None else np.tile(given, (sets, 1))
    codes = [*flat.T, *(() if beside is None else (np.unique(part, return_inverse=True)[1] for part in beside.T))]
    _, first, inverse = np.unique(keys(codes)[0], return_index=True, return_inverse=True)
    weights = np.zeros((sets, len(first)))
    np.add.at(weights, (np.repeat(np.arange(sets), n), inverse), 1.0)
    whole = replace(
        data, rows=flat[first], counts=weights.mean(axis=0), first=np.arange(len(first)), repeats=None, observed=None,
        given=None if beside is None else beside[first], cluster=None,
    )  # fmt: skip
    return whole, weights
