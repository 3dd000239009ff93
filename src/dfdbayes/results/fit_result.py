"""`Fit`: everything a run produced, with what is needed to understand and repeat it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import pandas as pd

from .._util.tables import Table
from ..core.boundaries import projected
from ..core.calibration import Calibration
from ..core.clusters import ClusterSummary
from ..core.dataset import Dataset
from ..core.diagnostics import why_not_converged
from ..core.imputation import Imputation
from ..core.losses.base import AbstractLoss
from ..core.minimise import Minimum, Outcome
from ..core.mixing import entries_of
from ..core.model import AbstractModel
from ..errors import ConvergenceWarning, MisfitWarning, ModelError, SettingError
from ..families.graph.model import RandomGraph
from ..families.map.model import Autologistic
from ..families.map.sites import site_probabilities
from ..families.narratives import remedy_of
from ..families.network.evidence import edges
from ..families.network.nodes import node_table
from ..families.network.selection import Selection
from ..families.network.temporal import effects_over_time
from .checks import Checks
from .for_arviz import more_groups
from .forecasts import Forecast, forecast
from .hausman import second_opinion
from .influence import influences
from .predictive import parameters_of, replicate, replicate_graph
from .regression import effects, odds_ratios, predictions, residuals
from .shown import Shown
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
class Fit(Shown):
    """A calibrated posterior and how it came about.

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

    model: AbstractModel | None
    data: Dataset
    minimum: Minimum
    calibration: Calibration
    groups: Mapping[str, Table]
    settings: dict[str, Any]
    warnings: tuple[str, ...]
    timings: dict[str, dict[str, float]]
    versions: dict[str, str]
    loss: AbstractLoss | None = None
    checks: Checks | None = None
    uncalibrated: pd.DataFrame | None = None
    missing: tuple[str, ...] = ()
    imputation: Imputation | None = None
    incomplete: Dataset | None = None
    clusters: ClusterSummary | None = None
    influential: pd.DataFrame | None = None
    selections: dict[Any, Selection] = field(default_factory=dict, compare=False)

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
        stats = {} if self.settings.get("sampler") == "laplace" else stats
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

    def to_arviz(self, replicates: int = 100, seed: int = 0) -> xr.DataTree:
        """Everything that ArviZ's plots and statistics look for, as its data tree.

        Groups ``posterior``, ``sample_stats`` and ``observed_data`` (one entry per observation, by column); replicated
        data from the posterior and from the prior (``posterior_predictive``, ``prior_predictive``), for ArviZ's
        predictive checks; draws of the ``prior``; and, where the model's constant can be computed, the
        ``log_likelihood`` of every observation, for ``arviz_stats.loo``. What cannot be had is left out: a graph or
        data with missing entries have the first three groups only, and `tree` always has just these.

        Parameters
        ----------
        replicates : int
            How many data sets to replicate.
        seed : int

        Examples
        --------
        >>> import dfdbayes as dfd
        >>> fit = dfd.fit("poisson", [2, 3, 1, 4, 2, 0, 3, 5, 2, 1] * 10, check=False, progress=False)
        >>> sorted(fit.to_arviz().children)[:3]
        ['log_likelihood', 'observed_data', 'posterior']
        """
        return tree_of({**self.groups, **more_groups(self, replicates, seed)})

    def replicate(self, draws: int = 100, size: int | None = None, method: str | None = None, seed: int = 0) -> Any:
        """Replicated data from the posterior predictive distribution, with checks against the observed data.

        A `Predictive`; of a random graph `Graphs`, one for each draw, which ``dfd.graph_goodness`` compares.

        Parameters
        ----------
        draws : int
            How many posterior draws to simulate a data set from.
        size : int, optional
            Observations in each; by default as many as in the data where they can be drawn at once, else at most 500.
            Those of a regression have the covariates of as many observations, all or a random part of them.
        method : str, optional
            The simulator; see `simulate`.
        seed : int
        """
        model = self.model
        if model is not None and model.current() != model:
            raise ModelError("the model's functions have changed since this fit (or a global that they use); fit again")
        if isinstance(model, RandomGraph):
            return replicate_graph(model, self.joint_draws, draws, size, method, seed)
        return replicate(model, self.joint_draws, self.data, draws, size, method, seed, self.estimate)

    def evidence(self, odds: float = 1.0, seed: int = 0) -> pd.DataFrame:
        """What the data say about every edge of a network; see `dfdbayes.evidence.edges`, which this is.

        ``bayes_factor`` says how much the data raise the odds that the edge is there, and ``inclusion`` is the
        probability that it is, all graphs considered, each edge having prior ``odds``; ``evidence`` is present where
        the Bayes factor is above 10, absent below 1/10, and inconclusive between. In ``attrs``,
        ``expected_false_edges`` is how many of the edges called present are expected not to be there.
        """
        return edges(self, odds, seed)

    def temporal(self) -> pd.DataFrame:
        """What earlier values do to later ones, for a network whose intercepts depend on them; see `dfdbayes.lagged`.

        A row for every effect: ``from``, ``to``, ``lag``, ``mean``, ``low`` and ``high`` (95 % interval),
        ``bayes_factor``, ``inclusion`` and ``evidence``, which are those of `evidence`: the same rule for effects over
        time and for edges at one time. The contemporaneous network is ``dfd.evidence.edges(fit)``.
        """
        return effects_over_time(self)

    def nodes(self) -> pd.DataFrame:
        """What each node of a network amounts to: strength, expected influence and predictability.

        Returns
        -------
        pandas.DataFrame
            A line for each column of the data, the strongest first. ``strength`` is the sum of a node's absolute
            interactions, ``influence`` that of the interactions with their signs, and ``predictability`` the share of
            the column's variance that the others explain: posterior means, each with a calibrated 95 % interval
            ``..._low`` to ``..._high``. Strength and predictability are never negative, so that uncertainty alone makes
            them positive: ``strength_by_chance`` and ``predictability_by_chance`` say by how much on average, had the
            node no edge (NaN where that is not known). See `dfdbayes.families.network.nodes`.

        Examples
        --------
        >>> import dfdbayes as dfd, pandas as pd
        >>> frame = pd.DataFrame({"tea": [0, 0, 0, 1, 1, 1] * 90, "cake": [0, 0, 1, 0, 1, 1] * 90})
        >>> frame["sun"] = [0] * 270 + [1] * 270
        >>> fit = dfd.fit("ising-network", frame, sampler="laplace", check=False, progress=False)
        >>> sorted(fit.nodes().index[:2]), bool(fit.nodes().loc["sun", "predictability"] < 0.1)
        (['cake', 'tea'], True)
        """
        self._warn_of_draws()
        return node_table(self)

    def predict(self, newdata: Any = None, interval: float = 0.95) -> pd.DataFrame:
        """Expected values and new observations of a regression of one column, at given covariates; or a map's sites.

        Parameters
        ----------
        newdata : frame, mapping or path, optional
            The columns that the formulas name. By default the data's own rows, with their index and in their order;
            rows that were left out of the fit have no numbers (NaN).
        interval : float
            The level of both intervals.

        Returns
        -------
        pandas.DataFrame
            One line for each row, with its index: ``mean``, the expected value (its posterior mean), with a calibrated
            interval ``mean_low`` to ``mean_high``; and ``new_low`` to ``new_high``, between which a new observation
            lies: quantiles of the model's distribution, mixed over the posterior. Where the model does not reproduce
            the data, a `MisfitWarning` says so again: these intervals rest on it. Of a map one line for each site:
            where it is, what was observed, the ``probability`` of the category given its neighbours with a calibrated
            interval ``low`` to ``high``, and, if the fit was checked, the ``marginal`` one, whatever they are.

        Examples
        --------
        >>> import dfdbayes as dfd, pandas as pd
        >>> frame = pd.DataFrame({"visits": [0, 1, 2, 1, 3, 4, 3, 6] * 5, "age": [20, 25, 30, 35, 40, 45, 50, 55] * 5})
        >>> fit = dfd.fit("poisson", frame, formula="visits ~ age", sampler="laplace", check=False, progress=False)
        >>> list(fit.predict({"age": [30, 50]}).columns)
        ['mean', 'mean_low', 'mean_high', 'new_low', 'new_high']
        """
        self._warn_of_draws()
        if isinstance(self.model, Autologistic):
            if newdata is not None:
                raise SettingError("a map predicts its own sites; give those without a value a row, missing='impute'")
            return site_probabilities(self, interval)
        found = predictions(self, newdata, interval)
        self._warn_of_misfit()
        return found

    def _warn_of_draws(self) -> None:
        """Where numbers are asked for that rest on draws: say that these are none of the posterior."""
        if not self.converged:
            text = f"the chains did not converge ({self.not_converged}), and these numbers rest on them"
            warnings.warn(ConvergenceWarning(f"{text}. {remedy_of(self)}"), stacklevel=3)

    def _warn_of_misfit(self) -> None:
        """Repeat what the checks found, where intervals of new observations are asked for."""
        for told in [] if self.checks is None else self.checks.warnings:
            text = f"intervals of new observations rest on the model, and {str(told)[:1].lower()}{str(told)[1:]}"
            warnings.warn(MisfitWarning(text), stacklevel=3)

    def forecast(
        self, steps: int | None = None, newdata: Any = None, interval: float = 0.95, draws: int = 1000, seed: int = 0
    ) -> Forecast:
        """What comes next in a series: futures simulated from the posterior, step by step.

        Parameters
        ----------
        steps : int, optional
            How many steps ahead, at most 2000; by default as many as ``newdata`` has rows.
        newdata : frame, mapping or path, optional
            Covariates of the steps to come, a row for each (of a panel, for each unit); the time and lags of the
            response are known without it.
        interval : float
            The level of the intervals.
        draws : int
            Futures, each with a draw of the posterior.
        seed : int

        Returns
        -------
        Forecast
            ``.table`` has a line for each step: ``mean``, ``median``, ``low`` and ``high`` of the new observation.
            Where the model does not reproduce the data, a `MisfitWarning` says so again: these intervals rest on it.

        Examples
        --------
        >>> import dfdbayes as dfd
        >>> cases = {"week": range(60), "cases": [3, 4, 2, 5, 6, 4, 3, 2, 4, 5, 3, 4] * 5}
        >>> fit = dfd.fit("poisson", cases, formula="cases ~ log1p(lag(cases))", time="week", sampler="laplace",
        ...               check=False, progress=False)
        >>> list(fit.forecast(2).table.columns)
        ['mean', 'median', 'low', 'high']
        """
        self._warn_of_draws()
        found = forecast(self, steps, newdata, interval, draws, seed)
        self._warn_of_misfit()
        return found

    def residuals(self, seed: int = 0) -> pd.DataFrame:
        """Randomised quantile residuals of a regression of one column (Dunn and Smyth, 1996).

        Standard normal where the model is right, also of small counts: a uniform number between the chances of less
        than was observed and of not more than that, at the posterior mean, as a normal quantile.

        Parameters
        ----------
        seed : int
            Of the uniform numbers.

        Returns
        -------
        pandas.DataFrame
            One line for each row of the data, with its index and in its order, however often it counts: ``observed``,
            ``fitted`` (the expected value) and ``residual``. Rows that were left out of the fit (a missing value; no
            earlier rows that a lag needs) have no numbers (NaN).

        Examples
        --------
        >>> import dfdbayes as dfd, pandas as pd
        >>> frame = pd.DataFrame({"visits": [0, 1, 2, 1, 3, 4, 3, 6] * 5, "age": [20, 25, 30, 35, 40, 45, 50, 55] * 5})
        >>> fit = dfd.fit("poisson", frame, formula="visits ~ age", sampler="laplace", check=False, progress=False)
        >>> bool(fit.residuals()["residual"].abs().max() < 4)
        True
        """
        return residuals(self, seed)

    def effects(self, interval: float = 0.95) -> pd.DataFrame:
        """What each term of the main parameter does, on the scale of ratios and of the expected value.

        Parameters
        ----------
        interval : float
            The level of the intervals ``..._low`` to ``..._high``.

        Returns
        -------
        pandas.DataFrame
            One line for each term but the intercept: ``coefficient``; ``ratio``, the median of its exponential, where
            the link is a logarithm (of counts the rate ratio, IRR; ``odds_ratio`` where it is logistic); and
            ``effect``, the average marginal effect on the expected value over the rows of the data, through all
            formulas that the covariate is in: with ``zeros=`` (a hurdle) that of the count with its zeros, where
            ``ratio`` is of the mean without that part. ``change`` says of what: of a level of a factor against the
            reference level ("A to B"), of a 0/1 term ("0 to 1"), or the derivative ("per unit"). A
            variable that is in several terms (interactions, powers, splines) has no effect by term: compare
            ``fit.predict(newdata)`` at values of interest. Of a random graph, each term's ``odds_ratio`` of a tie given
            all others (the median), and the probability that its coefficient is ``above_zero``.

        Examples
        --------
        >>> import dfdbayes as dfd, pandas as pd
        >>> frame = pd.DataFrame({"visits": [0, 1, 2, 1, 3, 4, 3, 6] * 5, "age": [20, 25, 30, 35, 40, 45, 50, 55] * 5})
        >>> fit = dfd.fit("poisson", frame, formula="visits ~ age", sampler="laplace", check=False, progress=False)
        >>> bool(1.03 < fit.effects()["ratio"]["age"] < 1.07)
        True
        """
        self._warn_of_draws()
        if isinstance(self.model, RandomGraph):
            return odds_ratios(self, interval)
        return effects(self, interval)

    def second_opinion(self, loss: Any = "ratio") -> pd.DataFrame:
        """What another loss says of the same model and data, and whether the two differ by more than chance.

        Estimates of a right model agree up to chance, whatever the loss. Both are of the same rows, so the error of
        their difference comes from each unit's influence on both (a Hausman test). Where they differ by more than
        chance, all parameters considered, and by what matters (a standard error of an estimate, and two in a hundred of
        the probability of an observation), a `DisagreementWarning` says about what, with both numbers.

        Parameters
        ----------
        loss : str or loss

        Returns
        -------
        pandas.DataFrame
            By parameter: the two minimisers, their ``difference``, its ``standard_error``, and the one divided by the
            other (``standardised``; of a positive parameter, that of its logarithm); ``shift`` is the difference in
            standard errors of the first. In ``attrs``: ``p_value`` of the joint test, and the ``sentence``.

        Examples
        --------
        >>> import dfdbayes as dfd, pandas as pd
        >>> frame = pd.DataFrame({"visits": [0, 1, 2, 1, 3, 4, 3, 6] * 5, "age": [20, 25, 30, 35, 40, 45, 50, 55] * 5})
        >>> fit = dfd.fit("poisson", frame, formula="visits ~ age", sampler="laplace", check=False, progress=False)
        >>> list(fit.second_opinion("ratio").columns)
        ['likelihood', 'ratio', 'difference', 'standard_error', 'standardised', 'shift']
        """
        return second_opinion(self, loss)

    def influence(self, most: int | None = 20) -> pd.DataFrame:
        """Which rows matter most: how far each moves the estimates.

        Of most rows that is one Newton step of the calibrated loss. Rows that seem to move an estimate by nearly a
        standard error, the ten with the largest shifts, are left out in fact, and ``refitted`` says so.

        Parameters
        ----------
        most : int, optional
            How many rows, those with the largest shifts first; all distinct ones with None.

        Returns
        -------
        pandas.DataFrame
            One line for each distinct row, by the number of the first observation that has it (``row``, from 0, of the
            rows that were used): how many ``observations`` have it, the ``parameter`` that one of them moves most, by
            how many standard errors of the others (``shift``, from the estimate without it to the estimate with it),
            whether that is of a fit without it (``refitted``), the row's values, and the change of every parameter, in
            its own units.

        Examples
        --------
        >>> import dfdbayes as dfd
        >>> fit = dfd.fit("poisson", [2, 3, 1, 4, 2, 0, 3, 5, 2, 25] * 5, progress=False, check=False)
        >>> fit.influence(1)[["observations", "parameter", "x"]].values.tolist()
        [[5, 'rate', 25]]
        """
        return influences(self, most)

    @property
    def estimate(self) -> np.ndarray:
        """All parameters, flat: where the loss is smallest, or their posterior means where that is nowhere."""
        return self.minimum.vector if self.minimum.is_smallest(self.loss) else self.joint_draws.mean(axis=0)

    @property
    def joint_draws(self) -> np.ndarray:
        """Draws of all parameters, flat, for what depends on many of them at once: see `inference.edges`."""
        names = [] if self.model is None else [p.name for p in self.model.space.parameters]
        line, shape = self.groups.get(LINE), self.calibration.curvature
        if self.model is None or line is None or shape is None:
            if self.model is None or not names:
                return np.empty((0, 0))
            return self.model.from_data_scale(parameters_of(self.groups["posterior"], names))
        return projected(self.model.space, shape, parameters_of(line, names))
