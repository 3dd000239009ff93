"""Statements about the models of the paper: the right graph, the gene data, mixtures, one lattice, goodness of fit."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dfdbayes as dfd
from dfdbayes.results.goodness_of_fit import goodness_of_fit
from stein_kernel import stein_matrix


def test_the_wrong_lattice_biases_the_temperature():
    """Data from a 3 x 3 torus fitted on an open grid: temperature about 4.4 to 4.5 instead of 5; the torus gives 5."""
    torus, grid = (dfd.models.Ising(dfd.graphs.grid(3, 3, periodic=p)) for p in (True, False))
    rows = dfd.simulate(torus, {"temperature": 5.0}, 20_000, seed=0).rows
    wrong = dfd.minimise(dfd.objective(grid, rows)).theta["temperature"]
    right = dfd.minimise(dfd.objective(torus, rows)).theta["temperature"]
    assert 4.3 < wrong < 4.6
    assert abs(right - 5.0) < 0.15


@pytest.mark.parametrize(
    ("model", "zeros"),
    [(dfd.models.PoissonGraphical(10), 37), (dfd.models.ConwayMaxwellPoissonGraphical(10), 41)],
    ids=["poisson", "cmp"],
)
def test_gene_data_have_one_basin(shared_data, model, zeros):
    """Twenty starts reach the same minimum; most of the 45 interactions are exactly zero there."""
    objective = dfd.objective(model, shared_data / "brca_10.csv")
    best = dfd.minimise(objective)
    assert best.outcome == "at the boundary"
    assert int(np.sum(best.theta["interaction"] == 0)) == zeros
    rng = np.random.default_rng(0)
    for _ in range(20):
        start = model.start(objective.data)
        start["interaction"] = np.abs(rng.normal(0.0, 0.02, 45))
        start["intercept"] = start["intercept"] + rng.normal(0.0, 0.3, 10)
        if "nu" in start:
            start["nu"] = start["nu"] * np.exp(rng.normal(0.0, 0.3, 10))
        again = dfd.minimise(objective, start=start)
        assert again.value == pytest.approx(best.value, abs=1e-6)


def test_gene_data_a_start_far_away_escapes(shared_data):
    model = dfd.models.ConwayMaxwellPoissonGraphical(10)
    objective = dfd.objective(model, shared_data / "brca_10.csv")
    start = model.start(objective.data)
    far = start | {"intercept": start["intercept"] + 30.0, "nu": start["nu"] + 12.0}
    found = dfd.minimise(objective, start=far)
    assert found.outcome == "escaped"
    assert found.value < 10 * dfd.minimise(objective).value


@pytest.mark.slow
def test_twenty_genes_have_a_posterior(shared_data, capsys):
    """210 parameters by ratio matching, no options: what the model cannot say and what the prior decides are named."""
    table = pd.read_csv(shared_data / "brca_40.csv").iloc[:, :20]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dfd.fit("poisson-graphical", table, progress=False)
    with capsys.disabled():
        print(f"\n20 genes: {sum(fit.timings['seconds'].values()):.1f} s with compilation, {fit.settings['sampler']}")
    assert fit.settings["loss"] == "ratio" and np.isfinite(fit.summary()[["mean", "sd", "eti95_ub"]].to_numpy()).all()
    assert any("that the model does not allow" in text for text in fit.warnings)  # many genes rise together
    influence = fit.prior_influence
    assert len(influence) == 210 and np.isfinite(influence.to_numpy()).all() and influence["from_data"].min() > 0.9
    predicted = fit.replicate(draws=10).checks()
    assert np.abs(predicted["predicted_mean"] / predicted["mean"] - 1).max() < 0.2


@pytest.mark.parametrize("proportion", [0.5, 0.7])
@pytest.mark.slow
def test_mixtures_far_apart_cannot_be_seen(proportion):
    """Rates 5 and 60: the loss does not depend on the proportion; rates 5 and 15: it does."""
    ranges = {}
    for rates in ((5.0, 60.0), (5.0, 15.0)):
        model = dfd.models.PoissonMixture(rates)
        rows = dfd.simulate(model, {"proportion": proportion}, 2000, seed=3).rows
        values = dfd.objective(model, rows).values(np.linspace(0.05, 0.95, 19)[:, None])
        ranges[rates] = np.ptp(values) / 2000
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            try:
                said = dfd.fit(model, rows, loss="dfd", sampler="laplace", progress=False, draws=300).warnings
            except dfd.errors.MinimiserError as problem:
                said = (str(problem),)
        flat = any("hardly depends on proportion" in text for text in said)
        assert flat == (rates == (5.0, 60.0))
        if flat and found:
            assert any(issubclass(w.category, dfd.errors.IdentificationWarning) for w in found)
    assert ranges[5.0, 60.0] < 1e-6 < 1e-2 < ranges[5.0, 15.0]


@pytest.mark.slow
def test_one_lattice_is_calibrated_by_blocks():
    """One 64 x 64 field: blocks of sites are resampled, the result says so, and its error is honest.

    The spread of the estimate over 30 simulated fields is compared with the mean of the reported posterior sd; their
    ratio's error is about 15 %, the limits are 3 of it.
    """
    model = dfd.models.Ising(dfd.graphs.grid(64, 64))
    fields = dfd.simulate(model, {"temperature": 5.0}, 30, method="swendsen-wang", seed=5).rows
    estimates, reported = [], []
    for field in fields:
        fit = dfd.fit(model, field[None], sampler="laplace", progress=False)
        estimates.append(fit.minimum.theta["temperature"])
        reported.append(fit.summary()["sd"]["temperature"])
    assert fit.settings["units"] == "64 blocks of sites of one observation"
    assert 0.55 < np.mean(reported) / np.std(estimates) < 1.45
    assert abs(np.mean(estimates) - 5.0) < 4 * np.std(estimates) / np.sqrt(30)


def test_one_observation_without_blocks_is_refused():
    with pytest.raises(dfd.errors.ModelError, match="blocks need a grid"):
        dfd.fit(dfd.models.Ising([(0, 1), (1, 2)]), np.array([[1, -1, 1]]))
    with pytest.raises(dfd.errors.ModelError, match="at least 8"):
        dfd.fit(dfd.models.Ising(dfd.graphs.grid(4, 4)), np.ones((1, 16), int))
    network, row = dfd.models.IsingNetwork(dfd.graphs.grid(8, 8)), np.random.default_rng(0).integers(2, size=(1, 64))
    with pytest.raises(dfd.errors.ModelError, match="lattice models"):
        dfd.fit(network, row)


def slow_stein(model, theta, x, y):
    """The Stein kernel of two points from the operator's definition, with the paper's kernel."""
    import jax.numpy as jnp

    import oracles

    domain = model.domain

    def kernel(a, b):
        return np.exp(-sum(s != t for s, t in zip(a, b, strict=True)) / domain.d)

    def ratio(a, j):
        before = oracles.decrement(domain.coordinate(j), a[j])
        if before is oracles.STAR:
            return 0.0
        masses = [model.log_mass_at(theta, jnp.asarray(p, float)) for p in (oracles.moved(a, j, before), a)]
        return float(np.exp(masses[0] - masses[1]))

    total = 0.0
    for j in range(domain.d):
        xp, yp = (oracles.moved(a, j, oracles.increment(domain.coordinate(j), a[j])) for a in (x, y))
        total += kernel(xp, yp) - ratio(x, j) * kernel(x, yp) - ratio(y, j) * kernel(xp, y)
        total += ratio(x, j) * ratio(y, j) * kernel(x, y)
    return total


@pytest.mark.parametrize(
    ("model", "theta"),
    [
        (dfd.models.ConwayMaxwellPoisson(), {"rate": 2.0, "nu": 0.7}),
        (dfd.models.Potts(dfd.graphs.grid(2, 2), states=3), {"temperature": 2.0}),
    ],
)
def test_stein_matrix_is_the_definition(model, theta):
    data = dfd.Dataset.of(dfd.simulate(model, theta, 30, seed=1).rows)
    matrix = stein_matrix(model, theta, data)
    rng = np.random.default_rng(0)
    for i, j in rng.integers(len(data.rows), size=(15, 2)):
        x, y = (tuple(int(v) for v in data.rows[k]) for k in (i, j))
        assert matrix[i, j] == pytest.approx(slow_stein(model, theta, x, y), rel=1e-12)


@pytest.mark.slow
def test_goodness_of_fit_has_its_level_at_estimated_parameters():
    """P-values are uniform under the model, though the parameters were estimated (Kolmogorov-Smirnov, alarm 1e-4)."""
    model = dfd.models.Poisson()
    values = []
    for seed in range(150):
        data = dfd.Dataset.of(dfd.simulate(model, {"rate": 3.0}, 200, seed=seed).rows)
        minimum = dfd.minimise(dfd.objective(model, data, "dfd"))
        values.append(goodness_of_fit(model, minimum.vector, data).p_value)
    assert stats.kstest(values, "uniform").pvalue > 1e-4


def test_predictive_checks_see_what_a_poisson_misses():
    data = dfd.datasets.sales()
    good = dfd.fit("cmp", data, progress=False).replicate(draws=50)
    bad = dfd.fit("poisson", data, progress=False).replicate(draws=50)
    assert good.method == "inversion" and good.mixing is None
    assert good.p_value > 0.05 > bad.p_value
    assert good.checks()["total_variation"]["sales"] < 0.03 < 0.15 < bad.checks()["total_variation"]["sales"]
    assert 0.02 < good.checks()["dispersion_index_tail"]["sales"] < 0.98
    table = good.marginal("sales")
    assert table["observed"].sum() == pytest.approx(1.0) and table["predicted"].sum() == pytest.approx(1.0)


def test_predictive_correlations_are_those_of_the_replicates():
    model = dfd.models.IsingNetwork(3, states="spins")
    theta = {"intercept": np.zeros(3), "interaction": np.array([0.8, 0.0, -0.5])}
    rows = dfd.simulate(model, theta, 2000).rows
    checked = dfd.fit(model, rows, progress=False, sampler="laplace").replicate(draws=40, size=2000)
    table = checked.correlations()
    np.testing.assert_allclose(table["observed"], np.corrcoef(rows.T)[np.triu_indices(3, 1)], atol=1e-12)
    np.testing.assert_allclose(
        table["predicted"].iloc[0], np.mean([np.corrcoef(r.T)[0, 1] for r in checked.replicates]), atol=1e-12
    )
    assert (np.abs(table["observed"] - table["predicted"]) < 0.06).all()
