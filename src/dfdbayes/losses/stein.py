"""The kernel Stein discrepancy as a loss: n times its square, a weighted V-statistic.

With r the ratios r_j^-(x), the operator S h(x) = sum_j h_j(x^{j+}) - r_j(x) h_j(x) makes the loss quadratic in r:

    n KSD^2 = (1/n) [ c(w) - 2 sum_uj w_u r_uj b_uj(w) + sum_j (w r_j)' K (w r_j) ],

where c, b and K need the kernel and the weights only. They are computed once. For exponential families the ratios take
few distinct values q, and everything collapses to c - 2 b'q + q'Qq with a small matrix Q.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..data.sites import Sites
from ..errors import ModelError
from ..models.base import AbstractModel
from ..models.parameters import Theta
from ..models.tables import AbstractTable, Prepared, pad, padded_size, refuse_blocks
from .base import AbstractLoss
from .kernels import HAMMING, Kernel, neighbour_kernels

MOST_ROWS = 6000


class ByValue(NamedTuple):
    """Few distinct ratios; the weights carry the quadratic form."""

    decrements: Any

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        c, linear, form, n = weights
        q = self.decrements.ratios(theta)
        return (c - 2.0 * jnp.dot(linear, q) + q @ form @ q) / n


class ByRow(NamedTuple):
    """The table of ratios by row, and the kernel between rows."""

    table: AbstractTable
    kernel: Float[Array, "u u"]

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        c, linear, w, n = weights
        ratio = self.table.row_ratios(theta)
        pushed = w[:, None] * ratio
        return (c - 2.0 * jnp.sum(linear * ratio) + jnp.sum(pushed * (self.kernel @ pushed))) / n


@dataclass(frozen=True)
class KernelStein(AbstractLoss):
    """The kernel Stein discrepancy with a kernel of choice.

    Parameters
    ----------
    kernel
        `dfdbayes.kernels.HAMMING` (default), ``OVERLAP``, ``EQUALITY``, ``Robust(below(90))``, or ``Custom(function)``.
    """

    kernel: Kernel = HAMMING
    name = "ksd"
    title = "kernel Stein discrepancy"
    phrase = "a kernel Stein discrepancy (Yang et al., 2018; Matsubara et al., 2022)"
    formula = "D(θ) = n KSD²(p<sub>θ</sub>, data)"
    references = ("yang", "ksd")
    separable: ClassVar[bool] = False

    def prepare(self, model: AbstractModel, sites: Sites) -> Prepared:
        refuse_blocks(sites)
        count = len(sites.rows)
        if count > MOST_ROWS:
            raise ModelError(
                f"the kernel Stein discrepancy needs a matrix between distinct rows; {count} are too many (at most "
                f"{MOST_ROWS}). Use loss='dfd' or 'ratio', whose cost is linear."
            )
        found = model.distinct_decrements(sites)
        return self._by_row(model, sites) if found is None else self._by_value(sites, *found)

    def _shifted(self, sites: Sites, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """c(w), one for each row of weights, and b(w) for every row and coordinate."""
        c = np.zeros(len(weights))
        b = np.empty((len(weights), *sites.rows.shape))
        same: Any = None
        for j, (one, both) in enumerate(neighbour_kernels(self.kernel, sites.rows, sites.up)):
            b[:, :, j] = weights @ one.T
            if j == 0 or not np.array_equal(both, same):
                quadratic = np.einsum("bu,bu->b", weights @ both, weights)
            same, c = both, c + quadratic
        return c, b

    def _by_value(self, sites: Sites, decrements: Any, count: int, index: np.ndarray) -> Prepared:
        size, (rows, d) = padded_size(count), sites.rows.shape
        between = self.kernel.between(sites.rows, sites.rows)
        chosen = np.zeros((rows, d, count))
        u, j = np.nonzero(index >= 0)
        chosen[u, j, index[u, j]] = 1.0
        flat = chosen.reshape(rows, -1)

        def weigh(weights: np.ndarray) -> tuple[Array, ...]:
            stacked = np.atleast_2d(sites.of_rows(weights))
            c, b = self._shifted(sites, stacked)
            linear = np.einsum("bu,buj,ujm->bm", stacked, b, chosen, optimize=True)
            form = np.empty((len(stacked), size, size))
            for k, w in enumerate(stacked):
                weighted = w[:, None] * flat
                pulled = (between @ weighted).reshape(rows, d, -1)
                part = np.tensordot(weighted.reshape(rows, d, -1), pulled, axes=([0, 1], [0, 1]))
                form[k] = pad(pad(part, size, 0), size, 1)
            parts = (c, pad(linear, size, axis=1), form, stacked.sum(axis=1))
            return tuple(jnp.asarray(p if np.ndim(weights) == 2 else p[0]) for p in parts)

        return Prepared(ByValue(decrements), weigh)

    def _by_row(self, model: AbstractModel, sites: Sites) -> Prepared:
        size = padded_size(len(sites.rows))
        between = self.kernel.between(sites.rows, sites.rows)
        table = ByRow(model.table(sites).table, jnp.asarray(pad(pad(between, size, 0), size, 1)))

        def weigh(weights: np.ndarray) -> tuple[Array, ...]:
            stacked = np.atleast_2d(sites.of_rows(weights))
            c, b = self._shifted(sites, stacked)
            parts = (c, pad(stacked[..., None] * b, size, axis=1), pad(stacked, size, axis=1), stacked.sum(axis=1))
            return tuple(jnp.asarray(p if np.ndim(weights) == 2 else p[0]) for p in parts)

        return Prepared(table, weigh)

    def value(self, theta: Theta, table: ByValue | ByRow, weights: Any) -> Float[Array, ""]:
        return table.value(theta, weights)
