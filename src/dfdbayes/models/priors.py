"""Priors as plain values and back: what a saved fit holds of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpyro.distributions as dist

from .._util.identity import fingerprint

Plain = dict[str, Any]
_TRUNCATED = ("LeftTruncatedDistribution", "RightTruncatedDistribution", "TwoSidedTruncatedDistribution")


def plain(prior: Any) -> Plain | None:
    """A prior's name and arguments in values JSON can hold; None for one that could not be made again from them."""
    try:
        described = _plain(prior)
        return described if fingerprint(made(described)) == fingerprint(prior) else None
    except (TypeError, ValueError, AttributeError, KeyError):
        return None


def made(described: Mapping[str, Any]) -> Any:
    """The prior that `plain` described."""
    name, arguments = described["name"], {k: _value(v) for k, v in described["arguments"].items()}
    if "transforms" in described:
        steps = [getattr(dist.transforms, s["name"])(**{k: _value(v) for k, v in s["arguments"].items()})
                 for s in described["transforms"]]  # fmt: skip
        return dist.TransformedDistribution(made(described["base"]), steps)
    if "base" in described:
        base = made(described["base"])
        if name == "ExpandedDistribution":
            return base.expand(tuple(described["shape"]))
        if name == "Independent":
            return base.to_event(described["shape"])
        return dist.TruncatedDistribution(base, **arguments)
    return getattr(dist, name)(**arguments)


def _plain(prior: Any) -> Plain:
    kind = type(prior)
    name = kind.__name__
    if kind is dist.ExpandedDistribution:
        return {"name": name, "arguments": {}, "base": _plain(prior.base_dist), "shape": list(prior.batch_shape)}
    if kind is dist.Independent:
        shape = prior.reinterpreted_batch_ndims
        return {"name": name, "arguments": {}, "base": _plain(prior.base_dist), "shape": shape}
    if name in _TRUNCATED:
        ends = {end: _number(getattr(prior, end)) for end in ("low", "high") if end in vars(prior)}
        return {"name": name, "arguments": ends, "base": _plain(prior.base_dist)}
    if kind is dist.TransformedDistribution:
        steps = [
            {
                "name": type(s).__name__,
                "arguments": {k: _number(v) for k, v in vars(s).items() if not k.startswith("_")},
            }
            for s in prior.transforms
        ]
        return {"name": name, "arguments": {}, "base": _plain(prior.base_dist), "transforms": steps}
    known = [argument for argument in prior.arg_constraints if argument in vars(prior)]
    return {"name": name, "arguments": {argument: _number(getattr(prior, argument)) for argument in known}}


def _number(value: Any) -> Any:
    array = np.asarray(value, float)
    return array.tolist() if array.ndim else float(array)


def _value(value: Any) -> Any:
    return np.asarray(value, float) if isinstance(value, list) else value
