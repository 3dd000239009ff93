"""The normal approximation at the posterior's mode: independent draws, no chain to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import SAMPLERS, AbstractSampler, Draws, Task


@SAMPLERS.register("laplace")
@dataclass(frozen=True)
class Laplace(AbstractSampler):
    """Draws from the normal approximation in unconstrained coordinates."""

    draws: int = 1000
    warmup: int = 0
    chains: int = 4
    name: ClassVar[str] = "laplace"
    title: ClassVar[str] = "the normal approximation itself"
    phrase: ClassVar[str] = "the normal approximation at the posterior's mode"
    chained: ClassVar[bool] = False
    gradients: ClassVar[float] = 0.0

    def run(self, task: Task) -> Draws:
        rng, around = np.random.default_rng([task.seed, 2]), task.around
        noise = rng.standard_normal((self.chains, self.draws, len(around.mode)))
        task.advance(self.draws)
        return Draws(around.mode + noise @ around.factor.T, {}, self.name)

    @property
    def transitions(self) -> int:
        return self.draws
