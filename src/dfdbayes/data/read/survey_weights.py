"""Whether whole-number weights can be frequencies, or are the sampling weights of a survey.

A table of frequencies lists every combination of values once, and if nearly all of its frequencies are large, nearly
all combinations of its columns' values occur in it. A survey lists people: rows of equal values stand there again and
again with weights of their own, and of the combinations of many or finely measured columns few occur.
"""

from __future__ import annotations

import numpy as np

from ...core.distinct import Tally, keys
from ...errors import DataError

ONES = 0.05  # share of weights of 1 from which rows may well have been counted: rare values of counts occur once
LARGE = 10.0  # mean weight below which a survey's weights would be unusually small: one person for ten
FEW = 50  # rows up to which a table is too small for a survey
MANY = 500  # rows beyond any published table of frequencies that are all large (the longest known to us has 306)
LISTED = 0.2  # share of the combinations that a table of large frequencies lists at least


def told_of_weights(tally: Tally, name: str) -> tuple[str, ...]:
    """A note where weights taken for frequencies may be a survey's; `DataError` where they are.

    ``tally`` has the weights still apart from the rows, and ``name`` is what the user calls them.
    """
    weights, rows = tally.weights, float(tally.repeats.sum())
    if weights is None or rows <= FEW or not (weights == np.round(weights)).all():
        return ()
    with np.errstate(over="ignore"):
        total = float(tally.repeats @ weights)
    if not np.isfinite(total):  # refused where weights are read
        return ()
    if tally.repeats[weights == 1].sum() >= ONES * rows or total <= LARGE * rows:
        return ()
    distinct, combinations = _distinct(tally)
    if distinct == rows and rows >= LISTED * combinations:
        return ()
    how = f"only {distinct} of them differ" if distinct < rows else "few combinations of values occur"
    said = (
        f"'{name}' holds whole numbers, {total / rows:,.0f} on average: as frequencies {total:,.0f} observations in "
        f"{rows:,.0f} rows, of which {how}"
    )
    sampling = "weighting='sampling' (--weighting sampling)"
    if distinct < rows <= MANY and rows >= LISTED * combinations:
        return (
            f"{said}. They were taken for frequencies. What to do: nothing if each says how many observations its row "
            f"stands for; {sampling} if they are a survey's weights.",
        )
    raise DataError(
        f"{said}. These look like a survey's weights, each row being one person. What to do: {sampling}; or "
        "weighting='frequency' (--weighting frequency) if every row was observed as often as that."
    )


def _distinct(tally: Tally) -> tuple[int, float]:
    """How many rows differ in their values, and how many combinations there are of all values of the columns.

    Covariates, which may be one factor in several columns, and the cluster are one column here. A column that says in
    other words what others say, as an age group does of an age, adds no combinations.
    """
    codes = [np.unique(part, return_inverse=True)[1] for part in (() if tally.extra is None else tally.extra)]
    columns = [
        np.unique(part, return_inverse=True)[1] for part in (*tally.columns, *([keys(codes)[0]] if codes else []))
    ]
    joint, combinations = np.zeros(tally.size, np.int64), 1.0
    for column in sorted(columns, key=lambda own: -own.max()):
        before = joint.max() + 1
        joint = np.unique(keys([joint, column])[0], return_inverse=True)[1]
        if (
            joint.max() + 1 > before or before > 2 / 3 * tally.size
        ):  # any column is a function of rows that hardly repeat
            combinations *= column.max() + 1
    return int(joint.max()) + 1, combinations
