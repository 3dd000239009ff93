"""Nothing of a user's is deleted, runs do not mix, and a folder is whole or says that it is not."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import dfdbayes as dfd
from dfdbayes._util.checkpoint import Folder, forget
from dfdbayes._util.files import write_atomically
from dfdbayes._util.resources import threads
from dfdbayes.fitting import runs

X = np.random.default_rng(0).poisson(3.0, 200)

QUICK = ("--bootstrap", "60", "--draws", "100", "--sampler", "laplace")
COMMAND = [sys.executable, "-m", "dfdbayes"]


def interrupted(path, about=None):
    """What a run that was stopped leaves behind."""
    path.mkdir(parents=True, exist_ok=True)
    folder = Folder(path, about or {"model": "other"})
    folder.part("bootstrap-0", lambda: {"v": np.ones(3)})


def test_a_folder_of_the_users_own_is_not_touched(call, tmp_path, visits):
    out = tmp_path / "out"
    (out / "checkpoint").mkdir(parents=True)
    (out / "checkpoint" / "thesis.txt").write_text("three years of work")
    for words in (["typo.csv"], [visits], [visits, "--force"], [visits, "--resume"]):
        call("fit", *words, "--model", "poisson", "--out", out, *QUICK)
        assert (out / "checkpoint" / "thesis.txt").read_text() == "three years of work"


def test_only_parts_of_runs_are_removed(tmp_path):
    interrupted(tmp_path / "checkpoint")
    (tmp_path / "checkpoint" / "notes.md").write_text("mine")
    forget(tmp_path / "checkpoint")
    assert [p.name for p in (tmp_path / "checkpoint").iterdir()] == ["notes.md"]
    elsewhere = tmp_path / "elsewhere"
    interrupted(elsewhere)
    (tmp_path / "link").symlink_to(elsewhere)
    forget(tmp_path / "link")
    assert (elsewhere / "bootstrap-0.npz").exists()


def test_an_interrupted_run_is_not_destroyed_by_forgetting_resume(call, tmp_path, visits):
    out = tmp_path / "out"
    interrupted(out / "checkpoint")
    code, _, err = call("fit", visits, "--model", "poisson", "--out", out, *QUICK)
    assert code == 2 and "holds an interrupted run" in err and "--resume" in err and "--force" in err
    assert (out / "checkpoint" / "bootstrap-0.npz").exists()
    code, _, err = call("fit", "typo.csv", "--model", "poisson", "--out", out, "--force", *QUICK)
    assert code == 2 and (out / "checkpoint" / "bootstrap-0.npz").exists()  # input comes before removal
    assert call("fit", visits, "--model", "poisson", "--out", out, "--force", *QUICK)[0] == 0
    assert not (out / "checkpoint").exists()


def test_two_runs_do_not_share_a_folder(call, tmp_path, visits):
    """The second is refused while the first runs; nobody reads the other's parts."""
    out = tmp_path / "out"
    words = ["fit", visits, "--model", "poisson", "--calibration", "gpc", "--out", out]
    words += ["--sampler", "nuts", "--draws", "100000"]
    first = subprocess.Popen([*COMMAND, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            time.sleep(0.05)
            if (out / "checkpoint" / "bootstrap-0.npz").exists():
                break
        code, _, err = call(*words, "--resume")
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    assert code == 2 and "another run is using the folder" in err
    # the lock went with the process that held it
    code, _, err = call(*words)
    assert code == 2 and "holds an interrupted run" in err


def test_threads_do_not_share_a_folder(tmp_path, quick):
    rows, held, done = np.random.default_rng(0).poisson(3.0, 100), threading.Event(), threading.Event()

    class Waiting:
        def begin(self, stage, total):
            if stage == "sampling":
                held.set()
                done.wait(60)
            return lambda steps: None

        def tell(self, text):
            pass

    first = threading.Thread(target=lambda: quick("poisson", rows, checkpoint=tmp_path / "s", progress=Waiting()))
    first.start()
    assert held.wait(60)
    try:
        with pytest.raises(dfd.errors.SettingError, match="another run is using"):
            quick("poisson", rows, checkpoint=tmp_path / "s")
    finally:
        done.set()
        first.join()


def test_parts_know_their_run(tmp_path):
    """Whatever happened to about.json: another run's parts are computed anew, and so are empty and alien files."""
    theirs = Folder(tmp_path, {"seed": 1})
    theirs.part("block-0", lambda: {"z": np.zeros(2)})
    for damage in ("", "{", "garbled", None):
        if damage is None:
            (tmp_path / "about.json").unlink()
        else:
            (tmp_path / "about.json").write_text(damage)
        ours = Folder(tmp_path, {"seed": 2})
        np.testing.assert_array_equal(ours.part("block-0", lambda: {"z": np.ones(2)})["z"], np.ones(2))
        np.testing.assert_array_equal(ours.part("block-0", lambda: {"z": np.full(2, 7.0)})["z"], np.ones(2))
        (tmp_path / "about.json").unlink()
        again = Folder(tmp_path, {"seed": 1})
        np.testing.assert_array_equal(again.part("block-0", lambda: {"z": np.zeros(2)})["z"], np.zeros(2))
    for content in (b"", b"PK\x03\x04 not a zip", b"\x93NUMPY"):
        (tmp_path / "block-0.npz").write_bytes(content)
        np.testing.assert_array_equal(again.part("block-0", lambda: {"z": np.full(2, 3.0)})["z"], np.full(2, 3.0))
    for somebody_elses in ("[]", '{"mark": 3}'):  # a file of that name that no run wrote
        (tmp_path / "other").mkdir(exist_ok=True)
        (tmp_path / "other" / "about.json").write_text(somebody_elses)
        with pytest.raises(dfd.errors.SettingError, match="nothing was touched"):
            Folder(tmp_path / "other", {"seed": 1})
        assert (tmp_path / "other" / "about.json").read_text() == somebody_elses
    np.savez(tmp_path / "block-1.npz", z=np.zeros(2))
    np.testing.assert_array_equal(again.part("block-1", lambda: {"z": np.ones(2)})["z"], np.ones(2))


def test_a_folder_is_whole_or_marked(call, tmp_path, visits, quick, monkeypatch):
    out = tmp_path / "out"
    assert call("fit", visits, "--model", "poisson", "--out", out, *QUICK)[0] == 0
    other = quick("poisson", visits, seed=5)
    moved, move = [], os.replace

    def dying(scratch, target):
        if len(moved) == 2:  # the mark and the draws are there, the summary is not
            raise KeyboardInterrupt
        moved.append(target.name)
        move(scratch, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", dying)
        with pytest.raises(KeyboardInterrupt):
            runs.write_run(out, other, {"data": "visits.csv", "settings": {"model": "poisson"}})
    assert moved == ["UNFINISHED", "posterior.nc"]
    for command in ("summary", "rerun"):
        code, _, err = call(command, out)
        assert code == 2 and "was not finished" in err and "--resume" in err
    assert call("fit", visits, "--model", "poisson", "--out", out, *QUICK)[0] == 0
    assert call("summary", out)[0] == 0


def test_a_finished_run_is_not_replaced_without_being_told_to(call, tmp_path, visits):
    out = tmp_path / "out"
    words = ["fit", visits, "--model", "poisson", "--out", out, *QUICK]
    assert call(*words)[0] == 0
    before = (out / "posterior.nc").read_bytes()
    for again in ([*words, "--seed", "3"], ["rerun", out, "--out", out]):
        code, _, err = call(*again)
        assert code == 2 and f"'{out}' holds a finished run" in err and "--force" in err
        assert (out / "posterior.nc").read_bytes() == before
    assert call(*words, "--seed", "3", "--force")[0] == 0 and (out / "posterior.nc").read_bytes() != before


def test_what_is_written_is_on_the_disk(tmp_path, monkeypatch):
    synced, sync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(os.fstat(handle).st_ino), sync(handle))[1])
    write_atomically(tmp_path / "file", lambda scratch: scratch.write_text("x"))
    assert {(tmp_path / "file").stat().st_ino, tmp_path.stat().st_ino} == set(synced)


def test_the_umask_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("reading the umask sets it for every thread"))
    write_atomically(tmp_path / "file", lambda scratch: scratch.write_text("x"))
    monkeypatch.undo()
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "other", lambda scratch: scratch.write_text("x"))
    finally:
        os.umask(before)
    assert (tmp_path / "other").stat().st_mode & 0o777 == 0o640


def test_damaged_runs_are_refused_in_a_sentence(call, tmp_path, visits):
    """60 damaged files: each read as before, or refused; no traceback."""
    out, rng = tmp_path / "out", np.random.default_rng(0)
    assert call("fit", visits, "--model", "poisson", "--out", out, *QUICK)[0] == 0
    for name, command in (("posterior.nc", "summary"), ("run.json", "rerun")):
        whole = (out / name).read_bytes()
        for k in range(30):
            damaged = bytearray(whole)
            if k % 3 == 0:
                damaged = damaged[: rng.integers(len(whole))]
            else:
                for place in rng.integers(len(whole), size=1 if k % 3 == 1 else 200):
                    damaged[place] = rng.integers(256)
            (out / name).write_bytes(bytes(damaged))
            if command == "summary":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    assert call("summary", out)[0] in (0, 2)
            else:
                try:
                    about = runs.read_about(out)
                except dfd.errors.DataError:
                    continue
                assert isinstance(about["settings"], dict)
        (out / name).write_bytes(whole)
    about = json.loads((out / "run.json").read_text())
    for settings in ({"model": "poisson", "colour": 3}, {"model": "poisson", "draws": "many"}, {"model": 3}, []):
        (out / "run.json").write_text(json.dumps(about | {"settings": settings}))
        assert call("rerun", out)[0] == 2


def test_a_folder_is_loaded_where_it_is_whole(tmp_path, quick):
    fit = quick("poisson", [2, 3, 1, 4, 2, 0, 3] * 20, loss="ratio")
    fit.save(tmp_path / "posterior.nc")
    assert dfd.load(tmp_path).summary().equals(fit.summary())
    (tmp_path / runs.UNFINISHED).touch()
    with pytest.raises(dfd.errors.DataError, match="was left while its files were written"):
        dfd.load(tmp_path)


def test_a_rerun_with_other_threads_says_so(call, visits, tmp_path):
    """Draws of another number of threads may differ in their last digits; a reader must not look for a mistake."""
    out = tmp_path / "run"
    assert call("fit", visits, "--model", "poisson", "--no-check", "--out", out)[0] == 0
    about = runs.read_about(out)
    assert about["threads"] == threads() == dfd.load(out).settings["threads"]
    assert runs.why_different(about) == ""
    assert f"by 64 threads (now {threads()})" in runs.why_different(about | {"threads": "64"})
    assert runs.why_different({key: part for key, part in about.items() if key != "threads"}) == ""


def test_the_data_are_not_written_over(call, tmp_path, visits):
    out = tmp_path / "run"
    assert call("fit", visits, "--model", "poisson", "--out", out, *QUICK)[0] == 0
    before = (out / "summary.csv").read_bytes()
    code, _, err = call("fit", out / "summary.csv", "--model", "poisson", "--columns", "mean", "--out", out, *QUICK)
    assert code == 2 and "would be written over" in err and (out / "summary.csv").read_bytes() == before
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "report.html").write_text("my report")
    code, _, err = call("fit", visits, "--model", "poisson", "--out", mine, *QUICK)
    assert code == 2 and "not from a run of dfdbayes" in err and (mine / "report.html").read_text() == "my report"
    assert call("fit", visits, "--model", "poisson", "--out", "", *QUICK)[0] == 2


def test_files_beside_the_parts_stay(tmp_path, quick):
    (tmp_path / "thesis.npz").write_bytes(b"three years")
    for resume in (True, False):
        with pytest.raises(dfd.errors.SettingError, match="nothing was touched"):
            quick("poisson", X, checkpoint=tmp_path, resume=resume)
    notes = tmp_path / "notes.txt"
    notes.write_text("mine\n")
    with pytest.raises(dfd.errors.SettingError, match="not touched"):
        dfd.coverage(dfd.models.Poisson(), {"rate": 3.0}, 50, 2, path=notes, progress=False)
    assert notes.read_text() == "mine\n"
