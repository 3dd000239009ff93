"""Goodness of fit of random graphs as the field does it: features of the observed graph beside those of simulated ones.

Degrees, geodesic distances, edgewise shared partners and the triad census are no terms of most models, so a model that
reproduces them has said something (Hunter, Goodreau and Handcock, 2008).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import comb

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy.sparse import csgraph, csr_array

from ...results.graph_goodness import GraphGoodness
from ...results.relevance import tail_probability
from .chains import Graphs
from .terms import Whole

Feature = Callable[[Bool[np.ndarray, "n n"]], Float[np.ndarray, " k"]]


def compared(graphs: Graphs, by_likelihood: bool = False) -> GraphGoodness:
    """The observed graph beside simulated ones."""
    observed = graphs.terms.graph
    all_graphs = [observed.adjacency, *graphs.adjacency]
    features, p_values = {}, {}
    for name, (feature, labels) in _features(observed.n, observed.directed).items():
        shares = np.stack([feature(one) for one in all_graphs])
        features[name], p_values[name] = _table(shares[0], shares[1:], labels), _p_value(shares)
    mixed = graphs.mixing is None or graphs.mixing.good
    return GraphGoodness(features, _statistics(graphs), len(graphs), graphs.method, mixed, p_values, by_likelihood)


def _p_value(shares: Float[np.ndarray, "1+size k"]) -> float:
    """Of a whole feature: how many graphs are as far from the mean of all as the first, the observed one."""
    reached = shares.cumsum(axis=1)[:, :-1]
    spread = reached.std(axis=0)
    varies = spread > 1e-12
    far = (((reached - reached.mean(axis=0))[:, varies] / spread[varies]) ** 2).sum(axis=1)
    return float(np.mean(far >= far[0]))


def _statistics(graphs: Graphs) -> pd.DataFrame:
    table = _table(graphs.observed, graphs.statistics, list(graphs.terms.names), whole=True)
    table.insert(1, "mean", graphs.statistics.mean(axis=0))
    table.insert(2, "sd", graphs.statistics.std(axis=0))
    each = zip(graphs.observed, graphs.statistics.T, strict=True)
    return table.assign(p_value=[tail_probability(observed, drawn) for observed, drawn in each])


def _table(
    observed: np.ndarray, draws: Float[np.ndarray, "size k"], labels: list[str] | None, whole: bool = False
) -> pd.DataFrame:
    """A feature, observed and simulated; values that hardly occur are left out at the end."""
    low, median, high = np.quantile(draws, [0.025, 0.5, 0.975], axis=0)
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
    lengths = [*map(str, range(1, n)), "none"]
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
    sources = np.unique(np.linspace(0, n - 1, min(n, 200)).astype(int))
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
