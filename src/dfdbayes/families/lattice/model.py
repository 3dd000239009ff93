"""Models of one or two parameters on a graph: Ising and Potts."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array
from scipy.special import logsumexp, softmax

from ...core.dataset import Dataset
from ...core.domain import Binary, Domain, Finite, Spins
from ...core.exponential import ExponentialFamily
from ...core.graphs import Graph, of
from ...core.linalg import newton
from ...core.minimise import logistic
from ...core.model import Row
from ...core.parameters import NODE, Parameter
from ...core.simulators.base import Interactions
from ...errors import ModelError
from ...results.test_statistics import BALANCE
from ..named import GRAPH, named
from .narrative import LatticeNarrative

COMMONER = "one value may be commoner than the other: try"
HEAT = {"temperature": "how weakly neighbours hold together (the paper's theta): the lower, the more alike they are"}


class _OnGraph:
    """A function of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class _Products(_OnGraph):
    """T(x) = sum over edges of x_i x_j."""

    def __call__(self, x: Row) -> Array:
        i, j = self.graph.edges.T
        return jnp.stack([jnp.dot(x[i], x[j])])


class _ProductsAndSum(_OnGraph):
    """The same, and the sum of x."""

    def __call__(self, x: Row) -> Array:
        i, j = self.graph.edges.T
        return jnp.stack([jnp.dot(x[i], x[j]), jnp.sum(x)])


class _Matches(_OnGraph):
    """T(x) = number of edges whose ends are equal."""

    def __call__(self, x: Row) -> Array:
        i, j = self.graph.edges.T
        return jnp.stack([jnp.sum(jnp.where(x[i] == x[j], 1.0, 0.0))])


def _inverse(theta: dict[str, Array]) -> Array:
    return jnp.stack([1.0 / theta["temperature"]])


def _inverse_and_intercept(theta: dict[str, Array]) -> Array:
    return jnp.stack([1.0 / theta["temperature"], theta["intercept"]])


@named("ising", takes=(GRAPH, "states", "intercept"))
def Ising(graph: Any, states: str = "spins", intercept: bool = False) -> ExponentialFamily:
    """p(x) proportional to exp(sum over edges of x_i x_j / temperature), each edge once; chi-squared(3) prior.

    The paper writes theta for the ``temperature``.

    Parameters
    ----------
    graph
        A `dfdbayes.graphs.Graph` such as ``dfd.graphs.grid(10, 10)``, a networkx graph, an adjacency matrix, or edges.
    states : {"spins", "binary"}
        Whether the values are -1/+1 or 0/1.
    intercept : bool
        Whether there is a parameter ``intercept`` that multiplies the sum of x, with a standard normal prior.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> dfd.models.Ising(dfd.graphs.grid(6, 6)).domain
    Spins(36)
    """
    graph = of(graph)
    domain = _two_states(states, graph.size)
    binary = ", states='binary'" if states == "binary" else ""
    own = " + intercept Σ<sub>j</sub> x<sub>j</sub>" if intercept else ""

    def differences(rows: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step = (moved - rows).astype(float)
        around = rows @ graph.adjacency
        parts = [step * around, step] if intercept else [step * around]
        return np.stack(parts, axis=-1), np.zeros(rows.shape)

    def pseudo_likelihood(data: Dataset) -> dict[str, Any]:
        """Logistic regression of each value on the sum of its neighbours, grouped by that sum."""
        around = np.asarray(data.rows @ graph.adjacency)
        up = data.rows == 1
        sums, group = np.unique(around, return_inverse=True)
        weight = np.broadcast_to(data.counts[:, None], around.shape).reshape(-1)
        totals = np.bincount(group.reshape(-1), weights=weight)
        ones = np.bincount(group.reshape(-1), weights=weight * up.reshape(-1))
        step = 2.0 if states == "spins" else 1.0
        design = step * np.stack([sums, np.ones_like(sums)], axis=1)[:, : 2 if intercept else 1]
        found = logistic(design, ones, totals)
        start = {"temperature": 1.0 / np.clip(found[0], 0.02, 20.0)}
        return start | ({"intercept": found[1]} if intercept else {})

    def interactions(theta: dict[str, np.ndarray]) -> Interactions:
        strength = 1.0 / np.asarray(theta["temperature"], float)[..., None]
        own = np.asarray(theta["intercept"], float)[..., None] if intercept else np.zeros_like(strength)
        shape = strength.shape[:-1]
        return Interactions(
            graph,
            "product",
            np.broadcast_to(own, (*shape, graph.size)),
            np.broadcast_to(strength, (*shape, len(graph.pairs))),
        )

    parameters = [Parameter("temperature", dist.Chi2(3.0), lower=0.0)]
    if intercept:
        parameters.append(Parameter("intercept", dist.Normal(0.0, 1.0), role=NODE))
    return ExponentialFamily(
        T=_ProductsAndSum(graph) if intercept else _Products(graph),
        b=None,
        eta=_inverse_and_intercept if intercept else _inverse,
        domain=domain,
        parameters=parameters,
        name="ising",
        title="an Ising model",
        formula=f"p(x) ∝ exp( Σ<sub>i–j</sub> x<sub>i</sub> x<sub>j</sub> / temperature{own} )",
        narrative=LatticeNarrative(),
        meanings=HEAT
        | ({"intercept": "how much more the upper of the two values is favoured everywhere"} if own else {}),
        start=pseudo_likelihood,
        differences=differences,
        interactions=interactions,
        has_clusters=states == "spins" and not intercept,
        remedies={} if intercept else {BALANCE: f"{COMMONER} dfd.models.Ising({{graph}}{binary}, intercept=True)"},
        options={"graph": graph, "states": states, "intercept": intercept},
    )


@named("potts", takes=(GRAPH, "states"))
def Potts(graph: Any, states: int = 3) -> ExponentialFamily:
    """p(x) proportional to exp(number of edges with equal ends / temperature), values 0 to k-1; chi-squared(3) prior.

    The states are a cycle, as the paper's finite sets are.

    Parameters
    ----------
    graph
        As for `Ising`.
    states : int
        k, the number of values.
    """
    graph = of(graph)
    try:
        states = int(states)
    except (TypeError, ValueError):
        raise ModelError(f"states must be a whole number, for example --states 3, not {states!r}") from None
    if states < 2:
        raise ModelError(f"a Potts model needs at least two states, not {states}")

    def differences(rows: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        around = np.stack([(rows == s).astype(float) @ graph.adjacency for s in range(states)], axis=-1)
        there = np.take_along_axis(around, moved[..., None], axis=-1)
        here = np.take_along_axis(around, rows[..., None], axis=-1)
        return there - here, np.zeros(rows.shape)

    def pseudo_likelihood(data: Dataset) -> dict[str, Any]:
        """The one coefficient of the conditional distributions, held by a small ridge."""
        around = np.stack([(data.rows == s).astype(float) @ graph.adjacency for s in range(states)], axis=-1)
        own = np.take_along_axis(around, data.rows[..., None], axis=-1)[..., 0]
        weight = np.broadcast_to(data.counts[:, None], own.shape)

        def evaluate(strength: np.ndarray) -> tuple[np.ndarray, ...]:
            chance = softmax(strength * around, axis=-1)
            mean = (chance * around).sum(axis=-1)
            spread = (chance * around**2).sum(axis=-1) - mean**2
            value = np.sum(weight * (logsumexp(strength * around, axis=-1) - strength * own))
            hessian = np.array([[np.sum(weight * spread) + 1e-3]])
            return (
                value + 5e-4 * strength @ strength,
                np.sum(weight * (mean - own)) + 1e-3 * strength,
                hessian,
                np.ones(1),
            )

        found = newton(evaluate, np.zeros(1), np.full(1, -20.0), np.full(1, 20.0), 1e-10 * weight.sum()).y[0]
        return {"temperature": 1.0 / np.clip(found, 0.02, 20.0)}

    def interactions(theta: dict[str, np.ndarray]) -> Interactions:
        strength = 1.0 / np.asarray(theta["temperature"], float)[..., None]
        shape = strength.shape[:-1]
        interaction = np.broadcast_to(strength, (*shape, len(graph.pairs)))
        return Interactions(graph, "match", np.zeros((*shape, graph.size)), interaction)

    return ExponentialFamily(
        T=_Matches(graph),
        b=None,
        eta=_inverse,
        domain=Finite(graph.size, states),
        parameters=[Parameter("temperature", dist.Chi2(3.0), lower=0.0)],
        name="potts",
        title="a Potts model",
        formula="p(x) ∝ exp( number of edges with equal ends / temperature )",
        narrative=LatticeNarrative(),
        meanings=HEAT,
        start=pseudo_likelihood,
        differences=differences,
        interactions=interactions,
        has_clusters=True,
        options={"graph": graph, "states": states},
    )


def _two_states(states: str, size: int) -> Domain:
    if states not in ("spins", "binary"):
        raise ModelError(f"states must be 'spins' (-1, +1) or 'binary' (0, 1), not {states!r}")
    return Spins(size) if states == "spins" else Binary(size)
