"""Conditional distributions of ordinal columns, whose sums over levels are polynomials: one exponential serves all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...core.parameters import Theta
from ...core.sites import Sites
from ...core.terms import Prepared, table
from .terms import LevelConditionals

if TYPE_CHECKING:
    from .model import Pairwise

WORTH = 2**13  # numbers
LEAST = 1e-300  # of a sum: far below what thresholds can do


@table
class OrdinalConditionals(LevelConditionals):
    """The same sums over levels, which neighbours see at equal distances; no row is needed for what is linear."""

    @staticmethod
    def of(model: Pairwise, sites: Sites) -> Prepared:
        prepared = LevelConditionals.of(model, sites)
        plain = prepared.table
        parts = (plain.scores, plain.own, plain.seen, plain.owned, plain.allowed)
        return replace(prepared, table=OrdinalConditionals(model, *parts))

    @property
    def at_once(self) -> int:
        """How many parameters to evaluate side by side: so many that a block of rows is worth a step of its loop."""
        _, d, width = self.scores.shape
        return 2 ** (max(1, WORTH // (d * width)).bit_length() - 1)

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        edges = self.model.interaction_of(self.model.space.unflatten(theta))
        matrix, eta = self.model.matrix(edges), self.model.coefficients(theta)
        level = jnp.where(self.allowed, jnp.einsum("fd,fdk->dk", eta, self.owned), -jnp.inf)
        sums = log_sums_of_powers(level, jnp.sum(self.allowed, axis=1))
        first, step = self.seen[:, :1], self.seen[:, 1:2] - self.seen[:, :1]

        def add(total: Array, block: tuple[Array, Array]) -> tuple[Array, None]:
            scores, weights = block
            local = matrix @ scores
            return total + jnp.dot(weights, jnp.sum(sums(step * local) + (first - scores) * local, axis=0)), None

        weights = weights.reshape(len(self.scores), -1)
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
        return top + jnp.where(up, (number[:, None] - 1) * u, 0.0) + jnp.log(jnp.maximum(total, LEAST))

    return of
