"""Random graphs beside pyERGM, on the same models in the same run.

    DFDBAYES_DATA=... python benchmarks/graphs.py [CASE ...]    (about seven minutes; benchmarks/results/graphs.md)

Each package fits a case in a process of its own: dfdbayes twice, the first time cold; pyERGM (where it is installed)
with its defaults, which are a Monte-Carlo maximum likelihood estimate begun at the pseudo-likelihood one, without
standard errors. It has no gwesp and no nodematch: they are written here as metrics of its own kind. What each estimate
is worth is seen in graphs that dfdbayes simulates there: their mean number of ties should be the observed one. What was
measured is kept in runs/graphs until the table of all cases is written. Data:
flomarriage, faux_mesa_high (R package ergm) and lazega (Bergm).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
KEPT = HERE.parent / "runs" / "graphs"
LONGEST = 90  # seconds that pyERGM may take
CASES = {
    "flomarriage": ("edges + triangle", ()),
    "lazega": ("edges + nodematch('Practice') + nodematch('Gender') + gwesp(0.25)", ("Practice", "Gender")),
    "faux_mesa_high": (
        "edges + nodematch('Grade') + nodematch('Race') + nodematch('Sex') + gwesp(0.25)", ("Grade", "Race", "Sex")
    ),
}  # fmt: skip


def observed(name):
    import dfdbayes as dfd

    folder = Path(os.environ["DFDBAYES_DATA"])
    return dfd.ObservedGraph.of(folder / f"{name}_edges.csv", nodes=folder / f"{name}_nodes.csv")


def ours(name):
    """Two fits: the estimate, its widths, seconds of each, and whether both gave the same draws."""
    import dfdbayes as dfd

    warnings.simplefilter("ignore")
    graph, model = observed(name), dfd.models.RandomGraph(CASES[name][0])
    seconds, processor, fits = [], [], []
    for _ in range(2):
        began, used = time.perf_counter(), time.process_time()
        fits.append(dfd.fit(model, graph, check=False, progress=False, seed=1))
        seconds.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
    table = fits[0].summary()
    same = all(np.array_equal(fits[0].posterior[p], fits[1].posterior[p]) for p in fits[0].model.space.first)
    return {
        "estimate": table["mean"].tolist(),
        "sd": table["sd"].tolist(),
        "seconds": seconds,
        "processor": processor,
        "same": same,
    }


def theirs(name):
    """pyERGM's estimate."""
    from pyERGM.ergm import ERGM
    from pyERGM.metrics import ExWeightNumEdges, Metric, NumberOfEdgesUndirected, NumberOfTrianglesUndirected

    class Match(ExWeightNumEdges):
        def __init__(self, values, name):
            super().__init__(values, name=name)
            self._is_directed = False

        def _calc_edge_weights(self):
            values = np.asarray(self.exogenous_attr)
            same = (values[:, None] == values[None, :]).astype(float)
            np.fill_diagonal(same, 0.0)
            self.edge_weights = same[None]

        def _get_num_weight_mats(self):
            return 1

        def __str__(self):
            return "nodematch"

    class SharedPartners(Metric):
        """gwesp(0.25)."""

        def __init__(self, decay=0.25):
            super().__init__()
            self._is_directed, self._is_dyadic_independent = False, False
            counts = np.arange(1000)
            self.values = np.exp(decay) * (1.0 - (1.0 - np.exp(-decay)) ** counts)

        def __str__(self):
            return "gwesp"

        def calculate_for_sample(self, networks_sample):
            return np.array([self._of(networks_sample[..., k]) for k in range(networks_sample.shape[-1])])

        def _of(self, network):
            network = np.asarray(network, float)
            return float((np.triu(network) * self.values[(network @ network).astype(int)]).sum())

        def calc_change_score(self, current_network, indices):
            i, j = indices
            network, tie = current_network, bool(current_network[i, j])
            common = np.flatnonzero(network[i] * network[j])
            change = self.values[len(common)]
            for k in common:
                for end in (i, j):
                    partners = int(network[end] @ network[k]) - tie
                    change += self.values[partners + 1] - self.values[partners]
            return -change if tie else change

    graph = observed(name)
    terms, matched = CASES[name]
    metrics = [NumberOfEdgesUndirected(), *(Match(graph.levels(a, "")[0], a) for a in matched)]
    metrics.append(NumberOfTrianglesUndirected() if "triangle" in terms else SharedPartners())
    began, used = time.perf_counter(), time.process_time()
    model = ERGM(graph.n, metrics, is_directed=False, verbose=False)
    found = model.fit(graph.adjacency.astype(int))
    times = {"seconds": [time.perf_counter() - began], "processor": [time.process_time() - used]}
    converged = bool(getattr(found, "success", True))
    return {
        "estimate": [float(v) for v in model.get_model_parameters().values()],
        "same": converged,
        **times,
    }


def in_process(which, name):
    """What a process of its own gives, or why it gives nothing; with graphs simulated at its estimate."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": cache}
        try:
            ended = subprocess.run(
                [sys.executable, __file__, which, name], capture_output=True, text=True, env=environment,
                timeout=LONGEST if which == "theirs" else None,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"problem": f"not done in {LONGEST} s"}
    if ended.returncode:
        lines = ended.stderr.strip().splitlines()
        return {"problem": lines[-1][:120] if lines else "failed"}
    found = json.loads(ended.stdout.strip().splitlines()[-1])
    return found | {"ties": ties_at(name, found["estimate"])}


def ties_at(name, estimate):
    """The mean number of ties of graphs simulated at an estimate, and the standard deviation."""
    import dfdbayes as dfd

    model = dfd.models.RandomGraph(CASES[name][0]).bound(observed(name))
    ties = dfd.simulate(model, np.array(estimate), 100, seed=3).ties.sum(axis=1)
    return f"{ties.mean():.0f} ({ties.std():.0f})"


def row(name, which, found):
    """A line of the table."""
    graph, package = observed(name), {"ours": "dfdbayes", "theirs": "pyERGM"}[which]
    case = f"{name} ({graph.n} nodes, {graph.ties} ties): {CASES[name][0]}"
    if "problem" in found:
        return f"| {case} | {package} | {found['problem']} | | | |"
    sds = found.get("sd", [None] * len(found["estimate"]))
    both = zip(found["estimate"], sds, strict=True)
    shown = ", ".join(f"{value:.2f}" + ("" if sd is None else f" ({sd:.2f})") for value, sd in both)
    pairs = zip(found["seconds"], found["processor"], strict=True)
    seconds = ", ".join(f"{s:.1f} ({p:.1f})" for s, p in pairs)
    again = "yes" if found["same"] else "no"
    told = again if which == "ours" else f"not asked; converged: {again}"
    return f"| {case} | {package} | {seconds} | {shown} | {found['ties']} | {told} |"


HEADING = """Random graphs, made by `python benchmarks/graphs.py`. Seconds (of a processor, where other work waits
beside it): dfdbayes a first fit in a new process, which compiles, and a second one;
pyERGM one fit, no widths. Estimates: posterior means (standard deviations), and pyERGM's. Ties: mean
(standard deviation) of graphs simulated there.

| graph and terms | package | seconds | estimates | simulated ties | same draws again |
|---|---|---|---|---|---|
"""


def main(names):
    KEPT.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, which in product(CASES, ("ours", "theirs")):
        file = KEPT / f"{name} {which}.json"
        if not file.exists() and (not names or name in names):
            file.write_text(json.dumps(in_process(which, name)))
        if file.exists():
            rows.append(row(name, which, json.loads(file.read_text())))
            print(rows[-1], flush=True)
    if len(rows) == 2 * len(CASES):
        (HERE / "results" / "graphs.md").write_text(HEADING + "\n".join(rows) + "\n")
        shutil.rmtree(KEPT)


if __name__ == "__main__":
    if sys.argv[1:2] in (["ours"], ["theirs"]):
        print(json.dumps({"ours": ours, "theirs": theirs}[sys.argv[1]](sys.argv[2])))
    else:
        main(sys.argv[1:])
