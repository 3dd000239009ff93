"""One in ten counts replaced by 20: what that does to each posterior."""

from matplotlib.figure import Figure

import dfdbayes as dfd

from .base import BLUE, ORANGE, TITLES, Finding, Number, Settings, clean, density, draws_of, fit

ROBUST = dfd.losses.KernelStein(dfd.kernels.Robust(dfd.kernels.below(15)))


def run(settings: Settings) -> Finding:
    model = dfd.models.Poisson()
    x = dfd.simulate(model, {"theta": 5.0}, 500, seed=0).rows
    dirty = x.copy()
    dirty[:50] = 20
    figure = Figure(figsize=(9, 2.8), layout="constrained")
    numbers = []
    losses = (("likelihood", "likelihood"), ("dfd", "dfd"), ("ksd", ROBUST))
    for axes, (name, loss) in zip(figure.subplots(1, 3), losses, strict=True):
        for data, share, style, colour in ((x, 0.0, "-", BLUE), (dirty, 0.1, "--", ORANGE)):
            weight = {"beta": 1.0} if name == "likelihood" else {}
            found = fit(model, data, loss=loss, bootstrap=settings.bootstrap, **settings.walk(100, 2000), **weight)
            draws = draws_of(found)
            density(axes, draws, color=colour, ls=style, label=f"{share:.0%} outliers")
            remark = f"posterior sd {draws.std():.3f}, beta {found.beta:.3g}"
            numbers.append(Number(f"posterior mean, {TITLES[name]}, {share:.0%}", float(draws.mean()), remark=remark))
        axes.axvline(5.0, color="black", lw=0.8, ls=":")
        clean(axes, "theta", "", TITLES[name] + (" (robust kernel)" if name == "ksd" else ""))
        axes.legend(frameon=False, fontsize=8)
    text = (
        "As in the paper: the divergence is pulled further by outliers than the likelihood, because it is quadratic "
        "in each count, and the robust kernel is hardly pulled at all."
    )
    return Finding("Outliers in Poisson counts", "Appendix A.3", text, {"posteriors": figure}, tuple(numbers))
