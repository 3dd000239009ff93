"""Goodness of fit of random graphs as the field does it: features of the observed graph beside those of simulated ones.

Degrees, geodesic distances, edgewise shared partners and the triad census are no terms of most models, so a model that
reproduces them has said something (Hunter, Goodreau and Handcock, 2008).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import comb
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy.sparse import csgraph, csr_array

from ...errors import SettingError, some
from ...results.relevance import beyond_chance, tail_probability, total_matters
from .counts import Whole
from .degeneracy import require_sound
from .model import RandomGraph
from .simulate import Graphs, simulate_graphs

LEVEL = 0.95  # of simulated graphs inside the envelope
MOST_SOURCES = 200  # nodes from which distances are measured
MOST = 6  # features of a graph
REMEDIES = {
    "degree": ("gwdegree", "gwdegree(0.5), or nodecov and nodefactor of what makes nodes have more ties"),
    "sent": ("gwodegree", "gwodegree(0.5), or nodecov and nodefactor of what makes nodes have more ties"),
    "received": ("gwidegree", "gwidegree(0.5), or nodecov and nodefactor of what makes nodes have more ties"),
    "shared partners": ("gwesp", "gwesp(0.25)"),
    "triads": ("gwesp", "gwesp(0.25)"),
}  # by feature: the term that is about it, and what to try where the model has no such term
UNREACHABLE = "none"
LIKELIHOOD = (
    "loss='likelihood' (on the command line: --loss likelihood) finds the coefficients that make such graphs, where "
    "any do; take these for rough ones. Or "
)

Feature = Callable[[Bool[np.ndarray, "n n"]], Float[np.ndarray, " k"]]


@dataclass(frozen=True, repr=False)
class GraphGoodness:
    """Features of the observed graph beside those of graphs simulated at an estimate.

    Attributes
    ----------
    features : dict of DataFrame
        ``degree`` (of directed graphs ``sent`` and ``received``), ``distance`` (of pairs of nodes; "none" where there
        is no path), ``shared partners`` (of ties) and ``triads``. One row for each value: the share of nodes, pairs,
        ties or triples that have it, ``observed`` and simulated (``median``, and between ``low`` and ``high`` in 95 %
        of graphs), and ``p_value``, two-sided, from the simulated graphs and the observed one.
    statistics : DataFrame
        The same of the model's own statistics, with their simulated ``mean`` and ``sd``.
    size : int
        How many graphs were simulated, by ``method``.
    mixed : bool
        Whether their chains have mixed.
    p_values : dict of float
        By feature, of all its values together: the share of graphs, the observed one among them, that lie as far from
        the mean of all as the observed one. Distances are those of cumulative shares, in standard deviations.
    by_likelihood : bool
        Whether the estimate is that of the likelihood.

    Examples
    --------
    >>> import dfdbayes as dfd, networkx as nx
    >>> model = dfd.models.RandomGraph("edges").bound(dfd.ObservedGraph.of(nx.florentine_families_graph()))
    >>> goodness = graph_goodness(model, {"edges": -1.45})
    >>> list(goodness.features)
    ['degree', 'distance', 'shared partners', 'triads']
    """

    features: Mapping[str, pd.DataFrame]
    statistics: pd.DataFrame
    size: int
    method: str
    mixed: bool
    p_values: Mapping[str, float] = field(default_factory=dict)
    by_likelihood: bool = False

    @property
    def away(self) -> tuple[str, ...]:
        """Statistics of the model in which simulated graphs differ from the observed one by more than chance."""
        return tuple(
            str(name)
            for name, row in self.statistics.iterrows()
            if beyond_chance(row["p_value"], len(self.statistics)) and total_matters(row["observed"], row["mean"])
        )

    @property
    def differing(self) -> tuple[str, ...]:
        """Features in which simulated graphs differ from the observed one by more than chance."""
        return tuple(name for name, p in self.p_values.items() if beyond_chance(p, len(self.p_values)))

    @property
    def sentence(self) -> str:
        """Whether simulated graphs resemble the observed one, and where they do not, what to try."""
        if self.away:
            return f"Graphs simulated from this fit are not like the observed one: {self._numbers}."
        if not self.differing:
            least = min(self.p_values.values(), default=1.0)
            told = f"{_joined(list(self.features))} (smallest p = {least:.2g}, by {self.size} graphs)"
            return f"Graphs simulated from the model resemble this one in {told}."
        names = {str(name).partition("(")[0] for name in self.statistics.index}
        asked = [REMEDIES[name] for name in self.differing if name in REMEDIES]
        asked = asked if "edges" in names else [("edges", "edges")]
        new = dict.fromkeys(remedy for term, remedy in asked if term not in names)
        old = dict.fromkeys(term for term, _ in asked if term in names)
        tried = [*new, *(f"another decay of {term}" for term in old)]
        tried += ["covariates of the nodes (nodematch, nodecov)"] if "edges" in names else []
        return (
            f"Graphs simulated from the model differ from this one in {_joined(self.differing)} "
            f"({self._least}). What may be missing: {'; '.join(tried)}."
        )

    @property
    def _least(self) -> str:
        """The largest p-value of a feature that differs: all of them are that small."""
        return f"p <= {max(self.p_values[name] for name in self.differing):.2g}"

    @property
    def _numbers(self) -> str:
        """Statistics that are away, simulated and observed."""
        rows = self.statistics.loc[list(self.away)]
        told = [f"{name} {row['mean']:.0f} (observed {row['observed']:.0f})" for name, row in rows.iterrows()]
        return f"on average they have {some(told, 3)}"

    @property
    def problem(self) -> str:
        """What is wrong with the estimate where its graphs do not have the model's own statistics."""
        return (
            f"graphs simulated at the posterior mean are not like the observed one: {self._numbers}. Two causes are "
            "possible. The estimate is off (that of a pseudo-likelihood may be, where ties depend on each other "
            "strongly, and that of a narrow prior), though the same terms with other coefficients make such graphs. Or "
            f"the terms do not. What to do: {'' if self.by_likelihood else LIKELIHOOD}change the terms: another decay, "
            "covariates of the nodes (dfd.plots.graph_goodness(fit) shows what is off)."
        )

    def __repr__(self) -> str:
        together = ", ".join(f"{name} {p:.2g}" for name, p in self.p_values.items())
        return (
            f"{self.sentence}\n{self.size} simulated graphs; p-values of features: {together}\n"
            f"{self.statistics.round(3).to_string()}\nfeatures[name] has the table of each feature"
        )

    def plain(self) -> dict[str, Any]:
        """The same in values JSON can hold."""
        tables = {name: table.to_json(orient="split", double_precision=15) for name, table in self.features.items()}
        own = self.statistics.to_json(orient="split", double_precision=15)
        about = {"size": self.size, "method": self.method, "mixed": self.mixed, "p_values": dict(self.p_values)}
        about["by_likelihood"] = self.by_likelihood
        return {"features": tables, "statistics": own, **about}

    @classmethod
    def of_plain(cls, about: Mapping[str, Any]) -> GraphGoodness:
        """Back from `plain`."""

        def table(text: str) -> pd.DataFrame:
            found = pd.read_json(io.StringIO(text), orient="split", precise_float=True, convert_axes=False, dtype=False)
            return found.astype(float).set_axis(found.index.astype(str), axis=0)

        tables = {name: table(text) for name, text in about["features"].items()}
        own = table(about["statistics"])
        more = about.get("p_values", {}), about.get("by_likelihood", False)
        return cls(tables, own, about["size"], about["method"], about["mixed"], *more)


def _joined(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def graph_goodness(model: Any, theta: Any = None, size: int = 100, seed: int = 0) -> GraphGoodness:
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

    Raises
    ------
    DegeneracyError
        If graphs simulated at ``theta`` are nearly empty, nearly complete or otherwise far from the observed one.
    """
    if isinstance(model, Graphs):
        return _compared(model)
    fitted = getattr(model, "model", model)
    if not isinstance(fitted, RandomGraph):
        raise SettingError(f"{type(model).__name__} is no random graph; give a fit of dfd.models.RandomGraph")
    if fitted is not model and theta is None:
        theta = model.joint_draws.mean(axis=0)
    if theta is None:
        raise SettingError("give the coefficients at which to simulate: graph_goodness(fit.model, fit.minimum.theta)")
    graphs = simulate_graphs(fitted, theta, size, seed=seed)
    require_sound(graphs)
    loss = getattr(model, "loss", None)
    return replace(_compared(graphs), by_likelihood=loss is not None and loss.normalised)


def _compared(graphs: Graphs) -> GraphGoodness:
    observed = graphs.model.graph_observed
    all_graphs = [observed.adjacency, *graphs.adjacency]
    features, p_values = {}, {}
    for name, (feature, labels) in _features(observed.n, observed.directed).items():
        shares = np.stack([feature(one) for one in all_graphs])
        features[name], p_values[name] = _table(shares[0], shares[1:], labels), _p_value(shares)
    mixed = graphs.mixing is None or graphs.mixing.good
    return GraphGoodness(features, _statistics(graphs), len(graphs), graphs.method, mixed, p_values)


def _p_value(shares: Float[np.ndarray, "1+size k"]) -> float:
    """Of a whole feature: how many graphs are as far from the mean of all as the first, the observed one."""
    reached = shares.cumsum(axis=1)[:, :-1]
    spread = reached.std(axis=0)
    varies = spread > 1e-12
    far = (((reached - reached.mean(axis=0))[:, varies] / spread[varies]) ** 2).sum(axis=1)
    return float(np.mean(far >= far[0]))


def _statistics(graphs: Graphs) -> pd.DataFrame:
    table = _table(graphs.observed, graphs.statistics, list(graphs.model.statistics.names), whole=True)
    table.insert(1, "mean", graphs.statistics.mean(axis=0))
    table.insert(2, "sd", graphs.statistics.std(axis=0))
    each = zip(graphs.observed, graphs.statistics.T, strict=True)
    return table.assign(p_value=[tail_probability(observed, drawn) for observed, drawn in each])


def _table(
    observed: np.ndarray, draws: Float[np.ndarray, "size k"], labels: list[str] | None, whole: bool = False
) -> pd.DataFrame:
    """A feature, observed and simulated; values that hardly occur are left out at the end."""
    low, median, high = np.quantile(draws, [0.5 * (1 - LEVEL), 0.5, 0.5 * (1 + LEVEL)], axis=0)
    above, below = (draws >= observed).sum(axis=0), (draws <= observed).sum(axis=0)
    tail = np.minimum(1.0, 2.0 * (1.0 + np.minimum(above, below)) / (1.0 + len(draws)))
    names = list(map(str, range(len(observed)))) if labels is None else labels
    table = pd.DataFrame(
        {"observed": observed, "low": low, "median": median, "high": high, "p_value": tail},
        index=pd.Index(names, name="value"),
    )
    if whole:
        return table
    seen = (table["observed"] > 0) | (table["high"] > 0)
    last = int(np.flatnonzero(seen.to_numpy()).max()) + 1
    return table.iloc[:last] if labels is None else table[seen]


def _features(n: int, directed: bool) -> dict[str, tuple[Feature, list[str] | None]]:
    """Each feature's function, and the names of its values where these are not 0, 1, 2, ..."""
    degrees: dict[str, tuple[Feature, list[str] | None]] = {"degree": (lambda a: _shares(a.sum(axis=1), n), None)}
    if directed:
        degrees = {
            "sent": (lambda a: _shares(a.sum(axis=1), n), None),
            "received": (lambda a: _shares(a.sum(axis=0), n), None),
        }
    lengths = [*map(str, range(1, n)), UNREACHABLE]
    return degrees | {
        "distance": (_distances, lengths),
        "shared partners": (lambda a: _partners(a, directed), None),
        "triads": (_directed_triads, list(TRIADS)) if directed else (_triads, ["0", "1", "2", "3"]),
    }


def _shares(values: np.ndarray, length: int) -> Float[np.ndarray, " k"]:
    """The share of each of 0, 1, ..., among values; zeros where there are none."""
    return np.bincount(values.astype(int).reshape(-1), minlength=length) / max(values.size, 1)


def _distances(adjacency: np.ndarray) -> np.ndarray:
    """Shares of pairs of nodes at distance 1, 2, ..., and of those without a path."""
    n = len(adjacency)
    sources = np.unique(np.linspace(0, n - 1, min(n, MOST_SOURCES)).astype(int))
    found = csgraph.shortest_path(csr_array(adjacency.astype(float)), unweighted=True, indices=sources)
    away = found[np.arange(n) != sources[:, None]]
    return _shares(np.where(np.isfinite(away), away, n) - 1.0, n)


def _partners(adjacency: np.ndarray, directed: bool) -> np.ndarray:
    """Shares of ties with 0, 1, ... shared partners."""
    return _shares(Whole(adjacency[None], directed).two_paths[0][adjacency], len(adjacency))


def _triads(adjacency: np.ndarray) -> np.ndarray:
    """Shares of triples of nodes with 0, 1, 2 and 3 ties."""
    n, degrees = len(adjacency), adjacency.sum(axis=1).astype(float)
    three = float(Whole(adjacency[None], False).closed[0]) / 6.0
    two = float((degrees * (degrees - 1.0)).sum()) / 2.0 - 3.0 * three
    one = float(degrees.sum()) / 2.0 * (n - 2) - 2.0 * two - 3.0 * three
    total = comb(n, 3)
    return np.array([total - one - two - three, one, two, three]) / max(total, 1)


# -- triads of directed graphs -----------------------------------------------------------------


def _kind(first: str, second: str, third: str) -> str:
    """The class of a triad (i, j, k) from its dyads ij, ik and jk: mutual, null, > (from the first) or < (to it).

    Named by the numbers of mutual, asymmetric and null dyads, and by a letter where these do not tell (Davis and
    Leinhardt, 1972).
    """
    dyads = {(0, 1): first, (0, 2): second, (1, 2): third}
    counts = [sum(state in kinds for state in dyads.values()) for kinds in ("M", "<>", "N")]
    name = "".join(map(str, counts))
    arrows = [pair if state == ">" else pair[::-1] for pair, state in dyads.items() if state in "<>"]
    sent, received = (
        [ends.count(node) for node in range(3)] for ends in ([a for a, _ in arrows], [b for _, b in arrows])
    )
    if name in ("021", "120"):
        letter = "D" if 2 in sent else "U" if 2 in received else "C"
    elif name == "030":
        letter = "T" if 2 in sent else "C"
    elif name == "111":
        joint = next(pair for pair, state in dyads.items() if state == "M")
        letter = "D" if arrows[0][1] in joint else "U"
    else:
        letter = ""
    return name + letter


TRIADS = (
    "003", "012", "102", "021D", "021U", "021C", "111D", "111U", "030T", "030C", "201", "120D", "120U", "120C", "210",
    "300",
)  # fmt: skip
_PLACES = {states: TRIADS.index(_kind(*states)) for states in product("MN<>", repeat=3)}


def _directed_triads(adjacency: np.ndarray) -> np.ndarray:
    """Shares of triples of nodes in each of the 16 classes: sums over all (i, j, k) of products of dyads' states."""
    a = adjacency.astype(np.float32)
    mutual, n = a * a.T, len(a)
    states = {"M": mutual, ">": a - mutual, "<": a.T - mutual, "N": 1.0 - np.maximum(a, a.T) - np.eye(n, dtype="f4")}
    found = np.zeros(len(TRIADS))
    for second, third in product(states, repeat=2):
        paths = states[second] @ states[third].T
        for first, here in states.items():
            found[_PLACES[first, second, third]] += np.sum(here * paths, dtype=float)
    return found / 6.0 / max(comb(n, 3), 1)
