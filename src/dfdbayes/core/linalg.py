"""Symmetric matrices and Newton's method: one root, one inverse, one sandwich, one damped step.

Matrices are scaled to a unit diagonal before anything is asked of them, so that units of measurement do not matter.
Minimisers take projected Newton steps with Levenberg-Marquardt damping inside a box: `newton` on the host, where one
minimisation must not wait for a loop to be compiled; `newton_traced` in compiled code, for bootstrap replicates side by
side. Both take the same step (`_step`). `contract` is for a problem whose Hessian is known well enough from another
one: it needs gradients only, and gives up where that Hessian will not do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy import linalg

Matrix = Float[np.ndarray, "p p"]
MAX_ITERATIONS = 200  # a search that still moves is stopped: well-posed ones take fewer than 30


def cholesky(matrix: Matrix) -> Matrix | None:
    """The lower factor; None where the matrix is not positive definite, or not finite."""
    try:
        return np.asarray(linalg.cholesky(matrix, lower=True))
    except (linalg.LinAlgError, ValueError):  # the latter where it is not finite
        return None


def units_of(matrix: Matrix) -> Float[np.ndarray, " p"]:
    """What rows and columns are divided by to have a unit diagonal: then units of measurement do not matter."""
    diagonal = np.abs(np.diag(matrix))
    # A coordinate without curvature of its own is left near zero, so that it counts as flat.
    return np.sqrt(np.maximum(diagonal, 1e-12 * diagonal.max(initial=0.0) + 1e-300))


def is_positive(matrix: Matrix, least: float = 0.0) -> bool:
    """Whether all eigenvalues, after scaling to a unit diagonal, are above ``least``."""
    units = units_of(matrix)
    return cholesky(matrix / units / units[:, None] - least * np.eye(len(units))) is not None


def root(matrix: Matrix, least: float = 1e-10) -> tuple[Matrix, Matrix]:
    """A root R of a symmetric matrix, R R', with its inverse; eigenvalues below ``least`` are raised to that first.

    The eigenvalues are those after scaling to a unit diagonal.
    """
    units, scaled, factor = _factorised(matrix, least)
    if factor is None:
        values, vectors = linalg.eigh(scaled)
        values = np.sqrt(np.maximum(values, least))
        return units[:, None] * (vectors * values), (vectors / values).T / units
    return units[:, None] * factor, linalg.solve_triangular(factor, np.eye(len(units)), lower=True) / units


def inverse(matrix: Matrix, least: float = 1e-10) -> Matrix:
    """The inverse of a symmetric matrix, its eigenvalues raised as those of its `root` are."""
    units, scaled, factor = _factorised(matrix, least)
    if factor is None:
        values, vectors = linalg.eigh(scaled)
        found = (vectors / np.maximum(values, least)) @ vectors.T
        return 0.5 * (found + found.T) / units / units[:, None]
    found = np.tril(linalg.lapack.dpotri(factor, lower=1)[0])  # a third of the work of two triangular solutions
    return (found + np.tril(found, -1).T) / units / units[:, None]


def _factorised(matrix: Matrix, least: float) -> tuple[np.ndarray, Matrix, Matrix | None]:
    """Units, the matrix in these, and its lower factor: none where an eigenvalue is not above ``least``."""
    units = units_of(matrix)
    scaled = matrix / units / units[:, None]
    return units, scaled, cholesky(scaled) if cholesky(scaled - least * np.eye(len(units))) is not None else None


def inverse_among(matrix: Matrix, free: Bool[np.ndarray, " p"]) -> Matrix | None:
    """The inverse among some coordinates, zero elsewhere; None where it is not positive definite there."""
    found, at = np.zeros_like(matrix), np.flatnonzero(free)
    inner = matrix[np.ix_(at, at)]
    if not (np.diag(inner) > 0.0).all() or not is_positive(inner):
        return None
    found[np.ix_(at, at)] = inverse(inner, 0.0)
    return found


def sandwich(derivative: Matrix, squares: Matrix) -> Matrix:
    """The covariance A^-1 J A^-T of an estimator, from the derivative A of its equations and their variance J."""
    bread = np.linalg.pinv(derivative, rcond=1e-12)  # a direction that nothing is known of does not vary
    return bread @ squares @ bread.T


# -- Newton's method ---------------------------------------------------------------------------


class State(NamedTuple):
    """Where a search is; arrays of JAX or of NumPy."""

    y: Any
    value: Any
    gradient: Any
    hessian: Any
    slope: Any
    """Each d theta / d y: gradients are judged in theta."""
    damping: Any
    iterations: Any
    done: Any


def free_of(y: Any, gradient: Any, lower: Any, upper: Any) -> Any:
    """Coordinates that are not held at a bound by the gradient."""
    return ~(((y <= lower) & (gradient > 0)) | ((y >= upper) & (gradient < 0)))


def _begin(evaluate: Callable[[Any], Any], y: Any, wanted: Any, xp: Any) -> State:
    value, gradient, hessian, slope = evaluate(y)
    done = ~(wanted & xp.isfinite(value))
    return State(y, value, gradient, hessian, slope, xp.asarray(1e-3), xp.asarray(0), done)


def _step(
    state: State, evaluate: Callable[[Any], Any], solve: Callable[[Any, Any], Any], lower: Any, upper: Any, aim: Any,
    xp: Any,
) -> State:  # fmt: skip
    """One damped step, taken where it lowers the value; ``xp`` is NumPy or its counterpart in JAX."""

    def steepest(y: Any, gradient: Any, slope: Any) -> Any:
        return xp.max(xp.abs(xp.where(free_of(y, gradient, lower, upper), gradient, 0.0) / slope))

    y, value, gradient, hessian, slope = state[:5]
    free = free_of(y, gradient, lower, upper)
    scale = xp.abs(xp.diag(hessian))
    scale = xp.maximum(scale, 1e-10 * xp.max(scale) + 1e-300)
    inner = xp.where(free[:, None] & free[None, :], hessian, 0.0)
    move = solve(inner + xp.diag(xp.where(free, state.damping * scale, 1.0)), xp.where(free, -gradient, 0.0))
    solved = xp.all(xp.isfinite(move))
    limit = 2.0 * xp.maximum(1.0, xp.abs(y))  # stay in the basin: no giant leaps
    there = xp.clip(y + xp.clip(xp.where(solved, move, 0.0), -limit, limit), lower, upper)
    move = there - y
    expected = -(gradient @ move + 0.5 * move @ hessian @ move)
    new = (there, *evaluate(there))
    gained, noise = value - new[1], 1e-13 * (xp.abs(value) + 1.0)
    finite = xp.isfinite(new[1]) & xp.all(xp.isfinite(new[2])) & xp.all(xp.isfinite(new[3]))
    smaller = steepest(there, new[2], new[4]) < steepest(y, gradient, slope)
    better = (gained >= 1e-4 * expected) & (gained > 0.0)
    within = xp.abs(gained) <= noise
    accepted = solved & finite & (better | (within & smaller))
    less = xp.where((gained > 0.75 * expected) | within, state.damping / 10.0, state.damping)
    damping = xp.where(accepted, less, xp.maximum(state.damping * 8.0, 1e-6))
    damping = xp.where(damping < 1e-9, 0.0, damping)
    y, value, gradient, hessian, slope = (xp.where(accepted, b, a) for a, b in zip(state[:5], new, strict=True))
    done = (steepest(y, gradient, slope) <= aim) | (damping > 1e14)
    return State(y, value, gradient, hessian, slope, damping, state.iterations + 1, done)


def newton(
    evaluate: Callable[[np.ndarray], tuple[np.ndarray, ...]], y: np.ndarray, lower: np.ndarray, upper: np.ndarray,
    aim: float,
) -> State:  # fmt: skip
    """Minimise over a box, on the host. ``evaluate(y)`` gives value, gradient, Hessian and d theta / d y."""

    def again(there: np.ndarray) -> Any:  # a step that could not be solved for stays where it is
        return state[1:5] if np.array_equal(there, state.y) else evaluate(there)

    def solve(matrix: np.ndarray, force: np.ndarray) -> np.ndarray:
        try:
            return np.asarray(linalg.cho_solve(linalg.cho_factor(matrix, lower=True, check_finite=False), force))
        except (linalg.LinAlgError, ValueError):  # the latter where the solution is not finite
            return np.full_like(force, np.nan)

    state = _begin(evaluate, y, True, np)
    with np.errstate(invalid="ignore", over="ignore"):
        while not state.done and state.iterations < MAX_ITERATIONS:
            state = _step(state, again, solve, lower, upper, aim, np)
    return state


def newton_traced(
    evaluate: Callable[[Array], tuple[Array, ...]], y: Array, lower: Array, upper: Array, aim: Array, wanted: Array
) -> State:
    """The same in compiled code; nothing is done where it is not ``wanted``."""

    def solve(matrix: Array, force: Array) -> Array:
        return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(matrix), True), force)

    return jax.lax.while_loop(
        lambda state: ~state.done & (state.iterations < MAX_ITERATIONS),
        lambda state: _step(state, evaluate, solve, lower, upper, aim, jnp),
        _begin(evaluate, y, wanted, jnp),
    )


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

    What is ``found`` is a minimum that `newton_traced` finds from the same start:
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
        # a step that leaves more than 0.7 of its length asks for a Hessian of its own
        shorter = (length <= 0.7**2 * state.length) & jnp.all(jnp.abs(state.move) <= 2.0 * size)
        sound = inside & shorter
        small = jnp.max(jnp.abs(jnp.where(free, gradient, 0.0) / slope(y))) <= aim
        # of each coordinate's size, or of 1
        end = small & jnp.all(jnp.abs(move) <= 1e-10 * size)
        return Contraction(y, gradient, move, length, state.iterations + 1, sound & ~end, sound & end)

    begin = Contraction(y, *measured(y), jnp.asarray(0), wanted, jnp.asarray(False))
    # 100 steps of 0.7 take twelve digits off the first
    return jax.lax.while_loop(lambda s: s.going & (s.iterations < 100), step, begin)
