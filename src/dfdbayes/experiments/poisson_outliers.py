"""One in ten counts replaced by 20: what that does to each posterior."""

import dfdbayes as dfd

from .base import Finding, Settings, contaminated


def run(settings: Settings) -> Finding:
    model = dfd.models.Poisson()
    x = dfd.simulate(model, {"rate": 5.0}, 500, seed=0).rows
    figure, numbers = contaminated(model, x, 20, 15, "likelihood", settings, bootstrap=settings.bootstrap)
    text = (
        "As in the paper: the divergence is pulled further by outliers than the likelihood, because it is quadratic "
        "in each count, and the robust kernel is hardly pulled at all. Nor is the divergence with weights of rows "
        "that are chosen from the data, which the paper asks for in its last paragraph, and whose cost is linear."
    )
    return Finding("Outliers in Poisson counts", "Appendix A.3", text, {"posteriors": figure}, numbers)
