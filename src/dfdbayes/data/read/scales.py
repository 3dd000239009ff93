"""Scales: columns whose values are levels with an order, as their source or their user declares them.

What a column's levels are cannot be read off texts: "often" does not say that it is more than "never". An ordered
category of pandas says it, and so does a list of the levels from the lowest to the highest.

A level enters models by its rank, also where it is called 2500 or 200000: how far apart levels are nobody has said.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ...core.dataset import Dataset
from ...core.domain import Domain, Integers, Ordinal
from ...errors import DataError, SettingError
from .interpreting import Reading, as_label, first_rows, listed
from .profile import SCALE
from .reading import Table, require_names, table_of
from .yes_no import two_answers

ORDERED = ("ordinal", "blume-capel")  # kinds of columns that are scales


def domain_of(source: Any, reading: Mapping[str, Any], levels: Any = None, kinds: Any = None) -> Domain:
    """What the columns are read with: scales by their levels, and integers where none are declared.

    ``reading`` is what `Dataset.of` takes beside the source and the domain. ``levels`` are those of columns by name,
    or one list for all columns; a source's ordered categories are used for columns that are not named there.
    ``kinds`` are the kinds of columns, by name or in their order: those that are scales have their values as levels.
    """
    if isinstance(source, Dataset):
        names = source.columns if reading["columns"] is None else tuple(map(str, listed(reading["columns"])))
        scales = _by_column(levels, names)
    else:
        table = table_of(source)
        names = Reading.of(source, table, None, **reading).columns
        scales = {name: own for name, own in table.scales.items() if name in names} | _by_column(levels, names)
        texts = _texts_of(table, [name for name in names if name not in scales])
        scales |= {name: answers for name, found in texts.items() if (answers := two_answers(found))}
        _refuse_texts({name: found for name, found in texts.items() if name not in scales})
        scales |= _wide(source, [name for name in names if name not in scales], kinds, names)
    for name, own in scales.items():
        require_names(own, f"level of '{name}'")
    parts = [_scale(name, scales[name]) if name in scales else Integers(1) for name in names]
    found = parts[0]
    for part in parts[1:]:
        found = found * part
    return found


def _by_column(levels: Any, names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    if levels is None:
        return {}
    if isinstance(levels, str) or not isinstance(levels, (Mapping, Sequence)):
        raise SettingError(
            f"levels is {levels!r}; it must be a list from the lowest level to the highest, for all columns, or such "
            "lists by the name of a column: {'mood': ['never', 'rarely', 'often']}"
        )
    if not isinstance(levels, Mapping):
        levels = dict.fromkeys(names, levels)
    for name, own in levels.items():
        if name not in names:
            close = difflib.get_close_matches(str(name), names, n=1)
            hint = f"; did you mean '{close[0]}'?" if close else "."
            raise SettingError(
                f"levels names '{name}', which is not a column{hint} The columns are {', '.join(names)}."
            )
        if isinstance(own, str) or not isinstance(own, Sequence):
            raise SettingError(f"the levels of '{name}' are {own!r}; give a list from the lowest to the highest")
    return {str(name): tuple(own) for name, own in levels.items()}


def _wide(source: Any, free: Sequence[str], kinds: Any, names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """The values of columns that are said to be scales, and go further than short ones do."""
    if kinds is None or isinstance(kinds, str):
        return {}
    by_name = kinds if isinstance(kinds, Mapping) else dict(zip(names, kinds, strict=False))
    asked = [name for name in free if by_name.get(name) in ORDERED]
    if not asked:
        return {}
    data = Dataset.of(source, columns=asked, missing="impute")
    seen = data.seen
    values = {name: np.unique(data.rows[seen[:, j], j]) for j, name in enumerate(asked)}
    return {name: tuple(own.tolist()) for name, own in values.items() if own[-1] - own[0] > SCALE}


def _scale(name: str, levels: tuple[Any, ...]) -> Domain:
    """Whole numbers that are counted up are levels themselves; others are labels, of which a model sees the rank."""
    if len(set(map(as_label, levels))) < max(2, len(levels)):
        raise SettingError(
            f"the levels of '{name}' are {list(levels)}; a scale needs at least two, all of them different"
        )
    numbers = [level for level in levels if isinstance(level, (int, float, np.number)) and level == int(level)]
    if len(numbers) == len(levels) and all(b == a + 1 for a, b in pairwise(numbers)):
        return Ordinal(1, [int(number) for number in numbers])
    return Ordinal(1, [as_label(level) for level in levels])


def _texts_of(table: Table, names: Sequence[str]) -> dict[str, list[str]]:
    """The distinct texts of columns that hold such."""
    chunk = first_rows(table, names) if names else {}
    texts = {name: _texts(values) for name, values in chunk.items()}
    return {name: found for name, found in texts.items() if found}


def _refuse_texts(texts: Mapping[str, list[str]]) -> None:
    """Name all columns of texts at once, with how to declare their order."""
    if not texts:
        return
    first, found = next(iter(texts.items()))
    shown = ", ".join(map(repr, found[:4])) + (", ..." if len(found) > 4 else "")
    others = [repr(name) for name in texts if name != first]
    more = f" (and so do {', '.join(others[:8])}{', ...' if len(others) > 8 else ''})" if others else ""
    scale = "['lowest', ..., 'highest']"
    raise DataError(
        f"column '{first}' holds texts ({shown}){more}, which do not say how they are ordered. What to do: give the "
        f"levels in their order, by frame['{first}'] = pd.Categorical(frame['{first}'], {scale}, ordered=True) or by "
        f"options={{'levels': {{'{first}': {scale}}}}}, on the command line --levels '{first}=lowest,...,highest'; or "
        "leave the column out (columns=[...], --columns)."
    )


def _texts(values: np.ndarray) -> list[str]:
    """The distinct texts of a column that holds more of them than numbers, sorted; few are mistakes of single rows."""
    if values.dtype.kind not in "OUST":
        return []
    known = pd.Series(values).dropna()
    words = known[pd.to_numeric(known, errors="coerce").isna()]
    words = words[[isinstance(word, str) for word in words]]
    return sorted(set(words)) if 2 * len(words) > len(known) else []
