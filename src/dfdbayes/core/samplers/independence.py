"""Proposals from a nearly normal approximation, each accepted or rejected: an independence chain.

A calibrated posterior is nearly normal, and then draws from a normal approximation need little correction: one value
of the density for each draw, and no gradient. Parameters that may lie on an edge are proposed as they are; what falls
outside is refused. The approximation is the one at the mode first. Where that serves badly it is moved to where the
slope of the density vanishes on average, and then has the mean and the covariance that importance weights give, until
these are even or four times. How heavy the tail of the last weights is (Pareto k; Vehtari et al., 2024) and how many
draws they are worth say whether that is enough; `Auto` turns to gradients where it is not.
"""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Array, Float

from ..mixing import smoothed
from .base import SAMPLERS, AbstractSampler, Centre, Draws, LogDensity, Task, at_once

BLOCK = 128  # densities evaluated in one compiled call, by one thread
HEAVY_TAIL_K = 0.5  # Pareto k from which importance weights have no finite variance, and are not to be trusted
GOOD_SHARE = 0.5  # share of pilot draws that importance weights are worth from which an approximation stays as it is


@partial(jax.jit, static_argnums=(0, 1))
def _values(log_density: LogDensity, together: int, z: Array, inputs: Any) -> Array:
    return log_density.many(z, inputs, together)


@SAMPLERS.register("independence")
@dataclass(frozen=True)
class Independence(AbstractSampler):
    """An independence Metropolis chain whose proposals come from the normal approximation at the mode."""

    draws: int = 1000
    warmup: int = 0
    chains: int = 4
    name: ClassVar[str] = "independence"
    title: ClassVar[str] = "proposals from the normal approximation, accepted or rejected (independence Metropolis)"
    phrase: ClassVar[str] = "an independence Metropolis chain with the normal approximation at the mode as proposal"
    gradients: ClassVar[float] = 0.5

    def run(self, task: Task) -> Draws:
        return self.drawn(task, self.approximation(task)[0])

    def approximation(self, task: Task) -> tuple[Centre, float]:
        """The approximation in straightened coordinates, and which share of its draws importance weights are worth."""
        # where parameters are more, so few proposals tell nothing of their covariance
        rng, few = np.random.default_rng([task.seed, 2]), len(task.around.mode) <= 200
        kept = learned = trial = _straight(task.log_density, task.around)
        best = 0.0
        # refined from 1024 proposals, four times at most
        for step in range(5 if few else 2):
            proposed, _, weights = _proposed(task.log_density, task.inputs, trial, (1, 1024 if few else 256), rng)
            after, share = _refined(proposed[0], weights[0], trial)
            if share > best:
                kept, best, learned = trial, share, after
            if best > GOOD_SHARE or (step > 0 and learned is kept):
                break
            trial = _straight(task.log_density, _balanced(task, rng)) if step == 0 else learned
        return kept, best

    def drawn(self, task: Task, around: Centre) -> Draws:
        """A chain of proposals from an approximation."""
        rng, log_density, inputs = np.random.default_rng([task.seed, 4]), task.log_density, task.inputs
        size = self.draws + 1  # the first of each chain is where it starts
        proposed, values, weights = _proposed(log_density, inputs, around, (self.chains, size), rng)
        chosen, rates = _accepted(weights, np.log(rng.random((self.chains, size))))
        task.advance(self.draws)
        stats = {
            "lp": np.take_along_axis(values, chosen, axis=1),
            "acceptance_rate": rates,
            "pareto_k": np.full(chosen.shape, _tail(weights)),
        }
        return Draws(np.take_along_axis(log_density.bend(proposed), chosen[..., None], axis=1), stats, self.name)

    @property
    def transitions(self) -> int:
        return self.draws


@partial(jax.jit, static_argnums=0)
def _slopes(log_density: LogDensity, z: Array, inputs: Any) -> Array:
    return jax.lax.map(lambda point: jax.grad(log_density)(point, inputs), z)


def _balanced(task: Task, rng: np.random.Generator) -> Centre:
    """The normal approximation moved to where the slope of the log density is zero on average over it.

    There it is closest to the posterior (Opper and Archambeau, 2009): a mode of skewed coordinates is not their mean.
    Points in pairs, one on each side of the mode, cancel what is normal, so that few of them are enough.
    """
    around = task.around
    # eight pairs of points whose slopes place the approximation
    away = rng.standard_normal((8, len(around.mode))) @ around.factor.T
    slopes = np.asarray(
        _slopes(task.log_density, np.concatenate([around.mode + away, around.mode - away]), task.inputs)
    )
    step = around.factor @ (around.factor.T @ slopes.mean(axis=0))
    return Centre(around.mode + step, around.factor) if np.isfinite(step).all() else around


def _straight(log_density: LogDensity, around: Centre) -> Centre:
    """A normal approximation in straightened coordinates."""
    mode, _ = log_density.straighten(around.mode)
    small = 1e-6 * np.diag(around.factor)
    slope = (log_density.straighten(around.mode + small)[0] - mode) / small
    return Centre(mode, slope[:, None] * around.factor)


def _proposed(
    log_density: LogDensity, inputs: Any, around: Centre, shape: tuple[int, int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Straightened points of a t distribution about the centre, the log density, and the logs of importance weights."""
    p = len(around.mode)
    # degrees of freedom, more with the dimension: proposals must not have the lighter tails
    freedom = 3.0 + p + p**2 / 20.0
    noise = rng.standard_normal((*shape, p)) * np.sqrt(freedom / rng.chisquare(freedom, (*shape, 1)))
    points = around.mode + noise @ around.factor.T
    flat = log_density.bend(points.reshape(-1, points.shape[-1]))
    inside = np.isfinite(flat).all(axis=1)
    flat[~inside] = log_density.bend(around.mode)
    filled = np.resize(flat, (-(-len(flat) // BLOCK) * BLOCK, flat.shape[1]))
    together = at_once(inputs.terms)
    blocks = np.split(filled, len(filled) // BLOCK)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        parts = list(threads.map(lambda block: np.asarray(_values(log_density, together, block, inputs)), blocks))
    values = np.where(inside, np.concatenate(parts)[: len(flat)], -np.inf).reshape(shape)
    stretch = log_density.straighten(flat)[1].reshape(shape)
    return points, values, values - stretch + 0.5 * (freedom + p) * np.log1p(np.sum(noise**2, axis=2) / freedom)


def _refined(points: np.ndarray, weights: np.ndarray, around: Centre) -> tuple[Centre, float]:
    """The approximation with the mean and covariance of weighted points, as far as these can be trusted.

    With it the share of the points that their weights are worth; the approximation stays as it is where that is enough,
    and where nothing can be learned from the weights.
    """
    smooth = _smoothed(weights)[0]
    if smooth is None:
        return around, 0.0
    share = np.exp(smooth - smooth.max())
    share /= share.sum()
    worth = 1.0 / np.sum(share**2)
    if worth > GOOD_SHARE * len(points):
        return around, worth / len(points)
    trust = worth / (worth + 5.0 * points.shape[1])
    mean = share @ points
    away = points - mean
    covariance = (away * share[:, None]).T @ away * worth / max(worth - 1.0, 1.0)
    try:
        factor = np.linalg.cholesky(trust * covariance + (1 - trust) * around.factor @ around.factor.T)
    except np.linalg.LinAlgError:
        return around, worth / len(points)
    return Centre((1 - trust) * around.mode + trust * mean, factor), worth / len(points)


def _accepted(weights: Float[np.ndarray, "c s"], heights: Float[np.ndarray, "c s"]) -> tuple[np.ndarray, np.ndarray]:
    """Which proposal each chain holds after every step, and each step's acceptance probability."""
    chains, size = weights.shape
    each = np.arange(chains)
    # the best of ten proposals begins a chain
    at = np.argmax(weights[:, :10], axis=1)
    held, rates = np.empty((chains, size - 1), int), np.empty((chains, size - 1))
    with np.errstate(invalid="ignore"):
        for step in range(1, size):
            change = weights[:, step] - weights[each, at]
            change = np.where(np.isnan(change), 0.0, change)  # from one impossible point to another
            at = np.where(heights[:, step] < change, step, at)
            held[:, step - 1], rates[:, step - 1] = at, np.exp(np.minimum(change, 0.0))
    return held, rates


def _tail(weights: np.ndarray) -> float:
    """Pareto k of importance weights from their logarithms; infinite where many of them are zero."""
    return _smoothed(weights.reshape(-1))[1]


def _smoothed(weights: np.ndarray) -> tuple[np.ndarray | None, float]:
    """Pareto-smoothed logarithms of importance weights, minus infinity where they are zero, and Pareto k."""
    finite = np.isfinite(weights)
    # one in five must lie inside the support
    if finite.sum() < max(20, 0.2 * len(weights)):
        return None, float("inf")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found, k = smoothed(weights[finite])
    smooth = np.full(len(weights), -np.inf)
    smooth[finite] = found
    return smooth, float(k) if np.isfinite(k) else float("inf")
