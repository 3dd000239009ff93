"""What can be asked of a fitted random graph: odds ratios of its terms, and whether simulated graphs are like it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ...results.accessor import ACCESSORS, AbstractAccessor
from ...results.graph_goodness import GraphGoodness
from ...results.regression import interval_of, require_level
from .model import graph_goodness


@ACCESSORS.register("graph")
class GraphAccessor(AbstractAccessor):
    """``fit.graph``: one observed graph.

    Examples
    --------
    >>> import dfdbayes as dfd, networkx as nx
    >>> families = nx.florentine_families_graph()
    >>> fit = dfd.fit(dfd.models.RandomGraph("edges"), families, sampler="laplace", check=False, progress=False)
    >>> bool(fit.graph.effects()["odds_ratio"]["edges"] < 1.0)
    True
    """

    fits = "random graphs (dfd.models.RandomGraph)"

    def goodness(self, size: int = 100, seed: int = 0) -> GraphGoodness:
        """Features of the graph beside those of graphs simulated at the posterior mean; see `dfd.graph_goodness`."""
        return graph_goodness(self.fit, size=size, seed=seed)

    def effects(self, interval: float = 0.95) -> pd.DataFrame:
        """What each term does to the odds of a tie, given all others; see `Fit.effects`."""
        self._warn_of_draws()
        ends, lines = require_level(interval), []
        for name, draws in self.fit.entries.items():
            low, middle, high = np.exp(np.quantile(draws, [ends[0], 0.5, ends[1]]))
            line: dict[str, Any] = {"term": name} | interval_of("coefficient", draws, ends)
            line |= {"odds_ratio": middle, "odds_ratio_low": low, "odds_ratio_high": high}
            lines.append(line | {"above_zero": float(np.mean(draws > 0.0))})
        return pd.DataFrame(lines).set_index("term")
