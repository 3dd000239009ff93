"""Values, gradients and Hessians of the losses against their definitions."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax.scipy.special import gammaln
from scipy import special

import dfdbayes as dfd
import oracles
from dfdbayes.core.resampling import resample

COUNTS = np.array([0, 0, 1, 2, 2, 3, 5, 5, 5, 8, 13, 1, 0, 2, 4])
BITS = np.array([0, 1, 1, 0, 1, 1, 1])


def general(model):
    """The same model without its exponential-family structure: ratios by differences of the log mass."""
    return dfd.Model(model.log_mass_at, model.domain, model.space.parameters)


def pairs_family():
    """A user's exponential family on a mixed domain, with eta not the identity."""
    return dfd.ExponentialFamily(
        T=lambda x: jnp.stack([x[0], x[0] * x[1], -gammaln(x[0] + 1.0)]),
        b=lambda x: -0.1 * x[0] - 0.3 * x[1],
        eta=lambda t: jnp.stack([jnp.log(t["rate"]), t["link"], t["rate"] / (1.0 + t["rate"])]),
        domain=dfd.Counts(1) * dfd.Binary(1),
        parameters={"rate": dist.Gamma(2.0, 1.0), "link": dist.Normal(0.0, 1.0)},
    )


def colours_family(differences=None):
    """Unordered columns of three and of four labels, and a yes/no column."""

    def T(x):
        alike = jnp.where(x[0] == x[1], 1.0, 0.0)
        return jnp.stack([alike, x[2] * jnp.where(x[1] == 2.0, 1.0, 0.0), jnp.where(x[0] == 1.0, x[2] - 0.3, 0.0)])

    return dfd.ExponentialFamily(
        T=T,
        b=lambda x: -0.2 * x[0] * x[1],
        eta=lambda t: jnp.stack([t["alike"], t["blue"], jnp.exp(t["red"])]),
        domain=dfd.Categories(1, "012") * dfd.Categories(1, "0123") * dfd.Binary(1),
        parameters={name: dist.Normal(0.0, 1.0) for name in ("alike", "blue", "red")},
        differences=differences,
    )


def slow_differences(rows, moved):
    """What a family with a faster way gives: all coordinates moved at once."""
    family = colours_family()
    found = []
    for row, values in zip(rows, moved, strict=True):
        for j in range(len(row)):
            x, there = row.astype(float), row.astype(float)
            there[j] = values[j]
            found.append([*(family.T(there) - family.T(x)), family.b(there) - family.b(x)])
    found = np.array(found).reshape(*rows.shape, -1)
    return found[..., :-1], found[..., -1]


COLOURS = np.array([[0, 0, 1], [1, 3, 0], [2, 2, 1], [2, 0, 0], [0, 0, 1], [1, 2, 1], [0, 1, 0], [1, 1, 1]])
CASES = {
    "bernoulli": (dfd.models.Bernoulli(), BITS, {"probability": 0.3}),
    "poisson": (dfd.models.Poisson(), COUNTS, {"rate": 2.7}),
    "cmp": (dfd.models.ConwayMaxwellPoisson(), COUNTS, {"rate": 1.9, "nu": 0.6}),
    "mixed": (
        pairs_family(),
        np.stack([COUNTS, np.resize(BITS, len(COUNTS))], 1),
        {"rate": 1.4, "link": -0.3},
    ),
    "categories": (colours_family(), COLOURS, {"alike": 0.8, "blue": -0.4, "red": 0.2}),
    "categories, all moved at once": (
        colours_family(slow_differences),
        COLOURS,
        {"alike": 0.8, "blue": -0.4, "red": 0.2},
    ),
    "potts of categories": (
        replace(dfd.models.Potts(dfd.graphs.grid(2, 2), states=3), domain=dfd.Categories(4, "012")),
        np.random.default_rng(0).integers(0, 3, (20, 4)),
        {"temperature": 1.3},
    ),
}
SLOW = {"dfd": oracles.fisher_loss, "ratio": oracles.ratio_loss}


@pytest.mark.parametrize("loss", SLOW)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.daily("bernoulli-*", "cmp-*", "categories-ratio")
def test_both_paths_equal_the_definition(name, loss):
    model, data, theta = CASES[name]
    objective = dfd.objective(model, data, loss)
    slow = SLOW[loss](
        lambda x: float(model.log_mass_at({k: jnp.asarray(v) for k, v in theta.items()}, jnp.asarray(x, float))),
        objective.data.rows,
        objective.data.counts,
        model.domain,
    )
    assert objective(theta) == pytest.approx(slow, rel=1e-10)
    assert dfd.objective(general(model), data, loss)(theta) == pytest.approx(slow, rel=1e-10)


@pytest.mark.parametrize("loss", SLOW)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.daily("cmp-dfd", "mixed-ratio", "potts of categories-ratio")
def test_derivatives(name, loss):
    model, data, theta = CASES[name]
    fast, slow = dfd.objective(model, data, loss), dfd.objective(general(model), data, loss)
    flat = np.asarray(model.space.flatten(theta))
    np.testing.assert_allclose(fast.gradient(flat), slow.gradient(flat), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(fast.hessian(flat), slow.hessian(flat), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(fast.gradient(flat), oracles.finite_difference(fast, flat), rtol=1e-6, atol=1e-6)
    for i in range(len(flat)):
        row = oracles.finite_difference(lambda t, i=i: fast.gradient(t)[i], flat)
        np.testing.assert_allclose(fast.hessian(flat)[i], row, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.daily("cmp", "categories")
def test_weights_are_repetitions(name):
    """The loss of a resample, row by row, is the loss of its weights."""
    model, data, theta = CASES[name]
    objective = dfd.objective(model, data)
    weights = resample(objective, 1, 3)
    for w in weights:
        copied = np.repeat(objective.data.rows, w.astype(int), axis=0)
        assert objective(theta, weights=w) == pytest.approx(dfd.objective(model, copied)(theta), rel=1e-12)


def test_worked_formula_bernoulli():
    theta = 0.3
    flips = (theta ** (1 - BITS) * (1 - theta) ** BITS) / (theta**BITS * (1 - theta) ** (1 - BITS))
    expected = np.sum(flips**2 - 2 / flips)
    assert dfd.objective(dfd.models.Bernoulli(), BITS)([theta]) == pytest.approx(expected, rel=1e-12)


def test_worked_formula_poisson():
    theta = 2.7
    expected = np.sum((COUNTS / theta) ** 2 - 2 * (COUNTS + 1) / theta)
    assert dfd.objective(dfd.models.Poisson(), COUNTS)(theta) == pytest.approx(expected, rel=1e-12)


def test_worked_formula_conway_maxwell_poisson():
    t1, t2 = 1.9, 0.6
    objective = dfd.objective(dfd.models.ConwayMaxwellPoisson(), COUNTS)
    expected = np.sum((COUNTS**t2 / t1) ** 2 - 2 * (COUNTS + 1) ** t2 / t1)
    assert objective({"rate": t1, "nu": t2}) == pytest.approx(expected, rel=1e-12)
    # the gradient of the ratios, with factors of two that the paper's display of the square leaves out
    x = COUNTS.astype(float)
    log_x = np.log(np.maximum(x, 1))
    by_t1 = -2 * x ** (2 * t2) / t1**3 + 2 * (x + 1) ** t2 / t1**2
    by_t2 = 2 * x ** (2 * t2) * log_x / t1**2 - 2 * (x + 1) ** t2 * np.log(x + 1) / t1
    np.testing.assert_allclose(objective.gradient([t1, t2]), [by_t1.sum(), by_t2.sum()], rtol=1e-10)


def test_worked_formula_exponential_family():
    """Appendix E.2: gradient and Hessian with eta(theta) = theta, here the CMP model in natural coordinates."""
    family = dfd.ExponentialFamily(
        T=lambda x: jnp.stack([x[0], -gammaln(x[0] + 1.0)]),
        b=None,
        eta=lambda t: t["eta"],
        domain=dfd.Counts(1),
        parameters={"eta": dist.Normal(jnp.zeros(2), 1.0)},
    )
    objective, eta = dfd.objective(family, COUNTS), np.array([0.7, 0.8])
    gradient, hessian = np.zeros(2), np.zeros((2, 2))
    for x in COUNTS:

        def T(v):
            return np.array([v, -special.gammaln(v + 1.0)])

        plus = T(x) - T(x + 1)
        up = np.exp(eta @ plus)
        gradient -= 2 * plus * up
        hessian -= 2 * np.outer(plus, plus) * up
        if x > 0:
            minus = T(x - 1) - T(x)
            down = np.exp(eta @ minus) ** 2
            gradient += 2 * minus * down
            hessian += 4 * np.outer(minus, minus) * down
    np.testing.assert_allclose(objective.gradient({"eta": eta}), gradient, rtol=1e-10)
    np.testing.assert_allclose(objective.hessian({"eta": eta}), hessian, rtol=1e-10)


def test_bernoulli_curvatures_at_one_half():
    """4 for the negative log-likelihood, 32 for DFD; the paper prints 96.

    The paper's sum is 2 rho_- rho_-'' + 2 (rho_-')^2 - 2 rho_+'' = 32 + 32 -+ 32. It takes
    rho_+'' = -16 (1 - 2x)^2, which gives 96; but rho_+ = 1 / rho_- has rho_+'' = +16, which gives 32.
    """
    data = dfd.Dataset.of({0: 1, 1: 1})
    assert dfd.objective(dfd.models.Bernoulli(), data).hessian([0.5])[0, 0] / 2 == pytest.approx(32, rel=1e-12)

    def likelihood(t):
        return -(jnp.log(t) + jnp.log1p(-t)) / 2

    assert float(jax.grad(jax.grad(likelihood))(0.5)) == pytest.approx(4, rel=1e-12)

    def down(t, x):
        return t ** (1 - 2 * x) * (1 - t) ** (2 * x - 1)

    def up(t, x):
        return t ** (2 * x - 1) * (1 - t) ** (1 - 2 * x)

    second = {f: [float(jax.grad(jax.grad(f))(0.5, x)) for x in (0.0, 1.0)] for f in (down, up)}
    assert second[up] == pytest.approx([16.0, 16.0])  # not -16: the sign the paper has wrong
    first = [float(jax.grad(down)(0.5, x)) for x in (0.0, 1.0)]
    terms = [2 * s + 2 * f**2 for s, f in zip(second[down], first, strict=True)]
    assert np.mean(np.array(terms) - 2 * np.array(second[up])) == pytest.approx(32)
    assert np.mean(np.array(terms) - 2 * np.array([-16.0, -16.0])) == pytest.approx(96)


def test_ratio_terms_stay_between_minus_one_and_one():
    objective = dfd.objective(dfd.models.ConwayMaxwellPoisson(), COUNTS, "ratio")
    rng = np.random.default_rng(0)
    for theta in np.exp(rng.uniform(-30, 30, (200, 2))):
        assert abs(objective(theta)) <= len(COUNTS) + 1e-9


def test_named_and_flat_parameters_are_the_same():
    objective = dfd.objective(dfd.models.ConwayMaxwellPoisson(), COUNTS)
    assert objective({"nu": 0.6, "rate": 1.9}) == objective([1.9, 0.6]) == objective(np.array([1.9, 0.6]))
    with pytest.raises(dfd.errors.ModelError, match="rate, nu"):
        objective({"rate": 1.0})
    with pytest.raises(dfd.errors.ModelError, match="2 parameters"):
        objective([1.0, 2.0, 3.0])
    with pytest.raises(dfd.errors.SettingError, match="did you mean 'dfd'"):
        dfd.objective(dfd.models.Poisson(), COUNTS, "dfdd")
