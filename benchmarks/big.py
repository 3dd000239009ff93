"""Data larger than one wants in memory: a hundred million counts, ten million lattices.

Run: python benchmarks/big.py    (about five minutes and 200 MB of temporary files; writes benchmarks/results/big.md)

Each fit runs in a process of its own, whose peak memory is shown. The pass is compared with reading the same columns
and counting the same rows with pyarrow, in the same run.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COUNTS, LATTICES = 100_000_000, 10_000_000


def make_counts(path):
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(path, pa.schema([("visits", pa.int64())])) as file:
        for _ in range(COUNTS // 1_000_000):
            file.write_table(pa.table({"visits": rng.poisson(4.0, 1_000_000)}))


def make_lattices(path):
    """Five by five spins after four sweeps of a Gibbs sampler at temperature 4, from random starts."""
    rng = np.random.default_rng(0)
    near = [
        [5 * r + c + step for step, there in ((-5, r > 0), (5, r < 4), (-1, c > 0), (1, c < 4)) if there]
        for r in range(5)
        for c in range(5)
    ]
    names = [f"s{j + 1}" for j in range(25)]
    schema, size = pa.schema([(name, pa.int8()) for name in names]), 500_000
    with pq.ParquetWriter(path, schema) as file:
        for _ in range(LATTICES // size):
            x = rng.choice(np.array([-1, 1], np.int8), (25, size))
            for _ in range(4):
                for j in range(25):
                    up = 1 / (1 + np.exp(-0.5 * x[near[j]].sum(axis=0).astype(np.float32)))
                    x[j] = np.where(rng.random(size, dtype=np.float32) < up, 1, -1)
            file.write_table(pa.table(dict(zip(names, x, strict=True)), schema=schema))


def fit(kind, path):
    import dfdbayes as dfd

    warnings.simplefilter("ignore")
    model = dfd.models.ConwayMaxwellPoisson() if kind == "counts" else dfd.models.Ising(dfd.graphs.grid(5, 5))
    began = time.perf_counter()
    data = dfd.Dataset.of(path)
    passed = time.perf_counter() - began
    found = dfd.fit(model, data, bootstrap=100, progress=False)
    return {
        "pass": passed,
        "tabulate": found.timings["seconds"]["tabulate"],
        "fit": sum(found.timings["seconds"].values()),
        "distinct": len(data.rows),
        "n": data.n,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "beta": found.beta,
        "mean": {name: float(found.posterior[name].mean()) for name in found.posterior},
    }


def count(path):
    began = time.perf_counter()
    table = pq.read_table(path)
    if len(table.column_names) == 1:
        table[table.column_names[0]].value_counts()
    else:
        table.group_by(table.column_names).aggregate([([], "count_all")])
    return {
        "seconds": time.perf_counter() - began,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def alone(*arguments):
    out = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=True)
    return json.loads(out.stdout.strip().splitlines()[-1])


def main():
    if len(sys.argv) == 4:
        print(json.dumps(fit(*sys.argv[2:]) if sys.argv[1] == "fit" else count(sys.argv[3])))
        return
    lines = [
        "| data | rows | distinct | pass, s | read and counted by pyarrow, s | ratio | fit after the pass, s | of it "
        "table, s | peak memory, GiB | pyarrow's, GiB |",
        "|---" * 10 + "|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for kind, make in (("counts", make_counts), ("lattices", make_lattices)):
            path = str(Path(folder) / f"{kind}.parquet")
            make(path)
            theirs = alone("count", kind, path)
            ours = alone("fit", kind, path)
            lines.append(
                f"| {kind} | {ours['n']} | {ours['distinct']} | {ours['pass']:.1f} | {theirs['seconds']:.1f} | "
                f"{ours['pass'] / theirs['seconds']:.2f} | {ours['fit']:.1f} | {ours['tabulate']:.1f} | "
                f"{ours['memory']:.2f} | {theirs['memory']:.2f} |"
            )
            print(lines[-1], ours["mean"], flush=True)
    text = f"""# Large data: Conway-Maxwell-Poisson on counts, Ising on 5 x 5 lattices, 100 bootstrap fits

Made by `python benchmarks/big.py`, seed 0. Peak memory is of the whole process that read and fitted.

{chr(10).join(lines)}
"""
    Path(__file__).parent.joinpath("results", "big.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
