"""One contract for every model: ratios, derivatives, start, recovery, round trip, names."""

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

import dfdbayes as dfd
import oracles
from dfdbayes.core.terms import second_order

GRID = dfd.graphs.grid(4, 4)
PAIRS = np.random.default_rng(9)

# name: (model, parameters to simulate from, n, names in the summary that must be there)
MODELS = {
    "bernoulli": (dfd.models.Bernoulli(), {"probability": 0.3}, 500, {"probability"}),
    "poisson": (dfd.models.Poisson(), {"rate": 3.0}, 500, {"rate"}),
    "cmp": (dfd.models.ConwayMaxwellPoisson(), {"rate": 3.0, "nu": 0.8}, 2000, {"rate", "nu", "mean"}),
    "ising": (dfd.models.Ising(GRID), {"temperature": 4.0}, 400, {"temperature"}),
    "ising torus": (dfd.models.Ising(dfd.graphs.grid(4, 4, periodic=True)), {"temperature": 5.0}, 400, {"temperature"}),
    "ising intercept": (
        dfd.models.Ising(nx.cycle_graph(8), states="binary", intercept=True),
        {"temperature": 2.0, "intercept": -0.5},
        1000,
        {"temperature", "intercept"},
    ),
    "potts": (dfd.models.Potts(dfd.graphs.grid(3, 3), states=3), {"temperature": 1.5}, 500, {"temperature"}),
    "ising network": (
        dfd.models.IsingNetwork(5),
        {"intercept": 0.5 * PAIRS.standard_normal(5), "interaction": 0.4 * PAIRS.standard_normal(10)},
        3000,
        {"intercept[x1]", "interaction[x1,x2]", "interaction[x4,x5]"},
    ),
    "spin network on a graph": (
        dfd.models.IsingNetwork([(0, 1), (1, 2), (2, 3)], states="spins"),
        {"intercept": np.array([0.2, -0.1, 0.0, 0.3]), "interaction": np.array([0.4, -0.3, 0.2])},
        2000,
        {"intercept[x4]", "interaction[x2,x3]"},
    ),
    "ordinal network": (
        dfd.models.Network(dfd.Ordinal(2, 3) * dfd.Ordinal(1, (1, 2, 4)) * dfd.Binary(1)),
        {
            "intercept": np.array([-0.3]),
            "threshold": np.array([0.2, -0.4, 0.1, -0.6, 0.3, -1.0]),
            "interaction": np.array([0.4, -0.2, 0.3, 0.0, 0.5, -0.3]),
        },
        3000,
        {"intercept[x4]", "threshold[x1,1]", "threshold[x3,4]", "interaction[x1,x2]"},
    ),
    "blume-capel network": (
        dfd.models.Network(dfd.Ordinal(3, 5), kinds="blume-capel"),
        {
            "intercept": np.array([0.1, -0.2, 0.0]),
            "quadratic": np.array([-0.3, -0.1, 0.05]),
            "interaction": np.array([0.1, -0.1, 0.05]),
        },
        3000,
        {"intercept[x1]", "quadratic[x3]", "interaction[x1,x2]"},
    ),
    "counts that rise together": (
        dfd.models.Network(dfd.Counts(3)),
        {
            "intercept": np.array([0.3, 0.1, -0.2]),
            "interaction": np.array([0.3, -0.2, 0.1]),
            "nu": np.array([0.8, 1.0, 1.2]),
        },
        4000,
        {"nu[x1]", "interaction[x1,x2]"},
    ),
    "poisson graphical": (
        dfd.models.PoissonGraphical(3),
        {"intercept": np.array([1.2, 0.9, 0.6]), "interaction": np.array([0.05, 0.1, 0.02])},
        3000,
        {"intercept[x1]", "interaction[x1,x2]"},
    ),
    "poisson graphical half-normal": (
        dfd.models.PoissonGraphical(3, prior="half-normal"),
        {"intercept": np.array([1.2, 0.9, 0.6]), "interaction": np.array([0.05, 0.1, 0.02])},
        3000,
        {"interaction[x2,x3]"},
    ),
    "independent poissons": (
        dfd.models.PoissonGraphical(dfd.graphs.empty(2)),
        {"intercept": np.array([1.0, 0.3])},
        1000,
        {"intercept[x1]", "intercept[x2]"},
    ),
    "cmp graphical": (
        dfd.models.ConwayMaxwellPoissonGraphical(3),
        {
            "intercept": np.array([1.2, 0.9, 0.6]),
            "interaction": np.array([0.05, 0.1, 0.04]),
            "nu": np.array([0.8, 1.1, 0.9]),
        },
        6000,
        {"nu[x1]", "interaction[x1,x3]"},
    ),
    "poisson mixture": (dfd.models.PoissonMixture((3.0, 9.0)), {"proportion": 0.4}, 2000, {"proportion"}),
}


@pytest.fixture(params=MODELS, scope="module")
def case(request):
    model, theta, n, names = MODELS[request.param]
    rows = dfd.simulate(model, theta, n, seed=11).rows
    return model, theta, dfd.Dataset.of(rows), names


@pytest.mark.daily("cmp", "potts", "ordinal network", "poisson mixture")
def test_log_ratios_are_differences_of_the_log_mass(case):
    """The weighted sum of any functions of all of them is that of the definition."""
    model, theta, data, _ = case
    chosen = np.arange(len(data.rows)) if model.compresses else np.random.default_rng(0).choice(len(data.rows), 10)
    part = data.at(np.unique(chosen))
    part = part.reweighted(np.arange(1.0, len(part.rows) + 1))
    named = {k: jnp.asarray(v) for k, v in theta.items()}
    log_mass = jax.jit(lambda x: model.log_mass_at(named, x))
    for power in (0.5, 1.0):
        powers = dfd.losses.LocalLoss(f"power {power}", "", *2 * [lambda u, power=power: jnp.exp(power * u)], False)
        fast = dfd.objective(model, part, powers)(theta)
        assert fast == pytest.approx(slow_sum(model.domain, part, log_mass, power), rel=1e-12)


def slow_sum(domain, data, log_mass, power):
    total = 0.0
    for row, count in zip(data.rows, data.counts, strict=True):
        x = tuple(int(a) for a in row)
        here = float(log_mass(jnp.asarray(x, float)))
        for j in range(domain.d):
            before = oracles.decrement(domain.coordinate(j), x[j])
            after = oracles.moved(x, j, oracles.increment(domain.coordinate(j), x[j]))
            if before is not oracles.STAR:
                there = float(log_mass(jnp.asarray(oracles.moved(x, j, before), float)))
                total += count * np.exp(power * (there - here))
            if None in after:
                continue
            total += count * np.exp(power * (here - float(log_mass(jnp.asarray(after, float)))))
    return total


@pytest.mark.parametrize("loss", ["dfd", "ratio"])
@pytest.mark.daily("cmp-*", "ising torus-ratio", "potts-dfd", "poisson mixture-ratio")
def test_derivatives_are_those_of_the_general_path(case, loss):
    model, theta, data, _ = case
    data = dfd.Dataset(data.rows[:40], data.counts[:40], data.columns, data.first[:40])
    fast = dfd.objective(model, data, loss)
    general = dfd.objective(dfd.Model(model.log_mass_at, model.domain, model.space.parameters), data, loss)
    flat = np.asarray(model.space.flatten(theta))
    each = general.unit_gradients(flat)
    value, gradient, hessian = jax.jit(
        lambda t: second_order(lambda t: general.problem.value(t, general.terms, general.own_weights), t)
    )(jnp.asarray(flat))
    assert fast(flat) == pytest.approx(float(value), rel=1e-9)
    scale = max(1.0, float(np.abs(hessian).max()))
    np.testing.assert_allclose(fast.gradient(flat), gradient, rtol=1e-9, atol=1e-9 * scale)
    np.testing.assert_allclose(fast.hessian(flat), hessian, rtol=1e-9, atol=1e-9 * scale)
    np.testing.assert_allclose(fast.unit_gradients(flat), each, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.daily("cmp", "ising torus", "ordinal network", "poisson graphical", "poisson mixture")
def test_start_lies_inside_and_the_fit_recovers_the_truth(case):
    """Within 4 standard errors (sandwich) of each parameter: a false alarm in 1 of 10^4 comparisons, seeds fixed."""
    model, theta, data, _ = case
    objective = dfd.objective(model, data)
    space = model.space
    if model.start is not None:
        start = np.asarray(space.flatten(model.start(data)))
        assert (start >= space.lower).all() and (start <= space.upper).all()
    found = dfd.minimise(objective)
    assert found.outcome in ("converged", "at the boundary")
    truth = np.asarray(space.flatten(theta))
    bread, (_, _, squares) = np.linalg.inv(objective.hessian(truth)), objective.moments(truth)
    error = np.sqrt(np.diag(bread @ squares @ bread))
    assert (np.abs(found.vector - truth) < 4 * error + 1e-12).all()


@pytest.mark.daily("cmp", "ising torus", "ordinal network", "poisson mixture")
def test_one_call_names_and_round_trip(case, tmp_path):
    model, _, data, names = case
    fit = dfd.fit(model, data, beta=0.5, sampler="laplace", draws=200, progress=False)
    table = fit.summary()
    assert names <= set(table.index)
    assert np.isfinite(table[["mean", "sd"]].to_numpy()).all()
    back = dfd.load(fit.save(tmp_path / "fit.nc"))
    assert back.model == fit.model and back.model.space.names == fit.model.space.names
    np.testing.assert_array_equal(back.summary()["mean"], table["mean"])
    assert back.replicate(draws=3, size=5).replicates.shape == (3, 5, data.d)


def test_interactions_are_shown_never_their_roots():
    _, theta, n, _ = MODELS["poisson graphical"]
    model = dfd.models.PoissonGraphical(3, prior="squared")
    rows = dfd.simulate(model, theta, n, seed=1).rows
    fit = dfd.fit(model, rows, beta=0.5, sampler="laplace", progress=False)
    draws = fit.posterior["interaction"].values
    assert (draws >= 0).all()
    assert np.abs(draws.mean(axis=(0, 1)) - theta["interaction"]).max() < 0.03


def test_squared_coordinates_carry_the_calibration():
    """In roots v the gradient is 2 v g and the Hessian 4 v v' H + 2 diag(g): checked by differentiation."""
    from dfdbayes.core.calibration import _in_own_coordinates

    _, theta, *_ = MODELS["cmp graphical"]
    model = dfd.models.ConwayMaxwellPoissonGraphical(3, prior="squared")
    objective = dfd.objective(model, dfd.simulate(model, theta, 200, seed=1).rows)
    flat = np.asarray(model.space.flatten(theta))
    gradient, hessian = _in_own_coordinates(model.space, flat[None], *objective.derivatives(flat[None]))
    slow = second_order(
        lambda v: objective.problem.value(model.space.from_v(v), objective.terms, objective.own_weights),
        jnp.asarray(model.space.to_v(flat)),
    )
    np.testing.assert_allclose(gradient[0], slow[1], rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(hessian[0], slow[2], rtol=1e-9, atol=1e-7)


def test_a_lattice_costs_the_same_whatever_its_size():
    """The table of an Ising model holds (own state, sum of neighbours): ten entries for any grid and any n."""
    for side, n in ((4, 20), (30, 50)):
        model = dfd.models.Ising(dfd.graphs.grid(side, side))
        rows = np.random.default_rng(0).choice([-1, 1], (n, side * side))
        assert len(dfd.objective(model, rows).terms.designs[0]) <= 16


def test_wrong_graphs_and_options_are_refused():
    for make, match in [
        (lambda: dfd.models.Ising([[0, 1], [1, 1]]), "itself"),
        (lambda: dfd.models.Ising(np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]])), "symmetric"),
        (lambda: dfd.models.Ising(dfd.graphs.grid(2, 2), states="up"), "spins"),
        (lambda: dfd.models.Potts(dfd.graphs.grid(2, 2), states=1), "two states"),
        (lambda: dfd.models.PoissonGraphical(3, prior="flat"), "half-normal"),
        (lambda: dfd.models.PoissonMixture((5.0, 5.0)), "different"),
        (lambda: dfd.graphs.of("grid"), "networkx"),
        (lambda: dfd.graphs.parse("grid:3"), "grid:6x6"),
        (lambda: dfd.graphs.grid(1, 1), "two cells"),
        (lambda: dfd.fit("ising", np.ones((3, 4), int)), "needs a graph"),
        (lambda: dfd.fit("poisson-mixture", [1, 2, 3]), "needs rates, for example"),
    ]:
        with pytest.raises(dfd.errors.ModelError, match=match):
            make()
