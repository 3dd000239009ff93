"""What a loss is: what it looks at in the data, and what it makes of that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from jaxtyping import Array

from ..._util import codec
from ...errors import SettingError
from ..dataset import Sites
from ..model import AbstractModel
from ..registry import Registry
from ..terms import Prepared, Site, View


class AbstractLoss(ABC):
    """A loss D(theta): a sum over the data, whose minimiser estimates the parameters.

    Attributes
    ----------
    view : View
        What it looks at: log-ratios to neighbours, or log-probabilities of coordinates or rows.
    name : str
        The word that names it in `fit` and on the command line.
    title : str
        Its name in plots and reports.
    phrase : str
        What it is in a sentence, with its citation.
    formula : str
        D(theta) in HTML, for reports; nothing of a user's enters it.
    references : tuple of str
        The works that the phrase cites: keys of `present.methods`, or the works themselves.
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

    view: ClassVar[View] = View.NEIGHBOURS
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
    def term(self, u: Array, site: Site | None) -> Array:
        """What a term adds to D, entry by entry, from what the loss looks at; see `View`."""

    def prepare(self, model: AbstractModel, sites: Sites) -> Prepared:
        """The terms of the loss at the data, free of the parameters."""
        return model.terms_at(sites, self.view)


LOSSES: Registry[AbstractLoss | type[AbstractLoss]] = Registry("loss")
"""Losses, and classes of which the one with the default settings is meant."""
codec.by_name(AbstractLoss, LOSSES, inside="arguments")


def by_name(loss: Any) -> AbstractLoss:
    """The loss that a word names; a loss object is returned as it is."""
    if isinstance(loss, AbstractLoss):
        return loss
    if not isinstance(loss, str):
        raise SettingError(f"{loss!r} is not a loss; give a word ({', '.join(LOSSES)}) or a dfd.losses object")
    known = LOSSES.by_name(loss)
    return known() if isinstance(known, type) else known
