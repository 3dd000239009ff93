"""Terms of random graphs: statistics by their definitions, change statistics as differences of these, and reading."""

from typing import ClassVar

import numpy as np
import pytest

import dfdbayes as dfd
import graph_oracles
from dfdbayes.families.graph.terms import TERMS, Covariate, GraphStatistics, parse, term

GRAPHS = 1000


def all_terms(directed):
    """All terms on six nodes with attributes."""
    graph = dfd.ObservedGraph.of(
        graph_oracles.random_adjacency(np.random.default_rng(3), 6, directed),
        nodes={"name": list("uvwxyz")} | graph_oracles.NODES,
        directed=directed,
        matrices={"near": graph_oracles.NEAR},
    )
    return GraphStatistics(parse(graph_oracles.terms(directed)), graph)


@pytest.fixture(params=[False, True], ids=["undirected", "directed"], scope="module")
def case(request):
    statistics = all_terms(request.param)
    rng = np.random.default_rng(11)
    graphs = np.stack([graph_oracles.random_adjacency(rng, 6, request.param) for _ in range(GRAPHS)])
    i, j = statistics.graph.dyads
    return statistics, graphs[:, i, j]


def slow(statistics, ties):
    """Statistics of one graph by the definitions."""
    graph = statistics.graph
    found = graph_oracles.statistics(graph.with_ties(ties).adjacency, graph.directed)
    return [value for term in statistics.terms for value in found[term.label]]


def test_every_term_is_tried():
    tried = {part.name for directed in (False, True) for part in parse(graph_oracles.terms(directed))}
    assert tried == {name for name, kind in TERMS.items() if kind.__module__.startswith("dfdbayes.")}


def test_statistics_are_their_definitions(case):
    statistics, ties = case
    expected = [slow(statistics, one) for one in ties[:200]]
    np.testing.assert_allclose(statistics.of(ties[:200]), expected, atol=1e-12)


def test_change_statistics_are_differences_of_statistics(case):
    """On 1000 random graphs, every dyad of every one, every term."""
    statistics, ties = case
    changes = statistics.changes(ties)
    for d in range(ties.shape[1]):
        there, away = ties.copy(), ties.copy()
        there[:, d], away[:, d] = True, False
        np.testing.assert_allclose(changes[:, d], statistics.of(there) - statistics.of(away), atol=1e-11)


def test_levels_have_names_and_the_first_is_the_reference():
    assert [name for name in all_terms(False).names if "factor" in name] == [
        "nodefactor(group)[b]",
        "nodefactor(group)[c]",
    ]
    graph = dfd.ObservedGraph.of([(1, 2), (2, 3), (3, 4)], nodes={"id": [1, 2, 3, 4], "grade": [7.0, 8.0, 8.0, 7.0]})
    model = dfd.models.RandomGraph("nodematch('grade', diff=True)").bound(graph)
    assert model.space.names == ("nodematch(grade,diff)[7]", "nodematch(grade,diff)[8]")
    np.testing.assert_array_equal(model.statistics.of(graph.tie_of_dyad[None]), [[0, 1]])


def test_levels_that_no_pair_has_are_left_out_with_a_word():
    graph = dfd.ObservedGraph.of([(1, 2), (2, 3), (3, 4)], nodes={"id": [1, 2, 3, 4], "grade": [7, 9, 9, 8]})
    data, model = dfd.models.RandomGraph("edges + nodematch('grade', diff=True)").observe(graph)
    assert model.space.names == ("edges", "nodematch(grade,diff)[9]")
    np.testing.assert_array_equal(model.statistics.of(graph.tie_of_dyad[None]), [[3, 1]])
    assert model.remarks(data) == (
        "nodematch(grade,diff): no two nodes have 7 or 8, so there is no coefficient of it.",
    )
    alone = dfd.ObservedGraph.of([(1, 2)], nodes={"name": [1, 2], "id": ["a", "b"]}, id="name")
    with pytest.raises(dfd.errors.ModelError, match="no two nodes have the same id"):
        dfd.models.RandomGraph("edges + nodematch('id', diff=True)").bound(alone)


@pytest.mark.parametrize(
    ("terms", "told"),
    [
        ("nodematch('side')", True),
        ("edges + nodematch('side')", False),
        ("nodefactor('side')", True),
        ("triangle", True),
    ],
)
def test_a_model_that_does_not_say_how_many_ties_there_are_is_told(terms, told):
    graph = dfd.ObservedGraph.of([(1, 2), (2, 3), (3, 4)], nodes={"id": [1, 2, 3, 4], "side": list("abab")})
    data, model = dfd.models.RandomGraph(terms).observe(graph)
    assert any(f'"edges + {terms}"' in text for text in model.remarks(data)) == told


@pytest.mark.parametrize("terms", ["", "edges", "edges + triangle", "nodematch('team') + gwesp(0.5)"])
def test_distinct_dyads_are_all_dyads(case, terms):
    """With all terms hardly two dyads are alike, with few terms most are."""
    statistics, ties = case
    statistics = GraphStatistics(parse(terms) if terms else statistics.terms, statistics.graph)
    changes = statistics.changes(ties[:20])
    for tie, change, data in zip(ties, changes, statistics.distinct(ties[:20]), strict=False):
        lines = np.column_stack([tie, change])
        again = np.repeat(np.column_stack([data.rows, data.given]), data.counts.astype(int), axis=0)
        order, other = (np.lexsort(np.round(part, 9).T) for part in (lines, again))
        np.testing.assert_allclose(lines[order], again[other], atol=1e-10)
        assert len(np.unique(np.round(lines, 9), axis=0)) == len(data.rows)
        np.testing.assert_array_equal(tie[data.first], data.rows[:, 0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "edges"),
        (3, "edges"),
        ("edges +", "cannot be read"),
        ("edges - triangle", "not a term"),
        ("edgse", "did you mean 'edges'"),
        ("gwesp", r"write gwesp\(0.25\)"),
        ("gwesp(0.25, fixed=FALSE)", "decays are fixed"),
        ("gwdsp(0.25)", "no term 'gwdsp' here, though ergm has it"),
        ("gwesp('a')", "decay from 0"),
        ("gwesp(-1)", "decay from 0"),
        ("kstar(1)", "whole number from 2"),
        ("edges(3)", "with nothing in brackets"),
        ("nodematch(grade)", "nodematch\\('grade'\\)"),
        ("nodematch('grade', diff=1)", "True or False"),
        ("nodecov(2)", "in quotes"),
        ("edges + edges", "stands twice"),
        ("__import__('os').system('true')", "not a term"),
        ("edges + (lambda: 0)()", "not a term"),
        ("nodecov(open('x'))", "neither a number"),
        ("edges + " * 5000 + "edges", "twice|cannot be read"),
    ],
)
def test_terms_that_cannot_be_are_refused(text, said):
    with pytest.raises(dfd.errors.ModelError, match=said):
        dfd.models.RandomGraph(text)


def test_a_new_term_called_wrongly_is_told_what_it_takes(monkeypatch):
    monkeypatch.setattr(TERMS, "_known", dict(TERMS.items()))  # which leaves the table as it was

    @term
    class Near(Covariate):
        """Ties between nodes that are near each other."""

        name: ClassVar[str] = "near"
        reach: float
        column: str
        least: int = 1

        def values(self, graph):
            return np.ones((graph.n, graph.n, 1))

    for text in ("near", "near(1, 2, 3, 4)", "near(nothing=2)"):
        with pytest.raises(dfd.errors.ModelError, match=r"write near\(0\.25, 'column'\)"):
            dfd.models.RandomGraph(text)
    assert dfd.models.RandomGraph("near(0.25, 'column')").terms == "near(0.25, 'column', 1)"


def test_a_term_reads_as_it_was_written():
    text = "edges + gwesp(0.25) + nodematch('grade', diff=True) + nodefactor('a b/c')"
    assert dfd.models.RandomGraph(text).terms == text
    assert dfd.models.RandomGraph("edges+kstar(k=2)") == dfd.models.RandomGraph("edges  +  kstar(2)")
    written_for_ergm = "net ~ edges + gwesp(0.25, fixed=TRUE) + nodematch('a~b', diff=T)"
    assert dfd.models.RandomGraph(written_for_ergm).terms == "edges + gwesp(0.25) + nodematch('a~b', diff=True)"


def test_a_geometrically_weighted_term_says_what_its_unit_is():
    meanings = dfd.models.RandomGraph("edges + gwesp(0.25) + gwdegree(0.5)").meanings
    assert "share counts 1, each other 0.22 of the one before" in meanings["gwesp(0.25)"]
    assert "first tie counts 1, and each further one 0.39" in meanings["gwdegree(0.5)"]


@pytest.mark.parametrize(
    ("terms", "directed", "said"),
    [
        ("mutual", False, "mutual is for directed graphs"),
        ("kstar(2)", True, "ostar"),
        ("gwdegree(0.5)", True, "gwidegree"),
        ("istar(2)", False, "use kstar"),
    ],
)
def test_terms_of_the_other_kind_are_refused(terms, directed, said):
    graph = dfd.ObservedGraph.of([(1, 2), (2, 3)], directed=directed)
    with pytest.raises(dfd.errors.ModelError, match=said):
        dfd.models.RandomGraph(terms).bound(graph)


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ("edges + nodecov('constant')", "nodecov\\(constant\\) is determined by edges"),
        ("edges + nodematch('constant')", "is determined by edges"),
        ("nodefactor('constant')", "nothing to compare"),
        ("nodematch('own')", "zero for every pair"),
        ("nodecov('group')", "holds text"),
        ("nodecov('ages')", "did you mean 'age'"),
        ("nodecov('age')", "missing for 1 of 4 nodes \\(4\\)"),
        ("edgecov('near')", "no matrix 'near'"),
    ],
)
def test_attributes_that_will_not_do_are_refused(terms, said):
    nodes = {"id": [1, 2, 3, 4], "constant": [2, 2, 2, 2], "own": list("abcd"), "group": list("aabb")}
    graph = dfd.ObservedGraph.of([(1, 2), (2, 3)], nodes=nodes | {"age": [1.0, 2.0, 3.0, None]})
    with pytest.raises((dfd.errors.ModelError, dfd.errors.DataError), match=said):
        dfd.models.RandomGraph(terms).bound(graph)
