"""Exponential families: models whose log mass is eta(theta) . T(x) + b(x)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._util.identity import code, fingerprint
from . import linear
from .dataset import Dataset, Sites
from .domain import Domain
from .linear import Dense, Differences
from .model import (
    AbstractModel,
    Row,
    arguments_of,
    is_own,
    of_constant,
    require_scalar,
    space_of,
)
from .narrative import Narrative
from .parameters import Space, Theta
from .simulators.base import Interactions
from .terms import Prepared, View


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
    has_clusters: bool = field(default=False, compare=False)
    remedies: Mapping[str, str] = field(default_factory=dict, compare=False)
    log_normaliser: Callable[[dict[str, Array]], Array] | None = field(default=None, compare=False)
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)
    title: str = field(default=AbstractModel.title, compare=False)
    formula: str = field(default="", compare=False)
    narrative: Narrative = field(default=AbstractModel.narrative, compare=False)
    meanings: Mapping[str, str] = field(default_factory=dict, compare=False)
    space: Space = field(init=False)
    traced: str = field(init=False)
    """What the functions compute. Models are equal, and share compiled code, where they compute the same."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "space", space_of(self.parameters))
        require_scalar(self, self.log_mass_at)
        theta, row = arguments_of(self)
        parts = [code(self.T, row), code(self.base, row), code(self.eta, theta), of_constant(self)]
        object.__setattr__(self, "traced", fingerprint(parts))

    def base(self, x: Row) -> Float[Array, ""]:
        return jnp.zeros(()) if self.b is None else jnp.asarray(self.b(x))

    def log_mass_at(self, theta: dict[str, Array], x: Row) -> Float[Array, ""]:
        return jnp.dot(self.eta(theta), self.T(x)) + self.base(x)

    def with_space(self, space: Space) -> ExponentialFamily:
        return self.changed(space=space, parameters=space)

    def labelled(self, columns: Sequence[str]) -> ExponentialFamily:
        return self

    @property
    def user_written(self) -> bool:
        return not is_own(self.T)

    def current(self) -> ExponentialFamily:
        if self.varying or all(function is None or is_own(function) for function in (self.T, self.eta, self.b)):
            return self
        return replace(self)

    def coefficients(self, theta: Theta) -> Float[Array, " k"]:
        return self.eta(self.space.unflatten(theta))

    def terms_at(self, sites: Sites, view: View) -> Prepared:
        if self.varying:
            return super().terms_at(sites, view)
        if view is View.LIKELIHOOD:
            return linear.likelihood(self, sites)
        if view is View.NEIGHBOURS:
            return linear.neighbours(self, sites)
        alike = len({coordinate for coordinate, _ in self.domain.runs}) == 1
        if alike and (self.domain.is_binary or (self.domain.is_finite and self.domain.d > 1)):
            return linear.choices(self, sites)
        return super().terms_at(sites, view)

    def distinct_decrements(self, sites: Sites) -> tuple[Dense, int, np.ndarray] | None:
        return None if self.varying else linear.decrements(self, sites)

    @property
    def compresses(self) -> bool:
        return not self.varying
