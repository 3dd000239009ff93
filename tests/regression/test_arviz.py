"""What `to_arviz` gives can be drawn by ArviZ."""

import matplotlib as mpl

mpl.use("agg")

import numpy as np


def test_an_arviz_plot_of_a_fit(quick):
    import arviz_plots

    fit = quick("poisson", np.random.default_rng(0).poisson(3.0, 100))
    drawn = arviz_plots.plot_dist(fit.to_arviz(), backend="matplotlib")
    assert "rate" in drawn.viz["plot"].data_vars
