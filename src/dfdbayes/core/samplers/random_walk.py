"""Random-walk Metropolis (BlackJAX), the paper's sampler: isotropic Gaussian steps in z."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .base import SAMPLERS, AbstractSampler, Draws, LogDensity, Task, scattered

BLOCK = 500


@partial(jax.jit, static_argnums=(0, 1))
def _block(
    log_density: LogDensity, steps: int, key: Array, z: Array, scale: Array, inputs: Any
) -> tuple[Array, dict[str, Array]]:
    import blackjax  # not before it is needed: it takes a while

    kernel = blackjax.additive_step_random_walk.build_kernel()

    def density(z: Array) -> Array:
        return log_density(z, inputs)

    def propose(key: Array, z: Array) -> Array:
        return scale * jax.random.normal(key, z.shape)

    def transition(states: Any, key: Array) -> tuple[Any, dict[str, Array]]:
        keys = jax.random.split(key, z.shape[0])
        states, info = jax.vmap(lambda k, s: kernel(k, s, density, propose))(keys, states)
        seen = {"z": states.position, "lp": states.logdensity, "acceptance_rate": info.acceptance_rate}
        return states, seen

    states = jax.vmap(lambda z: blackjax.additive_step_random_walk.init(z, density))(z)
    states, seen = jax.lax.scan(transition, states, jax.random.split(key, steps))
    return states.position, seen


@SAMPLERS.register("random-walk")
@dataclass(frozen=True)
class RandomWalk(AbstractSampler):
    """Random-walk Metropolis with the paper's settings as defaults.

    Attributes
    ----------
    step : float
        Standard deviation of a step in unconstrained coordinates (log, for positive parameters).
    thin : int
        Every how many transitions one is kept.
    """

    step: float = 0.1
    thin: int = 10
    draws: int = 500
    warmup: int = 5000
    chains: int = 10
    name: ClassVar[str] = "random-walk"
    title: ClassVar[str] = "random-walk Metropolis"
    phrase: ClassVar[str] = "random-walk Metropolis sampling"
    gradients: ClassVar[float] = 0.5

    def run(self, task: Task) -> Draws:
        rng, log_density, inputs = np.random.default_rng([task.seed, 2]), task.log_density, task.inputs
        z = jnp.asarray(scattered(log_density, inputs, task.around, self.chains, rng))
        key = jax.random.key(int(rng.integers(2**31)))
        total = self.warmup + self.thin * self.draws
        kept: list[dict[str, np.ndarray]] = []
        for block in range(-(-total // BLOCK)):

            def of_all(block: int = block, z: Any = z) -> dict[str, np.ndarray]:
                now = jax.random.fold_in(key, block)
                last, seen = _block(log_density, BLOCK, now, z, jnp.asarray(self.step), inputs)
                return {name: np.asarray(value) for name, value in (seen | {"last": last}).items()}

            found = dict(task.checkpoint.part(f"block-{block}", of_all))
            z = jnp.asarray(found.pop("last"))
            kept.append(found)
            task.advance(BLOCK)
        chosen = self.warmup + self.thin * np.arange(1, self.draws + 1) - 1
        stats = {name: np.moveaxis(np.concatenate([part[name] for part in kept])[chosen], 0, 1) for name in kept[0]}
        return Draws(stats.pop("z"), stats, self.name, self.warmup)

    @property
    def transitions(self) -> int:
        return BLOCK * -(-(self.warmup + self.thin * self.draws) // BLOCK)
