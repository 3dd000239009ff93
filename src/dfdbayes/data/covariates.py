"""Covariates as a file has them: a column of numbers with some texts in it is no factor."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError, Problems
from .grammar import written
from .read.columns import tell_mistakes, tell_unclear
from .read.reading import FROM_FILE, Table
from .read.text import doubtful, is_number, note, suspected

CODES = range(3, 7)  # how many groups whole numbers from 1 on may be codes of


def require_plain(frame: pd.DataFrame, columns: Sequence[str], rights: Sequence[str]) -> None:
    """Refuse columns of a file that would become factors with a level for each number, all of them at once.

    A column that a formula calls ``C(name)`` is a factor whatever it holds.
    """
    problems = Problems(str(frame.attrs.get("name", "the data")))
    there = [name for name in columns if name in frame.columns]
    for name in there if frame.attrs.get(FROM_FILE) else ():
        column = frame[name].to_numpy()
        texts = np.array([isinstance(value, str) for value in column], bool)
        if not texts.any() or any(re.search(rf"C\(\s*`?{re.escape(name)}`?\s*[,)]", right) for right in rights):
            continue
        numbers = np.array([isinstance(value, str) and is_number(value) for value in column], bool)
        unclear = np.array([isinstance(value, str) and doubtful(value) for value in column], bool)
        if 2 * numbers.sum() < texts.sum():
            continue
        tell_unclear(column[unclear], name, np.flatnonzero(unclear), problems)
        wrong, groups = texts & ~numbers, f"write C({written(name)}) in the formula if the values are names of groups"
        tell_mistakes(column[wrong], name, np.flatnonzero(wrong), problems, [groups])
    problems.refuse()


def notes_of(source: Any, frame: pd.DataFrame, covariates: Sequence[str], rights: Sequence[str]) -> tuple[str, ...]:
    """What a user should know of how covariates were read."""
    alone = {part.strip(" `") for right in rights for part in re.split(r"[+*:]", right)}
    told = tuple(frame.attrs.get("notes", ())) + tuple(_like_codes(frame, [c for c in covariates if c in alone]))
    if isinstance(source, Table) and source.codes.given:
        return told
    return told + note(suspected(frame[list(covariates)]))


def _like_codes(frame: pd.DataFrame, covariates: Sequence[str]) -> list[str]:
    """Numbers that may be names of groups: 1, 2, 3 and no others."""
    found = []
    for name in covariates:
        seen = frame[name].dropna().unique() if pd.api.types.is_numeric_dtype(frame[name]) else ()
        if len(seen) in CODES and set(seen) == set(range(1, len(seen) + 1)):
            found.append(
                f"'{name}' has the values 1 to {len(seen)} and is taken for a number, with one effect per unit. What "
                f"to do: write C({written(name)}) in the formula if these are codes of groups; nothing if they are "
                "numbers."
            )
    return found


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
