"""The weight of a robust loss, from the data: a smooth cut in the tails of a pilot fit.

One column: a pilot is fitted by robust ratio matching, at first with a weight that keeps the bulk of the data only
(which costs precision, and no bias: every weight is proper), then with ever wider ones. A row keeps `kept` of the
pilot's tail beyond it, given its covariates. Several columns: their total, and counts one by one, are taken for normal
about the data's median, with the spread of its quartiles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float

from .._util.codec import APART
from ..errors import MinimiserError, ModelError, SettingError
from .dataset import Dataset
from .losses.local import FISHER, RATIO
from .losses.robust import Robust
from .losses.weights import WEIGHTS, AbstractWeight, OfRows, Totals, kept, transformed
from .minimise import minimise
from .model import AbstractModel
from .objective import Objective
from .simulators.exact import listed
from .simulators.given import tails

MIN_OBSERVATIONS = 20  # observations, to tell where the tails are
ALONE = "a robust loss chooses its weight from the data of many rows"
BY_HAND = "What to do: give a weight, dfd.losses.Robust('ratio', weight=function of an array of rows), or another loss."


@WEIGHTS.register("tails")
@dataclass(frozen=True)
class Tails(AbstractWeight):
    """Rows of one column count less the further out in the tails of a model they lie.

    Attributes
    ----------
    model : AbstractModel
    theta : tuple of float
        The pilot's parameters.
    level : float
        The tail that leaves one half.
    """

    model: AbstractModel = field(metadata=APART)
    theta: tuple[float, ...]
    level: float

    def at(self, rows: np.ndarray, given: np.ndarray | None) -> np.ndarray:
        below, above = self._tails(rows[:, 0], given)
        return kept(below, self.level) * kept(above, self.level)

    def _tails(self, x: np.ndarray, given: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The chances of at most what was observed, and of at least that."""
        if self.model.designs:
            assert given is not None
            found = tails(self.model, np.asarray(self.theta), given, x)
            return found.below + found.here, found.above + found.here
        values, chance = self._listed
        lower, upper = np.cumsum(chance), np.cumsum(chance[::-1])[::-1]
        place = np.searchsorted(values, x)
        last = len(values) - 1
        beyond = place > last
        return np.where(beyond, 1.0, lower[np.minimum(place, last)]), np.where(
            beyond, 0.0, upper[np.minimum(place, last)]
        )

    @cached_property
    def _listed(self) -> tuple[np.ndarray, np.ndarray]:
        points, chances = listed(self.model, np.asarray(self.theta)[None])
        order = np.argsort(points[:, 0])
        return points[order, 0], chances[0][order]

    @property
    def words(self) -> str:
        if self.model.designs:
            return (
                "values that are larger (or smaller) than a pilot fit finds in about one of "
                f"{1 / self.level:.0f} such rows count less"
            )
        values, _ = self._listed
        inside = values[self.at(values[:, None], None) >= 0.5]
        ends = [f"below {inside[0]}"] if inside[0] > values[0] else []
        ends += [f"above {inside[-1]}"] if inside[-1] < values[-1] else []
        return f"values {' or '.join(ends)} count less" if ends else "all values count"


def decided(loss: Robust, model: AbstractModel, data: Dataset) -> tuple[Robust, str]:
    """A robust loss with what was left to the data, and why it weights what it does (empty where a user said so)."""
    if not data.is_complete:
        raise SettingError(
            "a robust loss weights whole rows, and these have missing entries. What to do: missing='drop', or another "
            "loss."
        )
    if loss.decided:
        return loss, ""
    advised, reason = model.advise(data)
    base, why = (FISHER, reason) if advised == FISHER.name else (RATIO, "ratio matching is bounded, and steadier here")
    return loss.with_weight(base, loss.weight or weight_for(model, data)), why if loss.base is None else ""


def weight_for(model: AbstractModel, data: Dataset) -> AbstractWeight:
    """The default weight for a model and its data."""
    if not model.independent:
        raise SettingError(f"{ALONE}, and these are one graph. {BY_HAND}")
    if data.n < MIN_OBSERVATIONS:
        raise SettingError(f"{ALONE} (at least {MIN_OBSERVATIONS}), and there are {data.n}. {BY_HAND}")
    if model.domain.has_categories:
        raise SettingError(f"{ALONE} that have an order, and these have categories without one. {BY_HAND}")
    if model.domain.d > 1:
        return _totals(model, data)
    if model.domain.coordinate(0).kind == "integers":
        raise SettingError(f"{ALONE}, of counts or of finitely many values, and these may be any integers. {BY_HAND}")
    return _tails(model, data)


def _tails(model: AbstractModel, data: Dataset) -> Tails:
    weight: AbstractWeight = OfRows(lambda rows: np.ones(len(rows)))
    start = None
    # tails that leave one half: in the pilot's fits ever smaller ones, the last is that of the loss
    for level in (0.1, 0.03, 0.01, 0.002):
        objective = Objective(model, data, Robust(RATIO, weight))
        minimum = minimise(objective, start)
        if not minimum.usable:
            raise MinimiserError(
                f"a robust loss chooses its weight by a pilot fit, which has no minimum in these data "
                f"({minimum.message}). {BY_HAND}"
            )
        start = minimum.vector
        found = Tails(model, tuple(map(float, start)), level)
        try:
            found.at(data.rows[:1], None if data.given is None else data.given[:1])
        except ModelError as problem:
            raise SettingError(f"the tails of a pilot fit cannot be listed: {problem} {BY_HAND}") from problem
        weight = found
    return found


def _totals(model: AbstractModel, data: Dataset) -> Totals:
    coordinates = [model.domain.coordinate(j) for j in range(model.domain.d)]
    roots = tuple(coordinate.kind == "above" for coordinate in coordinates)
    values = transformed(data.rows, roots)
    spreads = [_spread(values[:, j], data.counts, 1.0 if root else None) for j, root in enumerate(roots)]
    alike = model.domain.is_finite and len({coordinate.levels for coordinate in coordinates}) == 1
    slopes = np.ones(len(roots)) if alike else np.array([2.0 / (below + above) for _, below, above in spreads])
    apart = float(np.sqrt(np.sum((slopes * [0.5 * (below + above) for _, below, above in spreads]) ** 2)))
    middle, below, above = _spread(values @ slopes, data.counts, 0.5 * apart)
    columns = tuple(spread for spread, root in zip(spreads, roots, strict=True) if root)
    names = tuple(name for name, root in zip(data.columns, roots, strict=True) if root)
    # one in a thousand leaves one half, of totals
    return Totals(roots, tuple(map(float, slopes)), middle, below, above, columns, 0.001, names)


def _spread(
    values: Float[np.ndarray, " u"], counts: Float[np.ndarray, " u"], least: float | None
) -> tuple[float, float, float]:
    """The median, and on either side of it the distance of the quartile as that of a normal distribution.

    At least ``least``; without it the standard deviation, which is right for values that have two ends.
    """
    order = np.argsort(values, kind="stable")
    share = (np.cumsum(counts[order]) - 0.5 * counts[order]) / counts.sum()
    low, middle, high = np.interp([0.25, 0.5, 0.75], share, values[order])
    if least is None:
        mean = np.average(values, weights=counts)
        spread = float(np.sqrt(np.average((values - mean) ** 2, weights=counts))) or 1.0
        return float(middle), spread, spread
    # 0.6745 is the upper quartile of the normal distribution
    return float(middle), max(least, (middle - low) / 0.6745), max(least, (high - middle) / 0.6745)
