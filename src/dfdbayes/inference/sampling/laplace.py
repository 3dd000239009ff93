"""The normal approximation at the posterior's mode: independent draws, no chain to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._util.checkpoint import NOTHING, Checkpoint
from .base import Advance, Centre, Draws, LogDensity


@dataclass(frozen=True)
class Laplace:
    """Draws from the normal approximation in unconstrained coordinates."""

    draws: int = 1000
    warmup: int = 0
    chains: int = 4
    name = "laplace"

    def run(
        self,
        log_density: LogDensity,
        inputs: Any,
        around: Centre,
        seed: int,
        advance: Advance,
        checkpoint: Checkpoint = NOTHING,
    ) -> Draws:
        rng = np.random.default_rng([seed, 2])
        noise = rng.standard_normal((self.chains, self.draws, len(around.mode)))
        advance(self.draws)
        return Draws(around.mode + noise @ around.factor.T, {}, self.name)

    @property
    def transitions(self) -> int:
        return self.draws
