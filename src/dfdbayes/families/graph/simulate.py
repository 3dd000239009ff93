"""Simulated graphs of a random graph model, and how well their chains have mixed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from ..._util.checkpoint import NOTHING, Checkpoint
from ..._util.process import require_seed, require_unforked
from ...core.dataset import Dataset
from ...errors import ModelError, SettingError
from .chains import BLOCK, Chains, Inputs, Setup, advance, begin, setup_of, ties_of
from .model import RandomGraph
from .observed import ObservedGraph

TNT = "tie-no-tie"
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


@dataclass(frozen=True, eq=False, repr=False)
class Graphs:
    """Simulated graphs on the nodes of an observed one.

    Attributes
    ----------
    model : RandomGraph
    theta : (p,) or (size, p) floats
        The coefficients that they were simulated at, or those of each.
    ties : (size, d) bool
        Which dyads are ties; the dyads are those of ``model.observed.dyads``.
    statistics : (size, p) floats
        Of every graph, in the order of ``model.space.names``.
    method : str
    mixing : GraphMixing or None
        None where graphs were drawn from a list of all.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> model = dfd.models.RandomGraph("edges").bound(dfd.ObservedGraph.of([("a", "b"), ("b", "c")]))
    >>> dfd.simulate(model, {"edges": 0.0}, 20)
    Graphs(20 of 3 nodes, from edges; graphs[0] is the first, to_networkx() gives all)
    """

    model: RandomGraph
    theta: Float[np.ndarray, "*size p"]
    ties: Bool[np.ndarray, "size d"]
    statistics: Float[np.ndarray, "size p"]
    method: str
    mixing: GraphMixing | None

    def __len__(self) -> int:
        return len(self.ties)

    def __getitem__(self, k: int) -> ObservedGraph:
        return self.graph(range(len(self))[k])

    def __repr__(self) -> str:
        about = f"{len(self)} of {self.model.graph_observed.n} nodes, from {self.model.terms}"
        return f"Graphs({about}; graphs[0] is the first, to_networkx() gives all)"

    def to_networkx(self) -> list[Any]:
        """All of them for networkx, with the nodes' attributes."""
        return [self.graph(k).to_networkx() for k in range(len(self))]

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


def simulate_graphs(
    model: RandomGraph,
    theta: Any,
    size: int,
    *,
    method: str | None = None,
    seed: int = 0,
    advance: Callable[[int], None] = lambda done: None,
    checkpoint: Checkpoint = NOTHING,
) -> Graphs:
    """Graphs from a model at given coefficients, on the nodes of its observed graph.

    Parameters
    ----------
    model : RandomGraph
        Bound to a graph: that of a fit, or ``model.bound(graph)``.
    theta : dict or vector, or (size, p) floats
        Coefficients, or those of each graph.
    size : int
        How many graphs.
    method : {"tie-no-tie", "enumeration"}, optional
        By default graphs of at most 15 dyads are drawn from a list of all, others by chains that start at the observed
        graph. Chains run until they are much longer than their autocorrelation time, or say that they are not.
    seed : int
    advance : callable, optional
        Called with the number of graphs just simulated.
    checkpoint : Checkpoint, optional
        What keeps graphs of a run that may be interrupted.

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
    own = isinstance(theta, np.ndarray) and theta.ndim == 2
    thetas = np.asarray(theta if own else model.space.flatten(theta), float).reshape(-1, model.space.size)
    if own and len(thetas) != size:
        raise SettingError(f"there are {len(thetas)} coefficient vectors for {size} graphs; give one for each, or one")
    if not np.isfinite(thetas).all():
        raise SettingError("graphs cannot be simulated at coefficients that are not finite numbers")
    rng = np.random.default_rng([seed, 7])
    chosen = method or ("enumeration" if dyads <= LISTED else TNT)
    if chosen == "enumeration":
        drawn = _listed(model, thetas, size, rng)
        advance(size)
        return Graphs(model, thetas if own else thetas[0], drawn, model.statistics.of(drawn), chosen, None)
    if chosen != TNT:
        raise SettingError(f"there is no simulation method '{chosen}' of graphs; known: {TNT}, enumeration")
    return _by_chains(model, thetas, int(size), int(rng.integers(2**31)), advance, checkpoint)


def _listed(model: RandomGraph, thetas: np.ndarray, size: int, rng: np.random.Generator) -> Bool[np.ndarray, "size d"]:
    """Graphs from a list of all."""
    if len(thetas) == 1:
        ties, chance = probabilities(model, thetas[0])
        return ties[rng.choice(len(ties), size=size, p=chance)]
    return np.concatenate([_listed(model, theta[None], 1, rng) for theta in thetas])


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
    """Chains that are moved on, each at its own parameters; all random numbers depend on the seed and a number."""

    def __init__(self, model: RandomGraph, thetas: Float[np.ndarray, "c p"], seed: int) -> None:
        self._setup: tuple[Setup, Inputs] = setup_of(model)
        self._thetas, self._key = jax.numpy.asarray(thetas), jax.random.key(seed)
        ties, dyads = model.graph_observed.ties, len(model.graph_observed.dyads[0])
        few = max(8, min(ties, dyads - ties))
        self._blocks = -(-2 * few // BLOCK)  # in a sweep: each tie is proposed about once

    @property
    def sweep(self) -> int:
        """Steps in a sweep."""
        return self._blocks * BLOCK

    def go(self, chains: Chains, number: int, sweeps: int = 1) -> Chains:
        """Move on."""
        setup, inputs = self._setup
        key = jax.random.fold_in(self._key, number)
        return advance(setup, sweeps * self._blocks, key, self._thetas, inputs, chains)


def _by_chains(
    model: RandomGraph, thetas: np.ndarray, size: int, seed: int, told: Callable[[int], None], kept: Checkpoint
) -> Graphs:
    """Graphs from chains at one parameter vector, or a chain at each of as many as graphs.

    Chains are burnt in, and then taken from in rounds. Each round begins from the graphs of the one before and nothing
    else, so that one that was kept is as good as one that is made.
    """
    chains = len(thetas) if len(thetas) > 1 else _how_many(model, size)
    run = _Run(model, np.broadcast_to(thetas, (chains, thetas.shape[1])), seed)
    rounds = -(-size // chains)
    parts: list[Mapping[str, np.ndarray]] = []
    for k in range(rounds):
        make = partial(_later, model, run, parts, k) if k else partial(_burnt, model, run, chains, len(thetas) > 1)
        parts.append(kept.part(f"graphs-{k}", make))
        told(min(chains, size - k * chains))
    about = parts[0]
    ties = np.concatenate([part["ties"] for part in parts])[:size]
    gap, times, memory = int(about["gap"]), about["times"], about["memory"]
    steps = run.sweep * (int(about["sweeps"]) + gap * (rounds - 1))
    later = memory[gap - 1] if gap <= len(memory) else np.zeros(len(times))
    mixing = GraphMixing(
        chains, run.sweep * int(about["sweeps"]), run.sweep * gap, float(run.sweep * times.max()),
        float(about["drift"]), about["r_hat"],
        size / (1.0 + 2.0 * np.maximum(later, 0.0) * (1.0 - 1.0 / rounds)),
        float(sum(float(part["accepted"]) for part in parts)) / steps,
    )  # fmt: skip
    return Graphs(model, thetas[0] if len(thetas) == 1 else thetas, ties, model.statistics.of(ties), TNT, mixing)


def _how_many(model: RandomGraph, size: int) -> int:
    """Chains for so many graphs."""
    n, dyads = model.graph_observed.n, len(model.graph_observed.dyads[0])
    room = MOST_BYTES // (n * n // 4 + 4 * dyads)
    return int(max(2, min(CHAINS, room, max(size, 8))))


def _burnt(model: RandomGraph, run: _Run, chains: int, apart: bool) -> dict[str, np.ndarray]:
    """The first graph of every chain, once it is much longer than its autocorrelation time; and how that went."""
    at = begin(model, np.repeat(model.graph_observed.tie_of_dyad[None], chains, axis=0))
    trace: list[np.ndarray] = []
    wanted = SHORTEST
    while True:
        while len(trace) < wanted:
            at = run.go(at, len(trace))
            trace.append(np.asarray(at.statistics))
        half = np.stack(trace[len(trace) // 2 :])
        memory = _autocorrelation(half, apart)
        times = 1.0 + 2.0 * memory.sum(axis=0)
        if len(trace) >= ENOUGH * times.max() or len(trace) >= LONGEST:
            break
        wanted = int(min(np.clip(ENOUGH * times.max(), 1.25 * len(trace), 2.0 * len(trace)), LONGEST))
    return {
        "ties": ties_of(at), "accepted": np.asarray(at.accepted).mean(), "sweeps": np.array(len(trace)),
        "gap": np.ceil(min(APART * times.max(), LONGEST / 4)), "times": times, "memory": memory,
        "drift": np.array(_drift(half)), "r_hat": _r_hat(half, apart),
    }  # fmt: skip


def _later(model: RandomGraph, run: _Run, parts: list[Mapping[str, np.ndarray]], number: int) -> dict[str, np.ndarray]:
    """The next graph of every chain."""
    at = run.go(begin(model, parts[-1]["ties"]), LONGEST + number, int(parts[0]["gap"]))
    return {"ties": ties_of(at), "accepted": np.asarray(at.accepted).mean()}


def _autocorrelation(trace: Float[np.ndarray, "t c p"], apart: bool) -> Float[np.ndarray, "k p"]:
    """Autocorrelations at lags 1, 2, ... of many chains, up to where they are noise.

    About their common mean, or, where chains are at parameters of their own (``apart``), about the mean of each.
    """
    away = trace - trace.mean(axis=0 if apart else (0, 1))
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


def _r_hat(trace: Float[np.ndarray, "t c p"], apart: bool) -> Float[np.ndarray, " p"]:
    """Split R-hat of each statistic (Gelman et al., 2013); not a number where it does not vary.

    Of all chains together, or of the two halves of each where chains are at parameters of their own (``apart``).
    """
    half = len(trace) // 2
    halves = np.stack([trace[:half], trace[half : 2 * half]])
    within = halves.var(axis=1, ddof=1).mean(axis=(0, 1))
    means = halves.mean(axis=1)
    between = (
        means.var(axis=0, ddof=1).mean(axis=0) if apart else means.reshape(-1, means.shape[-1]).var(axis=0, ddof=1)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt((half - 1) / half + between / within)
