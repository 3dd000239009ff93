"""Terms whose predictors are linear: value, gradient, Hessian and the gradients of single terms, written once.

With predictors u = A eta(theta) + o, g' the slopes of a term and g'' its second derivatives in its few predictors,

    gradient in eta: sum_i w_i A_i' g_i',    Hessian in eta: sum_i w_i A_i' g_i'' A_i,

and the chain rule leads from eta to theta. A class says how its predictors are made, and what the adjoint of that is;
the terms may come in blocks that are worked on in turn.

Of exponential families the distinct differences of (T, b) are free of the parameters. A row's weight is spread over the
differences that it owns, so an evaluation does not depend on the number of observations. Rows that own the same
differences are interchangeable: where there are very many distinct rows, weights and resamples are of classes of such
rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import sparse

from ..errors import DataError
from .dataset import BLOCKS, ROWS, Sites
from .parameters import Rows, Space, Theta
from .terms import (
    BLOCK,
    AbstractTerms,
    Likelihood,
    Loss,
    Model,
    Prepared,
    SecondOrder,
    Site,
    all_points,
    by_row,
    pad,
    padded_size,
    refuse_blocks,
    static,
    terms,
)

Slopes = Sequence[Array]
"""Of the sum of all terms in each predictor, entry by entry."""
Bends = Mapping[tuple[int, int], Array]
"""Second derivatives in pairs of predictors i >= j that belong to the same terms."""


class AbstractLinear(AbstractTerms):
    """Terms with linear predictors.

    Predictors are arrays whose last axis is that of the weights: rows as a rule. Other axes, if there are any, are
    of several terms of one weight, such as the nodes of a network.
    """

    keeps: ClassVar[bool] = False
    """Whether what is computed of a block is kept for derivatives of the value, rather than computed again."""

    @property
    @abstractmethod
    def parts(self) -> Any:
        """Arrays with an axis of blocks first: what `predictors` and the others are given, block by block."""

    @abstractmethod
    def predictors(self, eta: Array, part: Any) -> tuple[Array, ...]:
        """The predictors of a block."""

    @property
    @abstractmethod
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Which predictors belong to the same terms."""

    @abstractmethod
    def losses(self, loss: Loss, group: int, part: Any) -> Callable[..., Array]:
        """The terms of a group as a function of their predictors."""

    @abstractmethod
    def pullback(self, slopes: Slopes, part: Any) -> Any:
        """A' slopes of a block: what `assembled` makes a gradient of."""

    @abstractmethod
    def gram(self, bends: Bends, part: Any) -> Any:
        """A' bends A of a block: what `assembled` makes a Hessian of."""

    @abstractmethod
    def by_weight(self, slopes: Slopes, part: Any) -> Any:
        """A' slopes for each weight apart, the coefficients last, in the structure of the weights."""

    def coefficients(self, theta: Theta) -> Array:
        """eta: what predictors are linear in."""
        return theta

    def assembled(self, pulled: Any, gram: Any) -> tuple[Array, Array]:
        """Gradient and Hessian in eta, from the sums over blocks."""
        return pulled, gram

    def spread(self, weights: Any) -> tuple[Array, ...]:
        """The weights of each group, in blocks."""
        blocks = jax.tree.leaves(self.parts)[0].shape[0]
        return (weights.reshape(blocks, -1),) * len(self.groups)

    def sums_by_weight(self, loss: Loss, eta: Array, part: Any) -> tuple[Array, ...]:
        """By group: the sum of the terms of each weight."""
        at = self.predictors(eta, part)
        found = (self.losses(loss, g, part)(*(at[i] for i in group)) for g, group in enumerate(self.groups))
        return tuple(each.reshape(-1, each.shape[-1]).sum(axis=0) if each.ndim > 1 else each for each in found)

    # -- what follows --------------------------------------------------------------------------

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        eta = self.coefficients(theta)
        found = over_blocks(lambda part: self.sums_by_weight(loss, eta, part), self.parts, self.keeps)
        return sum((jnp.vdot(w, each) for w, each in zip(self.spread(weights), found, strict=True)), jnp.zeros(()))

    def second_order(self, loss: Loss, theta: Theta, weights: Any) -> SecondOrder:
        eta = self.coefficients(theta)

        def of_block(block: tuple[Any, tuple[Array, ...]]) -> tuple[Array, Any, Any]:
            part, weights = block
            at = self.predictors(eta, part)
            total, slopes = jnp.zeros(()), [jnp.zeros(())] * len(at)
            bends: dict[tuple[int, int], Array] = {}
            for g, (group, w) in enumerate(zip(self.groups, weights, strict=True)):
                value, first, second = derivatives(self.losses(loss, g, part), [at[i] for i in group])
                w = w.reshape((1,) * (value.ndim - 1) + w.shape)
                total = total + jnp.sum(w * value)
                for a, i in enumerate(group):
                    slopes[i] = w * first[a]
                    bends |= {(i, j): w * second[a][b] for b, j in enumerate(group[: a + 1])}
            return total, self.pullback(slopes, part), self.gram(bends, part)

        value, pulled, gram = summed(of_block, (self.parts, self.spread(weights)))
        return self._in_theta(eta, theta, value, *self.assembled(pulled, gram))

    def _in_theta(self, eta: Array, theta: Theta, value: Array, gradient: Array, hessian: Array) -> SecondOrder:
        """The same in the parameters, by the chain rule."""
        if eta is theta:
            return value, gradient, hessian
        slope = jax.jacfwd(self.coefficients)(theta)
        bend = jax.hessian(lambda t: jnp.dot(self.coefficients(t), gradient))(theta)
        return value, gradient @ slope, slope.T @ hessian @ slope + bend

    def per_term_gradients(self, loss: Loss, theta: Theta, weights: Any, at_once: int) -> Any:
        eta = self.coefficients(theta)

        def of_block(part: Any) -> Any:
            at = self.predictors(eta, part)
            slopes = [jnp.zeros(())] * len(at)
            for g, group in enumerate(self.groups):
                function, own = self.losses(loss, g, part), [at[i] for i in group]
                for a, i in enumerate(group):
                    slopes[i] = along(function, a)(*own)[1]
            return self.by_weight(slopes, part)

        found = over_blocks(of_block, self.parts)
        found = jax.tree.map(lambda each: each.reshape(-1, each.shape[-1]), found)
        return found if eta is theta else jax.tree.map(lambda each: each @ jax.jacfwd(self.coefficients)(theta), found)


def along(function: Callable[..., Any], k: int) -> Callable[..., tuple[Any, Any]]:
    """A function of every term's own predictors, with its slopes in one of them."""

    def both(*at: Array) -> tuple[Any, Any]:
        return jax.jvp(lambda value: function(*at[:k], value, *at[k + 1 :]), (at[k],), (jnp.ones_like(at[k]),))

    return both


def derivatives(function: Callable[..., Array], at: Sequence[Array]) -> tuple[Array, list[Array], list[list[Array]]]:
    """Values of terms, their slopes in each predictor, and second derivatives in pairs i >= j of them."""
    # ((value, slope in i), (slope in j, second derivative))
    twice = [[along(along(function, i), j)(*at) for j in range(i + 1)] for i in range(len(at))]
    first = [pairs[0][0][1] for pairs in twice]
    return twice[0][0][0][0], first, [[pair[1][1] for pair in pairs] for pairs in twice]


def over_blocks(function: Callable[[Any], Any], parts: Any, keeps: bool = False) -> Any:
    """A function of every block, the results with an axis of blocks first; see `AbstractLinear.keeps`."""
    if jax.tree.leaves(parts)[0].shape[0] == 1:
        return jax.tree.map(lambda each: each[None], function(jax.tree.map(lambda each: each[0], parts)))
    return jax.lax.map(function if keeps else jax.checkpoint(function), parts)


def summed(function: Callable[[Any], Any], parts: Any) -> Any:
    """The sum over blocks of what a function makes of each, while it is near the processor."""
    first = jax.tree.map(lambda each: each[0], parts)
    if jax.tree.leaves(parts)[0].shape[0] == 1:
        return function(first)
    none = jax.tree.map(lambda each: jnp.zeros(each.shape, each.dtype), jax.eval_shape(function, first))
    return jax.lax.scan(lambda sums, part: (jax.tree.map(jnp.add, sums, function(part)), None), none, parts)[0]


# -- explicit designs --------------------------------------------------------------------------


class Designs(AbstractLinear):
    """A design for each predictor, whose coefficients lie side by side among those of all."""

    @abstractmethod
    def designs_of(self, part: Any) -> Sequence[tuple[int, Float[Array, "n q"]]]:
        """By predictor: where its coefficients begin, and its design."""

    def pullback(self, slopes: Slopes, part: Any) -> Float[Array, " p"]:
        designs = self.designs_of(part)
        found = jnp.zeros(_width(designs))
        for (first, design), slope in zip(designs, slopes, strict=True):
            found = found.at[first : first + design.shape[1]].add(slope @ design)
        return found

    def gram(self, bends: Bends, part: Any) -> Float[Array, "p p"]:
        designs = self.designs_of(part)
        found = jnp.zeros((_width(designs),) * 2)
        for (i, j), bend in bends.items():
            (first, one), (other, two) = designs[i], designs[j]
            product = one.T @ (bend[:, None] * two)
            place = slice(first, first + one.shape[1]), slice(other, other + two.shape[1])
            found = found.at[place].add(product)
            if i != j:
                found = found.at[place[::-1]].add(product.T)
        return found

    def by_weight(self, slopes: Slopes, part: Any) -> Any:
        designs = self.designs_of(part)
        found = jnp.zeros((designs[0][1].shape[0], _width(designs)))
        for (first, design), slope in zip(designs, slopes, strict=True):
            found = found.at[:, first : first + design.shape[1]].add(slope[:, None] * design)
        return found


def _width(designs: Sequence[tuple[int, Array]]) -> int:
    return max(first + design.shape[1] for first, design in designs)


@terms
class Dense(Designs):
    """Predictors by explicit designs: each a term of its own, the log-ratio to a neighbour.

    Attributes
    ----------
    designs : arrays (n, p)
        Of each predictor.
    offsets : arrays (n,)
    sites : Sites
        Of each predictor; none where these are not log-ratios to neighbours.
    apart : bool
        Whether each predictor has weights of its own, rather than one for each row.
    """

    model: Any
    designs: tuple[Float[Array, "n p"], ...]
    offsets: tuple[Float[Array, " n"], ...]
    sites: tuple[Site, ...]
    apart: bool = static()

    @property
    def parts(self) -> Any:
        return jax.tree.map(lambda each: each[None], (self.designs, self.offsets, self.sites))

    def coefficients(self, theta: Theta) -> Array:
        found: Array = self.model.coefficients(theta)
        return found

    def predictors(self, eta: Array, part: Any) -> tuple[Array, ...]:
        return tuple(design @ eta + offset for design, offset in zip(*part[:2], strict=True))

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        return tuple((i,) for i in range(len(self.designs)))

    def losses(self, loss: Loss, group: int, part: Any) -> Callable[..., Array]:
        return lambda u: loss.term(u, part[2][group])

    def designs_of(self, part: Any) -> Sequence[tuple[int, Float[Array, "n p"]]]:
        return [(0, design) for design in part[0]]

    def spread(self, weights: Any) -> tuple[Array, ...]:
        each = weights if self.apart else (weights,) * len(self.groups)
        return tuple(own[None] for own in each)

    def by_weight(self, slopes: Slopes, part: Any) -> Any:
        if not self.apart:
            return super().by_weight(slopes, part)
        return tuple(slope[:, None] * design for slope, design in zip(slopes, part[0], strict=True))

    def row_ratios(self, theta: Theta) -> Float[Array, "n d"]:
        """Of terms by row: predictors are the ratios of its moves."""
        if self.apart:
            return super().row_ratios(theta)
        below = [site.minus for site in self.sites]
        log = self.predictors(self.coefficients(theta), (self.designs, self.offsets))
        return jnp.stack([jnp.where(m != 0, jnp.exp(u), 0.0) for m, u in zip(below, log, strict=True)], axis=1)


@terms
class Choices(Dense):
    """One of several values each, given the rest: predictors are the log odds of the others against the value."""

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        return (tuple(range(len(self.designs))),)

    def losses(self, loss: Loss, group: int, part: Any) -> Callable[..., Array]:
        return lambda *odds: loss.term(-log_one_and(odds), None)

    def spread(self, weights: Any) -> tuple[Array, ...]:
        return (weights[None],)


class LinearModel(Model, Protocol):
    """What `LinearLikelihood` needs of a model."""

    @property
    def row_space(self) -> Space: ...
    def of_predictors(self, predictors: Rows) -> Rows: ...


@terms
class LinearLikelihood(Designs, Likelihood):
    """Rows whose distribution depends on a few numbers, each with a formula: its derivatives in these are enough."""

    model: LinearModel
    value = Likelihood.value

    @property
    def parts(self) -> Any:
        rows = (self.context, self.rows, self.fixed)
        blocks = len(self.rows) // BLOCK if len(self.rows) > BLOCK else 1
        return jax.tree.map(lambda each: each.reshape(blocks, -1, *each.shape[1:]), rows)

    def predictors(self, eta: Array, part: Any) -> tuple[Array, ...]:
        return tuple(self.model.space.predictors(self.model.space.unflatten(eta), part[0]).values())

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        return (tuple(range(len(self.model.row_space.parameters))),)

    def losses(self, loss: Loss, group: int, part: Any) -> Callable[..., Array]:
        names = [p.name for p in self.model.row_space.parameters]

        def of(*values: Array) -> Array:
            at = self.model.of_predictors(dict(zip(names, values, strict=True)))
            return loss.term(self.log_probabilities(at, *part[1:]), None)

        return of

    def designs_of(self, part: Any) -> Sequence[tuple[int, Float[Array, "n q"]]]:
        matrices = self.model.space.matrices(part[0])
        first = np.cumsum([0, *(matrix.shape[1] for matrix in matrices)])
        return list(zip(map(int, first[:-1]), matrices, strict=True))


def log_one_and(odds: Sequence[Array]) -> Array:
    """log(1 + sum of exp(odds)), entry by entry."""
    return (
        softplus(odds[0]) if len(odds) == 1 else jax.nn.logsumexp(jnp.stack([jnp.zeros_like(odds[0]), *odds]), axis=0)
    )


@jax.custom_jvp
def softplus(u: Array) -> Array:
    """log(1 + exp(u)); twice as fast as `jax.nn.softplus`, which also looks after infinities."""
    return jnp.maximum(u, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(u)))


@softplus.defjvp
def _softplus_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Array, Array]:
    """The logistic function, which is smooth: the corner of |u| at zero has no second derivative of its own."""
    return softplus(primals[0]), 0.5 * (1.0 + jnp.tanh(0.5 * primals[0])) * tangents[0]


@jax.custom_jvp
def sum_softplus(u: Float[Array, "d w"]) -> Float[Array, " w"]:
    """The sum of softplus(u) over the first axis, with one logarithm for all of a column."""
    # the product of 1000 numbers up to two is a number, of 1100 it is none
    if len(u) > 1000:
        return jnp.sum(softplus(u), axis=0)
    return jnp.sum(jnp.maximum(u, 0.0), axis=0) + jnp.log(jnp.prod(1.0 + jnp.exp(-jnp.abs(u)), axis=0))


@sum_softplus.defjvp
def _sum_softplus_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Array, Array]:
    return sum_softplus(primals[0]), jnp.sum(jax.nn.sigmoid(primals[0]) * tangents[0], axis=0)


# -- rows that are single values ---------------------------------------------------------------


@dataclass(frozen=True)
class Features:
    """Value c of row i has log mass F_ic . theta + a_ic, up to a constant of the row: F and a, by row and value."""

    of: Float[np.ndarray, "u k p"]
    base: Float[np.ndarray, "u k"]

    def odds(self, rows: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of values (u, m) against those of the rows (u, 1): designs (u, m, p) and offsets (u, m)."""
        row = np.arange(len(self.of))[:, None]
        return self.of[row, values] - self.of[row, rows], self.base[row, values] - self.base[row, rows]

    def neighbours(self, model: Any, sites: Sites, size: Callable[[int], int] = padded_size) -> Prepared:
        """The log-ratios to all other values; each is a decrement and an increment (`Domain.moves`)."""
        return self._made(Dense, model, sites, size(len(sites.rows)))

    def choices(self, model: Any, sites: Sites, size: Callable[[int], int] = padded_size) -> Prepared:
        """The probability of each row's value among all: multinomial logistic regression."""
        return self._made(Choices, model, sites, size(len(sites.rows)))

    def _made(self, kind: type[Dense], model: Any, sites: Sites, size: int) -> Prepared:
        designs, offsets = (pad(part, size) for part in self.odds(sites.rows, sites.down))
        # What a move down leads to, one up leads to as well: one place before is as many places after as are left.
        scales = zip(pad(sites.minus, size).T, pad(sites.plus, size)[:, ::-1].T, strict=True)
        split = tuple(np.moveaxis(designs, 1, 0)), tuple(offsets.T), tuple(Site(*each) for each in scales)
        by_move, offset, site = jax.device_put(split)
        return by_row(sites, kind(model, by_move, offset, site, apart=False), size)


MANY_ROWS = 2**16  # distinct rows beyond which those with the same terms are one, and resamples are drawn in buckets
Differences = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class Exponential(Model, Protocol):
    """What these terms need of an exponential family."""

    @property
    def T(self) -> Callable[[Array], Array]: ...
    @property
    def differences(self) -> Differences | None: ...
    def base(self, x: Array) -> Array: ...
    def coefficients(self, theta: Theta) -> Array: ...


def neighbours(model: Exponential, sites: Sites) -> Prepared:
    """Distinct differences to the decrement and to the increment, each with weights of its own."""
    units, sites = _classes(model, sites)
    minus, plus = neighbour_differences(model, sites)
    parts = [owned(minus, sites, sites.minus, sites.j), owned(plus, sites, sites.plus, sites.j)]
    one = jnp.ones(())
    designs, offsets = zip(*(_padded(lines) for lines, _ in parts), strict=True)
    made = Dense(model, designs, offsets, (Site(one, None), Site(None, one)), apart=True)
    return _prepared(made, [incidence for _, incidence in parts], units)


def choices(model: Exponential, sites: Sites) -> Prepared:
    """Distinct differences from a point to each other state of a coordinate; all coordinates have the same states."""
    units, sites = _classes(model, sites)
    levels, j = np.asarray(model.domain.coordinate(0).levels), np.arange(model.domain.d)
    own = np.searchsorted(levels, sites.rows)
    others = [levels[(own + step) % len(levels)] for step in range(1, len(levels))]
    lines = np.concatenate([all_differences(model, sites.rows, other, j) for other in others], axis=1)
    found, incidence = owned(lines, sites, np.ones(sites.rows.shape), j)
    parts = [_padded(part) for part in np.split(found, len(others), axis=1)]
    designs, offsets = zip(*parts, strict=True)
    return _prepared(Choices(model, designs, offsets, (), apart=False), [incidence], units)


def _prepared(made: Dense, incidences: list[sparse.csr_matrix], units: np.ndarray | None) -> Prepared:
    """Terms, and which unit owns how much of them."""

    def term_weights(weights: np.ndarray) -> Any:
        found = [pad(np.asarray(weights @ owns), padded_size(owns.shape[1]), axis=-1) for owns in incidences]
        return jax.device_put(tuple(found) if made.apart else found[0])

    def gradient_by_unit(gradients: Any) -> np.ndarray:
        each = zip(incidences, gradients if made.apart else [gradients], strict=True)
        return sum(owns @ np.asarray(part)[: owns.shape[1]] for owns, part in each)

    return Prepared(made, term_weights, units, gradient_by_unit=gradient_by_unit)


def decrements(model: Exponential, sites: Sites) -> tuple[Dense, int, np.ndarray]:
    """Distinct differences to the decrement, how many there are, and which of them each site has (-1 for none)."""
    exists = sites.minus != 0
    found, inverse = fold(all_differences(model, sites.rows, sites.down, sites.j)[exists.reshape(-1)])
    index = np.full(exists.shape, -1, dtype=np.int64)
    index[exists] = inverse
    design, offset = _padded(found)
    return Dense(model, (design,), (offset,), (Site(jnp.ones(()), None),), apart=True), len(found), index


def likelihood(model: Exponential, sites: Sites) -> Prepared:
    """Sums of statistics, and the constant: by the model's formula, or from statistics of all points."""
    refuse_blocks(sites)
    T, b = statistics(model, sites.rows)

    def term_weights(weights: np.ndarray) -> tuple[Array, ...]:
        rows = sites.of_rows(weights)
        return jax.device_put((rows @ T, rows @ b, rows.sum(axis=-1)))

    def gradient_by_unit(gradients: Any) -> np.ndarray:
        of_T, of_b, of_n = map(np.asarray, gradients)
        return sites.by_unit(T @ of_T + np.outer(b, of_b) + of_n)

    points, multiplicity = np.zeros((0, T.shape[1] + 1)), np.zeros(0)
    if model.log_normaliser is None:
        points, inverse = fold(np.column_stack(statistics(model, all_points(model))))
        multiplicity = np.log(np.bincount(inverse))
    made = SummedLikelihood(model, *jax.device_put((points[:, :-1], points[:, -1] + multiplicity)))
    return Prepared(made, term_weights, gradient_by_unit=gradient_by_unit)


@terms
class SummedLikelihood(AbstractTerms):
    """Distinct statistics of all points with their log multiplicities; none where the model knows its constant.

    Weights are the sums of T, of b and of 1 over rows.
    """

    model: Exponential
    T: Float[Array, "s k"]
    b: Float[Array, " s"]

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        T, b, n = weights
        eta, known = self.model.coefficients(theta), self.model.log_normaliser
        if known is not None:
            constant = known(self.model.space.unflatten(theta))
        else:
            constant = jax.nn.logsumexp(self.T @ eta + self.b)
        return loss.term(jnp.dot(T, eta) + b - n * constant, None)


def _classes(model: Exponential, sites: Sites) -> tuple[np.ndarray | None, Sites]:
    """Where there are very many rows: how many there are of each class of interchangeable ones, and one of each."""
    if len(sites.rows) <= MANY_ROWS or sites.units.kind != ROWS or sites.data.repeats is not None:
        return None, sites
    first, classes = _interchangeable(model, sites)
    return np.bincount(classes, weights=sites.data.counts), sites.at(first)


# -- statistics and their differences ----------------------------------------------------------


@partial(jax.jit, static_argnums=0)
def _statistics(model: Exponential, rows: Array) -> tuple[Array, Array]:
    return jax.vmap(lambda x: (jnp.asarray(model.T(x)), model.base(x)))(rows)


def statistics(model: Exponential, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """T and b of every row."""
    T, b = _statistics(model, pad(rows.astype(float), padded_size(len(rows))))
    return np.asarray(T)[: len(rows)], np.asarray(b)[: len(rows)]


def _differences(model: Exponential, rows: np.ndarray, moved: np.ndarray, j: int) -> np.ndarray:
    """Columns T(x with x_j moved) - T(x), then the same of b."""
    there = rows.astype(float)
    there[:, j] = moved
    (T0, b0), (T1, b1) = statistics(model, rows), statistics(model, there)
    return np.column_stack([T1 - T0, b1 - b0])


def all_differences(model: Exponential, rows: np.ndarray, moved: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Differences of T and b, one line for each row and move; ``j`` has the coordinate of each move."""
    if model.differences is None:
        parts = [_differences(model, rows, values, i) for i, values in zip(j, moved.T, strict=True)]
        return np.stack(parts, axis=1).reshape(moved.size, -1)
    rounds = np.flatnonzero(np.diff(j) <= 0) + 1  # between them no coordinate is moved twice
    pieces = zip(np.split(moved, rounds, axis=1), np.split(j, rounds), strict=True)
    return np.concatenate([_at_once(model.differences, rows, *piece) for piece in pieces], axis=1).reshape(
        moved.size, -1
    )


def _at_once(differences: Differences, rows: np.ndarray, moved: np.ndarray, j: np.ndarray) -> np.ndarray:
    """The model's own differences, of moves of different coordinates."""
    if len(j) == rows.shape[1]:
        T, b = differences(rows, moved)
        return np.concatenate([T, b[..., None]], axis=-1)
    all_moved = rows.copy()
    all_moved[:, j] = moved
    return _at_once(differences, rows, all_moved, np.arange(rows.shape[1]))[:, j]


def neighbour_differences(model: Exponential, sites: Sites) -> tuple[np.ndarray, np.ndarray]:
    """Differences to the decrement and to the increment, one line for each row and move."""
    minus = all_differences(model, sites.rows, sites.down, sites.j)
    same = np.array_equal(sites.down, sites.up)
    return minus, minus if same else all_differences(model, sites.rows, sites.up, sites.j)


def _padded(lines: np.ndarray) -> tuple[Array, Array]:
    full = pad(lines, padded_size(len(lines)))
    return jax.device_put((full[:, :-1], full[:, -1]))


# -- distinct lines, and who owns them ---------------------------------------------------------


def fold(lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct lines of a table, and which one each line is."""
    key = np.zeros(len(lines), dtype=np.int64)
    for column in lines.T:  # one integer for each line: sorting integers is much faster than sorting lines
        values, code = np.unique(column + 0.0, return_inverse=True)
        if len(values) > 1:
            _, key = np.unique(key * len(values) + code, return_inverse=True)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return lines[first], inverse


def owned(lines: np.ndarray, sites: Sites, scale: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, sparse.csr_matrix]:
    """Distinct lines of a (rows x moves) table, and how much of each of them a unit of weight 1 owns."""
    units, amount = sites.units, scale.reshape(-1)
    if units.owner is None:
        owner = np.repeat(np.arange(len(sites.rows)), len(j))
    elif units.kind == BLOCKS:
        owner = units.owner[j]
    else:
        owner, amount = np.repeat(units.owner, len(j)), amount * np.repeat(sites.data.counts, len(j))
    kept = scale.reshape(-1) != 0
    lines, owner, amount = lines[kept], owner[kept], amount[kept]
    if not len(lines):
        return lines, sparse.csr_matrix((len(units.weights), 0))
    distinct, inverse = fold(lines)
    return distinct, sparse.csr_matrix((amount, (owner, inverse)), shape=(len(units.weights), len(distinct)))


def _interchangeable(model: Exponential, sites: Sites) -> tuple[np.ndarray, np.ndarray]:
    """A first row of each class of rows that own the same differences, and the class of every row.

    Rows are compared by a sum of scrambled bits of their differences, 64 of them to sort by and 64 to make sure.
    """
    keys: list[np.ndarray] = []
    checks: list[np.ndarray] = []
    for part in sites.in_slices(2**13):
        minus, plus = neighbour_differences(model, part)
        down, up = (
            np.where(scale.reshape(-1) != 0, _scrambled(lines, salt) ^ _bits(scale.reshape(-1)), np.uint64(0))
            for lines, scale, salt in ((minus, part.minus, 1), (plus, part.plus, 2))
        )
        keys.append((down + up).reshape(part.down.shape).sum(axis=1))
        checks.append((_mixed(down) + _mixed(up)).reshape(part.down.shape).sum(axis=1))
    _, first, classes = np.unique(np.concatenate(keys), return_index=True, return_inverse=True)
    check = np.concatenate(checks)
    if not np.array_equal(check[first][classes], check):  # once in 10^5 data sets of 10^7 distinct rows
        raise DataError("two different rows look alike; leave one observation out")
    return first, classes


def _bits(values: np.ndarray) -> np.ndarray:
    return (values - 1.0 + 0.0).view(np.uint64)  # a scale of 1 changes nothing


def _scrambled(lines: np.ndarray, salt: int) -> np.ndarray:
    """64 bits for each line of numbers; columns of zeros cost nothing."""
    total = np.full(len(lines), salt, dtype=np.uint64)
    for k, column in enumerate(lines.T):
        if column.any():
            bits = (column + 0.0).view(np.uint64) * np.uint64((2 * k + 3) * 0x9E3779B97F4A7C15 % 2**64)
            total += _mixed(bits)
    return _mixed(total)


def _mixed(bits: np.ndarray) -> np.ndarray:
    bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    return bits ^ (bits >> np.uint64(29))
