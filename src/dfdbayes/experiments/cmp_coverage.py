"""The 95 % credible region beside the bootstrap's confidence region."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dfdbayes as dfd

from .base import BLUE, ORANGE, Finding, Number, Settings, clean, draws_of, fit, region, with_papers_priors


def run(settings: Settings) -> Finding:
    model = with_papers_priors(dfd.models.ConwayMaxwellPoisson())
    x = dfd.simulate(model, {"rate": 4.0, "nu": 0.75}, 2000, seed=0).rows
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    numbers = []
    objective = dfd.objective(model, x)
    points = dfd.bootstrap(objective, dfd.minimise(objective), settings.bootstrap).minima.vectors
    kinds: tuple[tuple[str, dict[str, Any]], ...] = (("the paper's weight", {}), ("the default", {"calibration": None}))
    for axes, (title, choice) in zip(figure.subplots(1, 2), kinds, strict=True):
        found = fit(model, x, bootstrap=settings.bootstrap, **settings.walk(500, 5000), **choice)
        areas, edges = [], []
        clouds = (
            (draws_of(found, "rate"), draws_of(found, "nu"), BLUE, "credible region"),
            (points[:, 0], points[:, 1], ORANGE, "bootstrap confidence region"),
        )
        for first, second, colour, label in clouds:
            a, b, heights, level = region(first, second)
            axes.contour(a, b, heights, levels=[level], colors=colour)
            axes.plot([], [], color=colour, label=label)
            areas.append(float((heights > level).sum() * (a[1] - a[0]) * (b[1] - b[0])))
            edges.append((a, b, heights, level))
        axes.plot(points[:100, 0], points[:100, 1], ".", color=ORANGE, ms=3)
        clean(axes, "rate", "nu", f"{title}: beta = {found.beta:.2f}", legend=8)
        a, b, heights, level = edges[0]
        rows = np.clip(np.searchsorted(b, points[:, 1]), 0, len(b) - 1)
        columns = np.clip(np.searchsorted(a, points[:, 0]), 0, len(a) - 1)
        share = float(np.mean(heights[rows, columns] > level))
        error = float(np.sqrt(0.95 * 0.05 / len(points)))
        numbers.append(Number(f"bootstrap minimisers inside the credible region, {title}", share, 0.95, error))
        numbers.append(Number(f"area of the credible over the confidence region, {title}", areas[0] / areas[1], 1.0,
                              remark="1 means equally large"))  # fmt: skip
    text = (
        "The two regions should cover each other, and for a single data set like the paper's they do, with either "
        "calibration. What a region is worth over many data sets is another question: see the table in 'Which "
        "calibration should I use?', where the paper's single weight falls short and the default does not."
    )
    return Finding("Credible and confidence region", "Section 4.1, second figure, centre", text, {"regions": figure},
                   tuple(numbers))  # fmt: skip
