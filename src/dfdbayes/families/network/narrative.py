"""Networks with a parameter for each edge: which edges are there, and the strongest of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..._util.words import Estimate, counted, listed, named
from ...core.narrative import CLEAREST, NARRATIVES, Narrative, by_parameter
from . import evidence, groups

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...present.blocks import Block
    from ...results.fitted import Fitted


class NetworkNarrative(Narrative):
    """The edges of a network with covariates or without; without any edge it is told parameter by parameter."""

    editable = False

    def sentences(self, fit: Fitted) -> list[str]:
        return network(fit) if evidence.is_network(fit) else by_parameter(fit)

    def figure(self, fit: Fitted, table: pd.DataFrame | None = None) -> Figure:
        """The network; ``table`` has its edges where they were judged before."""
        from .figure import network

        return network(fit, table)

    def estimates(self, fit: Fitted, summary: pd.DataFrame) -> pd.DataFrame:
        """The edges first, the strongest on top, with what is said of them."""
        return evidence.edges_first(fit, summary)

    def elsewhere(self, fit: Fitted) -> tuple[list[str], str]:
        if not evidence.is_network(fit) or evidence.varies(fit) or not fit.converged:
            return [], ""
        return evidence.entries_of_edges(fit), "Edges are in the section Network, above."

    def findings(self, fit: Fitted) -> dict[str, list[Block]]:
        from .report import network

        return {"Network": network(fit)} if evidence.is_network(fit) else {}

    def comparisons(self, fit: Fitted) -> dict[str, list[Block]]:
        from .report import differences

        return {"Groups": [block for factor in groups.factors(fit) for block in differences(fit, factor)]}

    def draws_intervals(self, fit: Fitted) -> bool:
        return not evidence.is_network(fit)

    def methods(self, fit: Fitted) -> tuple[str, tuple[str, ...]]:
        """How edges were judged."""
        if not evidence.is_network(fit):
            return "", ()
        way, even = "a region of practical equivalence (Kruschke, 2018)", ""
        if evidence.chooses(fit):
            way, even = "inclusion Bayes factors", " Each edge was as likely there as not beforehand."
        told = (
            f"Edges were judged by {way}. {evidence.rule(fit)}{even} Predictability of nodes is the Bayesian R-squared "
            "(Gelman et al., 2019)."
        )
        return told, ("gelman",) if evidence.chooses(fit) else ("gelman", "kruschke")


NARRATIVES.register("network")(NetworkNarrative())


def network(fit: Fitted) -> list[str]:
    """How many edges are present, absent and inconclusive; the strongest that are present; how groups differ."""
    table = evidence.edges(fit)
    strongest = table[table["evidence"] == evidence.PRESENT].head(CLEAREST)
    told = [_verdicts(table, "At the average of the covariates, of" if evidence.varies(fit) else "Of")]
    if len(strongest):
        model = evidence.network_of(fit)
        distances = dict(zip(fit.data.columns, model.distances, strict=True))
        words = listed([_edge(row, model, distances) for _, row in strongest.iterrows()], CLEAREST)
        told.append(f"The strongest {'edges are' if len(strongest) > 1 else 'edge is'} {words}.")
    return told + _groups(fit)


def _verdicts(table: pd.DataFrame, where: str) -> str:
    """How many edges are what, those that are none left out, and how many of those found are expected to be wrong."""
    count = table["evidence"].value_counts()
    there, gone, open_ = (
        int(count.get(kind, 0)) for kind in (evidence.PRESENT, evidence.ABSENT, evidence.INCONCLUSIVE)
    )
    false = evidence.expected(there, table.attrs["expected_false_edges"])
    told = [f"{there or 'none'} {_are(there or 1)} joined by an edge (present{false})"]
    told += [f"{gone} {_are(gone)} not (absent)"] * bool(gone)
    told += [f"for {open_} the data cannot tell (inconclusive)"] * bool(open_)
    return f"{where} {counted(len(table), 'pair')} of variables, {listed(told)}."


def _groups(fit: Fitted) -> list[str]:
    """Where edges depend on a factor, what differs between its levels."""
    told = []
    for factor in groups.factors(fit):
        found = groups.group_differences(fit, factor)
        apart = found.table[found.table["verdict"] == groups.DIFFERENT].head(CLEAREST)
        told.append(f"Edges by {named(factor)}: {str(found)[0].lower()}{str(found)[1:]}")
        if len(apart):
            told.append(f"The largest differences are {listed([_difference(row) for _, row in apart.iterrows()])}.")
    return told


def _difference(row: pd.Series) -> str:
    found = Estimate(row["difference"], row["low"], row["high"])
    return f"{named(row['from'])} – {named(row['to'])} ({row['group']} − {row['reference']}: {found.inside})"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _edge(row: pd.Series, model: Any, distances: Mapping[str, float]) -> str:
    """An edge, and what it means where that is short to say."""
    ends, found = f"{named(row['from'])} – {named(row['to'])}", Estimate(row["mean"], row["low"], row["high"])
    if model.nonpositive_edges:
        return f"{ends} ({found.inside}: much of one goes with little of the other)"
    if not model.is_binary:
        return f"{ends} ({found.inside})"
    odds = np.exp(distances[row["from"]] * distances[row["to"]] * np.clip(found, -100.0, 100.0))
    return f"{ends} (odds ratio {Estimate(*map(float, odds)).inside})"
