"""Observed graphs from whatever a user has, and what is wrong with them."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import dfdbayes as dfd
from dfdbayes._util.codec import from_plain, to_plain

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


@pytest.mark.parametrize(
    "source",
    [
        nx.cycle_graph(6),
        nx.path_graph(4),
        nx.florentine_families_graph(),
        nx.star_graph(3),
        nx.gnp_random_graph(9, 0.3, seed=1),
    ],
)
@pytest.mark.parametrize("written", [nx.to_dict_of_lists, nx.to_dict_of_dicts, lambda g: {a: set(g[a]) for a in g}])
def test_a_mapping_of_neighbours_is_what_networkx_makes_of_it(source, written):
    expected, found = of(nx.Graph(written(source))), of(written(source))
    assert found.names == expected.names and not found.directed
    np.testing.assert_array_equal(found.adjacency, expected.adjacency)


def test_neighbours_that_are_listed_once_and_directions():
    found = of({"a": ["b", "c"], "b": ["c", "d"]})
    assert found.names == ("a", "b", "c", "d") and pairs(found) == {("a", "b"), ("a", "c"), ("b", "c"), ("b", "d")}
    ways = nx.DiGraph([(1, 2), (2, 1), (3, 1)])
    np.testing.assert_array_equal(of(nx.to_dict_of_lists(ways), directed=True).adjacency, of(ways).adjacency)
    assert of({1: [2], 2: [1, 3], 3: []}).ties == 2
    assert of({"0": [1, 2], "1": [0], "2": [0]}).names == ("0", "1", "2")  # as JSON has it
    graph = of({"a": ["b"], "b": []}, nodes={"a": {"age": 3}, "b": {"age": 4}})
    assert graph.attributes["age"].tolist() == [3.0, 4.0]
    weighted = {"a": {"b": {"weight": 2}}, "b": {"a": {"weight": 2}}}
    assert of(weighted).ties == of({"a": {"b": 2}, "b": {"a": 2}}).ties == 1


@pytest.mark.parametrize(
    "columns",
    [
        {"from": ["a", "b"], "to": ["b", "c"]},
        {"Source": np.array(["a", "b"]), "Target": np.array(["b", "c"]), "year": [1, 2]},
        {"i": ["a", "b"], "j": ["b", "c"]},
        {"from": {0: "a", 1: "b"}, "to": {0: "b", 1: "c"}},
        {"from": ("a", "b"), "to": ("b", "c"), "weight": (1, 2)},
        {"one": pd.Series(["a", "b"]), "other": pd.Series(["b", "c"])},
        {"nodes": pd.Series(["a", "b"]), "edges": pd.Series(["b", "c"])},
        pd.DataFrame({"nodes": ["a", "b"], "edges": ["b", "c"]}),
        pd.DataFrame([["a", "b"], ["b", "c"]], columns=["from", "from"]),
        pd.DataFrame([["a", "b"], ["b", "c"]]),
        np.array([["a", "b"], ["b", "c"]]),
    ],
)
def test_columns_of_edges_are_no_neighbours(columns):
    assert pairs(of(columns)) == {("a", "b"), ("b", "c")}


def test_neighbours_among_columns_names():
    assert pairs(of({"i": ["j", "k"], "j": ["i"], "k": ["i"]})) == {("i", "j"), ("i", "k")}
    assert pairs(of({"i": ["j"], "j": ["i"]})) == {("i", "j")}


def test_ids_are_the_texts_of_a_file(tmp_path):
    """007 and 7, 0012 and 12 are different nodes, and a table of nodes has them as the edges do."""
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    edges.write_text("from,to\n007,7\n0012,12\n12,7\n")
    nodes.write_text("id,age\n007,5\n7,6\n0012,7\n12,8\n")
    assert of(edges).names == ("007", "7", "0012", "12")
    frame = pd.read_csv(nodes, dtype={"id": str})
    for table in (nodes, frame, frame.to_dict("list"), frame.set_index("id")):
        graph = of(edges, nodes=table)
        assert graph.names == ("007", "7", "0012", "12") and graph.attributes["age"].tolist() == [5, 6, 7, 8]
    assert (
        of(pd.read_csv(edges, dtype=str)).names
        == of(edges).names
        == of([("007", "7"), ("0012", "12"), ("12", "7")]).names
    )
    assert of(pd.DataFrame({"from": [7.0, 12.0], "to": [8, 7]})).names == ("7", "8", "12")
    large = tmp_path / "large.csv"
    large.write_text("from,to\n1e3,1000\n9007199254740993,9007199254740992\n00a1,a1\n")
    assert of(large).n == 6


def test_ids_of_workbooks_and_matrices_are_texts(tmp_path):
    frame = pd.DataFrame({"from": ["007", "7"], "to": ["7", "8"]})
    frame.to_excel(tmp_path / "edges.xlsx", index=False)
    assert of(tmp_path / "edges.xlsx").names == ("007", "7", "8")
    matrix = pd.DataFrame([[0, 1, 0], [1, 0, 1], [0, 1, 0]], columns=["7", "007", "8"], index=["7", "007", "8"])
    for source in (matrix, matrix.iloc[[2, 0, 1]]):
        assert of(source).names == ("7", "007", "8") and pairs(of(source)) == {("007", "7"), ("007", "8")}
    matrix.add_prefix("n", axis=0).add_prefix("n", axis=1).to_csv(tmp_path / "matrix.csv")
    assert of(tmp_path / "matrix.csv").names == ("n7", "n007", "n8")


def test_one_number_written_in_two_ways_is_refused_in_words(tmp_path):
    edges = tmp_path / "edges.csv"
    edges.write_text("from,to\n007,8\n9,8\n")
    with pytest.raises(dfd.errors.DataError, match=r"'007'.*'7'.*same number.*dtype=str"):
        of(edges, nodes={"id": [7, 8, 9]})
    edges.write_text("from,to\n7.0,8\n7,8\n")
    with pytest.raises(dfd.errors.DataError, match=r"'7' and '7\.0'.*one number"):
        of(edges)


SQUARE = [[0, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0]]
NAMED = pd.DataFrame(SQUARE, index=list("abcd"), columns=list("abcd"))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (SQUARE, "1234"),
        (tuple(map(tuple, SQUARE)), "1234"),
        (np.array(SQUARE, dtype=object), "1234"),
        (NAMED.iloc[[2, 0, 3, 1]], "abcd"),
        (NAMED.iloc[:, [2, 0, 3, 1]].astype("Int64"), "cadb"),
        (NAMED.reset_index(drop=True), "abcd"),
        (NAMED.reset_index(), "abcd"),
        (NAMED.astype("Int64"), "abcd"),
        (NAMED.astype("boolean"), "abcd"),
        (pd.DataFrame(SQUARE), "0123"),
        (NAMED.mask(np.eye(4, dtype=bool)), "abcd"),
        (np.ma.masked_array(SQUARE, mask=np.eye(4)), "1234"),
    ],
)
def test_matrices_in_whatever_form(source, names):
    graph, number = of(source), {**{c: k for k, c in enumerate("abcd")}, **{c: int(c) for c in names if c.isdigit()}}
    assert "".join(graph.names) == names and not graph.directed
    first = 1 if names == "1234" else 0
    ties = {tuple(sorted((number[a] - first, number[b] - first))) for a, b in pairs(graph)}
    assert ties == {(0, 1), (0, 2), (2, 3)}


def test_small_matrices_and_edges_of_few_rows():
    assert of([[0, 1, 1], [1, 0, 0], [1, 0, 0]]).ties == 2 and of([[0, 1], [1, 0]]).ties == 1
    assert of([(0, 1), (1, 0)], directed=True).names == ("0", "1")
    assert of([[1, 2], [2, 3]]).ties == of([[1, 2, 5], [2, 3, 5], [3, 1, 5]]).ties - 1 == 2
    assert of(pd.DataFrame([[1, 2], [2, 3]])).names == ("1", "2", "3")
    assert of(pd.DataFrame({"from": [1, 2, 0], "to": [0, 1, 2], "weight": [1, 1, 1]})).ties == 3


def test_covariates_of_pairs_are_matched_by_name():
    frame = pd.DataFrame(np.arange(9.0).reshape(3, 3), index=list("cab"), columns=list("abc"))
    expected = np.array([[0, 4, 5], [6, 0, 8], [0, 1, 0]])
    ways = {"directed": True}
    assert of([("a", "b"), ("b", "c")], matrices={"m": frame}, **ways).matrices["m"].tolist() == expected.tolist()
    plain = pd.DataFrame(np.arange(9).reshape(3, 3))
    assert of([("a", "b"), ("b", "c")], matrices={"m": plain}, **ways).matrices["m"][0].tolist() == [0, 1, 2]
    known = plain.set_axis(list("bca"), axis=1)  # rows in the order of columns
    assert of([("a", "b"), ("b", "c")], matrices={"m": known}, **ways).matrices["m"][0].tolist() == [0, 6, 7]


def test_truth_values_are_numbers_for_terms_that_need_these():
    nodes = pd.DataFrame({"name": list("abc"), "boss": [True, False, True], "new": pd.array([True, False, False])})
    graph = of([("a", "b"), ("b", "c")], nodes=nodes)
    assert graph.numbers("boss", "nodecov(boss)").tolist() == [1, 0, 1]
    assert graph.numbers("new", "nodecov(new)").tolist() == [1, 0, 0]
    assert graph.levels("boss", "nodefactor(boss)")[1] == ("False", "True")
    ages = of([(1, 2)], nodes={"id": [1, 2, 3], "age": pd.array([10, None, 30], dtype="Int64")}).attributes["age"]
    np.testing.assert_array_equal(ages, [10, np.nan, 30])


def test_an_infinite_attribute_is_refused_by_its_name():
    graph = of([("a", "b"), ("b", "c")], nodes={"name": list("abc"), "wealth": [1.0, np.inf, 2.0]})
    for term in ("nodecov", "absdiff"):
        model = dfd.models.RandomGraph(f"edges + {term}('wealth')")
        with pytest.raises(dfd.errors.DataError, match="'wealth' is inf for 'b'"):
            model.observe(graph)


@pytest.mark.parametrize("directed", [False, True])
def test_plain_values_and_back(directed):
    near = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    graph = of(EDGES, nodes=NODES, directed=directed, matrices={"near": near})
    back = from_plain(to_plain(graph), dfd.ObservedGraph)
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
        ({"one": ["a", "b"], "other": ["b", "c"]}, {}, "'from' and 'to'"),
        ({"from": ["a", "b"], "to": ["c"]}, {}, "from: 2, to: 1"),
        ({"a": "b", "b": "c"}, {}, "the neighbours of 'a' are 'b'"),
        ({("a", "b"): 1}, {}, "the neighbours of"),
        ({"a": {"b": 1, "c": 0}, "b": {"a": 1}, "c": {}}, {}, "'a' and 'c' has weight 0.*weight > 0"),
        ({"a": {"b": {"weight": -1}}, "b": {}}, {}, "'a' and 'b' has weight -1"),
        ({"a": ["a", "b"], "b": []}, {}, "'a' is tied to itself"),
        (5, {}, "not a int"),
        ([("a", "b")], {"nodes": {"name": ["a", "b"], "age": [1]}}, "name: 2, age: 1"),
        ([("a", "b")], {"nodes": {"a": 1, "b": 2}}, "of columns"),
        (
            np.ma.masked_array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], mask=[[0, 1, 0], [1, 0, 0], [0, 0, 0]]),
            {},
            "'1' and '2'.*masked",
        ),
        (NAMED.astype("Int64").replace(1, pd.NA), {}, "'a' and 'b' are tied.*missing"),
        (NAMED.set_axis(list("wxyz"), axis=0), {}, "rows .* w, x, y, z, and its columns a, b, c, d"),
        (pd.DataFrame(np.eye(3), columns=list("aab"), index=list("aab")), {}, "a is tied to itself|same name"),
        (
            np.ma.masked_array([["a", "b"], ["b", "c"]], mask=[[0, 0], [0, 1]]),
            {},
            "row 2: an end of the edge is missing",
        ),
        (
            [("a", "b")],
            {"matrices": {"near": pd.DataFrame(1.0, index=list("xy"), columns=list("xy"))}},
            "called x, y, and the nodes a, b",
        ),
        ([("a", "b")], {"matrices": {"near": np.ma.masked_equal([[0, 3], [3, 0]], 3)}}, "no number for 'a' and 'b'"),
        ([("a", "b")], {"matrices": {"near": [["x", "y"], ["y", "z"]]}}, "matrix 'near' holds 'x'"),
        ([("a", "b")], {"matrices": {"near": [[1, 2], [2]]}}, "matrix 'near'.*different lengths"),
        ([("a", "b")], {"matrices": {"near": np.array([[0, 1j], [1j, 0]])}}, "'near' holds 0j"),
        ([("a", "b")], {"matrices": {"near": pd.DataFrame(np.full((2, 2), np.timedelta64(5, "D")))}}, "holds times"),
        (
            [("a", "b")],
            {"matrices": {"near": pd.DataFrame([[0, 1], [1, 0]], dtype="Int64").replace(1, pd.NA)}},
            "no number for",
        ),
        ([("--5", "a"), ("a", "--5")], {}, "'--5' and 'a'|'a' and '--5'"),
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
