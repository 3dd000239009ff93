"""Exponential random graph models: p(y) proportional to exp(theta . s(y)) for the ties y of one observed graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from ..._util.checkpoint import NOTHING, Checkpoint
from ..._util.codec import from_plain
from ...core.dataset import Dataset, Sites
from ...core.domain import Binary
from ...core.linear import Features
from ...core.losses.base import AbstractLoss
from ...core.minimise import Minima, Minimum, logistic
from ...core.mixing import evenly
from ...core.model import AbstractModel, Row
from ...core.objective import Objective
from ...core.parameters import Parameter, Space
from ...core.resampling import Fits
from ...core.terms import Prepared, View, doubled_size
from ...errors import DataError, ModelError, SettingError
from ...results.graph_goodness import GraphGoodness
from ..named import WEAK_SD, Option, Options, named
from .chains import Graphs, simulated
from .goodness import compared
from .likelihood import MAX_ROUNDS, near_maximum
from .narrative import GraphNarrative
from .observed import ObservedGraph
from .terms import AbstractTerm, Covariate, Edges, GraphStatistics, parse


@dataclass(frozen=True)
class RandomGraph(AbstractModel):
    """p(y) proportional to exp(sum of coefficients times statistics of the graph y), for one observed graph.

    Given all other ties, the log odds of a tie are linear in its change statistics, so that the pseudo-likelihood,
    ratio matching and the discrete Fisher divergence need no constant.

    Parameters
    ----------
    terms : str
        Terms with + between them, as in statnet's ergm: ``edges``, ``triangle``, ``kstar(2)``, ``gwesp(0.25)``,
        ``gwdegree(0.5)``, ``nodecov('age')``, ``nodefactor('sex')``, ``nodematch('grade')``,
        ``nodematch('grade', diff=True)``, ``absdiff('age')``, ``edgecov('distance')``; for directed graphs ``mutual``,
        ``ttriple``, ``ctriple``, ``istar(2)``, ``ostar(2)``, ``gwidegree(0.5)`` and ``gwodegree(0.5)``. Decays are
        fixed.
    directed : bool, optional
        By default as the data are.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> square = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    >>> objective = dfd.objective(dfd.models.RandomGraph("edges"), square, loss="pseudo")
    >>> round(dfd.minimise(objective).theta["edges"], 6)  # log odds of 4 ties among 6 dyads
    0.693147
    """

    terms: str
    directed: bool | None = None
    observed: ObservedGraph | None = field(default=None, compare=False, repr=False)
    """The graph that the model was bound to."""
    space: Space = field(default=Space(()), repr=False)

    domain = Binary(1)
    name = "graph"
    narrative = GraphNarrative()
    sampled = False
    without_formulas = (
        "the data are one graph, whose ties are no rows. fit.effects() has odds ratios, fit.replicate() graphs from "
        "the posterior, and dfd.graph_goodness(fit) compares them with the observed one."
    )
    single_observation = True
    reads = ("nodes",)
    accessors = ("graph",)
    title = "an exponential random graph model"
    formula = "p(y) ∝ exp( Σ<sub>k</sub> θ<sub>k</sub> s<sub>k</sub>(y) ), &nbsp; s<sub>k</sub> statistics of the graph"
    derived = None
    interactions = None
    log_normaliser = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", " + ".join(term.written for term in parse(self.terms)))

    @cached_property
    def parts(self) -> tuple[AbstractTerm, ...]:
        """The terms."""
        return parse(self.terms)

    # -- data ------------------------------------------------------------------------------------

    def observe(self, source: Any, nodes: Any = None) -> tuple[Dataset, RandomGraph]:
        """The distinct dyads of a graph as data, and the model of that graph's nodes; ``nodes`` is a table of these."""
        declared = nodes is None and isinstance(source, ObservedGraph)  # by the graph itself
        graph = ObservedGraph.of(source, nodes=nodes, directed=None if declared else self.directed)
        model = self.bound(graph)
        ties, dyads = graph.ties, len(graph.dyads[0])
        if ties in (0, dyads):
            kind = "no ties" if ties == 0 else "all ties that there can be"
            raise DataError(f"{graph.source} has {kind}: its odds of a tie have no finite estimate")
        (data,) = model.statistics.distinct(graph.tie_of_dyad[None])
        return data, model

    def bound(self, graph: ObservedGraph) -> RandomGraph:
        """The same model for the nodes of a graph: its coefficients have names, and priors on the data's scale."""
        if self.directed is not None and self.directed != graph.directed:
            kinds = ("directed", "undirected") if self.directed else ("undirected", "directed")
            raise DataError(f"the model is of {kinds[0]} graphs, and {graph!r} is {kinds[1]}")
        for term in self.parts:
            term.require(graph)
        statistics = GraphStatistics(self.parts, graph)
        statistics.require_apart()
        used = graph.only(
            dict.fromkeys(name for term in self.parts for name in term.attributes),
            dict.fromkeys(name for term in self.parts for name in term.matrices),
        )
        return replace(self, directed=graph.directed, observed=used, space=_space(statistics))

    @property
    def graph_observed(self) -> ObservedGraph:
        """The graph that the model was bound to."""
        if self.observed is None:
            raise ModelError("this model has seen no graph yet; give it one: model.bound(dfd.ObservedGraph.of(...))")
        return self.observed

    def source_of(self, data: Dataset) -> ObservedGraph:
        return self.graph_observed

    @cached_property
    def statistics(self) -> GraphStatistics:
        """Statistics and change statistics of graphs on the same nodes."""
        return GraphStatistics(self.parts, self.graph_observed)

    @property
    def independent(self) -> bool:
        """Whether ties do not depend on each other, so that the pseudo-likelihood is the likelihood."""
        return all(isinstance(term, Covariate) for term in self.parts)

    @property
    def meanings(self) -> Mapping[str, str]:  # type: ignore[override]
        added = "what is added to the log odds of a tie, given all others,"
        alone = "log odds of a tie to which nothing else of the model adds"
        return {term.label: alone if isinstance(term, Edges) else f"{added} {term.told}" for term in self.parts}

    @property
    def options(self) -> Mapping[str, Any]:  # type: ignore[override]
        return {"terms": self.terms, "directed": self.directed, "observed": self.observed}

    # -- what every model has --------------------------------------------------------------------

    def log_mass_at(self, theta: dict[str, Array], x: Row) -> Float[Array, ""]:
        raise ModelError(
            "a random graph has a mass function of the whole graph, not of one dyad. What to do: simulate graphs by "
            "dfd.simulate(fit.model, theta, n)."
        )

    def with_space(self, space: Space) -> RandomGraph:
        return replace(self, space=space)

    def with_priors(self, priors: Mapping[str, Any] | None) -> RandomGraph:
        if priors and self.observed is None:
            raise ModelError("coefficients get their names from the data: give priors to fit(..., prior=...)")
        return super().with_priors(priors)

    def labelled(self, columns: Sequence[str]) -> RandomGraph:
        return self

    def start(self, data: Dataset) -> dict[str, Any]:
        """The pseudo-likelihood estimate, held by a small ridge."""
        assert data.given is not None
        found = logistic(data.given, data.counts * data.rows[:, 0], data.counts)
        return self.space.unflatten(found)

    def terms_at(self, sites: Sites, view: View) -> Prepared:
        """Dyads, whose log odds of a tie are their change statistics times the coefficients."""
        assert sites.given is not None
        if view is View.LIKELIHOOD and not self.independent:
            raise ModelError(
                "the likelihood of a graph whose ties depend on each other has to be simulated: dfd.fit(model, graph, "
                "loss='likelihood') does that. Here use 'pseudo' or 'ratio', which need no sum over all graphs."
            )
        odds = np.stack([np.zeros_like(sites.given), sites.given], axis=1)
        features = Features(odds, np.zeros(odds.shape[:2]))
        # simulated graphs have about as many distinct dyads, not just as many
        return (features.neighbours if view is View.NEIGHBOURS else features.choices)(self, sites, doubled_size)

    @property
    def has_likelihood(self) -> bool:
        return self.independent

    def sample_told(self, data: Dataset) -> str:
        graph = self.graph_observed
        kind = "a directed graph" if graph.directed else "a graph"
        return f"{kind} of {graph.n} nodes with {graph.ties} of {len(graph.dyads[0])} possible ties"

    def remarks(self, data: Dataset) -> tuple[str, ...]:
        """Levels without a coefficient; and that nothing in the model says how many ties there are, where it is so."""
        told = [
            f"{term.label}: no two nodes have {' or '.join(found)}, so there is no coefficient of it."
            for term in self.parts if (found := term.left_out(self.graph_observed))
        ]  # fmt: skip
        known, ones = self.statistics.covariates, np.ones(len(self.graph_observed.dyads[0]))
        part = np.linalg.lstsq(known, ones, rcond=None)[0]
        if not np.allclose(known @ part, ones, atol=1e-6):
            told.append(
                "there is no edges term: the other terms have to say how many ties there are, and their signs may turn "
                f'round. What to do: add it, "{Edges.name} + {self.terms}".'
            )
        return tuple(told)

    def advise(self, data: Dataset) -> tuple[str, str]:
        if self.independent:
            return "likelihood", "ties do not depend on each other"
        return "likelihood", "found by simulation, as ties depend on each other"

    # -- graphs ----------------------------------------------------------------------------------

    def simulate(
        self,
        theta: Any,
        size: int,
        *,
        method: str | None = None,
        seed: int = 0,
        sweeps: int | None = None,
        advance: Callable[[int], None] = lambda done: None,
        checkpoint: Checkpoint = NOTHING,
    ) -> Graphs:
        """Graphs at given coefficients, on the nodes of the graph that the model was bound to.

        Parameters
        ----------
        theta : dict or vector, or (size, p) floats
            Coefficients, or those of each graph.
        size : int
            How many graphs.
        method : {"tie-no-tie", "enumeration"}, optional
            By default graphs of at most 15 dyads are drawn from a list of all, others by chains that start at the
            observed graph. Chains run until they are much longer than their autocorrelation time, or say that they are
            not.
        seed : int
        sweeps : int, optional
            Of no effect: chains run as long as they need.
        advance : callable, optional
            Called with the number of graphs just simulated.
        checkpoint : Checkpoint, optional
            What keeps graphs of a run that may be interrupted.

        Examples
        --------
        >>> import dfdbayes as dfd, networkx as nx
        >>> families = dfd.ObservedGraph.of(nx.florentine_families_graph())
        >>> model = dfd.models.RandomGraph("edges").bound(families)
        >>> graphs = model.simulate({"edges": -1.6}, 200)
        >>> graphs.statistics.shape, graphs.mixing.good
        ((200, 1), True)
        """
        return simulated(self, self.statistics, theta, size, method, seed, advance, checkpoint)

    def replicate(
        self, thetas: Float[np.ndarray, "all p"], draws: int, size: int | None, method: str | None, seed: int
    ) -> Graphs:
        """A graph at each of ``draws`` of the posterior draws ``thetas``."""
        if draws < 1:
            raise SettingError("draws must be at least 1")
        if size not in (None, 1):
            raise SettingError("the data are one graph, and so is a replicate: leave out size=, and ask for more draws")
        chosen = evenly(thetas, draws)
        return self.simulate(chosen, len(chosen), method=method, seed=seed)

    def check(self, thetas: Float[np.ndarray, "all p"], seed: int, by_likelihood: bool) -> dict[str, Any]:
        found = graph_goodness(self, thetas.mean(axis=0), seed=seed, by_likelihood=by_likelihood)
        return {"graph": found, "sets": found.size, "size": 1, "method": found.method, "mixed": found.mixed}

    def prepare_loss(
        self, loss: AbstractLoss, data: Dataset, seed: int, begin: Callable[[str, int], Callable[[int], None]]
    ) -> AbstractLoss:
        """The likelihood of dependent ties is simulated, about the posterior's mode; other losses are as they are."""
        if self.independent or not loss.normalised:
            return loss
        start = np.asarray(self.space.flatten(self.start(data)))
        advance = begin("simulating graphs", MAX_ROUNDS + 1)
        return near_maximum(
            self.space, self.graph_observed, start, lambda at, size, seed: self.simulate(at, size, seed=seed),
            seed, advance,
        )  # fmt: skip

    def refit_simulated(
        self, objective: Objective, theta: np.ndarray, around: Minimum, size: int, seed: int, fits: Fits
    ) -> Minima:
        """Estimates of simulated graphs, which have dyads of their own; none where simulated graphs are degenerate."""
        graphs = self.simulate(theta, size, seed=seed, advance=fits.advance, checkpoint=fits.checkpoint)
        graphs.require_sound()
        return fits.refit(objective, list(graphs.datasets()), around)


def graph_goodness(
    model: Any, theta: Any = None, size: int = 100, seed: int = 0, by_likelihood: bool | None = None
) -> GraphGoodness:
    """Compare the observed graph with graphs simulated at coefficients.

    Parameters
    ----------
    model : Fit, RandomGraph or Graphs
        A fit of a random graph, its model, or ``model.bound(graph)``; or graphs that were simulated already, such as
        those of ``fit.replicate()``.
    theta : dict or vector
        Of a fit, by default the posterior mean.
    size : int
        How many graphs to simulate.
    seed : int
    by_likelihood : bool, optional
        Whether the coefficients are those of the likelihood; of a fit that is known.

    Raises
    ------
    DegeneracyError
        If graphs simulated at ``theta`` are nearly empty, nearly complete or otherwise far from the observed one.
    """
    if isinstance(model, Graphs):
        return compared(model)
    fitted = getattr(model, "model", model)
    if not isinstance(fitted, RandomGraph):
        raise SettingError(f"{type(model).__name__} is no random graph; give a fit of dfd.models.RandomGraph")
    if fitted is not model and theta is None:
        theta = model.joint_draws.mean(axis=0)
    if theta is None:
        raise SettingError("give the coefficients at which to simulate: graph_goodness(fit.model, fit.minimum.theta)")
    graphs = fitted.simulate(theta, size, seed=seed)
    graphs.require_sound()
    loss = getattr(model, "loss", None)
    return compared(graphs, by_likelihood=bool(by_likelihood or (loss is not None and loss.normalised)))


def _space(statistics: GraphStatistics) -> Space:
    """A parameter for each term, with weak priors.

    A coefficient is N(0, 3 / scale): the scale of a covariate that is not just 0 or 1 is its standard deviation over
    dyads, that of structure as the observed graph's change statistics have it, if above 1. That of edges is centred at
    the log odds of a tie, and is as much wider as covariates that are far from zero make it.
    """
    graph = statistics.graph
    (changes,) = statistics.changes(graph.tie_of_dyad[None])
    mean, sd = changes.mean(axis=0), changes.std(axis=0)
    binary = ((changes == 0.0) | (changes == 1.0)).all(axis=0)
    covariate = np.array([isinstance(statistics.terms[k], Covariate) for k in statistics.owner])
    scale = np.where(binary, 1.0, np.where(covariate & (sd > 0), sd, np.maximum(sd, 1.0)))
    away = np.where(covariate & ~binary, mean / scale, 0.0)
    odds = np.log((graph.ties + 0.5) / (len(changes) - graph.ties + 0.5))
    parameters = []
    for k, (term, levels) in enumerate(zip(statistics.terms, statistics.levels, strict=True)):
        width = WEAK_SD / scale[statistics.owner == k]
        prior = dist.Normal(0.0, width if levels else width[0])
        if isinstance(term, Edges):
            prior = dist.Normal(odds, WEAK_SD * np.sqrt(1.0 + np.sum(away**2)))
        parameters.append(Parameter(term.label, prior, shape=(len(levels),) if levels else (), labels=levels))
    return Space(tuple(parameters))


TERMS = Option("terms", "RandomGraph('edges + gwesp(0.25)'), on the command line --terms 'edges + gwesp(0.25)'")


@named("graph", "ergm", takes=(TERMS, "directed", "observed", "nodes"), model=RandomGraph, whole=True)
def _random_graph(columns: int, options: Options) -> AbstractModel:
    """A random graph; one that was bound to a graph where options hold that, as a saved fit has it."""
    model = RandomGraph(TERMS.needed(options), options.get("directed"))
    seen = options.get("observed")
    return model if seen is None else model.bound(from_plain(seen, ObservedGraph))
