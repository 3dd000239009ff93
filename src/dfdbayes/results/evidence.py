"""Which edges of a network are there: present, absent, or not to be told from these data.

The verdicts come from the calibrated posterior. They need a *region of practical equivalence*: how small an interaction
must be to count as none.

For binary variables an interaction is (a multiple of) a log odds ratio, and the region is a log odds ratio within
+-0.18: odds that differ by less than a fifth, which is Cohen's d of 0.1 (Kruschke, 2018). For ordinal columns and
counts the same holds of the odds between values two standard deviations apart, which is what the two values of an even
binary column are. The paper's counts have interactions that are not negative, and one is too small to matter if a
standard deviation more of either column lowers the other's rate by less than 5 %.

present
    the 95 % interval excludes zero; for counts, at least 95 % of the posterior lies outside the region;
absent
    at least 95 % of the posterior lies inside the region, and the data raised the odds of that at least threefold over
    the prior's (a prior that is narrow enough would say "absent" by itself);
inconclusive
    neither.

An edge that is certainly not zero and certainly too small to matter is absent.

Edges that depend on covariates (``interaction="~ group"``) are shown at the average of the formula's terms over the
data; `dfdbayes.group_differences` tells the groups of a factor apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from jaxtyping import Float

from ..data import glance
from ..errors import ModelError
from ..models.base import AbstractModel
from ..models.network import Pairwise
from ..models.parameters import Parameter, Space
from ..models.regression import Regression

if TYPE_CHECKING:
    from .fit_result import Fit

LEVEL = 0.95
ODDS = 0.18  # log odds ratio
LOWERED = 0.05  # share by which a rate falls
RAISED = 3.0  # times the prior's odds, a Bayes factor
PRESENT, ABSENT, INCONCLUSIVE = "present", "absent", "inconclusive"


def is_network(fit: Fit) -> bool:
    """Whether the fit's model has a parameter for every edge of a graph."""
    base = _base(fit)
    return base is not None and bool(base.graph.pairs)


def varies(fit: Fit) -> bool:
    """Whether the edges of a network depend on covariates."""
    return is_network(fit) and isinstance(fit.model, Regression) and "interaction" in fit.model.varying


def _base(fit: Fit) -> Pairwise | None:
    found = fit.model.base if isinstance(fit.model, Regression) else fit.model
    return found if isinstance(found, Pairwise) else None


def network_of(fit: Fit) -> Pairwise:
    """The fit's model, or the one whose parameters depend on covariates, if it has a parameter for every edge."""
    base = _base(fit)
    if base is None or not base.graph.pairs:
        raise ModelError(
            f"'{fit.settings['model']}' has no parameter for each edge; networks are Network, IsingNetwork, "
            "PoissonGraphical and ConwayMaxwellPoissonGraphical"
        )
    return base


def _interaction(model: AbstractModel) -> Parameter:
    return next(p for p in model.space.parameters if p.name == "interaction")


def _of_edges(fit: Fit, drawn: Float[np.ndarray, "s k"]) -> Float[np.ndarray, "s e"]:
    """Interactions from draws of the parameter; where they depend on covariates, at the average of the terms."""
    if not isinstance(fit.model, Regression):
        return drawn
    return fit.model.at("interaction", drawn, *fit.model.average("interaction", fit.data))


def regions(fit: Fit) -> Float[np.ndarray, " e"]:
    """For every edge, how large an interaction may be and still count as none."""
    model = network_of(fit)
    if not model.lowers:
        reach = _reaches(fit, model)
        i, j = model.graph.edges.T
        return ODDS / (reach[i] * reach[j])
    spread = np.sqrt(glance.columns(fit.data)["variance"].to_numpy())
    i, j = model.graph.edges.T
    return -np.log1p(-LOWERED) / np.maximum(np.maximum(spread[i], spread[j]), 1e-12)


def _reaches(fit: Fit, model: Pairwise) -> Float[np.ndarray, " d"]:
    """How far a column goes: from one value of a binary one to the other, elsewhere two standard deviations."""
    scores = model.scores(fit.data.rows)
    mean = np.average(scores, axis=1, weights=fit.data.counts)
    spread = np.sqrt(np.average((scores - mean[:, None]) ** 2, axis=1, weights=fit.data.counts))
    ranges = [np.ptp(kind.levels) if kind.name == "binary" else np.nan for kind in model.kinds]
    return np.where(np.isnan(ranges), np.maximum(2.0 * spread, 1e-6), ranges)


class Evidence(pd.DataFrame):
    """A table of edges that a notebook shows with its network; what is taken out of it is a plain table."""

    of: Fit

    @classmethod
    def made(cls, table: pd.DataFrame, fit: Fit) -> Evidence:
        found = cls(table)
        found.attrs = dict(table.attrs)
        object.__setattr__(found, "of", fit)
        return found

    def _repr_html_(self) -> str:
        from ..report.notebook import of_evidence  # a doorway down the road: what shows a result knows it

        return of_evidence(self)


def edges(fit: Fit) -> pd.DataFrame:
    """A row for every edge of a network: estimate, interval, evidence, and what it rests on.

    Columns: ``from`` and ``to`` (names of columns), ``mean``, ``low`` and ``high`` (95 % interval) of the interaction,
    ``sign`` (of the association: +1, or -1 where large values of one go with small values of the other), ``region``
    (values up to it count as none), ``inside`` (posterior probability of the region), ``prior_inside`` (the prior's,
    NaN where the priors are not known) and ``evidence``. Strongest edges first. Edges that depend on covariates are
    those at the average of the formula's terms over the data.
    """
    model = network_of(fit)
    assert fit.model is not None
    draws = _of_edges(fit, fit.groups["posterior"].arrays["interaction"].reshape(-1, _interaction(fit.model).size))
    region = regions(fit)
    low, high = np.quantile(draws, [0.5 * (1 - LEVEL), 0.5 * (1 + LEVEL)], axis=0)
    inside = (np.abs(draws) <= region).mean(axis=0)
    known = "prior of interaction" not in fit.missing
    before = _prior_inside(fit, region) if known else np.full(len(region), np.nan)
    there = inside <= 1 - LEVEL if model.lowers else (low > 0) | (high < 0)
    gone = (inside >= LEVEL) & raised(inside, before) & ~_beyond(fit, model)
    undecided = np.where(there & (inside < LEVEL), PRESENT, INCONCLUSIVE)
    i, j = model.graph.edges.T
    names = np.array(fit.data.columns, dtype=object)
    mean = draws.mean(axis=0)
    table = pd.DataFrame(
        {
            "from": names[i],
            "to": names[j],
            "mean": mean,
            "low": low,
            "high": high,
            "sign": np.sign(model.sign * mean).astype(int),
            "region": region,
            "inside": inside,
            "prior_inside": before,
            "evidence": np.where(gone, ABSENT, undecided),
        }
    )
    return Evidence.made(table.iloc[np.argsort(-np.abs(mean), kind="stable")].reset_index(drop=True), fit)


def _beyond(fit: Fit, model: Pairwise) -> np.ndarray:
    """Edges of a count network whose columns rise together, which the model cannot express: it only lowers rates."""
    i, j = model.graph.edges.T
    if not model.lowers:
        return np.zeros(len(i), bool)
    rows = fit.data.rows.astype(float)
    centred = rows - np.average(rows, axis=0, weights=fit.data.counts)
    spread = np.sqrt(np.average(centred**2, axis=0, weights=fit.data.counts))
    together = np.average(centred[:, i] * centred[:, j], axis=0, weights=fit.data.counts)
    return together / np.maximum(spread[i] * spread[j], 1e-12) > 3.0 / np.sqrt(max(fit.data.n, 1))


def _prior_inside(fit: Fit, region: np.ndarray) -> Float[np.ndarray, " e"]:
    assert fit.model is not None
    draws = _of_edges(fit, Space((_interaction(fit.model),)).draw_priors(4001, 0))
    return (np.abs(draws) <= region).mean(axis=0)


def raised(inside: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Whether the odds of the region grew enough; not if the prior leaves nothing outside, or is not known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return (before < 1) & (inside / (1 - inside) >= RAISED * before / (1 - before))


def rule(fit: Fit) -> str:
    """The definition of the verdicts for this network, in plain English."""
    model = network_of(fit)
    region = regions(fit)
    if model.lowers:
        size = f"{region.min():.3g}" if np.ptp(region) < 1e-12 else f"{region.min():.3g} to {region.max():.3g}"
        none = (
            f"An interaction counts as none if a standard deviation more of either column lowers the other's rate by "
            f"less than {LOWERED:.0%} (interactions up to {size}, by the columns' spread)."
        )
        none += (
            " Interactions of counts can only lower rates; columns that clearly rise together (a correlation above "
            "three standard errors) are therefore inconclusive, never absent: this model cannot express such an edge."
        )
        there = f"at least {LEVEL:.0%} of the calibrated posterior lies above that"
    else:
        size = f"±{region[0]:.3g}" if np.ptp(region) < 1e-12 else f"±{region.min():.3g} to ±{region.max():.3g}"
        far = "" if model.domain.is_binary else " between values two standard deviations apart in both columns"
        none = (
            f"An interaction counts as none if its log odds ratio{far} lies within ±{ODDS} (interactions within "
            f"{size}), which is odds that differ by less than a fifth."
        )
        there = f"the calibrated {LEVEL:.0%} interval excludes zero, and the edge is not absent"
    where = ""
    if varies(fit):
        where = "Edges depend on covariates here; they are shown at the average of the formula's terms over the data. "
    none = f"{where}{none}"
    return (
        f"{none} Present: {there}. Absent: at least {LEVEL:.0%} of the calibrated posterior counts as none, and the "
        f"data raised the odds of that at least {RAISED:.0f}-fold over the prior's. Inconclusive: neither; the data "
        "cannot tell."
    )
