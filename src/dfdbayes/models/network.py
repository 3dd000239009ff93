"""Models with a parameter for every node and for every edge: Boltzmann machines and count graphs.

log p(x) = sum_j a_j x_j + s sum_edges w_ij x_i x_j - sum_j c_j log x_j!   (up to a constant)

with s = +1 for binary values and -1 for counts, whose interactions w >= 0 weaken each other. The last term is there
for counts only; c_j is 1 (Poisson) or a parameter (Conway-Maxwell-Poisson).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Int

from ..data.dataset import Dataset
from ..data.domain import Counts, Domain
from ..data.sites import Sites
from ..errors import ModelError
from .base import AbstractModel, Interactions, Row
from .counts import _regression_of_log_ratios
from .graphs import Graph, complete, edge_labels, of
from .lattice import _two_states
from .network_tables import BinaryConditionals, CountConditionals, PairwiseTable
from .normaliser import log_normaliser
from .parameters import Parameter, Space
from .starts import logistic
from .tables import Prepared


@dataclass(frozen=True)
class Pairwise(AbstractModel):
    """A pairwise model; see the module's formula. Made by `IsingNetwork` and the graphical count models.

    Its parameters are ``intercept`` (one for each node), ``interaction`` (one for each edge, where there are any), and
    ``nu`` (the powers of x!, where these are free). ``counts`` says whether values are counts, which weaken each other.
    """

    on: Graph
    domain: Domain
    space: Space
    name: str
    counts: bool
    start: Callable[[Dataset], dict[str, Any]] | None = field(compare=False)
    options: Mapping[str, Any] = field(compare=False)
    title: str = field(compare=False)
    formula: str = field(compare=False)
    derived: None = None

    @property
    def graph(self) -> Graph:
        return self.on

    def table(self, sites: Sites) -> Prepared:
        return PairwiseTable.of(self, sites)

    def conditionals(self, sites: Sites) -> Prepared:
        return (CountConditionals if self.counts else BinaryConditionals).of(self, sites)

    @property
    def log_normaliser(self) -> Callable[[dict[str, Array]], Array] | None:  # type: ignore[override]
        """Known for counts that do not interact: each is Conway-Maxwell-Poisson alone."""
        return self._independent if self.counts and not self.graph.pairs else None

    def _independent(self, theta: dict[str, Array]) -> Array:
        node, _, curve = self.parts(theta)
        return jnp.sum(log_normaliser(node, jnp.ones_like(node) if curve is None else curve))

    @property
    def two_values(self) -> tuple[float, float]:
        """Of binary values, the lower one, and how far the other is from it."""
        low, high = self.domain.coordinate(0).levels
        return float(low), float(high - low)

    @property
    def sign(self) -> float:
        """That of the interactions in the log mass."""
        return -1.0 if self.counts else 1.0

    def parts(self, theta: dict[str, Any]) -> tuple[Any, Any, Any]:
        """(intercept, interaction, nu): no interactions on a graph without edges, and None for a fixed nu."""
        intercept = theta["intercept"]
        return intercept, theta.get("interaction", intercept[..., :0]), theta.get("nu")

    def log_mass_at(self, theta: dict[str, Array], x: Row) -> Float[Array, ""]:
        node, edge, curve = self.parts(theta)
        i, j = self.graph.edges.T
        value = jnp.dot(node, x) + self.sign * jnp.dot(edge, x[i] * x[j])
        if self.counts:
            value -= jnp.dot(jnp.ones_like(x) if curve is None else curve, gammaln(x + 1.0))
        return value

    def matrix(self, edge: Float[Array, " e"]) -> Float[Array, "d d"]:
        """The symmetric matrix of signed interactions."""
        return self.sign * jnp.concatenate([edge, jnp.zeros(1)])[self.edge_of]

    @cached_property
    def edge_of(self) -> Int[np.ndarray, "d d"]:
        """Which edge joins two nodes; one past the last if none does."""
        found = np.full((self.graph.size, self.graph.size), len(self.graph.pairs))
        i, j = self.graph.edges.T
        found[i, j] = found[j, i] = np.arange(len(self.graph.pairs))
        return found

    @cached_property
    def slots(self) -> tuple[Int[np.ndarray, "d s"], Float[np.ndarray, "d s"]]:
        """Which parameter (one past the last for none) multiplies each feature of a node, and its sign.

        Slot 0 of a node is its own a; slot 1 + k the weight of x_k; slot 1 + d its power of x!.
        """
        d, edges = self.graph.size, len(self.graph.pairs)
        none, nodes = self.space.size, np.arange(d)[:, None]
        among = np.where(self.edge_of < edges, d + self.edge_of, none)
        place = np.hstack([nodes, among, d + edges + nodes if self.free_power else np.full((d, 1), none)])
        factor = np.ones((d, d + 2))
        factor[:, 1:-1] = self.sign
        return place, factor

    @property
    def free_power(self) -> bool:
        """Whether the powers of x! are parameters."""
        return "nu" in self.space.priors

    def interactions(self, theta: dict[str, np.ndarray]) -> Interactions:
        node, edge, curve = self.parts(theta)
        if self.counts and curve is None:
            curve = np.ones_like(node)
        return Interactions(self.graph, "product", np.asarray(node), self.sign * np.asarray(edge), curve)

    def advise(self, data: Dataset) -> tuple[str, str]:
        if self.counts:
            return "ratio", "ratio matching is bounded, so that far counts and weak edges do not decide a network"
        return "pseudo", "each answer given the others is a logistic regression, which serves rare answers best"

    def labelled(self, columns: Sequence[str]) -> Pairwise:
        labels = dict.fromkeys(("intercept", "nu"), tuple(columns))
        labels["interaction"] = edge_labels(self.graph, columns)
        return self.with_space(self.space.labelled(labels))

    def with_space(self, space: Space) -> Pairwise:
        return replace(self, space=space)


def _graph_of(graph: Any, what: str) -> Graph:
    """A number means all pairs of so many nodes."""
    found = complete(int(graph)) if isinstance(graph, (int, np.integer)) else of(graph)
    if found.size < 2:
        raise ModelError(f"{what} needs at least two nodes")
    return found


def IsingNetwork(graph: Any, states: str = "binary") -> Pairwise:
    """p(x) proportional to exp(intercept . x + sum over edges of interaction_ij x_i x_j): a Boltzmann machine.

    Parameters
    ----------
    graph : int or graph
        A number d for all pairs of d nodes, or a graph as for `Ising`.
    states : {"binary", "spins"}
        Whether the values are 0/1 or -1/+1.

    Normal priors: standard deviation 3 for ``intercept`` (one a node; -3 is an item that one in twenty has), and 1 for
    ``interaction`` (one an edge; 1 means odds that are 2.7 times as large).
    """
    graph = _graph_of(graph, "a network")
    domain = _two_states(states, graph.size)
    step = 2.0 if states == "spins" else 1.0

    def pseudo_likelihood(data: Dataset) -> dict[str, Any]:
        """A logistic regression for each node; an interaction is the mean of its two coefficients."""
        intercept, interaction = np.zeros(graph.size), np.zeros((graph.size, graph.size))
        for j in range(graph.size):
            others = graph.adjacency[j].indices
            design = step * np.column_stack([np.ones(len(data.rows)), data.rows[:, others]])
            found = logistic(design, data.counts * (data.rows[:, j] == 1), data.counts, ridge=1.0)
            intercept[j], interaction[j, others] = found[0], found[1:]
        i, j = graph.edges.T
        return {"intercept": intercept, "interaction": 0.5 * (interaction[i, j] + interaction[j, i])}

    space = Space(
        (
            Parameter("intercept", dist.Normal(0.0, 3.0), shape=(graph.size,)),
            Parameter("interaction", dist.Normal(0.0, 1.0), shape=(len(graph.pairs),)),
        )
    )
    options = {"graph": graph, "states": states}
    model = Pairwise(
        graph, domain, space, "ising-network", False, pseudo_likelihood, options,
        title="an Ising network (Boltzmann machine)",
        formula="p(x) ∝ exp( Σ<sub>j</sub> intercept<sub>j</sub> x<sub>j</sub> + Σ<sub>i–j</sub> "
        "interaction<sub>ij</sub> x<sub>i</sub> x<sub>j</sub> )",
    )  # fmt: skip
    return model.labelled([str(j) for j in range(graph.size)])


def _weak(graph: Graph) -> dict[str, Any]:
    return {"interaction": np.full(len(graph.pairs), 1e-3)} if graph.pairs else {}


def _means(data: Dataset) -> np.ndarray:
    return np.log(np.maximum(np.average(data.rows, axis=0, weights=data.counts), 0.05))


def PoissonGraphical(graph: Any, prior: str = "weak") -> Pairwise:
    """Counts with p(x) proportional to exp(intercept . x - sum interaction_ij x_i x_j - sum log x_j!).

    Parameters
    ----------
    graph : int or graph
        A number d for all pairs of d columns, or a graph as for `Ising`; one without edges gives independent counts.
    prior : {"weak", "squared", "half-normal"}
        Of the interactions, which are >= 0: half-normal with scale 1 (``"weak"``, with intercepts of standard
        deviation 5); the paper's squares of normal roots with scale 1 / (number of pairs); or half-normal with that
        scale. Intercepts are standard normal in both.
    """
    graph = _graph_of(graph, "a graphical model")

    def independent(data: Dataset) -> dict[str, Any]:
        return {"intercept": _means(data)} | _weak(graph)

    return _count_graph(graph, prior, "poisson-graphical", independent, ())


def ConwayMaxwellPoissonGraphical(graph: Any, prior: str = "weak") -> Pairwise:
    """Counts as in `PoissonGraphical`, each log x_j! multiplied by a ``nu`` >= 0 of its own.

    The prior of ``nu`` is half-normal with scale 3 (``"weak"``), that of squares of standard normal roots, or
    half-normal with scale 1/sqrt(2).
    """
    graph = _graph_of(graph, "a graphical model")

    def independent(data: Dataset) -> dict[str, Any]:
        """Each column alone: the regression of log frequency ratios."""
        alone = []
        for j in range(data.d):
            values, inverse = np.unique(data.rows[:, j], return_inverse=True)
            counts = np.bincount(inverse, weights=data.counts)
            column = Dataset(values[:, None], counts, (data.columns[j],), np.arange(len(values)))
            alone.append(_regression_of_log_ratios(column))
        rates, powers = (np.array([found[name] for found in alone]) for name in ("rate", "nu"))
        return {"intercept": np.log(rates), "nu": powers} | _weak(graph)

    shape = (graph.size,)
    if prior == "squared":
        nu = Parameter("nu", dist.Normal(0.0, 1.0), shape=shape, square=True)
    else:
        half = dist.HalfNormal(3.0 if prior == "weak" else 0.5**0.5)
        nu = Parameter("nu", half, shape=shape, lower=0.0, closed=True)
    return _count_graph(graph, prior, "cmp-graphical", independent, (nu,))


def _count_graph(
    graph: Graph, prior: str, name: str, start: Callable[[Dataset], dict[str, Any]], more: tuple[Parameter, ...]
) -> Pairwise:
    edges = len(graph.pairs)
    scale = 1.0 / max(1, graph.size * (graph.size - 1) // 2)
    if prior == "squared":
        interaction = Parameter("interaction", dist.Normal(0.0, scale), shape=(edges,), square=True)
    elif prior in ("weak", "half-normal"):
        half = dist.HalfNormal(1.0 if prior == "weak" else scale)
        interaction = Parameter("interaction", half, shape=(edges,), lower=0.0, closed=True, continues=True)
    else:
        raise ModelError(f"prior must be 'weak', 'squared' or 'half-normal', not {prior!r}")
    intercept = Parameter("intercept", dist.Normal(0.0, 5.0 if prior == "weak" else 1.0), shape=(graph.size,))
    space = Space((intercept, *((interaction,) if edges else ()), *more))
    options = {"graph": graph, "prior": prior}
    power = "ν<sub>j</sub> " if more else ""
    model = Pairwise(
        graph, Counts(graph.size), space, name, True, start, options,
        title=f"a {'Conway-Maxwell-' if more else ''}Poisson graphical model",
        formula="p(x) ∝ exp( Σ<sub>j</sub> intercept<sub>j</sub> x<sub>j</sub> − Σ<sub>i–j</sub> "
        f"interaction<sub>ij</sub> x<sub>i</sub> x<sub>j</sub> − Σ<sub>j</sub> {power}log x<sub>j</sub>! )",
    )  # fmt: skip
    return model.labelled([str(j) for j in range(graph.size)])
