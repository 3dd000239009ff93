"""What each column of a table is: binary, a scale, counts, texts, continuous, an id, constant, dates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ...core.dataset import Dataset
from ...core.domain import Domain, Integers, Ordinal
from ...errors import DataError, Problems, SettingError, require_known
from .columns import NAMES as ID_LIKE
from .columns import (
    Reading,
    are_durations,
    are_nested,
    as_label,
    first_rows,
    identifier,
    listed,
    tell_mistakes,
    tell_unclear,
    two_answers,
)
from .dataset import read
from .reading import Table, require_names, table_of
from .text import AMONG_NUMBERS, CELLS_LOOKED_AT, by_meaning, doubtful, means_missing, readings, suspects

MAX_SCALE_SPAN = 10  # from the lowest to the highest value of a scale, as from 0 to 10; what goes further is a count
MAX_LEVELS = 30  # of a factor: a text with more says whose row it is
MIN_OF_LEVEL = 5  # observations, below which a level is rare
_TIME = r"\d{1,2}:\d{2}(:\d{2}.*)?"
_DATE = re.compile(rf"(\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}})([ T]{_TIME})?|{_TIME}")


@dataclass(frozen=True)
class Profile:
    """What a column is.

    Attributes
    ----------
    kind : str
        "binary", "ordinal" (a short scale), "count", "whole" (whole numbers that are no counts), "continuous", "text",
        "id" (different in every row), "group" (an id that repeats), "date", "duration", "nested" (lists and
        the like), "constant", "empty" or "mixed".
    n, missing : float
        Observations with and without a value.
    levels : tuple of (value, observations)
        The distinct values from the lowest on, or from the most frequent text on, where they are few.
    low, high, mean, variance : float
        Of numbers.
    codes : tuple
        Numbers, and texts among numbers, that seem to stand for missing values.
    """

    name: str
    kind: str
    n: float
    missing: float
    distinct: int
    levels: tuple[tuple[Any, float], ...] = ()
    low: float = np.nan
    high: float = np.nan
    mean: float = np.nan
    variance: float = np.nan
    codes: tuple[float | str, ...] = ()
    labels: Mapping[float, str] | None = None
    notes: tuple[str, ...] = ()
    same_as: str | None = None

    @property
    def zero_one(self) -> bool:
        """Whether its two values are 0 and 1."""
        return self.kind == "binary" and (self.low, self.high) == (0.0, 1.0)

    @property
    def zeros(self) -> float:
        """The share of zeros among numbers."""
        return sum(count for value, count in self.levels if value == 0) / self.n if self.n else 0.0

    @property
    def many_zeros(self) -> bool:
        """Whether counts have more zeros than Poisson ones."""
        return self.kind == "count" and self.zeros > 0.2 and self.zeros > 2 * np.exp(-self.mean)

    @property
    def values(self) -> str:
        """What it holds, in a few words."""
        if self.kind == "empty":
            return "nothing"
        if self.kind in ("binary", "ordinal", "constant", "text", "mixed") and self.levels:
            shown = [f"{self._called(value)} ({count:g})" for value, count in self.levels[:6]]
            return ", ".join(shown if len(self.levels) <= 6 else [*shown[:5], "..."])
        if np.isnan(self.low):
            return f"{self.distinct} different"
        said = f"{self.low:.6g} to {self.high:.6g}"
        mean = 0.0 if abs(self.mean) < 1e-9 * (self.high - self.low) else self.mean
        return said if self.kind in ("id", "group") else f"{said}, mean {mean:.3g}"

    def _called(self, value: Any) -> str:
        text = f"{value:g}" if isinstance(value, float) else str(value)
        text = text if len(text) <= 20 else text[:17] + "..."
        return f"{text} {self.labels[value]}" if self.labels and value in self.labels else text


def profiles(
    frame: pd.DataFrame, weights: np.ndarray | None, labels: Mapping[str, Mapping[float, str]],
    scales: Mapping[str, tuple[Any, ...]], problems: Problems,
) -> tuple[Profile, ...]:  # fmt: skip
    """What each column of a frame is; what is wrong with single cells is added to ``problems``.

    ``scales`` are the levels of columns that say themselves that these are ordered.
    """
    each = np.ones(len(frame)) if weights is None else np.asarray(weights, float)
    found = [_profile(str(name), frame[name], each, labels.get(str(name)), problems) for name in frame.columns]
    found = [_ordered(own, scales[own.name]) if own.name in scales else own for own in found]
    return tuple(_beside(found, frame))


def _ordered(own: Profile, scale: tuple[Any, ...]) -> Profile:
    """A column whose levels are known to have an order."""
    if own.kind in ("count", "whole", "continuous"):
        return replace(own, kind="ordinal", notes=_rare(own.levels))
    if own.kind != "text":
        return own
    often = dict(own.levels)
    levels = tuple((str(level), often[str(level)]) for level in scale if str(level) in often)
    return replace(own, kind="ordinal", levels=levels)


def _profile(
    name: str, column: pd.Series, each: np.ndarray, labels: Mapping[float, str] | None, problems: Problems
) -> Profile:
    known = column.notna().to_numpy()
    missing = float(each[~known].sum())
    column, each = column[known], each[known]
    n = float(each.sum())
    if not len(column):
        return Profile(name, "empty", n, missing, 0, notes=("holds no value",))
    if are_nested(column):
        return Profile(name, "nested", n, missing, 0, notes=("each row holds several values",))
    if are_durations(column):
        days = f"as numbers of days: frame['{name}'] / pandas.Timedelta(days=1)"
        return Profile(name, "duration", n, missing, int(column.nunique()), notes=(days,))
    if column.dtype == object:
        column = column.map(lambda value: value.decode(errors="replace") if isinstance(value, bytes) else value)
    if pd.api.types.is_datetime64_any_dtype(column) or _are_dates(column):
        return Profile(name, "date", n, missing, int(column.nunique()))
    if pd.api.types.is_bool_dtype(column) or set(column.unique()) <= {True, False}:
        column = column.astype(float)
    said: tuple[str, ...] = ()
    if not pd.api.types.is_numeric_dtype(column):
        said = tuple(dict.fromkeys(text for text in column if isinstance(text, str) and means_missing(text)))
        numbers = _numbers(column, name, np.flatnonzero(known), problems)
        if numbers is None:
            return _of_texts(name, column.astype(str), each, missing)
        lacking = column.isin(AMONG_NUMBERS).to_numpy()
        missing, n = missing + float(each[lacking].sum()), n - float(each[lacking].sum())
        known = numbers.notna().to_numpy()
        column, each = numbers[known], each[known]
        if not len(column):
            return Profile(name, "mixed", n, missing, 0, notes=("numbers that can be read in two ways",))
    values = column.to_numpy(dtype=float)
    infinite = ~np.isfinite(values)
    if infinite.any():
        problems.add(
            f"row {{row}}, column '{name}' is {values[infinite][0]:g}",
            "Correct the value, or leave the column out.",
            column.index[infinite].to_numpy(),
        )
        values, each = values[~infinite], each[~infinite]
    found = _of_numbers(name, values, each, missing, labels)
    return replace(found, codes=(*found.codes, *said))


def _numbers(column: pd.Series, name: str, where: np.ndarray, problems: Problems) -> pd.Series | None:
    """A column of numbers with some texts in it as numbers; None where it is one of texts."""
    distinct = {text: readings(text) if isinstance(text, str) else {"": text} for text in column.unique()}
    numeric = column.map({text: bool(found) for text, found in distinct.items()}).to_numpy(dtype=bool)
    unclear = column.map({text: isinstance(text, str) and doubtful(text) for text in distinct}).to_numpy(dtype=bool)
    plainly_texts = numeric.all() and not unclear.any() and all(isinstance(text, str) for text in distinct)
    lacking = column.isin(AMONG_NUMBERS).to_numpy()
    if 2 * numeric[~lacking].sum() < max(1, (~lacking).sum()) or plainly_texts:
        return None
    texts = column.to_numpy()
    tell_unclear(texts[unclear], name, where[unclear], problems)
    wrong = ~numeric & ~lacking
    tell_mistakes(texts[wrong], name, where[wrong], problems)
    value = column.map(lambda text: float(next(iter(distinct[text].values()), np.nan)))
    return value.where(~unclear)


def _are_dates(column: pd.Series) -> bool:
    some = column.iloc[:CELLS_LOOKED_AT]
    texts = [value for value in some if isinstance(value, str)]
    if not texts:
        return any(type(value).__module__ == "datetime" for value in some)
    return len(texts) == len(some) and sum(_DATE.fullmatch(text) is not None for text in texts) > 0.9 * len(texts)


def _of_texts(name: str, column: pd.Series, each: np.ndarray, missing: float) -> Profile:
    often = pd.Series(each, index=column.to_numpy()).groupby(level=0).sum().sort_values(ascending=False, kind="stable")
    n, distinct = float(each.sum()), len(often)
    levels = tuple((str(level), float(count)) for level, count in often.items())
    if distinct == 1:
        return Profile(name, "constant", n, missing, 1, levels, notes=("never varies",))
    if distinct == len(column) == n and distinct > MIN_OF_LEVEL:
        return Profile(name, "id", n, missing, distinct, notes=("different in every row",))
    if distinct > MAX_LEVELS or (ID_LIKE.search(name) and len(column) < distinct * 20 and distinct > MAX_SCALE_SPAN):
        return Profile(name, "group", n, missing, distinct, notes=(f"{distinct} different texts",))
    return Profile(name, "text", n, missing, distinct, levels, notes=_rare(levels))


def _of_numbers(
    name: str, values: np.ndarray, each: np.ndarray, missing: float, labels: Mapping[float, str] | None
) -> Profile:
    distinct, inverse = np.unique(values, return_inverse=True)
    often = np.bincount(inverse, weights=each)
    codes = tuple(sorted({*suspects(distinct, often), *by_meaning(labels or {}, distinct)}))
    kept = ~np.isin(distinct, codes)
    own, counts = distinct[kept], often[kept]
    n = float(each.sum())
    if not len(own):
        return Profile(name, "empty", n, missing, 0, notes=("holds no value",))
    mean = float(np.average(own, weights=counts))
    variance = float(np.average((own - mean) ** 2, weights=counts))
    notes = [f"{', '.join(f'{code:g}' for code in codes)} may stand for missing values"] if codes else []
    kind = _kind(name, own, counts, values if n == len(values) else None)
    levels = tuple((float(v), float(c)) for v, c in zip(own, counts, strict=True))[: 2 * MAX_LEVELS]
    if kind == "constant":
        notes.append("never varies")
    elif kind == "id":
        notes.append("different in every row")
    elif kind == "group":
        notes.append(f"{len(own)} different, each in about {len(values) / len(own):.0f} rows")
    elif kind in ("binary", "ordinal"):
        notes += _rare(levels)
    elif kind == "count" and mean > 0:
        notes.append(_spread(mean, variance, n))
    found = Profile(
        name, kind, n, missing, len(own), levels, float(own[0]), float(own[-1]), mean, variance, codes, labels
    )
    notes += [f"{found.zeros:.0%} zeros"] if found.many_zeros else []
    return replace(found, notes=tuple(note for note in notes if note))


def _kind(name: str, values: np.ndarray, counts: np.ndarray, rows: np.ndarray | None) -> str:
    """The kind of a column of numbers, from its distinct values, how often each occurs, and all of them in order."""
    if len(values) == 1:
        return "constant"
    if not (values == np.round(values)).all():
        return "continuous"
    if len(values) == 2 and values[1] - values[0] <= MAX_SCALE_SPAN:
        return "binary"
    if rows is not None and (found := identifier(name, rows)):
        return found
    low, span = values[0], values[-1] - values[0]
    if low < 0:
        return "ordinal" if span <= MAX_SCALE_SPAN and len(values) > 2 else "whole"
    if span > MAX_SCALE_SPAN:
        return "count" if low <= 2 else "whole"
    thin = counts[-1] < 0.05 * counts.sum() and counts[-1] < 0.5 * counts.max()
    return "count" if low == 0 and span > 3 and thin and counts[:2].sum() > counts[-2:].sum() else "ordinal"


def _rare(levels: Sequence[tuple[Any, float]]) -> tuple[str, ...]:
    rare = [(level, count) for level, count in levels if count < MIN_OF_LEVEL]
    if not rare or sum(count for _, count in levels) < 10 * MIN_OF_LEVEL:
        return ()
    shown = ", ".join(f"{level:g}" if isinstance(level, float) else str(level)[:20] for level, _ in rare[:3])
    return (f"rare: {shown}{', ...' if len(rare) > 3 else ''} (fewer than {MIN_OF_LEVEL} observations)",)


def _spread(mean: float, variance: float, n: float) -> str:
    """How counts differ from Poisson ones, where they clearly do."""
    ratio = variance / mean
    clear = abs(ratio - 1) > 4 * np.sqrt(2 / max(n, 2))
    return f"variance {ratio:.2g} times the mean" if clear and ratio < 100 else "varies very much" if clear else ""


def _beside(found: list[Profile], frame: pd.DataFrame) -> list[Profile]:
    """With what columns say about each other: the same values, or the same in other words where they are few."""
    seen: dict[bytes, str] = {}
    done = []
    for profile in found:
        if profile.kind not in ("empty", "constant", "id", "date", "duration", "nested"):
            column, few = frame[profile.name], profile.distinct <= MAX_LEVELS
            key = (pd.factorize(column)[0] if few else pd.util.hash_array(column.to_numpy())).tobytes()
            first = seen.setdefault(key, profile.name)
            same = column.equals(frame[first])
            if first != profile.name and (same or profile.distinct < len(frame)):
                said = f"the same as '{first}'" if same else f"tells the same as '{first}' in other words"
                profile = replace(profile, same_as=first, notes=(*profile.notes, said))
        done.append(profile)
    return done


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
        require_known(name, names, f"levels names '{name}', which is not a column", error=SettingError)
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
    data = read(source, columns=asked, missing="impute")
    seen = data.seen
    values = {name: np.unique(data.rows[seen[:, j], j]) for j, name in enumerate(asked)}
    return {name: tuple(own.tolist()) for name, own in values.items() if own[-1] - own[0] > MAX_SCALE_SPAN}


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
