"""The command line as a user meets it: exit codes, one-line errors, files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd

COMMAND = Path(sys.executable).with_name("dfdbayes")


def test_a_fit_in_its_own_process_writes_everything(visits, tmp_path):
    out = tmp_path / "run"
    ended = subprocess.run(
        [COMMAND, "fit", visits, "--model", "poisson", "--out", out, "--timings", "--seed", "3"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    wanted = ["posterior.nc", "report.html", "run.json", "summary.csv", "summary.json"]
    assert sorted(p.name for p in out.iterdir()) == wanted  # and nothing of its checkpoint is left
    assert "poisson fitted to visits.csv: 200 observations" in ended.stdout
    assert "compiling" in ended.stdout and "sample" in ended.stdout
    assert "loss: likelihood (counts are low" in ended.stdout or "loss: dfd (the discrete" in ended.stdout
    assert "intervals are as wide as estimates vary" in ended.stdout
    assert ended.stderr == ""  # no progress bars when piped
    again = dfd.fit("poisson", visits, seed=3, progress=False)
    np.testing.assert_array_equal(dfd.load(out / "posterior.nc").posterior["rate"], again.posterior["rate"])
    table = pd.read_csv(out / "summary.csv", index_col="parameter")
    assert table.loc["rate", "mean"] == pytest.approx(again.summary()["mean"]["rate"])
    assert json.loads((out / "summary.json").read_text())["beta"] == pytest.approx(again.beta)


def test_a_fit_is_kept_before_it_is_checked(visits, tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setitem(dfd.fit.__globals__, "_checked", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dfd.fit("poisson", visits, checkpoint=tmp_path / "kept", progress=False, check=True)
    assert dfd.load(tmp_path / "kept" / "unchecked.nc").checks is None
    dfd.fit("poisson", visits, checkpoint=tmp_path / "kept", progress=False, check=False)  # the folder is still ours


def test_checks_can_be_left_out(visits, tmp_path, call):
    call("fit", visits, "--model", "poisson", "--no-check", "--out", tmp_path / "run")
    assert dfd.load(tmp_path / "run" / "posterior.nc").checks is None
    assert json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["check"] is False


def test_progress_bars_on_a_terminal(visits):
    """Under a pseudo-terminal, bars appear for work that takes time."""
    import pty

    leader, follower = pty.openpty()
    code = (
        "from dfdbayes._util.progress import on_screen; import time\n"
        "advance = on_screen().begin('bootstrap', 3)\n"
        "for _ in range(3): time.sleep(0.4); advance(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], stderr=follower, check=True, env=os.environ | {"TERM": "xterm"})
    os.close(follower)
    shown = os.read(leader, 100_000).decode()
    assert "bootstrap" in shown and "3/3" in shown


def test_summary_of_a_saved_fit(call, visits, tmp_path):
    code, first, _ = call("fit", visits, "--model", "poisson", "--out", tmp_path / "run", "--draws", 300)
    assert code == 0
    code, out, _ = call("summary", tmp_path / "run" / "posterior.nc")
    assert code == 0 and "\nrate " in out and out.strip() in first
    code, _, err = call("summary", visits)
    assert code == 2 and "not a fit" in err


def test_a_slip_on_the_command_line_gets_a_hint(call, visits):
    code, _, err = call("fit", visits)
    assert code == 2 and "See 'dfdbayes fit --help'." in err
    code, _, err = call(visits.with_name("visit.csv"))
    assert code == 2 and f"did you mean '{visits}'?" in err


def test_models_are_listed(call):
    code, out, _ = call("models")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(dfd.models.names())


def test_a_frequency_table(call, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("sales,stores\n0,50\n1,40\n2,20\n3,9\n4,3\n")
    code, _, err = call("fit", path, "--model", "poisson")
    assert code == 2 and "--weights stores" in err
    code, out, _ = call("fit", path, "--model", "poisson", "--weights", "stores", "--draws", 300)
    assert code == 0 and "122 observations" in out


BAD = {
    "negative": ("x\n1\n-2\n3\n", (), "row 2, column 'x' is -2"),
    "fractional": ("x\n1\n2.5\n3\n", (), "row 2, column 'x' is 2.5"),
    "missing": ("x,y\n1,2\n,3\n", ("--columns", "x"), "1 of 2 rows have missing values (first: row 2, column 'x')"),
    "empty": ("", (), "is empty"),
    "no rows": ("x\n", (), "holds no rows"),
    "one row": ("x\n3\n", (), "one row"),
    "constant": ("x\n0\n0\n0\n", (), "constant"),
    "text": ("x\n1\ntwo\n", (), "row 2, column 'x' is the text 'two'"),
    "columns": ("x,y\n1,2\n3,4\n", (), "needs 1 column, the data have 2 ('x', 'y')"),
    "no such column": ("x\n1\n2\n", ("--columns", "z"), "no column 'z'. The columns are 'x'"),
    "model": ("x\n1\n2\n", ("--model", "cpm"), "did you mean 'cmp'"),
    "beta": ("x\n1\n2\n", ("--beta", "-1"), "beta > 0"),
    "beta zero": ("x\n1\n2\n", ("--beta", "0"), "beta > 0"),
    "loss": ("x\n1\n2\n", ("--loss", "dfdd"), "did you mean 'dfd'"),
    "sampler": ("x\n1\n2\n", ("--sampler", "nutz"), "no sampler"),
    "option": ("x\n1\n2\n", ("--sede", "1"), "No such option"),
    "number": ("x\n1\n2\n", ("--draws", "many"), "draws"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_exit_code_2(call, tmp_path, name):
    content, options, message = BAD[name]
    path, out = tmp_path / "bad.csv", tmp_path / "out"
    path.write_text(content)
    if "--model" not in options:
        options = ("--model", "cmp", *options)
    code, shown, err = call("fit", path, "--out", out, *options)
    assert code == 2
    assert message in err
    assert err.startswith("error: ") and len(err.strip().splitlines()) == 1
    assert shown == ""
    assert not out.exists() or not list(out.iterdir())


def test_values_outside_a_finite_set(call, tmp_path):
    path = tmp_path / "bits.csv"
    path.write_text("answer\n0\n1\n2\n")
    code, _, err = call("fit", path, "--model", "bernoulli")
    assert code == 2 and "row 3, column 'answer' is 2; Binary needs one of 0, 1" in err


def test_an_unwritable_folder_is_found_before_the_work(call, visits, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    code, _, err = call("fit", visits, "--model", "poisson", "--out", blocked / "run")
    assert code == 2 and "cannot write to the folder" in err and "--out" in err
    assert blocked.read_text() == "in the way"


def test_help_without_arguments(call):
    code, out, err = call()
    assert code == 0 and "dfdbayes fit visits.csv --model cmp" in out + err


def test_models_on_graphs_by_name(call, tmp_path):
    model = dfd.models.Ising(dfd.graphs.grid(3, 3))
    rows = dfd.simulate(model, {"temperature": 4.0}, 300).rows
    path = tmp_path / "spins.csv"
    pd.DataFrame(rows, columns=[f"s{j}" for j in range(9)]).to_csv(path, index=False)
    code, out, _ = call("fit", path, "--model", "ising", "--graph", "grid:3x3", "--sampler", "laplace")
    assert code == 0 and "temperature" in out
    code, _, err = call("fit", path, "--model", "ising")
    assert code == 2 and "--graph grid:6x6" in err
    code, _, err = call("fit", path, "--model", "ising", "--graph", "grid:3x4")
    assert code == 2 and "needs 12 columns, the data have 9" in err
    code, out, _ = call(
        "fit", path, "--model", "ising-network", "--states", "spins", "--sampler", "laplace", "--loss", "ratio"
    )
    assert code == 0 and "interaction[s0,s1]" in out
    code, _, err = call("fit", path, "--model", "poisson-mixture", "--columns", "s0", "--rates", "5,x")
    assert code == 2 and "numbers separated by commas" in err


def test_coverage_goes_on_where_it_stopped(call, tmp_path):
    out = tmp_path / "cover"
    settings = ("--model", "poisson", "--theta", "3", "--n", 100, "--loss", "ratio", "--out", out)
    code, first, _ = call("coverage", *settings, "--replicates", 6)
    assert code == 0 and "6 of 6 data sets" in first
    code, second, _ = call("coverage", *settings, "--replicates", 9)
    assert code == 0 and "joint" in second
    assert len((out / "replicates.jsonl").read_text().splitlines()) == 9
    assert (out / "coverage.png").stat().st_size > 1000
    code, _, err = call("coverage", "--model", "poisson", "--theta", "3,4", "--n", 100)
    assert code == 2 and "1 parameters" in err


def test_failure_and_resampling_are_choices_of_the_command_line(call, visits):
    code, out, _ = call("fit", visits, "--model", "poisson", "--calibration", "gpc", "--resampling", "dirichlet")
    assert code == 0 and "400 dirichlet bootstrap fits" in out
    code, _, err = call("fit", visits, "--model", "poisson", "--on-failure", "shrug")
    assert code == 2 and "on_failure must be 'raise' or 'fallback', not 'shrug'" in err


def test_the_version_and_a_file_without_a_command(call, visits):
    """A file alone is described; a word that is neither a file nor a command is named."""
    told = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True).stdout
    assert told == f"dfdbayes {dfd.__version__}\n"
    code, shown, _ = call(visits)
    assert code == 0 and "What to call:" in shown and f"dfdbayes fit {visits} --model" in shown
    assert dfd.suggest(visits)[0].command in shown
    code, _, near = call(visits.with_name(f"x{visits.name}"))
    assert code == 2 and f"{visits.name}'?" in near
    code, _, wrong = call("nofile.csv")
    assert code == 2 and "nofile.csv" in wrong


def test_a_map(call, tmp_path):
    rows = [f"{r},{c},{(r * c + r) % 3 % 2},{r - c}" for r in range(9) for c in range(9) if r + c < 14]
    (tmp_path / "map.csv").write_text("\n".join(["row,col,present,height", *rows]))
    settings = ("--formula", "present ~ height", "--at", "row,col", "--beta", 1, "--sampler", "laplace")
    code, out, _ = call("fit", tmp_path / "map.csv", "--model", "autologistic", *settings)
    assert code == 0 and "\ninteraction " in out and "log odds of present = 1 rather than 0" in out
