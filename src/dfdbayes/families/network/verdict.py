"""One rule for what is said of an edge, of a difference between groups and of an effect over time.

With a Bayes factor of being there against not being there:

present
    the Bayes factor is above 10;
absent
    it is below 1/10.

Without one, by a region of practical equivalence, in which a quantity is so small that it counts as none:

present
    the 95 % interval excludes zero, and less than 95 % of the posterior lies in the region; of a quantity that has one
    sign only, at least 95 % of the posterior lies outside the region;
absent
    at least 95 % of the posterior lies in the region, and the data raised the odds of that at least threefold over the
    prior's (a prior that is narrow enough would say "absent" by itself).

Either way what is neither is inconclusive, and of chains that did not converge there is no verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from ..._util.words import LEVEL
from ...core.parameters import Space

if TYPE_CHECKING:
    from ...results.fitted import Fitted

RAISED = 3.0  # times the prior's odds
STRONG = 10.0  # a Bayes factor for an edge; its inverse speaks as strongly against it
PRESENT, ABSENT, INCONCLUSIVE = "present", "absent", "inconclusive"
NO_VERDICT = "not converged"


class Verdicts(NamedTuple):
    """What is said of each quantity, and what it rests on."""

    low: Float[np.ndarray, " k"]
    high: Float[np.ndarray, " k"]
    inside: Float[np.ndarray, " k"]
    """The posterior probability of the region."""
    prior_inside: Float[np.ndarray, " k"]
    """The prior's; NaN where the prior is not known."""
    verdict: np.ndarray


def judge(
    draws: Float[np.ndarray, "s k"],
    region: Float[np.ndarray, " k"],
    prior_draws: Float[np.ndarray, "r k"] | None,
    bayes_factor: Float[np.ndarray, " k"] | None,
    *,
    converged: bool = True,
    one_sided: bool = False,
    cannot_be_absent: Bool[np.ndarray, " k"] | bool = False,
    words: tuple[str, str] = (PRESENT, ABSENT),
) -> Verdicts:
    """Judge quantities by the module's rule.

    Parameters
    ----------
    draws : array
        Of the calibrated posterior.
    region : array
        How large each may be and still count as none.
    prior_draws : array, optional
        Of the prior; without them nothing is absent by its region.
    bayes_factor : array, optional
        Of each being there; without it the region decides.
    converged : bool
        Whether the draws are to be trusted.
    one_sided : bool
        Whether the quantities have one sign only, so that no interval includes zero.
    cannot_be_absent : array or bool
        Where the data speak for something that the model cannot express.
    words : tuple of str
        For what is there and for what is not.

    Returns
    -------
    Verdicts
    """
    low, high = interval(draws)
    inside = (np.abs(draws) <= region).mean(axis=0)
    before = np.full(len(region), np.nan) if prior_draws is None else (np.abs(prior_draws) <= region).mean(axis=0)
    if not converged:
        return Verdicts(low, high, inside, before, np.full(len(region), NO_VERDICT))
    if bayes_factor is not None:
        return Verdicts(low, high, inside, before, by_bayes_factor(bayes_factor, words))
    with np.errstate(divide="ignore", invalid="ignore"):
        raised = (before < 1) & (inside / (1 - inside) >= RAISED * before / (1 - before))
    there = inside <= 1 - LEVEL if one_sided else ((low > 0) | (high < 0)) & (inside < LEVEL)
    gone = (inside >= LEVEL) & raised & ~np.asarray(cannot_be_absent)
    verdict = np.where(gone, words[1], np.where(there, words[0], INCONCLUSIVE))
    return Verdicts(low, high, inside, before, verdict)


def by_bayes_factor(factor: Float[np.ndarray, " k"], words: tuple[str, str] = (PRESENT, ABSENT)) -> np.ndarray:
    """The verdicts that Bayes factors give."""
    return np.where(factor > STRONG, words[0], np.where(factor < 1.0 / STRONG, words[1], INCONCLUSIVE))


def interval(draws: Float[np.ndarray, "s ..."]) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the 95 % intervals of draws."""
    low, high = np.quantile(draws, [0.5 * (1 - LEVEL), 0.5 * (1 + LEVEL)], axis=0)
    return low, high


def prior_draws(fit: Fitted, name: str) -> Float[np.ndarray, "r k"] | None:
    """The entries of one parameter (of its coefficients, where it has a formula) drawn from their prior.

    None where the prior of a saved fit is not known.
    """
    if f"prior of {name}" in fit.missing or fit.model is None:
        return None
    return Space((next(p for p in fit.model.space.parameters if p.name == name),)).draw_priors(4001, 0)
