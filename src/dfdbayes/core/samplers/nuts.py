"""The No-U-Turn sampler (BlackJAX), in coordinates whitened by what is known about the posterior.

All chains share one step size and one metric, adapted together: the metric starts at the normal
approximation of the posterior and is refined from the draws of all chains. Where a density is costly each chain
runs in a thread of its own, and none waits for another's longer trajectory; cheap ones run side by side in one.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .base import SAMPLERS, AbstractSampler, Centre, Draws, LogDensity, Task, cells, in_blocks, scattered

BLOCK = 50  # transitions in one compiled call; warm-up and sampling run the same code


@partial(jax.jit, static_argnums=(0, 1))
def _block(
    log_density: LogDensity,
    target: float,
    key: Array,
    z: Array,
    tuning: Any,
    adapting: bool,
    mode: Array,
    factor: Array,
    inputs: Any,
) -> tuple[Array, Any, dict[str, Array]]:
    import blackjax  # not before it is needed: it takes a while

    def whitened(u: Array) -> Array:
        return log_density(mode + factor @ u, inputs)

    _, update, final = _averaging(target)
    kernel = blackjax.nuts.build_kernel()
    unit = jnp.ones_like(mode)

    def transition(carry: Any, key: Array) -> tuple[Any, dict[str, Array]]:
        states, tuning = carry
        # Trajectories through a whitened normal posterior all have one period; a fixed step can hit it again and again.
        shake = jax.random.uniform(jax.random.fold_in(key, z.shape[0]), minval=0.8, maxval=1.2)
        step_size = shake * jnp.where(adapting, jnp.exp(tuning.log_step_size), final(tuning))
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


@SAMPLERS.register("nuts")
@dataclass(frozen=True)
class NUTS(AbstractSampler):
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
    name: ClassVar[str] = "nuts"
    title: ClassVar[str] = "the No-U-Turn sampler"
    phrase: ClassVar[str] = "the No-U-Turn sampler (Hoffman and Gelman, 2014) of BlackJAX (Cabezas et al., 2024)"
    references: ClassVar[tuple[str, ...]] = ("hoffman", "blackjax")
    by_gradients: ClassVar[bool] = True
    gradients: ClassVar[float] = 20.0
    when_bounded: ClassVar[Mapping[str, Any]] = MappingProxyType({"target": 0.8})  # longer steps

    def run(self, task: Task) -> Draws:
        rng, log_density, inputs, around = (
            np.random.default_rng([task.seed, 2]), task.log_density, task.inputs, task.around
        )  # fmt: skip
        starts = scattered(log_density, inputs, around, self.chains, rng)
        key = jax.random.key(int(rng.integers(2**31)))
        begin, _, final = _averaging(self.target)
        mode, factor, tuning = around.mode, around.factor, _plain(begin(0.5))
        # where a density's tables are larger, each chain runs in a thread of its own
        size = 1 if cells(inputs) > 2**13 else self.chains
        groups = [starts[first : first + size] for first in range(0, self.chains, size)]
        blocks = count()

        with ThreadPoolExecutor(len(groups)) as threads:

            def step(adapting: bool) -> dict[str, np.ndarray]:
                """One block of transitions of all chains, which then agree on how to go on."""
                nonlocal groups, tuning
                number = next(blocks)
                now = jax.random.fold_in(key, number)
                keys = [now] if len(groups) == 1 else list(jax.random.split(now, len(groups)))

                def of_group(key: Array, z: np.ndarray) -> tuple[np.ndarray, Any, dict[str, np.ndarray]]:
                    ends = _block(log_density, self.target, key, z, tuning, adapting, mode, factor, inputs)
                    return jax.tree.map(np.asarray, ends)

                def of_all() -> dict[str, np.ndarray]:
                    ends = list(threads.map(of_group, keys, groups))
                    seen = {name: np.concatenate([end[2][name] for end in ends], axis=1) for name in ends[0][2]}
                    last = np.concatenate([log_density.fold(z) if adapting else z for z, _, _ in ends])
                    return seen | {"last": last, "tuning": np.mean([list(end[1]) for end in ends], axis=0)}

                found = dict(task.checkpoint.part(f"block-{number}", of_all))
                last, tuning = found.pop("last"), _plain(type(tuning)(*found.pop("tuning")))
                groups = [last[first : first + size] for first in range(0, self.chains, size)]
                task.advance(BLOCK)
                return found

            for length, refine in _windows(max(1, -(-self.warmup // BLOCK))):
                gathered = [step(True) for _ in range(length)]
                diverged = sum(int(seen["diverging"].sum()) for seen in gathered)
                if refine:
                    mode, factor = _refined(log_density.fold(np.concatenate([g["z"] for g in gathered])), around)
                    tuning = _plain(begin(float(final(tuning))))

            if diverged:  # in the last window, with a step that had settled: a shorter one meets fewer sharp corners
                tuning = tuning._replace(log_step_size_avg=tuning.log_step_size_avg + np.log(0.8))
            kept = [step(False) for _ in range(-(-self.draws // BLOCK))]
        stats = {
            name: np.moveaxis(np.concatenate([part[name] for part in kept]), 0, 1)[:, : self.draws] for name in kept[0]
        }
        return Draws(stats.pop("z"), stats, self.name, self.warmup)

    @property
    def transitions(self) -> int:
        """How many steps of work a run is, for progress."""
        return in_blocks(self.warmup, self.draws, BLOCK)


def _averaging(target: float) -> Any:
    """Dual averaging of the step size: how it begins, goes on, and ends."""
    from blackjax.adaptation.step_size import dual_averaging_adaptation

    return dual_averaging_adaptation(target)


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
