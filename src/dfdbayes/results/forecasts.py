"""Forecasts of a series: futures simulated from the posterior, step by step, each with its own past."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from .._util.resources import require_seed
from ..core.mixing import evenly
from ..core.model import AbstractModel
from ..core.simulators.paths import Step, expected, step
from ..data.formulas import variables
from ..data.read.reading import frame_of
from ..data.series import Series
from ..errors import DataError, MisfitWarning, ModelError, SettingError, outside
from .accessor import ACCESSORS, AbstractAccessor
from .fitted import Fitted
from .regression import covariates, require_level, require_regression

FAR = 100.0  # times the largest value observed, from which a future counts as running away


@ACCESSORS.register("series")
class SeriesAccessor(AbstractAccessor):
    """``fit.series``: one column in the order of time, with what came before among its covariates."""

    fits = "series: fit with time=... (or a lag in the formula)"

    def forecast(
        self, steps: int | None = None, newdata: Any = None, interval: float = 0.95, draws: int = 1000, seed: int = 0
    ) -> Forecast:
        """What comes next; see `Fit.forecast`."""
        self._warn_of_draws()
        found = forecast(self.fit, steps, newdata, interval, draws, seed)
        self._warn_of_misfit()
        return found


@dataclass(frozen=True)
class Forecast:
    """What comes next, by step.

    Attributes
    ----------
    response : str
        The column that is forecast.
    interval : float
        The level of the intervals in ``table``.
    table : pandas.DataFrame
        A line for each step, with its time as index (and its unit, of a panel): ``mean``, ``median``, and ``low`` to
        ``high``, between which the new observation lies. Parameters, new observations and those before them are all
        uncertain in these. Where some futures run away there is no mean (NaN).
    paths : (units, draws, steps) integers
        The simulated futures, for what depends on several steps: ``forecast.paths.sum(axis=2)``.
    shares : tuple of arrays
        For each line of the table the probabilities of 0, 1, 2, ...
    observed : pandas.DataFrame
        Times and values of the series so far, with its unit.
    """

    response: str
    interval: float
    table: pd.DataFrame
    paths: Int[np.ndarray, "units draws steps"]
    shares: tuple[Float[np.ndarray, " k"], ...]
    observed: pd.DataFrame

    def quantiles(self, levels: Sequence[float]) -> pd.DataFrame:
        """Quantiles of the new observation at each step, a column for each level."""
        found = [_quantiles(shares, levels) for shares in self.shares]
        return pd.DataFrame(found, index=self.table.index, columns=list(levels))

    def __repr__(self) -> str:
        return f"Forecast of {self.response}, {self.interval:.0%} intervals\n{self.table.round(3).to_string()}"

    def _repr_html_(self) -> str:
        return self.table.round(3).to_html()


def _quantiles(shares: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    return np.searchsorted(np.cumsum(shares), np.asarray(levels) - 1e-12)


def forecast(fit: Fitted, steps: int | None, newdata: Any, interval: float, draws: int, seed: int) -> Forecast:
    """See `Fit.forecast`."""
    model, ends = require_regression(fit, "forecasts"), require_level(interval)
    require_seed(seed)
    observed = model.observed
    if observed.series is None:
        raise SettingError("forecasts are for series: fit with time=... (or a lag in the formula), and forecast then")
    if draws < 2:
        raise SettingError(f"draws is {draws}; a forecast needs at least 2, better 1000")
    ahead = None if newdata is None else frame_of(newdata).rename(columns=str)
    thetas = evenly(fit.joint_draws, draws)
    rng = np.random.default_rng([seed, 8])
    response, series = fit.data.columns[0], observed.series
    largest = float(np.abs(observed.frame[response]).max())
    lines, shares, paths = [], [], []
    for unit, past in _units(observed.frame, series):
        task = _Task(model, series, response, unit, past, _of_unit(ahead, series, unit), steps)
        found = list(_futures(task, thetas, max(FAR * largest, 1000.0), rng))
        _require_bounded(found, ends, largest, task)
        paths.append(np.stack([at.values for at in found], axis=1))
        for time, at in zip(task.times, found, strict=True):
            low, median, high = _quantiles(at.shares, (ends[0], 0.5, ends[1]))
            key = {} if series.by is None else {series.by: unit}
            mean = float(np.mean(at.means))
            lines.append(key | {series.time or "step": time, "mean": mean, "median": median, "low": low, "high": high})
            shares.append(at.shares)
    keys = [*([] if series.by is None else [series.by]), series.time or "step"]
    seen = observed.frame[[*keys[:-1], *([] if series.time is None else [series.time]), response]].copy()
    if series.time is None:
        seen.insert(len(seen.columns) - 1, "step", series.places(observed.frame))
    elif series.calendar.kind in ("dates", "months"):
        seen[series.time] = series.at(series.places(observed.frame))
    return Forecast(response, interval, pd.DataFrame(lines).set_index(keys), np.stack(paths), tuple(shares), seen)


@dataclass(frozen=True)
class _Task:
    """The future of one unit: what is known of its past, and what is given of its future."""

    model: AbstractModel
    series: Series
    response: str
    unit: Any
    past: pd.DataFrame
    ahead: pd.DataFrame | None
    asked: int | None

    @property
    def steps(self) -> int:
        """How many steps were asked for, or how many rows of new data there are."""
        found = self.asked if self.asked is not None or self.ahead is None else len(self.ahead)
        if isinstance(found, bool) or not isinstance(found, (int, np.integer)) or found < 1:
            raise SettingError(f"steps is {found!r}; give how many steps ahead, at least 1")
        most = 2000  # about a minute of the family that takes longest, and years of a series of days
        if found > most:
            raise SettingError(
                f"steps is {found}, and a forecast goes at most {most} steps ahead, each simulated from the one "
                "before. What to do: give fewer steps (--steps) or rows of newdata; for a time that is farther off, "
                "fit a series of longer steps, such as weeks for days."
            )
        return int(found)

    @property
    def places(self) -> np.ndarray:
        return int(self.series.places(self.past).max()) + 1 + np.arange(self.steps)

    @property
    def times(self) -> Any:
        return self.series.at(self.places)

    def known(self, name: str) -> Float[np.ndarray, " k"]:
        """Past values of a lagged column, as far back as formulas look; NaN where there are none."""
        longest, last = self.series.longest, int(self.places[0]) - 1
        found = np.full(longest, np.nan)
        back = last - self.series.places(self.past)
        recent = back < longest
        found[longest - 1 - back[recent]] = self.past[name].to_numpy(dtype=float)[recent]
        return found

    def future(self) -> pd.DataFrame:
        """Covariates of each step; an error that names what is missing of them."""
        lagged = {lag.name for lag in self.series.lags}
        rows = self.series.used(self.past).iloc[:0]
        used = {name for design in self.model.designs for name in variables(design.right, rows)}
        needed = used - lagged - {self.series.time, self.response}
        needed |= {lag.column for lag in self.series.lags if lag.steps < self.steps} - {self.response}
        frame = pd.DataFrame(index=range(self.steps)) if self.ahead is None else self._in_order()
        for name in sorted(needed):
            if name not in frame.columns:
                raise DataError(
                    f"the formula needs '{name}' of the {self.steps} steps to come. What to do: give newdata= with a "
                    f"row for each step, and '{name}' among its columns."
                )
            if frame[name].isna().any():
                raise DataError(f"'{name}' is missing in row {int(np.argmax(frame[name].isna())) + 1} of newdata")
        frame = frame[sorted(needed)]
        if self.series.time is not None:
            dated = self.series.calendar.kind in ("dates", "months")
            frame = frame.assign(**{self.series.time: self.places if dated else self.times})
        return frame

    def _in_order(self) -> pd.DataFrame:
        assert self.ahead is not None
        frame, of = self.ahead, "" if self.unit is None else f" of {self.series.by} {self.unit}"
        if self.series.time is not None and self.series.time in frame.columns:
            places = self.series.calendar.places(frame[self.series.time])
            frame, places = frame.iloc[np.argsort(places)], np.sort(places)
            wrong = np.flatnonzero(places[: self.steps] != self.places[: len(places)])
            if len(wrong):
                raise DataError(
                    f"newdata{of} has {self.series.time} {self.series.at(places[wrong[:1]])[0]} where "
                    f"{self.times[wrong[0]]} comes next: its rows must follow the series, one for each step"
                )
        if len(frame) < self.steps:
            raise DataError(f"newdata{of} has {len(frame)} rows for {self.steps} steps; give one for each")
        return frame.iloc[: self.steps].reset_index(drop=True)


def _units(frame: pd.DataFrame, series: Series) -> Iterator[tuple[Any, pd.DataFrame]]:
    if series.by is None:
        yield None, frame
    else:
        yield from ((unit, part.reset_index(drop=True)) for unit, part in frame.groupby(series.by, observed=True))


def _of_unit(ahead: pd.DataFrame | None, series: Series, unit: Any) -> pd.DataFrame | None:
    if ahead is None or series.by is None:
        return ahead
    if series.by not in ahead.columns:
        raise DataError(f"newdata must say whose rows they are: give it the column '{series.by}'")
    return ahead[ahead[series.by] == unit]


def _futures(task: _Task, thetas: np.ndarray, far: float, rng: np.random.Generator) -> Iterator[Step]:
    """Step after step of all futures; those that run away are held where they are."""
    number, longest, frame = len(thetas), task.series.longest, task.future()
    lagged = {lag.column: np.tile(task.known(lag.column), (number, 1)) for lag in task.series.lags}
    for name, values in lagged.items():
        if np.isnan(values[0, [longest - lag.steps for lag in task.series.lags if lag.column == name]]).any():
            raise DataError(
                f"the last {longest} values of '{name}' are needed to go on, and some of them are missing. What to do: "
                "fill them in, and fit again."
            )
    gone = np.zeros(number, bool)
    for h in range(len(frame)):
        row = {name: np.repeat(frame[name].to_numpy()[h : h + 1], number) for name in frame.columns}
        row |= {lag.name: lagged[lag.column][:, longest + h - lag.steps] for lag in task.series.lags}
        chunk = expected(task.model, thetas, covariates(task.model, pd.DataFrame(row)))
        if chunk.means is not None:
            gone |= ~(chunk.means[0] <= far)
        found = step(chunk, ~gone, rng)
        found.values[gone] = int(far)
        for name in lagged:
            new = found.values.astype(float) if name == task.response else np.repeat(_at(frame, name, h), number)
            lagged[name] = np.concatenate([lagged[name], new[:, None]], axis=1)
        yield found


def _at(frame: pd.DataFrame, name: str, h: int) -> float:
    """A covariate to come, where it is known that far: otherwise no lag asks for it."""
    return float(frame[name].iloc[h]) if name in frame.columns else float("nan")


def _require_bounded(found: list[Step], ends: tuple[float, float], largest: float, task: _Task) -> None:
    """Name futures that run away: an error where intervals have no end, a warning where there is no mean."""
    away = [float(np.mean(np.isnan(at.means))) for at in found]
    if not any(away):
        return
    first = int(np.argmax(np.array(away) > 0))
    what = (
        f"{away[-1]:.1%} of the simulated futures run away (from {task.times[first]} on, expected values beyond "
        f"{FAR:g} times the largest {task.response} observed, {largest:g}): the fitted series is explosive"
    )
    remedy = (
        f"What to do: let earlier values enter as log1p(lag({task.response})), which grows slowly, not as "
        f"lag({task.response}); look at covariates of the steps to come; or forecast fewer steps."
    )
    if away[-1] > ends[0]:
        raise ModelError(f"{what}. {remedy}")
    warnings.warn(MisfitWarning(f"{what}, and has no mean there. {remedy}"), stacklevel=outside())
