"""The normal approximation at the posterior's mode: independent draws, no chain to run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Draws, Task


@dataclass(frozen=True)
class Laplace:
    """Draws from the normal approximation in unconstrained coordinates."""

    draws: int = 1000
    warmup: int = 0
    chains: int = 4
    name = "laplace"
    gradients = 0.0  # of the loss, that a transition takes as a rule

    def run(self, task: Task) -> Draws:
        rng, around = np.random.default_rng([task.seed, 2]), task.around
        noise = rng.standard_normal((self.chains, self.draws, len(around.mode)))
        task.advance(self.draws)
        return Draws(around.mode + noise @ around.factor.T, {}, self.name)

    @property
    def transitions(self) -> int:
        return self.draws
