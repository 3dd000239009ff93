"""How often the test of fit rejects: models that are right, which should be 5 times in 100, and models that are not.

    python docs/studies/checks.py [--replicates R] [--minutes M] [CASE ...]

Writes docs/tables/checks.md. Finished replicates are kept in runs/checks, so that a run that was interrupted, or ended
after M minutes, goes on. Data set r of a case comes from seed 70000 + r; these seeds served nothing else. The estimate
is that of the default loss, and the test is the one that `fit` runs.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from keeping import Study, arguments

import dfdbayes as dfd
from dfdbayes.results.goodness_of_fit import goodness_of_fit

STUDY, FIRST, LEVEL = Study("checks"), 70_000, 0.05
Source = Callable[[int, int], Any]


@dataclass(frozen=True)
class Case:
    """Data of n observations from a seed, the model that is fitted, and whether it is right."""

    title: str
    source: Source
    model: Callable[[], Any]
    sizes: tuple[int, ...]
    right: bool = False
    formula: str = ""


def simulated(model: Callable[[], Any], theta: Any) -> Source:
    return lambda n, seed: dfd.simulate(model(), theta, n, seed=seed).rows


def counts(draw: Callable[[np.random.Generator, int], np.ndarray]) -> Source:
    return lambda n, seed: draw(np.random.default_rng(seed), n)[:, None]


def negative_binomial(rng: np.random.Generator, mean: Any, n: int, shape: float = 1.5) -> np.ndarray:
    """Variance mean + mean^2 / shape."""
    return rng.poisson(np.broadcast_to(mean, n) * rng.gamma(shape, 1.0 / shape, n))


def two_groups(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.poisson(np.where(rng.random(n) < 0.5, 2.0, 8.0))


def many_zeros(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.poisson(3.0, n) * (rng.random(n) < 0.8)


def regression(shape: float) -> Source:
    """Counts with mean exp(1 + 0.4 x) and variance mean + mean^2 / shape: Poisson, or geometric where it is 1."""

    def made(n: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=n)
        mean = np.exp(1.0 + 0.4 * x)
        y = rng.poisson(mean) if np.isinf(shape) else negative_binomial(rng, mean, n, shape)
        return pd.DataFrame({"y": y, "x": x})

    return made


@cache
def network() -> tuple[Any, dict[str, np.ndarray]]:
    """Six binary columns in a ring with one chord, interactions 0.8."""
    pairs = ((0, 1), (0, 3), (0, 5), (1, 2), (2, 3), (3, 4), (4, 5))
    model = dfd.models.IsingNetwork(dfd.graphs.of(list(pairs)))
    return model, {"intercept": np.linspace(-1.2, 0.0, 6), "interaction": np.full(len(pairs), 0.8)}


def without_an_edge() -> Any:
    kept = [pair for pair in network()[0].graph.pairs if pair != (0, 3)]
    return dfd.models.IsingNetwork(dfd.graphs.of(kept))


def lattice(periodic: bool) -> Callable[[], Any]:
    return cache(lambda: dfd.models.Ising(dfd.graphs.grid(6, 6, periodic=periodic)))


def count_network() -> tuple[Any, dict[str, np.ndarray]]:
    model = dfd.models.PoissonGraphical(dfd.graphs.of([(0, 1), (1, 2), (2, 3)]))
    return model, {"intercept": np.full(4, 1.0), "interaction": np.full(3, 0.1)}


POISSON, CMP = cache(dfd.models.Poisson), cache(dfd.models.ConwayMaxwellPoisson)
CASES = {
    "poisson": Case("Poisson(3)", simulated(POISSON, {"rate": 3.0}), POISSON, (200, 2000), right=True),
    "cmp": Case(
        "Conway-Maxwell-Poisson(4, 0.75)", simulated(CMP, {"rate": 4.0, "nu": 0.75}), CMP, (200, 2000), right=True
    ),
    "network": Case(
        "six binary columns, seven edges, all 15 fitted",
        simulated(lambda: network()[0], network()[1]), lambda: dfd.models.IsingNetwork(6), (200, 2000), right=True,
    ),
    "counts": Case(
        "four columns of counts, three edges", simulated(lambda: count_network()[0], count_network()[1]),
        lambda: count_network()[0], (200, 2000), right=True,
    ),
    "regression": Case(
        "Poisson regression", regression(np.inf), lambda: "poisson", (200, 2000), right=True, formula="y ~ x"
    ),
    "geometric": Case(
        "geometric counts in Conway-Maxwell-Poisson regression, at its edge", regression(1.0), lambda: "cmp", (200,),
        right=True, formula="y ~ x",
    ),
    "lattice": Case(
        "Ising on a 6 x 6 grid, temperature 4", simulated(lattice(False), {"temperature": 4.0}), lattice(False),
        (200,), right=True,
    ),
    "spread": Case(
        "negative binomial counts (mean 3, variance 9) in Poisson",
        counts(lambda rng, n: negative_binomial(rng, 3.0, n)), POISSON, (50, 200),
    ),
    "slightly": Case(
        "negative binomial counts (mean 3, variance 3.9) in Poisson",
        counts(lambda rng, n: negative_binomial(rng, 3.0, n, 10.0)), POISSON, (200, 2000),
    ),
    "spread-cmp": Case(
        "negative binomial counts (mean 3, variance 9) in Conway-Maxwell-Poisson",
        counts(lambda rng, n: negative_binomial(rng, 3.0, n)), CMP, (200, 2000),
    ),
    "mixture": Case("half Poisson(2), half Poisson(8), in Poisson", counts(two_groups), POISSON, (50, 200)),
    "mixture-cmp": Case(
        "half Poisson(2), half Poisson(8), in Conway-Maxwell-Poisson", counts(two_groups), CMP, (200, 2000)
    ),
    "zeros": Case("a fifth more zeros, in Poisson", counts(many_zeros), POISSON, (50, 200)),
    "spread-regression": Case(
        "negative binomial regression (shape 3) in Poisson", regression(3.0), lambda: "poisson", (200,),
        formula="y ~ x",
    ),
    "edge": Case(
        "six binary columns, one edge of 0.8 left out", simulated(lambda: network()[0], network()[1]),
        cache(without_an_edge), (200, 500, 2000),
    ),
    "torus": Case(
        "a 6 x 6 torus fitted as a grid, temperature 4", simulated(lattice(True), {"temperature": 4.0}),
        lattice(False), (20, 200),
    ),
}  # fmt: skip


def estimated(case: Case, data: Any) -> tuple[Any, np.ndarray, Any]:
    """The model, its estimate and the data, as `fit` has them when it checks."""
    model = case.model()
    if case.formula:
        fit = dfd.fit(
            model, data, formula=case.formula, sampler="laplace", draws=50, chains=1, check=False, progress=False
        )
        return fit.model, fit.estimate, fit.data
    read = dfd.Dataset.of(data, model.domain)
    loss, _ = model.advise(read)
    minimum = dfd.minimise(dfd.objective(model, read, loss))
    if not minimum.usable:
        fit = dfd.fit(model, data, sampler="laplace", check=False, progress=False)
        return fit.model, fit.estimate, fit.data
    return model, minimum.vector, read


def replicate(name: str, n: int, seed: int) -> dict[str, Any]:
    case = CASES[name]
    try:
        found = goodness_of_fit(*estimated(case, case.source(n, seed)))
    except dfd.errors.DfdbayesError as problem:
        return {"failure": type(problem).__name__, "said": str(problem)[:200]}
    return {"p": found.p_value, "kind": found.findings[0].kind if found.findings else ""}


def jobs(chosen: list[str], replicates: int, first: int = FIRST) -> Iterator[tuple[str, int, int]]:
    """Wrong models need fewer data sets."""
    for name in chosen:
        number = replicates if CASES[name].right else replicates // 5
        yield from ((name, n, first + r) for r in range(number) for n in CASES[name].sizes)


def table() -> str:
    lines = []
    for right, head in ((True, "rejected at 5 %"), (False, "rejected at 5 %")):
        lines += [
            "## Right models" if right else "## Wrong models", "",
            f"| data and model | n | data sets | {head} | binomial error | at 20 % | most often because of |",
            "|---|---|---|---|---|---|---|",
        ]  # fmt: skip
        for name, case in CASES.items():
            for n in case.sizes if case.right == right else ():
                every = STUDY.results(name, n)
                found = [result for result in every if "p" in result]
                failed = len(every) - len(found)
                if not found:
                    continue
                p = np.array([result["p"] for result in found])
                share, wide = float(np.mean(p < LEVEL)), float(np.mean(p < 0.2))
                kinds = [result["kind"] for result in found if result["p"] < LEVEL]
                top = max(set(kinds), key=kinds.count) if kinds else ""
                error = np.sqrt(max(share * (1 - share), 1e-12) / len(p))
                many = f"{len(p)}" + (f" ({failed} failed)" if failed else "")
                lines.append(f"| {case.title} | {n} | {many} | {share:.1%} | {error:.1%} | {wide:.1%} | {top} |")
        lines.append("")
    return "\n".join(lines)


HEAD = """# How often the test of fit rejects

Made by `python docs/studies/checks.py`. Parameters are estimated by each model's default loss; the test is the one that
`fit` runs by default (see [Is the model wrong?](../how-to/is-the-model-wrong.md)). A right model should be rejected in
5 % of data sets, and in 20 % at that level.

"""


def main() -> None:
    asked = arguments(__doc__, CASES, 500)
    STUDY.run(jobs(asked.cases, asked.replicates), replicate, asked.end)
    STUDY.write(HEAD + table())


if __name__ == "__main__":
    main()
