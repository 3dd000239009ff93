"""Data that are one observation as a whole: a graph as its dyads, a map as its sites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import families as models
from ..backends.local import InMemory, Source
from ..core.dataset import Units
from ..core.model import AbstractModel
from ..core.objective import Objective
from ..errors import SettingError, close
from .plan import Plan
from .progress import Progress
from .regressions import own_priors

ROWS = ("columns", "weights", "weighting", "missing", "cluster", "time", "formula")  # settings about rows
USUAL = {"missing": "refuse", "weighting": "auto"}  # what settings about rows are, unless a user gives them


def read_whole(
    model: AbstractModel | str, data: Any, options: Mapping[str, Any] | None, prior: Mapping[str, Any] | str | None,
    reading: dict[str, Any],
) -> tuple[Source, AbstractModel] | None:  # fmt: skip
    """What stands for the data, and the model for it; None where data are rows. ``reading`` is about rows."""
    if isinstance(model, str) and model in models.MODELS and models.MODELS.by_name(model).whole:
        model, given, options = models.by_name(model, 0, options), dict(options or {}), None
        reading = {name: given[name] for name in model.reads if name in given} | reading
    if not isinstance(model, AbstractModel):
        return None
    observe: Callable[..., Any] = model.observe
    seen = observe(data, **{name: reading[name] for name in model.reads if name in reading})
    if seen is None:
        return None
    told = {name: value for name, value in reading.items() if value is not None and name not in model.reads}
    unusual = [name for name, value in told.items() if not (isinstance(value, str) and value == USUAL.get(name))]
    unknown = [name for name in unusual if name not in ROWS]
    if unknown:
        raise SettingError(
            f"there is no setting '{unknown[0]}' for a graph or a map{close(unknown[0], ['nodes', *ROWS])}"
        )
    if unusual or options:
        raise SettingError(
            f"{(unusual or ['options'])[0]}= is about rows, and the data are one observation: a graph, a map. What to "
            "do: leave it out; attributes of nodes enter by terms of the model, such as nodecov('age'), those of sites "
            "by formula='present ~ altitude'."
        )
    return InMemory(seen[0]), seen[1].with_priors(own_priors(prior))


def objective_of(source: Source, model: AbstractModel, plan: Plan, units: Units | None, shown: Progress) -> Objective:
    """The loss on complete data, and what has to be simulated for it: a likelihood, sites that nobody observed."""
    loss = model.prepare_loss(plan.loss, source.data, plan.seed, shown.begin)
    data = model.complete(source.data, plan.loss, plan.seed)
    return (source if data is source.data else InMemory(data)).objective(model, loss, units)
