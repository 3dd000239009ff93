"""Standard Bayes: the negative log-likelihood, where the constant can be had.

The model's own formula for its constant serves where there is one; otherwise a finite domain is listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..data.dataset import Dataset
from ..errors import ModelError
from ..models.base import AbstractModel, ExponentialFamily
from ..models.parameters import Theta
from ..models.tables import Prepared, fold, pad, padded_size, refuse_blocks, statistics

MOST_POINTS = 2**20


class Sums(NamedTuple):
    """For exponential families: distinct statistics of all points with their log multiplicities (or nothing)."""

    T: Float[Array, "s k"]
    b: Float[Array, " s"]


class Points(NamedTuple):
    """For other models: the data's distinct rows, and all points of the domain (or none)."""

    rows: Float[Array, "u d"]
    points: Float[Array, "s d"]


@dataclass(frozen=True)
class Likelihood:
    """The negative log-likelihood. Its posterior is the ordinary one, so beta is 1 unless asked otherwise."""

    name = "likelihood"
    title = "likelihood"
    bounded = True
    calibration = "none"

    def prepare(self, model: AbstractModel, data: Dataset, blocks: np.ndarray | None = None) -> Prepared:
        refuse_blocks(blocks)
        points = None if model.log_normaliser is not None else _all_points(model)
        if isinstance(model, ExponentialFamily):
            T, b = statistics(model, data.rows)

            def weigh(weights: np.ndarray) -> tuple[Array, ...]:
                return jnp.asarray(weights @ T), jnp.asarray(weights @ b), jnp.asarray(weights.sum(axis=-1))

            if points is None:
                return Prepared(Sums(jnp.zeros((0, T.shape[1])), jnp.zeros(0)), weigh)
            everywhere = np.column_stack(statistics(model, points))
            distinct, inverse, _ = fold(everywhere)
            multiplicity = np.log(np.bincount(inverse))
            return Prepared(Sums(jnp.asarray(distinct[:, :-1]), jnp.asarray(distinct[:, -1] + multiplicity)), weigh)
        size = padded_size(len(data.rows))
        filled = np.concatenate([data.rows, np.repeat(data.rows[:1], size - len(data.rows), axis=0)])
        every = np.empty((0, data.d)) if points is None else points
        arrays = Points(jnp.asarray(filled, float), jnp.asarray(every, float))
        return Prepared(arrays, lambda weights: jnp.asarray(pad(np.asarray(weights, float), size, axis=-1)))

    def value(self, model: AbstractModel, theta: Theta, arrays: Any, weights: Any) -> Float[Array, ""]:
        named = model.space.unflatten(theta)
        known = model.log_normaliser
        if isinstance(arrays, Sums):
            assert isinstance(model, ExponentialFamily)
            T, b, n = weights
            eta = model.eta(named)
            log_constant = known(named) if known is not None else jax.nn.logsumexp(arrays.T @ eta + arrays.b)
            return n * log_constant - jnp.dot(T, eta) - b
        at = jax.vmap(lambda x: model.log_mass_at(named, x))
        log_constant = known(named) if known is not None else jax.nn.logsumexp(at(arrays.points))
        return jnp.sum(weights) * log_constant - jnp.dot(weights, at(arrays.rows))

    def second_order(self, model: AbstractModel, theta: Theta, arrays: Any, weights: Any) -> None:
        return None


def _all_points(model: AbstractModel) -> np.ndarray:
    if model.domain.size > MOST_POINTS:
        raise ModelError(
            f"the likelihood of '{model.name}' needs a sum over {model.domain.size:.3g} points of {model.domain!r}; "
            f"at most {MOST_POINTS} can be listed. Use loss='dfd', 'ratio' or 'pseudo', which need no such sum."
        )
    return model.domain.points()
