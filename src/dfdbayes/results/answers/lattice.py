"""Ising and Potts models: how much neighbours are alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .words import Estimate

if TYPE_CHECKING:
    from ..fit_result import Fit


def lattice(fit: Fit) -> list[str]:
    """What one neighbour does to the odds of a site."""
    assert fit.model is not None
    spins, two = bool(fit.model.domain.coordinate(0).levels[0] < 0), fit.model.domain.is_binary
    steps = 4.0 if spins else 1.0  # what a neighbour's other value adds to the log odds, times the temperature
    odds = Estimate.of_draws(np.exp(np.minimum(steps / fit.entries["temperature"], 700.0)))
    if two:
        high, low = ("+1", "-1") if spins else ("1", "0")
        told = (
            f"a neighbour that is {high} rather than {low} makes the odds that a site is {high} {odds.times} as large"
        )
    else:
        told = f"a neighbour in some state makes the odds that a site is in it too {odds.times} as large"
    heat = Estimate.of(fit, "temperature").inside
    return [f"Neighbouring sites tend to be alike (temperature {heat}): {told}.", *_intercept(fit)]


def _intercept(fit: Fit) -> list[str]:
    if "intercept" not in fit.entries:
        return []
    own = Estimate.of(fit, "intercept")
    if not own.excludes(0.0):
        return [f"Neither of the two values is clearly favoured by itself (intercept {own.inside})."]
    return [f"By itself the {'upper' if own.low > 0 else 'lower'} value is favoured (intercept {own.inside})."]
