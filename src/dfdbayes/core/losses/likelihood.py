"""Standard Bayes: the negative log-likelihood, where the constant can be had."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Array

from ..terms import Site, View
from .base import LOSSES, AbstractLoss


@LOSSES.register("likelihood")
@dataclass(frozen=True)
class Likelihood(AbstractLoss):
    """The negative log-likelihood. At beta = 1 (calibration="none") its posterior is the ordinary one.

    The model's own formula for its constant serves where there is one; otherwise a finite domain is listed.
    """

    view = View.LIKELIHOOD
    name = "likelihood"
    title = "likelihood"
    phrase = "the negative log-likelihood"
    formula = "D(θ) = − Σ<sub>i</sub> log p(x<sub>i</sub>)"
    normalised = True
    neighbours = ""
    second = "ratio"

    def term(self, u: Array, site: Site | None) -> Array:
        return -u
