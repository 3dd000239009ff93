"""Bootstrap minimisers by one shared Hessian and by Hessians of their own: seconds, and how far apart they are.

Run: python benchmarks/bootstrap.py    (writes benchmarks/results/bootstrap.md)
"""

import time
from pathlib import Path

import numpy as np

import dfdbayes as dfd
from dfdbayes.core import replicates
from dfdbayes.core.resampling import resample

FEW = replicates.FEW_PARAMETERS
ROUNDS, LONG = 6, 60.0  # later runs, fewer where they take so many seconds
BY_OWN = 10**6  # parameters up to which every replicate has Hessians of its own


def network(d, n, middle=-0.5):
    rng, edges = np.random.default_rng(0), d * (d - 1) // 2
    present = rng.random(edges) < 0.15
    theta = {
        "intercept": middle + 0.3 * rng.standard_normal(d),
        "interaction": 0.6 * rng.standard_normal(edges) * present,
    }
    model = dfd.models.IsingNetwork(d)
    return dfd.objective(model, dfd.simulate(model, theta, n, method="gibbs", seed=1).rows, "pseudo")


def cmp(n):
    model = dfd.models.ConwayMaxwellPoisson()
    return dfd.objective(model, dfd.simulate(model, {"rate": 4.0, "nu": 0.75}, n, seed=1).rows, "dfd")


def measured(objective, size):
    """Wall and processor seconds of the first and of the best later run by each route, in turns; how far apart."""
    whole, weights = dfd.minimise(objective), resample(objective, 1, size)
    seconds, found = {BY_OWN: [], FEW: []}, {}
    while len(seconds[FEW]) < 2 or (len(seconds[FEW]) <= ROUNDS and sum(np.array(seconds[BY_OWN])[:, 0]) < LONG):
        for few, times in seconds.items():
            replicates.FEW_PARAMETERS = few
            begin = time.perf_counter(), time.process_time()
            found[few] = replicates.minimise_many(objective, weights, whole)
            times.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    assert found[FEW].outcomes == found[BY_OWN].outcomes
    ends = [(times[0], tuple(np.min(times[1:], axis=0))) for times in seconds.values()]
    return *ends, np.abs(found[FEW].vectors - found[BY_OWN].vectors).max()


CASES = {
    "binary network, d = 15, n = 2000, B = 100": (lambda: network(15, 2000), 100),
    "the same with rare answers (7 % at the least)": (lambda: network(15, 2000, -2.2), 100),
    "binary network, d = 30, n = 5000, B = 100": (lambda: network(30, 5000), 100),
    "cmp, n = 2000, B = 400": (lambda: cmp(2000), 400),
}

if __name__ == "__main__":
    lines = ["| fits | parameters | own Hessians | first | one for all | first | ratio | apart |", "|---|" + "---|" * 7]
    for name, (made, size) in CASES.items():
        objective = made()
        *ends, apart = measured(objective, size)
        shown = [f"{wall:.2f} / {work:.2f}" for first, later in ends for wall, work in (later, first)]
        ratio = " / ".join(f"{own / shared:.1f}" for own, shared in zip(ends[0][1], ends[1][1], strict=True))
        cells = [name, objective.model.space.size, *shown, ratio, f"{apart:.0e}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
        print(lines[-1], flush=True)
    text = f"""# Bootstrap minimisers: a Hessian for each replicate and step, and one for all

Made by `python benchmarks/bootstrap.py`. Wall / processor seconds, the least of {ROUNDS} later runs by each route in
turns (of one run where they take a minute), and of the first run, which compiles. Up to {FEW} parameters the package
uses Hessians of their own in any case, so those rows show the noise.

{chr(10).join(lines)}
"""
    Path(__file__).parent.joinpath("results", "bootstrap.md").write_text(text)
