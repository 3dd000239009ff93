"""What a loss is: which table of a model it needs, and what it computes from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from jaxtyping import Array, Float

from ..model import AbstractModel
from ..parameters import Theta
from ..sites import Sites
from ..terms import Prepared, SecondOrder


class AbstractLoss(ABC):
    """A loss D(theta): a sum over the data, whose minimiser estimates the parameters.

    Attributes
    ----------
    name : str
        The word that names it in `fit` and on the command line.
    title : str
        Its name in plots and reports.
    phrase : str
        What it is in a sentence, with its citation.
    formula : str
        D(theta) in HTML, for reports; nothing of a user's enters it.
    references : tuple of str
        Keys of the works that the phrase cites.
    bounded : bool
        Whether the loss is bounded below, so that every posterior it gives is proper.
    separable : bool
        Whether it is a sum of terms of single rows, which can be computed apart.
    normalised : bool
        Whether it needs the model's constant; then it is the likelihood, and beta = 1 is Bayes.
    neighbours : {"steps", "values", ""}
        What it compares a row with: the next values of each column, all other values of each column, or nothing.
    second : str
        The loss whose opinion a check asks beside this one; none of a loss that is meant to differ from others.
    """

    name: str
    title: str
    phrase: str
    formula: str = ""
    references: tuple[str, ...] = ()
    bounded: bool = True
    second: str = ""
    separable: ClassVar[bool] = True
    normalised: ClassVar[bool] = False
    neighbours: ClassVar[str] = "steps"

    def scales(self, sites: Sites) -> tuple[Any, Any]:
        """How much the terms of the two ratios of every move count: numbers, or arrays (rows, moves); see `Sites`."""
        return 1.0, 1.0

    def words(self, sites: Sites) -> str:
        """Which rows count less than others, where a loss weights them; otherwise nothing."""
        return ""

    @abstractmethod
    def prepare(self, model: AbstractModel, sites: Sites) -> Prepared:
        """The table that the loss needs of a model at the data, free of the parameters."""

    @abstractmethod
    def value(self, theta: Theta, table: Any, weights: Any) -> Float[Array, ""]:
        """D at parameters, from the table and the weights of its terms."""

    def second_order(self, theta: Theta, table: Any, weights: Any) -> SecondOrder | None:
        """Value, gradient and Hessian where the table has a formula for them; None to differentiate."""
        return None

    def lines(self, theta: Theta, table: Any) -> Any:
        """The gradient of each of the table's terms, where it has a formula for them; None to differentiate."""
        return None
