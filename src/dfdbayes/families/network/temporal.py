"""Networks over time: what yesterday's values do to today's, beside what goes together today.

A network whose intercepts depend on earlier values (``formula="~ mood_lag1 + sleep_lag1"``) is a vector autoregression:
its coefficients are the temporal network, its interactions the contemporaneous one. Both are judged by one rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...core.parameters import Space
from ...data.series import SUFFIX
from ...errors import ModelError
from .evidence import LEVEL, NO_VERDICT, by_region, chooses, judged, raised
from .rope import ODDS, network_of, reaches
from .selection import select_coefficients

if TYPE_CHECKING:
    from ...results.fitted import Fitted

INTERCEPT = "intercept["


def effects_over_time(fit: Fitted) -> pd.DataFrame:
    """A row for every effect of an earlier value on a later one.

    Columns: ``from`` and ``to`` (columns of the data), ``lag``, ``mean``, ``low`` and ``high`` (95 % interval) of the
    coefficient, and ``bayes_factor``, ``inclusion`` and ``evidence`` by the rule for edges (see `dfdbayes.evidence`).
    Where an effect is there, the log odds between values two standard deviations apart in both columns (between the two
    values of binary ones) are standard normal beforehand. Largest first.
    """
    found = [(name, *parts) for name in fit.entries if (parts := _parts(name))]
    if not found:
        raise ModelError(
            "no intercept depends on earlier values. What to do: make them with dfd.lagged(frame, columns, by=...), "
            "and fit with formula='~ mood_lag1 + ...'"
        )
    draws = np.stack([fit.entries[name].reshape(-1) for name, *_ in found], axis=1)
    low, high = np.quantile(draws, [0.5 * (1 - LEVEL), 0.5 * (1 + LEVEL)], axis=0)
    table = pd.DataFrame([parts for _, *parts in found], columns=["from", "to", "lag"])
    table = table.assign(mean=draws.mean(axis=0), low=low, high=high)
    factor, inclusion, verdict = _judged(fit, [name for name, *_ in found], table, draws)
    table = table.assign(bayes_factor=factor, inclusion=inclusion, evidence=verdict)
    return table.iloc[np.argsort(-table["mean"].abs().to_numpy(), kind="stable")].reset_index(drop=True)


def _parts(entry: str) -> tuple[str, str, int] | None:
    """From which column to which, and how many steps later; None of an entry that is something else."""
    to, between, term = entry.removeprefix(INTERCEPT).removesuffix("]").partition(":")
    name, lagged, lag = term.rpartition(SUFFIX)
    return (name, to, int(lag)) if entry.startswith(INTERCEPT) and between and lagged and lag.isdigit() else None


def _judged(
    fit: Fitted, entries: list[str], table: pd.DataFrame, draws: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bayes factors, probabilities of inclusion (NaN where graphs cannot be drawn) and verdicts of the coefficients."""
    assert fit.model is not None
    unknown = np.full(len(table), np.nan)
    if not fit.converged:
        return unknown, unknown, np.full(len(table), NO_VERDICT)
    space, scale = fit.model.space, _scales(fit, entries, table)
    places = np.array([space.names.index(entry) for entry in entries])
    if chooses(fit):
        order = np.argsort(places)
        back = np.argsort(order)
        chosen = select_coefficients(fit, places[order], scale[order])
        factor, inclusion = chosen.bayes_factor[back], chosen.inclusion[back]
        return factor, inclusion, judged(factor)
    region = ODDS * scale
    inside, before = (np.abs(draws) <= region).mean(axis=0), unknown
    if "prior of intercept" not in fit.missing:
        own = next(p for p in space.parameters if p.name == "intercept")
        drawn = Space((own,)).draw_priors(4001, 0)[:, places - space.first["intercept"]]
        before = (np.abs(drawn) <= region).mean(axis=0)
    there = (table["low"] > 0).to_numpy() | (table["high"] < 0).to_numpy()
    return unknown, unknown, by_region(there, inside, raised(inside, before))


def _scales(fit: Fitted, entries: list[str], table: pd.DataFrame) -> np.ndarray:
    """By coefficient, what makes its log odds between far values of both columns one."""
    assert fit.model is not None
    assert fit.data.given is not None
    reach = dict(zip(fit.data.columns, reaches(fit, network_of(fit)), strict=True))
    spreads = {fit.model.covariate(k)[0]: _reach(fit.data.given[:, k], fit) for k in range(fit.data.given.shape[1])}
    terms = [entry.removesuffix("]").partition(":")[2] for entry in entries]
    return np.array([1.0 / (reach[to] * spreads[term]) for to, term in zip(table["to"], terms, strict=True)])


def _reach(values: np.ndarray, fit: Fitted) -> float:
    """How far a covariate goes: from 0 to 1 of a binary one, elsewhere two standard deviations."""
    if np.isin(values, (0.0, 1.0)).all():
        return 1.0
    mean = np.average(values, weights=fit.data.counts)
    return max(2.0 * float(np.sqrt(np.average((values - mean) ** 2, weights=fit.data.counts))), 1e-6)
