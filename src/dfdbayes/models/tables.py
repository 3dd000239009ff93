"""Log-ratios of a model between neighbouring points of the data: all that the losses need.

For every row x and coordinate j there are two, log r^- = log p(x^{j-}) / p(x) and
log r^+ = log p(x) / p(x^{j+}). They come from one of three tables:

* `Distinct`, for exponential families: the distinct differences of (T, b), free of the parameters.
  A row's weight is spread over them, so an evaluation does not depend on the number of observations.
* `PairwiseRows`, for models with a parameter a node and an edge: the distinct rows themselves. The ratios of all
  coordinates are one matrix product.
* `Neighbours`, for any other model: the distinct rows with their neighbours' values; the ratios are
  differences of the model's log mass.

Rows of an exponential family that own the same differences are interchangeable. Where there are very many distinct
rows, weights and resamples are of such classes.

Tables are padded with entries of weight zero to a few standard sizes, so that data sets of
similar size share compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy import sparse

from ..data.dataset import Dataset
from ..errors import DataError, ModelError
from .base import AbstractModel, ExponentialFamily
from .network import Pairwise
from .parameters import Theta

LARGE = 2**16  # distinct rows beyond which those with the same terms are one, and resamples are drawn in buckets


class Distinct(NamedTuple):
    """Distinct differences of (T, b) to the decrement and to the increment."""

    minus_T: Float[Array, "m k"]
    minus_b: Float[Array, " m"]
    plus_T: Float[Array, "q k"]
    plus_b: Float[Array, " q"]


class PairwiseRows(NamedTuple):
    """Distinct rows, one column each, which makes all that is done to them run along memory.

    Also x_j^- - x_j and the change of -log x_j! with it; and the same from x_j^+ to x_j.
    """

    rows: Float[Array, "d u"]
    down: Float[Array, "d u"]
    down_curve: Float[Array, "d u"]
    down_exists: Bool[Array, "d u"]
    up: Float[Array, "d u"]
    up_curve: Float[Array, "d u"]


class Neighbours(NamedTuple):
    """Distinct rows, and in column j the j-th coordinate's decrement and increment."""

    rows: Float[Array, "u d"]
    down: Float[Array, "u d"]
    down_exists: Bool[Array, "u d"]
    up: Float[Array, "u d"]


Table = Distinct | PairwiseRows | Neighbours


@dataclass(frozen=True)
class Prepared:
    """All that a loss needs of the data: arrays free of the parameters, and how weights of rows enter."""

    arrays: Any
    weigh: Callable[[Float[np.ndarray, "*batch u"]], Any]
    units: Float[np.ndarray, " v"] | None = None
    """The data's own weights of what is weighed, where that is not the distinct rows."""
    elsewhere: bool = False
    """Whether the rows are on other machines, so that single ones cannot be weighed."""


def padded_size(size: int) -> int:
    """The standard size at or above ``size``: at most an eighth of it is padding beyond 64."""
    if size <= 8:
        return 8
    step = max(8, 2 ** (int(size - 1).bit_length() - 4))
    return -(-size // step) * step


def pad(array: np.ndarray, size: int, axis: int = 0) -> np.ndarray:
    """Zeros appended along ``axis`` up to ``size``."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, size - array.shape[axis])
    return np.pad(array, widths)


def tabulate(model: AbstractModel, data: Dataset, blocks: np.ndarray | None = None) -> Prepared:
    """The table of log-ratios for a model at a data set.

    With ``blocks`` (a block for each coordinate of a single row) the weights are those of the blocks, not of rows.
    """
    if isinstance(model, ExponentialFamily):
        return _distinct(model, data, blocks)
    refuse_blocks(blocks)
    if isinstance(model, Pairwise):
        return _pairwise(model, data)
    return _neighbours(model, data)


def refuse_blocks(blocks: np.ndarray | None) -> None:
    """For tables and losses whose terms do not belong to single sites."""
    if blocks is not None:
        raise ModelError(
            "one observation can be calibrated by resampling blocks of sites, and only for lattice models (Ising, "
            "Potts) with loss 'dfd', 'ratio' or 'pseudo'. Give more observations, or beta by hand (without adjust)."
        )


def log_ratios(model: AbstractModel, theta: Theta, arrays: Table) -> tuple[Array, Array]:
    """Entries' (log r^-, log r^+) at ``theta``; where r^- does not exist the entry is 0, with weight 0.

    Entries are the table's: distinct differences, (coordinates, rows) for `PairwiseRows`, else (rows, coordinates).
    """
    named = model.space.unflatten(theta)
    if isinstance(arrays, Distinct):
        assert isinstance(model, ExponentialFamily)
        eta = model.eta(named)
        return arrays.minus_T @ eta + arrays.minus_b, arrays.plus_T @ eta + arrays.plus_b

    if isinstance(arrays, PairwiseRows):
        assert isinstance(model, Pairwise)
        node, edge, curve = model.parts(named)
        local = node[:, None] + model.matrix(edge) @ arrays.rows
        power = 1.0 if curve is None else curve[:, None]
        return (
            arrays.down * local + power * arrays.down_curve,
            arrays.up * local + power * arrays.up_curve,
        )

    def of_row(x: Array, down: Array, up: Array) -> tuple[Array, Array]:
        here = model.log_mass_at(named, x)
        there = jax.vmap(lambda j, value: model.log_mass_at(named, x.at[j].set(value)), in_axes=(0, 0))
        j = jnp.arange(x.shape[0])
        return there(j, down) - here, here - there(j, up)

    return jax.vmap(of_row)(arrays.rows, arrays.down, arrays.up)


def weighted_total(minus: Array, plus: Array, arrays: Table, weights: Any) -> Float[Array, ""]:
    """Sum of terms ``minus`` and ``plus`` (one for each entry of the table) under the entries' weights."""
    if isinstance(arrays, Distinct):
        return jnp.dot(weights[0], minus) + jnp.dot(weights[1], plus)
    across = 0 if isinstance(arrays, PairwiseRows) else 1
    return jnp.dot(weights, jnp.sum(jnp.where(arrays.down_exists, minus, 0.0) + plus, axis=across))


# -- building the tables -----------------------------------------------------------------------


@partial(jax.jit, static_argnums=0)
def _statistics(model: ExponentialFamily, rows: Array) -> tuple[Array, Array]:
    return jax.vmap(lambda x: (jnp.asarray(model.T(x)), model.base(x)))(rows)


def statistics(model: ExponentialFamily, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """T and b of every row."""
    size = padded_size(len(rows))
    T, b = _statistics(model, jnp.asarray(pad(rows.astype(float), size)))
    return np.asarray(T)[: len(rows)], np.asarray(b)[: len(rows)]


def _differences(model: ExponentialFamily, rows: np.ndarray, moved: np.ndarray, j: int) -> np.ndarray:
    """Columns T(x with x_j moved) - T(x), then the same of b."""
    there = rows.astype(float)
    there[:, j] = moved
    (T0, b0), (T1, b1) = statistics(model, rows), statistics(model, there)
    return np.column_stack([T1 - T0, b1 - b0])


def all_differences(model: ExponentialFamily, rows: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """(rows x coordinates) lines of differences of T and b."""
    if model.differences is not None:
        T, b = model.differences(rows, moved)
        return np.concatenate([T, b[..., None]], axis=-1).reshape(rows.size, -1)
    parts = [_differences(model, rows, moved[:, j], j) for j in range(rows.shape[1])]
    return np.stack(parts, axis=1).reshape(rows.size, -1)


def _neighbour_differences(model: ExponentialFamily, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows x coordinates) lines of differences to the decrement, where it exists, and from the increment."""
    down, exists = model.domain.decrement(rows)
    up, _ = model.domain.increment(rows)
    minus = all_differences(model, rows, down)
    return minus, exists, -minus if np.array_equal(down, up) else -all_differences(model, rows, up)


def _distinct(model: ExponentialFamily, data: Dataset, blocks: np.ndarray | None) -> Prepared:
    rows, classes = data.rows, None
    if len(rows) > LARGE and blocks is None and data.repeats is None:
        first, classes = _interchangeable(model, data)
        rows = rows[first].astype(np.int64)
    minus, exists, plus = _neighbour_differences(model, rows)
    minus_table, minus_map = fold_owned(minus, exists.shape, blocks, exists)
    plus_table, plus_map = fold_owned(plus, exists.shape, blocks)

    def weigh(weights: np.ndarray) -> tuple[Array, ...]:
        return tuple(
            jnp.asarray(pad(np.asarray(weights @ incidence), padded_size(incidence.shape[1]), axis=-1))
            for incidence in (minus_map, plus_map)
        )

    def padded(table: np.ndarray) -> tuple[Array, Array]:
        full = pad(table, padded_size(len(table)))
        return jnp.asarray(full[:, :-1]), jnp.asarray(full[:, -1])

    units = None if classes is None else np.bincount(classes, weights=data.counts)
    return Prepared(Distinct(*padded(minus_table), *padded(plus_table)), weigh, units)


def _interchangeable(model: ExponentialFamily, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """A first row of each class of rows that own the same differences, and the class of every row.

    Rows are compared by a sum of scrambled bits of their differences, 64 of them to sort by and 64 to make sure.
    """
    keys: list[np.ndarray] = []
    checks: list[np.ndarray] = []
    for rows in data.slices(2**13):
        minus, exists, plus = _neighbour_differences(model, rows)
        down = np.where(exists.reshape(-1), _scrambled(minus, 1), np.uint64(0))
        up = _scrambled(plus, 2)
        keys.append((down + up).reshape(rows.shape).sum(axis=1))
        checks.append((_mixed(down) + _mixed(up)).reshape(rows.shape).sum(axis=1))
    _, first, classes = np.unique(np.concatenate(keys), return_index=True, return_inverse=True)
    check = np.concatenate(checks)
    if not np.array_equal(check[first][classes], check):  # once in 10^5 data sets of 10^7 distinct rows
        raise DataError("two different rows look alike; leave one observation out")
    return first, classes


def _scrambled(lines: np.ndarray, salt: int) -> np.ndarray:
    """64 bits for each line of numbers; columns of zeros cost nothing."""
    total = np.full(len(lines), salt, dtype=np.uint64)
    for k, column in enumerate(lines.T):
        if column.any():
            bits = (column + 0.0).view(np.uint64) * np.uint64((2 * k + 3) * 0x9E3779B97F4A7C15 % 2**64)
            total += _mixed(bits)
    return _mixed(total)


def _mixed(bits: np.ndarray) -> np.ndarray:
    bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    return bits ^ (bits >> np.uint64(29))


def distinct_decrements(model: ExponentialFamily, data: Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct differences to decrements, which of them each row and coordinate has, and where there is one."""
    down, exists = model.domain.decrement(data.rows)
    table, inverse, _ = fold(all_differences(model, data.rows, down)[exists.reshape(-1)])
    index = np.zeros(exists.shape, dtype=np.int64)
    index[exists] = inverse
    return table, index, exists


def fold(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct rows of a table, which one each row is, and where each first stands."""
    key = np.zeros(len(table), dtype=np.int64)
    for column in table.T:  # one integer a row: sorting integers is much faster than sorting rows
        values, code = np.unique(column + 0.0, return_inverse=True)
        if len(values) > 1:
            _, key = np.unique(key * len(values) + code, return_inverse=True)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return table[first], inverse, first


def fold_owned(
    table: np.ndarray, shape: tuple[int, ...], blocks: np.ndarray | None, exists: np.ndarray | None = None
) -> tuple[np.ndarray, sparse.csr_matrix]:
    """Distinct lines of a (rows x coordinates) table, and how often each unit (row or block) owns each of them."""
    owner = np.repeat(np.arange(shape[0]), shape[1]) if blocks is None else blocks
    units = int(owner.max()) + 1
    if exists is not None:
        table, owner = table[exists.reshape(-1)], owner[exists.reshape(-1)]
    if len(table) == 0:
        return table, sparse.csr_matrix((units, 0))
    distinct, inverse, _ = fold(table)
    ones = np.ones(len(owner))
    return distinct, sparse.csr_matrix((ones, (owner, inverse)), shape=(units, len(distinct)))


def _pairwise(model: Pairwise, data: Dataset) -> Prepared:
    rows = data.rows
    down, exists = model.domain.decrement(rows)
    up, _ = model.domain.increment(rows)
    size = padded_size(len(rows))

    def filled(array: np.ndarray) -> Array:
        return jnp.asarray(pad(np.asarray(array, float), size).T)

    if model.counts:
        down_curve, up_curve = np.where(exists, np.log(np.maximum(rows, 1)), 0.0), np.log(rows + 1.0)
    else:
        down_curve = up_curve = np.zeros(rows.shape)
    arrays = PairwiseRows(
        filled(rows),
        filled(np.where(exists, down - rows, 0)),
        filled(down_curve),
        jnp.asarray(pad(exists, size).T),
        filled(rows - up),
        filled(up_curve),
    )
    return Prepared(arrays, lambda weights: jnp.asarray(pad(np.asarray(weights, float), size, axis=-1)))


def _neighbours(model: AbstractModel, data: Dataset) -> Prepared:
    down, exists = model.domain.decrement(data.rows)
    up, _ = model.domain.increment(data.rows)
    size = padded_size(len(data.rows))

    def copied(array: np.ndarray) -> Array:
        """Pad with copies of the first row, where the mass function is known to be finite."""
        extra = np.repeat(array[:1], size - len(array), axis=0)
        return jnp.asarray(np.concatenate([array, extra]), dtype=float)

    arrays = Neighbours(copied(data.rows), copied(down), jnp.asarray(pad(exists, size)), copied(up))
    return Prepared(arrays, lambda weights: jnp.asarray(pad(np.asarray(weights, float), size, axis=-1)))
