"""Samplers by name. Each sees only a log density."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...errors import SettingError, close
from .auto import Auto
from .base import Draws, Task, centre
from .hamiltonian import Hamiltonian
from .independence import Independence
from .laplace import Laplace
from .nuts import NUTS
from .random_walk import RandomWalk

__all__ = ["NUTS", "Auto", "Draws", "Hamiltonian", "Independence", "Laplace", "RandomWalk", "Task", "by_name", "centre"]

_BY_NAME = {
    "auto": Auto, "nuts": NUTS, "hmc": Hamiltonian, "independence": Independence, "random-walk": RandomWalk,
    "laplace": Laplace,
}  # fmt: skip


def by_name(
    sampler: Any,
    draws: int | None = None,
    warmup: int | None = None,
    chains: int | None = None,
    *,
    bounded: bool = False,
) -> Any:
    """The sampler that a word names (or the given one) with these lengths, where they are given.

    A loss that is bounded below has no steep walls, so NUTS may take longer steps.
    """
    if isinstance(sampler, str):
        if sampler not in _BY_NAME:
            raise SettingError(
                f"there is no sampler '{sampler}'; known: {', '.join(_BY_NAME)}{close(sampler, _BY_NAME)}"
            )
        tuned = {"target": 0.8} if bounded and sampler in ("nuts", "auto") else {}
        sampler = _BY_NAME[sampler](**tuned)
    if not hasattr(sampler, "run"):
        raise SettingError(
            f"{sampler!r} is not a sampler; give a word ({', '.join(_BY_NAME)}) or a dfd.samplers object"
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
