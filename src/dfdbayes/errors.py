"""What can go wrong because of what a user gave, and what a user should be told."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


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
