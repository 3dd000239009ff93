"""Tie-no-tie chains of random graphs, many at once, in compiled code.

A step proposes to flip a tie or an empty dyad with equal chances (Morris, Handcock and Hunter, 2008), so that chains of
sparse graphs do not spend their time on proposing ties that are refused. Where terms are about triangles, every fourth
step proposes to flip a dyad that a random two-path leads to, by which chains forget their start sooner.

Graphs are kept as bits, 64 to a word: a count of shared partners is a few ands and population counts, and nothing but
bits has to be kept up to date. A step costs n / 64 word operations for each node that both ends of the dyad are tied
to, and no table of shared partners needs to be looked after.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt64

from .counts import AbstractDyads
from .model import RandomGraph
from .terms import Structure

BLOCK = 64  # steps whose random numbers are drawn together
WORD = 64
CLOSING = 0.25  # share of proposals that close or open triangles, where terms are about these
SAFE = "promise_in_bounds"


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
        word = self._into_i[jnp.arange(len(self._j)), self._j // WORD]
        return (word >> (self._j % WORD).astype(jnp.uint64)).astype(jnp.int32) & 1

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
        k = word * WORD + jax.lax.population_count(last - jnp.uint64(1)).astype(jnp.int64)
        total += jnp.where(here != 0, weight(jnp.minimum(k, nodes - 1)), 0.0)
        return left ^ jnp.where(words[None] == word[:, None], last[:, None], jnp.uint64(0)), total

    return jax.lax.while_loop(lambda state: jnp.any(state[0] != 0), add, (bits, jnp.zeros(len(bits))))[1]


def _count(bits: UInt64[Array, "*batch w"]) -> Int[Array, "*batch"]:
    return jnp.sum(jax.lax.population_count(bits).astype(jnp.int32), axis=-1)


def setup_of(model: RandomGraph) -> tuple[Setup, Inputs]:
    """What chains of a model need."""
    graph, statistics = model.graph_observed, model.statistics
    i, j = (jnp.asarray(ends, jnp.int32) for ends in graph.dyads)
    return Setup(graph.n, graph.directed, statistics.structures), Inputs(i, j, jnp.asarray(statistics.covariates))


def begin(model: RandomGraph, tie: Bool[np.ndarray, "c d"]) -> Chains:
    """Chains that start at given graphs."""
    graph, statistics = model.graph_observed, model.statistics
    order = np.argsort(~tie, axis=1, kind="stable").astype(np.int32)
    place = np.argsort(order, axis=1).astype(np.int32)
    adjacency, nothing = statistics.adjacency(tie), np.zeros(len(tie), np.int64)
    into = jnp.asarray(_bits(np.swapaxes(adjacency, 1, 2))) if graph.directed else ()
    parts = (order, place, tie.sum(axis=1).astype(np.int32), statistics.of(tie), nothing)
    return Chains(jnp.asarray(_bits(adjacency)), into, *map(jnp.asarray, parts))


def _bits(adjacency: Bool[np.ndarray, "c n n"]) -> UInt64[np.ndarray, "c n w"]:
    """Rows of matrices as words of bits."""
    n = adjacency.shape[-1]
    padded = np.zeros((*adjacency.shape[:-1], -(-n // WORD) * WORD), np.uint8)
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
        numbers = jax.random.uniform(jax.random.fold_in(key, number), (BLOCK, 5, len(chains.ties)))
        return jax.lax.fori_loop(0, BLOCK, lambda t, at: _step(setup, theta, inputs, at, numbers[t]), chains)

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
        proposed = jax.tree.map(lambda a, b: jnp.where(numbers[3] < CLOSING, a, b), other, proposed)
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
    words = jnp.arange(chains.out.shape[2])[None] == (i // WORD)[:, None]
    sends = chains.out[c, k] & ~jnp.where(words, jnp.uint64(1) << (i % WORD).astype(jnp.uint64)[:, None], 0)
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
    place = word * WORD
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
    mask = flip.astype(jnp.uint64) << (j % WORD).astype(jnp.uint64)
    c, word = jnp.arange(len(i)), j // WORD
    return rows.at[c, i, word].set(rows[c, i, word] ^ mask, unique_indices=True, mode=SAFE)
