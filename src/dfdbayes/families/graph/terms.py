"""Terms of exponential random graph models: what is counted, the terms, their statistics, and how they are written.

Definitions are those of statnet's ergm (Hunter, Handcock, Butts, Goodreau and Morris, 2008). A term is either a sum
over ties of a covariate of the pair (`Covariate`: ties do not depend on each other through it), or depends on other
ties (`Structure`); then it says its statistic, and its change statistic, which is by how much the statistic grows when
a tie is added. `docs/how-to/add-a-graph-term.md` adds one.

A term is written once, in counts about dyads, and serves twice: on NumPy arrays of all dyads of many graphs
(`AllDyads`, for losses), and on one dyad of each of many chains in compiled code (`chains.ChainDyads`). A dyad is an
ordered pair of nodes (i, j), its tie goes from i to j; in an undirected graph the order does not matter. All counts are
those of the graph *without* the tie between i and j.
"""

from __future__ import annotations

import ast
import difflib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse
from scipy.special import comb

from ...core.dataset import Dataset
from ...core.linear import fold
from ...core.registry import Registry
from ...errors import DataError, ModelError
from .observed import ObservedGraph

TERMS: Registry[type[AbstractTerm]] = Registry("term", ModelError)
T = TypeVar("T")
Ties = Bool[np.ndarray, "b d"]


# -- what is counted -----------------------------------------------------------------------------


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
    if np.count_nonzero(a) > 0.1 * a.size:
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


# -- terms ---------------------------------------------------------------------------------------


@dataclass_transform(frozen_default=True)
def term(cls: type[T]) -> type[T]:
    """Make a class a term: what it takes are its fields, and its ``name`` goes into the table."""
    made: Any = dataclass(frozen=True)(cls)
    TERMS.register(made.name)(made)
    return made


class AbstractTerm(ABC):
    """A statistic of a graph, and its coefficient's name."""

    name: ClassVar[str]
    """As it is written in a model; the first line of the class's description says what it is."""
    directed: ClassVar[bool | None] = None
    """Whether it is for directed graphs only (True) or for undirected ones only (False)."""
    instead: ClassVar[str] = ""
    """What to use for the other kind of graph."""
    when: ClassVar[str] = ""
    """Where a tie has one more of it, as a sentence ends: "between nodes of the same {attribute}"."""

    @property
    def label(self) -> str:
        """The coefficient's name: gwesp(0.25), nodematch(grade)."""
        given = [(f.name, getattr(self, f.name), f.default) for f in fields(self)]  # type: ignore[arg-type]
        shown = [name if value is True else _shown(value) for name, value, usual in given if value != usual]
        return f"{self.name}({','.join(shown)})" if shown else self.name

    @property
    def told(self) -> str:
        """`when` with what the term was given."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        given |= {"label": self.label, "further": f"{1.0 - np.exp(-given.get('decay', 0.0)):.2g} of the one before"}
        return self.when.format(**given) if self.when else f"per unit of {self.label}"

    @property
    def written(self) -> str:
        """The term as it stands in a model: gwesp(0.25), nodematch('grade')."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        shown = [
            f"{name}=True" if value is True else repr(value) for name, value in given.items() if value is not False
        ]
        return f"{self.name}({', '.join(shown)})" if shown else self.name

    def require(self, graph: ObservedGraph) -> None:
        """Refuse a graph that the term is not for."""
        if self.directed is not None and self.directed != graph.directed:
            other = f" What to do: {self.instead}." if self.instead else ""
            kinds = ("directed", "undirected") if self.directed else ("undirected", "directed")
            raise ModelError(f"{self.label} is for {kinds[0]} graphs, and this one is {kinds[1]}.{other}")

    def levels(self, graph: ObservedGraph) -> tuple[str, ...]:
        """Names of its coefficients where it has several; none where it has one."""
        return ()

    def left_out(self, graph: ObservedGraph) -> tuple[str, ...]:
        """Levels that get no coefficient, as no pair of nodes has them."""
        return ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """Attributes of nodes that it needs."""
        return ()

    @property
    def matrices(self) -> tuple[str, ...]:
        """Covariates of pairs that it needs."""
        return ()


class Covariate(AbstractTerm):
    """A sum over ties of a covariate of the pair of nodes."""

    @abstractmethod
    def values(self, graph: ObservedGraph) -> Float[np.ndarray, "n n k"]:
        """The covariate of every pair, one for each coefficient."""


class Structure(AbstractTerm):
    """A statistic through which ties depend on each other; it has one coefficient."""

    closure: ClassVar[bool] = False
    """Whether it is about triangles: then simulations propose to close and open these, and are quicker."""
    steadier: ClassVar[str] = ""
    """The term that is about the same and does not feed on itself so much, for models that are degenerate."""

    @abstractmethod
    def statistic(self, whole: Whole) -> Float[np.ndarray, " b"]:
        """Its value for whole graphs."""

    @abstractmethod
    def change(self, at: AbstractDyads) -> Any:
        """By how much it grows when the tie of a dyad is added, from counts about that dyad without the tie."""


def _shown(value: Any) -> str:
    """A value in the name of a coefficient, where some marks have a meaning."""
    return f"{value:g}" if isinstance(value, (int, float)) else str(value).translate(str.maketrans("/[]", "___"))


def _require_text(name: str, what: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise ModelError(f"{name} takes the name of {what} in quotes, such as {name}('x'), not {value!r}")


# -- covariates of pairs -------------------------------------------------------------------------


@term
class Edges(Covariate):
    """The number of ties."""

    name: ClassVar[str] = "edges"

    def values(self, graph: ObservedGraph) -> Float[np.ndarray, "n n k"]:
        return np.ones((graph.n, graph.n, 1))


@dataclass(frozen=True)
class _OfAttribute(Covariate):
    attribute: str

    def __post_init__(self) -> None:
        _require_text(self.name, "an attribute of the nodes", self.attribute)

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.attribute,)


@term
class NodeCovariate(_OfAttribute):
    """The sum over ties of a numeric attribute of both ends."""

    name: ClassVar[str] = "nodecov"
    when: ClassVar[str] = "per unit of {attribute} of its two ends together"

    def values(self, graph: ObservedGraph) -> Float[np.ndarray, "n n k"]:
        x = graph.numbers(self.attribute, self.label)
        return (x[:, None] + x)[..., None]


@term
class NodeFactor(_OfAttribute):
    """For each level of an attribute but the first: how often a node of that level is an end of a tie."""

    name: ClassVar[str] = "nodefactor"
    when: ClassVar[str] = "for each end of that {attribute}"

    def levels(self, graph: ObservedGraph) -> tuple[str, ...]:
        found = graph.levels(self.attribute, self.label)[1]
        if len(found) < 2:
            raise ModelError(
                f"{self.label}: all nodes have {self.attribute} = {found[0]}, so there is nothing to compare. What to "
                "do: leave the term out."
            )
        return found[1:]

    def values(self, graph: ObservedGraph) -> Float[np.ndarray, "n n k"]:
        code = graph.levels(self.attribute, self.label)[0]
        here = (code[:, None] == np.arange(1, code.max() + 1)).astype(float)
        return here[:, None] + here[None]


@term
class NodeMatch(_OfAttribute):
    """Ties between nodes of the same level of an attribute; with diff=True one count for each level."""

    name: ClassVar[str] = "nodematch"
    when: ClassVar[str] = "between nodes of the same {attribute}"
    diff: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.diff, bool):
            raise ModelError(f"nodematch: diff is True or False, not {self.diff!r}")

    def levels(self, graph: ObservedGraph) -> tuple[str, ...]:
        code, found = graph.levels(self.attribute, self.label)
        if not self.diff:
            return ()
        if not len(self._paired(code)):
            raise ModelError(f"{self.label}: no two nodes have the same {self.attribute}. What to do: leave it out.")
        return tuple(found[k] for k in self._paired(code))

    def left_out(self, graph: ObservedGraph) -> tuple[str, ...]:
        code, found = graph.levels(self.attribute, self.label)
        return tuple(level for k, level in enumerate(found) if self.diff and k not in self._paired(code))

    def _paired(self, code: np.ndarray) -> np.ndarray:
        """The levels that at least two nodes have."""
        return np.flatnonzero(np.bincount(code) > 1)

    def values(self, graph: ObservedGraph) -> Float[np.ndarray, "n n k"]:
        code = graph.levels(self.attribute, self.label)[0]
        same = (code[:, None] == code)[..., None]
        return (same & (code[:, None, None] == self._paired(code)) if self.diff else same).astype(float)


@term
class AbsoluteDifference(_OfAttribute):
    """The sum over ties of the absolute difference of a numeric attribute."""

    name: ClassVar[str] = "absdiff"
    when: ClassVar[str] = "per unit of difference in {attribute}"

    def values(self, graph: ObservedGraph) -> Float[np.ndarray, "n n k"]:
        x = graph.numbers(self.attribute, self.label)
        return np.abs(x[:, None] - x)[..., None]


@term
class EdgeCovariate(Covariate):
    """The sum over ties of a covariate of the pair, given as a matrix."""

    name: ClassVar[str] = "edgecov"
    when: ClassVar[str] = "per unit of {matrix}"
    matrix: str

    def __post_init__(self) -> None:
        _require_text(self.name, "a matrix", self.matrix)

    @property
    def matrices(self) -> tuple[str, ...]:
        return (self.matrix,)

    def values(self, graph: ObservedGraph) -> Float[np.ndarray, "n n k"]:
        return graph.matrix(self.matrix, self.label)[..., None]


# -- structure -----------------------------------------------------------------------------------


@term
class Mutual(Structure):
    """Pairs of nodes with ties both ways."""

    name: ClassVar[str] = "mutual"
    when: ClassVar[str] = "where there is one back"
    directed: ClassVar[bool | None] = True

    def statistic(self, whole: Whole) -> Float[np.ndarray, " b"]:
        return whole.mutual

    def change(self, at: AbstractDyads) -> Any:
        return at.reciprocal


@term
class Triangle(Structure):
    """Triangles; in a directed graph transitive triples and cycles of three together."""

    name: ClassVar[str] = "triangle"
    steadier: ClassVar[str] = "gwesp(0.25)"
    when: ClassVar[str] = "for each triangle that it closes"
    closure: ClassVar[bool] = True

    def statistic(self, whole: Whole) -> Float[np.ndarray, " b"]:
        return whole.closed + whole.cycles if whole.directed else whole.closed / 6.0

    def change(self, at: AbstractDyads) -> Any:
        if not at.directed:
            return at.two_paths
        return at.two_paths + at.both_sent + at.both_received + at.two_paths_back


@term
class TransitiveTriple(Structure):
    """Ties i to k, k to j and i to j."""

    name: ClassVar[str] = "ttriple"
    steadier: ClassVar[str] = "gwesp(0.25)"
    closure: ClassVar[bool] = True
    directed: ClassVar[bool | None] = True
    instead: ClassVar[str] = "use triangle"

    def statistic(self, whole: Whole) -> Float[np.ndarray, " b"]:
        return whole.closed

    def change(self, at: AbstractDyads) -> Any:
        return at.two_paths + at.both_sent + at.both_received


@term
class CyclicTriple(Structure):
    """Ties i to k, k to j and j to i."""

    name: ClassVar[str] = "ctriple"
    steadier: ClassVar[str] = "gwesp(0.25)"
    closure: ClassVar[bool] = True
    directed: ClassVar[bool | None] = True
    instead: ClassVar[str] = "use triangle"

    def statistic(self, whole: Whole) -> Float[np.ndarray, " b"]:
        return whole.cycles

    def change(self, at: AbstractDyads) -> Any:
        return at.two_paths_back


@dataclass(frozen=True)
class _OfNodes(Structure):
    """The sum over nodes of a function of how many ties they have, send or receive."""

    counted: ClassVar[str] = "all"

    @abstractmethod
    def weights(self, most: int) -> np.ndarray:
        """The function at 0, 1, ..., ``most``."""

    def statistic(self, whole: Whole) -> Float[np.ndarray, " b"]:
        counts = whole.received if self.counted == "received" else whole.sent
        return self.weights(whole.nodes)[counts].sum(axis=-1)

    def change(self, at: AbstractDyads) -> Any:
        steps = np.diff(self.weights(at.nodes))
        if self.counted == "received":
            return at.look_up(steps, at.received_j)
        own = at.look_up(steps, at.sent_i)
        return own + at.look_up(steps, at.sent_j) if self.counted == "all" else own


@term
class Stars(_OfNodes):
    """k-stars: sets of k ties of one node."""

    name: ClassVar[str] = "kstar"
    steadier: ClassVar[str] = "gwdegree(0.5)"
    directed: ClassVar[bool | None] = False
    instead: ClassVar[str] = "use ostar (ties sent) or istar (ties received)"
    k: int

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 2:
            raise ModelError(f"{self.name} takes a whole number from 2 on, such as {self.name}(2), not {self.k!r}")

    def weights(self, most: int) -> np.ndarray:
        return comb(np.arange(most + 1), self.k)


@term
class OutStars(Stars):
    """Sets of k ties that one node sends."""

    name: ClassVar[str] = "ostar"
    steadier: ClassVar[str] = "gwodegree(0.5)"
    directed: ClassVar[bool | None] = True
    instead: ClassVar[str] = "use kstar"
    counted: ClassVar[str] = "sent"


@term
class InStars(Stars):
    """Sets of k ties that one node receives."""

    name: ClassVar[str] = "istar"
    steadier: ClassVar[str] = "gwidegree(0.5)"
    directed: ClassVar[bool | None] = True
    instead: ClassVar[str] = "use kstar"
    counted: ClassVar[str] = "received"


def geometric(decay: float, most: int) -> np.ndarray:
    """exp(decay) (1 - r^d) for d = 0, ..., ``most`` and r = 1 - exp(-decay): each one more adds r times the last."""
    return np.exp(decay) * (1.0 - (1.0 - np.exp(-decay)) ** np.arange(most + 1))


def _require_decay(name: str, decay: Any) -> None:
    number = isinstance(decay, (int, float)) and not isinstance(decay, bool)
    if not number or not 0.0 <= decay < 10.0:
        raise ModelError(f"{name} takes a decay from 0 on, such as {name}(0.25), not {decay!r}")


@term
class Degrees(_OfNodes):
    """Geometrically weighted degrees."""

    name: ClassVar[str] = "gwdegree"
    when: ClassVar[str] = "per unit of {label} (a node's first tie counts 1, and each further one {further})"
    directed: ClassVar[bool | None] = False
    instead: ClassVar[str] = "use gwodegree (ties sent) or gwidegree (ties received)"
    decay: float

    def __post_init__(self) -> None:
        _require_decay(self.name, self.decay)

    def weights(self, most: int) -> np.ndarray:
        return geometric(self.decay, most)


@term
class OutDegrees(Degrees):
    """Geometrically weighted numbers of ties sent."""

    name: ClassVar[str] = "gwodegree"
    directed: ClassVar[bool | None] = True
    instead: ClassVar[str] = "use gwdegree"
    counted: ClassVar[str] = "sent"


@term
class InDegrees(Degrees):
    """Geometrically weighted numbers of ties received."""

    name: ClassVar[str] = "gwidegree"
    directed: ClassVar[bool | None] = True
    instead: ClassVar[str] = "use gwdegree"
    counted: ClassVar[str] = "received"


@term
class SharedPartners(Structure):
    """Geometrically weighted edgewise shared partners, of a directed graph those on two-paths i to k to j."""

    name: ClassVar[str] = "gwesp"
    when: ClassVar[str] = (
        "per unit of {label} (the first partner that two tied nodes share counts 1, each other {further})"
    )
    closure: ClassVar[bool] = True
    decay: float

    def __post_init__(self) -> None:
        _require_decay(self.name, self.decay)

    def statistic(self, whole: Whole) -> Float[np.ndarray, " b"]:
        return whole.over_ties(geometric(self.decay, whole.nodes))

    def change(self, at: AbstractDyads) -> Any:
        weights = geometric(self.decay, at.nodes)
        return at.look_up(weights, at.two_paths) + at.beside(np.diff(weights))


# -- statistics ----------------------------------------------------------------------------------


# Given all other ties, the log odds of a tie are theta . delta, with delta its change statistics. So all that losses
# need of a graph is which distinct (tie, delta) it has, and how many of each.


@dataclass(frozen=True, eq=False)
class GraphStatistics:
    """The statistics of terms on the nodes of a graph. Graphs are given by which dyads are ties.

    Attributes
    ----------
    terms : tuple of AbstractTerm
    graph : ObservedGraph
        The nodes; its ties do not matter.
    """

    terms: tuple[AbstractTerm, ...]
    graph: ObservedGraph

    @cached_property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """By term, the names of its coefficients where it has several."""
        return tuple(term.levels(self.graph) for term in self.terms)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name for each statistic."""
        pairs = zip(self.terms, self.levels, strict=True)
        return tuple(f"{t.label}[{level}]" if level else t.label for t, own in pairs for level in own or ("",))

    @cached_property
    def owner(self) -> Int[np.ndarray, " p"]:
        """The number of each statistic's term."""
        return np.repeat(np.arange(len(self.terms)), [max(1, len(own)) for own in self.levels])

    @cached_property
    def structures(self) -> tuple[tuple[int, Structure], ...]:
        """Terms through which ties depend on each other, each with the place of its statistic."""
        return tuple(
            (int(np.argmax(self.owner == k)), term) for k, term in enumerate(self.terms) if isinstance(term, Structure)
        )

    @cached_property
    def covariates(self) -> Float[np.ndarray, "d p"]:
        """Change statistics that are the same in every graph; zero for those of `structures`."""
        found = np.zeros((len(self.graph.dyads[0]), len(self.names)))
        for k, term in enumerate(self.terms):
            if isinstance(term, Covariate):
                found[:, self.owner == k] = term.values(self.graph)[self.graph.dyads]
        return found

    def adjacency(self, ties: Ties) -> Bool[np.ndarray, "b n n"]:
        """Adjacency matrices."""
        i, j = self.graph.dyads
        found = np.zeros((len(ties), self.graph.n, self.graph.n), bool)
        found[:, i, j] = ties
        return found if self.graph.directed else found | np.swapaxes(found, 1, 2)

    def of(self, ties: Ties) -> Float[np.ndarray, "b p"]:
        """Statistics of graphs."""
        found = ties.astype(float) @ self.covariates
        for part in self._parts(len(ties)):
            whole = Whole(self.adjacency(ties[part]), self.graph.directed) if self.structures else None
            for column, term in self.structures:
                assert whole is not None
                found[part, column] = term.statistic(whole)
        return found

    def changes(self, ties: Ties) -> Float[np.ndarray, "b d p"]:
        """Change statistics of all dyads of graphs: by how much each statistic grows when a tie is added."""
        found = np.repeat(self.covariates[None], len(ties), axis=0)
        for part in self._parts(len(ties)):
            for (column, _), change in zip(self.structures, self._structural(ties[part]), strict=True):
                found[part, :, column] = change
        return found

    def distinct(self, ties: Ties) -> Iterator[Dataset]:
        """For each graph its distinct dyads: 1 or 0, with the change statistics as covariates and how many there are.

        Examples
        --------
        >>> import dfdbayes as dfd, numpy as np
        >>> model = dfd.models.RandomGraph("edges + triangle").bound(dfd.ObservedGraph.of([(1, 2), (2, 3)]))
        >>> (data,) = model.statistics.distinct(np.array([[True, False, True]]))
        >>> data.rows[:, 0].tolist(), data.given.tolist(), data.counts.tolist()  # the open tie would close a triangle
        ([0, 1], [[1.0, 1.0], [1.0, 0.0]], [1.0, 2.0])
        """
        _, kinds = fold(self.covariates)
        for part in self._parts(len(ties)):
            own = [np.round(change, 11) for change in self._structural(ties[part])]  # later digits are rounding
            for b, tie in enumerate(ties[part]):
                first, counts = _distinct(2 * kinds + tie, [change[b] for change in own])
                delta = self.covariates[first].copy()
                for (column, _), change in zip(self.structures, own, strict=True):
                    delta[:, column] = change[b, first]
                yield Dataset(
                    tie[first, None].astype(np.int64), counts.astype(float), ("tie",), first,
                    source=self.graph.source, given=delta, given_columns=self.names,
                )  # fmt: skip

    def _parts(self, graphs: int) -> Iterator[slice]:
        """Some graphs at a time."""
        step = max(1, 2**21 // self.graph.n**2)
        for first in range(0, graphs, step):
            yield slice(first, min(first + step, graphs))

    def _structural(self, ties: Ties) -> list[Float[np.ndarray, "b d"]]:
        """Change statistics through which ties depend on each other, by term."""
        if not self.structures:
            return []
        at, (i, j) = AllDyads(self.adjacency(ties), self.graph.directed), self.graph.dyads
        return [np.asarray(term.change(at), float)[:, i, j] for _, term in self.structures]

    def require_apart(self) -> None:
        """Refuse covariates that are the same for all dyads, or that others determine."""
        columns = [k for k in range(len(self.names)) if isinstance(self.terms[self.owner[k]], Covariate)]
        known = self.covariates[:, columns]
        scale = np.abs(known).max(axis=0)
        if (scale == 0).any():
            name = self.names[columns[int(np.argmin(scale))]]
            raise DataError(f"{name} is zero for every pair of nodes, so nothing can be learnt of it; leave it out")
        weak = np.abs(np.diag(np.linalg.qr(known / scale, mode="r"))) < 1e-9 * np.sqrt(len(known))
        if len(known) < len(columns) or weak.any():
            place = int(np.argmax(weak))
            part = np.linalg.lstsq(known[:, :place] / scale[:place], known[:, place], rcond=None)[0]
            others = [self.names[columns[k]] for k in np.flatnonzero(np.abs(part) > 1e-6)]
            raise DataError(
                f"{self.names[columns[place]]} is determined by {', '.join(others) or 'the other terms'} (collinear): "
                "their effects cannot be told apart. What to do: leave one of them out."
            )


def _distinct(
    key: Int[np.ndarray, " d"], columns: list[Float[np.ndarray, " d"]]
) -> tuple[Int[np.ndarray, " u"], Int[np.ndarray, " u"]]:
    """The first of each kind of equal lines, and how many there are; most entries of columns are zero."""
    for column in columns:
        at = np.flatnonzero(column)
        values, place = np.unique(column[at], return_inverse=True)
        key = key * (len(values) + 1)
        key[at] += place + 1
        if key.max() > 2**40:  # which leaves room for the next column
            key = np.unique(key, return_inverse=True)[1]
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    return first, counts


# -- as they are written -------------------------------------------------------------------------


ELSEWHERE = {
    "absdiffcat", "asymmetric", "balance", "concurrent", "cycle", "degree", "density", "dgwdsp", "dgwesp", "dsp",
    "esp", "gwdsp", "gwnsp", "idegree", "isolates", "mm", "nodeicov", "nodeifactor", "nodemix", "nodeocov",
    "nodeofactor", "nsp", "odegree", "receiver", "sender", "sociality", "threetrail", "transitiveties", "tripercent",
    "twopath",
}  # fmt: skip
"""Terms of ergm that are not here, for which no other is meant."""
GIVEN = {"decay": "0.25", "attribute": "'group'", "matrix": "'distance'", "k": "2"}  # by field, an example,
OF_TYPE = {"int": "2", "float": "0.25", "bool": "True"}  # or by its type; else a text
TRUTH = {"TRUE": True, "T": True, "FALSE": False, "F": False}  # as R writes them
EXAMPLE = "\"edges + gwesp(0.25) + nodematch('grade')\""


def parse(text: Any) -> tuple[AbstractTerm, ...]:
    """The terms of a model such as "edges + gwesp(0.25) + nodematch('grade')"; nothing in the text is executed.

    Examples
    --------
    >>> [term.label for term in parse("edges + gwesp(0.25) + nodematch('grade')")]
    ['edges', 'gwesp(0.25)', 'nodematch(grade)']
    """
    if not isinstance(text, str) or not text.strip():
        raise ModelError(f"the terms of a random graph are a text such as {EXAMPLE}, not {text!r}")
    try:
        tree = ast.parse(re.sub(r"^[\w.]*\s*~", "", text.strip()).strip().replace("\n", " "), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise ModelError(f"the terms {text!r} cannot be read; write them as {EXAMPLE}") from problem
    found = tuple(_term(node) for node in _summands(tree))
    labels = [one.label for one in found]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ModelError(f"{twice} stands twice in {text!r}; leave one of them out")
    return found


def _summands(node: ast.expr) -> list[ast.expr]:
    right: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        right.append(node.right)
        node = node.left
    return [node, *reversed(right)]


def _term(node: ast.expr) -> AbstractTerm:
    called = node.func if isinstance(node, ast.Call) else node
    if not isinstance(called, ast.Name):
        raise ModelError(f"'{ast.unparse(node)}' is not a term; write terms with + between them, as in {EXAMPLE}")
    if called.id not in TERMS:
        close = [] if called.id in ELSEWHERE else difflib.get_close_matches(called.id, TERMS, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else "."
        hint = " here, though ergm has it." if called.id in ELSEWHERE else hint
        raise ModelError(f"there is no term '{called.id}'{hint} Known terms: {', '.join(TERMS)}.")
    kind = TERMS.by_name(called.id)
    given = [_value(part, kind) for part in node.args] if isinstance(node, ast.Call) else []
    named = {str(k.arg): _value(k.value, kind) for k in node.keywords} if isinstance(node, ast.Call) else {}
    takes = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    if "decay" in takes and named.pop("fixed", True) is not True:
        raise ModelError(f"'{ast.unparse(node)}': decays are fixed; leave fixed out, {kind.name}(0.25)")
    try:
        return kind(*given, **named)
    except TypeError:
        needed = [f for f in fields(kind) if f.default is MISSING] or list(fields(kind)[:1])  # type: ignore[arg-type]
        shown = ", ".join(_example(f) for f in needed)
        needs = f"{kind.name}({shown})" if takes else f"{kind.name}, with nothing in brackets"
        raise ModelError(f"'{ast.unparse(node)}' cannot be read; write {needs}") from None


def _example(field: Field[Any]) -> str:
    """A value that a field of a term may have, as it is written."""
    kind = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "")
    return GIVEN.get(field.name, OF_TYPE.get(kind, f"'{field.name}'"))


def _value(node: ast.expr, kind: type[AbstractTerm]) -> Any:
    """A number, a text or True or False, as it is written."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = _value(node.operand, kind)
        return -value if isinstance(value, (int, float)) else value
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
        return node.value
    if isinstance(node, ast.Name) and node.id in TRUTH:
        return TRUTH[node.id]
    if isinstance(node, ast.Name):
        raise ModelError(f"{kind.name}({node.id}): put names in quotes, {kind.name}('{node.id}')")
    raise ModelError(f"{kind.name}: '{ast.unparse(node)}' is neither a number nor a name in quotes")
