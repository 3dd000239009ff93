"""The kernel Stein discrepancy between a model and data, for goodness of fit.

The Stein operator of the paper's appendix, S h(x) = sum_j h_j(x^{j+}) - r_j^-(x) h_j(x), applied to both arguments of
a kernel.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .data import Dataset
from .kernels import HAMMING, neighbour_kernels
from .models.base import AbstractModel


@partial(jax.jit, static_argnums=0)
def _ratios(model: AbstractModel, theta: Array, rows: Array, down: Array, exists: Array) -> Float[Array, "u d"]:
    named = model.space.unflatten(theta)

    def of_row(x: Array, down: Array) -> Array:
        here = model.log_mass_at(named, x)
        return jax.vmap(lambda j, v: model.log_mass_at(named, x.at[j].set(v)) - here)(jnp.arange(x.shape[0]), down)

    return jnp.where(exists, jnp.exp(jax.vmap(of_row)(rows, down)), 0.0)


def stein_matrix(model: AbstractModel, theta: Any, data: Dataset, kernel: Any = HAMMING) -> Float[np.ndarray, "u u"]:
    """The Stein kernel between all distinct rows; its mean under the data is the squared discrepancy."""
    rows = data.rows
    down, exists = model.domain.decrement(rows)
    parts = (jnp.asarray(rows, float), jnp.asarray(down, float), jnp.asarray(exists))
    ratio = np.asarray(_ratios(model, model.space.flatten(theta), *parts))
    here = kernel.between(rows, rows)
    total = np.zeros_like(here)
    for r, (one, both) in zip(ratio.T, neighbour_kernels(kernel, model.domain, rows), strict=True):
        crossed = r[:, None] * one
        total += both - crossed - crossed.T + r[:, None] * here * r[None, :]
    return total


def goodness_of_fit(
    model: AbstractModel, theta: Any, data: Dataset, rng: np.random.Generator, bootstrap: int = 1000, most: int = 2000
) -> tuple[float, float]:
    """The squared kernel Stein discrepancy and its p-value by a wild bootstrap.

    Random signs of the observations imitate the discrepancy's distribution if the model is right. At most ``most``
    observations are used, at random. With estimated parameters the p-value is conservative.
    """
    counts = data.observations.astype(int)
    if data.repeats is not None:  # observations drawn by their weights have equal ones
        counts = rng.multinomial(min(data.n, most), data.counts / data.counts.sum())
    elif counts.sum() > most:
        counts = rng.multivariate_hypergeometric(counts, most, method="marginals")
    kept = counts > 0
    part = Dataset(data.rows[kept], counts[kept].astype(float), data.columns, data.first[kept])
    matrix, n = stein_matrix(model, theta, part), counts.sum()
    observed = part.counts @ matrix @ part.counts / n**2
    signs = 2.0 * rng.binomial(counts[kept], 0.5, size=(bootstrap, kept.sum())) - counts[kept]
    wild = np.einsum("bu,uv,bv->b", signs, matrix, signs, optimize=True) / n**2
    return float(observed), float((1 + np.sum(wild >= observed)) / (1 + bootstrap))
