"""The parametric bootstrap: how estimates vary among data sets that the fitted model makes.

Where there is one observation (a graph, a map) nothing can be resampled, and where there are few, resamples say little;
a model that can be simulated says how its estimates vary all the same, as far as it is right. Every simulated data set
is fitted with the prior, because some have no estimate without it (a graph without triangles). An estimate t of a set
with gradient g at the parameters that it came from is about -(H + P)^-1 g away from them, P being the prior's
precision; so the spread of gradients is (H + P) S (H + P), S the spread of estimates, and the prior is not counted
twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from .._util.checkpoint import NOTHING
from .._util.resources import require_unforked
from ..errors import CalibrationError, SettingError
from .dataset import PLACE, Dataset
from .minimise import Minima, Minimum, interior, mode
from .model import AbstractModel
from .objective import Objective
from .replicates import minimise_many
from .resampling import RESAMPLINGS, AbstractResampling, Bootstrap, Fits, by_name, require_size
from .simulators.replicas import replicas
from .sites import Units, rows_of

MIDDLE = 0.6827  # of estimates, whose range is two robust standard deviations
WINSOR = 3.0  # robust standard deviations beyond which an estimate counts as this far in correlations
LEAST_SHARE = 0.5  # of the standard deviation of all estimates, that the robust one is at least
LEAST_USABLE = 0.8  # share of simulated data sets whose estimates must have been found


@dataclass(frozen=True)
class Parametric(AbstractResampling):
    """Data sets simulated at the estimate, each fitted with the prior."""

    kind: str = "parametric"

    def units(self, model: AbstractModel, data: Dataset) -> Units:
        if PLACE in data.given_columns:
            raise SettingError(
                "a parametric bootstrap draws rows given their covariates, and the lags of a series would have to be "
                "drawn with it. What to do: leave out resampling=, for windows of neighbouring rows."
            )
        return rows_of(data)

    def __call__(self, objective: Objective, minimum: Minimum, size: int, seed: int, fits: Fits) -> Bootstrap:
        space, model = objective.space, objective.model
        start = space.to_y(interior(space, minimum.vector))
        theta = np.asarray(space.from_y(mode(objective, 1.0, minimum, start)))
        around = replace(minimum, vector=theta)
        if model.whole:
            minima = model.refit_simulated(objective, theta, around, size, seed, fits)
            return Bootstrap(self.kind, np.empty((size, 0)), minima, 0, theta)
        found = []
        for data, weights in replicas(model, theta, objective.data, size, seed):
            sets = replace(objective, data=data, resampled=None, held=True)
            found.append(fits(sets, around, weights))
        whole = Minima(
            np.concatenate([part.vectors for part in found]),
            np.concatenate([part.values for part in found]),
            np.concatenate([part.gradient_norms for part in found]),
            tuple(outcome for part in found for outcome in part.outcomes),
        )
        return Bootstrap(self.kind, np.empty((size, 0)), whole, 0, theta)


RESAMPLINGS.register(Parametric.kind)(lambda model, data: Parametric())


def bootstrap(
    objective: Objective,
    minimum: Minimum,
    size: int = 400,
    *,
    resampling: str | AbstractResampling = "multinomial",
    seed: int = 0,
    advance: Callable[[int], None] = lambda done: None,
) -> Bootstrap:
    """Minimise the loss on ``size`` resampled data sets, from the full data's minimum.

    Parameters
    ----------
    objective : Objective
    minimum : Minimum
    size : int
    resampling : {"multinomial", "dirichlet", "parametric"} or resampling
        As for `fit`. Simulated data sets (``"parametric"``) are fitted with the prior, and come from the posterior's
        mode.
    seed : int
    advance : callable, optional
        Called with the number of replicates just finished.
    """
    require_unforked()
    require_size(size)
    how = by_name(resampling, objective.model, objective.data)
    return how(objective, minimum, size, seed, Fits(minimise_many, NOTHING, advance))


def noise(size: int) -> float:
    """The Monte-Carlo error of a width from so many simulated data sets, as a share of it.

    Of half the range of the middle 68 % of a normal sample: each quantile has variance p (1 - p) / (size f^2), p being
    0.16 and f = 0.24 the density there, and their covariance is p^2 / (size f^2).
    """
    p = 0.5 - 0.5 * MIDDLE
    return float(np.sqrt(0.5 * p * (1.0 - 2.0 * p) / size) / np.exp(-0.5) * np.sqrt(2.0 * np.pi))


def spread(objective: Objective, replicates: Bootstrap) -> tuple[Float[np.ndarray, "p p"], Float[np.ndarray, " p"]]:
    """The covariance of estimates in the minimiser's coordinates, and their median's distance from the truth.

    Standard deviations are half the range of the middle 68 % of estimates: some simulated data sets say nothing of a
    parameter (a graph without triangles), and where the prior then holds it is no matter of how estimates vary. Where
    more than half of them say nothing, that range is too short, so all estimates have a say.
    """
    usable = replicates.minima.usable
    if replicates.truth is None or usable.mean() < LEAST_USABLE:
        raise CalibrationError(
            f"only {int(usable.sum())} of {len(usable)} simulated data sets have an estimate: the model at its "
            "estimate makes data that say too little. What to do: a simpler model, a tighter prior, or beta by hand."
        )
    y = objective.space.to_y(replicates.minima.vectors[usable])
    low, middle, high = np.quantile(y, [0.5 - 0.5 * MIDDLE, 0.5, 0.5 + 0.5 * MIDDLE], axis=0)
    scale = np.maximum(np.maximum(0.5 * (high - low), LEAST_SHARE * y.std(axis=0)), 1e-12)
    held = np.clip(y, middle - WINSOR * scale, middle + WINSOR * scale)
    covariance = np.atleast_2d(np.cov(held.T))
    own = scale / np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    return own[:, None] * covariance * own, middle - objective.space.to_y(replicates.truth)
