"""Golden numbers: fits of every family, with every loss, calibration, sampler and way of reading, in plain values.

    python tests/golden.py [--only WORD] [--write]

prints the cases whose numbers differ from the fixture, or writes it. A change that is meant to move numbers writes the
fixture anew and says so; any other leaves it alone.
"""

import argparse
import inspect
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
from jax.scipy.special import gammaln, logsumexp

import dfdbayes as dfd

FIXTURE = Path(__file__).parent / "fixtures" / "golden.json"
QUICK = {"draws": 400, "chains": 2, "bootstrap": 40, "progress": False}
CASES: dict[str, Callable[[], dfd.Fit]] = {}


def case(name, model, data, **settings):
    """Keep a fit to be made: ``model`` and ``data`` may be functions that make them."""

    def made():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dfd.fit(
                model() if inspect.isfunction(model) else model,
                data(),
                **({"check": False} | QUICK | settings),
            )

    assert name not in CASES
    CASES[name] = made


@cache
def counts():
    return pd.DataFrame({"visits": np.random.default_rng(1).negative_binomial(3, 0.4, 300)})


@cache
def even_counts():
    rng = np.random.default_rng(2)
    return pd.DataFrame({"litter": rng.binomial(9, 0.5, 250)})


@cache
def binary():
    return pd.DataFrame({"smokes": [0, 1, 0, 0, 1] * 40})


@cache
def patients():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"age": rng.integers(20, 70, 240), "clinic": rng.choice(["A", "B", "C"], 240)})
    frame["days"] = rng.integers(10, 60, 240)
    frame["ward"] = np.repeat(np.arange(24), 10)
    frame["weight"] = rng.choice([0.5, 1.0, 2.5], 240)
    mean = np.exp(-1.0 + 0.04 * frame["age"] - 0.5 * (frame["clinic"] == "B")) * frame["days"] / 30
    frame["visits"] = rng.poisson(mean * rng.gamma(3.0, 1 / 3, 240))
    frame["again"] = (rng.random(240) < 1 / (1 + np.exp(2.0 - 0.05 * frame["age"]))).astype(int)
    return frame


@cache
def answers():
    """Two scales, three binary columns and a group."""
    rng = np.random.default_rng(4)
    calm = rng.integers(1, 5, 350)
    frame = pd.DataFrame({"calm": calm, "sleep": np.clip(calm + rng.integers(-1, 2, 350), 1, 4)})
    frame["works"] = rng.integers(0, 2, 350)
    frame["reads"] = (rng.random(350) < 0.3 + 0.3 * frame["works"]).astype(int)
    frame["group"] = rng.choice(["new", "old"], 350)
    return frame


@cache
def yes_no():
    model = dfd.models.IsingNetwork(4)
    truth = {"intercept": np.full(4, -0.2), "interaction": np.array([1.2, 0.0, 0.0, -0.9, 0.0, 0.3])}
    return pd.DataFrame(dfd.simulate(model, truth, 400, seed=1).rows, columns=list("abcd"))


@cache
def gappy():
    frame = yes_no().astype(float)
    frame = frame.mask(np.random.default_rng(5).random(frame.shape) < 0.08)
    frame["school"] = np.repeat(np.arange(40), 10)
    return frame


@cache
def lattices():
    model = dfd.models.Ising(dfd.graphs.grid(3, 4))
    return dfd.simulate(model, {"temperature": 4.0}, 150, seed=1).rows


@cache
def colours():
    model = dfd.models.Potts(dfd.graphs.grid(3, 3), 3)
    return dfd.simulate(model, {"temperature": 2.0}, 120, seed=1).rows


@cache
def one_lattice():
    return np.random.default_rng(6).choice([-1, 1], size=(1, 144), p=[0.3, 0.7])


@cache
def genes():
    model = dfd.models.PoissonGraphical(3, prior="squared")
    truth = {"intercept": np.ones(3), "interaction": np.array([0.3, 0.0, 0.1])}
    return pd.DataFrame(dfd.simulate(model, truth, 300, seed=1).rows, columns=["wolves", "deer", "oaks"])


@cache
def species():
    rng = np.random.default_rng(7)
    common = rng.gamma(2.0, 0.5, 300)
    return pd.DataFrame(
        {"finch": rng.poisson(2 * common), "wren": rng.poisson(common), "owl": rng.binomial(1, 0.4, 300)}
    )


@cache
def months():
    rng, found = np.random.default_rng(8), [4]
    for _ in range(119):
        found.append(int(rng.poisson(2.0 + 0.5 * found[-1])))
    frame = pd.DataFrame({"month": np.arange(120), "accidents": found})
    frame["rain"] = rng.normal(size=120).round(2)
    return frame


@cache
def panel():
    rng = np.random.default_rng(9)
    rows = [(who, t) for who in range(15) for t in range(12)]
    frame = pd.DataFrame(rows, columns=["person", "day"])
    frame["drinks"] = rng.poisson(2.0, len(frame))
    return frame


@cache
def sites():
    rng = np.random.default_rng(10)
    frame = pd.DataFrame([(i, j) for i in range(8) for j in range(8)], columns=["row", "col"])
    frame["height"] = rng.normal(size=len(frame)).round(2)
    frame["there"] = (rng.random(len(frame)) < 1 / (1 + np.exp(-frame["height"]))).astype(int)
    return frame


def gappy_sites():
    frame = sites().copy()
    frame["there"] = frame["there"].astype(float).mask(np.random.default_rng(11).random(len(frame)) < 0.06)
    return frame


@cache
def pupils():
    rng = np.random.default_rng(12)
    colour = np.array(["red", "blue"] * 8)
    names = [f"n{i}" for i in range(16)]
    pairs = [(i, j) for i in range(16) for j in range(i)]
    chance = [0.5 if colour[i] == colour[j] else 0.12 for i, j in pairs]
    ties = [(names[i], names[j]) for (i, j), p in zip(pairs, chance, strict=True) if rng.random() < p]
    return dfd.ObservedGraph.of(ties, nodes=pd.DataFrame({"node": names, "colour": colour}))


def own(**settings):
    """Scores from 0 to 4: two statistics."""
    return dfd.Model(
        lambda theta, x: theta["tilt"] * x[0] + theta["bend"] * (x[0] - 2.0) ** 2,
        domain=dfd.Ordinal(1, 5),
        parameters={"tilt": dist.Normal(0, 2), "bend": dist.Normal(0, 2)},
        name="tilted",
        **settings,
    )


def own_constant(theta):
    x = jnp.arange(5.0)
    return logsumexp(theta["tilt"] * x + theta["bend"] * (x - 2.0) ** 2)


def own_counts():
    return dfd.Model(
        lambda theta, x: theta["rate"] * x[0] - theta["shape"] * gammaln(x[0] + 1),
        domain=dfd.Counts(1),
        parameters={"rate": dist.Normal(0, 1), "shape": dist.HalfNormal(1)},
        name="sales model",
    )


def own_pair():
    return dfd.Model(
        lambda theta, x: theta["tie"] * x[0] * x[1] + theta["a"] * x[0] + theta["b"] * x[1] - gammaln(x[1] + 1),
        domain=dfd.Binary(1) * dfd.Counts(1),
        parameters={"tie": dist.Normal(0, 1), "a": dist.Normal(0, 2), "b": dist.Normal(0, 2)},
        name="a flag and a count",
    )


def scores():
    return pd.DataFrame({"score": [0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4] * 20})


def rated():
    return patients().assign(score=patients()["age"] % 5)[["score", "clinic"]]


def flags():
    rng = np.random.default_rng(13)
    flag = rng.integers(0, 2, 300)
    return pd.DataFrame({"flag": flag, "calls": rng.poisson(1.0 + flag)})


def mixed_calls():
    rng = np.random.default_rng(14)
    return pd.DataFrame({"calls": np.where(rng.random(400) < 0.3, rng.poisson(3, 400), rng.poisson(9, 400))})


PAPER = {"prior": "paper", "loss": "dfd"}
# One column of counts, by loss, calibration and sampler.
for loss in ("dfd", "ratio", "ksd", "pseudo", "likelihood", "robust"):
    case(f"poisson, {loss}", "poisson", counts, loss=loss)
    case(f"cmp, {loss}", "cmp", even_counts, loss=loss)
for weight in ("score-matching", "score-matching-invariant", "gpc", "lyddon", "none"):
    case(f"cmp, {weight}", "cmp", even_counts, calibration=weight, on_failure="fallback", **PAPER)
for sampler in ("nuts", "hmc", "independence", "random-walk", "laplace"):
    case(f"poisson, {sampler}", "poisson", counts, sampler=sampler)
case("sales", "cmp", dfd.datasets.sales, check=True)
case("poisson, checked", "poisson", counts, check=True)
case("bernoulli", "bernoulli", binary, check=True)
case("mixture", lambda: dfd.models.PoissonMixture([3, 9]), mixed_calls, check=True)
case("poisson, weights", "poisson", patients, columns="visits", weights="weight", weighting="sampling")
# Regressions.
case("regression, poisson", "poisson", patients, formula="visits ~ age + clinic + offset(log(days))", check=True)
case("regression, cmp", "cmp", patients, formula="visits ~ age + clinic", check=True)
case("regression, cmp nu", "cmp", patients, formula="visits ~ age", nu="~ clinic")
case("regression, cmp dfd", "cmp", patients, formula="visits ~ age", loss="dfd")
case("regression, cmp location", "cmp", patients, formula="visits ~ age", options={"form": "location"}, loss="ratio")
case("regression, hurdle", "poisson", patients, formula="visits ~ age", zeros="~ clinic", check=True)
case("regression, spline", "poisson", patients, formula="visits ~ bs(age, df=4) * clinic")
case("regression, clusters", "poisson", patients, formula="visits ~ age + clinic", cluster="ward")
case("regression, weights", "poisson", patients, formula="visits ~ age", weights="weight", weighting="sampling")
case("regression, binary", "bernoulli", patients, formula="again ~ age + clinic", check=True)
case("regression, parametric", "poisson", patients, formula="visits ~ age", resampling="parametric")
case("series", "poisson", months, formula="accidents ~ lag(accidents) + rain", time="month", check=True)
case("series, season", "cmp", months, formula="accidents ~ lag(accidents) + season(month, 12)", time="month")
case("panel", "poisson", panel, formula="drinks ~ lag(drinks)", time="day", cluster="person")
# Networks.
for loss in ("dfd", "ratio", "pseudo", "robust"):
    case(f"binary network, {loss}", lambda: dfd.models.IsingNetwork(4), yes_no, loss=loss, on_failure="fallback")
case("network", "network", answers, columns=["calm", "sleep", "works", "reads"], check=True)
case("network, by group", "network", answers, formula="~ group", interaction="~ group")
case("network, covariate", "network", answers, formula="~ group", check=True)
case("network, counts", "network", species, check=True)
case("network, missing", "ising-network", gappy, columns=list("abcd"), missing="impute")
case("network, clusters", "ising-network", gappy, columns=list("abcd"), missing="drop", cluster="school")
case("poisson graph, ratio", lambda: dfd.models.PoissonGraphical(3, prior="squared"), genes, loss="ratio")
case("poisson graph, dfd", lambda: dfd.models.PoissonGraphical(3, prior="half-normal"), genes, loss="dfd")
case("cmp graph", lambda: dfd.models.ConwayMaxwellPoissonGraphical(3), genes, loss="ratio")
# Lattices, maps, graphs.
for loss in ("dfd", "ratio", "pseudo"):
    case(f"lattice, {loss}", lambda: dfd.models.Ising(dfd.graphs.grid(3, 4)), lattices, loss=loss)
case("lattice, checked", lambda: dfd.models.Ising(dfd.graphs.grid(3, 4)), lattices, check=True)
case("one lattice", lambda: dfd.models.Ising(dfd.graphs.grid(12, 12)), one_lattice, loss="ratio")
case("potts", lambda: dfd.models.Potts(dfd.graphs.grid(3, 3), 3), colours)
MAP = {"options": {"at": ["row", "col"]}, "formula": "there ~ height"}
case("map", "autologistic", sites, check=True, **MAP)
case("map, blocks", "autologistic", sites, resampling=dfd.resampling.Blocks(side=4), **MAP)
case("map, missing", "autologistic", gappy_sites, missing="impute", **MAP)
case("graph, independent", lambda: dfd.models.RandomGraph("edges + nodematch('colour')"), pupils, check=True)
case("graph, pseudo", lambda: dfd.models.RandomGraph("edges + gwesp(0.25)"), pupils, loss="pseudo")
case("graph, likelihood", lambda: dfd.models.RandomGraph("edges + gwesp(0.25)"), pupils)
# Models of one's own.
case("own, scores", own, scores, check=True)
case("own, likelihood", lambda: own(log_normaliser=own_constant), scores, loss="likelihood")
case("own, formula", lambda: own(formulas={"tilt": "~ clinic"}), rated)
case("own, counts", own_counts, even_counts, loss="dfd")
case("own, pair", own_pair, flags)


def on_workers():
    """The same fit as ``cmp, gpc``, its bootstrap on two workers in this process."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        return dfd.fit(
            "cmp", even_counts(), calibration="gpc", on_failure="fallback", client=client, check=False, **PAPER, **QUICK
        )


CASES["cmp, gpc on workers"] = on_workers


EXACT = ("independence", "laplace")  # draw from a normal distribution: the same numbers wherever sums are the same


def numbers(fit):
    """What a fit found, in plain values."""
    found = {
        "model": fit.settings["model"],
        "loss": fit.settings["loss"],
        "names": list(fit.minimum.names),
        "outcome": str(fit.minimum.outcome),
        "minimum": fit.minimum.vector.tolist(),
        "value": fit.minimum.value,
        "beta": fit.beta,
        "replicates": fit.calibration.minimisers.mean(axis=0).tolist() if len(fit.calibration.outcomes) else [],
    }
    shape = fit.calibration.curvature
    if shape is not None:
        found |= {"centre": shape.centre.tolist(), "covariance": shape.covariance.tolist()}
    table = fit.summary()
    chain = fit.settings["sampler"] not in EXACT
    shown = ["mean", "mcse_mean"] if chain else ["mean", "sd", "median"]
    found["chain" if chain else "summary"] = {str(name): row[shown].tolist() for name, row in table.iterrows()}
    if fit.checks is not None:
        found["p_value"] = fit.checks.p_value
        if fit.checks.table is not None:
            found["checks"] = fit.checks.table.select_dtypes("number").to_numpy(dtype=float).tolist()
    return json.loads(json.dumps(found, default=float))


def numbers_of(name):
    """The numbers of a case; of one that is refused, how."""
    try:
        return numbers(CASES[name]())
    except dfd.errors.DfdbayesError as problem:
        return {"refused": type(problem).__name__}


DRAWN = ("summary", "checks", "p_value")  # rest on draws, whose order of operations may change
TIGHT, LOOSE = 1e-8, 1e-6
PATH_DEPENDENT = ("graph, likelihood",)  # found by simulation: the last digits depend on how sums are ordered


def differences(found, wanted, name=""):
    """What differs between two dictionaries of numbers, in words."""
    told = [key for key in wanted if key not in found] + [key for key in found if key not in wanted]
    for key in wanted.keys() & found.keys():
        if key == "chain":  # its path magnifies the last digit of a sum: six Monte-Carlo errors of either
            pairs = [(name, *map(np.asarray, (found[key].get(name), line))) for name, line in wanted[key].items()]
            told += [
                f"chain[{name}]: {a[0]} for {b[0]}" for name, a, b in pairs
                if a.shape != (2,) or (np.isfinite(b).all() and abs(a[0] - b[0]) > 6 * np.hypot(a[1], b[1]))
            ]  # fmt: skip
            continue
        loose = LOOSE if key in DRAWN or name in PATH_DEPENDENT else TIGHT
        told += [f"{key}{where}" for where in _unlike(found[key], wanted[key], loose)]
    return told


def _unlike(found, wanted, loose):
    if isinstance(wanted, dict):
        if list(found) != list(wanted):
            return [f": {list(found)} for {list(wanted)}"]
        return [f"[{key}]{rest}" for key in wanted for rest in _unlike(found[key], wanted[key], loose)]
    if isinstance(wanted, str) or (isinstance(wanted, list) and wanted and isinstance(wanted[0], str)):
        return [] if found == wanted else [f": {found} for {wanted}"]
    a, b = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
    if a.shape != b.shape:
        return [f": shape {a.shape} for {b.shape}"]
    scale = max(1e-3, float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0)))
    bad = ~np.isclose(a, b, rtol=loose, atol=loose * scale, equal_nan=True)
    return [f": {a[bad].flat[0]!r} for {b[bad].flat[0]!r}"] if bad.any() else []


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    kept = json.loads(FIXTURE.read_text()) if FIXTURE.exists() else {}
    seen = dict(kept)
    for name in CASES:
        if asked.only not in name:
            continue
        began = time.perf_counter()
        found = numbers_of(name)
        told = differences(found, kept.get(name, {}), name) if name in kept else ["new"]
        print(f"{time.perf_counter() - began:6.1f} s  {name}: {'; '.join(told[:4]) or 'the same'}", flush=True)
        seen[name] = found
    if asked.write:
        lines = [f"{json.dumps(name)}: {json.dumps(seen[name])}" for name in CASES if name in seen]
        FIXTURE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    sys.exit(main())
