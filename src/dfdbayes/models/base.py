"""What a model is: a domain, named parameters, and a mass function known up to its constant."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._util.identity import code, fingerprint
from ..data.dataset import Dataset
from ..data.domain import Domain
from ..errors import ModelError
from .graphs import Graph
from .parameters import Parameter, Space

Row = Float[Array, " d"]


class AbstractModel(ABC):
    """The part of a model that the road from data to posterior relies on."""

    domain: Domain
    name: str
    space: Space
    start: Callable[[Dataset], dict[str, Any]] | None
    derived: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] | None
    interactions: Callable[[dict[str, np.ndarray]], Interactions] | None
    log_normaliser: Callable[[dict[str, Array]], Array] | None
    options: Mapping[str, Any]

    @abstractmethod
    def log_mass_at(self, theta: dict[str, Array], x: Row) -> Float[Array, ""]:
        """Log of the unnormalised mass of one row."""

    @abstractmethod
    def with_priors(self, priors: Mapping[str, Any] | None) -> Self:
        """The same model under other priors, given by parameter name."""

    @abstractmethod
    def labelled(self, columns: Sequence[str]) -> Self:
        """The same model with its parameters' entries named after the columns of the data."""

    def current(self) -> Self:
        """The same model with its functions as they are now: what they refer to may have changed."""
        return self

    @property
    def identity(self) -> dict[str, Any]:
        """What numbers computed with this model depend on, in values JSON can hold."""
        priors = {p.name: fingerprint(p.prior) for p in self.space.parameters}
        structure = [[p.name, list(p.shape), repr(p.support), p.closed, p.square] for p in self.space.parameters]
        options = {key: fingerprint(value) for key, value in self.options.items()}
        return {
            "model": self.name, "domain": fingerprint(self.domain), "parameters": structure, "priors": priors,
            "options": options, "code": getattr(self, "traced", ""),
        }  # fmt: skip


@dataclass(frozen=True)
class Interactions:
    """A model at given parameters as simulators see it: an intercept a node, an interaction an edge.

    Leading axes of the arrays stand for different parameters. ``kind`` says what an edge weighs: the product of
    its two values (``"product"``) or whether they are equal (``"match"``). ``nu`` is there for counts, whose mass
    has a factor (x!)^-nu.
    """

    graph: Graph
    kind: str
    intercept: Float[np.ndarray, "*batch d"]
    interaction: Float[np.ndarray, "*batch e"]
    nu: Float[np.ndarray, "*batch d"] | None = None


Differences = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def _space(parameters: Mapping[str, Any] | Sequence[Parameter] | Space) -> Space:
    if isinstance(parameters, Space):
        return parameters
    if isinstance(parameters, Mapping):
        parameters = [
            Parameter(name, prior, shape=tuple(prior.batch_shape + prior.event_shape))
            if hasattr(prior, "batch_shape")
            else Parameter(name, prior)
            for name, prior in parameters.items()
        ]
    if not parameters:
        raise ModelError("a model needs at least one parameter")
    names = [p.name for p in parameters]
    if len(set(names)) < len(names):
        raise ModelError(f"two parameters share a name: {', '.join(names)}")
    return Space(tuple(parameters))


@dataclass(frozen=True)
class Model(AbstractModel):
    """Any model whose unnormalised log mass JAX can evaluate.

    Parameters
    ----------
    log_mass : callable
        ``log_mass(theta, x)`` of a dict of named parameters and one row ``x`` (a vector of floats),
        up to a constant that does not depend on ``x``.
    domain : Domain
    parameters : mapping of name to prior, or sequence of Parameter
        NumPyro distributions; an array-valued prior makes an array parameter.
    name : str
    start : callable, optional
        ``start(data)`` gives a consistent first guess by name. Without it the minimiser starts
        from the ratio-matching estimate.
    derived : callable, optional
        ``derived(theta)`` of named draws gives further quantities to summarise.
    interactions : callable, optional
        ``interactions(theta)`` gives the `Interactions` for fast simulation.
    log_normaliser : callable, optional
        ``log_normaliser(theta)``, the log of the sum of all masses, where it is known; the likelihood needs it.
    options : mapping, optional
        What the model was made with, in values JSON can hold.

    Examples
    --------
    >>> import dfdbayes as dfd, numpyro.distributions as dist
    >>> from jax.scipy.special import gammaln
    >>> def log_mass(theta, x):
    ...     return theta["rate"] * x[0] - theta["shape"] * gammaln(x[0] + 1)
    >>> model = dfd.Model(
    ...     log_mass,
    ...     domain=dfd.Counts(1),
    ...     parameters={"rate": dist.Normal(0, 1), "shape": dist.HalfNormal(1)},
    ... )
    >>> model.space.names
    ('rate', 'shape')
    """

    log_mass: Callable[[dict[str, Array], Row], Float[Array, ""]] = field(compare=False)
    domain: Domain
    parameters: Any = field(compare=False)
    name: str = "custom"
    start: Callable[[Dataset], dict[str, Any]] | None = field(default=None, compare=False)
    derived: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] | None = field(default=None, compare=False)
    interactions: Callable[[dict[str, np.ndarray]], Interactions] | None = field(default=None, compare=False)
    log_normaliser: Callable[[dict[str, Array]], Array] | None = field(default=None, compare=False)
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)
    space: Space = field(init=False)
    traced: str = field(init=False)
    """What the functions compute. Models are equal, and share compiled code, where they compute the same."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "space", _space(self.parameters))
        object.__setattr__(self, "traced", _traced(self, self.log_mass))

    def log_mass_at(self, theta: dict[str, Array], x: Row) -> Float[Array, ""]:
        return jnp.asarray(self.log_mass(theta, x))

    def with_priors(self, priors: Mapping[str, Any] | None) -> Model:
        return replace(self, parameters=self.space.with_priors(priors)) if priors else self

    def labelled(self, columns: Sequence[str]) -> Model:
        return self

    def current(self) -> Model:
        return replace(self)


@dataclass(frozen=True)
class ExponentialFamily(AbstractModel):
    """A model p(x) proportional to exp(eta(theta) . T(x) + b(x)).

    The differences of T and b between neighbours do not depend on the parameters. They are computed
    once and only distinct ones are kept, so an evaluation of a loss costs the same whatever n is.

    Parameters
    ----------
    T : callable
        ``T(x)`` of one row (a vector of floats), a vector of k statistics.
    b : callable or None
        ``b(x)``, the log base measure; None for zero.
    eta : callable
        ``eta(theta)`` of a dict of named parameters, a vector of k natural parameters.
    domain, parameters, name, start, derived
        As for `Model`.
    differences : callable, optional
        ``differences(rows, moved)`` gives T(x with x_j moved) - T(x) for all rows and coordinates at once, an array
        (rows, coordinates, k), and the same of b, (rows, coordinates): where it is much faster than T.
    """

    T: Callable[[Row], Float[Array, " k"]] = field(compare=False)
    b: Callable[[Row], Float[Array, ""]] | None = field(compare=False)
    eta: Callable[[dict[str, Array]], Float[Array, " k"]] = field(compare=False)
    domain: Domain
    parameters: Any = field(compare=False)
    name: str = "custom"
    start: Callable[[Dataset], dict[str, Any]] | None = field(default=None, compare=False)
    derived: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] | None = field(default=None, compare=False)
    differences: Differences | None = field(default=None, compare=False)
    interactions: Callable[[dict[str, np.ndarray]], Interactions] | None = field(default=None, compare=False)
    log_normaliser: Callable[[dict[str, Array]], Array] | None = field(default=None, compare=False)
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)
    space: Space = field(init=False)
    traced: str = field(init=False)
    """What the functions compute. Models are equal, and share compiled code, where they compute the same."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "space", _space(self.parameters))
        object.__setattr__(self, "traced", _traced(self, self.log_mass_at))

    def base(self, x: Row) -> Float[Array, ""]:
        return jnp.zeros(()) if self.b is None else jnp.asarray(self.b(x))

    def log_mass_at(self, theta: dict[str, Array], x: Row) -> Float[Array, ""]:
        return jnp.dot(self.eta(theta), self.T(x)) + self.base(x)

    def with_priors(self, priors: Mapping[str, Any] | None) -> ExponentialFamily:
        return replace(self, parameters=self.space.with_priors(priors)) if priors else self

    def labelled(self, columns: Sequence[str]) -> ExponentialFamily:
        return self

    def current(self) -> ExponentialFamily:
        return replace(self)


def _traced(model: Model | ExponentialFamily, log_mass: Callable) -> str:
    """The identity of a model's functions, traced once, so that a slip in them is reported where the model is made."""
    theta = {p.name: jax.ShapeDtypeStruct(p.shape, jnp.float64) for p in model.space.parameters}
    row = jax.ShapeDtypeStruct((model.domain.d,), jnp.float64)
    try:
        value = jax.eval_shape(lambda theta, x: log_mass(theta, x), theta, row)
    except Exception as problem:
        raise ModelError(
            f"the mass function of '{model.name}' cannot be evaluated on one row of {model.domain!r}: "
            f"{type(problem).__name__}: {(str(problem).splitlines() or [''])[0]}"
        ) from problem
    if getattr(value, "shape", None) != ():
        raise ModelError(
            f"the mass function of '{model.name}' must return one number for one row, "
            f"not an array of shape {getattr(value, 'shape', None)}"
        )
    if isinstance(model, ExponentialFamily):  # whose parts are used apart
        parts = [code(model.T, row), code(model.base, row), code(model.eta, theta)]
    else:
        parts = [code(log_mass, theta, row)]
    known = model.log_normaliser
    return "-".join([*parts, "" if known is None else code(known, theta)])
