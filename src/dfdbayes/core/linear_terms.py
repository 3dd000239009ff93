"""Tables of models whose rows are single values with a log mass that is linear in the parameters.

Value c of row i has log mass F_ic . theta + a_ic, up to a constant of the row; F and a do not depend on the parameters.
So have the sites of a map, given their neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .model import AbstractModel
from .parameters import Theta
from .sites import Sites
from .terms import (
    AbstractConditionals,
    AbstractTable,
    Function,
    Prepared,
    SecondOrder,
    by_row,
    derivatives,
    pad,
    padded_size,
    table,
)


@dataclass(frozen=True)
class Features:
    """F and a, by row and value."""

    of: Float[np.ndarray, "u k p"]
    base: Float[np.ndarray, "u k"]

    def at(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of some values (u, m) of every row."""
        row = np.arange(len(self.of))[:, None]
        return self.of[row, values], self.base[row, values]


@table
class LinearTable(AbstractTable):
    """Log-ratios to neighbouring values: their gradients (u, m, p), and what they are where parameters are zero."""

    model: AbstractModel
    down: Float[Array, "u m p"]
    up: Float[Array, "u m p"]
    at_down: Float[Array, "u m"]
    at_up: Float[Array, "u m"]
    minus: Float[Array, "u m"]
    plus: Float[Array, "u m"]

    @staticmethod
    def of(model: AbstractModel, sites: Sites, features: Features) -> Prepared:
        size = padded_size(len(sites.rows))
        (own, base), (below, lower), (above, upper) = map(features.at, (sites.rows, sites.down, sites.up))
        parts = (below - own, own - above, lower - base, base - upper, sites.minus, sites.plus)
        return by_row(sites, LinearTable(model, *jax.device_put(tuple(pad(part, size) for part in parts))), size)

    def log_ratios(self, theta: Theta) -> tuple[Array, Array]:
        return self.down @ theta + self.at_down, self.up @ theta + self.at_up

    def total(self, minus: Array, plus: Array, weights: Any) -> Float[Array, ""]:
        return jnp.dot(weights, jnp.sum(self.minus * minus + self.plus * plus, axis=1))

    def _slopes(self, minus: Function, plus: Function, theta: Theta) -> tuple[tuple[Array, Array], ...]:
        u, v = self.log_ratios(theta)
        return derivatives(lambda u: self.minus * minus(u), u), derivatives(lambda v: self.plus * plus(v), v)

    def second_order(self, minus: Function, plus: Function, theta: Theta, weights: Any) -> SecondOrder:
        u, v = self.log_ratios(theta)
        (first, bend), (other, other_bend) = self._slopes(minus, plus, theta)
        lines = jnp.einsum("um,ump->up", first, self.down) + jnp.einsum("um,ump->up", other, self.up)
        w = weights[:, None]
        hessian = jnp.einsum("um,ump,umq->pq", w * bend, self.down, self.down)
        hessian += jnp.einsum("um,ump,umq->pq", w * other_bend, self.up, self.up)
        return self.total(minus(u), plus(v), weights), weights @ lines, hessian

    def lines(self, minus: Function, plus: Function, theta: Theta) -> Float[Array, "u p"]:
        (first, _), (other, _) = self._slopes(minus, plus, theta)
        return jnp.einsum("um,ump->up", first, self.down) + jnp.einsum("um,ump->up", other, self.up)


@table
class LinearConditionals(AbstractConditionals):
    """The probability of each row's value among all it may have: multinomial logistic regression."""

    model: AbstractModel
    features: Float[Array, "u k p"]
    base: Float[Array, "u k"]
    """Both less those of the observed value, so that its log mass is zero."""

    @staticmethod
    def of(model: AbstractModel, sites: Sites, features: Features) -> Prepared:
        size = padded_size(len(sites.rows))
        own, base = features.at(sites.rows)
        parts = (pad(features.of - own, size), pad(features.base - base, size))
        return by_row(sites, LinearConditionals(model, *jax.device_put(parts)), size)

    def _logs(self, theta: Theta) -> Float[Array, "u k"]:
        return self.features @ theta + self.base

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        return jnp.dot(weights, jax.nn.logsumexp(self._logs(theta), axis=1))

    def second_order(self, theta: Theta, weights: Any) -> SecondOrder:
        log = self._logs(theta)
        chance, lines = jax.nn.softmax(log, axis=1), self.lines(theta)
        heavy = chance * weights[:, None]
        hessian = jnp.einsum("uk,ukp,ukq->pq", heavy, self.features, self.features)
        hessian -= (lines * weights[:, None]).T @ lines
        return jnp.dot(weights, jax.nn.logsumexp(log, axis=1)), weights @ lines, hessian

    def lines(self, theta: Theta) -> Float[Array, "u p"]:
        return jnp.einsum("uk,ukp->up", jax.nn.softmax(self._logs(theta), axis=1), self.features)
