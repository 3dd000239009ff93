"""The weight of the Conway-Maxwell-Poisson graphical model over bootstrap realisations of the gene data."""

import numpy as np

import dfdbayes as dfd

from .base import BLUE, GREEN, INK, ORANGE, Finding, Number, Settings, clean, figure_of, gene_data, without_data

METHODS = {"lyddon": ("Lyddon's", ORANGE), "score-matching": ("the paper's", BLUE),
           "score-matching-invariant": ("invariant", GREEN)}  # fmt: skip


def run(settings: Settings) -> Finding:
    title, where = "The weight over realisations of the gene data", "Section 4.3, right"
    data = gene_data(settings)
    if data is None:
        return without_data(title, where)
    model = dfd.models.ConwayMaxwellPoissonGraphical(dfd.graphs.complete(10), prior="squared")
    rng = np.random.default_rng(0)
    chance = data.counts / data.counts.sum()
    realisations = 4 if settings.quick else 10
    found: dict[str, list[float]] = {method: [] for method in METHODS}
    for seed in range(realisations):
        objective = dfd.objective(model, data.reweighted(rng.multinomial(data.n, chance)))
        minimum = dfd.minimise(objective)
        replicates = dfd.bootstrap(objective, minimum, 100 if settings.quick else 400, seed=seed)
        for method in METHODS:
            try:
                weight = dfd.calibrate(objective, method, bootstrap=replicates, minimum=minimum)
                found[method].append(weight.beta)
            except dfd.errors.CalibrationError as problem:
                found[method].append(problem.calibration.beta if problem.calibration is not None else float("nan"))
    figure, axes = figure_of(5.6, 3.4)
    numbers = []
    for k, (method, (label, colour)) in enumerate(METHODS.items()):
        values = np.array(found[method])
        axes.plot(
            np.full(len(values), k) + np.linspace(-0.12, 0.12, len(values)), values, "o", color=colour, ms=5, alpha=0.7
        )
        known = values[np.isfinite(values)]
        remark = f"sd {known.std():.3g}, from {known.min():.3g} to {known.max():.3g}" if len(known) else "never exists"
        singular = len(values) - len(known)
        if singular:
            axes.annotate(
                f"no value in {singular} of {len(values)}:\nsingular matrix", (k, 0.1), ha="center", fontsize=8
            )
            remark += f"; no value at all in {singular} of {len(values)} (singular matrix)"
        if method == "score-matching":
            remark += "; the paper: 'between 0 and 3.5'"
        mean = float(known.mean()) if len(known) else float("nan")
        numbers.append(Number(f"beta, {label}: mean over {realisations} realisations", mean, remark=remark))
    axes.axhline(0, color=INK, lw=0.8)
    axes.set_xticks(range(len(METHODS)), [label for label, _ in METHODS.values()])
    axes.set_xlim(-0.5, len(METHODS) - 0.5)
    clean(axes, "", "beta")
    text = (
        "Each point is the weight of one bootstrap realisation of the data set. Information matching needs the "
        "inverse of a 65 by 65 matrix that the zero interactions make singular; where the weight is negative or "
        "missing it is shown as found."
    )
    return Finding(title, where, text, {"weights": figure}, tuple(numbers))
