"""The curvature-adjusted loss against its definition, and what a calibrated posterior must do."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax.scipy.special import gammaln
from scipy import linalg

import dfdbayes as dfd
from dfdbayes.core.calibration import MAX_TIMES_COMMON, SHRINK, calibrate, cap, curvature
from dfdbayes.core.minimise import minimise, mode
from dfdbayes.core.posterior import posterior, where_taken

RNG = np.random.default_rng(3)
ITEMS = (RNG.random((400, 4)) < [0.3, 0.5, 0.6, 0.4]).astype(int)
COUNTS = RNG.poisson(4.0, 600)


def objective_of(name):
    model, data, loss = {
        "cmp dfd": (dfd.models.ConwayMaxwellPoisson(), COUNTS, "dfd"),
        "network pseudo": (dfd.models.IsingNetwork(4), ITEMS, "pseudo"),
        "network ratio": (dfd.models.IsingNetwork(4), ITEMS, "ratio"),
        "graph ratio": (dfd.models.PoissonGraphical(2), RNG.poisson(2.0, (300, 2)), "ratio"),
    }[name]
    return dfd.objective(model, data, loss)


# -- the slow, obvious version -------------------------------------------------------------------


def by_definition(objective):
    """Godambe information at the mode, row by row: H, J, their directions, shrunk and capped."""
    space, rows = objective.model.space, np.repeat(objective.data.rows, objective.data.counts.astype(int), axis=0)
    alone = np.eye(len(objective.data.rows))
    second = jax.jit(jax.hessian(lambda y: objective.traced(space.from_y(y))))
    prior_second = jax.jit(jax.hessian(lambda y: space.log_prior_at_y(y, space.priors)))
    slopes = jax.jit(jax.jacfwd(lambda y: space.from_y(y)))
    minimum, beta, y = minimise(objective), 1.0, None
    y = space.to_y(np.clip(minimum.vector, space.lower + 1e-3 * np.isfinite(space.lower), space.upper))
    for _ in range(4):
        y = mode(objective, beta, minimum, y)
        hessian, prior, slope = (np.asarray(of(jnp.asarray(y))) for of in (second, prior_second, slopes))
        prior = -prior
        lines = np.array([slope.T @ objective.gradient(space.from_y(y), weights) for weights in alone])
        lines = np.repeat(lines, objective.data.counts.astype(int), axis=0)
        away = lines - lines.mean(axis=0)
        squares = away.T @ away * len(rows) / (len(rows) - 1)
        ratios, vectors = linalg.eigh(squares, hessian)
        shrink = min(0.9, SHRINK * space.size / len(rows))
        ratios = (1 - shrink) * ratios + shrink * np.median(ratios)
        beta = 1 / np.median(ratios)
    many = 1.0 if objective.loss.bounded else len(rows) / (20.0 * space.size)
    weights = np.minimum(1 / ratios, MAX_TIMES_COMMON * many * beta)
    return beta, y, (hessian @ vectors * weights) @ (hessian @ vectors).T, prior


@pytest.mark.parametrize("name", ["cmp dfd", "network pseudo", "network ratio"])
@pytest.mark.daily("cmp dfd")
def test_information_is_godambes(name):
    objective = objective_of(name)
    beta, y, information, prior = by_definition(objective)
    found = curvature(objective, minimise(objective))
    assert found.beta == pytest.approx(beta, rel=2e-3)
    np.testing.assert_allclose(found.centre, y, atol=1e-3 * np.sqrt(np.diag(found.covariance)).min())
    np.testing.assert_allclose(found.information, information, rtol=5e-3, atol=5e-3 * np.diag(information).min())
    np.testing.assert_allclose(found.precision, prior, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("name", ["cmp dfd", pytest.param("network ratio", marks=pytest.mark.slow), "graph ratio"])
@pytest.mark.daily("cmp dfd")
def test_the_density_has_that_information_and_gradient(name):
    """D_c differentiated twice at its centre."""
    objective = objective_of(name)
    minimum = minimise(objective)
    weight = calibrate(objective, minimum=minimum)
    shape, space = weight.curvature, objective.model.space
    log_density, inputs, start = posterior(objective, weight, minimum)
    z = jnp.asarray(start)

    def minus_loss(z):
        return log_density(z, inputs) - space.log_prior(space.v_of_z(z), space.priors) - space.log_jacobian(z)

    y = space.y_of_z(start)
    slope = np.asarray(jax.jvp(space.y_of_z, (z,), (jnp.ones_like(z),))[1])
    gradient = -np.asarray(jax.jit(jax.grad(minus_loss))(z)) / slope
    expected = shape.pull + shape.information @ (y - shape.centre)
    width = np.sqrt(np.diag(shape.information))
    np.testing.assert_allclose(gradient / width, expected / width, atol=0.02)
    if np.allclose(slope, 1.0):
        np.testing.assert_allclose(
            -np.asarray(jax.jit(jax.hessian(minus_loss))(z)) / width / width[:, None],
            shape.information / width / width[:, None], atol=0.02,
        )  # fmt: skip
    value, first, second = log_density.second_order(start, inputs)
    assert value == pytest.approx(float(log_density(z, inputs)), rel=1e-12)
    scale = np.abs(np.diag(second))
    np.testing.assert_allclose(first, jax.jit(jax.grad(log_density))(z, inputs), atol=1e-8 * np.sqrt(scale).max())
    np.testing.assert_allclose(second, jax.jit(jax.hessian(log_density))(z, inputs), atol=1e-8 * scale.max())


def test_one_weight_for_all_is_the_papers_posterior():
    objective = objective_of("cmp dfd")
    minimum = minimise(objective)
    log_density, inputs, start = posterior(objective, 0.7, minimum)
    space = objective.model.space
    theta = space.from_z(start)
    prior = float(space.log_prior(jnp.asarray(theta), space.priors) + space.log_jacobian(jnp.asarray(start)))
    assert float(log_density(jnp.asarray(start), inputs)) == pytest.approx(prior - 0.7 * objective(theta), rel=1e-12)
    np.testing.assert_array_equal(where_taken(objective, calibrate(objective, 0.7), theta), theta)


def test_fewer_parameters_may_have_a_larger_cap():
    assert cap(2) == cap(36) == MAX_TIMES_COMMON and 1.25 < cap(210) < 1.4 and cap(5000) > 1.0
    assert cap(2, 30) == MAX_TIMES_COMMON and cap(2, 400) == 10 * MAX_TIMES_COMMON


# -- what the posterior must do ------------------------------------------------------------------


def fit(*args, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dfd.fit(*args, progress=False, **settings)


def test_a_right_likelihood_is_bayes():
    """Beside a conjugate posterior: Gamma prior and Poisson counts. 2 % is five Monte-Carlo errors of an sd."""
    x = np.random.default_rng(5).poisson(3.0, 5000)
    prior = {"rate": dist.Gamma(4.0, 1.0)}
    own = fit("poisson", x, loss="likelihood", prior=prior).posterior["rate"].values
    exact = dist.Gamma(4.0 + x.sum(), 1.0 + len(x))
    assert own.mean() == pytest.approx(float(exact.mean), abs=0.1 * float(exact.variance) ** 0.5)
    assert own.std() == pytest.approx(float(exact.variance) ** 0.5, rel=0.05)


def test_with_a_flat_prior_it_has_the_sandwich_covariance():
    x = dfd.simulate(dfd.models.ConwayMaxwellPoisson(), {"rate": 4.0, "nu": 1.25}, 20_000, seed=1).rows
    flat = {"rate": dist.LogNormal(0.0, 100.0), "nu": dist.Uniform(0.0, 1000.0)}
    found = fit("cmp", x, loss="ratio", prior=flat)
    objective = dfd.objective(found.model, x, "ratio")
    hessian, (_, _, squares) = objective.hessian(found.minimum.vector), objective.moments(found.minimum.vector)
    bread = np.linalg.inv(hessian)
    wanted = np.sqrt(np.diag(bread @ squares @ bread))
    got = [found.posterior[name].values.std() for name in ("rate", "nu")]
    np.testing.assert_allclose(got, wanted, rtol=0.06)


def test_a_very_strong_prior_is_the_posterior():
    prior = {"rate": dist.LogNormal(np.log(9.0), 1e-4), "nu": dist.TruncatedNormal(2.0, 1e-4, low=0.0)}
    found = fit("cmp", COUNTS, loss="ratio", prior=prior)
    for name, value, sd in (("rate", 9.0, 9e-4), ("nu", 2.0, 1e-4)):
        draws = found.posterior[name].values
        assert draws.mean() == pytest.approx(value, abs=0.2 * sd) and draws.std() == pytest.approx(sd, rel=0.06)


def scaled(by):
    def log_mass(theta, x):
        return theta["slope"] / by * x[0] - gammaln(x[0] + 1.0)

    return dfd.Model(log_mass, dfd.Counts(1), {"slope": dist.Normal(0.0, 3.0 * by)}, start=lambda data: {"slope": by})


def test_units_of_measurement_do_not_matter():
    plain, large = (fit(scaled(by), COUNTS).posterior["slope"].values / by for by in (1.0, 1000.0))
    np.testing.assert_allclose(plain, large, rtol=1e-6)


def test_order_of_rows_and_columns_does_not_matter():
    order, columns = np.random.default_rng(0).permutation(len(ITEMS)), [2, 0, 3, 1]
    plain, moved = fit("ising-network", ITEMS), fit("ising-network", ITEMS[order])
    np.testing.assert_array_equal(plain.posterior["interaction"], moved.posterior["interaction"])
    turned = fit("ising-network", ITEMS[:, columns])
    first = dict(zip(plain.minimum.names, np.diag(plain.calibration.curvature.covariance), strict=True))
    pairs = {frozenset((f"x{columns[i] + 1}", f"x{columns[j] + 1}")) for i in range(4) for j in range(i)}
    assert len(pairs) == 6
    sds = np.sqrt(np.diag(turned.calibration.curvature.covariance))[:4]
    np.testing.assert_allclose(sds, [np.sqrt(first[f"intercept[x{c + 1}]"]) for c in columns], rtol=1e-6)


def test_order_of_categories_does_not_matter():
    model = dfd.models.Potts(dfd.graphs.grid(3, 3), states=3)
    rows = dfd.simulate(model, {"temperature": 1.5}, 200, seed=3).rows
    plain, moved = (fit(model, order[rows]).summary() for order in (np.arange(3), np.array([2, 0, 1])))
    np.testing.assert_allclose(plain["mean"], moved["mean"], rtol=1e-8)
    np.testing.assert_allclose(plain["sd"], moved["sd"], rtol=1e-8)
    items = fit("ising-network", ITEMS, draws=4000)
    turned = fit("ising-network", 1 - ITEMS, draws=4000)  # yes and no change places: an interaction stays as it is
    for name in items.posterior["interaction_entry"].values:
        one, other = (f.posterior["interaction"].sel(interaction_entry=name).values for f in (items, turned))
        assert abs(one.mean() - other.mean()) < 0.15 * one.std()  # the intercepts' priors are other ones
        assert one.std() == pytest.approx(other.std(), rel=0.06)


def test_items_that_never_meet_are_held_by_the_prior_and_named():
    """Two rare items of which no person has both: the loss falls as their interaction goes to minus infinity."""
    items = ITEMS.copy()
    items[:, :2] = 0
    items[:12, 0], items[12:24, 1] = 1, 1
    with pytest.warns(dfd.errors.DfdbayesWarning) as told:
        found = dfd.fit("ising-network", items, progress=False, check=False)
    draws = found.posterior["interaction"].sel(interaction_entry="x1,x2").values
    assert -3.5 < draws.mean() < 0 and 0.5 < draws.std() < 1.2  # the prior is N(0, 1)
    assert any("no minimum" in str(one.message) for one in told)
    influence = found.prior_influence
    assert influence.loc["interaction[x1,x2]", "from_data"] < 0.5 < influence["from_data"].max()
    ratio = fit("ising-network", items, loss="ratio")  # whose flat minimum lies far away
    assert any("interaction[x1,x2] is its prior" in text for text in ratio.warnings)


def test_a_zero_edge_is_in_its_interval():
    rows = np.random.default_rng(11).poisson(2.0, (500, 3))
    found = fit("poisson-graphical", rows)
    table = found.summary()
    edges = table.loc[[name for name in table.index if name.startswith("interaction")]]
    assert (edges["eti95_lb"] == 0.0).sum() >= 2 and (edges["eti95_ub"] < 0.2).all()
    intercepts = table.loc[[name for name in table.index if name.startswith("intercept")]]
    assert (intercepts["eti95_lb"] > 0.0).all()


def test_a_rare_item_is_not_pulled_in_silence():
    rng = np.random.default_rng(2)
    items = (rng.random((1000, 4)) < [0.05, 0.4, 0.5, 0.6]).astype(int)
    narrow = {"intercept": dist.Normal(0.0, 1.0)}
    assert any("prior moved" in text for text in fit("ising-network", items, prior=narrow).warnings)
    assert not any("prior moved" in text for text in fit("ising-network", items).warnings)


def test_a_saved_fit_keeps_its_calibration(tmp_path):
    found = fit("ising-network", ITEMS)
    again = dfd.load(found.save(tmp_path / "fit.nc"))
    np.testing.assert_array_equal(again.calibration.curvature.information, found.calibration.curvature.information)
    assert again.prior_influence.equals(found.prior_influence) and again.summary().equals(found.summary())


@pytest.mark.parametrize("loss", ["dfd", "ratio", "pseudo", "likelihood"])
@pytest.mark.parametrize("name", ["cmp", "ising-network", "poisson-graphical", "ising"])
@pytest.mark.daily("cmp-dfd", "ising-network-pseudo", "poisson-graphical-ratio", "ising-ratio")
def test_gradients_of_units_are_those_of_one_more_observation(name, loss):
    """The transpose of the weights against weights with one more of each unit."""
    rng = np.random.default_rng(1)
    if name == "cmp":
        model, rows = dfd.models.ConwayMaxwellPoisson(), rng.poisson(3.0, (40, 1))
    elif name == "poisson-graphical":
        model, rows = dfd.models.PoissonGraphical(3), rng.poisson(2.0, (40, 3))
        if loss == "likelihood":
            pytest.skip("its constant is not known")
    elif name == "ising":
        model, rows = dfd.models.Ising(dfd.graphs.grid(2, 3)), 2 * rng.integers(0, 2, (40, 6)) - 1
    else:
        model, rows = dfd.models.IsingNetwork(3), rng.integers(0, 2, (40, 3))
    objective = dfd.objective(model, rows, loss)
    theta = np.asarray(model.space.prior_quantiles([0.6])[0])
    own = objective.unit_gradients(theta)
    for unit in range(len(own)):
        more = objective.units.weights.copy()
        more[unit] += 1.0
        np.testing.assert_allclose(
            own[unit], objective.gradient(theta, more) - objective.gradient(theta), rtol=1e-8, atol=1e-8
        )


def test_more_parameters_than_observations_have_one_weight_the_mean_of_all():
    """J has rank n - 1 at most, so half of its directions would seem to be known without error."""
    model, rows = dfd.models.IsingNetwork(6), np.random.default_rng(4).integers(0, 2, (12, 6))
    objective = dfd.objective(model, rows, "pseudo")
    shape = curvature(objective, dfd.minimise(objective))
    theta = objective.space.from_y(shape.centre)
    size, total, squares = objective.moments(theta)
    about = (squares - np.outer(total, total) / size) * size / (size - 1)
    mean = np.trace(np.linalg.solve(objective.hessian(theta), about)) / objective.space.size
    assert shape.beta == pytest.approx(1 / mean, rel=2e-3)
    np.testing.assert_allclose(shape.weights, shape.beta)
    np.testing.assert_allclose(shape.information, shape.beta * objective.hessian(theta), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("loss", ["dfd", "likelihood"])
@pytest.mark.parametrize("size", [10**7, 10**10, 10**12])
@pytest.mark.daily("10000000-likelihood", "1000000000000-dfd")
def test_large_counts_are_calibrated_or_refused_in_words(size, loss):
    """As wide as the rows vary; where that is less than rounding can tell, in words."""
    settings = {"loss": loss, "sampler": "laplace", "check": False, "progress": False}
    varied, close = np.random.default_rng(0).poisson(float(size), 100), size + np.arange(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the usual prior is of counts that are smaller
        for rows in (varied, close) if size < 10**9 else (varied,):
            sd = dfd.fit("poisson", rows, **settings).summary()["sd"]["rate"]
            assert sd == pytest.approx(np.std(rows, ddof=1) / 10, rel=0.05)
        if size >= 10**9:
            with pytest.raises(dfd.errors.CalibrationError, match="from their smallest, or in larger units"):
                dfd.fit("poisson", close, **settings)
