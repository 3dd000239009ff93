"""Losses by name. A loss turns (model, data) into a table and evaluates it at parameters."""

from __future__ import annotations

import difflib
from typing import Any

from ..errors import SettingError
from .likelihood import Likelihood
from .local import FISHER, RATIO, LocalLoss
from .pseudo import PseudoLikelihood
from .stein import KernelStein

__all__ = ["FISHER", "RATIO", "KernelStein", "Likelihood", "LocalLoss", "PseudoLikelihood", "by_name", "names"]

_BY_NAME: dict[str, Any] = {
    loss.name: loss for loss in (FISHER, RATIO, KernelStein(), PseudoLikelihood(), Likelihood())
}


def names() -> tuple[str, ...]:
    """The words that name a loss."""
    return tuple(_BY_NAME)


def by_name(loss: Any) -> Any:
    """The loss that a word names; a loss object is returned as it is."""
    if not isinstance(loss, str):
        return loss
    if loss not in _BY_NAME:
        close = difflib.get_close_matches(loss, _BY_NAME, n=1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        raise SettingError(f"there is no loss '{loss}'; known: {', '.join(_BY_NAME)}.{hint}")
    return _BY_NAME[loss]
