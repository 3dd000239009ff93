"""What is told and shown of fits: each family has its own words and pictures, beside the model that they are about.

What all fits have in common (missing entries, clusters, whether the model reproduces the data) is told elsewhere. A fit
is a `results.fitted.Fitted`, which nothing here has to name: a narrative reads what fits say of themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._util.words import Estimate, also, counted, listed, multiplied, named
from .parameters import ZEROS, Parameter
from .registry import Registry

if TYPE_CHECKING:
    import pandas as pd

ONE_BY_ONE = 4  # parameters that are told each; of more, how many exclude zero
CLEAREST = 3  # effects that a reader can keep in mind


class Narrative:
    """The words and pictures of fits of one family; this one tells any model parameter by parameter.

    Where the main parameter depends on covariates, it tells what these do.

    Attributes
    ----------
    ratio : str
        What the exponential of a coefficient of the main parameter is called.
    editable : bool
        Whether a remedy may ask for another term in the log mass: of a model of one's own.
    grouped : bool
        Whether observations come from groups already, so that groups are no remedy.
    """

    ratio: str = "ratio"
    editable: bool = True
    grouped: bool = False

    def size(self, fit: Any) -> str:
        """How much was observed."""
        return counted(fit.data.n, "observation")

    def sentences(self, fit: Any) -> list[str]:
        """What was found: two or three sentences that a reader can repeat."""
        if fit.model is None or not fit.model.designs:
            return self.plain(fit)
        return self.effects(fit) or by_parameter(fit)

    def figure(self, fit: Any) -> Any:
        """The picture that shows it best; None for the densities of the posterior."""
        return None

    # -- in documents; what these return is made of `present.blocks` ------------------------------

    def estimates(self, fit: Any, summary: pd.DataFrame) -> pd.DataFrame:
        """The summary as people read it: the lines in their order, and columns for what else is said of them."""
        return summary

    def elsewhere(self, fit: Any) -> tuple[list[str], str]:
        """Entries that have a table of their own in a section of this family, and a sentence that says where."""
        return [], ""

    def findings(self, fit: Any) -> dict[str, list[Any]]:
        """Sections about what was found that only this family has, by their titles; they stand before the estimates."""
        return {}

    def comparisons(self, fit: Any) -> dict[str, list[Any]]:
        """The same of what stands after the estimates."""
        return {}

    def checks(self, fit: Any) -> list[Any] | None:
        """Whether the model reproduces the data; None where rows are compared with simulated ones."""
        return None

    def data(self, fit: Any) -> list[Any] | None:
        """The data at a glance; None where they are rows."""
        return None

    def draws_intervals(self, fit: Any) -> bool:
        """Whether intervals of many entries are drawn, too: not where a section of this family shows them."""
        return True

    def methods(self, fit: Any) -> tuple[str, tuple[str, ...]]:
        """What the paragraph about methods says of this family alone, and the keys of what that cites."""
        return "", ()

    # -- without covariates ----------------------------------------------------------------------

    def plain(self, fit: Any) -> list[str]:
        """What was found where no parameter depends on covariates."""
        return by_parameter(fit)

    # -- with covariates -------------------------------------------------------------------------

    def effects(self, fit: Any) -> list[str]:
        """The clearest effects on the main parameter, and those that the data cannot tell; nothing without any."""
        main = main_of(fit.model)
        if main.name not in fit.model.varying:
            return []
        slopes = fit.model.design(main.name).slopes
        found = {label: fit.entries[entry] for label in slopes if (entry := f"{main.name}[{label}]") in fit.entries}
        return [*_effects(self, fit, main, found), *self.spread(fit)] if found else []

    def changed(self, fit: Any, main: Parameter, response: str) -> str:
        """What a covariate changes, up to the amount."""
        if main.link == "logit":
            return f"the odds of {main.name} are multiplied"
        apart = any(own.name in fit.model.varying for own in fit.model.row_space.of_role(ZEROS))
        but = ", as it would be without the part of its own for zeros," * apart
        return f"the {main.name} of {response}{but} {'is multiplied' if multiplies(main) else 'changes'}"

    def spread(self, fit: Any) -> list[str]:
        """How much observations vary at given covariates, where the model says so."""
        return []


NARRATIVES: Registry[Narrative] = Registry("narrative")
"""Narratives that need their family's models, which so know them by name only."""


def main_of(model: Any) -> Parameter:
    """The parameter that a formula without a name is about, the first one if there are several."""
    return next(p for p in model.row_space.parameters if p.name == model.main_parameters[0])


def multiplies(parameter: Parameter) -> bool:
    """Whether covariates multiply the parameter, or its odds, by the exponentials of their coefficients."""
    return bool(np.isfinite(np.asarray(parameter.support[0])).all())


def by_parameter(fit: Any) -> list[str]:
    """Each parameter with its interval; of many that may be zero, how many clearly are not, and which most."""
    names = list(fit.entries)
    if len(names) <= ONE_BY_ONE:
        first, *others = [Estimate.of(fit, name) for name in names]
        told = [f"{named(names[0])} is {first.full}"]
        told += [f"{named(name)} {one.brief}" for name, one in zip(names[1:], others, strict=True)]
        return [f"{listed(told, ONE_BY_ONE)}."]
    table = fit.summary()
    parameters = names if fit.model is None else [name for name in fit.model.space.names if name in table.index]
    asked = [name for name in _may_be_zero(fit) if name in table.index]
    if not asked:  # positive ones: that an interval excludes zero says nothing
        told = [f"{named(name)} {Estimate.of(fit, name).brief}" for name in parameters[:CLEAREST]]
        return [f"The {len(parameters)} parameters: {', '.join(told)}; all are in the table."]
    of = counted(len(asked), "parameter")
    of += f" that may be zero (of {len(parameters)})" if len(asked) < len(parameters) else ""
    shown = table.loc[asked]
    clear = shown[(shown["eti95_lb"] > 0) | (shown["eti95_ub"] < 0)]
    if not len(clear):
        return [f"Of {of}, none has a 95 % interval that excludes zero."]
    middle = table["median"].where(table["mean"].isna(), table["mean"])
    order = (middle / (table["eti95_ub"] - table["eti95_lb"])).abs()[clear.index].sort_values(ascending=False).index
    told = [f"{named(name)} {Estimate.of(fit, str(name)).brief}" for name in order[:CLEAREST]]
    has, are = ("has a 95 % interval", "is") if len(clear) == 1 else ("have 95 % intervals", "are")
    return [
        f"Of {of}, {len(clear)} {has} that exclude{'s' * (len(clear) == 1)} zero; the clearest {are} {listed(told)}."
    ]


def _may_be_zero(fit: Any) -> list[str]:
    """Parameters of which one may ask whether they are zero; a loaded fit without its model knows them by name."""
    if fit.model is None:
        return list(fit.settings.get("may_be_zero", []))
    return [name for name, one in zip(fit.model.space.names, fit.model.space.may_be_zero, strict=True) if one]


def _effects(narrative: Narrative, fit: Any, main: Parameter, found: dict[str, np.ndarray]) -> list[str]:
    """What covariates multiply or add, the clearest first, one by one; the others together."""
    response = named(fit.data.columns[0]) if fit.data.d == 1 else "all columns"
    factors, design = multiplies(main), fit.model.design(main.name)
    coefficients = {label: Estimate.of(fit, f"{main.name}[{label}]") for label in found}
    numbers = {label: multiplied(found[label]) if factors else coefficients[label] for label in found}
    clear = [label for label, one in coefficients.items() if one.excludes(0.0)]
    clear.sort(key=lambda label: -abs(coefficients[label].value) / np.std(found[label]))
    what, switches = narrative.changed(fit, main, response), _switches(fit)
    told = []
    for i, label in enumerate(clear[:CLEAREST]):
        level, one = _level(design, label) or switches.get(label, ""), numbers[label]
        when = f"With {level}" if level else f"Per unit of {named(label)}"
        told.append(f"{when}, {what} by {one.full if i == 0 else one.brief}.")
    times = "times " * factors
    brief = {label: f"{_level(design, label) or named(label)} ({times}{one.inside})" for label, one in numbers.items()}
    if len(clear) > CLEAREST:
        told.append(also([brief[label] for label in clear[CLEAREST:]]))
    rest = [text for label, text in brief.items() if label not in clear]
    if rest and clear:
        told.append(f"For {listed(rest)} the data cannot tell the direction.")
    elif rest:
        whose = f"{rest[0]} has no" if len(rest) == 1 else f"None of {listed(rest)} has a"
        told.append(f"{whose} clear effect on {response}.")
    return told


def _switches(fit: Any) -> dict[str, str]:
    """Covariates that are 0 or 1 and stand alone, in words."""
    if fit.data.given is None:
        return {}
    columns = range(fit.data.given.shape[1])
    given = {fit.model.covariate(column)[0]: fit.data.given[:, column] for column in columns}
    alone = {label: values for label, values in given.items() if label.replace("_", "").replace(".", "").isalnum()}
    return {label: f"{named(label)} = 1 rather than 0" for label, v in alone.items() if np.isin(v, (0.0, 1.0)).all()}


def _level(design: Any, label: str) -> str:
    """A level of a factor and the one that it is compared with; empty where a term is something else."""
    name, equals, level = label.partition("=")
    if not equals or ":" in label:
        return ""
    against = design.reference(label)
    return f"{named(name)} = {named(level)}" + (f" rather than {named(against)}" if against else "")
