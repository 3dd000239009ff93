"""Regressions: which covariates matter, and by what factor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.model import AbstractModel
from ..data.formulas import INTERCEPT, Design
from ..results.ratios import ODDS, multiplies
from ..results.words import Estimate, also, listed, multiplied, named
from .counts.dispersion import dispersion
from .own.narrative import own

if TYPE_CHECKING:
    from ..results.fitted import Fitted

FEW = 3  # covariates that are told one by one


def regression(fit: Fitted) -> list[str]:
    """The clearest effects as factors, and those that the data cannot tell."""
    model = fit.model
    assert model is not None
    main = model.main_parameters[0]
    if main not in model.varying:
        return [*own(fit)]
    labels = [label for label in model.design(main).labels if label != INTERCEPT]
    found = {label: fit.entries[entry] for label in labels if (entry := f"{main}[{label}]") in fit.entries}
    if not found:
        return [*own(fit)]
    return [*_effects(fit, model, main, found), *dispersion(fit, model)]


def _effects(fit: Fitted, model: AbstractModel, main: str, found: dict[str, np.ndarray]) -> list[str]:
    response = named(fit.data.columns[0]) if fit.data.d == 1 else "all columns"
    link, design = multiplies(model), model.design(main)
    coefficients = {label: Estimate.of(fit, f"{main}[{label}]") for label in found}
    numbers = {label: multiplied(found[label]) if link else coefficients[label] for label in found}
    clear = [label for label, one in coefficients.items() if one.excludes(0.0)]
    clear.sort(key=lambda label: -abs(coefficients[label].value) / np.std(found[label]))
    what, switches = _what(model, main, response, link), _switches(fit, model)
    told = []
    for i, label in enumerate(clear[:FEW]):
        level, one = _level(design, label) or switches.get(label, ""), numbers[label]
        when = f"With {level}" if level else f"Per unit of {named(label)}"
        told.append(f"{when}, {what} by {one.full if i == 0 else one.brief}.")
    times = "times " if link else ""
    brief = {label: f"{_level(design, label) or named(label)} ({times}{one.inside})" for label, one in numbers.items()}
    if len(clear) > FEW:
        told.append(also([brief[label] for label in clear[FEW:]]))
    rest = [text for label, text in brief.items() if label not in clear]
    if rest and clear:
        told.append(f"For {listed(rest)} the data cannot tell the direction.")
    elif rest:
        whose = f"{rest[0]} has no" if len(rest) == 1 else f"None of {listed(rest)} has a"
        told.append(f"{whose} clear effect on {response}.")
    return told


def _what(model: AbstractModel, main: str, response: str, link: str) -> str:
    """What changes, up to the amount."""
    if link == ODDS:
        of = f"the odds that {response} is 1" if main == "probability" else f"the odds of {main}"
        return f"{of} are multiplied"
    apart = ", as it would be without the part of its own for zeros," if "zeros" in model.varying else ""
    return f"the {main} of {response}{apart} {'is multiplied' if link else 'changes'}"


def _switches(fit: Fitted, model: AbstractModel) -> dict[str, str]:
    """Covariates that are 0 or 1 and stand alone, in words."""
    if fit.data.given is None:
        return {}
    given = {model.covariate(column)[0]: fit.data.given[:, column] for column in range(fit.data.given.shape[1])}
    alone = {label: values for label, values in given.items() if label.replace("_", "").replace(".", "").isalnum()}
    return {label: f"{named(label)} = 1 rather than 0" for label, v in alone.items() if np.isin(v, (0.0, 1.0)).all()}


def _level(design: Design, label: str) -> str:
    """A level of a factor and the one that it is compared with; empty where a term is something else."""
    name, equals, level = label.partition("=")
    if not equals or ":" in label:
        return ""
    against = design.reference(label)
    return f"{named(name)} = {named(level)}" + (f" rather than {named(against)}" if against else "")
