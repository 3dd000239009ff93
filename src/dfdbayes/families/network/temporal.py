"""Networks over time: what yesterday's values do to today's, beside what goes together today.

A network whose intercepts depend on earlier values (``formula="~ mood_lag1 + sleep_lag1"``) is a vector autoregression:
its coefficients are the temporal network, its interactions the contemporaneous one. Both are judged by one rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...data.series import SUFFIX
from ...errors import ModelError
from .kinds import INTERCEPT
from .rope import ODDS, contrasts, network_of
from .selection import chooses, select_coefficients
from .verdict import judge, prior_draws

if TYPE_CHECKING:
    from ...results.fitted import Fitted


def effects_over_time(fit: Fitted) -> pd.DataFrame:
    """A row for every effect of an earlier value on a later one.

    Columns: ``from`` and ``to`` (columns of the data), ``lag``, ``mean``, ``low`` and ``high`` (95 % interval) of the
    coefficient, and ``bayes_factor``, ``inclusion`` and ``evidence`` by the rule for edges (see `dfdbayes.evidence`).
    Where an effect is there, the log odds between values two standard deviations apart in both columns (between the two
    values of binary ones) are standard normal beforehand. Largest first.
    """
    parameters = () if fit.model is None else fit.model.space.parameters
    intercepts = {parameter.name: parameter.entries for parameter in parameters}.get(INTERCEPT.name, ())
    found = [(name, *parts) for name in intercepts if (parts := _parts(name))]
    if not found:
        raise ModelError(
            "no intercept depends on earlier values. What to do: make them with dfd.lagged(frame, columns, by=...), "
            "and fit with formula='~ mood_lag1 + ...'"
        )
    draws = np.stack([fit.entries[name].reshape(-1) for name, *_ in found], axis=1)
    table = pd.DataFrame([parts for _, *parts in found], columns=["from", "to", "lag"]).assign(mean=draws.mean(axis=0))
    table = table.assign(**_judged(fit, [name for name, *_ in found], table, draws))
    return table.iloc[np.argsort(-table["mean"].abs().to_numpy(), kind="stable")].reset_index(drop=True)


def _parts(entry: str) -> tuple[str, str, int] | None:
    """From which column to which, and how many steps later; None of an entry that is something else."""
    to, between, term = entry.partition("[")[2].removesuffix("]").partition(":")
    name, lagged, lag = term.rpartition(SUFFIX)
    return (name, to, int(lag)) if between and lagged and lag.isdigit() else None


def _judged(fit: Fitted, entries: list[str], table: pd.DataFrame, draws: np.ndarray) -> dict[str, np.ndarray]:
    """Intervals, Bayes factors, probabilities of inclusion (NaN where graphs cannot be drawn) and verdicts."""
    assert fit.model is not None
    space, scale = fit.model.space, _scales(fit, entries, table)
    places, beforehand = np.array([space.names.index(entry) for entry in entries]), prior_draws(fit, INTERCEPT.name)
    factor = inclusion = np.full(len(table), np.nan)
    chosen = chooses(fit) and fit.converged
    if chosen:
        order = np.argsort(places)
        back = np.argsort(order)
        found = select_coefficients(fit, places[order], scale[order])
        factor, inclusion = found.bayes_factor[back], found.inclusion[back]
    judged = judge(
        draws, ODDS * scale, None if beforehand is None else beforehand[:, places - space.first[INTERCEPT.name]],
        factor if chosen else None, converged=fit.converged,
    )  # fmt: skip
    return {
        "low": judged.low, "high": judged.high, "bayes_factor": factor, "inclusion": inclusion,
        "evidence": judged.verdict,
    }  # fmt: skip


def _scales(fit: Fitted, entries: list[str], table: pd.DataFrame) -> np.ndarray:
    """By coefficient, what makes its log odds between far values of both columns one."""
    assert fit.model is not None
    assert fit.data.given is not None
    contrast = dict(zip(fit.data.columns, contrasts(fit, network_of(fit)), strict=True))
    spreads = {fit.model.covariate(k)[0]: _reach(fit.data.given[:, k], fit) for k in range(fit.data.given.shape[1])}
    terms = [entry.removesuffix("]").partition(":")[2] for entry in entries]
    return np.array([1.0 / (contrast[to] * spreads[term]) for to, term in zip(table["to"], terms, strict=True)])


def _reach(values: np.ndarray, fit: Fitted) -> float:
    """How far a covariate goes: from 0 to 1 of a binary one, elsewhere two standard deviations."""
    if np.isin(values, (0.0, 1.0)).all():
        return 1.0
    mean = np.average(values, weights=fit.data.counts)
    return max(2.0 * float(np.sqrt(np.average((values - mean) ** 2, weights=fit.data.counts))), 1e-6)
