"""An Ising model on a 100 x 100 lattice, 100 observations: time of a second fit, and peak memory.

Run: python benchmarks/lattice.py    (writes benchmarks/results/lattice.md)
"""

import resource
from pathlib import Path

import dfdbayes as dfd

model = dfd.models.Ising(dfd.graphs.grid(100, 100))
rows = dfd.simulate(model, {"temperature": 5.0}, 100, method="gibbs", sweeps=60, seed=0).rows
lines = ["| fit | " + " | ".join(["read", "tabulate", "minimise", "calibrate", "sample", "total"]) + " |"]
lines.append("|---|" + "---|" * 6)
for name, seed in (("first", 0), ("second", 1)):
    seconds = dfd.fit(model, rows, seed=seed, progress=False).timings["seconds"]
    shown = [seconds[stage] for stage in ("read", "tabulate", "minimise", "calibrate", "sample")]
    lines.append(f"| {name} | " + " | ".join(f"{s:.2f}" for s in [*shown, sum(seconds.values())]) + " |")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
text = f"""# Ising, 100 x 100, n = 100, 400 bootstrap fits, 4 x 1000 draws (seconds)

Made by `python benchmarks/lattice.py`, seeds 0 and 1, simulation included in the memory.

{chr(10).join(lines)}

Peak memory: {peak:.2f} GiB.
"""
Path(__file__).parent.joinpath("results", "lattice.md").write_text(text)
print(text)
