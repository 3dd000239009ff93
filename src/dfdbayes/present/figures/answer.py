"""The picture that shows best what a fit found."""

from __future__ import annotations

from ...families.graph import figure as random_graphs
from ...families.map import figure as maps
from ...families.narratives import family_of
from ...families.network import figure as structure
from ...results.fitted import Fitted
from . import draws, observed, regression
from .base import Figure

MODULES = (draws, observed, random_graphs, regression, structure, maps)


def answer(fit: Fitted) -> Figure:
    """The picture that the model's family names in `results.answers`; posterior densities where it needs checks.

    Of chains that did not converge it is the chains.
    """
    if not fit.converged:
        return draws.trace(fit)
    family = family_of(fit)
    unchecked = fit.checks is None or fit.checks.problem
    name = "posterior" if family.checked and unchecked else family.picture
    return next(getattr(module, name) for module in MODULES if hasattr(module, name))(fit)
