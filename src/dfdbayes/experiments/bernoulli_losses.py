"""Loss surfaces of the Bernoulli model: both losses are smallest at the same place, with different shapes."""

import numpy as np

import dfdbayes as dfd

from .base import BLUE, GREY, Finding, Number, Settings, clean, figure_of


def run(settings: Settings) -> Finding:
    model, n = dfd.models.Bernoulli(), 500
    grid = np.linspace(0.02, 0.98, 481)[:, None]
    figure, panels = figure_of(9, 4.8, 2, 3)
    numbers = []
    for column, truth in enumerate((0.1, 0.5, 0.9)):
        x = dfd.simulate(model, {"probability": truth}, n, seed=0).rows
        rows = (("dfd", "discrete Fisher divergence", BLUE, "-"), ("likelihood", "negative log-likelihood", GREY, "--"))
        for axes, (loss, title, colour, style) in zip(panels[:, column], rows, strict=True):
            objective = dfd.objective(model, x, loss)
            values = objective.values(grid) / n
            axes.plot(grid[:, 0], values, color=colour, ls=style)
            axes.axvline(truth, color="black", lw=0.8, ls=":")
            top = np.quantile(values, 0.8)
            axes.set_ylim(values.min() - 0.1 * (top - values.min()), top)
            clean(axes, "probability", title if column == 0 else "", f"probability* = {truth}" if loss == "dfd" else "")
            found = dfd.minimise(objective)
            error = float(np.sqrt(truth * (1 - truth) / n))
            numbers.append(
                Number(f"minimiser, {title}, probability* = {truth}", found.theta["probability"], truth, error)
            )
    text = (
        "Both losses pick the right parameter. The divergence is far steeper at the ends, so its raw curvature says "
        "nothing about the estimator's spread: that is why the weight is calibrated. (The error is the sampling "
        "error of a share.)"
    )
    return Finding("Loss surfaces of the Bernoulli model", "Appendix A.1", text, {"losses": figure}, tuple(numbers))
