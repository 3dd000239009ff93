"""Differences between groups: edges of a network that depend on a factor, compared level by level.

The verdicts are of the same kind as those on edges (see `evidence`):

different
    the Bayes factor of a difference is above 10;
alike
    it is below 1/10;
inconclusive
    neither.

The Bayes factor says how much the data raise the odds that the edge differs between the two levels, all edges
considered together, a difference having the slab that an interaction has (see `selection`). Where there is none (counts
whose interactions are not negative; other calibrations than by curvature) the verdicts are by the region of practical
equivalence: different where the 95 % interval of the difference excludes zero and less than 95 % of the posterior lies
inside the region, and alike where at least 95 % of it does and the data raised the odds of that at least threefold. The
Bayes factor is then Savage and Dickey's: the prior's density of no difference over the posterior's, of the normal
approximation on the scale of the interactions' link.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import linalg, special

from ..._util.words import LEVEL
from ...errors import ModelError
from . import evidence
from .rope import interaction_of
from .selection import select
from .verdict import NO_VERDICT, RAISED, STRONG, judge, prior_draws

if TYPE_CHECKING:
    from ...results.fitted import Fitted

DIFFERENT, ALIKE, INCONCLUSIVE = "different", "alike", evidence.INCONCLUSIVE


@dataclass(frozen=True)
class GroupDifferences:
    """How the edges of a network differ between the levels of a factor.

    Attributes
    ----------
    factor : str
    levels : tuple of str
        The reference first.
    groups : pandas.DataFrame
        A row for every edge (its index ``from`` and ``to``), a column for every level: posterior means of interactions.
        Other terms of the formula are at their average over the data.
    table : pandas.DataFrame
        A row for every edge and pair of levels: ``from``, ``to``, ``group`` and ``reference`` (levels),
        ``in_group`` and ``in_reference`` (posterior means of the interaction), ``difference``, ``low`` and ``high``
        (calibrated 95 % interval), ``region`` (differences up to it count as none), ``inside`` (posterior probability
        of that) and ``prior_inside``, ``bayes_factor`` (of a difference against none), ``probability`` (of a
        difference, as likely as not beforehand; both NaN where they are not known) and ``verdict``. The largest
        differences first.
    statistic, freedom, p_value : float, int, float
        A Wald test that no edge differs between any levels, with the calibrated covariance: chi-squared, its degrees
        of freedom, and how probable a larger one is if none differs (NaN if a group is smaller than its network).
    """

    factor: str
    levels: tuple[str, ...]
    groups: pd.DataFrame
    table: pd.DataFrame
    statistic: float
    freedom: int
    p_value: float

    @property
    def test(self) -> str:
        """The overall test as a sentence."""
        said = "p < 0.0001" if self.p_value < 1e-4 else f"p = {self.p_value:.2g}"
        return (
            f"Wald test that no edge differs between the levels of {self.factor}: chi-squared = {self.statistic:.1f} "
            f"on {self.freedom} degrees of freedom, {said}"
        )

    @property
    def expected_false(self) -> float:
        """How many of the edges called different are expected not to be."""
        return float((1.0 - self.table["probability"])[self.table["verdict"] == DIFFERENT].sum())

    def __str__(self) -> str:
        count = self.table["verdict"].value_counts()
        if NO_VERDICT in count:
            return f"Of {len(self.table)} comparisons of edges there is no verdict: the chains did not converge."
        told = ", ".join(f"{count[kind]} {kind}" for kind in (ALIKE, INCONCLUSIVE) if kind in count)
        found = int(count.get(DIFFERENT, 0))
        first = f"{found or 'none is'} {DIFFERENT}{evidence.expected(found, self.expected_false)}"
        return f"Of {len(self.table)} comparisons of edges, {first}{'; ' * bool(told)}{told}. {self.test}."


def factors(fit: Fitted) -> tuple[str, ...]:
    """The factors whose levels `group_differences` can compare."""
    if fit.model is None or not evidence.varies(fit):
        return ()
    return fit.model.design("interaction").factors


def draw_graphs(fit: Fitted) -> None:
    """Draw the graphs that the answer of a network rests on, so that printing it has nothing to compute."""
    if not evidence.is_network(fit) or not evidence.chooses(fit):
        return
    select(fit)
    for factor in factors(fit):
        compared = _Compared.of(fit, factor)
        for a, b in combinations(range(len(compared.levels)), 2):
            select(fit, terms=compared.terms[b] - compared.terms[a])


def group_differences(fit: Fitted, factor: str) -> GroupDifferences:
    """Compare the edges of a network between the levels of a factor, edge by edge and all together.

    Parameters
    ----------
    fit : Fitted
        Of a network whose edges depend on the factor: ``dfd.fit("ising-network", frame, formula="~ group",
        interaction="~ group")``.
    factor : str
        The column whose levels are compared.

    Returns
    -------
    GroupDifferences

    Notes
    -----
    Estimates and intervals come from the draws, Bayes factors from the calibrated normal approximation. The overall
    test uses the estimator's own covariance, without the prior, times n / (n - p) for the n rows of the
    smallest group and p parameters a group (as HC1 does): otherwise it would reject too often. For calibrations with
    one weight it uses mean and covariance of the draws, which a prior about zero makes conservative.

    Examples
    --------
    >>> import dfdbayes as dfd, pandas as pd
    >>> together = pd.DataFrame({"tea": [0, 0, 0, 1, 1, 1] * 200, "cake": [0, 0, 1, 0, 1, 1] * 200, "group": "old"})
    >>> apart = pd.DataFrame({"tea": [0, 0, 1, 1] * 300, "cake": [0, 1, 0, 1] * 300, "group": "young"})
    >>> frame = pd.concat([together, apart])
    >>> fit = dfd.fit("ising-network", frame, formula="~ group", interaction="~ group", sampler="laplace",
    ...               check=False, progress=False)
    >>> found = dfd.group_differences(fit, "group")
    >>> found.table[["group", "reference", "verdict"]].values.tolist()
    [['young', 'old', 'different']]
    """
    compared = _Compared.of(fit, factor)
    names, network = np.array(fit.data.columns, dtype=object), evidence.network_of(fit)
    i, j = network.graph.edges.T
    ends = {"from": names[i], "to": names[j]}
    index = pd.MultiIndex.from_arrays(list(ends.values()), names=list(ends))
    groups = pd.DataFrame(compared.draws.mean(axis=0).T, index, list(compared.levels))
    parts = [pd.DataFrame(ends | compared.pair(a, b)) for a, b in combinations(range(len(compared.levels)), 2)]
    table = pd.concat(parts, ignore_index=True)
    order = np.argsort(-np.abs(table["difference"]), kind="stable")
    return GroupDifferences(factor, compared.levels, groups, table.iloc[order].reset_index(drop=True), *compared.wald())


@dataclass(frozen=True)
class _Compared:
    """What all comparisons need: the factor's terms at each level, and draws of the edges there, before and after."""

    fit: Fitted
    levels: tuple[str, ...]
    smallest: float
    """How many observations the smallest group has."""
    terms: Float[np.ndarray, "l q"]
    draws: Float[np.ndarray, "s l e"]
    before: Float[np.ndarray, "s l e"] | None
    coefficients: Float[np.ndarray, "s k"] | None
    """The prior's; None, as `before`, where the prior is not known."""
    mean: Float[np.ndarray, " k"]
    covariance: Float[np.ndarray, "k k"]

    @classmethod
    def of(cls, fit: Fitted, factor: str) -> _Compared:
        model = fit.model
        if model is None or not evidence.varies(fit):
            raise ModelError(
                "this fit has no edges that depend on a factor. What to do: fit a network with a formula for its edges "
                "and its nodes: dfd.fit('network', frame, formula='~ group', interaction='~ group'). A fit from "
                "a file needs its model: dfd.load(path, model=fit.model)."
            )
        levels, own, at = model.design("interaction").of_levels(factor)
        average, offset = model.average("interaction", fit.data)
        terms = np.repeat(average[None], len(levels), axis=0)
        terms[:, own] = at
        assert fit.data.given is not None
        first = model.space.predictor("interaction").first
        held = np.abs(fit.data.given[:, None, first + np.array(own)] - at).max(axis=2) < 1e-9
        known = prior_draws(fit, "interaction")
        drawn = fit.groups["posterior"].arrays["interaction"].reshape(-1, interaction_of(fit.model).size)

        def of_levels(coefficients: np.ndarray) -> np.ndarray:
            return np.stack([model.parameter_at("interaction", coefficients, row, offset) for row in terms], axis=1)

        normal = _normal(fit, drawn)
        smallest = float((fit.data.observations @ held).min())
        before = None if known is None else of_levels(known)
        return cls(fit, tuple(map(str, levels)), smallest, terms, of_levels(drawn), before, known, *normal)

    def contrast(self, a: int, b: int) -> Float[np.ndarray, "e k"]:
        """What gives the difference of level b from level a on the link's scale, for every edge."""
        return np.kron(self.terms[b] - self.terms[a], np.eye(self.draws.shape[2]))

    def pair(self, a: int, b: int) -> dict[str, Any]:
        """The columns of the table for level b against level a."""
        difference = self.draws[:, b] - self.draws[:, a]
        region, factor = evidence.regions(self.fit), None
        if self.fit.converged and evidence.chooses(self.fit):
            factor = select(self.fit, terms=self.terms[b] - self.terms[a]).bayes_factor
        before = None if self.before is None else self.before[:, b] - self.before[:, a]
        judged = judge(
            difference, region, before, factor, converged=self.fit.converged, words=(DIFFERENT, ALIKE)
        )  # fmt: skip
        if factor is None:
            factor = self.bayes_factor(a, b) if self.fit.converged else np.full(len(region), np.nan)
        return {
            "group": self.levels[b],
            "reference": self.levels[a],
            "in_group": self.draws[:, b].mean(axis=0),
            "in_reference": self.draws[:, a].mean(axis=0),
            "difference": difference.mean(axis=0),
            "low": judged.low,
            "high": judged.high,
            "region": region,
            "inside": judged.inside,
            "prior_inside": judged.prior_inside,
            "bayes_factor": factor,
            "probability": special.expit(np.log(factor)),
            "verdict": judged.verdict,
        }

    def bayes_factor(self, a: int, b: int) -> Float[np.ndarray, " e"]:
        """The prior's density of no difference over the calibrated normal approximation's; NaN without a prior."""
        if self.coefficients is None:
            return np.full(self.draws.shape[2], np.nan)
        contrast = self.contrast(a, b)
        sd = np.sqrt(np.einsum("ek,kl,el->e", contrast, self.covariance, contrast))
        after = -0.5 * (contrast @ self.mean / sd) ** 2 - np.log(np.sqrt(2.0 * np.pi) * sd)
        with np.errstate(over="ignore"):
            return np.exp(np.log(self._prior_density(contrast, self.coefficients)) - after)

    def _prior_density(
        self, contrast: Float[np.ndarray, "e k"], coefficients: Float[np.ndarray, "s k"]
    ) -> Float[np.ndarray, " e"]:
        """Of contrasts at zero: the mean density of what the last coefficient must be, given draws of the others."""
        prior, found = interaction_of(self.fit.model).prior, []
        for line in contrast:
            last = int(np.flatnonzero(line)[-1])
            others = np.where(np.arange(len(line)) == last, 0.0, line)
            needed = np.array(coefficients)
            needed[:, last] = -(coefficients @ others) / line[last]
            with jax.numpy_rank_promotion("allow"):
                density = np.exp(np.asarray(prior.log_prob(needed))[:, last])
            found.append(density.mean() / abs(line[last]))
        return np.array(found)

    def wald(self) -> tuple[float, int, float]:
        """Statistic, degrees of freedom and p-value of no difference anywhere."""
        shape, place = self.fit.calibration.curvature, _places(self.fit)
        centre, covariance = self.mean, self.covariance
        if shape is not None:
            inverse = linalg.pinvh(shape.information)
            centre, covariance = (shape.centre - inverse @ shape.pull)[place], inverse[np.ix_(place, place)]
        contrast = np.concatenate([self.contrast(0, b) for b in range(1, len(self.levels))])
        away = contrast @ centre
        statistic = float(away @ linalg.solve(contrast @ covariance @ contrast.T, away, assume_a="pos"))
        if shape is not None:
            statistic *= max(0.0, 1.0 - len(shape.centre) / len(self.levels) / self.smallest)
        return statistic, len(away), float(special.chdtrc(len(away), statistic)) if statistic > 0 else np.nan


def _places(fit: Fitted) -> np.ndarray:
    """Where the coefficients of the edges stand among all parameters."""
    assert fit.model is not None
    named = fit.model.space.unflatten(np.arange(fit.model.space.size))
    return named["interaction"]


def _normal(fit: Fitted, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the coefficients of the edges: the calibration's own, or those of the draws."""
    shape, place = fit.calibration.curvature, _places(fit)
    if shape is None:
        return drawn.mean(axis=0), np.atleast_2d(np.cov(drawn.T))
    mean = shape.centre + shape.covariance @ (shape.force - shape.pull)
    return mean[place], shape.covariance[np.ix_(place, place)]


def rule(fit: Fitted) -> str:
    """The definition of the verdicts in plain English."""
    if evidence.chooses(fit):
        told = (
            f"Different: the Bayes factor of a difference is above {STRONG:.0f}, that is, the data raise the "
            f"odds that the edge differs more than {STRONG:.0f}-fold (all edges considered together). "
            f"Alike: it is below 1/{STRONG:.0f}. Inconclusive: between; the data cannot tell. "
        )
        return told + evidence.slab(fit, "an edge differs, the difference's")
    region = evidence.regions(fit)
    size = f"{region.min():.3g}" if np.ptp(region) < 1e-12 else f"{region.min():.3g} to {region.max():.3g}"
    return (
        f"Different: the calibrated {LEVEL:.0%} interval of the difference excludes zero, and less than {LEVEL:.0%} of "
        f"its calibrated posterior counts as none. Alike: at least {LEVEL:.0%} of it does (lies within ±{size}, "
        "as small as an interaction that counts as none), and the data raised the odds of that at least "
        f"{RAISED:.0f}-fold over the prior's. Inconclusive: neither; the data cannot tell. The Bayes factor "
        "of a difference is the prior's density of no difference over that of the calibrated normal approximation "
        "(Savage and Dickey); above 1 it speaks for a difference. Comparisons are made one by one: among many, some "
        "seem different by chance, which the overall test takes into account."
    )
