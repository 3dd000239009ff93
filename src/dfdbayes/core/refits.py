"""Minimisers on many data sets of their own at once: those simulated in a parametric bootstrap.

`replicates` reweights the rows of one data set. Here every data set has rows of its own, such as the distinct dyads of
a simulated graph, and brings terms of its own, filled up to one size to go through compiled code side by side.
The prior is part of what is minimised: a simulated graph without triangles has no finite estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Array

from .dataset import Dataset
from .minimise import Ends, Minima, Minimum, judged
from .objective import Objective
from .replicates import descend
from .terms import doubled_size

AT_ONCE = 2**22  # numbers of all terms that go through compiled code together
MOST = 64  # data sets that do


def refit_many(
    objective: Objective,
    datasets: Sequence[Dataset],
    around: Minimum,
    advance: Callable[[int], None] = lambda done: None,
) -> Minima:
    """The minimum of D - log pi on each of many data sets, all started at the same point.

    Parameters
    ----------
    objective : Objective
        The loss on the observed data. Its model must have terms with an entry for each row, as `RandomGraph` has.
    datasets : sequence of Dataset
        Such as ``graphs.datasets()`` of simulated graphs.
    around : Minimum
        Where to begin, and the box that a search may visit.
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
    length = doubled_size(max(len(data.rows) for data in datasets))
    size = min(MOST, len(datasets), max(1, AT_ONCE // (length * space.size)))
    parts = []
    for first in range(0, len(datasets), size):
        some = datasets[first : first + size]
        own = [replace(objective, data=data, resampled=None, held=True) for data in some]
        own += own[:1] * (size - len(own))  # one size means one compilation
        terms = _stacked([one.terms for one in own], length, "edge")
        weights = _stacked([one.own_weights for one in own], length, "constant")
        starts, wanted = np.repeat(start[None], size, axis=0), np.arange(size) < len(some)
        parts.append(descend(own[0], wanted, weights, starts, lower, upper, terms))
        advance(len(some))
    found = judged(objective, Ends(*(np.concatenate(part) for part in zip(*parts, strict=True))), lower, upper)
    return Minima(found.vectors, found.values, found.gradient_norms, found.outcomes)


def _stacked(trees: Sequence[Any], length: int, how: Literal["edge", "constant"]) -> Any:
    """Terms or weights of one structure as one: terms are filled up with copies of a last entry, weights by zeros."""

    def of(*leaves: Array) -> Array:
        arrays = [np.asarray(leaf) for leaf in leaves]
        widths = [[(0, length - len(array)), *[(0, 0)] * (array.ndim - 1)] for array in arrays]
        return jax.device_put(np.stack([np.pad(a, width, how) for a, width in zip(arrays, widths, strict=True)]))

    return jax.tree.map(of, *trees)
