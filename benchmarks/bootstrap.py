"""Bootstrap minimisers by one shared Hessian and by Hessians of their own: seconds, and how far apart they are.

Run: python benchmarks/bootstrap.py    (writes benchmarks/results/bootstrap.md)
"""

import time
from pathlib import Path

import numpy as np

import dfdbayes as dfd
from dfdbayes.inference import minimise
from dfdbayes.inference.resampling import resample

FEW = minimise.FEW
ROUNDS, LONG = 3, 60.0  # later runs, fewer where they take so many seconds
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
    """Seconds of the first and of the best later run by each route, in turns, so that both see the same machine."""
    whole, weights = dfd.minimise(objective), resample(objective, 1, size)
    seconds, found = {FEW: [], BY_OWN: []}, {}
    while len(seconds[FEW]) < 2 or (len(seconds[FEW]) <= ROUNDS and sum(seconds[BY_OWN]) < LONG):
        for few in (BY_OWN, FEW):
            minimise.FEW = few
            begin = time.perf_counter()
            found[few] = minimise.minimise_many(objective, weights, whole)
            seconds[few].append(time.perf_counter() - begin)
    assert found[FEW].outcomes == found[BY_OWN].outcomes
    apart = np.abs(found[FEW].vectors - found[BY_OWN].vectors).max()
    own, shared = ((times[0], min(times[1:])) for times in (seconds[BY_OWN], seconds[FEW]))
    return own, shared, apart


CASES = {
    "binary network, d = 15, n = 2000, B = 100": (lambda: network(15, 2000), 100),
    "the same with rare answers (7 to 20 %)": (lambda: network(15, 2000, -2.2), 100),
    "binary network, d = 30, n = 5000, B = 100": (lambda: network(30, 5000), 100),
    "cmp, n = 2000, B = 400": (lambda: cmp(2000), 400),
}

if __name__ == "__main__":
    lines = [
        "| fits | parameters | own Hessians, s (first) | shared, s (first) | ratio | apart |",
        "|---|---|---|---|---|---|",
    ]
    for name, (made, size) in CASES.items():
        objective = made()
        own, shared, apart = measured(objective, size)
        lines.append(
            f"| {name} | {objective.model.space.size} | {own[1]:.3f} ({own[0]:.1f}) | {shared[1]:.3f} "
            f"({shared[0]:.1f}) | {own[1] / shared[1]:.1f} | {apart:.0e} |"
        )
        print(lines[-1], flush=True)
    text = f"""# Bootstrap minimisers: a Hessian for each replicate and step, and one for all

Made by `python benchmarks/bootstrap.py`. Seconds of the shortest of {ROUNDS} later runs by each route in turns (of one, if
it takes a minute), and in brackets of the first run, which compiles. Up to {FEW} parameters the package uses Hessians of their own in any case.

{chr(10).join(lines)}
"""
    Path(__file__).parent.joinpath("results", "bootstrap.md").write_text(text)
