"""How a fit shows itself: sentences, a page, a picture, a file."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .._util.files import write_atomically
from ..families.narratives import answer, family_of
from ..present.text_report import told
from .forecasts import Forecast
from .saving import plain, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .fit_result import Fit


class Shown:
    """What `Fit` has for people who look at it."""

    @property
    def _fit(self) -> Fit:
        return cast("Fit", self)

    @cached_property
    def answer(self) -> str:
        """What was found, in two or three sentences: see `results.answers`."""
        return " ".join(answer(self._fit))

    @property
    def meanings(self) -> dict[str, str]:
        """What the parameters and derived quantities are, by the name before the bracket, as far as the model says."""
        known = {} if self._fit.model is None else self._fit.model.meanings
        names = dict.fromkeys(entry.partition("[")[0] for entry in self._fit.entries)
        return {name: known[name] for name in names if name in known}

    @property
    def sampling(self) -> str:
        """How the draws were made, as a sentence."""
        s = self._fit.settings
        drawn = f"{s['chains']} chains of {s['draws']} draws" + (f" after {s['warmup']}" if s["warmup"] else "")
        kinds = {
            "independence": "proposals from the normal approximation, accepted or rejected (independence Metropolis)",
            "hmc": "Hamiltonian Monte Carlo about the normal approximation",
            "nuts": "the No-U-Turn sampler",
            "random-walk": "random-walk Metropolis",
            "laplace": "the normal approximation itself",
        }
        k = "" if s.get("pareto_k") is None else f"; Pareto k {s['pareto_k']:.2f} (below 0.5 is sound)"
        return f"{drawn} by {kinds.get(s['sampler'], s['sampler'])}{k}"

    def report(self, path: str | Path, forecast: Forecast | None = None) -> Path:
        """Write one self-contained HTML page about this fit; of a series, with a forecast where one is given."""
        from ..present.report import write_report  # a doorway down the road: reports know fits, not the reverse

        return write_report(self._fit, path, forecast)

    def save(self, path: str | Path) -> Path:
        """Write everything to one netCDF file, completely or not at all."""
        written = self._fit.to_bytes()
        return write_atomically(path, lambda scratch: scratch.write_bytes(written))

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        return written(self._fit)

    def describe(self, interval: float = 0.95) -> dict[str, Any]:
        """The run in plain values, for JSON: estimates, weight, minimum, settings, warnings, versions."""
        return plain(self._fit, interval)

    def plot(self) -> Figure:
        """The picture that shows best what was found: the network, the coefficients, the data beside the model.

        A notebook shows it; elsewhere keep it by ``fit.plot().savefig("fit.png")``: pyplot does not know of it.
        """
        from ..present.figures import answer as picture  # a doorway down the road, as for reports

        return picture(self._fit)

    def _repr_html_(self) -> str:
        from ..present.report.notebook import of_fit

        return of_fit(self._fit)

    def __repr__(self) -> str:
        fit = self._fit
        return f"Fit of {fit.settings['model']} to {fit.data.source}, {family_of(fit).size(fit)}. {fit.answer}"

    def __str__(self) -> str:
        """The answer, the table, and how it was found."""
        return told(self._fit, 0.95)
