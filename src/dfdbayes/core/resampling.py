"""How a minimiser varies: the loss is minimised again on resampled data, all replicates at once.

What is resampled are rows as a rule (`Rows`), clusters of rows that belong together (`Clusters`), blocks of sites where
there is a single observation of a lattice (`Blocks`), or windows of neighbouring rows of a series (`Windows`). Weights
are ``"multinomial"`` (draws with replacement; Efron, 1979) or ``"dirichlet"`` (a random share for every unit, so that
no value is ever left out; the Bayesian bootstrap of Rubin, 1981). A replicate is a vector of weights, never a copied
data set. Another kind of resampling is another `AbstractResampling`: it says which units there are, and makes
replicates as it likes.

The parametric bootstrap (`Parametric`) shows how estimates vary among data sets that the fitted model makes. Where
there is one observation (a graph, a map) nothing can be resampled, and where there are few, resamples say little; a
model that can be simulated says how its estimates vary all the same, as far as it is right. Every simulated data set is
fitted with the prior, because some have no estimate without it (a graph without triangles). An estimate t of a set with
gradient g at the parameters that it came from is about -(H + P)^-1 g away from them, P being the prior's precision; so
the spread of gradients is (H + P) S (H + P), S the spread of estimates, and the prior is not counted twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from .._util.checkpoint import NOTHING, Checkpoint
from .._util.resources import require_unforked
from ..errors import CalibrationError, DataError, ModelError, SettingError
from .dataset import BUCKETS, PLACE, Dataset, Units, bucket_of, clusters_of, rows_of, windows_of
from .linear import MANY_ROWS
from .minimise import Minima, Minimum, Outcome, interior, mode
from .model import AbstractModel
from .objective import Objective
from .registry import Registry
from .replicates import minimise_many, refit_many
from .simulators.replicas import replicas
from .windows import length_of, of_windows, starts_of

KINDS = ("multinomial", "dirichlet")
MIN_CLUSTERS = 10


class Fits:
    """Minimises under many weights: some at a time where parts are kept, otherwise all at once.

    Parameters
    ----------
    many : callable
        Such as `minimise_many`.
    checkpoint : Checkpoint
        What keeps parts; a resampling that has more to keep than minimisers keeps it there.
    advance : callable
        Called with the number of replicates just finished.
    refit : callable, optional
        Such as `refit_many`, for replicates with rows of their own.
    """

    def __init__(
        self, many: Callable[..., Minima], checkpoint: Checkpoint = NOTHING,
        advance: Callable[[int], None] = lambda done: None, refit: Callable[..., Minima] = refit_many,
    ) -> None:  # fmt: skip
        self.many, self.checkpoint, self.advance, self.refit, self._asked = many, checkpoint, advance, refit, 0

    def __call__(self, objective: Objective, minimum: Minimum, weights: Float[np.ndarray, "b v"]) -> Minima:
        before, self._asked = self._asked, self._asked + len(weights)
        if self.checkpoint is NOTHING:
            return self.many(objective, weights, minimum, self.advance)
        parts, size = [], 200 if objective.elsewhere else 4 * objective.batch
        for first in range(0, len(weights), size):
            computed: list[bool] = []

            def of_part(first: int = first, computed: list[bool] = computed) -> dict[str, np.ndarray]:
                computed.append(True)
                found = self.many(objective, weights[first : first + size], minimum, self.advance)
                outcomes = np.array(list(map(str, found.outcomes)))
                return {"v": found.vectors, "f": found.values, "g": found.gradient_norms, "outcomes": outcomes}

            parts.append(self.checkpoint.part(f"bootstrap-{before + first}", of_part))
            if not computed:
                self.advance(len(parts[-1]["v"]))
        whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return Minima(whole["v"], whole["f"], whole["g"], tuple(Outcome(str(o)) for o in whole["outcomes"]))


@dataclass(frozen=True)
class Bootstrap:
    """Minimisers of resampled data.

    Attributes
    ----------
    kind : str
        How the replicates were made.
    weights : (b, v) floats
        Weights of the units, one row for each replicate.
    minima : Minima
    degenerate : int
        In how many replicates a column that varies in the data is constant.
    truth : (p,) floats, optional
        The parameters that data were simulated at, in a parametric bootstrap.
    """

    kind: str
    weights: Float[np.ndarray, "b v"]
    minima: Minima
    degenerate: int
    truth: Float[np.ndarray, " p"] | None = None


class AbstractResampling(ABC):
    """A way to see how an estimate varies."""

    kind: str
    """In a word, for results and reports."""

    @abstractmethod
    def units(self, model: AbstractModel, data: Dataset) -> Units:
        """What is resampled; an error that says what to do where there is nothing to resample."""

    @abstractmethod
    def __call__(self, objective: Objective, minimum: Minimum, size: int, seed: int, fits: Fits) -> Bootstrap:
        """Minimisers of ``size`` replicates; ``fits`` minimises under many weights."""


@dataclass(frozen=True)
class Reweighting(AbstractResampling):
    """Replicates are random weights of the units."""

    kind: str = "multinomial"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingError(f"there is no resampling '{self.kind}'; known: {', '.join(KINDS)}")

    def __call__(self, objective: Objective, minimum: Minimum, size: int, seed: int, fits: Fits) -> Bootstrap:
        weights = resample(objective, seed, size, self.kind)
        return Bootstrap(self.kind, weights, fits(objective, minimum, weights), degenerate(objective, weights))


@dataclass(frozen=True)
class Rows(Reweighting):
    """Rows are independent observations."""

    def units(self, model: AbstractModel, data: Dataset) -> Units:
        if data.n < 2:
            raise DataError("the data hold one row; at least two different rows are needed to calibrate a posterior")
        if len(data.rows) < 2:
            shown = ", ".join(f"{name} = {value}" for name, value in zip(data.columns[:5], data.rows[0], strict=False))
            raise DataError(
                f"the data are constant: all {data.n} rows have {shown}. The minimiser does not exist, and a bootstrap "
                "of constant data shows no variation. Check that the right column was read; otherwise "
                "collect data that vary."
            )
        return rows_of(data)


@dataclass(frozen=True)
class Clusters(Reweighting):
    """Rows of a cluster belong together: a replicate takes all of them or none."""

    def units(self, model: AbstractModel, data: Dataset) -> Units:
        if data.cluster is None:
            raise SettingError("the data have no clusters; name their column with cluster=...")
        units = clusters_of(data)
        if len(units.weights) < MIN_CLUSTERS:
            raise DataError(
                f"there are {len(units.weights)} clusters; at least {MIN_CLUSTERS} are needed to see how an "
                "estimate varies between them. What to do: treat rows as independent (leave out cluster=) and say so, "
                "or make the cluster a factor of the model."
            )
        return units


@dataclass(frozen=True)
class Blocks(Reweighting):
    """Blocks of sites of a single observation of a lattice, about ``side`` cells a side."""

    side: int | None = None

    def units(self, model: AbstractModel, data: Dataset) -> Units:
        if not model.single_observation and (model.graph is None or data.n != 1):
            raise ModelError("blocks of sites can be resampled where there is one observation of a model on a grid")
        return model.blocks(self.side)


@dataclass(frozen=True)
class Windows(Reweighting):
    """Windows of ``length`` neighbouring rows of a series (the moving-block bootstrap; Kuensch, 1989).

    Calibration by curvature draws none: it uses the long-run variance that they would show (Newey and West, 1987).
    The length is chosen from how gradients of neighbouring rows are correlated, unless it is given; 1 means rows.
    """

    length: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length is not None and not self.length >= 1:
            raise SettingError(f"length is {self.length}; a window has at least one row")

    def units(self, model: AbstractModel, data: Dataset) -> Units:
        units = windows_of(data, self.length)
        if self.length is not None and self.length > data.n / 2:
            raise SettingError(f"length is {self.length:g}, and there are {data.n} rows; windows must be far shorter")
        return units

    def __call__(self, objective: Objective, minimum: Minimum, size: int, seed: int, fits: Fits) -> Bootstrap:
        units = objective.units
        assert units.place is not None
        length = int(np.ceil(length_of(units, objective.unit_gradients(minimum.vector))))
        each = np.full(starts_of(units.place, length), 1.0 / length)
        weights = of_windows(draw([seed, 1], each, size, self.kind), units.place, length) * units.weights
        return Bootstrap(self.kind, weights, fits(objective, minimum, weights), degenerate(objective, weights))


RESAMPLINGS: Registry[Callable[[AbstractModel, Dataset], AbstractResampling]] = Registry("resampling")
"""By name: the resampling that serves a model and its data."""


def _by_weights(kind: str) -> Callable[[AbstractModel, Dataset], AbstractResampling]:
    def chosen(model: AbstractModel, data: Dataset) -> AbstractResampling:
        few = data.cluster is None or len(np.unique(data.cluster)) < MIN_CLUSTERS
        if PLACE in data.given_columns and few:
            return Windows(kind)
        if data.cluster is not None:
            return Clusters(kind)
        return Blocks(kind) if data.n < 2 and model.graph is not None and data.d > 1 else Rows(kind)

    return chosen


for _kind in KINDS:
    RESAMPLINGS.register(_kind)(_by_weights(_kind))
RESAMPLINGS.register("windows")(lambda model, data: Windows())


def by_name(resampling: Any, model: AbstractModel, data: Dataset) -> AbstractResampling:
    """The resampling that a word names for these data, or the given one."""
    if isinstance(resampling, AbstractResampling):
        return resampling
    return RESAMPLINGS.by_name(resampling)(model, data)


def require_size(size: Any) -> None:
    """Refuse a number of replicates that shows nothing."""
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 2:
        raise SettingError(f"bootstrap is {size}; calibration needs at least 2 replicates, better 100 or more")


def resample(objective: Objective, seed: int, size: int, kind: str = "multinomial") -> Float[np.ndarray, "size v"]:
    """Random weights of the objective's units in ``size`` replicates."""
    units = objective.units
    if not objective.rowwise or len(units.weights) <= MANY_ROWS:
        return draw([seed, 1], units.observations, size, kind) * units.each
    buckets = bucket_of(objective.data.rows.T)
    shares = of_buckets(seed, np.bincount(buckets, weights=units.observations, minlength=BUCKETS), size, kind)
    drawn = np.empty((size, len(units.weights)))
    for bucket in range(BUCKETS):
        inside = buckets == bucket
        drawn[:, inside] = in_bucket(seed, bucket, shares[:, bucket], units.observations[inside], kind)
    return drawn * units.each


def of_buckets(seed: int, totals: Float[np.ndarray, " k"], size: int, kind: str) -> Float[np.ndarray, "size k"]:
    """How much of each replicate falls to each bucket of rows."""
    return draw([seed, 1], totals, size, kind)


def in_bucket(
    seed: int, bucket: int, share: Float[np.ndarray, " size"], observations: Float[np.ndarray, " u"], kind: str
) -> Float[np.ndarray, "size u"]:
    """A bucket's share of each replicate spread over its rows.

    A bucket is given by its rows' values and has random numbers of its own. So many rows can be resampled wherever
    they are, and replicates do not depend on how the data were cut or ordered.
    """
    if not len(observations):
        return np.empty((len(share), 0))
    return draw([seed, 1, bucket], observations, len(share), kind, share)


def draw(
    seed: list[int],
    observations: Float[np.ndarray, " u"],
    size: int,
    kind: str,
    totals: Float[np.ndarray, " size"] | None = None,
) -> Float[np.ndarray, "size u"]:
    """Resampled weights that sum to as many observations as there are, or to ``totals``."""
    rng, total = np.random.default_rng(seed), observations.sum()
    if kind == "multinomial":
        wanted = round(float(total)) if totals is None else np.round(totals).astype(int)
        return rng.multinomial(wanted, observations / total, size=size).astype(float)
    return rng.dirichlet(observations, size=size) * (total if totals is None else totals[:, None])


def degenerate(objective: Objective, weights: Float[np.ndarray, "b u"]) -> int:
    """How many replicates hold a single value of a column that has several in the data."""
    if not objective.rowwise or len(weights[0]) > MANY_ROWS:
        return 0
    rows = objective.data.rows.astype(float)
    rows = rows - rows[0]
    varies = np.ptp(rows, axis=0) > 0
    shares = weights / weights.sum(axis=1, keepdims=True)
    means, squares = shares @ rows, shares @ rows**2
    return int(np.sum(((squares - means**2 <= 1e-12 * squares) & varies).any(axis=1)))


MIDDLE = 0.6827  # of estimates, whose range is two robust standard deviations


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
        if model.single_observation:
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
    # where fewer than four in five have an estimate, those that have one are a selection
    if replicates.truth is None or usable.mean() < 0.8:
        raise CalibrationError(
            f"only {int(usable.sum())} of {len(usable)} simulated data sets have an estimate: the model at its "
            "estimate makes data that say too little. What to do: a simpler model, a tighter prior, or beta by hand."
        )
    y = objective.space.to_y(replicates.minima.vectors[usable])
    low, middle, high = np.quantile(y, [0.5 - 0.5 * MIDDLE, 0.5, 0.5 + 0.5 * MIDDLE], axis=0)
    scale = np.maximum(np.maximum(0.5 * (high - low), 0.5 * y.std(axis=0)), 1e-12)
    # beyond three robust standard deviations an estimate counts as this far in correlations
    held = np.clip(y, middle - 3.0 * scale, middle + 3.0 * scale)
    covariance = np.atleast_2d(np.cov(held.T))
    own = scale / np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    return own[:, None] * covariance * own, middle - objective.space.to_y(replicates.truth)
