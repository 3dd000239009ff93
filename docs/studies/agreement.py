"""How often two losses are said to disagree about models that are right, which should be 5 in 100, and wrong ones.

    python docs/studies/agreement.py [--replicates R] [--minutes M] [CASE ...]

Writes docs/tables/agreement.md. Finished replicates are kept in runs/agreement. Data are those of the study of checks,
from seeds 75000 + r.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from checks import CASES  # the study beside this one

import dfdbayes as dfd
from dfdbayes.results.agreement import agreement

ROOT = Path(__file__).parents[2]
KEPT, TABLE, FIRST = ROOT / "runs" / "agreement", ROOT / "docs" / "tables" / "agreement.md", 75_000
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


def results(name: str, n: int) -> list[dict[str, Any]]:
    path = KEPT / f"{name} {n}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    return list({line["seed"]: line for line in lines}.values())


def table() -> str:
    lines = [
        "| data and model | losses | n | data sets | disagree at 5 % | binomial error |",
        "|---|---|---|---|---|---|",
    ]
    for name, pair in PAIRS.items():
        for n in CASES[name].sizes:
            p = np.array([one["p"] for one in results(name, n) if "p" in one])
            if len(p):
                failed, share = len(results(name, n)) - len(p), float(np.mean(p < 0.05))
                many = f"{len(p)}" + (f" ({failed} without a minimum)" if failed else "")
                right = " (right)" if CASES[name].right else ""
                error = np.sqrt(share * (1 - share) / len(p))
                lines.append(
                    f"| {CASES[name].title}{right} | {', '.join(pair)} | {n} | {many} | {share:.1%} | {error:.1%} |"
                )
    return "\n".join(lines) + "\n"


HEAD = """# How often two losses disagree

Made by `python docs/studies/agreement.py`: the joint test of `fit.second_opinion` and `dfd.compare_losses`. Of a right
model 5 % should be said to disagree.

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--replicates", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=60.0)
    asked = parser.parse_args()
    end = time.time() + 60.0 * asked.minutes
    warnings.simplefilter("ignore")
    KEPT.mkdir(parents=True, exist_ok=True)
    for name in asked.cases or list(PAIRS):
        for n in CASES[name].sizes:
            done = {one["seed"] for one in results(name, n)}
            for seed in range(FIRST, FIRST + (asked.replicates if CASES[name].right else asked.replicates // 5)):
                if seed not in done and time.time() < end:
                    line = json.dumps({"seed": seed} | replicate(name, n, seed))
                    with (KEPT / f"{name} {n}.jsonl").open("a") as lines:
                        lines.write(line + "\n")
    TABLE.write_text(HEAD + table())
    print(table())


if __name__ == "__main__":
    main()
