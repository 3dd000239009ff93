"""Independent draws without error: by listing a finite domain, or by inversion on a half-line."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from ...errors import ModelError
from ..domain import beyond, until_negligible
from .base import Simulable

MAX_SIMULATED_POINTS = 2**16  # whose chances at some thousand parameters fit into memory


@partial(jax.jit, static_argnums=0)
def _log_masses(model: Simulable, theta: Array, points: Array) -> Float[Array, " s"]:
    named = model.space.unflatten(theta)
    return jax.vmap(lambda x: model.log_mass_at(named, x))(points)


def _each_log_masses(model: Simulable, thetas: np.ndarray, points: np.ndarray) -> Float[np.ndarray, "c s"]:
    """Log masses at each of the parameters: one at a time, so that their number compiles nothing anew."""
    at = jax.device_put(points.astype(float))
    return np.stack([np.asarray(_log_masses(model, theta, at)) for theta in thetas])


def probabilities(model: Simulable, theta: Any) -> tuple[Int[np.ndarray, "s d"], Float[np.ndarray, " s"]]:
    """Every point of a finite domain with its probability."""
    points, chance = listed(model, np.asarray(model.space.flatten(theta))[None])
    return points, chance[0]


def by_enumeration(
    model: Simulable, thetas: Float[np.ndarray, "c p"], per: int, rng: np.random.Generator
) -> Int[np.ndarray, "c per d"]:
    """Draws from the listed probabilities of a finite domain."""
    if model.domain.size > MAX_SIMULATED_POINTS:
        raise ModelError(
            f"{model.domain!r} has {model.domain.size:.3g} points; at most {MAX_SIMULATED_POINTS} can be listed"
        )
    points, chance = listed(model, thetas)
    return points[_inverted(chance, per, rng)]


def by_inversion(
    model: Simulable, thetas: Float[np.ndarray, "c p"], per: int, rng: np.random.Generator
) -> Int[np.ndarray, "c per 1"]:
    """Draws of one count from its cumulated mass; see `listed`."""
    points, chance = listed(model, thetas)
    return points[_inverted(chance, per, rng)]


def listed(
    model: Simulable, thetas: Float[np.ndarray, "c p"], most: int = 2**20
) -> tuple[Int[np.ndarray, "s d"], Float[np.ndarray, "c s"]]:
    """Points of a finite domain, or of one count until a negligible share of the mass lies beyond; and their chances.

    An error where more than ``most`` points would be needed.
    """
    domain = model.domain
    if domain.is_finite:
        points = domain.points()
        return points, _normalised(_each_log_masses(model, thetas, points))
    if not domain.is_one_count:
        raise ModelError(f"inversion needs one coordinate on a half-line, not {domain!r}")

    def attempt(number: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        points = domain.coordinate(0).listed(number)[:, None]
        chance = _normalised(_each_log_masses(model, thetas, points))
        return (points, chance), beyond(chance[:, -1], chance[:, -2])

    heavy = "the mass function's tail is too heavy (or it has no finite sum): no data can be drawn"
    return until_negligible(attempt, 256, most, heavy)


def _normalised(log: np.ndarray) -> np.ndarray:
    if not np.isfinite(log.max(axis=1)).all():
        raise ModelError("the mass function is not finite at these parameters")
    mass = np.exp(log - log.max(axis=1, keepdims=True))
    return mass / mass.sum(axis=1, keepdims=True)


def _inverted(chance: np.ndarray, per: int, rng: np.random.Generator) -> np.ndarray:
    cumulated = np.cumsum(chance, axis=1)
    u = rng.random((len(chance), per)) * cumulated[:, -1:]
    found = np.stack([np.searchsorted(c, v, side="right") for c, v in zip(cumulated, u, strict=True)])
    return np.minimum(found, chance.shape[1] - 1)
