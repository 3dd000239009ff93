"""Any model, parameter by parameter: what a model of one's own, or a fit without its model, can say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...results.words import Estimate, counted, listed, named

if TYPE_CHECKING:
    from ...results.fitted import Fitted

FEW = 4  # parameters that are told one by one


def own(fit: Fitted) -> list[str]:
    """Each parameter with its interval; of many that may be zero, how many clearly are not, and which most."""
    names = list(fit.entries)
    if len(names) <= FEW:
        first, *others = [Estimate.of(fit, name) for name in names]
        told = [f"{named(names[0])} is {first.full}"]
        told += [f"{named(name)} {one.brief}" for name, one in zip(names[1:], others, strict=True)]
        return [f"{listed(told, FEW)}."]
    table = fit.summary()
    parameters = names if fit.model is None else [name for name in fit.model.space.names if name in table.index]
    asked = [name for name in _may_be_zero(fit) if name in table.index]
    if not asked:  # positive ones: that an interval excludes zero says nothing
        told = [f"{named(name)} {Estimate.of(fit, name).brief}" for name in parameters[: FEW - 1]]
        return [f"The {len(parameters)} parameters: {', '.join(told)}; all are in the table."]
    of = counted(len(asked), "parameter")
    of += f" that may be zero (of {len(parameters)})" if len(asked) < len(parameters) else ""
    shown = table.loc[asked]
    clear = shown[(shown["eti95_lb"] > 0) | (shown["eti95_ub"] < 0)]
    if not len(clear):
        return [f"Of {of}, none has a 95 % interval that excludes zero."]
    middle = table["median"].where(table["mean"].isna(), table["mean"])
    order = (middle / (table["eti95_ub"] - table["eti95_lb"])).abs()[clear.index].sort_values(ascending=False).index
    told = [f"{named(name)} {Estimate.of(fit, str(name)).brief}" for name in order[:3]]
    has, are = ("has a 95 % interval", "is") if len(clear) == 1 else ("have 95 % intervals", "are")
    return [
        f"Of {of}, {len(clear)} {has} that exclude{'s' * (len(clear) == 1)} zero; the clearest {are} {listed(told)}."
    ]


def _may_be_zero(fit: Fitted) -> list[str]:
    """Parameters of which one may ask whether they are zero; a loaded fit without its model knows them by name."""
    if fit.model is None:
        return list(fit.settings.get("may_be_zero", []))
    return [name for name, one in zip(fit.model.space.names, fit.model.space.may_be_zero, strict=True) if one]
