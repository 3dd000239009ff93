"""Simulated maps of an autologistic model: Gibbs sampling, all maps at once and one colour of the graph at a time.

Chains begin at the observed map, where its unobserved sites are drawn first, and run until they are much longer than
their autocorrelation time or have run for long: then they say that they have not mixed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..._util.process import require_seed, require_unforked
from ...core.dataset import Dataset
from ...core.graphs import Graph
from ...core.simulators.base import Mixing, mixing_of
from ...errors import SettingError
from .model import Autologistic

SHORTEST, LONGEST = 64, 1024  # sweeps of a first look, and at most


@dataclass(frozen=True, eq=False)
class Maps:
    """Simulated maps on the sites of an observed one.

    Attributes
    ----------
    model : Autologistic
    values : (size, n) integers
        The category of every site of each map, in the order of the data's rows.
    mixing : Mixing
        Of the number of like neighbours and of the shares of categories, whichever is slower.
    """

    model: Autologistic
    values: Int[np.ndarray, "size n"]
    mixing: Mixing

    def __len__(self) -> int:
        return len(self.values)

    def datasets(self) -> Iterator[Dataset]:
        """For each map its sites, as `Autologistic.observe` gives them: those that lack a term there lack it here."""
        return (self.model.map.dataset(values[None]) for values in self.values)


def simulate_maps(
    model: Autologistic, theta: Any, size: int | None = None, *, seed: int = 0, sweeps: int | None = None
) -> Maps:
    """Maps from a model at given coefficients, on the sites of its observed map.

    Sites whose covariates are unknown keep their observed values.

    Parameters
    ----------
    model : Autologistic
        Bound to a map: that of a fit.
    theta : dict, vector, or one vector for each map
    size : int, optional
        How many maps; as many as there are vectors.
    seed : int
    sweeps : int, optional
        Length of the chains, each a map; by default until they have mixed.

    Examples
    --------
    >>> import dfdbayes as dfd, numpy as np
    >>> image = np.random.default_rng(0).integers(0, 2, (8, 8))
    >>> _, model = dfd.models.Autologistic().observe(image)
    >>> maps = simulate_maps(model, {"intercept": 0.0, "interaction": 0.5}, 20)
    >>> maps.values.shape, maps.mixing.good
    ((20, 64), True)
    """
    require_unforked()
    require_seed(seed)
    if np.ndim(theta) == 2:
        thetas = np.asarray(theta, float)
        size = len(thetas)
    else:
        thetas = np.asarray(model.space.flatten(theta), float)[None]
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
        raise SettingError(f"the number of maps is {size!r}; it must be a whole number from 1 on")
    if not np.isfinite(thetas).all():
        raise SettingError("maps cannot be simulated at coefficients that are not finite numbers")
    rng = np.random.default_rng([seed, 19])
    seen = model.map
    begin = np.repeat(seen.values[None], size, axis=0)
    begin = np.where(begin < 0, rng.integers(model.states, size=begin.shape), begin)
    values, mixing = by_colours(model, thetas, begin, seen.known, rng, sweeps)
    return Maps(model, values, mixing)


def by_colours(
    model: Autologistic, thetas: Float[np.ndarray, "c p"], begin: Int[np.ndarray, "b n"], free: Bool[np.ndarray, " n"],
    rng: np.random.Generator, sweeps: int | None = None,
) -> tuple[Int[np.ndarray, "b n"], Mixing]:  # fmt: skip
    """Maps whose ``free`` sites were drawn given the others, each at its own parameters or all at the same."""
    layout = _layout(model.graph, free)
    fields = jnp.asarray(_bordered(model.fields(thetas)))
    strength = jnp.asarray(thetas[:, -1])
    x = jnp.asarray(np.concatenate([begin, np.full((len(begin), 1), -1)], axis=1).T.astype(np.int32))
    key = jax.random.key(int(rng.integers(2**31)))
    traces: list[np.ndarray] = []
    while True:
        key, own = jax.random.split(key)
        count = SHORTEST if sweeps is None else sweeps
        x, trace = _sweeps(count, model.states, own, x, fields, strength, *layout)
        traces.append(np.asarray(trace))
        watched = np.concatenate(traces)
        found = max((mixing_of(watched[:, j]) for j in range(watched.shape[1])), key=lambda m: m.autocorrelation_time)
        if sweeps is not None or found.good or len(watched) >= LONGEST:
            return np.asarray(x[:-1]).T.astype(np.int64), found


def _bordered(fields: Float[np.ndarray, "c n k"]) -> Float[np.ndarray, "n k c"]:
    """Sites first, and one more that stands for none."""
    return np.concatenate([fields, np.zeros_like(fields[:, :1])], axis=1).transpose(1, 2, 0)


def _layout(graph: Graph, free: np.ndarray) -> tuple[Array, Array, Array]:
    """Free sites of each colour, their neighbours (the number after the last site for none), and all edges."""
    nodes, _, present = graph.neighbours
    around = np.concatenate([np.where(present > 0, nodes, graph.size), np.full((1, nodes.shape[1]), graph.size)])
    classes = [sites[free[sites]] for sites in graph.colours]
    classes = [sites for sites in classes if len(sites)]
    width = max(map(len, classes), default=1)
    padded = np.array([np.pad(sites, (0, width - len(sites)), constant_values=graph.size) for sites in classes])
    edges = graph.edges if len(graph.edges) else np.zeros((1, 2), int)
    return jnp.asarray(padded.reshape(-1, width)), jnp.asarray(around), jnp.asarray(edges)


@partial(jax.jit, static_argnums=(0, 1))
def _sweeps(
    count: int, states: int, key: Array, x: Array, fields: Array, strength: Array, classes: Array, around: Array,
    edges: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """``x`` is (sites + 1, maps), the last one a site that is no neighbour of any category."""

    def of_class(carry: tuple[Array, Array], sites: Array) -> tuple[tuple[Array, Array], None]:
        x, key = carry
        key, own = jax.random.split(key)
        seen = x[around[sites]]  # (w, neighbours, maps)
        logs = jnp.stack([fields[sites, c] + strength[None] * jnp.sum(seen == c, axis=1) for c in range(states)])
        masses = jnp.cumsum(jnp.exp(logs - jnp.max(logs, axis=0)[None]), axis=0)
        u = jax.random.uniform(own, masses.shape[1:])
        drawn = jnp.sum((u * masses[-1])[None] > masses[:-1], axis=0)
        return (x.at[sites].set(drawn.astype(x.dtype)).at[-1].set(-1), key), None

    def sweep(x: Array, key: Array) -> tuple[Array, Array]:
        (x, _), _ = jax.lax.scan(of_class, (x, key), classes)
        like = jnp.sum(x[edges[:, 0]] == x[edges[:, 1]], axis=0)
        shares = [jnp.sum(x == c, axis=0) for c in range(1, states)]
        return x, jnp.stack([like, *shares]).astype(float)

    return jax.lax.scan(sweep, x, jax.random.split(key, count))
