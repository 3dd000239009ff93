"""Adjacency matrices and lists of neighbours in whatever form, told from tables of edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import sparse

from ...data.read.columns import label
from ...errors import DataError, some

ENDS = (("from", "to"), ("source", "target"), ("tail", "head"), ("i", "j"))  # names of the two columns of edges
NO_MODES = (
    "Models of graphs are of one kind of nodes, any two of which may be tied. What to do: give the graph of one kind, "
    "where two are tied if they share a tie (networkx.bipartite.projected_graph), or model the table with a row for "
    "each node of one kind and a column of 0 and 1 for each of the other by 'network'."
)


def ends_of(columns: Iterable[Any]) -> list[Any]:
    """The two columns of edges by their names, such as 'from' and 'to'; none where no two are called so."""
    lower = {str(column).lower(): column for column in columns}
    return next(([lower[one], lower[other]] for one, other in ENDS if {one, other} <= set(lower)), [])


def numbers_of(given: Any, what: str) -> np.ndarray:
    """A table or matrix as numbers, NaN where one is missing or masked; what is no number is refused."""
    if isinstance(given, np.ma.MaskedArray):
        found = numbers_of(given.data, what)
        found[np.ma.getmaskarray(given)] = np.nan
        return found
    if isinstance(given, pd.DataFrame) and all(_is_real(kind) for kind in given.dtypes):
        return given.to_numpy(dtype=float, na_value=np.nan, copy=True)
    given = given.toarray() if sparse.issparse(given) else given
    try:
        array = given.to_numpy() if hasattr(given, "to_numpy") else np.asarray(given)
    except ValueError as problem:
        raise DataError(f"{what} is no matrix: its rows have different lengths") from problem
    if array.dtype.kind in "biuf":
        return array.astype(float)
    if array.dtype.kind in "mM":
        raise DataError(f"{what} holds times, where numbers are needed")
    return np.array([_number(cell, what) for cell in array.ravel().tolist()], float).reshape(array.shape)


def _is_real(kind: Any) -> bool:
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)


def _number(cell: Any, what: str) -> float:
    if cell is None or cell is pd.NA:
        return np.nan
    try:
        return float(cell)
    except (TypeError, ValueError) as problem:
        raise DataError(f"{what} holds {cell!r}, which is no number") from problem


# -- matrices ----------------------------------------------------------------------------------


class Matrix(NamedTuple):
    """A matrix with a row and a column for each node."""

    values: Float[np.ndarray, "n n"]
    """NaN where it is not known."""
    names: tuple[str, ...] | None
    """The nodes, where rows or columns have names."""


def matrix_of(source: Any) -> Matrix | None:
    """An adjacency matrix, where that is what the source is; None where it is edges."""
    if isinstance(source, pd.DataFrame):
        return _of_frame(source)
    if isinstance(source, (list, tuple)):
        return Matrix(numbers_of(source, "the adjacency matrix"), None) if _is_square(source) else None
    if not sparse.issparse(source):
        if not isinstance(source, np.ndarray) or source.ndim != 2:
            return None
        if source.shape[1] < 4 and (source.shape[0] != source.shape[1] or source.dtype.kind in "US"):
            return None
    return Matrix(_square(numbers_of(source, "the adjacency matrix")), None)


def require_known_ties(matrix: Matrix) -> None:
    """Refuse an adjacency matrix in which a pair of nodes is neither tied nor not, or a node tied to itself."""
    off = ~np.eye(len(matrix.values), dtype=bool)
    names = matrix.names or tuple(str(k + 1) for k in range(len(off)))
    unknown = np.argwhere(np.isnan(matrix.values) & off)
    if len(unknown):
        a, b = (names[k] for k in unknown[0])
        raise DataError(
            f"the adjacency matrix does not say whether '{a}' and '{b}' are tied: its entry is missing or masked "
            f"({len(unknown)} such entries). A model of a graph needs every pair. What to do: fill these entries in "
            "(0 is no tie), or leave out the nodes that nobody asked."
        )
    if not np.isin(matrix.values[off], (0.0, 1.0)).all():
        raise DataError("an adjacency matrix holds 0 and 1 only. What to do: choose from which value on there is a tie")
    loops = np.flatnonzero(np.nan_to_num(np.diag(matrix.values)))
    if len(loops):
        raise DataError(f"node {names[loops[0]]} is tied to itself; the diagonal must be zero")


def in_order(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame | None:
    """A matrix with rows and columns in the order of these names; None unless both have exactly these."""
    rows, columns = labels(frame.index), labels(frame.columns)
    if not sorted(rows) == sorted(columns) == sorted(names) or len(set(names)) < len(names):
        return None
    return frame.iloc[[rows.index(name) for name in names], [columns.index(name) for name in names]]


def labels(axis: Any) -> list[str]:
    """The names of rows or columns as text."""
    return [label(value) for value in axis]


def is_unnamed(axis: pd.Index) -> bool:
    """Whether rows or columns are only counted, from 0 on."""
    return axis.tolist() == list(range(len(axis)))


def named_by_first_column(values: pd.DataFrame, written: pd.DataFrame) -> pd.DataFrame:
    """A table whose first column has the names of the others as the matrix that it is, and any other as it is."""
    first = labels(written.iloc[:, 0]) if len(values.columns) > 2 else []
    if not first or sorted(first) != sorted(labels(values.columns[1:])):
        return values
    return values.iloc[:, 1:].set_axis(first, axis=0)


def _of_frame(frame: pd.DataFrame) -> Matrix | None:
    """By its names, which rows may have in another order than columns; or a table of at least three rows of 0 and 1.

    That is none of edges: two nodes have one tie, or two with a direction.
    """
    rows, columns = labels(frame.index), labels(frame.columns)
    counted = is_unnamed(frame.index)
    if counted and is_unnamed(frame.columns):
        ordered = frame if _is_square(frame.to_numpy().tolist()) else None
    else:
        ordered = in_order(frame, columns) if len(rows) > 1 else None
    if ordered is not None:
        return Matrix(numbers_of(ordered, "the adjacency matrix"), tuple(columns))
    if min(frame.shape) < 3 or ends_of(frame.columns) or not all(_is_real(kind) for kind in frame.dtypes):
        return None
    values = numbers_of(frame, "the adjacency matrix")
    if not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
        return None
    if not counted and frame.shape[0] == frame.shape[1]:
        raise DataError(
            f"the rows of the adjacency matrix are called {some(rows, 4)}, and its columns {some(columns, 4)}. What to "
            "do: give rows and columns the same names (a file: pandas.read_csv(..., dtype=str), then set_index)"
        )
    return Matrix(_square(values), tuple(columns))


def _square(values: np.ndarray) -> np.ndarray:
    if values.shape[0] != values.shape[1]:
        raise DataError(
            f"an adjacency matrix has as many rows as columns; this one has {values.shape[0]} rows and "
            f"{values.shape[1]} columns, as one of a two-mode (bipartite) graph has. {NO_MODES}"
        )
    return values


def _is_square(rows: Sequence[Any]) -> bool:
    """Whether rows are those of a matrix and no edges, which are pairs, or triples with a weight."""
    n = len(rows)
    if n < 2 or any(not isinstance(row, (list, tuple, np.ndarray)) or len(row) != n for row in rows):
        return False
    cells = [cell for row in rows for cell in row]
    if any(not isinstance(cell, (bool, int, float, np.number, np.bool_, type(None))) for cell in cells):
        return False
    if n > 3:
        return True
    return set(cells) <= {0, 1} and (n == 3 or (isinstance(rows[0], list) and rows[0][0] == rows[1][1] == 0))


# -- neighbours --------------------------------------------------------------------------------


def are_columns(source: Mapping[Any, Any]) -> bool:
    """Whether a mapping is of the columns of a table of edges, and not of every node's neighbours.

    Columns are called as those of edges are; neighbours are nodes themselves, so that some of them are keys.
    """
    values = list(source.values())
    if any(isinstance(column, pd.Series) for column in values):
        return True
    if any(np.ndim(column) == 0 and not isinstance(column, (Mapping, set, frozenset)) for column in values):
        return False
    keys, others = set(map(label, source)), {label(other) for own in values for other in own}
    known, apart = bool(others) and others <= keys, not (keys & others)
    if ends_of(list(source)) and not known:
        return apart or len({len(own) for own in values}) == 1
    if len(source) == 1 and {key.lower() for key in keys} <= {word for pair in ENDS for word in pair}:
        return True
    if len(source) > 1 and others and apart:
        raise DataError(
            f"the mapping of {some(map(repr, source), 3)} may be of columns of edges, or of each node's neighbours, "
            "none of which is a key. What to do: call the two columns of edges 'from' and 'to'; or have every node as "
            "a key, with [] for one whose neighbours are listed already."
        )
    return False


def neighbours_of(source: Mapping[Any, Any]) -> list[tuple[Any, Any, Any]]:
    """Each node with each of its neighbours, and what is known of that tie: None, a weight, or a mapping."""
    found = []
    for node, own in source.items():
        if np.ndim(own) == 0 and not isinstance(own, (Mapping, set, frozenset)):
            raise DataError(
                f"the neighbours of {node!r} are {own!r}. What to do: give for each node a list of its neighbours: "
                "{'a': ['b', 'c'], 'b': ['a']}"
            )
        found += [(node, other, own[other] if isinstance(own, Mapping) else None) for other in own]
    return found
