"""What stands for a missing value: words, marks, and numbers that are suspected of it.

Words such as ``NA`` are missing everywhere. A lone ``.``, ``-`` or ``?`` is missing among numbers, and a level among
other texts. Numbers such as -9 or 999 are read as the numbers they are, and named in a note: only the user knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ...errors import SettingError
from .numerals import POINT, under

WORDS = frozenset(
    ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
     "NAN", "NULL", "NaN", "Null", "n/a", "na", "nan", "null"]
)  # fmt: skip
AMONG_NUMBERS = frozenset([".", "-", "?", "--", "..", "\u2013", "\u2014", "None", "none", "n.a.", "N.A."])

_NINES = {float(code) for size in range(2, 7) for code in (int("9" * size), -int("9" * size))}
_BESIDE_NINES = {
    sign * float(code)
    for sign in (1, -1)
    for size in range(2, 5)
    for code in (int("7" * size), int("8" * size), int("9" * (size - 1) + "7"), int("9" * (size - 1) + "8"))
}
_NEGATIVE_DIGITS = {-7.0, -8.0, -9.0}
_ALL = sorted({9.0} | _NINES | _BESIDE_NINES | _NEGATIVE_DIGITS)
_MEANS_MISSING = re.compile(
    r"missing|no answer|not answered|no response|refus|don.?t know|do not know|not applicable|not asked|not stated|"
    r"not ascertained|unknown|keine angabe|weiss nicht|wei\u00df nicht|sans r.ponse|no sabe|no contesta|^n\.?/?a\.?$",
    re.IGNORECASE,
)
SHOWN = 4  # columns named in a note


@dataclass(frozen=True)
class MissingCodes:
    """Values that the user says stand for missing ones, everywhere or by column.

    ``given`` tells "there are none" (an empty list) from nothing said.
    """

    everywhere: tuple[Any, ...] = ()
    columns: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    given: bool = False

    @classmethod
    def of(cls, codes: Any) -> MissingCodes:
        """From None, one code, several, or several by column."""
        if isinstance(codes, MissingCodes):
            return codes
        if codes is None:
            return cls()
        if isinstance(codes, Mapping):
            return cls((), {str(name): _listed(own) for name, own in codes.items()}, True)
        return cls(_listed(codes), {}, True)

    def require(self, columns: Sequence[str]) -> None:
        """Refuse codes of columns that there are not."""
        for name in self.columns:
            if name not in columns:
                raise SettingError(
                    f"missing_codes names '{name}', which is not a column; the columns are {', '.join(columns)}"
                )

    def of_column(self, name: str) -> tuple[Any, ...]:
        return (*self.everywhere, *self.columns.get(name, ()))

    def texts(self, name: str) -> frozenset[str]:
        """The codes of a column as texts of a file."""
        return frozenset(str(code).strip() for code in self.of_column(name))

    def numbers(self, name: str) -> tuple[float, ...]:
        """The codes of a column that are numbers."""
        found = (under(str(code), POINT) for code in self.of_column(name))
        return tuple(float(value) for value in found if value is not None)

    def taken_out(self, name: str, column: np.ndarray) -> np.ndarray:
        """A column with its codes as missing values."""
        codes = self.of_column(name)
        if not codes:
            return column
        if column.dtype.kind in "iuf":
            absent = np.isin(column, self.numbers(name))
            return np.where(absent, np.nan, column.astype(float)) if absent.any() else column
        texts, numbers = self.texts(name), self.numbers(name)
        absent = np.array([_is_code(value, texts, numbers) for value in column], bool)
        if not absent.any():
            return column
        plain = column.astype(object)
        plain[absent] = None
        return plain


def _is_code(value: Any, texts: frozenset[str], numbers: tuple[float, ...]) -> bool:
    if isinstance(value, str):
        return value.strip() in texts
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and float(value) in numbers


def _listed(codes: Any) -> tuple[Any, ...]:
    if isinstance(codes, (str, int, float, np.number)):
        return (codes,)
    try:
        found = tuple(codes)
    except TypeError:
        found = (None,)
    if any(not isinstance(code, (str, int, float, np.number)) for code in found):
        raise SettingError(
            f"missing_codes is {codes!r}; give numbers or texts, such as [-9, 'unknown'], for some columns "
            "{'age': [999]}, or [] if no number stands for a missing value"
        )
    return found


def suspects(values: np.ndarray, counts: np.ndarray) -> tuple[float, ...]:
    """Values of a column that look like codes for missing ones: -9 or 99 far from all others.

    Parameters
    ----------
    values : (k,) floats
        The column's distinct values, sorted.
    counts : (k,) floats
        How often each occurs.

    Examples
    --------
    >>> suspects(np.array([-9.0, 0.0, 1.0, 2.0]), np.array([3, 9, 5, 2]))
    (-9.0,)
    >>> suspects(np.array([0.0, 1.0, 2.0, 9.0]), np.array([9, 5, 2, 1]))
    ()
    """
    if not np.isin(values, _ALL).any():
        return ()
    often = dict(zip(values.tolist(), counts.tolist(), strict=True))
    candidates = [v for v in often if v in _NINES or v in _BESIDE_NINES or v in _NEGATIVE_DIGITS]
    others = [v for v in often if v not in candidates]
    if len(others) < 2:
        return ()
    low, high = min(others), max(others)
    whole = all(v == round(v) for v in others)
    found = []
    for code in candidates:
        if code in _NEGATIVE_DIGITS:
            far = low >= 0 and whole and not any(-7 < v < 0 for v in often)
        else:
            far = high <= code / 2 if code > 0 else low >= code / 2
        company = code in _NINES or code in _NEGATIVE_DIGITS or often[code] > 1
        if far and company:
            found.append(code)
    return tuple(sorted([*found, *_single_digits(often, others, whole)]))


def _single_digits(often: Mapping[float, float], others: list[float], whole: bool) -> list[float]:
    """A 9 above a short scale, with 7 and 8 beside it; not the far end of a tail of counts."""
    below = sorted(v for v in others if v < 7)
    above = sorted(v for v in often if v >= 7)
    if not whole or len(below) < 2 or 9.0 not in often or any(v not in (7.0, 8.0, 9.0) for v in above):
        return []
    top, total = below[-1], sum(often.values())
    steps = below == list(range(int(below[0]), int(top) + 1))  # of a scale, none of which is missing
    few = sum(often[v] for v in above) < 0.3 * total
    if below[0] < 0 or (top == 6 and len(above) > 1) or not (steps and few):
        return []
    thin = often[top] < 0.05 * total
    return above if often[9.0] > 1 and (not thin or often[9.0] > often[top]) else []


def means_missing(text: str) -> bool:
    """Whether a text says that something is missing, in words of several languages."""
    return _MEANS_MISSING.search(text) is not None


def by_meaning(labels: Mapping[float, str], values: np.ndarray) -> tuple[float, ...]:
    """Values among those that occur whose labels in the file say that something is missing."""
    there = set(np.asarray(values, float).tolist())
    return tuple(value for value, text in labels.items() if value in there and means_missing(text))


def note(found: Mapping[str, tuple[float, ...]]) -> tuple[str, ...]:
    """What to say of suspected codes, by column: nothing, or one sentence."""
    found = {name: codes for name, codes in found.items() if codes}
    if not found:
        return ()
    shown = [f"'{name}' holds {_written(codes)}" for name, codes in list(found.items())[:SHOWN]]
    more = f", and {len(found) - SHOWN} more columns hold such values" if len(found) > SHOWN else ""
    codes = sorted({code for own in found.values() for code in own})
    return (
        f"{', '.join(shown)}{more}: far from all other values, or called missing in the file. These may stand for "
        f"missing values, and were read as the numbers they are. What to do: say missing_codes=[{_written(codes)}] (on "
        f"the command line: --missing-codes={_written(codes).replace(' ', '')}) if they do, or missing_codes=[] "
        "(--missing-codes=none) if they are numbers.",
    )


def _written(codes: Sequence[float]) -> str:
    return ", ".join(f"{code:g}" for code in codes)


def suspected(frame: pd.DataFrame) -> dict[str, tuple[float, ...]]:
    """Suspected codes of a frame's columns of numbers."""
    found = {}
    for name in frame.columns:
        if pd.api.types.is_numeric_dtype(frame[name]) and not pd.api.types.is_bool_dtype(frame[name]):
            values, counts = np.unique(frame[name].dropna().to_numpy(dtype=float), return_counts=True)
            found[str(name)] = suspects(values, counts)
    return found
