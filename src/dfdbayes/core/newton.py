"""Projected Newton steps with Levenberg-Marquardt damping, inside a box: for one problem, and for many at once.

`many` is compiled as a whole, for bootstrap replicates side by side. `one` is the same algorithm step by step, and
compiles nothing but the function that it is given: a single minimisation is quick, and compiling a loop is not.
`contract` is for a problem whose Hessian is known well enough from another one: it needs gradients only, and gives up
where that Hessian will not do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import linalg

MAX_ITERATIONS = 200
CONTRACTION = 0.7  # at most so much of a step's length is left in the next one,
MAX_CONTRACTIONS = 100  # and so many steps are enough to take twelve digits off it
NEAR = 1e-10  # of each coordinate's size (or of 1) is the last step at most


class State(NamedTuple):
    """Where a search is; arrays of JAX or of NumPy."""

    y: Any
    value: Any
    gradient: Any
    hessian: Any
    damping: Any
    iterations: Any
    done: Any


def free_of(y: Any, gradient: Any, lower: Any, upper: Any) -> Any:
    """Coordinates that are not held at a bound by the gradient."""
    return ~(((y <= lower) & (gradient > 0)) | ((y >= upper) & (gradient < 0)))


def many(
    evaluate: Callable[..., Any], y: Array, lower: Array, upper: Array, slope: Callable[..., Any], aim: Array,
    wanted: Array,
) -> State:  # fmt: skip
    """Minimise over a box, traced. ``evaluate(y)`` gives value, gradient and Hessian, ``slope(y)`` is d theta / d y."""

    def projected(y: Array, gradient: Array) -> Array:
        return jnp.where(free_of(y, gradient, lower, upper), gradient, 0.0) / slope(y)

    def step(state: State) -> State:
        free = free_of(state.y, state.gradient, lower, upper)
        scale = jnp.abs(jnp.diag(state.hessian))
        scale = jnp.maximum(scale, 1e-10 * jnp.max(scale) + 1e-300)
        both = free[:, None] & free[None, :]
        damped = jnp.where(both, state.hessian, 0.0) + jnp.diag(jnp.where(free, state.damping * scale, 1.0))
        force = jnp.where(free, -state.gradient, 0.0)
        move = jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(damped), True), force)
        solved = jnp.all(jnp.isfinite(move))
        limit = 2.0 * jnp.maximum(1.0, jnp.abs(state.y))  # stay in the basin: no giant leaps
        move = jnp.clip(jnp.where(solved, move, 0.0), -limit, limit)
        y = jnp.clip(state.y + move, lower, upper)
        move = y - state.y
        expected = -(jnp.dot(state.gradient, move) + 0.5 * move @ state.hessian @ move)
        value, gradient, hessian = evaluate(y)
        gained = state.value - value
        noise = 1e-13 * (jnp.abs(state.value) + 1.0)
        smaller = jnp.max(jnp.abs(projected(y, gradient))) < jnp.max(jnp.abs(projected(state.y, state.gradient)))
        finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient)) & jnp.all(jnp.isfinite(hessian))
        better = (gained >= 1e-4 * expected) & (gained > 0.0)
        accepted = solved & finite & (better | ((jnp.abs(gained) <= noise) & smaller))
        good = gained > 0.75 * expected
        damping = jnp.where(
            accepted,
            jnp.where(good | (jnp.abs(gained) <= noise), state.damping / 10.0, state.damping),
            jnp.maximum(state.damping * 8.0, 1e-6),
        )
        damping = jnp.where(damping < 1e-9, 0.0, damping)
        y, value, gradient, hessian = jax.tree.map(
            lambda new, old: jnp.where(accepted, new, old),
            (y, value, gradient, hessian),
            (state.y, state.value, state.gradient, state.hessian),
        )
        small = jnp.max(jnp.abs(projected(y, gradient))) <= aim
        done = small | (damping > 1e14)
        return State(y, value, gradient, hessian, damping, state.iterations + 1, done)

    value, gradient, hessian = evaluate(y)
    begin = State(y, value, gradient, hessian, jnp.asarray(1e-3), jnp.asarray(0), ~(wanted & jnp.isfinite(value)))
    return jax.lax.while_loop(lambda s: ~s.done & (s.iterations < MAX_ITERATIONS), step, begin)


class Contraction(NamedTuple):
    """Where a search by another problem's Hessian is."""

    y: Array
    gradient: Array
    move: Array
    """The next step."""
    length: Array
    """Its square in the norm of the Hessian."""
    iterations: Array
    going: Array
    found: Array


def contract(
    gradient_at: Callable[..., Any], y: Array, lower: Array, upper: Array, slope: Callable[..., Any], aim: Array,
    inverse: Array, free: Array, wanted: Array,
) -> Contraction:  # fmt: skip
    """Minimise by steps y - K g(y), traced; K is the inverse of another problem's Hessian H, zero where not ``free``.

    What is ``found`` is a minimum that `many` finds from the same start:
    coordinates that are free stay inside the box, the others are held at their bound, no step is a leap, and each step
    is shorter than the last by a fixed factor. The latter shows that the Hessian is positive there. With G the mean
    Hessian along a step s, the next step is (I - K G) s, and I - K G is symmetric in the norm of H. As the steps settle
    it is one matrix, and its largest eigenvalues take over: all that had a share in the steps are below the factor in
    size, so those of K G lie between 1 - factor and 1 + factor. A direction that is not convex has an eigenvalue of at
    least 1 and its share of the steps would never shrink, while the whole has fallen by ten orders of magnitude. What
    goes unnoticed is a direction in which every step is zero by some symmetry of the loss, the start being on its axis.
    """

    def measured(y: Array) -> tuple[Array, Array, Array]:
        gradient = gradient_at(y)
        move = -inverse @ gradient
        return gradient, move, -jnp.dot(gradient, move)

    def step(state: Contraction) -> Contraction:
        y = state.y + state.move
        gradient, move, length = measured(y)
        size = jnp.maximum(1.0, jnp.abs(state.y))
        inside = jnp.all(jnp.where(free, (y > lower) & (y < upper), ~free_of(y, gradient, lower, upper)))
        shorter = (length <= CONTRACTION**2 * state.length) & jnp.all(jnp.abs(state.move) <= 2.0 * size)
        sound = inside & shorter
        small = jnp.max(jnp.abs(jnp.where(free, gradient, 0.0) / slope(y))) <= aim
        end = small & jnp.all(jnp.abs(move) <= NEAR * size)
        return Contraction(y, gradient, move, length, state.iterations + 1, sound & ~end, sound & end)

    begin = Contraction(y, *measured(y), jnp.asarray(0), wanted, jnp.asarray(False))
    return jax.lax.while_loop(lambda s: s.going & (s.iterations < MAX_CONTRACTIONS), step, begin)


def one(
    evaluate: Callable[[np.ndarray], tuple[np.ndarray, ...]], y: np.ndarray, lower: np.ndarray, upper: np.ndarray,
    aim: float,
) -> State:  # fmt: skip
    """Minimise over a box, on the host. ``evaluate(y)`` gives value, gradient, Hessian and d theta / d y."""

    def projected(y: np.ndarray, gradient: np.ndarray, slope: np.ndarray) -> float:
        return float(np.max(np.abs(np.where(free_of(y, gradient, lower, upper), gradient, 0.0) / slope)))

    value, gradient, hessian, slope = evaluate(y)
    damping, iterations, done = 1e-3, 0, not np.isfinite(value)
    while not done and iterations < MAX_ITERATIONS:
        iterations += 1
        free = free_of(y, gradient, lower, upper)
        scale = np.abs(np.diag(hessian))
        scale = np.maximum(scale, 1e-10 * scale.max() + 1e-300)
        move = _solved(hessian, damping * scale, np.where(free, -gradient, 0.0), free)
        if move is None:
            damping = max(damping * 8.0, 1e-6)
            done = damping > 1e14
            continue
        limit = 2.0 * np.maximum(1.0, np.abs(y))  # stay in the basin: no giant leaps
        there = np.clip(y + np.clip(move, -limit, limit), lower, upper)
        move = there - y
        expected = -(gradient @ move + 0.5 * move @ hessian @ move)
        found = evaluate(there)
        gained, noise = value - found[0], 1e-13 * (abs(value) + 1.0)
        finite = all(np.isfinite(part).all() for part in found[:3])
        smaller = finite and projected(there, found[1], found[3]) < projected(y, gradient, slope)
        better = gained >= 1e-4 * expected and gained > 0.0
        if finite and (better or (abs(gained) <= noise and smaller)):
            damping = damping / 10.0 if gained > 0.75 * expected or abs(gained) <= noise else damping
            y, (value, gradient, hessian, slope) = there, found
        else:
            damping = max(damping * 8.0, 1e-6)
        damping = 0.0 if damping < 1e-9 else damping
        done = projected(y, gradient, slope) <= aim or damping > 1e14
    return State(y, value, gradient, hessian, damping, iterations, done)


def _solved(hessian: np.ndarray, damping: np.ndarray, force: np.ndarray, free: np.ndarray) -> np.ndarray | None:
    """The step of the free coordinates; None where the damped Hessian is not positive definite."""
    move, at = np.zeros_like(force), np.flatnonzero(free)
    try:
        factor = linalg.cho_factor(hessian[np.ix_(at, at)] + np.diag(damping[at]), lower=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    move[at] = linalg.cho_solve(factor, force[at], check_finite=False)
    return move if np.isfinite(move).all() else None
