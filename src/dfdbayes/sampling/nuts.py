"""The No-U-Turn sampler (BlackJAX), in coordinates whitened by what is known about the posterior.

All chains share one step size and one metric, adapted together: the metric starts at the normal
approximation of the posterior and is refined from the draws of all chains.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.step_size import dual_averaging_adaptation
from jaxtyping import Array

from .base import Advance, Centre, Draws, LogDensity, scattered

BLOCK = 50  # transitions in one compiled call; warm-up and sampling run the same code


@partial(jax.jit, static_argnums=(0, 1))
def _block(
    log_density: LogDensity,
    target: float,
    key: Array,
    z: Array,
    tuning: Any,
    adapting: Array,
    mode: Array,
    factor: Array,
    inputs: Any,
) -> tuple[Array, Any, dict[str, Array]]:
    def whitened(u: Array) -> Array:
        return log_density(mode + factor @ u, inputs)

    _, update, final = dual_averaging_adaptation(target)
    kernel = blackjax.nuts.build_kernel()
    unit = jnp.ones_like(mode)

    def transition(carry: Any, key: Array) -> tuple[Any, dict[str, Array]]:
        states, tuning = carry
        step_size = jnp.where(adapting, jnp.exp(tuning.log_step_size), final(tuning))
        keys = jax.random.split(key, z.shape[0])
        states, info = jax.vmap(lambda k, s: kernel(k, s, whitened, step_size, unit))(keys, states)
        moved = update(tuning, jnp.mean(info.acceptance_rate))
        tuning = jax.tree.map(lambda new, old: jnp.where(adapting, new, old), moved, tuning)
        seen = {
            "u": states.position,
            "lp": states.logdensity,
            "diverging": info.is_divergent,
            "acceptance_rate": info.acceptance_rate,
            "n_steps": info.num_integration_steps,
            "step_size": jnp.full(z.shape[0], step_size),
            "energy": info.energy,
        }
        return (states, tuning), seen

    solve = partial(jax.scipy.linalg.solve_triangular, factor, lower=True)
    states = jax.vmap(lambda z: blackjax.nuts.init(solve(z - mode), whitened))(z)
    (states, tuning), seen = jax.lax.scan(transition, (states, tuning), jax.random.split(key, BLOCK))
    seen["z"] = mode[None, None, :] + jnp.einsum("pq,scq->scp", factor, seen.pop("u"))
    return seen["z"][-1], tuning, seen


@dataclass(frozen=True)
class NUTS:
    """No-U-Turn sampling.

    Attributes
    ----------
    target : float
        Acceptance rate that the step size is tuned for.
    """

    target: float = 0.9
    draws: int = 1000
    warmup: int = 500
    chains: int = 4
    name = "nuts"

    def run(self, log_density: LogDensity, inputs: Any, around: Centre, seed: int, advance: Advance) -> Draws:
        rng = np.random.default_rng([seed, 2])
        z = jnp.asarray(scattered(log_density, inputs, around, self.chains, rng))
        key = jax.random.key(int(rng.integers(2**31)))
        begin, _, final = dual_averaging_adaptation(self.target)
        mode, factor = jnp.asarray(around.mode), jnp.asarray(around.factor)
        tuning, block = _plain(begin(0.5)), 0

        windows = _windows(max(1, -(-self.warmup // BLOCK)))
        for length, refine in windows:
            gathered, diverged = [], 0
            for _ in range(length):
                z, tuning, seen = _block(
                    log_density, self.target, jax.random.fold_in(key, block), z, tuning,
                    jnp.asarray(True), mode, factor, inputs,
                )  # fmt: skip
                tuning = _plain(tuning)
                diverged += int(seen["diverging"].sum())
                z = jnp.asarray(log_density.fold(np.asarray(z)))
                gathered.append(log_density.fold(np.asarray(seen["z"])))
                block += 1
                advance(BLOCK)
            if refine:
                mode, factor = map(jnp.asarray, _refined(np.concatenate(gathered), around))
                tuning = _plain(begin(float(final(tuning))))

        if diverged:  # in the last window, where the step size had settled: a shorter step meets fewer sharp corners
            tuning = tuning._replace(log_step_size_avg=tuning.log_step_size_avg + np.log(0.8))
        kept: list[dict[str, np.ndarray]] = []
        for _ in range(-(-self.draws // BLOCK)):
            z, tuning, seen = _block(
                log_density, self.target, jax.random.fold_in(key, block), z, tuning,
                jnp.asarray(False), mode, factor, inputs,
            )  # fmt: skip
            tuning = _plain(tuning)
            kept.append({name: np.asarray(value) for name, value in seen.items()})
            block += 1
            advance(BLOCK)
        stats = {
            name: np.moveaxis(np.concatenate([part[name] for part in kept]), 0, 1)[:, : self.draws] for name in kept[0]
        }
        return Draws(stats.pop("z"), stats)

    @property
    def transitions(self) -> int:
        """How many steps of work a run is, for progress."""
        return BLOCK * (max(1, -(-self.warmup // BLOCK)) + -(-self.draws // BLOCK))


def _plain(tuning: Any) -> Any:
    """The same numbers as plain arrays: JAX's weak types would compile the same code again."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, float), tuning)


def _windows(blocks: int) -> list[tuple[int, bool]]:
    """Warm-up as (blocks, refine the metric afterwards?): settle, two windows, then the step size alone."""
    if blocks < 4:
        return [(blocks, False)]
    settle, last = max(1, blocks // 6), max(1, blocks // 6)
    first = (blocks - settle - last) // 3
    second = blocks - settle - last - first
    return [(settle, False), *[(size, True) for size in (first, second) if size], (last, False)]


def _refined(z: np.ndarray, around: Centre) -> tuple[np.ndarray, np.ndarray]:
    """Mean and factor from pooled draws, shrunk towards the normal approximation where draws are few."""
    pooled = z.reshape(-1, z.shape[-1])
    size, p = pooled.shape
    trust = size / (size + 10.0 * p)
    covariance = trust * np.cov(pooled.T).reshape(p, p) + (1 - trust) * around.factor @ around.factor.T
    try:
        return pooled.mean(axis=0), np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return around.mode, around.factor
