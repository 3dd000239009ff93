"""A number that means nothing is not reported without saying so."""

import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes.core import graphs
from dfdbayes.results.goodness_of_fit import goodness_of_fit
from dfdbayes.results.predictive import replicate


@pytest.mark.parametrize("width", [1e2, 1e4, 1e6])
def test_wide_uniform_priors(width, quick):
    rows = np.random.default_rng(1).poisson(3.0, 400)
    fit = quick("poisson", rows, prior={"rate": dist.Uniform(0.0, width)})
    assert fit.summary()["mean"].iloc[0] == pytest.approx(rows.mean(), abs=0.4)
    assert fit.minimum.theta["rate"] == pytest.approx(quick("poisson", rows).minimum.theta["rate"], rel=1e-6)


def test_a_posterior_is_not_wider_than_its_prior(quick):
    """The estimator's width is the loss's; a prior that is narrower decides, and is said to."""
    rows = np.random.default_rng(0).poisson(3.0, 40)
    centre = float(rows.mean())
    for scale, decides in ((0.01, True), (30.0, False)):
        fit = quick("poisson", rows, loss="ratio", prior={"rate": dist.Normal(centre, scale)}, draws=500)
        assert fit.summary()["sd"].iloc[0] < 1.05 * scale
        assert decides == any("the posterior of rate is its prior" in text for text in fit.warnings)


def test_a_constant_column_is_named(quick):
    rows = np.random.default_rng(0).integers(0, 2, size=(200, 3))
    rows[:, 1] = 0
    fit = quick("ising-network", pd.DataFrame(rows, columns=["a", "b", "c"]), loss="pseudo", beta=1.0)
    assert any(text.startswith("b has the same value in every row") for text in fit.warnings)


def test_a_site_that_never_varies_is_none_of_a_lattices_problems(quick):
    model = dfd.models.Ising(dfd.graphs.grid(3, 3))
    rows = dfd.simulate(model, {"temperature": 3.0}, 200, seed=0).rows.copy()
    rows[:, 0] = 1
    fit = quick(model, rows, loss="pseudo", beta=1.0)
    assert not any("same value in every row" in text for text in fit.warnings)


def test_widths_do_not_depend_on_the_bootstrap(quick):
    """With nearly as many parameters as bootstrap fits every sd is about the bootstrap's, and no factor on top."""
    rows = np.random.default_rng(0).integers(0, 2, size=(1000, 8))
    fit = quick("ising-network", rows, loss="pseudo", draws=2000)
    objective = dfd.objective(fit.model, rows, "pseudo")
    spread = dfd.bootstrap(objective, fit.minimum, 45).minima.vectors.std(axis=0, ddof=1)
    draws = np.concatenate([fit.posterior[n].values.reshape(8000, -1) for n in ("intercept", "interaction")], axis=1)
    assert np.median(draws.std(axis=0) / spread) == pytest.approx(1.0, abs=0.08)


def test_a_mean_that_overflows_is_replaced_by_a_median(quick):
    kicks = {0: 109, 1: 65, 2: 22, 3: 3, 4: 1}  # von Bortkiewicz (1898)
    # a weight so small that some draws are next to nu = 0, whatever the seed
    fit = quick("cmp", kicks, sampler="nuts", loss="dfd", draws=1000, warmup=200, prior="paper", beta=0.005)
    table = fit.summary()
    assert np.isnan(table.loc["mean", "mean"]) and table.loc["mean", "median"] < 10
    assert any("no usable posterior mean" in text for text in fit.warnings)
    assert fit.describe()["parameters"]["mean"]["mean"] is None


def test_a_posterior_that_is_the_prior_says_so(quick):
    image = np.random.default_rng(3).choice([-1, 1], size=(1, 400), p=[0.2, 0.8])
    model = dfd.models.Ising(graphs.grid(20, 20), intercept=True)
    fit = quick(model, image, beta=1e-8, loss="dfd", draws=2000)
    assert any("is its prior" in text for text in fit.warnings)
    sound = quick("poisson", np.random.default_rng(1).poisson(3.0, 400))
    assert not any("prior" in text for text in sound.warnings)


def test_replicates_are_compared_with_as_many_observations():
    """Under the model the tails are uniform, also where replicates are smaller than the data."""
    model, inside = dfd.models.Poisson(), 0
    for seed in range(60):
        data = dfd.Dataset.of(dfd.simulate(model, {"rate": 3.0}, 5000, seed=seed).rows)
        checked = replicate(model, np.full((50, 1), 3.0), data, draws=50, size=100, seed=seed)
        inside += 0.1 < checked.checks()["dispersion_index_tail"].iloc[0] < 0.9
    assert 36 <= inside <= 58  # binomial(60, 0.8): false alarm below 1e-3
    whole = replicate(model, np.full((20, 1), 3.0), data, draws=20)
    assert whole.replicates.shape[1] == 5000  # all of it, where that is cheap


def test_the_test_of_fit_does_not_depend_on_other_settings(quick):
    fit = quick("poisson", np.random.default_rng(1).poisson(3.0, 4000))
    values = {fit.replicate(draws=d, size=s, seed=k).p_value for d, s, k in ((10, 50, 0), (20, 80, 1), (30, None, 2))}
    assert len(values) == 1
    assert 0 < fit.replicate(draws=10).goodness.error < 0.02


def test_the_test_of_fit_sees_what_chi_squared_sees(quick):
    """Boys in 6115 Saxon families of twelve (vcd): not Poisson, as anybody can see; and its level is right."""
    saxony = dict(enumerate([3, 24, 104, 286, 670, 1033, 1343, 1112, 829, 478, 181, 45, 7]))
    fit = quick("poisson", saxony, loss="likelihood", draws=300)
    assert fit.replicate(draws=10).p_value < 0.002 and fit.replicate(draws=10).goodness.findings[0].kind == "variance"
    model, theta = dfd.models.Poisson(), np.array([3.0])
    values = [
        goodness_of_fit(model, theta, dfd.Dataset.of(dfd.simulate(model, {"rate": 3.0}, 300, seed=s).rows)).p_value
        for s in range(200)
    ]
    assert 2 <= np.sum(np.array(values) < 0.05) <= 21  # binomial(200, 0.05): false alarm below 2e-3
