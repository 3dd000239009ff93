"""Losses by name. A loss turns (model, data) into a table and evaluates it at parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import SettingError
from ..registry import import_modules
from .base import LOSSES, AbstractLoss
from .likelihood import Likelihood
from .local import FISHER, RATIO, LocalLoss
from .pseudo import PseudoLikelihood
from .robust import Robust
from .stein import KernelStein
from .weights import AbstractWeight

__all__ = [
    "FISHER",
    "LOSSES",
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


def names() -> tuple[str, ...]:
    """The words that name a loss."""
    return LOSSES.names()


def by_name(loss: Any) -> AbstractLoss:
    """The loss that a word names; a loss object is returned as it is."""
    if isinstance(loss, AbstractLoss):
        return loss
    if not isinstance(loss, str):
        raise SettingError(f"{loss!r} is not a loss; give a word ({', '.join(LOSSES)}) or a dfd.losses object")
    known = LOSSES.by_name(loss)
    return known() if isinstance(known, type) else known


def plain(loss: AbstractLoss) -> dict[str, Any] | None:
    """A loss's name and arguments in values JSON can hold; None for one that cannot be made from them."""
    for name, known in LOSSES.items():
        if known is type(loss):
            arguments = loss.plain()
            return None if arguments is None else {"name": name, "arguments": arguments}
        if type(known) is type(loss) and known == loss:
            return {"name": name, "arguments": {}}
    return None


def made(described: Mapping[str, Any], weight: AbstractWeight | None = None) -> AbstractLoss:
    """The loss that `plain` described; ``weight`` is that of a robust one."""
    known = LOSSES.by_name(described["name"])
    return known.of_plain(described["arguments"], weight) if isinstance(known, type) else known


import_modules(__name__)
