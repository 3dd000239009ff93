"""Mistakes that people make, and what they are told: docs/tables/mistakes.md.

    python docs/studies/mistakes.py

`tests/regression/test_error_messages.py` makes every one of them again and compares.
"""

# ruff: noqa: E501
import math
import textwrap
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import scipy.stats

import dfdbayes as dfd

ROOT = Path(__file__).parents[2]
HEADING = """# Mistakes, and what you are told

Made by `python docs/studies/mistakes.py`; a test makes every mistake again. In these calls `counts` are 60 counts, `frame` has
the columns visits, age and clinic, `answers` three yes/no columns, and `own(f)` is a model with the mass function f and one parameter, rate.

"""
MISTAKES = {
    "math.log inside a log mass": 'own(lambda theta, x: x[0] * math.log(theta["rate"]))',
    "np.log inside a log mass": 'own(lambda theta, x: x[0] * np.log(theta["rate"]))',
    "scipy inside a log mass": 'own(lambda theta, x: x[0] * theta["rate"] - scipy.special.gammaln(x[0] + 1))',
    "an undeclared parameter": 'own(lambda theta, x: x[0] * theta["rates"])',
    "x[1] of a one-column domain": 'own(lambda theta, x: x[1] * theta["rate"])',
    "a log mass that returns an array": 'own(lambda theta, x: x * theta["rate"])',
    "a log mass with if x[0] > 3": 'own(lambda theta, x: theta["rate"] if x[0] > 3 else 0.0)',
    "a log mass without theta": "own(lambda x: x[0])",
    "a log mass that takes the row first": 'own(lambda x, theta: x[0] * theta["rate"])',
    "a column of x by its name": 'own(lambda theta, x: x["visits"] * theta["rate"])',
    "a parameter as an attribute": "own(lambda theta, x: x[0] * theta.rate)",
    "a log mass with min()": 'own(lambda theta, x: min(x[0], 3) * theta["rate"])',
    "a log mass without a return": "own(lambda theta, x: None)",
    "x log x at zero": 'own(lambda theta, x: theta["rate"] * x[0] * jnp.log(x[0]))',
    "a column that a log mass ignores": 'own(lambda theta, x: -theta["rate"] * x[0], domain=dfd.Counts(2))',
    "a declared parameter that is not used": 'own(lambda theta, x: x[0] * theta["rate"], rate=dist.HalfNormal(1.0), shape=dist.HalfNormal(1.0))',
    "a class instead of an instance": "fit(dfd.models.Poisson, counts)",
    "a log mass instead of a model": 'fit(lambda theta, x: x[0] * theta["rate"], counts)',
    "dfd.Model itself": "fit(dfd.Model, counts)",
    "a string for a domain": 'own(lambda theta, x: x[0] * theta["rate"], domain="counts")',
    "a domain class, not an instance": 'own(lambda theta, x: x[0] * theta["rate"], domain=dfd.Counts)',
    "domain and parameters exchanged": 'dfd.Model(lambda theta, x: x[0] * theta["rate"], {"rate": dist.Normal(0, 1)}, dfd.Counts(1))',
    "a domain before the log mass": 'dfd.Model(dfd.Counts(1), lambda theta, x: x[0] * theta["rate"], {"rate": dist.Normal(0, 1)})',
    "names without priors": 'dfd.Model(lambda theta, x: x[0] * theta["rate"], dfd.Counts(1), ["rate"])',
    "a prior of scipy": 'dfd.Model(lambda theta, x: x[0] * theta["rate"], dfd.Counts(1), {"rate": scipy.stats.norm(0, 1)})',
    "a number for a prior": 'dfd.Model(lambda theta, x: x[0] * theta["rate"], domain=dfd.Counts(1), parameters={"rate": 1.0})',
    "a prior class, not an instance": 'dfd.Model(lambda theta, x: x[0] * theta["rate"], domain=dfd.Counts(1), parameters={"rate": dist.Normal})',
    "a discrete prior": 'dfd.Model(lambda theta, x: x[0] * theta["rate"], domain=dfd.Counts(1), parameters={"rate": dist.Poisson(2.0)})',
    "no parameters": "dfd.Model(lambda theta, x: x[0], domain=dfd.Counts(1), parameters={})",
    "data first, model second": 'fit(counts, "poisson")',
    "a model that does not exist": 'fit("poison", counts)',
    "a negative binomial": 'fit("negative-binomial", counts)',
    "loss=None": 'fit("poisson", counts, loss=None)',
    "a loss misspelt": 'fit("poisson", counts, loss="likelyhood")',
    "a sampler misspelt": 'fit("poisson", counts, sampler="gibs")',
    "a calibration misspelt": 'fit("poisson", counts, calibration="curvatur")',
    "a negative beta": 'fit("poisson", counts, beta=-1.0)',
    "beta and calibration": 'fit("poisson", counts, beta=1.0, calibration="curvature")',
    "zero draws": 'fit("poisson", counts, draws=0)',
    "a seed that is a word": 'fit("poisson", counts, seed="x")',
    "missing='ignore'": 'fit("poisson", counts, missing="ignore")',
    "a prior for a parameter that is not there": 'fit("poisson", counts, prior={"lambda": dist.HalfNormal(1.0)})',
    "an argument that does not exist": 'fit("poisson", counts, iterations=100)',
    "options for a model that takes none": 'fit("poisson", counts, options={"graph": dfd.graphs.grid(2, 2)})',
    "a file that is not there": 'fit("poisson", "visit.csv")',
    "an empty list": 'fit("poisson", [])',
    "negative counts": 'fit("poisson", [1, 2, -3, 4])',
    "fractional counts": 'fit("poisson", [1.5, 2.0, 3.0])',
    "a missing value": 'fit("poisson", pd.DataFrame({"visits": [1, 2, None, 3]}))',
    "words for counts": 'fit("poisson", ["a", "b"])',
    "infinity among the counts": 'fit("poisson", [1.0, np.inf, 2.0])',
    "two columns for a model of one": 'fit("poisson", answers[["tired", "sad"]])',
    "a column that is not there": 'fit("poisson", frame, columns=["visit"])',
    "a text column in a network": 'fit("network", frame[["visits", "clinic"]])',
    "counts for a binary model": 'fit("bernoulli", counts)',
    "every value the same": 'fit("poisson", [0] * 20)',
    "one row": 'fit("cmp", [3])',
    "weights of another length": 'fit("poisson", counts, weights=[1, 2])',
    "negative weights": 'fit("poisson", counts, weights=-np.ones(60))',
    "a three-dimensional array": 'fit("ising", np.ones((2, 3, 4), int))',
    "a lattice without its graph": 'fit("ising", rng.choice([-1, 1], (20, 9)))',
    "a cluster column that is not there": 'fit("poisson", frame[["visits", "clinic"]], columns=["visits"], cluster="school")',
    "two clusters": 'fit("poisson", frame, formula="visits ~ age", cluster="clinic")',
    "a column misspelt in a formula": 'fit("poisson", frame, formula="visits ~ aeg")',
    "a formula without a response": 'fit("poisson", frame, formula="~ age")',
    "one equals sign for a tilde": 'fit("poisson", frame, formula="visits = age")',
    "a formula for a parameter that is not there": 'fit("poisson", frame, formula="visits ~ age", nu="~ clinic")',
    "the same covariate twice": 'fit("poisson", frame.assign(years=frame["age"] * 1.0), formula="visits ~ age + years")',
    "a formula on an array": 'fit("poisson", counts, formula="visits ~ age")',
    "log of a negative covariate": 'fit("poisson", frame.assign(z=frame["age"] - 40), formula="visits ~ log(z)")',
    "a syntax error in a formula": 'fit("poisson", frame, formula="visits ~ age +")',
    "a column misspelt in newdata": 'fit("poisson", frame, formula="visits ~ age").predict({"aeg": [1.0]})',
    "evidence of a model without edges": 'fit("poisson", counts).evidence()',
    "an interval of 95": 'fit("poisson", counts).summary(interval=95)',
    "a level that was never seen in newdata": 'fit("poisson", frame, formula="visits ~ clinic").predict({"clinic": ["C"]})',
}


def own(function: Any, domain: Any = None, **priors: Any) -> Any:
    domain = dfd.Counts(1) if domain is None else domain
    return dfd.Model(function, domain=domain, parameters=priors or {"rate": dist.HalfNormal(1.0)})


def fit(model: Any, data: Any, **settings: Any) -> Any:
    return dfd.fit(model, data, **({"check": False, "progress": False, "sampler": "laplace"} | settings))


def told() -> dict[str, tuple[str, str]]:
    """By mistake: the call, and the error with its message."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(3.0, 60)
    frame = pd.DataFrame({"visits": counts, "age": rng.normal(40, 9, 60), "clinic": rng.choice(["A", "B"], 60)})
    answers = pd.DataFrame(rng.integers(0, 2, (60, 3)), columns=["tired", "sad", "calm"])
    scope = {"own": own, "fit": fit, "rng": rng, "counts": counts, "frame": frame, "answers": answers}
    scope |= {"dfd": dfd, "dist": dist, "math": math, "jnp": jnp, "np": np, "pd": pd, "scipy": scipy}
    found = {}
    for name, call in MISTAKES.items():
        try:
            eval(call, scope)
        except dfd.errors.DfdbayesError as problem:
            found[name] = (call, f"{type(problem).__name__}: {problem}")
        else:
            found[name] = (call, "no error")
    return found


def page(found: dict[str, tuple[str, str]]) -> str:
    """All of them, as a page."""
    parts = [
        f"## {name[0].upper()}{name[1:]}\n\n```text\n{call}\n\n{textwrap.fill(said, 110)}\n```\n"
        for name, (call, said) in found.items()
    ]
    return HEADING + "\n".join(parts)


if __name__ == "__main__":
    (ROOT / "docs" / "tables" / "mistakes.md").write_text(page(told()))
