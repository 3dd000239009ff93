"""What each node of a network amounts to: strength, expected influence and predictability, with calibrated intervals.

strength
    The sum of the absolute interactions of a node, as the model has them (Opsahl, Agneessens and Skvoretz, 2010). It is
    in the units of the columns, so compare columns of one kind.
expected influence
    The sum of the interactions with their signs (Robinaugh, Millner and McNally, 2016): +1 and -1 cancel.
predictability
    The share of a column's variance that the other columns explain (cf. Haslbeck and Waldorp, 2018). One definition
    serves binary, ordinal and count columns, the Bayesian R-squared of Gelman, Goodrich, Gabry and Vehtari (2019): with
    m and v the mean and variance of a column given the others, in every row of the data, it is var(m) / (var(m) +
    mean(v)). It is 0 if no edge ends there, and 1 if the others determine the column. Covariates count as others.

All three are functions of the posterior's draws, and intervals are quantiles of these. An absolute value is never
negative, so a node without any edge has draws of its strength well above zero: uncertain interactions do not cancel. An
interval that excludes zero is therefore no evidence of an edge. What to compare with stands beside it: the columns
``..._by_chance`` say what strength and predictability would be on average had the node no edge at all, given how
uncertain these data leave its interactions. Expected influence has no such bias: of a node without edges, 95 % of the
intervals contain zero.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int

from ...core.dataset import Dataset
from ...core.domain import Counts, side_by_side
from ...core.model import AbstractModel
from ..counts.normaliser import listing
from .model import Pairwise
from .rope import interaction_of, network_of, of_edges
from .verdict import interval

if TYPE_CHECKING:
    from ...results.fitted import Fitted

MAX_CELLS = 2e8  # draws times rows times listed values, beyond which every so-many-th row is used
MIN_ROWS = 1000  # that are used even then
CELLS_AT_ONCE = 2**17  # what they need stays in the cache


def node_table(fit: Fitted) -> pd.DataFrame:
    """What `Fit.nodes` gives."""
    model, drawn = network_of(fit), fit.joint_draws
    assert fit.model is not None
    first = fit.model.space.first["interaction"]
    edges = of_edges(fit, drawn[:, first : first + interaction_of(fit.model).size])
    ends = np.zeros((len(model.graph.pairs), model.graph.size))
    ends[np.arange(len(ends))[:, None], model.graph.edges] = 1.0
    few = drawn[np.linspace(0, len(drawn) - 1, min(200, len(drawn))).astype(int)]  # enough for 95 % intervals
    share = explained(fit.model, few, fit.data)
    strength, predictability = by_chance(fit, edges, ends, share.mean(axis=0))
    columns = {
        **_summarised("strength", np.abs(edges) @ ends),
        "strength_by_chance": strength,
        **_summarised("influence", model.sign * edges @ ends),
        **_summarised("predictability", share),
        "predictability_by_chance": predictability,
    }
    table = pd.DataFrame(columns, index=pd.Index(fit.data.columns, name="node"))
    return table.iloc[np.argsort(-table["strength"], kind="stable")]


def _summarised(name: str, draws: Float[np.ndarray, "s d"]) -> dict[str, np.ndarray]:
    low, high = interval(draws)
    return {name: draws.mean(axis=0), f"{name}_low": low, f"{name}_high": high}


def by_chance(
    fit: Fitted, edges: Float[np.ndarray, "s e"], ends: Float[np.ndarray, "e d"], explained: Float[np.ndarray, " d"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Average strength and predictability of each node if it had no edge.

    Then its interactions' estimates would vary about zero, and their draws about the estimates: a draw is N(0, 2 S). S
    is the posterior's covariance times the share that is not explained, because a column that varies more given the
    others says as much more about its interactions. Means are, for interactions so small, linear in them. Not known
    (NaN) with covariates, and where interactions cannot be negative.
    """
    model = network_of(fit)
    if (fit.model is not None and fit.model.designs) or model.nonpositive_edges:
        return np.full(ends.shape[1], np.nan), np.full(ends.shape[1], np.nan)
    weights = fit.data.counts / fit.data.counts.sum()
    x, scores = fit.data.rows.T.astype(float), model.edge_statistics(fit.data.rows)
    x, scores = x - (x @ weights)[:, None], scores - (scores @ weights)[:, None]
    among = (scores * weights) @ scores.T
    covariance = np.pad(np.atleast_2d(np.cov(edges.T)), (0, 1))  # no edge is one past the last, and varies not
    spread = np.array([np.sum(covariance[np.ix_(own, own)] * among) for own in model.edge_of])
    slope, variance = (x * scores) @ weights, x**2 @ weights
    left = 1.0 - np.nan_to_num(explained)
    share = 2.0 * left * spread * slope**2 / np.maximum(variance, 1e-300)
    return np.sqrt(left) * (2.0 / np.sqrt(np.pi) * edges.std(axis=0) @ ends), np.minimum(share, 1.0)


class Listed(NamedTuple):
    """The values that each column may have, with their edge statistics s and node statistics t (see `model`)."""

    values: Float[np.ndarray, "d l"]
    multiplicity: Float[np.ndarray, "d l"]
    """How many values each stands for: 1, more among very large counts, 0 for none."""
    s: Float[np.ndarray, "d l"]
    t: Float[np.ndarray, "f d l"]
    last: Int[np.ndarray, " d"]
    """Where the largest listed count is; -1 of columns that end."""

    @classmethod
    def of(cls, model: Pairwise, reach: int) -> Listed:
        """All levels, and counts up to ``reach``."""
        counts = listing(reach)
        found = [counts if k.counts else (np.array(k.levels, float), np.ones(len(k.levels))) for k in model.kinds]
        values, is_value = side_by_side([values for values, _ in found])
        multiplicity = np.where(is_value, side_by_side([weights for _, weights in found])[0], 0.0)
        last = np.array([len(counts[0]) - 1 if kind.counts else -1 for kind in model.kinds])
        return cls(values, multiplicity, model.edge_statistics(values.T), model.node_statistics(values.T), last)


def explained(model: AbstractModel, thetas: Float[np.ndarray, "s p"], data: Dataset) -> Float[np.ndarray, "s d"]:
    """Predictability of every column at each of the parameters; NaN where a count may be larger than can be listed."""
    assert isinstance(model, Pairwise)
    plain = model.plain
    endless = [j for j, kind in enumerate(plain.kinds) if kind.counts]
    reach = Counts(1).coordinate(0).reach(data.rows[:, endless], 2.0, 30) - 1 if endless else 0
    while True:
        listed = Listed.of(plain, reach)
        share, tail = _explained(model, plain, thetas, listed, data)
        listed_enough = tail < 1e-5  # of a count's variance the last listed value
        if listed_enough.all() or 4 * reach > 2**20:
            return np.where(listed_enough.all(axis=0), share, np.nan)
        reach *= 4  # in few steps: each is compiled anew


def _explained(
    model: AbstractModel, plain: Pairwise, thetas: np.ndarray, listed: Listed, data: Dataset
) -> tuple[Float[np.ndarray, "s d"], Float[np.ndarray, "s d"]]:
    """Predictability, and what share of the variance the last listed count has."""
    data = data.thinned(max(MIN_ROWS, int(MAX_CELLS / (len(thetas) * listed.values.size))))
    width = min(len(data.rows), max(1, CELLS_AT_ONCE // listed.values.size))
    blocks = -(-len(data.rows) // width)
    missing = blocks * width - len(data.rows)

    def cut(rows: np.ndarray) -> np.ndarray:
        return np.pad(rows, ((0, missing), (0, 0)), mode="edge").reshape(blocks, width, -1)

    weights = np.pad(data.counts / data.counts.sum(), (0, missing)).reshape(blocks, width)
    z = None if data.given is None or not model.designs else cut(data.given)
    s = cut(plain.edge_statistics(data.rows).T).transpose(0, 2, 1)
    centred = listed._replace(values=listed.values - (weights.reshape(-1)[: len(data.rows)] @ data.rows)[:, None])
    share, tail = _moments(model, plain, thetas, centred, (s, weights, z))
    return np.asarray(share), np.asarray(tail)


@partial(jax.jit, static_argnums=(0, 1))
def _moments(model: AbstractModel, plain: Pairwise, thetas: Array, listed: Listed, blocks: Any) -> tuple[Array, Array]:
    each = np.arange(plain.graph.size)
    count = listed.multiplicity
    powers = jnp.stack([count, count * listed.values, count * listed.values**2], axis=1)

    def of(theta: Array) -> tuple[Array, Array]:
        def add(sums: Array, block: Any) -> tuple[Array, None]:
            s, weights, z = block
            field, nodes = _predictors(model, plain, theta, listed.t, s, z)
            nodes = jnp.where(listed.multiplicity[:, :, None] > 0, nodes, -jnp.inf)
            log = nodes + listed.s[:, :, None] * field[:, None, :]
            mass = jnp.exp(log - jnp.max(log, axis=1, keepdims=True))
            total, mean, square = jnp.moveaxis(powers @ mass, 1, 0)
            mean, square = mean / total, square / total
            new = [mean, mean**2, square - mean**2, mass[each, listed.last] / total]
            return sums + jnp.stack([part @ weights for part in new]), None

        (mean, square, within, end), _ = jax.lax.scan(add, jnp.zeros((4, len(each))), blocks)
        between = jnp.maximum(square - mean**2, 0.0)
        whole = between + jnp.maximum(within, 0.0)
        return between / whole, jnp.where(listed.last >= 0, powers[each, 2, listed.last] * end / whole, 0.0)

    return jax.lax.map(of, thetas)


def _predictors(
    model: AbstractModel, plain: Pairwise, theta: Array, t: Any, s: Float[Array, "d w"], z: Array | None
) -> tuple[Float[Array, "d w"], Float[Array, "d l w"]]:
    """The field of every node, and the log mass that each listed value has of its own."""
    named = model.space.unflatten(theta)
    if z is None or not model.designs:
        nodes = jnp.einsum("fd,fdl->dl", plain.coefficients(theta), t)
        return plain.matrix(plain.interaction_of(named)) @ s, nodes[:, :, None]
    rows, width = model.at_rows(named, z), s.shape[1]
    each = {p.name: jnp.broadcast_to(rows[p.name], (width, p.size)) for p in plain.space.parameters}
    flat = jnp.concatenate(list(each.values()), axis=1)
    field = jax.vmap(lambda edges, s: plain.matrix(edges) @ s, (0, 1), 1)(each["interaction"], s)
    return field, jnp.einsum("wfd,fdl->dlw", jax.vmap(plain.coefficients)(flat), t)
