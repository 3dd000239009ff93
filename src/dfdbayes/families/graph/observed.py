"""One observed graph: nodes with attributes, and which pairs of them are tied.

Whatever a user has (a networkx graph, an adjacency matrix, a table of edges with a table of nodes) becomes an
`ObservedGraph`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from ...data.read.columns import label
from ...errors import DataError, require_known, some
from .adjacency import in_order, is_unnamed, labels, numbers_of
from .read import Parts, kind, parts_of, values_of


@dataclass(frozen=True, eq=False)
class ObservedGraph:
    """Nodes, their attributes, and the ties between them; no node is tied to itself.

    Attributes
    ----------
    names : tuple of str
        The nodes.
    adjacency : (n, n) bool
        Whether there is a tie from the first node to the second; symmetric unless ``directed``.
    directed : bool
    attributes : dict of (n,) arrays
        Numbers or text (objects, None where missing), by name.
    matrices : dict of (n, n) floats
        Covariates of pairs of nodes, by name.
    source : str
        Where the graph came from, for messages and reports.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> graph = dfd.ObservedGraph.of([("Ann", "Bob"), ("Bob", "Eve")], nodes={"name": ["Ann", "Bob", "Eve", "Ida"]})
    >>> graph.n, graph.ties, graph.names[3]
    (4, 2, 'Ida')
    """

    names: tuple[str, ...]
    adjacency: Bool[np.ndarray, "n n"]
    directed: bool
    attributes: Mapping[str, np.ndarray] = field(default_factory=dict)
    matrices: Mapping[str, np.ndarray] = field(default_factory=dict)
    source: str = "graph"

    @classmethod
    def of(
        cls,
        source: Any,
        nodes: Any = None,
        *,
        directed: bool | None = None,
        id: str | None = None,
        matrices: Mapping[str, Any] | None = None,
    ) -> ObservedGraph:
        """A graph from what a user has.

        Parameters
        ----------
        source
            A networkx graph; an adjacency matrix (NumPy, SciPy, lists, or a frame or file with its names); edges: the
            path of a CSV or Parquet file, a frame, a mapping of columns, or pairs; or a mapping of each node to its
            neighbours, as networkx has it. Columns of edges are ``from`` and ``to`` (or ``source`` and ``target``), in
            a frame or file otherwise the first two. Weights of edges must be above zero, and are not used; two-mode
            (bipartite) graphs are refused, and pairs of which it is not known whether they are tied. Names of nodes are
            texts as a file has them: 007 is not 7.
        nodes : optional
            A table of nodes with their attributes: a path, a frame or a mapping; or a sequence of names. Nodes that no
            edge names are isolated. Without it the nodes are those that edges name.
        directed : bool, optional
            By default as networkx has it, directed for a matrix that is not symmetric, and undirected for edges and
            neighbours.
        id : str, optional
            The column of ``nodes`` that edges refer to. By default the first that is called id, node, name, vertex or
            label and holds all ends of edges, or else the first column that does.
        matrices : mapping, optional
            Covariates of pairs of nodes, for ``edgecov``: (n, n) arrays in the order of the nodes, or frames whose rows
            and columns are called as the nodes are, in any order.

        Examples
        --------
        >>> import dfdbayes as dfd, numpy as np
        >>> dfd.ObservedGraph.of(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])).ties
        2
        """
        if isinstance(source, ObservedGraph):
            made = source
            if directed is not None and directed != made.directed:
                raise DataError(f"the graph is {kind(made.directed)}; make it anew to have it {kind(directed)}")
            if nodes is not None:
                raise DataError("the nodes are part of an ObservedGraph; give them where it is made")
        else:
            made = cls._of_parts(parts_of(source, nodes, directed, id))
        found = {str(name): _covariate(made, str(name), given) for name, given in (matrices or {}).items()}
        return replace(made, matrices={**made.matrices, **found})

    @classmethod
    def _of_parts(cls, parts: Parts) -> ObservedGraph:
        adjacency = np.zeros((len(parts.names),) * 2, bool)
        adjacency[tuple(parts.pairs.T)] = True
        adjacency = adjacency if parts.directed else adjacency | adjacency.T
        return cls(parts.names, adjacency, parts.directed, parts.attributes, source=parts.source)

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.names)

    @property
    def ties(self) -> int:
        """The number of ties."""
        return int(self.tie_of_dyad.sum())

    @cached_property
    def dyads(self) -> tuple[Int[np.ndarray, " d"], Int[np.ndarray, " d"]]:
        """The two nodes of every dyad, row by row: the smaller first, or all ordered pairs of a directed graph."""
        pairs = ~np.eye(self.n, dtype=bool)
        i, j = np.nonzero(pairs if self.directed else np.triu(pairs))
        return i, j

    @property
    def tie_of_dyad(self) -> Bool[np.ndarray, " d"]:
        """Whether each dyad is a tie."""
        return self.adjacency[self.dyads]

    def with_ties(self, tie_of_dyad: Bool[np.ndarray, " d"]) -> ObservedGraph:
        """The same nodes with other ties."""
        adjacency = np.zeros((self.n, self.n), bool)
        adjacency[self.dyads] = tie_of_dyad
        return replace(self, adjacency=adjacency if self.directed else adjacency | adjacency.T)

    def numbers(self, name: str, term: str) -> np.ndarray:
        """An attribute that must hold numbers, for a term."""
        values = self._attribute(name, term)
        if set(values) <= {"True", "False"}:
            return np.asarray(values == "True", float)
        if values.dtype == object:
            raise DataError(
                f"{term} needs numbers, and the attribute '{name}' holds text such as '{values[0]}'. What to do: use "
                f"nodefactor('{name}') or nodematch('{name}')."
            )
        infinite = np.flatnonzero(np.isinf(values))
        if len(infinite):
            raise DataError(
                f"{term}: '{name}' is {values[infinite[0]]:g} for '{self.names[infinite[0]]}' ({len(infinite)} such "
                "nodes). What to do: give a number, or remove those nodes and their ties."
            )
        return values.astype(float)

    def levels(self, name: str, term: str) -> tuple[np.ndarray, tuple[str, ...]]:
        """An attribute as numbers of its levels, for a term, and the levels in order."""
        levels, codes = np.unique(self._attribute(name, term), return_inverse=True)
        return codes, tuple(label(level) for level in levels)

    def _attribute(self, name: str, term: str) -> np.ndarray:
        if not self.attributes:
            raise DataError(
                f"{term}: the nodes have no attributes, so there is no '{name}'. What to do: give a table of nodes, "
                "ObservedGraph.of(edges, nodes='people.csv'), on the command line --nodes people.csv."
            )
        require_known(name, self.attributes, f"{term}: there is no node attribute '{name}'", "The attributes are")
        values = self.attributes[name]
        absent = [self.names[i] for i in np.flatnonzero(pd.isna(values))]
        if absent:
            raise DataError(
                f"{term}: '{name}' is missing for {len(absent)} of {self.n} nodes ({some(absent, 4)}). What to do: "
                "fill it in (a level of its own, such as 'unknown'), or remove those nodes and their ties."
            )
        return values

    def matrix(self, name: str, term: str) -> np.ndarray:
        """A covariate of pairs of nodes, for a term."""
        text = f"{term}: there is no matrix '{name}'; give it as ObservedGraph.of(..., matrices={{'{name}': ...}})"
        require_known(name, self.matrices, text, "The matrices are")
        return self.matrices[name]

    def only(self, attributes: Iterable[str], matrices: Iterable[str]) -> ObservedGraph:
        """The same graph with some of its attributes and matrices."""
        return replace(
            self,
            attributes={name: self.attributes[name] for name in attributes},
            matrices={name: self.matrices[name] for name in matrices},
        )

    def to_state(self) -> dict[str, Any]:
        return {
            "names": self.names, "directed": self.directed, "source": self.source,
            "ties": np.argwhere(self.adjacency if self.directed else np.triu(self.adjacency)),
            "attributes": self.attributes, "matrices": self.matrices,
        }  # fmt: skip

    @classmethod
    def from_state(cls, about: Mapping[str, Any], **known: Any) -> ObservedGraph:
        pairs = np.array(about["ties"], int).reshape(-1, 2)
        attributes = {name: values_of(values) for name, values in about["attributes"].items()}
        made = cls._of_parts(Parts(tuple(about["names"]), pairs, about["directed"], attributes, about["source"]))
        return replace(made, matrices={name: np.array(values, float) for name, values in about["matrices"].items()})

    def to_networkx(self) -> Any:
        """The graph for networkx, with the nodes' attributes."""
        import networkx as nx

        made = nx.DiGraph() if self.directed else nx.Graph()
        for i, name in enumerate(self.names):
            made.add_node(name, **{key: values[i] for key, values in self.attributes.items()})
        ties = np.stack(self.dyads, axis=1)[self.tie_of_dyad]
        made.add_edges_from((self.names[a], self.names[b]) for a, b in ties)
        return made

    def __repr__(self) -> str:
        return f"ObservedGraph({self.n} nodes, {self.ties} ties, {kind(self.directed)})"


def _covariate(graph: ObservedGraph, name: str, given: Any) -> np.ndarray:
    """A covariate of pairs, checked."""
    if isinstance(given, pd.DataFrame):
        given = _by_name(graph, name, given)
    array = numbers_of(given, f"matrix '{name}'")
    if array.shape != (graph.n, graph.n):
        raise DataError(f"matrix '{name}' has shape {array.shape}; the graph has {graph.n} nodes")
    np.fill_diagonal(array, 0.0)
    if not np.isfinite(array).all():
        i, j = np.argwhere(~np.isfinite(array))[0]
        raise DataError(f"matrix '{name}' has no number for '{graph.names[i]}' and '{graph.names[j]}'")
    if not graph.directed and not np.array_equal(array, array.T):
        raise DataError(f"matrix '{name}' must be symmetric, as the graph is undirected")
    return array


def _by_name(graph: ObservedGraph, name: str, given: pd.DataFrame) -> pd.DataFrame:
    """A covariate of pairs with rows and columns in the order of the nodes; by position only if neither has names."""
    if is_unnamed(given.index) and not is_unnamed(given.columns) and given.shape[0] == given.shape[1]:
        given = given.set_axis(given.columns, axis=0)  # rows that a file does not name are in the order of columns
    ordered = in_order(given, graph.names)
    if ordered is not None or (is_unnamed(given.index) and is_unnamed(given.columns)):
        return given if ordered is None else ordered
    for axis, found in (("rows", labels(given.index)), ("columns", labels(given.columns))):
        if sorted(found) != sorted(graph.names):
            raise DataError(
                f"the {axis} of matrix '{name}' are called {some(found, 4)}, and the nodes {some(graph.names, 4)}. "
                "What to do: name rows and columns as the nodes are; or give an array in the order of the nodes: "
                f"matrices={{'{name}': frame.to_numpy()}}"
            )
    raise AssertionError("names that are those of the nodes have an order")
