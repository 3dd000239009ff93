"""Ising and Potts models: how much neighbours are alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..._util.words import Estimate
from ...core.minimise import Outcome
from ...core.narrative import Narrative
from ...core.parameters import NODE

if TYPE_CHECKING:
    from ...results.fitted import Fitted

CLEAR_IN_ERRORS = 2.0  # about the 95 % that all intervals have


UNDECIDED = "Neither of the two values is clearly favoured by itself"


class _Likeness(NamedTuple):
    """How many pairs of neighbours are alike.

    ``score`` is how far that is from ``chance``, what sites that know nothing of each other would give, in the standard
    errors that it would have among these.
    """

    share: float
    chance: float
    score: float

    @property
    def words(self) -> str:
        digits = int(100 * self.share + 0.5) == int(100 * self.chance + 0.5) and abs(self.score) > CLEAR_IN_ERRORS
        share, chance = (f"{100 * part:.{1 if digits else 0}f} %" for part in (self.share, self.chance))
        return f"{share} of neighbouring pairs are alike, and independent sites would give {chance}"


class LatticeNarrative(Narrative):
    """How much neighbours are alike."""

    editable = False

    def plain(self, fit: Fitted) -> list[str]:
        return neighbours(fit)


def neighbours(fit: Fitted) -> list[str]:
    """What one neighbour does to the odds of a site, where data and not the prior tell it; else what data show."""
    assert fit.model is not None
    heat, found = Estimate.of(fit, "temperature").inside, _likeness(fit)
    if found.score < CLEAR_IN_ERRORS:
        rarer, of_prior = found.score < -CLEAR_IN_ERRORS, _is_of_prior(fit)
        said = "neighbours differ more often" if rarer else "the data do not show that neighbours tend to be alike"
        of = (
            "is the prior's, and says nothing of the data" if of_prior else "says nothing of how neighbours go together"
        )
        told = f"{found.words}: {said}. This model knows likeness alone, and its temperature ({heat}) {of}."
    elif _is_of_prior(fit):
        told = (
            f"Neighbouring sites tend to be alike: {found.words}. How strongly is the prior's word as much as the "
            f"data's (temperature {heat})."
        )
    else:
        told = f"Neighbouring sites tend to be alike (temperature {heat}): {_odds(fit)}."
    return [told, *_intercept(fit)]


def _odds(fit: Fitted) -> str:
    assert fit.model is not None
    spins, two = bool(fit.model.domain.coordinate(0).levels[0] < 0), fit.model.domain.is_binary
    steps = 4.0 if spins else 1.0  # what a neighbour's other value adds to the log odds, times the temperature
    odds = Estimate.of_draws(np.exp(np.minimum(steps / fit.entries["temperature"], 700.0)))
    if two:
        high, low = ("+1", "-1") if spins else ("1", "0")
        return (
            f"a neighbour that is {high} rather than {low} makes the odds that a site is {high} {odds.times} as large"
        )
    return f"a neighbour in some state makes the odds that a site is in it too {odds.times} as large"


def _likeness(fit: Fitted) -> _Likeness:
    """Pairs that are alike, among those of which both are observed, against independent sites of the same shares.

    Products of centred indicators of two sites are uncorrelated among such sites, also those of pairs that share one.
    """
    assert fit.model is not None
    data = fit.as_read
    first, second = fit.model.options["graph"].edges.T
    seen = data.seen
    levels = fit.model.domain.coordinate(0).levels
    totals = np.array([data.counts @ (seen & (data.rows == level)).sum(axis=1) for level in levels], float)
    shares = totals / max(totals.sum(), 1.0)
    chance, both = float(shares @ shares), seen[:, first] & seen[:, second]
    alike = data.rows[:, first] == data.rows[:, second]
    own = shares[np.clip(np.searchsorted(levels, data.rows), 0, len(levels) - 1)]
    products = np.where(both, alike - own[:, first] - own[:, second] + chance, 0.0).sum(axis=1)
    pairs = both.sum(axis=1)
    worth = 1.0 if fit.clusters is None else fit.clusters.worth / fit.clusters.rows
    spread = ((np.diag(shares) - np.outer(shares, shares)) ** 2).sum() * ((data.counts**2 / data.observations) @ pairs)
    score = float(data.counts @ products * np.sqrt(worth / spread)) if spread > 0 else 0.0
    return _Likeness(float(data.counts @ (alike & both).sum(axis=1) / max(data.counts @ pairs, 1.0)), chance, score)


def _is_of_prior(fit: Fitted) -> bool:
    """Whether the loss alone has no smallest value inside, or the prior moved the temperature far from it."""
    if fit.minimum.outcome is not Outcome.CONVERGED:
        return True
    influence = fit.prior_influence
    if influence is None:
        return False
    moved, from_data = influence.loc[["temperature"]].to_numpy()[0]
    return not (abs(moved) <= 1.0 and from_data > 0.5)  # by a posterior standard deviation, or mostly


def _intercept(fit: Fitted) -> list[str]:
    assert fit.model is not None
    told = []
    for parameter in fit.model.space.of_role(NODE):
        own = Estimate.of(fit, parameter.name)
        said = f"By itself the {'upper' if own.low > 0 else 'lower'} value is favoured"
        told.append(f"{said if own.excludes(0.0) else UNDECIDED} (intercept {own.inside}).")
    return told
