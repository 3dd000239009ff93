"""Random graphs: what makes a tie more or less likely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..._util.words import Estimate, also, counted, listed, multiplied, named
from ...core.narrative import CLEAREST, Narrative
from ...present.blocks import UNMIXED, Block, Facts, Paragraph, Picture, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...results.fitted import Fitted

EDGES = "edges"  # how many ties there are at all


class GraphNarrative(Narrative):
    """Terms of a random graph by what they do to the odds of a tie; the picture is the graph among simulated ones."""

    editable = False

    def size(self, fit: Any) -> str:
        graph = fit.model.graph_observed
        return f"{counted(graph.n, 'node')}, {counted(graph.ties, 'tie')}"

    def sentences(self, fit: Fitted) -> list[str]:
        return terms(fit)

    def figure(self, fit: Fitted) -> Figure | None:
        from .figure import graph_goodness

        return None if fit.checks is None or fit.checks.problem else graph_goodness(fit)

    def data(self, fit: Any) -> list[Block]:
        """One observed graph at a glance."""
        graph, statistics = fit.model.graph_observed, fit.model.statistics
        about = {
            "source": graph.source,
            "graph": "directed" if graph.directed else "undirected",
            "nodes": str(graph.n),
            "ties": f"{graph.ties} of {len(graph.dyads[0])} dyads",
            "distinct dyads": f"{len(fit.data.rows)}, by tie and change statistics",
        }
        own = pd.DataFrame({"observed": statistics.of(graph.tie_of_dyad[None])[0]}, list(statistics.names))
        return [Facts(about), Table(own, corner="statistic")]

    def checks(self, fit: Fitted) -> list[Block] | None:
        """Features of the observed graph beside those of simulated ones."""
        from .figure import graph_goodness

        found = None if fit.checks is None else fit.checks.graph
        if found is None:
            return None
        told = f"{found.size} graphs were simulated at the posterior mean ({found.method})."
        caption = (
            "Degrees, geodesic distances, edgewise shared partners and triads (Hunter, Goodreau and Handcock, 2008): "
            "bands hold 95 % of the simulated graphs, points are the observed graph, red where they lie outside."
        )
        return [
            Paragraph(told + UNMIXED * (not found.mixed)),
            Picture(lambda: graph_goodness(found), caption, large=True),
            Table(found.statistics.rename(columns={"p_value": "p-value"})),
        ]


def terms(fit: Fitted) -> list[str]:
    """What each term does to the odds of a tie, given all other ties."""
    entries = fit.entries
    found = {name: Estimate.of(fit, name) for name in entries if name != EDGES}
    clear = [name for name, one in found.items() if one.excludes(0.0)]
    clear.sort(key=lambda name: -abs(found[name].value) / np.std(entries[name]))
    if not found:
        return [_density(fit)]
    told = []
    for i, name in enumerate(clear[:CLEAREST]):
        odds, which = multiplied(entries[name]), "Given all other ties, the odds of a tie" if i == 0 else "They"
        told.append(f"{which} are multiplied by {odds.full if i == 0 else odds.brief} {_when(fit, name)}.")
    if len(clear) > CLEAREST:
        told.append(also([f"{named(name)} (times {multiplied(entries[name]).ends})" for name in clear[CLEAREST:]]))
    rest = {named(name): multiplied(entries[name]).ends for name in found if name not in clear}
    if rest:
        whose = "interval of its odds ratio" if len(rest) == 1 else "intervals of their odds ratios"
        told.append(
            f"For {listed(list(rest))} the data cannot tell the direction: the 95 % {whose} "
            f"({listed(list(rest.values()))}) {'includes' if len(rest) == 1 else 'include'} 1."
        )
    return told


def _when(fit: Any, entry: str) -> str:
    """Where a tie has one more of a term."""
    label, _, level = entry.partition("[")
    term = next(term for term in fit.model.parts if term.label == label)
    return term.told + (f" ({named(level.removesuffix(']'))})" if level else "")


def _density(fit: Fitted) -> str:
    chance = Estimate.of_draws(1.0 / (1.0 + np.exp(-np.clip(fit.entries[EDGES], -700.0, 700.0))))
    return f"Each possible tie is there with a probability of {chance.percent}."
