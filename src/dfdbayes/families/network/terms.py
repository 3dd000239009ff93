"""Terms of networks: the predictors of all nodes in a row are one product of matrices.

Given all others, column j of row i is an exponential family in theta (see `model` for the letters),

    log p(x_j | rest) = eta_j . t_j(x_j) + s_j(x_j) field_ij - log constant,      field_ij = sigma sum_k w_jk s_k(x_ik).

A log-ratio is eta_j times the change of t_j plus field_ij times the change of s_j. Of the log score of conditionals,
with T = (t_j, s_j times the neighbours' s) the statistics of one node,

    gradient = E[T | rest] - T,        Hessian = Cov[T | rest],

each summed over nodes and rows. Both losses' Hessians are made of one small matrix for each node, over its own
statistics and its neighbours'.

With covariates row i has eta_i = sum_q z_iq eta_q and w_i = sum_q z_iq w_q: statistics are multiplied by the terms z_iq
as well (`Layout`). An offset is a term whose coefficient is 1.

Axes: d nodes, e edges, f node statistics of a column, k features of a node (f for each term of the formula), s features
of its edges or all of its features, l listed values, q covariates, w rows of a block, b blocks, u rows, p parameters.
Rows stand last, which makes all that is done to them run along memory, and come in blocks that stay near the processor
while they are worked on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float, Int

from ...core.dataset import Sites
from ...core.graphs import Graph
from ...core.linear import AbstractLinear, Bends, Slopes, softplus, sum_softplus, summed
from ...core.parameters import SHAPE, Space, Theta
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
    def is_auto(self) -> bool: ...
    @property
    def sign(self) -> float: ...
    @property
    def edge_of(self) -> Int[np.ndarray, "d d"]: ...
    @property
    def coefficient_of(self) -> Int[np.ndarray, "f d"]: ...
    @property
    def domain(self) -> Any: ...
    def node_statistics(self, x: np.ndarray) -> np.ndarray: ...
    def edge_statistics(self, x: np.ndarray) -> np.ndarray: ...
    def matrix(self, edge: Array) -> Array: ...
    def interaction_of(self, theta: dict[str, Any]) -> Any: ...


# -- which coefficients multiply what ----------------------------------------------------------


class Term(NamedTuple):
    """A term of a formula: its covariate, and where its coefficients begin; that is None if they are 1 (an offset)."""

    covariate: int
    first: int | None


@dataclass(frozen=True)
class Layout:
    """Which coefficients multiply what, in every row; without covariates every parameter has one term, which is 1.

    An example: two binary nodes and ``formula="~ group"``. A row's covariates are z = (1, group), the terms of the
    formula, and a last 1; theta is (intercept[0], intercept[1], intercept[0:group], intercept[1:group], interaction).
    The one node statistic of each node counts twice, once for each term:

    =========== ================== =====================================================
    statistic   [0, 0]             t_0 = x, both times
    covariate   [[0, 0], [1, 1]]   times z_0 = 1, and times z_1 = group
    coefficient [[0, 1], [2, 3]]   the intercept of each node, and its intercept:group
    edges       (Term(2, 4),)      theta_4, the interaction, times z_2 = 1
    =========== ================== =====================================================

    Attributes
    ----------
    plain : Network
        The network without covariates.
    size : int
        How many coefficients there are; the number after the last stands for none, the next for a coefficient of 1.
    statistic : (k,) integers
        The node statistics, once for each term that they depend on.
    covariate : (k, d) integers
        What multiplies them, by node.
    coefficient : (k, d) integers
        Their coefficient, by node.
    edges : tuple of Term
        The terms of the interactions.
    """

    plain: Network
    size: int
    statistic: Int[np.ndarray, " k"]
    covariate: Int[np.ndarray, "k d"]
    coefficient: Int[np.ndarray, "k d"]
    edges: tuple[Term, ...]

    @classmethod
    def of(cls, model: Any, plain: Network, z: Array | None) -> Layout:
        """The last of the covariates is 1, for parameters without a formula."""
        none, ones = model.space.size, 0 if z is None else z.shape[-2] - 1
        known = {p.name: _terms(model, p.name, ones) for p in plain.space.parameters}
        edges, found, sizes = known.pop("interaction", ()), [], {p.name: p.size for p in plain.space.parameters}
        for t in range(max(map(len, known.values()), default=1)):
            # By entry of the plain network's parameters, and last of no statistic and of one whose coefficient is 1,
            # such as that of log x! in a Poisson column, which counts once.
            coefficient = np.full(plain.space.size + 2, none)
            covariate = np.full(plain.space.size + 2, ones)
            coefficient[-1] = none if t else none + 1
            for name, terms_of in known.items():
                if t < len(terms_of):
                    first, own = terms_of[t].first, plain.space.first[name] + np.arange(sizes[name])
                    covariate[own] = terms_of[t].covariate
                    coefficient[own] = none + 1 if first is None else first + np.arange(sizes[name])
            at = plain.coefficient_of
            used = np.flatnonzero((coefficient[at] != none).any(axis=1))
            found.append((used, covariate[at][used], coefficient[at][used]))
        statistic, covariates, coefficients = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return cls(plain, none, statistic, covariates, coefficients, edges)

    def node_features(self, t: Float[Array, "f d w"], z: Float[Array, "q w"] | None) -> Float[Array, "k d w"]:
        """What the coefficients of nodes multiply: node statistics times the terms of their formulas."""
        return t[self.statistic] if z is None else z[self.covariate] * t[self.statistic]

    def edge_features(self, s: Float[Array, "e w"], z: Float[Array, "q w"] | None) -> Float[Array, "s w"]:
        """The same of edge statistics, for every term of the interactions."""
        if z is None:
            return s if self.edges else s[:0]
        term = z[np.array([term.covariate for term in self.edges if term.first is not None], int)]
        return (term[:, None, :] * s[None, :, :]).reshape(-1, s.shape[1])

    def predictors(
        self, theta: Theta, s: Float[Array, "d w"], z: Float[Array, "q w"] | None
    ) -> tuple[Float[Array, "d w"], Float[Array, "f d w"]]:
        """The field of every node, and eta, what multiplies its statistics."""
        field, pairs = jnp.zeros(()), len(self.plain.graph.pairs)
        for covariate, first in self.edges:
            weights = jnp.ones(pairs) if first is None else theta[first : first + pairs]
            found = self.plain.matrix(weights) @ s
            field = field + (found if z is None else z[covariate][None, :] * found)
        each = jnp.concatenate([theta, jnp.array([0.0, 1.0])])[self.coefficient][:, :, None]
        each = each if z is None else each * z[self.covariate]
        eta = jnp.zeros((self.plain.features, *each.shape[1:])).at[self.statistic].add(each)
        return jnp.broadcast_to(field, s.shape), eta

    @property
    def of_features(self) -> tuple[Int[np.ndarray, "d s"], Float[np.ndarray, "d s"]]:
        """Which coefficient (one past the last for none) multiplies each feature of a node, its own first; its sign."""
        edge_of, pairs = self.plain.edge_of, len(self.plain.graph.pairs)
        own = np.minimum(self.coefficient, self.size).T
        among = [
            np.where(edge_of < pairs, term.first + edge_of, self.size) for term in self.edges if term.first is not None
        ]
        coefficient = np.hstack([own, *among])
        sign = np.ones(coefficient.shape)
        sign[:, own.shape[1] :] = self.plain.sign
        return coefficient, sign

    def assembled(self, slopes: Float[Array, "d s"], blocks: Float[Array, "d s s"]) -> tuple[Array, Array]:
        """Gradient and Hessian over all coefficients from those over the features of each node."""
        at, sign = self.of_features
        gradient = jnp.zeros(self.size + 1).at[at].add(sign * slopes)
        signed = sign[:, :, None] * blocks * sign[:, None, :]
        hessian = jnp.zeros((self.size + 1, self.size + 1)).at[at[:, :, None], at[:, None, :]].add(signed)
        return gradient[:-1], hessian[:-1, :-1]

    def by_row(
        self, t: Float[Array, "f d w"], slope: Float[Array, "d w"], s: Float[Array, "d w"], z: Array | None
    ) -> Float[Array, "w p"]:
        """Gradients of rows over all coefficients, from those over node statistics and over fields."""
        nodes, (i, j) = self.node_features(t, z), self.plain.graph.edges.T
        edges = self.edge_features(self.plain.sign * (slope[i] * s[j] + slope[j] * s[i]), z)
        found = jnp.zeros((self.size + 2, t.shape[2])).at[self.coefficient].add(nodes)
        first = min((term.first for term in self.edges if term.first is not None), default=0)
        return found.at[first : first + len(edges)].add(edges)[:-2].T


def _terms(model: Any, name: str, ones: int) -> tuple[Term, ...]:
    first = model.space.first.get(name, 0)
    if name not in model.varying:
        return (Term(ones, first),)
    design = model.space.predictor(name)
    found = [Term(design.first + q, first + q * design.of.size) for q in range(design.terms)]
    return (*found, *([] if design.offset is None else [Term(design.offset, None)]))


def bordered(inner: Array, across: Array, among: Array) -> Float[Array, "d s s"]:
    """Symmetric blocks from what belongs to a node's own features, to both, and to its edges'."""
    top = jnp.concatenate([inner, across], axis=2)
    return jnp.concatenate([top, jnp.concatenate([across.transpose(0, 2, 1), among], axis=2)], axis=1)


def blocked(array: np.ndarray, size: int) -> Array:
    """Rows along the last axis, up to ``size`` of them, in blocks that come first."""
    # As many blocks as are needed: of up to two the loop over them takes longer than it saves (benchmarks/suite.py).
    most = size if size <= 2 * ROWS_IN_BLOCK else ROWS_IN_BLOCK
    width = next(width for width in range(most, 0, -1) if size % width == 0)
    parts = pad(np.asarray(array, float), size, axis=-1).reshape(*array.shape[:-1], -1, width)
    return jax.device_put(np.ascontiguousarray(np.moveaxis(parts, -2, 0)))


def _known(sites: Sites, model: Any, plain: Network, size: int) -> tuple[Array, Array | None]:
    """Edge statistics of every row, and its covariates with 1 after the last; None without formulas."""
    s = blocked(plain.edge_statistics(sites.rows), size)
    if model is plain:
        return s, None
    assert sites.given is not None
    return s, blocked(np.column_stack([sites.given, np.ones(len(sites.rows))]).T, size)


def _both(plain: Network) -> Float[Array, " d"]:
    """The sum of the edge statistics of every node's two values."""
    levels = np.array([plain.domain.coordinate(j).levels for j in range(plain.graph.size)])
    return jnp.asarray(plain.edge_statistics(levels.T).sum(axis=1), float)


# -- log-ratios --------------------------------------------------------------------------------


class Move(NamedTuple):
    """How moves to other values change the edge statistic and the node statistics of each node."""

    s: Float[Array, "d w"]
    t: Float[Array, "f d w"]


class NodeTerms(AbstractLinear):
    """Moves of single nodes; predictors are their log-ratios, one term each."""

    model: Any
    plain: Network
    s: Float[Array, "b d w"]
    context: Float[Array, "b q w"] | None
    keeps: ClassVar[bool] = True

    @abstractmethod
    def moves(self, part: Any) -> tuple[Move, ...]:
        """The moves of a block."""

    @property
    def layout(self) -> Layout:
        return Layout.of(self.model, self.plain, self.context)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        return ((0,),)

    def predictors(self, eta: Array, part: Any) -> tuple[Array, ...]:
        field, of_nodes = self.layout.predictors(eta, *part[:2])
        if not self.plain.is_auto:
            return tuple(_ratio(move, field, of_nodes, 0) for move in self.moves(part))
        # The first node statistic is the edge statistic: intercepts are added to the fields.
        return tuple(_ratio(move, field + of_nodes[0], of_nodes, 1) for move in self.moves(part))

    def pullback(self, slopes: Slopes, part: Any) -> Float[Array, "d s"]:
        (s, z, *_), layout, total = part, self.layout, self._total(slopes, part)
        edges = total.s @ layout.edge_features(s, z).T
        return jnp.concatenate([layout.node_features(total.t, z).sum(axis=2).T, edges], axis=1)

    def gram(self, bends: Bends, part: Any) -> Float[Array, "d s s"]:
        moves, (s, z, *_), layout = self.moves(part), part, self.layout
        features = layout.edge_features(s, z)
        square, inner, across = jnp.zeros(()), jnp.zeros(()), jnp.zeros(())
        for i, move in enumerate(moves):
            weight, nodes = bends[i, i], layout.node_features(move.t, z)
            square = square + weight * move.s**2
            across = across + jnp.einsum("kdw,sw->dks", (weight * move.s)[None] * nodes, features)
            inner = inner + jnp.einsum("kdw,gdw->dkg", weight[None] * nodes, nodes)
        return bordered(inner, across, _among(square, features))

    def by_weight(self, slopes: Slopes, part: Any) -> Float[Array, "w p"]:
        total = self._total(slopes, part)
        return self.layout.by_row(total.t, total.s, *part[:2])

    def _total(self, slopes: Slopes, part: Any) -> Move:
        """The changes of all moves, each times the slope of its term."""
        pairs = tuple(zip(slopes, self.moves(part), strict=True))
        t = sum((slope[None] * move.t for slope, move in pairs), jnp.zeros(()))
        return Move(sum((slope * move.s for slope, move in pairs), jnp.zeros(())), t)

    def assembled(self, pulled: Any, gram: Any) -> tuple[Array, Array]:
        return self.layout.assembled(pulled, gram)


def _ratio(move: Move, field: Array, eta: Array, first: int) -> Float[Array, "d w"]:
    """The log-ratios of moves, without the node statistics before the ``first``."""
    found = move.s * field
    for each, change in zip(eta[first:], move.t[first:], strict=True):
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
    plain: Network = static()
    s: Float[Array, "b d w"]
    context: Float[Array, "b q w"] | None
    down: Move
    up: Move
    minus: Float[Array, "b d w"]
    plus: Float[Array, "b d w"]

    @staticmethod
    def of(model: Any, plain: Network, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        s, t = plain.edge_statistics(sites.rows), plain.node_statistics(sites.rows)
        below, above = (
            Move(blocked(plain.edge_statistics(there) - s, size), blocked(plain.node_statistics(there) - t, size))
            for there in (sites.down, sites.up)
        )
        scales = (blocked(part.T, size) for part in (sites.minus, sites.plus))
        return by_row(sites, NodeRatios(model, plain, *_known(sites, model, plain, size), below, above, *scales), size)

    @property
    def parts(self) -> Any:
        return self.s, self.context, self.down, self.up, self.minus, self.plus

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
    """Nodes with two values: each is the decrement and the increment of the other.

    Attributes
    ----------
    both : (d,) floats
        The sum of the two edge statistics of each node, from which that of the other value follows.
    """

    both: Float[Array, " d"]

    @property
    def parts(self) -> Any:
        return self.s, self.context

    def moves(self, part: Any) -> tuple[Move, ...]:
        there = self.both[:, None] - 2.0 * part[0]
        return (Move(there, there[None]),)


@terms
class BinaryRatios(BinaryNodes):
    """Log-ratios to the other value of each node."""

    model: Any
    plain: Network = static()
    s: Float[Array, "b d w"]
    context: Float[Array, "b q w"] | None
    both: Float[Array, " d"]
    site: Site

    @staticmethod
    def of(model: Any, plain: Network, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        site = Site(*(blocked(part.T, size) for part in (sites.minus, sites.plus)))
        return by_row(sites, BinaryRatios(model, plain, *_known(sites, model, plain, size), _both(plain), site), size)

    @property
    def parts(self) -> Any:
        return self.s, self.context, self.site

    def losses(self, loss: Loss, group: int, part: Any) -> Callable[..., Array]:
        return lambda u: loss.term(u, part[2])

    def row_ratios(self, theta: Theta) -> Float[Array, "u d"]:
        return _by_row(jax.lax.map(lambda part: ratios(part[2].minus, self.predictors(theta, part)[0]), self.parts))


@terms
class BinaryConditionals(BinaryNodes):
    """Each value given the others is a logistic regression."""

    model: Any
    plain: Network = static()
    s: Float[Array, "b d w"]
    context: Float[Array, "b q w"] | None
    both: Float[Array, " d"]

    @staticmethod
    def of(model: Any, plain: Network, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        return by_row(sites, BinaryConditionals(model, plain, *_known(sites, model, plain, size), _both(plain)), size)

    def losses(self, loss: Loss, group: int, part: Any) -> Callable[..., Array]:
        return lambda u: loss.term(-softplus(u), None)

    def sums_by_weight(self, loss: Loss, eta: Array, part: Any) -> tuple[Array, ...]:
        (u,) = self.predictors(eta, part)
        return (loss.term(-sum_softplus(u), None),)


# -- conditionals of several values ------------------------------------------------------------


@terms
class LevelConditionals(AbstractTerms):
    """Each value given the others has a finite sum, over its levels; counts are listed far beyond the largest seen.

    Derivatives are its own rule, that of exponential families (see the module).

    Attributes
    ----------
    t : (b, f, d, w) floats
        Node statistics of the data.
    listed_s, listed_t : (d, l), (f, d, l) floats
        Edge and node statistics of the values that each column may have.
    is_level : (d, l) booleans
        Where these are values, and do not only fill a shorter list.
    """

    model: Any
    plain: Network = static()
    s: Float[Array, "b d w"]
    context: Float[Array, "b q w"] | None
    t: Float[Array, "b f d w"]
    listed_s: Float[Array, "d l"]
    listed_t: Float[Array, "f d l"]
    is_level: Bool[Array, "d l"]

    @classmethod
    def of(cls, model: Any, plain: Network, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        values, is_level = candidates(plain.domain, sites.rows)
        listed = jax.device_put((plain.edge_statistics(values.T), plain.node_statistics(values.T), is_level))
        known = _known(sites, model, plain, size)
        return by_row(sites, cls(model, plain, *known, blocked(plain.node_statistics(sites.rows), size), *listed), size)

    @property
    def layout(self) -> Layout:
        return Layout.of(self.model, self.plain, self.context)

    def _parts(self, weights: Any) -> tuple[Any, ...]:
        return self.s, self.context, self.t, weights.reshape(len(self.s), -1)

    def _given_rest(self, theta: Theta, part: Any) -> tuple[Array, Array, Array]:
        """Fields, eta, and unnormalised log probabilities (d, l, w) of levels."""
        field, eta = self.layout.predictors(theta, *part[:2])
        nodes = jnp.where(self.is_level[:, :, None], jnp.einsum("fdw,fdl->dlw", eta, self.listed_t), -jnp.inf)
        return field, eta, nodes + self.listed_s[:, :, None] * field[:, None, :]

    def _losses(self, part: Any, field: Array, eta: Array, constant: Array) -> Float[Array, " w"]:
        """Minus the log probabilities of rows, summed over nodes."""
        return jnp.sum(constant - part[0] * field - jnp.sum(eta * part[2], axis=0), axis=0)

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        def add(total: Array, part: Any) -> tuple[Array, None]:
            field, eta, log = self._given_rest(theta, part)
            found = self._losses(part, field, eta, jax.nn.logsumexp(log, axis=1))
            return total + jnp.dot(part[3], loss.term(-found, None)), None

        return jax.lax.scan(add, jnp.zeros(()), self._parts(weights))[0]

    def _expected(self, probability: Float[Array, "d l w"]) -> tuple[Array, Array]:
        """E[s | rest] and E[t | rest]."""
        expected_s = jnp.einsum("dl,dlw->dw", self.listed_s, probability)
        return expected_s, jnp.einsum("fdl,dlw->fdw", self.listed_t, probability)

    def second_order(self, loss: Loss, theta: Theta, weights: Any) -> SecondOrder:
        layout = self.layout

        def of_block(part: Any) -> tuple[Array, ...]:
            s, z, t, weights = part
            field, eta, log = self._given_rest(theta, part)
            constant = jax.nn.logsumexp(log, axis=1)
            probability = jnp.exp(log - constant[:, None, :])
            expected_s, expected_t = self._expected(probability)
            variance_s = jnp.einsum("dl,dlw->dw", self.listed_s**2, probability) - expected_s**2
            covariance = jnp.einsum("fdl,dl,dlw->fdw", self.listed_t, self.listed_s, probability)
            covariance = covariance - expected_t * expected_s[None]
            features = layout.edge_features(s, z)
            return (
                jnp.dot(weights, self._losses(part, field, eta, constant)),
                jnp.einsum("kdw,w->dk", layout.node_features(expected_t - t, z), weights),
                ((expected_s - s) * weights[None, :]) @ features.T,
                self._covariance_of_nodes(layout, z, probability, expected_t, weights),
                jnp.einsum("kdw,sw->dks", layout.node_features(covariance, z) * weights[None, None, :], features),
                _among(variance_s * weights[None, :], features),
            )

        parts = self._parts(weights_of_log_score(loss, weights))
        value, nodes, edges, inner, across, among = summed(of_block, parts)
        slopes = jnp.concatenate([nodes, edges], axis=1)
        return value, *layout.assembled(slopes, bordered(inner, across, among))

    def _covariance_of_nodes(
        self, layout: Layout, z: Array | None, probability: Array, expected_t: Array, weights: Array
    ) -> Float[Array, "d k k"]:
        """Covariances of the node features of each column, summed over rows."""
        if z is None:  # summed over rows before products are taken
            t, expected = self.listed_t[layout.statistic], expected_t[layout.statistic]
            found = jnp.einsum("kdl,gdl,dl->dkg", t, t, jnp.einsum("dlw,w->dl", probability, weights))
            return found - jnp.einsum("kdw,gdw->dkg", expected * weights[None, None, :], expected)
        square = jnp.einsum("fdl,gdl,dlw->fgdw", self.listed_t, self.listed_t, probability)
        square = square - expected_t[:, None] * expected_t[None]
        term, pairs = z[layout.covariate], np.ix_(layout.statistic, layout.statistic)
        return jnp.einsum("kgdw,kdw,gdw->dkg", square[pairs], term * weights[None, None, :], term)

    def per_term_gradients(self, loss: Loss, theta: Theta, weights: Any, at_once: int) -> Float[Array, "u p"]:
        layout, scale = self.layout, weights_of_log_score(loss, jnp.ones(()))

        def of_block(part: Any) -> Array:
            s, z, t = part
            expected_s, expected_t = self._expected(jax.nn.softmax(self._given_rest(theta, part)[2], axis=1))
            return scale * layout.by_row(expected_t - t, expected_s - s, s, z)

        return jax.lax.map(of_block, (self.s, self.context, self.t)).reshape(-1, len(theta))


@terms
class OrdinalConditionals(LevelConditionals):
    """The same sums over levels, which neighbours see at equal distances: polynomials, of one exponential.

    No row is needed for what is linear. There are no covariates.
    """

    @property
    def at_once(self) -> int:  # type: ignore[override]
        """So many parameters that a block of rows is worth a step of its loop."""
        _, d, width = self.s.shape
        return 2 ** (max(1, 2**13 // (d * width)).bit_length() - 1)  # numbers for each of them

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        matrix = self.plain.matrix(self.plain.interaction_of(self.plain.space.unflatten(theta)))
        eta = self.layout.predictors(theta, self.s[0], None)[1][:, :, 0]
        nodes = jnp.where(self.is_level, jnp.einsum("fd,fdl->dl", eta, self.listed_t), -jnp.inf)
        sums = log_sums_of_powers(nodes, jnp.sum(self.is_level, axis=1))
        first, step = self.listed_s[:, :1], self.listed_s[:, 1:2] - self.listed_s[:, :1]

        def add(total: Array, block: tuple[Array, Array]) -> tuple[Array, None]:
            s, weights = block
            field = matrix @ s
            return total + jnp.dot(weights, jnp.sum(sums(step * field) + (first - s) * field, axis=0)), None

        weights = weights_of_log_score(loss, weights).reshape(len(self.s), -1)
        observed = jnp.einsum("bfdw,bw->fd", self.t, weights)
        return jax.lax.scan(add, -jnp.sum(eta * observed), (self.s, weights))[0]


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
    """Each count given the others is Conway-Maxwell-Poisson; with nu = 1 the log of its constant is exp(log rate)."""

    model: Any
    rows: Float[Array, "d u"]

    @staticmethod
    def of(model: Any, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        rows = jax.device_put(pad(np.asarray(sites.rows, float), size).T)
        return by_row(sites, CountConditionals(model, rows), size)

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        interaction = self.model.interaction_of(self.model.space.unflatten(theta))
        intercept, nu = self.model.coefficients(theta)[:, :, None]
        log_rate = intercept + self.model.matrix(interaction) @ self.rows
        if self.model.space.of_role(SHAPE):
            constant = log_normaliser(log_rate, jnp.broadcast_to(nu, log_rate.shape))
        else:
            constant = jnp.exp(log_rate)
        found = jnp.sum(constant - self.rows * log_rate + nu * gammaln(self.rows + 1.0), axis=0)
        return jnp.dot(weights, loss.term(-found, None))
