"""What shows results; what draws and writes is imported when it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.renderers import RENDERERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..core.calibration import Calibration
    from ..results.fitted import Fitted
    from ..results.forecasts import Forecast


def console(fit: Fitted, interval: float = 0.95) -> str:
    """A fit as plain text."""
    from .console import rendered
    from .document import Document

    return rendered(Document(fit, interval))


def notebook(fit: Fitted) -> str:
    """A fit as a notebook shows it."""
    from .document import Document
    from .notebook import rendered

    return rendered(Document(fit))


def page(fit: Fitted, beside: str = "") -> str:
    """A fit as a page; ``beside`` names the file with the same numbers that stands beside it."""
    from .document import Document
    from .page import rendered

    return rendered(Document(fit), beside)


def report(fit: Fitted, path: str | Path, forecast: Forecast | None = None) -> Path:
    """Write a fit as a page, and its numbers beside it."""
    from .document import Document
    from .page import written

    return written(Document(fit, forecast=forecast), path)


def picture(fit: Fitted) -> Figure:
    """The figure that shows best what a fit found."""
    from .figures import answer

    return answer(fit)


@RENDERERS.register("calibration")
def calibration(found: Calibration) -> Any:
    """A calibration as a notebook shows it."""
    from .notebook import of_calibration

    return of_calibration(found)
