"""Whether a regression needs the terms that a smaller one lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from ..core.dataset import Dataset, condense
from ..core.model import AbstractModel
from ..errors import ModelError, SettingError
from ..results.saving import structure_of
from .fit_result import Fit


@dataclass(frozen=True)
class Nested:
    """A test that the additional coefficients of the larger of two regressions are zero.

    Attributes
    ----------
    terms : tuple of str
        The additional coefficients.
    statistic : float
        Wald's: their squared distance from zero, in units of their calibrated posterior covariance.
    degrees : int
        Its degrees of freedom.
    p_value : float
    table : pandas.DataFrame or None
        Where the loss of both fits is the likelihood: their numbers of parameters, log-likelihoods, AIC and BIC.
    """

    terms: tuple[str, ...]
    statistic: float
    degrees: int
    p_value: float
    table: pd.DataFrame | None

    @property
    def log_likelihood_difference(self) -> float:
        """By how much the larger fit's log-likelihood is larger; NaN where the loss is another."""
        if self.table is None:
            return float("nan")
        smaller, larger = self.table["log_likelihood"].loc[["smaller", "larger"]].to_numpy(dtype=float)
        return float(larger - smaller)

    def __str__(self) -> str:
        shown = ", ".join(self.terms[:5]) + (f" and {len(self.terms) - 5} more" if len(self.terms) > 5 else "")
        return f"{shown} = 0: Wald's chi-squared {self.statistic:.4g}, {self.degrees} df, p = {self.p_value:.3g}"


def compare_nested(smaller: Fit, larger: Fit) -> Nested:
    """Test whether the coefficients that a larger regression has in addition are zero.

    A Wald test with the mean and covariance of the larger fit's calibrated posterior, which holds where the spread of
    the data is not the model's. A Poisson regression is nested in a Conway-Maxwell-Poisson one (log nu = 0), and either
    in the same with a hurdle (zeros = 0). Priors are part of both posteriors; weak ones hardly matter.

    Parameters
    ----------
    smaller, larger : Fit
        Regressions of the same data, every coefficient of the smaller one being one of the larger.

    Examples
    --------
    >>> import dfdbayes as dfd, pandas as pd
    >>> frame = pd.DataFrame({"visits": [0, 1, 2, 1, 3, 4, 3, 6] * 5, "age": [20, 25, 30, 35, 40, 45, 50, 55] * 5})
    >>> settings = {"sampler": "laplace", "check": False, "progress": False}
    >>> one, two = (dfd.fit("poisson", frame, formula=f, **settings) for f in ("visits ~ 1", "visits ~ age"))
    >>> found = dfd.compare_nested(one, two)
    >>> found.terms, found.degrees, found.p_value < 0.001
    (('mean[age]',), 1, True)
    """
    first, second = _regression(smaller), _regression(larger)
    _require_nested(first, second)
    _require_same_data(smaller.data, larger.data)
    names = second.space.names
    more = [i for i, name in enumerate(names) if name not in first.space.names]
    draws = larger.joint_draws[:, more]
    centre, covariance = draws.mean(axis=0), np.atleast_2d(np.cov(draws, rowvar=False))
    statistic = float(centre @ np.linalg.solve(covariance, centre))
    p_value = float(chdtrc(len(more), statistic))
    return Nested(tuple(names[i] for i in more), statistic, len(more), p_value, _likelihoods(smaller, larger))


def _regression(fit: Fit) -> AbstractModel:
    if fit.model is None:
        raise ModelError("a fit was loaded without its model; give it: dfd.load(path, model=...)")
    if fit.model is None or not fit.model.designs:
        raise SettingError(
            f"'{fit.settings['model']}' was fitted without a formula; nested fits are regressions. A regression "
            "without covariates is formula='y ~ 1'."
        )
    return fit.model


def _require_nested(smaller: AbstractModel, larger: AbstractModel) -> None:
    if _structure(smaller) != _structure(larger):
        raise SettingError(
            f"'{smaller.name}' is not nested in '{larger.name}': the fits must be of the same model in the same form"
        )
    missing = [name for name in smaller.space.names if name not in larger.space.names]
    if missing:
        raise SettingError(
            f"the fits are not nested: the larger one lacks {', '.join(missing[:5])}. Give the smaller one first, with "
            "factors coded alike."
        )
    if len(smaller.space.names) == len(larger.space.names):
        raise SettingError("both fits have the same coefficients: there is nothing to test")


def _structure(model: AbstractModel) -> str | dict[str, Any]:
    """What the model without covariates is, whatever it is called."""
    return model.kin or structure_of(model.plain) | {"model": ""}


def _require_same_data(smaller: Dataset, larger: Dataset) -> None:
    """Rows and shared covariates must be the same, and an offset must be in both or in none."""
    if smaller.columns != larger.columns or smaller.n != larger.n:
        raise SettingError(
            f"the fits are of different data ({', '.join(smaller.columns)}: n = {smaller.n}; "
            f"{', '.join(larger.columns)}: n = {larger.n})"
        )
    for name in set(smaller.given_columns) ^ set(larger.given_columns):
        if name.endswith(":offset"):
            raise SettingError(f"the fits are not nested: only one of them has an offset of {name.partition(':')[0]}")
    shared = [name for name in smaller.given_columns if name in larger.given_columns]
    one, two = (_projected(data, shared) for data in (smaller, larger))
    if any(a.shape != b.shape or not np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in zip(one, two, strict=True)):
        raise SettingError("the fits are of different data: their rows or covariates are not the same")


def _projected(data: Dataset, shared: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct rows by some of the covariates alone, these, and the weight of each."""
    assert data.given is not None
    given = data.given[:, [data.given_columns.index(name) for name in shared]]
    found = condense(data.rows.T, np.arange(len(data.rows)), data.counts, None, extra=given.T)
    assert found.extra is not None
    return found.columns, found.extra, found.repeats


def _likelihoods(smaller: Fit, larger: Fit) -> pd.DataFrame | None:
    fits = {"smaller": smaller, "larger": larger}
    if any(fit.loss is None or not fit.loss.normalised or fit.data.repeats is not None for fit in fits.values()):
        return None
    rows = {}
    for name, fit in fits.items():
        log, k = -fit.minimum.value, len(fit.minimum.names)
        weighed = {"aic": 2 * k - 2 * log, "bic": k * np.log(fit.data.n) - 2 * log}
        rows[name] = {"parameters": k, "log_likelihood": log} | weighed
    return pd.DataFrame(rows).T.astype({"parameters": int})
