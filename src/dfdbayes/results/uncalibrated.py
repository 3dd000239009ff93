"""What the intervals would be without calibration: beta = 1, beside those of the fit.

The posterior at beta = 1 is drawn from its normal approximation in unconstrained coordinates. That costs a few Newton
steps and no chains, and is exact enough for what it is shown for: how far calibration moved the widths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..core import samplers as sampling
from ..core.minimise import Minimum
from ..core.objective import Objective
from ..core.posterior import named_draws, posterior
from .intervals import intervals
from .predictive import parameters_of

if TYPE_CHECKING:
    from .fitted import Fitted


def uncalibrated_intervals(
    objective: Objective, minimum: Minimum, seed: int, entries: list[str], interval: float = 0.95
) -> pd.DataFrame | None:
    """Equal-tailed intervals at beta = 1 under the names ``entries``; None where there are none."""
    log_density, inputs, start = posterior(objective, 1.0, minimum)
    try:
        around = sampling.centre(log_density, inputs, start)
    except np.linalg.LinAlgError:
        return None
    z = sampling.Laplace(draws=4000, chains=1).run(sampling.Task(log_density, inputs, around, seed)).z
    model = objective.model
    with np.errstate(over="ignore", invalid="ignore"):
        named = named_draws(model, model.space.from_z(z))
    flat = np.concatenate([values.reshape(values.shape[1], -1) for values in named.values()], axis=1)
    if flat.shape[1] != len(entries):  # a derived quantity was left out of the fit
        return None
    low, high = np.quantile(flat, [0.5 * (1 - interval), 0.5 * (1 + interval)], axis=0)
    return pd.DataFrame({"low": low, "high": high}, index=entries)


def is_calibrated(fit: Fitted) -> bool:
    """Whether anything was done to the width of the posterior: a weight other than 1, or one for each direction."""
    shape = fit.calibration.curvature
    return fit.beta != 1.0 if shape is None else not shape.unchanged


def outweighed(fit: Fitted, interval: float = 0.95) -> tuple[str, ...]:
    """Parameters whose loss is smallest outside their interval: the prior outweighs the data there.

    Minimisers on a boundary are left out, where an interval that does not reach it is no surprise.
    """
    parameters = list(dict.fromkeys(name.partition("[")[0] for name in fit.minimum.names))
    draws = parameters_of(fit.groups["posterior"], parameters)
    low, high = np.quantile(draws, [0.5 * (1 - interval), 0.5 * (1 + interval)], axis=0)
    vector = fit.minimum.vector if fit.model is None else fit.model.space.to_data_scale(fit.minimum.vector)
    outside = (vector < low) | (vector > high)
    return tuple(n for n, out in zip(fit.minimum.names, outside, strict=True) if out and n not in fit.minimum.edges)


def side_by_side(fit: Fitted, interval: float = 0.95) -> pd.DataFrame:
    """The fit's own intervals, those at beta = 1, and how many times as wide the fit's own are."""
    plain = fit.uncalibrated
    assert plain is not None
    low, high, _ = intervals(fit.entries, interval, fit.edges)
    width = (plain["high"] - plain["low"]).to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (high - low) / width
    columns = {"calibrated_low": low, "calibrated_high": high, "beta1_low": plain["low"].to_numpy()}
    columns |= {"beta1_high": plain["high"].to_numpy(), "width_ratio": ratio}
    return pd.DataFrame(columns, index=plain.index)
