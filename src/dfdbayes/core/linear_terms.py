"""Terms whose predictors are linear: value, gradient, Hessian and the gradients of single terms, written once.

With predictors u = A eta(theta) + o, g' the slopes of a term and g'' its second derivatives in its few predictors,

    gradient in eta: sum_i w_i A_i' g_i',    Hessian in eta: sum_i w_i A_i' g_i'' A_i,

and the chain rule leads from eta to theta. A class says how its predictors are made, and what the adjoint of that is;
the terms may come in blocks that are worked on in turn.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .parameters import Rows, Space, Theta
from .sites import Sites
from .terms import (
    BLOCK,
    AbstractTerms,
    Likelihood,
    Loss,
    Model,
    Prepared,
    SecondOrder,
    Site,
    by_row,
    pad,
    padded_size,
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

    def designs_of(self, part: Any) -> Sequence[tuple[int, Float[Array, "n q"]]]:
        """By predictor: where its coefficients begin, and its design."""
        raise NotImplementedError

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


MOST_FACTORS = 1000  # of numbers up to two, whose product is a number


@jax.custom_jvp
def sum_softplus(u: Float[Array, "d w"]) -> Float[Array, " w"]:
    """The sum of softplus(u) over the first axis, with one logarithm for all of a column."""
    if len(u) > MOST_FACTORS:
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
