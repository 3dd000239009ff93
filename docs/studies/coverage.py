"""Coverage of every calibration with every adjustment, over the cases that the choice of the default rests on.

Run: python docs/studies/coverage.py [CASE ...]    (all cases: about half an hour on two cores)

Writes docs/tables/coverage.md and coverage-default.md, and keeps finished replicates in runs/coverage, so an
interrupted run goes on. Data set r of a case comes from seed r, its bootstrap too. The posterior is its normal
approximation in unconstrained coordinates, whose draws cost nothing.
"""

import json
import os
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # two processes on two cores

import numpy as np
import numpyro.distributions as dist

import dfdbayes as dfd
from dfdbayes.fitting.coverage import placed
from dfdbayes.inference.adjustment import adjusted

ROOT = Path(__file__).parents[2]
SHOWN = {
    "default": "default",
    "invariant weight alone": "score-matching-invariant",
    "paper's weight": "score-matching",
    "gpc": "gpc",
    "beta = 1": "none",
}
METHODS = ("score-matching", "score-matching-invariant", "gpc", "lyddon", "none")
ADJUSTMENTS = (None, "bootstrap", "sandwich")
LEVEL = 0.95


@dataclass(frozen=True)
class Case:
    """A truth, and how data come from it."""

    title: str
    model: Any
    theta: dict[str, Any]
    n: int
    loss: str = "dfd"
    replicates: int = 500
    source: Callable[[int], np.ndarray] | None = None


def negative_binomial(seed: int) -> np.ndarray:
    """500 counts with mean 3 and variance 6: too wide for a Poisson model."""
    return np.random.default_rng(seed).negative_binomial(3, 0.5, 500)


def network() -> tuple[Any, dict[str, Any]]:
    """Eight binary nodes, intercepts N(0, 0.3), and 5 of 28 interactions of 0.4 with random signs."""
    rng = np.random.default_rng(8)
    interaction = np.zeros(28)
    interaction[rng.choice(28, 5, replace=False)] = 0.4 * rng.choice([-1.0, 1.0], 5)
    model = dfd.models.IsingNetwork(dfd.graphs.complete(8))
    return model, {"intercept": 0.3 * rng.standard_normal(8), "interaction": interaction}


def cases() -> dict[str, Case]:
    cmp = dfd.models.ConwayMaxwellPoisson()
    found = {}
    for shape in (0.75, 1.25):
        for n in (100, 500, 2000):
            for loss in ("dfd", "ratio"):
                theta = {"rate": 4.0, "nu": shape}
                found[f"cmp-{shape}-{n}-{loss}"] = Case(f"CMP (4, {shape}), n = {n}, {loss}", cmp, theta, n, loss)
    found["poisson"] = Case("Poisson 3, n = 500, dfd", dfd.models.Poisson(), {"rate": 3.0}, 500)
    found["bernoulli"] = Case("Bernoulli 0.3, n = 500, dfd", dfd.models.Bernoulli(), {"probability": 0.3}, 500)
    grid = dfd.models.Ising(dfd.graphs.grid(5, 5))
    for loss in ("dfd", "ratio", "pseudo"):
        found[f"ising-{loss}"] = Case(
            f"Ising 5x5, temperature 5, n = 200, {loss}", grid, {"temperature": 5.0}, 200, loss
        )
    model, theta = network()
    for loss in ("dfd", "ratio", "pseudo"):
        title = f"Ising network d = 8, n = 500, {loss}"
        found[f"network-{loss}"] = Case(title, model, theta, 500, loss, replicates=200 if loss == "dfd" else 500)
    wide = {"interaction": dist.Normal(0.0, 1.0)}  # of the roots; the model's own prior is narrower than the truth
    graph = dfd.models.PoissonGraphical(dfd.graphs.complete(4)).with_priors(wide)
    truth = {"intercept": np.array([0.8, 1.0, 0.6, 0.9]), "interaction": np.array([0.1, 0.2, 0.1, 0.15, 0.1, 0.2])}
    for loss in ("dfd", "ratio"):
        title = f"Poisson graphical d = 4, n = 500, {loss}"
        found[f"graphical-{loss}"] = Case(title, graph, truth, 500, loss, replicates=200 if loss == "dfd" else 500)
    # Of the loss minimiser on the whole population: E[x^2] / E[x + 1] for the Fisher divergence of a Poisson model.
    found["misspecified"] = Case(
        "negative binomial in Poisson, n = 500, dfd", dfd.models.Poisson(), {"rate": 15 / 4}, 500,
        source=negative_binomial,
    )  # fmt: skip
    return found


def replicate(case: Case, seed: int) -> dict[str, Any]:
    """Where the truth lies in each of the posteriors of one data set."""
    space, truth = case.model.space, np.asarray(case.model.space.flatten(case.theta))
    rows = case.source(seed) if case.source else dfd.simulate(case.model, case.theta, case.n, seed=seed).rows
    objective = dfd.objective(case.model, rows, case.loss)
    found: dict[str, Any] = {}
    try:
        minimum = dfd.minimise(objective)
        if minimum.outcome not in (dfd.Outcome.CONVERGED, dfd.Outcome.BOUNDARY):
            return {"": {"failure": "MinimiserError"}}
        replicates = dfd.bootstrap(objective, minimum, seed=seed)
    except dfd.errors.DfdbayesError as problem:
        return {"": {"failure": type(problem).__name__}}
    for method in METHODS:
        try:
            weight = dfd.calibrate(objective, method, bootstrap=replicates, minimum=minimum)
        except dfd.errors.DfdbayesError as problem:
            found |= {f"{method} {adjust or ''}".strip(): {"failure": type(problem).__name__} for adjust in ADJUSTMENTS}
            continue
        z = dfd.sample(objective, weight, minimum, "laplace", seed=seed).z
        for adjust in ADJUSTMENTS:
            name = f"{method} {adjust or ''}".strip()
            try:
                moved = adjusted(z, objective, minimum, weight, adjust)
            except dfd.errors.DfdbayesError as problem:
                found[name] = {"failure": type(problem).__name__}
                continue
            found[name] = placed(space, truth, space.from_z(moved.reshape(-1, space.size))) | {"beta": weight.beta}
    weighed, moved = (found[name] for name in ("score-matching-invariant", "score-matching-invariant bootstrap"))
    found["default"] = weighed if "failure" in moved else moved  # as `fit` does
    return found


def run(name: str) -> str:
    """All replicates of a case, one line each, unless they are there already."""
    warnings.simplefilter("ignore")
    case, path = cases()[name], ROOT / "runs" / "coverage" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {json.loads(line)["seed"] for line in path.read_text().splitlines()} if path.is_file() else set()
    with path.open("a") as lines:
        for seed in range(case.replicates):
            if seed not in done:
                lines.write(json.dumps({"seed": seed} | replicate(case, seed)) + "\n")
                lines.flush()
    return name


def table(names: list[str], columns: dict[str, str]) -> str:
    """Joint and marginal coverage, method by method; cells below 92 % or above 98 % are set in italics."""
    text = ["| case | region | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for name in names:
        path = ROOT / "runs" / "coverage" / f"{name}.jsonl"
        results = [json.loads(line) for line in path.read_text().splitlines()]
        cells: dict[str, list[str]] = {"joint": [], "marginal": []}
        for column in columns.values():
            good = [r[column] for r in results if column in r and "failure" not in r[column]]
            lost = len(results) - len(good)
            for region in cells:
                if len(good) < len(results) / 2:
                    cells[region].append(f"- ({lost} failed)")
                    continue
                if region == "joint":
                    shares = [np.mean([g["joint"] <= LEVEL for g in good])]
                else:
                    shares = np.mean([np.array(g["tails"]) <= LEVEL for g in good], axis=0)
                low, high = 100 * np.min(shares), 100 * np.max(shares)
                shown = f"{low:.0f}" if len(shares) == 1 else f"{100 * np.mean(shares):.0f} ({low:.0f} to {high:.0f})"
                shown = shown if 92 <= 100 * np.mean(shares) <= 98 else f"*{shown}*"
                cells[region].append(shown + (f" ({lost} failed)" if lost else ""))
        title = f"{cases()[name].title} ({len(results)} data sets)"
        text.append(f"| {title} | joint | " + " | ".join(cells["joint"]) + " |")
        text.append("| | each parameter | " + " | ".join(cells["marginal"]) + " |")
    return "\n".join(text)


if __name__ == "__main__":
    wanted = sys.argv[1:] or list(cases())
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for finished in pool.map(run, wanted):
            print(finished, flush=True)
    finished = [name for name in cases() if (ROOT / "runs" / "coverage" / f"{name}.jsonl").is_file()]
    everything = [f"{m} {a or ''}".strip() for m in METHODS for a in ADJUSTMENTS]
    heading = (
        "Coverage in percent of 95 % regions and intervals; the binomial standard error of a share near 95 % is 1 % "
        "for 500 data sets and 1.5 % for 200. Of each parameter's interval: the mean over parameters, "
        "and the smallest and largest. Cells outside 92 to 98 are in italics; `failed` data sets had no minimiser, "
        "weight or adjustment and are not counted. Made by `python docs/studies/coverage.py` (data set r from seed "
        "r).\n\n"
    )
    for file, columns in (("coverage.md", {name: name for name in everything}), ("coverage-default.md", SHOWN)):
        (ROOT / "docs" / "tables" / file).write_text(heading + table(finished, columns) + "\n")
    print(table(finished, SHOWN))
