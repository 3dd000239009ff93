"""A user's own mass function tried at a few rows: columns it ignores, rows without a number, tails without an end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..errors import ModelError
from .dataset import Dataset
from .domain import Coordinate, Domain
from .parameters import Space

LogMass = Callable[[dict[str, Any], Any], Any]
STEPS = np.array([0, 1, 2, 3, 5, 8, 40, 1000, 10**6])  # from the end of a half-line
FINITE_UP_TO = 40  # values up to which a log mass has to be a number: beyond, one may overflow
MAX_COLUMNS_TRIED = 50  # up to which each is tried by itself


def require_sound(name: str, log_mass: LogMass, space: Space, domain: Domain) -> None:
    """Refuse a mass function that ignores a column, or is not a number somewhere, at draws from the prior."""
    if domain.d > MAX_COLUMNS_TRIED:
        return
    values = [_values(domain.coordinate(j)) for j in range(domain.d)]
    rng = np.random.default_rng(0)
    bases = np.array([[rng.choice(own) for own in values] for _ in range(4)])  # rows, each column of which is changed
    changed = [_changed(bases, j, np.append(own, np.nan)) for j, own in enumerate(values)]
    rows = np.concatenate([part.reshape(-1, domain.d) for part in changed])
    each = jax.jit(jax.vmap(lambda theta, x: jnp.asarray(log_mass(space.unflatten(theta), x), float), (None, 0)))
    found = np.stack([np.asarray(each(theta, rows)) for theta in space.draw_priors(2, 0)])
    _require_numbers(name, domain, rows, found)
    ends = np.cumsum([part[..., 0].size for part in changed])[:-1]
    split = zip(np.split(found, ends, axis=1), changed, strict=True)
    parts = [own.reshape(-1, *places.shape[:2]) for own, places in split]
    idle = [f"x[{j}]" for j, part in enumerate(parts) if np.isfinite(part).all() and (part == part[..., :1]).all()]
    if idle:
        raise ModelError(
            f"the mass function of '{name}' does not depend on {', '.join(idle)}. What to do: use every column of the "
            f"domain, or declare fewer (the domain has {domain.d})."
        )


def require_possible(
    name: str, log_mass: LogMass, space: Space, domain: Domain, data: Dataset, neighbours: str
) -> None:
    """Refuse rows that have probability zero, and data no row of which has a neighbour that may occur.

    ``neighbours`` says which: "steps" to the next values of a column, or all others of its "values"; or none. That is
    at draws from the prior, and of some hundred rows at most.
    """
    places = np.linspace(0, len(data.rows) - 1, min(len(data.rows), 200)).astype(int)
    rows = data.rows[places].astype(np.int64)
    thetas = space.draw_priors(4, 0)

    def possible(rows: np.ndarray) -> np.ndarray:
        """Whether each row may occur, or that is not known."""
        found = [
            jax.vmap(lambda x, t=theta: log_mass(space.unflatten(t), x))(rows.astype(float))
            for theta in jnp.asarray(thetas)
        ]
        return (np.stack([np.asarray(one) for one in found]) != -np.inf).any(axis=0)

    here = possible(rows)
    if not here.all():
        lost = int(np.argmin(here))
        raise ModelError(
            f"row {data.first[places[lost]] + 1} of the data, {_named(data, rows[lost])}, has probability zero under "
            f"'{name}'. What to do: correct the row or leave it out, or let the mass function be finite there."
        )

    def alone(neighbours: str) -> bool:
        return not possible(np.concatenate([_beside(domain, row, neighbours) for row in rows])).any()

    if neighbours and alone(neighbours):
        row = f"row {data.first[places[0]] + 1} ({_named(data, rows[0])})"
        them = f"one-step neighbour of {row}" if neighbours == "steps" else f"row that differs from {row} in one column"
        remedy = (
            "leave out the column that the others determine (of columns with a fixed sum the last one) and write the "
            "mass of the others, -inf where they are impossible"
        )
        if domain.d == 1:
            remedy = "recode the column so that values that may occur follow each other, such as 0, 1, 2 for 0, 2, 4"
        if neighbours == "steps" and not domain.has_integers and not alone("values"):
            remedy += "; or use loss='pseudo'"
        if domain.is_finite:
            remedy += "; or use loss='likelihood', as the domain is finite"
        raise ModelError(
            f"every {them} has probability zero under '{name}', and so it is with the other rows: a loss that compares "
            f"rows with their neighbours has nothing to compare. What to do: {remedy}."
        )


def _beside(domain: Domain, row: np.ndarray, neighbours: str) -> np.ndarray:
    """Rows (m, d) that differ from one in one column."""
    found = []
    if neighbours == "steps":
        for values, there in (domain.decrement(row[None]), domain.increment(row[None])):
            found += [_with(row, j, values[0, m]) for m, j in enumerate(domain.moves) if there[0, m]]
    else:
        for j in range(len(row)):
            own = domain.coordinate(j)
            values = own.listed(own.reach(row[[j]], 1.0, FINITE_UP_TO))
            found += [_with(row, j, value) for value in values if value != row[j]]
    return np.array(found)


def _with(row: np.ndarray, j: int, value: Any) -> np.ndarray:
    other = row.copy()
    other[j] = value
    return other


def endless(
    log_masses: Callable[[np.ndarray], Any], domain: Domain, rows: Float[np.ndarray, "u d"]
) -> tuple[int, ...] | None:
    """Columns along which a mass function does not fall, so that it has no finite sum; None where that is not certain.

    Tried from the row with the largest values, along every half-line and along all of them together. A sum converges
    where the mass at last falls by more than half whenever x doubles. That may be very far out (a geometric tail of
    ratio 1 - 1e-9), so a mass is said not to fall only if it falls by less than that as far as numbers go, and if what
    it falls by settles: that of a geometric tail, or of any that falls faster than a power of x, grows and grows.
    """
    sides = {"above": 1.0, "below": -1.0}
    directions = np.diag([sides.get(domain.coordinate(j).kind, 0.0) for j in range(domain.d)])
    directions = directions[np.diag(directions) != 0]
    if not len(directions):
        return None
    along = np.vstack([directions, directions.sum(axis=0)[None]])
    start = np.asarray(rows[np.argmax(np.abs(rows).sum(axis=1))], float)
    far = 1e6 * 2.0 ** np.arange(28)[:, None, None]  # to 1e14: a tail of ratio 1 - 1e-15 is told from a flat one
    found = np.asarray(log_masses((start + far * along).reshape(-1, domain.d))).reshape(len(far), -1)
    with np.errstate(invalid="ignore"):
        falls = found[:-1] - found[1:]
        more = np.diff(falls, axis=0)
        rounding = 64 * np.finfo(float).eps * np.abs(found[2:])
        settles = (more[1:] <= np.maximum(more[:-1], 0.0) + rounding[1:]).all(axis=0)
        settles &= more[-1] <= np.maximum(0.1 * more[0], 0.0) + rounding[-1]
        bad = settles & (falls < np.log(2.0)).all(axis=0)
    bad |= (found == np.inf).any(axis=0) & ~np.isnan(found).any(axis=0)
    return tuple(int(j) for j in np.flatnonzero(along[int(np.argmax(bad))])) if bad.any() else None


def _values(coordinate: Coordinate) -> np.ndarray:
    """Some of the values that a column may have."""
    if coordinate.levels:
        return np.asarray(coordinate.levels[: len(STEPS)], float)
    if coordinate.kind == "integers":
        return np.concatenate([-STEPS[1:3], STEPS]).astype(float)
    return (coordinate.end or 0) + (1.0 if coordinate.kind == "above" else -1.0) * STEPS


def _changed(bases: np.ndarray, j: int, values: np.ndarray) -> np.ndarray:
    """Rows (base, value, d): each base with every value, and none at all, in column j."""
    rows = np.repeat(bases[:, None, :], len(values), axis=1)
    rows[:, :, j] = values
    return rows


def _require_numbers(name: str, domain: Domain, rows: np.ndarray, found: np.ndarray) -> None:
    real = (np.abs(rows) <= FINITE_UP_TO).all(axis=1)
    lost = real & (np.isnan(found) | (found == np.inf)).all(axis=0)
    if not lost.any() or lost[real].all():
        return
    row = rows[np.argmax(lost)]
    no_zero = (
        f" If no column can be 0, say so: dfd.Counts({domain.d}, minimum=1)."
        if all(coordinate.kind == "above" and coordinate.end == 0 for coordinate, _ in domain.runs) and 0 in row
        else ""
    )
    raise ModelError(
        f"the mass function of '{name}' is not a number at x = {_shown(row)}. What to do: x * log(x) is not one at 0; "
        f"write jax.scipy.special.xlogy(x, x), which is 0 there.{no_zero}"
    )


def _named(data: Dataset, row: np.ndarray) -> str:
    values = [f"{name} = {value}" for name, value in zip(data.columns, row, strict=True)]
    return ", ".join(values[:4]) + (", ..." if len(values) > 4 else "")


def _shown(row: Sequence[float]) -> str:
    return f"[{', '.join(f'{value:g}' for value in row)}]"
