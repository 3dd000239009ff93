"""Statistics and change statistics of graphs on the same nodes, many graphs at once.

Given all other ties, the log odds of a tie are theta . delta, with delta its change statistics. So all that losses need
of a graph is which distinct (tie, delta) it has, and how many of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from ...core.dataset import Dataset
from ...core.distinct_terms import fold
from ...errors import DataError
from .counts import AllDyads, Whole
from .observed import ObservedGraph
from .terms import AbstractTerm, Covariate, Structure

AT_ONCE = 2**21  # dyads, of all graphs that are worked on together
DIGITS = 11  # of change statistics that count: sums in another order differ in the last ones

Ties = Bool[np.ndarray, "b d"]


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
            own = [np.round(change, DIGITS) for change in self._structural(ties[part])]
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
        step = max(1, AT_ONCE // self.graph.n**2)
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
