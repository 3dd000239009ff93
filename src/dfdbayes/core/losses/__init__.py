"""Losses by name. A loss turns (model, data) into a table and evaluates it at parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import SettingError, close
from . import kernels
from .base import AbstractLoss
from .likelihood import Likelihood
from .local import FISHER, RATIO, LocalLoss
from .pseudo import PseudoLikelihood
from .robust import Robust
from .stein import KernelStein
from .weights import AbstractWeight

__all__ = [
    "FISHER",
    "RATIO",
    "AbstractLoss",
    "KernelStein",
    "Likelihood",
    "LocalLoss",
    "PseudoLikelihood",
    "Robust",
    "by_name",
    "names",
]

_BY_NAME: dict[str, AbstractLoss] = {
    loss.name: loss for loss in (FISHER, RATIO, KernelStein(), PseudoLikelihood(), Likelihood(), Robust())
}


def names() -> tuple[str, ...]:
    """The words that name a loss."""
    return tuple(_BY_NAME)


def by_name(loss: Any) -> AbstractLoss:
    """The loss that a word names; a loss object is returned as it is."""
    if isinstance(loss, AbstractLoss):
        return loss
    if not isinstance(loss, str):
        raise SettingError(f"{loss!r} is not a loss; give a word ({', '.join(_BY_NAME)}) or a dfd.losses object")
    if loss not in _BY_NAME:
        raise SettingError(f"there is no loss '{loss}'; known: {', '.join(_BY_NAME)}{close(loss, _BY_NAME)}")
    return _BY_NAME[loss]


def plain(loss: AbstractLoss) -> dict[str, Any] | None:
    """A built-in loss's name and arguments in values JSON can hold; None for one that cannot be made from them."""
    if not isinstance(loss, Robust) and _BY_NAME.get(loss.name) == loss:
        return {"name": loss.name, "arguments": {}}
    if isinstance(loss, Robust):
        weighted = loss.plain()
        return None if weighted is None else {"name": "robust", "arguments": weighted}
    kernel = kernels.plain(loss.kernel) if isinstance(loss, KernelStein) else None
    return None if kernel is None else {"name": loss.name, "arguments": {"kernel": kernel}}


def made(described: Mapping[str, Any], weight: AbstractWeight | None = None) -> AbstractLoss:
    """The loss that `plain` described; ``weight`` is that of a robust one."""
    if described["name"] == "robust":
        return Robust(described["arguments"]["base"], weight)
    kernel = described["arguments"].get("kernel")
    return by_name(described["name"]) if kernel is None else KernelStein(kernels.made(kernel))
