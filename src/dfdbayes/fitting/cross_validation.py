"""Cross-validation over observations or clusters: what a fit without them says of those left out.

Every fold shares the full data's tables, and its estimate is sought from the full data's: a few Newton steps under
other weights of the same rows, not a fit from scratch.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from ..core import losses
from ..core.dataset import Dataset, rows_of
from ..core.losses.base import AbstractLoss
from ..core.minimise import interior, mode
from ..core.model import AbstractModel
from ..core.objective import Objective
from ..errors import ModelError, SettingError
from ..results.regression import covariates
from .fit_result import Fit


@dataclass(frozen=True)
class Folds:
    """How observations are shared out.

    Attributes
    ----------
    data : Dataset
        The rows that folds are of.
    observations : (folds, u) floats
        How many observations of each row every fold holds.
    cluster : (u,) integers or None
        Where rows belong together: the cluster of each, all in one fold.
    """

    data: Dataset
    observations: Float[np.ndarray, "k u"]
    cluster: Int[np.ndarray, " u"] | None

    @property
    def each(self) -> Float[np.ndarray, " u"]:
        """What one observation of each row weighs."""
        return self.data.counts / self.data.observations


def folds_of(data: Dataset, folds: int, seed: int) -> Folds:
    """Observations dealt out at random, those of a cluster together."""
    rng = np.random.default_rng([seed, 31])
    if data.cluster is not None:
        clusters = int(data.cluster.max()) + 1
        _require_units(clusters, folds, "clusters")
        dealt = rng.permutation(np.arange(clusters) % folds)[data.cluster]
        return Folds(data, (dealt == np.arange(folds)[:, None]) * data.observations, data.cluster)
    often = np.round(data.observations).astype(int)
    _require_units(int(often.sum()), folds, "observations")
    rows = np.repeat(np.arange(len(often)), often)
    dealt = rng.permutation(np.arange(len(rows)) % folds)
    held = np.stack([np.bincount(rows[dealt == k], minlength=len(often)) for k in range(folds)])
    return Folds(data, held.astype(float), None)


def _require_units(number: int, folds: int, what: str) -> None:
    if number < 2 * folds:
        raise SettingError(
            f"there are {number} {what}, too few for {folds} folds. What to do: give more data, or fewer folds."
        )


def require_comparable(name: str, fit: Fit) -> None:
    """Refuse a fit whose rows cannot be left out and predicted."""
    if fit.model is None or fit.loss is None:
        raise ModelError(f"'{name}' was loaded without its model or its loss; fit again")
    if not fit.model.sampled or fit.data.n < 2:
        raise SettingError(f"'{name}' has one observation: none can be left out to see how well it is predicted")
    if fit.imputation is not None:
        raise SettingError(
            f"'{name}' has missing entries that were imputed, and a row that is not known cannot be predicted. What to "
            "do: compare fits with missing='drop'."
        )


def matched(fits: Mapping[str, Fit]) -> tuple[Dataset, dict[str, Int[np.ndarray, " u"]]]:
    """Rows that all fits are of, and which of each fit's distinct rows every one of them is.

    Rows are distinct by a fit's covariates, so fits whose covariates differ are matched by the rows of the data.
    """
    base = max((fit.data for fit in fits.values()), key=lambda own: (len(own.rows), len(own.given_columns)))
    try:
        return base, {name: places(name, fit.data, base) for name, fit in fits.items()}
    except SettingError:
        rows = {name: found for name, fit in fits.items() if (found := _by_row_of_the_data(fit)) is not None}
        if not rows:
            raise
    base = next(iter(rows.values()))
    for name, own in rows.items():
        if not _same_rows(own, base):
            raise _of_other_data(name)
    return base, {name: places(name, fit.data, rows.get(name, base)) for name, fit in fits.items()}


def _by_row_of_the_data(fit: Fit) -> Dataset | None:
    """A row for each of the data, equal ones apart, ``first`` saying which; None where a fit does not know them."""
    model = fit.model
    if model is None or not model.designs or model.observed.series is not None:
        return None
    observed = model.observed
    found = observed.apart(model.domain, fit.data.columns)
    known = np.full(len(observed.rows), -1)
    known[found.first] = np.arange(len(found.rows))
    given = covariates(model, observed.rows)[found.first]
    if observed.place is None:
        return replace(found, given=given, given_columns=fit.data.given_columns)
    rows = np.flatnonzero((observed.place >= 0) & (known[observed.place] >= 0))
    chosen = known[observed.place[rows]]
    counts = np.ones(len(rows)) if len(rows) > len(found.rows) else None  # equal rows were one, with a count
    return replace(found.at(chosen, counts), first=rows, given=given[chosen], given_columns=fit.data.given_columns)


def _same_rows(own: Dataset, base: Dataset) -> bool:
    pairs = [(own.first, base.first), (own.rows, base.rows), (own.counts, base.counts)]
    pairs += [(own.observations, base.observations)]
    alike = all(np.array_equal(a, b) for a, b in pairs) and (own.cluster is None) == (base.cluster is None)
    return alike and (own.cluster is None or base.cluster is None or np.array_equal(own.cluster, base.cluster))


def places(name: str, own: Dataset, base: Dataset) -> Int[np.ndarray, " u"]:
    """For every row of ``base`` the row of ``own`` that it is, where ``own`` has fewer covariates."""
    if own.digest == base.digest:
        return np.arange(len(base.rows))
    if own.columns == base.columns and own.n == base.n:
        if len(own.rows) == len(base.rows) == own.n and set(own.first) == set(base.first):  # all are distinct
            order = np.argsort(own.first)
            return order[np.searchsorted(own.first[order], base.first)]
        shared = [column for column in own.given_columns if column in base.given_columns]
        if len(shared) == len(own.given_columns):
            known = {key: i for i, key in enumerate(_keys(own, shared))}
            found = [known.get(key, -1) for key in _keys(base, shared)]
            if min(found) >= 0:
                return np.array(found)
    raise _of_other_data(name)


def _of_other_data(name: str) -> SettingError:
    return SettingError(
        f"'{name}' is a fit of other data: its rows, columns, weights or clusters are not those of the others. What to "
        "do: fit all models to the same rows and columns; with lags or missing='drop', leave out beforehand the rows "
        "that one of the models cannot use."
    )


def _keys(data: Dataset, shared: list[str]) -> list[tuple[object, ...]]:
    parts = [data.rows.astype(float)]
    if shared:
        assert data.given is not None
        parts.append(data.given[:, [data.given_columns.index(column) for column in shared]])
    return list(map(tuple, np.round(np.concatenate(parts, axis=1), 9).tolist()))


def scored(model: AbstractModel, data: Dataset, score: AbstractLoss) -> Objective:
    """A score whose units are the distinct rows, however many there are."""
    own = replace(data, repeats=data.observations, cluster=None)
    return Objective(model, own, score, rows_of(own))


def score_of(models: list[tuple[AbstractModel, Dataset]], score: str | AbstractLoss) -> AbstractLoss:
    """The score that all models have: the likelihood, else that of full conditionals, else ratio matching."""
    if score != "auto":
        return losses.by_name(score)
    if all(model.has_likelihood for model, _ in models):
        return losses.by_name("likelihood")
    try:
        for model, data in models:
            _ = scored(model, data, losses.by_name("pseudo")).own_weights
        return losses.by_name("pseudo")
    except ModelError:
        return losses.by_name("ratio")


def held_out(
    fit: Fit, folds: Folds, place: Int[np.ndarray, " u"], score: AbstractLoss
) -> tuple[Float[np.ndarray, "k u"], Float[np.ndarray, "k p"]]:
    """The score of every row under the estimate of each fold's others, and these estimates."""
    assert fit.model is not None
    assert fit.loss is not None
    objective, judged = scored(fit.model, fit.data, fit.loss), scored(fit.model, fit.data, score)
    space, found, estimates = objective.space, [], []
    start = mode(objective, fit.beta, fit.minimum, space.to_y(interior(space, fit.minimum.vector)))
    for held in folds.observations:
        kept = np.zeros(len(fit.data.rows))
        np.add.at(kept, place, (folds.data.observations - held) * folds.each)
        others = copy.copy(objective)
        others.__dict__["own_weights"] = objective.weigh(kept)
        estimates.append(np.asarray(space.from_y(mode(others, fit.beta, fit.minimum, start))))
        found.append(judged.unit_values(estimates[-1][None])[0, place])
    return np.stack(found), np.stack(estimates)
