"""Samplers by name. Each sees only a log density."""

from __future__ import annotations

from ..registry import import_modules
from .auto import Auto
from .base import SAMPLERS, AbstractSampler, Draws, Task, by_name, centre
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
]


import_modules(__name__)
