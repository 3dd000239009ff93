"""What can be asked of a fitted network: its edges, nodes, groups, and what earlier values do to later ones."""

from __future__ import annotations

import pandas as pd

from ...results.accessor import ACCESSORS, AbstractAccessor
from . import evidence
from .groups import GroupDifferences, draw_graphs, factors, group_differences
from .nodes import node_table
from .temporal import effects_over_time


@ACCESSORS.register("network")
class NetworkAccessor(AbstractAccessor):
    """``fit.network``: a model with a parameter for every edge.

    Examples
    --------
    >>> import dfdbayes as dfd, pandas as pd
    >>> frame = pd.DataFrame({"tea": [0, 0, 0, 1, 1, 1] * 90, "cake": [0, 0, 1, 0, 1, 1] * 90})
    >>> fit = dfd.fit("ising-network", frame, sampler="laplace", check=False, progress=False)
    >>> fit.network.edges()["evidence"].tolist()
    ['present']
    """

    fits = "networks with edges: 'network', 'ising-network', 'poisson-graphical' and 'cmp-graphical'"

    def prepare(self) -> None:
        draw_graphs(self.fit)

    def files(self) -> dict[str, bytes]:
        """Edges, nodes, and how groups differ; of chains that did not converge edges alone, which have no verdicts."""
        tables = {"edges.csv": self.edges()}
        if self.fit.converged:
            tables["nodes.csv"] = self.nodes().rename_axis("node").reset_index()
            apart = [self.groups(factor).table.assign(factor=factor) for factor in factors(self.fit)]
            tables |= {"differences.csv": pd.concat(apart)} if apart else {}
        return {name: table.to_csv(index=False).encode() for name, table in tables.items()}

    def edges(self, odds: float = 1.0, seed: int = 0) -> pd.DataFrame:
        """What the data say about every edge; see `dfdbayes.evidence.edges`."""
        return evidence.edges(self.fit, odds, seed)

    def nodes(self) -> pd.DataFrame:
        """Strength, expected influence and predictability of every node; see `Fit.nodes`."""
        self._warn_of_draws()
        return node_table(self.fit)

    def groups(self, factor: str) -> GroupDifferences:
        """How edges differ between the levels of a factor; see `dfdbayes.group_differences`."""
        return group_differences(self.fit, factor)

    def over_time(self) -> pd.DataFrame:
        """What earlier values do to later ones; see `Fit.temporal`."""
        return effects_over_time(self.fit)
