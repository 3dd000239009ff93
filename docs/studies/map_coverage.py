"""Coverage of 95 % intervals from one map: a lattice of 30 x 30 sites with a covariate at each.

    python docs/studies/map_coverage.py [--replicates R] [--minutes M] [CASE ...]

Writes docs/tables/map-coverage.md. Finished replicates are kept in runs/map-coverage, so that a run that was
interrupted, or ended after M minutes, goes on. Map r of a case comes from seed 70000 + r, and so does its fit; these
seeds served nothing else.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dfdbayes as dfd

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "runs" / "map-coverage"
FIRST, LEVEL, SIDE, SWEEPS = 70_000, 0.95, 30, 1000
FORMULA, AT = "present ~ x", ("row", "col")
TRUTH = {"intercept": -0.3, "x": 0.6, "interaction": 0.6}


@dataclass(frozen=True)
class Case:
    """How maps come about, and the ways to fit them."""

    title: str
    lost: float
    ways: dict[str, Callable[[pd.DataFrame, int], Any]]


def _fit(**settings: Any) -> Callable[[pd.DataFrame, int], Any]:
    return lambda frame, seed: dfd.fit(
        "autologistic", frame, formula=FORMULA, options={"at": AT}, seed=seed, check=False, progress=False, **settings
    )


def logistic(frame: pd.DataFrame, seed: int) -> Any:
    """As if sites did not depend on each other."""
    return dfd.fit("bernoulli", frame, formula=FORMULA, calibration="none", seed=seed, check=False, progress=False)


@cache
def sites() -> tuple[pd.DataFrame, Any]:
    """The lattice: a covariate that is smooth in space, and noise; and the model of its sites."""
    row, col = (part.reshape(-1) for part in np.indices((SIDE, SIDE)))
    rng = np.random.default_rng([70, 0])
    x = np.sin(row / 5.0) * np.cos(col / 7.0) + 0.5 * rng.standard_normal(SIDE**2)
    frame = pd.DataFrame({"row": row, "col": col, "x": x, "present": rng.integers(0, 2, SIDE**2)})
    return frame, dfd.models.Autologistic(FORMULA, at=AT).observe(frame)[1]


def drawn(seed: int, lost: float) -> pd.DataFrame:
    """A map; a share of its sites was not visited, more where x is low."""
    frame, model = sites()
    values = dfd.simulate(model, TRUTH, 1, seed=seed, sweeps=SWEEPS).values[0]
    chance = lost * np.where(frame["x"] < frame["x"].median(), 1.5, 0.5)
    unseen = np.random.default_rng([seed, 1]).random(len(frame)) < chance
    return frame.assign(present=np.where(unseen, np.nan, values) if lost else values)


def cases() -> dict[str, Case]:
    complete = {
        "parametric bootstrap (default)": _fit(),
        "blocks of about 30 sites": _fit(resampling=dfd.resampling.Blocks()),
        "terms as independent (sandwich)": _fit(resampling="dirichlet"),
        "naive pseudo-likelihood (beta = 1)": _fit(calibration="none"),
        "logistic regression without neighbours": logistic,
    }
    title = "30 x 30 sites, a covariate"
    return {
        "complete": Case(title, 0.0, complete),
        "missing": Case(
            f"{title}, a tenth of the sites not visited",
            0.1,
            {"impute": _fit(missing="impute"), "drop": _fit(missing="drop")},
        ),
    }


def replicate(case: Case, way: str, seed: int) -> dict[str, Any]:
    try:
        fit = case.ways[way](drawn(seed, case.lost), seed)
    except dfd.errors.DfdbayesError as problem:
        return {"failure": type(problem).__name__, "said": str(problem)[:200]}
    named = {name.removeprefix("probability[").rstrip("]").lower(): values for name, values in fit.entries.items()}
    found: dict[str, Any] = {"tails": {}, "off": {}, "sd": {}}
    for name, truth in TRUTH.items():
        if name in named:
            values = named[name].reshape(-1)
            found["tails"][name] = float(2 * abs((values < truth).mean() - 0.5))
            found["off"][name], found["sd"][name] = float(values.mean() - truth), float(values.std())
    return found


def path_of(name: str, way: str) -> Path:
    return KEPT / f"{name} {way}.jsonl"


def results(name: str, way: str) -> list[dict[str, Any]]:
    path = path_of(name, way)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def run(name: str, way: str, case: Case, seeds: range, end: float) -> None:
    done = {result["seed"] for result in results(name, way)}
    KEPT.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        if seed not in done and time.time() < end:
            line = json.dumps({"seed": seed} | replicate(case, way, seed))
            with path_of(name, way).open("a") as lines:
                lines.write(line + "\n")


def table() -> str:
    parameters = " | ".join(TRUTH)
    lines = [f"| case | way | maps (failed) | {parameters} |", "|---|---|---:|" + "---|" * len(TRUTH)]
    for name, case in cases().items():
        for way in case.ways:
            found = results(name, way)
            whole = [result for result in found if "tails" in result]
            if whole:
                cells = [_cell(whole, parameter) for parameter in TRUTH]
                number = f"{len(whole)} ({len(found) - len(whole)})"
                lines.append(f"| {case.title} | {way} | {number} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(whole: list[dict[str, Any]], parameter: str) -> str:
    """Coverage; bias, and the mean posterior sd over the sd of posterior means."""
    if parameter not in whole[0]["tails"]:
        return "–"
    tails, off, sd = (np.array([result[part][parameter] for result in whole]) for part in ("tails", "off", "sd"))
    return f"{100 * (tails <= LEVEL).mean():.1f} ({off.mean():+.3f}, {sd.mean() / off.std():.2f})"


HEADING = """Coverage in percent of nominal 95 % intervals from one map; in brackets the bias of the posterior mean, and
the posterior's standard deviation over the one that posterior means have between maps (1 is right). The binomial
standard error near 95 % is 1.3 for 300 maps. True values: intercept -0.3, x 0.6, interaction 0.6 (each of up to four
neighbours of the same kind raises the log odds by as much, each of the other kind lowers them). Made by
`python docs/studies/map_coverage.py` (map r from seed 70000 + r).

"""


def main() -> None:
    warnings.simplefilter("ignore")
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("cases", nargs="*")
    asked.add_argument("--replicates", type=int, default=300)
    asked.add_argument("--minutes", type=float, default=float("inf"))
    given = asked.parse_args()
    end = time.time() + 60 * given.minutes
    for first in range(FIRST, FIRST + given.replicates, 20):
        for name, case in cases().items():
            for way in case.ways:
                if not given.cases or name in given.cases:
                    run(name, way, case, range(first, min(first + 20, FIRST + given.replicates)), end)
        print(first, flush=True)
    (ROOT / "docs" / "tables" / "map-coverage.md").write_text(HEADING + table() + "\n")


if __name__ == "__main__":
    main()
