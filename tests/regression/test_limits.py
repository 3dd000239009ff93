"""Work that cannot be done is refused before it begins; nothing is open to strangers."""

import multiprocessing
import os
import socket
import time
import tracemalloc
import urllib.error
import urllib.request

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes._util import resources
from dfdbayes.cli import compiled
from dfdbayes.cli.printing import printable
from dfdbayes.core import graphs
from dfdbayes.core.terms import coarse_size


def test_too_large_models_are_refused_before_the_data_are_read(monkeypatch):
    began = time.perf_counter()
    with pytest.raises(dfd.errors.ModelError, match="edges"):
        dfd.fit("ising-network", np.zeros((3, 40_000), dtype=np.int8), progress=False)
    with pytest.raises(dfd.errors.DataError, match="needs 1 column"):
        dfd.fit("cmp", np.zeros((3, 40_000), dtype=np.int8), progress=False)
    with pytest.raises(dfd.errors.ModelError, match="edges"):
        graphs.complete(20_000)
    monkeypatch.setattr(resources, "memory", lambda: 2 * 2.0**30)
    with pytest.raises(dfd.errors.SettingError, match=r"5050 parameters.* GiB of memory; the machine has 2 GiB"):
        dfd.fit("ising-network", np.random.default_rng(0).integers(0, 2, size=(300, 100)), progress=False)
    assert time.perf_counter() - began < 20  # they took half a minute each, or 13 GB


@pytest.mark.parametrize("formula", ["y ~ x + g", "y ~ x + C(number)", "y ~ g:h"])
def test_factors_with_too_many_levels_are_refused_before_their_matrix_is_made(monkeypatch, formula):
    n = 4000
    frame = pd.DataFrame({"y": np.arange(n) % 5, "x": np.linspace(0.0, 1.0, n), "number": np.arange(n) // 2})
    frame = frame.assign(g=[f"l{i}" for i in frame["number"]], h=["a", "b"] * (n // 2))
    monkeypatch.setattr(resources, "memory", lambda: 2.0**30)
    tracemalloc.start()
    name = "number" if "number" in formula else "g"
    with pytest.raises(dfd.errors.SettingError, match=rf"'{name}' has 2000 levels.* GiB of memory.*rare levels"):
        dfd.fit("poisson", frame, formula=formula, progress=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * n * 500  # a quarter of the matrix


def test_factors_of_some_levels_are_not(monkeypatch, quick):
    frame = pd.DataFrame({"y": np.arange(200) // 7 % 5, "g": [f"l{i}" for i in np.arange(200) % 20]})
    monkeypatch.setattr(resources, "memory", lambda: 2.0**30)
    assert len(quick("poisson", frame, formula="y ~ g").minimum.names) == 20


def counts_with_covariate(n):
    rng = np.random.default_rng(n)
    return pd.DataFrame({"y": rng.poisson(3.0, n), "x": rng.normal(size=n)})


def test_regressions_of_almost_as_many_rows_share_what_is_compiled(quick):
    """Each size was compiled for by itself: 20 megabytes for every 16 rows more."""
    quick("poisson", counts_with_covariate(200), formula="y ~ x", check=False)
    before = resources.compiled()
    for n in range(140, 256, 15):
        quick("poisson", counts_with_covariate(n), formula="y ~ x", check=False)
    assert resources.compiled() == before
    assert len({coarse_size(n) for n in range(64, 16_000)}) < 30
    assert all(n <= coarse_size(n) <= 1.25 * n + 64 for n in range(512, 16_000, 7))


def test_what_was_compiled_is_freed_where_it_is_much(quick, monkeypatch):
    first = quick("poisson", counts_with_covariate(100), formula="y ~ x", check=False)
    monkeypatch.setattr(resources, "MAX_COMPILED_FUNCTIONS", 0)
    again = quick("poisson", counts_with_covariate(100), formula="y ~ x", check=False)
    np.testing.assert_array_equal(first.posterior["mean"], again.posterior["mean"])
    assert 0 < resources.compiled() < 40  # of this fit alone
    resources.forget_compiled()
    assert resources.compiled() == 0


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs the process's memory")
def test_memory_of_many_different_regressions_is_bounded(quick, monkeypatch):
    """24 shapes took 570 megabytes where nothing was freed."""
    monkeypatch.setattr(resources, "MAX_COMPILED_FUNCTIONS", 30)

    def used():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    rng, sizes = np.random.default_rng(0), []
    for k in range(1, 21):
        names = [f"x{i}" for i in range(k)]
        frame = pd.DataFrame(rng.normal(size=(100, k)), columns=names).assign(y=rng.poisson(3.0, 100))
        quick("poisson", frame, formula=f"y ~ {' + '.join(names)}", check=True)
        sizes.append(used())
    assert sizes[-1] - sizes[4] < 100


def test_long_runs_are_announced(monkeypatch, quick):
    told = []

    class Listening:
        def begin(self, stage, total):
            return lambda done: None

        def tell(self, text):
            told.append(text)

    rows = np.random.default_rng(0).poisson(3.0, 100)
    quick("poisson", rows, progress=Listening())
    assert told == []
    monkeypatch.setattr(resources, "OPERATIONS_PER_SECOND", 0.01)
    quick("poisson", rows, progress=Listening())
    assert len(told) == 1 and "1 parameters" in told[0] and "GiB" in told[0]


def _child(results):
    try:
        dfd.simulate(dfd.models.Poisson(), {"rate": 2.0}, 5)
    except dfd.errors.ProcessError as problem:
        results.put(str(problem))
    else:
        results.put("computed")


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
def test_a_forked_process_says_why_it_cannot_compute():
    dfd.simulate(dfd.models.Poisson(), {"rate": 2.0}, 5)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=_child, args=(results,))
    child.start()
    child.join(30)
    assert child.exitcode == 0, "it hung"
    said = results.get()
    assert "forked" in said and "spawn" in said


def test_a_local_cluster_listens_to_nobody(monkeypatch):
    from dfdbayes.backends.dask import connected

    bound, bind = [], socket.socket.bind

    def bind_and_tell(self, address):
        bind(self, address)
        bound.append(self.getsockname())

    monkeypatch.setattr(socket.socket, "bind", bind_and_tell)
    with connected("local") as client:
        assert client.scheduler.address.startswith("inproc://")
        assert client.submit(lambda: 3).result() == 3
        for host, port in bound:
            assert host == "127.0.0.1"
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://{host}:{port}/info/main/workers.html")


def test_a_cache_that_others_may_write_is_not_used(tmp_path, monkeypatch):
    import jax

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    changed = []
    monkeypatch.setattr(jax.config, "update", lambda name, value: changed.append(name))
    monkeypatch.setattr(type(jax.config), "jax_compilation_cache_dir", None, raising=False)
    folder = tmp_path / "dfdbayes" / "compiled"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    compiled.keep_compiled_code()
    assert changed == []
    folder.chmod(0o700)
    compiled.keep_compiled_code()
    assert "jax_compilation_cache_dir" in changed


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder for caches, of which the package's own is made."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    assert compiled._own_folder() == tmp_path / "home" / "cache" / "dfdbayes" / "compiled"
    return tmp_path / "home" / "cache"


@pytest.mark.parametrize("inside", ["dfdbayes/compiled", "dfdbayes", ".", ".."])
def test_no_parent_of_the_cache_may_be_written_by_others(cache, inside):
    """Whoever may write a parent puts a folder of their own in place of the cache."""
    (cache / inside).resolve().chmod(0o777)
    assert compiled._own_folder() is None
    (cache / inside).resolve().chmod(0o755)
    assert compiled._own_folder() is not None


def test_a_sticky_parent_will_do_as_others_cannot_move_what_is_there(cache):
    cache.parent.chmod(0o1777)
    assert compiled._own_folder() is not None
    (cache / "dfdbayes" / "compiled").chmod(0o1777)
    assert compiled._own_folder() is None


def test_a_group_may_write_a_parent_if_nobody_else_is_in_it(cache, monkeypatch):
    cache.chmod(0o775)
    monkeypatch.setattr(compiled, "_is_private", lambda group: False)
    assert compiled._own_folder() is None
    monkeypatch.setattr(compiled, "_is_private", lambda group: True)
    assert compiled._own_folder() is not None


def test_a_parent_of_somebody_else_is_not_trusted(cache, monkeypatch):
    own = cache.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    assert (compiled._own_folder() is None) == (own != 0)
    monkeypatch.undo()
    if own == 0:
        os.chown(cache, 12345, 12345)
        assert not compiled._is_ours(cache / "dfdbayes" / "compiled")


def test_where_a_link_leads_is_looked_at_and_the_way_there(cache, tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "real" / "compiled").mkdir(parents=True)
    (cache / "dfdbayes" / "compiled").rmdir()
    (cache / "dfdbayes").rmdir()
    (cache / "dfdbayes").symlink_to(tmp_path / "open" / "real")
    assert compiled._own_folder() is not None
    (tmp_path / "open").chmod(0o777)
    assert compiled._own_folder() is None


def test_names_do_not_command_the_terminal(call, tmp_path):
    path = tmp_path / "x.csv"
    evil = "a\x1b]0;owned\x07\x9b31m"
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, size=(80, 2)), columns=[evil, "b"])
    frame.to_csv(path, index=False)
    for words in (("--model", "ising-network", "--loss", "pseudo", "--sampler", "laplace", "--bootstrap", "60"),
                  ("--model", "cmp",), ("--model", "cmp", "--columns", "nothing")):  # fmt: skip
        _, out, err = call("fit", path, *words)
        assert not any(c in out + err for c in "\x1b\x07\x9b")
    assert printable("a\x1b[0m\tb\n") == "a\\x1b[0m\tb\n" and printable("Zürich ≥ 3") == "Zürich ≥ 3"
    assert printable(os.fsdecode(b"\xff")) == "?"
