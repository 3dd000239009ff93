"""Robust losses: a local loss whose pairs of neighbours are weighted, so that rows far from all others hardly count.

A local loss is a sum over pairs of neighbours (x, y = x^{j+}), each a function of one ratio p(x) / p(y): summation by
parts turns E_q[f(u(y)) + g(v(x))] into the sum over pairs of q(y) f + q(x) g, both at log p(x) / p(y). The divergence
and ratio matching are smallest in every single pair where p(x) / p(y) = q(x) / q(y), so that *any* positive weight
M(x, y) of the pairs leaves them proper. With M = m(y) the weighted divergence is

    E_q[ m(x) (r^-(x))^2 - 2 m(x^{j+}) r^+(x) ] = E_q[ m (r_p^- - r_q^-)^2 ] - E_q[ m (r_q^-)^2 ].

Ratio matching treats both ends of a pair alike, and so does its weight, M = (m(x) m(y))^(1/2).

As every weight is proper, the expected slope of the loss at the truth is zero whatever m is: that m was chosen from the
data does not matter to first order, and losses are calibrated with the weight held fixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from jaxtyping import Array, Float, Int

from ..._util.codec import from_plain, to_plain
from ...errors import SettingError
from ..dataset import Sites
from ..terms import Site
from .base import LOSSES, AbstractLoss
from .local import FISHER, RATIO, LocalLoss
from .weights import AbstractWeight, OfRows

BASES = {loss.name: loss for loss in (FISHER, RATIO)}


@LOSSES.register("robust")
@dataclass(frozen=True)
class Robust(AbstractLoss):
    """A local loss with weights of rows: linear in the number of rows, proper for every positive weight.

    Parameters
    ----------
    base : {"dfd", "ratio"} or LocalLoss, optional
        What is weighted: the discrete Fisher divergence or generalised ratio matching. By default the divergence where
        it is what the model advises for the data, else ratio matching.
    weight : callable, optional
        ``weight(rows)`` gives a positive number for each row of an array (rows, columns). By default `fit` chooses one
        from the data, and says which: rows far out in the tails of a pilot fit count less.

    Examples
    --------
    >>> import dfdbayes as dfd, numpy as np
    >>> loss = dfd.losses.Robust("dfd", weight=lambda rows: 1 / (1 + np.exp(rows[:, 0] - 12.0)))
    >>> objective = dfd.objective(dfd.models.Poisson(), [3, 5, 4, 6, 2, 40], loss)
    >>> round(float(dfd.minimise(objective).theta["rate"]), 2)
    3.61
    >>> round(float(dfd.minimise(dfd.objective(dfd.models.Poisson(), [3, 5, 4, 6, 2, 40])).theta["rate"]), 2)
    25.61
    """

    base: Any = None
    weight: Any = field(default=None, compare=False)  # compiled code does not depend on it

    def __post_init__(self) -> None:
        base = BASES.get(self.base) if isinstance(self.base, str) else self.base
        if not (base is None and self.base is None) and not isinstance(base, LocalLoss):
            raise SettingError(
                f"{self.base!r} cannot be weighted; give 'dfd' or 'ratio', or a loss made with dfd.losses.LocalLoss"
            )
        weight = self.weight
        if weight is not None and not isinstance(weight, AbstractWeight):
            if not callable(weight):
                raise SettingError(f"weight is {weight!r}; give a function of an array of rows, or None")
            weight = OfRows(weight)
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "weight", weight)

    def __repr__(self) -> str:
        weight = "a weight chosen from the data" if self.weight is None else self.weight.words
        return f"Robust({self.base and self.base.name!r}: {weight})"

    @property
    def name(self) -> str:  # type: ignore[override]
        return "robust" if self.base is None else f"robust-{self.base.name}"

    @property
    def title(self) -> str:  # type: ignore[override]
        return "a robust loss" if self.base is None else f"robust {self.base.title}"

    @property
    def phrase(self) -> str:  # type: ignore[override]
        words = "" if self.weight is None else f" ({self.weight.words})"
        return f"{self._base.phrase or self._base.title} with weights of rows{words}"

    @property
    def formula(self) -> str:  # type: ignore[override]
        pair = "√( m(x) m(x<sup>j+</sup>) )" if self._base.symmetric else "m(x<sup>j+</sup>)"
        own = self._base.formula
        return (
            f"{own}<br><small>The terms of every pair x, x<sup>j+</sup> are multiplied by {pair}.</small>"
            if own
            else ""
        )

    @property
    def references(self) -> tuple[str, ...]:  # type: ignore[override]
        return self._base.references

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        return self.base is None or self.base.bounded

    @property
    def decided(self) -> bool:
        """Whether nothing is left to be chosen from the data."""
        return self.base is not None and self.weight is not None

    @property
    def _base(self) -> LocalLoss:
        if self.base is None:
            raise SettingError(
                "what a robust loss weights is chosen by dfd.fit, from the data; here say it: "
                "dfd.losses.Robust('dfd', weight=...)"
            )
        return self.base

    def scales(self, sites: Sites) -> tuple[Float[np.ndarray, "u m"], Float[np.ndarray, "u m"]]:
        """The weights of the pairs of every row with its decrements, and with its increments."""
        here = self._at(sites, sites.rows)[:, None]
        up = self._moved(sites, sites.up)
        if not self._base.symmetric:
            return np.broadcast_to(here, up.shape), up
        down = up if np.array_equal(sites.down, sites.up) else self._moved(sites, sites.down)
        return np.sqrt(here * down), np.sqrt(here * up)

    def _moved(self, sites: Sites, values: Int[np.ndarray, "u m"]) -> Float[np.ndarray, "u m"]:
        """The weights of the rows' neighbours, one column for each move."""
        found = np.empty(values.shape)
        rows = np.array(sites.rows, dtype=np.int64)
        for move, j in enumerate(sites.j):
            own = rows[:, j].copy()
            rows[:, j] = values[:, move]
            found[:, move] = self._at(sites, rows)
            rows[:, j] = own
        return found

    def _at(self, sites: Sites, rows: np.ndarray) -> Float[np.ndarray, " u"]:
        if self.weight is None:
            raise SettingError(
                "the weight of a robust loss is chosen by dfd.fit, from the data; here give one: "
                "dfd.losses.Robust('dfd', weight=function of an array of rows)"
            )
        found = np.asarray(self.weight.at(rows, sites.given), float)
        if found.shape != (len(rows),) or not np.isfinite(found).all() or (found < 0.0).any():
            told = (
                f"an array of shape {found.shape}" if found.shape != (len(rows),) else "numbers that are not positive"
            )
            raise SettingError(f"the weight of {len(rows)} rows is {told}; it must give one positive number for each")
        return found

    def words(self, sites: Sites) -> str:
        """Which rows count less, and how many of the data's do."""
        found = self._at(sites, sites.rows)
        number = sites.data.observations
        low = round(float(number[found < 0.5 * found.max()].sum()))
        return f"{self.weight.words}; {low} of {sites.data.n} rows have weight under one half"

    def term(self, u: Array, site: Site | None) -> Array:
        return self._base.term(u, site)

    def to_state(self) -> dict[str, Any]:
        return {"base": None if self.base is None else to_plain(self.base)["name"], "weight": self.weight}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], **known: Any) -> Self:
        return cls(from_plain(state["base"], str | None), from_plain(state["weight"], AbstractWeight | None, **known))

    def with_weight(self, base: LocalLoss, weight: AbstractWeight) -> Robust:
        """The same with what was left to the data."""
        return replace(self, base=self.base or base, weight=self.weight or weight)
