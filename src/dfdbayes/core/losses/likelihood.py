"""Standard Bayes: the negative log-likelihood, where the constant can be had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Float

from ..model import AbstractModel
from ..parameters import Theta
from ..sites import Sites
from ..terms import AbstractLikelihood, Prepared, SecondOrder
from .base import AbstractLoss


@dataclass(frozen=True)
class Likelihood(AbstractLoss):
    """The negative log-likelihood. At beta = 1 (calibration="none") its posterior is the ordinary one.

    The model's own formula for its constant serves where there is one; otherwise a finite domain is listed.
    """

    name = "likelihood"
    title = "likelihood"
    phrase = "the negative log-likelihood"
    formula = "D(θ) = − Σ<sub>i</sub> log p(x<sub>i</sub>)"
    normalised = True
    neighbours = ""
    second = "ratio"

    def prepare(self, model: AbstractModel, sites: Sites) -> Prepared:
        return model.likelihood(sites)

    def value(self, theta: Theta, table: AbstractLikelihood, weights: Any) -> Float[Array, ""]:
        return table.value(theta, weights)

    def second_order(self, theta: Theta, table: AbstractLikelihood, weights: Any) -> SecondOrder | None:
        return table.second_order(theta, weights)

    def lines(self, theta: Theta, table: AbstractLikelihood) -> Any:
        return table.lines(theta)
