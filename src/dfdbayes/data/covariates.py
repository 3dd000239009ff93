"""Covariates as a file has them: a column of numbers with some texts in it is no factor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import Problems
from .grammar import written
from .read.columns import tell_mistakes, tell_unclear
from .read.reading import FROM_FILE, Table
from .read.text import doubtful, is_number, note, suspected


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
    """Numbers that may be names of groups, of which there are three to six: 1, 2, 3 and no others."""
    found = []
    for name in covariates:
        seen = frame[name].dropna().unique() if pd.api.types.is_numeric_dtype(frame[name]) else ()
        if 3 <= len(seen) <= 6 and set(seen) == set(range(1, len(seen) + 1)):
            found.append(
                f"'{name}' has the values 1 to {len(seen)} and is taken for a number, with one effect per unit. What "
                f"to do: write C({written(name)}) in the formula if these are codes of groups; nothing if they are "
                "numbers."
            )
    return found
