"""Coverage of 95 % intervals and regions: the default with no options, and other weights beside it.

    python docs/studies/coverage.py [--column COLUMN] [--replicates R] [CASE ...]

Writes docs/tables/coverage.md. Finished replicates are kept in runs/coverage, so an interrupted run goes on. Data set r
of a case comes from seed 70000 + r, and so does its fit; these seeds served nothing else. The columns are

``default``
    ``dfd.fit(model, data)``, and nothing else;
``beta = 1``, ``paper``
    the same loss without calibration, and with Theorem 3 of the paper;
``nuts``
    the default with NUTS in place of the fast sampler;
``0.1``
    the default of version 0.1 (invariant weight, draws moved to the bootstrap's covariance): run this script with that
    version on PYTHONPATH.

A run makes one column; the table shows all that there are.
"""

import argparse
import json
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # two processes on two cores

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln

import dfdbayes as dfd
from dfdbayes.fitting.coverage import placed

ROOT = Path(__file__).parents[2]
KEPT = Path(os.environ.get("DFDBAYES_COVERAGE", ROOT / "runs" / "coverage"))
COLUMNS: dict[str, dict[str, Any]] = {
    "default": {},
    "nuts": {"sampler": "nuts"},
    "beta = 1": {"beta": 1.0},
    "paper": {"calibration": "score-matching"},
    "0.1": {},
}
LEVEL = 0.95
FIRST = 70_000


@dataclass(frozen=True)
class Case:
    """A truth, and how data come from it. Without a loss, the model chooses."""

    title: str
    model: Any
    theta: dict[str, Any]
    n: int
    loss: str | None = None
    source: Callable[[int], np.ndarray] | None = None


def rare_network(d: int, rare: int, seed: int = 8) -> dict[str, Any]:
    """Intercepts about -0.5, a third of the interactions N(0, 0.6), and ``rare`` items that about one in 20 has."""
    rng = np.random.default_rng([seed, d])
    pairs = d * (d - 1) // 2
    interaction = np.where(rng.random(pairs) < 1 / 3, 0.6 * rng.standard_normal(pairs), 0.0)
    intercept = rng.normal(-0.5, 0.4, d)
    intercept[:rare] = -3.0
    return {"intercept": intercept, "interaction": interaction}


def zero_inflated(theta: dict[str, Any], x: Any) -> Any:
    """Zero-inflated Poisson counts, as a user would write them."""
    count = x[0] * jnp.log(theta["rate"]) - theta["rate"] - gammaln(x[0] + 1.0)
    zero = jnp.logaddexp(jnp.log(theta["share"]), jnp.log1p(-theta["share"]) - theta["rate"])
    return jnp.where(x[0] == 0, zero, jnp.log1p(-theta["share"]) + count)


def inflated_rows(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.3, 0, rng.poisson(4.0, n))


def negative_binomial(n: int, seed: int) -> np.ndarray:
    """Counts with mean 3 and variance 6: too wide for a Poisson model."""
    return np.random.default_rng(seed).negative_binomial(3, 0.5, n)


def contaminated(n: int, seed: int) -> np.ndarray:
    """CMP counts of which one in ten is a Poisson count with mean 8."""
    rng = np.random.default_rng(seed)
    model = dfd.models.ConwayMaxwellPoisson()
    rows = dfd.simulate(model, {"rate": 4.0, "nu": 1.25}, n, seed=seed).rows[:, 0]
    return np.where(rng.random(n) < 0.1, rng.poisson(8.0, n), rows)


def two_classes(n: int, seed: int) -> np.ndarray:
    """Six binary items of people of two kinds, which no pairwise network describes exactly."""
    rng = np.random.default_rng(seed)
    kind = rng.random(n) < 0.4
    share = np.where(kind[:, None], [0.8, 0.7, 0.6, 0.7, 0.5, 0.6], [0.3, 0.2, 0.4, 0.3, 0.3, 0.2])
    return (rng.random((n, 6)) < share).astype(int)


def target(model: Any, source: Callable[[int, int], np.ndarray], loss: str) -> dict[str, Any]:
    """The loss's minimiser on a very large sample: what intervals of a wrong model are about."""
    return dfd.minimise(dfd.objective(model, source(2_000_000, 1), loss)).theta


def counts() -> dict[str, Case]:
    cmp, poisson, bernoulli = dfd.models.ConwayMaxwellPoisson(), dfd.models.Poisson(), dfd.models.Bernoulli()
    found = {}
    for nu in (0.75, 1.25):
        for n in (100, 200, 500, 2000):
            found[f"cmp-{nu}-{n}"] = Case(f"CMP (4, {nu}), n = {n}", cmp, {"rate": 4.0, "nu": nu}, n)
        for loss in ("dfd", "ratio", "likelihood"):
            found[f"cmp-{nu}-500-{loss}"] = Case(f"CMP (4, {nu}), n = 500", cmp, {"rate": 4.0, "nu": nu}, 500, loss)
    for n in (200, 1000):
        found[f"cmp-low-{n}"] = Case(f"CMP (0.6, 1), n = {n}", cmp, {"rate": 0.6, "nu": 1.0}, n)
    for rate, n in ((3.0, 100), (3.0, 500), (0.6, 200), (30.0, 100)):
        found[f"poisson-{rate:g}-{n}"] = Case(f"Poisson {rate:g}, n = {n}", poisson, {"rate": rate}, n)
    for share, n in ((0.3, 100), (0.3, 500), (0.05, 200)):
        title = f"Bernoulli {share}, n = {n}"
        found[f"bernoulli-{share}-{n}"] = Case(title, bernoulli, {"probability": share}, n)
    mixture = dfd.models.PoissonMixture([5.0, 15.0])
    shares = {p.name: np.full(p.shape, 0.3) for p in mixture.space.parameters}
    for n in (100, 500):
        found[f"mixture-{n}"] = Case(f"mixture of Poisson 5 and 15, n = {n}", mixture, shares, n)
    inflated = dfd.Model(
        zero_inflated, dfd.Counts(1), {"rate": dist.LogNormal(0.0, 3.0), "share": dist.Uniform(0.0, 1.0)}, "inflated"
    )
    for n in (200, 1000):
        found[f"inflated-{n}"] = Case(
            f"zero-inflated Poisson, a user's model, n = {n}", inflated, {"rate": 4.0, "share": 0.3}, n,
            source=partial(inflated_rows, n),
        )  # fmt: skip
    return found


def lattices() -> dict[str, Case]:
    grid, found = dfd.graphs.grid(5, 5), {}
    for n in (100, 500):
        found[f"ising-{n}"] = Case(
            f"Ising 5x5, temperature 5, n = {n}", dfd.models.Ising(grid), {"temperature": 5.0}, n
        )
        field = dfd.models.Ising(grid, intercept=True)
        truth = {p.name: 5.0 if p.name == "temperature" else 0.2 for p in field.space.parameters}
        found[f"ising-field-{n}"] = Case(f"Ising 5x5 with field, n = {n}", field, truth, n)
        potts = dfd.models.Potts(grid, 3)
        truth = {p.name: 2.0 for p in potts.space.parameters}
        found[f"potts-{n}"] = Case(f"Potts 5x5, 3 states, n = {n}", potts, truth, n)
    one = dfd.models.Ising(dfd.graphs.grid(40, 40))
    found["one-lattice"] = Case("one Ising lattice 40x40, blocks", one, {"temperature": 5.0}, 1)
    return found


def networks() -> dict[str, Case]:
    found = {}
    for rare in (0, 1, 2):
        for n in (100, 300, 1000) if rare == 0 else (300, 1000):
            with_rare = f", {rare} rare" if rare else ""
            found[f"network-6-{rare}-{n}"] = Case(
                f"network d = 6{with_rare}, n = {n}", dfd.models.IsingNetwork(6), rare_network(6, rare), n
            )
    for loss in ("ratio", "pseudo"):
        found[f"network-8-{loss}"] = Case(
            "network d = 8, n = 500", dfd.models.IsingNetwork(8), rare_network(8, 0), 500, loss
        )
    found["network-12"] = Case(
        "network d = 12, 1 rare, n = 1000", dfd.models.IsingNetwork(12), rare_network(12, 1), 1000
    )
    found["network-20"] = Case(
        "network d = 20, 1 rare, n = 2000", dfd.models.IsingNetwork(20), rare_network(20, 1), 2000
    )
    return found


def graphs() -> dict[str, Case]:
    found = {}
    for d, edges in ((3, [0.1, 0.0, 0.05]), (6, [0.1, 0.0, 0.0, 0.05, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 0.05, 0, 0, 0, 0])):
        truth = {"intercept": np.linspace(0.6, 1.2, d), "interaction": np.array(edges, float)}
        for n in (200, 500):
            found[f"poisson-graph-{d}-{n}"] = Case(
                f"Poisson graph d = {d} with zero edges, n = {n}", dfd.models.PoissonGraphical(d), truth, n
            )
        found[f"cmp-graph-{d}"] = Case(
            f"CMP graph d = {d} with zero edges, n = 500", dfd.models.ConwayMaxwellPoissonGraphical(d),
            truth | {"nu": np.linspace(0.8, 1.2, d)}, 500,
        )  # fmt: skip
    return found


def wrong() -> dict[str, Case]:
    kinds = (
        ("negative binomial in Poisson", dfd.models.Poisson(), negative_binomial, "dfd"),
        ("contaminated CMP", dfd.models.ConwayMaxwellPoisson(), contaminated, "dfd"),
        ("two classes in a network", dfd.models.IsingNetwork(6), two_classes, "ratio"),
    )
    return {
        f"wrong-{i}": Case(
            f"{title}, n = 500", model, target(model, source, loss), 500, loss, partial(source, 500)
        )
        for i, (title, model, source, loss) in enumerate(kinds)
    }  # fmt: skip


FAMILIES = (counts, lattices, networks, graphs, wrong)


def cases() -> dict[str, Case]:
    return {name: case for family in FAMILIES for name, case in family().items()}


def replicate(case: Case, column: str, seed: int) -> dict[str, Any]:
    """Where the truth lies in the posterior of one data set."""
    space, truth = case.model.space, np.asarray(case.model.space.flatten(case.theta))
    method = "swendsen-wang" if case.n == 1 else None
    rows = (
        case.source(seed)
        if case.source
        else dfd.simulate(case.model, case.theta, case.n, seed=seed, method=method).rows
    )
    settings = COLUMNS[column] | ({"loss": case.loss} if case.loss else {})
    try:
        found = dfd.fit(case.model, rows, seed=seed, check=False, progress=False, **settings)
    except dfd.errors.DfdbayesError as problem:
        return {"failure": type(problem).__name__, "said": str(problem)[:200]}
    draws, line = (
        None if group is None
        else np.concatenate([group[p.name].values.reshape(-1, p.size) for p in space.parameters], axis=1)
        for group in (found.posterior, found.tree.children.get("unconstrained_posterior"))
    )  # fmt: skip
    shape = getattr(found.calibration, "curvature", None)
    more = () if shape is None else (line, shape)
    about = {"loss": found.settings["loss"], "sampler": found.settings["sampler"]}
    return placed(space, truth, draws, *more) | about | {"sd": draws.std(axis=0).tolist()}


def path_of(name: str, column: str) -> Path:
    return KEPT / f"{name} {column}.jsonl"


def run(replicates: int, column: str, name: str) -> str:
    """All replicates of a case, one line each, unless they are there already."""
    warnings.simplefilter("ignore")
    path = path_of(name, column)
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {json.loads(line)["seed"] for line in path.read_text().splitlines()} if path.is_file() else set()
    missing = [seed for seed in range(FIRST, FIRST + replicates) if seed not in done]
    if missing:
        case = next(family()[name] for family in FAMILIES if name in family())
        with path.open("a") as lines:
            for seed in missing:
                lines.write(json.dumps({"seed": seed} | replicate(case, column, seed)) + "\n")
                lines.flush()
    return name


def cell(results: list[dict[str, Any]], n: int) -> tuple[str, str]:
    """Joint and single coverage; bold where further from 93 to 97 (91 to 100 below n = 500) than chance explains."""
    good = [r for r in results if "failure" not in r]
    lost = f", {len(results) - len(good)} failed" if len(good) < len(results) else ""
    if len(good) < len(results) / 2:
        return "-" + lost, "-"
    joint = 100 * np.mean([g["joint"] <= LEVEL for g in good])
    each = 100 * np.mean([np.array(g["tails"]) <= LEVEL for g in good], axis=0)
    low, high, error = 93.0 if n >= 500 else 91.0, 97.0 if n >= 500 else 100.0, 100 * np.sqrt(0.05 * 0.95 / len(good))

    def told(share: float, slack: float = 1.0) -> str:
        """Of many shares the least and largest stray further by chance: three errors for them, one for a single one."""
        out = share < low - slack * error or share > high + slack * error
        return f"**{share:.1f}**" if out else f"{share:.1f}"

    one = len(each) == 1
    shown = told(each[0]) if one else f"{told(np.mean(each))} ({told(each.min(), 3)}, {told(each.max(), 3)})"
    return f"{told(joint)} [{len(results)}]{lost}", shown


def table() -> str:
    known = [column for column in COLUMNS if any(path_of(name, column).is_file() for name in cases())]
    heads = [f"{column}: joint | {column}: each (least, largest)" for column in known]
    lines = ["| case | loss | " + " | ".join(heads) + " |", "|---" * (2 + 2 * len(known)) + "|"]
    for name, case in cases().items():
        if not path_of(name, "default").is_file():
            continue
        cells, losses = [], set()
        for column in known:
            path = path_of(name, column)
            results = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
            cells += cell(results, case.n if case.n > 1 else 500) if results else ["", ""]
            losses |= {r["loss"] for r in results if "loss" in r} if column == "default" else set()
        lines.append(f"| {case.title} | {', '.join(sorted(losses))} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


HEADING = """Coverage in percent of nominal 95 % regions of all parameters (joint) and intervals of single ones: their
mean, least and largest. In brackets the number of data sets; the binomial standard error near 95 % is 1.0 for 500, 1.5
for 200 and 2.2 for 100. `default` is `dfd.fit(model, data)` with no options, the loss chosen by the model and the data.
Fits that ended in an error are counted as failed and left out. Bold: further from 93 to 97 (from 91 upwards below
n = 500) than chance explains. Made by `python docs/studies/coverage.py` (data set r
from seed 70000 + r).

"""


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("cases", nargs="*")
    asked.add_argument("--column", default="default", choices=list(COLUMNS))
    asked.add_argument("--replicates", type=int, default=500)
    given = asked.parse_args()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for finished in pool.map(partial(run, given.replicates, given.column), given.cases or list(cases())):
            print(finished, flush=True)
    if given.column != "0.1":
        (ROOT / "docs" / "tables" / "coverage.md").write_text(HEADING + table() + "\n")


if __name__ == "__main__":
    main()
