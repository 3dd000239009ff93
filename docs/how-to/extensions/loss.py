"""A family of losses with the discrete Fisher divergence in it: smaller powers listen less to unlikely values."""

from dataclasses import dataclass

import jax.numpy as jnp

from dfdbayes.core.losses import LOSSES, AbstractLoss


@LOSSES.register("power-divergence")
@dataclass(frozen=True)
class PowerDivergence(AbstractLoss):
    """The sum of (r^-)^(1 + power) over decrements, less (1 + 1 / power) (r^+)^power over increments.

    With power 1 it is the discrete Fisher divergence. Every pair of neighbours x and y, the one above it, has the terms
    q(y) f(v) + q(x) g(v) of v = log p(x) / p(y), whose sum is smallest where p(x) / p(y) = q(x) / q(y), as
    f'(v) = -exp(v) g'(v).
    """

    power: float = 0.5

    name = "power-divergence"
    title = "power divergence of ratios"
    phrase = "the power divergence of ratios of neighbouring masses"
    formula = "D(θ) = Σ (r<sup>−</sup>)<sup>1 + a</sup> − (1 + 1/a) (r<sup>+</sup>)<sup>a</sup>"
    bounded = False
    second = "ratio"

    def term(self, u, site):
        """Of u = log p(neighbour) / p(row), for decrements and for increments; of two values each is both."""
        found = 0.0
        if site.minus is not None:
            found = site.minus * jnp.exp((1.0 + self.power) * u)
        if site.plus is not None:
            found = found - site.plus * (1.0 + 1.0 / self.power) * jnp.exp(-self.power * u)
        return found
