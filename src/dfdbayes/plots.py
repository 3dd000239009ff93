"""Pictures of data, fits and studies, as matplotlib figures. They compute nothing but what is drawn.

Every function returns a `matplotlib.figure.Figure`: show it in a notebook, or write ``figure.savefig("name.png")``.
"""

from .families.graph.figure import graph_goodness
from .families.map.figure import sites
from .families.network.figure import MOST_EDGES, MOST_NODES, centrality, group_networks, network, temporal
from .present.figures import (
    MOST,
    MOST_PAIRS,
    answer,
    calibration,
    coefficients,
    comparison,
    correlations,
    coverage,
    data,
    forecast,
    influence,
    intervals,
    lattice,
    pairs,
    posterior,
    predictive,
    ratios,
    residuals,
    trace,
    weights,
)

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
