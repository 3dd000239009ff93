"""Distinct rows by this package and by the libraries that could do it, in one run.

    python benchmarks/by_hand.py

All give the distinct rows, how often each occurs, and where it is first seen; the shortest of three runs counts.
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from dfdbayes.core.dataset import condense

HERE = Path(__file__).resolve().parent
N = 10**6


def seconds(work: Callable[[], object]) -> float:
    best = np.inf
    for _ in range(3):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def by_pandas(columns: list[np.ndarray], first: np.ndarray) -> object:
    names = list(range(len(columns)))
    frame = pd.DataFrame(dict(enumerate(columns))).assign(first=first)
    return frame.groupby(names, sort=True)["first"].agg(["size", "first"])


def by_arrow(columns: list[np.ndarray], first: np.ndarray) -> object:
    names = [str(k) for k in range(len(columns))]
    table = pa.table(dict(zip(names, columns, strict=True)) | {"first": first})
    return table.group_by(names).aggregate([("first", "count"), ("first", "min")])


def main() -> None:
    rng = np.random.default_rng(0)
    cases = {
        "one column of counts": rng.poisson(4.0, (N, 1)),
        "three columns of counts": rng.poisson(4.0, (N, 3)),
        "ten binary items": rng.integers(0, 2, (N, 10)),
        "twenty binary items": rng.integers(0, 2, (N, 20)),
        "36 spins": rng.choice([-1, 1], (N, 36)),
    }
    lines = ["| a million rows of | own, s | pandas | pyarrow | NumPy |", "|---|---|---|---|---|"]
    for title, rows in cases.items():
        columns, first = [np.ascontiguousarray(column) for column in rows.T], np.arange(N)
        own = seconds(lambda columns=columns, first=first: condense(columns, first))
        others = (
            seconds(lambda columns=columns, first=first: by_pandas(columns, first)),
            seconds(lambda columns=columns, first=first: by_arrow(columns, first)),
            seconds(lambda rows=rows: np.unique(rows, axis=0, return_index=True, return_counts=True)),
        )
        lines.append(f"| {title} | {own:.3f} | " + " | ".join(f"{other / own:.1f} times" for other in others) + " |")
        print(lines[-1], flush=True)
    text = "# Distinct rows by hand and by library\n\nMade by `python benchmarks/by_hand.py`, all in one run.\n\n"
    (HERE / "results" / "by_hand.md").write_text(text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
