"""Models with a parameter for every node and for every edge: Boltzmann machines, count graphs, mixed networks.

log p(x) = sum_j node_j(x_j) + sigma sum over edges i-j of w_ij s_i(x_i) s_j(x_j) - log Z

    node_j   = sum_f eta_fj t_fj, coefficients (intercepts, thresholds, nu) times the node statistics of column j
    s_j      the edge statistic of column j, what its neighbours see of it
    w_ij     ``interaction``, one for each edge
    sigma    -1 where interactions are not negative and lower what they join (graphical count models), 1 elsewhere

================ =================================================== ================ =======================
kind of column   node_j(x)                                           s_j(x)           model
================ =================================================== ================ =======================
binary           intercept x                                         x                Ising (Boltzmann machine)
ordinal          threshold_x; 0 for the lowest level                 x - min          Marsman et al. (2025)
blume-capel      intercept (x - min) + quadratic (x - reference)^2   x - min          Blume and Capel
count            intercept x - nu log x!                             sqrt(x)          Inouye et al. (2016)
poisson          intercept x - log x!                                sqrt(x)          Inouye et al. (2016)
count, poisson   the same, sigma = -1 and w >= 0                     x                Yang et al. (2012)
================ =================================================== ================ =======================

The kinds are those of `kinds`; every one says what its t and its s are. Given all others, column j has the log mass

    sum_f eta_fj t_fj(x) + s_j(x) field_j,        field_j = sigma sum_i w_ij s_i(x_i),

an exponential family whose natural parameters are linear in theta; `terms` rests on that.

References
----------
Inouye, Ravikumar and Dhillon (2016), Square root graphical models, ICML; Marsman, van den Bergh and Haslbeck (2025),
Bayesian analysis of the ordinal Markov random field, Psychometrika; Matsubara, Knoblauch, Briol and Oates (2024),
Generalized Bayesian inference for discrete intractable likelihood, JASA, for counts with nu and their priors; Yang,
Ravikumar, Allen and Liu (2012), Graphical models via generalized linear models, NeurIPS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from ...core.dataset import Dataset, Sites
from ...core.domain import Domain
from ...core.graphs import Graph, complete, edge_labels, of
from ...core.minimise import logistic
from ...core.model import AbstractModel, Row, against
from ...core.narrative import NARRATIVES, Narrative
from ...core.parameters import EDGE, NODE, SHAPE, Parameter, Space
from ...core.simulators.base import Interactions
from ...core.terms import Prepared, View
from ...errors import ModelError
from ...results.test_statistics import SKEWNESS, VARIANCE, ZEROS
from ..counts.models import _regression_of_log_ratios
from ..counts.normaliser import log_normaliser
from ..lattice.model import _two_states
from ..named import GRAPH, named
from . import descriptions as remarks
from .kinds import BinaryKind, CountKind, Kind, PoissonKind, domain_of
from .simulate import by_levels, by_levels_given
from .terms import (
    BinaryConditionals,
    BinaryRatios,
    CountConditionals,
    LevelConditionals,
    NodeRatios,
    OrdinalConditionals,
)

OF_EDGES = (1.0, 1.0)
"""`Parameter.spread` of interactions: 1 means odds that are 2.7 times as large."""


@dataclass(frozen=True)
class Pairwise(AbstractModel):
    """A pairwise model; see the module's formula. Made by `Network`, `IsingNetwork` and the graphical count models.

    Its parameters are ``interaction``, one for each edge where there are any, and those of its columns' kinds, such as
    ``intercept`` and ``nu``.
    """

    on: Graph
    kinds: tuple[Kind, ...]
    space: Space
    name: str
    nonpositive_edges: bool
    """Whether sigma is -1: interactions are not negative, and lower what they join."""
    start: Callable[[Dataset], dict[str, Any]] | None = field(compare=False)
    options: Mapping[str, Any] = field(compare=False)
    title: str = field(compare=False)
    formula: str = field(compare=False)
    mixed: bool = field(default=False, compare=False)
    """Whether each column is of a kind of its own, which a fit tells."""
    origin: tuple[str, ...] = field(default=(), compare=False)
    """What of each column was read off the data (see `remarks`); nothing where this is empty."""
    with_shape: str = field(default="", compare=False)
    """The model like this one in which the spread of counts is a parameter, where it is none here."""
    derived: None = None

    @property
    def narrative(self) -> Narrative:  # type: ignore[override]
        return NARRATIVES.by_name("network")

    @property
    def paper_priors(self) -> dict[str, Any]:
        if self.nonpositive_edges and self.options.get("prior") != "squared":
            raise ModelError("the paper's priors are of roots: make the model with prior='squared'")
        return {}

    @property
    def meanings(self) -> Mapping[str, str]:  # type: ignore[override]
        return {name: text + against(self.space, name) for name, text in _meanings(self).items()}

    @cached_property
    def domain(self) -> Domain:  # type: ignore[override]
        return domain_of(self.kinds)

    @property
    def graph(self) -> Graph:
        return self.on

    def terms_at(self, sites: Sites, view: View) -> Prepared:
        straight = all(design.of.link == "identity" for design in self.space.designs)
        if view is View.LIKELIHOOD or not straight:  # with other links predictors are not parameters themselves
            return super().terms_at(sites, view)
        base = self.plain if self.varying else self
        logistic = all(kind.is_logistic for kind in self.kinds)
        if view is View.NEIGHBOURS:
            return (BinaryRatios if logistic else NodeRatios).of(self, base, sites)
        if logistic:
            return BinaryConditionals.of(self, base, sites)
        if self.varying:
            return LevelConditionals.of(self, base, sites)
        if self._of_rates and self.is_auto:
            return CountConditionals.of(self, sites)
        even = all(kind.is_even for kind in self.kinds)
        return (OrdinalConditionals if even else LevelConditionals).of(self, self, sites)

    @property
    def log_normaliser(self) -> Callable[[dict[str, Array]], Array] | None:  # type: ignore[override]
        """Known for counts that do not interact: each is Conway-Maxwell-Poisson alone."""
        return self._independent if self._of_rates and not self.graph.pairs else None

    def _independent(self, theta: dict[str, Array]) -> Array:
        intercept, nu = self.coefficients(self._flat(theta))  # of every column; nu is 1 where it is no parameter
        return jnp.sum(log_normaliser(intercept, nu))

    def _flat(self, theta: dict[str, Array]) -> Array:
        return jnp.concatenate([jnp.ravel(theta[p.name]) for p in self.row_space.parameters])

    def declared(self, data: Dataset) -> dict[str, Any]:
        """Levels of ordinal columns beyond those that the data have."""
        if "kinds" not in self.options:
            return {}
        each = zip(data.columns, self.kinds, self.options["levels"], data.rows.T, strict=True)
        beyond = {
            name: list(own)
            for name, kind, own, column in each
            if kind.coordinate.ordered and list(own) != np.unique(column).tolist()
        }
        return {"levels": beyond or None}

    @property
    def _of_rates(self) -> bool:
        """Whether every column is a count that given the others is Conway-Maxwell-Poisson."""
        return all(kind.counts and kind.has_formula for kind in self.kinds)

    @property
    def accessors(self) -> tuple[str, ...]:
        return ("network",) if self.graph.pairs else ()

    @property
    def distances(self) -> Float[np.ndarray, " d"]:
        """How far apart neighbours see the two values of each column; NaN of columns with other than two."""
        return np.array([kind.distance for kind in self.kinds])

    @property
    def is_binary(self) -> bool:
        """Whether every column has two values."""
        return not np.isnan(self.distances).any()

    @property
    def sign(self) -> float:
        """Sigma, that of the interactions in the log mass."""
        return -1.0 if self.nonpositive_edges else 1.0

    # -- nodes ---------------------------------------------------------------------------------

    @cached_property
    def is_auto(self) -> bool:
        """Whether it is an auto-model (Besag, 1974): an intercept is as good as one neighbour more."""
        return all(kind.is_auto for kind in self.kinds)

    @cached_property
    def features(self) -> int:
        """The most node statistics that a column has."""
        return max(len(kind.coefficients) for kind in self.kinds)

    @cached_property
    def _alike(self) -> tuple[tuple[Kind, Int[np.ndarray, " k"]], ...]:
        """The kinds, each with its columns."""
        found: dict[Kind, list[int]] = {}
        for j, kind in enumerate(self.kinds):
            found.setdefault(kind, []).append(j)
        return tuple((kind, np.array(columns)) for kind, columns in found.items())

    def _by_column(self, parts: Sequence[Any], x: Any) -> Any:
        """Arrays (..., k) for the columns of each of `_alike` as one (d, ...), of NumPy where ``x`` is."""
        xp: Any = np if isinstance(x, np.ndarray) else jnp
        order = np.argsort(np.concatenate([columns for _, columns in self._alike]))
        return xp.moveaxis(xp.concatenate(parts, axis=-1)[..., order], -1, 0)

    def node_statistics(self, x: Any) -> Any:
        """The statistics t (f, d, ...) of values x (..., d), NumPy or JAX; zero where a column has fewer."""
        xp: Any = np if isinstance(x, np.ndarray) else jnp
        parts = []
        for kind, columns in self._alike:
            own = [xp.asarray(part, float) for part in kind.node_statistics(xp.asarray(x[..., columns], float))]
            parts.append(xp.stack(own + [xp.zeros_like(own[0])] * (self.features - len(own))))
        return xp.moveaxis(self._by_column(parts, x), 0, 1)

    def edge_statistics(self, x: Any) -> Any:
        """The statistics s (d, ...) of values x (..., d) of NumPy or of JAX: what neighbours see of them."""
        xp: Any = np if isinstance(x, np.ndarray) else jnp
        return self._by_column(
            [kind.edge_statistic(xp.asarray(x[..., columns], float)) for kind, columns in self._alike], x
        )

    @cached_property
    def coefficient_of(self) -> Int[np.ndarray, "f d"]:
        """Which entry of a row's flat parameters multiplies each node statistic.

        One past the last stands for none (there is no such statistic), the next for a coefficient of 1.
        """
        first, none = self.row_space.first, self.row_space.size
        found = np.full((self.features, len(self.kinds)), none)
        entries: Counter[str] = Counter()
        for j, kind in enumerate(self.kinds):
            for f, coefficient in enumerate(kind.coefficients):
                if coefficient is None:
                    found[f, j] = none + 1
                else:
                    found[f, j] = first[coefficient.name] + entries[coefficient.name]
                    entries[coefficient.name] += 1
        return found

    def coefficients(self, theta: Float[Array, " p"]) -> Float[Array, "f d"]:
        """Eta, what multiplies the node statistics, from a row's flat parameters."""
        return jnp.concatenate([theta, jnp.array([0.0, 1.0])])[self.coefficient_of]

    @cached_property
    def plain(self) -> Pairwise:
        return super().plain

    def log_mass_at(self, theta: dict[str, Array], x: Row) -> Float[Array, ""]:
        eta, s, (i, j) = self.coefficients(self._flat(theta)), self.edge_statistics(x), self.graph.edges.T
        return jnp.sum(eta * self.node_statistics(x)) + self.sign * jnp.dot(self.interaction_of(theta), s[i] * s[j])

    # -- edges ---------------------------------------------------------------------------------

    def interaction_of(self, theta: dict[str, Any]) -> Any:
        """The interactions, none on a graph without edges."""
        return theta.get("interaction", next(iter(theta.values()))[..., :0])

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

    def interactions(self, theta: dict[str, np.ndarray]) -> Interactions | None:
        """What fast chains take: all columns are of one kind, and neighbours see their values."""
        if self.varying or len(self._alike) > 1 or not (self.is_auto and self.kinds[0].has_formula):
            return None
        intercept, edges = np.asarray(theta["intercept"]), self.sign * np.asarray(self.interaction_of(theta))
        nu = theta.get("nu", np.ones_like(intercept)) if self._of_rates else None
        return Interactions(self.graph, "product", intercept, edges, nu)

    def gibbs(
        self, thetas: np.ndarray, size: int, rng: np.random.Generator, sweeps: int, context: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        if context is None:
            return by_levels(self, thetas, size, rng, sweeps)
        return by_levels_given(self, thetas, context, rng, sweeps)

    @property
    def remedies(self) -> Mapping[str, str]:  # type: ignore[override]
        """Of counts whose spread is no parameter: the model where it is."""
        if self.designs or not self.with_shape:
            return {}
        shaped = f"try model='{self.with_shape}', where each column's spread is a parameter"
        return dict.fromkeys((VARIANCE, ZEROS, SKEWNESS), shaped)

    def advise(self, data: Dataset) -> tuple[str, str]:
        if any(kind.counts for kind in self.kinds):
            others = not all(kind.counts for kind in self.kinds)
            beside = "; a network without counts has 'pseudo', which may give other edges where the model is wrong"
            return (
                "ratio",
                f"ratio matching is bounded, so far counts and weak edges do not decide a network{beside * others}",
            )
        levels = "" if self.is_binary else " (of adjacent categories, where there are more than two levels)"
        return (
            "pseudo",
            f"each answer given the others is a logistic regression{levels}, which serves rare answers best",
        )

    @property
    def main_parameters(self) -> tuple[str, ...]:
        """All that nodes own, but for nu."""
        return tuple(p.name for p in self.space.parameters if p.role == NODE)

    def columns_told(self, columns: Sequence[str]) -> str:
        return remarks.told(self.kinds, columns, self.origin) if self.mixed else ""

    def remarks(self, data: Dataset) -> Sequence[str]:
        levels = remarks.about_levels(self.kinds, data, self.origin)
        return [*remarks.about_counts(self.kinds, data, self.origin), *levels]

    def labelled(self, columns: Sequence[str]) -> Pairwise:
        labels: dict[str, tuple[str, ...]] = {"interaction": edge_labels(self.graph, columns)}
        for column, kind in zip(columns, self.kinds, strict=True):
            for coefficient, label in zip(filter(None, kind.coefficients), kind.labels(column), strict=True):
                labels[coefficient.name] = (*labels.get(coefficient.name, ()), label)
        return self.with_space(self.space.labelled(labels))

    def with_space(self, space: Space) -> Pairwise:
        return replace(self, space=space)


def _meanings(model: Pairwise) -> dict[str, str]:
    """What the parameters of a network are."""
    if model.nonpositive_edges:
        edge = "how much one more of a column lowers the log rate of the other"
    elif not model.is_binary:
        edge = "a log odds ratio per step of each of the two"
        told = dict.fromkeys(kind.step_told for kind in model.kinds if kind.step_told and not kind.is_auto)
        edge += "".join(f" ({text})" for text in told)
    else:
        edge = _in_log_odds(model.distances)
    known = {one.name: one.meaning for kind in model.kinds for one in kind.coefficients if one is not None}
    known["interaction"] = f"what two columns have to do with each other, all others held fixed: {edge}"
    return {p.name: known[p.name] for p in model.space.parameters}


def _in_log_odds(distances: Float[np.ndarray, " d"]) -> str:
    """What an interaction of columns with two values is: their log odds ratio over the product of both distances."""
    if np.ptp(distances) > 0.0:
        return "a log odds ratio divided by the distances between the two values of each"
    number = distances[0] ** 2
    known = {1.0: "a log odds ratio", 4.0: "a quarter of a log odds ratio"}
    return known.get(number, f"a log odds ratio divided by {number:g}")


def graph_of_nodes(graph: Any, what: str) -> Graph:
    """A graph of at least two nodes; a number means all pairs of so many."""
    found = complete(int(graph)) if isinstance(graph, (int, np.integer)) else of(graph)
    if found.size < 2:
        raise ModelError(f"{what} needs at least two nodes")
    return found


@named("ising-network", takes=(GRAPH, "states"), columns="graph")
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
    graph = graph_of_nodes(graph, "a network")
    kind = BinaryKind(_two_states(states, 1).coordinate(0))
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
            Parameter("intercept", dist.Normal(0.0, 3.0), shape=(graph.size,), role=NODE),
            Parameter("interaction", dist.Normal(0.0, 1.0), shape=(len(graph.pairs),), role=EDGE, spread=OF_EDGES),
        )
    )
    options = {"graph": graph, "states": states}
    model = Pairwise(
        graph, (kind,) * graph.size, space, "ising-network", False, pseudo_likelihood, options,
        title="an Ising network (Boltzmann machine)",
        formula="p(x) ∝ exp( Σ<sub>j</sub> intercept<sub>j</sub> x<sub>j</sub> + Σ<sub>i–j</sub> "
        "interaction<sub>ij</sub> x<sub>i</sub> x<sub>j</sub> )",
    )  # fmt: skip
    return model.labelled([str(j) for j in range(graph.size)])


def _weak(graph: Graph) -> dict[str, Any]:
    return {"interaction": np.full(len(graph.pairs), 1e-3)} if graph.pairs else {}


def _means(data: Dataset) -> np.ndarray:
    return np.log(np.maximum(np.average(data.rows, axis=0, weights=data.counts), 0.05))


@named("poisson-graphical", takes=(GRAPH, "prior"), columns="graph", paper={"prior": "squared"})
def PoissonGraphical(graph: Any, prior: str = "weak") -> Pairwise:
    """Counts with p(x) proportional to exp(intercept . x - sum interaction_ij x_i x_j - sum log x_j!).

    Parameters
    ----------
    graph : int or graph
        A number d for all pairs of d columns, or a graph as for `Ising`; one without edges gives independent counts.
    prior : {"weak", "squared", "half-normal"}
        Of the interactions, which are >= 0: half-normal with scale 1 (``"weak"``, with intercepts of standard
        deviation 5); squares of normal roots with scale 1 / (number of pairs), as in Matsubara et al. (2024); or
        half-normal with that scale. Intercepts are standard normal in both.
    """
    graph = graph_of_nodes(graph, "a graphical model")

    def independent(data: Dataset) -> dict[str, Any]:
        return {"intercept": _means(data)} | _weak(graph)

    return _count_graph(graph, prior, "poisson-graphical", independent, ())


@named("cmp-graphical", takes=(GRAPH, "prior"), columns="graph", paper={"prior": "squared"})
def ConwayMaxwellPoissonGraphical(graph: Any, prior: str = "weak") -> Pairwise:
    """Counts as in `PoissonGraphical`, each log x_j! multiplied by a ``nu`` >= 0 of its own.

    The prior of ``nu`` is half-normal with scale 3 (``"weak"``), that of squares of standard normal roots, or
    half-normal with scale 1/sqrt(2).
    """
    graph = graph_of_nodes(graph, "a graphical model")

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
        nu = Parameter("nu", dist.Normal(0.0, 1.0), shape=shape, square=True, role=SHAPE)
    else:
        half = dist.HalfNormal(3.0 if prior == "weak" else 0.5**0.5)
        nu = Parameter("nu", half, shape=shape, lower=0.0, closed=True, role=SHAPE)
    return _count_graph(graph, prior, "cmp-graphical", independent, (nu,))


def _count_graph(
    graph: Graph, prior: str, name: str, start: Callable[[Dataset], dict[str, Any]], more: tuple[Parameter, ...]
) -> Pairwise:
    edges = len(graph.pairs)
    scale = 1.0 / max(1, graph.size * (graph.size - 1) // 2)
    if prior == "squared":
        interaction = Parameter(
            "interaction", dist.Normal(0.0, scale), shape=(edges,), square=True, role=EDGE, spread=OF_EDGES
        )
    elif prior in ("weak", "half-normal"):
        half = dist.HalfNormal(1.0 if prior == "weak" else scale)
        interaction = Parameter("interaction", half, shape=(edges,), lower=0.0, closed=True, continues=True, role=EDGE)
    else:
        raise ModelError(f"prior must be 'weak', 'squared' or 'half-normal', not {prior!r}")
    intercept = Parameter(
        "intercept", dist.Normal(0.0, 5.0 if prior == "weak" else 1.0), shape=(graph.size,), role=NODE
    )
    space = Space((intercept, *((interaction,) if edges else ()), *more))
    options = {"graph": graph, "prior": prior}
    power = "ν<sub>j</sub> " if more else ""
    kind = (CountKind if more else PoissonKind).of().seen_as_they_are()
    model = Pairwise(
        graph, (kind,) * graph.size, space, name, True, start, options,
        title=f"a {'Conway-Maxwell-' if more else ''}Poisson graphical model",
        formula="p(x) ∝ exp( Σ<sub>j</sub> intercept<sub>j</sub> x<sub>j</sub> − Σ<sub>i–j</sub> "
        f"interaction<sub>ij</sub> x<sub>i</sub> x<sub>j</sub> − Σ<sub>j</sub> {power}log x<sub>j</sub>! )",
        with_shape="" if more else "cmp-graphical",
    )  # fmt: skip
    return model.labelled([str(j) for j in range(graph.size)])
