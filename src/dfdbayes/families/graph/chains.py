"""Simulated graphs: tie-no-tie chains, how well they have mixed, and whether their graphs are like the observed one.

A step proposes to flip a tie or an empty dyad with equal chances (Morris, Handcock and Hunter, 2008), so that chains of
sparse graphs do not spend their time on proposing ties that are refused. Where terms are about triangles, every fourth
step proposes to flip a dyad that a random two-path leads to, by which chains forget their start sooner.

Graphs are kept as bits, 64 to a word: a count of shared partners is a few ands and population counts, and nothing but
bits has to be kept up to date. A step costs n / 64 word operations for each node that both ends of the dyad are tied
to, and no table of shared partners needs to be looked after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt64

from ..._util.checkpoint import Checkpoint
from ..._util.resources import require_seed, require_unforked
from ...core.dataset import Dataset
from ...core.model import AbstractModel
from ...errors import DegeneracyError, ModelError, SettingError
from .observed import ObservedGraph
from .terms import AbstractDyads, GraphStatistics, Structure

TNT = "tie-no-tie"
WORD_BITS = 64  # bits of a word
STEPS_AT_ONCE = 64  # steps whose random numbers are drawn together; a sweep is a whole number of blocks
MAX_SWEEPS = 512  # sweeps at most, before graphs are taken: chains that need more say that they have not mixed
SAFE = "promise_in_bounds"


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
    terms : GraphStatistics
        Its terms on the nodes of the observed graph.
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

    model: AbstractModel
    terms: GraphStatistics
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
        written = " + ".join(term.written for term in self.terms.terms)
        about = f"{len(self)} of {self.terms.graph.n} nodes, from {written}"
        return f"Graphs({about}; graphs[0] is the first, to_networkx() gives all)"

    def to_networkx(self) -> list[Any]:
        """All of them for networkx, with the nodes' attributes."""
        return [self.graph(k).to_networkx() for k in range(len(self))]

    def graph(self, k: int) -> ObservedGraph:
        """One of the graphs, with the nodes' attributes."""
        return self.terms.graph.with_ties(self.ties[k])

    @property
    def adjacency(self) -> Bool[np.ndarray, "size n n"]:
        """Adjacency matrices."""
        return self.terms.adjacency(self.ties)

    @property
    def observed(self) -> Float[np.ndarray, " p"]:
        """The observed graph's statistics."""
        return self.terms.of(self.terms.graph.tie_of_dyad[None])[0]

    def datasets(self) -> Iterator[Dataset]:
        """For each graph its distinct dyads with their change statistics, as `RandomGraph.observe` gives them."""
        return self.terms.distinct(self.ties)

    def require_sound(self) -> None:
        """Refuse a degenerate model, whose graphs are not like the observed one; say which term drives it.

        A term such as ``triangle`` feeds on itself: each triangle makes the next one likelier, and most of the
        probability may lie on graphs that are nearly complete or nearly empty (Handcock, 2003; Schweinberger, 2011).
        Then no width that simulations give means anything.

        Raises
        ------
        DegeneracyError
            If a fifth of the graphs have odds of a tie that differ from the observed ones by a factor of three, and by
            more than chance.
        """
        if not self.terms.structures:
            return
        observed, dyads = self.terms.graph.ties, self.ties.shape[1]
        ties = self.ties.sum(axis=1)
        spread = np.sqrt(observed * (1.0 - observed / dyads))  # of independent ties: of few, chance alone may do it
        away = _log_odds(ties, dyads) - _log_odds(observed, dyads)
        far = (np.abs(away) > np.log(3.0)) & (np.abs(ties - observed) > 5.0 * spread)
        if far.mean() < 0.2:
            return
        driver = self._driver(far)
        raise DegeneracyError(
            f"the model is degenerate at the estimate: {far.mean():.0%} of {len(self)} graphs simulated there are far "
            f"from the observed one, {_where(ties[far], dyads)} (observed: {observed} of {dyads} possible ties; "
            f"simulated: from {ties.min()} to {ties.max()}, median {np.median(ties):.0f}). The term {driver.label} "
            f"drives it. What to do: {_advice(driver, self.terms.names)}; or explain the ties by covariates, such as "
            "nodematch('group')."
        )

    def _driver(self, far: np.ndarray) -> Structure:
        """The term through which ties depend on each other that moves the far graphs' log probability most."""
        shift = np.abs(self.theta * (self.statistics[far].mean(axis=0) - self.observed))
        return max(self.terms.structures, key=lambda pair: shift[pair[0]])[1]


def _advice(driver: Structure, names: Sequence[str]) -> str:
    """What to do about the term that drives it: another one that is not there yet, another decay, or nothing of it."""
    if driver.steadier and driver.steadier not in names:
        return f"use {driver.steadier} in its place, which does not feed on itself so much"
    return "leave it out" if driver.steadier else "give it a smaller decay or leave it out"


def _log_odds(ties: np.ndarray | int, dyads: int) -> np.ndarray:
    return np.log((np.asarray(ties) + 0.5) / (dyads - np.asarray(ties) + 0.5))


def _where(ties: np.ndarray, dyads: int) -> str:
    """How far graphs look."""
    full, empty = float(np.mean(ties > 0.9 * dyads)), float(np.mean(ties < 0.02 * dyads))
    if full > 0.5:
        return "nearly complete"
    return "nearly empty" if empty > 0.5 else "with far more or far fewer ties"


# -- simulation ----------------------------------------------------------------------------------


def simulated(
    model: AbstractModel,
    terms: GraphStatistics,
    theta: Any,
    size: int,
    method: str | None,
    seed: int,
    told: Callable[[int], None],
    checkpoint: Checkpoint,
) -> Graphs:
    """See `RandomGraph.simulate`."""
    require_unforked()
    require_seed(seed)
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
        raise SettingError(f"the number of graphs is {size!r}; it must be a whole number from 1 on")
    own = isinstance(theta, np.ndarray) and theta.ndim == 2
    thetas = np.asarray(theta if own else model.space.flatten(theta), float).reshape(-1, model.space.size)
    if own and len(thetas) != size:
        raise SettingError(f"there are {len(thetas)} coefficient vectors for {size} graphs; give one for each, or one")
    if not np.isfinite(thetas).all():
        raise SettingError("graphs cannot be simulated at coefficients that are not finite numbers")
    rng, at = np.random.default_rng([seed, 7]), thetas if own else thetas[0]
    chosen = method or ("enumeration" if len(terms.graph.dyads[0]) <= 15 else TNT)
    if chosen == "enumeration":
        drawn = _listed(terms, thetas, size, rng)
        told(size)
        return Graphs(model, terms, at, drawn, terms.of(drawn), chosen, None)
    if chosen != TNT:
        raise SettingError(f"there is no simulation method '{chosen}' of graphs; known: {TNT}, enumeration")
    ties, mixing = _by_chains(terms, thetas, int(size), int(rng.integers(2**31)), told, checkpoint)
    return Graphs(model, terms, thetas[0] if len(thetas) == 1 else thetas, ties, terms.of(ties), TNT, mixing)


def _listed(
    terms: GraphStatistics, thetas: np.ndarray, size: int, rng: np.random.Generator
) -> Bool[np.ndarray, "size d"]:
    """Graphs from a list of all."""
    if len(thetas) == 1:
        ties, chance = probabilities(terms, thetas[0])
        return ties[rng.choice(len(ties), size=size, p=chance)]
    return np.concatenate([_listed(terms, theta[None], 1, rng) for theta in thetas])


def probabilities(
    terms: GraphStatistics, theta: Float[np.ndarray, " p"]
) -> tuple[Bool[np.ndarray, "s d"], Float[np.ndarray, " s"]]:
    """All graphs on few nodes, and their probabilities."""
    ties = all_graphs(len(terms.graph.dyads[0]))
    log = terms.of(ties) @ theta
    chance = np.exp(log - log.max())
    return ties, chance / chance.sum()


def all_graphs(dyads: int) -> Bool[np.ndarray, "s d"]:
    """Every graph, the first dyad slowest."""
    if dyads > 21:
        raise ModelError(f"{2.0**dyads:.2g} graphs are too many to list; use method='tie-no-tie'")
    return (np.arange(2**dyads)[:, None] >> np.arange(dyads)[::-1] & 1).astype(bool)


class _Run:
    """Chains that are moved on, each at its own parameters; all random numbers depend on the seed and a number."""

    def __init__(self, terms: GraphStatistics, thetas: Float[np.ndarray, "c p"], seed: int) -> None:
        self._setup: tuple[Setup, Inputs] = setup_of(terms)
        self._thetas, self._key = jax.numpy.asarray(thetas), jax.random.key(seed)
        ties, dyads = terms.graph.ties, len(terms.graph.dyads[0])
        few = max(8, min(ties, dyads - ties))
        self._blocks = -(-2 * few // STEPS_AT_ONCE)  # in a sweep: each tie is proposed about once

    @property
    def sweep(self) -> int:
        """Steps in a sweep."""
        return self._blocks * STEPS_AT_ONCE

    def go(self, chains: Chains, number: int, sweeps: int = 1) -> Chains:
        """Move on."""
        setup, inputs = self._setup
        key = jax.random.fold_in(self._key, number)
        return advance(setup, sweeps * self._blocks, key, self._thetas, inputs, chains)


def _by_chains(
    terms: GraphStatistics, thetas: np.ndarray, size: int, seed: int, told: Callable[[int], None], kept: Checkpoint
) -> tuple[Bool[np.ndarray, "size d"], GraphMixing]:
    """Graphs from chains at one parameter vector, or a chain at each of as many as graphs.

    Chains are burnt in, and then taken from in rounds. Each round begins from the graphs of the one before and nothing
    else, so that one that was kept is as good as one that is made.
    """
    chains = len(thetas) if len(thetas) > 1 else _how_many(terms, size)
    run = _Run(terms, np.broadcast_to(thetas, (chains, thetas.shape[1])), seed)
    rounds = -(-size // chains)
    parts: list[Mapping[str, np.ndarray]] = []
    for k in range(rounds):
        make = partial(_later, terms, run, parts, k) if k else partial(_burnt, terms, run, chains, len(thetas) > 1)
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
    return ties, mixing


def _how_many(terms: GraphStatistics, size: int) -> int:
    """Chains for so many graphs."""
    n, dyads = terms.graph.n, len(terms.graph.dyads[0])
    room = 2**28 // (n * n // 4 + 4 * dyads)
    return int(max(2, min(50, room, max(size, 8))))


def _burnt(terms: GraphStatistics, run: _Run, chains: int, apart: bool) -> dict[str, np.ndarray]:
    """The first graph of every chain, once it is much longer than its autocorrelation time; and how that went."""
    at = begin(terms, np.repeat(terms.graph.tie_of_dyad[None], chains, axis=0))
    trace: list[np.ndarray] = []
    wanted = 32  # sweeps of a first look
    while True:
        while len(trace) < wanted:
            at = run.go(at, len(trace))
            trace.append(np.asarray(at.statistics))
        half = np.stack(trace[len(trace) // 2 :])
        memory = _autocorrelation(half, apart)
        times = 1.0 + 2.0 * memory.sum(axis=0)
        needed = 6.0 * times.max()  # autocorrelation times
        if len(trace) >= needed or len(trace) >= MAX_SWEEPS:
            break
        wanted = int(min(np.clip(needed, 1.25 * len(trace), 2.0 * len(trace)), MAX_SWEEPS))
    return {
        "ties": ties_of(at), "accepted": np.asarray(at.accepted).mean(), "sweeps": np.array(len(trace)),
        "gap": np.ceil(min(1.5 * times.max(), MAX_SWEEPS / 4)), "times": times, "memory": memory,
        "drift": np.array(_drift(half)), "r_hat": _r_hat(half, apart),
    }  # fmt: skip


def _later(
    terms: GraphStatistics, run: _Run, parts: list[Mapping[str, np.ndarray]], number: int
) -> dict[str, np.ndarray]:
    """The next graph of every chain."""
    at = run.go(begin(terms, parts[-1]["ties"]), MAX_SWEEPS + number, int(parts[0]["gap"]))
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


# -- steps of chains, in compiled code -----------------------------------------------------------


class Setup(NamedTuple):
    """What compiled code depends on."""

    nodes: int
    directed: bool
    structures: tuple[tuple[int, Structure], ...]

    @property
    def closes(self) -> bool:
        """Whether closing two-paths is worth a proposal of its own."""
        return any(term.closure for _, term in self.structures)


class Inputs(NamedTuple):
    """What it takes as arguments."""

    i: Int[Array, " d"]
    j: Int[Array, " d"]
    covariates: Float[Array, "d p"]


class Chains(NamedTuple):
    """Where chains are."""

    out: UInt64[Array, "c n w"]
    """Bit k of row i: whether i sends a tie to k."""
    into: Any
    """The same of ties received; nothing where graphs are undirected."""
    order: Int[Array, "c d"]
    """All dyads, ties first."""
    place: Int[Array, "c d"]
    """Where each of them stands in that order."""
    ties: Int[Array, " c"]
    """How many of them are ties."""
    statistics: Float[Array, "c p"]
    accepted: Int[Array, " c"]


class ChainDyads(AbstractDyads):
    """Counts about one dyad of each chain."""

    def __init__(self, setup: Setup, chains: Chains, i: Array, j: Array, tie: Array) -> None:
        self.nodes, self.directed, self.tie = setup.nodes, setup.directed, tie
        self._out, self._into = chains.out, chains.into if setup.directed else chains.out
        self._j, c = j, jnp.arange(len(i))
        self._out_i, self._out_j = self._out[c, i], self._out[c, j]
        self._into_i, self._into_j = self._into[c, i], self._into[c, j]

    @property
    def reciprocal(self) -> Array:
        word = self._into_i[jnp.arange(len(self._j)), self._j // WORD_BITS]
        return (word >> (self._j % WORD_BITS).astype(jnp.uint64)).astype(jnp.int32) & 1

    @property
    def sent_i(self) -> Array:
        return _count(self._out_i) - self.tie

    @property
    def sent_j(self) -> Array:
        return _count(self._out_j) - (0 if self.directed else self.tie)

    @property
    def received_j(self) -> Array:
        return _count(self._into_j) - self.tie

    @property
    def two_paths(self) -> Array:
        return _count(self._out_i & self._into_j)

    @property
    def two_paths_back(self) -> Array:
        return _count(self._out_j & self._into_i)

    @property
    def both_sent(self) -> Array:
        return _count(self._out_i & self._out_j)

    @property
    def both_received(self) -> Array:
        return _count(self._into_i & self._into_j)

    def look_up(self, values: Float[np.ndarray, " k"], counts: Array) -> Array:
        return jnp.asarray(values)[counts]

    def beside(self, values: Float[np.ndarray, " k"]) -> Array:
        known, c = jnp.asarray(values), jnp.arange(len(self.tie))

        def weight(partners: Array) -> Array:
            return known[jnp.maximum(partners - self.tie, 0)]

        def sent(k: Array) -> Array:
            return weight(_count(self._out_i & self._into[c, k]))

        def received(k: Array) -> Array:
            return weight(_count(self._into_j & self._out[c, k]))

        if not self.directed:
            return _over(self._out_i & self._out_j, self.nodes, lambda k: sent(k) + received(k))
        first = _over(self._out_i & self._out_j, self.nodes, sent)
        return first + _over(self._into_i & self._into_j, self.nodes, received)


def _over(bits: UInt64[Array, "c w"], nodes: int, weight: Callable[[Array], Array]) -> Float[Array, " c"]:
    """The sum of a weight over the nodes in each set of bits: one node of all sets at a time, as sets are small."""
    words = jnp.arange(bits.shape[1])

    def add(state: tuple[Array, Array]) -> tuple[Array, Array]:
        left, total = state
        word = jnp.argmax(left != 0, axis=1)
        here = left[jnp.arange(len(left)), word]
        last = here & (~here + jnp.uint64(1))
        k = word * WORD_BITS + jax.lax.population_count(last - jnp.uint64(1)).astype(jnp.int64)
        total += jnp.where(here != 0, weight(jnp.minimum(k, nodes - 1)), 0.0)
        return left ^ jnp.where(words[None] == word[:, None], last[:, None], jnp.uint64(0)), total

    return jax.lax.while_loop(lambda state: jnp.any(state[0] != 0), add, (bits, jnp.zeros(len(bits))))[1]


def _count(bits: UInt64[Array, "*batch w"]) -> Int[Array, "*batch"]:
    return jnp.sum(jax.lax.population_count(bits).astype(jnp.int32), axis=-1)


def setup_of(statistics: GraphStatistics) -> tuple[Setup, Inputs]:
    """What chains need of terms on the nodes of a graph."""
    graph = statistics.graph
    i, j = (jnp.asarray(ends, jnp.int32) for ends in graph.dyads)
    return Setup(graph.n, graph.directed, statistics.structures), Inputs(i, j, jnp.asarray(statistics.covariates))


def begin(statistics: GraphStatistics, tie: Bool[np.ndarray, "c d"]) -> Chains:
    """Chains that start at given graphs."""
    graph = statistics.graph
    order = np.argsort(~tie, axis=1, kind="stable").astype(np.int32)
    place = np.argsort(order, axis=1).astype(np.int32)
    adjacency, nothing = statistics.adjacency(tie), np.zeros(len(tie), np.int64)
    into = jnp.asarray(_bits(np.swapaxes(adjacency, 1, 2))) if graph.directed else ()
    parts = (order, place, tie.sum(axis=1).astype(np.int32), statistics.of(tie), nothing)
    return Chains(jnp.asarray(_bits(adjacency)), into, *map(jnp.asarray, parts))


def _bits(adjacency: Bool[np.ndarray, "c n n"]) -> UInt64[np.ndarray, "c n w"]:
    """Rows of matrices as words of bits."""
    n = adjacency.shape[-1]
    padded = np.zeros((*adjacency.shape[:-1], -(-n // WORD_BITS) * WORD_BITS), np.uint8)
    padded[..., :n] = adjacency
    return np.packbits(padded, axis=-1, bitorder="little").view(np.dtype("<u8")).astype(np.uint64)


def ties_of(chains: Chains) -> Bool[np.ndarray, "c d"]:
    """Which dyads are ties."""
    order, count = np.asarray(chains.order), np.asarray(chains.ties)
    found = np.zeros(order.shape, bool)
    np.put_along_axis(found, order, np.arange(order.shape[1]) < count[:, None], axis=1)
    return found


@partial(jax.jit, static_argnums=0, donate_argnums=5)
def advance(setup: Setup, blocks: Array, key: Array, theta: Array, inputs: Inputs, chains: Chains) -> Chains:
    """The same chains after so many blocks of steps, each at its own row of ``theta``."""

    def block(number: Array, chains: Chains) -> Chains:
        numbers = jax.random.uniform(jax.random.fold_in(key, number), (STEPS_AT_ONCE, 5, len(chains.ties)))
        return jax.lax.fori_loop(0, STEPS_AT_ONCE, lambda t, at: _step(setup, theta, inputs, at, numbers[t]), chains)

    return jax.lax.fori_loop(0, blocks, block, chains)


class Proposal(NamedTuple):
    """A dyad of each chain, and the log of how much more often it is proposed once it is flipped."""

    dyad: Int[Array, " c"]
    is_tie: Bool[Array, " c"]
    log_ratio: Float[Array, " c"]


def _step(setup: Setup, theta: Array, inputs: Inputs, chains: Chains, numbers: Float[Array, "m c"]) -> Chains:
    """Propose to flip one dyad of each chain, and flip it or not."""
    proposed = _tie_or_none(chains, numbers[1], numbers[2])
    if setup.closes:
        other = _closing(setup, inputs, chains, numbers[1], numbers[2], numbers[4])
        proposed = jax.tree.map(lambda a, b: jnp.where(numbers[3] < 0.25, a, b), other, proposed)
    dyad, is_tie, log_ratio = proposed
    out, into, order, place, ties, statistics, accepted = chains
    c = jnp.arange(len(ties))
    i, j, tie = inputs.i[dyad], inputs.j[dyad], is_tie.astype(jnp.int32)
    change = inputs.covariates[dyad]
    at = ChainDyads(setup, chains, i, j, tie)
    for column, term in setup.structures:
        change = change.at[:, column].set(jnp.asarray(term.change(at), float))
    sign = 1 - 2 * tie
    flip = jnp.log(numbers[0]) < sign * jnp.sum(change * theta, axis=1) + log_ratio
    moved = jnp.where(flip, sign, 0)
    if setup.directed:
        out, into = _flipped(out, i, j, flip), _flipped(into, j, i, flip)
    else:
        out = _flipped(_flipped(out, i, j, flip), j, i, flip)
    # the dyad changes places with the last tie or the first that is none, where the two kinds meet
    here = place[c, dyad]
    border = jnp.where(flip, jnp.where(is_tie, ties - 1, ties), here)
    both = jnp.concatenate([c, c])
    moves, to = jnp.concatenate([order[c, border], dyad]), jnp.concatenate([here, border])
    order = order.at[both, to].set(moves, mode=SAFE)
    place = place.at[both, moves].set(to, mode=SAFE)
    return Chains(out, into, order, place, ties + moved, statistics + moved[:, None] * change, accepted + flip)


def _tie_or_none(chains: Chains, which: Array, where: Array) -> Proposal:
    """A random tie or a random empty dyad, with equal chances where there are both."""
    dyads, ties = chains.order.shape[1], chains.ties
    is_tie = jnp.where(ties == 0, False, jnp.where(ties == dyads, True, which < 0.5))
    among = jnp.where(is_tie, ties, dyads - ties)
    place = jnp.where(is_tie, 0, ties) + _one_of(where, among)
    after = ties + 1 - 2 * is_tie
    log_ratio = _log_chance(dyads, after, ~is_tie) - _log_chance(dyads, ties, is_tie)
    return Proposal(chains.order[jnp.arange(len(ties)), place], is_tie, log_ratio)


def _log_chance(dyads: int, ties: Array, is_tie: Array) -> Array:
    """The log chance that a graph with so many ties proposes one given tie, or one given empty dyad."""
    among = jnp.where(is_tie, ties, dyads - ties)
    return jnp.where((ties == 0) | (ties == dyads), 0.0, jnp.log(0.5)) - _log(among)


def _closing(setup: Setup, inputs: Inputs, chains: Chains, which: Array, where: Array, way: Array) -> Proposal:
    """The dyad that a random two-path leads to: the tie i to k is any one, and k to j any one that k sends elsewhere.

    How often a dyad is proposed depends on its own tie only through the number of ties, that the first is one of.
    """
    ties, c = chains.ties, jnp.arange(len(chains.ties))
    first = chains.order[c, _one_of(where, ties)]
    i, k = inputs.i[first], inputs.j[first]
    if not setup.directed:
        i, k = jnp.where(way < 0.5, i, k), jnp.where(way < 0.5, k, i)
        way = jnp.where(way < 0.5, 2.0 * way, 2.0 * way - 1.0)
    words = jnp.arange(chains.out.shape[2])[None] == (i // WORD_BITS)[:, None]
    sends = chains.out[c, k] & ~jnp.where(words, jnp.uint64(1) << (i % WORD_BITS).astype(jnp.uint64)[:, None], 0)
    count = _count(sends)
    j = _member(sends, _one_of(way, count))
    possible = (ties > 0) & (count > 0)
    dyad = jnp.where(possible, _dyad(setup, i, j), 0).astype(jnp.int32)
    is_tie = chains.place[c, dyad] < ties
    after = ties + 1 - 2 * is_tie
    log_ratio = _log(ties) - _log(after)
    return Proposal(dyad, is_tie, jnp.where(possible, log_ratio, -jnp.inf))


def _member(bits: UInt64[Array, "c w"], rank: Int[Array, " c"]) -> Int[Array, " c"]:
    """The node of that rank (from 0) in each set of bits."""
    counts = jax.lax.population_count(bits).astype(jnp.int32)
    before = jnp.sum(jnp.tri(bits.shape[1], k=-1, dtype=jnp.int32)[None] * counts[:, None, :], axis=2)
    word = jnp.sum((before + counts <= rank[:, None]).astype(jnp.int32), axis=1)
    word, c = jnp.minimum(word, bits.shape[1] - 1), jnp.arange(len(rank))
    left, rank = bits[c, word], rank - before[c, word]
    place = word * WORD_BITS
    for width in (32, 16, 8, 4, 2, 1):  # which half of what is left it is in
        low = jax.lax.population_count(left & jnp.uint64(2**width - 1)).astype(jnp.int32)
        high = rank >= low
        left = jnp.where(high, left >> jnp.uint64(width), left)
        place, rank = place + jnp.where(high, width, 0), rank - jnp.where(high, low, 0)
    return place.astype(jnp.int32)


def _dyad(setup: Setup, i: Array, j: Array) -> Array:
    """The number of a dyad in the order of `ObservedGraph.dyads`."""
    n = setup.nodes
    if setup.directed:
        return i * (n - 1) + j - (j > i)
    low, high = jnp.minimum(i, j), jnp.maximum(i, j)
    return low * n - low * (low + 1) // 2 + high - low - 1


def _log(count: Array) -> Array:
    """The logarithm of a count that is not zero where it matters."""
    return jnp.log(jnp.maximum(count, 1).astype(float))


def _one_of(number: Array, among: Array) -> Array:
    """A random one of so many, from a number between 0 and 1."""
    return jnp.maximum(jnp.minimum((number * among).astype(jnp.int32), among - 1), 0)


def _flipped(rows: UInt64[Array, "c n w"], i: Array, j: Array, flip: Array) -> Array:
    """Bit j of row i of each chain flipped where asked."""
    mask = flip.astype(jnp.uint64) << (j % WORD_BITS).astype(jnp.uint64)
    c, word = jnp.arange(len(i)), j // WORD_BITS
    return rows.at[c, i, word].set(rows[c, i, word] ^ mask, unique_indices=True, mode=SAFE)
