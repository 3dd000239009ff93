"""The numbers of version 0.1, before its modules were rebuilt: minimisers, weights and means to 1e-8.

`python tests/statistical/test_same_numbers.py FILE DATA`, run with that version, made the fixture. Draws come from the
normal approximation, whose random numbers are NumPy's.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import dfdbayes as dfd

FIXTURE = Path(__file__).parents[1] / "fixtures" / "numbers-0.1.json"
QUICK = {"sampler": "laplace", "draws": 500, "progress": False}
GENES = ("poisson-graphical", "cmp-graphical")


def cases():
    """Name: (model, data or the name of a file, settings)."""
    rng, grid = np.random.default_rng(11), dfd.graphs.grid(4, 4)
    lattice, single = (rng.choice([-1, 1], size=size, p=[0.2, 0.8]) for size in ((60, 16), (1, 144)))
    network, potts = rng.integers(0, 2, size=(400, 5)), rng.choice(3, size=(50, 16), p=[0.6, 0.2, 0.2])
    sales, counts, none = dfd.datasets.sales(), "cmp_4.0_0.75_n2000.csv", {"adjust": None}
    found = {}
    for loss in ("dfd", "ratio", "likelihood", "pseudo"):
        found[f"sales, {loss}"] = ("cmp", sales, {"loss": loss} | none)
    found["sales, ksd"] = ("cmp", sales, {"loss": "ksd", "bootstrap": 50} | none)
    found["sales, the paper's weight"] = ("cmp", sales, {"calibration": "score-matching"})
    found["sales, sandwich"] = ("cmp", sales, {"calibration": "lyddon", "adjust": "sandwich"})
    found["counts, dfd"] = ("cmp", counts, none)
    found["counts, gpc"] = ("cmp", counts, {"calibration": "gpc"})
    for loss in ("dfd", "ratio", "pseudo"):
        found[f"lattice, {loss}"] = (dfd.models.Ising(grid), lattice, {"loss": loss, "beta": 0.3})
    found["one lattice, ratio"] = (dfd.models.Ising(dfd.graphs.grid(12, 12)), single, {"loss": "ratio"} | none)
    found["potts, pseudo"] = (dfd.models.Potts(grid, 3), potts, {"loss": "pseudo", "beta": 0.5})
    for loss in ("ratio", "pseudo"):
        found[f"network, {loss}"] = ("ising-network", network, {"loss": loss} | none)
    for name in GENES:
        for loss in ("dfd", "ratio"):
            found[f"genes, {name}, {loss}"] = (name, "brca_10.csv", {"loss": loss, "beta": 0.5})
    return found


def numbers(model, data, settings, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dfd.fit(model, folder / data if isinstance(data, str) else data, **(QUICK | settings))
    return {
        "minimum": fit.minimum.vector.tolist(),
        "value": fit.minimum.value,
        "beta": fit.beta,
        "bootstrap": fit.calibration.minimisers.mean(axis=0).tolist() if len(fit.calibration.outcomes) else [],
        "means": [float(np.mean(draws)) for draws in fit.entries.values()],
    }


@pytest.mark.parametrize("name", list(cases()))
def test_numbers_are_those_of_the_first_version(name, shared_data):
    wanted, found = json.loads(FIXTURE.read_text())[name], numbers(*cases()[name], shared_data)
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        loose = 1e-6 if name.startswith("genes") and key == "means" else 1e-8  # a mode is found to its square root
        np.testing.assert_allclose(found[key], value, rtol=loose, atol=1e-8, err_msg=key)


if __name__ == "__main__":
    written = {name: numbers(*case, Path(sys.argv[2])) for name, case in cases().items()}
    Path(sys.argv[1]).write_text(json.dumps(written, indent=1))
