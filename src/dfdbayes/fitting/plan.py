"""What a run was asked to do, checked before any data are read; where it runs, and who is told how far it has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from .._util.resources import require_seed
from ..backends.local import Backend, Local
from ..core import calibration as calibrations
from ..core import losses
from ..core import resampling as resamplings
from ..core import samplers as sampling
from ..core.calibration import AbstractCalibration, require_positive
from ..core.dataset import Dataset
from ..core.losses.base import AbstractLoss
from ..core.losses.robust import Robust
from ..core.model import AbstractModel
from ..core.resampling import Parametric
from ..core.robust_weight import decided
from ..errors import SettingError


class Progress(Protocol):
    """What shows progress: `begin` a stage of so many steps and call what it returns with steps done; `tell` a line."""

    def begin(self, stage: str, total: int) -> Callable[[int], None]: ...

    def tell(self, text: str) -> None: ...


class Silent:
    """No progress shown."""

    def begin(self, stage: str, total: int) -> Callable[[int], None]:
        return lambda done: None

    def tell(self, text: str) -> None:
        pass


def by_percent(advance: Callable[[int], None]) -> Callable[[int, int], None]:
    """Progress in percent from how much of how much was done."""
    shown = 0

    def of(done: int, total: int) -> None:
        nonlocal shown
        percent = 100 * done // max(total, 1)
        advance(percent - shown)
        shown = percent

    return of


def shown_on(progress: bool | Progress) -> Progress:
    """Bars on a terminal, silence, or what the user gave."""
    if progress is True:
        from .._util.progress import on_screen  # only where bars are wanted

        return on_screen()
    return Silent() if progress is False else progress


def backend_of(client: Any) -> Backend:
    """The backend of a Dask client; this machine without one; a backend as it is."""
    if client is None:
        return Local()
    if hasattr(client, "bootstrap") and hasattr(client, "each"):
        backend: Backend = client
        return backend
    from ..backends.dask import Dask  # the only place that names it

    return Dask(client)


@dataclass(frozen=True)
class Plan:
    """What a run was asked to do with a loss, checked."""

    asked_loss: AbstractLoss | None
    """None where the choice is left to the model."""
    calibration: AbstractCalibration
    on_failure: str
    asked_sampler: tuple[Any, int | None, int | None, int | None]
    """A word or a sampler, and lengths of chains where they are given."""
    bootstrap: int
    resampling: Any
    seed: int
    usual: bool = False
    """Whether the number of replicates was left to the model."""
    reason: str = ""
    """Why this loss, where it was chosen for the user."""
    inside: bool = False
    """Whether a minimum on the edge of the parameter space does not count, as there is another choice."""

    @classmethod
    def of(
        cls, loss: Any, calibration: Any, beta: float | None, on_failure: str, sampler: Any,
        draws: int | None, warmup: int | None, chains: int | None, bootstrap: int | None, resampling: Any,
        seed: int,
    ) -> Plan:  # fmt: skip
        """Refuse what makes no sense, before any data are read."""
        require_seed(seed)
        for name, number in {"draws": draws, "warmup": warmup, "chains": chains, "bootstrap": bootstrap}.items():
            if number is not None and (isinstance(number, bool) or not isinstance(number, (int, np.integer))):
                raise SettingError(f"{name} is {number!r}; it must be a whole number")
        draws, warmup, chains = (None if number is None else int(number) for number in (draws, warmup, chains))
        usual, bootstrap = bootstrap is None, int(AbstractModel.usual_replicates if bootstrap is None else bootstrap)
        seed, beta = int(seed), None if beta is None else _as_number(beta)
        found = None if isinstance(loss, str) and loss == "auto" else losses.by_name(loss)
        sampling.by_name(sampler, draws, warmup, chains)
        if beta is not None:
            require_positive(beta)
            if calibration is not None:
                raise SettingError(
                    f"both beta={beta:g} and calibration={calibration!r} are given; a weight by hand is not "
                    "calibrated. Leave out one of them."
                )
        how = calibrations.by_name(beta if beta is not None else "curvature" if calibration is None else calibration)
        lengths = (draws, warmup, chains)
        plan = cls(found, how, on_failure, (sampler, *lengths), bootstrap, resampling, seed, usual=usual)
        if plan.resamples:
            resamplings.require_size(bootstrap)
        return plan

    def of_data(self, model: AbstractModel, data: Dataset) -> list[Plan]:
        """The same with a loss; where the choice was left to the model, with a second one that cannot run away."""
        if not data.is_complete:
            self._require_widths_of_missing()
        plans = [plan._simulating(model) for plan in self._with_loss(model, data)]
        return [replace(plan, bootstrap=model.usual_replicates) for plan in plans] if self.usual else plans

    def _simulating(self, model: AbstractModel) -> Plan:
        """The same with simulated data sets where there are no rows to draw, unless a likelihood says how it varies."""
        known = model.independent if model.sampled else self.loss.normalised
        if known or not self.calibration.by_direction or self.resampling != resamplings.KINDS[0]:
            return self
        return replace(self, resampling=Parametric.kind)

    def _with_loss(self, model: AbstractModel, data: Dataset) -> list[Plan]:
        if isinstance(self.asked_loss, Robust):
            return self._robust(self.asked_loss, model, data)
        if self.asked_loss is not None:
            self._require_calibrated(model)
            return [self]
        name, reason = model.advise(data)
        first = replace(self, asked_loss=losses.by_name(name), reason=reason)
        if first._found_by_simulation(model):  # which may fail, and has no parts to resample
            resampled = self.calibration.needs_minimum or self.resamples
            why = "what is resampled are dyads" if resampled else "the likelihood was not found by simulation"
            other = replace(self, asked_loss=losses.by_name("pseudo"), reason=why)
            return [other] if resampled else [first, other]
        if first.loss.bounded:
            return [first]
        bounded = losses.by_name("likelihood" if model.log_normaliser is not None and not model.designs else "ratio")
        why = f"the {first.loss.title} has no minimum to rely on in these data"
        return [replace(first, inside=True), replace(self, asked_loss=bounded, reason=why)]

    def _found_by_simulation(self, model: AbstractModel) -> bool:
        """Whether the loss is the likelihood of one whole whose parts depend on each other."""
        return self.loss.normalised and not model.independent and not model.sampled

    def _require_calibrated(self, model: AbstractModel) -> None:
        """Refuse to calibrate by parts what has none."""
        if self._found_by_simulation(model) and (self.calibration.needs_minimum or self.resamples):
            raise SettingError(
                "the likelihood of a graph says itself how sure it is, and has no parts to resample. What to do: leave "
                "out calibration= and resampling=, or use loss='pseudo'."
            )

    def _robust(self, asked: Robust, model: AbstractModel, data: Dataset) -> list[Plan]:
        """The same with a robust loss, and where its kind was left to the model a second that cannot run away."""
        found, reason = decided(asked, model, data)
        first = replace(self, asked_loss=found, reason=reason)
        if found.bounded or asked.base is not None:
            return [first]
        other = replace(found, base=losses.RATIO)
        why = f"the {found.title} has no minimum to rely on in these data"
        return [replace(first, inside=True), replace(self, asked_loss=other, reason=why)]

    def _require_widths_of_missing(self) -> None:
        """Refuse what takes completed rows for observed ones, or makes none."""
        if self.simulates:
            raise SettingError(
                "resampling='parametric' simulates complete data, which do not vary as data with missing entries do. "
                "What to do: leave it out; or use missing='drop', if values are missing completely at random."
            )
        if not self.calibration.adjusts:
            raise SettingError(
                "with missing='impute' a weight that is not calibrated would take completed rows for observed ones: "
                "intervals would be too narrow. What to do: leave out calibration= and beta=, or use missing='drop'."
            )

    @property
    def loss(self) -> AbstractLoss:
        assert self.asked_loss is not None, "the data have not been seen"
        return self.asked_loss

    @property
    def sampler(self) -> Any:
        return sampling.by_name(*self.asked_sampler, bounded=self.loss.bounded)

    @property
    def needs_minimum(self) -> bool:
        """Whether a loss without a minimum has no answer: a proper prior gives one where the loss is bounded."""
        return not (self.calibration.by_direction and self.loss.bounded)

    @property
    def continues(self) -> bool:
        """Whether losses are calibrated and sampled beyond the edges of supports, as far as they are defined."""
        return self.calibration.by_direction

    @property
    def resamples(self) -> bool:
        """Whether bootstrap fits are needed."""
        return self.calibration.resamples or (self.calibration.by_direction and self.simulates)

    @property
    def simulates(self) -> bool:
        """Whether replicates are simulated."""
        return self.resampling == "parametric" or isinstance(self.resampling, Parametric)

    @property
    def fits(self) -> int:
        return self.bootstrap if self.resamples else 0

    @property
    def needs_units(self) -> bool:
        """Whether anything depends on what is independent in the data."""
        return self.calibration.adjusts


def _as_number(beta: Any) -> float:
    try:
        return float(beta)
    except (TypeError, ValueError):
        raise SettingError(f"beta is {beta!r}; it must be a positive number (beta > 0)") from None
