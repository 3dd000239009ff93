"""Coverage of 95 % intervals of random graph models, where there is one observation: a graph.

    python docs/studies/graph_coverage.py [--replicates R] [--minutes M] [CASE ...]

Writes docs/tables/graph-coverage.md. Finished replicates are kept in runs/graph-coverage, so that a run that was
interrupted, or ended after M minutes, goes on. Graph r of a case is the r-th of those that long chains take at the
truth, four gaps apart, and is fitted with seed 70000 + r. Beside the calibrated
intervals stand those that take the dyads for independent: the pseudo-likelihood with its own curvature, as a logistic
regression prints it.
"""

import os
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from keeping import Study, arguments

import dfdbayes as dfd

STUDY = Study("graph-coverage")
FIRST, LEVEL, NORMAL = 70_000, 0.95, 1.959964
APART, CHAINS = 4, 50  # gaps between two graphs of a chain, and chains


@dataclass(frozen=True)
class Case:
    """A model, the number of nodes (in three groups of one size), and the truth."""

    title: str
    nodes: int
    terms: str
    truth: tuple[float, ...]

    @property
    def model(self) -> dfd.models.RandomGraph:
        return dfd.models.RandomGraph(self.terms)

    def graphs(self, size: int) -> list[dfd.ObservedGraph]:
        """Graphs at the truth, from chains that begin at a graph of independent ties."""
        n, rng = self.nodes, np.random.default_rng(FIRST)
        upper = np.triu(rng.random((n, n)) < 0.12, 1)
        nodes = {"name": [str(i) for i in range(n)], "group": ["abc"[i % 3] for i in range(n)]}
        bound = self.model.bound(dfd.ObservedGraph.of(upper | upper.T, nodes=nodes))
        found = dfd.simulate(bound, np.array(self.truth), APART * size, seed=FIRST)
        assert found.mixing is not None
        assert found.mixing.good
        chosen = np.flatnonzero(np.arange(APART * size) // CHAINS % APART == 0)
        return [found.graph(int(k)) for k in chosen[:size]]


CASES = {
    "shared-partners": Case(
        "40 nodes, edges + nodematch + gwesp(0.25)", 40, "edges + nodematch('group') + gwesp(0.25)", (-3.3, 0.7, 0.5)
    ),
    "triangles": Case("30 nodes, edges + triangle, few triangles", 30, "edges + triangle", (-1.4, -0.1)),
}


@cache
def graphs(name: str, size: int) -> list[dfd.ObservedGraph]:
    return CASES[name].graphs(size)


def replicate(size: int, name: str, seed: int) -> dict[str, Any]:
    """How far into the tails the truth lies, by both ways."""
    case, graph = CASES[name], graphs(name, size)[seed - FIRST]
    truth = np.array(case.truth)
    try:
        fit = dfd.fit(case.model, graph, seed=seed, check=False, progress=False)
    except dfd.errors.DfdbayesError as problem:
        return {"failure": type(problem).__name__, "said": str(problem)[:200]}
    draws = np.stack([fit.posterior[name].values.reshape(-1) for name in fit.model.space.names], axis=1)
    tails = 2.0 * np.abs((draws < truth).mean(axis=0) - 0.5)
    objective = dfd.objective(case.model, graph, "pseudo")
    estimate = dfd.minimise(objective).vector
    naive = np.sqrt(np.diag(np.linalg.pinv(objective.hessian(estimate))))
    return {
        "held": (tails <= LEVEL).tolist(),
        "naive": (np.abs(estimate - truth) <= NORMAL * naive).tolist(),
        "off": (draws.mean(axis=0) - truth).tolist(),
        "sd": draws.std(axis=0).tolist(),
        "naive_sd": naive.tolist(),
        "loss": fit.settings["loss"],
    }


def table() -> str:
    lines = [
        "| case | coefficient | truth | graphs (failed) | covered | dyads as independent | median sd | of these |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, case in CASES.items():
        found = STUDY.results(name)
        whole = [result for result in found if "held" in result]
        if not whole:
            continue
        of = {key: np.array([result[key] for result in whole]) for key in ("held", "naive", "sd", "naive_sd")}
        for k, term in enumerate(case.model.parts):
            shares = " | ".join(f"{100 * of[key][:, k].mean():.1f}" for key in ("held", "naive"))
            widths = " | ".join(f"{np.median(of[key][:, k]):.3f}" for key in ("sd", "naive_sd"))
            number = f"{len(whole)} ({len(found) - len(whole)})"
            lines.append(f"| {case.title} | {term.label} | {case.truth[k]:g} | {number} | {shares} | {widths} |")
    return "\n".join(lines)


HEADING = """# Coverage from one graph

Coverage in percent of nominal 95 % intervals: the default (the likelihood, found by simulation), and beside it
pseudo-likelihood intervals that take the dyads for independent. The binomial standard error near 95 % is 1.3 for 300
graphs. Fits fail where the model at its estimate makes graphs that are nearly empty or complete (degeneracy). Made by
`python docs/studies/graph_coverage.py` (graph r is fitted with seed 70000 + r).

The pseudo-likelihood calibrated by simulated graphs (`loss="pseudo"`), on 300 graphs of the same cases with an earlier
version: 96.0, 92.7 and 97.0, and 96.0 and 97.0.

"""


def main() -> None:
    asked = arguments(__doc__, CASES, 300)
    jobs = ((name, FIRST + r) for r in range(asked.replicates) for name in asked.cases)
    STUDY.run(jobs, partial(replicate, asked.replicates), asked.end)
    STUDY.write(HEADING + table())


if __name__ == "__main__":
    main()
