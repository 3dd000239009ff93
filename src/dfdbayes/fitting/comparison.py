"""Several fits of the same data side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from ..errors import SettingError
from ..results.fit_result import Fit


@dataclass(frozen=True)
class Comparison:
    """Fits by name, and one table about them.

    Attributes
    ----------
    fits : dict of Fit
    table : pandas.DataFrame
        One row for each parameter and fit: estimate (posterior mean), sd, interval, its width, beta and seconds.
    """

    fits: dict[str, Fit]
    table: pd.DataFrame


def compare(fits: Mapping[str, Fit], interval: float = 0.95) -> Comparison:
    """Put fits of the same data side by side.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> x = [2, 3, 1, 4, 2, 0, 3, 5, 2, 1] * 20
    >>> fits = {loss: dfd.fit("poisson", x, loss=loss, progress=False) for loss in ("ratio", "likelihood")}
    >>> dfd.compare(fits).table.index.names
    FrozenList(['parameter', 'fit'])
    """
    if not fits:
        raise SettingError("nothing to compare: give at least one fit, for example {'dfd': fit}")
    if len({fit.data.digest for fit in fits.values()}) > 1:
        shown = ", ".join(f"{name}: {fit.data.source}, n = {fit.data.n}" for name, fit in fits.items())
        raise SettingError(f"the fits are of different data ({shown}); compare fits of the same")
    rows = []
    for name, fit in fits.items():
        table = fit.summary(interval)
        low, high = (next(c for c in table.columns if c.startswith("eti") and c.endswith(end)) for end in ("lb", "ub"))
        for parameter, row in table.iterrows():
            rows.append(
                {
                    "parameter": parameter,
                    "fit": name,
                    "estimate": row["mean"],
                    "sd": row["sd"],
                    low: row[low],
                    high: row[high],
                    "width": row[high] - row[low],
                    "beta": fit.beta,
                    "seconds": sum(fit.timings["seconds"].values()),
                }
            )
    frame = pd.DataFrame(rows)
    frame["parameter"] = pd.Categorical(frame["parameter"], categories=frame["parameter"].unique(), ordered=True)
    ordered = frame.set_index(["parameter", "fit"]).sort_index(level="parameter", sort_remaining=False)
    return Comparison(dict(fits), ordered)
