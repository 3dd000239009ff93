"""What can go wrong because of what a user gave, and what a user should be told."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


def some(names: Iterable[str], most: int = 12) -> str:
    """The first of many names, and how many more there are."""
    known = list(map(str, names))
    return ", ".join(known[:most]) + (f" and {len(known) - most} more" if len(known) > most else "")


def close(word: Any, known: Iterable[str]) -> str:
    """A question, "; did you mean 'poisson'?", where a word is nearly a known one; otherwise nothing."""
    names = list(known)
    found = [name for name in names if name.lower() == str(word).lower()]
    found = found or difflib.get_close_matches(str(word), names, n=1)
    return f"; did you mean '{found[0]}'?" if found else ""


def require_known(
    name: Any, known: Iterable[Any], what: str, these: str = "The columns are", error: type[Exception] | None = None
) -> None:
    """Refuse a name that is not among the known ones; ``what`` says so, and ``these`` begins the list of them."""
    names = list(map(str, known))
    if str(name) not in names:
        raise (error or DataError)(f"{what}{close(name, names) or '.'} {these} {some(names) or 'none'}.")


def outside() -> int:
    """How far up the stack the first line is that is not of this package: the ``stacklevel`` of a warning."""
    package, level = f"{__name__.partition('.')[0]}.", 1
    while f"{sys._getframe(level).f_globals.get('__name__')}.".startswith(package):
        level += 1
    return level


class DfdbayesError(Exception):
    """Base class of every error that a user can mend."""


class DataError(DfdbayesError, ValueError):
    """The data cannot be read, or do not lie in the model's domain."""


class ModelError(DfdbayesError, ValueError):
    """A model, parameter or prior is declared in a way that cannot work."""


class SettingError(DfdbayesError, ValueError):
    """A setting of a run has a value that makes no sense."""


class MinimiserError(DfdbayesError, RuntimeError):
    """The loss has no minimiser where one is needed."""


class CalibrationError(DfdbayesError, RuntimeError):
    """No weight beta > 0 exists for these data, prior and loss.

    ``calibration`` holds what was computed, where a formula gave a number that is not a weight.
    """

    def __init__(self, message: str, calibration: Any = None) -> None:
        super().__init__(message)
        self.calibration = calibration


class EscapedError(DfdbayesError, RuntimeError):
    """Draws left the basin of the minimum of a loss that is unbounded below."""


class DegeneracyError(DfdbayesError, RuntimeError):
    """Graphs simulated at the estimate of a random graph model are nearly empty, complete, or far from the observed."""


class NonFiniteError(DfdbayesError, ArithmeticError):
    """Draws hold a value that is not a finite number."""


class OutputError(DfdbayesError, OSError):
    """A result cannot be written where the user asked for it."""


class ProcessError(DfdbayesError, RuntimeError):
    """Work was asked of a process that cannot do it."""


class ClusterError(DfdbayesError, RuntimeError):
    """A cluster, or all of its workers, went away while it was at work."""


class DfdbayesWarning(UserWarning):
    """Base class of every warning; its text ends with what to do."""


class DroppedRowsWarning(DfdbayesWarning):
    """Rows with missing values were left out."""


class DataWarning(DfdbayesWarning):
    """The data were read in a way that the user should know of."""


class PriorWarning(DfdbayesWarning):
    """The prior, not the data, decides what the posterior says; or the posterior is wider than the prior."""


class BoundaryWarning(DfdbayesWarning):
    """An estimate lies on the boundary of the parameter space."""


class NonFiniteWarning(DfdbayesWarning):
    """A derived quantity is not finite in some draws, and was left out."""


class IdentificationWarning(DfdbayesWarning):
    """The loss hardly depends on a parameter."""


class ModelWarning(DfdbayesWarning):
    """The mass function of a model has no finite sum at the estimate."""


class EstimatedLossWarning(DfdbayesWarning):
    """There are too many rows to compute the loss, and it was estimated."""


class CalibrationWarning(DfdbayesWarning):
    """A calibration that holds, but on weak ground."""


class UnboundedLossWarning(CalibrationWarning):
    """Bootstrap fits of a loss without a lower bound ran away."""


class DisagreementWarning(DfdbayesWarning):
    """Two losses give estimates that differ by more than chance."""


class InfluenceWarning(DfdbayesWarning):
    """One row moves an estimate by more than its standard error."""


class MisfitWarning(DfdbayesWarning):
    """The model does not reproduce the data: those simulated at the estimate differ from the observed ones."""


class DivergenceWarning(DfdbayesWarning):
    """Transitions of the sampler diverged."""


class ConvergenceWarning(DfdbayesWarning):
    """Chains that disagree, or too few effective draws."""


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
        first = tuple(self.number(int(row)) for row in rows[:5])
        shown = what.replace("{row}", str(first[0])) if first else what
        self.found.append(Problem(shown, remedy, first, max(1, len(rows)), said))

    def refuse(self) -> None:
        """Raise `DataError` with everything that was found, if anything was."""
        if not self.found:
            return
        if len(self.found) == 1:
            raise DataError(str(self.found[0]))
        listed = "".join(f"\n- {problem}" for problem in self.found[:12])
        more = f"\n- and {len(self.found) - 12} more" if len(self.found) > 12 else ""
        raise DataError(f"{self.source} has {len(self.found)} problems:{listed}{more}")
