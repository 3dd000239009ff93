"""The divergence hardly sees mixing proportions of components far apart."""

import numpy as np
from scipy.stats import poisson

import dfdbayes as dfd

from .base import BLUE, GREY, Finding, Number, Settings, clean, figure_of


def run(settings: Settings) -> Finding:
    n, grid = 2000, np.linspace(0.02, 0.98, 193)
    figure, panels = figure_of(9, 4.8, 2, 3)
    numbers = []
    for row, rates in zip(panels, ((5.0, 60.0), (5.0, 15.0)), strict=True):
        values = np.arange(0, int(rates[1] + 5 * np.sqrt(rates[1])))
        row[0].bar(values, 0.5 * poisson.pmf(values, rates[0]) + 0.5 * poisson.pmf(values, rates[1]), color=GREY)
        clean(row[0], "x", f"rates {rates[0]:g} and {rates[1]:g}", "mixture, proportion 0.5")
        model = dfd.models.PoissonMixture(rates)
        for axes, proportion in zip(row[1:], (0.5, 0.7), strict=True):
            # The paper's theta weighs the second component, the model's proportion the first.
            x = dfd.simulate(model, {"proportion": 1 - proportion}, n, seed=0).rows
            loss = dfd.objective(model, x).values((1 - grid)[:, None]) / n
            axes.plot(grid, loss, color=BLUE)
            axes.axvline(proportion, color="black", lw=0.8, ls=":")
            clean(axes, "proportion of the second", "", f"divergence, proportion* = {proportion}")
            if rates[1] == 60:  # as flat as it is: the same height of panel as below
                axes.set_ylim(loss.mean() - 0.1, loss.mean() + 0.1)
            what = f"rates {rates[0]:g}, {rates[1]:g}, proportion* = {proportion}"
            middle = (grid >= 0.1) & (grid <= 0.9)
            numbers.append(Number(f"range of the loss over [0.1, 0.9], {what}", float(np.ptp(loss[middle]))))
            if rates[1] == 15:
                error = float(np.sqrt(proportion * (1 - proportion) / n))
                best = float(grid[np.argmin(loss)])
                remark = "error: of a share, if the components were known; the loss sees less"
                numbers.append(Number(f"where the loss is smallest, {what}", best, proportion, error, remark))
    text = (
        "With rates 5 and 60 the loss is constant to the printed digits over the whole range of proportions; with 5 "
        "and 15 it has a minimum near the truth. As in the paper; the library warns in the first case."
    )
    return Finding("Mixing proportions", "Appendix A.4", text, {"losses": figure}, tuple(numbers))
