"""Who computes effective sizes, R-hat and Monte-Carlo errors: ArviZ, or our own code for many quantities at once.

Run: python benchmarks/diagnostics.py    (about two minutes; writes benchmarks/results/diagnostics.md)

All are seconds of the processor, the least of some runs. Of a summary those of its five diagnostic columns, for 4
chains of 1000 draws; of imports those of a fresh process that has imported what a fit needs anyway; of the first answer
those of `dfdbayes fit` with compiled code in place, as it is and with arviz_stats imported beside it.
"""

import platform
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from arviz_stats.base import array_stats

from dfdbayes.core import mixing

CHAINS, DRAWS = 4, 1000
AXES = {"chain_axis": 0, "draw_axis": 1}
OURS = {
    "ess_bulk": mixing.bulk_size,
    "ess_tail": mixing.tail_size,
    "r_hat": mixing.r_hat,
    "mcse_mean": lambda x: mixing.standard_errors(x)[0],
    "mcse_sd": lambda x: mixing.standard_errors(x)[1],
}
THEIRS = {
    "ess_bulk": lambda x: array_stats.ess(x, method="bulk", **AXES),
    "ess_tail": lambda x: array_stats.ess(x, method="tail", prob=(0.05, 0.95), **AXES),
    "r_hat": lambda x: array_stats.rhat(x, **AXES),
    "mcse_mean": lambda x: array_stats.mcse(x, method="mean", **AXES),
    "mcse_sd": lambda x: array_stats.mcse(x, method="sd", **AXES),
}


def chains(p, seed=0):
    """Autocorrelated chains of p quantities, from white noise to slow ones."""
    rng = np.random.default_rng(seed)
    found, memory = rng.standard_normal((CHAINS, DRAWS, p)), np.linspace(-0.5, 0.95, p)
    for t in range(1, DRAWS):
        found[:, t] += memory * found[:, t - 1]
    return found


def timed(functions, draws):
    """Seconds for all columns, and what they are."""
    times = []
    for _ in range(3):
        began = time.process_time()
        found = {name: np.asarray(function(draws), float) for name, function in functions.items()}
        times.append(time.process_time() - began)
    return min(times), found


def imported(module):
    """Seconds that an import takes beside what a fit has imported, and how many modules it brings."""
    code = (
        "import sys, time, numpy, pandas, jax, scipy.fft, scipy.special, dfdbayes.core.objective\n"
        "before, began = len(sys.modules), time.process_time()\n"
        f"import {module}\n"
        "print(time.process_time() - began, len(sys.modules) - before)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(5)]
    found = [run.stdout.split() for run in runs]
    return min(float(seconds) for seconds, _ in found), int(found[0][1])


def first_answer(before):
    """Seconds of the README's first command."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "counts.csv"
        path.write_text("\n".join(["visits", *map(str, np.random.default_rng(0).poisson(3.0, 2000))]))
        fit = f"fit {path} --model poisson --out {folder}/run --force".split()
        code = f"import sys\nsys.argv = {['dfdbayes', *fit]}\n{before}from dfdbayes.cli import main\nmain()"
        times = []
        for _ in range(6):  # the first one compiles
            began = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime)
    return min(times[1:])


def main():
    lines = [
        "# Diagnostics of chains: ArviZ or our own", "",
        f"Made by `python benchmarks/diagnostics.py`: {CHAINS} chains of {DRAWS} draws, Python "
        f"{platform.python_version()}, arviz_stats {__import__('arviz_stats').__version__}.", "",
        "| parameters | own, s | arviz_stats, s | times as long | largest relative difference |",
        "|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for p in (5, 50, 500):
        draws = chains(p)
        (own, ours), (other, theirs) = timed(OURS, draws), timed(THEIRS, draws)
        apart = max(np.max(np.abs(ours[name] / theirs[name] - 1.0)) for name in OURS)
        lines.append(f"| {p} | {own:.3f} | {other:.3f} | {other / own:.1f} | {apart:.0e} |")
    lines += ["", "| import, beside what a fit needs | s | modules |", "|---|---:|---:|"]
    for module in ("dfdbayes.core.mixing", "arviz_stats.base.array", "arviz_stats.base", "arviz_stats"):
        seconds, number = imported(module)
        lines.append(f"| `{module}` | {seconds:.2f} | {number} |")
    own, both = first_answer(""), first_answer("import arviz_stats\n")
    lines += [
        "", f"The first answer (`dfdbayes fit`, 2000 counts): {own:.2f} s as it is, {both:.2f} s with arviz_stats, "
        f"{both / own - 1:+.0%}.", "",
        "So the package has its own: it costs nothing to import, and is as quick. The two agree to the last digits "
        "(`tests/core/test_mixing.py`, `tests/core/test_pareto.py`).",
    ]  # fmt: skip
    text = "\n".join(lines) + "\n"
    (Path(__file__).parent / "results" / "diagnostics.md").write_text(text)
    print(text)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
