"""Tables of exponential families: distinct differences of (T, b), free of the parameters.

A row's weight is spread over the differences that it owns, so an evaluation does not depend on the number of
observations. Rows that own the same differences are interchangeable: where there are very many distinct rows, weights
and resamples are of classes of such rows.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import sparse

from ..errors import DataError
from .parameters import Theta
from .sites import BLOCKS, ROWS, Sites
from .terms import (
    AbstractConditionals,
    AbstractLikelihood,
    AbstractTable,
    Prepared,
    all_points,
    pad,
    padded_size,
    refuse_blocks,
    table,
)

if TYPE_CHECKING:
    from .exponential import Differences, ExponentialFamily

LARGE = 2**16  # distinct rows beyond which those with the same terms are one, and resamples are drawn in buckets


@table
class DistinctTable(AbstractTable):
    """Distinct differences of (T, b) to the decrement and to the increment."""

    model: ExponentialFamily
    minus_T: Float[Array, "m k"]
    minus_b: Float[Array, " m"]
    plus_T: Float[Array, "q k"]
    plus_b: Float[Array, " q"]

    @staticmethod
    def of(model: ExponentialFamily, sites: Sites) -> Prepared:
        units = None
        if len(sites.rows) > LARGE and sites.units.kind == ROWS and sites.data.repeats is None:
            first, classes = _interchangeable(model, sites)
            units = np.bincount(classes, weights=sites.data.counts)
            sites = sites.at(first)
        minus, plus = neighbour_differences(model, sites)
        minus_table, minus_map = owned(minus, sites, sites.minus, sites.j)
        plus_table, plus_map = owned(plus, sites, sites.plus, sites.j)

        def weigh(weights: np.ndarray) -> tuple[Array, ...]:
            return tuple(
                jax.device_put(pad(np.asarray(weights @ incidence), padded_size(incidence.shape[1]), axis=-1))
                for incidence in (minus_map, plus_map)
            )

        def gather(lines: Any) -> np.ndarray:
            parts = zip((minus_map, plus_map), lines, strict=True)
            return sum(incidence @ np.asarray(part)[: incidence.shape[1]] for incidence, part in parts)

        made = DistinctTable(model, *_padded(minus_table), *_padded(plus_table))
        return Prepared(made, weigh, units, gather=gather)

    def log_ratios(self, theta: Theta) -> tuple[Array, Array]:
        eta = self.model.eta(self.model.space.unflatten(theta))
        return self.minus_T @ eta + self.minus_b, self.plus_T @ eta + self.plus_b

    def total(self, minus: Array, plus: Array, weights: Any) -> Float[Array, ""]:
        return jnp.dot(weights[0], minus) + jnp.dot(weights[1], plus)


@table
class DistinctDecrements:
    """Distinct differences of (T, b) to the decrement, for losses that need the ratios by row and coordinate."""

    model: ExponentialFamily
    T: Float[Array, "m k"]
    b: Float[Array, " m"]

    @staticmethod
    def of(model: ExponentialFamily, sites: Sites) -> tuple[DistinctDecrements, int, np.ndarray]:
        """The table, how many differences it holds, and which of them each site has (-1 where there is none)."""
        exists = sites.minus != 0
        found, inverse = fold(all_differences(model, sites.rows, sites.down, sites.j)[exists.reshape(-1)])
        index = np.full(exists.shape, -1, dtype=np.int64)
        index[exists] = inverse
        return DistinctDecrements(model, *_padded(found)), len(found), index

    def ratios(self, theta: Theta) -> Float[Array, " m"]:
        return jnp.exp(self.T @ self.model.eta(self.model.space.unflatten(theta)) + self.b)


@table
class DistinctConditionals(AbstractConditionals):
    """Distinct differences of (T, b) from a point to each state of a coordinate."""

    model: ExponentialFamily
    T: Float[Array, "m s k"]
    b: Float[Array, "m s"]

    @staticmethod
    def of(model: ExponentialFamily, sites: Sites) -> Prepared:
        levels, j = model.domain.coordinate(0).levels, np.arange(model.domain.d)
        parts = [all_differences(model, sites.rows, np.full_like(sites.rows, level), j) for level in levels]
        width = parts[0].shape[1]
        found, incidence = owned(np.concatenate(parts, axis=1), sites, np.ones(sites.rows.shape), j)
        size = padded_size(len(found))
        full = pad(found, size).reshape(size, len(levels), width)
        made = DistinctConditionals(model, *jax.device_put((full[..., :-1], full[..., -1])))
        return Prepared(
            made,
            lambda weights: jax.device_put(pad(np.asarray(weights @ incidence), size, axis=-1)),
            gather=lambda lines: incidence @ np.asarray(lines)[: incidence.shape[1]],
        )

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        log = self.T @ self.model.eta(self.model.space.unflatten(theta)) + self.b
        return jnp.dot(weights, jax.nn.logsumexp(log, axis=1))


@table
class SummedLikelihood(AbstractLikelihood):
    """Distinct statistics of all points with their log multiplicities; none where the model knows its constant."""

    model: ExponentialFamily
    T: Float[Array, "s k"]
    b: Float[Array, " s"]

    @staticmethod
    def of(model: ExponentialFamily, sites: Sites) -> Prepared:
        refuse_blocks(sites)
        T, b = statistics(model, sites.rows)

        def weigh(weights: np.ndarray) -> tuple[Array, ...]:
            rows = sites.of_rows(weights)
            return jax.device_put((rows @ T, rows @ b, rows.sum(axis=-1)))

        def gather(lines: Any) -> np.ndarray:
            of_T, of_b, of_n = map(np.asarray, lines)
            return sites.by_unit(T @ of_T + np.outer(b, of_b) + of_n)

        if model.log_normaliser is not None:
            none = jax.device_put((np.zeros((0, T.shape[1])), np.zeros(0)))
            return Prepared(SummedLikelihood(model, *none), weigh, gather=gather)
        distinct, inverse = fold(np.column_stack(statistics(model, all_points(model))))
        multiplicity = np.log(np.bincount(inverse))
        made = SummedLikelihood(model, *jax.device_put((distinct[:, :-1], distinct[:, -1] + multiplicity)))
        return Prepared(made, weigh, gather=gather)

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        named = self.model.space.unflatten(theta)
        T, b, n = weights
        eta, known = self.model.eta(named), self.model.log_normaliser
        constant = known(named) if known is not None else jax.nn.logsumexp(self.T @ eta + self.b)
        return n * constant - jnp.dot(T, eta) - b


# -- statistics and their differences ----------------------------------------------------------


@partial(jax.jit, static_argnums=0)
def _statistics(model: ExponentialFamily, rows: Array) -> tuple[Array, Array]:
    return jax.vmap(lambda x: (jnp.asarray(model.T(x)), model.base(x)))(rows)


def statistics(model: ExponentialFamily, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """T and b of every row."""
    T, b = _statistics(model, pad(rows.astype(float), padded_size(len(rows))))
    return np.asarray(T)[: len(rows)], np.asarray(b)[: len(rows)]


def _differences(model: ExponentialFamily, rows: np.ndarray, moved: np.ndarray, j: int) -> np.ndarray:
    """Columns T(x with x_j moved) - T(x), then the same of b."""
    there = rows.astype(float)
    there[:, j] = moved
    (T0, b0), (T1, b1) = statistics(model, rows), statistics(model, there)
    return np.column_stack([T1 - T0, b1 - b0])


def all_differences(model: ExponentialFamily, rows: np.ndarray, moved: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Differences of T and b, one line for each row and move; ``j`` has the coordinate of each move."""
    if model.differences is None:
        parts = [_differences(model, rows, values, i) for i, values in zip(j, moved.T, strict=True)]
        return np.stack(parts, axis=1).reshape(moved.size, -1)
    rounds = np.flatnonzero(np.diff(j) <= 0) + 1  # between them no coordinate is moved twice
    pieces = zip(np.split(moved, rounds, axis=1), np.split(j, rounds), strict=True)
    return np.concatenate([_at_once(model.differences, rows, *piece) for piece in pieces], axis=1).reshape(
        moved.size, -1
    )


def _at_once(differences: Differences, rows: np.ndarray, moved: np.ndarray, j: np.ndarray) -> np.ndarray:
    """The model's own differences, of moves of different coordinates."""
    if len(j) == rows.shape[1]:
        T, b = differences(rows, moved)
        return np.concatenate([T, b[..., None]], axis=-1)
    all_moved = rows.copy()
    all_moved[:, j] = moved
    return _at_once(differences, rows, all_moved, np.arange(rows.shape[1]))[:, j]


def neighbour_differences(model: ExponentialFamily, sites: Sites) -> tuple[np.ndarray, np.ndarray]:
    """Differences to the decrement and from the increment, one line for each row and move."""
    minus = all_differences(model, sites.rows, sites.down, sites.j)
    same = np.array_equal(sites.down, sites.up)
    return minus, -minus if same else -all_differences(model, sites.rows, sites.up, sites.j)


def _padded(lines: np.ndarray) -> tuple[Array, Array]:
    full = pad(lines, padded_size(len(lines)))
    return jax.device_put((full[:, :-1], full[:, -1]))


# -- distinct lines, and who owns them ---------------------------------------------------------


def fold(lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct lines of a table, and which one each line is."""
    key = np.zeros(len(lines), dtype=np.int64)
    for column in lines.T:  # one integer for each line: sorting integers is much faster than sorting lines
        values, code = np.unique(column + 0.0, return_inverse=True)
        if len(values) > 1:
            _, key = np.unique(key * len(values) + code, return_inverse=True)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return lines[first], inverse


def owned(lines: np.ndarray, sites: Sites, scale: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, sparse.csr_matrix]:
    """Distinct lines of a (rows x moves) table, and how much of each of them a unit of weight 1 owns."""
    units, amount = sites.units, scale.reshape(-1)
    if units.owner is None:
        owner = np.repeat(np.arange(len(sites.rows)), len(j))
    elif units.kind == BLOCKS:
        owner = units.owner[j]
    else:
        owner, amount = np.repeat(units.owner, len(j)), amount * np.repeat(sites.data.counts, len(j))
    kept = scale.reshape(-1) != 0
    lines, owner, amount = lines[kept], owner[kept], amount[kept]
    if not len(lines):
        return lines, sparse.csr_matrix((len(units.weights), 0))
    distinct, inverse = fold(lines)
    return distinct, sparse.csr_matrix((amount, (owner, inverse)), shape=(len(units.weights), len(distinct)))


def _interchangeable(model: ExponentialFamily, sites: Sites) -> tuple[np.ndarray, np.ndarray]:
    """A first row of each class of rows that own the same differences, and the class of every row.

    Rows are compared by a sum of scrambled bits of their differences, 64 of them to sort by and 64 to make sure.
    """
    keys: list[np.ndarray] = []
    checks: list[np.ndarray] = []
    for part in sites.in_slices(2**13):
        minus, plus = neighbour_differences(model, part)
        down, up = (
            np.where(scale.reshape(-1) != 0, _scrambled(lines, salt) ^ _bits(scale.reshape(-1)), np.uint64(0))
            for lines, scale, salt in ((minus, part.minus, 1), (plus, part.plus, 2))
        )
        keys.append((down + up).reshape(part.down.shape).sum(axis=1))
        checks.append((_mixed(down) + _mixed(up)).reshape(part.down.shape).sum(axis=1))
    _, first, classes = np.unique(np.concatenate(keys), return_index=True, return_inverse=True)
    check = np.concatenate(checks)
    if not np.array_equal(check[first][classes], check):  # once in 10^5 data sets of 10^7 distinct rows
        raise DataError("two different rows look alike; leave one observation out")
    return first, classes


def _bits(values: np.ndarray) -> np.ndarray:
    return (values - 1.0 + 0.0).view(np.uint64)  # a scale of 1 changes nothing


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
