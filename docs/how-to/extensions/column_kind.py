"""`zero-inflated`, a kind of network column: Poisson counts whose zeros have a parameter of their own."""

from dataclasses import dataclass

import numpyro.distributions as dist

from dfdbayes.families.network.kinds import INTERCEPT, KINDS, AbstractCount, Coefficient, log_factorial

INFLATION = Coefficient(
    "inflation", dist.Normal(0.0, 3.0), "log of what multiplies the odds of a zero that a Poisson count would have"
)


@KINDS.register("zero-inflated")
@dataclass(frozen=True)
class ZeroInflatedKind(AbstractCount):
    """A node's own part is intercept x - log x! + inflation [x = 0]; neighbours see the square root of x."""

    name = "zero-inflated"

    @property
    def coefficients(self):
        return INTERCEPT, None, INFLATION

    def node_statistics(self, x):
        return x, -log_factorial(x), x == 0

    def start(self, x, weights):
        return *super().start(x, weights), 0.0
