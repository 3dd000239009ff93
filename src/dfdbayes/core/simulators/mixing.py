"""How well chains have forgotten where they began."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

WATCHED = 200  # chains of many that mixing is judged by


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


def mixing_of(trace: Float[np.ndarray, "t ..."]) -> Mixing:
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
