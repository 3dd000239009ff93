"""Rows with missing entries as the complete rows that they may be.

A row that lacks few entries is listed with all values that these may have; how likely each is depends on the model's
parameters and is no matter of this module (`inference.incomplete`). A row that lacks many is left to a sampler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from .dataset import Dataset
from .distinct import keys
from .domain import Coordinate, Domain

MOST_EACH = 64  # completions of one row that are listed,
MOST_ALL = 2**18  # and of all rows together
BEYOND = 1.5  # times the largest count that was observed, up to which a missing one may be


@dataclass(frozen=True)
class Completions:
    """Complete rows, and which of them each observed row may be.

    Attributes
    ----------
    data : Dataset
        The distinct complete rows; their counts are shares of observed rows, and follow from a model's parameters.
    owner : (c,) integers
        The observed row of every completion.
    row : (c,) integers
        The complete row that it is.
    base : (c,) floats
        Log of the factor by which a completion's share differs from the model's mass: zero where all are listed.
    """

    data: Dataset
    owner: Int[np.ndarray, " c"]
    row: Int[np.ndarray, " c"]
    base: Float[np.ndarray, " c"]


def candidates(coordinate: Coordinate, largest: int) -> np.ndarray:
    """The values that a missing entry may have; of counts those up to somewhat beyond the largest one."""
    if coordinate.kind == "finite":
        return np.asarray(coordinate.levels)
    end = coordinate.end or 0
    reach = int(np.ceil(BEYOND * abs(largest - end))) + 5
    return end + (1 if coordinate.kind == "above" else -1) * np.arange(reach + 1)


def values_of(data: Dataset, domain: Domain) -> list[np.ndarray]:
    """For every column, the values that a missing entry may have."""
    assert data.observed is not None
    found = []
    for j in range(data.d):
        coordinate, seen = domain.coordinate(j), data.rows[data.observed[:, j], j].astype(np.int64)
        found.append(candidates(coordinate, int(seen.min() if coordinate.kind == "below" else seen.max())))
    return found


def listable(data: Dataset, domain: Domain) -> Bool[np.ndarray, " u"]:
    """Rows whose completions can all be listed: those that have the fewest, as long as they are not too many."""
    assert data.observed is not None
    sizes = np.log([float(len(values)) for values in values_of(data, domain)])
    number = np.exp((~data.observed) @ sizes)
    order = np.argsort(number, kind="stable")
    found = np.zeros(len(number), bool)
    found[order] = (number[order] <= MOST_EACH + 0.5) & (np.cumsum(number[order]) <= MOST_ALL + len(number))
    return found


def listed(data: Dataset, domain: Domain, chosen: Int[np.ndarray, " k"]) -> tuple[np.ndarray, np.ndarray]:
    """All completions (c, d) of the chosen rows, and the row that each belongs to."""
    assert data.observed is not None
    values = values_of(data, domain)
    patterns, pattern = np.unique(data.observed[chosen], axis=0, return_inverse=True)
    rows: list[np.ndarray] = []
    owners: list[np.ndarray] = []
    for number, observed in enumerate(patterns):
        own, absent = chosen[pattern == number], np.flatnonzero(~observed)
        axes = np.meshgrid(*(values[j] for j in absent), indexing="ij")
        filled = np.stack([axis.reshape(-1) for axis in axes], axis=1) if len(absent) else np.zeros((1, 0), int)
        block = np.repeat(data.rows[own].astype(np.int64), len(filled), axis=0)
        block[:, absent] = np.tile(filled, (len(own), 1))
        rows.append(block)
        owners.append(np.repeat(own, len(filled)))
    if not rows:
        return np.zeros((0, data.d), np.int64), np.zeros(0, np.int64)
    return np.concatenate(rows), np.concatenate(owners)


def of_rows(data: Dataset, parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Completions:
    """Completions from parts: complete rows, the observed rows that these belong to, and the logs of their factors."""
    rows, owner, base = (np.concatenate([part[i] for part in parts]) for i in range(3))
    given = None if data.given is None else data.given[owner]
    codes = [*rows.T, *(() if given is None else (np.unique(g, return_inverse=True)[1] for g in given.T))]
    _, first, row = np.unique(keys(codes)[0], return_index=True, return_inverse=True)
    each = np.bincount(owner, minlength=len(data.rows))
    counts = np.bincount(row, weights=(data.counts / np.maximum(each, 1))[owner], minlength=len(first))
    complete = replace(
        data, rows=rows[first], counts=counts, first=data.first[owner[first]], observed=None, repeats=None,
        given=None if given is None else given[first], cluster=None,
    )  # fmt: skip
    return Completions(complete, owner, row, base)
