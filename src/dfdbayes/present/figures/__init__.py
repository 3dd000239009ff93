"""Pictures of data, fits and studies that any model may have, as matplotlib figures.

They compute nothing but what is drawn. Those of one family stand in its room; `dfdbayes.plots` has all of them.
"""

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
    "MOST_PAIRS",
    "answer",
    "calibration",
    "coefficients",
    "comparison",
    "correlations",
    "coverage",
    "data",
    "forecast",
    "influence",
    "intervals",
    "lattice",
    "pairs",
    "posterior",
    "predictive",
    "ratios",
    "residuals",
    "trace",
    "weights",
]
