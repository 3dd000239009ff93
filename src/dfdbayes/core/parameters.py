"""Named parameters: their priors, their supports, and the coordinates the algorithms work in.

Four letters stand for the same four things in every file:

``theta``
    the parameters as the model writes them, flat or by name;
``v``
    the coordinates of the priors and of the calibration: theta itself, but the root of a parameter that is declared
    as a square (then theta = v^2, and the prior is the root's);
``z``
    unconstrained coordinates of v, in which posteriors are sampled;
``y``
    the minimiser's coordinates: like ``z``, but a parameter that may lie *on* the edge of its
    support (an interaction that may be exactly zero) is left as it is and bounded instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from .._util.resources import require_unforked
from ..errors import ModelError
from .log_mass_errors import in_words
from .priors import Mirrored, Ordered, quantiles

Theta = Float[Array, " p"]
Named = dict[str, Any]
Rows = dict[str, Array]
"""By name, one entry for each row, or one without a leading axis that all rows share."""

LOCATION, SHAPE, ZEROS, NODE, EDGE, NEIGHBOURS, OTHER = "location", "shape", "zeros", "node", "edge", "neighbours", ""
"""What a parameter does: says where values lie, how they vary, or how many zeros there are; of a network, what a node
has of its own (intercepts, thresholds, also of all sites of a lattice or map), and what two nodes have to do with each
other; of a map, what any site's neighbours do to it."""


@dataclass(frozen=True)
class Parameter:
    """One named parameter, scalar or array.

    Parameters
    ----------
    name : str
    prior : numpyro Distribution
        Univariate priors are used for every entry of an array parameter.
    shape : tuple of int
    lower, upper : float
        What the model allows; the support is that part of it where the prior lives.
    closed : bool
        Whether the ends of the support are themselves allowed values.
    square : bool
        Whether the prior is that of a root, the parameter being its square.
    continues : bool
        Whether losses are defined beyond a closed end of the support, so that they can be calibrated on both sides.
    opened : bool
        Whether the parameter may lie on an end of its support, though it is not ``closed`` here: see `continued`.
    labels : tuple of str
        Names of the entries of an array parameter, in row-major order.
    role : str
        What it does: ``LOCATION``, ``SHAPE``, ``ZEROS``, ``NODE``, ``EDGE``, ``NEIGHBOURS`` or ``OTHER``.
    spread : (float, float)
        Standard deviations of weak priors of its coefficients, on the scale of its link, where it depends on
        covariates: of a constant, and of a slope for one standard deviation of a covariate.
    design : Predictor, optional
        How a row's own parameter follows from covariates, of which this one holds the coefficients.
    """

    name: str
    prior: Any = field(compare=False)
    shape: tuple[int, ...] = ()
    lower: float = -math.inf
    upper: float = math.inf
    closed: bool = False
    square: bool = False
    continues: bool = False
    opened: bool = False
    labels: tuple[str, ...] = field(default=(), compare=False)
    role: str = OTHER
    spread: tuple[float, float] = field(default=(3.0, 2.0), compare=False)
    design: Predictor | None = None
    support: tuple[float, float] = field(init=False)  # of v

    def __post_init__(self) -> None:
        require_name(self.name, "parameter")
        if _is_improper(self.prior):
            raise ModelError(
                f"the prior of '{self.name}' is improper: it has no density with a total probability of 1. Give a "
                "proper one, for example numpyro.distributions.Normal(0, 10)"
            )
        if not isinstance(self.prior, dist.Distribution):
            raise ModelError(
                f"the prior of '{self.name}' is {in_words(self.prior)}; give a NumPyro distribution, "
                "for example numpyro.distributions.Normal(0, 1)"
            )
        if self.prior.is_discrete:
            raise ModelError(f"the prior of '{self.name}' is discrete; parameters need continuous priors")
        lower, upper = _support(self.prior, self.name)
        if not self.square:
            lower, upper = max(self.lower, lower), min(self.upper, upper)
        object.__setattr__(self, "support", (lower, upper))
        if not self.support[0] < self.support[1]:
            raise ModelError(f"the prior of '{self.name}' has no mass where the model allows the parameter")
        given = tuple(self.prior.batch_shape + self.prior.event_shape)
        if given not in ((), self.shape):
            raise ModelError(f"the prior of '{self.name}' has shape {given}, the parameter {self.shape}")
        if self.labels and len(self.labels) != self.size:
            raise ModelError(f"'{self.name}' has {self.size} entries and {len(self.labels)} labels")

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def link(self) -> str:
        """The scale on which covariates add: "log" of a half-line, "logit" of an interval, or "identity"."""
        return ("identity", "log", "logit")[int(np.isfinite(self.support).sum())]

    def to_link(self, value: Any) -> Any:
        """Values of the parameter on the scale of its link."""
        return _backward(value, *map(np.asarray, self.support))

    def from_link(self, predictor: Any) -> Any:
        """Values of the parameter from linear predictors."""
        return _forward(predictor, *map(np.asarray, self.support))

    @property
    def continued(self) -> Parameter:
        """The same without an edge to lie on.

        That is on the whole line, with the prior mirrored where it ends, if losses go on beyond the edge and the prior
        does not exclude it; otherwise on the open support.
        """
        if self.square or not self.closed:
            return self
        ends = [end for end in self.support if math.isfinite(end)]
        within = replace(self, closed=False, opened=True)
        if not self.continues or len(ends) != 1:
            return within
        beyond = _support(self.prior, self.name) == (-math.inf, math.inf)
        prior = self.prior if beyond else Mirrored(self.prior, ends[0], 1 if self.support[0] == ends[0] else -1)
        if not np.allclose(prior.log_prob(ends[0]), prior.log_prob(ends[0] + 1e-6), atol=0.1):
            return within  # the prior excludes the edge, or rises to it without end
        return replace(self, prior=prior, lower=-math.inf, upper=math.inf, closed=False, continues=False)

    @property
    def entries(self) -> tuple[str, ...]:
        """The name of each entry, as it stands in a summary."""
        if not self.shape:
            return (self.name,)
        labels = self.labels or tuple(",".join(map(str, i)) for i in np.ndindex(self.shape))
        return tuple(f"{self.name}[{label}]" for label in labels)


@dataclass(frozen=True)
class Predictor:
    """How a parameter of a row follows from the row's context: link^-1(Z B + offset).

    Attributes
    ----------
    of : Parameter
        What a row has. The coefficients B, one for each term and entry of it, are a parameter of the same name.
    first, terms : int
        Where its terms begin among the covariates of a row, and how many there are.
    offset : int or None
        The covariate that is added as it is.
    formula : Design
        The terms, also of new data.
    observed : Observed
        The rows that the terms were made of.
    begin : array
        Where the search for the coefficients starts.
    """

    of: Parameter
    first: int
    terms: int
    offset: int | None
    constant: bool
    """Whether the formula is '~ 1': without an offset all rows have the same."""
    formula: Any = field(compare=False)
    observed: Any = field(compare=False)
    begin: np.ndarray = field(compare=False)

    @property
    def columns(self) -> slice:
        """The covariates that are its terms."""
        return slice(self.first, self.first + self.terms)

    def at(self, coefficients: Array, context: Float[Array, "u q"]) -> Array:
        """Linear predictors, one for each row; without a leading axis where all rows have the same."""
        if self.constant and self.offset is None:
            return coefficients.reshape(self.of.shape)
        value = context[:, self.columns] @ coefficients.reshape(self.terms, self.of.size)
        if self.offset is not None:
            value = value + context[:, self.offset][:, None]
        return value.reshape(context.shape[0], *self.of.shape)

    def named(self, labels: tuple[str, ...]) -> tuple[Predictor, tuple[str, ...]]:
        """The same for entries of these names, and names of the coefficients.

        These are called after their terms, or after each entry and, but for constants, the term.
        """
        made, terms = replace(self, of=replace(self.of, labels=labels)), self.formula.labels
        if not self.of.shape:
            return made, tuple(terms)
        own = [re.sub(r"^[^\[]*\[(.*)\]$", r"\1", entry) for entry in made.of.entries]
        alone = self.formula.intercept
        return made, tuple(name if k == alone else f"{name}:{term}" for k, term in enumerate(terms) for name in own)


def _is_improper(prior: Any) -> bool:
    """Whether a prior, or what it is made of, has no total probability, or all of it in one point."""
    improper = (dist.ImproperUniform, dist.MaskedDistribution, dist.Delta, dist.Unit)
    while not isinstance(prior, improper) and hasattr(prior, "base_dist"):
        prior = prior.base_dist
    return isinstance(prior, improper)


def _arrays(value: Any) -> Any:
    """NumPy for NumPy's arrays, so that work outside compiled code compiles nothing."""
    return jnp if isinstance(value, jax.Array) else np


def _support(prior: Any, name: str) -> tuple[float, float]:
    support = prior.support
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    kind = type(support).__name__
    if kind not in ("_Real",) and not hasattr(support, "lower_bound") and not hasattr(support, "upper_bound"):
        raise ModelError(
            f"the prior of '{name}' lives on {support}; give one on the real line, a half-line or an interval"
        )
    ends = []
    for end, none in (("lower_bound", -np.inf), ("upper_bound", np.inf)):
        values = np.unique(np.asarray(getattr(support, end, none), float))
        if len(values) > 1:
            raise ModelError(
                f"the entries of '{name}' have priors on different intervals, which one parameter cannot have. Make a "
                "parameter of each interval."
            )
        ends.append(float(values[0]))
    return ends[0], ends[1]


def require_name(name: Any, what: str) -> None:
    """Refuse a name that results cannot carry."""
    if not isinstance(name, str) or not name.strip():
        raise ModelError(f"a {what} needs a name, not {name!r}")
    if name in ("chain", "draw") or any(mark in name for mark in "/[]") or not name.isprintable():
        raise ModelError(
            f"a {what} cannot be called {name!r}: 'chain' and 'draw' name the axes of results, and / [ ] have a "
            "meaning in them"
        )


@dataclass(frozen=True)
class Space:
    """The parameters of a model in order: flat vectors, names, supports and coordinates.

    Two spaces are equal when their structure is, whatever the priors: compiled code depends on the
    structure, and the priors enter it as arguments.
    """

    parameters: tuple[Parameter, ...]

    @cached_property
    def size(self) -> int:
        return sum(p.size for p in self.parameters)

    # -- parameters of rows ----------------------------------------------------------------------

    @cached_property
    def of_row(self) -> Space:
        """The parameters that the distribution of one row has."""
        return Space(tuple(p if p.design is None else p.design.of for p in self.parameters)) if self.designs else self

    @cached_property
    def designs(self) -> tuple[Predictor, ...]:
        """How parameters depend on covariates, of those that do."""
        return tuple(p.design for p in self.parameters if p.design is not None)

    def predictor(self, name: str) -> Predictor:
        """How a parameter that has a formula depends on covariates."""
        return next(design for design in self.designs if design.of.name == name)

    def predictors(self, theta: Rows, context: Float[Array, "u q"] | None) -> Rows:
        """By name, on the scale of links: one for each row, or one without a leading axis that all rows share."""
        return {
            p.name: p.to_link(theta[p.name]) if p.design is None else p.design.at(theta[p.name], _present(context))
            for p in self.parameters
        }

    def at_rows(self, theta: Rows, context: Float[Array, "u q"] | None) -> Rows:
        """The parameters of every row, from parameters and coefficients by name and the covariates of rows."""
        return {
            p.name: theta[p.name]
            if p.design is None
            else p.design.of.from_link(p.design.at(theta[p.name], _present(context)))
            for p in self.parameters
        }

    def matrices(self, context: Float[Array, "u q"]) -> list[Float[Array, "u k"]]:
        """By parameter that has a formula: what its coefficients are multiplied with."""
        return [context[:, design.columns] for design in self.designs]

    def to_data_scale(self, theta: np.ndarray) -> np.ndarray:
        """Parameters (..., p) in the units of the data, where covariates are centred and scaled inside."""
        return self._recoded(theta, "to_data_scale")

    def from_data_scale(self, theta: np.ndarray) -> np.ndarray:
        """Back from `to_data_scale`."""
        return self._recoded(theta, "from_data_scale")

    def _recoded(self, theta: np.ndarray, how: str) -> np.ndarray:
        if not any(design.formula.scale for design in self.designs):
            return theta
        found = np.array(theta)
        for design in self.designs:
            first = self.first[design.of.name]
            place = slice(first, first + design.terms * design.of.size)
            lines = found[..., place].reshape(*found.shape[:-1], design.terms, design.of.size)
            found[..., place] = getattr(design.formula, how)(lines).reshape(*found.shape[:-1], -1)
        return found

    @cached_property
    def first(self) -> dict[str, int]:
        """Where each parameter begins in the flat vector."""
        return {p.name: sum(q.size for q in self.parameters[:i]) for i, p in enumerate(self.parameters)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name an entry, in the order of the flat vector."""
        return tuple(entry for p in self.parameters for entry in p.entries)

    def of_role(self, role: str) -> tuple[Parameter, ...]:
        """The parameters that do one thing."""
        return tuple(p for p in self.parameters if p.role == role)

    def _each(self, value: Any) -> np.ndarray:
        """One value an entry, from a function of its parameter."""
        return np.concatenate([np.full(p.size, value(p)) for p in self.parameters])

    @cached_property
    def lower(self) -> np.ndarray:
        """Lower ends of the support of theta."""
        return self._each(lambda p: 0.0 if p.square else p.support[0])

    @cached_property
    def upper(self) -> np.ndarray:
        return self._each(lambda p: p.upper if p.square else p.support[1])

    @cached_property
    def _ends_of_v(self) -> tuple[np.ndarray, np.ndarray]:
        return self._each(lambda p: p.support[0]), self._each(lambda p: p.support[1])

    @cached_property
    def may_be_zero(self) -> np.ndarray:
        """Entries that may be zero: inside their support, or on an end of it that belongs to it."""
        inside = (self.lower < 0.0) & (self.upper > 0.0)
        ends = self._each(lambda p: p.closed or p.square or p.opened)
        return inside | (ends & ((self.lower == 0.0) | (self.upper == 0.0)))

    @cached_property
    def square(self) -> np.ndarray:
        return self._each(lambda p: p.square)

    @cached_property
    def closed(self) -> np.ndarray:
        """Entries whose support includes its ends."""
        return self._each(lambda p: p.closed or p.square)

    @property
    def priors(self) -> dict[str, Any]:
        return {p.name: p.prior for p in self.parameters}

    @cached_property
    def prior_values(self) -> dict[str, Ordered]:
        """The priors as compiled code takes them."""
        return {p.name: Ordered.of(p.prior) for p in self.parameters}

    def labelled(self, labels: Mapping[str, tuple[str, ...]]) -> Space:
        """The same parameters with names for their entries; coefficients are named after those of what rows have."""

        def named(p: Parameter) -> Parameter:
            if p.design is None:
                return replace(p, labels=labels.get(p.name, p.labels))
            design, own = p.design.named(labels.get(p.name, p.design.of.labels))
            return replace(p, design=design, labels=own)

        return Space(tuple(named(p) for p in self.parameters))

    def with_priors(self, priors: Mapping[str, Any] | None) -> Space:
        """The same parameters, some under other priors."""
        given = dict(priors or {})
        known = [p.name for p in self.parameters]
        for name in given:
            if name not in known:
                raise ModelError(f"there is no parameter '{name}'; the model has {', '.join(known)}")
        return Space(tuple(replace(p, prior=given[p.name]) if p.name in given else p for p in self.parameters))

    @cached_property
    def continued(self) -> Space:
        """The same parameters, on the whole line where losses are defined beyond the edge of a support."""
        return Space(tuple(p.continued for p in self.parameters))

    @cached_property
    def beyond(self) -> np.ndarray:
        """Entries that the continued parameters have beyond an edge."""
        return (self.continued.lower < self.lower) | (self.continued.upper > self.upper)

    def prior_quantiles(self, levels: Any) -> Float[np.ndarray, "q p"]:
        """Quantiles of the priors, entry by entry, as values of theta; by 2001 draws where no formula is known."""
        parts = []
        for p in self.parameters:
            found = None if p.square else quantiles(p.prior, levels)
            found = np.quantile(_drawn(p, 2001, 0), levels, axis=0) if found is None else found
            parts.append(np.broadcast_to(found, (len(found), p.size)))
        return np.clip(np.concatenate(parts, axis=1), self.lower, self.upper)

    def draw_priors(self, size: int, seed: int) -> Float[np.ndarray, "size p"]:
        """Independent draws of theta from the priors."""
        parts = []
        for number, p in enumerate(self.parameters):
            repeats = 1 if tuple(p.prior.batch_shape + p.prior.event_shape) == p.shape else p.size
            drawn = _drawn(p, size * repeats, seed + number)
            parts.append(drawn.reshape(size, p.size))
        return np.clip(np.concatenate(parts, axis=1), self.lower, self.upper)

    # -- flat and named --------------------------------------------------------------------------

    def flatten(self, theta: Any) -> Any:
        """A flat vector from a dict of named values (or from a flat vector, checked), NumPy's where these are."""
        if isinstance(theta, Mapping):
            names = [p.name for p in self.parameters]
            if set(theta) != set(names):
                raise ModelError(f"the parameters are {', '.join(names)}; got {', '.join(map(str, theta))}")
            parts = []
            for p in self.parameters:
                value = np.asarray(theta[p.name], float)
                if value.shape not in (p.shape, ()):
                    raise ModelError(f"'{p.name}' must have shape {p.shape}, not {value.shape}")
                parts.append(np.broadcast_to(value, p.shape).reshape(-1))
            return np.concatenate(parts)
        vector = np.asarray(theta, float) if isinstance(theta, np.ndarray) else jnp.asarray(theta, float)
        if vector.shape == () and self.size == 1:
            vector = vector.reshape(1)
        if vector.shape != (self.size,):
            raise ModelError(
                f"the model has {self.size} parameters ({', '.join(self.names[:6])}); got shape {vector.shape}"
            )
        return vector

    def unflatten(self, theta: Any) -> Named:
        """Named values from the last axis of ``theta``; works on NumPy and on traced arrays."""
        named, first = {}, 0
        for p in self.parameters:
            named[p.name] = theta[..., first : first + p.size].reshape(theta.shape[:-1] + p.shape)
            first += p.size
        return named

    def log_prior(self, v: Theta, priors: Mapping[str, Any]) -> Float[Array, ""]:
        """Log density of the priors in their own coordinates."""
        named = self.unflatten(v)
        return sum((jnp.sum(priors[name].log_prob(value)) for name, value in named.items()), jnp.zeros(()))

    def log_prior_at_y(self, y: Theta, priors: Mapping[str, Any], soft: Any = 0.0) -> Float[Array, ""]:
        """Log density of the priors at the minimiser's coordinates.

        With respect to y where the support is open, so that it has a mode inside; with respect to v where its edge is
        allowed, which keeps it finite there. ``soft`` is added to squares: a root has no slope at zero.
        """
        v = self.to_v(self.from_y(y) + (jnp.where(self.square, soft, 0.0) if self.square.any() else 0.0))
        return self.log_prior(v, priors) + _log_slope(y, *self._ends_of_y)

    # -- coordinates: of traced vectors, or of NumPy arrays of any leading shape -------------------

    def to_v(self, theta: Any) -> Any:
        xp = _arrays(theta)
        return xp.where(self.square, xp.sqrt(xp.where(self.square, theta, 1.0)), theta) if self.square.any() else theta

    def from_v(self, v: Any) -> Any:
        return _arrays(v).where(self.square, v**2, v) if self.square.any() else v

    def from_z(self, z: Any) -> Any:
        """Theta of z."""
        return self.from_v(self.v_of_z(z))

    def v_of_z(self, z: Any) -> Any:
        return _forward(z, *self._ends_of_v)

    def to_z(self, theta: Any) -> Any:
        return _backward(self.to_v(theta), *self._ends_of_v)

    def fold(self, z: Any) -> Any:
        """The point of z-space with the same theta whose roots are not negative."""
        return _arrays(z).where(self.square, abs(z), z) if self.square.any() else z

    def log_jacobian(self, z: Theta) -> Float[Array, ""]:
        """Log |d v / d z|."""
        return _log_slope(z, *self._ends_of_v)

    @cached_property
    def _ends_of_y(self) -> tuple[np.ndarray, np.ndarray]:
        return np.where(self.closed, -np.inf, self.lower), np.where(self.closed, np.inf, self.upper)

    def from_y(self, y: Any) -> Any:
        return _forward(y, *self._ends_of_y)

    def slopes_of_y(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivatives of theta by y."""
        return _slopes(y, *self._ends_of_y)

    def slopes_to_y(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivatives of `y_of_z`."""
        v, (first, second) = self.v_of_z(z), _slopes(z, *self._ends_of_v)
        second = np.where(self.square, 2.0 * (first**2 + v * second), second)
        first = np.where(self.square, 2.0 * v * first, first)
        return np.where(self.closed, first, 1.0), np.where(self.closed, second, 0.0)

    def y_of_z(self, z: Any) -> Any:
        """The minimiser's coordinates of unconstrained ones; they differ where an edge is allowed."""
        return _arrays(z).where(self.closed, self.from_z(z), z) if self.closed.any() else z

    def to_y(self, theta: Any) -> Any:
        return _backward(theta, *self._ends_of_y)

    @cached_property
    def _ends_of_s(self) -> tuple[np.ndarray, np.ndarray]:
        bent = self._each(lambda p: (p.closed and not p.square) or p.opened)
        low, high = self._ends_of_v
        return np.where(bent, low, -np.inf), np.where(bent, high, np.inf)

    def straighten(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of z, with parameters that may lie on an edge left as they are, and the log of how that stretches z."""
        return _forward(z, *self._ends_of_s), _log_slope(z, *self._ends_of_s)

    def bend(self, s: np.ndarray) -> np.ndarray:
        """Back from `straighten` to z; not a number outside the support."""
        return _backward(s, *self._ends_of_s)

    @cached_property
    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """The natural bounds of ``y``: the ends of closed supports, otherwise infinite."""
        return np.where(self.closed, self.lower, -np.inf), np.where(self.closed, self.upper, np.inf)


def _present(context: Array | None) -> Array:
    assert context is not None, "parameters that depend on covariates need those of every row"
    return context


def own_of(rows: Rows, ranks: Mapping[str, int]) -> set[str]:
    """Entries that every row has of its own: they have an axis more than what one row needs."""
    return {name for name, value in rows.items() if value.ndim > ranks.get(name, 0)}


def over_rows(function: Any, rows: Rows, size: int, ranks: Mapping[str, int], *more: Any) -> Array:
    """A function of what belongs to one row, for all rows; entries that rows share are not copied."""
    own = own_of(rows, ranks)
    axes = {name: 0 if name in own else None for name in rows}
    if all(axis is None for axis in axes.values()) and not more:
        return jnp.broadcast_to(function(rows), (size,))
    return jax.vmap(function, in_axes=(axes, *(0 for _ in more)))(rows, *more)


def _drawn(parameter: Parameter, size: int, seed: int) -> Float[np.ndarray, "size k"]:
    """Draws of a parameter's prior as values of theta: one column, or one for each entry with a prior of its own."""
    require_unforked()
    with jax.numpy_rank_promotion("allow"):  # as NumPyro needs it
        draws = np.asarray(parameter.prior.sample(jax.random.key(seed), (size,))).reshape(size, -1)
    return draws**2 if parameter.square else draws


def _kinds(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, ...]:
    """Masks of (both ends, lower only, upper only), and ends that are safe to compute with."""
    has_lower, has_upper = np.isfinite(lower), np.isfinite(upper)
    low, high = np.where(has_lower, lower, 0.0), np.where(has_upper, upper, 1.0)
    return has_lower & has_upper, has_lower & ~has_upper, ~has_lower & has_upper, low, high


def _forward(z: Any, lower: np.ndarray, upper: np.ndarray) -> Any:
    """From the real line to a support: exponential for a half-line, logistic for an interval."""
    xp = _arrays(z)
    both, above, below, low, high = _kinds(lower, upper)
    growth = xp.exp(xp.where(above | below, z, 0.0))
    inside = 1.0 / (1.0 + xp.exp(-xp.where(both, z, 0.0)))
    value = xp.where(above, low + growth, xp.where(below, high - growth, z))
    return xp.where(both, low + (high - low) * inside, value)


def _slopes(z: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivatives of `_forward`."""
    both, above, below, low, high = _kinds(lower, upper)
    growth = np.exp(np.where(above | below, z, 0.0))
    inside = 1.0 / (1.0 + np.exp(-np.where(both, z, 0.0)))
    first = np.where(above, growth, np.where(below, -growth, 1.0))
    first = np.where(both, (high - low) * inside * (1.0 - inside), first)
    second = np.where(both, first * (1.0 - 2.0 * inside), np.where(above | below, first, 0.0))
    return first, second


def _log_slope(z: Any, lower: np.ndarray, upper: np.ndarray) -> Any:
    """The sum of log |d _forward / d z|."""
    xp = _arrays(z)
    both, above, below, low, high = _kinds(lower, upper)
    masked = xp.where(both, z, 0.0)
    inside = np.log(high - low) - xp.abs(masked) - 2.0 * xp.log1p(xp.exp(-xp.abs(masked)))
    return xp.sum(xp.where(both, inside, xp.where(above | below, z, 0.0)), axis=-1)


def _backward(value: Any, lower: np.ndarray, upper: np.ndarray) -> Any:
    xp = _arrays(value)
    both, above, below, low, high = _kinds(lower, upper)
    share = xp.where(both, (value - low) / (high - low), 0.5)
    gap = xp.where(above, value - low, xp.where(below, high - value, 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):  # an end of a support is infinitely far away
        z = xp.where(above | below, xp.log(gap), value)
        return xp.where(both, xp.log(share) - xp.log1p(-share), z)
