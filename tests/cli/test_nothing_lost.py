"""Runs that are interrupted, repeated, or cannot be written: nothing is lost and nothing half written."""

import errno
import inspect
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes import cli
from dfdbayes._util.checkpoint import Folder

COMMAND = [sys.executable, "-m", "dfdbayes"]
LONG = {  # a bootstrap and chains, and the default sampler where it draws chains
    "nuts": ("--calibration", "gpc", "--bootstrap", "100", "--sampler", "nuts", "--draws", "200", "--warmup", "100"),
    "auto": ("--loss", "dfd", "--draws", "4000"),
}
QUICK = ("--draws", "200")


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


KILLED = """
import os, signal, sys
from dfdbayes import cli
last, seen = int(sys.argv.pop(1)), []
def counted(act):
    def of(path, *arguments, **settings):
        if str(path).endswith(".part"):
            if len(seen) == last:
                os.kill(os.getpid(), signal.SIGKILL)
            seen.append(path)
        return act(path, *arguments, **settings)
    return of
os.open, os.replace = counted(os.open), counted(os.replace)
try:
    cli.main()
finally:
    print(len(seen), file=sys.stderr)
"""


def killed(moment, words, out):
    """A command that is killed as it makes, syncs or moves its so many-th temporary file."""
    process = [sys.executable, "-c", KILLED, str(moment), *map(str, words), "--out", str(out)]
    return subprocess.run(process, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", LONG)
def test_kill_at_ten_moments_and_resume(call, visits, tmp_path, sampler):
    words = ["fit", visits, "--model", "cmp", *LONG[sampler]]
    moments = int(killed(-1, words, tmp_path / "whole").stderr)
    wanted = draws(tmp_path / "whole")
    for moment in np.linspace(0, moments - 1, 10).astype(int):
        out = tmp_path / f"killed-{moment}"
        assert killed(moment, words, out).returncode == -signal.SIGKILL
        if (out / "posterior.nc").exists():  # complete, or not there at all
            np.testing.assert_array_equal(draws(out), wanted)
        assert call(*words, "--out", out, "--resume")[0] == 0
        np.testing.assert_array_equal(draws(out), wanted)
        assert {file.name for file in out.iterdir()} == {*OF_A_RUN, "summary.csv", "summary.json"}


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


class Unprintable(io.StringIO):
    """A terminal that has gone, or a full disk behind it: nothing that is written to it arrives."""

    def __init__(self, problem):
        super().__init__()
        self.problem = problem

    def write(self, text):
        raise self.problem


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Files of counts with names that not every terminal can show, and fits of them."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"month": np.arange(60), "λ": rng.integers(20, 60, 60), "visits": rng.poisson(3.0, 60)})
    frame.to_csv(folder / "λ.csv", index=False)
    settings = {"sampler": "laplace", "draws": 100, "progress": False, "check": False}
    of_age = dfd.fit("poisson", frame, formula="visits ~ λ", **settings)
    of_time = dfd.fit("poisson", frame, formula="visits ~ lag(visits)", time="month", **settings)
    of_age.save(folder / "age.nc")
    of_time.save(folder / "time.nc")
    return folder


OF_A_RUN = ("posterior.nc", "run.json", "report.html")
WRITTEN = {  # every command that writes, and what must be there afterwards
    "fit": OF_A_RUN, "rerun": OF_A_RUN, "demo": OF_A_RUN, "compare": ("comparison.csv", "comparison.png"),
    "coverage": ("coverage.csv", "coverage.png"), "predict": ("predictions.csv",),
    "forecast": ("forecast.csv", "report.html"), "reproduce": ("index.html",),
}  # fmt: skip


def writing(name, runs, out):
    """A quick command of this name that writes to a folder."""
    table = runs / "λ.csv"
    words = {
        "fit": ["fit", table, "--model", "poisson", "--columns", "visits", "--sampler", "laplace", "--no-check"],
        "rerun": ["rerun", runs / "earlier"],
        "demo": ["demo"],
        "compare": ["compare", table, "--model", "poisson", "--losses", "ratio,likelihood", "--columns", "visits"],
        "coverage": ["coverage", "--model", "poisson", "--theta", "3", "--n", "50", "--replicates", "3"],
        "predict": ["predict", runs / "age.nc", table],
        "forecast": ["forecast", runs / "time.nc", "--steps", "2"],
        "reproduce": ["reproduce", "gene-beta", "--quick"],  # whose data are not there
    }[name]
    return [*map(str, words), "--out", str(out)]


def test_every_command_that_writes_is_listed():
    about = {one.name or one.callback.__name__: inspect.signature(one.callback) for one in cli.app.registered_commands}
    assert set(WRITTEN) == {name for name, signature in about.items() if "out" in signature.parameters}


@pytest.mark.parametrize(
    "problem", [BrokenPipeError(errno.EPIPE, "Broken pipe"), OSError(errno.ENOSPC, "disk is full")]
)
@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.daily("fit-problem0", "rerun-problem1", "predict-problem0")
def test_what_was_computed_is_written_though_nothing_can_be_printed(
    call, runs, tmp_path, monkeypatch, capsys, name, problem
):
    """A pipe whose reader has gone ends a command quietly; any other trouble is told, when all is written."""
    monkeypatch.delenv("DFDBAYES_DATA", raising=False)
    if name == "rerun" and not (runs / "earlier").exists():
        assert call(*writing("fit", runs, runs / "earlier"))[0] == 0
    words = ["dfdbayes", *writing(name, runs, tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", words + ["--json"] * (name not in ("demo", "reproduce")))
    monkeypatch.setattr(sys, "stdout", Unprintable(problem))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    err = capsys.readouterr().err
    assert all((tmp_path / "out" / file).exists() for file in WRITTEN[name]) and "Traceback" not in err
    assert not (tmp_path / "out" / "checkpoint").exists()
    if isinstance(problem, BrokenPipeError):
        assert not ended.value.code and "error" not in err
    else:
        assert ended.value.code == 2 and "error: " in err and "disk is full" in err


def test_a_mistake_in_showing_a_fit_does_not_lose_it(call, runs, tmp_path, monkeypatch):
    def broken(*arguments):
        raise ZeroDivisionError

    monkeypatch.setattr("dfdbayes.present.renderers.console", broken)
    monkeypatch.setattr(sys, "argv", ["dfdbayes", *writing("fit", runs, tmp_path / "out")])
    with pytest.raises(ZeroDivisionError):
        cli.main()
    assert all((tmp_path / "out" / file).exists() for file in OF_A_RUN)


def test_a_mistake_in_the_report_does_not_lose_the_fit(call, runs, tmp_path, monkeypatch):
    def broken(*arguments):
        raise ZeroDivisionError("an empty axis")

    monkeypatch.setattr("dfdbayes.fitting.runs.page", broken)
    code, _, err = call(*writing("fit", runs, tmp_path / "out"))
    assert code == 2 and "report.html" in err and "an empty axis" in err and "posterior.nc" in err
    assert dfd.load(tmp_path / "out" / "posterior.nc").data.n == 60
    assert not (tmp_path / "out" / "report.html").exists() and (tmp_path / "out" / "summary.csv").exists()


@pytest.mark.parametrize(("where", "code"), [("| head -c 0", 0), ("> /dev/full", 2), (">&-", 0)])
@pytest.mark.daily("> /dev/full-2")
def test_output_of_a_process_that_cannot_be_printed(runs, tmp_path, where, code):
    """Pipes, full disks and closed descriptors of the system, where text is printed only as the process ends."""
    words = shlex.join([*COMMAND, *writing("predict", runs, tmp_path / "out")])
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    shell = ["bash", "-c", f"set -o pipefail; {words} {where}"]
    ended = subprocess.run(shell, capture_output=True, text=True, env=environment)
    assert ended.returncode == code, ended.stderr
    assert (tmp_path / "out" / "predictions.csv").exists() and "Traceback" not in ended.stderr
    assert ("error: " in ended.stderr) == (code == 2) and "Exception ignored" not in ended.stderr


def test_what_a_terminal_cannot_show_is_replaced(runs, tmp_path):
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    words = [*COMMAND, *writing("fit", runs, tmp_path / "out")]
    ended = subprocess.run(words, capture_output=True, encoding="latin-1", env=environment)
    assert ended.returncode == 0 and r"poisson fitted to \u03bb.csv: 60 observations" in ended.stdout
    assert (tmp_path / "out" / "posterior.nc").exists()
