"""The groups that ArviZ's checks and leave-one-out cross-validation look for, made when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._util.resources import require_seed
from .._util.tables import Table
from ..core.losses.likelihood import Likelihood
from ..core.mixing import evenly
from ..core.model import AbstractModel
from ..core.objective import Objective
from ..core.simulators.exact import listed
from ..errors import DfdbayesError, SettingError
from .goodness_of_fit import some
from .predictive import affordable
from .tree import drawn

if TYPE_CHECKING:
    from .fitted import Fitted

AXES = ("chain", "draw", "observation")


def more_groups(fit: Fitted, replicates: int, seed: int) -> dict[str, Table]:
    """Replicated data of posterior and prior, draws of the prior, and the log-likelihood of every observation."""
    if replicates < 1:
        raise SettingError(f"replicates is {replicates}; it must be at least 1")
    require_seed(seed)
    model = fit.model
    if model is None or not model.independent or fit.imputation is not None or not len(fit.data.rows):
        return {}
    found: dict[str, Table] = {}
    rng, how = np.random.default_rng([seed, 6]), affordable(model, fit.data)
    part = some(fit.data, how.get("size") or fit.data.n)
    thetas = model.space.draw_priors(replicates, int(rng.integers(2**31)))
    found["prior"] = drawn(
        {k: v[None] for k, v in model.space.unflatten(model.space.to_data_scale(thetas)).items()}, _labels(model)
    )
    for group, at in (("posterior_predictive", evenly(fit.joint_draws, replicates)), ("prior_predictive", thetas)):
        try:
            with np.errstate(all="ignore"):
                if at is thetas and model.domain.d == 1 and not model.designs:
                    listed(model, at, 2**12)  # an error where the prior expects counts beyond all measure
                size, context = int(part.counts.sum()), model.context_of(part)
                rows = model.draw(at, size, rng, context=context, method=how.get("method")).rows
        except DfdbayesError:  # a wide prior expects data that nobody can simulate
            continue
        found[group] = Table.of({name: (AXES, rows[None, :, :, j]) for j, name in enumerate(part.columns)})
    whole = np.repeat(part.rows, part.counts.astype(int), axis=0)
    found["observed_data"] = Table.of({name: (AXES[2:], whole[:, j]) for j, name in enumerate(part.columns)})
    return found | _log_likelihood(fit, model)


def _log_likelihood(fit: Fitted, model: AbstractModel) -> dict[str, Table]:
    """One value for each draw and observation, where the model's constant can be had and weights are frequencies."""
    if not model.has_likelihood or fit.data.repeats is not None:
        return {}
    objective = Objective(model, fit.data, Likelihood())
    chains, length = next(iter(fit.groups["posterior"].arrays.values())).shape[:2]
    # 128 MB hold a value for each draw and observation; chains are thinned to keep within that
    each = max(1, min(length, 2**24 // max(1, chains * fit.data.n)))
    kept = np.linspace(0, length - 1, each).astype(int)
    thetas = fit.joint_draws.reshape(chains, length, -1)[:, kept]
    values = -objective.unit_values(thetas.reshape(chains * each, -1))
    whole = np.repeat(values, fit.data.counts.astype(int), axis=1).reshape(chains, each, -1)
    name = fit.data.columns[0] if fit.data.d == 1 else "rows"
    return {"log_likelihood": Table.of({name: (AXES, whole)})}


def _labels(model: AbstractModel) -> dict[str, tuple[str, ...]]:
    return {p.name: p.labels for p in model.space.parameters if p.labels and len(p.shape) == 1}
