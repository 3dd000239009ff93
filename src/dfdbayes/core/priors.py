"""Priors as they are saved and loaded, in words, their quantiles, and their mirror images."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from scipy import special

from .._util.codec import UnwritableError, foreign
from .._util.identity import fingerprint

Plain = dict[str, Any]


class Mirrored(dist.Distribution):  # type: ignore[misc]
    """A distribution on a half-line and its mirror image beyond the end, half the probability on each side."""

    arg_constraints: ClassVar[dict[str, Any]] = {}
    support = dist.constraints.real
    pytree_data_fields = ("base_dist", "edge")
    pytree_aux_fields = ("inward",)

    def __init__(self, base_dist: Any, edge: float, inward: int) -> None:
        self.base_dist, self.edge, self.inward = base_dist, edge, inward  # inward: 1 from a lower end, -1 from an upper
        super().__init__(base_dist.batch_shape, base_dist.event_shape)

    def log_prob(self, value: Any) -> Any:
        away = jnp.maximum(jnp.abs(value - self.edge), 1e-12)  # some densities are not given at the end itself
        return self.base_dist.log_prob(self.edge + self.inward * away) - np.log(2.0)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        one, other = jax.random.split(key)
        drawn = self.base_dist.sample(one, sample_shape) - self.edge
        return self.edge + drawn * jax.random.rademacher(other, jnp.shape(drawn), float)

    def quantile(self, level: float) -> np.ndarray | None:
        """The quantile by those of the half."""
        share = 2.0 * level - 1.0
        half = quantiles(self.base_dist, [abs(share) if self.inward == 1 else 1.0 - abs(share)])
        return None if half is None else self.edge + np.sign(share) * np.abs(half[0] - self.edge)


@partial(jax.tree_util.register_dataclass, data_fields=["values"], meta_fields=["structure", "order"])
@dataclass(frozen=True)
class Ordered:
    """A prior as compiled code takes it: its values in the order of their names.

    NumPyro's order is that of a set, another one in each process, and code that one has compiled and kept would be of
    no use to the next.
    """

    values: list[Any]
    structure: Any
    order: tuple[int, ...]

    @classmethod
    def of(cls, prior: Any) -> Ordered:
        values, structure = jax.tree.flatten(prior)
        labels = list(_labels(prior))
        order = sorted(range(len(values)), key=labels.__getitem__) if len(labels) == len(values) else range(len(values))
        return cls([values[i] for i in order], structure, tuple(order))

    @property
    def prior(self) -> Any:
        """The distribution of these values."""
        values = [found for _, found in sorted(zip(self.order, self.values, strict=True), key=lambda pair: pair[0])]
        return jax.tree.unflatten(self.structure, values)

    def log_prob(self, value: Any) -> Any:
        return self.prior.log_prob(value)

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process, which has an order of its own: under this one, it would take a scale for a mean."""
        return Ordered.of, (self.prior,)


def _labels(part: Any, at: str = "") -> Iterator[str]:
    """A name for each value of a prior, in NumPyro's order."""
    for i, leaf in enumerate(jax.tree.leaves(part, is_leaf=lambda inner: isinstance(inner, dist.Distribution))):
        if isinstance(leaf, dist.Distribution):
            for name, inner in zip(leaf.gather_pytree_data_fields(), leaf.tree_flatten()[0], strict=True):
                yield from _labels(inner, f"{at}{i}.{name}.")
        else:
            yield f"{at}{i}"


_TRUNCATED = ("LeftTruncatedDistribution", "RightTruncatedDistribution", "TwoSidedTruncatedDistribution")


def _written(prior: Any) -> Plain:
    """A prior's name and arguments, if it can be made again from them."""
    try:
        described = _described(prior)
        if fingerprint(_made(described)) == fingerprint(prior):
            return described
    except (TypeError, ValueError, AttributeError, KeyError):
        pass
    raise UnwritableError("a function of a user's own is part of the prior")


def _made(described: Mapping[str, Any]) -> Any:
    """The prior that `_described` described."""
    name, arguments = described["name"], {k: _value(v) for k, v in described["arguments"].items()}
    if "transforms" in described:
        steps = [_kind(dist.transforms, s["name"], dist.transforms.Transform)(
                     **{k: _value(v) for k, v in s["arguments"].items()}
                 ) for s in described["transforms"]]  # fmt: skip
        return dist.TransformedDistribution(_made(described["base"]), steps)
    if "base" in described:
        base = _made(described["base"])
        if name == "ExpandedDistribution":
            return base.expand(tuple(described["shape"]))
        if name == "Independent":
            return base.to_event(described["shape"])
        return dist.TruncatedDistribution(base, **arguments)
    return _kind(dist, name, dist.Distribution)(**arguments)


def _kind(module: Any, name: str, base: type) -> Any:
    """A distribution or transformation by its name, which a file may hold: nothing else that the module has."""
    found = getattr(module, name)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise TypeError(f"{name} is no {base.__name__.lower()}")
    return found


def _described(prior: Any) -> Plain:
    kind = type(prior)
    name = kind.__name__
    if kind is dist.ExpandedDistribution:
        return {"name": name, "arguments": {}, "base": _described(prior.base_dist), "shape": list(prior.batch_shape)}
    if kind is dist.Independent:
        shape = prior.reinterpreted_batch_ndims
        return {"name": name, "arguments": {}, "base": _described(prior.base_dist), "shape": shape}
    if name in _TRUNCATED:
        ends = {end: _number(getattr(prior, end)) for end in ("low", "high") if end in vars(prior)}
        return {"name": name, "arguments": ends, "base": _described(prior.base_dist)}
    if kind is dist.TransformedDistribution:
        steps = [
            {
                "name": type(s).__name__,
                "arguments": {k: _number(v) for k, v in vars(s).items() if not k.startswith("_")},
            }
            for s in prior.transforms
        ]
        return {"name": name, "arguments": {}, "base": _described(prior.base_dist), "transforms": steps}
    known = [argument for argument in prior.arg_constraints if argument in vars(prior)]
    return {"name": name, "arguments": {argument: _number(getattr(prior, argument)) for argument in known}}


foreign(dist.Distribution, _written, _made)

_QUANTILES: dict[type, Callable[[Any, float], Any]] = {
    dist.Normal: lambda p, q: _array(p.loc) + _array(p.scale) * special.ndtri(q),
    dist.LogNormal: lambda p, q: np.exp(_array(p.loc)) * np.exp(_array(p.scale) * special.ndtri(q)),
    dist.HalfNormal: lambda p, q: _array(p.scale) * special.ndtri(0.5 * (1.0 + q)),
    dist.Gamma: lambda p, q: special.gammaincinv(_array(p.concentration), q) * (1.0 / _array(p.rate)),
    dist.Chi2: lambda p, q: 2.0 * special.gammaincinv(0.5 * _array(p.df), q),
    dist.Beta: lambda p, q: special.betaincinv(_array(p.concentration1), _array(p.concentration0), q),
    dist.Uniform: lambda p, q: _array(p.low) + q * (_array(p.high) - _array(p.low)),
    dist.Exponential: lambda p, q: -np.log1p(-q) * (1.0 / _array(p.rate)),
    dist.Laplace: lambda p, q: _array(p.loc) - _array(p.scale) * np.sign(q - 0.5) * np.log1p(-abs(2.0 * q - 1.0)),
    dist.Cauchy: lambda p, q: _array(p.loc) + _array(p.scale) * np.tan(np.pi * q - 0.5 * np.pi),
    dist.HalfCauchy: lambda p, q: _array(p.scale) * np.tan(0.5 * np.pi * q),
    dist.StudentT: lambda p, q: _array(p.loc) + _array(p.scale) * special.stdtrit(_array(p.df), q),
}


def quantiles(prior: Any, levels: Sequence[float] | np.ndarray) -> np.ndarray | None:
    """Quantiles of a prior, one column for each of its entries; None where only its draws can tell."""
    while isinstance(prior, (dist.ExpandedDistribution, dist.Independent)):
        prior = prior.base_dist
    if isinstance(prior, Mirrored):
        found = [prior.quantile(level) for level in levels]
        return np.stack([part for part in found if part is not None]) if found[0] is not None else None
    quantile = _QUANTILES.get(type(prior))
    if quantile is None:
        return None
    return np.stack([np.asarray(quantile(prior, level)).reshape(-1) for level in levels])


def _array(value: Any) -> np.ndarray:
    return np.asarray(value, float)


def _number(value: Any) -> Any:
    array = np.asarray(value, float)
    return array.tolist() if array.ndim else float(array)


def _value(value: Any) -> Any:
    return np.asarray(value, float) if isinstance(value, list) else value


def describe_prior(prior: Any) -> str:
    """A prior in words: its kind and all its values, long arrays by their ends and a fingerprint."""
    if isinstance(prior, dist.ExpandedDistribution):
        return describe_prior(prior.base_dist)
    if isinstance(prior, dist.Independent):
        return describe_prior(prior.base_dist)
    if type(prior).__name__ == "Chi2":
        return f"Chi2(df={_shown(prior.df)})"
    parts, made_of = [], ["mixing_distribution", "component_distribution", "component_distributions"]
    transformed = type(prior) is dist.TransformedDistribution
    if transformed or "Truncated" in type(prior).__name__:  # others are known by their own values
        made_of.append("base_dist")
    for name in made_of:
        if name in vars(prior) or f"_{name}" in vars(prior):
            inner = getattr(prior, name)
            parts.append(", ".join(map(describe_prior, inner if isinstance(inner, (list, tuple)) else [inner])))
    for step in prior.transforms if transformed else ():
        held = [f"{key}={_shown(value)}" for key, value in vars(step).items() if not key.startswith("_")]
        parts.append(f"{type(step).__name__}({', '.join(held)})")
    for name in getattr(prior, "reparametrized_params", None) or prior.arg_constraints:
        if name in vars(prior):
            parts.append(f"{name}={_shown(getattr(prior, name))}")
    for name in ("low", "high"):
        if name in vars(prior) and f"{name}=" not in " ".join(parts):
            parts.append(f"{name}={_shown(getattr(prior, name))}")
    return f"{type(prior).__name__}({', '.join(dict.fromkeys(parts))})"


def _shown(value: Any) -> str:
    """A number as one types it; an array as a list, of which a long one shows its ends."""
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        return type(value).__name__
    if array.size == 1:
        return f"{float(array.reshape(())):.10g}"
    texts = [f"{number:.10g}" for number in array.reshape(-1)]
    if len(texts) > 8:
        texts = [*texts[:3], "...", *texts[-1:], f"#{fingerprint(array)[:8]}"]
    return f"[{', '.join(texts)}]" + ("" if array.ndim == 1 else f" of shape {array.shape}")
