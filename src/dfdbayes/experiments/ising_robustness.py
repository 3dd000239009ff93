"""One lattice in ten replaced by all ones."""

from matplotlib.figure import Figure

import dfdbayes as dfd

from .base import BLUE, ORANGE, TITLES, Finding, Number, Settings, clean, density, draws_of, fit

ROBUST = dfd.losses.KernelStein(dfd.kernels.Robust(dfd.kernels.below(90)))


def run(settings: Settings) -> Finding:
    model = dfd.models.Ising(dfd.graphs.grid(10, 10))
    x = dfd.simulate(model, {"theta": 5.0}, 1000, seed=0, method="swendsen-wang").rows
    dirty = x.copy()
    dirty[:100] = 1
    figure = Figure(figsize=(9, 2.8), layout="constrained")
    numbers = []
    losses = (("pseudo", "pseudo"), ("dfd", "dfd"), ("ksd", ROBUST))
    for axes, (name, loss) in zip(figure.subplots(1, 3), losses, strict=True):
        for data, share, style, colour in ((x, 0.0, "-", BLUE), (dirty, 0.1, "--", ORANGE)):
            found = fit(model, data, loss=loss, bootstrap=100, **settings.walk(100, 2000))
            draws = draws_of(found)
            density(axes, draws, color=colour, ls=style, label=f"{share:.0%} all ones")
            remark = f"posterior sd {draws.std():.3f}, beta {found.beta:.3g}"
            numbers.append(Number(f"posterior mean, {TITLES[name]}, {share:.0%}", float(draws.mean()), remark=remark))
        axes.axvline(5.0, color="black", lw=0.8, ls=":")
        clean(axes, "theta", "", TITLES[name] + (" (robust kernel)" if name == "ksd" else ""))
        axes.legend(frameon=False, fontsize=8)
    text = (
        "As in the paper, pseudo-likelihood and divergence are pulled to smaller theta (stronger interaction) by "
        "lattices of ones, and the kernel that ignores rows with a sum near 90 or more is not."
    )
    return Finding("Outliers on a lattice", "Appendix D.4", text, {"posteriors": figure}, tuple(numbers))
