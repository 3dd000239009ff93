"""What simulators ask of a model, and what they give: rows, the method that drew them, and how well chains mixed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Array, Float, Int

from ..domain import Domain
from ..graphs import Graph
from ..parameters import Rows, Space

EXACT = ("enumeration", "inversion", "perfect")


@dataclass(frozen=True)
class Interactions:
    """A model at given parameters as simulators see it: an intercept a node, an interaction an edge.

    Leading axes of the arrays stand for different parameters. ``kind`` says what an edge weighs: the product of
    its two values (``"product"``) or whether they are equal (``"match"``). ``nu`` is there for counts, whose mass
    has a factor (x!)^-nu.
    """

    graph: Graph
    kind: str
    intercept: Float[np.ndarray, "*batch d"]
    interaction: Float[np.ndarray, "*batch e"]
    nu: Float[np.ndarray, "*batch d"] | None = None


class Simulable(Protocol):
    """What simulators ask of a model: its log mass, where it lives, and what may make drawing from it quick."""

    @property
    def domain(self) -> Domain: ...
    @property
    def space(self) -> Space: ...
    @property
    def name(self) -> str: ...
    @property
    def interactions(self) -> Callable[[dict[str, Any]], Interactions | None] | None: ...
    @property
    def ranks(self) -> dict[str, int]: ...
    @property
    def mode_inside(self) -> bool: ...
    def at_rows(self, theta: Rows, context: Any) -> Rows: ...
    def log_mass_at(self, theta: Rows, x: Any) -> Array: ...
    def means_at(self, at: Rows, size: int) -> Array | None: ...
    @property
    def can_simulate(self) -> bool: ...
    def context_of(self, data: Any) -> np.ndarray | None: ...
    def gibbs(
        self, thetas: np.ndarray, size: int, rng: np.random.Generator, sweeps: int, context: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def draw(
        self, thetas: np.ndarray, size: int, rng: np.random.Generator, *, context: np.ndarray | None = None
    ) -> Sample: ...


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

    rows: Int[np.ndarray, "*c n d"]
    method: str
    mixing: Mixing | None

    @property
    def exact(self) -> bool:
        return self.method in EXACT

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.rows, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.rows)


def mixing_of(trace: Float[np.ndarray, "t ..."]) -> Mixing:
    """Autocorrelation time and drift of a statistic of many independent chains."""
    from arviz_stats.base import array_stats  # not before there are chains: it takes a while

    values = trace.reshape(len(trace), -1)
    half = values[len(values) // 2 :]
    third, last = np.array_split(half, 2)
    step = last.mean(axis=0) - third.mean(axis=0)
    drift = step.mean() / max(step.std() / np.sqrt(step.size), 1e-300) if step.size > 1 else 0.0
    few = half[:, :200]  # chains, which tell enough of many
    worth = float(array_stats.ess(few, chain_axis=1, draw_axis=0, method="mean")) if few.shape[0] > 3 else few.size
    return Mixing(len(trace), few.size / worth if np.isfinite(worth) else 1.0, float(drift))
