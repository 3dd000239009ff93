"""Networks whose columns are each of their own kind: binary, ordinal, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpyro.distributions as dist

from ...core.dataset import Dataset
from ...core.domain import Coordinate, Domain
from ...core.graphs import Graph
from ...core.parameters import EDGE, Parameter, Space
from ...errors import ModelError
from ..named import GRAPH, MODELS, Options, named
from .descriptions import DECLARED, KIND, LEVELS
from .kinds import (
    INTERCEPT,
    KINDS,
    AbstractCount,
    AbstractScale,
    BinaryKind,
    Coefficient,
    CountKind,
    Kind,
    OrdinalKind,
    by_name,
    default_of,
    names,
)
from .model import OF_EDGES, Pairwise, graph_of_nodes

MAX_SPAN_OF_SCALE = 10  # between the lowest and the highest value of a scale; what goes further is a count


def Network(domain: Domain, graph: Any = None, kinds: Any = None) -> Pairwise:
    """A pairwise model of columns as they are: binary, ordinal and count columns in one network.

    log p(x) = sum of node_j(x_j) + sum over edges of interaction_ij s_i(x_i) s_j(x_j), up to a constant.

    Parameters
    ----------
    domain : Domain
        The values of each column: ``dfd.Ordinal(6, 7) * dfd.Binary(2) * dfd.Counts(1)``; levels may have labels. Binary
        columns have an ``intercept``, ordinal ones a ``threshold`` for each level but the lowest, counts an
        ``intercept`` and a ``nu``. Neighbours see values (ordinal ones from the lowest level on), and the square roots
        of counts, which may rise or fall together. The numbers of ``dfd.Ordinal(1, [1, 10, 100])`` are scores: a step
        from 10 to 100 is ten times that from 1 to 10. Of labels, and of levels that are declared to ``dfd.fit`` (an
        ordered category, ``options={"levels": ...}``), ranks are seen.
    graph : graph, optional
        As for `Ising`; all pairs by default.
    kinds : str, sequence or mapping, optional
        Other kinds than those: ``"blume-capel"`` (ordinal with two parameters: ``intercept`` and ``quadratic``) and
        ``"poisson"`` (counts with nu = 1), for all columns that can have it, for each, or by the number of a column.

    Normal priors: standard deviation 1 for ``interaction``; 3 for ``intercept`` if all columns that have one are binary
    and 5 otherwise; 10 for ``threshold`` (that of a rare level is far below zero); 5 for ``quadratic``; half-normal
    with scale 3 for ``nu``.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> dfd.models.Network(dfd.Ordinal(1, ["never", "often", "always"]) * dfd.Binary(1)).space.names
    ('intercept[1]', 'interaction[0,1]', 'threshold[0,often]', 'threshold[0,always]')
    """
    return _of_kinds(_of_domain(domain, kinds), graph)


def _of_kinds(columns: tuple[Kind, ...], graph: Any) -> Pairwise:
    """The network of these columns, on a graph or with all edges."""
    nodes = graph_of_nodes(len(columns) if graph is None else graph, "a network")
    if nodes.size != len(columns):
        raise ModelError(f"the graph has {nodes.size} nodes, and there are {len(columns)} columns")
    levels = [list(kind.coordinate.labels or kind.levels) or None for kind in columns]
    options = {"graph": graph, "levels": levels, "kinds": [kind.name for kind in columns]}
    return _made(nodes, columns, options).labelled([str(j) for j in range(len(columns))])


def for_data(data: Dataset, graph: Any = None, kinds: Any = None, scales: Domain | None = None) -> Pairwise:
    """A `Network` of the data's columns, their kinds guessed where they are not given by name or number.

    ``scales`` are the coordinates that the columns were read with: ordered levels where these were declared.
    """
    values = [tuple(map(int, np.unique(column))) for column in data.rows.T]
    declared = {} if scales is None else {j: c for j in range(data.d) if (c := scales.coordinate(j)).ordered}
    given = {} if isinstance(kinds, str) else _words(kinds, data.columns)
    words = guess(values, data.columns, dict.fromkeys(declared, OrdinalKind.name) | given)
    if isinstance(kinds, str):
        alike = [j for j, word in enumerate(words) if kinds in KINDS and _kind(word).family == _kind(kinds).family]
        if not alike:
            raise ModelError(f"no column can be of kind '{kinds}'; kinds are {', '.join(KINDS)}")
        given = dict.fromkeys(alike, kinds)
        words = [given.get(j, word) for j, word in enumerate(words)]
    columns = [_column(data.columns[j], words[j], values[j], declared.get(j)) for j in range(data.d)]
    origin = [DECLARED if j in declared else LEVELS if j in given else KIND for j in range(data.d)]
    return replace(_of_kinds(tuple(columns), graph), origin=tuple(origin))


def _is_known(options: Options) -> bool:
    """Whether options give all kinds and levels, as a saved fit does."""
    levels, kinds = options.get("levels"), options.get("kinds")
    if isinstance(kinds, str) or not isinstance(levels, Sequence) or not isinstance(kinds, Sequence):
        return False
    return not any(isinstance(own, str) or np.ndim(own) == 0 for own in levels if own is not None)


def _of_data(data: Dataset, options: Options, scales: Domain) -> Pairwise:
    """A network of the data's columns; their kinds are guessed where neither options nor scales give them."""
    MODELS.by_name("network").require(options)
    return for_data(data, GRAPH.among(options), options.get("kinds"), scales)


@named("network", takes=(GRAPH, "kinds", "levels"), model=Network, of_data=_of_data, is_known=_is_known)
def _of_levels(columns: int, options: Options) -> Pairwise:
    """A network from what a saved fit knows of its columns."""
    levels, kinds = options.get("levels"), options.get("kinds")
    if levels is None or kinds is None or not _is_known(options):
        raise ModelError(
            "a network by name guesses the kinds of its columns from data, and there are none here. What to do: give "
            "the model itself, such as dfd.models.Network(dfd.Ordinal(5, 7) * dfd.Binary(2))."
        )
    found = [by_name(kind, tuple(own or ())) for kind, own in zip(kinds, levels, strict=True)]
    graph = GRAPH.among(options)
    return _of_kinds(tuple(found), graph)


def _kind(word: str) -> type[Kind]:
    return KINDS.by_name(word)


def _column(name: str, word: str, values: tuple[int, ...], declared: Coordinate | None) -> Kind:
    """A column's kind, with the levels that were declared or that the data have."""
    if declared is not None and not _kind(word).serves(declared):
        raise ModelError(f"'{name}' has levels with an order, and cannot be of kind '{word}'")
    if not issubclass(_kind(word), AbstractScale):
        found = by_name(word)
        possible = found.coordinate.contains(np.array(values))
        outside = [value for value, inside in zip(values, possible, strict=True) if not inside]
        if outside:
            raise ModelError(f"column '{name}' has the value {outside[0]}, and cannot be of kind '{word}'")
        return found
    if len(values) < 2:
        own = values[0] if declared is None else declared.names[declared.levels.index(values[0])]
        raise ModelError(
            f"column '{name}' has the same value, {own}, in every row: a network can say nothing about it. What to do: "
            "leave it out (columns=[...])."
        )
    if declared is None and values[-1] - values[0] > MAX_SPAN_OF_SCALE:
        raise ModelError(
            f"column '{name}' has levels from {values[0]} to {values[-1]}, which enter a network by their rank, and a "
            "Dataset holds values. What to do: give the table itself to fit; or, where levels are scores, a model of "
            f"your own, such as dfd.models.Network(dfd.Ordinal(1, [{', '.join(map(str, values[:3]))}, ...]) * ...)."
        )
    return by_name(word, values if declared is None else declared)


def guess(values: Sequence[tuple[int, ...]], columns: Sequence[str], words: Mapping[int, str]) -> list[str]:
    """The kind of each column from the values it has, where ``words`` does not say it.

    0 and 1 are binary; a short scale is ordinal; what goes further is a count. Where there are counts, other columns
    that begin at zero are counts too: those of a rare species have few values.
    """
    long = [
        j for j, own in enumerate(values)
        if own[-1] - own[0] > MAX_SPAN_OF_SCALE and (j not in words or issubclass(_kind(words[j]), AbstractCount))
    ]  # fmt: skip
    for j in long:
        if values[j][0] < 0 and j not in words:
            raise ModelError(
                f"column '{columns[j]}' has values from {values[j][0]} to {values[j][-1]}, which are neither levels of "
                "a short scale nor counts. What to do: leave it out (columns=[...]), or group its values into levels."
            )
    found = []
    for j, own in enumerate(values):
        if j in words:
            found.append(words[j])
        elif own in ((0,), (1,), (0, 1)):
            found.append(BinaryKind.name)
        elif j in long or (long and own[0] == 0):
            found.append(CountKind.name)
        else:
            found.append(OrdinalKind.name)
    return found


def _words(kinds: Any, columns: Sequence[str]) -> dict[int, str]:
    """Kinds by the number of their column."""
    if kinds is None:
        return {}
    if isinstance(kinds, str):
        kinds = dict.fromkeys(columns, kinds)
    if not isinstance(kinds, Mapping):
        kinds = dict(zip(columns, kinds, strict=True))
    found = {}
    for name, word in kinds.items():
        if name not in columns:
            raise ModelError(f"kinds names '{name}', which is not a column; the columns are {', '.join(columns)}")
        if word not in KINDS:
            raise ModelError(f"the kind of '{name}' is '{word}'; known: {', '.join(KINDS)}")
        found[list(columns).index(name)] = word
    return found


def _of_domain(domain: Domain, kinds: Any) -> tuple[Kind, ...]:
    coordinates = [domain.coordinate(j) for j in range(domain.d)]
    given = {str(name): word for name, word in kinds.items()} if isinstance(kinds, Mapping) else kinds
    words = _words(given, [str(j) for j in range(domain.d)])
    found = []
    for j, coordinate in enumerate(coordinates):
        own = default_of(coordinate)
        if own is None:
            raise ModelError(
                f"column {j} of the domain is {coordinate.label}; a network has columns of Binary, Ordinal and Counts"
            )
        word = words.get(j, own.name)
        if not _kind(word).serves(coordinate):
            if not isinstance(kinds, str):
                raise ModelError(f"column {j} has values of {coordinate.label}, and cannot be of kind '{word}'")
            word = own.name
        found.append(own if word == own.name else by_name(word, coordinate))
    return tuple(found)


def _made(graph: Graph, found: tuple[Kind, ...], options: Mapping[str, Any]) -> Pairwise:
    own = _parameters(found)
    first = [p for p in own if p.name == INTERCEPT.name]
    pairs = len(graph.pairs)
    edges = [Parameter("interaction", dist.Normal(0.0, 1.0), shape=(pairs,), role=EDGE, spread=OF_EDGES)] * bool(pairs)
    space = Space((*first, *edges, *(p for p in own if p not in first)))

    def start(data: Dataset) -> dict[str, Any]:
        return _margins(data, found, space)

    return Pairwise(
        graph, found, space, "network", False, start, options, mixed=True,
        title=f"a network of {described(found)}",
        formula="p(x) ∝ exp( Σ<sub>j</sub> node<sub>j</sub>(x<sub>j</sub>) + Σ<sub>i–j</sub> "
        "interaction<sub>ij</sub> s<sub>i</sub>(x<sub>i</sub>) s<sub>j</sub>(x<sub>j</sub>) )",
    )  # fmt: skip


def _parameters(columns: Sequence[Kind]) -> list[Parameter]:
    """The parameters of the columns' kinds, in the order in which kinds are known; those with many entries last."""
    order, entries = names(), dict[str, list[Coefficient]]()
    for kind in sorted(columns, key=lambda kind: order.index(kind.name)):
        for coefficient in filter(None, kind.coefficients):
            entries.setdefault(coefficient.name, []).append(coefficient)
    found = []
    for alike in sorted(entries.values(), key=lambda alike: alike[0].many):
        widest = max(alike, key=lambda coefficient: float(coefficient.prior.variance))
        found.append(widest.parameter(len(alike)))
    return found


def described(found: Sequence[Kind]) -> str:
    """How many columns there are of each kind, in words."""
    tally = [f"{number} {name}" for name, number in Counter(kind.name for kind in found).items()]
    text = tally[0] if len(tally) == 1 else ", ".join(tally[:-1]) + " and " + tally[-1]
    return f"{text} column{'s' if len(found) > 1 else ''}"


def _margins(data: Dataset, found: Sequence[Kind], space: Space) -> dict[str, Any]:
    """Each column alone, without interactions."""
    begin: dict[str, list[float]] = {p.name: [0.0] * p.size if p.role == EDGE else [] for p in space.parameters}
    for kind, column in zip(found, data.rows.T, strict=True):
        for coefficient, value in zip(filter(None, kind.coefficients), kind.start(column, data.counts), strict=True):
            begin[coefficient.name].append(value)
    return {name: np.array(values) for name, values in begin.items()}
