"""Terms of exponential random graph models: one small class each, all in one table.

Definitions are those of statnet's ergm (Hunter, Handcock, Butts, Goodreau and Morris, 2008). A term is either a sum
over ties of a covariate of the pair (`Covariate`: ties do not depend on each other through it), or depends on other
ties (`Structure`); then it says its statistic, and its change statistic, which is by how much the statistic grows when
a tie is added. `docs/how-to/add-a-graph-term.md` adds one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np
from jaxtyping import Float
from scipy.special import comb

from ...errors import ModelError
from .counts import AbstractDyads, Whole
from .observed import ObservedGraph

TERMS: dict[str, type[AbstractTerm]] = {}
T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def term(cls: type[T]) -> type[T]:
    """Make a class a term: what it takes are its fields, and its ``name`` goes into the table."""
    made: Any = dataclass(frozen=True)(cls)
    TERMS[made.name] = made
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


# -- covariates of pairs -----------------------------------------------------------------------


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


# -- structure ---------------------------------------------------------------------------------


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
    directed: ClassVar[bool | None] = True
    instead: ClassVar[str] = "use kstar"
    counted: ClassVar[str] = "sent"


@term
class InStars(Stars):
    """Sets of k ties that one node receives."""

    name: ClassVar[str] = "istar"
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
