"""Networks over time: what yesterday's values do to today's, beside what goes together today.

A network whose intercepts depend on earlier values (``formula="~ mood_lag1 + sleep_lag1"``) is a vector autoregression:
its coefficients are the temporal network, its interactions the contemporaneous one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..data.lags import SUFFIX
from ..errors import ModelError
from .evidence import INCONCLUSIVE, LEVEL, PRESENT

if TYPE_CHECKING:
    from .fit_result import Fit

INTERCEPT = "intercept["


def effects_over_time(fit: Fit) -> pd.DataFrame:
    """A row for every effect of an earlier value on a later one.

    Columns: ``from`` and ``to`` (columns of the data), ``lag``, ``mean``, ``low`` and ``high`` (95 % interval) of the
    coefficient, and ``evidence``: present where the interval excludes zero, else inconclusive. Largest first.
    """
    found = []
    for entry, draws in fit.entries.items():
        to, between, term = entry.removeprefix(INTERCEPT).removesuffix("]").partition(":")
        name, lagged, lag = term.rpartition(SUFFIX)
        if entry.startswith(INTERCEPT) and between and lagged and lag.isdigit():
            low, high = np.quantile(draws, [0.5 * (1 - LEVEL), 0.5 * (1 + LEVEL)])
            kind = PRESENT if low > 0 or high < 0 else INCONCLUSIVE
            found.append((name, to, int(lag), float(draws.mean()), float(low), float(high), kind))
    if not found:
        raise ModelError(
            "no intercept depends on earlier values. What to do: make them with dfd.lagged(frame, columns, by=...), "
            "and fit with formula='~ mood_lag1 + ...'"
        )
    table = pd.DataFrame(found, columns=["from", "to", "lag", "mean", "low", "high", "evidence"])
    return table.iloc[np.argsort(-table["mean"].abs().to_numpy(), kind="stable")].reset_index(drop=True)
