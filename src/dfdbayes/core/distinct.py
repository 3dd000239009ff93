"""Distinct rows of a table and how often each occurs, merged chunk by chunk.

The outcome does not depend on how the rows were cut into chunks, nor on their order (but for where each first stands).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

BUCKETS = 64


@dataclass(frozen=True)
class Tally:
    """Distinct rows, sorted; with observation weights a row is distinct by its weight too.

    Attributes
    ----------
    columns : (d, u) integers
        The distinct rows, one line a column, in the smallest type that holds them.
    repeats : (u,) floats
        How many observations each distinct row stands for.
    first : (u,) integers
        The number of the row where each is first seen.
    weights : (u,) floats, optional
        What one observation of it weighs.
    extra : (k, u) floats, optional
        What else makes a row distinct and is not modelled: covariates, and the cluster it belongs to.
    total, dropped : int
        Rows seen, and rows among them that were left out.
    """

    columns: Int[np.ndarray, "d u"]
    repeats: Float[np.ndarray, " u"]
    first: Int[np.ndarray, " u"]
    weights: Float[np.ndarray, " u"] | None = None
    total: int = 0
    dropped: int = 0
    extra: Float[np.ndarray, "k u"] | None = None

    @property
    def size(self) -> int:
        return self.columns.shape[1]

    def without_weights(self) -> Tally:
        """Rows by value alone, each observation repeated as often as it weighs."""
        assert self.weights is not None
        repeats = self.repeats * self.weights
        return condense(self.columns, self.first, repeats, None, self.total, self.dropped, self.extra)

    def buckets(self) -> Int[np.ndarray, " u"]:
        """A bucket for each row, given by its values alone, whatever else the data hold."""
        return bucket_of(self.columns)

    def part(self, chosen: np.ndarray) -> Tally:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        extra = None if self.extra is None else self.extra[:, chosen]
        return Tally(self.columns[:, chosen], self.repeats[chosen], self.first[chosen], weights, extra=extra)


def condense(
    columns: Sequence[np.ndarray] | np.ndarray,
    first: np.ndarray,
    repeats: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    total: int = 0,
    dropped: int = 0,
    extra: np.ndarray | None = None,
) -> Tally:
    """The distinct ones among rows given by column; ``first`` must be increasing among equal rows."""
    more = [*([] if extra is None else extra), *([] if weights is None else [weights])]
    codes = [*columns, *(np.unique(part, return_inverse=True)[1] for part in more)]
    key, size = keys(codes)
    if size <= max(4 * len(key), 2**16):
        summed = np.bincount(key, weights=repeats, minlength=size)
        place = np.empty(size, dtype=np.int64)
        place[key[::-1]] = np.arange(len(key) - 1, -1, -1)  # of equal keys the last written stays: the first row
        seen = np.bincount(key, minlength=size) > 0 if repeats is not None else summed > 0
        index, counts = place[seen], summed[seen].astype(float)
    else:
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        index = order[begins]
        counts = np.diff([*begins, len(key)]) if repeats is None else np.add.reduceat(repeats[order], begins)
    kept = [_compact(column[index]) for column in columns]
    held = None if weights is None else weights[index]
    besides = None if extra is None else extra[:, index]
    return Tally(np.stack(kept), np.asarray(counts, float), first[index], held, total, dropped, besides)


def merge(parts: Sequence[Tally]) -> Tally:
    """Tallies of stretches of a table, in order, as one."""
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate([part.columns[j] for part in parts]) for j in range(len(parts[0].columns))]
    weights = None
    if parts[0].weights is not None:
        weights = np.concatenate([part.weights for part in parts if part.weights is not None])
    return condense(
        columns,
        np.concatenate([part.first for part in parts]),
        np.concatenate([part.repeats for part in parts]),
        weights,
        sum(part.total for part in parts),
        sum(part.dropped for part in parts),
        None if parts[0].extra is None else np.concatenate([p.extra for p in parts if p.extra is not None], axis=1),
    )


class Tallies:
    """Tallies as they come, merged whenever half as much is waiting as is merged."""

    def __init__(self) -> None:
        self._parts: list[Tally] = []
        self.total = self.dropped = 0

    def add(self, part: Tally) -> None:
        self.total, self.dropped = self.total + part.total, self.dropped + part.dropped
        self._parts.append(part)
        waiting = sum(p.size for p in self._parts[1:])
        if waiting > max(self._parts[0].size // 2, 2**20) or len(self._parts) > 32:
            self._parts = [merge(self._parts)]

    def merged(self) -> Tally | None:
        self._parts = [merge(self._parts)] if self._parts else []
        return self._parts[0] if self._parts else None


def keys(columns: Sequence[np.ndarray]) -> tuple[Int[np.ndarray, " n"], int]:
    """One integer a row, ordered as the rows are, and a bound above all of them."""
    key, size = np.zeros(len(columns[0]), dtype=np.int64), 1
    if not len(key):
        return key, 1
    for column in columns:
        low, high = int(column.min()), int(column.max())
        span = high - low + 1
        if size * span < 2**62:
            key, size = key * span + (column.astype(np.int64) - low), size * span
        else:  # number what there is, which leaves no gaps
            (values, key), (levels, code) = (np.unique(part, return_inverse=True) for part in (key, column))
            key, size = key * len(levels) + code, len(values) * len(levels)
    return key, size


def _compact(column: np.ndarray) -> np.ndarray:
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return column.astype(kind)
    return column.astype(np.int64)


def bucket_of(columns: np.ndarray) -> Int[np.ndarray, " u"]:
    """A number below `BUCKETS` from each row's values: a fixed mixture of their bits."""
    mixed = np.full(columns.shape[1], 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in columns:
        mixed ^= column.astype(np.int64).view(np.uint64)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(58)).astype(np.int64)
