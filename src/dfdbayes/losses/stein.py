"""The kernel Stein discrepancy as a loss: n times its square, a weighted V-statistic.

With r the ratios r_j^-(x), the operator S h(x) = sum_j h_j(x^{j+}) - r_j(x) h_j(x) makes the loss quadratic in r:

    n KSD^2 = (1/n) [ c(w) - 2 sum_uj w_u r_uj b_uj(w) + sum_j (w r_j)' K (w r_j) ],

where c, b and K need the kernel and the weights only. They are computed once. For exponential families the ratios take
few distinct values q, and everything collapses to c - 2 b'q + q'Qq with a small matrix Q.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..data.dataset import Dataset
from ..errors import ModelError
from ..models.base import AbstractModel, ExponentialFamily
from ..models.parameters import Theta
from ..models.tables import (
    PairwiseRows,
    Prepared,
    Table,
    distinct_decrements,
    log_ratios,
    pad,
    padded_size,
    refuse_blocks,
    tabulate,
)
from .kernels import HAMMING, neighbour_kernels

MOST_ROWS = 6000


class Values(NamedTuple):
    """Distinct differences of (T, b) to the decrement; the weights carry the quadratic form."""

    T: Float[Array, "m k"]
    b: Float[Array, " m"]


class Rows(NamedTuple):
    """The table of ratios by row, and the kernel between rows."""

    table: Any
    kernel: Float[Array, "u u"]


@dataclass(frozen=True)
class KernelStein:
    """The kernel Stein discrepancy with a kernel of choice.

    Parameters
    ----------
    kernel
        `dfdbayes.kernels.HAMMING` (default), ``OVERLAP``, ``EQUALITY``, ``Robust(below(90))``, or ``Custom(function)``.
    """

    kernel: Any = HAMMING
    name = "ksd"
    title = "kernel Stein discrepancy"
    bounded = True
    calibration = "score-matching-invariant"

    def prepare(self, model: AbstractModel, data: Dataset, blocks: np.ndarray | None = None) -> Prepared:
        refuse_blocks(blocks)
        if len(data.rows) > MOST_ROWS:
            raise ModelError(
                f"the kernel Stein discrepancy needs a matrix between distinct rows; {len(data.rows)} are too many "
                f"(at most {MOST_ROWS}). Use loss='dfd' or 'ratio', whose cost is linear."
            )
        if isinstance(model, ExponentialFamily):
            return self._of_values(model, data)
        return self._of_rows(model, data)

    def _shifted(self, model: AbstractModel, data: Dataset, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """c(w), one for each row of weights, and b(w) for every row and coordinate."""
        c = np.zeros(len(weights))
        b = np.empty((len(weights), len(data.rows), data.d))
        same: Any = None
        for j, (one, both) in enumerate(neighbour_kernels(self.kernel, model.domain, data.rows)):
            b[:, :, j] = weights @ one.T
            if j == 0 or not np.array_equal(both, same):
                quadratic = np.einsum("bu,bu->b", weights @ both, weights)
            same, c = both, c + quadratic
        return c, b

    def _of_values(self, model: ExponentialFamily, data: Dataset) -> Prepared:
        table, index, exists = distinct_decrements(model, data)
        size, count = padded_size(len(table)), len(data.rows)
        between = self.kernel.between(data.rows, data.rows)
        chosen = np.zeros((count, data.d, len(table)))
        u, j = np.nonzero(exists)
        chosen[u, j, index[u, j]] = 1.0
        flat = chosen.reshape(count, -1)

        def weigh(weights: np.ndarray) -> tuple[Array, ...]:
            stacked = np.atleast_2d(weights)
            c, b = self._shifted(model, data, stacked)
            linear = np.einsum("bu,buj,ujm->bm", stacked, b, chosen, optimize=True)
            form = np.empty((len(stacked), size, size))
            for k, w in enumerate(stacked):
                weighted = w[:, None] * flat
                pulled = (between @ weighted).reshape(count, data.d, -1)
                part = np.tensordot(weighted.reshape(count, data.d, -1), pulled, axes=([0, 1], [0, 1]))
                form[k] = pad(pad(part, size, 0), size, 1)
            n = stacked.sum(axis=1)
            parts = (c, pad(linear, size, axis=1), form, n)
            return tuple(jnp.asarray(p if np.ndim(weights) == 2 else p[0]) for p in parts)

        full = pad(table, size)
        return Prepared(Values(jnp.asarray(full[:, :-1]), jnp.asarray(full[:, -1])), weigh)

    def _of_rows(self, model: AbstractModel, data: Dataset) -> Prepared:
        inner = tabulate(model, data)
        size = padded_size(len(data.rows))
        between = self.kernel.between(data.rows, data.rows)
        arrays = Rows(inner.arrays, jnp.asarray(pad(pad(between, size, 0), size, 1)))

        def weigh(weights: np.ndarray) -> tuple[Array, ...]:
            stacked = np.atleast_2d(weights)
            c, b = self._shifted(model, data, stacked)
            parts = (c, pad(stacked[..., None] * b, size, axis=1), pad(stacked, size, axis=1), stacked.sum(axis=1))
            return tuple(jnp.asarray(p if np.ndim(weights) == 2 else p[0]) for p in parts)

        return Prepared(arrays, weigh)

    def value(self, model: AbstractModel, theta: Theta, arrays: Any, weights: Any) -> Float[Array, ""]:
        if isinstance(arrays, Values):
            assert isinstance(model, ExponentialFamily)
            c, linear, form, n = weights
            q = jnp.exp(arrays.T @ model.eta(model.space.unflatten(theta)) + arrays.b)
            return (c - 2.0 * jnp.dot(linear, q) + q @ form @ q) / n
        c, linear, w, n = weights
        ratio = _ratios(model, theta, arrays.table)
        pushed = w[:, None] * ratio
        return (c - 2.0 * jnp.sum(linear * ratio) + jnp.sum(pushed * (arrays.kernel @ pushed))) / n

    def second_order(self, model: AbstractModel, theta: Theta, arrays: Any, weights: Any) -> None:
        return None


def _ratios(model: AbstractModel, theta: Theta, table: Table) -> Float[Array, "u d"]:
    """r_j^-(x) by row and coordinate, zero where the decrement does not exist."""
    u, _ = log_ratios(model, theta, table)
    exists = table.down_exists  # type: ignore[union-attr]
    ratio = jnp.where(exists, jnp.exp(jnp.where(exists, u, 0.0)), 0.0)
    return ratio.T if isinstance(table, PairwiseRows) else ratio
