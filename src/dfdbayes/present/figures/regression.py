"""Pictures of regressions: coefficients, ratios and residuals."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import MaxNLocator, NullLocator
from scipy import special

from ...core.model import AbstractModel
from ...data.formulas import INTERCEPT
from ...errors import SettingError
from ...results import ratios as results
from ...results import regression as after_regression
from ...results.fitted import Fitted
from ...results.intervals import intervals
from .base import BLUE, GREY, INK, ORANGE, Figure, clean, fitted, thinned


def coefficients(fit: Fitted, most: int = 60) -> Figure:
    """A forest plot of a regression: every coefficient with its calibrated 95 % interval, and the one at beta = 1.

    Parameters
    ----------
    fit : Fitted
        Of a regression.
    most : int
        Coefficients that are drawn, the first ones.

    Examples
    --------
    >>> import dfdbayes as dfd, pandas as pd
    >>> frame = pd.DataFrame({"visits": [0, 1, 2, 1, 3, 4, 3, 6] * 5, "age": [20, 25, 30, 35, 40, 45, 50, 55] * 5})
    >>> fit = dfd.fit("poisson", frame, formula="visits ~ age", sampler="laplace", check=False, progress=False)
    >>> figure = dfd.plots.coefficients(fit)
    """
    if fit.model is not None and not fit.model.designs:
        raise SettingError(f"'{fit.settings['model']}' was fitted without a formula: it has no coefficients to draw")
    every = {name: draws for name, draws in fit.entries.items() if name in fit.minimum.names}
    shown = dict(list(every.items())[:most])
    low, high, _ = intervals(shown, 0.95, fit.edges)
    figure = Figure(figsize=(6.4, 1.1 + 0.27 * len(shown)), layout="constrained")
    axes = figure.subplots()
    at = np.arange(len(shown))
    plain = None if fit.uncalibrated is None else fit.uncalibrated.loc[list(shown)]
    shift = 0.0 if plain is None else 0.14
    axes.axvline(0.0, color=GREY, lw=0.8, ls=":")
    axes.hlines(at - shift, low, high, color=BLUE, lw=2.2, label="calibrated 95 % interval")
    axes.plot([draws.mean() for draws in shown.values()], at - shift, "o", color=INK, ms=4, label="posterior mean")
    if plain is not None:
        axes.hlines(at + shift, plain["low"], plain["high"], color=ORANGE, lw=1.2, label="uncalibrated (beta = 1)")
    axes.set_yticks(at, [fitted(name, 40) for name in shown], fontsize=8)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    more = len(every) - len(shown)
    axes.set_xlabel("coefficient" + (f" ({more} more are in the summary)" if more else ""), fontsize=9)
    figure.legend(frameon=False, fontsize=8, loc="outside upper center", ncols=3)
    clean(axes)
    return figure


def ratios(fit: Fitted, most: int = 60) -> Figure:
    """What covariates multiply the mean or the odds by, with 95 % intervals; of a number, one standard deviation of it.

    Coefficients as they are where these add.

    Parameters
    ----------
    fit : Fitted
        Of a regression.
    most : int
        Terms that are drawn, the first ones.

    Examples
    --------
    >>> import dfdbayes as dfd, pandas as pd
    >>> frame = pd.DataFrame({"visits": [0, 1, 2, 1, 3, 4, 3, 6] * 5, "age": [20, 25, 30, 35, 40, 45, 50, 55] * 5})
    >>> fit = dfd.fit("poisson", frame, formula="visits ~ age", sampler="laplace", check=False, progress=False)
    >>> figure = dfd.plots.ratios(fit)
    """
    found = results.ratios(fit)
    if found is None or fit.model is None:
        return coefficients(fit, most)
    shown, per = found.iloc[:most], _steps(fit, fit.model)[:most]
    labels = [
        f"{name} (per {step:.3g})" if step != 1.0 else name for name, step in zip(shown["term"], per, strict=True)
    ]
    middle, low, high = (shown[column].to_numpy() ** per for column in ("ratio", "eti95_lb", "eti95_ub"))
    figure = Figure(figsize=(6.4, 1.1 + 0.27 * len(shown)), layout="constrained")
    axes, at = figure.subplots(), np.arange(len(shown))
    axes.axvline(1.0, color=GREY, lw=0.8, ls=":")
    axes.hlines(at, low, high, color=BLUE, lw=2.2)
    axes.plot(middle, at, "o", color=INK, ms=4)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(at, [fitted(label, 48) for label in labels], fontsize=8)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    more = len(found) - len(shown)
    told = f"{fit.model.narrative.ratio} with 95 % interval; numbers per standard deviation" * bool((per != 1.0).any())
    told = told or f"{fit.model.narrative.ratio} with 95 % interval"
    axes.set_xlabel(told + (f" ({more} more are in fit.effects())" if more else ""), fontsize=9)
    clean(axes)
    return figure


def _steps(fit: Fitted, model: AbstractModel) -> np.ndarray:
    """The standard deviation of each term of the main parameter but the intercept; 1 for terms that are 0 or 1."""
    main = model.main_parameters[0]
    term, labels = model.space.predictor(main), model.design(main).labels
    assert fit.data.given is not None
    places = [k for k, label in enumerate(labels) if label != INTERCEPT]
    scale = np.array(model.design(main).scale or np.ones(len(labels)))[places]
    columns = fit.data.given[:, [term.first + k for k in places]]
    weights = fit.data.counts / fit.data.counts.sum()
    sd = np.sqrt(weights @ (columns - weights @ columns) ** 2)
    return np.where(np.isin(columns, (0.0, 1.0)).all(axis=0), 1.0, sd * scale)


def residuals(fit: Fitted, seed: int = 0) -> Figure:
    """Randomised quantile residuals: against normal quantiles, and against fitted values.

    Where the model is right they are standard normal at every fitted value: points along the line on the left, and on
    the right within two of zero for 95 % of them, without trend. The fit's own checks hold those of at most 2000
    observations; a fit without checks computes them.

    Parameters
    ----------
    fit : Fitted
        Of a regression of one column.
    seed : int
        Of residuals that are computed.

    Examples
    --------
    >>> import dfdbayes as dfd, pandas as pd
    >>> frame = pd.DataFrame({"visits": [0, 1, 2, 1, 3, 4, 3, 6] * 5, "age": [20, 25, 30, 35, 40, 45, 50, 55] * 5})
    >>> fit = dfd.fit("poisson", frame, formula="visits ~ age", sampler="laplace", check=False, progress=False)
    >>> figure = dfd.plots.residuals(fit)
    """
    known = None if fit.checks is None else fit.checks.residuals
    table = after_regression.residuals(fit, seed).dropna() if known is None else known
    ordered, n = np.sort(table["residual"].to_numpy()), len(table)
    chance = (np.arange(n) + 0.5) / n
    normal = special.ndtri(chance)
    figure = Figure(figsize=(7.6, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    error = 2.0 * np.sqrt(chance * (1 - chance) / n) * np.sqrt(2 * np.pi) * np.exp(0.5 * normal**2)
    left.fill_between(normal, normal - error, normal + error, color=GREY, alpha=0.25, lw=0)
    left.plot(normal, normal, color=GREY, lw=1)
    few = thinned(np.arange(n))
    left.plot(normal[few], ordered[few], "o", color=BLUE, ms=3, alpha=0.7)
    left.set_xlabel("normal quantile", fontsize=9)
    left.set_ylabel("quantile residual", fontsize=9)
    some = table.iloc[few]
    for line, style in ((0.0, "-"), (-2.0, ":"), (2.0, ":")):
        right.axhline(line, color=GREY, lw=0.9, ls=style)
    right.plot(some["fitted"], some["residual"], "o", color=BLUE, ms=3, alpha=0.5)
    groups = np.array_split(table.sort_values("fitted")[["fitted", "residual"]].to_numpy(), max(1, min(12, n // 25)))
    middle = np.array([group.mean(axis=0) for group in groups])
    right.plot(middle[:, 0], middle[:, 1], "-", color=ORANGE, lw=1.5, label="mean by group")
    fit_values = table["fitted"]
    if fit_values.min() > 0 and fit_values.max() > 20 * fit_values.min():
        right.set_xscale("log")
    right.set_xlabel("fitted value", fontsize=9)
    right.set_ylabel("quantile residual", fontsize=9)
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        clean(axes)
    return figure
