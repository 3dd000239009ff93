"""What rows are where they are no plain observations: sites of a map, times of a series, frequencies of values."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..data.read.columns import NAMES as ID_LIKE
from ..data.read.profile import MAX_LEVELS, Profile
from ..data.series import Calendar
from ..errors import DfdbayesError
from ..families.map.read import MAX_CATEGORIES, cells_of, neighbours_of

PLACES = (
    ("row", "col"), ("row", "column"), ("r", "c"), ("x", "y"), ("lon", "lat"), ("long", "lat"),
    ("longitude", "latitude"), ("easting", "northing"), ("xcoord", "ycoord"),
)  # fmt: skip
TIMES = {"date", "day", "week", "month", "quarter", "year", "time", "hour", "minute", "period", "t", "when"}
OFTEN = {"freq", "frequency", "frequencies", "count", "counts", "n", "number"}
SURVEY = re.compile(r"(^|[_. ])(p|s|samp|survey|sampling|person|case)?_?(weight|weights|wt|wts|wgt)$", re.IGNORECASE)
FILLED = 0.5  # share of the steps of a series, or of the combinations of a table of frequencies, that have a row


def is_raster(array: np.ndarray) -> bool:
    """Whether an array of two dimensions may be an image of a few categories, and not rows of answers."""
    if array.ndim != 2 or array.dtype.names is not None or array.dtype.kind not in "biuf":
        return False
    if not 6 <= min(array.shape) <= max(array.shape) <= 3 * min(array.shape):  # answers are longer than they are wide
        return False
    values = np.unique(array[~pd.isna(array)])
    return 2 <= len(values) <= MAX_CATEGORIES and bool((values == np.round(values)).all())


def places_of(columns: Sequence[Profile], frame: pd.DataFrame) -> tuple[str, str] | None:
    """The two columns that say where on a grid each row is, each cell of which has one row at most."""
    names = {own.name.lower(): own.name for own in columns if np.isfinite(own.low) and not own.missing}
    for first, second in PLACES:
        if first in names and second in names:
            at = (names[first], names[second])
            try:
                cells = cells_of(frame, at)
                return at if len(neighbours_of(cells, 4)) >= FILLED * len(frame) else None
            except DfdbayesError:
                return None
    return None


def time_of(columns: Sequence[Profile], frame: pd.DataFrame) -> tuple[str, Calendar] | None:
    """The column of times of one series, most of whose steps have a row, and none has two."""
    for own in columns:
        called = re.split(r"[._ ]", own.name.lower())[-1] in TIMES
        if own.missing or own.distinct < len(frame) or not (called or own.kind == "date"):
            continue
        try:
            calendar = Calendar.of(frame[own.name])
            places = calendar.places(frame[own.name])
        except DfdbayesError:
            continue
        if len(np.unique(places)) == len(frame) >= FILLED * (places.max() + 1):
            return own.name, calendar
    return None


def frequencies_of(columns: Sequence[Profile], frame: pd.DataFrame) -> Profile | None:
    """The column that says how often the values beside it occur: each combination of these has one row."""
    counted = [own for own in columns if own.kind in ("count", "whole", "ordinal", "binary", "id") and own.low >= 0]
    for often in counted:
        others = [own for own in columns if own is not often and not (own.kind == "id" and ID_LIKE.search(own.name))]
        named = often.name.lower() in OFTEN
        if len(others) == 1 and _lists_values(others[0], often, frame):
            return often
        few = all(own.distinct <= MAX_LEVELS and own.kind in ("binary", "ordinal", "count", "text") for own in others)
        rows = frame[[own.name for own in others]]
        filled = len(frame) >= FILLED * np.prod([float(own.distinct) for own in others])
        if named and len(others) > 1 and few and filled and not rows.duplicated().any():
            return often
    return None


def _lists_values(value: Profile, often: Profile, frame: pd.DataFrame) -> bool:
    """Whether a column has each of the values 0, 1, 2, ... once, beside how often it occurs."""
    if value.distinct < len(frame) or value.kind not in ("id", "ordinal", "count", "binary", "whole"):
        return False
    if ID_LIKE.search(value.name) or re.split(r"[._ ]", value.name.lower())[-1] in TIMES:
        return False
    values = np.sort(pd.to_numeric(frame[value.name], errors="coerce").to_numpy(dtype=float))
    if len(values) < 2 or not np.isfinite(values).all() or not (values == np.round(values)).all():
        return False
    # a table of frequencies begins at zero; of few values it may begin at one
    return bool(values[0] == 0 or (values[0] == 1 and often.mean > 5 and len(values) < 50))


def survey_weights_of(columns: Sequence[Profile]) -> Profile | None:
    """The column that is called as the weights of a survey are."""
    found = [own for own in columns if SURVEY.search(own.name) and own.low > 0 and own.distinct > 1 and not own.missing]
    return found[0] if len(found) == 1 else None
