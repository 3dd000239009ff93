"""One column without covariates: counts, a mixture of counts, zeros and ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...results.words import Estimate, named

if TYPE_CHECKING:
    from ...results.fitted import Fitted


def counts(fit: Fitted) -> list[str]:
    """The mean, and how much the counts vary beside Poisson's."""
    name = named(fit.data.columns[0])
    if "dispersion_index" not in fit.entries:
        return [f"The mean of {name} is {Estimate.of(fit, 'rate').full}."]
    index = Estimate.of(fit, "dispersion_index")
    mean = f"The mean of {name} is {Estimate.of(fit, 'mean').full}"
    if not index.excludes(1.0):
        return [f"{mean}, and it varies about as a Poisson count does (variance over mean {index.inside})."]
    amount = "more than a Poisson count does" if index.low > 1.0 else "less than a Poisson count does"
    return [f"{mean}, and it varies {amount}: its variance is {index.times} its mean."]


def share(fit: Fitted) -> list[str]:
    """How many are ones."""
    return [f"The share of ones in {named(fit.data.columns[0])} is {Estimate.of(fit, 'probability').percent}."]


def mixture(fit: Fitted) -> list[str]:
    """How many come from which of the two distributions."""
    first, second = fit.settings["options"]["rates"]
    return [
        f"Of {named(fit.data.columns[0])}, {Estimate.of(fit, 'proportion').percent} come from the Poisson distribution "
        f"with mean {first:g}, the others from the one with mean {second:g}."
    ]
