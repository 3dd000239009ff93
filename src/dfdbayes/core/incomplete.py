"""Rows with missing entries: their completions, weighed by how likely a model finds them (fractional imputation).

The share of a completion is p(x_mis | x_obs), a ratio of unnormalised masses among the completions of one row: it
needs no constant. A loss on complete rows then gives an estimating equation for incomplete ones, the expectation of its
gradient given what was observed, which is unbiased where values are missing at random (Kim, 2011; Yang and Kim, 2016).
Shares depend on the parameters, so the equation's derivative is not the loss's Hessian alone: what the shares do when
parameters move is the information that is missing (Louis, 1982).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import sparse

from .completions import Completions
from .dataset import Dataset
from .model import AbstractModel
from .sites import Units
from .terms import filled, padded_size

COMPLETED = "completed rows"
AT_MOST = 2**22  # shares of completions at a time
AT_ONCE = 512  # rows whose scores are differentiated side by side


@dataclass(frozen=True)
class Incomplete:
    """Observed rows, some of which lack entries, and the complete rows that they may be.

    Attributes
    ----------
    observed : Dataset
        As it was read.
    units : Units
        What is independent among the observed rows: these themselves, or clusters of them.
    completions : Completions
    shares : (v, u) sparse floats
        How much of each observed row every complete row has, at the parameters of the last `at`.
    theta : (p,) floats, optional
        These parameters.
    """

    observed: Dataset
    units: Units
    completions: Completions
    shares: sparse.csr_matrix
    theta: Float[np.ndarray, " p"] | None = None

    @classmethod
    def of(cls, observed: Dataset, units: Units, completions: Completions) -> Incomplete:
        """With equal shares for all completions of a row, but for their factors."""
        return cls(observed, units, completions, _shares(completions, len(observed.rows), completions.base))

    def at(self, model: AbstractModel, theta: Float[np.ndarray, " p"]) -> Incomplete:
        """The same with the shares that the model gives."""
        c = self.completions
        log = log_masses(model, theta, c.data)[c.row] + c.base
        return replace(self, shares=_shares(c, len(self.observed.rows), log), theta=np.asarray(theta))

    def spread(self, weights: Float[np.ndarray, "*batch v"]) -> Float[np.ndarray, "*batch u"]:
        """Weights of complete rows from weights of the units."""
        owner = self.units.owner
        rows = weights if owner is None else weights[..., owner] * self.observed.counts
        return np.asarray(rows @ self.shares)

    def spread_each(
        self, model: AbstractModel, thetas: Float[np.ndarray, "b p"], weights: Float[np.ndarray, "b v"]
    ) -> Float[np.ndarray, "b u"]:
        """Weights of complete rows from weights of the units, each with the shares that its own parameters give."""
        c, owner = self.completions, self.units.owner
        order = np.argsort(c.owner, kind="stable")
        of, row = c.owner[order], c.row[order]
        first = np.flatnonzero(np.diff(of, prepend=-1))
        place = np.repeat(np.arange(len(first)), np.diff(first, append=len(of)))
        into = sparse.csr_matrix((np.ones(len(row)), (np.arange(len(row)), row)), (len(row), len(c.data.rows)))
        rows = weights if owner is None else weights[:, owner] * self.observed.counts
        found = np.empty((len(thetas), len(c.data.rows)))
        size = max(1, AT_MOST // len(row))
        for begin in range(0, len(thetas), size):
            part = slice(begin, begin + size)
            log = np.stack([log_masses(model, theta, c.data) for theta in thetas[part]])[:, row] + c.base[order]
            mass = np.exp(log - np.maximum.reduceat(log, first, axis=1)[:, place])
            share = mass / np.add.reduceat(mass, first, axis=1)[:, place]
            found[part] = (share * rows[part][:, of]) @ into
        return found

    def by_unit(self, lines: Float[np.ndarray, "u p"]) -> Float[np.ndarray, "v p"]:
        """What each unit of weight 1 has of lines that belong to complete rows."""
        own = self.shares @ lines
        if self.units.owner is None:
            return own
        found = np.zeros((len(self.units.weights), own.shape[1]))
        np.add.at(found, self.units.owner, own * self.observed.counts[:, None])
        return found

    def moved(self, lines: Float[np.ndarray, "u p"], scores: Float[np.ndarray, "u p"]) -> Float[np.ndarray, "p p"]:
        """How the gradient changes because shares do: the rows' covariances of gradients and scores, summed.

        ``lines`` are the loss's gradients of complete rows, ``scores`` those of their log mass. Added to the Hessian
        at fixed shares it gives the estimating equation's derivative.
        """
        together = (lines * self.spread(self.units.weights)[:, None]).T @ scores
        return together - ((self.shares @ lines) * self.observed.counts[:, None]).T @ (self.shares @ scores)

    def complete_squares(self, lines: Float[np.ndarray, "u p"]) -> Float[np.ndarray, "p p"]:
        """The sum of squared gradients that complete rows would have had."""
        return (lines * self.spread(self.units.weights)[:, None]).T @ lines


def _shares(completions: Completions, rows: int, log: Float[np.ndarray, " c"]) -> sparse.csr_matrix:
    """Softmax of the log weights within every observed row."""
    peak = np.full(rows, -np.inf)
    np.maximum.at(peak, completions.owner, log)
    mass = np.exp(log - peak[completions.owner])
    total = np.bincount(completions.owner, weights=mass, minlength=rows)
    share = mass / total[completions.owner]
    shape = (rows, len(completions.data.rows))
    return sparse.csr_matrix((share, (completions.owner, completions.row)), shape=shape)


def _padded(data: Dataset) -> tuple[Array, Array | None]:
    size = padded_size(len(data.rows))
    return filled(data.rows, size), None if data.given is None else filled(data.given, size)


def log_masses(model: AbstractModel, theta: Float[np.ndarray, " p"], data: Dataset) -> Float[np.ndarray, " u"]:
    """Log unnormalised masses of all rows."""
    return np.asarray(_log_masses(model, jnp.asarray(theta), *_padded(data)))[: len(data.rows)]


def scores(model: AbstractModel, theta: Float[np.ndarray, " p"], data: Dataset) -> Float[np.ndarray, "u p"]:
    """The gradients of the rows' log unnormalised masses."""
    return np.asarray(_scores(model, jnp.asarray(theta), *_padded(data)))[: len(data.rows)]


@partial(jax.jit, static_argnums=0)
def _log_masses(model: AbstractModel, theta: Array, rows: Array, given: Array | None) -> Array:
    return model.log_masses(theta, rows, given)


@partial(jax.jit, static_argnums=0)
def _scores(model: AbstractModel, theta: Array, rows: Array, given: Array | None) -> Array:
    def of(row: tuple[Array, Array | None]) -> Array:
        x, z = row
        own = None if z is None else z[None]
        return jax.grad(lambda t: model.log_masses(t, x[None], own)[0])(theta)

    return jax.lax.map(of, (rows, given), batch_size=AT_ONCE)
