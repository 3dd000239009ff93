"""Words for no and yes in binary columns."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

NO = ("no", "n", "false", "absent", "nein", "nee", "non", "não", "nao", "nej")
YES = ("yes", "y", "true", "present", "ja", "oui", "sí", "sì", "si", "sim")
ANSWERS = dict.fromkeys(NO, 0) | dict.fromkeys(YES, 1)


def read_answers(column: np.ndarray) -> tuple[np.ndarray, bool]:
    """Words for no and yes as 0 and 1, what is missing as it is; a column of other words or numbers as it is.

    Also whether there were such words.
    """
    known = ~np.asarray(pd.isna(column))
    if column.dtype.kind not in "OUT" or not known.any() or not all(isinstance(v, str) for v in column[known]):
        return column, False
    words = {word: ANSWERS.get(word.strip().casefold()) for word in set(column[known].tolist())}
    if None in words.values():
        return column, False
    found = np.array([words.get(value, value) for value in column.tolist()], dtype=object)
    return found.astype(np.int64) if known.all() else found, True


def two_answers(texts: list[str]) -> tuple[str, ...]:
    """Two words for no and yes, in this order; nothing where these are others."""
    values = {ANSWERS.get(text.strip().casefold()): text for text in texts}
    return (values[0], values[1]) if len(texts) == 2 and set(values) == {0, 1} else ()


def told_answers(names: Iterable[str]) -> tuple[str, ...]:
    """A note on columns whose words were read."""
    shown = ", ".join(names)
    return (
        (f"words in {shown} were read as no = 0 and yes = 1. What to do: nothing, if that is meant.",) if shown else ()
    )
