"""Conway-Maxwell-Poisson by the mean: the rate, the constant and their derivatives against slow sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special

from dfdbayes.inference.objective import second_order
from dfdbayes.models.mean_form import NODES, interpolated, log_rate_of_mean, of_mean


def slow_mean(log_rate, nu, terms=4000):
    x = np.arange(terms)
    log = log_rate * x - nu * special.gammaln(x + 1)
    mass = np.exp(log - log.max())
    return mass @ x / mass.sum()


@pytest.mark.parametrize("nu", [0.05, 0.3, 1.0, 2.5])
def test_the_rate_gives_the_mean(nu):
    log_mean = np.linspace(-4.0, 4.0, 9)
    found = np.asarray(log_rate_of_mean(jnp.asarray(log_mean), jnp.full(9, nu)))
    top = -1e-9 if nu == 0.0 else 60.0
    slow = [
        optimize.brentq(lambda e, m=m: np.log(slow_mean(e, nu)) - m, -40.0, min(top, nu * np.log(3000.0)), xtol=1e-13)
        for m in log_mean
    ]
    np.testing.assert_allclose(found, slow, rtol=1e-8, atol=1e-9)


def test_derivatives_are_those_of_finite_differences():
    def of(point):
        rate, constant = of_mean(point[0] + 0.3 * jnp.arange(5.0), jnp.exp(point[1]))
        return jnp.sum(rate * jnp.arange(5.0)) + jnp.sum(constant)

    point, step = jnp.array([0.4, 0.3]), 1e-4
    _, gradient, hessian = second_order(of, point)
    for i in range(2):
        aside = step * jnp.eye(2)[i]
        slope = (of(point + aside) - of(point - aside)) / (2 * step)
        bend = (jax.grad(of)(point + aside) - jax.grad(of)(point - aside)) / (2 * step)
        np.testing.assert_allclose(gradient[i], slope, rtol=1e-6)
        np.testing.assert_allclose(hessian[i], bend, rtol=1e-5)


@pytest.mark.parametrize("nu", [0.1, 1.0, 1.8])
def test_many_rows_are_interpolated_to_many_digits(nu):
    log_mean = jnp.asarray(np.random.default_rng(0).normal(1.0, 0.8, 5 * NODES))
    every = jnp.full(log_mean.shape, nu)
    exact = log_rate_of_mean(log_mean, every)
    rate, constant = of_mean(log_mean, jnp.asarray(nu))
    np.testing.assert_allclose(rate, exact, atol=2e-8)
    slow = [special.logsumexp(e * np.arange(3000) - nu * special.gammaln(np.arange(3000) + 1.0)) for e in exact[:20]]
    np.testing.assert_allclose(constant[:20], slow, rtol=1e-8)


def test_polynomials_of_degree_seven_are_interpolated_exactly():
    at = jnp.asarray(np.random.default_rng(1).uniform(-1.0, 2.0, 200))
    found = interpolated(lambda x: jnp.stack([x**7 - x**2, x**3], axis=1), at)
    np.testing.assert_allclose(found[:, 0], at**7 - at**2, atol=1e-10)
    np.testing.assert_allclose(found[:, 1], at**3, atol=1e-11)
