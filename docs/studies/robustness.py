"""What a share of contaminated data does to each posterior.

Run: python docs/studies/robustness.py    (writes docs/tables/robustness.md and docs/images/robustness.png; seed 0)
"""

import warnings
from pathlib import Path

from arviz_stats.base import array_stats
from matplotlib.figure import Figure

import dfdbayes as dfd

warnings.simplefilter("ignore")
DOCS = Path(__file__).parents[1]


def robust(threshold):
    return dfd.losses.KernelStein(dfd.kernels.Robust(dfd.kernels.below(threshold)))


def poisson():
    x = dfd.simulate(dfd.models.Poisson(), {"rate": 5.0}, 500, seed=0).rows
    dirty = x.copy()
    dirty[:50] = 20
    return "Poisson, rate 5, n = 500; 10 % replaced by 20", dfd.models.Poisson(), 5.0, x, dirty, 15


def ising():
    model = dfd.models.Ising(dfd.graphs.grid(10, 10))
    x = dfd.simulate(model, {"temperature": 5.0}, 1000, seed=0, method="swendsen-wang").rows
    dirty = x.copy()
    dirty[:100] = 1
    return "Ising 10x10, temperature 5, n = 1000; 10 % replaced by all ones", model, 5.0, x, dirty, 90


lines = ["| data | loss | clean: mean (sd) | contaminated: mean (sd) |", "|---|---|---|---|"]
figure = Figure(figsize=(12, 5.4), layout="constrained")
rows = figure.subplots(2, 4)
for panel, (title, model, truth, x, dirty, threshold) in zip(rows, (poisson(), ising()), strict=True):
    exact = "likelihood" if model.log_normaliser is not None else "pseudo"
    losses = [
        (exact, exact),
        ("dfd", "dfd"),
        ("ratio", "ratio"),
        (f"robust ksd, threshold {threshold}", robust(threshold)),
    ]
    for axes, (name, loss) in zip(panel, losses, strict=True):
        cells = []
        for data, style in ((x, "-"), (dirty, "--")):
            fit = dfd.fit(model, data, loss=loss, bootstrap=200, progress=False)
            draws = fit.posterior[model.space.names[0]].values.reshape(-1)
            cells.append(f"{draws.mean():.3f} ({draws.std():.3f})")
            grid, density, _ = array_stats.kde(draws)
            label = "clean" if style == "-" else "contaminated"
            axes.plot(grid, density, style, color="#2a6f97" if style == "-" else "#d1495b", label=label)
        axes.axvline(truth, color="#8a9aa5", lw=1)
        axes.set_title(name, fontsize=9)
        axes.set_yticks([])
        axes.set_xlabel(model.space.names[0])
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        lines.append(f"| {title} | {name} | {cells[0]} | {cells[1]} |")
        print(lines[-1], flush=True)
    panel[0].legend(frameon=False, fontsize=8)
    panel[0].set_ylabel(title.split(";")[0], fontsize=8)
figure.savefig(DOCS / "images" / "robustness.png", dpi=110)
text = "Made by `python docs/studies/robustness.py`, seed 0.\n\n" + "\n".join(lines) + "\n"
(DOCS / "tables" / "robustness.md").write_text(text)
