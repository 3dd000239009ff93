"""Numbers as people write them: decimal points and decimal commas, thousands in groups.

A text is read under each of the two decimal marks. "1,5" is a number under one of them only, and so tells which one is
in use. "1,234" is 1234 under the point and 1.234 under the comma: it is read where the rest of its column, or of its
file, tells the mark, and stays a text otherwise, which nobody takes for a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

POINT, COMMA = ".", ","
DECIMALS = (POINT, COMMA)
_APART = " \u00a0\u2009\u202f'\u2019"  # spaces and apostrophes that group thousands whatever the decimal mark
_MINUS = str.maketrans({"\u2212": "-"})
_PLAIN = {
    mark: re.compile(rf"[+-]?(?:[0-9]+(?:[{mark}][0-9]*)?|[{mark}][0-9]+)(?:[eE][+-]?[0-9]+)?") for mark in DECIMALS
}
_GROUPED = {
    mark: re.compile(rf"[+-]?[1-9][0-9]{{0,2}}([{other}{_APART}])[0-9]{{3}}(?:\1[0-9]{{3}})*(?:[{mark}][0-9]+)?")
    for mark, other in ((POINT, COMMA), (COMMA, POINT))
}
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
ENOUGH = 200  # marked texts of a column that are looked at for evidence

Number = int | float


def under(text: str, mark: str) -> Number | None:
    """The number that a text is under a decimal mark; None if it is none.

    Examples
    --------
    >>> under("1,234", "."), under("1,234", ","), under("1,23", ".")
    (1234, 1.234, None)
    """
    plain = text.strip().translate(_MINUS)
    if _GROUPED[mark].fullmatch(plain):
        plain = "".join(c for c in plain if c in f"0123456789+-{mark}")
    elif not _PLAIN[mark].fullmatch(plain):
        return float(plain) if _INFINITE.fullmatch(plain) else None
    plain = plain.replace(mark, POINT)
    digits = plain.lstrip("+-")
    return int(plain) if digits.isdigit() and len(digits) < 5000 else float(plain)


def readings(text: str) -> dict[str, Number]:
    """The numbers that a text may be, by decimal mark."""
    found = {mark: under(text, mark) for mark in DECIMALS}
    return {mark: value for mark, value in found.items() if value is not None}


def is_number(text: str) -> bool:
    """Whether a text is a number under some decimal mark."""
    return bool(readings(text))


def doubtful(text: str) -> bool:
    """Whether a text is two different numbers, by the decimal mark."""
    return len(set(readings(text).values())) > 1


def both(text: str) -> str:
    """What a doubtful text may be, in words."""
    found = readings(text)
    shown = {mark: f"{value:.15g}" for mark, value in found.items()}
    grouping = {POINT: "commas", COMMA: "points"}
    whole = next(mark for mark in DECIMALS if isinstance(found[mark], int))
    other = COMMA if whole == POINT else POINT
    name = {POINT: "decimal point", COMMA: "decimal comma"}[other]
    return f"{shown[whole]} ({grouping[whole]} group thousands) or {shown[other]} (a {name})"


def evidence(texts: Iterable[str]) -> dict[str, str]:
    """For each decimal mark a text that is a number under that one only.

    None where many of the texts are no numbers: those of dates, versions or lists tell nothing.
    """
    found: dict[str, str] = {}
    seen = strange = 0
    for text in texts:
        if POINT not in text and COMMA not in text:
            continue
        of = readings(text)
        seen, strange = seen + 1, strange + (not of)
        if len(of) == 1 and not _INFINITE.fullmatch(text):
            found.setdefault(next(iter(of)), text)
        if seen == ENOUGH:
            break
    return {} if strange > 0.1 * seen else found


@dataclass(frozen=True)
class Marks:
    """Which decimal mark a source uses, by column where a column's own numbers tell it.

    Attributes
    ----------
    given : str, optional
        What the user said, which nothing else overrules.
    columns : mapping
        Marks of columns by their own evidence.
    file : str, optional
        That of all columns with evidence, if they agree.
    comma_separates : bool
        Whether values are separated by commas, which speaks for decimal points.
    """

    given: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    file: str | None = None
    comma_separates: bool = False

    @classmethod
    def of(cls, columns: Mapping[str, Iterable[str]], given: str | None, comma_separates: bool) -> Marks:
        """From texts of each column."""
        if given is not None:
            return cls(given, comma_separates=comma_separates)
        seen = {name: evidence(texts) for name, texts in columns.items()}
        all_marks = {mark for found in seen.values() for mark in found}
        clear = {name: next(iter(found)) for name, found in seen.items() if len(found) == 1}
        return cls(None, clear, all_marks.pop() if len(all_marks) == 1 else None, comma_separates)

    def numbers(self, name: str, texts: Iterable[str]) -> dict[str, Number]:
        """The numbers among a column's texts; without those that may be two numbers where nothing tells which."""
        texts = list(texts)
        mark = self.given or self.columns.get(name)
        if mark is None:
            own = evidence(texts)
            if len(own) > 1:  # points and commas in one column: none of the marked texts is trusted
                return {text: under(text, POINT) for text in texts if _unmarked(text)}  # type: ignore[misc]
            mark = next(iter(own), self.file)
        if mark is not None:
            found = {text: under(text, mark) for text in texts}
        else:  # between commas a lone point is decimal, unless whole numbers stand beside it: thousands below 1000
            points = self.comma_separates and not any(map(_whole, texts))
            found = {text: _alone(text, points) for text in texts}
        return {text: value for text, value in found.items() if value is not None}

    def sure(self, name: str) -> str | None:
        """A column's decimal mark, if that is known before its texts are seen."""
        return self.given or self.columns.get(name) or self.file


def _alone(text: str, points: bool) -> Number | None:
    """The number that a text is by itself; points are decimal where that is known."""
    found = readings(text)
    if len(set(found.values())) > 1:
        return found[POINT] if points and POINT in text else None
    return next(iter(found.values()), None)


def _whole(text: str) -> bool:
    """Whether a text is a whole number without a mark; zeros aside, which nothing is told by."""
    return text.strip("+- ").isdigit() and text.strip("+-0 ") != ""


def _unmarked(text: str) -> bool:
    return len(set(readings(text).values())) == 1 and len(readings(text)) == 2
