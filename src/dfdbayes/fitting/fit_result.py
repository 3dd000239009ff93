"""`Fit`: everything a run produced, with what is needed to understand and repeat it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from .._util.files import write_atomically
from ..errors import DisagreementWarning, ModelError, SettingError, outside
from ..families.network.accessor import NetworkAccessor
from ..present import renderers
from ..results.accessor import ACCESSORS
from ..results.fitted import Fitted
from ..results.for_arviz import more_groups
from ..results.forecasts import Forecast, SeriesAccessor
from ..results.hausman import second_opinion
from ..results.influence import influences
from ..results.predictive import replicate
from ..results.regression import RegressionAccessor
from ..results.saving import plain, written
from ..results.tree import tree_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Fit(Fitted):
    """A calibrated posterior and how it came about: what `fit` returns. Its state is that of `Fitted`.

    What only some fits offer stands in accessors, which only these have: ``fit.regression``, ``fit.series``,
    ``fit.network``, ``fit.graph`` and ``fit.map``.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> cake = {"visits": [0, 1, 2, 1, 3, 4, 3, 6] * 5, "age": [20, 25, 30, 35, 40, 45, 50, 55] * 5}
    >>> fit = dfd.fit("poisson", cake, formula="visits ~ age", sampler="laplace", check=False, progress=False)
    >>> hasattr(fit, "regression"), hasattr(fit, "network")
    (True, False)
    >>> list(fit.regression.effects().index)
    ['age']
    """

    @property
    def accessors(self) -> tuple[str, ...]:
        """The accessors that this fit has, by name."""
        return () if self.model is None else self.model.accessors

    def __getattr__(self, name: str) -> Any:
        if name not in ACCESSORS:
            raise AttributeError(f"'Fit' object has no attribute '{name}'", name=name, obj=self)
        kind, own = ACCESSORS.by_name(name), self.accessors
        if name not in own:
            has = f"it has {', '.join(f'fit.{one}' for one in own) or 'none of these'}"
            if self.model is None:
                has = "it was loaded without its model; give it: dfd.load(path, model=...)"
            text = f"fit.{name} is for {kind.fits}; this is a fit of '{self.settings['model']}', and {has}"
            raise AttributeError(text, name=name, obj=self)
        return kind(self)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.accessors})

    def _ask(self, what: str) -> Any:
        """The method of that name of an accessor; where none has it that of regressions, which says what there is."""
        kinds = map(ACCESSORS.by_name, self.accessors)
        return getattr(next((kind for kind in kinds if hasattr(kind, what)), RegressionAccessor)(self), what)

    def prepared(self) -> Self:
        """The same fit, with all computed that printing it needs."""
        for name in self.accessors:
            getattr(self, name).prepare()
        return self

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
        if model is not None and model.single_observation:
            return model.replicate(self.joint_draws, draws, size, method, seed)
        return replicate(model, self.joint_draws, self.data, draws, size, method, seed, self.estimate)

    def evidence(self, odds: float = 1.0, seed: int = 0) -> pd.DataFrame:
        """What the data say about every edge of a network; see `dfdbayes.evidence.edges`, which this is.

        ``bayes_factor`` says how much the data raise the odds that the edge is there, and ``inclusion`` is the
        probability that it is, all graphs considered, each edge having prior ``odds``; ``evidence`` is present where
        the Bayes factor is above 10, absent below 1/10, and inconclusive between. In ``attrs``,
        ``expected_false_edges`` is how many of the edges called present are expected not to be there.
        """
        return NetworkAccessor(self).edges(odds, seed)

    def temporal(self) -> pd.DataFrame:
        """What earlier values do to later ones, for a network whose intercepts depend on them; see `dfdbayes.lagged`.

        A row for every effect: ``from``, ``to``, ``lag``, ``mean``, ``low`` and ``high`` (95 % interval),
        ``bayes_factor``, ``inclusion`` and ``evidence``, which are those of `evidence`: the same rule for effects over
        time and for edges at one time. The contemporaneous network is ``dfd.evidence.edges(fit)``.
        """
        return NetworkAccessor(self).over_time()

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
        return NetworkAccessor(self).nodes()

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
        return self._ask("predict")(newdata, interval)

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
        return SeriesAccessor(self).forecast(steps, newdata, interval, draws, seed)

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
        return self._ask("residuals")(seed)

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
        return self._ask("effects")(interval)

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
        if self.model is None or self.loss is None:
            raise ModelError("this fit was loaded without its model or its loss; fit again")
        if self.imputation is not None:
            raise SettingError("second opinions are not for imputed entries: there are no rows that both losses see")
        found = second_opinion(self.model, self.data, self.loss, self.minimum, loss)
        if found.matters:
            warnings.warn(DisagreementWarning(found.sentence), stacklevel=outside())
        found.table.attrs.update(p_value=found.p_value, sentence=found.sentence)
        return found.table

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

    def report(self, path: str | Path, forecast: Forecast | None = None) -> Path:
        """Write one self-contained HTML page about this fit; of a series, with a forecast where one is given."""
        return renderers.report(self, path, forecast)

    def save(self, path: str | Path) -> Path:
        """Write everything to one netCDF file, completely or not at all."""
        written = self.to_bytes()
        return write_atomically(path, lambda scratch: scratch.write_bytes(written))

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        return written(self)

    def describe(self, interval: float = 0.95) -> dict[str, Any]:
        """The run in plain values, for JSON: estimates, weight, minimum, settings, warnings, versions."""
        return plain(self, interval)

    def plot(self) -> Figure:
        """The picture that shows best what was found: the network, the coefficients, the data beside the model.

        A notebook shows it; elsewhere keep it by ``fit.plot().savefig("fit.png")``: pyplot does not know of it.
        """
        return renderers.picture(self)

    def _repr_html_(self) -> str:
        return renderers.notebook(self)

    def __repr__(self) -> str:
        return f"Fit of {self.settings['model']} to {self.data.source}, {self.size}. {self.answer}"

    def __str__(self) -> str:
        """The answer, the table, and how it was found."""
        return renderers.console(self)
