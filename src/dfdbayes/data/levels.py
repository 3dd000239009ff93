"""Values of columns as JSON can hold them, and back: what a level of a factor is, and nothing that is executed.

Texts, numbers, and truth values are themselves; any other is a mapping of the name of its kind to what it says.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError


def encoded(value: Any) -> Any:
    """A value as JSON can hold it; `TypeError` of one that is not kept."""
    if isinstance(value, (pd.Timestamp, pd.Timedelta)) and not pd.isna(value):
        zone = str(value.tz) if isinstance(value, pd.Timestamp) and value.tz is not None else None
        return {type(value).__name__: [value.to_numpy().astype(np.int64).item(), value.unit, zone]}  # in UTC
    if isinstance(value, np.generic):
        value = pd.Timestamp(value) if isinstance(value, np.datetime64) else value.item()
        return encoded(value)
    if value is None or type(value) in (str, bool, int, float):
        return value
    if isinstance(value, str):  # numpy's and others' own
        return str(value)
    if isinstance(value, pd.Period):
        return {"Period": [value.ordinal, value.freqstr]}
    if isinstance(value, pd.Interval):
        return {"Interval": [encoded(value.left), encoded(value.right), value.closed]}
    if isinstance(value, tuple):
        return {"tuple": [encoded(part) for part in value]}
    if isinstance(value, (Decimal, Fraction)):
        return {type(value).__name__: str(value)}
    if type(value) in _OF_ISO.values():
        return {type(value).__name__: value.isoformat()}
    raise TypeError(type(value).__name__)


_OF_ISO = {kind.__name__: kind for kind in (datetime.date, datetime.datetime, datetime.time)}


def decoded(value: Any) -> Any:
    """Back from `encoded`."""
    if not isinstance(value, Mapping):
        return value
    ((kind, said),) = value.items()
    if kind == "Timestamp":
        made = pd.Timestamp(np.datetime64(said[0], said[1]))
        return made if said[2] is None else made.tz_localize("UTC").tz_convert(said[2])
    if kind == "Timedelta":
        return pd.Timedelta(np.timedelta64(said[0], said[1]))
    if kind == "Period":
        return pd.Period(ordinal=said[0], freq=said[1])
    if kind == "Interval":
        return pd.Interval(decoded(said[0]), decoded(said[1]), closed=said[2])
    if kind == "tuple":
        return tuple(map(decoded, said))
    if kind in ("Decimal", "Fraction"):
        return Decimal(said) if kind == "Decimal" else Fraction(said)
    return _OF_ISO[kind].fromisoformat(said)


def require_kept(frame: pd.DataFrame) -> None:
    """Refuse columns whose values a file could not keep as they are."""
    for name, column in frame.items():
        values: Any = column.dtype.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
        if values.dtype.kind in "biufcM":
            continue
        for kind in dict.fromkeys(map(type, values)):
            value = next(own for own in values if type(own) is kind)
            try:
                _ = None if isinstance(value, complex) else encoded(value)  # which a formula says more of
            except TypeError:
                raise DataError(
                    f"'{name}' holds {value!r}, a {kind.__name__}, and what a fit depends on must be numbers, texts, "
                    f"dates, or intervals. What to do: make texts of them, frame[{name!r}].map(str)."
                ) from None


def plain_values(values: pd.Series | pd.Index) -> tuple[np.ndarray, list[Any]]:
    """Which of its distinct values each entry is (-1: missing), and these as JSON can hold them."""
    codes, distinct = pd.factorize(values)
    return codes, [encoded(value) for value in distinct]
