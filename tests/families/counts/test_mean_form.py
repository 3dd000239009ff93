"""Conway-Maxwell-Poisson by the mean: the rate, the constant and their derivatives against slow sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special

from dfdbayes.core.terms import second_order
from dfdbayes.families.counts.mean_form import of_mean


def slow_mean(log_rate, nu, terms=4000):
    x = np.arange(terms)
    log = log_rate * x - nu * special.gammaln(x + 1)
    mass = np.exp(log - log.max())
    return mass @ x / mass.sum()


@pytest.mark.parametrize("nu", [0.05, 0.3, 1.0, 2.5, 5.0])
def test_the_rate_gives_the_mean_and_the_constant_is_the_sum(nu):
    log_mean = np.linspace(-4.0, 4.0, 9)
    rate, constant = (np.asarray(part) for part in of_mean(jnp.asarray(log_mean), jnp.asarray(nu)))
    slow = [
        optimize.brentq(lambda e, m=m: np.log(slow_mean(e, nu)) - m, -40.0, min(60.0, nu * np.log(3000.0)), xtol=1e-13)
        for m in log_mean
    ]
    np.testing.assert_allclose(rate, slow, rtol=1e-7, atol=1e-8)
    x = np.arange(4000)
    total = [special.logsumexp(e * x - nu * special.gammaln(x + 1.0)) for e in slow]
    np.testing.assert_allclose(constant, total, rtol=1e-7, atol=1e-8)


def test_a_nu_for_every_row_is_as_good_as_one_for_all():
    rng = np.random.default_rng(0)
    log_mean, nu = jnp.asarray(rng.normal(1.0, 0.8, 50)), jnp.asarray(np.exp(rng.normal(0.0, 0.7, 50)))
    together = of_mean(log_mean, nu)
    alone = [of_mean(log_mean[i : i + 1], nu[i]) for i in range(50)]
    for k in range(2):
        np.testing.assert_allclose(together[k], [float(one[k][0]) for one in alone], rtol=1e-9, atol=1e-9)


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
