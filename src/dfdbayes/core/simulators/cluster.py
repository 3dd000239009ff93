"""Swendsen-Wang: whole clusters of equal neighbours change at once, which is fast near criticality."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ...errors import ModelError
from .base import Interactions


def by_swendsen_wang(
    model: Interactions, domain: Any, per: int, rng: np.random.Generator, sweeps: int
) -> tuple[np.ndarray, np.ndarray]:
    """States after ``sweeps`` updates, and the trace of the number of equal neighbours."""
    levels = np.asarray(domain.coordinate(0).levels)
    spins = model.kind == "product" and levels.tolist() == [-1, 1]
    if not spins and model.kind != "match":
        raise ModelError("Swendsen-Wang needs spins (-1, +1) or a Potts model; use method='gibbs'")
    if np.any(np.asarray(model.interaction) < 0) or np.any(model.intercept):
        raise ModelError("Swendsen-Wang needs interactions >= 0 and no intercept; use method='gibbs'")
    batches, d = np.atleast_2d(model.intercept).shape
    chains = batches * per
    strength = np.repeat(np.atleast_2d(model.interaction), per, axis=0) * (2.0 if spins else 1.0)
    bond = -np.expm1(-strength)
    i, j = model.graph.edges.T
    offset = d * np.arange(chains)[:, None]
    x = levels[rng.integers(len(levels), size=(chains, d))]
    trace = np.empty((sweeps, chains))
    for step in range(sweeps):
        joined = (x[:, i] == x[:, j]) & (rng.random(bond.shape) < bond)
        a, b = (i + offset)[joined], (j + offset)[joined]
        links = sparse.coo_matrix((np.ones(len(a), np.int8), (a, b)), shape=(chains * d, chains * d))
        clusters, member = connected_components(links, directed=False)
        x = levels[rng.integers(len(levels), size=clusters)][member].reshape(chains, d)
        trace[step] = (x[:, i] == x[:, j]).sum(axis=1)
    return x.reshape(batches, per, d), trace.reshape(sweeps, batches, per)
