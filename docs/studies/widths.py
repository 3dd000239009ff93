"""Widths of calibrated posteriors against the spread of estimates, from 21 to some 1000 parameters.

    python docs/studies/widths.py [REPLICATES [D ...]]

Binary networks of d items, n = 60 d, a third of the interactions N(0, 0.9/sqrt(d)), all data sets of a size from one
simulation with seed 80000. For each the posterior's centre and standard deviations by the default calibration; the
table has the median over parameters of the mean standard deviation over the spread of the centres. Writes
docs/tables/widths.md, where lines of other sizes stay.
"""

import sys
import time
from pathlib import Path

import numpy as np

import dfdbayes as dfd
from dfdbayes.core.calibration import curvature

ROOT = Path(__file__).parents[2]
SIZES = (6, 12, 20, 28, 30, 44)


def truth(d: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng([80, d])
    pairs = d * (d - 1) // 2
    interaction = np.where(rng.random(pairs) < 1 / 3, 0.9 / np.sqrt(d) * rng.standard_normal(pairs), 0.0)
    return {"intercept": rng.normal(-0.3, 0.3, d), "interaction": interaction}


def main() -> None:
    replicates = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    table, lines = ROOT / "docs" / "tables" / "widths.md", {}
    for line in table.read_text().splitlines() if table.is_file() else ():
        if line.startswith("| ") and line.split()[1].isdigit():
            lines[int(line.split()[1])] = line
    for d in map(int, sys.argv[2:]) if len(sys.argv) > 2 else SIZES:
        model, theta, n = dfd.models.IsingNetwork(d), truth(d), 60 * d
        count = replicates if d < 40 else max(20, replicates // 2)
        rows = dfd.simulate(model, theta, n * count, seed=80_000, method="gibbs").rows.reshape(count, n, d)
        centres, sds, began = [], [], 0.0
        for r, part in enumerate(rows):
            began = time.perf_counter() if r == 1 else began
            objective = dfd.objective(model, part, "pseudo")
            shape = curvature(objective, dfd.minimise(objective))
            centres.append(shape.centre)
            sds.append(np.sqrt(np.diag(shape.covariance)))
        took = (time.perf_counter() - began) / (count - 1)
        ratio = np.median(np.mean(sds, axis=0) / np.std(centres, axis=0, ddof=1))
        lines[d] = f"| {d} | {len(sds[0])} | {n} | {count} | {ratio:.3f} | {took:.2f} |"
        print(lines[d], flush=True)
        heading = (
            "# Widths beside standard Bayes\n\n"
            "The default calibration needs no bootstrap, so its widths do not depend on a number of replicates. Median "
            "over parameters of the posterior's standard deviation (mean over data sets) over the spread of its centre "
            "(standard deviation over data sets). Made by `python docs/studies/widths.py`; seeds in the script.\n\n"
        )
        heading += (
            "| d | parameters | n | data sets | width / spread | seconds a data set |\n|---|---|---|---|---|---|\n"
        )
        table.write_text(heading + "\n".join(lines[size] for size in sorted(lines)) + "\n")


if __name__ == "__main__":
    main()
