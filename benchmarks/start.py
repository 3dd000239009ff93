"""First answers: importing the package, the first command on a machine, and the second one.

Run: python benchmarks/start.py    (about two minutes; writes benchmarks/results/start.md)

Every number is of a fresh process, the least of three runs. The cold command finds an empty folder for compiled code,
the second one what the first has left there. Processor time is that of all threads, and suffers less from whatever else
the machine does.
"""

import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

RUNS, ROWS, SLOWEST = 3, 2000, 15


def measured(arguments, folder):
    """Seconds by the clock and of the processor of a fresh process whose caches are in a folder."""
    environment = os.environ | {"XDG_CACHE_HOME": str(folder)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
    taken, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return np.array([taken, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime])


def commands(model, path):
    """The cold command and the second one, three times."""
    found = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            fit = ["-m", "dfdbayes", "fit", str(path), "--model", model, "--out", f"{folder}/run", "--force"]
            found.append([measured(fit, folder) for _ in range(2)])
    return np.min(found, axis=0)


def slowest_imports(code):
    """Modules by the seconds that they take themselves, and with what they import; the slowest first."""
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=True)
    lines = [line.removeprefix("import time:").split("|") for line in done.stderr.splitlines() if "|" in line]
    times = [(int(own), int(whole), name.strip()) for own, whole, name in lines if own.strip().isdigit()]
    return sorted(times, reverse=True)[:SLOWEST]


OF_THE_COMMAND = [
    "dfdbayes.cli",
    "dfdbayes.fitting.fit",
    "dfdbayes.fitting.runs",
    "dfdbayes.present.page",
    "h5netcdf",
]


def import_table(code):
    lines = ["| module | itself, ms | with what it imports, ms |", "|---|---:|---:|"]
    return "\n".join(
        lines + [f"| {name} | {own / 1e3:.0f} | {all_ / 1e3:.0f} |" for own, all_, name in slowest_imports(code)]
    )


def main():
    lines = ["| | by the clock, s | processor, s |", "|---|---:|---:|"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "counts.csv"
        counts = np.random.default_rng(0).poisson(3.0, ROWS)
        path.write_text("\n".join(["visits", *map(str, counts)]))
        for code in ("import jax", "import dfdbayes", "import dfdbayes; dfdbayes.fit"):
            least = np.min([measured(["-c", code], folder) for _ in range(RUNS)], axis=0)
            lines.append(f"| `{code}` | {least[0]:.2f} | {least[1]:.2f} |")
        for model in ("poisson", "cmp"):
            command = f"dfdbayes fit counts.csv --model {model} --out run"
            for which, least in zip(("cold", "second"), commands(model, path), strict=True):
                lines.append(f"| `{command}`, {which} | {least[0]:.2f} | {least[1]:.2f} |")
                print(lines[-1], flush=True)
    text = f"""# First answers: {ROWS} counts

Made by `python benchmarks/start.py`: fresh processes, the least of {RUNS} runs, {os.cpu_count()} processors,
Python {platform.python_version()}, load of the machine at the end {os.getloadavg()[0]:.1f}. The cold command finds no
compiled code, the second one what the first has left.

{chr(10).join(lines)}

## The {SLOWEST} slowest imports of `import dfdbayes`

{import_table("import dfdbayes")}

## The {SLOWEST} slowest imports of what the command uses

{import_table("import " + ", ".join(OF_THE_COMMAND))}
"""
    Path(__file__).parent.joinpath("results", "start.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
