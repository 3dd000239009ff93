"""The picture that shows best what a fit found."""

from __future__ import annotations

from ...results.fitted import Fitted
from . import draws, regression
from .base import Figure


def answer(fit: Fitted) -> Figure:
    """The picture that the model's family has; where it has none, what covariates do, or posterior densities.

    Of chains that did not converge it is the chains.
    """
    if not fit.converged:
        return draws.trace(fit)
    found = fit.narrative.figure(fit)
    if found is not None:
        return found
    return regression.ratios(fit) if fit.model is not None and fit.model.designs else draws.posterior(fit)
