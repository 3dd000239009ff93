"""Terms of exponential families: distinct differences of (T, b), free of the parameters.

A row's weight is spread over the differences that it owns, so an evaluation does not depend on the number of
observations. Rows that own the same differences are interchangeable: where there are very many distinct rows, weights
and resamples are of classes of such rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import sparse

from ..errors import DataError
from .linear_terms import Choices, Dense
from .parameters import Theta
from .sites import BLOCKS, ROWS, Sites
from .terms import AbstractTerms, Loss, Model, Prepared, Site, all_points, pad, padded_size, refuse_blocks, terms

LARGE = 2**16  # distinct rows beyond which those with the same terms are one, and resamples are drawn in buckets
Differences = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class Exponential(Model, Protocol):
    """What these terms need of an exponential family."""

    @property
    def T(self) -> Callable[[Array], Array]: ...
    @property
    def differences(self) -> Differences | None: ...
    def base(self, x: Array) -> Array: ...
    def coefficients(self, theta: Theta) -> Array: ...


def neighbours(model: Exponential, sites: Sites) -> Prepared:
    """Distinct differences to the decrement and to the increment, each with weights of its own."""
    units, sites = _classes(model, sites)
    minus, plus = neighbour_differences(model, sites)
    parts = [owned(minus, sites, sites.minus, sites.j), owned(plus, sites, sites.plus, sites.j)]
    one = jnp.ones(())
    designs, offsets = zip(*(_padded(lines) for lines, _ in parts), strict=True)
    made = Dense(model, designs, offsets, (Site(one, None), Site(None, one)), apart=True)
    return _prepared(made, [incidence for _, incidence in parts], units)


def choices(model: Exponential, sites: Sites) -> Prepared:
    """Distinct differences from a point to each other state of a coordinate; all coordinates have the same states."""
    units, sites = _classes(model, sites)
    levels, j = np.asarray(model.domain.coordinate(0).levels), np.arange(model.domain.d)
    own = np.searchsorted(levels, sites.rows)
    others = [levels[(own + step) % len(levels)] for step in range(1, len(levels))]
    lines = np.concatenate([all_differences(model, sites.rows, other, j) for other in others], axis=1)
    found, incidence = owned(lines, sites, np.ones(sites.rows.shape), j)
    parts = [_padded(part) for part in np.split(found, len(others), axis=1)]
    designs, offsets = zip(*parts, strict=True)
    return _prepared(Choices(model, designs, offsets, (), apart=False), [incidence], units)


def _prepared(made: Dense, incidences: list[sparse.csr_matrix], units: np.ndarray | None) -> Prepared:
    """Terms, and which unit owns how much of them."""

    def term_weights(weights: np.ndarray) -> Any:
        found = [pad(np.asarray(weights @ owns), padded_size(owns.shape[1]), axis=-1) for owns in incidences]
        return jax.device_put(tuple(found) if made.apart else found[0])

    def gradient_by_unit(gradients: Any) -> np.ndarray:
        each = zip(incidences, gradients if made.apart else [gradients], strict=True)
        return sum(owns @ np.asarray(part)[: owns.shape[1]] for owns, part in each)

    return Prepared(made, term_weights, units, gradient_by_unit=gradient_by_unit)


def decrements(model: Exponential, sites: Sites) -> tuple[Dense, int, np.ndarray]:
    """Distinct differences to the decrement, how many there are, and which of them each site has (-1 for none)."""
    exists = sites.minus != 0
    found, inverse = fold(all_differences(model, sites.rows, sites.down, sites.j)[exists.reshape(-1)])
    index = np.full(exists.shape, -1, dtype=np.int64)
    index[exists] = inverse
    design, offset = _padded(found)
    return Dense(model, (design,), (offset,), (Site(jnp.ones(()), None),), apart=True), len(found), index


def likelihood(model: Exponential, sites: Sites) -> Prepared:
    """Sums of statistics, and the constant: by the model's formula, or from statistics of all points."""
    refuse_blocks(sites)
    T, b = statistics(model, sites.rows)

    def term_weights(weights: np.ndarray) -> tuple[Array, ...]:
        rows = sites.of_rows(weights)
        return jax.device_put((rows @ T, rows @ b, rows.sum(axis=-1)))

    def gradient_by_unit(gradients: Any) -> np.ndarray:
        of_T, of_b, of_n = map(np.asarray, gradients)
        return sites.by_unit(T @ of_T + np.outer(b, of_b) + of_n)

    points, multiplicity = np.zeros((0, T.shape[1] + 1)), np.zeros(0)
    if model.log_normaliser is None:
        points, inverse = fold(np.column_stack(statistics(model, all_points(model))))
        multiplicity = np.log(np.bincount(inverse))
    made = SummedLikelihood(model, *jax.device_put((points[:, :-1], points[:, -1] + multiplicity)))
    return Prepared(made, term_weights, gradient_by_unit=gradient_by_unit)


@terms
class SummedLikelihood(AbstractTerms):
    """Distinct statistics of all points with their log multiplicities; none where the model knows its constant.

    Weights are the sums of T, of b and of 1 over rows.
    """

    model: Exponential
    T: Float[Array, "s k"]
    b: Float[Array, " s"]

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        T, b, n = weights
        eta, known = self.model.coefficients(theta), self.model.log_normaliser
        if known is not None:
            constant = known(self.model.space.unflatten(theta))
        else:
            constant = jax.nn.logsumexp(self.T @ eta + self.b)
        return loss.term(jnp.dot(T, eta) + b - n * constant, None)


def _classes(model: Exponential, sites: Sites) -> tuple[np.ndarray | None, Sites]:
    """Where there are very many rows: how many there are of each class of interchangeable ones, and one of each."""
    if len(sites.rows) <= LARGE or sites.units.kind != ROWS or sites.data.repeats is not None:
        return None, sites
    first, classes = _interchangeable(model, sites)
    return np.bincount(classes, weights=sites.data.counts), sites.at(first)


# -- statistics and their differences ----------------------------------------------------------


@partial(jax.jit, static_argnums=0)
def _statistics(model: Exponential, rows: Array) -> tuple[Array, Array]:
    return jax.vmap(lambda x: (jnp.asarray(model.T(x)), model.base(x)))(rows)


def statistics(model: Exponential, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """T and b of every row."""
    T, b = _statistics(model, pad(rows.astype(float), padded_size(len(rows))))
    return np.asarray(T)[: len(rows)], np.asarray(b)[: len(rows)]


def _differences(model: Exponential, rows: np.ndarray, moved: np.ndarray, j: int) -> np.ndarray:
    """Columns T(x with x_j moved) - T(x), then the same of b."""
    there = rows.astype(float)
    there[:, j] = moved
    (T0, b0), (T1, b1) = statistics(model, rows), statistics(model, there)
    return np.column_stack([T1 - T0, b1 - b0])


def all_differences(model: Exponential, rows: np.ndarray, moved: np.ndarray, j: np.ndarray) -> np.ndarray:
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


def neighbour_differences(model: Exponential, sites: Sites) -> tuple[np.ndarray, np.ndarray]:
    """Differences to the decrement and to the increment, one line for each row and move."""
    minus = all_differences(model, sites.rows, sites.down, sites.j)
    same = np.array_equal(sites.down, sites.up)
    return minus, minus if same else all_differences(model, sites.rows, sites.up, sites.j)


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


def _interchangeable(model: Exponential, sites: Sites) -> tuple[np.ndarray, np.ndarray]:
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
