"""Regressions: which covariates matter, and by what factor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...data.formulas import INTERCEPT
from ...models.regression import Regression
from .own import own
from .words import Estimate, also, listed, multiplied, named, untold

if TYPE_CHECKING:
    from ..fit_result import Fit

FEW = 3  # covariates that are told one by one


def regression(fit: Fit) -> list[str]:
    """The clearest effects as factors, and those that the data cannot tell."""
    model = fit.model
    assert isinstance(model, Regression)
    main = model.family.main
    if main not in model.varying:
        return [*own(fit)]
    labels = [label for label in model.design(main).labels if label != INTERCEPT]
    found = {label: fit.entries[entry] for label in labels if (entry := f"{main}[{label}]") in fit.entries}
    if not found:
        return [*own(fit)]
    return [*_effects(fit, model, main, found), *_shape(fit)]


def _effects(fit: Fit, model: Regression, main: str, found: dict[str, np.ndarray]) -> list[str]:
    response = named(fit.data.columns[0]) if fit.data.d == 1 else "all columns"
    link = _link(model, main)
    coefficients = {label: Estimate.of(fit, f"{main}[{label}]") for label in found}
    clear = [label for label, one in coefficients.items() if one.excludes(0.0)]
    clear.sort(key=lambda label: -abs(coefficients[label].value) / np.std(found[label]))
    rest = [label for label in found if label not in clear]
    told = []
    for i, label in enumerate(clear[:FEW]):
        one = multiplied(found[label]) if link else coefficients[label]
        told.append(_change(response, main, link, label, one.full if i == 0 else one.brief))
    if len(clear) > FEW:
        told.append(also(clear[FEW:]))
    if rest and clear:
        told.append(untold([named(label) for label in rest]))
    elif rest:
        plain = listed([named(label) for label in rest])
        whose = f"{plain} has no" if len(rest) == 1 else f"None of {plain} has a"
        told.append(f"{whose} clear effect on {response}: 95 % intervals contain no effect.")
    return told


def _link(model: Regression, main: str) -> str:
    """What the exponential of a coefficient multiplies; nothing where a coefficient adds."""
    low, high = next(p for p in model.family.parameters if p.name == main).support
    return "odds" if np.isfinite(low) and np.isfinite(high) else "value" if np.isfinite(low) else ""


def _change(response: str, main: str, link: str, label: str, amount: str) -> str:
    name, equals, level = label.partition("=")
    when = f"With {named(name)} = {named(level)}" if equals and ":" not in label else f"Per unit of {named(label)}"
    if link == "odds":
        what = f"the odds that {response} is 1" if main == "probability" else f"the odds of {main}"
        return f"{when}, {what} are multiplied by {amount}."
    return f"{when}, the {main} of {response} {'is multiplied' if link else 'changes'} by {amount}."


def _shape(fit: Fit) -> list[str]:
    """How much counts vary at given covariates, where that is one number."""
    if "nu_value" not in fit.entries:
        return []
    nu = Estimate.of(fit, "nu_value")
    if not nu.excludes(1.0):
        return [f"At given covariates the counts vary about as Poisson counts do (nu {nu.inside})."]
    return [
        f"At given covariates the counts vary {'less' if nu.low > 1 else 'more'} than Poisson counts (nu {nu.inside})."
    ]
