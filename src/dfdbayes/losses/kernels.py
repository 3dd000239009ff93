"""Kernels between discrete points, for Stein discrepancies. They see rows, never parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

Matrix = Float[np.ndarray, "a b"]


class Kernel(Protocol):
    """A positive definite function of two rows."""

    def between(self, a: np.ndarray, b: np.ndarray) -> Matrix:
        """The kernel of all pairs of rows."""

    def neighbours(self, rows: np.ndarray, up: np.ndarray) -> Iterator[tuple[Matrix, Matrix]]:
        """For each coordinate: the kernel of x and y^{j+}, and of x^{j+} and y^{j+}."""


def _differing(a: np.ndarray, b: np.ndarray) -> Matrix:
    """In how many coordinates two rows differ."""
    count = np.zeros((len(a), len(b)))
    for j in range(a.shape[1]):
        count += a[:, j, None] != b[None, :, j]
    return count


@dataclass(frozen=True)
class OfDifferences:
    """A kernel that depends on the number of differing coordinates only."""

    name: str
    profile: Callable[[np.ndarray, int], np.ndarray]

    def between(self, a: np.ndarray, b: np.ndarray) -> Matrix:
        return self.profile(_differing(a, b), a.shape[1])

    def neighbours(self, rows: np.ndarray, up: np.ndarray) -> Iterator[tuple[Matrix, Matrix]]:
        """For each coordinate: the kernel of x and y^{j+}, and of x^{j+} and y^{j+}."""
        count, d = _differing(rows, rows), rows.shape[1]
        for j in range(d):
            x, y = rows[:, j], up[:, j]
            rest = count - (x[:, None] != x[None, :])
            yield self.profile(rest + (x[:, None] != y[None, :]), d), self.profile(count, d)


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


@dataclass(frozen=True)
class Robust:
    """m(x) k(x, y) m(y): rows with a small weight m hardly count.

    ``weight(rows)`` gives m for each row; `below` makes the paper's.
    """

    weight: Callable[[np.ndarray], np.ndarray]
    kernel: Kernel = HAMMING
    name: str = "robust"

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


def plain(kernel: Kernel) -> dict[str, Any] | None:
    """A kernel's name and arguments in values JSON can hold; None for one with a function of a user's own."""
    if kernel in _KNOWN.values():
        return {"name": next(name for name, known in _KNOWN.items() if known == kernel)}
    if isinstance(kernel, Robust) and isinstance(kernel.weight, below):
        inner = plain(kernel.kernel)
        return None if inner is None else {"name": "robust", "threshold": kernel.weight.threshold, "kernel": inner}
    return None


def made(described: Mapping[str, Any]) -> Kernel:
    """The kernel that `plain` described."""
    if described["name"] == "robust":
        return Robust(below(described["threshold"]), made(described["kernel"]))
    return _KNOWN[described["name"]]


_KNOWN: dict[str, Kernel] = {kernel.name: kernel for kernel in (HAMMING, OVERLAP, EQUALITY)}
