"""Rows given their covariates: the distribution of every row, listed, and draws from it.

A row of one column, or of few points, has its masses listed, up to where the tails are negligible. Rows are worked on
in blocks of similar means, so that a block's values lie close together, also where some means are a thousand times
others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..domain import NEGLIGIBLE, beyond, until_negligible
from ..parameters import Rows, own_of
from ..terms import filled
from .base import Simulable

CELLS = 2**20  # masses that are worked on at once: 8 MB
SIZES = (16, 64, 256, 1024, 4096)  # rows that are worked on at once, for each of which code is compiled
FIRST_LISTED, MOST_LISTED = 64, 2**18  # counts; a row whose counts go further has an absurd mean
SPREAD = 8.0
"""Standard deviations of a Poisson distribution, on either side of the means, that are listed first: what lies beyond
is below `NEGLIGIBLE`, so that only what varies more is listed again."""
TOO_LARGE = (
    "at these parameters counts are so large, or so spread, that their distribution cannot be listed. What to do: look "
    "for a covariate or an offset with values that are far too large."
)


@dataclass(frozen=True)
class Listed:
    """Distributions of some rows, each averaged over parameters.

    Attributes
    ----------
    rows : (u,) integers
        Which rows these are.
    points : (s, d) integers
    masses : (u, s) floats
        Averaged over the parameters; they sum to 1.
    means : (c, u) floats
        Expected values of the first column at each of the parameters.
    """

    rows: Int[np.ndarray, " u"]
    points: Int[np.ndarray, "s d"]
    masses: Float[np.ndarray, "u s"]
    means: Float[np.ndarray, "c u"]


@partial(jax.jit, static_argnums=0)
def _of_rows(model: Simulable, theta: Array, given: Array) -> tuple[Rows, Array | None]:
    """What the family needs of every row, and means where it has a formula."""
    rows = model.at_rows(model.space.unflatten(theta), given)
    return rows, model.means_at(rows, len(given))


@partial(jax.jit, static_argnums=0)
def _masses(model: Simulable, shared: Rows, own: Rows, index: Array, points: Array) -> tuple[Array, Array]:
    """Masses of the rows ``index``, and means."""

    def of_row(i: Array) -> Array:
        row = shared | {name: part[i] for name, part in own.items()}
        return jax.nn.softmax(jax.vmap(lambda x: model.log_mass_at(row, x))(points))

    mass = jax.vmap(of_row)(index)
    return mass, mass @ points[:, 0]


def standard(rows: int) -> int:
    """One of few numbers of rows that are worked on at once: compiling for another takes longer than some padding."""
    return next(size for size in SIZES if rows <= size or size == SIZES[-1])


@dataclass(frozen=True)
class Chunk:
    """Rows whose parameters are known, at each of several parameters of the model.

    Attributes
    ----------
    shared, own : sequences of Rows
        What the family needs at each of the parameters: the same for all rows, and of every row.
    means : (c, u) floats or None
        Expected values, where the family has a formula.
    """

    model: Simulable
    shared: tuple[Rows, ...]
    own: tuple[Rows, ...]
    means: Float[np.ndarray, "c u"] | None

    @classmethod
    def of(
        cls, model: Simulable, thetas: Float[np.ndarray, "c p"], given: Float[np.ndarray, "u q"], size: int
    ) -> Chunk:
        """``size`` rows are computed, one of the parameters at a time: their number compiles nothing anew."""
        shared, own, means = [], [], []
        rows = filled(given, size)
        for theta in thetas:
            found, mean = _of_rows(model, theta, rows)
            mine = own_of(found, model.ranks)
            own.append({name: part for name, part in found.items() if name in mine})
            shared.append({name: part for name, part in found.items() if name not in own[-1]})
            means += [] if mean is None else [np.asarray(mean)[: len(given)]]
        return cls(model, tuple(shared), tuple(own), np.stack(means) if means else None)

    def at(self, which: slice) -> Chunk:
        """The same at some of the parameters."""
        means = None if self.means is None else self.means[which]
        return Chunk(self.model, self.shared[which], self.own[which], means)

    def few(self, most: int = 10) -> Chunk:
        """The same at every so-many-th of the parameters."""
        return self.at(slice(None, None, -(-len(self.own) // most)))

    def masses(self, rows: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Masses of some rows at these points, averaged over parameters, and means at each of them."""
        index = jnp.asarray(np.concatenate([rows, np.repeat(rows[:1], standard(len(rows)) - len(rows))]))
        at, total, means = jnp.asarray(points, float), np.zeros((len(rows), len(points))), []
        for shared, own in zip(self.shared, self.own, strict=True):
            found, mean = _masses(self.model, shared, own, index, at)
            total += np.asarray(found)[: len(rows)]
            means.append(np.asarray(mean)[: len(rows)])
        return total / len(means), np.stack(means)

    def points(self, rows: np.ndarray) -> np.ndarray:
        """All values of some rows that are not negligible."""
        domain = self.model.domain
        if domain.is_finite:
            return domain.points()
        low, width = self._window(rows)
        few = self if self.means is None else self.few()  # where means are known the window is about all of them

        def attempt(number: int) -> tuple[np.ndarray, float]:
            nonlocal low
            points = domain.coordinate(0).listed(number, low)[:, None]
            masses, _ = few.masses(rows, points)
            below = float(beyond(masses[:, 0], masses[:, 1]).max()) if low else 0.0
            low = max(0, low - number) if below > NEGLIGIBLE else low
            return points, max(below, float(beyond(masses[:, -1], masses[:, -2]).max()))

        return until_negligible(attempt, width, MOST_LISTED, TOO_LARGE)

    def _window(self, rows: np.ndarray) -> tuple[int, int]:
        """Where to begin, and how many values: about the means, where nothing is special about the first value."""
        if self.means is None or not np.isfinite(self.means[:, rows]).all():
            return 0, FIRST_LISTED
        least, most = float(self.means[:, rows].min()), float(self.means[:, rows].max())
        most = min(most, float(MOST_LISTED) ** 2)
        low = max(0, int(least - SPREAD * np.sqrt(least) - FIRST_LISTED // 4)) if self.model.mode_inside else 0
        wanted = most + SPREAD * np.sqrt(most) + FIRST_LISTED // 4 - low
        return low, max(FIRST_LISTED, 2 ** int(np.ceil(np.log2(wanted))))

    def similar(self, rows: int) -> Iterator[np.ndarray]:
        """Parts of the rows to list together: their means are within 8 standard deviations of a Poisson count."""
        level = np.zeros(rows)
        if self.means is not None:
            level = np.floor(np.sqrt(np.minimum(np.nan_to_num(self.means.mean(axis=0)), 1e18)) / 4.0)
        width = self.model.domain.size if self.model.domain.is_finite else FIRST_LISTED
        for value in np.unique(level):
            part = np.flatnonzero(level == value)
            each = int(np.clip(CELLS // max(width, FIRST_LISTED * value), 1, SIZES[-1]))
            yield from (part[k : k + each] for k in range(0, len(part), each))


def width(model: Simulable, mean: float) -> int:
    """About how many values of a row with this mean are listed."""
    if model.domain.is_finite:
        return int(model.domain.size)
    beyond = 0.0 if model.mode_inside else mean
    return int(FIRST_LISTED + beyond + 2 * SPREAD * np.sqrt(mean))


def is_listable(model: Simulable) -> bool:
    """Whether the points of a row can be listed: of one column, or of a few with few values."""
    domain = model.domain
    if domain.is_finite:
        return domain.size <= 2**12  # points, of every row of a block
    return domain.is_one_count


def chunks(
    model: Simulable, thetas: Float[np.ndarray, "c p"], given: Float[np.ndarray, "u q"]
) -> Iterator[tuple[np.ndarray, Chunk]]:
    """Rows in the order of their means, so many at a time that their parameters can be held."""
    if not len(given):
        return
    size, centre = standard(len(given)), thetas.mean(axis=0)[None]
    parts = [given[k : k + size] for k in range(0, len(given), size)]
    means = [Chunk.of(model, centre, part, size).means for part in parts] if len(parts) > 1 else [None]
    known = [part for part in means if part is not None]
    order = np.argsort(np.concatenate(known, axis=1)[0], kind="stable") if known else np.arange(len(given))
    for first in range(0, len(order), size):
        part = order[first : first + size]
        yield part, Chunk.of(model, thetas, given[part], size)


def distributions(
    model: Simulable, thetas: Float[np.ndarray, "c p"], given: Float[np.ndarray, "u q"]
) -> Iterator[Listed]:
    """The distribution of every row, averaged over parameters, in blocks of rows of similar means."""
    for part, chunk in chunks(model, thetas, given):
        for inside in chunk.similar(len(part)):
            points = chunk.points(inside)
            masses, means = chunk.masses(inside, points)
            yield Listed(part[inside], points, masses, means if chunk.means is None else chunk.means[:, inside])


@dataclass(frozen=True)
class Tails:
    """Of every row: the chances of less than was observed, of just that, and of more; expected value and variance."""

    below: Float[np.ndarray, " u"]
    here: Float[np.ndarray, " u"]
    above: Float[np.ndarray, " u"]
    mean: Float[np.ndarray, " u"]
    variance: Float[np.ndarray, " u"]


def tails(
    model: Simulable, theta: Float[np.ndarray, " p"], given: Float[np.ndarray, "u q"], x: Int[np.ndarray, " u"]
) -> Tails:
    """Tail probabilities of one observed column at one value of the parameters."""
    below, here, above, mean, variance = np.empty((5, len(given)))
    for part in distributions(model, theta[None], given):
        points, seen = part.points[:, 0], x[part.rows]
        step = 1 if len(points) < 2 or points[1] > points[0] else -1
        masses, points = part.masses[:, ::step], points[::step]
        place = np.searchsorted(points, seen)
        known = (place < len(points)) & (points[np.minimum(place, len(points) - 1)] == seen)
        lower = np.cumsum(np.pad(masses, ((0, 0), (1, 0))), axis=1)
        upper = np.cumsum(np.pad(masses, ((0, 0), (0, 1)))[:, ::-1], axis=1)[:, ::-1]
        each = np.arange(len(seen))
        below[part.rows] = lower[each, place]
        here[part.rows] = np.where(known, masses[each, np.minimum(place, len(points) - 1)], 0.0)
        above[part.rows] = upper[each, np.minimum(place + known, len(points))]
        mean[part.rows] = part.means[0]
        variance[part.rows] = np.einsum("us,us->u", masses, (points - part.means[0][:, None]) ** 2)
    return Tails(below, here, above, mean, variance)


def by_listing(
    model: Simulable, thetas: Float[np.ndarray, "c p"], given: Float[np.ndarray, "n q"], rng: np.random.Generator
) -> Int[np.ndarray, "c n d"]:
    """One draw for every row at each of the parameters, by inversion of its cumulated masses."""
    distinct, where = np.unique(given, axis=0, return_inverse=True)
    found = np.empty((len(thetas), len(given), model.domain.d), dtype=np.int64)
    u = rng.random((len(thetas), len(given)))
    for part, chunk in chunks(model, thetas, distinct):
        for inside in chunk.similar(len(part)):
            points = chunk.points(inside)
            place = np.full(len(distinct), -1)
            place[part[inside]] = np.arange(len(inside))
            drawn = np.flatnonzero(place[where.reshape(-1)] >= 0)
            row = place[where.reshape(-1)[drawn]]
            for k in range(len(thetas)):
                masses, _ = chunk.at(slice(k, k + 1)).masses(inside, points)
                found[k, drawn] = inverted(masses, points, row, u[k, drawn])
    return found


def inverted(
    masses: Float[np.ndarray, "u s"], points: Int[np.ndarray, "s d"], row: Int[np.ndarray, " n"],
    u: Float[np.ndarray, " n"],
) -> Int[np.ndarray, "n d"]:  # fmt: skip
    """Draws from the distributions of ``row``, by inversion of cumulated masses at uniform numbers."""
    cumulated = np.cumsum(masses, axis=1)
    flat = (cumulated / cumulated[:, -1:] + np.arange(len(masses))[:, None]).reshape(-1)
    chosen = np.searchsorted(flat, u + row, side="right") - row * len(points)
    return points[np.clip(chosen, 0, len(points) - 1)]
