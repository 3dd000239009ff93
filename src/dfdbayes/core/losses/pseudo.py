"""The pseudo-likelihood (Besag, 1975): minus the sum over rows and coordinates of log p(x_j | the rest)."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Array

from ..terms import Site, View
from .base import LOSSES, AbstractLoss


@LOSSES.register("pseudo")
@dataclass(frozen=True)
class PseudoLikelihood(AbstractLoss):
    """Besag's pseudo-likelihood for any domain that can be listed, and for counts."""

    view = View.CONDITIONALS
    name = "pseudo"
    second = "ratio"
    neighbours = "values"
    title = "pseudo-likelihood"
    phrase = "the negative log pseudo-likelihood (Besag, 1975)"
    formula = "D(θ) = − Σ<sub>i</sub> Σ<sub>j</sub> log p(x<sub>ij</sub> | the other coordinates of x<sub>i</sub>)"
    references = ("besag",)

    def term(self, u: Array, site: Site | None) -> Array:
        return -u
