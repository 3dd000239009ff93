"""Graphs: which coordinates interact. One edge set serves the model, its fit and its simulators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from ..errors import ModelError


@dataclass(frozen=True)
class Graph:
    """An undirected graph on nodes 0..size-1 without loops.

    Attributes
    ----------
    size : int
        Number of nodes.
    pairs : tuple of (int, int)
        The edges, each once, smaller node first, sorted.
    shape : tuple of int or None
        Rows and columns, if the nodes are the cells of a grid in reading order.
    names : tuple of str
        What the nodes are called, if they have names: the columns of the data that they stand for.
    """

    size: int
    pairs: tuple[tuple[int, int], ...]
    shape: tuple[int, int] | None = None
    names: tuple[str, ...] = ()

    @cached_property
    def _hash(self) -> int:
        return hash((self.size, self.pairs, self.shape, self.names))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def edges(self) -> Int[np.ndarray, "e 2"]:
        return np.array(self.pairs, dtype=np.int64).reshape(-1, 2)

    @cached_property
    def adjacency(self) -> sparse.csr_matrix:
        i, j = self.edges.T
        ones = np.ones(2 * len(i))
        return sparse.csr_matrix((ones, (np.r_[i, j], np.r_[j, i])), shape=(self.size, self.size))

    @cached_property
    def neighbours(self) -> tuple[Int[np.ndarray, "d k"], Int[np.ndarray, "d k"], Float[np.ndarray, "d k"]]:
        """For each node its neighbours, the edges to them, and 1 where there is one (0 for padding)."""
        lists: list[list[tuple[int, int]]] = [[] for _ in range(self.size)]
        for e, (i, j) in enumerate(self.pairs):
            lists[i].append((j, e))
            lists[j].append((i, e))
        width = max(1, max(map(len, lists)))
        nodes, edges = np.zeros((2, self.size, width), dtype=np.int64)
        present = np.zeros((self.size, width))
        for node, found in enumerate(lists):
            for slot, (other, edge) in enumerate(found):
                nodes[node, slot], edges[node, slot], present[node, slot] = other, edge, 1.0
        return nodes, edges, present

    @cached_property
    def colours(self) -> tuple[Int[np.ndarray, " c"], ...]:
        """Classes of nodes without edges inside, by greedy colouring: each class can be updated at once."""
        nodes, _, present = self.neighbours
        colour = np.full(self.size, -1)
        for node in range(self.size):
            taken = set(colour[nodes[node][present[node] > 0]].tolist())
            colour[node] = next(c for c in range(self.size) if c not in taken)
        return tuple(np.flatnonzero(colour == c) for c in range(colour.max() + 1))

    def blocks(self, side: int | None = None) -> Int[np.ndarray, " d"]:
        """The block of each site when a grid is cut into squares of about ``side`` cells a side.

        By default the side is the square root of the grid's, so that there are about as many blocks as cells along a
        side.
        """
        if self.shape is None:
            raise ModelError(
                "one observation can be calibrated only by resampling blocks of sites, and blocks need a grid: make "
                "the graph with dfd.graphs.grid, give more than one observation, or give beta by hand (without adjust)"
            )
        rows, columns = self.shape
        counts = [max(1, round(m / (side or max(2, round(m**0.5))))) for m in (rows, columns)]
        if counts[0] * counts[1] < 8:
            raise ModelError(
                f"a {rows} x {columns} grid holds only {counts[0] * counts[1]} blocks; at least 8 are needed to "
                "calibrate from one observation. Give more observations, or beta by hand (without adjust)."
            )
        row = np.minimum(np.arange(rows) * counts[0] // rows, counts[0] - 1)
        column = np.minimum(np.arange(columns) * counts[1] // columns, counts[1] - 1)
        return (row[:, None] * counts[1] + column[None, :]).reshape(-1)

    def grown(self, size: int | None = None) -> Int[np.ndarray, " d"]:
        """The block of each node when any graph is cut into connected blocks of about ``size`` nodes.

        Blocks grow node by node over the nearest free neighbours (breadth first); what is left between them, less than
        half a block, joins a neighbouring one. By default the size is the root of the number of nodes.

        Examples
        --------
        >>> import dfdbayes as dfd, numpy as np
        >>> np.bincount(dfd.graphs.grid(10, 10).grown(25)).tolist()
        [25, 25, 28, 22]
        """
        wanted = max(2, round(self.size**0.5)) if size is None else size
        nodes, _, present = self.neighbours
        around = [row[there > 0] for row, there in zip(nodes, present, strict=True)]
        block, number = np.full(self.size, -1), 0
        for first in range(self.size):
            if block[first] >= 0:
                continue
            own: list[int] = []
            queued, waiting = {first}, [first]
            while waiting and len(own) < wanted:
                node = waiting.pop(0)
                own.append(node)
                new = [int(other) for other in around[node] if block[other] < 0 and int(other) not in queued]
                queued.update(new)
                waiting += new
            block[own] = number
            beside = [block[other] for node in own for other in around[node] if 0 <= block[other] < number]
            if len(own) < 0.5 * wanted and beside:
                block[own] = np.bincount(beside).argmax()
            else:
                number += 1
        return block


def grid(rows: int, columns: int, periodic: bool = False) -> Graph:
    """A rectangular lattice; ``periodic`` joins opposite sides (a torus).

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> len(dfd.graphs.grid(3, 3).pairs), len(dfd.graphs.grid(3, 3, periodic=True).pairs)
    (12, 18)
    """
    if (
        not all(isinstance(m, (int, np.integer)) for m in (rows, columns))
        or rows < 1
        or columns < 1
        or rows * columns < 2
    ):
        raise ModelError(f"a grid needs at least two cells, not {rows} x {columns}")
    require_fewer(2 * rows * columns, f"a grid of {rows} x {columns} cells")
    cell = np.arange(rows * columns).reshape(rows, columns)
    pairs = [(cell[:, :-1], cell[:, 1:]), (cell[:-1], cell[1:])]
    if periodic:
        pairs += [(cell[:, -1:], cell[:, :1])] if columns > 2 else []
        pairs += [(cell[-1:], cell[:1])] if rows > 2 else []
    edges = np.concatenate([np.stack([a.reshape(-1), b.reshape(-1)], axis=1) for a, b in pairs])
    return _graph(rows * columns, edges, shape=(rows, columns))


def complete(size: int) -> Graph:
    """Every pair of nodes, row by row: (0, 1), (0, 2), ..., (size - 2, size - 1)."""
    require_fewer(size * (size - 1) // 2, f"all pairs of {size} nodes", MAX_EDGES // 8)
    return _graph(size, np.stack(np.triu_indices(size, 1), axis=1))


def empty(size: int) -> Graph:
    """No edges: independent coordinates."""
    return _graph(size, np.empty((0, 2), int))


def of(source: Any, size: int | None = None) -> Graph:
    """A graph from a `Graph`, a networkx graph, an adjacency matrix (or frame), or a sequence of edges.

    Nodes that are whole numbers are columns of the data by position, in increasing order. Nodes that have names are
    columns by name: `fit` looks for them among the data's and refuses other ones.
    """
    if isinstance(source, Graph):
        return source
    if isinstance(source, Mapping):  # as saved with a fit
        if not {"pairs", "size"} <= set(source):
            raise ModelError("a graph as a dict of neighbours is not understood; make it with networkx.Graph(...)")
        edges = np.array(source["pairs"], int).reshape(-1, 2)
        shape = tuple(source["shape"]) if source.get("shape") else None
        return _graph(source["size"], edges, shape, tuple(source.get("names") or ()))
    if hasattr(source, "nodes") and hasattr(source, "edges"):
        if getattr(source, "is_directed", bool)():
            raise ModelError("the graph is directed; these models need an undirected one: graph.to_undirected()")
        return _of_nodes(list(source.nodes), [(a, b) for a, b, *_ in source.edges])
    names: tuple[str, ...] = ()
    if hasattr(source, "index") and hasattr(source, "columns"):  # a frame
        names = tuple(map(str, source.columns))
        if sorted(map(str, source.index)) != sorted(names) or len(set(names)) < len(names):
            raise ModelError("an adjacency frame needs the same names for its rows and its columns, each once")
        rows = {str(name): place for place, name in enumerate(source.index)}
        source = source.to_numpy()[[rows[name] for name in names]]
        names = () if names == tuple(str(i) for i in range(len(names))) else names
    array = source.toarray() if sparse.issparse(source) else np.asarray(source)
    if array.ndim == 2 and array.shape[0] == array.shape[1] and (array.shape[0] != 2 or size == 2 or names):
        return _of_adjacency(array, names)
    if array.ndim == 2 and array.shape[1] == 2 and len(array):
        if array.dtype.kind not in "iu":
            named = [(str(a), str(b)) for a, b in source]
            return _of_nodes(sorted({node for edge in named for node in edge}), named)
        return _graph(int(array.max()) + 1 if size is None else size, array.astype(int))
    raise ModelError("give a networkx graph, a symmetric adjacency matrix, a list of edges, or dfd.graphs.grid(m, m)")


def _of_adjacency(array: np.ndarray, names: tuple[str, ...]) -> Graph:
    if array.dtype.kind not in "biuf" or not np.isfinite(array.astype(float)).all():
        raise ModelError("an adjacency matrix must hold numbers, 0 where there is no edge")
    if not (array == array.T).all():
        raise ModelError("an adjacency matrix must be symmetric")
    if np.diag(array).any():
        raise ModelError("an adjacency matrix must have zeros on its diagonal")
    return _graph(len(array), np.argwhere(np.triu(array, 1)), None, names)


def _of_nodes(nodes: list[Any], edges: list[tuple[Any, Any]]) -> Graph:
    """A graph of nodes that are 0, 1, 2, ... (positions), cells of a grid (in the order given), or names."""
    names: tuple[str, ...] = ()
    if set(nodes) == set(range(len(nodes))):
        nodes = sorted(nodes)
    elif not all(isinstance(node, tuple) for node in nodes):
        names = tuple(map(str, nodes))
        if len(set(names)) < len(names):
            raise ModelError("two nodes of the graph have the same name")
    order = {node: i for i, node in enumerate(nodes)}
    found = np.array([(order[a], order[b]) for a, b in edges], int).reshape(-1, 2)
    return _graph(len(order), found, None, names)


MAX_EDGES = 2**24


def require_fewer(edges: int, what: str, most: int = MAX_EDGES) -> None:
    """Refuse a graph with more edges than can be of use, before it is made."""
    if edges > most:
        raise ModelError(f"{what} would be {edges:.3g} edges; at most {most:.3g} can be handled")


def parse(text: str) -> Graph:
    """A graph from a word of the command line: ``grid:6x6``, ``torus:10x10`` or ``complete:8``."""
    kind, _, rest = text.partition(":")
    sizes = rest.split("x")
    numbers = [int(s) for s in sizes] if all(s.isdecimal() and len(s) < 10 for s in sizes) else []
    if kind in ("grid", "torus") and len(numbers) == 2:
        return grid(numbers[0], numbers[1], periodic=kind == "torus")
    if kind == "complete" and len(numbers) == 1:
        return complete(numbers[0])
    raise ModelError(f"'{text}' is not a graph; write grid:6x6, torus:6x6 or complete:8")


def _graph(size: int, edges: np.ndarray, shape: tuple[int, int] | None = None, names: tuple[str, ...] = ()) -> Graph:
    edges = np.sort(edges, axis=1)
    if len(edges) and (edges.min() < 0 or edges.max() >= size):
        raise ModelError(f"an edge names node {edges.max()}; the graph has nodes 0 to {size - 1}")
    if (edges[:, 0] == edges[:, 1]).any():
        raise ModelError("a node cannot have an edge to itself")
    edges = np.unique(edges, axis=0)
    return Graph(int(size), tuple((int(a), int(b)) for a, b in edges), shape, names)


def edge_labels(graph: Graph, names: Sequence[str]) -> tuple[str, ...]:
    """A name for each edge from the names of its nodes; names with commas are quoted where edges would look alike."""
    labels = tuple(f"{names[i]},{names[j]}" for i, j in graph.pairs)
    if len(set(labels)) == len(labels):
        return labels
    quoted = [repr(name) if "," in name else name for name in names]
    return tuple(f"{quoted[i]},{quoted[j]}" for i, j in graph.pairs)
