"""One lattice in ten replaced by all ones."""

import dfdbayes as dfd

from .base import Finding, Settings, contaminated


def run(settings: Settings) -> Finding:
    model = dfd.models.Ising(dfd.graphs.grid(10, 10))
    x = dfd.simulate(model, {"temperature": 5.0}, 1000, seed=0, method="swendsen-wang").rows
    figure, numbers = contaminated(model, x, 1, 90, "pseudo", settings, bootstrap=100)
    text = (
        "As in the paper, pseudo-likelihood and divergence are pulled to lower temperatures (stronger interaction) by "
        "lattices of ones, and the kernel that ignores rows with a sum near 90 or more is not; nor is the divergence "
        "with weights of rows that are chosen from the data."
    )
    return Finding("Outliers on a lattice", "Appendix D.4", text, {"posteriors": figure}, numbers)
