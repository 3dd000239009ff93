"""What the intervals would be without calibration: beta = 1 and no adjustment, beside those of the fit.

The posterior at beta = 1 is drawn from its normal approximation in unconstrained coordinates. That costs a few Newton
steps and no chains, and is exact enough for what it is shown for: how far calibration moved the widths.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from .. import losses
from ..errors import ModelError
from ..fitting.fit import named_draws
from ..inference import sampling
from ..inference.objective import Objective
from ..inference.posterior import posterior
from ..models.graphs import Graph, blocks
from ..models.parameters import describe_prior
from .fit_result import Fit
from .predictive import parameters_of

DRAWS = 4000


def is_calibrated(fit: Fit) -> bool:
    """Whether anything was done to the width of the posterior: a weight other than 1, or adjusted draws."""
    return fit.beta != 1.0 or fit.settings["adjust"] is not None


def has_its_priors(fit: Fit) -> bool:
    """Whether the model has the priors of the run (one rebuilt from a file has its default priors)."""
    if fit.model is None:
        return False
    return {p.name: describe_prior(p.prior) for p in fit.model.space.parameters} == fit.settings["priors"]


def objective_of(fit: Fit) -> Objective:
    """The loss that was minimised, rebuilt from the model, the data and the loss's name.

    Raises
    ------
    ModelError
        If the fit does not hold all that is needed, for example because it was loaded without its own model.
    """
    if fit.model is None:
        raise ModelError("this fit was loaded without its model; give it: dfd.load(path, model=...)")
    if fit.settings["loss"] not in losses.names():
        raise ModelError(f"the loss '{fit.settings['loss']}' is not one of the built-in ones, and is not kept in a fit")
    graph = fit.model.options.get("graph")
    cut = blocks(graph) if fit.data.n < 2 and isinstance(graph, Graph) else None
    rebuilt = Objective(fit.model, fit.data, losses.by_name(fit.settings["loss"]), cut)
    value = rebuilt(fit.minimum.vector)
    if not np.isclose(value, fit.minimum.value, rtol=1e-6, atol=1e-6):
        raise ModelError("the loss was made with settings (a kernel, say) that are not kept in a fit")
    return rebuilt


def uncalibrated_draws(fit: Fit, draws: int = DRAWS) -> dict[str, np.ndarray]:
    """Draws by name from the normal approximation of the posterior at beta = 1, with derived quantities."""
    objective = objective_of(fit)
    if not has_its_priors(fit):
        raise ModelError("the priors of this fit were given by hand and are not kept in its file")
    log_density, inputs, start = posterior(objective, 1.0, fit.minimum)
    around = sampling.centre(log_density, inputs, start)
    sampler = sampling.Laplace(draws=draws, chains=1)
    z = sampler.run(log_density, inputs, around, fit.settings["seed"], lambda done: None).z
    model = objective.model
    with np.errstate(over="ignore"):
        return named_draws(model, model.space.from_z(z))


def uncalibrated_intervals(fit: Fit, interval: float = 0.95) -> pd.DataFrame:
    """Equal-tailed intervals at beta = 1, in the order and under the names of ``fit.summary()``."""
    named = uncalibrated_draws(fit)
    ends = [0.5 * (1 - interval), 0.5 * (1 + interval)]
    flat = [named[str(name)].reshape(named[str(name)].shape[1], -1) for name in fit.posterior.data_vars]
    low, high = np.quantile(np.concatenate(flat, axis=1), ends, axis=0)
    return pd.DataFrame({"low": low, "high": high}, index=list(fit.entries))


def outweighed(fit: Fit, interval: float = 0.95) -> tuple[str, ...]:
    """Parameters whose loss is smallest outside their interval: the prior outweighs the data there.

    Minimisers on a boundary are left out, where an interval that does not reach it is no surprise.
    """
    parameters = list(dict.fromkeys(name.partition("[")[0] for name in fit.minimum.names))
    draws = parameters_of(fit.posterior, parameters)
    low, high = np.quantile(draws, [0.5 * (1 - interval), 0.5 * (1 + interval)], axis=0)
    outside = (fit.minimum.vector < low) | (fit.minimum.vector > high)
    return tuple(n for n, out in zip(fit.minimum.names, outside, strict=True) if out and n not in fit.minimum.edges)


def side_by_side(fit: Fit, interval: float = 0.95) -> pd.DataFrame:
    """The fit's own intervals, those at beta = 1, and how many times as wide the fit's own are."""
    plain = uncalibrated_intervals(fit, interval)
    draws = np.stack([values.reshape(-1) for values in fit.entries.values()])
    low, high = np.quantile(draws, [0.5 * (1 - interval), 0.5 * (1 + interval)], axis=1)
    width = (plain["high"] - plain["low"]).to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (high - low) / width
    columns = {"calibrated_low": low, "calibrated_high": high, "beta1_low": plain["low"].to_numpy()}
    columns |= {"beta1_high": plain["high"].to_numpy(), "width_ratio": ratio}
    return pd.DataFrame(columns, index=plain.index)
