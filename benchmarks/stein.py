"""The kernel Stein discrepancy on Conway-Maxwell-Poisson counts: a second fit's time, and peak memory.

Run: python benchmarks/stein.py    (writes benchmarks/results/stein.md)
"""

import resource
import time
from pathlib import Path

import dfdbayes as dfd

model = dfd.models.ConwayMaxwellPoisson()
lines = ["| n | distinct values | first fit, s | second fit, s | peak memory so far, GiB |", "|---|---|---|---|---|"]
for n in (2000, 20_000):
    rows = dfd.simulate(model, {"rate": 4.0, "nu": 0.75}, n, seed=0).rows
    seconds = []
    for seed in (0, 1):
        began = time.perf_counter()
        fit = dfd.fit(model, rows, loss="ksd", bootstrap=100, draws=1000, chains=4, seed=seed, progress=False)
        seconds.append(time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    lines.append(f"| {n} | {len(fit.data.rows)} | {seconds[0]:.2f} | {seconds[1]:.2f} | {peak:.2f} |")
text = f"""# Kernel Stein discrepancy, CMP (4, 0.75), 100 bootstrap fits, 4 x 1000 draws

Made by `python benchmarks/stein.py`, data seed 0, fit seeds 0 and 1.

{chr(10).join(lines)}
"""
Path(__file__).parent.joinpath("results", "stein.md").write_text(text)
print(text)
