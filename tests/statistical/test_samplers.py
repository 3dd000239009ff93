"""The default sampler against NUTS and against exact answers, on easy and on nasty posteriors."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dfdbayes as dfd
from dfdbayes.core import samplers as sampling
from dfdbayes.core.terms import second_order

Z_LIMIT = 5.0  # standard errors: a false alarm in fewer than one of 10^5 of these comparisons


class Nothing(NamedTuple):
    terms: Any = ()


@dataclass(frozen=True)
class Density:
    """A log density as samplers see one, of a function of z."""

    of: Any

    def __call__(self, z, inputs):
        return self.of(z)

    def many(self, z, inputs, at_once):
        return jax.vmap(self.of)(z)

    def second_order(self, z, inputs):
        return tuple(map(np.asarray, second_order(self.of, jnp.asarray(z))))

    def fold(self, z):
        return z

    def straighten(self, z):
        return z, np.zeros(z.shape[:-1])

    def bend(self, s):
        return s


def task_of(function, start, seed=0):
    density = Density(function)
    return sampling.Task(density, Nothing(), sampling.centre(density, Nothing(), np.asarray(start, float)), seed)


def skewed(z):
    """Sixty independent log-gamma variables, each with skewness -0.6: too many for proposals of all at once."""
    return jnp.sum(3.0 * z - 3.0 * jnp.exp(z))


@pytest.mark.slow
def test_sixty_skewed_coordinates_are_drawn_by_hamiltonian_chains_and_exactly():
    found = sampling.Auto().run(task_of(skewed, np.zeros(60)))
    assert found.sampler == "hmc"
    from scipy import stats

    exact = stats.loggamma(3.0, loc=-np.log(3.0))
    draws = found.z.reshape(-1, 60)
    error = exact.std() / np.sqrt(len(draws) / 2.0)
    assert np.abs(draws.mean(axis=0) - exact.mean()).max() < Z_LIMIT * error
    ranks = stats.kstest(exact.cdf(draws[::4].reshape(-1)), "uniform")
    assert ranks.pvalue > 1e-4


def test_an_approximation_of_many_skewed_coordinates_is_placed_at_their_means():
    """Three hundred log-gamma variables of shape 30: the mode is 0, each mean digamma(30) - log(30)."""
    from scipy.special import digamma

    task = task_of(lambda z: jnp.sum(30.0 * z - 30.0 * jnp.exp(z)), np.zeros(300))
    around, _ = sampling.Independence().approximation(task)
    assert around.mode.mean() == pytest.approx(digamma(30.0) - np.log(30.0), abs=0.003)  # the mode is 0.017 away


@pytest.mark.slow
def test_a_funnel_is_left_to_nuts():
    def funnel(z):
        return -0.5 * (z[0] / 3.0) ** 2 - jnp.sum(0.5 * z[1:] ** 2 * jnp.exp(-z[0]) + 0.5 * z[0])

    assert sampling.Auto(draws=200, warmup=200).run(task_of(funnel, np.zeros(6))).sampler == "nuts"


def two_modes(apart):
    def of(z):
        return jax.nn.logsumexp(jnp.stack([-0.5 * jnp.sum(z**2), -0.5 * jnp.sum((z - apart) ** 2)]))

    return of


def test_two_modes_are_seen_where_they_are_near_and_not_where_they_are_far():
    """What no local method can see is not seen: said in docs/how-to/choose-a-sampler.md."""
    near = sampling.Auto().run(task_of(two_modes(3.0), np.full(2, -0.1)))
    assert abs((near.z.mean(axis=2) > 1.5).mean() - 0.5) < 0.05
    far = sampling.Auto().run(task_of(two_modes(8.0), np.full(2, -0.1)))
    assert (far.z.mean(axis=2) > 4.0).mean() == 0.0


def posteriors():
    rng = np.random.default_rng(5)
    network = (rng.random((300, 5)) < [0.5, 0.4, 0.5, 0.04, 0.3]).astype(int)
    graph = rng.poisson([1.0, 2.0, 3.0], (150, 3))
    lattice = dfd.models.Ising(dfd.graphs.grid(4, 4))
    spins = dfd.simulate(lattice, {"temperature": 4.0}, 60, seed=1).rows
    return {
        "cmp, likelihood": ("cmp", rng.poisson(0.6, 60), {}),
        "cmp, dfd": ("cmp", rng.negative_binomial(4, 0.4, 200), {"loss": "dfd"}),
        "cmp, boundary": ("cmp", rng.geometric(0.3, 80) - 1, {}),
        "poisson, n = 10": ("poisson", rng.poisson(1.0, 10) + 1, {}),
        "bernoulli, one success": ("bernoulli", np.eye(20, dtype=int)[0], {}),
        "network, rare item": ("ising-network", network, {}),
        "network, ratio": ("ising-network", network, {"loss": "ratio"}),
        "count graph, zero edges": ("poisson-graphical", graph, {}),
        "lattice": (lattice, spins, {}),
        "mixture": (dfd.models.PoissonMixture([2.0, 9.0]), rng.poisson(np.where(rng.random(80) < 0.3, 2, 9)), {}),
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dfdbayes.errors.DfdbayesWarning")
@pytest.mark.parametrize("name", list(posteriors()))
def test_the_fast_routes_agree_with_nuts(name):
    model, data, settings = posteriors()[name]
    quick = dfd.fit(model, data, **settings, progress=False)
    slow = dfd.fit(model, data, **settings, sampler=replace(dfd.samplers.NUTS(), draws=2000), seed=1, progress=False)
    a, b = quick.summary(), slow.summary()
    assert quick.settings["sampler"] in ("independence", "hmc", "nuts")
    for quantity in ("mean", "sd"):
        error = np.hypot(a[f"mcse_{quantity}"], b[f"mcse_{quantity}"])
        assert (np.abs(a[quantity] - b[quantity]).dropna() < Z_LIMIT * error.dropna()).all()
