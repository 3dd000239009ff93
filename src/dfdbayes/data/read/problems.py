"""What is wrong with a table: all of it at once, each problem with row, column and remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import DataError
from .encodings import shown_name

LISTED = 12  # problems in a message
ROWS = 5  # rows named of a problem


@dataclass(frozen=True)
class Problem:
    """What is wrong with a column in some rows, said of the first of them.

    Attributes
    ----------
    what : str
        For example "row 3, column 'age' is the text 'x'; the model needs whole numbers".
    remedy : str
    rows : tuple of int
        The first rows of those it is said of, counted from 1.
    count : int
        How many rows these are.
    said : str
        How many these are in words, where that is not "(3 rows are affected: 3, 7, 9)".
    """

    what: str
    remedy: str
    rows: tuple[int, ...] = ()
    count: int = 1
    said: str | None = None

    def __str__(self) -> str:
        return f"{self.what}{self._affected}. {self.remedy}".strip()

    @property
    def _affected(self) -> str:
        if self.said is not None:
            return self.said
        if self.count < 2:
            return ""
        shown = ", ".join(map(str, self.rows)) + (", ..." if self.count > len(self.rows) else "")
        return f" ({self.count} rows are affected: {shown})"


def affected(count: int, least: str = "", of: int | None = None) -> str:
    """How many rows, in words: " (1 of 60 rows is affected)"."""
    rows = "row" if count == 1 and of is None and not least else "rows"
    return f" ({least}{count}{'' if of is None else f' of {of}'} {rows} {'is' if count == 1 else 'are'} affected)"


@dataclass
class Problems:
    """Problems of one chunk of a table, or of all of it."""

    source: str
    skipped: list[int] = field(default_factory=list)
    """Rows that could not be taken apart, counted from 0: those after them have higher numbers in the file."""
    found: list[Problem] = field(default_factory=list)

    def number(self, row: int) -> int:
        """The number of a row in the file, from 1, of its number among the rows that could be read, from 0."""
        for lost in sorted(self.skipped):
            row += lost <= row
        return row + 1

    def add(self, what: str, remedy: str, rows: Sequence[int] | np.ndarray = (), said: str | None = None) -> None:
        """A problem of some rows, counted from 0; ``what`` holds ``{row}`` where the first one's number belongs."""
        first = tuple(self.number(int(row)) for row in rows[:ROWS])
        shown = what.replace("{row}", str(first[0])) if first else what
        self.found.append(Problem(shown, remedy, first, max(1, len(rows)), said))

    def refuse(self) -> None:
        """Raise `DataError` with everything that was found, if anything was."""
        if not self.found:
            return
        if len(self.found) == 1:
            raise DataError(str(self.found[0]))
        listed = "".join(f"\n- {problem}" for problem in self.found[:LISTED])
        more = f"\n- and {len(self.found) - LISTED} more" if len(self.found) > LISTED else ""
        raise DataError(f"{self.source} has {len(self.found)} problems:{listed}{more}")


class readable:
    """What goes wrong while a file is read, as an error that names the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, problem: BaseException | None, trace: Any) -> None:
        if not isinstance(problem, (ValueError, OSError, pa.ArrowException)) or isinstance(problem, DataError):
            return
        said = (str(problem).splitlines() or [""])[0]
        if isinstance(problem, UnicodeDecodeError) or "UTF8" in said:
            said = f"a later part is not in the encoding of its beginning ({said}). What to do: save it as UTF-8"
        raise DataError(f"{shown_name(self._path)} cannot be read: {said}") from problem
