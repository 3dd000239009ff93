"""The posterior becomes normal as n grows: distance to its limit."""

import numpy as np
from scipy.stats import norm

import dfdbayes as dfd

from .base import BLUE, GREY, Finding, Number, Settings, clean, exponent, figure_of, with_papers_priors


def distance(model, objective, minimum):
    """Total variation between the posterior (by quadrature) and N(theta_n, 1 / D''(theta_n)); also both on a grid."""
    sd = 1 / np.sqrt(objective.hessian(minimum.vector)[0, 0])
    grid = minimum.vector[0] + sd * np.linspace(-9, 9, 4001)
    grid = grid[grid > 0]
    log = np.asarray(model.space.parameters[0].prior.log_prob(grid)) - objective.values(grid[:, None])
    mass = np.exp(log - log.max())
    limit = norm.pdf(grid, minimum.vector[0], sd)
    return (
        0.5 * float(np.abs(mass / mass.sum() - limit / limit.sum()).sum()),
        grid,
        mass / mass.sum(),
        limit / limit.sum(),
    )


def run(settings: Settings) -> Finding:
    model = with_papers_priors(dfd.models.Poisson())
    sizes = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
    repeats = 10 if settings.quick else 50
    figure, (first, second, last) = figure_of(9, 3.2, 1, 3)
    means = []
    for n in sizes:
        found = []
        for seed in range(repeats):
            objective = dfd.objective(model, dfd.simulate(model, {"rate": 4.0}, n, seed=seed).rows)
            gap, grid, mass, limit = distance(model, objective, dfd.minimise(objective))
            found.append(gap)
            if seed == 0 and n in (10, 1000):
                axes = first if n == 10 else second
                width = grid[1] - grid[0]
                axes.plot(grid, mass / width, color=BLUE, label="posterior")
                axes.plot(grid, limit / width, "--", color=GREY, label="normal limit")
                axes.set_yticks([])
                clean(axes, "rate", "", f"n = {n}", legend=8)
        means.append(float(np.mean(found)))
    last.loglog(sizes, means, "o-", color=BLUE)
    clean(last, "n", "total variation", f"mean of {repeats} data sets")
    slope = exponent(sizes[3:], means[3:])
    numbers = (
        Number("exponent of the distance in n, n >= 300", slope, -0.5, 0.02),
        *(Number(f"total variation at n = {n}", value) for n, value in zip(sizes, means, strict=True)),
    )
    text = (
        "The posterior pi(theta) exp(-D_n(theta)) of a Poisson model against the normal of Theorem 2, centred at the "
        "minimiser with the inverse Hessian as variance. The distance falls like one over the root of n, as a "
        "third-order expansion predicts."
    )
    return Finding("Asymptotic normality", "Theorem 2", text, {"distance": figure}, numbers)
