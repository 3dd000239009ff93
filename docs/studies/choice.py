"""How often `compare_models` names the right family, a wrong one, or none; and whether its errors are right.

    python docs/studies/choice.py [--replicates R] [--minutes M] [CASE ...]

Writes docs/tables/choice.md. Finished replicates are kept in runs/choice. Data set r of a case comes from seed
80000 + r. What the models will really lose on new data, at their estimates, is known here: the data's distribution is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
from keeping import Study, arguments
from scipy import stats

import dfdbayes as dfd
from dfdbayes.fitting.cross_validation import scored

STUDY, FIRST = Study("choice"), 80_000
jax.config.update("jax_compilation_cache_dir", str(STUDY.folder / "compiled"))  # so that going on costs little
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
POINTS = np.arange(200)
QUICK = {"sampler": "laplace", "draws": 50, "chains": 1, "check": False, "progress": False}


@dataclass(frozen=True)
class Case:
    """The chance of every value, the models, and which of them are right."""

    title: str
    chance: np.ndarray
    models: dict[str, Callable[[], Any]]
    right: tuple[str, ...]
    sizes: tuple[int, ...]


def chances(model: Any, theta: dict[str, float]) -> np.ndarray:
    log = np.asarray(model.log_masses(model.space.flatten(theta), POINTS[:, None].astype(float)))
    return np.exp(log - log.max()) / np.exp(log - log.max()).sum()


BOTH = {"poisson": cache(dfd.models.Poisson), "cmp": cache(dfd.models.ConwayMaxwellPoisson)}
ALL = BOTH | {"mixture": cache(lambda: dfd.models.PoissonMixture([2.0, 8.0]))}
MIXED = 0.5 * stats.poisson.pmf(POINTS, 2.0) + 0.5 * stats.poisson.pmf(POINTS, 8.0)
CASES = {
    "poisson": Case("Poisson(3)", stats.poisson.pmf(POINTS, 3.0), BOTH, ("poisson", "cmp"), (200,)),
    "cmp": Case(
        "Conway-Maxwell-Poisson(4, 0.75)",
        chances(dfd.models.ConwayMaxwellPoisson(), {"rate": 4.0, "nu": 0.75}), BOTH, ("cmp",), (200, 1000),
    ),
    "spread": Case(
        "negative binomial, mean 3, variance 4.5", stats.nbinom.pmf(POINTS, 6.0, 2.0 / 3.0), BOTH, ("cmp",), (200,)
    ),
    "mixture": Case("half Poisson(2), half Poisson(8)", MIXED, ALL, ("mixture",), (100,)),
}  # fmt: skip


def replicate(name: str, n: int, seed: int) -> dict[str, Any]:
    case = CASES[name]
    x = np.random.default_rng(seed).choice(POINTS, size=n, p=case.chance / case.chance.sum())
    found = dfd.compare_models({name: make() for name, make in case.models.items()}, x, **QUICK)
    first, second = found.differences.index[0]
    every = dfd.Dataset.of(dict.fromkeys(POINTS.tolist(), 1))
    judge = dfd.losses.by_name(found.score)
    loss = {
        name: float(case.chance @ scored(fit.model, every, judge).unit_values(fit.estimate[None])[0])
        for name, fit in found.fits.items()
    }
    difference, error = found.differences.iloc[0]
    return {
        "best": list(found.best), "first": first, "difference": difference, "error": error,
        "really": n * (loss[first] - loss[second]), "weights": found.table["weight"].to_dict(),
    }  # fmt: skip


def table() -> str:
    head = (
        "| data | models | n | data sets | names a right one | cannot tell | names a wrong one | really smallest loss "
    )
    lines = [head + "named or tied | interval holds the real difference |", "|---" * 9 + "|"]
    for name, case in CASES.items():
        for n in case.sizes:
            found = STUDY.results(name, n)
            if not found:
                continue
            alone = [one["best"][0] if len(one["best"]) == 1 else "" for one in found]
            right = np.mean([word in case.right for word in alone])
            none = np.mean([not word for word in alone])
            holds = np.mean([abs(one["difference"] - one["really"]) <= 1.96 * one["error"] for one in found])
            fine = np.mean([len(one["best"]) > 1 or one["really"] <= 0.0 for one in found])
            lines.append(
                f"| {case.title} | {', '.join(case.models)} | {n} | {len(found)} | {right:.0%} | {none:.0%} | "
                f"{max(1 - right - none, 0.0):.0%} | {fine:.0%} | {holds:.0%} |"
            )
    return "\n".join(lines) + "\n"


HEAD = """# How often the right model is chosen

Made by `python docs/studies/choice.py`: `dfd.compare_models` with its defaults (ten folds, log score). A model is named
where the next is worse by 1.96 standard errors, and by 4 in all; of Poisson data both models are right. The last column
says how often the difference of the two best, plus or minus 1.96 standard errors, holds what the two will really differ
by on as many new data; the one before it, how often the model that was named is the better one there.

"""


def main() -> None:
    asked = arguments(__doc__, CASES, 200)
    wanted = [(name, n) for name in asked.cases for n in CASES[name].sizes]
    STUDY.run(((*key, FIRST + r) for r in range(asked.replicates) for key in wanted), replicate, asked.end)
    STUDY.write(HEAD + table())


if __name__ == "__main__":
    main()
