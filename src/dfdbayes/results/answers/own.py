"""Any model, parameter by parameter: what a model of one's own, or a fit without its model, can say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .words import Estimate, counted, listed, named

if TYPE_CHECKING:
    from ..fit_result import Fit

FEW = 4  # parameters that are told one by one


def own(fit: Fit) -> list[str]:
    """Each parameter with its interval; of many, how many are clearly not zero, and which most."""
    names = list(fit.entries)
    if len(names) <= FEW:
        first, *others = [Estimate.of(fit, name) for name in names]
        told = [f"{named(names[0])} is {first.full}"]
        told += [f"{named(name)} {one.brief}" for name, one in zip(names[1:], others, strict=True)]
        return [f"{listed(told, FEW)}."]
    table = fit.summary()
    clear = table[(table["eti95_lb"] > 0) | (table["eti95_ub"] < 0)]
    if not len(clear):
        return [f"Of {counted(len(table), 'parameter')}, none has a 95 % interval that excludes zero."]
    middle = table["median"].where(table["mean"].isna(), table["mean"])
    order = (middle / (table["eti95_ub"] - table["eti95_lb"])).abs()[clear.index].sort_values(ascending=False).index
    told = [f"{named(name)} {Estimate.of(fit, str(name)).brief}" for name in order[:3]]
    return [
        f"Of {counted(len(table), 'parameter')}, {len(clear)} have 95 % intervals that exclude zero; the clearest are "
        f"{listed(told)}."
    ]
