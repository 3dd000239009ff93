"""Kernel Stein discrepancy, pseudo-likelihood and likelihood against their definitions."""

import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import numpyro.distributions as dist
import pytest
from jax.scipy.special import gammaln
from scipy import special

import dfdbayes as dfd
import oracles
from dfdbayes.core.losses import stein_pairs as pairs
from dfdbayes.core.losses.kernels import EQUALITY, HAMMING, OVERLAP, Custom, Robust, below
from dfdbayes.core.resampling import resample
from dfdbayes.core.simulators.exact import probabilities
from dfdbayes.families.counts.normaliser import log_normaliser
from stein_kernel import stein_matrix

RNG = np.random.default_rng(4)
NETWORK = dfd.models.IsingNetwork(4, states="spins")
NETWORK_THETA = {"intercept": 0.3 * RNG.standard_normal(4), "interaction": 0.4 * RNG.standard_normal(6)}
POTTS = dfd.models.Potts(dfd.graphs.grid(2, 2), states=3)
CMP = dfd.models.ConwayMaxwellPoisson()
GRAPH = dfd.models.ConwayMaxwellPoissonGraphical(2)
GRAPH_THETA = {
    "intercept": np.array([0.8, 0.3]),
    "interaction": np.array([0.15]),
    "nu": np.array([0.7, 1.5]),
}
MIXED = dfd.Model(
    lambda t, x: t["a"] * x[0] * x[1] - gammaln(x[0] + 1.0) + t["b"] * x[1],
    dfd.Counts(1) * dfd.Binary(1),
    {"a": dist.Normal(0.0, 1.0), "b": dist.Normal(0.0, 1.0)},
)
CATEGORIES = dfd.Model(
    lambda t, x: t["a"] * jnp.where(x[0] == x[1], x[2], 0.3) + t["b"] * x[0],
    dfd.Categories(2, "012") * dfd.Binary(1),
    {"a": dist.Normal(0.0, 1.0), "b": dist.Normal(0.0, 1.0)},
)
CASES = {
    "categories": (CATEGORIES, {"a": 0.4, "b": -0.5}),
    "cmp": (CMP, {"rate": 2.0, "nu": 0.7}),
    "ising": (dfd.models.Ising(dfd.graphs.grid(2, 3)), {"temperature": 2.0}),
    "potts": (POTTS, {"temperature": 1.5}),
    "network": (NETWORK, NETWORK_THETA),
    "count graph": (GRAPH, GRAPH_THETA),
    "mixed": (MIXED, {"a": 0.4, "b": -0.5}),
}


def slow_log_mass(model, theta):
    named = {k: jnp.asarray(v) for k, v in theta.items()}
    function = jax.jit(lambda x: model.log_mass_at(named, x))
    return lambda x: float(function(jnp.asarray(x, float)))


def data_of(name, n=40):
    model, theta = CASES[name]
    return dfd.Dataset.of(dfd.simulate(model, theta, n, seed=2, sweeps=20).rows)


# -- kernel Stein discrepancy --------------------------------------------------------------------


def slow_ksd(model, theta, rows, kernel):
    """n KSD^2 as a double sum over all pairs of observations, straight from the operator."""
    log_mass, domain = slow_log_mass(model, theta), model.domain

    def ratio(x, j):
        before = oracles.decrement(domain.coordinate(j), x[j])
        return 0.0 if before is oracles.STAR else np.exp(log_mass(oracles.moved(x, j, before)) - log_mass(x))

    points = [tuple(int(v) for v in row) for row in rows]
    ups = [
        [oracles.moved(x, j, oracles.increment(domain.coordinate(j), x[j])) for j in range(domain.d)] for x in points
    ]
    ratios = [[ratio(x, j) for j in range(domain.d)] for x in points]

    def k(a, b):
        return float(kernel.between(np.array([a]), np.array([b]))[0, 0])

    total = 0.0
    for (x, xu, xr), (y, yu, yr) in itertools.product(zip(points, ups, ratios, strict=True), repeat=2):
        for j in range(domain.d):
            total += k(xu[j], yu[j]) - xr[j] * k(x, yu[j]) - yr[j] * k(xu[j], y) + xr[j] * yr[j] * k(x, y)
    return total / len(points)


KERNELS = {
    "hamming": HAMMING,
    "overlap": OVERLAP,
    "equality": EQUALITY,
    "robust": Robust(below(3.0)),
    "custom": Custom(lambda a, b: np.exp(-0.1 * np.abs(a[:, None] - b[None]).sum(-1))),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.daily("cmp-hamming", "network-overlap", "mixed-equality", "potts-robust", "count graph-custom")
def test_ksd_is_the_double_sum(name, kernel):
    model, theta = CASES[name]
    data = data_of(name, 12)
    rows = np.repeat(data.rows, data.counts.astype(int), axis=0)
    objective = dfd.objective(model, data, dfd.losses.KernelStein(KERNELS[kernel]))
    assert objective(theta) == pytest.approx(slow_ksd(model, theta, rows, KERNELS[kernel]), rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.daily("cmp", "network")
def test_weighted_ksd_is_that_of_the_resampled_data(name):
    model, theta = CASES[name]
    objective = dfd.objective(model, data_of(name), "ksd")
    for w in resample(objective, 0, 3):
        copied = np.repeat(objective.data.rows, w.astype(int), axis=0)
        assert objective(theta, weights=w) == pytest.approx(dfd.objective(model, copied, "ksd")(theta), rel=1e-10)


@pytest.mark.parametrize("name", ["ising", "potts", "network", "categories"])
def test_stein_identity(name):
    """E_p of the Stein kernel in one argument is zero for the other one fixed."""
    model, theta = CASES[name]
    points, chance = probabilities(model, theta)
    data = dfd.Dataset.of(points)
    matrix = stein_matrix(model, theta, data)
    assert (data.rows == points).all()
    assert np.abs(chance @ matrix).max() < 1e-12


@pytest.mark.parametrize("kernel", ["hamming", "overlap", "equality"])
@pytest.mark.daily("overlap")
def test_ksd_is_dominated_by_dfd(kernel):
    """KSD^2 <= DFD for kernels with k(x, x) <= 1, over random pairs of distributions on enumerable domains."""
    rng = np.random.default_rng(1)
    for domain in (dfd.Finite(1, 5), dfd.Binary(3), dfd.Finite(2, 3)):
        points = domain.points()
        for _ in range(5):
            p, q = rng.dirichlet(np.ones(len(points)), 2)
            table = jnp.asarray(np.log(p))
            keys = {tuple(x): i for i, x in enumerate(points.tolist())}
            strides = np.array([keys[tuple(np.eye(domain.d, dtype=int)[j])] for j in range(domain.d)], float)
            model = dfd.Model(
                lambda t, x, table=table, strides=strides: t["one"] * table[jnp.dot(x, strides).astype(int)],
                domain,
                {"one": dist.Normal(0.0, 1.0)},
            )
            data = dfd.Dataset.of(points, weights=q)
            squared = dfd.objective(model, data, dfd.losses.KernelStein(KERNELS[kernel]))({"one": 1.0})
            shape = [len(domain.coordinate(j).levels) for j in range(domain.d)]
            assert squared + 1e-12 >= 0
            assert squared <= dfd.divergence(p.reshape(shape), q.reshape(shape), domain) + 1e-12


def test_bernoulli_curvature_of_ksd():
    """16 with the equality kernel at one half; the paper prints 32.

    With k = 1 for equal points, n KSD^2 / n = (1/4) sum_x [(1 - r)^2 + ...]; the exact second derivative is 16.
    """
    data = dfd.Dataset.of({0: 1, 1: 1})
    loss = dfd.losses.KernelStein(EQUALITY)
    assert dfd.objective(dfd.models.Bernoulli(), data, loss).hessian([0.5])[0, 0] / 2 == pytest.approx(16, rel=1e-12)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of at most five rows, whenever there are more than six."""
    monkeypatch.setattr(pairs, "MAX_ROWS_PAIRED", 6)
    monkeypatch.setattr(pairs, "MAX_ROWS_IN_BLOCK", 5)


STEIN_CASES = ("ising", "cmp", "count graph")  # few ratios, many of them by row, and a table of ratios by row


@pytest.mark.parametrize("name", STEIN_CASES)
@pytest.mark.parametrize("in_blocks", [False, True])
@pytest.mark.daily("False-cmp", "True-count graph")
def test_what_one_more_row_adds_to_the_gradient_of_ksd(name, in_blocks, request):
    """The formula against the gradient under weights that are larger by one."""
    if in_blocks:
        request.getfixturevalue("small_blocks")
    model, theta = CASES[name]
    objective = dfd.objective(model, data_of(name), "ksd")
    found, before = objective.unit_gradients(theta), objective.gradient(theta)
    for row, line in enumerate(found):
        weights = objective.units.weights + (np.arange(len(found)) == row)
        np.testing.assert_allclose(line, objective.gradient(theta, weights=weights) - before, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kernel", ["hamming", "robust", "custom"])
@pytest.mark.parametrize("name", STEIN_CASES)
@pytest.mark.daily("ising-robust", "cmp-custom", "count graph-hamming")
def test_ksd_in_blocks_is_the_double_sum_over_their_pairs(name, kernel, small_blocks):
    model, theta = CASES[name]
    objective = dfd.objective(model, data_of(name), dfd.losses.KernelStein(KERNELS[kernel]))
    count = len(objective.data.rows)
    blocks = pairs.Blocks.of(count)
    times = np.zeros((count, count))
    for part in blocks.members:
        times[np.ix_(part, part)] = blocks.scale
    np.fill_diagonal(times, 1.0)
    assert len(blocks.members) > 1 and max(map(len, blocks.members)) <= 5 and str(count) in objective.note
    matrix = times * stein_matrix(model, theta, objective.data, KERNELS[kernel])
    for w in (objective.data.counts, *resample(objective, 0, 2)):
        assert objective(theta, weights=w) == pytest.approx(w @ matrix @ w / w.sum(), rel=1e-9)


@pytest.mark.parametrize("name", STEIN_CASES)
@pytest.mark.daily("count graph")
def test_the_mean_over_all_blocks_is_the_sum_over_all_pairs(name, monkeypatch):
    """Exactly, whatever the weights: there are ten ways to deal six rows into two blocks of three."""
    model, theta = CASES[name]
    data = dfd.Dataset.of(data_of(name).rows[:6])
    weights = np.array([3.0, 1.0, 0.0, 2.0, 0.5, 4.0])
    whole, values = dfd.objective(model, data, "ksd"), []
    for others in itertools.combinations(range(1, 6), 2):
        first = np.array([0, *others])
        dealt = pairs.Blocks((first, np.setdiff1d(np.arange(6), first)))
        with monkeypatch.context() as patch:
            patch.setattr(pairs.Blocks, "of", staticmethod(lambda count, dealt=dealt: dealt))
            values.append(dfd.objective(model, data, "ksd")(theta, weights=weights))
    assert len(values) == 10 and np.std(values) > 0
    assert np.mean(values) == pytest.approx(whole(theta, weights=weights), rel=1e-10)


@pytest.mark.slow
def test_many_rows_are_fitted_by_ksd_in_blocks_whatever_their_order(monkeypatch):
    monkeypatch.setattr(pairs, "MAX_ROWS_IN_BLOCK", 200)
    model = dfd.models.Ising(dfd.graphs.grid(1, 18))
    rows = dfd.simulate(model, {"temperature": 5.0}, 6500, seed=0, sweeps=20).rows
    with pytest.warns(dfd.errors.EstimatedLossWarning, match="random blocks of at most"):
        fit = dfd.fit(model, rows, loss="ksd", check=False, progress=False)
    (row,) = fit.summary().to_dict("records")
    assert len(fit.data.rows) > pairs.MAX_ROWS_PAIRED and "without bias" in fit.settings["loss_note"]
    assert abs(row["mean"] - 5.0) < 4.0 * row["sd"] and row["sd"] < 0.5
    again = dfd.minimise(dfd.objective(model, rows[::-1], "ksd"))
    assert again.theta == fit.minimum.theta


# -- pseudo-likelihood ---------------------------------------------------------------------------


def slow_pseudo(model, theta, rows, width=120):
    log_mass, domain = slow_log_mass(model, theta), model.domain
    total = 0.0
    for row in rows:
        x = tuple(int(v) for v in row)
        for j in range(domain.d):
            values = oracles.window(domain.coordinate(j), width)
            logs = [log_mass(oracles.moved(x, j, v)) for v in values]
            total += special.logsumexp(logs) - log_mass(x)
    return total


@pytest.mark.parametrize("name", CASES)
@pytest.mark.daily("cmp", "categories", "mixed")
def test_pseudo_likelihood_is_the_product_of_conditionals(name):
    model, theta = CASES[name]
    data = data_of(name, 8)
    rows = np.repeat(data.rows, data.counts.astype(int), axis=0)
    assert dfd.objective(model, data, "pseudo")(theta) == pytest.approx(slow_pseudo(model, theta, rows), rel=1e-10)


@pytest.mark.parametrize("loss", ["pseudo", "likelihood", "ksd"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.daily("cmp-*", "network-pseudo")
def test_gradients(name, loss):
    model, theta = CASES[name]
    if loss == "likelihood" and name in ("count graph", "mixed"):
        with pytest.raises(dfd.errors.ModelError, match="need no such sum"):
            dfd.objective(model, data_of(name), loss)(theta)
        return
    objective = dfd.objective(model, data_of(name), loss)
    flat = np.asarray(model.space.flatten(theta))
    np.testing.assert_allclose(
        objective.gradient(flat), oracles.finite_difference(objective, flat), rtol=2e-6, atol=2e-6
    )
    for i in range(len(flat)):
        row = oracles.finite_difference(lambda t, i=i: objective.gradient(t)[i], flat)
        np.testing.assert_allclose(objective.hessian(flat)[i], row, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["ising", "potts", "network"])
@pytest.mark.daily("network")
def test_the_score_of_the_pseudo_likelihood_has_mean_zero(name):
    model, theta = CASES[name]
    points, chance = probabilities(model, theta)
    objective = dfd.objective(model, dfd.Dataset.of(points, weights=chance), "pseudo")
    assert np.abs(objective.gradient(theta)).max() < 1e-12


@pytest.mark.parametrize("name", ["ising", "potts", "network"])
@pytest.mark.daily("network")
def test_the_score_of_the_likelihood_has_mean_zero(name):
    model, theta = CASES[name]
    points, chance = probabilities(model, theta)
    objective = dfd.objective(model, dfd.Dataset.of(points, weights=chance), "likelihood")
    assert np.abs(objective.gradient(theta)).max() < 1e-12


def test_pseudo_likelihood_is_the_likelihood_for_one_coordinate_and_for_independent_ones():
    for model, x, theta in [
        (dfd.models.Bernoulli(), [0, 1, 1], {"probability": 0.3}),
        (dfd.models.Poisson(), [0, 3, 1], {"rate": 2.0}),
        (CMP, [0, 3, 1, 7], {"rate": 2.0, "nu": 0.7}),
        (
            dfd.models.PoissonGraphical(dfd.graphs.empty(2)),
            [[0, 3], [2, 1]],
            {"intercept": np.array([0.3, 1.0])},
        ),
        (
            dfd.models.ConwayMaxwellPoissonGraphical(dfd.graphs.empty(2)),
            [[0, 3], [2, 1]],
            {"intercept": np.array([0.3, 1.0]), "nu": np.array([0.5, 1.5])},
        ),
    ]:
        values = [dfd.objective(model, x, loss)(theta) for loss in ("pseudo", "likelihood")]
        assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_likelihoods_are_those_of_known_distributions():
    from scipy import stats

    x = np.array([0, 2, 5, 1, 3])
    expected = -stats.poisson(2.5).logpmf(x).sum()
    assert dfd.objective(dfd.models.Poisson(), x, "likelihood")(2.5) == pytest.approx(expected, rel=1e-12)
    value = dfd.objective(CMP, x, "likelihood")({"rate": 2.5, "nu": 1.0})
    assert value == pytest.approx(expected, rel=1e-12)
    bits = np.array([0, 1, 1, 1])
    value = dfd.objective(dfd.models.Bernoulli(), bits, "likelihood")(0.3)
    assert value == pytest.approx(-stats.bernoulli(0.3).logpmf(bits).sum(), rel=1e-12)


def test_likelihood_by_enumeration():
    model, theta = CASES["network"]
    points, chance = probabilities(model, theta)
    data = data_of("network")
    index = {tuple(p): i for i, p in enumerate(points.tolist())}
    expected = -sum(c * np.log(chance[index[tuple(r)]]) for r, c in zip(data.rows.tolist(), data.counts, strict=True))
    assert dfd.objective(model, data, "likelihood")(theta) == pytest.approx(expected, rel=1e-12)


# -- the Conway-Maxwell-Poisson constant -----------------------------------------------------------


def reference_constant(rate, power, terms=10**6):
    """The sum in 40 digits, up to 10^6 terms or until nothing more is added."""
    with mpmath.workdps(40):
        total, term, rate, power = mpmath.mpf(0), mpmath.mpf(1), mpmath.mpf(rate), mpmath.mpf(power)
        for x in range(terms):
            total += term
            term *= rate / mpmath.mpf(x + 1) ** power
            if term < total * mpmath.mpf(10) ** -30 and rate < mpmath.mpf(x + 2) ** power:
                return total
        raise AssertionError("10^6 terms do not suffice")


@pytest.mark.parametrize(
    ("rate", "power"),
    [(4.0, 0.75), (0.98, 0.13), (0.9, 0.01), (1.02, 0.01), (1.04, 0.01), (20.0, 30.0), (1e9, 30.0), (390.0, 1.0),
     (420.0, 1.0), (1e5, 2.0), (0.5, 0.0), (1e-8, 3.0), (3.0, 0.2)],
)  # fmt: skip
def test_the_constant_to_twelve_digits(rate, power):
    with mpmath.workdps(40):
        exact = reference_constant(rate, power)
        found = mpmath.exp(mpmath.mpf(float(log_normaliser(jnp.log(rate), power))))
        assert abs(found / exact - 1) < 2e-12


def test_the_constant_where_no_sum_can_reach():
    """rate 1000, nu 0.2: the mode is 10^15, so 10^6 terms (or 10^12) say nothing.

    The reference is the asymptotic expansion in 40 digits, with its relative remainder of order 10^-28.
    """
    with mpmath.workdps(40):
        nu, mode = mpmath.mpf("0.2"), mpmath.mpf(1000) ** 5
        t = nu * mode
        exact = (
            t - (nu - 1) / (2 * nu) * mpmath.log(1000) - (nu - 1) / 2 * mpmath.log(2 * mpmath.pi)
            - mpmath.log(nu) / 2 + mpmath.log(1 + (nu**2 - 1) / 24 / t)
        )  # fmt: skip
        found = float(log_normaliser(jnp.log(1000.0), 0.2))
        assert abs(mpmath.mpf(found) / exact - 1) < 1e-13


@pytest.mark.slow
def test_the_constant_is_never_nan():
    rng = np.random.default_rng(0)
    eta, nu = rng.uniform(-20, 10, 300), np.exp(rng.uniform(-4, 4, 300))
    values = np.asarray(log_normaliser(eta, nu))
    assert np.isfinite(values).all()
    gradient = jax.vmap(jax.grad(log_normaliser, argnums=(0, 1)))(jnp.asarray(eta), jnp.asarray(nu))
    assert not any(np.isnan(g).any() for g in gradient)
    assert np.isinf(float(log_normaliser(jnp.log(1.5), 0.0)))  # that sum is infinite
