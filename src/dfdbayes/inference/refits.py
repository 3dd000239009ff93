"""Minimisers on many data sets of their own at once: those simulated in a parametric bootstrap.

`replicates` reweights the rows of one data set. Here every data set has rows of its own, such as the distinct dyads of
a simulated graph, so that each brings its own table; tables are filled up to one size and go through compiled code
side by side. The prior is part of what is minimised: a simulated graph without triangles has no finite estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Array

from ..data.dataset import Dataset
from ..models.parameters import Space
from ..models.tables import SecondOrder, padded_size
from . import newton
from .minimise import AIM, Ends, Minima, Minimum, judged
from .objective import Objective, Problem, second_order
from .replicates import ended, slope_of

AT_ONCE = 2**22  # numbers of all tables that go through compiled code together
MOST = 64  # data sets that do


def refit_many(
    objective: Objective,
    datasets: Sequence[Dataset],
    around: Minimum,
    *,
    beta: float = 1.0,
    advance: Callable[[int], None] = lambda done: None,
) -> Minima:
    """The minimum of beta D - log pi on each of many data sets, all started at the same point.

    Parameters
    ----------
    objective : Objective
        The loss on the observed data. Its model must have tables with an entry in each row, as `RandomGraph` has.
    datasets : sequence of Dataset
        Such as ``graphs.datasets()`` of simulated graphs.
    around : Minimum
        Where to begin, and the box that a search may visit.
    beta : float
        The weight of the loss against the prior.
    advance : callable, optional
        Called with the number of data sets just finished.

    Returns
    -------
    Minima
        ``values`` and ``gradient_norms`` are those of what was minimised.

    Examples
    --------
    >>> import dfdbayes as dfd, networkx as nx
    >>> objective = dfd.objective(dfd.models.RandomGraph("edges"), nx.florentine_families_graph(), "pseudo")
    >>> minimum = dfd.minimise(objective)
    >>> graphs = dfd.simulate(objective.model, minimum.vector, 20)
    >>> refit_many(objective, list(graphs.datasets()), minimum).vectors.shape
    (20, 1)
    """
    space = objective.space
    lower, upper = np.sort(space.to_y(np.stack([around.lower, around.upper])), axis=0)
    start = np.clip(space.to_y(around.vector), lower, upper)
    soft = 1e-6 * space.prior_quantiles([0.84])[0] * space.square  # a root has no slope at zero
    length = padded_size(max(len(data.rows) for data in datasets))
    size = min(MOST, len(datasets), max(1, AT_ONCE // (length * space.size)))
    parts = []
    for first in range(0, len(datasets), size):
        some = datasets[first : first + size]
        own = [replace(objective, data=data, resampled=None) for data in some]
        own += own[:1] * (size - len(own))  # one size means one compilation
        found = _refit(
            objective.problem, space, start, lower, upper, AIM * objective.size, beta, space.prior_values, soft,
            _stacked([one.table for one in own], length, "edge"),
            _stacked([one.own_weights for one in own], length, "constant"), np.arange(size) < len(some),
        )  # fmt: skip
        parts.append([np.array(part)[: len(some)] for part in found])
        advance(len(some))
    ends = Ends(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    found = judged(objective, ends, lower, upper)
    return Minima(found.vectors, found.values, found.gradient_norms, found.outcomes)


def _stacked(trees: Sequence[Any], length: int, how: Literal["edge", "constant"]) -> Any:
    """Tables or weights of one structure as one: tables are filled up with copies of a last entry, weights by zeros."""

    def of(*leaves: Array) -> Array:
        arrays = [np.asarray(leaf) for leaf in leaves]
        widths = [[(0, length - len(array)), *[(0, 0)] * (array.ndim - 1)] for array in arrays]
        return jax.device_put(np.stack([np.pad(a, width, how) for a, width in zip(arrays, widths, strict=True)]))

    return jax.tree.map(of, *trees)


@partial(jax.jit, static_argnums=(0, 1))
def _refit(
    problem: Problem, space: Space, start: Array, lower: Array, upper: Array, aim: Array, beta: Array,
    priors: dict[str, Any], soft: Array, tables: Any, weights: Any, wanted: Array,
) -> tuple[Array, ...]:  # fmt: skip
    slope = partial(slope_of, space)

    def one(each: tuple[Any, Any, Array]) -> tuple[Array, ...]:
        table, weights, wanted = each

        def evaluate(y: Array) -> SecondOrder:
            loss = problem.second_order_along(space.from_y, y, table, weights)
            prior = second_order(lambda y: space.log_prior_at_y(y, priors, soft), y)
            value, gradient, hessian = (beta * a - b for a, b in zip(loss, prior, strict=True))
            return value, gradient, hessian

        end = newton.many(evaluate, start, lower, upper, slope, aim, wanted)
        return ended(end, lower, upper, slope)

    return jax.vmap(one)((tables, weights, wanted))
