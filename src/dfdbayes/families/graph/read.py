"""Tables, matrices and networkx graphs as the parts of an observed graph: all that can be wrong is said here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int

from ...data.read.columns import label
from ...data.read.reading import Table, require_names, require_one_length, table_of, unmasked
from ...data.read.text import are_numbers, nameless
from ...errors import DataError, require_known, some
from .adjacency import (
    NO_MODES,
    Matrix,
    are_columns,
    ends_of,
    is_unnamed,
    matrix_of,
    named_by_first_column,
    neighbours_of,
    require_known_ties,
)

WEIGHTS = ("weight", "weights", "value", "strength", "sign", "tie")  # what edges may have that says how much they are
MODES = ("bipartite", "type", "mode")  # what networkx, igraph and people call the attribute that tells two modes apart
IDS = ("id", "node", "name", "vertex", "vertex.names", "label")


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
    if is_networkx(source):
        found = _of_networkx(source, nodes, directed, id)
    elif isinstance(source, Mapping) and not are_columns(source):
        found = _of_neighbours(source, nodes, bool(directed), id)
    else:
        table = _given(source) if _is_table(source) else None
        matrix = matrix_of(source if table is None else table.named)
        if matrix is not None:
            found = _of_matrix(matrix, nodes, directed, id)
        else:
            ends, name = _pairs(source) if table is None else _ends(table)
            found = _of_edges(ends, name, _node_table(nodes, id), bool(directed))
    _require_one_mode(found)
    require_names(found.names, "node")
    require_names(found.attributes)
    if len(found.names) < 2:
        raise DataError(f"{found.source} holds {len(found.names)} nodes; a graph needs at least two")
    return found


def is_networkx(source: Any) -> bool:
    """Whether it is a graph of networkx, and no frame with columns of these names."""
    return hasattr(source, "nodes") and callable(getattr(source, "is_directed", None)) and hasattr(source, "adj")


def kind(directed: bool) -> str:
    """In a word."""
    return "directed" if directed else "undirected"


def values_of(values: Any) -> np.ndarray:
    """An attribute as numbers where it is, and otherwise as text with None where it is missing."""
    listed = list(unmasked(values))
    series = pd.Series([None if value is pd.NA else value for value in listed])  # infers numbers, and what is missing
    if are_numbers(series):
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


# -- tables ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Given:
    """A table of edges or nodes."""

    values: pd.DataFrame
    written: pd.DataFrame
    """The same as it stands in a file, for names of nodes: 007 is not 7."""
    source: str

    def names(self, column: Any) -> list[str | None]:
        """Nodes in a column; None where one is missing."""
        absent = pd.isna(self.values[column])
        return [None if no else label(v) for v, no in zip(self.written[column], absent, strict=True)]

    @property
    def named(self) -> pd.DataFrame:
        """With the names of rows, if these are in the first column, as files have them."""
        return named_by_first_column(self.values, self.written) if is_unnamed(self.values.index) else self.values


def _is_table(source: Any) -> bool:
    return isinstance(source, (str, Path, Table, Mapping)) or hasattr(source, "columns")


def _given(source: Any) -> _Given:
    """What a user has as a table."""
    if isinstance(source, (str, Path, Table)):
        table = table_of(source)
        return _Given(table.frame(), table.as_written(), table.name)
    if isinstance(source, pd.DataFrame):
        frame = source
    elif hasattr(source, "to_pandas"):
        frame = source.to_pandas()
    else:
        frame = _of_columns(source)
    twice = np.flatnonzero(frame.columns.duplicated())
    if len(twice):  # then as pandas calls those of a file
        frame = frame.set_axis([f"{c}.{j}" if j in twice else c for j, c in enumerate(frame.columns)], axis=1)
    return _Given(frame, frame, "the table")


def _of_columns(source: Mapping[Any, Any]) -> pd.DataFrame:
    columns = {str(name): column for name, column in source.items()}
    odd = next((name for name, own in columns.items() if isinstance(own, str) or not hasattr(own, "__iter__")), None)
    if odd is not None:
        raise DataError(f"a mapping is of columns, such as {{'name': ['a', 'b']}}; '{odd}' is {columns[odd]!r}")
    listed = {name: list(own.values() if isinstance(own, Mapping) else unmasked(own)) for name, own in columns.items()}
    require_one_length(listed)
    return pd.DataFrame({name: pd.Series(own, dtype=None if own else object) for name, own in listed.items()})


# -- nodes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Nodes:
    """A table of nodes, and the column that edges refer to where the user said which."""

    table: _Given
    id: str | None

    @property
    def source(self) -> str:
        return self.table.source

    def column_for(self, ends: Sequence[str]) -> str:
        """The column that holds the names of the nodes."""
        names = list(self.table.values.columns)
        if self.id is not None:
            require_known(self.id, names, f"{self.source}: there is no column '{self.id}'")
            return self.id
        first = [name for word in IDS for name in names if name.lower() == word]
        for name in [*first, *names]:
            values = self.table.names(name)
            if len(set(values)) == len(values) and set(ends) <= set(values):
                return name
        return (first or names)[0]

    def identified(self, ends: Sequence[str]) -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
        """The nodes' names, each once, and their attributes."""
        column = self.column_for(ends)
        names = self.table.names(column)
        if None in names:
            row = names.index(None) + 1
            raise DataError(f"{self.source}, row {row}: '{column}' is missing; every node needs a name")
        known = tuple(name for name in names if name is not None)
        twice = [name for name, count in Counter(known).items() if count > 1]
        if twice:
            raise DataError(
                f"{self.source}: '{column}' has {some(twice, 4)} more than once. What to do: leave one row for each "
                "node, or name the column that edges refer to with id=..."
            )
        values = self.table.values
        return known, {name: values_of(values[name]) for name in values.columns if name != column}


def _node_table(nodes: Any, id: str | None) -> _Nodes | None:
    if nodes is None:
        if id is not None:
            raise DataError("id= names a column of the nodes; give these too, as nodes=...")
        return None
    if not _is_table(nodes):
        nodes = {"name": list(nodes)}
    if isinstance(nodes, Mapping) and nodes and all(isinstance(own, Mapping) for own in nodes.values()):
        listed = dict.fromkeys(key for own in nodes.values() for key in own)  # as networkx has them: of each node
        nodes = {"name": list(nodes)} | {key: [own.get(key) for own in nodes.values()] for key in listed}
    if isinstance(nodes, pd.DataFrame) and nodes.index.name is not None and nodes.index.name not in nodes:
        nodes = nodes.reset_index()  # names of nodes may be there
    table = _given(nodes)
    if not len(table.values.columns):
        raise DataError(f"{table.source} has no columns: a table of nodes needs one with their names")
    names = list(map(str, table.values.columns))
    values, written = (frame.set_axis(names, axis=1) for frame in (table.values, table.written))
    return _Nodes(_Given(values, written, table.source), id)


# -- edges -------------------------------------------------------------------------------------


def _ends(table: _Given) -> tuple[pd.DataFrame, str]:
    """The two ends of every edge in a table, as columns of a frame."""
    columns, name = list(table.values.columns), table.source
    lower = {str(column).lower(): column for column in columns}
    named = [column for column in columns if not nameless([str(column)])]
    if len(named) < 2:
        raise DataError(f"{name} has {len(named)} columns; edges need two, such as 'from' and 'to'")
    ends = ends_of(columns) or named[:2]
    both = [table.names(end) for end in ends]
    for own in (lower[word] for word in WEIGHTS if word in lower and lower[word] not in ends):
        remedy = f"choose from which {own} on there is a tie, and give those rows alone: frame[frame['{own}'] > 0]"
        _require_positive(table.values[own], list(zip(*both, strict=True)), own, name, remedy)
    return pd.DataFrame(dict(zip(("from", "to"), both, strict=True)), dtype=object), name


def _pairs(source: Any) -> tuple[pd.DataFrame, str]:
    """The two ends of every edge in a sequence of these."""
    source = unmasked(source)
    try:
        pairs = [tuple(pair) if np.ndim(pair) else (pair,) for pair in source]
    except TypeError as problem:
        raise DataError(
            f"a graph is edges, an adjacency matrix or a networkx graph, not a {type(source).__name__}"
        ) from problem
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
    if nodes is None:
        _require_one_spelling(seen, source)
    names, attributes = (tuple(seen), {}) if nodes is None else nodes.identified(seen)
    place = {name: i for i, name in enumerate(names)}
    unknown = [(k, end) for k, pair in enumerate(zip(*ends, strict=True)) for end in pair if end not in place]
    if unknown:
        assert nodes is not None
        row, name = unknown[0]
        more = f", and {len(unknown) - 1} more such ends of edges" if len(unknown) > 1 else ""
        other = next((own for own in names if _order(own)[:2] == _order(name)[:2]), None) if _is_number(name) else None
        told = (
            f", where '{other}' is: the same number, written in another way. What to do: write it in one way in both "
            "tables; names of nodes are texts, and pandas.read_csv(..., dtype=str) keeps them as they are in a file"
        )
        remedy = ". What to do: add the node, or name the column that edges refer to with id=..."
        raise DataError(
            f"{source}, row {row + 1}: node '{name}' is not among the nodes "
            f"('{nodes.column_for(seen)}' of {nodes.source}){more}{remedy if other is None else told}"
        )
    pairs = np.array([[place[a] for a in side] for side in ends], int).T.reshape(-1, 2)
    return _of_pairs(names, pairs, directed, attributes, source)


def _is_number(name: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d*)?", name) is not None


def _order(name: str) -> tuple[bool, float, str]:
    """Numbers before words, and by their size."""
    return (False, float(name), name) if _is_number(name) else (True, 0.0, name)


def _require_one_spelling(names: Sequence[str], source: str) -> None:
    """Refuse 7 beside 7.0: one number that was written in two ways, where 007 and 7 are two nodes."""
    known = set(names)
    for name in (name for name in names if re.fullmatch(r"-?\d+\.0*", name)):
        if name.split(".")[0] in known:
            raise DataError(
                f"{source} holds the nodes '{name.split('.')[0]}' and '{name}', which are one number written in two "
                "ways. What to do: write it in one way; or, if these are two nodes, give all nodes: nodes=..."
            )


def _of_pairs(
    names: tuple[str, ...], pairs: Int[np.ndarray, "e 2"], directed: bool, attributes: dict[str, np.ndarray],
    source: str,
) -> Parts:  # fmt: skip
    """A graph from ties as numbers of nodes, each of which must be there once."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"two nodes of {source} have the same name as text: {some(twice, 4)}")
    if len(names) > 5000:  # whose pairs are 25 million
        raise DataError(f"{source} has {len(names)} nodes; all pairs of at most 5000 can be handled")
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


def _of_neighbours(source: Mapping[Any, Any], nodes: Any, directed: bool, id: str | None) -> Parts:
    """A graph from each node's neighbours, as networkx reads it: undirected, a tie being there if one end names it."""
    found = neighbours_of(source)
    remedy = (
        "choose from which weight on there is a tie: "
        "{a: [b for b, weight in own.items() if weight > 0] for a, own in neighbours.items()}"
    )
    keys = {key for *_, own in found if isinstance(own, Mapping) for key in own if str(key).lower() in WEIGHTS}
    scalars = [own for *_, own in found if not isinstance(own, Mapping)]
    for weights in [scalars, *([own.get(key, 1) for *_, own in found if isinstance(own, Mapping)] for key in keys)]:
        _require_positive(weights, [pair[:2] for pair in found], "weight", "the neighbours", remedy)
    names = tuple(dict.fromkeys([*map(label, source), *(label(other) for _, other, _ in found)]))
    place = {name: k for k, name in enumerate(names)}
    pairs = np.array([(place[label(a)], place[label(b)]) for a, b, _ in found], int).reshape(-1, 2)
    pairs = np.unique(pairs if directed else np.sort(pairs, axis=1), axis=0)
    made, table = _of_pairs(names, pairs, directed, {}, "the neighbours"), _node_table(nodes, id)
    return made if table is None else _joined(made, table)


def _of_matrix(matrix: Matrix, nodes: Any, directed: bool | None, id: str | None) -> Parts:
    require_known_ties(matrix)
    names, array = matrix.names, np.nan_to_num(matrix.values)
    np.fill_diagonal(array, 0.0)
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
