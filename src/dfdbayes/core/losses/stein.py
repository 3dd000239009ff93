"""The kernel Stein discrepancy as a loss: n times its square, a weighted V-statistic.

With r the ratios r_j^-(x), the operator S h(x) = sum_j h_j(x^{j+}) - r_j(x) h_j(x) makes the loss quadratic in r:

    n KSD^2 = (1/n) [ c(w) - 2 sum_uj w_u r_uj b_uj(w) + sum_j (w r_j)' K (w r_j) ],

where c, b and K need the kernel and the weights only. For exponential families the ratios take few distinct values q,
and everything collapses to c - 2 b'q + q'Qq with a small matrix Q. The sums are in `stein_pairs`, and what is
done where there are too many rows for all pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._util.codec import to_plain
from ..dataset import Sites
from ..linear import Dense
from ..model import AbstractModel
from ..parameters import Theta
from ..terms import AbstractTerms, Loss, Prepared, Site, View, pad, padded_size, refuse_blocks, terms
from .base import LOSSES, AbstractLoss
from .kernels import HAMMING, Kernel
from .stein_pairs import Blocks, Sums, Values, row_slopes, shifted

OneMore = Callable[[np.ndarray], Float[np.ndarray, "u p"]]
MAX_DISTINCT_RATIOS = 1000  # whose quadratic form, a matrix for every replicate, is 8 MB; more are taken by row


def _distinct(decrements: Dense, theta: Theta) -> Float[Array, " m"]:
    """Distinct ratios, from the terms that have their logarithms."""
    (log,) = decrements.predictors(decrements.coefficients(theta), (decrements.designs, decrements.offsets))
    return jnp.exp(log)


@terms
class ByValue(AbstractTerms):
    """Few distinct ratios; the weights carry the quadratic form."""

    decrements: Dense

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        c, linear, form, n = weights
        q = _distinct(self.decrements, theta)
        return (c - 2.0 * jnp.dot(linear, q) + q @ form @ q) / n


@terms
class Indexed:
    """Ratios by row from distinct ones."""

    decrements: Dense
    which: Int[Array, "u d"]

    def row_ratios(self, theta: Theta) -> Float[Array, "u d"]:
        return jnp.where(self.which >= 0, _distinct(self.decrements, theta)[self.which], 0.0)


@terms
class ByRow(AbstractTerms):
    """Terms with ratios by row, and the kernel between the rows of each block."""

    ratios: Any
    members: Int[Array, "k b"]
    kernel: Float[Array, "k b b"]

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        c, linear, w, n = weights
        ratio = self.ratios.row_ratios(theta)
        pushed = (w[:, None] * ratio)[self.members]
        return (c - 2.0 * jnp.sum(linear * ratio) + jnp.sum(pushed * (self.kernel @ pushed))) / n


@jax.jit
def _ratios(decrements: Any, theta: Array) -> tuple[Array, Array]:
    """Distinct ratios, and their slopes (m, p)."""
    return _distinct(decrements, theta), jax.jacfwd(partial(_distinct, decrements))(theta)


@jax.jit
def _row_ratios(ratios: Any, theta: Array, directions: Array) -> tuple[Array, Array]:
    """Ratios by row, and their slopes (u, d, p) along some directions."""
    along = jax.vmap(lambda v: jax.jvp(ratios.row_ratios, (theta,), (v,))[1], out_axes=-1)
    return ratios.row_ratios(theta), along(directions)


def _one_more(n: float, total: np.ndarray, with_all: np.ndarray, alone: np.ndarray) -> Float[np.ndarray, "u p"]:
    """What one more observation of each row adds to the slope of w'Aw / n, from those of w'Aw, of Aw and of A(x, x)."""
    return (total + 2.0 * with_all + alone) / (n + 1.0) - total / n


@LOSSES.register("ksd")
@dataclass(frozen=True)
class KernelStein(AbstractLoss):
    """The kernel Stein discrepancy with a kernel of choice.

    It is a sum over all pairs of distinct rows, up to 6000 of these. Beyond, it is estimated at a linear cost: the rows
    are dealt out at random (always in the same way, whatever their order in the data) into blocks of at most 2000, and
    only rows of one block meet, their terms multiplied so that the mean over all ways to deal is the sum over all
    pairs. To first order the minimiser varies as with all pairs. The fit says so: a warning, and
    ``fit.settings["loss_note"]``.

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
    references = ("yang", "matsubara 2022")
    separable: ClassVar[bool] = False

    def to_state(self) -> dict[str, Any]:
        return {"kernel": to_plain(self.kernel, Kernel)}

    def prepare(self, model: AbstractModel, sites: Sites) -> Prepared:
        refuse_blocks(sites)
        sites = replace(sites, domain=sites.domain.wrapped)
        blocks, found = Blocks.of(len(sites.rows)), model.distinct_decrements(sites)
        if found is None:
            return self._by_row(sites, model.terms_at(sites, View.NEIGHBOURS).terms, blocks)
        decrements, count, index = found
        values = Values(self.kernel, sites.rows, sites.up, index, count, blocks)
        few = count <= MAX_DISTINCT_RATIOS and count**2 < sites.rows.size * len(sites.rows)  # else rows are as fast
        if few and len(values.pairs) <= MAX_DISTINCT_RATIOS:
            return self._by_value(sites, decrements, values)
        padded = np.pad(index, [(0, padded_size(len(index)) - len(index)), (0, 0)], constant_values=-1)
        return self._by_row(sites, Indexed(decrements, jnp.asarray(padded)), blocks)

    def _by_value(self, sites: Sites, decrements: Any, values: Values) -> Prepared:
        size, (first, second) = padded_size(values.count), values.pairs.T
        own = sites.of_rows(sites.units.weights)
        known: list[Sums] = []  # of the data's own weights

        def sums_of_own() -> Sums:
            if not known:
                known.append(values.sums(own[None]))
            return known[0]

        def term_weights(weights: np.ndarray) -> tuple[Array, ...]:
            stacked = np.atleast_2d(sites.of_rows(weights))
            one = len(stacked) == 1 and np.array_equal(stacked[0], own)
            totals = sums_of_own().totals if one else values.sums(stacked).totals
            c, linear, pairs = np.split(totals, [1, 1 + values.count], axis=1)
            form = np.zeros((len(stacked), size, size))
            form[:, first, second] = form[:, second, first] = pairs
            parts = (c[:, 0], pad(linear, size, axis=1), form, stacked.sum(axis=1))
            return tuple(jnp.asarray(p if np.ndim(weights) == 2 else p[0]) for p in parts)

        def one_more(theta: np.ndarray) -> Float[np.ndarray, "u p"]:
            ratios, slopes = (np.asarray(part)[: values.count] for part in _ratios(decrements, jnp.asarray(theta)))
            products = ratios[first, None] * slopes[second] + slopes[first] * ratios[second, None]
            products *= np.where(first == second, 1.0, 2.0)[:, None]
            along = np.concatenate([np.zeros((1, len(theta))), -2.0 * slopes, products])
            sums = sums_of_own()
            return _one_more(own.sum(), sums.totals[0] @ along, sums.halves.T @ along, sums.diagonal.T @ along)

        return Prepared(
            ByValue(decrements), term_weights, added_gradient=_of_rows(sites, one_more), note=values.blocks.note
        )

    def _by_row(self, sites: Sites, by_row: Any, blocks: Blocks) -> Prepared:
        rows, up, largest = sites.rows, sites.up, padded_size(max(map(len, blocks.members)))
        size, own = padded_size(len(rows)), sites.of_rows(sites.units.weights)
        members = np.stack([pad(part, largest) for part in blocks.members])
        kernel = np.zeros((len(members), largest, largest))
        for filled, part in zip(kernel, blocks.members, strict=True):
            filled[: len(part), : len(part)] = blocks.scaled(self.kernel.between(rows[part], rows[part]))

        def term_weights(weights: np.ndarray) -> tuple[Array, ...]:
            stacked = np.atleast_2d(sites.of_rows(weights))
            c, b = shifted(self.kernel, rows, up, stacked, blocks)
            parts = (c, pad(stacked[..., None] * b, size, axis=1), pad(stacked, size, axis=1), stacked.sum(axis=1))
            return tuple(jnp.asarray(p if np.ndim(weights) == 2 else p[0]) for p in parts)

        def one_more(theta: np.ndarray) -> Float[np.ndarray, "u p"]:
            found, at_once = [], 2**26  # slopes of ratios, which are 512 MB
            for directions in np.array_split(np.eye(len(theta)), -(-len(theta) * rows.size // at_once)):
                ratios, slopes = _row_ratios(by_row, jnp.asarray(theta), jnp.asarray(directions))
                parts = (np.asarray(part)[: len(rows)] for part in (ratios, slopes))
                with_all, alone = row_slopes(self.kernel, rows, up, own, blocks, *parts)
                found.append(_one_more(own.sum(), own @ with_all, with_all, alone))
            return np.concatenate(found, axis=1)

        made = ByRow(by_row, jnp.asarray(members), jnp.asarray(kernel))
        return Prepared(made, term_weights, added_gradient=_of_rows(sites, one_more), note=blocks.note)

    def term(self, u: Array, site: Site | None) -> Array:
        raise NotImplementedError  # it is no sum over rows: its terms are a quadratic form in the ratios


def _of_rows(sites: Sites, one_more: OneMore) -> OneMore | None:
    """The formula for single rows, where these are the units."""
    return one_more if sites.units.owner is None else None
