"""A user's own mass function tried at a few rows: columns it ignores, rows without a number, tails without an end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..data.domain import Coordinate, Domain
from ..errors import ModelError
from .parameters import Space

LogMass = Callable[[dict[str, Any], Any], Any]
STEPS = np.array([0, 1, 2, 3, 5, 8, 40, 1000, 10**6])  # from the end of a half-line
SMALL = 40  # values up to which a log mass has to be a number: beyond, one may overflow
BASES = 4  # rows, each column of which is changed in turn
MOST_COLUMNS = 50  # that are tried
FAR = 1e6  # beyond the largest value seen, where it is first asked whether a mass falls faster than one over x,
DOUBLINGS = 27  # and how often as far: to 1e14, where a geometric tail of ratio 1 - 1e-15 is told from a flat one


def require_sound(name: str, log_mass: LogMass, space: Space, domain: Domain) -> None:
    """Refuse a mass function that ignores a column, or is not a number somewhere, at draws from the prior."""
    if domain.d > MOST_COLUMNS:
        return
    values = [_values(domain.coordinate(j)) for j in range(domain.d)]
    rng = np.random.default_rng(0)
    bases = np.array([[rng.choice(own) for own in values] for _ in range(BASES)])
    changed = [_changed(bases, j, np.append(own, np.nan)) for j, own in enumerate(values)]
    rows = np.concatenate([part.reshape(-1, domain.d) for part in changed])
    each = jax.jit(jax.vmap(lambda theta, x: jnp.asarray(log_mass(space.unflatten(theta), x), float), (None, 0)))
    found = np.stack([np.asarray(each(theta, rows)) for theta in space.draw_priors(2, 0)])
    _require_numbers(name, rows, found)
    ends = np.cumsum([part[..., 0].size for part in changed])[:-1]
    split = zip(np.split(found, ends, axis=1), changed, strict=True)
    parts = [own.reshape(-1, *places.shape[:2]) for own, places in split]
    idle = [f"x[{j}]" for j, part in enumerate(parts) if np.isfinite(part).all() and (part == part[..., :1]).all()]
    if idle:
        raise ModelError(
            f"the mass function of '{name}' does not depend on {', '.join(idle)}. What to do: use every column of the "
            f"domain, or declare fewer (the domain has {domain.d})."
        )


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
    far = FAR * 2.0 ** np.arange(DOUBLINGS + 1)[:, None, None]
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


def _require_numbers(name: str, rows: np.ndarray, found: np.ndarray) -> None:
    real = (np.abs(rows) <= SMALL).all(axis=1)
    lost = real & np.isnan(found).all(axis=0)
    if not lost.any() or lost[real].all():
        return
    row = rows[np.argmax(lost)]
    raise ModelError(
        f"the mass function of '{name}' is not a number at x = {_shown(row)}. What to do: x * log(x) is not one at 0; "
        "write jax.scipy.special.xlogy(x, x), which is 0 there."
    )


def _shown(row: Sequence[float]) -> str:
    return f"[{', '.join(f'{value:g}' for value in row)}]"
