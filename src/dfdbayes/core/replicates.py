"""Minimisers of many replicates at once: under weights of their own, or on data sets of their own.

All start at the full data's minimum. A resample's loss is curved there much as the full data's is, so with many
parameters all replicates share that one Hessian: it is inverted once, and every step needs gradients only. What this
will not do for (rare answers, heavy tails, bounds, a loss that is not convex) starts again, with Hessians of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .dataset import Dataset
from .linalg import contract, free_of, inverse_among, newton_traced
from .minimise import SUFFICIENT_GRADIENT, WANTED_GRADIENT, Ends, Minima, Minimum, evaluate, judged
from .objective import Objective, Problem
from .parameters import Space
from .terms import doubled_size, second_order

FEW_PARAMETERS = 16  # parameters up to which replicates have Hessians of their own: benchmarks/results/bootstrap.md


class Shared(NamedTuple):
    """What all replicates have in common: where they start, and the full data's Hessian there."""

    y: Float[Array, " p"]
    inverse: Float[Array, "p p"]
    """Of the Hessian among free coordinates; zero elsewhere."""
    free: Bool[Array, " p"]


def minimise_many(
    objective: Objective,
    weights: Float[np.ndarray, "b u"],
    around: Minimum,
    advance: Callable[[int], None] = lambda done: None,
) -> Minima:
    """Minimisers under each row of ``weights``, all started at the full data's minimum.

    Where entries are missing, each replicate weighs them by its own parameters.
    """
    found: Minima = objective.minimise_each(_minimise_each, weights, around, advance)
    return found


def _minimise_each(
    objective: Objective, weights: np.ndarray, around: Minimum, advance: Callable[[int], None]
) -> Minima:
    space = objective.space
    lower, upper = around.box_at_y(space)
    found = judged(objective, _search_each(objective, weights, around, lower, upper, advance), lower, upper)
    return Minima(found.vectors, found.values, found.gradient_norms, found.outcomes)


def _search_each(
    objective: Objective, weights: np.ndarray, around: Minimum, lower: np.ndarray, upper: np.ndarray,
    advance: Callable[[int], None],
) -> Ends:  # fmt: skip
    """Minimise under each row of ``weights``, by the full data's Hessian where that will do.

    What it will not do for starts again with Hessians of its own.
    """
    space = objective.space
    start = np.clip(space.to_y(around.vector), lower, upper)
    alike = space.size > FEW_PARAMETERS and not objective.held
    shared = _shared(objective, around, start, lower, upper) if alike else None
    if shared is None:
        return _search(objective, weights, start, lower, upper, advance)
    ends = _search_shared(objective, weights, shared, lower, upper, advance)
    rest = np.flatnonzero(~ends.convex)
    if len(rest):
        for whole, part in zip(ends, _search(objective, weights[rest], start, lower, upper, advance), strict=True):
            whole[rest] = part
    return ends


def _shared(
    objective: Objective, around: Minimum, y: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> Shared | None:
    """The inverse of the full data's Hessian at their minimum; None where there is none, or it would not help."""
    _, gradient, hessian, _ = evaluate(objective, y)
    free = free_of(y, gradient, lower, upper)
    alike = np.sum(~free) <= 3  # of many coordinates at a bound, hardly two replicates hold the same ones
    inverse = inverse_among(hessian, free) if around.usable and alike else None
    return None if inverse is None else Shared(*map(jnp.asarray, (y, inverse, free)))


def _search_shared(
    objective: Objective, weights: np.ndarray, shared: Shared, lower: np.ndarray, upper: np.ndarray,
    advance: Callable[[int], None],
) -> Ends:  # fmt: skip
    """Minimise under each row of ``weights`` by one Hessian; those that are not convex were not found."""
    parts, aim = [], WANTED_GRADIENT * objective.size
    for wanted, term_weights in _batches(objective, weights):
        ends = _contract_batch(
            objective.problem,
            objective.space,
            _together(objective),
            shared,
            lower,
            upper,
            aim,
            objective.terms,
            wanted,
            term_weights,
        )
        parts.append([np.array(end)[wanted] for end in ends])
        advance(int(parts[-1][-1].sum()))
    return _joined(parts)


def _search(
    objective: Objective, weights: np.ndarray, y: np.ndarray, lower: np.ndarray, upper: np.ndarray,
    advance: Callable[[int], None],
) -> Ends:  # fmt: skip
    """Minimise under each row of ``weights`` from one start, a batch at a time."""
    parts = []
    for wanted, term_weights in _batches(objective, weights):
        parts.append(descend(objective, wanted, term_weights, np.repeat(y[None], len(wanted), axis=0), lower, upper))
        advance(int(wanted.sum()))
    return _joined(parts)


def _batches(objective: Objective, weights: np.ndarray) -> Iterator[tuple[np.ndarray, Any]]:
    """Weights of the loss's terms in batches, filled up to one size, which means one compilation; which are wanted."""
    size = objective.batch
    for first in range(0, len(weights), size):
        chunk = weights[first : first + size]
        yield np.arange(size) < len(chunk), jax.tree.map(lambda part: _filled(part, size), objective.weigh(chunk))


def _filled(part: Array, size: int) -> Array:
    """The first of a batch repeated at its end, up to the batch size."""
    return jnp.concatenate([part, jnp.repeat(part[:1], size - len(part), axis=0)]) if len(part) < size else part


def _together(objective: Objective) -> bool:
    """Whether a batch runs side by side.

    One after the other, what is computed of many terms stays in the processor's cache, and none waits for another.
    """
    return objective.elsewhere or objective.space.size <= FEW_PARAMETERS


def _joined(parts: Sequence[Sequence[np.ndarray]]) -> Ends:
    return Ends(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def descend(
    objective: Objective, wanted: np.ndarray, term_weights: Any, y: np.ndarray, lower: np.ndarray, upper: np.ndarray,
    each_terms: Any = None,
) -> list[np.ndarray]:  # fmt: skip
    """Run one batch; what ends on a saddle point is pushed off it and run again.

    All have the objective's terms, or each has its own of ``each_terms``.
    """
    n = objective.size
    for _ in range(4):
        found = _minimise_batch(
            objective.problem,
            objective.space,
            _together(objective),
            y,
            lower,
            upper,
            WANTED_GRADIENT * n,
            objective.terms if each_terms is None else None,
            wanted,
            term_weights,
            objective.space.prior_values if objective.held else None,
            each_terms,
        )
        *ends, hessians = map(np.array, found)
        y, values, norms, _, convex = ends
        saddles = np.flatnonzero(wanted & ~convex & (norms <= SUFFICIENT_GRADIENT * n) & np.isfinite(values))
        if not len(saddles):
            break
        for b in saddles:
            y[b] = np.clip(y[b] + 0.1 * np.linalg.eigh(hessians[b])[1][:, 0], lower, upper)
    return [end[wanted] for end in ends]


def _mapped(one: Callable[[Any], tuple[Array, ...]], each: Any, together: bool) -> tuple[Array, ...]:
    """Apply a traced function to all, side by side or one after the other."""
    return jax.vmap(one)(each) if together else tuple(jax.lax.map(one, each))


def _slope(space: Space, y: Array) -> Array:
    """Each d theta / d y."""
    return jnp.abs(jax.jvp(space.from_y, (y,), (jnp.ones_like(y),))[1])


@partial(jax.jit, static_argnums=(0, 1, 2))
def _minimise_batch(
    problem: Problem, space: Space, together: bool, y: Array, lower: Array, upper: Array, aim: Array, terms: Any,
    wanted: Array, weights: Any, priors: Any, each_terms: Any,
) -> tuple[Array, ...]:  # fmt: skip
    def one(each: tuple[Array, Array, Any, Any]) -> tuple[Array, ...]:
        y, wanted, weights, own = each

        def evaluate(y: Array) -> tuple[Array, ...]:
            found: Sequence[Array] = problem.second_order_along(space.from_y, y, terms if own is None else own, weights)
            if priors is not None:
                prior = second_order(lambda y: space.log_prior_at_y(y, priors, jnp.zeros_like(y)), y)
                found = tuple(a - b for a, b in zip(found, prior, strict=True))
            return (*found, _slope(space, y))

        end = newton_traced(evaluate, y, lower, upper, aim, wanted)
        free = free_of(end.y, end.gradient, lower, upper)
        gradient = jnp.where(free, end.gradient, 0.0) / end.slope
        inner = jnp.where(free[:, None] & free[None, :], end.hessian, 0.0) + jnp.diag(jnp.where(free, 0.0, 1.0))
        scale = 1.0 / jnp.sqrt(jnp.maximum(jnp.abs(jnp.diag(inner)), 1e-300))
        convex = jnp.all(
            jnp.isfinite(jnp.linalg.cholesky(inner * scale[:, None] * scale[None, :] + 1e-10 * jnp.eye(len(scale))))
        )
        return end.y, end.value, jnp.linalg.norm(gradient), end.iterations, convex, end.hessian

    return _mapped(one, (y, wanted, weights, each_terms), together)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _contract_batch(
    problem: Problem, space: Space, together: bool, shared: Shared, lower: Array, upper: Array, aim: Array, terms: Any,
    wanted: Array, weights: Any,
) -> tuple[Array, ...]:  # fmt: skip
    slope = partial(_slope, space)

    def one(each: tuple[Array, Any]) -> tuple[Array, ...]:
        wanted, weights = each

        def value(y: Array) -> Array:
            return problem.value(space.from_y(y), terms, weights)

        end = contract(jax.grad(value), shared.y, lower, upper, slope, aim, shared.inverse, shared.free, wanted)
        last = value(end.y)
        gradient = jnp.where(shared.free, end.gradient, 0.0) / slope(end.y)
        return end.y, last, jnp.linalg.norm(gradient), end.iterations, end.found & jnp.isfinite(last)

    return _mapped(one, (wanted, weights), together)


# -- data sets of their own ----------------------------------------------------------------------
#
# A data set that was simulated in a parametric bootstrap has rows of its own, such as the distinct dyads of a graph,
# and brings its own table; tables are filled up to one size and go through compiled code side by side. The prior is
# part of what is minimised: a simulated graph without triangles has no finite estimate.

MAX_DATASETS = 64  # data sets that go through compiled code together; a cluster's jobs are as large


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
    lower, upper = around.box_at_y(space)
    start = np.clip(space.to_y(around.vector), lower, upper)
    length = doubled_size(max(len(data.rows) for data in datasets))
    size = min(
        MAX_DATASETS, len(datasets), max(1, 2**22 // (length * space.size))
    )  # tables that fit the memory together
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
