"""Which edges of a network are there: present, absent, or not to be told from these data.

Where edges may have either sign and the calibration is by curvature (the default), the verdict is by the inclusion
Bayes factor, which says how much the data raise the odds that the edge is there, all graphs considered together (see
`dfdbayes.families.network.selection`):

present
    the Bayes factor is above 10;
absent
    it is below 1/10;
inconclusive
    neither: the data cannot tell.

Of chains that did not converge there is no verdict: all edges are "not converged".

Elsewhere (counts whose interactions only lower rates; other calibrations) there is no such Bayes factor, and the
verdicts are by a region of practical equivalence, how small an interaction must be to count as none (see
`dfdbayes.families.network.rope`):

present
    the 95 % interval excludes zero, and less than 95 % of the posterior lies inside the region; for counts, at least
    95 % of the posterior lies outside it;
absent
    at least 95 % of the posterior lies inside the region, and the data raised the odds of that at least threefold over
    the prior's (a prior that is narrow enough would say "absent" by itself);
inconclusive
    neither.

Edges that depend on covariates (``interaction="~ group"``) are shown at the average of the formula's terms over the
data; `dfdbayes.group_differences` tells the groups of a factor apart, by the same rule (see
`dfdbayes.families.network.verdict`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..._util.words import LEVEL
from .model import Pairwise
from .rope import LOWERED, ODDS, between_two_values, interaction_of, is_network, network_of, of_edges, regions, varies
from .selection import MAX_EDGES_TOGETHER, chooses, select
from .verdict import ABSENT, INCONCLUSIVE, NO_VERDICT, PRESENT, RAISED, STRONG, judge, prior_draws

if TYPE_CHECKING:
    from ...results.fitted import Fitted

__all__ = [
    "ABSENT", "INCONCLUSIVE", "LEVEL", "NO_VERDICT", "PRESENT", "STRONG", "Evidence", "chooses", "edges", "is_network",
    "network_of", "regions", "rule", "varies",
]  # fmt: skip


class Evidence(pd.DataFrame):
    """A table of edges that a notebook shows with its network; what is taken out of it is a plain table."""

    of: Fitted

    @classmethod
    def made(cls, table: pd.DataFrame, fit: Fitted) -> Evidence:
        found = cls(table)
        found.attrs = dict(table.attrs)
        object.__setattr__(found, "of", fit)
        return found

    def _repr_html_(self) -> str:
        from ...present.notebook import shown

        fit, table = self.of, pd.DataFrame(self)
        narrative: Any = fit.narrative
        title = f"Edges of {fit.settings['model']}, fitted to {fit.data.source}"
        return shown(title, fit.sentences[0], table, narrative.figure(fit, self), "The network", rest="this table")


def edges(fit: Fitted, odds: float = 1.0, seed: int = 0) -> pd.DataFrame:
    """A row for every edge of a network: estimate, interval, evidence, and what it rests on.

    Columns: ``from`` and ``to`` (names of columns), ``mean``, ``low`` and ``high`` (95 % interval) of the interaction,
    ``sign`` (of the association: +1, or -1 where large values of one go with small values of the other),
    ``bayes_factor`` (the inclusion Bayes factor: how much the data raise the odds that the edge is there),
    ``inclusion`` (the probability that it is there, all graphs considered, each edge having the prior ``odds``; both
    NaN where graphs cannot be drawn), ``evidence`` (the verdict), ``region`` (values up to it are too small to matter),
    ``inside`` (posterior probability of that) and ``prior_inside`` (the prior's, NaN where the priors are not known).
    Strongest edges first. Edges that depend on covariates are those at the average of the formula's terms over the
    data. In ``attrs``, ``expected_false_edges`` is how many of the edges called present are expected not to be there.
    """
    model = network_of(fit)
    assert fit.model is not None
    draws = of_edges(fit, fit.groups["posterior"].arrays["interaction"].reshape(-1, interaction_of(fit.model).size))
    unknown = np.full(len(model.graph.pairs), np.nan)
    chosen = select(fit, odds, seed) if chooses(fit) and fit.converged else None
    factor, inclusion = (unknown, unknown) if chosen is None else (chosen.bayes_factor, chosen.inclusion)
    region, beforehand = regions(fit), prior_draws(fit, "interaction")
    judged = judge(
        draws, region, None if beforehand is None else of_edges(fit, beforehand),
        None if chosen is None else factor, converged=fit.converged, one_sided=model.nonpositive_edges,
        cannot_be_absent=_beyond(fit, model),
    )  # fmt: skip
    i, j = model.graph.edges.T
    names = np.array(fit.data.columns, dtype=object)
    mean = draws.mean(axis=0)
    table = pd.DataFrame(
        {
            "from": names[i],
            "to": names[j],
            "mean": mean,
            "low": judged.low,
            "high": judged.high,
            "sign": np.sign(model.sign * mean).astype(int),
            "bayes_factor": factor,
            "inclusion": inclusion,
            "evidence": judged.verdict,
            "region": region,
            "inside": judged.inside,
            "prior_inside": judged.prior_inside,
        }
    )
    table = table.iloc[np.argsort(-np.abs(mean), kind="stable")].reset_index(drop=True)
    table.attrs = {"expected_false_edges": float((1.0 - inclusion)[judged.verdict == PRESENT].sum())}
    return Evidence.made(table, fit)


def as_text(factor: float) -> str:
    """A Bayes factor as people read it: beyond a thousand its size means nothing more."""
    if np.isnan(factor):
        return "unknown"
    return "> 1000" if factor > 1000.0 else "< 0.001" if factor < 0.001 else f"{factor:.3g}"


def edges_first(fit: Fitted, summary: pd.DataFrame) -> pd.DataFrame:
    """A summary for people: of a network the edges come first, the strongest on top, with what is said of them."""
    if not is_network(fit):
        return summary
    own = entries_of_edges(fit)
    own = summary["mean"].reindex(own).abs().sort_values(ascending=False, kind="stable").index.tolist()
    found = summary.loc[[*own, *(name for name in summary.index if name not in set(own))]]
    if varies(fit):
        return found
    verdicts = edges(fit)
    names = [f"interaction[{a},{b}]" for a, b in zip(verdicts["from"], verdicts["to"], strict=True)]
    told = pd.DataFrame({"evidence": verdicts["evidence"].to_numpy()}, index=names)
    if chooses(fit) and fit.converged:
        told.insert(0, "Bayes factor", [as_text(factor) for factor in verdicts["bayes_factor"]])
    return found.join(told).fillna(dict.fromkeys(told.columns, ""))


def entries_of_edges(fit: Fitted) -> list[str]:
    """The edges of a network, or the coefficients of their formula, as the summary names them."""
    assert fit.model is not None
    return [f"interaction[{label}]" for label in interaction_of(fit.model).labels]


def expected(number: int, false: float) -> str:
    """How many of those found are expected to be wrong, to go on after their number; nothing where it is not known."""
    if not number or np.isnan(false):
        return ""
    how = f"{false:.1f}" if false >= 0.05 else "fewer than 0.1"
    return f"; {how} of these {'are' if number > 1 else 'is'} expected to be wrong"


def _beyond(fit: Fitted, model: Pairwise) -> np.ndarray:
    """Edges of a count network whose columns rise together, which the model cannot express: it only lowers rates."""
    i, j = model.graph.edges.T
    if not model.nonpositive_edges:
        return np.zeros(len(i), bool)
    rows = fit.data.rows.astype(float)
    centred = rows - np.average(rows, axis=0, weights=fit.data.counts)
    spread = np.sqrt(np.average(centred**2, axis=0, weights=fit.data.counts))
    together = np.average(centred[:, i] * centred[:, j], axis=0, weights=fit.data.counts)
    return together / np.maximum(spread[i] * spread[j], 1e-12) > 3.0 / np.sqrt(max(fit.data.n, 1))


def rule(fit: Fitted) -> str:
    """The definition of the verdicts for this network, in plain English."""
    where = ""
    if varies(fit):
        where = "Edges depend on covariates here; they are shown at the average of the formula's terms over the data. "
    return where + (_by_factor(fit) if chooses(fit) else _by_region(fit))


def _by_factor(fit: Fitted) -> str:
    many = len(network_of(fit).graph.pairs) > MAX_EDGES_TOGETHER
    among = "each edge taken alone, all others being there" if many else "all graphs considered together"
    return (
        f"Present: the inclusion Bayes factor is above {STRONG:.0f}, that is, the data raise the odds that "
        f"the edge is there more than {STRONG:.0f}-fold ({among}). Absent: it is below "
        f"1/{STRONG:.0f}. Inconclusive: between; the data cannot tell. "
        f"{slab(fit, 'an edge is there, its')}"
    )


def slab(fit: Fitted, where: str) -> str:
    """What is assumed beforehand of an interaction, or of a difference, where there is one."""
    far = "" if between_two_values(fit) else " between values two standard deviations apart in both columns"
    return f"Where {where} log odds ratio{far} is standard normal beforehand."


def _by_region(fit: Fitted) -> str:
    model, region = network_of(fit), regions(fit)
    size = f"{region.min():.3g}" if np.ptp(region) < 1e-12 else f"{region.min():.3g} to {region.max():.3g}"
    if model.nonpositive_edges:
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
        far = "" if between_two_values(fit) else " between values two standard deviations apart in both columns"
        none = (
            f"An interaction counts as none if its log odds ratio{far} lies within ±{ODDS} (interactions within "
            f"±{size}), which is odds that differ by less than a fifth."
        )
        there = (
            f"the calibrated {LEVEL:.0%} interval excludes zero, and less than {LEVEL:.0%} of the calibrated posterior "
            "counts as none"
        )
    return (
        f"{none} Present: {there}. Absent: at least {LEVEL:.0%} of the calibrated posterior counts as none, and the "
        f"data raised the odds of that at least {RAISED:.0f}-fold over the prior's. Inconclusive: neither; the data "
        "cannot tell."
    )
