"""One machine, chunks, and a cluster that loses a worker give the same answer."""

import importlib
import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes._util.checkpoint import Folder
from dfdbayes.backends import dask as distributed
from dfdbayes.core import replicates
from dfdbayes.data.read import dataset as data

dask = pytest.importorskip("distributed")
SAME = 1e-10
PLAIN = {"sampler": "laplace", "progress": False}
QUICK = PLAIN | {"calibration": "score-matching-invariant", "bootstrap": 100}


@pytest.fixture(scope="module")
def cluster():
    settings = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.LocalCluster(n_workers=2, **settings) as cluster, dask.Client(cluster) as client:
        yield cluster, client


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    """Three related counts in a folder of files, and as an array."""
    rng = np.random.default_rng(0)
    shared = rng.poisson(1.0, (3000, 1))
    rows = rng.poisson([2.0, 3.0, 1.5], (3000, 3)) + np.where(rng.random((3000, 1)) < 0.5, shared, 0) * [[0, 0, 1]]
    folder = tmp_path_factory.mktemp("counts")
    for k, part in enumerate(np.array_split(rows, 5)):
        frame = pd.DataFrame(part, columns=["a", "b", "c"])
        frame.to_csv(folder / f"{k}.csv", index=False) if k % 2 else frame.to_parquet(folder / f"{k}.parquet")
    return rows, folder


def model():
    return dfd.models.PoissonGraphical(3)


def assert_same(found, wanted):
    assert found.beta == pytest.approx(wanted.beta, rel=SAME)
    np.testing.assert_allclose(found.minimum.vector, wanted.minimum.vector, atol=SAME, rtol=0)
    np.testing.assert_allclose(found.calibration.minimisers, wanted.calibration.minimisers, atol=1e-8, rtol=0)
    assert found.data.n == wanted.data.n


@pytest.fixture
def many(monkeypatch):
    """As if the distinct rows were too many: they are resampled in buckets, and stay with the workers."""
    monkeypatch.setattr(importlib.import_module("dfdbayes.core.resampling"), "MANY_ROWS", 50)
    monkeypatch.setattr(distributed, "MAX_GATHERED_ROWS", 50)


@pytest.fixture
def wanted(counts, many):
    with pytest.warns(dfd.errors.DfdbayesWarning):
        return dfd.fit(model(), counts[0], loss="ratio", **QUICK)


@pytest.mark.filterwarnings("ignore::dfdbayes.errors.DfdbayesWarning")
def test_chunks_and_files_and_rows_in_any_order(counts, wanted, monkeypatch):
    monkeypatch.setattr(data, "ROWS_AT_ONCE", 111)
    assert_same(dfd.fit(model(), counts[1], loss="ratio", **QUICK), wanted)
    assert_same(dfd.fit(model(), counts[0][::-1], loss="ratio", **QUICK), wanted)


@pytest.mark.filterwarnings("ignore::dfdbayes.errors.DfdbayesWarning")
def test_rows_that_stay_with_two_workers_and_come_back_from_them(counts, wanted, cluster):
    _, client = cluster
    spread = dfd.fit(model(), counts[1], loss="ratio", client=client, **QUICK)
    assert "sample" in spread.data.source
    assert_same(spread, wanted)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dfdbayes.errors.DfdbayesWarning")
def test_rows_that_stay_with_two_workers_by_every_road(counts, wanted, cluster, monkeypatch):
    _, client = cluster
    with monkeypatch.context() as by_one:  # from memory, and replicates by the Hessian of the full data
        by_one.setattr(replicates, "FEW_PARAMETERS", 0)
        assert_same(dfd.fit(model(), counts[0], loss="ratio", client=client, **QUICK), wanted)
    here, there = (dfd.fit(model(), counts[1], loss="ratio", client=c, **PLAIN) for c in (None, client))
    assert_same(there, here)  # the default calibration: gradients of single rows are squared where the rows are
    monkeypatch.setattr(distributed, "MAX_GATHERED_ROWS", 10**6)
    gathered = dfd.fit(model(), counts[1], loss="ratio", client=client, **QUICK)
    assert gathered.data.source == counts[1].name
    assert_same(gathered, wanted)
    np.testing.assert_array_equal(gathered.data.first, dfd.Dataset.of(counts[1]).first)
    whole = dfd.fit(model(), counts[1], loss="ratio", **QUICK)
    np.testing.assert_array_equal(gathered.posterior["intercept"], whole.posterior["intercept"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dfdbayes.errors.DfdbayesWarning")
def test_four_workers_of_which_one_dies_midway(counts, wanted, cluster):
    local, client = cluster
    local.scale(4)
    client.wait_for_workers(4, timeout=60)
    victim, killed = next(iter(client.run(os.getpid).values())), []

    def kill():
        time.sleep(1.0)
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    thread = threading.Thread(target=kill)
    thread.start()
    found = dfd.fit(model(), counts[1], loss="ratio", client=client, **QUICK)
    thread.join()
    assert killed
    assert_same(found, wanted)


def test_errors_come_back_with_their_file_and_row(tmp_path, cluster):
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    (tmp_path / "b.csv").write_text("x\n3\n1.5\n")
    with pytest.raises(dfd.errors.DataError, match=r"b\.csv: row 2, column 'x' is 1\.5"):
        dfd.fit("poisson", tmp_path, client=cluster[1], progress=False)
    (tmp_path / "b.csv").write_text("x\n3\n-4\n")
    with pytest.raises(dfd.errors.DataError, match=r"b\.csv: row 2, column 'x' is -4"):
        dfd.fit("poisson", tmp_path, client=cluster[1], progress=False)


@pytest.mark.slow
def test_coverage_replicates_on_a_cluster(cluster):
    about = {"bootstrap": 50, "sampler": "laplace", "progress": False}
    theta = {"rate": 3.0}
    here = dfd.coverage(dfd.models.Poisson(), theta, 100, 6, **about)
    there = dfd.coverage(dfd.models.Poisson(), theta, 100, 6, client=cluster[1], **about)
    assert there == here


def test_no_scheduler_is_said_plainly():
    with (
        pytest.raises(dfd.errors.SettingError, match="no Dask scheduler at"),
        distributed.connected("tcp://127.0.0.1:9", patience=1.0),
    ):
        pass


def on_the_client(*arguments, **settings):
    raise AssertionError("fitted in this process, and not on a worker")


@pytest.mark.filterwarnings("ignore::dfdbayes.errors.DfdbayesWarning")
@pytest.mark.parametrize("kind", ["rows in several parts", "a graph", "a map"])
@pytest.mark.slow
def test_simulated_data_sets_are_fitted_by_the_workers(cluster, monkeypatch, kind):
    """A parametric bootstrap runs there, and gives the same: of rows in several parts, of a graph, of a map."""
    import networkx as nx

    settings = {"resampling": "parametric", "bootstrap": 120, "sampler": "laplace", "draws": 100, "progress": False}
    if kind == "a graph":
        made, observed = dfd.models.RandomGraph("edges + gwesp(0.25)"), nx.florentine_families_graph()
    elif kind == "a map":
        made, observed = "autologistic", pd.DataFrame([(i, j) for i in range(7) for j in range(7)], columns=["r", "c"])
        observed["there"] = np.random.default_rng(4).integers(0, 2, len(observed))
        settings |= {"formula": "there ~ 1", "options": {"at": ["r", "c"]}}
    else:
        made, observed = "ising-network", dfd.simulate(dfd.models.IsingNetwork(3), np.zeros(6), 60, seed=1).rows
    here = dfd.fit(made, observed, **settings)
    monkeypatch.setattr("dfdbayes.core.replicates.descend", on_the_client)
    there = dfd.fit(made, observed, client=cluster[1], **settings)
    np.testing.assert_allclose(there.calibration.minimisers, here.calibration.minimisers, atol=1e-6)


@pytest.fixture
def small_cluster(request, monkeypatch):
    """A worker that nobody restarts, missed after a second; in this process unless a test wants another."""
    monkeypatch.setattr(distributed, "MAX_SECONDS_ALONE", 1.0)
    monkeypatch.setattr(distributed, "SECONDS_BETWEEN_LOOKS", 0.2)
    settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    apart = getattr(request, "param", False)
    with dask.LocalCluster(processes=apart, **settings) as cluster, dask.Client(cluster) as client:
        yield cluster, client


def ended_by(monkeypatch, act):
    """Let a run's cluster go away once its first part is there."""
    ended = []

    def part(self, name, compute, keep=Folder.part):
        found = keep(self, name, compute)
        if not ended:
            ended.append(name)
            act()
        return found

    monkeypatch.setattr(Folder, "part", part)


ENDS = {
    "workers": lambda cluster, client: cluster.scale(0),
    "client": lambda cluster, client: client.close(),
    "cluster": lambda cluster, client: cluster.close(),
}


@pytest.mark.filterwarnings("ignore::dfdbayes.errors.DfdbayesWarning")
@pytest.mark.parametrize("lost", ENDS)
@pytest.mark.daily("client")
def test_a_cluster_that_goes_away_midway_is_told_in_words(counts, small_cluster, tmp_path, monkeypatch, lost):
    """With the folder of what is done, from which the same run goes on without a cluster."""
    rows, settings = counts[0][:400], QUICK | {"bootstrap": 600, "checkpoint": tmp_path / "kept", "loss": "ratio"}
    with monkeypatch.context() as patch:
        ended_by(patch, lambda: ENDS[lost](*small_cluster))
        with pytest.raises(dfd.errors.ClusterError, match=r"(no worker|closed|lost).*kept in '.*kept'"):
            dfd.fit(model(), rows, client=small_cluster[1], **settings)
    assert (tmp_path / "kept" / "bootstrap-0.npz").exists()
    wanted = dfd.fit(model(), rows, **(settings | {"checkpoint": None}))
    assert_same(dfd.fit(model(), rows, **settings), wanted)


@pytest.mark.filterwarnings("ignore::dfdbayes.errors.DfdbayesWarning")
@pytest.mark.parametrize("small_cluster", [True], indirect=True)
@pytest.mark.slow
def test_workers_that_are_lost_with_their_rows_are_told_in_words(counts, many, small_cluster, tmp_path, monkeypatch):
    """Also through compiled code, which asks them for the loss."""
    ended_by(monkeypatch, lambda: ENDS["workers"](*small_cluster))
    with pytest.raises(dfd.errors.ClusterError, match=r"no worker for 1 seconds.*kept in '.*kept'"):
        dfd.fit(model(), counts[0][:400], client=small_cluster[1], loss="ratio", checkpoint=tmp_path / "kept", **QUICK)


def test_a_cluster_without_workers_is_told_in_words(small_cluster, tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    small_cluster[0].scale(0)
    with pytest.raises(dfd.errors.ClusterError, match=r"no worker.*checkpoint="):
        dfd.fit("poisson", tmp_path, client=small_cluster[1], progress=False)
    with pytest.raises(dfd.errors.ClusterError, match=r"no worker.*path="):
        dfd.coverage(dfd.models.Poisson(), {"rate": 3.0}, 50, 2, client=small_cluster[1], progress=False)
