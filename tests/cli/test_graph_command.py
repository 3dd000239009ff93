"""A social network on the command line: two tables in, a folder with a report out, and the same again from it."""

import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Edges and nodes of the Florentine families, one of which has no tie."""
    folder = tmp_path_factory.mktemp("florence")
    families = nx.florentine_families_graph()
    pd.DataFrame(families.edges, columns=["from", "to"]).to_csv(folder / "ties.csv", index=False)
    names = [*families, "Pucci"]
    pd.DataFrame({"family": names, "side": [k % 2 for k in range(16)]}).to_csv(folder / "families.csv", index=False)
    return folder / "ties.csv", folder / "families.csv"


@pytest.fixture(scope="module")
def command(tables):
    edges, nodes = tables
    quick = ["--loss", "pseudo", "--bootstrap", 60, "--sampler", "laplace", "--draws", 200]
    return ["fit", edges, "--model", "graph", "--nodes", nodes, "--terms", "edges + triangle", *quick]


def test_a_graph_from_two_tables(call, command, tables, tmp_path, monkeypatch):
    """Interrupted once its graphs are simulated, resumed, and repeated from its folder: the same draws each time."""
    out, again = tmp_path / "run", tmp_path / "again"

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("dfdbayes.core.refits.descend", stop)
        code, _, err = call(*command, "--out", out)
    assert code == 130 and "--resume" in err
    kept = sorted(path.name for path in (out / "checkpoint").glob("graphs-*"))
    assert kept == ["graphs-0.npz", "graphs-1.npz"]
    with monkeypatch.context() as patched:
        patched.setattr("dfdbayes.families.graph.chains.advance", stop)  # no chain is moved on again
        code, shown, _ = call(*command, "--out", out, "--resume")
    assert code == 0 and "graph fitted to ties.csv: 16 nodes, 20 ties" in shown
    code, shown, _ = call("rerun", out, "--out", again)
    assert code == 0 and "the draws are the same as before" in shown
    assert "20 of 120 dyads" in (again / "report.html").read_text()
    settings = json.loads((out / "run.json").read_text())["settings"]
    assert settings["options"]["terms"] == "edges + triangle" and settings["options"]["nodes"] == str(tables[1])
    found = dfd.rerun(again)
    np.testing.assert_array_equal(found.posterior["triangle"], dfd.load(out / "posterior.nc").posterior["triangle"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "graph"], "needs terms, for example RandomGraph('edges + gwesp(0.25)')"),
        (["--model", "poisson", "--terms", "edges"], "'poisson' has no terms"),
        (["--model", "graph", "--terms", "edges + mutual"], "mutual is for directed graphs"),
        (["--model", "graph", "--terms", "edges + nodecov('age')", "--directed"], "--nodes people.csv"),
        (["--model", "ergm", "--terms", "edges", "--formula", "a ~ b"], "formula= is about rows"),
        (
            ["--model", "graph", "--terms", "edges", "--nodes", "{folder}/familes.csv"],
            "did you mean '{folder}/families.csv'",
        ),
    ],
)
def test_what_is_refused(call, tables, words, said):
    folder = str(tables[0].parent)
    code, _, err = call("fit", tables[0], *(word.replace("{folder}", folder) for word in words))
    assert code == 2 and said.replace("{folder}", folder) in err


def test_nodes_that_edges_do_not_know(call, tables, tmp_path):
    nodes = tmp_path / "some.csv"
    pd.read_csv(tables[1]).iloc[:5].to_csv(nodes, index=False)
    code, _, err = call("fit", tables[0], "--model", "graph", "--terms", "edges", "--nodes", nodes)
    assert code == 2 and "is not among the nodes" in err and "some.csv" in err
