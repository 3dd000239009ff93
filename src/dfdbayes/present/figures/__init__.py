"""Pictures of data, fits and studies, as matplotlib figures. They compute nothing but what is drawn.

Every function returns a `matplotlib.figure.Figure`: show it in a notebook, or write ``figure.savefig("name.png")``.
"""

from ...families.graph.figure import graph_goodness
from ...families.map.figure import sites
from ...families.network.figure import MOST_EDGES, MOST_NODES, centrality, group_networks, network, temporal
from .answer import answer
from .base import MOST
from .draws import MOST_PAIRS, calibration, intervals, pairs, posterior, trace, weights
from .influence import influence
from .observed import correlations, data, lattice, predictive
from .regression import coefficients, ratios, residuals
from .series import forecast
from .studies import comparison, coverage

__all__ = [
    "MOST",
    "MOST_EDGES",
    "MOST_NODES",
    "MOST_PAIRS",
    "answer",
    "calibration",
    "centrality",
    "coefficients",
    "comparison",
    "correlations",
    "coverage",
    "data",
    "forecast",
    "graph_goodness",
    "group_networks",
    "influence",
    "intervals",
    "lattice",
    "network",
    "pairs",
    "posterior",
    "predictive",
    "ratios",
    "residuals",
    "sites",
    "temporal",
    "trace",
    "weights",
]
