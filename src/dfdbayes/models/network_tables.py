"""Tables of pairwise models: the distinct rows themselves, the ratios of all coordinates being one matrix product."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Int

from ..data.sites import Sites
from .normaliser import log_normaliser
from .parameters import Theta
from .tables import (
    AbstractConditionals,
    AbstractTable,
    Function,
    Prepared,
    SecondOrder,
    by_row,
    pad,
    padded_size,
    ratios,
    sum_softplus,
    table,
)

if TYPE_CHECKING:
    from .network import Pairwise


def columns(array: np.ndarray, size: int) -> Array:
    """Rows as columns, which makes all that is done to them run along memory; zeros up to ``size``."""
    return jax.device_put(pad(np.asarray(array, float), size).T)


@table
class PairwiseTable(AbstractTable):
    """Distinct rows as columns; x_j^- - x_j and the change of -log x_j! with it; the same from x_j^+ to x_j."""

    model: Pairwise
    rows: Float[Array, "d u"]
    down: Float[Array, "d u"]
    down_curve: Float[Array, "d u"]
    minus: Float[Array, "d u"]
    up: Float[Array, "d u"]
    up_curve: Float[Array, "d u"]
    plus: Float[Array, "d u"]

    @staticmethod
    def of(model: Pairwise, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        return by_row(sites, PairwiseTable(model, *moves(model, sites, size)), size)

    @property
    def base(self) -> Pairwise:
        """The model that says which nodes have edges."""
        return self.model

    def predictors(self, theta: Theta) -> tuple[Array, Any]:
        """What multiplies the step of each node, and what its change of -log x!."""
        intercept, interaction, nu = self.model.parts(self.model.space.unflatten(theta))
        local = intercept[:, None] + self.model.matrix(interaction) @ self.rows
        return local, 1.0 if nu is None else nu[:, None]

    @property
    def features(self) -> Float[Array, "s u"]:
        """What the parameters of a node multiply, but for the curve."""
        return jnp.concatenate([jnp.ones((1, self.rows.shape[1])), self.rows])

    @property
    def slots(self) -> tuple[Int[np.ndarray, "d s"], Float[np.ndarray, "d s"]]:
        """Which parameter (one past the last for none) multiplies each feature of a node, the curve last; its sign."""
        return self.model.slots

    def log_ratios(self, theta: Theta) -> tuple[Array, Array]:
        local, power = self.predictors(theta)
        return self.down * local + power * self.down_curve, self.up * local + power * self.up_curve

    def total(self, minus: Array, plus: Array, weights: Any) -> Float[Array, ""]:
        return jnp.dot(weights, jnp.sum(self.minus * minus + self.plus * plus, axis=0))

    def row_ratios(self, theta: Theta) -> Float[Array, "u d"]:
        return ratios(self.minus, self.log_ratios(theta)[0]).T

    def second_order(self, minus: Function, plus: Function, theta: Theta, weights: Any) -> SecondOrder:
        """A log-ratio of node j depends on that node's own parameters only, and linearly.

        So the Hessian is made of one small matrix for each node, over the features (1, x_1 ... x_d) and the curve.
        """
        u, v = self.log_ratios(theta)
        value = self.total(minus(u), plus(v), weights)
        minus1, minus2 = (self.minus * weights[None, :] * part for part in _derivatives(minus, u))
        plus1, plus2 = (self.plus * weights[None, :] * part for part in _derivatives(plus, v))
        features = self.features

        def moments(minus: Array, plus: Array, power: int) -> list[Array]:
            """Sums over the two ratios with 0 to ``power`` factors of the curve and the others of the step."""
            return [
                minus * self.down ** (power - k) * self.down_curve**k + plus * self.up ** (power - k) * self.up_curve**k
                for k in range(power + 1)
            ]

        linear, bent = moments(minus1, plus1, 1)
        square, mixed, curve = moments(minus2, plus2, 2)
        slopes = jnp.concatenate([linear @ features.T, jnp.sum(bent, axis=1)[:, None]], axis=1)
        among = jax.lax.map(lambda line: (features * line[None, :]) @ features.T, square)
        across = mixed @ features.T
        top = jnp.concatenate([among, across[:, :, None]], axis=2)
        bottom = jnp.concatenate([across[:, None, :], jnp.sum(curve, axis=1)[:, None, None]], axis=2)
        blocks = jnp.concatenate([top, bottom], axis=1)

        return value, *assembled(len(theta), *self.slots, slopes, blocks)

    def lines(self, minus: Function, plus: Function, theta: Theta) -> Float[Array, "u p"]:
        return jnp.concatenate(list(self.slopes(minus, plus, theta).values())).T

    def slopes(self, minus: Function, plus: Function, theta: Theta) -> dict[str, Float[Array, "k u"]]:
        """The gradient of every row with respect to the entries that each parameter has there."""
        u, v = self.log_ratios(theta)
        down, up = self.minus * _derivatives(minus, u)[0], self.plus * _derivatives(plus, v)[0]
        slope, (i, j) = down * self.down + up * self.up, self.base.graph.edges.T
        parts = {
            "intercept": slope,
            "interaction": self.base.sign * (slope[i] * self.rows[j] + slope[j] * self.rows[i]),
        }
        return parts | ({"nu": down * self.down_curve + up * self.up_curve} if self.base.free_power else {})


def moves(model: Pairwise, sites: Sites, size: int) -> Iterator[Array]:
    """The arrays of a table, after its model."""
    rows = sites.rows
    if model.counts:
        down_curve = np.where(sites.minus != 0, np.log(np.maximum(rows, 1)), 0.0)
        up_curve = np.log(rows + 1.0)
    else:
        down_curve = up_curve = np.zeros(rows.shape)
    parts = (rows, sites.down - rows, down_curve, sites.minus, rows - sites.up, up_curve, sites.plus)
    return (columns(part, size) for part in parts)


def _derivatives(function: Function, at: Array) -> tuple[Array, Array]:
    """First and second derivative of a function of one number, entry by entry."""
    ones = jnp.ones_like(at)

    def first(x: Array) -> Array:
        return jax.jvp(function, (x,), (ones,))[1]

    return jax.jvp(first, (at,), (ones,))


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
        place, factor = (part[:, :-1] for part in self.model.slots)
        return value, *assembled(len(theta), place, factor, slopes, blocks)

    def lines(self, theta: Theta) -> Float[Array, "u p"]:
        predictors, (i, j) = self._predictors(theta), self.model.graph.edges.T

        def of(rows: Array) -> Array:
            slope = self._residuals(predictors(rows), rows)[0]
            return jnp.concatenate([slope, slope[i] * rows[j] + slope[j] * rows[i]]).T

        return jax.lax.map(of, self.rows).reshape(-1, len(theta))


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
