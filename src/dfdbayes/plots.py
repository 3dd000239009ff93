"""Pictures of data, fits and studies, as matplotlib figures. They compute nothing but what is drawn.

Every function returns a `matplotlib.figure.Figure`: show it in a notebook, or write ``figure.savefig("name.png")``.
"""

from .families.graph.figure import graph_goodness
from .families.map.figure import sites
from .families.network.figure import MOST_EDGES, MOST_NODES, centrality, group_networks, network, temporal
from .present import figures
from .present.figures import *  # noqa: F403

__all__ = [
    "MOST_EDGES",
    "MOST_NODES",
    "centrality",
    "graph_goodness",
    "group_networks",
    "network",
    "sites",
    "temporal",
]
__all__ += figures.__all__
