"""Runs that are interrupted, repeated, or cannot be written: nothing is lost and nothing half written."""

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import dfdbayes as dfd
from dfdbayes._util.checkpoint import Folder

COMMAND = [sys.executable, "-m", "dfdbayes"]
LONG = {  # a bootstrap and chains, and the default sampler where it draws chains
    "nuts": ("--calibration", "gpc", "--bootstrap", "100", "--sampler", "nuts", "--draws", "200", "--warmup", "100"),
    "auto": ("--loss", "dfd", "--draws", "4000"),
}
QUICK = ("--draws", "200")


def command(*arguments, **settings):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, **settings)


def draws(folder):
    return dfd.load(Path(folder) / "posterior.nc").posterior["rate"].values


def test_state_is_used_again_and_of_one_run_only(tmp_path):
    rows = np.random.default_rng(0).poisson(3.0, 200)
    settings = {"bootstrap": 100, "draws": 100, "warmup": 100, "progress": False}
    settings |= {"loss": "dfd", "calibration": "score-matching-invariant", "sampler": "nuts"}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = dfd.fit("cmp", rows, **settings)
        first = dfd.fit("cmp", rows, checkpoint=tmp_path / "checkpoint", **settings)
        kept = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "checkpoint").iterdir()}
        assert {"about.json", "bootstrap-0.npz", "block-0.npz"} <= set(kept)
        (tmp_path / "checkpoint" / "block-2.npz").unlink()  # as if the run had ended there
        (tmp_path / "checkpoint" / "block-3.npz").write_bytes(b"half writ")
        again = dfd.fit("cmp", rows, checkpoint=tmp_path / "checkpoint", **settings)
        for other in (first, again):
            np.testing.assert_array_equal(other.posterior["rate"], plain.posterior["rate"])
            assert other.beta == plain.beta
        now = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "checkpoint").iterdir()}
        assert {name for name in kept if kept[name] != now[name]} == {"block-2.npz", "block-3.npz"}
        with pytest.raises(dfd.errors.SettingError, match="differs in seed"):
            dfd.fit("cmp", rows, checkpoint=tmp_path / "checkpoint", seed=1, **settings)
        with pytest.raises(dfd.errors.SettingError, match="differs in data"):
            dfd.fit("cmp", rows[:-1], checkpoint=tmp_path / "checkpoint", **settings)
        walk = {"sampler": dfd.samplers.RandomWalk(draws=20, warmup=100, chains=2), "bootstrap": 50, "progress": False}
        one, two = (dfd.fit("cmp", rows, checkpoint=tmp_path / "walk", **walk) for _ in range(2))
        np.testing.assert_array_equal(one.posterior["rate"], two.posterior["rate"])


def test_kept_parts_never_execute_code(tmp_path):
    folder = Folder(tmp_path, {"run": 1})
    np.savez(tmp_path / "block-0.npz", z=np.array([print], dtype=object))
    np.testing.assert_array_equal(folder.part("block-0", lambda: {"z": np.ones(2)})["z"], np.ones(2))


def killed_after(seconds, visits, out, settings):
    process = subprocess.Popen(
        [*COMMAND, "fit", visits, "--model", "cmp", "--out", out, "--resume", *settings],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("sampler", LONG)
def test_kill_at_ten_moments_and_resume(visits, tmp_path, sampler):
    settings = LONG[sampler]
    whole, first = tmp_path / "whole", tmp_path / "first"
    command("fit", visits, "--model", "cmp", "--out", first, *settings, check=True)  # fills the cache of compiled code
    began = time.perf_counter()
    command("fit", visits, "--model", "cmp", "--out", whole, *settings, check=True)
    length = time.perf_counter() - began
    wanted, rng, unfinished = draws(whole), random.Random(0), 0
    for k in range(10):
        out = tmp_path / f"killed-{k}"
        killed_after(rng.uniform(0.1, 1.0) * length, visits, out, settings)
        unfinished += not (out / "run.json").exists()
        if (out / "posterior.nc").exists():  # complete, or not there at all
            np.testing.assert_array_equal(draws(out), wanted)
        command("fit", visits, "--model", "cmp", "--out", out, "--resume", *settings, check=True)
        np.testing.assert_array_equal(draws(out), wanted)
        assert not (out / "checkpoint").exists()
        assert {p.name for p in out.iterdir()} == {"posterior.nc", "report.html", "run.json", "summary.csv", "summary.json"}
    print(f"\n10 runs of {length:.1f} s killed, {unfinished} of them unfinished; every one resumed to the same draws")
    assert unfinished >= 7


def test_ctrl_c_keeps_what_is_done(visits, tmp_path):
    out = tmp_path / "run"
    process = subprocess.Popen(
        [*COMMAND, "fit", visits, "--model", "poisson", "--out", out, "--sampler", "nuts", "--draws", "100000"],
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(600):
        time.sleep(0.1)
        if (out / "checkpoint" / "block-1.npz").exists():
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; what is done is kept in" in err and "--resume" in err and "Traceback" not in err
    assert (out / "checkpoint" / "block-1.npz").exists()


def test_a_full_disk_leaves_earlier_results_alone(call, visits, tmp_path):
    """A limit on the size of files stands in for a full disk: writing fails in the middle."""
    out = tmp_path / "run"
    assert call("fit", visits, "--model", "poisson", "--out", out, *QUICK)[0] == 0
    before = {p.name: p.read_bytes() for p in out.iterdir()}

    words = ["fit", visits, "--model", "poisson", "--out", out, "--force", "--seed", "9", *QUICK]
    limited = "ulimit -f 20; exec " + shlex.join(map(str, [*COMMAND, *words]))
    environment = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    ended = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, env=environment)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: cannot write") and "Traceback" not in ended.stderr
    assert {p.name: p.read_bytes() for p in out.iterdir() if p.is_file()} == before


def test_rerun_gives_the_same_draws(call, visits, tmp_path):
    out = tmp_path / "run"
    assert call("fit", visits, "--model", "poisson", "--out", out, "--seed", "4", *QUICK)[0] == 0
    visits.unlink()  # the folder holds all that is needed
    code, shown, _ = call("rerun", out, "--out", tmp_path / "again")
    assert code == 0 and "the draws are the same as before" in shown
    np.testing.assert_array_equal(draws(tmp_path / "again"), draws(out))
    (out / "posterior.nc").unlink()
    assert "was not finished" in call("rerun", out)[2]
    assert "not the folder of a run" in call("rerun", tmp_path)[2]


def test_json_is_all_that_is_printed(call, visits, tmp_path):
    _, shown, _ = call("fit", visits, "--model", "poisson", "--json", "--out", tmp_path / "run", *QUICK)
    assert json.loads(shown)["parameters"]["rate"]["mean"] == pytest.approx(3.0, abs=0.5)
    _, shown, _ = call("summary", tmp_path / "run", "--json", "--interval", "0.5")
    assert "eti50_lb" in json.loads(shown)["parameters"]["rate"]
    assert "cmp" in json.loads(call("models", "--json")[1])


MODELS = """
import dfdbayes as dfd, numpyro.distributions as dist
from jax.scipy.special import gammaln
open("executed", "w").close()
rates = dfd.Model(lambda t, x: t["rate"] * x[0] - gammaln(x[0] + 1), dfd.Counts(1), {"rate": dist.Normal(0, 2)})
def made():
    return rates
number = 3
def broken():
    return 1 / 0
"""


def test_a_model_from_a_file_runs_only_when_named(call, visits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(MODELS)
    for name in ("rates", "made"):
        code, shown, _ = call("fit", visits, "--model", f"own.py:{name}", "--out", "run", "--force", *QUICK)
        assert code == 0 and "rate" in shown
    (tmp_path / "executed").unlink()
    code, _, err = call("rerun", "run")
    assert code == 2 and "--model own.py:made" in err
    assert call("summary", "run")[0] == 0
    assert not (tmp_path / "executed").exists()
    assert "the same" in call("rerun", "run", "--model", "own.py:made")[1]
    for name, match in (("number", "its models: rates"), ("absent", "not a model"), ("broken", "ZeroDivisionError")):
        code, _, err = call("fit", visits, "--model", f"own.py:{name}")
        assert code == 2 and match in err
    assert "no file 'none.py'" in call("fit", visits, "--model", "none.py:x")[2]
