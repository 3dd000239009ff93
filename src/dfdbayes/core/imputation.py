"""Fits with missing entries: completions and parameters that agree with each other, and what was lost.

Shares of completions follow from the parameters and the parameters from the shares. Both are settled together, by
Newton's method on the estimating equation, whose derivative is the Hessian at fixed shares plus what the shares do; and
where that goes astray by minimising at fixed shares in turn, as the EM algorithm does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..errors import MinimiserError, ModelError
from . import losses, newton
from .completions import listable, listed, of_rows, values_of
from .dataset import Dataset
from .incomplete import COMPLETED, Incomplete, log_masses, scores
from .losses.base import AbstractLoss
from .minimise import ENOUGH, Minimum, evaluate, first_guess, minimise, mode
from .model import AbstractModel
from .objective import Objective
from .sites import Units
from .terms import filled, padded_size

MOST_STEPS = 60
DRAWN = 64  # completions of a row that lacks many entries,
SWEEPS = 30  # and how many times its missing entries are drawn anew before they count


@dataclass(frozen=True)
class Imputation:
    """What was missing, and what that cost.

    Attributes
    ----------
    entries : int
        Missing entries.
    rows : int
        Observations that lack any.
    by_column : dict
        The share of observations in which each column is missing.
    drawn : int
        Observations that lack so many entries that their completions were drawn rather than listed.
    lost : dict
        By parameter, the share of its information that is missing: one minus the variance that the estimate would have
        had with complete data over the one it has.
    """

    entries: int
    rows: int
    by_column: dict[str, float]
    drawn: int
    lost: dict[str, float]

    def __str__(self) -> str:
        worst = max(self.lost, key=lambda name: self.lost[name])
        least, most = min(self.lost.values()), max(self.lost.values())
        return (
            f"{self.entries} missing entries in {self.rows} observations were weighed by how likely the model finds "
            f"each value (fractional imputation; right where values are missing at random); of what complete data "
            f"would have told, {least:.0%} to {most:.0%} is missing, most for {worst}"
        )


def begun(model: AbstractModel, data: Dataset, loss: AbstractLoss, units: Units | None, seed: int) -> Objective:
    """The loss on the completions of data with missing entries, shares settled for a first guess."""
    assert data.observed is not None
    if any(coordinate.kind == "integers" for coordinate, _ in model.domain.runs):
        raise ModelError("missing values of a model on all integers cannot be imputed; use missing='drop'")
    if not loss.separable:
        raise ModelError(
            f"missing values are imputed for losses that are sums over rows, which {loss.name} is not. What to do: use "
            "loss='ratio', 'pseudo' or 'dfd', or missing='drop'."
        )
    inside = listable(data, model.domain)
    rows, owner = listed(data, model.domain, np.flatnonzero(inside))
    parts, rest = [(rows, owner, np.zeros(len(owner)))], np.flatnonzero(~inside)
    at = _margins(model, data)
    if len(rest):  # drawn where each column is by itself, and then where these draws lead
        first = _objective(model, data, loss, units, [*parts, _drawn(model, at, data, rest, seed)], at)
        at = minimise(first, at).vector
        parts.append(_drawn(model, at, data, rest, seed))
    return _objective(model, data, loss, units, parts, at)


def _margins(model: AbstractModel, data: Dataset) -> np.ndarray:
    """A first guess from the values that were observed: each missing one is some observed value of its column."""
    assert data.observed is not None
    rng, rows = np.random.default_rng(0), data.rows.astype(np.int64)
    for j in range(data.d):
        seen = data.observed[:, j]
        shares = data.counts[seen] / data.counts[seen].sum()
        rows[~seen, j] = rng.choice(rows[seen, j], size=int((~seen).sum()), p=shares)
    begin = Objective(model, replace(data, rows=rows, observed=None), losses.RATIO)
    return np.asarray(begin.space.flatten(first_guess(begin)))


def _objective(
    model: AbstractModel, data: Dataset, loss: AbstractLoss, units: Units | None, parts: list[Any], at: np.ndarray
) -> Objective:
    """The loss on completions, weighed as the model has them at some parameters."""
    whole = Units("rows", data.counts, data.observations) if units is None else units
    incomplete = Incomplete.of(data, whole, of_rows(data, parts))
    complete = incomplete.completions.data
    own = Units(COMPLETED, complete.counts, complete.counts)
    return Objective(model, complete, loss, own, incomplete=incomplete).imputed_at(at)


def settled(objective: Objective, beta: float, around: Minimum, y: np.ndarray) -> tuple[Objective, np.ndarray]:
    """The mode of beta D - log pi in the minimiser's coordinates, missing entries weighed as the model has them there.

    Where nothing is missing, the mode alone.
    """
    if objective.incomplete is None:
        return objective, mode(objective, beta, around, y)
    space = objective.space
    lower, upper = np.sort(space.to_y(np.stack([around.lower, around.upper])), axis=0)
    aim = ENOUGH * objective.size

    def at(y: np.ndarray) -> tuple[Objective, np.ndarray, np.ndarray, np.ndarray, float]:
        own = objective.imputed_at(space.from_y(y))
        _, gradient, hessian, steep = evaluate(own, y, beta)
        free = newton.free_of(y, gradient, lower, upper)
        return (
            own,
            gradient,
            hessian,
            np.flatnonzero(free),
            float(np.linalg.norm(np.where(free, gradient / steep, 0.0))),
        )

    y = np.clip(y, lower, upper)
    own, gradient, hessian, free, size = at(y)
    for _ in range(MOST_STEPS):
        if size <= aim:
            return own, y
        slope = space.slopes_of_y(y)[0]
        full = hessian + beta * slope[:, None] * own.moved(space.from_y(y)) * slope
        move = np.zeros_like(y)
        move[free] = np.linalg.lstsq(full[np.ix_(free, free)], gradient[free], rcond=None)[0]
        ahead = np.clip(y - move, lower, upper)
        found = at(ahead)
        if not found[-1] < 0.5 * size:  # astray
            ahead = mode(own, beta, around, y)
            found = at(ahead)
        y, (own, gradient, hessian, free, size) = ahead, found
    raise MinimiserError(
        "parameters and missing entries do not settle: too little was observed for this model. What to do: leave out "
        "columns that are mostly missing, use a simpler model or a tighter prior, or missing='drop'."
    )


def lost(objective: Objective, theta: Any) -> Float[np.ndarray, " p"]:
    """By parameter, the share of its information that is missing, at parameters that agree with the shares."""
    assert objective.incomplete is not None
    flat = np.asarray(objective.model.space.flatten(theta))
    hessian, lines = objective.hessian(flat), objective.row_gradients(flat)
    _, _, squares = objective.moments(flat)
    full = hessian + objective.incomplete.moved(lines, scores(objective.model, flat, objective.data))
    has = _sandwich(full, squares)
    had = _sandwich(hessian, objective.incomplete.complete_squares(lines))
    return np.clip(1.0 - np.diag(had) / np.maximum(np.diag(has), 1e-300), 0.0, 1.0)


def _sandwich(derivative: np.ndarray, squares: np.ndarray) -> np.ndarray:
    inverse = np.linalg.pinv(derivative, rcond=1e-12)
    return inverse @ squares @ inverse.T


def described(objective: Objective, theta: Any) -> Imputation | None:
    """What was missing and what that cost; None where nothing was."""
    if objective.incomplete is None:
        return None
    data, completions = objective.incomplete.observed, objective.incomplete.completions
    assert data.observed is not None
    number, absent = data.observations, ~data.observed
    sampled = np.unique(completions.owner[completions.base != 0.0])
    return Imputation(
        round(float(number @ absent.sum(axis=1))),
        round(float(number[absent.any(axis=1)].sum())),
        dict(zip(data.columns, map(float, number @ absent / number.sum()), strict=True)),
        round(float(number[sampled].sum())),
        dict(zip(objective.space.names, map(float, lost(objective, theta)), strict=True)),
    )


# -- rows that lack many entries -----------------------------------------------------------------


def _drawn(
    model: AbstractModel, theta: np.ndarray, data: Dataset, which: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Completions by Gibbs sampling at ``theta``; elsewhere they are weighed by the ratio of masses."""
    assert data.observed is not None
    values = values_of(data, model.domain)
    longest = max(map(len, values))
    listed_values = np.array([np.pad(v, (0, longest - len(v)), mode="edge") for v in values], float)
    allowed = np.array([np.arange(longest) < len(v) for v in values])
    owner = np.repeat(which, DRAWN)
    rng = np.random.default_rng([seed, 13])
    start = np.array(data.rows[owner], float)
    pick = rng.integers([len(v) for v in values], size=start.shape)
    start = np.where(data.observed[owner], start, np.take_along_axis(listed_values.T, pick, axis=0))
    size = padded_size(len(owner))
    turns = filled(_turns(~data.observed[which])[np.repeat(np.arange(len(which)), DRAWN)], size).astype(int)
    given = None if data.given is None else filled(data.given[owner], size)
    key = jax.random.key(int(rng.integers(2**31)))
    inputs = (filled(start, size), turns, *map(jnp.asarray, (listed_values, allowed)))
    rows = np.asarray(_gibbs(model, SWEEPS, key, jnp.asarray(theta), *inputs, given))[: len(owner)].astype(np.int64)
    chosen = data.at(owner)
    base = -log_masses(model, theta, Dataset(rows, chosen.counts, data.columns, chosen.first, given=chosen.given))
    return rows, owner, base


def _turns(absent: Bool[np.ndarray, "u d"]) -> Int[np.ndarray, "u m"]:
    """Of every row its missing columns, repeated where others lack more: in these turns they are drawn."""
    order, number = np.argsort(~absent, axis=1, kind="stable"), absent.sum(axis=1)
    longest = 2 ** int(number.max() - 1).bit_length()  # which means few compilations
    return np.take_along_axis(order, np.arange(longest) % number[:, None], axis=1)


@partial(jax.jit, static_argnums=(0, 1))
def _gibbs(
    model: AbstractModel, sweeps: int, key: Array, theta: Array, x: Array, turns: Array, values: Array, allowed: Array,
    given: Array | None,
) -> Array:  # fmt: skip
    """Missing entries drawn in turn from their conditional distributions, all rows side by side."""
    each = jnp.arange(len(x))

    def turn(x: Array, at: tuple[Array, Array]) -> tuple[Array, None]:
        j, key = at

        def log_mass(k: Array) -> Array:
            return model.log_masses(theta, x.at[each, j].set(values[j, k]), given)

        log = jax.lax.map(log_mass, jnp.arange(values.shape[1]))
        chosen = jax.random.categorical(key, jnp.where(allowed[j].T, log, -jnp.inf), axis=0)
        return x.at[each, j].set(values[j, chosen]), None

    def sweep(x: Array, key: Array) -> tuple[Array, None]:
        return jax.lax.scan(turn, x, (turns.T, jax.random.split(key, turns.shape[1])))[0], None

    return jax.lax.scan(sweep, x, jax.random.split(key, sweeps))[0]
