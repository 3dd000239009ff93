"""Tables of pairwise models: the distinct rows themselves, the ratios of all coordinates being one matrix product."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float, Int

from ...core.parameters import Theta
from ...core.sites import Sites
from ...core.terms import (
    AbstractConditionals,
    AbstractTable,
    Function,
    Prepared,
    SecondOrder,
    by_row,
    candidates,
    derivatives,
    pad,
    padded_size,
    ratios,
    sum_softplus,
    table,
)
from ..counts.normaliser import log_normaliser

if TYPE_CHECKING:
    from .model import Pairwise


def columns(array: np.ndarray, size: int) -> Array:
    """Rows as columns, which makes all that is done to them run along memory; zeros up to ``size``."""
    return jax.device_put(pad(np.asarray(array, float), size).T)


@table
class PairwiseTable(AbstractTable):
    """What is seen of every node in the distinct rows, as columns, and how a move changes it and what nodes own.

    A move down is from x_j to x_j^-; a move up is taken backwards, from x_j^+ to x_j.
    """

    model: Pairwise
    scores: Float[Array, "d u"]
    down: Float[Array, "d u"]
    up: Float[Array, "d u"]
    own_down: Float[Array, "f d u"]
    own_up: Float[Array, "f d u"]
    minus: Float[Array, "d u"]
    plus: Float[Array, "d u"]

    @staticmethod
    def of(model: Pairwise, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        return by_row(sites, PairwiseTable(model, *moves(model, sites, size)), size)

    @property
    def base(self) -> Pairwise:
        """The model that says which nodes have edges."""
        return self.model

    def predictors(self, theta: Theta) -> tuple[Array, Array]:
        """What multiplies the change that neighbours see of each node, and what multiplies those of its own."""
        edges = self.model.interaction_of(self.model.space.unflatten(theta))
        return self.model.matrix(edges) @ self.scores, self.model.coefficients(theta)[:, :, None]

    @property
    def owned(self) -> tuple[Float[Array, "f d u"], Float[Array, "f d u"]]:
        """What the coefficients of nodes multiply in the two log-ratios."""
        return self.own_down, self.own_up

    @property
    def features(self) -> Float[Array, "s u"]:
        """What the weights of a node's edges multiply, times the change of its score."""
        return self.scores

    @property
    def slots(self) -> tuple[Int[np.ndarray, "d s"], Float[np.ndarray, "d s"]]:
        """Which parameter (one past the last for none) multiplies each feature of a node, its own first; its sign."""
        return self.model.slots

    def log_ratios(self, theta: Theta) -> tuple[Array, Array]:
        local, own = self.predictors(theta)
        folded = int(self.base.folds)
        local = local + own[0] if folded else local
        down, up = self.down * local, self.up * local
        for each, by_down, by_up in zip(own[folded:], self.own_down[folded:], self.own_up[folded:], strict=True):
            down, up = down + each * by_down, up + each * by_up
        return down, up

    def total(self, minus: Array, plus: Array, weights: Any) -> Float[Array, ""]:
        return jnp.dot(weights, jnp.sum(self.minus * minus + self.plus * plus, axis=0))

    def row_ratios(self, theta: Theta) -> Float[Array, "u d"]:
        return ratios(self.minus, self.log_ratios(theta)[0]).T

    def second_order(self, minus: Function, plus: Function, theta: Theta, weights: Any) -> SecondOrder:
        """A log-ratio of node j depends on that node's own parameters and edges only, and linearly.

        So the Hessian is made of one small matrix for each node.
        """
        u, v = self.log_ratios(theta)
        value = self.total(minus(u), plus(v), weights)
        minus1, minus2 = (self.minus * weights[None, :] * part for part in derivatives(minus, u))
        plus1, plus2 = (self.plus * weights[None, :] * part for part in derivatives(plus, v))
        features, (own_down, own_up) = self.features, self.owned
        slopes = jnp.concatenate(
            [
                jnp.sum(minus1[None] * own_down + plus1[None] * own_up, axis=2).T,
                (minus1 * self.down + plus1 * self.up) @ features.T,
            ],
            axis=1,
        )
        square = minus2 * self.down**2 + plus2 * self.up**2
        among = jax.lax.map(lambda line: (features * line[None, :]) @ features.T, square)
        mixed = (minus2 * self.down)[None] * own_down + (plus2 * self.up)[None] * own_up
        across = jnp.einsum("fdu,su->dfs", mixed, features)
        inner = jnp.einsum("fdu,gdu->dfg", minus2[None] * own_down, own_down)
        inner += jnp.einsum("fdu,gdu->dfg", plus2[None] * own_up, own_up)
        return value, *assembled(len(theta), *self.slots, slopes, bordered(inner, across, among))

    def lines(self, minus: Function, plus: Function, theta: Theta) -> Float[Array, "u p"]:
        u, v = self.log_ratios(theta)
        down, up = self.minus * derivatives(minus, u)[0], self.plus * derivatives(plus, v)[0]
        own_down, own_up = self.owned
        own = down[None] * own_down + up[None] * own_up
        return placed(len(theta), self.slots[0], own, self.edge_lines(down * self.down + up * self.up))

    def edge_lines(self, slope: Float[Array, "d u"]) -> tuple[int, Float[Array, "e u"]]:
        """Where the interactions begin among the parameters, and the gradient of every row with respect to them."""
        return self.model.space.first.get("interaction", 0), joined(self.model, slope, self.scores)


def joined(base: Pairwise, slope: Float[Array, "d u"], scores: Float[Array, "d u"]) -> Float[Array, "e u"]:
    """The gradient of every row with respect to the interactions, from that with respect to the local fields."""
    i, j = base.graph.edges.T
    return base.sign * (slope[i] * scores[j] + slope[j] * scores[i])


def placed(
    size: int, place: Int[np.ndarray, "d s"], own: Float[Array, "f d u"], edges: tuple[int, Float[Array, "e u"]]
) -> Float[Array, "u p"]:
    """Gradients of rows over all parameters, from those over what nodes own and over edges."""
    found = jnp.zeros((size + 1, own.shape[2])).at[place[:, : len(own)].T].add(own)
    first, lines = edges
    return found.at[first : first + len(lines)].add(lines)[:-1].T


def bordered(inner: Array, across: Array, among: Array) -> Float[Array, "d s s"]:
    """Symmetric blocks from what belongs to a node's own features, to both, and to its edges'."""
    top = jnp.concatenate([inner, across], axis=2)
    return jnp.concatenate([top, jnp.concatenate([across.transpose(0, 2, 1), among], axis=2)], axis=1)


def moves(model: Pairwise, sites: Sites, size: int) -> Iterator[Array]:
    """The arrays of a table, after its model."""
    rows, down, up = (model.scores(values) for values in (sites.rows, sites.down, sites.up))
    own, own_down, own_up = (model.own(values) for values in (sites.rows, sites.down, sites.up))
    parts = (rows, down - rows, rows - up, own_down - own, own - own_up, sites.minus.T, sites.plus.T)
    return (jax.device_put(pad(part, size, axis=-1)) for part in parts)


WIDTH = 512  # rows worked on at a time: all that they need stays in the cache


@table
class BinaryConditionals(AbstractConditionals):
    """Each value given the others is a logistic regression. Rows are columns, in blocks that are worked on in turn."""

    model: Pairwise
    rows: Float[Array, "b d w"]

    @staticmethod
    def of(model: Pairwise, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        width = size if size <= WIDTH else math.gcd(size, WIDTH)
        rows = pad(np.asarray(sites.rows, float), size).reshape(-1, width, model.graph.size)
        return by_row(sites, BinaryConditionals(model, jax.device_put(rows.transpose(0, 2, 1))), size)

    def _predictors(self, theta: Theta) -> Callable[[Array], Array]:
        """What multiplies the nodes' own values in a block of rows."""
        intercept, interaction, _ = self.model.parts(self.model.space.unflatten(theta))
        matrix = self.model.matrix(interaction)
        return lambda rows: intercept[:, None] + matrix @ rows

    def _blocks(self, weights: Any) -> tuple[Array, Array]:
        return self.rows, weights.reshape(len(self.rows), -1)

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        predictors, (low, step) = self._predictors(theta), self.model.two_values

        def add(total: Array, block: tuple[Array, Array]) -> tuple[Array, None]:
            rows, weights = block
            local = predictors(rows)
            terms = sum_softplus(step * local) - jnp.sum((rows - low) * local, axis=0)
            return total + jnp.dot(weights, terms), None

        return jax.lax.scan(add, jnp.zeros(()), self._blocks(weights))[0]

    def _residuals(self, local: Array, rows: Array) -> tuple[Array, Array]:
        """First and second derivative of each term with respect to its predictor."""
        low, step = self.model.two_values
        chance = jax.nn.sigmoid(step * local)
        return step * chance - (rows - low), step**2 * chance * (1.0 - chance)

    def second_order(self, theta: Theta, weights: Any) -> SecondOrder:
        """The Hessian is made of one small matrix for each node, over the features 1, x_1 ... x_d."""
        predictors, (low, step), d = self._predictors(theta), self.model.two_values, self.rows.shape[1]

        def add(sums: SecondOrder, block: tuple[Array, Array]) -> tuple[SecondOrder, None]:
            rows, weights = block
            local = predictors(rows)
            first, second = self._residuals(local, rows)
            value = jnp.dot(weights, sum_softplus(step * local) - jnp.sum((rows - low) * local, axis=0))
            features = jnp.concatenate([jnp.ones((1, rows.shape[1])), rows])
            lines = (second * weights[None, :])[:, None, :] * features[None, :, :]
            among = (lines.reshape(-1, rows.shape[1]) @ features.T).reshape(d, d + 1, d + 1)
            return (sums[0] + value, sums[1] + (first * weights[None, :]) @ features.T, sums[2] + among), None

        none = (jnp.zeros(()), jnp.zeros((d, d + 1)), jnp.zeros((d, d + 1, d + 1)))
        value, slopes, blocks = jax.lax.scan(add, none, self._blocks(weights))[0]
        return value, *assembled(len(theta), *self.model.slots, slopes, blocks)

    def lines(self, theta: Theta) -> Float[Array, "u p"]:
        predictors, model = self._predictors(theta), self.model
        first = model.space.first.get("interaction", 0)

        def of(rows: Array) -> Array:
            slope = self._residuals(predictors(rows), rows)[0]
            return placed(len(theta), model.slots[0], slope[None], (first, joined(model, slope, rows)))

        return jax.lax.map(of, self.rows).reshape(-1, len(theta))


@table
class LevelConditionals(AbstractConditionals):
    """Each value given the others has a finite sum, over its levels; counts are listed far beyond the largest seen."""

    model: Pairwise
    scores: Float[Array, "b d w"]
    own: Float[Array, "b f d w"]
    seen: Float[Array, "d k"]
    owned: Float[Array, "f d k"]
    allowed: Bool[Array, "d k"]

    @staticmethod
    def of(model: Pairwise, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        width = size if size <= WIDTH else math.gcd(size, WIDTH)
        values, allowed = candidates(model.domain, sites.rows)
        scores, own = (pad(part(sites.rows), size, axis=-1) for part in (model.scores, model.own))
        parts = (
            scores.reshape(len(scores), -1, width).transpose(1, 0, 2),
            own.reshape(*own.shape[:2], -1, width).transpose(2, 0, 1, 3),
            model.scores(values.T), model.own(values.T), allowed,
        )  # fmt: skip
        return by_row(sites, LevelConditionals(model, *jax.device_put(parts)), size)

    def _chances(self, theta: Theta) -> Callable[[tuple[Array, ...]], tuple[Array, Array, Array]]:
        """Of a block of rows: local fields, what nodes' own multiply, and unnormalised log probabilities of levels."""
        edges = self.model.interaction_of(self.model.space.unflatten(theta))
        matrix, eta = self.model.matrix(edges), self.model.coefficients(theta)
        level = jnp.where(self.allowed, jnp.einsum("fd,fdk->dk", eta, self.owned), -jnp.inf)

        def of(block: tuple[Array, ...]) -> tuple[Array, Array, Array]:
            local = matrix @ block[0]
            return local, eta[:, :, None], level[:, :, None] + self.seen[:, :, None] * local[:, None, :]

        return of

    @property
    def _blocks(self) -> tuple[Array, ...]:
        """Of rows: what is seen of them and what nodes own."""
        return self.scores, self.own

    def _weighted(self, weights: Any) -> tuple[Array, ...]:
        return *self._blocks, weights.reshape(len(self.scores), -1)

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        chances = self._chances(theta)

        def add(total: Array, block: tuple[Array, ...]) -> tuple[Array, None]:
            (scores, own, *_), weights = block, block[-1]
            local, eta, log = chances(block)
            terms = jax.nn.logsumexp(log, axis=1) - scores * local - jnp.sum(eta * own, axis=0)
            return total + jnp.dot(weights, jnp.sum(terms, axis=0)), None

        return jax.lax.scan(add, jnp.zeros(()), self._weighted(weights))[0]

    def _means(self, chance: Array) -> tuple[Array, Array]:
        """Expected scores, and of what nodes own, given the rest."""
        return jnp.einsum("dk,dkw->dw", self.seen, chance), jnp.einsum("fdk,dkw->fdw", self.owned, chance)

    def second_order(self, theta: Theta, weights: Any) -> SecondOrder:
        """Gradients are expected minus observed features of each node given the rest, Hessians their covariances."""
        chances, (f, d) = self._chances(theta), self.owned.shape[:2]

        def add(sums: tuple[Array, ...], block: tuple[Array, ...]) -> tuple[tuple[Array, ...], None]:
            scores, own, weights = block
            local, eta, log = chances(block)
            constant = jax.nn.logsumexp(log, axis=1)
            chance = jnp.exp(log - constant[:, None, :])
            score, owned = self._means(chance)
            terms = constant - scores * local - jnp.sum(eta * own, axis=0)
            spread = jnp.einsum("dk,dkw->dw", self.seen**2, chance) - score**2
            mixed = jnp.einsum("fdk,dk,dkw->fdw", self.owned, self.seen, chance) - owned * score[None]
            often = jnp.einsum("dkw,w->dk", chance, weights)
            inner = jnp.einsum("fdk,gdk,dk->dfg", self.owned, self.owned, often)
            inner -= jnp.einsum("fdw,gdw->dfg", owned * weights[None, None, :], owned)
            lines = (spread * weights[None, :])[:, None, :] * scores[None, :, :]
            new = (
                jnp.dot(weights, jnp.sum(terms, axis=0)),
                jnp.einsum("fdw,w->df", owned - own, weights),
                ((score - scores) * weights[None, :]) @ scores.T,
                inner,
                jnp.einsum("fdw,sw->dfs", mixed * weights[None, None, :], scores),
                (lines.reshape(-1, scores.shape[1]) @ scores.T).reshape(d, d, d),
            )
            return tuple(a + b for a, b in zip(sums, new, strict=True)), None

        shapes = ((), (d, f), (d, d), (d, f, f), (d, f, d), (d, d, d))
        none = tuple(jnp.zeros(shape) for shape in shapes)
        value, own, edges, inner, across, among = jax.lax.scan(add, none, self._weighted(weights))[0]
        slopes = jnp.concatenate([own, edges], axis=1)
        return value, *assembled(len(theta), *self.model.slots, slopes, bordered(inner, across, among))

    def lines(self, theta: Theta) -> Float[Array, "u p"]:
        chances = self._chances(theta)

        def of(block: tuple[Array, ...]) -> Array:
            scores, own = block[:2]
            score, owned = self._means(jax.nn.softmax(chances(block)[2], axis=1))
            return self._placed(block, owned - own, score - scores, len(theta))

        return jax.lax.map(of, self._blocks).reshape(-1, len(theta))

    def _placed(self, block: tuple[Array, ...], own: Array, slope: Array, size: int) -> Float[Array, "w p"]:
        """Gradients of a block's rows from those over what nodes own, and over local fields."""
        edges = (self.model.space.first.get("interaction", 0), joined(self.model, slope, block[0]))
        return placed(size, self.model.slots[0], own, edges)


def assembled(
    size: int, place: Int[np.ndarray, "d s"], factor: Float[np.ndarray, "d s"], slopes: Array, blocks: Array
) -> tuple[Array, Array]:
    """Gradient and Hessian over all parameters from those over the features of each node."""
    gradient = jnp.zeros(size + 1).at[place].add(factor * slopes)
    signed = factor[:, :, None] * blocks * factor[:, None, :]
    hessian = jnp.zeros((size + 1, size + 1)).at[place[:, :, None], place[:, None, :]].add(signed)
    return gradient[:-1], hessian[:-1, :-1]


@table
class CountConditionals(AbstractConditionals):
    """Each count given the others is Conway-Maxwell-Poisson; for nu = 1 its constant is exp(rate)."""

    model: Pairwise
    rows: Float[Array, "d u"]

    @staticmethod
    def of(model: Pairwise, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        return by_row(sites, CountConditionals(model, columns(sites.rows, size)), size)

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        intercept, interaction, nu = self.model.parts(self.model.space.unflatten(theta))
        local = intercept[:, None] + self.model.matrix(interaction) @ self.rows
        if nu is None:
            constant, power = jnp.exp(local), jnp.ones((len(intercept), 1))
        else:
            constant, power = log_normaliser(local, jnp.broadcast_to(nu[:, None], local.shape)), nu[:, None]
        terms = constant - self.rows * local + power * gammaln(self.rows + 1.0)
        return jnp.dot(weights, jnp.sum(terms, axis=0))
