"""Built-in models by class name, and by the short names of the command line."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from ..errors import ModelError
from .base import AbstractModel, ExponentialFamily, Model
from .counts import Bernoulli, ConwayMaxwellPoisson, Poisson

__all__ = [
    "AbstractModel",
    "Bernoulli",
    "ConwayMaxwellPoisson",
    "ExponentialFamily",
    "Model",
    "Poisson",
    "by_name",
    "names",
]

_BY_NAME: dict[str, Callable[[], AbstractModel]] = {
    "bernoulli": Bernoulli,
    "poisson": Poisson,
    "cmp": ConwayMaxwellPoisson,
}


def names() -> dict[str, str]:
    """The short name of every built-in model with one line about it."""
    return {name: (make.__doc__ or "").splitlines()[0] for name, make in _BY_NAME.items()}


def by_name(name: str) -> AbstractModel:
    """A built-in model with its default settings."""
    if name not in _BY_NAME:
        close = difflib.get_close_matches(name, _BY_NAME, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise ModelError(f"there is no model '{name}'{hint} Known models: {', '.join(_BY_NAME)}.")
    return _BY_NAME[name]()
