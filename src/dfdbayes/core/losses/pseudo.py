"""The pseudo-likelihood (Besag, 1975): minus the sum over rows and coordinates of log p(x_j | the rest)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Float

from ..model import AbstractModel
from ..parameters import Theta
from ..sites import Sites
from ..terms import AbstractConditionals, Prepared, SecondOrder
from .base import AbstractLoss


@dataclass(frozen=True)
class PseudoLikelihood(AbstractLoss):
    """Besag's pseudo-likelihood for any domain that can be listed, and for counts."""

    name = "pseudo"
    second = "ratio"
    neighbours = "values"
    title = "pseudo-likelihood"
    phrase = "the negative log pseudo-likelihood (Besag, 1975)"
    formula = "D(θ) = − Σ<sub>i</sub> Σ<sub>j</sub> log p(x<sub>ij</sub> | the other coordinates of x<sub>i</sub>)"
    references = ("besag",)

    def prepare(self, model: AbstractModel, sites: Sites) -> Prepared:
        return model.conditionals(sites)

    def value(self, theta: Theta, table: AbstractConditionals, weights: Any) -> Float[Array, ""]:
        return table.value(theta, weights)

    def second_order(self, theta: Theta, table: AbstractConditionals, weights: Any) -> SecondOrder | None:
        return table.second_order(theta, weights)

    def lines(self, theta: Theta, table: AbstractConditionals) -> Any:
        return table.lines(theta)
