"""Small regressions on grouped data, for consistent starting points."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def logistic(
    design: Float[np.ndarray, "m k"],
    ones: Float[np.ndarray, " m"],
    totals: Float[np.ndarray, " m"],
    ridge: float = 1e-3,
    offset: Float[np.ndarray, " m"] | float = 0.0,
) -> Float[np.ndarray, " k"]:
    """Coefficients of a logistic regression: ``ones`` of ``totals`` cases at each row of ``design``.

    Newton's method with a small ridge, which keeps separable data finite.
    """
    coefficients = np.zeros(design.shape[1])
    penalty = ridge * np.eye(design.shape[1])
    for _ in range(50):
        chance = 1.0 / (1.0 + np.exp(-(design @ coefficients + offset)))
        score = design.T @ (ones - totals * chance) - penalty @ coefficients
        information = (design * (totals * chance * (1 - chance))[:, None]).T @ design + penalty
        step = np.linalg.solve(information, score)
        step *= min(1.0, 5.0 / max(np.abs(step).max(), 1e-300))
        coefficients = coefficients + step
        if np.abs(step).max() < 1e-8:
            break
    return coefficients


def logarithmic(
    design: Float[np.ndarray, "m k"],
    values: Float[np.ndarray, " m"],
    weights: Float[np.ndarray, " m"],
    offset: Float[np.ndarray, " m"],
) -> Float[np.ndarray, " k"]:
    """Coefficients of a Poisson regression with the log link, by iterated weighted least squares."""
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
