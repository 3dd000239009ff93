"""Second fits of the same cases by two versions of the package, in one run.

    python benchmarks/before_after.py OTHER/src [DATA]

Each version runs in a process of its own; the shortest of three later fits counts. ``check`` is
what the newer version adds by default: predictive checks, a test of fit and the intervals without calibration.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASE = """
import inspect, json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np, dfdbayes as dfd
folder, check = sys.argv[1], sys.argv[2] == "check"
rng = np.random.default_rng(0)
grid = dfd.graphs.grid(10, 10)
name = "temperature" if "temperature" in dfd.models.Ising(grid).space.names else "theta"
lattices = dfd.simulate(dfd.models.Ising(grid), {name: 5.0}, 1000, method="swendsen-wang").rows
network = rng.integers(0, 2, size=(500, 8))
cases = {
    "sales, cmp, dfd": ("cmp", dfd.datasets.sales(), {}),
    "sales, cmp, likelihood": ("cmp", dfd.datasets.sales(), {"loss": "likelihood"}),
    "poisson, n = 2000": ("poisson", rng.poisson(4.0, 2000), {}),
    "ising 10x10, n = 1000, dfd": (dfd.models.Ising(grid), lattices, {}),
    "ising 10x10, n = 1000, pseudo": (dfd.models.Ising(grid), lattices, {"loss": "pseudo"}),
    "ising network d = 8, n = 500, ratio": ("ising-network", network, {"loss": "ratio"}),
}
if folder:
    cases["10 genes, poisson, ratio, beta = 0.5"] = ("poisson-graphical", folder + "/brca_10.csv",
                                                     {"loss": "ratio", "beta": 0.5})
more = {"check": check} if "check" in inspect.signature(dfd.fit).parameters else {}
found = {}
for case, (model, data, settings) in cases.items():
    for _ in range(4):
        began = time.perf_counter()
        dfd.fit(model, data, progress=False, **settings, **more)
        took = time.perf_counter() - began
        found[case] = min(found.get(case, took), took) if _ else took
print(json.dumps(found))
"""


def run(source: str, data: str, check: str) -> dict[str, float]:
    command = [sys.executable, "-c", CASE, data, check]
    ended = subprocess.run(command, env=os.environ | {"PYTHONPATH": source}, capture_output=True, text=True, check=True)
    return json.loads(ended.stdout.splitlines()[-1])


def main() -> None:
    other, data = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    own = str(HERE.parent / "src")
    best: dict[str, dict[str, float]] = {"before": {}, "after": {}, "check": {}}
    for column, source, check in (("before", other, "no"), ("after", own, "no"), ("check", own, "check")):
        best[column] = run(source, data, check)
        print(column, best[column], flush=True)
    lines = ["| second fit | 0.1, s | 0.2 without checks, s | ratio | 0.2 with checks, s |", "|---|---|---|---|---|"]
    for case, before in best["before"].items():
        after, checked = best["after"][case], best["check"][case]
        lines.append(f"| {case} | {before:.3f} | {after:.3f} | {after / before:.2f} | {checked:.3f} |")
    text = "# Before and after the rebuild\n\nMade by `python benchmarks/before_after.py OTHER/src DATA`: the shortest "
    text += "of three later fits by each version.\n\n" + "\n".join(lines) + "\n"
    (HERE / "results" / "before_after.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
