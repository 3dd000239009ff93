"""Ten genes in 878 patients: Poisson and Conway-Maxwell-Poisson graphical models."""

from functools import partial

import numpy as np

import dfdbayes as dfd

from .base import (
    BLUE,
    GREY,
    ORANGE,
    Finding,
    Number,
    Settings,
    clean,
    figure_of,
    fit,
    gene_data,
    shortest,
    without_data,
)

PRINTED = {"Poisson": 0.2150, "CMP": 0.9971}


def run(settings: Settings) -> Finding:
    title, where = "Genes as networks of counts", "Section 4.3"
    data = gene_data(settings)
    if data is None:
        return without_data(title, where)
    graph = dfd.graphs.complete(10)
    models = {
        "Poisson": dfd.models.PoissonGraphical(graph, prior="squared"),
        "CMP": dfd.models.ConwayMaxwellPoissonGraphical(graph, prior="squared"),
    }
    figure, panels = figure_of(11, 4.6, 2, 5)
    numbers = []
    for (name, model), colour in zip(models.items(), (ORANGE, BLUE), strict=True):
        repeats = 2 if name == "Poisson" else 1  # its times are the paper's
        objective = dfd.objective(model, data)
        minimum, minimising = shortest(partial(dfd.minimise, objective), repeats)
        many = partial(dfd.bootstrap, objective, minimum, 100 if settings.quick else 400)
        replicates, resampling = shortest(many, repeats)
        numbers.append(
            Number(
                f"interactions at exactly 0 at the minimum, {name}",
                float(sum(edge.startswith("interaction") for edge in minimum.edges)),
                None,
                None,
                f"of 45; parameters: {len(minimum.names)}, the paper says {64 if name == 'Poisson' else 74}",
            )
        )
        for method in ("score-matching", "score-matching-invariant", "lyddon"):
            paper = PRINTED[name] if method == "score-matching" else None
            try:
                weight = dfd.calibrate(objective, method, bootstrap=replicates, minimum=minimum)
                remark = "not in the paper"
                if paper is not None:
                    gap = abs(weight.beta - paper) / weight.error
                    remark = (
                        f"{gap:.1f} Monte-Carlo errors apart; the authors' fits end at saddle points and short of "
                        f"zeros, and over realisations of the data the exact weight ranges widely (gene-beta)"
                    )
                numbers.append(Number(f"beta, {method}, {name}", weight.beta, paper, weight.error or None, remark))
            except dfd.errors.CalibrationError as problem:
                found = problem.calibration
                beta, error = (found.beta, found.error) if found is not None else (float("nan"), None)
                remark = "no weight: " + str(problem).split(" What to do")[0]
                numbers.append(Number(f"beta, {method}, {name}", beta, paper, error, remark))
        # The figure is drawn at the printed weights, so that it can be set beside the paper's.
        length = {"draws": 250, "warmup": 250, "chains": 2} if settings.quick else {"draws": 1000}
        result, sampling = shortest(partial(fit, model, data, beta=PRINTED[name], **length), repeats)
        taken = minimising + resampling + sampling
        predicted = result.replicate(draws=20 if settings.quick else 100, size=data.n)
        gaps = []
        for j, axes in enumerate(panels.flat):
            table = predicted.marginal(j)
            if name == "Poisson":
                axes.bar(table.index, table["observed"], color=GREY, alpha=0.5, label="observed")
            axes.plot(table.index, table["predicted"], ".-", color=colour, ms=3, lw=1, label=f"{name} graphical")
            clean(axes, data.columns[j], "share" if j % 5 == 0 else "")
            axes.set_xlim(-0.5, 20.5)
            gaps.append(0.5 * float(np.abs(table["observed"] - table["predicted"]).sum()))
        numbers.append(
            Number(f"total variation, observed against predicted, mean over genes, {name}", float(np.mean(gaps)))
        )
        if name == "Poisson":
            printed = 1896.0  # seconds
            remark = f"{printed / taken:.0f} times faster than printed (another machine), predictive draws not counted"
            numbers.append(
                Number("seconds, Poisson graphical with calibration and sampling", taken, printed, None, remark)
            )
    panels.flat[0].legend(frameon=False, fontsize=7)
    mean = np.average(data.rows, axis=0, weights=data.counts)
    index = np.average((data.rows - mean) ** 2, axis=0, weights=data.counts) / mean
    remark = "variance over mean, 1 for a Poisson variable: the genes vary more than that, where the paper says less"
    numbers.append(Number("dispersion index of the genes: smallest", float(index.min()), None, None, remark))
    numbers.append(Number("dispersion index of the genes: largest", float(index.max())))
    text = (
        "As in the paper, the Poisson graphical model fits the genes' marginals poorly and the Conway-Maxwell one "
        "follows them. The reason is over-dispersion (the paper says under-dispersion): the Poisson model's "
        "marginals are too narrow. The figure uses the printed weights. Solved exactly, Theorem 3's weight for the "
        "Poisson model cannot be told from zero: the prior on the interactions is narrower than their bootstrap "
        "spread (see What we found)."
    )
    return Finding(title, where, text, {"predictive": figure}, tuple(numbers))
