"""Simulated graphs against all graphs that there are, each with its probability."""

import jax
import numpy as np
import pytest
from scipy import stats

import dfdbayes as dfd
import graph_oracles
from dfdbayes.families.graph.chains import advance, begin, probabilities, setup_of, ties_of

CHAINS, GRAPHS = 50, 4000
ALARM = 1e-4  # false alarms of each of the tests of a statistic's distribution; seeds are fixed

# name: directed, nodes, terms, coefficients
CASES = {
    "edges and triangles": (False, 6, "edges + triangle", [-1.8, 0.5]),
    "shared partners": (False, 6, "edges + gwesp(0.4) + nodematch('team')", [-1.2, 0.6, 0.5]),
    "degrees and stars": (False, 6, "edges + kstar(2) + gwdegree(0.5) + nodecov('size')", [-1.0, 0.15, 0.5, 0.2]),
    "both ways": (True, 4, "edges + mutual", [-1.0, 1.5]),
    "directed triples": (True, 4, "edges + mutual + ttriple + ctriple + gwesp(0.3)", [-0.8, 0.7, 0.15, -0.3, 0.4]),
    "sent and received": (True, 4, "edges + ostar(2) + istar(2) + gwidegree(0.6) + gwodegree(0.2)",
                          [-0.7, 0.2, -0.1, 0.5, -0.4]),
}  # fmt: skip


@pytest.fixture(params=CASES, scope="module")
def case(request):
    directed, n, terms, theta = CASES[request.param]
    graph = dfd.ObservedGraph.of(
        graph_oracles.random_adjacency(np.random.default_rng(5), n, directed),
        nodes={"name": list("uvwxyz"[:n])} | {name: values[:n] for name, values in graph_oracles.NODES.items()},
        directed=directed,
    )
    model = dfd.models.RandomGraph(terms).bound(graph)
    return model, np.array(theta), dfd.simulate(model, theta, GRAPHS, method="tie-no-tie", seed=1)


def p_value(drawn, values, chance):
    """Of a chi-squared test that a statistic's simulated values have its exact distribution."""
    cells, place = np.unique(np.round(values, 8), return_inverse=True)
    expected = np.bincount(place, weights=chance) * len(drawn)
    found = np.bincount(np.searchsorted(cells, np.round(drawn, 8)), minlength=len(cells))
    order = np.argsort(-expected)
    group = np.empty(len(cells), int)
    group[order] = np.maximum.accumulate(np.minimum(np.arange(len(cells)), np.sum(expected >= 10)))
    expected, found = np.bincount(group, weights=expected), np.bincount(group, weights=found)
    if expected[-1] < 5:  # what is rare joins the last cell
        expected, found = (np.append(part[:-2], part[-2:].sum()) for part in (expected, found))
    return stats.chisquare(found, expected).pvalue


@pytest.mark.daily("edges and triangles", "directed triples")
def test_simulation_is_enumeration(case):
    """Chi-squared tests of each statistic, of the number of ties, and of the whole graph's probability."""
    model, theta, graphs = case
    ties, chance = probabilities(model.statistics, model.space.flatten(theta))
    values = model.statistics.of(ties)
    assert graphs.mixing is not None and graphs.mixing.good and len(graphs) == GRAPHS
    for k in range(len(theta)):
        assert p_value(graphs.statistics[:, k], values[:, k], chance) > ALARM, model.space.names[k]
    together = np.random.default_rng(0).normal(size=len(theta))
    assert p_value(graphs.statistics @ together, values @ together, chance) > ALARM


@pytest.mark.daily("edges and triangles", "directed triples")
def test_statistics_are_kept_up_to_date(case):
    """What chains add up over thousands of steps is what the graphs that they hold have."""
    model, theta, _ = case
    setup, inputs = setup_of(model.statistics)
    start = np.repeat(model.observed.tie_of_dyad[None], CHAINS, axis=0)
    thetas = np.repeat(np.array(theta, float)[None], CHAINS, axis=0)
    chains = advance(setup, 50, jax.random.key(3), thetas, inputs, begin(model.statistics, start))
    ties = ties_of(chains)
    np.testing.assert_allclose(np.asarray(chains.statistics), model.statistics.of(ties), atol=1e-9)
    np.testing.assert_array_equal(np.asarray(chains.ties), ties.sum(axis=1))
    adjacency = model.statistics.adjacency(ties)
    words = np.asarray(chains.out)[..., 0]
    bits = (words[..., None] >> np.arange(adjacency.shape[-1], dtype=np.uint64)) & np.uint64(1)
    np.testing.assert_array_equal(bits.astype(bool), adjacency)
    np.testing.assert_array_equal(
        np.sort(np.asarray(chains.order), axis=1), np.arange(ties.shape[1])[None].repeat(50, 0)
    )


@pytest.mark.daily("directed triples")
def test_the_same_seed_gives_the_same_graphs(case):
    model, theta, graphs = case
    again, other = (dfd.simulate(model, theta, 100, method="tie-no-tie", seed=s) for s in (1, 2))
    np.testing.assert_array_equal(
        again.ties[:50], dfd.simulate(model, theta, 60, method="tie-no-tie", seed=1).ties[:50]
    )
    assert not np.array_equal(again.ties, other.ties)
    assert len(graphs.graph(3).names) == model.observed.n
