"""Networks with a parameter for every edge, and how small an interaction must be to count as none.

For binary variables an interaction is (a multiple of) a log odds ratio, and the region is a log odds ratio within
+-0.18: odds that differ by less than a fifth, which is Cohen's d of 0.1 (Kruschke, 2018). For ordinal columns and
counts the same holds of the odds between values two standard deviations apart, which is what the two values of an even
binary column are. Graphical count models have interactions that are not negative, and one is too small to matter if a
standard deviation more of either column lowers the other's rate by less than 5 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ...core.dataset import column_summary
from ...core.model import AbstractModel
from ...core.parameters import EDGE, Parameter
from ...errors import ModelError
from .model import Pairwise

if TYPE_CHECKING:
    from ...results.fitted import Fitted

ODDS = 0.18  # log odds ratio: Cohen's d of 0.1 (Kruschke, 2018)
LOWERED = 0.05  # share by which a rate falls


def is_network(fit: Fitted) -> bool:
    """Whether the fit's model has a parameter for every edge of a graph."""
    base = _base(fit)
    return base is not None and bool(base.graph.pairs)


def varies(fit: Fitted) -> bool:
    """Whether the edges of a network depend on covariates."""
    return fit.model is not None and is_network(fit) and interaction_of(fit.model).design is not None


def _base(fit: Fitted) -> Pairwise | None:
    return fit.model.plain if isinstance(fit.model, Pairwise) else None


def network_of(fit: Fitted) -> Pairwise:
    """The fit's model, or the one whose parameters depend on covariates, if it has a parameter for every edge."""
    base = _base(fit)
    if base is None or not base.graph.pairs:
        raise ModelError(
            f"'{fit.settings['model']}' has no parameter for each edge; networks are Network, IsingNetwork, "
            "PoissonGraphical and ConwayMaxwellPoissonGraphical"
        )
    return base


def interaction_of(model: AbstractModel | None) -> Parameter:
    """The parameter that holds the edges, or what they depend on."""
    assert model is not None
    return model.space.of_role(EDGE)[0]


def of_edges(fit: Fitted, drawn: Float[np.ndarray, "s k"]) -> Float[np.ndarray, "s e"]:
    """Interactions from draws of the parameter; where they depend on covariates, at the average of the terms."""
    if fit.model is None or not fit.model.designs:
        return drawn
    return fit.model.parameter_at("interaction", drawn, *fit.model.average("interaction", fit.data))


def regions(fit: Fitted) -> Float[np.ndarray, " e"]:
    """For every edge, how large an interaction may be and still count as none."""
    model = network_of(fit)
    if not model.nonpositive_edges:
        contrast = contrasts(fit, model)
        i, j = model.graph.edges.T
        return ODDS / (contrast[i] * contrast[j])
    spread = np.sqrt(column_summary(fit.data)["variance"].to_numpy())
    i, j = model.graph.edges.T
    return -np.log1p(-LOWERED) / np.maximum(np.maximum(spread[i], spread[j]), 1e-12)


def contrasts(fit: Fitted, model: Pairwise) -> Float[np.ndarray, " d"]:
    """The difference of each column's edge statistics for which log odds ratios are told; see `Kind.contrast`."""
    s = model.edge_statistics(fit.data.rows)
    mean = np.average(s, axis=1, weights=fit.data.counts)
    sd = np.sqrt(np.average((s - mean[:, None]) ** 2, axis=1, weights=fit.data.counts))
    return np.array([kind.contrast(float(own)) for kind, own in zip(model.kinds, sd, strict=True)])


def between_two_values(fit: Fitted) -> bool:
    """Whether the log odds ratios of `contrasts` are those between the two values of every column."""
    model = network_of(fit)
    return np.array_equal(contrasts(fit, model), model.distances)
