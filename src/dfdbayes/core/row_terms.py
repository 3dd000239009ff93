"""Tables of rows with covariates: each has parameters of its own, so the distinct rows and their covariates are kept.

Rows are worked on in blocks that fit near the processor, so that the memory of a gradient or a Hessian is a block's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..errors import ModelError
from .log_mass_errors import without_constant
from .parameters import Rows, Theta, over_rows
from .sites import Sites
from .terms import (
    AbstractConditionals,
    AbstractLikelihood,
    AbstractTable,
    Prepared,
    SecondOrder,
    by_row,
    candidates,
    coarse_size,
    filled,
    pad,
    padded_size,
    ratios,
    table,
)

if TYPE_CHECKING:
    from .model import AbstractModel

BLOCK = 2**14  # rows that are worked on together,
AT_ONCE = 4  # and parameters for which that is done while they are near the processor


def _covariates(sites: Sites, size: int) -> Array:
    """Covariates of every row; those of the first row stand in for padding."""
    assert sites.given is not None
    return filled(sites.given, size)


def _size(sites: Sites) -> int:
    """A standard number of rows, of few where they are short; a standard number of whole blocks beyond one."""
    rows, columns = sites.rows.shape
    if rows > BLOCK:
        return padded_size(-(-rows // BLOCK)) * BLOCK
    return coarse_size(rows) if columns == 1 else padded_size(rows)


def _in_blocks(function: Callable[..., Array], parts: tuple[Array, ...]) -> Array:
    """A function of arrays of rows, block by block, its results side by side along the first axis."""
    rows = parts[0].shape[0]
    if rows <= BLOCK:
        return function(*parts)
    found = jax.lax.map(jax.checkpoint(lambda block: function(*block)), _blocks(parts))
    return found.reshape(rows, *found.shape[2:])


def _blocks(parts: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(part.reshape(-1, BLOCK, *part.shape[1:]) for part in parts)


@table
class RowTable(AbstractTable):
    """Distinct rows, each coordinate's neighbours, and covariates."""

    model: AbstractModel
    rows: Float[Array, "u d"]
    down: Float[Array, "u m"]
    up: Float[Array, "u m"]
    minus: Float[Array, "u m"]
    plus: Float[Array, "u m"]
    given: Float[Array, "u q"]

    @staticmethod
    def of(model: AbstractModel, sites: Sites) -> Prepared:
        size = _size(sites)
        moves = (filled(part, size) for part in (sites.rows, sites.down, sites.up))
        scales = (jnp.asarray(pad(part, size)) for part in (sites.minus, sites.plus))
        parts = (*moves, *scales, _covariates(sites, size))
        return by_row(sites, RowTable(model, *parts), size)

    def log_ratios(self, theta: Theta) -> tuple[Array, Array]:
        named, model = self.model.space.unflatten(theta), self.model

        def of_row(row: Rows, x: Array, down: Array, up: Array) -> Array:
            here = model.log_mass_at(row, x)
            there = jax.vmap(lambda j, value: model.log_mass_at(row, x.at[j].set(value)))
            j = self.model.domain.moves[: len(down)]  # on the domain wrapped around the first of every coordinate
            return jnp.stack([there(j, down) - here, here - there(j, up)])

        def of_block(given: Array, rows: Array, down: Array, up: Array) -> Array:
            parameters = self.model.at_rows(named, given)
            return over_rows(of_row, parameters, len(given), self.model.ranks, rows, down, up)

        found = _in_blocks(of_block, (self.given, self.rows, self.down, self.up))
        return found[:, 0], found[:, 1]

    def total(self, minus: Array, plus: Array, weights: Any) -> Float[Array, ""]:
        return jnp.dot(weights, jnp.sum(self.minus * minus + self.plus * plus, axis=1))

    def row_ratios(self, theta: Theta) -> Float[Array, "u d"]:
        return ratios(self.minus, self.log_ratios(theta)[0])


@table
class RowLikelihood(AbstractLikelihood):
    """Distinct rows and covariates, and what of the rows' log masses no parameter changes."""

    model: AbstractModel
    rows: Float[Array, "u d"]
    given: Float[Array, "u q"]
    fixed: Float[Array, " u"]

    @staticmethod
    def of(model: AbstractModel, sites: Sites) -> Prepared:
        if not model.supports("likelihood"):
            told = without_constant(model)
            raise ModelError(f"the likelihood of '{model.name}' needs a sum over too many points. {told}")
        size = _size(sites)
        fixed = filled(model.fixed(sites.rows), size)
        made = RowLikelihood(model, filled(sites.rows, size), _covariates(sites, size), fixed)
        return by_row(sites, made, size)

    @property
    def at_once(self) -> int | None:
        """How many parameters to evaluate side by side, where rows come in blocks."""
        return AT_ONCE if len(self.rows) > BLOCK else None

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        return self.given, self.rows, self.fixed

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        named = self.model.space.unflatten(theta)

        def of_block(given: Array, rows: Array, fixed: Array) -> Array:
            return self._losses(self.model.space.predictors(named, given), rows, fixed)

        return jnp.dot(weights, _in_blocks(of_block, self.parts))

    def second_order(self, theta: Theta, weights: Any) -> SecondOrder | None:
        """By derivatives in the predictors of each row, of which there are a few, however many the coefficients."""
        if not self.model.is_linear:
            return None
        named = self.model.space.unflatten(theta)

        def of_block(given: Array, rows: Array, fixed: Array, weights: Array) -> SecondOrder:
            designs = self.model.space.matrices(given)
            losses, at = self._at(named, given, rows, fixed)
            several = range(len(at))
            # of pairs of predictors: ((losses, slopes in the first), (slopes in the second, second derivatives))
            twice = [[_along(_along(losses, i), j)(*at) for j in range(i + 1)] for i in several]
            gradient = [designs[i].T @ (weights * twice[i][0][0][1]) for i in several]
            lower = [
                [designs[i].T @ ((weights * twice[i][j][1][1])[:, None] * designs[j]) for j in range(i + 1)]
                for i in several
            ]
            hessian = [[lower[i][j] if j <= i else lower[j][i].T for j in several] for i in several]
            return jnp.dot(weights, twice[0][0][0][0]), jnp.concatenate(gradient), jnp.block(hessian)

        parts = (*self.parts, weights)
        if len(self.rows) <= BLOCK:
            return of_block(*parts)
        found = jax.lax.map(lambda block: of_block(*block), _blocks(parts))
        return jax.tree.map(lambda part: jnp.sum(part, axis=0), found)

    def lines(self, theta: Theta) -> Float[Array, "u p"] | None:
        if not self.model.is_linear:
            return None
        named = self.model.space.unflatten(theta)

        def of_block(given: Array, rows: Array, fixed: Array) -> Array:
            losses, at = self._at(named, given, rows, fixed)
            slopes = [_along(losses, k)(*at)[1] for k in range(len(at))]
            designs = self.model.space.matrices(given)
            return jnp.concatenate([slope[:, None] * part for slope, part in zip(slopes, designs, strict=True)], axis=1)

        return _in_blocks(of_block, self.parts)

    def _losses(self, predictors: Rows, rows: Array, fixed: Array) -> Float[Array, " u"]:
        at = self.model.of_predictors(predictors)
        constants = self.model.log_constants(at, len(rows))
        assert constants is not None
        found = constants - self.model.log_masses_at(at, rows, fixed)
        # What is no number counts as far too much. The choice also keeps the sum that follows out of the loop over
        # rows: compiled together with it that loop falls into dozens.
        return jnp.where(jnp.isnan(found), jnp.inf, found)

    def _at(
        self, named: dict[str, Array], given: Array, rows: Array, fixed: Array
    ) -> tuple[Callable[..., Array], tuple[Array, ...]]:
        """Losses of rows as a function of their predictors, and these."""
        predictors = self.model.space.predictors(named, given)

        def of(*values: Array) -> Array:
            return self._losses(dict(zip(predictors, values, strict=True)), rows, fixed)

        return of, tuple(predictors.values())


def _along(function: Callable[..., Any], k: int) -> Callable[..., tuple[Any, Any]]:
    """A function of every row's own predictors, with its slopes in one of them."""

    def both(*at: Array) -> tuple[Any, Any]:
        return jax.jvp(lambda value: function(*at[:k], value, *at[k + 1 :]), (at[k],), (jnp.ones_like(at[k]),))

    return both


@table
class RowConditionals(AbstractConditionals):
    """Distinct rows and covariates, and the candidate values of each coordinate."""

    model: AbstractModel
    rows: Float[Array, "u d"]
    given: Float[Array, "u q"]
    values: Float[Array, "d s"]
    allowed: Bool[Array, "d s"]

    @staticmethod
    def of(model: AbstractModel, sites: Sites) -> Prepared:
        size = _size(sites)
        values, allowed = candidates(model.domain, sites.rows)
        made = RowConditionals(
            model, filled(sites.rows, size), _covariates(sites, size), jnp.asarray(values), jnp.asarray(allowed)
        )
        return by_row(sites, made, size)

    def value(self, theta: Theta, weights: Any) -> Float[Array, ""]:
        named, model = self.model.space.unflatten(theta), self.model

        def of_row(row: Rows, x: Array) -> Array:
            here = model.log_mass_at(row, x)

            def of_coordinate(j: Array, values: Array, allowed: Array) -> Array:
                log = jax.vmap(lambda value: model.log_mass_at(row, x.at[j].set(value)))(values)
                return jax.nn.logsumexp(jnp.where(allowed, log - here, -jnp.inf))

            return jnp.sum(jax.vmap(of_coordinate)(jnp.arange(x.shape[0]), self.values, self.allowed))

        def of_block(given: Array, rows: Array) -> Array:
            return over_rows(of_row, self.model.at_rows(named, given), len(given), self.model.ranks, rows)

        return jnp.dot(weights, _in_blocks(of_block, (self.given, self.rows)))
