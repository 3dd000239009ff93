"""Goodness of fit of a random graph: features of the observed graph beside those of graphs simulated at an estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from ..errors import some
from .relevance import beyond_chance, total_matters

REMEDIES = {
    "degree": ("gwdegree", "gwdegree(0.5), or nodecov and nodefactor of what makes nodes have more ties"),
    "sent": ("gwodegree", "gwodegree(0.5), or nodecov and nodefactor of what makes nodes have more ties"),
    "received": ("gwidegree", "gwidegree(0.5), or nodecov and nodefactor of what makes nodes have more ties"),
    "shared partners": ("gwesp", "gwesp(0.25)"),
    "triads": ("gwesp", "gwesp(0.25)"),
}  # by feature: the term that is about it, and what to try where the model has no such term
LIKELIHOOD = (
    "loss='likelihood' (on the command line: --loss likelihood) finds the coefficients that make such graphs, where "
    "any do; take these for rough ones. Or "
)


@dataclass(frozen=True, repr=False)
class GraphGoodness:
    """Features of the observed graph beside those of graphs simulated at an estimate.

    Attributes
    ----------
    features : dict of DataFrame
        ``degree`` (of directed graphs ``sent`` and ``received``), ``distance`` (of pairs of nodes; "none" where there
        is no path), ``shared partners`` (of ties) and ``triads``. One row for each value: the share of nodes, pairs,
        ties or triples that have it, ``observed`` and simulated (``median``, and between ``low`` and ``high`` in 95 %
        of graphs), and ``p_value``, two-sided, from the simulated graphs and the observed one.
    statistics : DataFrame
        The same of the model's own statistics, with their simulated ``mean`` and ``sd``.
    size : int
        How many graphs were simulated, by ``method``.
    mixed : bool
        Whether their chains have mixed.
    p_values : dict of float
        By feature, of all its values together: the share of graphs, the observed one among them, that lie as far from
        the mean of all as the observed one. Distances are those of cumulative shares, in standard deviations.
    by_likelihood : bool
        Whether the estimate is that of the likelihood.

    Examples
    --------
    >>> import dfdbayes as dfd, networkx as nx
    >>> model = dfd.models.RandomGraph("edges").bound(dfd.ObservedGraph.of(nx.florentine_families_graph()))
    >>> goodness = dfd.graph_goodness(model, {"edges": -1.45})
    >>> list(goodness.features)
    ['degree', 'distance', 'shared partners', 'triads']
    """

    features: Mapping[str, pd.DataFrame]
    statistics: pd.DataFrame
    size: int
    method: str
    mixed: bool
    p_values: Mapping[str, float] = field(default_factory=dict)
    by_likelihood: bool = False

    @property
    def away(self) -> tuple[str, ...]:
        """Statistics of the model in which simulated graphs differ from the observed one by more than chance."""
        return tuple(
            str(name)
            for name, row in self.statistics.iterrows()
            if beyond_chance(row["p_value"], len(self.statistics)) and total_matters(row["observed"], row["mean"])
        )

    @property
    def differing(self) -> tuple[str, ...]:
        """Features in which simulated graphs differ from the observed one by more than chance."""
        return tuple(name for name, p in self.p_values.items() if beyond_chance(p, len(self.p_values)))

    @property
    def sentence(self) -> str:
        """Whether simulated graphs resemble the observed one, and where they do not, what to try."""
        if self.away:
            return f"Graphs simulated from this fit are not like the observed one: {self._numbers}."
        if not self.differing:
            least = min(self.p_values.values(), default=1.0)
            told = f"{_joined(list(self.features))} (smallest p = {least:.2g}, by {self.size} graphs)"
            return f"Graphs simulated from the model resemble this one in {told}."
        names = {str(name).partition("(")[0] for name in self.statistics.index}
        asked = [REMEDIES[name] for name in self.differing if name in REMEDIES]
        asked = asked if "edges" in names else [("edges", "edges")]
        new = dict.fromkeys(remedy for term, remedy in asked if term not in names)
        old = dict.fromkeys(term for term, _ in asked if term in names)
        tried = [*new, *(f"another decay of {term}" for term in old)]
        tried += ["covariates of the nodes (nodematch, nodecov)"] if "edges" in names else []
        return (
            f"Graphs simulated from the model differ from this one in {_joined(self.differing)} "
            f"({self._least}). What may be missing: {'; '.join(tried)}."
        )

    @property
    def _least(self) -> str:
        """The largest p-value of a feature that differs: all of them are that small."""
        return f"p <= {max(self.p_values[name] for name in self.differing):.2g}"

    @property
    def _numbers(self) -> str:
        """Statistics that are away, simulated and observed."""
        rows = self.statistics.loc[list(self.away)]
        told = [f"{name} {row['mean']:.0f} (observed {row['observed']:.0f})" for name, row in rows.iterrows()]
        return f"on average they have {some(told, 3)}"

    @property
    def problem(self) -> str:
        """What is wrong with the estimate where its graphs do not have the model's own statistics."""
        return (
            f"graphs simulated at the posterior mean are not like the observed one: {self._numbers}. Two causes are "
            "possible. The estimate is off (that of a pseudo-likelihood may be, where ties depend on each other "
            "strongly, and that of a narrow prior), though the same terms with other coefficients make such graphs. Or "
            f"the terms do not. What to do: {'' if self.by_likelihood else LIKELIHOOD}change the terms: another decay, "
            "covariates of the nodes (dfd.plots.graph_goodness(fit) shows what is off)."
        )

    def __repr__(self) -> str:
        together = ", ".join(f"{name} {p:.2g}" for name, p in self.p_values.items())
        return (
            f"{self.sentence}\n{self.size} simulated graphs; p-values of features: {together}\n"
            f"{self.statistics.round(3).to_string()}\nfeatures[name] has the table of each feature"
        )


def _joined(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
