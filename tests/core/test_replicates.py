"""Bootstrap minimisers by the full data's Hessian are those that every replicate finds by Hessians of its own."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax.scipy.special import gammaln

import dfdbayes as dfd
from dfdbayes.core import linalg, replicates
from dfdbayes.core.objective import _second_order
from dfdbayes.core.replicates import minimise_many
from dfdbayes.core.resampling import resample

REPLICATES = 20
EVERYTHING = 10**6


def counts(rate, n):
    return np.random.default_rng(3).poisson(rate, n)


def users_model():
    def log_mass(theta, x):
        return theta["slope"] * x[0] - theta["shape"] * gammaln(x[0] + 1)

    return dfd.Model(log_mass, dfd.Counts(1), {"slope": dist.Normal(0.0, 1.0), "shape": dist.HalfNormal(1.0)})


def bent_model():
    """The log mass has a kink at slope 1.2: replicates whose loss is smallest there have no gradient that vanishes."""

    def log_mass(theta, x):
        return theta["slope"] * x[0] - gammaln(x[0] + 1) - 0.02 * jnp.abs(theta["slope"] - 1.2) * x[0] ** 2

    return dfd.Model(log_mass, dfd.Counts(1), {"slope": dist.Normal(0.0, 1.0)})


def drawn(model, theta, n):
    return model, dfd.simulate(model, theta, n, seed=5).rows


def rare(model, seed=8):
    """Four binary columns, the last one nearly always 0: its parameters vary more than one Hessian can tell."""
    return model, (np.random.default_rng(seed).random((150, 4)) < [0.5, 0.4, 0.6, 0.06]).astype(int)


def zero_edges(model):
    """Independent counts, so that about half of the interactions are zero, others in every replicate."""
    return model, np.random.default_rng(2).poisson([3.0, 2.0, 1.5], (150, 3))


CMP = dfd.models.ConwayMaxwellPoisson
GRID = dfd.graphs.grid(3, 3)

# name: (loss, model and data, outcomes that must be among the replicates')
QUICK = {
    "cmp": ("dfd", lambda: (CMP(), counts(3.0, 60)), {"converged", "escaped"}),
    "kink": ("dfd", lambda: (bent_model(), counts(3.0, 60)), {"converged", "failed"}),
    "network pseudo": ("pseudo", lambda: rare(dfd.models.IsingNetwork(4)), {"converged"}),
    "poisson graphical": (
        "dfd",
        lambda: zero_edges(dfd.models.PoissonGraphical(3)),
        {"converged", "at the boundary"},
    ),
}
SLOW = {
    "poisson": ("dfd", lambda: (dfd.models.Poisson(), counts(3.0, 60)), {"converged"}),
    "cmp ratio": ("ratio", lambda: (CMP(), counts(3.0, 60)), {"converged"}),
    "cmp likelihood": ("likelihood", lambda: (CMP(), counts(3.0, 60)), {"converged"}),
    "cmp ksd": ("ksd", lambda: (CMP(), counts(3.0, 60)), {"converged"}),
    "cmp on the edge": (
        "dfd",
        lambda: (CMP(), np.random.default_rng(1).negative_binomial(0.5, 0.1, 300)),
        {"at the boundary"},
    ),
    "bernoulli": ("dfd", lambda: (dfd.models.Bernoulli(), counts(0.3, 40) > 0), {"converged"}),
    "ising": ("ratio", lambda: drawn(dfd.models.Ising(GRID), {"temperature": 4.0}, 40), {"converged"}),
    "potts": ("dfd", lambda: drawn(dfd.models.Potts(GRID, states=3), {"temperature": 1.5}, 40), {"converged"}),
    "network ratio": ("ratio", lambda: rare(dfd.models.IsingNetwork(4)), {"converged"}),
    "cmp graphical": (
        "ratio",
        lambda: zero_edges(dfd.models.ConwayMaxwellPoissonGraphical(3)),
        {"at the boundary"},
    ),
    "mixture": ("dfd", lambda: drawn(dfd.models.PoissonMixture((3.0, 9.0)), {"proportion": 0.2}, 40), {"converged"}),
    "user": ("dfd", lambda: (users_model(), counts(3.0, 60)), {"converged", "escaped"}),
}


def both_routes(objective, monkeypatch):
    """By one Hessian and by many, and which replicates one was enough for."""
    whole, weights = dfd.minimise(objective), resample(objective, 4, REPLICATES)
    accepted, search = [], replicates._search_shared

    def watched(*arguments):
        ends = search(*arguments)
        accepted.append(ends.convex.copy())
        return ends

    monkeypatch.setattr(replicates, "_search_shared", watched)
    done = []
    monkeypatch.setattr(replicates, "FEW_PARAMETERS", 0)
    fast = minimise_many(objective, weights, whole, done.append)
    monkeypatch.setattr(replicates, "FEW_PARAMETERS", EVERYTHING)
    full = minimise_many(objective, weights, whole)
    assert sum(done) == REPLICATES
    return fast, full, accepted[0]


@pytest.mark.parametrize(
    ("loss", "made", "outcomes"),
    [
        *(pytest.param(*case, id=name) for name, case in QUICK.items()),
        *(pytest.param(*case, id=name, marks=pytest.mark.slow) for name, case in SLOW.items()),
    ],
)
@pytest.mark.daily("network pseudo")
def test_both_routes_agree(loss, made, outcomes, monkeypatch):
    fast, full, accepted = both_routes(dfd.objective(*made(), loss), monkeypatch)
    assert fast.outcomes == full.outcomes and outcomes <= set(fast.tally)
    np.testing.assert_allclose(fast.vectors, full.vectors, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(fast.values, full.values, rtol=1e-11)
    assert accepted.any() and fast.usable[accepted].all()


def test_some_replicates_of_a_rare_item_need_hessians_of_their_own(monkeypatch):
    """And a second data set of the same shape compiles nothing."""
    sizes = []
    for seed in (8, 9):
        _, _, accepted = both_routes(dfd.objective(*rare(dfd.models.IsingNetwork(4), seed), "pseudo"), monkeypatch)
        assert accepted.any() and not accepted.all()
        sizes.append((replicates._contract_batch._cache_size(), _second_order._cache_size()))
    assert sizes[0] == sizes[1]


def test_a_minimum_that_is_none_shares_nothing(monkeypatch):
    """Where the full data have no minimum, every replicate has Hessians of its own."""
    objective = dfd.objective(CMP(), [2, 2, 2, 3, 2, 2, 3, 2])
    whole, weights = dfd.minimise(objective), resample(objective, 4, 5)
    assert not whole.usable
    monkeypatch.setattr(replicates, "_search_shared", lambda *_: pytest.fail("nothing to share"))
    monkeypatch.setattr(replicates, "FEW_PARAMETERS", 0)
    assert "escaped" in minimise_many(objective, weights, whole).tally


@pytest.fixture(scope="module")
def contracted():
    """Half y'Ay - c'y from zero, by the inverse of the unit matrix."""

    @jax.jit
    def run(matrix, force, upper, free):
        def gradient_at(y):
            return matrix @ y - force

        return linalg.contract(
            gradient_at, jnp.zeros(3), jnp.full(3, -5.0), upper, jnp.ones_like, jnp.asarray(1e-11),
            jnp.diag(free.astype(float)), free, jnp.asarray(True),
        )  # fmt: skip

    def run_with(eigenvalues, force=(0.5, -1.0, 0.7), upper=(5.0, 5.0, 5.0), free=(True, True, True)):
        turned = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
        matrix = turned * eigenvalues @ turned.T
        end = run(matrix, np.array(force), np.array(upper), np.array(free))
        return matrix, np.array(force), end

    return run_with


def test_what_contracts_is_the_minimum(contracted):
    matrix, force, end = contracted([0.6, 1.0, 1.5])
    assert end.found
    np.testing.assert_allclose(end.y, np.linalg.solve(matrix, force), rtol=1e-9)


@pytest.mark.parametrize("eigenvalues", [[-0.1, 1.0, 1.2], [0.05, 1.0, 1.0], [1.0, 1.0, 2.2]])
def test_another_curvature_is_noticed(contracted, eigenvalues):
    """Not convex, nearly flat, and steps that overshoot."""
    assert not contracted(eigenvalues)[-1].found


def test_bounds_are_noticed(contracted):
    assert not contracted([1.0, 1.1, 1.0], upper=(0.2, 5.0, 5.0))[-1].found
    # a coordinate that the full data hold at its bound stays there while the gradient holds it, and not otherwise
    held = {"upper": (0.0, 5.0, 5.0), "free": (False, True, True)}
    _, _, end = contracted([1.0, 1.1, 1.0], force=(3.0, 0.2, 0.1), **held)
    assert end.found and end.y[0] == 0.0
    assert not contracted([1.0, 1.1, 1.0], force=(-3.0, 0.2, 0.1), **held)[-1].found


def test_a_path_that_grows_longer_is_left():
    """Near 3 the minimum is 2.9, and a step by another curvature falls over the edge at 2.5, to the minimum at -2.2."""

    @jax.jit
    def run(start):
        def gradient_at(y):
            return jnp.where(y > 2.5, 10.0 * (y - 2.9), jnp.where(y > 0.0, 4.0, y + 2.2))

        wide = jnp.full(1, 9.0)
        return linalg.contract(
            gradient_at, start, -wide, wide, jnp.ones_like, jnp.asarray(1e-11), jnp.eye(1), wide > 0, jnp.asarray(True)
        )

    assert run(jnp.full(1, -2.0)).found
    end = run(jnp.full(1, 3.0))
    assert not end.found and end.iterations == 1
