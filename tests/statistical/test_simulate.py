"""Simulators against enumeration: chi-squared tests of whole distributions.

Each test draws with a fixed seed and fails where the p-value is below FALSE_ALARM, so a correct simulator
fails one test in 10^5.
"""

import networkx as nx
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import special, stats

import dfdbayes as dfd
from dfdbayes.core.simulators.exact import probabilities
from dfdbayes.core.simulators.perfect import by_coupling_from_the_past

FALSE_ALARM = 1e-5
N = 20_000

ISING = {
    "open": dfd.models.Ising(dfd.graphs.grid(3, 3)),
    "torus": dfd.models.Ising(dfd.graphs.grid(3, 3, periodic=True)),
    "binary with intercept": dfd.models.Ising(nx.cycle_graph(5), states="binary", intercept=True),
    "network": dfd.models.IsingNetwork(4),
    "spin network": dfd.models.IsingNetwork(4, states="spins"),
    "mixed network": dfd.models.Network(dfd.Ordinal(1, (1, 2, 4)) * dfd.Binary(1) * dfd.Ordinal(1, 4)),
    "potts": dfd.models.Potts(dfd.graphs.grid(2, 2), states=3),
}


def parameters(model):
    rng = np.random.default_rng(5)
    values = {"temperature": 2.5, "intercept": -0.4}
    return {
        p.name: values[p.name] if not p.shape else 0.6 * rng.standard_normal(p.shape) for p in model.space.parameters
    }


def p_value(rows, points, chance):
    """Pearson's test; cells expected fewer than five times are pooled."""
    index = {tuple(p): i for i, p in enumerate(points.tolist())}
    seen = np.bincount([index[tuple(r)] for r in rows.tolist()], minlength=len(points))
    expected = chance * len(rows)
    small = expected < 5
    if small.any():
        seen, expected = np.append(seen[~small], seen[small].sum()), np.append(expected[~small], expected[small].sum())
    return stats.chisquare(seen, expected).pvalue


@pytest.mark.parametrize(
    ("name", "method"),
    [(name, "enumeration") for name in ISING]
    + [(name, "gibbs") for name in ISING]
    + [(name, "perfect") for name in ("open", "torus", "binary with intercept")]
    + [(name, "swendsen-wang") for name in ("open", "torus", "potts")]
    + [(name, "metropolis") for name in ("binary with intercept", "network")],
)
@pytest.mark.daily(
    "torus-enumeration",
    "mixed network-gibbs",
    "potts-gibbs",
    "open-perfect",
    "potts-swendsen-wang",
    "network-metropolis",
)
def test_finite_models(name, method):
    model = ISING[name]
    theta = parameters(model)
    sweeps = 1000 if method == "metropolis" else 40 if method == "gibbs" else None
    sample = dfd.simulate(model, theta, N // 2, method=method, seed=1, sweeps=sweeps)
    assert sample.exact == (method in ("enumeration", "perfect"))
    assert (sample.mixing is None) == sample.exact
    assert p_value(sample.rows, *probabilities(model, theta)) > FALSE_ALARM


def test_a_wrong_temperature_is_noticed():
    """The test can fail: five per cent off in temperature is seen."""
    model = ISING["open"]
    sample = dfd.simulate(model, {"temperature": 2.625}, N, method="gibbs", seed=1, sweeps=60)
    assert p_value(sample.rows, *probabilities(model, {"temperature": 2.5})) < FALSE_ALARM


@pytest.mark.slow
def test_general_gibbs_needs_only_a_log_mass():
    model = ISING["network"]
    bare = dfd.Model(model.log_mass_at, model.domain, model.space.parameters)
    theta = parameters(model)
    sample = dfd.simulate(bare, theta, N, method="gibbs", sweeps=30)
    assert p_value(sample.rows, *probabilities(model, theta)) > FALSE_ALARM


COUNT_GRAPHS = {
    "poisson": (dfd.models.PoissonGraphical(2), {"intercept": [0.8, 0.3], "interaction": [0.15]}),
    "roots": (
        dfd.models.Network(dfd.Counts(2)),
        {"intercept": [0.1, -0.2], "interaction": [0.4], "nu": [0.8, 1.5]},
    ),
    "cmp": (
        dfd.models.ConwayMaxwellPoissonGraphical(2),
        {"intercept": [0.8, 0.3], "interaction": [0.15], "nu": [0.7, 1.5]},
    ),
}


@pytest.mark.parametrize("general", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", COUNT_GRAPHS)
@pytest.mark.daily("poisson-False")
def test_count_graphs(name, general):
    model, theta = COUNT_GRAPHS[name]
    a, (w,) = theta["intercept"], theta["interaction"]
    c = theta.get("nu", [1.0, 1.0])
    x = np.arange(40)
    log = (
        a[0] * x[:, None] + a[1] * x + (w * np.sqrt(np.outer(x, x)) if name == "roots" else -w * np.outer(x, x))
        - c[0] * special.gammaln(x + 1)[:, None] - c[1] * special.gammaln(x + 1)
    )  # fmt: skip
    chance = np.exp(log - special.logsumexp(log)).reshape(-1)
    points = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2)
    simulated = dfd.Model(model.log_mass_at, model.domain, model.space.parameters) if general else model
    sample = dfd.simulate(simulated, {k: np.array(v) for k, v in theta.items()}, N, seed=2, sweeps=40)
    assert sample.method == "gibbs"
    assert p_value(sample.rows, points, chance) > FALSE_ALARM


@pytest.mark.parametrize(
    ("model", "theta", "mass"),
    [
        (dfd.models.Poisson(), {"rate": 3.3}, stats.poisson(3.3).pmf),
        (dfd.models.ConwayMaxwellPoisson(), {"rate": 3.3, "nu": 1.0}, stats.poisson(3.3).pmf),
        (dfd.models.ConwayMaxwellPoisson(), {"rate": 0.8, "nu": 0.0}, lambda x: 0.2 * 0.8**x),
        (
            dfd.models.PoissonMixture((2.0, 9.0)),
            {"proportion": 0.3},
            lambda x: 0.3 * stats.poisson(2.0).pmf(x) + 0.7 * stats.poisson(9.0).pmf(x),
        ),
    ],
)
def test_inversion(model, theta, mass):
    sample = dfd.simulate(model, theta, N)
    assert sample.method == "inversion" and sample.exact
    points = np.arange(max(200, sample.rows.max() + 1))
    assert p_value(sample.rows, points[:, None], mass(points)) > FALSE_ALARM


def test_seeds_and_refusals():
    model = ISING["open"]
    a, b, c = (dfd.simulate(model, {"temperature": 2.5}, 50, method="gibbs", seed=s).rows for s in (1, 1, 2))
    assert (a == b).all() and (a != c).any()
    with pytest.raises(dfd.errors.SettingError, match="no simulation method"):
        dfd.simulate(model, {"temperature": 2.5}, 5, method="magic")
    with pytest.raises(dfd.errors.ModelError, match="Swendsen-Wang needs"):
        dfd.simulate(ISING["network"], parameters(ISING["network"]), 5, method="swendsen-wang")
    with pytest.raises(dfd.errors.ModelError, match="attractive"):
        dfd.simulate(ISING["potts"], {"temperature": 2.0}, 5, method="perfect")
    with pytest.raises(dfd.errors.ModelError, match="tail is too heavy"):
        dfd.simulate(dfd.models.ConwayMaxwellPoisson(), {"rate": 1.5, "nu": 0.0}, 5)
    cold = dfd.models.Ising(dfd.graphs.grid(8, 8)).interactions({"temperature": np.array([0.5])})
    with pytest.raises(dfd.errors.ModelError, match="did not meet"):
        by_coupling_from_the_past(cold, dfd.Spins(64), 2, np.random.default_rng(0), most=16)


@pytest.mark.slow
def test_bad_mixing_is_reported():
    """Single-site updates far below the critical temperature: the chains still remember their start."""
    model = dfd.models.Ising(dfd.graphs.grid(12, 12))
    cold = dfd.simulate(model, {"temperature": 0.9}, 200, method="gibbs", sweeps=40)
    warm = dfd.simulate(model, {"temperature": 8.0}, 200, method="gibbs", sweeps=200)
    assert not cold.mixing.good
    assert warm.mixing.good


@pytest.mark.slow
def test_a_model_of_ones_own_on_a_mixed_domain():
    model = dfd.Model(
        lambda t, x: t["a"] * x[0] * x[1] - 0.3 * x[0] ** 2, dfd.Counts(1) * dfd.Binary(1), {"a": dist.Normal(0.0, 1.0)}
    )
    x = np.arange(30)
    log = np.stack([-0.3 * x**2, 0.5 * x - 0.3 * x**2], axis=1)
    chance = np.exp(log - special.logsumexp(log)).reshape(-1)
    points = np.stack(np.meshgrid(x, [0, 1], indexing="ij"), -1).reshape(-1, 2)
    sample = dfd.simulate(model, {"a": 0.5}, N, sweeps=40)
    assert p_value(sample.rows, points, chance) > FALSE_ALARM


def test_coupling_from_further_in_the_past_gives_the_same_state():
    """What makes it exact: the random numbers of a time stay the same however far back the chains begin."""
    import jax
    import jax.numpy as jnp

    from dfdbayes.core.simulators.gibbs import OnGraph
    from dfdbayes.core.simulators.perfect import _from_the_past

    model = ISING["open"]
    model = OnGraph.of(model.interactions({"temperature": np.array([2.5])}), model.domain)
    states = jnp.stack([jnp.full((1, 50, 9), level) for level in (-1.0, 1.0)])
    ends = [_from_the_past(model, jax.random.key(3), jnp.asarray(steps), states) for steps in (64, 128)]
    for bottom, top in ends:
        assert (bottom == top).all()
    assert (ends[0][0] == ends[1][0]).all()


def test_a_name_is_no_model_to_simulate_from():
    with pytest.raises(dfd.errors.SettingError, match=r"'poisson' is not a model.*dfd.models.Poisson\(\)"):
        dfd.simulate("poisson", {"rate": 3.0}, n=10)
