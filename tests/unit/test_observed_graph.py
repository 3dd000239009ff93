"""Observed graphs from whatever a user has, and what is wrong with them."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import dfdbayes as dfd

EDGES = [("a", "b"), ("b", "c"), ("c", "d")]
NODES = pd.DataFrame({"name": list("abcde"), "age": [1.0, 2.0, 3.0, 4.0, 5.0], "sex": ["f", "m", "f", None, "m"]})
of = dfd.ObservedGraph.of


TWO_MODES = {"name": list("abxy"), "type": [False, False, True, True]}


def weighted(weights):
    return pd.DataFrame(EDGES, columns=["from", "to"]).assign(weight=weights)


def pairs(graph):
    return {tuple(sorted((graph.names[i], graph.names[j]))) for i, j in np.argwhere(graph.adjacency)}


def test_edges_and_nodes_from_many_sources(tmp_path):
    frame = pd.DataFrame(EDGES, columns=["source", "target"]).assign(weight=[1, 2, 3])
    frame.to_csv(tmp_path / "edges.csv")  # with row numbers, as pandas writes them
    frame[["target", "source"]].to_parquet(tmp_path / "edges.parquet")
    NODES.to_csv(tmp_path / "nodes.csv", index=False)
    matrix = np.zeros((5, 5), int)
    matrix[[0, 1, 2], [1, 2, 3]] = 1
    matrix += matrix.T
    made = nx.Graph(EDGES)
    made.add_node("e", age=5.0)
    for source, nodes in [
        (EDGES, NODES),
        (np.array(EDGES), NODES),
        (frame, NODES),
        ({"from": list("abc"), "to": list("bcd")}, NODES),
        (tmp_path / "edges.csv", tmp_path / "nodes.csv"),
        (str(tmp_path / "edges.parquet"), str(tmp_path / "nodes.csv")),
        (EDGES, {"name": list("edcba"), "age": [5, 4, 3, 2, 1]}),
        (EDGES, list("abcde")),
        (matrix, NODES),
        (sparse.csr_array(matrix), NODES),
        (pd.DataFrame(matrix, index=list("abcde"), columns=list("abcde")), NODES),
        (made, NODES),
        (made, None),
    ]:
        graph = of(source, nodes=nodes)
        assert pairs(graph) == set(EDGES) and graph.n == 5 and graph.ties == 3 and not graph.directed
        if "age" in graph.attributes and nodes is not None:
            ages = dict(zip(graph.names, graph.attributes["age"], strict=True))
            assert ages == dict(zip("abcde", [1.0, 2.0, 3.0, 4.0, 5.0], strict=True))


def test_numbers_are_nodes_too(tmp_path):
    (tmp_path / "edges.csv").write_text("from,to\n10,2\n2,1\n")
    assert of(tmp_path / "edges.csv").names == ("1", "2", "10")
    nodes = {"node": [1.0, 2.0, 10.0, 11.0], "vertex.names": ["w", "x", "y", "z"]}
    assert of(tmp_path / "edges.csv", nodes=nodes).names == ("1", "2", "10", "11")
    assert of([("x", "y")], nodes=nodes).names == ("w", "x", "y", "z")  # the column that holds the ends of edges
    assert of([(3, 4)], nodes={"age": [1, 2, 2], "number": [3, 4, 5]}).names == ("3", "4", "5")


def test_directed_graphs():
    assert of(nx.DiGraph([("a", "b"), ("b", "a")])).ties == 2
    assert of(EDGES, directed=True).directed and len(of(EDGES, directed=True).dyads[0]) == 12
    assert of(np.array([[0, 1], [0, 0]])).directed
    graph = of([("a", "b"), ("b", "a"), ("b", "c")], directed=True)
    assert graph.with_ties(graph.tie_of_dyad).adjacency.tolist() == graph.adjacency.tolist()
    assert nx.utils.graphs_equal(graph.to_networkx(), nx.DiGraph([("a", "b"), ("b", "a"), ("b", "c")]))


def test_matrices_are_in_the_order_of_the_nodes():
    frame = pd.DataFrame(np.arange(9.0).reshape(3, 3), index=list("cab"), columns=list("cab"))
    graph = of([("a", "b"), ("b", "c")], directed=True, matrices={"near": frame})
    assert graph.matrices["near"].tolist() == [[0, 5, 3], [7, 0, 6], [1, 2, 0]]


@pytest.mark.parametrize("directed", [False, True])
def test_plain_values_and_back(directed):
    near = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    graph = of(EDGES, nodes=NODES, directed=directed, matrices={"near": near})
    back = dfd.ObservedGraph.of_plain(graph.plain())
    assert back.names == graph.names and back.directed == directed and back.source == graph.source
    np.testing.assert_array_equal(back.adjacency, graph.adjacency)
    np.testing.assert_array_equal(back.matrices["near"], near)
    assert back.attributes["sex"].tolist() == ["f", "m", "f", None, "m"]


@pytest.mark.parametrize(
    ("source", "settings", "said"),
    [
        ([("a", "b"), ("b", "x")], {"nodes": NODES}, "row 2: node 'x' is not among the nodes .*id="),
        ([("a", "b"), ("c", "c")], {}, "row 2: node 'c' is tied to itself"),
        ([("a", "b"), ("b", "c"), ("b", "a")], {}, "rows 1 and 3 are the same tie.*directed=True"),
        ([("a", "b"), ("a", "b")], {}, "rows 1 and 2 are the same tie.*remove the second"),
        ([("a", "b"), ("a", "b")], {"directed": True}, "remove the second"),
        ([("a", "b"), ("a", None)], {}, "row 2: an end of the edge is missing"),
        ([("a",)], {}, "an edge is a pair"),
        ([("a", "b")], {"nodes": {"name": ["a", "b", "a"]}}, "'name' has a more than once"),
        ([("a", "b")], {"nodes": {"name": ["a", None]}}, "row 2: 'name' is missing"),
        ([("a", "b")], {"nodes": NODES, "id": "namee"}, "did you mean 'name'"),
        ([("a", "b")], {"id": "name"}, "nodes="),
        ([], {}, "holds 0 nodes"),
        (np.array([[0, 2], [2, 0]]), {}, "0 and 1 only"),
        (np.array([[1, 1], [1, 0]]), {}, "node 1 is tied to itself"),
        (np.array([[0, 1], [0, 0]]), {"directed": False}, "not symmetric"),
        (np.zeros((3, 3), int), {"nodes": ["a", "b"]}, "has 3 nodes, and the table of nodes 2"),
        (nx.DiGraph([("a", "b")]), {"directed": False}, "to_undirected"),
        (nx.MultiGraph([("a", "b"), ("a", "b")]), {}, "same tie"),
        (nx.Graph([("a", "b")]), {"nodes": ["a", "c"]}, "b, c is in one of them only"),
        ("nowhere.csv", {}, "there is no file"),
        ({"from": ["a"]}, {}, "edges need two"),
        (nx.davis_southern_women_graph(), {}, "two-mode.*'bipartite'.*89 ties"),
        ([("a", "x"), ("b", "x"), ("b", "y")], {"nodes": TWO_MODES}, "two-mode.*'type'"),
        (np.eye(4, 5), {}, "4 rows and 5 columns.*two-mode"),
        (sparse.csr_array(np.eye(4, 5)), {}, "4 rows and 5 columns.*two-mode"),
        (weighted([3, 0, -1]), {}, r"row 2: .*'b' and 'c' has weight 0 \(2 such.*\['weight'\] > 0"),
        (weighted([3, np.nan, 1]), {}, "row 2: .*'b' and 'c' has weight nan"),
        (weighted([1, -1, 1]).rename(columns={"weight": "sign"}), {}, "has sign -1"),
        ([("a", "b", 2), ("b", "c", 0)], {}, "row 2: .*'b' and 'c' has weight 0"),
        (nx.Graph([("a", "b", {"weight": 1.5}), ("b", "c", {"weight": -2})]), {}, "weight -2.*remove_edges_from"),
        ([("a", "b")], {"matrices": {"near": np.ones((3, 3))}}, "the graph has 2 nodes"),
        ([("a", "b")], {"matrices": {"near": np.array([[0, 1], [2, 0]])}}, "symmetric"),
        ([("a", "b")], {"matrices": {"near": np.array([[0, np.nan], [np.nan, 0]])}}, "no number for 'a' and 'b'"),
    ],
)
def test_what_is_wrong_is_said(source, settings, said):
    with pytest.raises(dfd.errors.DataError, match=said):
        of(source, **settings)


def test_the_remedy_for_weights_that_are_no_ties_works():
    graph = nx.Graph([("a", "b", {"weight": 2}), ("b", "c", {"weight": 0}), ("c", "d")])
    with pytest.raises(dfd.errors.DataError) as refused:
        of(graph)
    exec(str(refused.value).split("What to do: ")[1].split(", which")[0], {"graph": graph})
    assert of(graph).ties == 2 and of(graph).n == 4
    frame = weighted([3, 0, 1])
    assert of(frame[frame["weight"] > 0], nodes=list("abcd")).ties == 2
    davis = nx.davis_southern_women_graph()
    assert of(nx.bipartite.projected_graph(davis, davis.graph["top"])).n == 18


def test_an_edge_file_with_ties_of_weight_zero_is_refused(call, tmp_path):
    weighted([1, 0, 1]).to_csv(tmp_path / "edges.csv", index=False)
    code, _, err = call("fit", tmp_path / "edges.csv", "--model", "graph", "--terms", "edges")
    assert code == 2 and "'b' and 'c' has weight 0" in " ".join(err.split())
