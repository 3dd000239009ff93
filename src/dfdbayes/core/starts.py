"""Small regressions on grouped data, for consistent starting points."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from .linalg import newton


def logistic(
    design: Float[np.ndarray, "m k"],
    ones: Float[np.ndarray, " m"],
    totals: Float[np.ndarray, " m"],
    ridge: float = 1e-3,
    offset: Float[np.ndarray, " m"] | float = 0.0,
) -> Float[np.ndarray, " k"]:
    """Coefficients of a logistic regression: ``ones`` of ``totals`` cases at each row of ``design``.

    A small ridge keeps separable data finite.
    """

    def evaluate(coefficients: np.ndarray) -> tuple[np.ndarray, ...]:
        odds = design @ coefficients + offset
        chance, penalty = expit(odds), ridge * coefficients
        value = totals @ np.logaddexp(0.0, odds) - ones @ odds + 0.5 * coefficients @ penalty
        hessian = (design * (totals * chance * (1.0 - chance))[:, None]).T @ design + ridge * np.eye(len(penalty))
        return value, design.T @ (totals * chance - ones) + penalty, hessian, np.ones_like(penalty)

    everywhere = np.full(design.shape[1], np.inf)
    return newton(evaluate, np.zeros(design.shape[1]), -everywhere, everywhere, 1e-10 * totals.sum()).y


def logarithmic(
    design: Float[np.ndarray, "m k"],
    values: Float[np.ndarray, " m"],
    weights: Float[np.ndarray, " m"],
    offset: Float[np.ndarray, " m"],
) -> Float[np.ndarray, " k"]:
    """Coefficients of a Poisson regression with the log link, by iterated weighted least squares.

    These, and not Newton's method of `newton`, as designs may be singular.
    """
    scale = np.maximum(np.abs(design).max(axis=0), 1e-300)
    matrix, mean = design / scale, values + 0.5
    for _ in range(25):
        response = np.log(mean) - offset + (values - mean) / mean
        root = np.sqrt(weights * mean)
        found = np.linalg.lstsq(matrix * root[:, None], response * root, rcond=None)[0]
        before, mean = mean, np.exp(np.clip(matrix @ found + offset, -30.0, 30.0))
        if np.abs(np.log(mean / before)).max() < 1e-8:
            break
    return found / scale
