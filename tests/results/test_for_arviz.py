"""What `to_arviz` gives can be drawn and judged by ArviZ."""

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

PLOTS = (
    "plot_dist", "plot_forest", "plot_trace", "plot_ess", "plot_autocorr", "plot_prior_posterior", "plot_ppc_rootogram",
    "plot_ppc_pit", "plot_ppc_tstat",
)  # fmt: skip


@pytest.fixture(scope="module")
def fit():
    import numpyro.distributions as dist

    import dfdbayes as dfd

    frame = pd.DataFrame({"visits": np.random.default_rng(0).poisson(3.0, 100)})
    return dfd.fit("poisson", frame, prior={"rate": dist.Gamma(2.0, 0.5)}, progress=False)


@pytest.fixture(scope="module")
def tree(fit):
    return fit.to_arviz(replicates=40)


@pytest.mark.parametrize("name", PLOTS)
def test_nine_plots(tree, name):
    import arviz_plots

    drawn = getattr(arviz_plots, name)(tree, backend="matplotlib")
    assert drawn is not None
    plt.close("all")


def test_every_observation_has_its_log_likelihood(fit, tree):
    rates, rows = fit.posterior["rate"].values, tree["observed_data"]["visits"].values
    assert sorted(rows) == sorted(np.repeat(fit.data.rows[:, 0], fit.data.counts.astype(int)))
    wanted = stats.poisson.logpmf(rows, rates[..., None])
    np.testing.assert_allclose(tree["log_likelihood"]["visits"].values, wanted, atol=1e-10)


def test_leave_one_out(tree):
    from arviz_stats import loo

    found = loo(tree)
    assert 0.5 < found.p < 1.5  # one parameter
    assert found.elpd < tree["log_likelihood"]["visits"].mean(("chain", "draw")).sum() + 1


def test_replicates_look_like_the_data(tree):
    predicted = tree["posterior_predictive"]["visits"].mean("observation")
    assert predicted.shape == (1, 40) and abs(float(predicted.mean()) - 3.0) < 0.5
    assert {"prior", "prior_predictive"} <= set(tree.children)


def test_a_network_and_a_regression_have_them_too(quick):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.integers(0, 2, (60, 3)), columns=list("abc"))
    found = quick("ising-network", frame).to_arviz(replicates=5)
    assert found["posterior_predictive"]["b"].shape == (1, 5, 60)
    assert found["log_likelihood"]["rows"].shape[2] == 60
    frame = pd.DataFrame({"visits": rng.poisson(2.0, 60), "age": rng.normal(size=60)})
    found = quick("poisson", frame, formula="visits ~ age").to_arviz(replicates=5)
    assert found["posterior_predictive"]["visits"].shape[1:] == (5, 60) and "log_likelihood" in found.children
