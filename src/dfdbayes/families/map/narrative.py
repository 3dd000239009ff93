"""Maps: what neighbours and covariates do to the odds of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..._util.words import Estimate, counted, listed, multiplied, named, untold
from ...core.narrative import CLEAREST, Narrative
from ...core.parameters import NEIGHBOURS, OTHER
from ...present.blocks import UNMIXED, Block, Facts, Paragraph, Picture, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...results.fitted import Fitted


class MapNarrative(Narrative):
    """Whether neighbours are alike beyond what covariates explain, and the clearest covariates as factors."""

    editable = False

    def size(self, fit: Any) -> str:
        return counted(fit.model.map.n, "site")

    def sentences(self, fit: Any) -> list[str]:
        return [*_neighbours(fit), *_covariates(fit, [str(level) for level in fit.model.map.categories])]

    def figure(self, fit: Fitted) -> Figure | None:
        from .figure import sites

        return None if fit.checks is None or fit.checks.problem else sites(fit)

    def data(self, fit: Any) -> list[Block]:
        """One observed map at a glance."""
        seen = fit.model.map
        values = seen.values[seen.observed]
        number = np.bincount(values, minlength=len(seen.categories))
        shares = {"sites": number, "share": [f"{n / len(values):.1%}" for n in number]}
        lost = int((~seen.observed).sum())
        without = f"{lost}, {'drawn from the model' if seen.missing == 'impute' else 'left out'}"
        about = {
            "source": seen.source,
            "sites": f"{seen.n}, of which losses have a term of {len(seen.used)}",
            "without a value": without if lost else "none",
            "pairs of neighbours": f"{len(seen.edges)}, {2 * len(seen.edges) / seen.n:.1f} neighbours for each site",
            "covariates": ", ".join(seen.labels[1:]) or "none",
        }
        return [Facts(about), Table(pd.DataFrame(shares, seen.categories), corner=seen.response)]

    def checks(self, fit: Any) -> list[Block] | None:
        """The observed map beside simulated ones."""
        from .figure import sites

        checked = fit.checks
        if checked is None or checked.sites is None:
            return None
        told = f"{checked.sets} maps were simulated from the posterior ({checked.method})."
        tails = (
            "A tail is the share of simulated maps whose statistic is at least the observed one: near 0 or 1 is bad. "
            "How many neighbours are alike is a join count, as a share."
        )
        caption = "The observed map, and what the model says of each site with and without knowing the others."
        return [
            Paragraph(told + UNMIXED * (not checked.mixed)),
            *([Picture(lambda: sites(fit), caption, large=True)] if fit.model.map.cells is not None else []),
            Table(pd.DataFrame() if checked.equal is None else checked.equal),
            Paragraph(tails, quiet=True),
        ]


def _neighbours(fit: Fitted) -> list[str]:
    assert fit.model is not None
    (interaction,) = fit.model.space.of_role(NEIGHBOURS)
    own, odds = Estimate.of(fit, interaction.name), multiplied(fit.entries[interaction.name])
    if not own.excludes(0.0):
        return [f"The data cannot tell whether neighbouring sites are alike (interaction {own.inside})."]
    how = "alike" if own.low > 0 else "unlike"
    return [
        f"Neighbouring sites tend to be {how}: one more neighbour of a kind multiplies the odds that a site is of that "
        f"kind by {odds.full}."
    ]


def _covariates(fit: Fitted, levels: list[str]) -> list[str]:
    assert fit.model is not None
    found = {name: Estimate.of(fit, name) for p in fit.model.space.of_role(OTHER) for name in p.entries}
    clear = [name for name, one in found.items() if one.excludes(0.0)]
    clear.sort(key=lambda name: -abs(found[name].value) / np.std(fit.entries[name]))
    of = f"of {named(levels[1])}" if len(levels) == 2 else f"of a category against {named(levels[0])}"
    told = [
        f"Given its neighbours, the odds {of} at a site are multiplied by {multiplied(fit.entries[name]).brief} per "
        f"unit of {named(name)}."
        for name in clear[:CLEAREST]
    ]
    if len(clear) > CLEAREST:
        told.append(f"Clear effects have also {listed([named(name) for name in clear[CLEAREST:]])}.")
    rest = [named(name) for name in found if name not in clear]
    return [*told, untold(rest)] if rest else told
