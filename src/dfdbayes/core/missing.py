"""Missing entries: rows that lack some are completed, each completion weighed by how likely the model finds it.

This is fractional imputation (Kim, 2011; Yang and Kim, 2016). The share of a completion is p(x_mis | x_obs), a ratio of
unnormalised masses among the completions of one row: it needs no constant. A loss on complete rows then gives an
estimating equation for incomplete ones, the expectation of its gradient given what was observed, which is unbiased
where values are missing at random. Shares depend on the parameters, so the equation's derivative is not the loss's
Hessian alone: what the shares do when parameters move is the information that is missing (Louis, 1982).

A row that lacks few entries is listed with all values that these may have; of one that lacks many, completions are
drawn. To everyone else `ObjectiveWithMissing` is an objective whose weights of terms depend on the parameters.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy import sparse

from .._util.resources import NUMBERS_AT_ONCE
from ..errors import MinimiserError, ModelError, SettingError
from . import losses
from .dataset import Dataset, Units, keys
from .domain import Domain, side_by_side
from .linalg import free_of, sandwich
from .losses.base import AbstractLoss
from .minimise import SUFFICIENT_GRADIENT, Minima, Minimum, evaluate, first_guess, interior, minimise, mode
from .model import AbstractModel
from .objective import Objective
from .simulators.gibbs import Conditionals, swept
from .terms import filled, padded_size, terms

MAX_LISTED_OF_ROW = 64  # completions: six binary entries; `test_drawn_completions_give_what_listed_ones_do` compares
MAX_LISTED = 2**18  # completions of all rows together, so that a table of them fits into memory
DRAWN_COMPLETIONS, SWEEPS = 64, 30  # completions of other rows, by so many sweeps of Gibbs sampling (the same test)

# -- completions ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Completions:
    """Complete rows, and which of them each observed row may be.

    Attributes
    ----------
    data : Dataset
        The distinct complete rows; their counts are shares of observed rows, and follow from a model's parameters.
    owner : (c,) integers
        The observed row of every completion.
    row : (c,) integers
        The complete row that it is.
    base : (c,) floats
        Log of the factor by which a completion's share differs from the model's mass: zero where all are listed.
    """

    data: Dataset
    owner: Int[np.ndarray, " c"]
    row: Int[np.ndarray, " c"]
    base: Float[np.ndarray, " c"]


def values_of(data: Dataset, domain: Domain) -> list[Int[np.ndarray, " s"]]:
    """For every column, the values that a missing entry may have.

    Counts up to somewhat beyond the largest one, and not as far as a sum over them goes: each is a row to be weighed.
    """
    coordinates = [domain.coordinate(j) for j in range(data.d)]
    seen = [column[known].astype(np.int64) for column, known in zip(data.rows.T, data.seen.T, strict=True)]
    return [one.listed(one.reach(own, 1.5, 5)) for one, own in zip(coordinates, seen, strict=True)]


def listable(data: Dataset, domain: Domain) -> Bool[np.ndarray, " u"]:
    """Rows whose completions can all be listed: those that have the fewest, as long as they are not too many."""
    sizes = np.log([float(len(values)) for values in values_of(data, domain)])
    number = np.exp((~data.seen) @ sizes)
    order = np.argsort(number, kind="stable")
    found = np.zeros(len(number), bool)
    found[order] = (number[order] <= MAX_LISTED_OF_ROW + 0.5) & (np.cumsum(number[order]) <= MAX_LISTED + len(number))
    return found


def listed(data: Dataset, domain: Domain, chosen: Int[np.ndarray, " k"]) -> tuple[np.ndarray, np.ndarray]:
    """All completions (c, d) of the chosen rows, and the row that each belongs to."""
    values = values_of(data, domain)
    patterns, pattern = np.unique(data.seen[chosen], axis=0, return_inverse=True)
    rows: list[np.ndarray] = []
    owners: list[np.ndarray] = []
    for number, observed in enumerate(patterns):
        own, absent = chosen[pattern == number], np.flatnonzero(~observed)
        axes = np.meshgrid(*(values[j] for j in absent), indexing="ij")
        filled = np.stack([axis.reshape(-1) for axis in axes], axis=1) if len(absent) else np.zeros((1, 0), int)
        block = np.repeat(data.rows[own].astype(np.int64), len(filled), axis=0)
        block[:, absent] = np.tile(filled, (len(own), 1))
        rows.append(block)
        owners.append(np.repeat(own, len(filled)))
    if not rows:
        return np.zeros((0, data.d), np.int64), np.zeros(0, np.int64)
    return np.concatenate(rows), np.concatenate(owners)


def of_rows(data: Dataset, parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Completions:
    """Completions from parts: complete rows, the observed rows that these belong to, and the logs of their factors."""
    rows, owner, base = (np.concatenate([part[i] for part in parts]) for i in range(3))
    given = None if data.given is None else data.given[owner]
    codes = [*rows.T, *(() if given is None else (np.unique(g, return_inverse=True)[1] for g in given.T))]
    _, first, row = np.unique(keys(codes)[0], return_index=True, return_inverse=True)
    each = np.bincount(owner, minlength=len(data.rows))
    counts = np.bincount(row, weights=(data.counts / np.maximum(each, 1))[owner], minlength=len(first))
    complete = replace(
        data, rows=rows[first], counts=counts, first=data.first[owner[first]], observed=None, repeats=None,
        given=None if given is None else given[first], cluster=None,
    )  # fmt: skip
    return Completions(complete, owner, row, base)


# -- their shares -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Shares:
    """How much of each observed row every one of its completions has, at some parameters.

    Attributes
    ----------
    observed : Dataset
        As it was read.
    units : Units
        What is independent among the observed rows: these themselves, or clusters of them.
    completions : Completions
    matrix : (v, u) sparse floats
        The share of every complete row in each observed one.
    theta : (p,) floats, optional
        The parameters; none where all completions of a row have equal shares, but for their factors.
    """

    observed: Dataset
    units: Units
    completions: Completions
    matrix: sparse.csr_matrix
    theta: Float[np.ndarray, " p"] | None = None

    @classmethod
    def equal(cls, observed: Dataset, units: Units, completions: Completions) -> Shares:
        """The same for all completions of a row, but for their factors."""
        return cls(observed, units, completions, _shares(completions, len(observed.rows), completions.base))

    def at(self, model: AbstractModel, theta: Float[np.ndarray, " p"]) -> Shares:
        """Those that the model gives."""
        c = self.completions
        log = log_masses(model, theta, c.data)[c.row] + c.base
        return replace(self, matrix=_shares(c, len(self.observed.rows), log), theta=np.asarray(theta))

    def _of_rows(self, weights: Float[np.ndarray, "*batch v"]) -> Float[np.ndarray, "*batch r"]:
        """Weights of observed rows from weights of the units."""
        owner = self.units.owner
        return weights if owner is None else weights[..., owner] * self.observed.counts

    def row_weights(self, weights: Float[np.ndarray, "*batch v"]) -> Float[np.ndarray, "*batch u"]:
        """Weights of complete rows from weights of the units."""
        return np.asarray(self._of_rows(weights) @ self.matrix)

    def row_weights_each(
        self, model: AbstractModel, thetas: Float[np.ndarray, "b p"], weights: Float[np.ndarray, "b v"]
    ) -> Float[np.ndarray, "b u"]:
        """Weights of complete rows from weights of the units, each with the shares that its own parameters give."""
        c, rows = self.completions, self._of_rows(weights)
        order = np.argsort(c.owner, kind="stable")
        of, row = c.owner[order], c.row[order]
        first = np.flatnonzero(np.diff(of, prepend=-1))
        place = np.repeat(np.arange(len(first)), np.diff(first, append=len(of)))
        into = sparse.csr_matrix((np.ones(len(row)), (np.arange(len(row)), row)), (len(row), len(c.data.rows)))
        found = np.empty((len(thetas), len(c.data.rows)))
        size = max(1, NUMBERS_AT_ONCE // len(row))
        for begin in range(0, len(thetas), size):
            part = slice(begin, begin + size)
            log = np.stack([log_masses(model, theta, c.data) for theta in thetas[part]])[:, row] + c.base[order]
            mass = np.exp(log - np.maximum.reduceat(log, first, axis=1)[:, place])
            share = mass / np.add.reduceat(mass, first, axis=1)[:, place]
            found[part] = (share * rows[part][:, of]) @ into
        return found

    def by_unit(self, gradients: Float[np.ndarray, "u p"]) -> Float[np.ndarray, "v p"]:
        """What each unit of weight 1 has of gradients that belong to complete rows."""
        own = self.matrix @ gradients
        if self.units.owner is None:
            return own
        found = np.zeros((len(self.units.weights), own.shape[1]))
        np.add.at(found, self.units.owner, own * self.observed.counts[:, None])
        return found

    def derivative(
        self, gradients: Float[np.ndarray, "u p"], scores: Float[np.ndarray, "u p"]
    ) -> Float[np.ndarray, "p p"]:
        """How the gradient changes because shares do: the rows' covariances of gradients and scores, summed.

        ``gradients`` are the loss's of complete rows, ``scores`` those of their log mass. Added to the Hessian at fixed
        shares it gives the estimating equation's derivative.
        """
        together = (gradients * self.row_weights(self.units.weights)[:, None]).T @ scores
        return together - ((self.matrix @ gradients) * self.observed.counts[:, None]).T @ (self.matrix @ scores)


def _shares(completions: Completions, rows: int, log: Float[np.ndarray, " c"]) -> sparse.csr_matrix:
    """Softmax of the log weights within every observed row."""
    peak = np.full(rows, -np.inf)
    np.maximum.at(peak, completions.owner, log)
    mass = np.exp(log - peak[completions.owner])
    total = np.bincount(completions.owner, weights=mass, minlength=rows)
    share = mass / total[completions.owner]
    shape = (rows, len(completions.data.rows))
    return sparse.csr_matrix((share, (completions.owner, completions.row)), shape=shape)


def _padded(data: Dataset) -> tuple[Array, Array | None]:
    size = padded_size(len(data.rows))
    return filled(data.rows, size), None if data.given is None else filled(data.given, size)


def log_masses(model: AbstractModel, theta: Float[np.ndarray, " p"], data: Dataset) -> Float[np.ndarray, " u"]:
    """Log unnormalised masses of all rows."""
    return np.asarray(_log_masses(model, jnp.asarray(theta), *_padded(data)))[: len(data.rows)]


def scores(model: AbstractModel, theta: Float[np.ndarray, " p"], data: Dataset) -> Float[np.ndarray, "u p"]:
    """The gradients of the rows' log unnormalised masses."""
    return np.asarray(_scores(model, jnp.asarray(theta), *_padded(data)))[: len(data.rows)]


@partial(jax.jit, static_argnums=0)
def _log_masses(model: AbstractModel, theta: Array, rows: Array, given: Array | None) -> Array:
    return model.log_masses(theta, rows, given)


@partial(jax.jit, static_argnums=0)
def _scores(model: AbstractModel, theta: Array, rows: Array, given: Array | None) -> Array:
    def of(row: tuple[Array, Array | None]) -> Array:
        x, z = row
        own = None if z is None else z[None]
        return jax.grad(lambda t: model.log_masses(t, x[None], own)[0])(theta)

    return jax.lax.map(of, (rows, given), batch_size=512)


# -- the loss ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ObjectiveWithMissing(Objective):
    """The loss on completions of rows, whose weights depend on the parameters through ``shares``."""

    shares: Shares = field(kw_only=True)

    @property
    def observed(self) -> Dataset:
        return self.shares.observed

    def imputed_at(self, theta: Any) -> ObjectiveWithMissing:
        _ = self._prepared
        made, shares = copy.copy(self), self.shares.at(self.model, self.model.space.flatten(theta))
        object.__setattr__(made, "shares", shares)
        object.__setattr__(made, "data", replace(self.data, counts=shares.row_weights(shares.units.weights)))
        made.__dict__.pop("own_weights", None)
        return made

    @cached_property
    def units(self) -> Units:
        return self.shares.units

    @property
    def rowwise(self) -> bool:
        return False

    def require_rows(self) -> None:
        raise SettingError("the influence of rows is not known where entries are missing; use missing='drop'")

    def by_rows(self) -> ObjectiveWithMissing:
        data = self.observed
        return replace(self, shares=replace(self.shares, units=Units("rows", data.counts, data.observations)))

    def weigh(self, weights: np.ndarray) -> Any:
        return super().weigh(self.shares.row_weights(np.asarray(weights, float)))

    def unit_gradients(self, theta: Any) -> Float[np.ndarray, "u p"]:
        return self.shares.by_unit(self.row_gradients(theta))

    def weights_derivative(self, theta: Any) -> Float[np.ndarray, "p p"]:
        flat = np.asarray(self.model.space.flatten(theta))
        return self.shares.derivative(self.row_gradients(flat), scores(self.model, flat, self.data))

    def minimise_each(
        self, search: Callable[..., Minima], weights: np.ndarray, around: Minimum, advance: Callable[[int], None]
    ) -> Minima:
        """Shares of completions and minimisers in turn, until no minimiser moves; those of the data to begin with."""
        fixed = Objective(
            self.model, self.data, self.loss, _completed(self.data), self.coordinates, held=self.held
        )  # at weights that are given
        vectors = np.repeat(around.vector[None], len(weights), axis=0)
        values, norms = np.empty(len(weights)), np.empty(len(weights))
        outcomes, moving = np.empty(len(weights), object), np.arange(len(weights))
        for _ in range(40):  # rounds at most
            own = self.shares.row_weights_each(self.model, vectors[moving], weights[moving])
            found = search(fixed, own, around, lambda done: None)
            change = np.abs(found.vectors - vectors[moving]) / (1.0 + np.abs(found.vectors))
            vectors[moving], values[moving], norms[moving] = found.vectors, found.values, found.gradient_norms
            outcomes[moving] = found.outcomes
            moving = moving[change.max(axis=1) >= 1e-5]
            if not len(moving):
                break
        advance(len(weights))
        return Minima(vectors, values, norms, tuple(outcomes))


def _completed(data: Dataset) -> Units:
    return Units("completed rows", data.counts, data.counts)


def objective_with_missing(
    model: AbstractModel, data: Dataset, loss: AbstractLoss, units: Units | None, seed: int
) -> ObjectiveWithMissing:
    """The loss on the completions of data with missing entries, shared out for a first guess."""
    if model.domain.has_integers:
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
    rng, rows = np.random.default_rng(0), data.rows.astype(np.int64)
    for j in range(data.d):
        seen = data.seen[:, j]
        shares = data.counts[seen] / data.counts[seen].sum()
        rows[~seen, j] = rng.choice(rows[seen, j], size=int((~seen).sum()), p=shares)
    begin = Objective(model, replace(data, rows=rows, observed=None), losses.RATIO)
    return np.asarray(begin.space.flatten(first_guess(begin)))


def _objective(
    model: AbstractModel, data: Dataset, loss: AbstractLoss, units: Units | None, parts: list[Any], at: np.ndarray
) -> ObjectiveWithMissing:
    """The loss on completions, weighed as the model has them at some parameters."""
    whole = Units("rows", data.counts, data.observations) if units is None else units
    shares = Shares.equal(data, whole, of_rows(data, parts))
    complete = shares.completions.data
    return ObjectiveWithMissing(model, complete, loss, _completed(complete), shares=shares).imputed_at(at)


def minimised(objective: Objective) -> tuple[Objective, Minimum]:
    """The minimum, and the objective weighed as it is there.

    Where entries are missing, that is at shares of their completions which agree with the minimum and the prior.
    """
    if not isinstance(objective, ObjectiveWithMissing):
        return objective, minimise(objective)
    space = objective.space
    minimum = minimise(objective, objective.shares.theta)
    weighed, at = joint_mode(objective, 1.0, minimum, space.to_y(interior(space, minimum.vector)))
    return weighed, minimise(weighed, np.asarray(space.from_y(at)))


def joint_mode(objective: Objective, beta: float, around: Minimum, y: np.ndarray) -> tuple[Objective, np.ndarray]:
    """The mode of beta D - log pi in the minimiser's coordinates, missing entries weighed as the model has them there.

    Where nothing is missing, the mode alone. Shares of completions follow from the parameters and the parameters from
    the shares: both are found together by Newton's method on the estimating equation, whose derivative is the Hessian
    at fixed shares plus what the shares do; and where that goes astray by minimising at fixed shares in turn, as the EM
    algorithm does.
    """
    if not isinstance(objective, ObjectiveWithMissing):
        return objective, mode(objective, beta, around, y)
    space = objective.space
    lower, upper = around.box_at_y(space)
    aim = SUFFICIENT_GRADIENT * objective.size

    def at(y: np.ndarray) -> tuple[Objective, np.ndarray, np.ndarray, np.ndarray, float]:
        own = objective.imputed_at(space.from_y(y))
        _, gradient, hessian, steep = evaluate(own, y, beta)
        free = free_of(y, gradient, lower, upper)
        size = float(np.linalg.norm(np.where(free, gradient / steep, 0.0)))
        return own, gradient, hessian, np.flatnonzero(free), size

    y = np.clip(y, lower, upper)
    own, gradient, hessian, free, size = at(y)
    for _ in range(60):
        if size <= aim:
            return own, y
        slope = space.slopes_of_y(y)[0]
        full = hessian + beta * slope[:, None] * own.weights_derivative(space.from_y(y)) * slope
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


# -- rows that lack many entries ---------------------------------------------------------------


def _drawn(
    model: AbstractModel, theta: np.ndarray, data: Dataset, which: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Completions by Gibbs sampling at ``theta``; elsewhere they are weighed by the ratio of masses."""
    columns = values_of(data, model.domain)
    values, allowed = side_by_side(columns)
    owner = np.repeat(which, DRAWN_COMPLETIONS)
    rng = np.random.default_rng([seed, 13])
    start = np.array(data.rows[owner], float)
    pick = rng.integers([len(own) for own in columns], size=start.shape)
    start = np.where(data.seen[owner], start, values[np.arange(data.d), pick])
    size = padded_size(len(owner))
    turns = filled(_turns(~data.seen[which])[np.repeat(np.arange(len(which)), DRAWN_COMPLETIONS)], size).astype(int)
    given = None if data.given is None else filled(data.given[owner], size)
    key = jax.random.key(int(rng.integers(2**31)))
    absent = _Absent(model, jnp.asarray(theta), turns.T, jnp.asarray(values), jnp.asarray(allowed), given)
    rows = np.asarray(swept(absent, SWEEPS, key, filled(start, size))[0])[: len(owner)].astype(np.int64)
    chosen = data.at(owner)
    base = -log_masses(model, theta, Dataset(rows, chosen.counts, data.columns, chosen.first, given=chosen.given))
    return rows, owner, base


def _turns(absent: Bool[np.ndarray, "u d"]) -> Int[np.ndarray, "u m"]:
    """Of every row its missing columns, repeated where others lack more: in these turns they are drawn."""
    order, number = np.argsort(~absent, axis=1, kind="stable"), absent.sum(axis=1)
    longest = 2 ** int(number.max() - 1).bit_length()  # which means few compilations
    return np.take_along_axis(order, np.arange(longest) % number[:, None], axis=1)


@terms
class _Absent(Conditionals):
    """Missing entries, those of a turn in all rows side by side."""

    model: AbstractModel
    theta: Float[Array, " p"]
    turns: Int[Array, "m u"]
    values: Float[Array, "d s"]
    allowed: Bool[Array, "d s"]
    given: Float[Array, "u q"] | None

    @property
    def blocks(self) -> Array:
        return self.turns

    def log_masses(self, x: Array, j: Array) -> Float[Array, "u s"]:
        def of(k: Array) -> Array:
            return self.model.log_masses(self.theta, self._with(x, j, self.values[j, k]), self.given)

        return jnp.where(self.allowed[j], jax.lax.map(of, jnp.arange(self.values.shape[1])).T, -jnp.inf)

    def put(self, x: Array, j: Array, place: Array) -> Array:
        return self._with(x, j, self.values[j, place])

    @staticmethod
    def _with(x: Array, j: Array, values: Array) -> Array:
        return x.at[jnp.arange(len(x)), j].set(values)


# -- what was missing --------------------------------------------------------------------------


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


def lost(objective: ObjectiveWithMissing, theta: Any) -> Float[np.ndarray, " p"]:
    """By parameter, the share of its information that is missing, at parameters that agree with the shares."""
    flat = np.asarray(objective.model.space.flatten(theta))
    hessian, lines = objective.hessian(flat), objective.row_gradients(flat)
    _, _, squares = objective.moments(flat)
    full = hessian + objective.shares.derivative(lines, scores(objective.model, flat, objective.data))
    has = sandwich(full, squares)
    had = sandwich(hessian, (lines * objective.data.counts[:, None]).T @ lines)  # of complete rows
    return np.clip(1.0 - np.diag(had) / np.maximum(np.diag(has), 1e-300), 0.0, 1.0)


def described(objective: Objective, theta: Any) -> Imputation | None:
    """What was missing and what that cost; None where nothing was."""
    if not isinstance(objective, ObjectiveWithMissing):
        return None
    data, completions = objective.observed, objective.shares.completions
    number, absent = data.observations, ~data.seen
    sampled = np.unique(completions.owner[completions.base != 0.0])
    return Imputation(
        round(float(number @ absent.sum(axis=1))),
        round(float(number[absent.any(axis=1)].sum())),
        dict(zip(data.columns, map(float, number @ absent / number.sum()), strict=True)),
        round(float(number[sampled].sum())),
        dict(zip(objective.space.names, map(float, lost(objective, theta)), strict=True)),
    )
