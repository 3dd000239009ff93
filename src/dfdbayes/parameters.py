"""Named parameters: their priors, their supports, and the coordinates the algorithms work in.

Three letters stand for the same three things in every file:

``theta``
    the parameters as the model writes them, flat or by name;
``z``
    unconstrained coordinates, in which posteriors are sampled;
``y``
    the minimiser's coordinates: like ``z``, but a parameter that may lie *on* the edge of its
    support (an interaction that may be exactly zero) is left as it is and bounded instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from .errors import ModelError

Theta = Float[Array, " p"]
Named = dict[str, Any]


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
    labels : tuple of str
        Names of the entries of an array parameter, in row-major order.
    """

    name: str
    prior: Any = field(compare=False)
    shape: tuple[int, ...] = ()
    lower: float = -math.inf
    upper: float = math.inf
    closed: bool = False
    labels: tuple[str, ...] = ()
    support: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.prior, dist.Distribution):
            raise ModelError(
                f"the prior of '{self.name}' is {self.prior!r}; give a NumPyro distribution, "
                "for example numpyro.distributions.Normal(0, 1)"
            )
        if self.prior.is_discrete:
            raise ModelError(f"the prior of '{self.name}' is discrete; parameters need continuous priors")
        lower, upper = _support(self.prior, self.name)
        object.__setattr__(self, "support", (max(self.lower, lower), min(self.upper, upper)))
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
    def entries(self) -> tuple[str, ...]:
        """The name of each entry, as it stands in a summary."""
        if not self.shape:
            return (self.name,)
        labels = self.labels or tuple(",".join(map(str, i)) for i in np.ndindex(self.shape))
        return tuple(f"{self.name}[{label}]" for label in labels)


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
    lower = np.max(np.asarray(getattr(support, "lower_bound", -np.inf)))
    upper = np.min(np.asarray(getattr(support, "upper_bound", np.inf)))
    return float(lower), float(upper)


def describe_prior(prior: Any) -> str:
    """A prior in words a reader can type back, for example ``Chi2(df=3)``."""
    base = prior.base_dist if isinstance(prior, dist.ExpandedDistribution) else prior
    values = []
    for name in getattr(base, "reparametrized_params", None) or base.arg_constraints:
        value = np.asarray(getattr(base, name))
        values.append(f"{name}={value.item():g}" if value.size == 1 else f"{name}=array{value.shape}")
    if type(base).__name__ == "Chi2":
        values = [f"df={np.asarray(base.df).item():g}"]
    return f"{type(base).__name__}({', '.join(dict.fromkeys(values))})"


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

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name an entry, in the order of the flat vector."""
        return tuple(entry for p in self.parameters for entry in p.entries)

    @cached_property
    def lower(self) -> np.ndarray:
        return np.concatenate([np.full(p.size, p.support[0]) for p in self.parameters])

    @cached_property
    def upper(self) -> np.ndarray:
        return np.concatenate([np.full(p.size, p.support[1]) for p in self.parameters])

    @cached_property
    def closed(self) -> np.ndarray:
        return np.concatenate([np.full(p.size, p.closed) for p in self.parameters])

    @property
    def priors(self) -> dict[str, Any]:
        return {p.name: p.prior for p in self.parameters}

    def with_priors(self, priors: Mapping[str, Any] | None) -> Space:
        """The same parameters, some under other priors."""
        given = dict(priors or {})
        known = [p.name for p in self.parameters]
        for name in given:
            if name not in known:
                raise ModelError(f"there is no parameter '{name}'; the model has {', '.join(known)}")
        return Space(tuple(replace(p, prior=given[p.name]) if p.name in given else p for p in self.parameters))

    # -- flat and named --------------------------------------------------------------------------

    def flatten(self, theta: Any) -> Theta:
        """A flat vector from a dict of named values (or from a flat vector, checked)."""
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
            return jnp.asarray(np.concatenate(parts))
        vector = jnp.asarray(theta, float)
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

    def log_prior(self, theta: Theta, priors: Mapping[str, Any]) -> Float[Array, ""]:
        named = self.unflatten(theta)
        return sum((jnp.sum(priors[name].log_prob(value)) for name, value in named.items()), jnp.zeros(()))

    # -- coordinates: traced vectors, or NumPy arrays of any leading shape ------------------------

    def _ends(self, bounded: np.ndarray) -> tuple[np.ndarray, ...]:
        """Masks of (both ends, lower only, upper only) and safe ends, for entries to be transformed."""
        has_lower, has_upper = np.isfinite(self.lower) & ~bounded, np.isfinite(self.upper) & ~bounded
        low, high = np.where(has_lower, self.lower, 0.0), np.where(has_upper, self.upper, 1.0)
        return has_lower & has_upper, has_lower & ~has_upper, ~has_lower & has_upper, low, high

    def _forward(self, z: Any, bounded: np.ndarray) -> Any:
        xp = _arrays(z)
        both, above, below, low, high = self._ends(bounded)
        growth = xp.exp(xp.where(above | below, z, 0.0))
        inside = 1.0 / (1.0 + xp.exp(-xp.where(both, z, 0.0)))
        theta = xp.where(above, low + growth, xp.where(below, high - growth, z))
        return xp.where(both, low + (high - low) * inside, theta)

    def _backward(self, theta: Any, bounded: np.ndarray) -> Any:
        xp = _arrays(theta)
        both, above, below, low, high = self._ends(bounded)
        share = xp.where(both, (theta - low) / (high - low), 0.5)
        gap = xp.where(above, theta - low, xp.where(below, high - theta, 1.0))
        z = xp.where(above | below, xp.log(gap), theta)
        return xp.where(both, xp.log(share) - xp.log1p(-share), z)

    def from_z(self, z: Any) -> Any:
        return self._forward(z, np.zeros(self.size, bool))

    def to_z(self, theta: Any) -> Any:
        return self._backward(theta, np.zeros(self.size, bool))

    def log_jacobian(self, z: Theta) -> Float[Array, ""]:
        """Log |d theta / d z|."""
        both, above, below, low, high = self._ends(np.zeros(self.size, bool))
        masked = jnp.where(both, z, 0.0)
        inside = np.log(high - low) - jnp.abs(masked) - 2.0 * jnp.log1p(jnp.exp(-jnp.abs(masked)))
        return jnp.sum(jnp.where(both, inside, jnp.where(above | below, z, 0.0)))

    def from_y(self, y: Any) -> Any:
        return self._forward(y, self.closed)

    def to_y(self, theta: Any) -> Any:
        return self._backward(theta, self.closed)

    @cached_property
    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """The natural bounds of ``y``: the ends of closed supports, otherwise infinite."""
        return np.where(self.closed, self.lower, -np.inf), np.where(self.closed, self.upper, np.inf)
