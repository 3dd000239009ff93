"""The default: the least work that the posterior's shape allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from ..mixing import MAX_R_HAT, MIN_EFFECTIVE, bulk_size, r_hat
from .base import SAMPLERS, AbstractSampler, Draws, Task, cells, in_blocks
from .hamiltonian import HOPELESS_RATE, Hamiltonian
from .independence import HEAVY_TAIL_K, Independence
from .nuts import BLOCK, NUTS


@SAMPLERS.register("auto")
@dataclass(frozen=True)
class Auto(AbstractSampler):
    """An independence chain where the posterior is close to its normal approximation, else chains that use gradients.

    These are `Hamiltonian` about the normal approximation first, and where that does not mix `NUTS`, which adapts.
    """

    target: float = 0.9
    draws: int = 1000
    warmup: int = 500
    chains: int = 4
    enough: float = 1000.0
    name: ClassVar[str] = "auto"
    gradients: ClassVar[float] = 2.0
    when_bounded: ClassVar[Mapping[str, Any]] = MappingProxyType({"target": 0.8})  # longer steps

    def run(self, task: Task) -> Draws:
        silent = replace(task, advance=lambda done: None)
        least = min(MIN_EFFECTIVE, 0.1 * self.chains * self.draws)
        quick = Independence(self.draws, chains=self.chains)
        around, share = quick.approximation(silent)
        # where an evaluation is dear, no more draws than are enough, but 250 in each chain
        if cells(task.inputs.terms) > 2**18 and np.isfinite(self.enough) and share > 0.0:
            wanted = int(np.ceil(2.5 * self.enough / (share * self.chains)))  # a chain is worth half of them, or less
            quick = replace(quick, draws=min(self.draws, max(250, wanted)))
        found = quick.drawn(silent, around) if share * self.chains * self.draws > least else None
        if found is None or not _good(found, least):
            # matrices of more parameters no longer fit the cache: the least number of draws is enough
            enough = min(self.enough, MIN_EFFECTIVE) if len(around.mode) > 2500 else self.enough
            found = Hamiltonian(self.draws, chains=self.chains, enough=enough, patient=False).run(silent)
            if not _good(found, least):
                return self._adapting.run(task)
        task.advance(self.transitions)
        return found

    @property
    def _adapting(self) -> NUTS:
        return NUTS(self.target, self.draws, self.warmup, self.chains)

    @property
    def transitions(self) -> int:
        return in_blocks(self.warmup, self.draws, BLOCK)  # those of `NUTS`, the longest of them


def _good(found: Draws, least: float) -> bool:
    """Whether draws are to be relied on: even weights, or chains that move and agree, and enough of them."""
    k = found.stats.get("pareto_k")
    if k is not None:
        return bool(k[0, 0] < HEAVY_TAIL_K and bulk_size(found.z).min() > least)
    if found.stats["acceptance_rate"].mean() < HOPELESS_RATE or bulk_size(found.z).min() < least:
        return False
    return len(found.z) == 1 or bool((r_hat(found.z) < MAX_R_HAT).all())
