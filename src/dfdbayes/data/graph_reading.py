"""Tables, matrices and networkx graphs as the parts of an observed graph: all that can be wrong is said here."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int
from scipy import sparse

from ..errors import DataError, some
from .reading import CHUNK, Table, require_names, table_of

MOST_NODES = 5000
ENDS = (("from", "to"), ("source", "target"), ("tail", "head"), ("i", "j"))  # names of the two columns of edges
WEIGHTS = ("weight", "weights", "value", "strength", "sign", "tie")  # what edges may have that says how much they are
MODES = ("bipartite", "type", "mode")  # what networkx, igraph and people call the attribute that tells two modes apart
IDS = ("id", "node", "name", "vertex", "vertex.names", "label")

NO_MODES = (
    "Models of graphs are of one kind of nodes, any two of which may be tied. What to do: give the graph of one kind, "
    "where two are tied if they share a tie (networkx.bipartite.projected_graph), or model the table with a row for "
    "each node of one kind and a column of 0 and 1 for each of the other by 'network'."
)


class Parts(NamedTuple):
    """What a graph is made of."""

    names: tuple[str, ...]
    pairs: Int[np.ndarray, "e 2"]
    """Ties as numbers of nodes, each once."""
    directed: bool
    attributes: dict[str, np.ndarray]
    source: str


def parts_of(source: Any, nodes: Any, directed: bool | None, id: str | None) -> Parts:
    """The parts of what a user has; see `ObservedGraph.of`."""
    if hasattr(source, "nodes") and hasattr(source, "edges"):
        found = _of_networkx(source, nodes, directed, id)
    elif _is_matrix(source):
        found = _of_matrix(source, nodes, directed, id)
    else:
        found = _of_edges(*_edges(source), _node_table(nodes, id), bool(directed))
    _require_one_mode(found)
    require_names(found.names, "node")
    require_names(found.attributes)
    if len(found.names) < 2:
        raise DataError(f"{found.source} holds {len(found.names)} nodes; a graph needs at least two")
    return found


def kind(directed: bool) -> str:
    """In a word."""
    return "directed" if directed else "undirected"


def require_known(name: str, known: Iterable[str], text: str, these: str) -> None:
    """Refuse a name that is not among those there are; say which are."""
    known = list(known)
    if name in known:
        return
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else "."
    raise DataError(f"{text}{hint} {these}: {some(known) or 'none'}.")


def label(value: Any) -> str:
    """A node or a level as text: 7.0 and 7 are the same."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def values_of(values: Any) -> np.ndarray:
    """An attribute as numbers where it is, and otherwise as text with None where it is missing."""
    series = pd.Series(list(values))  # which infers numbers, and what is missing
    if pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series):
        return series.to_numpy(dtype=float)
    return np.array([None if missing else str(v) for v, missing in zip(series, series.isna(), strict=True)], object)


def _require_one_mode(found: Parts) -> None:
    """Refuse a two-mode graph, most of whose pairs cannot be tied: they would count as ties that are absent."""
    for name in (name for name in found.attributes if name.lower() in MODES):
        values = found.attributes[name].astype(str)
        across = values[found.pairs[:, 0]] != values[found.pairs[:, 1]]
        if len(set(values)) == 2 and len(across) and across.all():
            raise DataError(
                f"{found.source} is a two-mode (bipartite) graph: the attribute '{name}' has two values, and all "
                f"{len(across)} ties are between nodes that differ in it. {NO_MODES}"
            )


def _require_positive(
    weights: Iterable[Any], ends: Sequence[Sequence[Any]], name: str, source: str, remedy: str
) -> None:
    """Refuse edges whose weight is zero, negative or missing; texts are no weights."""
    numbers = pd.Series(list(weights), dtype=object)
    numbers = pd.to_numeric(numbers, errors="coerce").where(
        numbers.notna() & ~numbers.map(lambda w: isinstance(w, str))
    )
    if numbers.isna().all():
        return
    wrong = np.flatnonzero(~(numbers > 0).to_numpy())
    if len(wrong):
        a, b = (label(end) for end in ends[wrong[0]])
        raise DataError(
            f"{source}, row {wrong[0] + 1}: the edge between '{a}' and '{b}' has {name} {numbers.iloc[wrong[0]]:g} "
            f"({len(wrong)} such edges), and every edge would count as a tie. What to do: {remedy}"
        )


# -- nodes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Nodes:
    """A table of nodes, and the column that edges refer to where the user said which."""

    frame: pd.DataFrame
    id: str | None
    source: str

    def column_for(self, ends: Sequence[str]) -> str:
        """The column that holds the names of the nodes."""
        names = list(map(str, self.frame.columns))
        if self.id is not None:
            require_known(self.id, names, f"{self.source}: there is no column '{self.id}'", "The columns are")
            return self.id
        first = [name for word in IDS for name in names if name.lower() == word]
        for name in [*first, *names]:
            values = [label(value) for value in self.frame[name]]
            if len(set(values)) == len(values) and set(ends) <= set(values):
                return name
        return (first or names)[0]

    def identified(self, ends: Sequence[str]) -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
        """The nodes' names, each once, and their attributes."""
        column = self.column_for(ends)
        given = self.frame[column]
        if given.isna().any():
            row = int(np.argmax(given.isna().to_numpy())) + 1
            raise DataError(f"{self.source}, row {row}: '{column}' is missing; every node needs a name")
        names = [label(value) for value in given]
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise DataError(
                f"{self.source}: '{column}' has {some(twice, 4)} more than once. What to do: leave one row for each "
                "node, or name the column that edges refer to with id=..."
            )
        return tuple(names), {str(c): values_of(self.frame[c]) for c in self.frame.columns if str(c) != column}


def _node_table(nodes: Any, id: str | None) -> _Nodes | None:
    if nodes is None:
        if id is not None:
            raise DataError("id= names a column of the nodes; give these too, as nodes=...")
        return None
    if not isinstance(nodes, (str, Path, Mapping)) and not hasattr(nodes, "columns"):
        nodes = {"name": list(nodes)}
    if isinstance(nodes, pd.DataFrame) and nodes.index.name is not None and nodes.index.name not in nodes:
        nodes = nodes.reset_index()  # names of nodes may be there
    frame, name = _frame(nodes)
    if not len(frame.columns):
        raise DataError(f"{name} has no columns: a table of nodes needs one with their names")
    return _Nodes(frame.set_axis(list(map(str, frame.columns)), axis=1), id, name)


def _frame(source: Any) -> tuple[pd.DataFrame, str]:
    """A table as a frame, and what to call it."""
    if isinstance(source, pd.DataFrame):
        return source.reset_index(drop=True), "the table"
    if isinstance(source, (str, Path, Table)):
        table = table_of(source)
        chunks = [pd.DataFrame(chunk) for part in table.parts for chunk, _ in part.chunks(table.columns, CHUNK)]
        return pd.concat(chunks, ignore_index=True), table.name
    if hasattr(source, "to_pandas"):
        return source.to_pandas(), "the table"
    return pd.DataFrame({str(name): list(values) for name, values in source.items()}), "the table"


# -- edges -------------------------------------------------------------------------------------


def _edges(source: Any) -> tuple[pd.DataFrame, str]:
    """The two ends of every edge, as columns of a frame."""
    if isinstance(source, (str, Path, Mapping)) or hasattr(source, "columns"):
        frame, name = _frame(source)
        lower = {str(column).lower(): column for column in frame.columns}
        named = [column for column in frame.columns if not str(column).startswith("Unnamed: ")]
        if len(named) < 2:
            raise DataError(f"{name} has {len(named)} columns; edges need two, such as 'from' and 'to'")
        ends = next(([lower[one], lower[other]] for one, other in ENDS if {one, other} <= set(lower)), named[:2])
        for own in (lower[word] for word in WEIGHTS if word in lower and lower[word] not in ends):
            remedy = f"choose from which {own} on there is a tie, and give those rows alone: frame[frame['{own}'] > 0]"
            _require_positive(frame[own], frame[ends].to_numpy().tolist(), own, name, remedy)
        return frame[ends], name
    if np.ndim(source) == 2 and np.shape(source)[1] > 3 and isinstance(source, np.ndarray):
        raise DataError(_two_modes(source.shape))
    pairs = [tuple(pair) if np.ndim(pair) else (pair,) for pair in source]
    odd = next((k for k, pair in enumerate(pairs) if len(pair) < 2), None)
    if odd is not None:
        raise DataError(f"edge {odd + 1} is {pairs[odd]!r}; an edge is a pair of nodes")
    if pairs and all(len(pair) == 3 and np.ndim(pair[2]) == 0 and not isinstance(pair[2], Mapping) for pair in pairs):
        remedy = "choose from which weight on there is a tie: [(a, b) for a, b, weight in edges if weight > 0]"
        _require_positive([pair[2] for pair in pairs], [pair[:2] for pair in pairs], "weight", "the edges", remedy)
    return pd.DataFrame([pair[:2] for pair in pairs], columns=["from", "to"], dtype=object), "the edges"


def _of_edges(frame: pd.DataFrame, source: str, nodes: _Nodes | None, directed: bool) -> Parts:
    missing = frame.isna().any(axis=1).to_numpy()
    if missing.any():
        raise DataError(f"{source}, row {int(np.argmax(missing)) + 1}: an end of the edge is missing")
    ends = [[label(value) for value in frame.iloc[:, side]] for side in (0, 1)]
    seen = sorted(set(ends[0]) | set(ends[1]), key=_order)
    names, attributes = (tuple(seen), {}) if nodes is None else nodes.identified(seen)
    place = {name: i for i, name in enumerate(names)}
    unknown = [(k, end) for k, pair in enumerate(zip(*ends, strict=True)) for end in pair if end not in place]
    if unknown:
        assert nodes is not None
        more = f", and {len(unknown) - 1} more such ends of edges" if len(unknown) > 1 else ""
        raise DataError(
            f"{source}, row {unknown[0][0] + 1}: node '{unknown[0][1]}' is not among the nodes "
            f"('{nodes.column_for(seen)}' of {nodes.source}){more}. What to do: add the node, or name the column that "
            "edges refer to with id=..."
        )
    pairs = np.array([[place[a] for a in side] for side in ends], int).T.reshape(-1, 2)
    return _of_pairs(names, pairs, directed, attributes, source)


def _order(name: str) -> tuple[bool, float, str]:
    """Numbers before words, and by their size."""
    return (False, float(name), "") if name.lstrip("-").isdecimal() else (True, 0.0, name)


def _of_pairs(
    names: tuple[str, ...], pairs: Int[np.ndarray, "e 2"], directed: bool, attributes: dict[str, np.ndarray],
    source: str,
) -> Parts:  # fmt: skip
    """A graph from ties as numbers of nodes, each of which must be there once."""
    if len(names) > MOST_NODES:
        raise DataError(f"{source} has {len(names)} nodes; all pairs of at most {MOST_NODES} can be handled")
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(loops):
        raise DataError(
            f"{source}, row {loops[0] + 1}: node '{names[pairs[loops[0], 0]]}' is tied to itself ({len(loops)} such "
            "edges). What to do: remove these edges."
        )
    ordered = pairs if directed else np.sort(pairs, axis=1)
    _, first, count = np.unique(ordered, axis=0, return_index=True, return_counts=True)
    if (count > 1).any():
        one = ordered[first[np.argmax(count > 1)]]
        rows = np.flatnonzero((ordered == one).all(axis=1))[:2] + 1
        a, b = (names[i] for i in one)
        both_ways = not directed and len({tuple(pair) for pair in pairs[rows - 1]}) > 1
        remedy = "give directed=True if ties have a direction; otherwise remove" if both_ways else "remove"
        raise DataError(
            f"{source}: rows {rows[0]} and {rows[1]} are the same tie, between '{a}' and '{b}' "
            f"({int((count - 1).sum())} such repetitions). What to do: {remedy} the second."
        )
    return Parts(names, pairs, directed, attributes, source)


def _of_networkx(source: Any, nodes: Any, directed: bool | None, id: str | None) -> Parts:
    own = bool(source.is_directed())
    if directed is not None and directed != own:
        remedy = "to_undirected" if own else "to_directed"
        raise DataError(f"the networkx graph is {kind(own)}; give graph.{remedy}() to have it {kind(directed)}")
    listed, table = list(source.nodes), _node_table(nodes, id)
    place = {node: i for i, node in enumerate(listed)}
    names = tuple(map(label, listed))
    if len(set(names)) < len(names):
        raise DataError("two nodes of the graph have the same name as text")
    keys = dict.fromkeys(key for _, held in source.nodes(data=True) for key in held)
    attributes = {str(k): values_of([source.nodes[node].get(k) for node in listed]) for k in keys}
    for key in dict.fromkeys(k for *_, held in source.edges(data=True) for k in held if str(k).lower() in WEIGHTS):
        remedy = (
            f"graph.remove_edges_from([(a, b) for a, b, own in graph.edges(data={key!r}, default=1) if not own > 0]), "
            "which keeps the nodes; or choose another value from which on there is a tie"
        )
        weights = [own for *_, own in source.edges(data=key, default=1)]
        _require_positive(weights, [pair[:2] for pair in source.edges], str(key), "the networkx graph", remedy)
    pairs = np.array([(place[a], place[b]) for a, b, *_ in source.edges], int).reshape(-1, 2)
    made = _of_pairs(names, pairs, own, attributes, "the networkx graph")
    return made if table is None else _joined(made, table)


def _joined(made: Parts, table: _Nodes) -> Parts:
    """A graph with the attributes of a table whose nodes are the same."""
    names, attributes = table.identified(made.names)
    if set(names) != set(made.names):
        odd = sorted(set(names) ^ set(made.names), key=_order)
        raise DataError(f"the graph and its table of nodes differ: {some(odd, 4)} is in one of them only")
    order = [names.index(name) for name in made.names]
    return made._replace(attributes={**made.attributes, **{k: v[order] for k, v in attributes.items()}})


def _is_matrix(source: Any) -> bool:
    if sparse.issparse(source):
        return True
    if isinstance(source, pd.DataFrame):
        return list(map(str, source.columns)) == list(map(str, source.index)) and len(source) > 1
    return isinstance(source, np.ndarray) and source.ndim == 2 and source.shape[0] == source.shape[1]


def _two_modes(shape: tuple[int, ...]) -> str:
    return (
        f"an adjacency matrix has as many rows as columns; this one has {shape[0]} rows and {shape[1]} columns, as one "
        f"of a two-mode (bipartite) graph has. {NO_MODES}"
    )


def _of_matrix(source: Any, nodes: Any, directed: bool | None, id: str | None) -> Parts:
    names = tuple(map(label, source.columns)) if isinstance(source, pd.DataFrame) else None
    array = np.asarray(source.toarray() if sparse.issparse(source) else source)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise DataError(_two_modes(array.shape))
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise DataError("an adjacency matrix holds 0 and 1 only. What to do: choose from which value on there is a tie")
    if np.diag(array).any():
        raise DataError(f"node {int(np.argmax(np.diag(array))) + 1} is tied to itself; the diagonal must be zero")
    symmetric = bool((array == array.T).all())
    if directed is False and not symmetric:
        raise DataError("the adjacency matrix is not symmetric, so the graph is directed; give directed=True")
    table, n = _node_table(nodes, id), len(array)
    if names is None and table is not None:  # rows of the table are in the order of the matrix
        found, attributes = table.identified(())
        if len(found) != n:
            raise DataError(f"the adjacency matrix has {n} nodes, and the table of nodes {len(found)}")
        names, table = found, None
    else:
        attributes = {}
    names = tuple(map(str, range(1, n + 1))) if names is None else names
    kind = not symmetric if directed is None else directed
    pairs = np.argwhere(array.astype(bool) if kind else np.triu(array.astype(bool)))
    made = _of_pairs(names, pairs, kind, attributes, "the adjacency matrix")
    return made if table is None else _joined(made, table)
