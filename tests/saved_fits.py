"""Fits of twelve kinds as the last release saved them, and the numbers that it printed of each.

    python tests/saved_fits.py FOLDER

saves them anew, which is done with the code of a release and never with newer code: the files show that those of users
can still be read.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import dfdbayes as dfd
import golden

FOLDER = Path(__file__).parent / "fixtures" / "saved-0.2"
NUMBERS = "numbers.json"
QUICK = {"sampler": "laplace", "draws": 60, "chains": 2, "bootstrap": 20, "progress": False, "check": True}
COLUMNS = ["mean", "sd", "median", "eti95_lb", "eti95_ub"]
NETWORK = {"columns": ["calm", "works", "reads"], "formula": "~ group"}


def cases():
    """Name: (model, data, settings)."""
    patients = golden.patients().iloc[::2]
    own = golden.own()
    return {
        "poisson": ("poisson", golden.counts(), {}),
        "cmp": ("cmp", golden.even_counts(), {"prior": "paper", "loss": "dfd", "calibration": "score-matching"}),
        "regression": ("cmp", patients, {"formula": "visits ~ age + clinic + offset(log(days))", "nu": "~ age"}),
        "hurdle": ("poisson", patients, {"formula": "visits ~ age", "zeros": "~ clinic"}),
        "binary-regression": ("bernoulli", patients, {"formula": "again ~ age + clinic"}),
        "network": ("network", golden.answers().iloc[:200], NETWORK),
        "network-missing": ("ising-network", golden.gappy(), {"columns": list("abcd"), "missing": "impute"}),
        "clusters": ("poisson", patients, {"formula": "visits ~ age", "cluster": "ward"}),
        "lattice": (dfd.models.Ising(dfd.graphs.grid(3, 3)), golden.lattices()[:60, :9], {"loss": "ratio"}),
        "map": ("autologistic", golden.sites(), golden.MAP),
        "graph": (dfd.models.RandomGraph("edges + nodematch('colour')"), golden.pupils(), {}),
        "series": ("poisson", golden.months(), {"formula": "accidents ~ lag(accidents) + rain", "time": "month"}),
        "own": (own, golden.scores(), {"loss": "ratio"}),
    }


def asked(name):
    """What is asked of a fit beyond its summary, by name."""
    ages = {"age": [25, 60]}
    rain = pd.DataFrame({"month": [120, 121], "rain": [0.0, 0.5]})
    return {
        "regression": {
            "predict": lambda fit: fit.predict(ages | {"clinic": ["A", "B"], "days": [30, 30]}),
            "effects": lambda fit: fit.effects(),
            "residuals": lambda fit: fit.residuals(seed=1).head(5),
        },
        "hurdle": {"predict": lambda fit: fit.predict(ages | {"clinic": ["A", "C"]})},
        "binary-regression": {"predict": lambda fit: fit.predict(ages | {"clinic": ["A", "B"]})},
        "clusters": {"predict": lambda fit: fit.predict(ages), "influence": lambda fit: fit.influence(2)},
        "network": {"nodes": lambda fit: fit.nodes(), "edges": lambda fit: fit.evidence()},
        "map": {"predict": lambda fit: fit.predict().head(5)},
        "graph": {"effects": lambda fit: fit.effects()},
        "series": {"forecast": lambda fit: fit.forecast(newdata=rain, draws=200).table},
    }.get(name, {})


def numbers(fit, name):
    """What a fit says, in plain values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tables = {"summary": fit.summary()[COLUMNS]} | {key: ask(fit) for key, ask in asked(name).items()}
        found = {"minimum": dict(zip(fit.minimum.names, fit.minimum.vector, strict=True)), "beta": fit.beta}
        if fit.checks is not None:
            found["p_value"] = fit.checks.p_value
        for key, table in tables.items():
            plain = table.select_dtypes("number").astype(float)
            found[key] = {str(line): dict(row) for line, row in plain.set_axis(table.index.map(str)).iterrows()}
    return found


def replicated(fit, name):
    """The mean of new data from the posterior, or where the data are one map at the estimate; None without a model."""
    if fit.model is None:
        return None
    if name == "map":
        return float(np.mean(dfd.simulate(fit.model, fit.minimum.theta, 40, seed=1).values))
    found = fit.replicate(draws=40, seed=1)
    return float(found.statistics.mean() if name == "graph" else found.means.mean())


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    kept = {}
    for name, (model, data, settings) in cases().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = dfd.fit(model, data, **(QUICK | settings)).save(folder / f"{name}.netcdf")
        again = dfd.load(path)
        kept[name] = numbers(again, name) | {"replicated": replicated(again, name)}
        print(name, path.stat().st_size, len(kept[name]["summary"]))
    lines = [f"{json.dumps(name)}: {json.dumps(kept[name], default=float)}" for name in kept]
    (folder / NUMBERS).write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
