"""What was checked of a fit: does the model reproduce the data? Kept with the fit; see `checking`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import special

from ..errors import DfdbayesWarning, MisfitWarning
from .goodness_of_fit import SATURATED, GoodnessOfFit
from .graph_goodness import GraphGoodness
from .hausman import Agreement
from .misfit_messages import Misfit
from .relevance import LEVEL, LIKE, beyond_chance, share_matters


@dataclass(frozen=True)
class Checks:
    """Predictive checks and a test of fit, as tables.

    Attributes
    ----------
    goodness : GoodnessOfFit or None
    table : pandas.DataFrame or None
        Statistics of every column, observed and predicted, with their tails (see `Predictive.checks`).
    marginals : tuple of pandas.DataFrame
        Observed and predicted shares of each value, of the first columns.
    pairs : pandas.DataFrame or None
        Correlations of pairs of columns, observed and predicted.
    equal : pandas.DataFrame or None
        On a graph: the share of edges whose ends have equal values.
    means : (d,) floats
        Predicted mean of every column.
    columns : tuple of str
        Names of the columns that ``marginals`` are of.
    sets, size, method, mixed
        How many data sets of how many observations were simulated, by which method, and whether its chains mixed.
    problem : str
        Why there are no checks, where there are none.
    residuals : pandas.DataFrame or None
        Of a regression of one column, at the posterior mean: see `Fit.residuals`.
    graph : GraphGoodness or None
        Of a random graph, at the posterior mean.
    misfits : tuple of Misfit
        What the test of fit found, the surest and plainest first: each a ``sentence`` with both numbers, a ``remedy``
        and the ``finding``. None where the data look like the model's.
    sites : pandas.DataFrame or None
        Of a map: the probability of each category but the first at every site, whatever its neighbours are.
    held : bool
        Whether the prior holds the posterior at parameters that the data contradict. The test of fit is at the loss's
        minimiser, and says whether there are any that reproduce the data.
    agreement : Agreement or None
        The estimates of another loss beside the fit's own, where both have a minimum; see `Fit.second_opinion`.
    remedy : str
        Of a map: what to try where the model does not reproduce it.
    """

    goodness: GoodnessOfFit | None = None
    table: pd.DataFrame | None = None
    marginals: tuple[pd.DataFrame, ...] = ()
    pairs: pd.DataFrame | None = None
    equal: pd.DataFrame | None = None
    means: Float[np.ndarray, " d"] | None = None
    columns: tuple[str, ...] = ()
    sets: int = 0
    size: int = 0
    method: str = ""
    mixed: bool = True
    problem: str = ""
    residuals: pd.DataFrame | None = None
    graph: GraphGoodness | None = None
    misfits: tuple[Misfit, ...] = ()
    sites: pd.DataFrame | None = None
    held: bool = False
    agreement: Agreement | None = None
    remedy: str = ""

    @property
    def sentence(self) -> str:
        """Whether the model reproduces the data, in a sentence; what differs and what to try, where it does not."""
        if self.graph is not None:
            return self.graph.sentence
        if self.sites is not None and self.equal is not None:
            return self._of_map(self.equal)
        if self.goodness is not None and self.goodness.test == SATURATED:
            return "There is nothing to check: the parameters match every statistic of these data."
        if not np.isfinite(self.p_value):
            return (
                "Whether the model reproduces the data was not checked" + f"{': ' * bool(self.problem)}{self.problem}."
            )
        if self._differs:
            return f"The model {self._misfit}. {self.misfits[0].advice}"
        small = "what differs beyond chance is too small to matter; "
        return self._reproduced(f"{small * beyond_chance(self.p_value)}{self._shown}")

    @property
    def _differs(self) -> bool:
        """Whether model and data differ beyond chance, and by what matters."""
        return beyond_chance(self.p_value) and bool(self.misfits)

    @property
    def _shown(self) -> str:
        """The p-value of the test of fit."""
        return "p < 0.002" if self.p_value < 0.002 else f"p = {self.p_value:.2g}"

    @property
    def _misfit(self) -> str:
        """What the model does not reproduce, with both numbers."""
        return f"does not reproduce the data ({self._shown}): {self.misfits[0].sentence}"

    def _of_map(self, table: pd.DataFrame) -> str:
        """A map beside simulated ones: the first thing in which they differ, or how alike neighbours are."""
        differing = _differing_in(table)
        name = differing[0] if differing else LIKE
        row = table.loc[name].to_dict()
        chance = f" (p = {row['p_value']:.2g})" if "p_value" in row else ""
        what = "of neighbouring pairs are alike" if name == LIKE else f"is the {name}"
        told = f"{row['observed']:.0%} {what}, {row['predicted']:.0%} in simulated maps"
        return f"The model {'does not reproduce' if differing else 'reproduces'} the map: {told}{chance}."

    def _reproduced(self, shown: str) -> str:
        """The sentence where the test found nothing, which is no praise of few rows or of a posterior elsewhere."""
        if self.held:
            return (
                f"The model can reproduce the data ({shown}), but at the parameters of this posterior it does not: the "
                f"prior holds them elsewhere{self._there()}. Make sure that you mean that prior."
            )
        if self.size < 10 and self.equal is None:  # no test would notice a wrong model
            return f"So few rows ({self.size}) cannot tell whether the model reproduces the data ({shown})."
        if self.agreement is not None and self.agreement.doubt:
            return (
                f"The test of fit finds nothing wrong ({shown}), but {self.agreement.doubt}. The model is suspect "
                "there; fit.checks.agreement has all parameters."
            )
        return f"The model reproduces the data ({shown})."

    def _there(self) -> str:
        """What a posterior elsewhere predicts, of the column that is furthest from it in its mean, else its spread."""
        for name, words in (("mean", "mean"), ("dispersion_index", "variance over mean")):
            if self.table is None:
                break
            own, made, tail = (self.table[part] for part in (name, f"predicted_{name}", f"{name}_tail"))
            away = np.where((tail < 0.5 * LEVEL) | (tail > 1.0 - 0.5 * LEVEL), (own - made).abs(), 0.0)
            worst = int(np.argmax(away))
            if away[worst] > 0:
                numbers = f"{made.iloc[worst]:.3g}; the data have {own.iloc[worst]:.3g}"
                return f" (predicted {words} of {self.table.index[worst]}: {numbers})"
        return ""

    def __repr__(self) -> str:
        if self.graph is not None:
            return f"{self.graph}"
        told = self.problem or (self.sentence if self.goodness is None else f"{self.goodness}")
        return f"Checks: {told}; {self.sets} simulated data sets of {self.size} observations"

    @property
    def p_value(self) -> float:
        """That of the test of fit."""
        return float("nan") if self.goodness is None else self.goodness.p_value

    @property
    def warnings(self) -> list[DfdbayesWarning]:
        """What of the checks is worth a warning."""
        if self.graph is not None:
            return [MisfitWarning(self.graph.problem)] if self.graph.away else []
        if self.sites is not None and self.equal is not None:
            found = _differing_in(self.equal)
            remedy = self.remedy or "look at dfd.plots.sites(fit); a covariate may be missing"  # of an older file
            return [MisfitWarning(f"{self.sentence} What to do: {remedy}.")] if found else []
        if not self._differs:
            return []
        return [MisfitWarning(f"the model {self._misfit}. What to do: {self.misfits[0].remedy}.")]

    def marginal(self, column: int) -> pd.DataFrame:
        return self.marginals[column]

    def correlations(self) -> pd.DataFrame | None:
        return self.pairs


def _differing_in(table: pd.DataFrame) -> list[str]:
    """In which of its statistics a map differs from simulated ones, beyond chance and by what matters."""
    if "p_value" not in table:  # of a fit that was saved before there were any
        tail = table["tail"].clip(upper=1.0 - table["tail"])
        away = (table["observed"] - table["predicted"]).abs() / table["sd"].clip(lower=1e-300)
        table = table.assign(p_value=np.where(tail > 0.0, 2.0 * tail, 2.0 * special.ndtr(-away)))
    told = sorted(table.index, key=lambda name: name != LIKE)  # how alike neighbours are first: a map is about that
    return [
        name
        for name, row in ((name, table.loc[name].to_dict()) for name in told)
        if beyond_chance(row["p_value"], len(table)) and share_matters(row["observed"], row["predicted"])
    ]
