"""Coverage of 95 % intervals where entries are missing, and where rows come in clusters.

    python docs/studies/field_coverage.py [--replicates R] [--rivals S] [--minutes M] [--processes P] [CASE ...]

Writes docs/tables/field-coverage.md. Finished replicates are kept in runs/field-coverage, so that a run that was
interrupted, or ended after M minutes, goes on. Data set r of a case comes from seed 60000 + r, and so does its fit;
these seeds served nothing else. Each case has the ways of dealing with the data that users have: the first is the
one that is meant to hold, and is run on R data sets before the others are run on S of them.
"""

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # two processes on two cores

import numpy as np
import pandas as pd
from coverage import rare_network  # the study beside this one
from keeping import Study, arguments

import dfdbayes as dfd

STUDY = Study("field-coverage")
FIRST, PART, LEVEL = 60_000, 20, 0.95
DRAWS = 250  # in each of four chains
NAMES = [f"x{j}" for j in range(6)]


@dataclass(frozen=True)
class Case:
    """How data come about, the truth by parameter, which parameters count, and the ways to fit."""

    title: str
    source: Callable[[int], pd.DataFrame]
    truth: dict[str, float]
    ways: dict[str, Callable[[pd.DataFrame, int], Any]]


def _fit(model: str, **settings: Any) -> Callable[[pd.DataFrame, int], Any]:
    return lambda frame, seed: dfd.fit(model, frame, seed=seed, draws=DRAWS, check=False, progress=False, **settings)


def filled(frame: pd.DataFrame, seed: int) -> Any:
    """The commonest answer of each column in place of what is missing."""
    return _fit("network")(frame.fillna(frame.mode().iloc[0]).astype(int), seed)


def gone(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A fifth of the entries missing at random: more where the first answer, which is never missing, is high."""
    rng = np.random.default_rng([seed, 1])
    high = (frame["x0"] > frame["x0"].median()).to_numpy() | (frame["x0"] == frame["x0"].max()).to_numpy()
    chance = np.where(high, 0.4, 0.15)[:, None] * np.array([0.0, 1, 1, 1, 1, 1])
    return frame.astype(float).mask(rng.random(frame.shape) < chance)


def _named(model: Any, theta: dict[str, Any]) -> dict[str, float]:
    return dict(zip(model.space.names, map(float, model.space.flatten(theta)), strict=True))


def incomplete(model: Any, theta: dict[str, Any], n: int, seed: int) -> pd.DataFrame:
    return gone(pd.DataFrame(dfd.simulate(model, theta, n, seed=seed).rows, columns=NAMES), seed)


def missing() -> dict[str, Case]:
    """Six binary and six ordinal columns, n = 500."""
    binary = dfd.models.Network(dfd.Binary(6)).labelled(NAMES)
    rng = np.random.default_rng([8, 5])
    scale = dfd.models.Network(dfd.Ordinal(6, 5)).labelled(NAMES)
    steps = np.linspace(1.0, -1.5, 4) + rng.normal(0.0, 0.2, (6, 4))
    interaction = np.where(rng.random(15) < 1 / 3, rng.choice([-0.1, 0.15, 0.2], 15), 0.0)
    ordinal = {"threshold": np.cumsum(steps, axis=1).reshape(-1), "interaction": interaction}
    ways = {"impute": _fit("network", missing="impute"), "complete cases": _fit("network", missing="drop")}
    ways |= {"commonest answer": filled}
    found = {}
    for name, model, theta in (("binary", binary, rare_network(6, 0)), ("ordinal", scale, ordinal)):
        title = f"6 {name} columns, n = 500, a fifth of the entries missing at random: interactions"
        truth = {k: v for k, v in _named(model, theta).items() if k.startswith("interaction")}
        found[f"missing-{name}"] = Case(title, partial(incomplete, model, theta, 500), truth, ways)
    return found


def schools(clusters: int, seed: int) -> pd.DataFrame:
    """Binary outcomes of eight pupils in each school; a school's effect and half of a covariate are shared."""
    rng = np.random.default_rng(seed)
    school = np.repeat(np.arange(clusters), 8)
    x = 0.7 * rng.standard_normal(clusters)[school] + 0.7 * rng.standard_normal(len(school))
    rate = np.exp(0.5 + 0.3 * x + 0.5 * rng.standard_normal(clusters)[school])
    return pd.DataFrame({"visits": rng.poisson(rate), "x": x, "school": school})


def clusters() -> dict[str, Case]:
    truth = {"mean[Intercept]": 0.5 + 0.125, "mean[x]": 0.3}  # of a lognormal effect with sd 0.5
    together = _fit("poisson", formula="visits ~ x", cluster="school")
    apart = lambda frame, seed: _fit("poisson", formula="visits ~ x")(frame[["visits", "x"]], seed)  # noqa: E731
    ways = {"by cluster": together, "rows as independent": apart}
    return {
        f"clusters-{k}": Case(
            f"Poisson regression, {k} clusters of 8 with a shared effect", partial(schools, k), truth, ways
        )
        for k in (50, 15)
    }


@cache
def cases() -> dict[str, Case]:
    return missing() | clusters()


def replicate(name: str, way: str, seed: int) -> dict[str, Any]:
    case = cases()[name]
    try:
        fit = case.ways[way](case.source(seed), seed)
    except dfd.errors.DfdbayesError as problem:
        return {"failure": type(problem).__name__, "said": str(problem)[:200]}
    space = fit.model.space
    draws = np.concatenate([fit.posterior[p.name].values.reshape(-1, p.size) for p in space.parameters], axis=1)
    chosen = [space.names.index(name) for name in case.truth if name in space.names]
    truth = np.array([case.truth[space.names[i]] for i in chosen])
    below = (draws[:, chosen] < truth).mean(axis=0)
    return {"tails": (2 * np.abs(below - 0.5)).tolist(), "off": (draws[:, chosen].mean(axis=0) - truth).tolist()}


def run(end: float, job: tuple[str, str, int]) -> str:
    """A part of the replicates of a case."""
    name, way, first = job
    STUDY.run(((name, way, seed) for seed in range(first, first + PART)), replicate, end)
    return f"{name} {way} {first}"


def table() -> str:
    lines = ["| case | way | data sets (failed) | covered (least, largest) | largest bias |", "|---|---|---:|---|---:|"]
    for name, case in cases().items():
        for way in case.ways:
            found = STUDY.results(name, way)
            whole = [result for result in found if "tails" in result]
            if not whole:
                continue
            held = 100 * (np.array([result["tails"] for result in whole]) <= LEVEL).mean(axis=0)
            bias = np.mean([result["off"] for result in whole], axis=0)
            number = f"{len(whole)} ({len(found) - len(whole)})"
            covered = f"{held.mean():.1f} ({held.min():.1f}, {held.max():.1f})"
            lines.append(f"| {case.title} | {way} | {number} | {covered} | {bias[np.argmax(np.abs(bias))]:.3f} |")
    return "\n".join(lines)


HEADING = """# Coverage with missing entries and clusters

Coverage in percent of nominal 95 % intervals of single parameters: their mean, least and largest; and the
largest bias of a posterior mean. The binomial standard error near 95 % is 1.0 for 500 data sets, for a mean over
parameters less. Made by `python docs/studies/field_coverage.py` (data set r from seed 60000 + r; 1000 draws).

"""


def main() -> None:
    asked = arguments(__doc__, cases(), 500, rivals=200, processes=2)
    jobs = [
        (name, way, first)
        for number, chosen in ((asked.replicates, slice(1)), (asked.rivals, slice(1, None)))
        for first in range(FIRST, FIRST + number, PART)
        for name in asked.cases
        for way in list(cases()[name].ways)[chosen]
    ]
    with ProcessPoolExecutor(asked.processes, mp_context=get_context("spawn")) as pool:
        for finished in pool.map(partial(run, asked.end), jobs):
            print(finished, flush=True)
    STUDY.write(HEADING + table())


if __name__ == "__main__":
    main()
