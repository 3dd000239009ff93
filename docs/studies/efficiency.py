"""How much each loss loses against maximum likelihood: root mean squared errors over simulated data sets.

Run: python docs/studies/efficiency.py [replicates]    (writes docs/tables/efficiency.md; seeds 0, 1, 2, ...)
"""

import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln

import dfdbayes as dfd

REPLICATES = int(sys.argv[1]) if len(sys.argv) > 1 else 200
LOSSES = ("likelihood", "dfd", "ratio", "pseudo", "ksd")
SIDE = 6


def ising_constant(theta):
    """log Z of the open 6 x 6 Ising model by its transfer matrix: one row of the grid at a time."""
    spins = np.array([[1.0 if s >> j & 1 else -1.0 for j in range(SIDE)] for s in range(2**SIDE)])
    strength = 1.0 / theta["temperature"]
    within = strength * jnp.asarray((spins[:, :-1] * spins[:, 1:]).sum(axis=1))
    between = strength * jnp.asarray(spins @ spins.T)
    peak = jnp.max(between) + jnp.max(within)
    step = jnp.exp(between + within[None, :] - peak)
    vector, log = jnp.exp(within - jnp.max(within)), jnp.max(within)
    for _ in range(SIDE - 1):
        vector = vector @ step
        log = log + peak + jnp.log(jnp.sum(vector))
        vector = vector / jnp.sum(vector)
    return log


CMP = dfd.models.ConwayMaxwellPoisson()
ISING = replace(dfd.models.Ising(dfd.graphs.grid(SIDE, SIDE)), log_normaliser=ising_constant)
NORMAL = dist.Normal(0.0, 1.0)


def friends(theta, x):
    """Yes/no columns that all agree with each other to the same degree."""
    return theta["h"] * x.sum() + theta["J"] * (x.sum() ** 2 - (x * x).sum()) / 2


def pair(theta, x):
    """Two counts that have something in common."""
    return theta["a"] * x[0] + theta["b"] * x[1] + theta["c"] * jnp.minimum(x[0], x[1]) - gammaln(x + 1).sum()


def pair_constant(theta):
    points = jnp.stack(jnp.meshgrid(jnp.arange(60.0), jnp.arange(60.0)), axis=-1).reshape(-1, 2)
    return jax.nn.logsumexp(jax.vmap(lambda x: pair(theta, x))(points))


FRIENDS = dfd.Model(friends, dfd.Binary(4), {"h": NORMAL, "J": NORMAL})
PAIR = dfd.Model(pair, dfd.Counts(2), dict.fromkeys("abc", NORMAL), log_normaliser=pair_constant)
CASES = [
    ("CMP (4, 0.75), n = 2000", CMP, {"rate": 4.0, "nu": 0.75}, 2000),
    ("CMP (4, 1.25), n = 2000", CMP, {"rate": 4.0, "nu": 1.25}, 2000),
    ("CMP (2, 0.3), n = 2000", CMP, {"rate": 2.0, "nu": 0.3}, 2000),
    ("Ising 6x6, temperature 5, n = 200", ISING, {"temperature": 5.0}, 200),
    ("four yes/no columns, a model of one's own, n = 400", FRIENDS, {"h": -1.0, "J": 0.7}, 400),
    ("two counts, a model of one's own, n = 600", PAIR, {"a": 0.5, "b": 0.2, "c": 0.6}, 600),
]


def study(model, truth, n):
    """Errors of each loss's minimiser, by parameter, and how many had none."""
    exact = np.asarray(model.space.flatten(truth))
    errors = {loss: [] for loss in LOSSES}
    for seed in range(REPLICATES):
        method = "swendsen-wang" if model is ISING else None
        data = dfd.Dataset.of(dfd.simulate(model, truth, n, seed=seed, method=method).rows)
        for loss in LOSSES:
            found = dfd.minimise(dfd.objective(model, data, loss))
            usable = found.outcome in ("converged", "at the boundary")
            errors[loss].append(found.vector - exact if usable else np.full(len(exact), np.nan))
    return {loss: np.array(part) for loss, part in errors.items()}


lines = [
    "| data | parameter | " + " | ".join(LOSSES) + " | without a minimum |",
    "|---|---|" + "---|" * (len(LOSSES) + 1),
]
for title, model, truth, n in CASES:
    errors = study(model, truth, n)
    lost = sum(int(np.isnan(part[:, 0]).sum()) for part in errors.values())
    rmse = {loss: np.sqrt(np.nanmean(part**2, axis=0)) for loss, part in errors.items()}
    for i, name in enumerate(model.space.names):
        best = rmse["likelihood"][i]
        cells = [f"{best:.4f}"] + [f"{rmse[loss][i] / best:.2f}" for loss in LOSSES[1:]]
        lines.append(f"| {title} | {name} | " + " | ".join(cells) + f" | {lost} |")
    print("\n".join(lines[-len(model.space.names) :]), flush=True)

text = f"""Root mean squared error of maximum likelihood, and of the other losses' minimisers as a multiple of it.
{REPLICATES} simulated data sets each, from seed 0; made by `python docs/studies/efficiency.py {REPLICATES}`.

{chr(10).join(lines)}
"""
(Path(__file__).parents[1] / "tables" / "efficiency.md").write_text(text)
