"""How often two losses are said to disagree about models that are right, which should be 5 in 100, and wrong ones.

    python docs/studies/agreement.py [--replicates R] [--minutes M] [CASE ...]

Writes docs/tables/agreement.md. Finished replicates are kept in runs/agreement. Data are those of the study of checks,
from seeds 75000 + r.
"""

from typing import Any

import numpy as np
from checks import CASES, jobs  # the study beside this one
from keeping import Study, arguments

import dfdbayes as dfd
from dfdbayes.results.hausman import agreement

STUDY, FIRST = Study("agreement"), 75_000
PAIRS = {
    "poisson": ("likelihood", "dfd"), "cmp": ("likelihood", "ratio"), "network": ("pseudo", "ratio"),
    "spread": ("likelihood", "dfd"), "slightly": ("likelihood", "dfd"), "mixture": ("likelihood", "dfd"),
    "spread-cmp": ("likelihood", "ratio"), "mixture-cmp": ("likelihood", "ratio"), "zeros": ("likelihood", "dfd"),
    "edge": ("pseudo", "ratio"),
}  # fmt: skip


def replicate(name: str, n: int, seed: int) -> dict[str, Any]:
    case, found = CASES[name], []
    model = case.model()
    data = dfd.Dataset.of(case.source(n, seed), model.domain)
    try:
        for word in PAIRS[name]:
            objective = dfd.objective(model, data, word)
            found.append((objective.loss, dfd.minimise(objective)))
        return {"p": agreement(model, data, *found).p_value}
    except dfd.errors.DfdbayesError as problem:
        return {"failure": str(problem)[:200]}


def table() -> str:
    lines = [
        "| data and model | losses | n | data sets | disagree at 5 % | binomial error | at 0.1 % |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, pair in PAIRS.items():
        for n in CASES[name].sizes:
            found = STUDY.results(name, n)
            p = np.array([one["p"] for one in found if "p" in one])
            if len(p):
                failed, share = len(found) - len(p), float(np.mean(p < 0.05))
                many = f"{len(p)}" + (f" ({failed} without a minimum)" if failed else "")
                right = " (right)" if CASES[name].right else ""
                error = np.sqrt(share * (1 - share) / len(p))
                shares = f"{share:.1%} | {error:.1%} | {np.mean(p < 0.001):.1%}"
                lines.append(f"| {CASES[name].title}{right} | {', '.join(pair)} | {n} | {many} | {shares} |")
    return "\n".join(lines) + "\n"


HEAD = """# How often two losses disagree

Made by `python docs/studies/agreement.py`: the joint test of `fit.second_opinion` and `dfd.compare_losses`. Of a right
model 5 % should be said to disagree. The answer of a fit speaks of it, unasked, at 0.1 %.

"""


def main() -> None:
    asked = arguments(__doc__, PAIRS, 500)
    STUDY.run(jobs(asked.cases, asked.replicates, FIRST), replicate, asked.end)
    STUDY.write(HEAD + table())


if __name__ == "__main__":
    main()
