"""Losses by name. A loss turns (model, data) into a table and evaluates it at parameters."""

from __future__ import annotations

from typing import Any

from ...errors import SettingError, close
from .base import LOSSES, AbstractLoss
from .likelihood import Likelihood
from .local import FISHER, RATIO, LocalLoss
from .pseudo import PseudoLikelihood
from .robust import Robust
from .stein import KernelStein

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


for _loss in (FISHER, RATIO, PseudoLikelihood(), Likelihood()):
    LOSSES.value(_loss.name, _loss)
