"""One step of many futures at once: each has parameters and covariates of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..parameters import Rows, own_of
from ..terms import filled
from .base import Simulable
from .given import Chunk, inverted, standard


@dataclass(frozen=True)
class Step:
    """Values of all futures at one time, and the distribution that they come from.

    Attributes
    ----------
    values : (s,) integers
    means : (s,) floats
        Expected values, each given its own past.
    shares : (k,) floats
        Of the values 0, 1, ...: their probabilities, averaged over futures.
    """

    values: Int[np.ndarray, " s"]
    means: Float[np.ndarray, " s"]
    shares: Float[np.ndarray, " k"]


@partial(jax.jit, static_argnums=0)
def _each(model: Simulable, thetas: Array, given: Array) -> tuple[Rows, Array | None]:
    """What the family needs of every future, and means where it has a formula."""

    def of(theta: Array, row: Array) -> tuple[Rows, Array | None]:
        found = model.at_rows(model.space.unflatten(theta), row[None])
        own, mean = own_of(found, model.ranks), model.means_at(found, 1)
        rows = {name: part[0] if name in own else part for name, part in found.items()}
        return rows, None if mean is None else mean[0]

    return jax.vmap(of)(thetas, given)


def expected(model: Simulable, thetas: Float[np.ndarray, "s p"], given: Float[np.ndarray, "s q"]) -> Chunk:
    """Futures as rows whose parameters are known; the means of these say how large values will be."""
    size = standard(len(given))
    rows, means = _each(model, filled(thetas, size), filled(given, size))
    return Chunk(model, ({},), (rows,), None if means is None else np.asarray(means)[None, : len(given)])


def step(chunk: Chunk, there: Bool[np.ndarray, " s"], rng: np.random.Generator) -> Step:
    """Draw the values of all futures that are still there; the others have no mean."""
    number = len(there)
    values, means = np.zeros(number, np.int64), np.full(number, np.nan)
    shares, u = np.zeros(1), rng.random(number)
    for alike in chunk.similar(number):
        inside = alike[there[alike]]
        if not len(inside):
            continue
        points = chunk.points(inside)
        masses, mean = chunk.masses(inside, points)
        values[inside] = inverted(masses, points, np.arange(len(inside)), u[inside])[:, 0]
        means[inside] = mean[0] if chunk.means is None else chunk.means[0, inside]
        shares = np.pad(shares, (0, max(0, int(points.max()) + 1 - len(shares))))
        shares[points[:, 0]] += masses.sum(axis=0)
    return Step(values, means, shares / number)
