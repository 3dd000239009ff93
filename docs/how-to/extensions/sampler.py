"""Elliptical slice sampling about the normal approximation (Murray, Adams and MacKay, 2010)."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dfdbayes.core.samplers import SAMPLERS, AbstractSampler, Draws
from dfdbayes.core.samplers.base import scattered

BLOCK = 250  # transitions in one compiled call: what a checkpoint keeps, and what progress is told of


@partial(jax.jit, static_argnums=0)
def block(log_density, key, u, mode, factor, inputs):
    """So many transitions of all chains, in coordinates u in which the approximation is standard normal."""

    def rest(u):
        return log_density(mode + factor @ u, inputs) + 0.5 * u @ u  # the log of what is not normal

    def transition(u, key):
        of_level, of_ellipse, of_angle, of_shrinking = jax.random.split(key, 4)
        level = rest(u) + jnp.log(jax.random.uniform(of_level))
        other = jax.random.normal(of_ellipse, u.shape)
        angle = jax.random.uniform(of_angle, maxval=2.0 * jnp.pi)

        def point(angle):
            return u * jnp.cos(angle) + other * jnp.sin(angle)

        def outside(state):
            return ~(rest(point(state[1])) > level)

        def shrink(state):
            key, angle, low, high = state
            key, now = jax.random.split(key)
            low, high = jnp.where(angle < 0.0, angle, low), jnp.where(angle < 0.0, high, angle)
            return key, jax.random.uniform(now, minval=low, maxval=high), low, high

        begin = (of_shrinking, angle, angle - 2.0 * jnp.pi, angle)
        u = point(jax.lax.while_loop(outside, shrink, begin)[1])
        return u, {"z": mode + factor @ u, "lp": rest(u) - 0.5 * u @ u}

    def step(u, key):
        return jax.vmap(transition)(u, jax.random.split(key, len(u)))

    return jax.lax.scan(step, u, jax.random.split(key, BLOCK))


@SAMPLERS.register("elliptical-slice")
@dataclass(frozen=True)
class EllipticalSlice(AbstractSampler):
    """A step along a random ellipse through the state and the normal approximation: nothing to tune."""

    draws: int = 1000
    warmup: int = 250
    chains: int = 4
    name: ClassVar[str] = "elliptical-slice"
    title: ClassVar[str] = "elliptical slice sampling"
    phrase: ClassVar[str] = "elliptical slice sampling (Murray et al., 2010)"
    references: ClassVar[tuple[str, ...]] = (
        "Murray, I., Adams, R. P. and MacKay, D. J. C. (2010). Elliptical slice sampling. Proceedings of the 13th "
        "International Conference on Artificial Intelligence and Statistics, 541–548.",
    )
    gradients: ClassVar[float] = 1.0  # evaluations of a density cost less than gradients; it takes about three

    def run(self, task):
        rng, around = np.random.default_rng([task.seed, 5]), task.around
        z = scattered(task.log_density, task.inputs, around, self.chains, rng)
        u = np.linalg.solve(around.factor, (z - around.mode).T).T
        key = jax.random.key(int(rng.integers(2**31)))
        seen = []
        for number in range(self.transitions // BLOCK):

            def of_block(number=number, u=u):
                now = jax.random.fold_in(key, number)
                last, found = block(task.log_density, now, u, around.mode, around.factor, task.inputs)
                return {name: np.asarray(part) for name, part in (found | {"last": last}).items()}

            found = dict(task.checkpoint.part(f"ellipses-{number}", of_block))  # kept, so that --resume goes on from it
            u = found.pop("last")
            seen.append(found)
            task.advance(BLOCK)
        kept = slice(self.warmup, self.warmup + self.draws)
        stats = {name: np.concatenate([part[name] for part in seen])[kept].swapaxes(0, 1) for name in seen[0]}
        return Draws(stats.pop("z"), stats, self.name, self.warmup)

    @property
    def transitions(self):
        return BLOCK * -(-(self.warmup + self.draws) // BLOCK)
