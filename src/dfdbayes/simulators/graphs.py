"""Simulated graphs of a random graph model, and how well their chains have mixed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from .._util.process import require_seed, require_unforked
from ..data.dataset import Dataset
from ..data.observed_graph import ObservedGraph
from ..errors import ModelError, SettingError
from ..models.random_graph import RandomGraph
from .graph_chains import BLOCK, Chains, Inputs, Setup, advance, begin, setup_of, ties_of

CHAINS = 50
MOST_BYTES = 2**28  # of all chains together
SHORTEST = 32  # sweeps of a first look,
LONGEST = 512  # and at most, before graphs are taken
ENOUGH = 6.0  # times the autocorrelation time, that chains have to run before
APART = 1.5  # times the autocorrelation time, between two graphs of a chain
MOST_DYADS = 21  # of graphs that are all listed
LISTED = 15  # dyads up to which they are by default


@dataclass(frozen=True)
class GraphMixing:
    """How well tie-no-tie chains have forgotten the observed graph, at which all of them started.

    Attributes
    ----------
    chains : int
    steps : int
        Steps of each chain before its first graph was taken.
    gap : int
        Steps between two graphs of a chain.
    autocorrelation_time : float
        Steps over which the slowest statistic forgets itself.
    drift : float
        By how many standard errors the means over all chains differ between the first and the last third of the second
        half of these steps, of the statistic where that is most.
    r_hat : (p,) floats
        Of each statistic in that half: how much wider all chains are together than each by itself. Chains that are n
        times as long as their autocorrelation time have about the root of 1 + 1/n; far above it they disagree.
    effective : (p,) floats
        How many independent graphs the simulated ones are worth, by statistic.
    acceptance : float
        The share of proposals that were accepted.
    """

    chains: int
    steps: int
    gap: int
    autocorrelation_time: float
    drift: float
    r_hat: Float[np.ndarray, " p"]
    effective: Float[np.ndarray, " p"]
    acceptance: float

    @property
    def good(self) -> bool:
        """Whether chains are long, stand still and agree."""
        long = self.steps >= 4.0 * self.autocorrelation_time
        return long and abs(self.drift) < 4.0 and not bool((self.r_hat > 1.5).any())

    def __str__(self) -> str:
        told = f"{self.chains} chains, {self.steps} steps before the first graph and {self.gap} between two"
        worst = f"largest R-hat {np.nanmax(self.r_hat):.2f}, smallest effective number {self.effective.min():.0f}"
        return f"{told}; autocorrelation time {self.autocorrelation_time:.0f} steps, {worst}"


@dataclass(frozen=True, eq=False)
class Graphs:
    """Simulated graphs on the nodes of an observed one.

    Attributes
    ----------
    model : RandomGraph
    theta : (p,) floats
        The coefficients that they were simulated at.
    ties : (size, d) bool
        Which dyads are ties; the dyads are those of ``model.observed.dyads``.
    statistics : (size, p) floats
        Of every graph, in the order of ``model.space.names``.
    method : str
    mixing : GraphMixing or None
        None where graphs were drawn from a list of all.
    """

    model: RandomGraph
    theta: Float[np.ndarray, " p"]
    ties: Bool[np.ndarray, "size d"]
    statistics: Float[np.ndarray, "size p"]
    method: str
    mixing: GraphMixing | None

    def __len__(self) -> int:
        return len(self.ties)

    def graph(self, k: int) -> ObservedGraph:
        """One of the graphs, with the nodes' attributes."""
        return self.model.graph_observed.with_ties(self.ties[k])

    @property
    def adjacency(self) -> Bool[np.ndarray, "size n n"]:
        """Adjacency matrices."""
        return self.model.statistics.adjacency(self.ties)

    @property
    def observed(self) -> Float[np.ndarray, " p"]:
        """The observed graph's statistics."""
        return self.model.statistics.of(self.model.graph_observed.tie_of_dyad[None])[0]

    def datasets(self) -> Iterator[Dataset]:
        """For each graph its distinct dyads with their change statistics, as `RandomGraph.observe` gives them."""
        return self.model.statistics.distinct(self.ties)


def simulate_graphs(model: RandomGraph, theta: Any, size: int, *, method: str | None = None, seed: int = 0) -> Graphs:
    """Graphs from a model at given coefficients, on the nodes of its observed graph.

    Parameters
    ----------
    model : RandomGraph
        Bound to a graph: that of a fit, or ``model.bound(graph)``.
    theta : dict or vector
    size : int
        How many graphs.
    method : {"tie-no-tie", "enumeration"}, optional
        By default graphs of at most 15 dyads are drawn from a list of all, others by chains that start at the observed
        graph. Chains run until they are much longer than their autocorrelation time, or say that they are not.
    seed : int

    Examples
    --------
    >>> import dfdbayes as dfd, networkx as nx
    >>> families = dfd.ObservedGraph.of(nx.florentine_families_graph())
    >>> model = dfd.models.RandomGraph("edges").bound(families)
    >>> graphs = simulate_graphs(model, {"edges": -1.6}, 200)
    >>> graphs.statistics.shape, graphs.mixing.good
    ((200, 1), True)
    """
    require_unforked()
    require_seed(seed)
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
        raise SettingError(f"the number of graphs is {size!r}; it must be a whole number from 1 on")
    dyads = len(model.graph_observed.dyads[0])
    flat = np.asarray(model.space.flatten(theta), float)
    if not np.isfinite(flat).all():
        raise SettingError("graphs cannot be simulated at coefficients that are not finite numbers")
    rng = np.random.default_rng([seed, 7])
    chosen = method or ("enumeration" if dyads <= LISTED else "tie-no-tie")
    if chosen == "enumeration":
        ties, chance = probabilities(model, flat)
        drawn = ties[rng.choice(len(ties), size=size, p=chance)]
        return Graphs(model, flat, drawn, model.statistics.of(drawn), chosen, None)
    if chosen != "tie-no-tie":
        raise SettingError(f"there is no simulation method '{chosen}' of graphs; known: tie-no-tie, enumeration")
    return _by_chains(model, flat, int(size), int(rng.integers(2**31)))


def probabilities(model: RandomGraph, theta: Any) -> tuple[Bool[np.ndarray, "s d"], Float[np.ndarray, " s"]]:
    """All graphs on few nodes, and their probabilities."""
    ties = all_graphs(len(model.graph_observed.dyads[0]))
    log = model.statistics.of(ties) @ np.asarray(model.space.flatten(theta), float)
    chance = np.exp(log - log.max())
    return ties, chance / chance.sum()


def all_graphs(dyads: int) -> Bool[np.ndarray, "s d"]:
    """Every graph, the first dyad slowest."""
    if dyads > MOST_DYADS:
        raise ModelError(f"{2.0**dyads:.2g} graphs are too many to list; use method='tie-no-tie'")
    return (np.arange(2**dyads)[:, None] >> np.arange(dyads)[::-1] & 1).astype(bool)


# -- chains ------------------------------------------------------------------------------------


class _Run:
    """Chains that are moved on, sweep by sweep, and what they went through."""

    def __init__(self, model: RandomGraph, theta: np.ndarray, chains: int, seed: int) -> None:
        self._setup: tuple[Setup, Inputs] = setup_of(model)
        self._theta, self._key, self._calls = jax.numpy.asarray(theta), jax.random.key(seed), 0
        self.chains: Chains = begin(model, chains)
        ties, dyads = model.graph_observed.ties, len(model.graph_observed.dyads[0])
        few = max(8, min(ties, dyads - ties))
        self.blocks = -(-2 * few // BLOCK)  # in a sweep: each tie is proposed about once

    @property
    def sweep(self) -> int:
        """Steps in a sweep."""
        return self.blocks * BLOCK

    def go(self, sweeps: int = 1) -> np.ndarray:
        """Move on, and tell the statistics."""
        setup, inputs = self._setup
        key = jax.random.fold_in(self._key, self._calls)
        self._calls += 1
        self.chains = advance(setup, sweeps * self.blocks, key, self._theta, inputs, self.chains)
        return np.asarray(self.chains.statistics)


def _by_chains(model: RandomGraph, theta: np.ndarray, size: int, seed: int) -> Graphs:
    n, dyads = model.graph_observed.n, len(model.graph_observed.dyads[0])
    room = MOST_BYTES // (n * n // 4 + 4 * dyads)
    chains = int(max(2, min(CHAINS, room, max(size, 8))))
    run = _Run(model, theta, chains, seed)
    trace = [run.go() for _ in range(SHORTEST)]
    while True:
        half = np.stack(trace[len(trace) // 2 :])
        memory = _autocorrelation(half)
        times = 1.0 + 2.0 * memory.sum(axis=0)
        if len(trace) >= ENOUGH * times.max() or len(trace) >= LONGEST:
            break
        wanted = np.clip(ENOUGH * times.max(), 1.25 * len(trace), 2.0 * len(trace))
        trace += [run.go() for _ in range(int(min(wanted, LONGEST)) - len(trace))]
    gap = int(np.ceil(min(APART * times.max(), LONGEST / 4)))
    found = [ties_of(run.chains)]
    for _ in range(-(-size // chains) - 1):
        run.go(gap)
        found.append(ties_of(run.chains))
    ties = np.concatenate(found)[:size]
    steps = run.sweep * (len(trace) + gap * (len(found) - 1))
    later = memory[gap - 1] if gap <= len(memory) else np.zeros(len(times))
    mixing = GraphMixing(
        chains, run.sweep * len(trace), run.sweep * gap, float(run.sweep * times.max()), _drift(half),
        _r_hat(half),
        size / (1.0 + 2.0 * np.maximum(later, 0.0) * (1.0 - 1.0 / len(found))),
        float(np.asarray(run.chains.accepted).mean()) / steps,
    )  # fmt: skip
    return Graphs(model, theta, ties, model.statistics.of(ties), "tie-no-tie", mixing)


def _autocorrelation(trace: Float[np.ndarray, "t c p"]) -> Float[np.ndarray, "k p"]:
    """Autocorrelations at lags 1, 2, ... of many chains about their common mean, up to where they are noise."""
    away = trace - trace.mean(axis=(0, 1))
    scale = np.maximum((away**2).mean(axis=(0, 1)), 1e-300)
    lags = range(1, len(trace) - 1)
    found = np.stack([(away[k:] * away[:-k]).mean(axis=(0, 1)) / scale for k in lags])
    noise = 2.0 / np.sqrt(trace.shape[0] * trace.shape[1])
    return np.where(np.cumsum(found < noise, axis=0) > 0, 0.0, found)


def _drift(trace: Float[np.ndarray, "t c p"]) -> float:
    """The largest difference of means between two stretches of all chains, in standard errors."""
    third = len(trace) // 3
    step = trace[-third:].mean(axis=0) - trace[:third].mean(axis=0)
    error = step.std(axis=0, ddof=1) / np.sqrt(len(step))
    found = np.divide(step.mean(axis=0), error, out=np.zeros(step.shape[1]), where=error > 0)
    return float(found[np.argmax(np.abs(found))])


def _r_hat(trace: Float[np.ndarray, "t c p"]) -> Float[np.ndarray, " p"]:
    """Split R-hat of each statistic (Gelman et al., 2013); not a number where it does not vary."""
    half = len(trace) // 2
    chains = np.concatenate([trace[:half], trace[half : 2 * half]], axis=1)
    within = chains.var(axis=0, ddof=1).mean(axis=0)
    between = chains.mean(axis=0).var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt((half - 1) / half + between / within)
