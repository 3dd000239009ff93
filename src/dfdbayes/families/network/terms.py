"""Terms of networks: the predictors of all nodes in a row are one product of matrices.

Node j has the local field sum_i w_ij s_i(x_i), and coefficients of what it owns (an intercept, thresholds, a curve). A
log-ratio is the change of the node's score times its local field, and changes of what it owns times these
coefficients: linear in all of them. So Hessians are made of one small matrix for each node, over its own features and
its neighbours' scores.

With covariates row i has a = sum_q z_iq a_q for everything that nodes own and W = sum_q z_iq W_q: what coefficients
multiply is multiplied by the terms z_iq as well (`Layout`). An offset is a term whose coefficient is 1.

Rows are columns here, which makes all that is done to them run along memory, and come in blocks that stay near the
processor while they are worked on.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float, Int

from ...core.graphs import Graph
from ...core.linear import AbstractLinear, Bends, Slopes, softplus, sum_softplus, summed
from ...core.parameters import Space, Theta
from ...core.sites import Sites
from ...core.terms import (
    AbstractTerms,
    Loss,
    Prepared,
    SecondOrder,
    Site,
    by_row,
    candidates,
    pad,
    padded_size,
    ratios,
    static,
    terms,
    weights_of_log_score,
)
from ..counts.normaliser import log_normaliser

ROWS_IN_BLOCK = 512  # all that they need stays in the cache


class Network(Protocol):
    """What these terms need of a network."""

    @property
    def space(self) -> Space: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def features(self) -> int: ...
    @property
    def folds(self) -> bool: ...
    @property
    def sign(self) -> float: ...
    @property
    def edge_of(self) -> Int[np.ndarray, "d d"]: ...
    @property
    def domain(self) -> Any: ...
    def own(self, values: np.ndarray) -> np.ndarray: ...
    def scores(self, values: np.ndarray) -> np.ndarray: ...
    def own_places(self, place: Callable[[str, int], int], none: int, one: int) -> Int[np.ndarray, "f d"]: ...
    def matrix(self, edge: Array) -> Array: ...
    def interaction_of(self, theta: dict[str, Any]) -> Any: ...


# -- which coefficients multiply what ----------------------------------------------------------


class Part(NamedTuple):
    """A term of a parameter: its covariate, and where its coefficients begin; None where they are 1 (an offset)."""

    column: int
    first: int | None


@dataclass(frozen=True)
class Layout:
    """Which coefficients multiply what, in every row; without covariates every parameter has one term, which is 1.

    Attributes
    ----------
    base : Network
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

    base: Network
    size: int
    feature: Int[np.ndarray, " k"]
    column: Int[np.ndarray, "k d"]
    place: Int[np.ndarray, "k d"]
    edges: tuple[Part, ...]

    @classmethod
    def of(cls, model: Any, base: Network, given: Array | None) -> Layout:
        """The last of the covariates is 1, for parameters without a formula."""
        none, ones = model.space.size, 0 if given is None else given.shape[-2] - 1
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

    def owned(self, own: Float[Array, "f d w"], given: Float[Array, "q w"] | None) -> Float[Array, "k d w"]:
        """What the coefficients of nodes multiply, from what they own."""
        return own[self.feature] if given is None else given[self.column] * own[self.feature]

    def seen(self, each: Float[Array, "e w"], given: Float[Array, "q w"] | None) -> Float[Array, "s w"]:
        """The same for every term of the interactions, times that term."""
        if given is None:
            return each if self.edges else each[:0]
        term = given[np.array([part.column for part in self.edges if part.first is not None], int)]
        return (term[:, None, :] * each[None, :, :]).reshape(-1, each.shape[1])

    def predictors(
        self, theta: Theta, scores: Float[Array, "d w"], given: Float[Array, "q w"] | None
    ) -> tuple[Array, Array]:
        """Local fields of every node, and what multiplies all that it owns."""
        local, pairs = jnp.zeros(()), len(self.base.graph.pairs)
        for column, first in self.edges:
            weights = jnp.ones(pairs) if first is None else theta[first : first + pairs]
            field = self.base.matrix(weights) @ scores
            local = local + (field if given is None else given[column][None, :] * field)
        each = jnp.concatenate([theta, jnp.array([0.0, 1.0])])[self.place][:, :, None]
        each = each if given is None else each * given[self.column]
        own = jnp.zeros((self.base.features, *each.shape[1:])).at[self.feature].add(each)
        return jnp.broadcast_to(local, scores.shape), own

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

    def assembled(self, slopes: Float[Array, "d s"], blocks: Float[Array, "d s s"]) -> tuple[Array, Array]:
        """Gradient and Hessian over all coefficients from those over the features of each node."""
        place, factor = self.slots
        gradient = jnp.zeros(self.size + 1).at[place].add(factor * slopes)
        signed = factor[:, :, None] * blocks * factor[:, None, :]
        hessian = jnp.zeros((self.size + 1, self.size + 1)).at[place[:, :, None], place[:, None, :]].add(signed)
        return gradient[:-1], hessian[:-1, :-1]

    def by_row(
        self, own: Float[Array, "f d w"], slope: Float[Array, "d w"], scores: Array, given: Array | None
    ) -> Float[Array, "w p"]:
        """Gradients of rows over all coefficients, from those over what nodes own and over local fields."""
        nodes, (i, j) = self.owned(own, given), self.base.graph.edges.T
        edges = self.seen(self.base.sign * (slope[i] * scores[j] + slope[j] * scores[i]), given)
        found = jnp.zeros((self.size + 2, own.shape[2])).at[self.place].add(nodes)
        first = min((part.first for part in self.edges if part.first is not None), default=0)
        return found.at[first : first + len(edges)].add(edges)[:-2].T


def _parts(model: Any, name: str, ones: int) -> tuple[Part, ...]:
    first = model.space.first.get(name, 0)
    if name not in model.varying:
        return (Part(ones, first),)
    design = model.space.predictor(name)
    found = [Part(design.first + t, first + t * design.of.size) for t in range(design.terms)]
    return (*found, *([] if design.offset is None else [Part(design.offset, None)]))


def bordered(inner: Array, across: Array, among: Array) -> Float[Array, "d s s"]:
    """Symmetric blocks from what belongs to a node's own features, to both, and to its edges'."""
    top = jnp.concatenate([inner, across], axis=2)
    return jnp.concatenate([top, jnp.concatenate([across.transpose(0, 2, 1), among], axis=2)], axis=1)


def blocked(array: np.ndarray, size: int) -> Array:
    """Rows along the last axis, up to ``size`` of them, in blocks that come first."""
    width = size if size <= ROWS_IN_BLOCK else math.gcd(size, ROWS_IN_BLOCK)
    parts = pad(np.asarray(array, float), size, axis=-1).reshape(*array.shape[:-1], -1, width)
    return jax.device_put(np.ascontiguousarray(np.moveaxis(parts, -2, 0)))


def _known(sites: Sites, model: Any, base: Network, size: int) -> tuple[Array, Array | None]:
    """Scores of every row, and its covariates with 1 after the last; None without formulas."""
    scores = blocked(base.scores(sites.rows), size)
    if model is base:
        return scores, None
    assert sites.given is not None
    return scores, blocked(np.column_stack([sites.given, np.ones(len(sites.rows))]).T, size)


def _both(base: Network) -> Float[Array, " d"]:
    """The sum of the scores of every node's two values."""
    levels = np.array([base.domain.coordinate(j).levels for j in range(base.graph.size)])
    return jnp.asarray(base.scores(levels.T).sum(axis=1), float)


# -- log-ratios --------------------------------------------------------------------------------


class Move(NamedTuple):
    """How moves change the score of each node and what it owns."""

    score: Float[Array, "d w"]
    own: Float[Array, "f d w"]


class NodeTerms(AbstractLinear):
    """Moves of single nodes; predictors are their log-ratios, one term each."""

    model: Any
    base: Network
    scores: Float[Array, "b d w"]
    context: Float[Array, "b q w"] | None
    keeps: ClassVar[bool] = True

    @abstractmethod
    def moves(self, part: Any) -> tuple[Move, ...]:
        """The moves of a block."""

    @property
    def layout(self) -> Layout:
        return Layout.of(self.model, self.base, self.context)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        return ((0,),)

    def predictors(self, eta: Array, part: Any) -> tuple[Array, ...]:
        local, own = self.layout.predictors(eta, *part[:2])
        if not self.base.folds:
            return tuple(_ratio(move, local, own, 0) for move in self.moves(part))
        # Neighbours see what intercepts multiply, so that an intercept is as good as one neighbour more.
        return tuple(_ratio(move, local + own[0], own, 1) for move in self.moves(part))

    def pullback(self, slopes: Slopes, part: Any) -> Float[Array, "d s"]:
        moves, (scores, given, *_), layout = self.moves(part), part, self.layout
        own = sum((slope[None] * move.own for slope, move in zip(slopes, moves, strict=True)), jnp.zeros(()))
        local = sum((slope * move.score for slope, move in zip(slopes, moves, strict=True)), jnp.zeros(()))
        return jnp.concatenate([layout.owned(own, given).sum(axis=2).T, local @ layout.seen(scores, given).T], axis=1)

    def gram(self, bends: Bends, part: Any) -> Float[Array, "d s s"]:
        moves, (scores, given, *_), layout = self.moves(part), part, self.layout
        features = layout.seen(scores, given)
        square, inner, across = jnp.zeros(()), jnp.zeros(()), jnp.zeros(())
        for i, move in enumerate(moves):
            heavy, owned = bends[i, i], layout.owned(move.own, given)
            square = square + heavy * move.score**2
            across = across + jnp.einsum("fdw,sw->dfs", (heavy * move.score)[None] * owned, features)
            inner = inner + jnp.einsum("fdw,gdw->dfg", heavy[None] * owned, owned)
        return bordered(inner, across, _among(square, features))

    def by_weight(self, slopes: Slopes, part: Any) -> Float[Array, "w p"]:
        moves = self.moves(part)
        own = sum((slope[None] * move.own for slope, move in zip(slopes, moves, strict=True)), jnp.zeros(()))
        local = sum((slope * move.score for slope, move in zip(slopes, moves, strict=True)), jnp.zeros(()))
        return self.layout.by_row(own, local, *part[:2])

    def assembled(self, pulled: Any, gram: Any) -> tuple[Array, Array]:
        return self.layout.assembled(pulled, gram)


def _ratio(move: Move, local: Array, own: Array, first: int) -> Float[Array, "d w"]:
    found = move.score * local
    for each, change in zip(own[first:], move.own[first:], strict=True):
        found = found + each * change
    return found


def _among(square: Float[Array, "d w"], features: Float[Array, "s w"]) -> Float[Array, "d s s"]:
    """For every node: the sum over rows of ``square`` times products of features, as one product of matrices."""
    lines = square[:, None, :] * features[None, :, :]
    return (lines.reshape(-1, features.shape[1]) @ features.T).reshape(len(square), len(features), len(features))


@terms
class NodeRatios(NodeTerms):
    """Decrements and increments of nodes, each with what it changes."""

    model: Any
    base: Network = static()
    scores: Float[Array, "b d w"]
    context: Float[Array, "b q w"] | None
    down: Move
    up: Move
    minus: Float[Array, "b d w"]
    plus: Float[Array, "b d w"]

    @staticmethod
    def of(model: Any, base: Network, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        rows, down, up = sites.rows, sites.down, sites.up
        below, above = (
            Move(blocked(base.scores(there) - base.scores(rows), size), blocked(base.own(there) - base.own(rows), size))
            for there in (down, up)
        )
        scales = (blocked(part.T, size) for part in (sites.minus, sites.plus))
        return by_row(sites, NodeRatios(model, base, *_known(sites, model, base, size), below, above, *scales), size)

    @property
    def parts(self) -> Any:
        return self.scores, self.context, self.down, self.up, self.minus, self.plus

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        return ((0,), (1,))

    def moves(self, part: Any) -> tuple[Move, ...]:
        return part[2], part[3]

    def losses(self, loss: Loss, group: int, part: Any) -> Callable[..., Array]:
        site = Site(None, part[5]) if group else Site(part[4], None)
        return lambda u: loss.term(u, site)

    def row_ratios(self, theta: Theta) -> Float[Array, "u d"]:
        return _by_row(jax.lax.map(lambda part: ratios(part[4], self.predictors(theta, part)[0]), self.parts))


def _by_row(blocks: Float[Array, "b d w"]) -> Float[Array, "u d"]:
    return blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])


class BinaryNodes(NodeTerms):
    """Nodes with two values: each is the decrement and the increment of the other, and the scores say which it is.

    Attributes
    ----------
    both : (d,) floats
        The sum of the two scores of each node.
    """

    both: Float[Array, " d"]

    @property
    def parts(self) -> Any:
        return self.scores, self.context

    def moves(self, part: Any) -> tuple[Move, ...]:
        there = self.both[:, None] - 2.0 * part[0]
        return (Move(there, there[None]),)


@terms
class BinaryRatios(BinaryNodes):
    """Log-ratios to the other value of each node."""

    model: Any
    base: Network = static()
    scores: Float[Array, "b d w"]
    context: Float[Array, "b q w"] | None
    both: Float[Array, " d"]
    site: Site

    @staticmethod
    def of(model: Any, base: Network, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        site = Site(*(blocked(part.T, size) for part in (sites.minus, sites.plus)))
        return by_row(sites, BinaryRatios(model, base, *_known(sites, model, base, size), _both(base), site), size)

    @property
    def parts(self) -> Any:
        return self.scores, self.context, self.site

    def losses(self, loss: Loss, group: int, part: Any) -> Callable[..., Array]:
        return lambda u: loss.term(u, part[2])

    def row_ratios(self, theta: Theta) -> Float[Array, "u d"]:
        return _by_row(jax.lax.map(lambda part: ratios(part[2].minus, self.predictors(theta, part)[0]), self.parts))


@terms
class BinaryConditionals(BinaryNodes):
    """Each value given the others is a logistic regression."""

    model: Any
    base: Network = static()
    scores: Float[Array, "b d w"]
    context: Float[Array, "b q w"] | None
    both: Float[Array, " d"]

    @staticmethod
    def of(model: Any, base: Network, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        return by_row(sites, BinaryConditionals(model, base, *_known(sites, model, base, size), _both(base)), size)

    def losses(self, loss: Loss, group: int, part: Any) -> Callable[..., Array]:
        return lambda u: loss.term(-softplus(u), None)

    def sums_by_weight(self, loss: Loss, eta: Array, part: Any) -> tuple[Array, ...]:
        (u,) = self.predictors(eta, part)
        return (loss.term(-sum_softplus(u), None),)


# -- conditionals of several values ------------------------------------------------------------


@terms
class LevelConditionals(AbstractTerms):
    """Each value given the others has a finite sum, over its levels; counts are listed far beyond the largest seen.

    Derivatives are its own rule: gradients are expected less observed features of each node given the rest, Hessians
    the features' covariances.
    """

    model: Any
    base: Network = static()
    scores: Float[Array, "b d w"]
    context: Float[Array, "b q w"] | None
    own: Float[Array, "b f d w"]
    seen: Float[Array, "d k"]
    owned: Float[Array, "f d k"]
    allowed: Bool[Array, "d k"]

    @classmethod
    def of(cls, model: Any, base: Network, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        values, allowed = candidates(base.domain, sites.rows)
        listed = jax.device_put((base.scores(values.T), base.own(values.T), allowed))
        known = _known(sites, model, base, size)
        return by_row(sites, cls(model, base, *known, blocked(base.own(sites.rows), size), *listed), size)

    @property
    def layout(self) -> Layout:
        return Layout.of(self.model, self.base, self.context)

    def _parts(self, weights: Any) -> tuple[Any, ...]:
        return self.scores, self.context, self.own, weights.reshape(len(self.scores), -1)

    def _given_rest(self, theta: Theta, part: Any) -> tuple[Array, Array, Array]:
        """Local fields, what nodes' own multiply, and unnormalised log probabilities of levels."""
        local, eta = self.layout.predictors(theta, *part[:2])
        level = jnp.where(self.allowed[:, :, None], jnp.einsum("fdw,fdk->dkw", eta, self.owned), -jnp.inf)
        return local, eta, level + self.seen[:, :, None] * local[:, None, :]

    def _losses(self, part: Any, local: Array, eta: Array, constant: Array) -> Float[Array, " w"]:
        """Minus the log probabilities of rows, summed over nodes."""
        return jnp.sum(constant - part[0] * local - jnp.sum(eta * part[2], axis=0), axis=0)

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        def add(total: Array, part: Any) -> tuple[Array, None]:
            local, eta, log = self._given_rest(theta, part)
            found = self._losses(part, local, eta, jax.nn.logsumexp(log, axis=1))
            return total + jnp.dot(part[3], loss.term(-found, None)), None

        return jax.lax.scan(add, jnp.zeros(()), self._parts(weights))[0]

    def _means(self, chance: Array) -> tuple[Array, Array]:
        """Expected scores, and of what nodes own, given the rest."""
        return jnp.einsum("dk,dkw->dw", self.seen, chance), jnp.einsum("fdk,dkw->fdw", self.owned, chance)

    def second_order(self, loss: Loss, theta: Theta, weights: Any) -> SecondOrder:
        layout = self.layout

        def of_block(part: Any) -> tuple[Array, ...]:
            scores, given, own, weights = part
            local, eta, log = self._given_rest(theta, part)
            constant = jax.nn.logsumexp(log, axis=1)
            chance = jnp.exp(log - constant[:, None, :])
            score, owned = self._means(chance)
            spread = jnp.einsum("dk,dkw->dw", self.seen**2, chance) - score**2
            mixed = jnp.einsum("fdk,dk,dkw->fdw", self.owned, self.seen, chance) - owned * score[None]
            features, heavy = layout.seen(scores, given), weights[None, None, :]
            return (
                jnp.dot(weights, self._losses(part, local, eta, constant)),
                jnp.einsum("kdw,w->dk", layout.owned(owned - own, given), weights),
                ((score - scores) * weights[None, :]) @ features.T,
                self._inner(layout, given, chance, owned, weights),
                jnp.einsum("kdw,sw->dks", layout.owned(mixed, given) * heavy, features),
                _among(spread * weights[None, :], features),
            )

        parts = self._parts(weights_of_log_score(loss, weights))
        value, nodes, edges, inner, across, among = summed(of_block, parts)
        slopes = jnp.concatenate([nodes, edges], axis=1)
        return value, *layout.assembled(slopes, bordered(inner, across, among))

    def _inner(
        self, layout: Layout, given: Array | None, chance: Array, owned: Array, weights: Array
    ) -> Float[Array, "d k k"]:
        """Covariances of what each node owns, summed over rows."""
        if given is None:  # summed over rows before products are taken
            own, mean = self.owned[layout.feature], owned[layout.feature]
            often = jnp.einsum("dkw,w->dk", chance, weights)
            found = jnp.einsum("fdk,gdk,dk->dfg", own, own, often)
            return found - jnp.einsum("fdw,gdw->dfg", mean * weights[None, None, :], mean)
        square = jnp.einsum("fdk,gdk,dkw->fgdw", self.owned, self.owned, chance) - owned[:, None] * owned[None]
        term = given[layout.column]
        pairs = np.ix_(layout.feature, layout.feature)
        return jnp.einsum("fgdw,fdw,gdw->dfg", square[pairs], term * weights[None, None, :], term)

    def per_term_gradients(self, loss: Loss, theta: Theta, weights: Any, at_once: int) -> Float[Array, "u p"]:
        layout, scale = self.layout, weights_of_log_score(loss, jnp.ones(()))

        def of_block(part: Any) -> Array:
            scores, given, own = part
            score, owned = self._means(jax.nn.softmax(self._given_rest(theta, part)[2], axis=1))
            return scale * layout.by_row(owned - own, score - scores, scores, given)

        return jax.lax.map(of_block, (self.scores, self.context, self.own)).reshape(-1, len(theta))


@terms
class OrdinalConditionals(LevelConditionals):
    """The same sums over levels, which neighbours see at equal distances: polynomials, of one exponential.

    No row is needed for what is linear. There are no covariates.
    """

    @property
    def at_once(self) -> int:  # type: ignore[override]
        """So many parameters that a block of rows is worth a step of its loop."""
        _, d, width = self.scores.shape
        return 2 ** (max(1, 2**13 // (d * width)).bit_length() - 1)  # numbers for each of them

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        matrix, eta = (
            self.base.matrix(self.base.interaction_of(self.base.space.unflatten(theta))),
            self.layout.predictors(theta, self.scores[0], None)[1][:, :, 0],
        )
        level = jnp.where(self.allowed, jnp.einsum("fd,fdk->dk", eta, self.owned), -jnp.inf)
        sums = log_sums_of_powers(level, jnp.sum(self.allowed, axis=1))
        first, step = self.seen[:, :1], self.seen[:, 1:2] - self.seen[:, :1]

        def add(total: Array, block: tuple[Array, Array]) -> tuple[Array, None]:
            scores, weights = block
            local = matrix @ scores
            return total + jnp.dot(weights, jnp.sum(sums(step * local) + (first - scores) * local, axis=0)), None

        weights = weights_of_log_score(loss, weights).reshape(len(self.scores), -1)
        own = jnp.einsum("bfdw,bw->fd", self.own, weights)
        return jax.lax.scan(add, -jnp.sum(eta * own), (self.scores, weights))[0]


def log_sums_of_powers(
    log: Float[Array, "d k"], number: Int[Array, " d"]
) -> Callable[[Float[Array, "d w"]], Float[Array, "d w"]]:
    """Gives log sum_k exp(log_k + k u), of the first ``number`` of k, for each u.

    That is a polynomial in exp(u); where u is positive it is turned round, so that no power overflows.
    """
    places = jnp.arange(log.shape[1])[None, :]
    top = jnp.max(log, axis=1, keepdims=True)
    weight = jnp.exp(log - top)
    turned = jnp.take_along_axis(weight, jnp.maximum(number[:, None] - 1 - places, 0), axis=1)
    turned = jnp.where(places < number[:, None], turned, 0.0)

    def of(u: Float[Array, "d w"]) -> Float[Array, "d w"]:
        up = u > 0.0
        power = jnp.exp(jnp.where(up, -u, u))
        total = jnp.zeros_like(u)
        for k in reversed(range(log.shape[1])):
            total = total * power + jnp.where(up, turned[:, k, None], weight[:, k, None])
        return top + jnp.where(up, (number[:, None] - 1) * u, 0.0) + jnp.log(jnp.maximum(total, 1e-300))

    return of


@terms
class CountConditionals(AbstractTerms):
    """Each count given the others is Conway-Maxwell-Poisson; for nu = 1 its constant is exp(rate)."""

    model: Any
    rows: Float[Array, "d u"]

    @staticmethod
    def of(model: Any, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        rows = jax.device_put(pad(np.asarray(sites.rows, float), size).T)
        return by_row(sites, CountConditionals(model, rows), size)

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        intercept, interaction, nu = self.model.parts(self.model.space.unflatten(theta))
        local = intercept[:, None] + self.model.matrix(interaction) @ self.rows
        if nu is None:
            constant, power = jnp.exp(local), jnp.ones((len(intercept), 1))
        else:
            constant, power = log_normaliser(local, jnp.broadcast_to(nu[:, None], local.shape)), nu[:, None]
        found = jnp.sum(constant - self.rows * local + power * gammaln(self.rows + 1.0), axis=0)
        return jnp.dot(weights, loss.term(-found, None))
