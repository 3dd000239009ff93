"""Rows from a model at many parameters: the simulator is picked here, an exact one where that is cheap."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ..._util.resources import require_unforked
from ...errors import ModelError, SettingError
from .base import Mixing, Sample, Simulable, mixing_of
from .cluster import by_swendsen_wang
from .exact import MAX_SIMULATED_POINTS, by_enumeration, by_inversion
from .gibbs import by_gibbs
from .given import by_listing, is_listable
from .metropolis import by_metropolis
from .perfect import by_coupling_from_the_past

METHODS = ("enumeration", "inversion", "perfect", "swendsen-wang", "gibbs", "metropolis")
SWEEPS = {"gibbs": 200, "swendsen-wang": 60, "metropolis": 100_000}


def draw(
    model: Simulable,
    thetas: Float[np.ndarray, "c p"],
    size: int,
    rng: np.random.Generator,
    *,
    context: Float[np.ndarray, "size q"] | None = None,
    method: str | None = None,
    sweeps: int | None = None,
) -> Sample:
    """``size`` rows (c, size, d) at each of many parameters: one for each row of the context where there is one."""
    require_unforked()
    if context is not None:
        if method is not None:
            raise SettingError("rows with covariates have one simulator each; leave out method=")
        return _given(model, thetas, context, rng)
    chosen = method or _default(model)
    if chosen not in METHODS:
        raise SettingError(f"there is no simulation method '{chosen}'; known: {', '.join(METHODS)}")
    if chosen == "enumeration":
        return Sample(by_enumeration(model, thetas, size, rng), chosen, None)
    if chosen == "inversion":
        return Sample(by_inversion(model, thetas, size, rng), chosen, None)
    count = _sweeps(model, chosen) if sweeps is None else sweeps
    interactions = None if model.interactions is None else model.interactions(model.space.unflatten(thetas))
    if interactions is None:
        if chosen != "gibbs":
            raise ModelError(f"'{chosen}' needs a model with interactions; use method='gibbs'")
        rows, trace = model.gibbs(thetas, size, rng, count, None)
        return Sample(rows, chosen, mixing_of(trace))
    if chosen == "perfect":
        return Sample(by_coupling_from_the_past(interactions, model.domain, size, rng), chosen, None)
    if chosen == "metropolis":
        rows = by_metropolis(interactions, model.domain, size, rng, count)
        return Sample(rows, chosen, Mixing(count // model.domain.d, float("nan"), float("nan")))
    run = by_gibbs if chosen == "gibbs" else by_swendsen_wang
    rows, trace = run(interactions, model.domain, size, rng, count)
    return Sample(rows, chosen, mixing_of(trace))


def _given(
    model: Simulable, thetas: Float[np.ndarray, "c p"], context: Float[np.ndarray, "n q"], rng: np.random.Generator
) -> Sample:
    if is_listable(model):
        found = by_listing(model, thetas, context, rng)
        return Sample(found, "enumeration" if model.domain.is_finite else "inversion", None)
    rows, trace = model.gibbs(thetas, len(context), rng, _sweeps(model, "gibbs"), context)
    return Sample(rows, "gibbs", mixing_of(trace))


def _sweeps(model: Simulable, method: str) -> int:
    if method == "gibbs" and not model.domain.is_finite:
        return 40  # counts interact weakly, and a sweep of theirs costs more
    return SWEEPS.get(method, 0)


def _default(model: Simulable) -> str:
    if model.domain.is_finite and model.domain.size <= MAX_SIMULATED_POINTS:
        return "enumeration"
    return "inversion" if model.domain.is_one_count else "gibbs"
