"""Coverage of 95 % intervals of networks of scales and of counts that rise and fall together.

    python docs/studies/network_coverage.py [--column COLUMN] [--replicates R] [CASE ...]

Writes docs/tables/network-coverage.md. As `coverage.py` beside it, with cases of its own: finished replicates are kept
in runs/coverage, data set r of a case and its fit come from seed 70000 + r, and a run makes one column.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import coverage  # the study beside this one; first, as it sets how many threads there are
import numpy as np

import dfdbayes as dfd

TITLE = "# Coverage of networks of scales and counts\n\n"


def scales() -> dict[str, coverage.Case]:
    """Six items of five and of seven levels, of which middle ones are common; a third of the edges are there."""
    found = {}
    for k in (5, 7):
        rng = np.random.default_rng([8, k])
        model = dfd.models.Network(dfd.Ordinal(6, k))
        steps = np.linspace(1.0, -1.5, k - 1) + rng.normal(0.0, 0.2, (6, k - 1))
        present = rng.random(15) < 1 / 3
        interaction = np.where(present, rng.choice([-0.1, 0.15, 0.2], 15), 0.0) * (4.0 / (k - 1)) ** 2
        truth = {"threshold": np.cumsum(steps, axis=1).reshape(-1), "interaction": interaction}
        for n in (500, 1000):
            found[f"scale-{k}-{n}"] = coverage.Case(f"6 items of {k} levels, n = {n}", model, truth, n)
    return found


def counts() -> dict[str, coverage.Case]:
    """Four counts, some of which rise together."""
    model = dfd.models.Network(dfd.Counts(4))
    truth = {
        "intercept": np.array([0.2, 0.0, 0.3, -0.2]),
        "interaction": np.array([0.3, 0.0, -0.3, 0.0, 0.2, 0.0]),
        "nu": np.array([0.8, 1.0, 1.0, 1.2]),
    }
    return {f"roots-{n}": coverage.Case(f"4 counts seen as roots, n = {n}", model, truth, n) for n in (500, 1000)}


def run(replicates: int, column: str, name: str) -> str:
    coverage.FAMILIES = (scales, counts)
    return coverage.run(replicates, column, name)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("cases", nargs="*")
    asked.add_argument("--column", default="default", choices=list(coverage.COLUMNS))
    asked.add_argument("--replicates", type=int, default=500)
    given = asked.parse_args()
    coverage.FAMILIES = (scales, counts)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for finished in pool.map(partial(run, given.replicates, given.column), given.cases or list(coverage.cases())):
            print(finished, flush=True)
    heading = coverage.HEADING.replace("studies/coverage.py", "studies/network_coverage.py")
    (coverage.ROOT / "docs" / "tables" / "network-coverage.md").write_text(TITLE + heading + coverage.table() + "\n")


if __name__ == "__main__":
    main()
