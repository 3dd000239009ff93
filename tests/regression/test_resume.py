"""A run that was interrupted goes on: with every sampler, loss, calibration and resampling that there is.

Cases come from the registries, so that what is registered later is tested without being named here.
"""

import signal
import subprocess
import sys
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes import losses
from dfdbayes._util.checkpoint import Folder, forget, unfinished
from dfdbayes.core import calibration, resampling
from dfdbayes.core import samplers as sampling
from dfdbayes.core.resampling import AbstractResampling

QUICK = {"draws": 60, "warmup": 50, "chains": 2, "bootstrap": 80, "progress": False, "check": False}
COUNTS = np.random.default_rng(0).poisson(3.0, 200)


KILLING = """
import os, signal
from dfdbayes import cli
from dfdbayes._util.checkpoint import Folder
part = Folder.part
def killed(self, name, compute):
    if name == "turns-2":
        os.kill(os.getpid(), signal.SIGKILL)
    return part(self, name, compute)
Folder.part = killed
cli.main()
"""


def concrete(kind):
    """All classes that can be made of a base class of this package."""
    below = [kind, *(found for one in kind.__subclasses__() for found in concrete(one))]
    known = [one for one in below if one.__module__.startswith("dfdbayes")]
    return list(dict.fromkeys(one for one in known if not one.__abstractmethods__))


def rows():
    return "cmp", COUNTS, {}


def in_clusters():
    frame = pd.DataFrame({"visits": COUNTS, "school": np.repeat(np.arange(20), 10)})
    return "cmp", frame, {"columns": ["visits"], "cluster": "school"}


def of_a_series():
    frame = pd.DataFrame({"visits": COUNTS, "day": np.arange(len(COUNTS))})
    return "poisson", frame, {"formula": "visits ~ lag(visits)", "time": "day"}


def a_lattice():
    return dfd.models.Ising(dfd.graphs.grid(6, 6)), np.random.default_rng(1).choice([-1, 1], (1, 36)), {}


def incomplete():
    answers = np.random.default_rng(2).integers(0, 2, (150, 3)).astype(float)
    answers[np.random.default_rng(3).random(answers.shape) < 0.1] = np.nan
    return "ising-network", pd.DataFrame(answers, columns=["a", "b", "c"]), {"missing": "impute", "loss": "ratio"}


def a_graph():
    return dfd.models.RandomGraph("edges + triangle"), nx.gnp_random_graph(14, 0.25, seed=1), {}


def a_small_graph():
    """Few enough dyads to draw graphs from a list of all, and not by chains."""
    return dfd.models.RandomGraph("edges"), nx.gnp_random_graph(6, 0.4, seed=1), {}


def a_map():
    frame = pd.DataFrame([(i, j) for i in range(7) for j in range(7)], columns=["row", "col"])
    frame["there"] = np.random.default_rng(4).integers(0, 2, len(frame))
    return "autologistic", frame, {"formula": "there ~ 1", "options": {"at": ["row", "col"]}}


BOOTSTRAPPED = {"loss": "ratio", "calibration": "score-matching-invariant", "sampler": "laplace"}
NEEDS = {resampling.Clusters: in_clusters, resampling.Windows: of_a_series, resampling.Blocks: a_lattice}
CASES = {
    # The discrete Fisher divergence has no normal posterior here: the default sampler turns to chains that keep parts.
    **{f"sampler {name}": (rows, {"sampler": name, "loss": "dfd", "draws": 100}) for name in sampling.SAMPLERS},
    **{f"loss {name}": (rows, {"loss": name}) for name in losses.names()},
    **{f"calibration {name}": (rows, BOOTSTRAPPED | {"calibration": name}) for name in calibration.CALIBRATIONS},
    **{
        f"resampling {kind.__name__}": (NEEDS.get(kind, rows), BOOTSTRAPPED | {"resampling": kind()})
        for kind in concrete(AbstractResampling)
    },
    **{f"resampling {kind}": (rows, BOOTSTRAPPED | {"resampling": kind}) for kind in resampling.KINDS},
    "imputation": (incomplete, BOOTSTRAPPED),
    "a simulated likelihood": (a_small_graph, {"sampler": "hmc"}),
    "simulated graphs": (a_graph, {"loss": "pseudo"}),
    "simulated maps": (a_map, {}),
}


def fitted(case, **settings):
    make, own = CASES[case]
    model, data, about = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dfd.fit(model, data, **(QUICK | about | own | settings))


def assert_same(found, wanted):
    assert found.beta == wanted.beta
    for name in wanted.posterior:
        np.testing.assert_array_equal(found.posterior[name], wanted.posterior[name])


class Stopped(BaseException):
    """Ends a run, as an interruption does."""


@pytest.fixture
def stop_at(monkeypatch):
    """Lets a run be stopped as its k-th part is about to be computed; counts those that are."""

    class Counted(list):
        last = None

        def until(self, last):
            self.clear()
            self.last = last

    computed, part = Counted(), Folder.part

    def counted(self, name, compute):
        def of_part():
            if len(computed) == computed.last:
                raise Stopped
            computed.append(name)
            return compute()

        return part(self, name, of_part)

    monkeypatch.setattr(Folder, "part", counted)
    return computed


def interrupted_and_resumed(case, kept, stop_at, moments):
    """At so many moments of the parts' number as ``moments`` gives."""
    wanted = fitted(case, checkpoint=kept)
    names = list(stop_at)
    assert unfinished(kept) == bool(names)
    stop_at.until(0)  # of a finished run every part is there
    assert_same(fitted(case, checkpoint=kept), wanted)
    for first in moments(len(names)):
        stop_at.until(first)
        with pytest.raises(Stopped):
            fitted(case, checkpoint=kept, resume=False)
        assert list(stop_at) == names[:first]
        stop_at.until(None)
        assert_same(fitted(case, checkpoint=kept), wanted)
        assert list(stop_at) == names[first:]  # and no part is computed twice
    forget(kept)
    assert not kept.exists()
    return names


@pytest.mark.parametrize("case", CASES)
@pytest.mark.daily("calibration curvature", "imputation", "resampling Clusters")
def test_an_interrupted_run_goes_on(case, tmp_path, stop_at):
    names = interrupted_and_resumed(case, tmp_path / "kept", stop_at, lambda parts: [parts // 2] if parts else [])
    if case in ("sampler auto", "sampler hmc", "sampler nuts", "sampler random-walk", "simulated graphs", "imputation"):
        assert names  # or nothing was interrupted


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_run_goes_on_from_every_part(case, tmp_path, stop_at):
    interrupted_and_resumed(case, tmp_path / "kept", stop_at, range)


def test_a_part_is_known_by_what_it_holds(tmp_path):
    """Not by its name: a sampler that calls its parts otherwise is resumed, replaced and tidied up like the others."""
    kept = tmp_path / "kept"
    Folder(kept, {"seed": 1}).part("whatever", lambda: {"z": np.ones(2)})
    assert unfinished(kept)
    again = Folder(kept, {"seed": 1}).part("whatever", lambda: pytest.fail("there already"))
    np.testing.assert_array_equal(again["z"], np.ones(2))
    (kept / "about.json").unlink()  # parts are ours without it
    Folder(kept, {"seed": 2})
    np.savez(kept / "mine.npz", run=np.array("the second run"), z=np.ones(2))
    (kept / "notes.txt").write_text("mine")
    Folder(kept, {"seed": 2}).part("whatever", lambda: {"z": np.zeros(2)})  # beside parts a user may keep files
    forget(kept)
    assert sorted(file.name for file in kept.iterdir()) == ["mine.npz", "notes.txt"]


def test_a_fit_saved_beside_parts_is_not_removed(tmp_path):
    """A folder that is both checkpoint and where the user saves the result."""
    fit = fitted("sampler laplace", checkpoint=tmp_path, check=True)
    fit.save(tmp_path / "posterior.nc")
    before = (tmp_path / "posterior.nc").read_bytes()
    fitted("sampler laplace", checkpoint=tmp_path, check=True, seed=1, resume=False)
    assert (tmp_path / "posterior.nc").read_bytes() == before


def test_what_a_killed_write_left_is_removed(call, visits, tmp_path):
    """In the folder of the run and in that of its parts; a user's own files stay."""
    out, quick = tmp_path / "run", ("--sampler", "laplace", "--draws", "100")
    Folder(out / "checkpoint", {"seed": 1})
    left = [out / ".posterior.nc.0a1b2c3d.part", out / ".UNFINISHED.0a1b2c3d.part"]
    left += [out / "checkpoint" / ".block-7.npz.0a1b2c3d.part", out / "checkpoint" / ".about.json.0a1b2c3d.part"]
    mine = out / ".mine.txt.0a1b2c3d.part"
    for file in (*left, mine):
        file.write_bytes(b"half writ")
    assert call("fit", visits, "--model", "poisson", "--out", out, "--resume", *quick)[0] == 0
    assert not any(file.exists() for file in left) and mine.exists() and not (out / "checkpoint").exists()


@pytest.fixture
def killed(visits, tmp_path):
    """A command by the default sampler that was killed midway, and its folder."""
    words = ["fit", visits, "--model", "cmp", "--loss", "dfd", "--draws", "400", "--chains", "2", "--no-check"]
    out = tmp_path / "out"
    ended = subprocess.run([sys.executable, "-c", KILLING, *map(str, words), "--out", str(out)], capture_output=True)
    assert ended.returncode == -signal.SIGKILL and (out / "checkpoint" / "turns-1.npz").exists()
    return words, out


def test_a_killed_command_goes_on(call, killed, tmp_path):
    words, out = killed
    assert call(*words, "--out", out)[0] == 2  # what to do with it has to be said
    code, _, err = call(*words, "--out", out, "--resume")
    assert code == 0, err
    assert call(*words, "--out", tmp_path / "whole")[0] == 0
    assert_same(dfd.load(out / "posterior.nc"), dfd.load(tmp_path / "whole" / "posterior.nc"))
    assert not (out / "checkpoint").exists()


@pytest.mark.slow
def test_a_killed_command_is_replaced_with_force(call, killed):
    words, out = killed
    assert call(*words, "--seed", "1", "--out", out, "--force")[0] == 0
    assert not (out / "checkpoint").exists()
