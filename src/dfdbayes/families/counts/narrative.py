"""One column: counts, a mixture of counts, zeros and ones; with covariates, what these do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._util.words import Estimate, named
from ...core.narrative import Narrative
from ...core.parameters import Parameter
from .dispersion import dispersion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...results.fitted import Fitted


class CountNarrative(Narrative):
    """The mean, and how much the counts vary beside Poisson's; the picture is of data and predictions."""

    ratio = "rate ratio (IRR)"
    editable = False

    def plain(self, fit: Fitted) -> list[str]:
        name = named(fit.data.columns[0])
        if "dispersion_index" not in fit.entries:
            return [f"The mean of {name} is {Estimate.of(fit, 'rate').full}."]
        index = Estimate.of(fit, "dispersion_index")
        mean = f"The mean of {name} is {Estimate.of(fit, 'mean').full}"
        if not index.excludes(1.0):
            return [f"{mean}, and it varies about as a Poisson count does (variance over mean {index.inside})."]
        amount = "more than a Poisson count does" if index.low > 1.0 else "less than a Poisson count does"
        return [f"{mean}, and it varies {amount}: its variance is {index.times} its mean."]

    def spread(self, fit: Fitted) -> list[str]:
        return dispersion(fit)

    def figure(self, fit: Fitted) -> Figure | None:
        from ...present.figures import predictive

        if fit.checks is None or fit.checks.problem or (fit.model is not None and fit.model.designs):
            return None
        return predictive(fit)


class ShareNarrative(Narrative):
    """How many are ones."""

    ratio = "odds ratio (OR)"
    editable = False

    def plain(self, fit: Fitted) -> list[str]:
        return [f"The share of ones in {named(fit.data.columns[0])} is {Estimate.of(fit, 'probability').percent}."]

    def changed(self, fit: Fitted, main: Parameter, response: str) -> str:
        return f"the odds that {response} is 1 are multiplied"


class MixtureNarrative(CountNarrative):
    """How many come from which of the two distributions."""

    ratio = Narrative.ratio
    grouped = True

    def plain(self, fit: Fitted) -> list[str]:
        first, second = fit.settings["options"]["rates"]
        return [
            f"Of {named(fit.data.columns[0])}, {Estimate.of(fit, 'proportion').percent} come from the Poisson "
            f"distribution with mean {first:g}, the others from the one with mean {second:g}."
        ]
