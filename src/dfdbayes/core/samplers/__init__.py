"""Samplers by name. Each sees only a log density."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...errors import SettingError
from ..registry import import_modules
from .auto import Auto
from .base import SAMPLERS, AbstractSampler, Draws, Task, centre, kind_of
from .hamiltonian import Hamiltonian
from .independence import Independence
from .laplace import Laplace
from .nuts import NUTS
from .random_walk import RandomWalk

__all__ = [
    "NUTS",
    "SAMPLERS",
    "AbstractSampler",
    "Auto",
    "Draws",
    "Hamiltonian",
    "Independence",
    "Laplace",
    "RandomWalk",
    "Task",
    "by_name",
    "centre",
    "kind_of",
]


def by_name(
    sampler: Any,
    draws: int | None = None,
    warmup: int | None = None,
    chains: int | None = None,
    *,
    bounded: bool = False,
) -> Any:
    """The sampler that a word names (or the given one) with these lengths, where they are given.

    A loss that is ``bounded`` below has no steep walls, so that some samplers take longer steps.
    """
    if isinstance(sampler, str):
        kind = SAMPLERS.by_name(sampler)
        sampler = kind(**kind.when_bounded) if bounded else kind()
    if not hasattr(sampler, "run"):
        raise SettingError(
            f"{sampler!r} is not a sampler; give a word ({', '.join(SAMPLERS)}) or a dfd.samplers object"
        )
    lengths = {"draws": draws, "warmup": warmup, "chains": chains}
    for name, value in lengths.items():
        least = 0 if name == "warmup" else (1 if name == "chains" else 4)
        if value is not None and value < least:
            raise SettingError(f"{name} is {value}; it must be at least {least}")
    given: dict[str, float] = {name: value for name, value in lengths.items() if value is not None}
    if draws is not None and hasattr(sampler, "enough"):
        given["enough"] = float("inf")  # so many, and not as many as are enough
    return replace(sampler, **given)


import_modules(__name__)
