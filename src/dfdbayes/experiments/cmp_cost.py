"""Time of one loss evaluation against n: the formulas row by row, and on distinct ratios."""

import time

import numpy as np

import dfdbayes as dfd

from .base import BLUE, ORANGE, Finding, Number, Settings, clean, exponent, figure_of, shortest, with_papers_priors


def fisher_by_rows(x, rate, nu):
    """The divergence as it is printed: two ratios for every observation."""
    down = np.where(x > 0, np.maximum(x, 1.0) ** nu / rate, 0.0)
    up = (x + 1.0) ** nu / rate
    return np.sum(down**2 - 2 * up)


def stein_by_rows(x, rate, nu):
    """The Stein discrepancy as it is printed: all pairs of observations."""
    down = np.where(x > 0, np.maximum(x, 1.0) ** nu / rate, 0.0)
    total = 0.0
    for first in range(0, len(x), 100):  # some rows at a time: the matrix of all pairs need not fit anywhere
        some = slice(first, first + 100)
        same = np.exp(-(x[some, None] != x[None, :]).astype(float))
        shifted = np.exp(-(x[some, None] != x[None, :] + 1).astype(float))
        total += (same - 2 * down[some, None] * shifted + down[some, None] * same * down[None, :]).sum()
    return total / len(x)


def seconds(action):
    """The shortest time of an action, repeated for a twentieth of a second."""
    action()
    end = time.perf_counter() + 0.05
    times: list[float] = []
    while time.perf_counter() < end or len(times) < 3:
        times.append(shortest(action, 1)[1])
    return min(times)


def run(settings: Settings) -> Finding:
    theta, model = {"rate": 4.0, "nu": 0.75}, with_papers_priors(dfd.models.ConwayMaxwellPoisson())
    vector = np.array(list(theta.values()))
    sizes = {"dfd": (1000, 10_000, 100_000, 1_000_000), "ksd": (500, 1000, 2000, 4000)}
    plain = {"dfd": fisher_by_rows, "ksd": stein_by_rows}
    figure, axes = figure_of(5.6, 3.8)
    numbers = []
    expected = {("dfd", "rows"): 1.0, ("ksd", "rows"): 2.0}
    for loss, colour in (("dfd", BLUE), ("ksd", ORANGE)):
        rows, compressed = [], []
        for n in sizes[loss]:
            data = dfd.simulate(model, theta, n, seed=0).rows
            x = data[:, 0].astype(float)
            objective = dfd.objective(model, data, loss)
            rows.append(seconds(lambda x=x, loss=loss: plain[loss](x, **theta)))
            compressed.append(seconds(lambda o=objective: o(vector)))
        for times, style, kind in ((rows, "o--", "rows"), (compressed, "o-", "distinct ratios")):
            axes.loglog(sizes[loss], times, style, color=colour, label=f"{loss.upper()}, {kind}")
            what = f"exponent of time in n, {loss.upper()} over {kind}"
            remark = "the data are compressed once, when they are read; what grows is the number of distinct values"
            if (loss, kind) in expected:
                remark = "the paper's claim is linear" if loss == "dfd" else "the paper's claim is quadratic"
            numbers.append(Number(what, exponent(sizes[loss], times), expected.get((loss, kind)), None, remark))
    clean(axes, "n", "seconds for one evaluation", legend=8)
    text = (
        "Evaluated row by row, the divergence costs time linear in n and the Stein discrepancy quadratic, as in the "
        "paper. On distinct ratios with weights, as the library evaluates them, neither depends on n. (Times of this "
        "machine; exponents, not seconds, are the result. At the smallest n the overhead of a call flattens the "
        "slope.)"
    )
    return Finding("Cost against n", "Section 4.1, second figure, right", text, {"cost": figure}, tuple(numbers))
