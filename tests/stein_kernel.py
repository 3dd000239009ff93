"""The kernel Stein discrepancy between a model and data.

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

from dfdbayes.core.dataset import Dataset
from dfdbayes.core.losses.kernels import HAMMING, neighbour_kernels
from dfdbayes.core.model import AbstractModel


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
    down, exists = model.domain.wrapped.decrement(rows)
    parts = (jnp.asarray(rows, float), jnp.asarray(down, float), jnp.asarray(exists))
    ratio = np.asarray(_ratios(model, model.space.flatten(theta), *parts))
    here = kernel.between(rows, rows)
    total = np.zeros_like(here)
    for r, (one, both) in zip(
        ratio.T, neighbour_kernels(kernel, rows, model.domain.wrapped.increment(rows)[0]), strict=True
    ):
        crossed = r[:, None] * one
        total += both - crossed - crossed.T + r[:, None] * here * r[None, :]
    return total
