"""Losses by name. A loss turns (model, data) into a table and evaluates it at parameters."""

from __future__ import annotations

from ..registry import import_modules
from .base import LOSSES, AbstractLoss, by_name
from .likelihood import Likelihood
from .local import FISHER, RATIO, LocalLoss
from .pseudo import PseudoLikelihood
from .robust import Robust
from .stein import KernelStein

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


import_modules(__name__)
