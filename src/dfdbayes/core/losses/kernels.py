"""Kernels between discrete points, for Stein discrepancies. They see rows, never parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from ..._util.codec import UnwritableError, by_name, from_plain, to_plain
from ..registry import Registry

Matrix = Float[np.ndarray, "a b"]


@runtime_checkable
class Kernel(Protocol):
    """A positive definite function of two rows."""

    def between(self, a: np.ndarray, b: np.ndarray) -> Matrix:
        """The kernel of all pairs of rows."""

    def neighbours(self, rows: np.ndarray, up: np.ndarray) -> Iterator[tuple[Matrix, Matrix]]:
        """For each coordinate: the kernel of x and y^{j+}, and of x^{j+} and y^{j+}."""


KERNELS: Registry[Any] = Registry("kernel")
by_name(Kernel, KERNELS)


def one_hot(rows: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Rows as ones and zeros, a column for each coordinate and value; the same of other rows; the columns' coordinates.

    Counts of these are exact in single precision. None where there are so many values that it would not pay.
    """
    values = [np.unique(np.concatenate([rows[:, j], others[:, j]])) for j in range(rows.shape[1])]
    owner = np.repeat(np.arange(len(values)), [len(v) for v in values])
    if len(owner) > 16 * len(values):  # on average of a coordinate: then loops compare rows faster than products do
        return None
    every = np.concatenate(values)
    first, second = ((part[:, owner] == every).astype(np.float32) for part in (rows, others))
    return first, second, owner


def differing(a: np.ndarray, b: np.ndarray) -> Int[np.ndarray, "a b"]:
    """In how many coordinates two rows differ."""
    d, found = a.shape[1], one_hot(a, b)
    if found is not None:
        return d - (found[0] @ found[1].T).astype(np.intp)
    count = np.zeros((len(a), len(b)), np.intp)
    for j in range(d):
        count += a[:, j, None] != b[None, :, j]
    return count


@dataclass(frozen=True)
class OfDifferences:
    """A kernel that depends on the number of differing coordinates only."""

    name: str
    profile: Callable[[np.ndarray, int], np.ndarray]

    def table(self, d: int) -> Float[np.ndarray, " d+1"]:
        """The kernel of rows that differ in 0, 1, ..., d coordinates."""
        return np.asarray(self.profile(np.arange(d + 1.0), d), float)

    def between(self, a: np.ndarray, b: np.ndarray) -> Matrix:
        return self.table(a.shape[1])[differing(a, b)]

    def neighbours(self, rows: np.ndarray, up: np.ndarray) -> Iterator[tuple[Matrix, Matrix]]:
        """For each coordinate: the kernel of x and y^{j+}, and of x^{j+} and y^{j+}."""
        count, table = differing(rows, rows), self.table(rows.shape[1])
        both = table[count]
        for x, y in zip(rows.T, up.T, strict=True):
            yield table[count + (x[:, None] == x) - (x[:, None] == y)], both


def _exponential(count: np.ndarray, d: int) -> np.ndarray:
    return np.exp(-count / d)


def _overlap(count: np.ndarray, d: int) -> np.ndarray:
    return 1.0 - count / d


def _equality(count: np.ndarray, d: int) -> np.ndarray:
    return np.where(count == 0, 1.0, 0.0)


HAMMING = OfDifferences("hamming", _exponential)
"""exp(-(number of differing coordinates) / d), the default."""

OVERLAP = OfDifferences("overlap", _overlap)
"""The share of equal coordinates."""

EQUALITY = OfDifferences("equality", _equality)
"""1 for equal points, otherwise 0."""


@dataclass(frozen=True)
class Custom:
    """A user's kernel: ``function(a, b)`` of two arrays of rows gives the matrix of all pairs."""

    function: Callable[[np.ndarray, np.ndarray], Matrix]
    name: str = "custom"

    def between(self, a: np.ndarray, b: np.ndarray) -> Matrix:
        return np.asarray(self.function(a, b), float)

    def neighbours(self, rows: np.ndarray, up: np.ndarray) -> Iterator[tuple[Matrix, Matrix]]:
        for j in range(rows.shape[1]):
            moved = rows.copy()
            moved[:, j] = up[:, j]
            yield self.between(rows, moved), self.between(moved, moved)


@KERNELS.register("robust")
@dataclass(frozen=True)
class Robust:
    """m(x) k(x, y) m(y): rows with a small weight m hardly count.

    ``weight(rows)`` gives m for each row; `below` makes the paper's.
    """

    weight: Callable[[np.ndarray], np.ndarray]
    kernel: Kernel = HAMMING
    name: str = "robust"

    def to_state(self) -> dict[str, Any]:
        if not isinstance(self.weight, below):
            raise UnwritableError("the weight of the kernel is a function of a user's own")
        return {"threshold": self.weight.threshold, "kernel": to_plain(self.kernel, Kernel)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], **known: Any) -> Self:
        return cls(below(from_plain(state["threshold"], float)), from_plain(state["kernel"], Kernel))

    def between(self, a: np.ndarray, b: np.ndarray) -> Matrix:
        return self.weight(a)[:, None] * self.kernel.between(a, b) * self.weight(b)[None, :]

    def neighbours(self, rows: np.ndarray, up: np.ndarray) -> Iterator[tuple[Matrix, Matrix]]:
        here = self.weight(rows)
        for j, (one, both) in enumerate(self.kernel.neighbours(rows, up)):
            moved = rows.copy()
            moved[:, j] = up[:, j]
            there = self.weight(moved)
            yield here[:, None] * one * there[None, :], there[:, None] * both * there[None, :]


@dataclass(frozen=True)
class below:  # a function with a memory, in the paper's words
    """The paper's weight: a sigmoid of ``threshold`` minus the absolute sum of the row."""

    threshold: float

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.exp(-(self.threshold - np.abs(rows.sum(axis=1)))))


def neighbour_kernels(kernel: Kernel, rows: np.ndarray, up: np.ndarray) -> Iterator[tuple[Matrix, Matrix]]:
    """For each coordinate j: k(x, y^{j+}) and k(x^{j+}, y^{j+}) for all pairs of rows; ``up`` are the increments."""
    return kernel.neighbours(rows, up)


def of_differences(kernel: Kernel) -> tuple[OfDifferences, tuple[Callable[[np.ndarray], np.ndarray], ...]] | None:
    """A kernel as m(x) k(x, y) m(y) with k of differences: k, and the weights whose product m is; None for others."""
    if isinstance(kernel, OfDifferences):
        return kernel, ()
    inner = of_differences(kernel.kernel) if isinstance(kernel, Robust) else None
    return None if inner is None else (inner[0], (*inner[1], kernel.weight))  # type: ignore[attr-defined]


for _kernel in (HAMMING, OVERLAP, EQUALITY):
    KERNELS.register(_kernel.name)(_kernel)
