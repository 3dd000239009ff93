"""Columns that are no data: row numbers and identifiers, durations without a unit, several values in a row."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

NAMES = re.compile(
    r"(^|[_. ])(id|ids|nr|no|number|index|obs|case|subject|subj|person|patient|key|rownames)$", re.IGNORECASE
)
FEW = 10  # different values up to which a column may be a short scale, whatever its name
OFTEN = 20  # rows for each value on average, from which a column is a group and no identifier
LOOKED_AT = 1000  # rows from which it is told what a column is before the others are read


def identifier(name: str, rows: np.ndarray) -> str:
    """Whether whole numbers are an "id", different in every row, or a "group", an id that repeats; "" if neither.

    Numbers that rise from row to row count the rows, whatever they are called.
    """
    distinct = len(np.unique(rows))
    if distinct <= FEW:
        return ""
    if distinct == len(rows) and ((np.diff(rows) > 0).all() or NAMES.search(name)):
        return "id"
    return "group" if NAMES.search(name) and len(rows) < OFTEN * distinct else ""


def without_identifiers(columns: Mapping[str, np.ndarray], weighted: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of columns that are no identifiers, and what to say of the others; all where fewer than two are left.

    Two columns alone may be values and how often each occurs. In a table with weights rows are not people: numbers that
    rise are identifiers only by their name.
    """
    found = {name: identifier(name, rows) for name, rows in columns.items() if _whole(rows)}
    if weighted:
        found = {name: kind for name, kind in found.items() if NAMES.search(name)}
    kept = tuple(name for name in columns if not found.get(name))
    if len(kept) < 2 or len(kept) == len(columns):
        return tuple(columns), ()
    return kept, tuple(_note(name, kind) for name, kind in found.items() if kind)


def _note(name: str, kind: str) -> str:
    keep = f"columns=['{name}', ...] (--columns) names the columns to use, if it is data"
    if kind == "id":
        return f"'{name}' numbers the rows and was left out. What to do: nothing; or {keep}."
    whose = f"cluster='{name}' (--cluster {name}) if rows of the same '{name}' belong together"
    return f"'{name}' says whose row it is and was left out. What to do: {whose}; or {keep}."


def _whole(rows: np.ndarray) -> bool:
    if rows.dtype.kind == "f":
        return bool(np.isfinite(rows).all() and (rows == np.round(rows)).all())
    return rows.dtype.kind in "iu"


def are_durations(column: pd.Series) -> bool:
    """Whether a column holds lengths of time, which are numbers only in a unit."""
    if column.dtype == object:
        return any(isinstance(value, (datetime.timedelta, np.timedelta64)) for value in column)
    return str(column.dtype).startswith(("timedelta64", "duration"))


def are_nested(column: pd.Series) -> bool:
    """Whether rows hold several values each: lists, mappings."""
    return column.dtype == object and any(isinstance(value, (list, dict, set, np.ndarray)) for value in column)
