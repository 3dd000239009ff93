"""Tables of networks whose intercepts and interactions depend on covariates.

Row i has a = sum_q z_iq a_q and W = sum_q z_iq W_q, so its log-ratios are linear in all coefficients, as those of the
network itself are: z_iq and z_iq x_k stand where 1 and x_k stood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..data.sites import Sites
from .network import Pairwise
from .network_tables import PairwiseTable, columns, moves
from .parameters import Theta
from .tables import Function, Prepared, by_row, padded_size, table

if TYPE_CHECKING:
    from .regression import Regression


@table
class PairwiseRegressionTable(PairwiseTable):
    """The table of a network, and the covariates of every row as columns, 1 for parameters without a formula last."""

    model: Regression  # type: ignore[assignment]
    given: Float[Array, "q u"]

    @staticmethod
    def of(model: Regression, base: Pairwise, sites: Sites) -> Prepared:  # type: ignore[override]
        assert sites.given is not None
        size = padded_size(len(sites.rows))
        given = np.column_stack([sites.given, np.ones(len(sites.rows))])
        parts = (*moves(base, sites, size), columns(given, size))
        return by_row(sites, PairwiseRegressionTable(model, *parts), size)

    @property
    def base(self) -> Pairwise:
        assert self.model.pairwise is not None
        return self.model.pairwise

    def terms(self, name: str) -> Float[Array, "t u"]:
        """What multiplies the coefficients of a parameter in every row."""
        term = next((term for term in self.model.terms if term.parameter == name), None)
        return self.given[-1:] if term is None else self.given[term.first : term.first + term.terms]

    def offset(self, name: str) -> Float[Array, " u"] | None:
        """What is added to a parameter as it is."""
        place = next((term.offset for term in self.model.terms if term.parameter == name), None)
        return None if place is None else self.given[place]

    def predictors(self, theta: Theta) -> tuple[Array, Array | float]:
        named, base, d = self.model.space.unflatten(theta), self.base, self.base.graph.size
        local = named["intercept"].reshape(-1, d).T @ self.terms("intercept")
        if base.graph.pairs:
            terms = self.terms("interaction")
            for weights, term in zip(named["interaction"].reshape(len(terms), -1), terms, strict=True):
                local += term[None, :] * (base.matrix(weights) @ self.rows)
        if (more := self.offset("intercept")) is not None:
            local += more[None, :]
        if (more := self.offset("interaction")) is not None:
            local += more[None, :] * (base.matrix(jnp.ones(len(base.graph.pairs))) @ self.rows)
        return local, named["nu"][:, None] if base.free_power else 1.0

    @property
    def features(self) -> Float[Array, "s u"]:
        """The terms of intercepts, and those of interactions times x_1 ... x_d."""
        products = self.terms("interaction")[:, None, :] * self.rows[None, :, :]
        return jnp.concatenate([self.terms("intercept"), products.reshape(-1, self.rows.shape[1])])

    @property
    def slots(self) -> tuple[Int[np.ndarray, "d s"], Float[np.ndarray, "d s"]]:
        base, space, d, edges = self.base, self.model.space, self.base.graph.size, len(self.base.graph.pairs)
        sizes = [p.size for p in space.parameters]
        first = dict(zip([p.name for p in space.parameters], np.cumsum([0, *sizes]), strict=False))
        nodes, none = np.arange(d)[:, None], np.full((d, 1), space.size)
        intercepts = first["intercept"] + nodes + d * np.arange(len(self.terms("intercept")))
        among = [
            np.where(base.edge_of < edges, first.get("interaction", 0) + q * edges + base.edge_of, none)
            for q in range(len(self.terms("interaction")))
        ]
        place = np.hstack([intercepts, *among, first["nu"] + nodes if base.free_power else none])
        factor = np.ones(place.shape)
        factor[:, intercepts.shape[1] : -1] = base.sign
        return place, factor

    def lines(self, minus: Function, plus: Function, theta: Theta) -> Float[Array, "u p"]:
        parts = [
            (self.terms(name)[:, None, :] * slope[None, :, :]).reshape(-1, slope.shape[1])
            for name, slope in self.slopes(minus, plus, theta).items()
        ]
        return jnp.concatenate(parts).T
