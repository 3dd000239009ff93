"""Hamiltonian Monte Carlo about the normal approximation, whose part of the motion is known exactly.

In coordinates u whitened by the approximation the posterior is exp(-|u|^2 / 2 - phi(u)), phi being what is not normal.
The motion under the normal part is a rotation of (u, velocity), and a quarter of a turn makes an independent draw; the
slope of phi is felt in a few kicks on the way (split Hamiltonian Monte Carlo: Shahbaba, Lan, Johnson and Neal, 2014;
Beskos, Pinski, Sanz-Serna and Stuart, 2011). So hundreds or thousands of parameters take two or three gradients for a
draw where they are nearly normal together, though not nearly enough for proposals that are accepted or rejected whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..mixing import bulk_size
from .base import SAMPLERS, AbstractSampler, Draws, LogDensity, Task, at_once, cells, in_blocks, scattered

BLOCK = 25  # transitions in one compiled call
KICKS = (2, 4, 8, 16)  # in a quarter of a turn: the first number that is accepted often enough
HOPELESS_RATE = 0.5  # rate below which chains about the normal approximation are of no use


@partial(jax.jit, static_argnums=(0, 1))
def _block(
    log_density: LogDensity, together: int, key: Array, z: Array, kicks: Array, mode: Array, factor: Array, inputs: Any
) -> tuple[Array, dict[str, Array]]:
    def energy(u: Array) -> Array:
        return -log_density(mode + factor @ u, inputs) - 0.5 * jnp.dot(u, u)

    def slopes(u: Array) -> tuple[Array, Array]:
        """The energy that is not normal, and its slope, of every chain."""
        return jax.lax.map(jax.value_and_grad(energy), u, batch_size=together)

    def transition(state: Any, key: Array) -> tuple[Any, dict[str, Array]]:
        of_speed, of_angle, of_choice = jax.random.split(key, 3)
        velocity = jax.random.normal(of_speed, state[0].shape)
        # the angle varies: a quarter of a turn for most directions may be a half for one of them
        angle = 0.5 * jnp.pi * jax.random.uniform(of_angle, minval=0.8, maxval=1.2) / kicks
        cosine, sine = jnp.cos(angle), jnp.sin(angle)

        def kick(_: Array, moving: tuple[Array, ...]) -> tuple[Array, ...]:
            u, velocity, _, slope = moving
            velocity = velocity - 0.5 * angle * slope
            u, velocity = cosine * u + sine * velocity, cosine * velocity - sine * u
            value, slope = slopes(u)
            return u, velocity - 0.5 * angle * slope, value, slope

        u, value, slope = state
        there = jax.lax.fori_loop(0, kicks, kick, (u, velocity, value, slope))
        before = value + 0.5 * jnp.sum(u**2 + velocity**2, axis=1)
        after = there[2] + 0.5 * jnp.sum(there[0] ** 2 + there[1] ** 2, axis=1)
        rate = jnp.where(jnp.isfinite(after), jnp.exp(jnp.minimum(before - after, 0.0)), 0.0)
        moved = jax.random.uniform(of_choice, rate.shape) < rate
        state = tuple(
            jnp.where(moved.reshape(moved.shape + (1,) * (new.ndim - 1)), new, old)
            for new, old in zip((there[0], there[2], there[3]), state, strict=True)
        )
        lp = -(state[1] + 0.5 * jnp.sum(state[0] ** 2, axis=1))
        return state, {"u": state[0], "lp": lp, "acceptance_rate": rate}

    begin = jax.scipy.linalg.solve_triangular(factor, (z - mode[None, :]).T, lower=True).T
    _, seen = jax.lax.scan(transition, (begin, *slopes(begin)), jax.random.split(key, BLOCK))
    seen["z"] = mode[None, None, :] + jnp.einsum("pq,scq->scp", factor, seen.pop("u"))
    return seen["z"][-1], seen


@SAMPLERS.register("hmc")
@dataclass(frozen=True)
class Hamiltonian(AbstractSampler):
    """Hamiltonian Monte Carlo whose motion under the normal approximation is exact.

    Attributes
    ----------
    enough : float
        Chains end before ``draws`` once every coordinate has so many effective draws; infinite for never.
    patient : bool
        Whether to go on where hardly any move is accepted.
    """

    draws: int = 1000
    # three blocks before draws are kept, in which the number of kicks is found
    warmup: int = BLOCK * 3
    chains: int = 4
    enough: float = 1000.0
    patient: bool = True
    name: ClassVar[str] = "hmc"
    title: ClassVar[str] = "Hamiltonian Monte Carlo about the normal approximation"
    phrase: ClassVar[str] = f"{title} at the mode (Shahbaba et al., 2014)"
    references: ClassVar[tuple[str, ...]] = ("shahbaba",)
    by_gradients: ClassVar[bool] = True
    gradients: ClassVar[float] = 3.0

    def run(self, task: Task) -> Draws:
        rng, around = np.random.default_rng([task.seed, 3]), task.around
        z = scattered(task.log_density, task.inputs, around, self.chains, rng)
        key = jax.random.key(int(rng.integers(2**31)))
        # Matrices of all parameters are read once for all chains; many terms are better met by one chain at a time.
        wide = len(around.mode) ** 2 > cells(task.inputs.terms)
        together = self.chains if wide else at_once(task.inputs.terms)
        kicks, settling = KICKS[0], max(1, -(-self.warmup // BLOCK))
        kept: list[dict[str, np.ndarray]] = []
        for block in range(settling + -(-self.draws // BLOCK)):

            def of_all(block: int = block, z: np.ndarray = z, kicks: int = kicks) -> dict[str, np.ndarray]:
                now = jax.random.fold_in(key, block)
                last, seen = _block(
                    task.log_density, together, now, z, np.asarray(kicks), around.mode, around.factor, task.inputs
                )
                return {name: np.asarray(value) for name, value in (seen | {"last": last}).items()}

            found = dict(task.checkpoint.part(f"turns-{block}", of_all))
            z = found.pop("last")
            task.advance(BLOCK)
            if block < settling:
                # accepted often enough
                if found["acceptance_rate"].mean() < 0.8:
                    kicks = KICKS[min(KICKS.index(kicks) + 1, len(KICKS) - 1)]
                continue
            kept.append(found)
            if not self.patient and found["acceptance_rate"].mean() < HOPELESS_RATE:
                break
            if len(kept) % 4 == 0 and np.isfinite(self.enough) and bulk_size(_joined(kept, "z")).min() > self.enough:
                break
        stats = {name: _joined(kept, name)[:, : self.draws] for name in kept[0]}
        return Draws(stats.pop("z"), stats, self.name, self.warmup)

    @property
    def transitions(self) -> int:
        return in_blocks(self.warmup, self.draws, BLOCK)


def _joined(blocks: list[dict[str, np.ndarray]], name: str) -> np.ndarray:
    """A statistic of all blocks, chains first."""
    return np.moveaxis(np.concatenate([block[name] for block in blocks]), 0, 1)
