"""Degenerate random graph models: those whose graphs, at the estimate, are not like the one that was observed.

A term such as ``triangle`` feeds on itself: each triangle makes the next one likelier, and most of the probability may
lie on graphs that are nearly complete or nearly empty (Handcock, 2003; Schweinberger, 2011). Then no width that
simulations give means anything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import DegeneracyError
from .simulate import Graphs
from .terms import AbstractTerm

FAR = np.log(3.0)  # difference of log odds of a tie from the observed one, from which a graph is far,
SURE = 5.0  # unless it has so few ties that chance alone may do it: standard deviations of independent ties
SHARE = 0.2  # of simulated graphs that may be far
INSTEAD = {
    "triangle": "gwesp(0.25)", "ttriple": "gwesp(0.25)", "ctriple": "gwesp(0.25)", "kstar": "gwdegree(0.5)",
    "ostar": "gwodegree(0.5)", "istar": "gwidegree(0.5)",
}  # fmt: skip
"""By term, the one that is about the same and does not feed on itself so much."""


def require_sound(graphs: Graphs) -> None:
    """Refuse a model whose simulated graphs are not like the observed one; say which term drives it.

    Raises
    ------
    DegeneracyError
        If a fifth of the graphs have odds of a tie that differ from the observed ones by a factor of three, and by more
        than chance.
    """
    model = graphs.model
    if model.independent:
        return
    observed, dyads = model.graph_observed.ties, graphs.ties.shape[1]
    ties = graphs.ties.sum(axis=1)
    spread = np.sqrt(observed * (1.0 - observed / dyads))
    away = _log_odds(ties, dyads) - _log_odds(observed, dyads)
    far = (np.abs(away) > FAR) & (np.abs(ties - observed) > SURE * spread)
    if far.mean() < SHARE:
        return
    driver = _driver(graphs, far)
    where = _where(ties[far], dyads)
    raise DegeneracyError(
        f"the model is degenerate at the estimate: {far.mean():.0%} of {len(graphs)} graphs simulated there are far "
        f"from the observed one, {where} (observed: {observed} of {dyads} possible ties; simulated: from {ties.min()} "
        f"to {ties.max()}, median {np.median(ties):.0f}). The term {driver.label} drives it. What to do: "
        f"{_advice(driver, model.statistics.names)}; or explain the ties by covariates, such as nodematch('group')."
    )


def _advice(driver: AbstractTerm, names: Sequence[str]) -> str:
    """What to do about the term that drives it: another one that is not there yet, another decay, or nothing of it."""
    other = INSTEAD.get(driver.name)
    if other is not None and other not in names:
        return f"use {other} in its place, which does not feed on itself so much"
    return "leave it out" if other is not None else "give it a smaller decay or leave it out"


def _log_odds(ties: np.ndarray | int, dyads: int) -> np.ndarray:
    return np.log((np.asarray(ties) + 0.5) / (dyads - np.asarray(ties) + 0.5))


def _where(ties: np.ndarray, dyads: int) -> str:
    """How far graphs look."""
    full, empty = float(np.mean(ties > 0.9 * dyads)), float(np.mean(ties < 0.02 * dyads))
    if full > 0.5:
        return "nearly complete"
    return "nearly empty" if empty > 0.5 else "with far more or far fewer ties"


def _driver(graphs: Graphs, far: np.ndarray) -> AbstractTerm:
    """The term through which ties depend on each other that moves the far graphs' log probability most."""
    shift = np.abs(graphs.theta * (graphs.statistics[far].mean(axis=0) - graphs.observed))
    return max(graphs.model.statistics.structures, key=lambda pair: shift[pair[0]])[1]
