"""Tables of networks whose intercepts and interactions depend on covariates.

Row i has a = sum_q z_iq a_q and W = sum_q z_iq W_q, so its log-ratios are linear in all coefficients, as those of the
network itself are: a node's own x and what is seen of its neighbours are multiplied by the terms z_iq.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..data.sites import Sites
from .network import Pairwise
from .network_tables import PairwiseTable, columns, joined, moves
from .parameters import Theta
from .tables import Prepared, by_row, padded_size, table

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

    def predictors(self, theta: Theta) -> tuple[Array, Array]:
        named, base = self.model.space.unflatten(theta), self.base
        local = jnp.zeros_like(self.scores)
        if base.graph.pairs:
            terms = self.terms("interaction")
            for weights, term in zip(named["interaction"].reshape(len(terms), -1), terms, strict=True):
                local += term[None, :] * (base.matrix(weights) @ self.scores)
        if (more := self.offset("interaction")) is not None:
            local += more[None, :] * (base.matrix(jnp.ones(len(base.graph.pairs))) @ self.scores)
        linear = [jnp.concatenate([theta, jnp.array([0.0, 1.0])])[place] for place in self._own_places[0]]
        steps = sum(slope[:, None] * term[None, :] for slope, term in zip(linear, self.terms("intercept"), strict=True))
        if (more := self.offset("intercept")) is not None:
            steps += more[None, :]
        others = jnp.concatenate([theta, jnp.array([0.0, 1.0])])[self._own_places[1]]
        spread = jnp.broadcast_to(others[:, :, None], (*others.shape, local.shape[1]))
        return local, jnp.concatenate([steps[None], spread])

    @property
    def _own_places(self) -> tuple[Int[np.ndarray, "q d"], Int[np.ndarray, "f d"]]:
        """Where the coefficients of the intercepts are, by term, and those of all else that nodes own."""
        space, base = self.model.space, self.base
        none, size = space.size, sum(kind.linear for kind in base.kinds)

        def of_term(q: int) -> Int[np.ndarray, "f d"]:
            def place(name: str, i: int) -> int:
                return space.first[name] + i + (q * size if name == "intercept" else 0)

            return base.own_places(place, none, none + 1)

        found = [of_term(q) for q in range(len(self.terms("intercept")))]
        return np.stack([places[0] for places in found]), found[0][1:]

    @property
    def owned(self) -> tuple[Float[Array, "f d u"], Float[Array, "f d u"]]:
        terms = self.terms("intercept")[:, None, :]
        down, up = (jnp.concatenate([terms * part[:1], part[1:]]) for part in (self.own_down, self.own_up))
        return down, up

    @property
    def features(self) -> Float[Array, "s u"]:
        """The terms of interactions times what is seen of the nodes."""
        products = self.terms("interaction")[:, None, :] * self.scores[None, :, :]
        return products.reshape(-1, self.scores.shape[1])

    @property
    def slots(self) -> tuple[Int[np.ndarray, "d s"], Float[np.ndarray, "d s"]]:
        base, space, edges = self.base, self.model.space, len(self.base.graph.pairs)
        none, first = space.size, space.first.get("interaction", 0)
        own = np.minimum(np.concatenate(self._own_places), none).T
        among = [
            np.where(base.edge_of < edges, first + q * edges + base.edge_of, none)
            for q in range(len(self.terms("interaction")))
        ]
        place = np.hstack([own, *among])
        factor = np.ones(place.shape)
        factor[:, own.shape[1] :] = base.sign
        return place, factor

    def edge_lines(self, slope: Float[Array, "d u"]) -> tuple[int, Float[Array, "e u"]]:
        lines = joined(self.base, slope, self.scores)
        each = self.terms("interaction")[:, None, :] * lines[None, :, :]
        return self.model.space.first.get("interaction", 0), each.reshape(-1, lines.shape[1])
