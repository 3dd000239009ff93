"""Networks with a parameter for each edge: which edges are there, and the strongest of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...models.network import Pairwise
from ...models.regression import Regression
from .. import evidence
from .own import own
from .words import Estimate, counted, listed, named

if TYPE_CHECKING:
    from ..fit_result import Fit

STRONGEST = 3


def network(fit: Fit) -> list[str]:
    """How many edges are present, absent and inconclusive; the strongest that are present."""
    if not evidence.is_network(fit):
        return own(fit)
    table = evidence.edges(fit)
    count = table["evidence"].value_counts()
    there, gone, open_ = (
        int(count.get(kind, 0)) for kind in (evidence.PRESENT, evidence.ABSENT, evidence.INCONCLUSIVE)
    )
    where = "At the average of the covariates, of" if evidence.varies(fit) else "Of"
    told = (
        f"{where} {counted(len(table), 'pair')} of columns, {there} {_are(there)} joined by an edge (present), {gone} "
    )
    told += f"{_are(gone)} not (absent), and for {open_} the data cannot tell (inconclusive)."
    strongest = table[table["evidence"] == evidence.PRESENT].head(STRONGEST)
    if not len(strongest):
        return [told, *_groups(fit)]
    words = listed([_edge(row, evidence.network_of(fit)) for _, row in strongest.iterrows()], STRONGEST)
    plural = "edges are" if len(strongest) > 1 else "edge is"
    return [told, f"The strongest {plural} {words}.", *_groups(fit)]


def _groups(fit: Fit) -> list[str]:
    """Where edges depend on a factor, who tells its levels apart."""
    if not evidence.varies(fit) or not isinstance(fit.model, Regression):
        return []
    factors = fit.model.design("interaction").factors
    return [
        f"Edges depend on {named(one)}: dfd.group_differences(fit, {one!r}) compares its levels." for one in factors
    ]


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _edge(row: pd.Series, model: Pairwise) -> str:
    """An edge, and what it means where that is short to say."""
    ends, found = f"{named(row['from'])} – {named(row['to'])}", Estimate(row["mean"], row["low"], row["high"])
    if model.lowers:
        return f"{ends} ({found.inside}: much of one goes with little of the other)"
    if not model.domain.is_binary:
        return f"{ends} ({found.inside})"
    odds = np.exp(model.two_values[1] ** 2 * np.clip(found, -100.0, 100.0))
    return f"{ends} (odds ratio {Estimate(*map(float, odds)).inside})"
