"""`Fitted`: the state of a fit, which everything that is told, drawn or saved of it is computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import pandas as pd

from .._util.codec import APART
from .._util.tables import Table
from .._util.words import counted
from ..core.calibration import Calibration
from ..core.dataset import Dataset
from ..core.diagnostics import why_not_converged
from ..core.influence import ClusterSummary
from ..core.losses.base import AbstractLoss
from ..core.minimise import Minimum, Outcome
from ..core.missing import Imputation
from ..core.mixing import entries_of
from ..core.model import AbstractModel
from ..core.narrative import Narrative
from ..core.posterior import projected
from ..core.samplers.base import AbstractSampler, kind_of
from ..errors import SettingError
from .checks import Checks
from .predictive import parameters_of
from .summary import summarised
from .tree import LINE, tree_of

if TYPE_CHECKING:
    import xarray as xr


class Chosen(TypedDict, total=False):
    """A fit's ``settings``: everything that was chosen, in values JSON can hold."""

    model: str
    options: dict[str, Any]
    formulas: dict[str, str] | None
    loss: str
    loss_arguments: dict[str, Any] | None
    loss_reason: str
    priors: dict[str, str]
    prior_arguments: dict[str, dict[str, Any] | None]
    sampler: str
    draws: int
    warmup: int
    chains: int
    seed: int
    pareto_k: float | None
    loss_note: str | None
    loss_weight: str | None
    resampling: str | None
    units: str
    calibration: str
    edges: dict[str, tuple[float | None, float | None]]
    may_be_zero: list[str]
    kinds: str | None
    series: str | None
    bounds: str | None
    bootstrap: int
    threads: str


@dataclass(frozen=True, repr=False)
class Fitted:
    """The state of a fit, a calibrated posterior and how it came about; `Fit` adds what users ask of it.

    Attributes
    ----------
    model : AbstractModel or None
        None only for a loaded fit of a user's own model.
    data : Dataset
    minimum : Minimum
        The loss's minimiser on the data.
    calibration : Calibration
    groups : dict of Table
        Draws, sampler statistics and data as arrays; ``tree`` has the same for ArviZ.
    settings : dict
        Everything that was chosen: loss, priors, sampler, seed and so on.
    warnings : tuple of str
        Every warning of the run, each with what to do.
    timings : dict
        Seconds by stage.
    loss : AbstractLoss or None
        None only for a loaded fit whose loss has a function of the user's own.
    checks : Checks or None
        Whether the model reproduces the data: predictive checks and a test of fit.
    uncalibrated : pandas.DataFrame or None
        The 95 % intervals at beta = 1.
    missing : tuple of str
        What a loaded fit lacks, because a file cannot hold it: "model", "loss", "prior of rate".
    imputation : Imputation or None
        Where entries of the data were missing and imputed: how many, and what share of each parameter's information is
        missing. ``data`` are then the completions with their shares.
    incomplete : Dataset or None
        The data as they were read, where entries are missing.
    clusters : ClusterSummary or None
        Where rows come in clusters: how many, and what they are worth.
    influential : pandas.DataFrame or None
        The rows that matter most, for pictures and reports; see `influence`.
    selections : dict
        Of a network, what was found by drawing graphs from their posterior, by what was asked; see
        `dfdbayes.families.network.selection`. `fit` draws those that printing a fit needs, and files keep these.
    """

    model: AbstractModel | None = field(metadata=APART)
    data: Dataset = field(metadata=APART)
    minimum: Minimum
    calibration: Calibration
    groups: Mapping[str, Table] = field(metadata=APART)
    settings: dict[str, Any]
    warnings: tuple[str, ...]
    timings: dict[str, dict[str, float]]
    versions: dict[str, str]
    loss: AbstractLoss | None = field(default=None, metadata=APART)
    checks: Checks | None = None
    uncalibrated: pd.DataFrame | None = None
    missing: tuple[str, ...] = field(default=(), metadata=APART)
    imputation: Imputation | None = None
    incomplete: Dataset | None = field(default=None, metadata=APART)
    clusters: ClusterSummary | None = None
    influential: pd.DataFrame | None = None
    selections: dict[Any, Any] = field(default_factory=dict, compare=False, metadata=APART)

    @property
    def as_read(self) -> Dataset:
        """The data as they were read: with the gaps that ``data`` has completed."""
        return self.data if self.incomplete is None else self.incomplete

    @property
    def beta(self) -> float:
        """The weight of the loss."""
        return self.calibration.beta

    @cached_property
    def tree(self) -> xr.DataTree:
        """Groups ``posterior``, ``sample_stats`` and ``observed_data``, as ArviZ has them."""
        return tree_of(self.groups)

    @property
    def posterior(self) -> xr.Dataset:
        """The draws by name, with dimensions chain and draw first."""
        return self.tree["posterior"].to_dataset()

    @property
    def entries(self) -> dict[str, np.ndarray]:
        """Draws (chain, draw) of every scalar entry, by its name in the summary and in that order."""
        return entries_of(self.groups["posterior"])

    @property
    def edges(self) -> dict[str, tuple[float, float]]:
        """Ends of the supports of parameters that may lie on them, by entry; infinite where there is none."""
        known = self.settings.get("edges", {})
        return {name: (-np.inf if a is None else a, np.inf if b is None else b) for name, (a, b) in known.items()}

    @property
    def prior_influence(self) -> pd.DataFrame | None:
        """By parameter: how far the prior moved it, in posterior sds, and how much of its information data gave.

        Of the normal approximation; None for a fit whose loss has one weight for all directions. Where the loss is
        smallest on the edge of a support, and ends there, the shift is not known (NaN): the edge holds it too.
        """
        shape = self.calibration.curvature
        if shape is None:
            return None
        held = self.minimum.outcome is Outcome.BOUNDARY and LINE not in self.groups
        moved = np.full(len(shape.moved), np.nan) if held else shape.moved
        return pd.DataFrame({"moved": moved, "from_data": shape.from_data}, index=list(self.minimum.names))

    @cached_property
    def converged(self) -> bool:
        """Whether the draws are a sample of the posterior; where not, there is no answer: `not_converged` says why.

        False where R-hat exceeds 1.1, most transitions diverged, or effective draws are next to none. Draws of the
        normal approximation are independent, and always are.
        """
        return not self.not_converged

    @cached_property
    def not_converged(self) -> str:
        """Why there is no answer, in words; empty where the chains converged."""
        stats = self.groups["sample_stats"].arrays if "sample_stats" in self.groups else {}
        stats = stats if self._drawn_by.chained else {}
        size = self.groups["posterior"].sizes
        return why_not_converged(stats, self._summarised(0.95), size["chain"] * size["draw"])

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """Mean, sd, median, interval and diagnostics of every parameter and derived quantity.

        Column names are ArviZ's: for a 95 % interval ``eti95_lb`` and ``eti95_ub``, equal-tailed; next to an edge that
        a parameter may lie on (an interaction >= 0) the interval is one-sided, from the edge. Where a few huge draws
        decide the mean, it is left out (NaN), and so is the sd: read the median. Where the chains did not converge, a
        column ``converged`` says so: these numbers are no estimates.
        """
        if not 0 < interval < 1:
            raise SettingError(f"interval is {interval}; it must lie between 0 and 1")
        table = self._summarised(interval).copy()
        return table if self.converged else table.assign(converged=False)

    def _summarised(self, interval: float) -> pd.DataFrame:
        if interval not in self._summaries:
            self._summaries[interval] = summarised(self.entries, interval, self.edges)
        return self._summaries[interval]

    @cached_property
    def _summaries(self) -> dict[float, pd.DataFrame]:
        """Those that were asked for: what a run writes needs the same one again and again."""
        return {}

    @property
    def estimate(self) -> np.ndarray:
        """All parameters, flat: where the loss is smallest, or their posterior means where that is nowhere."""
        return self.minimum.vector if self.minimum.is_smallest(self.loss) else self.joint_draws.mean(axis=0)

    @property
    def joint_draws(self) -> np.ndarray:
        """Draws of all parameters, flat, for what depends on many of them at once."""
        names = [] if self.model is None else [p.name for p in self.model.space.parameters]
        line, shape = self.groups.get(LINE), self.calibration.curvature
        if self.model is None or line is None or shape is None:
            if self.model is None or not names:
                return np.empty((0, 0))
            return self.model.space.from_data_scale(parameters_of(self.groups["posterior"], names))
        return projected(self.model.space, shape, parameters_of(line, names))

    @cached_property
    def answer(self) -> str:
        """What was found, in two or three sentences."""
        return " ".join(self.sentences)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The answer: what was found, what missing entries and clusters cost, whether the model reproduces the data.

        Of chains that did not converge there is no answer, and why is all that is said.
        """
        if not self.converged:
            return (f"There is no answer: the chains did not converge ({self.not_converged}). {self.remedy}",)
        checked = [] if self.checks is None else [self.checks.sentence]
        return (*self.narrative.sentences(self), *_costs(self), *checked)

    @property
    def narrative(self) -> Narrative:
        """Who tells of this fit; a loaded one without its model is told parameter by parameter."""
        return AbstractModel.narrative if self.model is None else self.model.narrative

    @property
    def size(self) -> str:
        """How much was observed: "83 observations"."""
        return self.narrative.size(self)

    @property
    def _drawn_by(self) -> type[AbstractSampler]:
        """What drew the draws."""
        return kind_of(self.settings["sampler"])

    @property
    def remedy(self) -> str:
        """What to do about chains that did not converge."""
        draws = 4 * int(self.settings["draws"])
        longer = f"draws={draws} (--draws {draws})"
        if not self._drawn_by.by_gradients:  # it begins each draw anew, or walks at random
            longer = f"sampler='nuts' (--sampler nuts) and {longer}"
        return (
            "What to do: look at the warnings first. Columns that number the rows, hardly vary or repeat others leave "
            "a posterior that no sampler can follow: leave them out (columns=[...], --columns), or give parameters a "
            f"tighter prior={{...}}. Where nothing of that is the case, ask for more: {longer}."
        )

    @property
    def meanings(self) -> dict[str, str]:
        """What the parameters and derived quantities are, by the name before the bracket, as far as the model says."""
        known = {} if self.model is None else self.model.meanings
        names = dict.fromkeys(entry.partition("[")[0] for entry in self.entries)
        return {name: known[name] for name in names if name in known}

    @property
    def sampling(self) -> str:
        """How the draws were made, as a sentence."""
        s = self.settings
        drawn = f"{s['chains']} chains of {s['draws']} draws" + (f" after {s['warmup']}" if s["warmup"] else "")
        k = "" if s.get("pareto_k") is None else f"; Pareto k {s['pareto_k']:.2f} (below 0.5 is sound)"
        return f"{drawn} by {self._drawn_by.title or s['sampler']}{k}"


def _costs(fit: Fitted) -> list[str]:
    """What incomplete or dependent rows cost, where there are any."""
    told = []
    if fit.data.dropped:
        were = "was" if fit.data.dropped == 1 else "were"
        told.append(f"{counted(fit.data.dropped, 'row')} with missing values {were} left out.")
    if fit.imputation is not None:
        lost = np.array(list(fit.imputation.lost.values()))
        mean, most = 100.0 * lost.mean(), 100.0 * lost.max()
        of = "none" if most < 0.5 else f"{mean:.0f} % on average and at most {most:.0f} %"
        told.append(
            f"{counted(fit.imputation.entries, 'missing entry', 'missing entries')} cost {of} of what complete data "
            "would have told about a parameter."
        )
    if fit.clusters is not None:
        told.append(
            f"The {fit.clusters.rows:.0f} observations in {fit.clusters.number} clusters tell as much as "
            f"{fit.clusters.worth:.0f} independent ones would."
        )
    return told
