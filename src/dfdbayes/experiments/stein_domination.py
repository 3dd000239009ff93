"""The kernel Stein discrepancy never exceeds the root of the discrete Fisher divergence."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import dfdbayes as dfd

from .base import BLUE, INK, Finding, Number, Settings, clean, figure_of

LEVELS = 3
STATES = np.stack(np.meshgrid(np.arange(LEVELS), np.arange(LEVELS), indexing="ij"), axis=-1).reshape(-1, 2)


def indicator(x):
    """1 at the place of x among all states."""
    return jnp.where(jnp.arange(len(STATES)) == LEVELS * x[0] + x[1], 1.0, 0.0)


def run(settings: Settings) -> Finding:
    rng = np.random.default_rng(0)
    model = dfd.ExponentialFamily(
        T=indicator, b=None, eta=lambda theta: theta["log_mass"], domain=dfd.Finite(2, LEVELS),
        parameters={"log_mass": dist.Normal(np.zeros(len(STATES)), 10.0)},
    )  # fmt: skip
    pairs = 300 if settings.quick else 3000
    steins, fishers = [], []
    for _ in range(pairs // 10):
        spread = rng.uniform(0.1, 2.0)
        q = np.exp(rng.normal(0, spread, len(STATES)))
        q /= q.sum()
        objective = dfd.objective(model, dfd.Dataset.of(STATES, weights=q), "ksd")
        logs = np.log(q) + rng.normal(0, 1, (10, len(STATES))) * rng.uniform(0.01, 1.5, (10, 1))
        steins += list(np.sqrt(np.maximum(objective.values(logs), 0.0)))
        shape = (LEVELS, LEVELS)
        fishers += [np.sqrt(dfd.divergence(np.exp(log).reshape(shape), q.reshape(shape))) for log in logs]
    stein, fisher = np.array(steins), np.array(fishers)
    figure, axes = figure_of(4.6, 4.2)
    axes.loglog(fisher, stein, ".", color=BLUE, ms=3, alpha=0.5)
    ends = [min(fisher.min(), stein.min()), fisher.max()]
    axes.plot(ends, ends, color=INK, lw=1, label="equality")
    clean(
        axes,
        "root of the discrete Fisher divergence",
        "kernel Stein discrepancy",
        f"{len(stein)} random pairs",
        legend=8,
    )
    numbers = (
        Number("largest ratio of discrepancy to root divergence", float(np.max(stein / fisher)), 1.0,
               remark="the proposition bounds it by 1: it holds" if np.all(stein <= fisher) else "the bound FAILS"),
        Number("pairs", float(len(stein))),
    )  # fmt: skip
    text = (
        "All points lie below the diagonal, as the proposition says: p and q are random distributions on nine states."
    )
    return Finding("The divergence dominates the Stein discrepancy", "Appendix D.3", text, {"pairs": figure}, numbers)
