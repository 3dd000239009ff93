"""The kernel Stein discrepancy between a model and data, for goodness of fit.

The Stein operator of the paper's appendix, S h(x) = sum_j h_j(x^{j+}) - r_j^-(x) h_j(x), applied to both arguments of
a kernel k(x, x') = exp(-(number of differing coordinates) / d).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .data import Dataset
from .models.base import AbstractModel


@partial(jax.jit, static_argnums=0)
def _ratios(model: AbstractModel, theta: Array, rows: Array, down: Array, exists: Array) -> Float[Array, "u d"]:
    named = model.space.unflatten(theta)

    def of_row(x: Array, down: Array) -> Array:
        here = model.log_mass_at(named, x)
        return jax.vmap(lambda j, v: model.log_mass_at(named, x.at[j].set(v)) - here)(jnp.arange(x.shape[0]), down)

    return jnp.where(exists, jnp.exp(jax.vmap(of_row)(rows, down)), 0.0)


def stein_matrix(model: AbstractModel, theta: Any, data: Dataset) -> Float[np.ndarray, "u u"]:
    """The Stein kernel between all distinct rows; its mean under the data is the squared discrepancy."""
    rows, d = data.rows, data.d
    down, exists = model.domain.decrement(rows)
    up, _ = model.domain.increment(rows)
    flat = model.space.flatten(theta)
    parts = (jnp.asarray(rows, float), jnp.asarray(down, float), jnp.asarray(exists))
    ratio = np.asarray(_ratios(model, flat, *parts))
    differ = np.zeros((len(rows), len(rows)))
    for j in range(d):
        differ += rows[:, j, None] != rows[None, :, j]
    total = np.zeros_like(differ)
    for j in range(d):
        x, y = rows[:, j], up[:, j]
        rest = differ - (x[:, None] != x[None, :])
        here = np.exp(-(rest + (x[:, None] != x[None, :])) / d)
        both = np.exp(-(rest + (y[:, None] != y[None, :])) / d)
        one = np.exp(-(rest + (x[:, None] != y[None, :])) / d)  # row at x, column at x^+
        r = ratio[:, j]
        total += both - r[:, None] * one - (r[:, None] * one).T + r[:, None] * here * r[None, :]
    return total


def goodness_of_fit(
    model: AbstractModel, theta: Any, data: Dataset, rng: np.random.Generator, bootstrap: int = 1000, most: int = 2000
) -> tuple[float, float]:
    """The squared kernel Stein discrepancy and its p-value by a wild bootstrap.

    Random signs of the observations imitate the discrepancy's distribution if the model is right. At most ``most``
    observations are used, at random. With estimated parameters the p-value is conservative.
    """
    counts = data.counts.astype(int)
    if counts.sum() > most:
        counts = rng.multivariate_hypergeometric(counts, most, method="marginals")
    kept = counts > 0
    part = Dataset(data.rows[kept], counts[kept].astype(float), data.columns, data.first[kept])
    matrix, n = stein_matrix(model, theta, part), counts.sum()
    observed = part.counts @ matrix @ part.counts / n**2
    signs = 2.0 * rng.binomial(counts[kept], 0.5, size=(bootstrap, kept.sum())) - counts[kept]
    wild = np.einsum("bu,uv,bv->b", signs, matrix, signs, optimize=True) / n**2
    return float(observed), float((1 + np.sum(wild >= observed)) / (1 + bootstrap))
