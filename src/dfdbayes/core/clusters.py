"""What rows that belong together are worth: how many independent ones would tell as much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .linalg import sandwich
from .objective import Objective
from .sites import CLUSTERS


@dataclass(frozen=True)
class ClusterSummary:
    """Clusters of rows and what they are worth.

    Attributes
    ----------
    number : int
    smallest, median, largest : float
        Observations in a cluster.
    rows : float
        Observations in all.
    worth : float
        How many independent observations would tell as much, over all parameters: the observations divided by the
        mean design effect (Kish, 1965).
    design_effect : dict
        By parameter: its variance by clusters over the one that independent rows would have.
    """

    number: int
    smallest: float
    median: float
    largest: float
    rows: float
    worth: float
    design_effect: dict[str, float]

    def __str__(self) -> str:
        return (
            f"{self.rows:.0f} observations in {self.number} clusters of {self.smallest:.0f} to {self.largest:.0f} "
            f"(median {self.median:.0f}); they tell as much as {self.worth:.0f} independent ones would"
        )


def summarised(objective: Objective, theta: Any) -> ClusterSummary | None:
    """The clusters of an objective; None where rows are independent."""
    units = objective.units
    if units.kind != CLUSTERS or units.owner is None:
        return None
    data = objective.observed
    sizes = np.bincount(units.owner, weights=data.observations)
    hessian = objective.hessian(theta)
    alone = objective.by_rows().moments(theta)
    apart, together = (
        np.diag(sandwich(hessian, squares - np.outer(total, total) / size))
        for size, total, squares in (alone, objective.moments(theta))
    )
    effects = together / np.maximum(apart, 1e-300)
    rows = float(sizes.sum())
    return ClusterSummary(
        len(sizes), float(sizes.min()), float(np.median(sizes)), float(sizes.max()), rows,
        rows / max(float(np.mean(effects)), 1e-300), dict(zip(objective.space.names, map(float, effects), strict=True)),
    )  # fmt: skip
