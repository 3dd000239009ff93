"""Names mean what they say: nodes, parameters, edges, options; and advice that can be followed."""

import json

import networkx as nx
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes.core import graphs

ModelError = dfd.errors.ModelError
rng = np.random.default_rng(0)
FRAME = pd.DataFrame(rng.integers(0, 2, size=(200, 3)), columns=["x", "y", "z"])
EDGES = [("x", "z"), ("z", "y")]
ADJACENCY = pd.DataFrame([[0, 1, 0], [1, 0, 1], [0, 1, 0]], index=["y", "z", "x"], columns=["y", "z", "x"])


@pytest.mark.parametrize(
    "graph",
    [nx.Graph(EDGES), EDGES, ADJACENCY, ADJACENCY.loc[["x", "y", "z"]]],
    ids=["networkx", "edges", "frame", "rows"],
)
def test_nodes_are_columns_by_name(graph, quick):
    for model in (dfd.models.IsingNetwork(graph), "ising-network"):
        options = {"options": {"graph": graph}} if model == "ising-network" else {}
        fit = quick(model, FRAME.assign(other=0), loss="pseudo", **options)
        joined = {
            frozenset(name[len("interaction[") : -1].split(",")) for name in fit.minimum.names if "interaction" in name
        }
        assert joined == {frozenset("xz"), frozenset("yz")}
    fit_by_position = quick(dfd.models.IsingNetwork([(0, 2), (2, 1)]), FRAME, loss="pseudo")
    by_name = dict(zip(fit.minimum.names, fit.minimum.vector, strict=True))
    for name, value in zip(fit_by_position.minimum.names, fit_by_position.minimum.vector, strict=True):
        label = name if name in by_name else "interaction[{1},{0}]".format(*name[len("interaction[") : -1].split(","))
        assert by_name[label] == pytest.approx(value, abs=1e-6)


def test_nodes_that_are_no_columns_are_refused(quick):
    model = dfd.models.IsingNetwork(nx.Graph([("x", "z"), ("z", "w")]))
    with pytest.raises(dfd.errors.DataError, match="'w'"):
        quick(model, FRAME)
    with pytest.raises(dfd.errors.DataError, match="have no names"):
        dfd.objective(model, FRAME.to_numpy())
    with pytest.raises(ModelError, match="directed"):
        graphs.of(nx.DiGraph(EDGES))


def test_numbered_nodes_are_positions_whatever_their_order():
    graph = nx.Graph()
    graph.add_nodes_from([2, 0, 1])
    graph.add_edge(0, 2)
    assert graphs.of(graph).pairs == ((0, 2),)
    assert graphs.of(nx.grid_2d_graph(2, 2)).pairs == graphs.grid(2, 2).pairs


def test_edges_that_look_alike_keep_their_parameters(quick):
    columns = ["a", "b,c", "a,b", "c"]
    fit = quick("ising-network", pd.DataFrame(rng.integers(0, 2, size=(300, 4)), columns=columns), loss="pseudo")
    assert len(set(fit.summary().index)) == 4 + 6
    assert {"interaction[a,'b,c']", "interaction['a,b',c]"} <= set(fit.summary().index)


@pytest.mark.parametrize("name", ["chain", "draw", "a/b", "", "a[0]", "a\x1b[31m", 3])
def test_names_that_results_cannot_carry(name):
    with pytest.raises(ModelError, match=r"cannot be called|needs a name"):
        dfd.Parameter(name, dist.Normal(0, 1))


@pytest.mark.parametrize("name", ["rate", "chain"])
def test_derived_quantities_do_not_replace_parameters(name, quick):
    model = dfd.Model(
        lambda t, x: t["rate"] * x[0],
        dfd.Binary(1),
        {"rate": dist.Normal(0, 1)},
        derived=lambda t: {name: 0 * t["rate"]},
    )
    with pytest.raises(ModelError, match=r"is a parameter|cannot be called"):
        quick(model, [0, 1] * 50)


def test_odd_priors_are_sentences_or_work(quick):
    with pytest.raises(ModelError, match="improper"):
        dfd.Parameter("a", dist.ImproperUniform(dist.constraints.real, (), ()))
    shifted = dist.TransformedDistribution(dist.Normal(0, 1), dist.transforms.AffineTransform(3.0, 2.0))
    positive = dist.TransformedDistribution(shifted, dist.transforms.ExpTransform())
    assert quick("poisson", [2, 3, 4, 1] * 30, prior={"rate": positive}).summary()["mean"].iloc[0] > 0


@pytest.mark.parametrize("shape", [(4, 16), (8, 8)])
def test_one_observation_of_a_count_graph_invents_no_rows(shape):
    counts = np.random.default_rng(0).poisson(2.0, size=(1, shape[0] * shape[1]))
    for name in ("poisson-graphical", "cmp-graphical"):
        for loss in ("pseudo", "dfd", "ksd"):
            with pytest.raises(ModelError, match="one observation"):
                dfd.fit(name, counts, loss=loss, options={"graph": graphs.grid(*shape)}, progress=False)


def test_beta_by_hand_works_for_one_observation(quick):
    """As the error for a graph without blocks advises."""
    ring = graphs.of(nx.cycle_graph(60))
    row = dfd.simulate(dfd.models.Ising(ring), {"temperature": 2.0}, 1, seed=1).rows
    with pytest.raises(ModelError, match="give beta by hand"):
        quick(dfd.models.Ising(ring), row, loss="pseudo")
    fit = quick(dfd.models.Ising(ring), row, loss="pseudo", beta=1.0)
    assert 0.5 < fit.summary()["median"].iloc[0] < 20


def test_options_that_a_model_does_not_have(call, visits):
    for words, match in (
        (("--model", "cmp", "--graph", "grid:2x2"), "'cmp' has no graph"),
        (("--model", "potts", "--graph", "grid:1x2", "--states", "abc"), "whole number"),
        (("--model", "poisson", "--seed", "-1"), "whole number >= 0"),
        (("--model", "ising", "--graph", "complete:20000"), "edges"),
    ):
        code, _, err = call("fit", visits, *words)
        assert code == 2 and match in err
    for seed in (-1, 1.5, True, "x"):
        with pytest.raises(dfd.errors.SettingError, match="seed"):
            dfd.simulate(dfd.models.Poisson(), {"rate": 1.0}, 3, seed=seed)


def test_one_chain_is_valid_json(call, visits):
    words = ("--chains", "1", "--json", "--draws", "100", "--warmup", "50", "--bootstrap", "60")
    code, out, _ = call("fit", visits, "--model", "poisson", *words)
    assert code == 0 and json.loads(out, parse_constant=pytest.fail)["parameters"]["rate"]["r_hat"] is None


def test_advice_names_what_is_wrong(quick):
    """One value of 1e18 among 2000 of about 3: the row is named, whether there is a fit or not."""
    rows = np.append(np.random.default_rng(0).poisson(3.0, 2000), 10**18)
    for model, loss in (("cmp", "dfd"), ("poisson", "dfd"), ("cmp", "ratio"), ("poisson", "ratio")):
        try:
            said = " ".join(quick(model, rows, loss=loss).warnings)
        except dfd.errors.DfdbayesError as problem:
            said = str(problem)
        assert "row 2001" in said and "too few distinct" not in said


def test_ratios_of_huge_counts_keep_their_digits():
    """log x! has none left for a difference of log x where x is 1e15."""
    objective = dfd.objective(dfd.models.ConwayMaxwellPoisson(), [10**15, 10**15 + 5])
    wanted = sum((x**0.5 / 4.0e7) ** 2 - 2 * ((x + 1) ** 0.5 / 4.0e7) for x in (1e15, 1e15 + 5))
    assert objective({"rate": 4.0e7, "nu": 0.5}) == pytest.approx(wanted, rel=1e-9)


def test_fits_of_other_data_are_not_compared(quick):
    fits = {k: quick("poisson", np.random.default_rng(k).poisson(3.0, 100)) for k in (1, 2)}
    with pytest.raises(dfd.errors.SettingError, match="different data"):
        dfd.compare(fits)


def test_numbered_nodes_that_are_no_positions_are_names():
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (50, 3)), columns=[30, 10, 20])
    model = dfd.models.IsingNetwork(nx.Graph([(30, 10), (10, 20)]))
    names = dfd.objective(model, frame, "pseudo").model.space.names
    joined = {frozenset(n[len("interaction[") : -1].split(",")) for n in names if n.startswith("interaction")}
    assert joined == {frozenset(("30", "10")), frozenset(("10", "20"))}
    with pytest.raises(dfd.errors.DataError):
        dfd.objective(dfd.models.IsingNetwork(nx.Graph([("a", 1), (1, "b")])), frame)
