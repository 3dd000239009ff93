"""Symmetric matrices: roots and inverses whatever their units, and what to do where they are not positive definite."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy import linalg

Matrix = Float[np.ndarray, "p p"]


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
