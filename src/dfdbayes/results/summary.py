"""The table of a posterior: estimates, intervals and how well the chains have mixed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ..core import mixing
from ..core.diagnostics import useless_means
from .intervals import intervals


def summarised(
    entries: dict[str, np.ndarray], interval: float, edges: Mapping[str, tuple[float, float]]
) -> pd.DataFrame:
    """One line for each entry, with ArviZ's names of columns; see `Fit.summary`."""
    draws = mixing.stacked(entries)
    low, high, _ = intervals(entries, interval, edges)
    named = f"eti{100 * interval:g}"
    of_mean, of_sd = mixing.standard_errors(draws)
    columns = {
        "mean": draws.mean(axis=(0, 1)),
        "sd": draws.std(axis=(0, 1), ddof=1),
        "median": np.median(draws, axis=(0, 1)),
        f"{named}_lb": low,
        f"{named}_ub": high,
        "ess_bulk": mixing.bulk_size(draws),
        "ess_tail": mixing.tail_size(draws),
        "r_hat": mixing.r_hat(draws),
        "mcse_mean": of_mean,
        "mcse_sd": of_sd,
    }
    table = pd.DataFrame(columns, index=list(entries))
    table.loc[useless_means(entries), ["mean", "sd", "mcse_mean", "mcse_sd"]] = np.nan
    return table
