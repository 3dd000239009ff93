"""The weight against the size of the data, Lyddon's beside it, and what unfinished minimisers do to it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dfdbayes as dfd

from .base import BLUE, GREEN, INK, ORANGE, Finding, Number, Settings, clean, figure_of, with_papers_priors

THETA = {"rate": 4.0, "nu": 0.75}


def adam(objective, weights, start, steps):
    """Minimisers as one gets them from a fixed number of Adam steps in log coordinates, all replicates at once."""
    terms = objective.weigh(weights)

    def loss(z, term):
        return objective.problem.value(jnp.exp(z), objective.terms, term) / objective.size

    def step(state, i):
        z, m, v = state
        g = jax.vmap(jax.grad(loss))(z, terms)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        z = z - 0.1 * (m / (1 - 0.9 ** (i + 1))) / (jnp.sqrt(v / (1 - 0.999 ** (i + 1))) + 1e-8)
        return (z, m, v), None

    z = jnp.broadcast_to(jnp.log(start), (len(weights), len(start)))
    (z, _, _), _ = jax.lax.scan(step, (z, jnp.zeros_like(z), jnp.zeros_like(z)), jnp.arange(steps))
    return np.exp(np.asarray(z))


def theorem_3(objective, thetas):
    """The paper's formula at any points, with the chi-squared(3) prior."""
    gradients, hessians = objective.derivatives(thetas)
    prior = 0.5 / thetas - 0.5
    top = np.sum(gradients * prior, axis=1) + np.trace(hessians, axis1=1, axis2=2)
    return top.sum() / np.sum(gradients**2)


def run(settings: Settings) -> Finding:
    model = with_papers_priors(dfd.models.ConwayMaxwellPoisson())
    realisations = 6 if settings.quick else 20
    sizes = (250, 500, 1000, 2000)
    weights: dict[str, list[Any]] = {name: [] for name in ("score-matching", "score-matching-invariant", "lyddon")}
    for n in sizes:
        found: dict[str, list[Any]] = {name: [] for name in weights}
        for seed in range(realisations):
            objective = dfd.objective(model, dfd.simulate(model, THETA, n, seed=seed).rows)
            minimum = dfd.minimise(objective)
            replicates = dfd.bootstrap(objective, minimum, settings.bootstrap, seed=seed)
            for name in weights:
                found[name].append(dfd.calibrate(objective, name, bootstrap=replicates, minimum=minimum).beta)
        for name in weights:
            weights[name].append(found[name])
    figure, (left, right) = figure_of(9, 3.4, 1, 2)
    titles = {"score-matching": "the paper's", "score-matching-invariant": "invariant", "lyddon": "Lyddon's"}
    for k, (name, colour) in enumerate(zip(weights, (BLUE, GREEN, ORANGE), strict=True)):
        at = np.arange(len(sizes)) + 0.26 * (k - 1)
        parts = left.boxplot(weights[name], positions=at, widths=0.2, manage_ticks=False, patch_artist=True)
        for patch in parts["boxes"]:
            patch.set_facecolor(colour)
        left.plot([], [], "s", color=colour, label=titles[name])
    left.set_xticks(range(len(sizes)), [str(n) for n in sizes])
    left.set_ylim(bottom=0)
    clean(left, "n", "beta", f"{realisations} data sets at each n, theta* = (4, 0.75)", legend=8)

    objective = dfd.objective(model, dfd.simulate(model, THETA, 2000, seed=0).rows)
    minimum = dfd.minimise(objective)
    replicates = dfd.bootstrap(objective, minimum, 100)
    exact = theorem_3(objective, replicates.minima.vectors)
    steps, curve = (100, 300, 1000, 3000), []
    for count in steps:
        thetas = adam(objective, replicates.weights, np.array([1.0, 1.0]), count)
        own = np.array([objective.gradient(t, w) for t, w in zip(thetas, replicates.weights, strict=True)])
        curve.append((float(np.median(np.linalg.norm(own, axis=1))), float(theorem_3(objective, thetas))))
    norms, betas = zip(*curve, strict=True)
    right.semilogx(norms, betas, "o-", color=BLUE)
    for count, norm, beta in zip(steps, norms, betas, strict=True):
        right.annotate(f"{count} steps", (norm, beta), fontsize=7, textcoords="offset points", xytext=(5, 4))
    right.axhline(exact, color=INK, lw=0.8, ls="--")
    right.set_ylim(0, 1.25 * exact)
    clean(right, "median gradient norm at the 'minimisers'", "beta", "100 bootstrap fits by Adam; dashed: exact")
    numbers = [
        Number(f"beta, {titles[name]}, n = {n}: mean of {realisations} data sets", float(np.mean(values)), None,
               float(np.std(values) / np.sqrt(realisations)), f"sd over data sets {np.std(values):.2f}")
        for name in weights for n, values in zip(sizes, weights[name], strict=True)
    ]  # fmt: skip
    numbers.append(Number("beta at exact minimisers, one data set, B = 100", float(exact)))
    numbers += [
        Number(f"beta after {count} Adam steps, rate 0.1", beta, remark=f"median gradient norm {norm:.2g}")
        for count, (norm, beta) in zip(steps, curve, strict=True)
    ]
    text = (
        "The weight is stable over data sets. The right panel shows why published weights may be too small: the "
        "formula's denominator is a mean of squared gradients of the full data's loss, and minimisers that were left "
        "unfinished, in the stiff direction, inflate it."
    )
    return Finding(
        "The weight against n", "Section 4.1, second figure, left", text, {"weights": figure}, tuple(numbers)
    )
