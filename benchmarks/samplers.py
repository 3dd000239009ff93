"""Effective draws a second of the package's NUTS (BlackJAX) and of NumPyro's, on the same posterior.

Run: python benchmarks/samplers.py    (writes benchmarks/results/samplers.md)

Both start at the mode with the normal approximation's covariance as a dense metric, 4 chains of 500 warm-up steps and
1000 draws, and are timed in a second run of the same shape. nutpie is not among them: it takes PyMC or Stan models,
and by itself calls a density written in Python once a step.
"""

import time
import warnings
from pathlib import Path

import arviz_stats
import jax
import numpy as np
from numpyro.infer import MCMC, NUTS

import dfdbayes as dfd
from dfdbayes.core import samplers as sampling
from dfdbayes.core.posterior import posterior

warnings.simplefilter("ignore")


def least(z):
    return float(min(arviz_stats.ess(np.ascontiguousarray(z[:, :, j]), method="bulk") for j in range(z.shape[2])))


def ours(log_density, inputs, around, seed):
    return dfd.samplers.NUTS().run(dfd.samplers.Task(log_density, inputs, around, seed)).z


def numpyros(log_density, inputs, around, runs):
    kernel = NUTS(
        potential_fn=lambda z: -log_density(z, inputs),
        dense_mass=True,
        inverse_mass_matrix=around.factor @ around.factor.T,
        target_accept_prob=0.9,
    )
    sampler = MCMC(
        kernel, num_warmup=500, num_samples=1000, num_chains=4, chain_method="vectorized", progress_bar=False
    )
    starts = sampling.base.scattered(log_density, inputs, around, 4, np.random.default_rng(0))
    for seed in range(runs):
        began = time.perf_counter()
        sampler.run(jax.random.key(seed), init_params=jax.numpy.asarray(starts))
        draws = np.asarray(sampler.get_samples(group_by_chain=True))
        seconds = time.perf_counter() - began
    return draws, seconds


rng = np.random.default_rng(0)
cases = {
    "CMP, 2000 counts": (dfd.models.ConwayMaxwellPoisson(), rng.poisson(4.0, 2000), "dfd"),
    "CMP graphical, 800 rows of 6": (
        dfd.models.ConwayMaxwellPoissonGraphical(6), rng.poisson(rng.gamma(3.0, 1.5, (800, 6))), "ratio",
    ),
    "Ising network, 1000 rows of 10": (dfd.models.IsingNetwork(10), rng.integers(0, 2, (1000, 10)), "pseudo"),
}  # fmt: skip
lines = ["| posterior | parameters | BlackJAX here: ESS a second | NumPyro: ESS a second | ratio |", "|---" * 5 + "|"]
for name, (model, rows, loss) in cases.items():
    objective = dfd.objective(model, rows, loss)
    minimum = dfd.minimise(objective)
    log_density, inputs, start = posterior(objective, 0.5, minimum)
    around = sampling.centre(log_density, inputs, start)
    for seed in (0, 1):
        began = time.perf_counter()
        z = ours(log_density, inputs, around, seed)
        seconds = time.perf_counter() - began
    rate = least(log_density.fold(z)) / seconds
    draws, seconds = numpyros(log_density, inputs, around, 2)
    other = least(log_density.fold(draws)) / seconds
    lines.append(f"| {name}, {loss} | {model.space.size} | {rate:.0f} | {other:.0f} | {rate / other:.1f} |")
    print(lines[-1], flush=True)
text = f"""# Samplers

Made by `python benchmarks/samplers.py`, data seed 0. Smallest bulk ESS of any parameter, over a second run's wall time.

{chr(10).join(lines)}
"""
Path(__file__).parent.joinpath("results", "samplers.md").write_text(text)
print(text)
