"""Waves and panels: earlier answers beside today's, so that they can be covariates."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ..errors import DataError, SettingError
from .read.interpreting import listed

SUFFIX = "_lag"


def lagged(
    frame: pd.DataFrame, columns: Sequence[str], *, by: str | None = None, time: str | None = None, lags: int = 1
) -> pd.DataFrame:
    """The rows of a panel or a series, each with earlier values of some columns beside it.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row for each person (or other unit) and time.
    columns : sequence of str
        The columns whose earlier values are wanted: ``mood`` becomes ``mood_lag1``, ``mood_lag2``, ...
    by : str, optional
        The column that says whose row it is; without it the frame is one series.
    time : str, optional
        The column to sort by, and whose steps must be whole numbers: a value is the one of exactly one step earlier,
        so that a wave that somebody missed has no successor. Without it rows are in order and none is missing.
    lags : int
        How many earlier values.

    Returns
    -------
    pandas.DataFrame
        The rows that have all their earlier values, with these as further columns.

    Examples
    --------
    >>> import dfdbayes as dfd, pandas as pd
    >>> diary = pd.DataFrame({"who": ["a", "a", "a", "b", "b"], "day": [1, 2, 4, 1, 2], "mood": [0, 1, 1, 1, 0]})
    >>> dfd.lagged(diary, ["mood"], by="who", time="day").to_numpy().tolist()  # who, day, mood, mood_lag1
    [['a', 2, 1, 0], ['b', 2, 0, 1]]
    """
    if isinstance(lags, bool) or not isinstance(lags, int) or lags < 1:
        raise SettingError(f"lags is {lags!r}; it must be a whole number, at least 1")
    wanted = [str(name) for name in listed(columns)]
    for name in [*wanted, *(name for name in (by, time) if name is not None)]:
        if name not in frame.columns:
            raise DataError(f"there is no column '{name}'; the columns are {', '.join(map(str, frame.columns))}")
    if time is not None and not pd.api.types.is_numeric_dtype(frame[time]):
        raise DataError(
            f"'{time}' holds dates or texts, and steps here are whole numbers. What to do: number the steps (1, 2, 3, "
            f"...) in a column; or fit with formula='... ~ lag({wanted[0]})' and time='{time}', which takes "
            "dates."
        )
    made = [f"{name}{SUFFIX}{lag}" for name in wanted for lag in range(1, lags + 1)]
    there = next((name for name in made if name in frame.columns), None)
    if there is not None:
        raise DataError(
            f"there is a column '{there}' already, which the earlier values would overwrite. What to do: rename or "
            "drop it."
        )
    keys = [name for name in (by, time) if name is not None]
    if time is not None and frame.duplicated(keys).any():
        twice = frame.loc[frame.duplicated(keys), keys].iloc[0]
        shown = ", ".join(f"{name} {value}" for name, value in twice.items())
        raise DataError(f"two rows have {shown}. What to do: keep one row for each {' and '.join(keys)}.")
    ordered = frame.sort_values(keys, kind="stable") if keys else frame
    found = ordered.copy()
    for lag in range(1, lags + 1):
        earlier = _earlier(ordered, wanted, by, time, lag)
        for name in wanted:
            found[f"{name}{SUFFIX}{lag}"] = earlier[name].to_numpy()
    kept = found.dropna(subset=made).reset_index(drop=True)
    if kept.empty:
        raise DataError("no row has all its earlier values: check that by= and time= name the right columns")
    for name in made:  # whole numbers became others where some were missing
        if pd.api.types.is_integer_dtype(frame[name.rsplit(SUFFIX, 1)[0]]):
            kept[name] = kept[name].astype("int64")
    return kept


def _earlier(ordered: pd.DataFrame, wanted: list[str], by: str | None, time: str | None, lag: int) -> pd.DataFrame:
    """The values of so many steps before, missing where there are none."""
    if time is not None:  # from the first one: missing values make floats of what is shifted
        ordered = ordered.assign(**{time: ordered[time] - ordered[time].min()})
    grouped = ordered if by is None else ordered.groupby(by, sort=False)
    shifted = grouped[[*wanted, *([time] if time else [])]].shift(lag)
    if time is not None:
        late = (ordered[time] - shifted[time]) != lag
        shifted.loc[late, wanted] = float("nan")
    return shifted
