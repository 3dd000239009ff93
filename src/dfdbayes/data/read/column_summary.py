"""The data at a glance: a few numbers about every column."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...core.dataset import Dataset


def columns(data: Dataset) -> pd.DataFrame:
    """Mean, variance, smallest and largest value, and share of zeros of every column, under the data's weights.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> columns(dfd.Dataset.of({0: 2, 4: 2}))["zeros"].tolist()
    [0.5]
    """
    shares = data.counts / data.counts.sum()
    mean = shares @ data.rows
    return pd.DataFrame(
        {
            "mean": mean,
            "variance": shares @ (data.rows - mean) ** 2,
            "min": data.rows.min(axis=0),
            "max": data.rows.max(axis=0),
            "zeros": shares @ (data.rows == 0),
        },
        index=pd.Index(data.columns, name="column"),
    )


def together(data: Dataset) -> pd.DataFrame:
    """The same over the values of all columns at once: for the sites of a lattice, say."""
    shares = data.counts / data.counts.sum() / data.d
    mean = float((shares @ data.rows).sum())
    row = {
        "mean": mean,
        "variance": float((shares @ (data.rows - mean) ** 2).sum()),
        "min": int(data.rows.min()),
        "max": int(data.rows.max()),
        "zeros": float((shares @ (data.rows == 0)).sum()),
    }
    return pd.DataFrame([row], index=pd.Index([f"all {data.d} sites"], name="column"))


def frequencies(data: Dataset, column: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of a column and how much weight each has."""
    values, inverse = np.unique(data.rows[:, column], return_inverse=True)
    return values, np.bincount(inverse, weights=data.counts)


def far_values(data: Dataset) -> list[tuple[str, int, int, float]]:
    """Values a thousand times as large as all others of their column: name, row, value, next largest."""
    found = []
    for j, name in enumerate(data.columns):
        size = np.abs(data.rows[:, j].astype(float))
        if len(size) < 2:
            continue
        next_one, largest = np.partition(size, -2)[-2:]
        if largest > 1e3 * max(next_one, 1.0):
            place = int(np.argmax(size))
            found.append((name, int(data.first[place]) + 1, int(data.rows[place, j]), float(next_one)))
    return found
