"""The robust divergence beside the kernel Stein discrepancy with a robust kernel: time of the loss by number of rows.

Lattices of the paper's experiment D.4 (10 x 10, temperature 5), all rows distinct. The time of one loss is that of
making its table from the data and of one gradient, the least of several; the robust divergence's includes the choice of
its weight from the data.

Run: python benchmarks/robust.py    (writes benchmarks/results/robust.md)
"""

import time
from pathlib import Path

import numpy as np

import dfdbayes as dfd
from dfdbayes.core.robust_weight import decided

model = dfd.models.Ising(dfd.graphs.grid(10, 10))
theta = np.array([5.0])
REPEATS = {"dfd": 4, "robust dfd": 4, "robust ksd": 1}


def seconds(loss_of, data, repeats):
    """The least of several times from the data to the loss's gradient; the first of several compiles, and is slower."""
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        dfd.objective(model, data, loss_of(data)).gradient(theta)
        found.append(time.perf_counter() - began)
    return min(found)


ways = {
    "dfd": lambda data: "dfd",
    "robust dfd": lambda data: decided(dfd.losses.Robust("dfd"), model, data)[0],
    "robust ksd": lambda data: dfd.losses.KernelStein(dfd.kernels.Robust(dfd.kernels.below(90))),
}
times = {}
for n in (1000, 4000):
    data = dfd.Dataset.of(dfd.simulate(model, {"temperature": 5.0}, n, seed=0, method="swendsen-wang").rows)
    for name, loss_of in ways.items():
        times[name, n] = seconds(loss_of, data, REPEATS[name])
        print(name, n, f"{times[name, n]:.4f}", flush=True)
lines = ["| n | dfd, s | robust dfd, s | robust ksd, s | robust ksd / robust dfd |", "|---|---|---|---|---|"]
for n in (1000, 4000):
    own = [times[name, n] for name in ways]
    lines.append(f"| {n} | " + " | ".join(f"{value:.4f}" for value in own) + f" | {own[2] / own[1]:.1f} |")
growth = [times[name, 4000] / times[name, 1000] for name in ways]
lines.append("| 4000 / 1000 | " + " | ".join(f"{value:.1f}" for value in growth) + " | |")
text = f"""# The robust divergence beside a robust kernel

Lattices of 10 x 10 sites, all distinct; from the data to the gradient of the loss; the least of four (the kernel's
once, compiling included). Other work ran on the machine beside it. Made by `python benchmarks/robust.py`, data seed 0.

{chr(10).join(lines)}
"""
Path(__file__).parent.joinpath("results", "robust.md").write_text(text)
print(text)
