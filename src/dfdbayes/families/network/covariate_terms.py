"""Tables of networks whose nodes and edges depend on covariates.

Row i has a = sum_q z_iq a_q for everything that nodes own (intercepts, thresholds) and W = sum_q z_iq W_q, so its
log-ratios are linear in all coefficients, as those of the network itself are: what nodes own and what is seen of their
neighbours are multiplied by the terms z_iq. An offset is a term whose coefficient is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ...core.parameters import Theta
from ...core.sites import Sites
from ...core.terms import Prepared, SecondOrder, by_row, padded_size, table
from .terms import LevelConditionals, PairwiseTable, assembled, bordered, columns, joined, moves, placed

if TYPE_CHECKING:
    from .model import Pairwise


class Part(NamedTuple):
    """A term of a parameter: its covariate, and where its coefficients begin; None where they are 1 (an offset)."""

    column: int
    first: int | None


@dataclass(frozen=True)
class Layout:
    """Which coefficients multiply what, in every row.

    Attributes
    ----------
    base : Pairwise
    size : int
        How many coefficients there are; the number after the last stands for none, the next for a coefficient of 1.
    feature : (k,) integers
        What nodes own (the first axis of `Pairwise.own`), once for each term that it depends on.
    column : (k, d) integers
        The covariate that multiplies it, by node.
    place : (k, d) integers
        Its coefficient, by node.
    edges : tuple of Part
        The terms of the interactions.
    """

    base: Pairwise
    size: int
    feature: Int[np.ndarray, " k"]
    column: Int[np.ndarray, "k d"]
    place: Int[np.ndarray, "k d"]
    edges: tuple[Part, ...]

    @classmethod
    def of(cls, model: Pairwise, given: int) -> Layout:
        """The last of the ``given`` covariates is 1, for parameters without a formula."""
        base = model.plain
        none, ones = model.space.size, given - 1
        known = {p.name: _parts(model, p.name, ones) for p in base.space.parameters}
        edges = known.pop("interaction", ())
        found = []
        for t in range(max(map(len, known.values()), default=1)):
            at = {name: parts[t] if t < len(parts) else None for name, parts in known.items()}

            def place(name: str, i: int, at: dict[str, Part | None] = at) -> int:
                part = at[name]
                return none if part is None else none + 1 if part.first is None else part.first + i

            def column(name: str, i: int, at: dict[str, Part | None] = at) -> int:
                part = at[name]
                return ones if part is None else part.column

            # A fixed coefficient, such as that of log x! in a Poisson column, is there once.
            where = base.own_places(place, none, none if t else none + 1)
            used = np.flatnonzero((where != none).any(axis=1))
            found.append((used, base.own_places(column, ones, ones)[used], where[used]))
        feature, columns, places = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return cls(base, none, feature, columns, places, edges)

    def owned(self, own: Float[Array, "f d u"], given: Float[Array, "q u"]) -> Float[Array, "k d u"]:
        """What the coefficients of nodes multiply, from what they own."""
        return given[self.column] * own[self.feature]

    def seen(self, each: Float[Array, "e u"], given: Float[Array, "q u"]) -> Float[Array, "s u"]:
        """The same for every term of the interactions, times that term."""
        terms = given[np.array([part.column for part in self.edges if part.first is not None], int)]
        return (terms[:, None, :] * each[None, :, :]).reshape(-1, each.shape[1])

    def predictors(self, theta: Theta, scores: Float[Array, "d u"], given: Float[Array, "q u"]) -> tuple[Array, Array]:
        """Local fields of every node, and what multiplies all that it owns."""
        local, pairs = jnp.zeros_like(scores), len(self.base.graph.pairs)
        for column, first in self.edges:
            weights = jnp.ones(pairs) if first is None else theta[first : first + pairs]
            local += given[column][None, :] * (self.base.matrix(weights) @ scores)
        each = jnp.concatenate([theta, jnp.array([0.0, 1.0])])[self.place][:, :, None] * given[self.column]
        own = jnp.zeros((1 + self.base.bent + self.base.longest, *scores.shape)).at[self.feature].add(each)
        return local, own

    @property
    def slots(self) -> tuple[Int[np.ndarray, "d s"], Float[np.ndarray, "d s"]]:
        """Which coefficient (one past the last for none) multiplies each feature of a node, its own first; its sign."""
        edge_of, pairs = self.base.edge_of, len(self.base.graph.pairs)
        own = np.minimum(self.place, self.size).T
        among = [
            np.where(edge_of < pairs, part.first + edge_of, self.size) for part in self.edges if part.first is not None
        ]
        place = np.hstack([own, *among])
        factor = np.ones(place.shape)
        factor[:, own.shape[1] :] = self.base.sign
        return place, factor

    def edge_lines(
        self, slope: Float[Array, "d u"], scores: Float[Array, "d u"], given: Float[Array, "q u"]
    ) -> tuple[int, Float[Array, "e u"]]:
        """Where the interactions begin among the coefficients, and the gradient of every row with respect to them."""
        first = min((part.first for part in self.edges if part.first is not None), default=0)
        return first, self.seen(joined(self.base, slope, scores), given)


def _parts(model: Pairwise, name: str, ones: int) -> tuple[Part, ...]:
    first = model.space.first.get(name, 0)
    if name not in model.varying:
        return (Part(ones, first),)
    design = model.space.predictor(name)
    found = [Part(design.first + t, first + t * design.of.size) for t in range(design.terms)]
    return (*found, *([] if design.offset is None else [Part(design.offset, None)]))


def _covariates(sites: Sites, size: int) -> Array:
    """Covariates of every row as columns, and 1 after the last."""
    assert sites.given is not None
    return columns(np.column_stack([sites.given, np.ones(len(sites.rows))]), size)


@table
class PairwiseRegressionTable(PairwiseTable):
    """The table of a network, and the covariates of every row as columns, 1 for parameters without a formula last."""

    given: Float[Array, "q u"]

    @staticmethod
    def of(model: Pairwise, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        parts = (*moves(model.plain, sites, size), _covariates(sites, size))
        return by_row(sites, PairwiseRegressionTable(model, *parts), size)

    @property
    def base(self) -> Pairwise:
        return self.model.plain

    @property
    def layout(self) -> Layout:
        return Layout.of(self.model, len(self.given))

    def predictors(self, theta: Theta) -> tuple[Array, Array]:
        return self.layout.predictors(theta, self.scores, self.given)

    @property
    def owned(self) -> tuple[Float[Array, "f d u"], Float[Array, "f d u"]]:
        return self.layout.owned(self.own_down, self.given), self.layout.owned(self.own_up, self.given)

    @property
    def features(self) -> Float[Array, "s u"]:
        return self.layout.seen(self.scores, self.given)

    @property
    def slots(self) -> tuple[Int[np.ndarray, "d s"], Float[np.ndarray, "d s"]]:
        return self.layout.slots

    def edge_lines(self, slope: Float[Array, "d u"]) -> tuple[int, Float[Array, "e u"]]:
        return self.layout.edge_lines(slope, self.scores, self.given)


@table
class LevelRegressionConditionals(LevelConditionals):
    """Each value given the others and the covariates has a finite sum, over its levels."""

    given: Float[Array, "b q w"]

    @staticmethod
    def of(model: Pairwise, sites: Sites) -> Prepared:
        prepared = LevelConditionals.of(model.plain, sites)
        plain = prepared.table
        blocks, _, width = plain.scores.shape
        given = _covariates(sites, blocks * width).reshape(-1, blocks, width).transpose(1, 0, 2)
        parts = (plain.scores, plain.own, plain.seen, plain.owned, plain.allowed, given)
        return replace(prepared, table=LevelRegressionConditionals(model, *parts))

    @property
    def layout(self) -> Layout:
        return Layout.of(self.model, self.given.shape[1])

    @property
    def _blocks(self) -> tuple[Array, ...]:
        return self.scores, self.own, self.given

    def _chances(self, theta: Theta) -> Callable[[tuple[Array, ...]], tuple[Array, Array, Array]]:
        layout = self.layout

        def of(block: tuple[Array, ...]) -> tuple[Array, Array, Array]:
            local, eta = layout.predictors(theta, block[0], block[2])
            level = jnp.where(self.allowed[:, :, None], jnp.einsum("fdw,fdk->dkw", eta, self.owned), -jnp.inf)
            return local, eta, level + self.seen[:, :, None] * local[:, None, :]

        return of

    def second_order(self, theta: Theta, weights: Any) -> SecondOrder:
        """As without covariates, where every feature has a term for each coefficient."""
        layout, chances = self.layout, self._chances(theta)
        place, factor = layout.slots
        (d, s), k = place.shape, len(layout.feature)
        pairs = np.ix_(layout.feature, layout.feature)

        def add(sums: tuple[Array, ...], block: tuple[Array, ...]) -> tuple[tuple[Array, ...], None]:
            scores, own, given, weights = block
            local, eta, log = chances(block)
            constant = jax.nn.logsumexp(log, axis=1)
            chance = jnp.exp(log - constant[:, None, :])
            score, owned = self._means(chance)
            terms = constant - scores * local - jnp.sum(eta * own, axis=0)
            spread = jnp.einsum("dk,dkw->dw", self.seen**2, chance) - score**2
            mixed = jnp.einsum("fdk,dk,dkw->fdw", self.owned, self.seen, chance) - owned * score[None]
            square = jnp.einsum("fdk,gdk,dkw->fgdw", self.owned, self.owned, chance)
            square -= owned[:, None] * owned[None]
            term, features = given[layout.column], layout.seen(scores, given)
            heavy = term * weights[None, None, :]
            lines = (spread * weights[None, :])[:, None, :] * features[None, :, :]
            new = (
                jnp.dot(weights, jnp.sum(terms, axis=0)),
                jnp.einsum("fdw,w->df", layout.owned(owned - own, given), weights),
                ((score - scores) * weights[None, :]) @ features.T,
                jnp.einsum("fgdw,fdw,gdw->dfg", square[pairs], heavy, term),
                jnp.einsum("fdw,sw->dfs", mixed[layout.feature] * heavy, features),
                (lines.reshape(-1, features.shape[1]) @ features.T).reshape(d, s - k, s - k),
            )
            return tuple(a + b for a, b in zip(sums, new, strict=True)), None

        shapes = ((), (d, k), (d, s - k), (d, k, k), (d, k, s - k), (d, s - k, s - k))
        none = tuple(jnp.zeros(shape) for shape in shapes)
        value, nodes, edges, inner, across, among = jax.lax.scan(add, none, self._weighted(weights))[0]
        slopes = jnp.concatenate([nodes, edges], axis=1)
        return value, *assembled(len(theta), place, factor, slopes, bordered(inner, across, among))

    def _placed(self, block: tuple[Array, ...], own: Array, slope: Array, size: int) -> Float[Array, "w p"]:
        layout, (scores, _, given) = self.layout, block
        return placed(size, layout.slots[0], layout.owned(own, given), layout.edge_lines(slope, scores, given))
