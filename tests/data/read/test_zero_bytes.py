"""A zero byte in a name is refused when the data are read, not when the result is saved."""

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest

import dfdbayes as dfd
from dfdbayes.families.graph.observed import ObservedGraph

NUL = "a\0b"
QUICK = {"draws": 20, "warmup": 20, "chains": 1, "calibration": "none", "check": False, "progress": False}
RANDOM = np.random.default_rng(0)
COUNTS = RANDOM.poisson(3.0, 40)


def _parquet(folder):
    pd.DataFrame({NUL: COUNTS}).to_parquet(folder / "x.parquet")
    return folder / "x.parquet"


def _csv(folder):
    (folder / "x.csv").write_text(f"{NUL}\n" + "\n".join(map(str, COUNTS)))
    return folder / "x.csv"


TABLES = {
    "frame": lambda folder: pd.DataFrame({NUL: COUNTS}),
    "series": lambda folder: pd.Series(COUNTS, name=NUL),
    "mapping": lambda folder: {NUL: COUNTS},
    "records": lambda folder: pd.DataFrame({NUL: COUNTS}).to_records(index=False),
    "polars": lambda folder: pl.DataFrame({NUL: COUNTS}),
    "frequencies": lambda folder: pd.Series([9, 5], index=pd.Index([1, 2], name=NUL), name="count"),
    "parquet": _parquet,
    "csv": _csv,
}


@pytest.mark.parametrize("made", TABLES.values(), ids=TABLES.keys())
def test_a_column_is_refused_when_it_is_read(tmp_path, made):
    with pytest.raises(dfd.errors.DataError, match=r"zero byte"):
        dfd.Dataset.of(made(tmp_path))
    with pytest.raises(dfd.errors.DataError, match=r"zero byte"):
        dfd.describe(made(tmp_path))


def _frame():
    return pd.DataFrame({"y": COUNTS, "x": RANDOM.normal(size=40), "g": RANDOM.choice(["c", "d"], 40)})


@pytest.mark.parametrize("name", ["y", "x", "g"])
def test_a_column_of_a_regression_is_refused_whether_it_is_used_or_not(name):
    frame = _frame().rename(columns={name: NUL})
    with pytest.raises(dfd.errors.DataError, match=r"column 'a\\x00b' has a zero byte.*rename"):
        dfd.fit("poisson", frame, formula="y ~ 1", **QUICK)


def test_a_column_of_new_data_is_refused():
    fit = dfd.fit("poisson", _frame(), formula="y ~ x", **QUICK)
    for new in ({"x": 1.0, NUL: 2.0}, {"x": [1.0], NUL: [2.0]}, pd.DataFrame({"x": [1.0], NUL: [2.0]})):
        with pytest.raises(dfd.errors.DataError, match=r"column 'a\\x00b' has a zero byte"):
            fit.predict(new)


@pytest.mark.parametrize("right", ["g", "C(g)", "x*g"])
def test_a_level_of_a_factor_is_refused(right):
    frame = _frame().replace({"g": {"d": NUL}})
    for given in (frame, frame.astype({"g": "category"})):
        with pytest.raises(dfd.errors.DataError, match=r"level of 'g' 'a\\x00b' has a zero byte"):
            dfd.fit("poisson", given, formula=f"y ~ {right}", **QUICK)


def test_a_level_of_a_scale_is_refused():
    items = pd.DataFrame({"p": RANDOM.choice([NUL, "no"], 40), "q": RANDOM.choice(["yes", "no"], 40)})
    with pytest.raises(dfd.errors.DataError, match=r"level of 'p' 'a\\x00b' has a zero byte"):
        dfd.fit("network", items, options={"levels": {"p": ["no", NUL], "q": ["no", "yes"]}}, **QUICK)


def test_nodes_and_their_attributes_are_refused():
    graph = nx.gnp_random_graph(8, 0.4, seed=1)
    with pytest.raises(dfd.errors.DataError, match=r"node 'a\\x00b' has a zero byte"):
        ObservedGraph.of(nx.relabel_nodes(graph, {0: NUL}))
    nx.set_node_attributes(graph, 1, NUL)
    with pytest.raises(dfd.errors.DataError, match=r"column 'a\\x00b' has a zero byte"):
        ObservedGraph.of(graph)
    edges = pd.DataFrame({"from": ["u", "v"], "to": ["v", "w"]})
    nodes = pd.DataFrame({"name": ["u", "v", "w"], NUL: [1, 2, 3]})
    with pytest.raises(dfd.errors.DataError, match=r"column 'a\\x00b' has a zero byte"):
        ObservedGraph.of(edges, nodes=nodes)
