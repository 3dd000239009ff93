"""What some fits offer beyond what all fits have: ``fit.network``, ``fit.regression`` and the like.

An accessor is a class of methods that puts itself into a table under the name that it has in `Fit`. A model says by
`AbstractModel.accessors` which of them are for its fits.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

from ..core.registry import Registry
from ..errors import ConvergenceWarning, MisfitWarning, outside
from .fitted import Fitted


@dataclass(frozen=True, repr=False)
class AbstractAccessor:
    """What can be asked of the fits of one family.

    Attributes
    ----------
    fit : Fitted
    fits : str
        Which fits have it, after "is for": said where one that has it not is asked.
    """

    fit: Fitted
    fits: ClassVar[str]

    def prepare(self) -> None:
        """Compute what printing the fit needs and takes time: by default there is nothing."""

    def files(self) -> dict[str, bytes]:
        """What the folder of a run keeps of it beside the summary, by name."""
        return {}

    def __repr__(self) -> str:
        offered = sorted(name for name, part in vars(type(self)).items() if callable(part) and name[0] != "_")
        return f"{type(self).__name__} of a fit of '{self.fit.settings['model']}': {', '.join(offered)}"

    def _warn_of_draws(self) -> None:
        """Where numbers are asked for that rest on draws: say that these are none of the posterior."""
        if not self.fit.converged:
            text = f"the chains did not converge ({self.fit.not_converged}), and these numbers rest on them"
            warnings.warn(ConvergenceWarning(f"{text}. {self.fit.remedy}"), stacklevel=outside())

    def _warn_of_misfit(self) -> None:
        """Repeat what the checks found, where intervals of new observations are asked for."""
        for problem in [] if self.fit.checks is None else self.fit.checks.warnings:
            text = f"intervals of new observations rest on the model, and {str(problem)[:1].lower()}{str(problem)[1:]}"
            warnings.warn(MisfitWarning(text), stacklevel=outside())


ACCESSORS: Registry[type[AbstractAccessor]] = Registry("accessor")
