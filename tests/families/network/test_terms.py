"""Tables of networks: fast formulas in blocks of rows against differentiation and against the definition."""

import jax
import numpy as np
import pytest

import dfdbayes as dfd
import oracles
from dfdbayes.core.linear import softplus, sum_softplus
from dfdbayes.families.network import terms as network_tables
from dfdbayes.families.network.terms import OrdinalConditionals


def test_a_sum_of_softplus_is_that_of_its_parts_with_its_derivatives():
    u = np.random.default_rng(0).normal(0.0, 20.0, (50, 7))
    u[0, 0], u[1, 1] = 800.0, 0.0
    np.testing.assert_allclose(sum_softplus(u), softplus(u).sum(axis=0), rtol=1e-14)
    slope = jax.grad(lambda v: sum_softplus(v).sum())(u)
    np.testing.assert_allclose(slope, 1 / (1 + np.exp(-np.clip(u, -700, 700))), atol=1e-15)
    long = np.zeros((1500, 1))
    assert float(sum_softplus(long)[0]) == pytest.approx(1500 * np.log(2.0), rel=1e-12)  # 2^1500 is no number


@pytest.mark.parametrize("states", ["binary", "spins"])
@pytest.mark.parametrize("graph", [4, [(0, 1), (1, 2), (2, 3)]], ids=["all pairs", "a path"])
@pytest.mark.daily("a path-spins")
def test_binary_conditionals_in_blocks_are_their_definition(states, graph, monkeypatch):
    monkeypatch.setattr(network_tables, "ROWS_IN_BLOCK", 4)  # several blocks, the last one of rows that are not there
    rng, model = np.random.default_rng(1), dfd.models.IsingNetwork(graph, states=states)
    rows = np.unique(rng.integers(2, size=(14, 4)), axis=0)
    rows = 2 * rows - 1 if states == "spins" else rows
    objective = dfd.objective(model, rows, "pseudo")
    assert len(objective.terms.s) > 1 or len(rows) <= 8
    theta = rng.normal(size=model.space.size)

    def log_mass(x):
        return float(model.log_mass_at(model.space.unflatten(theta), np.array(x, float)))

    expected = oracles.pseudo_loss(log_mass, rows, np.ones(len(rows)), model.domain)
    assert objective(theta) == pytest.approx(expected, rel=1e-12)
    value, gradient, hessian = objective.second_order(theta)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, objective.gradient(theta), atol=1e-12)
    np.testing.assert_allclose(hessian, jax.jit(jax.hessian(objective.traced))(theta), atol=1e-11)
    np.testing.assert_allclose(objective.unit_gradients(theta).sum(axis=0), gradient, atol=1e-12)
    alone = [dfd.objective(model, row[None], "pseudo").gradient(theta) for row in objective.data.rows]
    np.testing.assert_allclose(objective.unit_gradients(theta), alone, atol=1e-12)


@pytest.mark.parametrize(
    "domain", [dfd.Ordinal(1, 5) * dfd.Ordinal(1, 2) * dfd.Ordinal(1, 3), dfd.Binary(1) * dfd.Ordinal(2, 3)]
)
@pytest.mark.daily("domain1")
def test_ordinal_conditionals_in_blocks_are_their_definition(domain, monkeypatch):
    """At parameters and at zero, where every power is one; and far out, where powers would overflow."""
    monkeypatch.setattr(network_tables, "ROWS_IN_BLOCK", 4)
    rng, model = np.random.default_rng(2), dfd.models.Network(domain)
    rows = np.unique(np.stack([rng.choice(domain.coordinate(j).levels, 20) for j in range(3)], axis=1), axis=0)
    objective = dfd.objective(model, rows, "pseudo")
    assert isinstance(objective.terms, OrdinalConditionals) and len(objective.terms.s) > 1
    away = rng.normal(size=model.space.size)
    for theta in (away, 0 * away, 60 * away):

        def log_mass(x, theta=theta):
            return float(model.log_mass_at(model.space.unflatten(theta), np.array(x, float)))

        expected = oracles.pseudo_loss(log_mass, rows, np.ones(len(rows)), model.domain)
        assert objective(theta) == pytest.approx(expected, rel=1e-11)
        value, gradient, _ = objective.second_order(theta)
        assert value == pytest.approx(expected, rel=1e-11)
        np.testing.assert_allclose(objective.gradient(theta), gradient, atol=1e-10)


def test_levels_that_are_not_evenly_seen_have_plain_sums():
    rows = np.random.default_rng(3).integers(0, 3, (20, 2))
    mixed = dfd.objective(dfd.models.Network(dfd.Ordinal(1, 3) * dfd.Counts(1)), rows, "pseudo")
    assert not isinstance(mixed.terms, OrdinalConditionals)
