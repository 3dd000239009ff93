"""Sites: one entry per (row, coordinate), with where it can move, how much its terms count, and who owns it.

A coordinate has one move either way, and a category one to every other (`Domain.moves`). Losses are sums over the moves
of sites. A bootstrap replicate gives new weights to the *units* that own them: rows as a rule, clusters of rows where
these belong together, blocks of sites where there is a single observation, windows of neighbouring rows of a series.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from ..errors import SettingError
from .dataset import PLACE, Dataset
from .domain import Domain

ROWS, CLUSTERS, BLOCKS, WINDOWS = "rows", "clusters", "blocks", "windows"


@dataclass(frozen=True)
class Units:
    """What is resampled.

    Attributes
    ----------
    kind : {"rows", "clusters", "blocks", "windows"}
        Distinct rows, clusters of rows, blocks of sites of a single observation, or windows of neighbouring rows of a
        series, which overlap: the units themselves are rows then.
    weights : (v,) floats
        The data's own weight of each unit.
    observations : (v,) floats
        How many independent observations stand behind each; equal to the weights unless observations have weights.
    owner : integers, optional
        The unit of each row (u,) of clusters, or of each site (d,) of blocks; rows are their own units.
    place : (v,) integers, optional
        Where each row is in time, of windows.
    length : float, optional
        How many rows a window has; chosen from their gradients where it is not given.
    """

    kind: str
    weights: Float[np.ndarray, " v"]
    observations: Float[np.ndarray, " v"]
    owner: Int[np.ndarray, " k"] | None = None
    place: Int[np.ndarray, " v"] | None = None
    length: float | None = None

    @property
    def each(self) -> Float[np.ndarray, " v"]:
        """What one observation of each unit weighs: 1, unless the data have observation weights."""
        return self.weights / self.observations

    def __str__(self) -> str:
        if self.kind == ROWS:
            return "rows"
        if self.kind == WINDOWS:
            return f"windows of {f'{self.length:g} ' if self.length else ''}neighbouring rows"
        return f"{len(self.weights)} {self.kind}" + (" of sites of one observation" if self.kind == BLOCKS else "")


def rows_of(data: Dataset) -> Units:
    """Every distinct row as a unit, with the number of observations that equal it."""
    return Units(ROWS, data.counts, data.observations)


def clusters_of(data: Dataset) -> Units:
    """The data's clusters as units; rows of different clusters are distinct."""
    assert data.cluster is not None
    ones = np.ones(int(data.cluster.max()) + 1)
    return Units(CLUSTERS, ones, ones, data.cluster)


def blocks_of(blocks: Int[np.ndarray, " d"]) -> Units:
    """Blocks of the sites of one observation as units, from the block of each site."""
    ones = np.ones(int(blocks.max()) + 1)
    return Units(BLOCKS, ones, ones, blocks)


def windows_of(data: Dataset, length: float | None) -> Units:
    """Windows of rows of a series; an error where the data are none."""
    if PLACE not in data.given_columns or data.given is None:
        raise SettingError(
            "the data have no order in time. What to do: name its column with time=..., or use lag(...) in the formula."
        )
    place = data.given[:, data.given_columns.index(PLACE)].astype(np.int64)
    return Units(WINDOWS, data.counts, data.observations, None, place, length)


def blocks_of_rows(blocks: Int[np.ndarray, " u"]) -> Units:
    """Blocks of the sites of one map, whose rows are sites: clusters of rows."""
    ones = np.ones(int(blocks.max()) + 1)
    return Units(CLUSTERS, ones, ones, blocks)


def unscaled(sites: Sites) -> tuple[float, float]:
    """Every term counts once."""
    return 1.0, 1.0


@dataclass(frozen=True)
class Sites:
    """All sites of a data set, their neighbours computed when they are asked for.

    Attributes
    ----------
    data : Dataset
    domain : Domain
        Says which values are neighbours.
    units : Units
    scales : callable
        ``scales(sites)`` gives how much the terms of the two ratios of every move count.
    """

    data: Dataset
    domain: Domain
    units: Units
    scales: Callable[[Sites], tuple[Any, Any]] = unscaled

    @property
    def rows(self) -> Int[np.ndarray, "u d"]:
        return self.data.rows

    @property
    def given(self) -> Float[np.ndarray, "u q"] | None:
        """Covariates of every row."""
        return self.data.given

    @cached_property
    def _down(self) -> tuple[np.ndarray, np.ndarray]:
        return self.domain.decrement(self.rows)

    @cached_property
    def _up(self) -> tuple[np.ndarray, np.ndarray]:
        return self.domain.increment(self.rows)

    @property
    def j(self) -> Int[np.ndarray, " m"]:
        """The coordinate of each move."""
        return self.domain.moves

    @property
    def down(self) -> Int[np.ndarray, "u m"]:
        """The coordinate's value after a decrement; its own where there is no such neighbour."""
        return self._down[0]

    @property
    def up(self) -> Int[np.ndarray, "u m"]:
        """The same after an increment."""
        return self._up[0]

    @cached_property
    def _scales(self) -> tuple[Any, Any]:
        return self.scales(self)

    @cached_property
    def minus(self) -> Float[np.ndarray, "u m"]:
        """How much the term of the ratio to the decrement counts; 0 where there is no decrement."""
        return self._scaled(0, self._down[1])

    @cached_property
    def plus(self) -> Float[np.ndarray, "u m"]:
        """The same for the increment."""
        return self._scaled(1, self._up[1])

    def _scaled(self, which: int, exists: Bool[np.ndarray, "u m"]) -> Float[np.ndarray, "u m"]:
        scale = self._scales[which]
        if np.ndim(scale) and np.shape(scale) != exists.shape:
            raise SettingError(
                f"the loss scales its terms by an array of shape {np.shape(scale)}; {self.domain!r} has {len(self.j)} "
                f"moves for each of {len(exists)} rows. Give one number for each: columns are those of domain.moves."
            )
        return np.where(exists, scale, 0.0)

    def at(self, rows: Int[np.ndarray, " k"]) -> Sites:
        """The sites of some of the distinct rows."""
        data = self.data.at(rows)
        return replace(self, data=data, units=rows_of(data))

    def in_slices(self, size: int) -> Iterator[Sites]:
        """The same sites, so many rows at a time."""
        for first in range(0, len(self.rows), size):
            yield self.at(np.arange(first, min(first + size, len(self.rows))))

    def by_unit(self, lines: Float[np.ndarray, "u p"]) -> Float[np.ndarray, "v p"]:
        """Lines of rows summed over what each unit of weight 1 owns of them."""
        if self.units.owner is None:
            return lines
        found = np.zeros((len(self.units.weights), lines.shape[1]))
        np.add.at(found, self.units.owner, lines * self.data.counts[:, None])
        return found

    def of_rows(self, weights: Float[np.ndarray, "*batch v"]) -> Float[np.ndarray, "*batch u"]:
        """Weights of rows from weights of units that own whole rows."""
        weights = np.asarray(weights, float)
        return weights if self.units.owner is None else weights[..., self.units.owner] * self.data.counts
