"""The document of a fit: everything that is told of it, made once.

What a family alone has to say comes from its narrative; renderers (`console`, `notebook`, `page`) choose from what
stands here and turn it into text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import pandas as pd

from ..results.fitted import Fitted
from ..results.forecasts import Forecast
from ..results.ratios import ratios
from ..results.saving import plain
from . import methods
from .blocks import Section


class Document:
    """What is told of a fit.

    Parameters
    ----------
    fit : Fitted
    interval : float
        The level of the intervals in tables of estimates.
    forecast : Forecast, optional
        Of a series, to be told of with it.

    Attributes
    ----------
    model, source, title, size, about, kinds : str
        What was fitted to what; how much that is; what the model is; what columns were taken for, or how rows follow
        each other.
    answer : str
    warnings : tuple of str
    found : tuple of str
        How it was found: the loss and why, the weight, the draws.
    costs : tuple of str
        What missing entries and clusters cost.
    """

    def __init__(self, fit: Fitted, interval: float = 0.95, forecast: Forecast | None = None) -> None:
        self._fit, self._forecast, self.interval = fit, forecast, interval
        self.model, self.source = str(fit.settings["model"]), fit.data.source
        self.title, self.size, self.about = f"{self.model} fitted to {self.source}", fit.size, methods.title(fit)
        self.kinds = str(fit.settings.get("kinds") or fit.settings.get("series") or "")
        self.answer, self.warnings, self.converged = fit.answer, fit.warnings, fit.converged
        self.costs = tuple(str(about) for about in (fit.imputation, fit.clusters) if about is not None)
        self.found, self.meanings, self.versions = _found(fit), fit.meanings, fit.versions

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """The summary as people read it, with what its family says of each entry."""
        return self._fit.narrative.estimates(self._fit, self._fit.summary(self.interval))

    @cached_property
    def judgements(self) -> list[str]:
        """Columns of the estimates that say something of an entry in words."""
        known = self._fit.summary(self.interval).columns
        return [str(name) for name in self.estimates if name == "converged" or name not in known]

    @cached_property
    def ratios(self) -> pd.DataFrame | None:
        """What coefficients multiply, where they multiply something."""
        return ratios(self._fit, self.interval)

    @property
    def ratio(self) -> str:
        """What such a factor is called."""
        return self._fit.narrative.ratio

    @property
    def picture(self) -> Callable[[], Any]:
        """What draws the figure that shows the answer best."""
        from .figures import answer

        return lambda: answer(self._fit)

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """The same in plain values, for machines."""
        return plain(self._fit, self.interval)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All that is told at length, by titles and in order."""
        from .sections import sections

        return sections(self._fit, self._forecast)


def _found(fit: Fitted) -> tuple[str, ...]:
    s = fit.settings
    why = f" ({s['loss_reason']})" if s["loss_reason"] else ""
    bounds = (
        f"range: far away this loss falls without bound, so parameters were kept to {s['bounds']}"
        if s.get("bounds")
        else ""
    )
    rows = f"robust: {s['loss_weight']}" if s.get("loss_weight") else ""
    lines = f"loss: {s['loss']}{why}", rows, f"calibration: {fit.calibration.message}", f"draws: {fit.sampling}", bounds
    return tuple(line for line in lines if line)
