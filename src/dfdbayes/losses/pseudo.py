"""The pseudo-likelihood: minus the sum over rows and coordinates of log p(x_j | the rest).

A full conditional is a sum over one coordinate's states of ratios to the point at hand. Two states need the one ratio
that the other losses use; finite sets need one for each state; counts need the constant of a
Conway-Maxwell-Poisson distribution, or the model's own constant if there is one coordinate only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float

from ..data.dataset import Dataset
from ..errors import ModelError
from ..models.base import AbstractModel, ExponentialFamily
from ..models.network import Pairwise
from ..models.normaliser import log_normaliser
from ..models.parameters import Theta
from ..models.tables import (
    PairwiseRows,
    Prepared,
    all_differences,
    fold_owned,
    pad,
    padded_size,
    refuse_blocks,
    tabulate,
)
from .likelihood import Likelihood, Points, Sums
from .local import LocalLoss


class Conditionals(NamedTuple):
    """Distinct differences of (T, b) from a point to each state of a coordinate."""

    T: Float[Array, "m s k"]
    b: Float[Array, "m s"]


class States(NamedTuple):
    """The data's rows, and the candidate values of each coordinate."""

    rows: Float[Array, "u d"]
    values: Float[Array, "d s"]
    allowed: Bool[Array, "d s"]


def _nothing(v: Array) -> Array:
    return jnp.zeros_like(v)


def _softplus(u: Array) -> Array:
    """log(1 + exp(u)); twice as fast as `jax.nn.softplus`, which also looks after infinities."""
    return jnp.maximum(u, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(u)))


_TWO_STATES = LocalLoss("pseudo", "pseudo-likelihood", _softplus, _nothing, bounded=True)


@dataclass(frozen=True)
class PseudoLikelihood:
    """Besag's pseudo-likelihood for any domain that can be listed, and for counts."""

    name = "pseudo"
    title = "pseudo-likelihood"
    bounded = True
    calibration = "score-matching-invariant"

    def prepare(self, model: AbstractModel, data: Dataset, blocks: np.ndarray | None = None) -> Prepared:
        coordinates = {coordinate for coordinate, _ in model.domain.runs}
        if all(coordinate.kind == "finite" and len(coordinate.levels) == 2 for coordinate in coordinates):
            return tabulate(model, data, blocks)
        if model.domain.d == 1 and (model.log_normaliser is not None or model.domain.is_finite):
            return Likelihood().prepare(model, data, blocks)
        if isinstance(model, Pairwise):
            return tabulate(model, data, blocks)
        if isinstance(model, ExponentialFamily) and len(coordinates) == 1 and model.domain.is_finite:
            return _conditionals(model, data, blocks)
        refuse_blocks(blocks)
        return _states(model, data)

    def value(self, model: AbstractModel, theta: Theta, arrays: Any, weights: Any) -> Float[Array, ""]:
        if isinstance(arrays, (Sums, Points)):
            return Likelihood().value(model, theta, arrays, weights)
        if isinstance(arrays, PairwiseRows) and isinstance(model, Pairwise) and model.counts:
            return _counts(model, theta, arrays, weights)
        if isinstance(arrays, Conditionals):
            assert isinstance(model, ExponentialFamily)
            log = arrays.T @ model.eta(model.space.unflatten(theta)) + arrays.b
            return jnp.dot(weights, jax.nn.logsumexp(log, axis=1))
        if isinstance(arrays, States):
            return _listed(model, theta, arrays, weights)
        return _TWO_STATES.value(model, theta, arrays, weights)

    def second_order(self, model: AbstractModel, theta: Theta, arrays: Any, weights: Any) -> Any:
        if isinstance(arrays, PairwiseRows) and isinstance(model, Pairwise) and not model.counts:
            return _TWO_STATES.second_order(model, theta, arrays, weights)
        return None


def _counts(model: Pairwise, theta: Theta, arrays: PairwiseRows, weights: Array) -> Float[Array, ""]:
    """Each count given the others is Conway-Maxwell-Poisson; for nu = 1 its constant is exp(rate)."""
    node, edge, curve = model.parts(model.space.unflatten(theta))
    local = node[:, None] + model.matrix(edge) @ arrays.rows
    if curve is None:
        constant, power = jnp.exp(local), jnp.ones((len(node), 1))
    else:
        constant, power = log_normaliser(local, jnp.broadcast_to(curve[:, None], local.shape)), curve[:, None]
    terms = constant - arrays.rows * local + power * gammaln(arrays.rows + 1.0)
    return jnp.dot(weights, jnp.sum(terms, axis=0))


def _conditionals(model: ExponentialFamily, data: Dataset, blocks: np.ndarray | None) -> Prepared:
    levels = model.domain.coordinate(0).levels
    parts = [all_differences(model, data.rows, np.full_like(data.rows, level)) for level in levels]
    width = parts[0].shape[1]
    table, incidence = fold_owned(np.concatenate(parts, axis=1), data.rows.shape, blocks)
    size = padded_size(len(table))
    full = pad(table, size).reshape(size, len(levels), width)
    arrays = Conditionals(jnp.asarray(full[..., :-1]), jnp.asarray(full[..., -1]))
    return Prepared(arrays, lambda weights: jnp.asarray(pad(np.asarray(weights @ incidence), size, axis=-1)))


def _states(model: AbstractModel, data: Dataset) -> Prepared:
    """Any other model: states are listed, counts up to four times the largest seen and 100 more."""
    columns = []
    for j in range(data.d):
        coordinate = model.domain.coordinate(j)
        if coordinate.kind == "finite":
            columns.append(np.asarray(coordinate.levels, float))
        elif coordinate.kind == "integers":
            raise ModelError("the pseudo-likelihood of a model on all integers is not available; use loss='dfd'")
        else:
            reach = 4 * np.abs(data.rows[:, j] - (coordinate.end or 0)).max() + 100
            step = 1 if coordinate.kind == "above" else -1
            columns.append((coordinate.end or 0) + step * np.arange(reach + 1.0))
    longest, size = max(map(len, columns)), padded_size(len(data.rows))
    values = np.array([np.pad(c, (0, longest - len(c)), mode="edge") for c in columns])
    allowed = np.array([np.arange(longest) < len(c) for c in columns])
    filled = np.concatenate([data.rows, np.repeat(data.rows[:1], size - len(data.rows), axis=0)])
    arrays = States(jnp.asarray(filled, float), jnp.asarray(values), jnp.asarray(allowed))
    return Prepared(arrays, lambda weights: jnp.asarray(pad(np.asarray(weights, float), size, axis=-1)))


def _listed(model: AbstractModel, theta: Theta, arrays: States, weights: Array) -> Float[Array, ""]:
    named = model.space.unflatten(theta)

    def of_row(x: Array) -> Array:
        here = model.log_mass_at(named, x)

        def of_coordinate(j: Array, values: Array, allowed: Array) -> Array:
            log = jax.vmap(lambda value: model.log_mass_at(named, x.at[j].set(value)))(values)
            return jax.nn.logsumexp(jnp.where(allowed, log - here, -jnp.inf))

        return jnp.sum(jax.vmap(of_coordinate)(jnp.arange(x.shape[0]), arrays.values, arrays.allowed))

    return jnp.dot(weights, jax.lax.map(of_row, arrays.rows, batch_size=256))
