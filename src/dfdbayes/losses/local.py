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
from jaxtyping import Array, Float

from ..data import Dataset
from ..models.base import AbstractModel
from ..parameters import Theta
from ..ratios import Distinct, Neighbours, RatioTable, log_ratios, tabulate, weighted_total


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
    """

    name: str
    title: str
    minus: Callable[[Array], Array]
    plus: Callable[[Array], Array]
    bounded: bool

    def prepare(self, model: AbstractModel, data: Dataset) -> RatioTable:
        """Everything the loss needs of the data, free of the parameters."""
        return tabulate(model, data)

    def value(
        self, model: AbstractModel, theta: Theta, arrays: Distinct | Neighbours, weights: Any
    ) -> Float[Array, ""]:
        u, v = log_ratios(model, theta, arrays)
        return weighted_total(self.minus(u), self.plus(v), arrays, weights)


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
