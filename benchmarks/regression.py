"""Regressions of many rows, beside glmmTMB where Rscript has it.

    python benchmarks/regression.py    (about ten minutes; writes benchmarks/results/regression.md)

Every case runs in a process of its own with an empty folder for compiled code: the first fit is cold, the second one is
not. glmmTMB fits the same rows in the same run (family compois, mean form, as ours), where R and the package are there.
Data come from seed 0.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
LONGEST = 60  # seconds that glmmTMB may take
SIZES = (2000, 4000, 8000, 16_000, 32_000)
TERMS = "age + income + distance + clinic"


def people(n):
    """Negative binomial counts with three numbers and a factor of three levels: six coefficients."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.standard_normal(n) for name in ("age", "income", "distance")})
    frame["clinic"] = rng.choice(["A", "B", "C"], n)
    slopes = {"age": 0.3, "income": -0.2, "distance": 0.1}
    log_mean = 1.0 + sum(slope * frame[name] for name, slope in slopes.items()) + 0.4 * (frame["clinic"] == "B")
    frame["visits"] = rng.poisson(np.exp(log_mean) * rng.gamma(2.0, 0.5, n))
    return frame


def factors(n):
    """Counts with two factors of four and five levels, which few distinct rows describe."""
    rng = np.random.default_rng(0)
    region, kind = rng.integers(4, size=n), rng.integers(5, size=n)
    frame = pd.DataFrame({"visits": rng.poisson(np.exp(0.5 + 0.2 * region - 0.1 * kind))})
    frame["region"] = pd.Categorical.from_codes(region, list("NESW"))
    frame["kind"] = pd.Categorical.from_codes(kind, list("abcde"))
    return frame


CASES = {
    "45,000 over-dispersed rows, 6 coefficients and nu": ("cmp", people, 45_000, f"visits ~ {TERMS}"),
    "the same by Poisson": ("poisson", people, 45_000, f"visits ~ {TERMS}"),
    "10 million rows, two factors": ("cmp", factors, 10_000_000, "visits ~ region + kind"),
    "2 million rows, three numbers and a factor": ("poisson", people, 2_000_000, f"visits ~ {TERMS}"),
}


def one(title):
    """The case's fits in this process."""
    import dfdbayes as dfd

    warnings.simplefilter("ignore")
    model, source, n, formula = CASES[title]
    frame, seconds = source(n), []
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    for seed in (0, 1):
        began = time.perf_counter()
        fit = dfd.fit(model, frame, formula=formula, seed=seed, check=False, progress=False)
        seconds.append(time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    slope = fit.summary().loc[fit.summary().index[1]]
    return {
        "seconds": seconds, "peak": peak, "held": held, "stages": fit.timings["seconds"],
        "slope": [fit.summary().index[1], float(slope["mean"]), float(slope["sd"])],
    }  # fmt: skip


def grown(_):
    """Second fits of a CMP regression with numbers, as rows grow."""
    import dfdbayes as dfd

    warnings.simplefilter("ignore")
    frame, times = people(SIZES[-1]), []
    for n in SIZES:
        taken = []
        for seed in (0, 1, 2):
            began = time.perf_counter()
            dfd.fit("cmp", frame[:n], formula=f"visits ~ {TERMS}", seed=seed, check=False, progress=False)
            taken.append(time.perf_counter() - began)
        times.append(min(taken[1:]))
    return times


def apart(flag, title):
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": folder}
        done = subprocess.run(
            [sys.executable, __file__, flag, title], capture_output=True, text=True, check=True, env=environment
        )
    return json.loads(done.stdout.strip().splitlines()[-1])


R = """
suppressMessages(library(glmmTMB))
frame <- read.csv("{path}", stringsAsFactors = TRUE)
began <- proc.time()[["elapsed"]]
fit <- glmmTMB({formula}, data = frame, family = {family})
taken <- proc.time()[["elapsed"]] - began
first <- summary(fit)$coefficients$cond[2, 1:2]
cat(taken, first, "\\n")
"""


def other(title):
    """Seconds, first slope and its standard error of glmmTMB on the same rows; None where it cannot be had."""
    model, source, n, formula = CASES[title]
    if shutil.which("Rscript") is None or n > 2_000_000:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        source(n).to_csv(path, index=False)
        script = Path(folder) / "fit.R"
        script.write_text(
            R.format(path=path, formula=formula, family={"cmp": "compois()", "poisson": "poisson()"}[model])
        )
        try:
            done = subprocess.run(["Rscript", str(script)], capture_output=True, text=True, timeout=LONGEST, check=True)
        except subprocess.TimeoutExpired:
            return f"not done in {LONGEST} s"
        except subprocess.CalledProcessError as problem:
            return problem.stderr.strip().splitlines()[-1][:60]
    taken, slope, error = map(float, done.stdout.split())
    return f"{taken:.1f} s; {slope:.4f} ({error:.4f})"


def main():
    if len(sys.argv) > 2:
        print(json.dumps({"--one": one, "--grown": grown}[sys.argv[1]](sys.argv[2])))
        return
    lines = [
        "| rows | cold fit, s | second fit, s | minimise | calibrate | sample | peak memory, GiB (data alone) | "
        "first slope (sd) | glmmTMB: time; first slope (its error) |",
        "|---|---:|---:|---:|---:|---:|---:|---|---|",
    ]
    for title in CASES:
        f, theirs = apart("--one", title), other(title)
        stages = " | ".join(f"{f['stages'][s]:.2f}" for s in ("minimise", "calibrate", "sample"))
        lines.append(
            f"| {title} | {f['seconds'][0]:.1f} | {f['seconds'][1]:.1f} | {stages} | {f['peak']:.1f} ({f['held']:.1f}) "
            f"| {f['slope'][1]:.4f} ({f['slope'][2]:.4f}) | {theirs or ''} |"
        )
        print(lines[-1], flush=True)
    times = apart("--grown", "rows")
    exponent = np.polyfit(np.log(SIZES), np.log(times), 1)[0]
    grows = ", ".join(f"{n:,}: {t:.2f} s" for n, t in zip(SIZES, times, strict=True))
    text = f"""# Regressions of many rows

Made by `python benchmarks/regression.py`, data seed 0, two cores, load of the machine at the end
{os.getloadavg()[0]:.1f}. Fits without options, without checks; the cold one compiles everything. Formula of numbers:
`visits ~ {TERMS}`. Our standard deviations are calibrated: they hold where the spread is not the model's; glmmTMB's
errors do not. An empty field: not tried.

{chr(10).join(lines)}

Growth of a second fit of the CMP regression with numbers, by rows: {grows}; exponent {exponent:.2f}.
"""
    (HERE / "results" / "regression.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
