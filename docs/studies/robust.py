"""Robust losses on clean data and with one row in ten replaced: bias, efficiency, and coverage of 95 % intervals.

    python docs/studies/robust.py [--replicates R] [--minutes M] [CASE ...]

Writes docs/tables/robust.md. Finished replicates are kept in runs/robust, so that a run that was interrupted, or ended
after M minutes, goes on. Data set r of a case comes from seed 70000 + r; these seeds served nothing else.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import pandas as pd
from keeping import Study, arguments

import dfdbayes as dfd

STUDY, FIRST, LEVEL = Study("robust"), 70_000, 0.95
CONTRAST = 50  # data sets whose soiled version is fitted by the plain loss, too


@dataclass(frozen=True)
class Case:
    """How clean and dirty data come about, the truth by parameter, and the losses, each with its plain relative."""

    title: str
    source: Callable[[int], Any]
    soiled: Callable[[Any], Any]
    truth: dict[str, float]
    fit: Callable[[Any, str | Any], Any]
    bases: tuple[str, ...]


def _fit(model: Any, **settings: Any) -> Callable[[Any, Any], Any]:
    return lambda data, loss: dfd.fit(model, data, loss=loss, check=False, progress=False, **settings)


def _replaced(value: Any) -> Callable[[np.ndarray], np.ndarray]:
    """One row in ten becomes ``value``."""

    def soiled(rows: np.ndarray) -> np.ndarray:
        found = rows.copy()
        found[: len(found) // 10] = value
        return found

    return soiled


def poisson() -> Case:
    model = dfd.models.Poisson()
    return Case(
        "Poisson, rate 5, n = 500; 10 % replaced by 20 (A.3)",
        lambda seed: dfd.simulate(model, {"rate": 5.0}, 500, seed=seed).rows,
        _replaced(20), {"rate": 5.0}, _fit(model), ("dfd",),
    )  # fmt: skip


def ising() -> Case:
    model = dfd.models.Ising(dfd.graphs.grid(10, 10))
    return Case(
        "Ising 10x10, temperature 5, n = 1000; 10 % replaced by all ones (D.4)",
        lambda seed: dfd.simulate(model, {"temperature": 5.0}, 1000, seed=seed, method="swendsen-wang").rows,
        _replaced(1), {"temperature": 5.0}, _fit(model), ("dfd",),
    )  # fmt: skip


def cmp() -> Case:
    model, truth = dfd.models.ConwayMaxwellPoisson(), {"rate": 4.0, "nu": 0.75}
    return Case(
        "Conway-Maxwell-Poisson (4, 0.75), n = 1000; 10 % replaced by 30",
        lambda seed: dfd.simulate(model, truth, 1000, seed=seed).rows,
        _replaced(30), truth, _fit(model), ("dfd",),
    )  # fmt: skip


def regression() -> Case:
    def source(seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        x = rng.standard_normal(500)
        return pd.DataFrame({"visits": rng.poisson(np.exp(1.0 + 0.5 * x)), "x": x})

    def soiled(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.copy()
        frame.loc[frame.index < 50, "visits"] = 30
        return frame

    truth = {"mean[Intercept]": 1.0, "mean[x]": 0.5}
    return Case(
        "Poisson regression on one covariate, n = 500; 10 % of the counts replaced by 30",
        source, soiled, truth, _fit("poisson", formula="visits ~ x"), ("ratio",),
    )  # fmt: skip


CASES = {make.__name__: cache(make) for make in (poisson, ising, regression, cmp)}


def ways(case: Case) -> dict[str, tuple[bool, Any]]:
    """What is done: whether the data are soiled, and the loss."""
    found: dict[str, tuple[bool, Any]] = {}
    for base in case.bases:
        robust = dfd.losses.Robust(base)
        found |= {f"{base}": (False, base), f"robust-{base}": (False, robust)}
        found |= {f"{base} soiled": (True, base), f"robust-{base} soiled": (True, robust)}
    return found


def replicate(name: str, seed: int) -> dict[str, Any]:
    """Every way's means, sds and tails for one data set."""
    case = CASES[name]()
    data, found = case.source(seed), {}
    for way, (soil, loss) in ways(case).items():
        if soil and isinstance(loss, str) and seed >= FIRST + CONTRAST:
            continue
        try:
            fit = case.fit(case.soiled(data) if soil else data, loss)
        except dfd.errors.DfdbayesError as problem:
            found[way] = {"failure": type(problem).__name__}
            continue
        draws = np.stack([fit.entries[name].reshape(-1) for name in case.truth], axis=1)
        truth = np.array(list(case.truth.values()))
        below = (draws < truth).mean(axis=0)
        found[way] = {
            "mean": draws.mean(axis=0).tolist(), "sd": draws.std(axis=0).tolist(),
            "tails": (2 * np.abs(below - 0.5)).tolist(),
        }  # fmt: skip
    return found


def table() -> str:
    lines = [
        "| data | loss | data sets | coverage, clean | the plain loss's | efficiency to the plain loss | "
        "bias in sds: clean | soiled | plain loss, soiled |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, make in CASES.items():
        case, found = make(), STUDY.results(name)
        if not found:
            continue
        truth = np.array(list(case.truth.values()))
        for base in case.bases:
            keys = (base, f"robust-{base}", f"robust-{base} soiled", f"{base} soiled")
            kept = [f for f in found if all("failure" not in f[key] for key in keys[:3])]
            plain, robust, soiled = (np.array([f[key]["mean"] for f in kept]) for key in keys[:3])
            sd, tails = np.array([f[keys[1]]["sd"] for f in kept]), np.array([f[keys[1]]["tails"] for f in kept])
            sd_soiled = np.array([f[keys[2]]["sd"] for f in kept])
            rest = [f[keys[3]] for f in found if keys[3] in f and "failure" not in f[keys[3]]]
            worse = np.mean([(np.array(f["mean"]) - truth) / f["sd"] for f in rest], axis=0)
            efficiency = plain.var(axis=0, ddof=1) / robust.var(axis=0, ddof=1)
            bias, off = ((robust - truth) / sd).mean(axis=0), ((soiled - truth) / sd_soiled).mean(axis=0)
            cover = 100 * (tails < LEVEL).mean(axis=0)
            usual = 100 * (np.array([f[base]["tails"] for f in kept]) < LEVEL).mean(axis=0)
            shown = [_shown(part) for part in (cover, usual, efficiency, bias, off, worse)]
            number = f"{len(kept)}" + (f" of {len(found)}" if len(kept) < len(found) else "")
            lines.append(f"| {case.title} | robust-{base} | {number} | " + " | ".join(shown) + " |")
    text = (
        "# Robust losses\n\n"
        "Made by `python docs/studies/robust.py`, seeds 70000 and on; weights are those that `fit` chooses. Coverage "
        "of 95 % intervals; efficiency is the variance of the plain loss's estimates over that of the robust one's, "
        "both on clean data; bias is the mean of (estimate - truth) / posterior sd. Of several parameters, the mean, "
        "and in brackets the least and the largest. The plain loss on soiled data: of the first 50 data sets.\n\n"
    )
    return text + "\n".join(lines) + "\n"


def _shown(values: np.ndarray) -> str:
    digits = 1 if values.max() > 20 else 2
    text = f"{values.mean():.{digits}f}"
    return text + (f" ({values.min():.{digits}f}, {values.max():.{digits}f})" if len(values) > 1 else "")


def main() -> None:
    asked = arguments(__doc__, CASES, 500)
    STUDY.run(((name, FIRST + r) for r in range(asked.replicates) for name in asked.cases), replicate, asked.end)
    STUDY.write(table())


if __name__ == "__main__":
    main()
