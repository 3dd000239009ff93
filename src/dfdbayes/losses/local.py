"""Losses that are sums of functions of single log-ratios.

With u = log r^-(x) and v = log r^+(x) for row x and coordinate j, such a loss is
sum over rows and coordinates of f(u) + g(v), where f is dropped if x^{j-} does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..data.dataset import Dataset
from ..models.base import AbstractModel
from ..models.network import Pairwise
from ..models.parameters import Theta
from ..models.tables import PairwiseRows, Prepared, Table, log_ratios, tabulate, weighted_total


@dataclass(frozen=True)
class LocalLoss:
    """A loss given by its functions f and g of the log-ratios.

    Attributes
    ----------
    name : str
        The word that names it in `fit` and on the command line.
    title : str
        Its name in plots and reports.
    bounded : bool
        Whether the loss is bounded below, so that every posterior it gives is proper.
    calibration : str
        How its weight is chosen by default.
    """

    name: str
    title: str
    minus: Callable[[Array], Array]
    plus: Callable[[Array], Array]
    bounded: bool
    calibration: str = "score-matching-invariant"

    def prepare(self, model: AbstractModel, data: Dataset, blocks: np.ndarray | None = None) -> Prepared:
        """Everything the loss needs of the data, free of the parameters."""
        return tabulate(model, data, blocks)

    def value(self, model: AbstractModel, theta: Theta, arrays: Table, weights: Any) -> Float[Array, ""]:
        u, v = log_ratios(model, theta, arrays)
        return weighted_total(self.minus(u), self.plus(v), arrays, weights)

    def second_order(
        self, model: AbstractModel, theta: Theta, arrays: Table, weights: Any
    ) -> tuple[Array, Array, Array] | None:
        """Value, gradient and Hessian where the table has a formula for them; None to differentiate."""
        if isinstance(arrays, PairwiseRows) and isinstance(model, Pairwise):
            return self._pairwise(model, theta, arrays, weights)
        return None

    def _pairwise(
        self, model: Pairwise, theta: Theta, arrays: PairwiseRows, weights: Any
    ) -> tuple[Array, Array, Array]:
        """A log-ratio of node j depends on that node's own parameters only, and linearly.

        So the Hessian is made of one small matrix a node, over the features 1, x_1 ... x_d and the curve.
        """
        u, v = log_ratios(model, theta, arrays)
        value = weighted_total(self.minus(u), self.plus(v), arrays, weights)
        kept = jnp.where(arrays.down_exists, weights[None, :], 0.0)
        minus1, minus2 = _derivatives(self.minus, u)
        plus1, plus2 = _derivatives(self.plus, v)
        minus1, minus2 = kept * minus1, kept * minus2
        plus1, plus2 = weights[None, :] * plus1, weights[None, :] * plus2
        features = jnp.concatenate([jnp.ones((1, arrays.rows.shape[1])), arrays.rows])

        def moments(minus: Array, plus: Array, power: int) -> list[Array]:
            """Sums over the two ratios with 0 to ``power`` factors of the curve and the others of the step."""
            return [
                minus * arrays.down ** (power - k) * arrays.down_curve**k
                + plus * arrays.up ** (power - k) * arrays.up_curve**k
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

        node, slot, factor = model.slots
        gradient = jnp.sum(factor * slopes[node, slot], axis=1)
        hessian = jnp.zeros((len(theta), len(theta)))
        for a in range(2):
            for b in range(2):
                same = factor[:, None, a] * factor[None, :, b] * (node[:, None, a] == node[None, :, b])
                hessian += same * blocks[node[:, None, a], slot[:, None, a], slot[None, :, b]]
        return value, gradient, hessian


def _derivatives(function: Callable[[Array], Array], at: Array) -> tuple[Array, Array]:
    """First and second derivative of a function of one number, entry by entry."""
    ones = jnp.ones_like(at)

    def first(x: Array) -> Array:
        return jax.jvp(function, (x,), (ones,))[1]

    return jax.jvp(first, (at,), (ones,))


def _fisher_minus(u: Array) -> Array:
    return jnp.exp(2.0 * u)


def _fisher_plus(v: Array) -> Array:
    return -2.0 * jnp.exp(v)


def _ratio_minus(u: Array) -> Array:
    return jax.nn.sigmoid(u) ** 2


def _ratio_plus(v: Array) -> Array:
    s = jax.nn.sigmoid(v)
    return s * (s - 2.0)


FISHER = LocalLoss("dfd", "discrete Fisher divergence", _fisher_minus, _fisher_plus, bounded=False)
"""(r^-)^2 - 2 r^+: the discrete Fisher divergence without its constant."""

RATIO = LocalLoss("ratio", "generalised ratio matching", _ratio_minus, _ratio_plus, bounded=True)
"""t(u) = 1 / (1 + u) of the ratios: a relative of DFD whose every term lies in [-1, 1]."""
