"""What terms of random graphs see of a graph: counts about each dyad, or about the whole.

A term is written once, in these words, and serves twice: on NumPy arrays of all dyads of many graphs (`AllDyads`, for
losses), and on one dyad of each of many chains in compiled code (in `simulators/graphs.py`). A dyad is an ordered pair
of nodes (i, j), its tie goes from i to j; in an undirected graph the order does not matter. All counts are those of the
graph *without* the tie between i and j.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

FEW = 0.1  # share of ties up to which products of matrices go by their non-zero entries


class AbstractDyads(ABC):
    """Counts about dyads; every one is an array of the same shape, with an entry for each dyad that is looked at.

    Attributes
    ----------
    nodes : int
        How many nodes there are.
    directed : bool
    tie : ints
        1 where the tie is there.
    reciprocal : ints
        1 where the tie from j to i is there.
    sent_i, received_j : ints
        Other ties that i sends, and that j receives.
    sent_j : ints
        Ties that j sends; of an undirected graph without that to i, so that with ``sent_i`` these are the two degrees.
    two_paths : ints
        Nodes k with ties i to k and k to j: the shared partners of an undirected graph.
    two_paths_back : ints
        Nodes k with ties j to k and k to i.
    both_sent, both_received : ints
        Nodes that receive ties from both, and that send ties to both.
    """

    nodes: int
    directed: bool
    tie: Any
    reciprocal: Any
    sent_i: Any
    sent_j: Any
    received_j: Any
    two_paths: Any
    two_paths_back: Any
    both_sent: Any
    both_received: Any

    @abstractmethod
    def look_up(self, values: Float[np.ndarray, " k"], counts: Any) -> Any:
        """``values[counts]``: a function of counts is a list of its values at 0, 1, 2, ..."""

    @abstractmethod
    def beside(self, values: Float[np.ndarray, " k"]) -> Any:
        """The sum of ``values[s]`` over other ties that gain a shared partner by this one and have s without it.

        Those are ties i to k where j sends to k too (then j is the partner), and k to j where k sends to i too (then i
        is).
        """


class Whole:
    """Counts about whole graphs, from adjacency matrices (b, n, n): one number, or one line, for each graph."""

    def __init__(self, adjacency: np.ndarray, directed: bool) -> None:
        self.adjacency, self.directed = adjacency.astype(float), directed

    @property
    def nodes(self) -> int:
        return self.adjacency.shape[-1]

    @cached_property
    def sent(self) -> Int[np.ndarray, "b n"]:
        """Ties that each node sends; of an undirected graph its degree."""
        return self.adjacency.sum(axis=-1).astype(np.int64)

    @cached_property
    def received(self) -> Int[np.ndarray, "b n"]:
        return self.adjacency.sum(axis=-2).astype(np.int64)

    @cached_property
    def mutual(self) -> Float[np.ndarray, " b"]:
        """Pairs of nodes with ties both ways."""
        return 0.5 * _dot(self.adjacency, self.transposed)

    @property
    def transposed(self) -> np.ndarray:
        return np.swapaxes(self.adjacency, -1, -2)

    @cached_property
    def two_paths(self) -> Int[np.ndarray, "b n n"]:
        """Paths i to k to j for every i and j: shared partners in an undirected graph."""
        return _whole_numbers(self.adjacency, self.adjacency)

    @property
    def closed(self) -> Float[np.ndarray, " b"]:
        """Two-paths i to k to j that the tie i to j closes (transitive triples)."""
        return _dot(self.adjacency, self.two_paths)

    @property
    def cycles(self) -> Float[np.ndarray, " b"]:
        """Cycles of three ties."""
        return _dot(self.transposed, self.two_paths) / 3.0

    def over_ties(self, values: Float[np.ndarray, " k"]) -> Float[np.ndarray, " b"]:
        """The sum over all ties of ``values[shared partners]``."""
        total = _dot(self.adjacency, values[self.two_paths])
        return total if self.directed else 0.5 * total


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...ij->...", a, b)


def _product(a: Float[np.ndarray, "b n n"], b: Float[np.ndarray, "b n n"]) -> Float[np.ndarray, "b n n"]:
    """The product of each two matrices; most graphs have few ties."""
    if np.count_nonzero(a) > FEW * a.size:
        return a @ b
    return np.stack([(sparse.csr_array(x) @ sparse.csr_array(y)).toarray() for x, y in zip(a, b, strict=True)])


def _whole_numbers(a: np.ndarray, b: np.ndarray) -> Int[np.ndarray, "b n n"]:
    return np.rint(_product(a, b)).astype(np.int64)


class AllDyads(AbstractDyads):
    """Counts about all dyads of graphs at once: entry [b, i, j] is about the tie from i to j of graph b."""

    def __init__(self, adjacency: np.ndarray, directed: bool) -> None:
        self.whole = Whole(adjacency, directed)
        self.directed, self.nodes = directed, adjacency.shape[-1]
        self.tie = adjacency.astype(np.int64)

    @cached_property
    def reciprocal(self) -> np.ndarray:
        return np.swapaxes(self.tie, -1, -2)

    @cached_property
    def sent_i(self) -> np.ndarray:
        return self.whole.sent[..., :, None] - self.tie

    @cached_property
    def sent_j(self) -> np.ndarray:
        return self.whole.sent[..., None, :] - (0 if self.directed else self.tie)

    @cached_property
    def received_j(self) -> np.ndarray:
        return self.whole.received[..., None, :] - self.tie

    @property
    def two_paths(self) -> np.ndarray:
        return self.whole.two_paths

    @property
    def two_paths_back(self) -> np.ndarray:
        return np.swapaxes(self.whole.two_paths, -1, -2)

    @cached_property
    def both_sent(self) -> np.ndarray:
        return _whole_numbers(self.whole.adjacency, self.whole.transposed) if self.directed else self.two_paths

    @cached_property
    def both_received(self) -> np.ndarray:
        return _whole_numbers(self.whole.transposed, self.whole.adjacency) if self.directed else self.two_paths

    def look_up(self, values: Float[np.ndarray, " k"], counts: Any) -> np.ndarray:
        return values[counts]

    def beside(self, values: Float[np.ndarray, " k"]) -> np.ndarray:
        """Where the tie (i, j) is there, it is one of the shared partners of the ties beside it."""
        own = self.whole.adjacency
        without = self._beside(own * values[np.maximum(self.two_paths - 1, 0)])
        return np.where(self.tie > 0, without, self._beside(own * values[self.two_paths]))

    def _beside(self, weights: np.ndarray) -> np.ndarray:
        first = _product(weights, self.whole.transposed)
        return first + (_product(self.whole.transposed, weights) if self.directed else np.swapaxes(first, -1, -2))
