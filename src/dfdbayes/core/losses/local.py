"""Losses that are sums of functions of single log-ratios.

With u = log r^-(x) and v = log r^+(x) for row x and coordinate j, such a loss is the sum over rows and coordinates of
f(u) + g(v), where f is dropped if x^{j-} does not exist, and g if x^{j+} does not. A category is moved to every other
one: for each of these, with w the log of its mass over that of x, the term is f(w) + g(-w).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..terms import Function, Site
from .base import LOSSES, AbstractLoss

_NEIGHBOURS = (
    "<br><small>x<sup>j−</sup> and x<sup>j+</sup> are x with coordinate j moved to its neighbours; where these are all "
    "other values (categories without an order), each has its term.</small>"
)


@dataclass(frozen=True)
class LocalLoss(AbstractLoss):
    """A loss given by its functions f (``minus``) and g (``plus``) of the log-ratios; see also `AbstractLoss`."""

    name: str
    title: str
    minus: Function
    plus: Function
    bounded: bool
    phrase: str = ""
    formula: str = ""
    references: tuple[str, ...] = ()
    symmetric: bool = False
    """Whether the two ends of a pair of neighbours may change places."""
    second: str = ""

    def term(self, u: Array, site: Site | None) -> Array:
        assert site is not None
        if site.plus is None:
            return site.minus * self.minus(u)
        increment = site.plus * self.plus(-u)
        return increment if site.minus is None else site.minus * self.minus(u) + increment


def _fisher_minus(u: Array) -> Array:
    return jnp.exp(2.0 * u)


def _fisher_plus(v: Array) -> Array:
    return -2.0 * jnp.exp(v)


def _ratio_minus(u: Array) -> Array:
    return jax.nn.sigmoid(u) ** 2


def _ratio_plus(v: Array) -> Array:
    s = jax.nn.sigmoid(v)
    return s * (s - 2.0)


FISHER = LocalLoss(
    "dfd",
    "discrete Fisher divergence",
    _fisher_minus,
    _fisher_plus,
    bounded=False,
    phrase="the discrete Fisher divergence (Matsubara et al., 2024)",
    formula="D(θ) = Σ<sub>i</sub> Σ<sub>j</sub> [ ( p(x<sub>i</sub><sup>j−</sup>) / p(x<sub>i</sub>) )² − 2 "
    f"p(x<sub>i</sub>) / p(x<sub>i</sub><sup>j+</sup>) ]{_NEIGHBOURS}",
    references=("matsubara",),
    second="ratio",
)
"""(r^-)^2 - 2 r^+: the discrete Fisher divergence without its constant."""

RATIO = LocalLoss(
    "ratio",
    "generalised ratio matching",
    _ratio_minus,
    _ratio_plus,
    bounded=True,
    phrase="generalised ratio matching (Hyvärinen, 2007; Lyu, 2009)",
    formula="D(θ) = Σ<sub>i</sub> Σ<sub>j</sub> [ s<sub>j</sub>(x<sub>i</sub>)² + "
    "s<sub>j</sub>(x<sub>i</sub><sup>j−</sup>)² − 2 s<sub>j</sub>(x<sub>i</sub>) ], &nbsp; s<sub>j</sub>(x) = 1 / (1 + "
    f"p(x<sup>j+</sup>) / p(x)){_NEIGHBOURS}",
    references=("hyvarinen", "lyu"),
    symmetric=True,
    second="pseudo",
)
"""t(u) = 1 / (1 + u) of the ratios: a relative of DFD whose every term lies in [-1, 1]."""

for _loss in (FISHER, RATIO):
    LOSSES.register(_loss.name)(_loss)
