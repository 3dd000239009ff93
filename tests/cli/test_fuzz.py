"""No input leads to a traceback at the command line, or to a summary that is not finite, without an error.

In the slow suite over ten thousand generated cases; a few dozen of each kind in the fast one.
"""

import io
import json
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dfdbayes as dfd
from dfdbayes import cli

COUNTED = {"files": 0, "arguments": 0, "data sets": 0, "refused": 0}

cells = st.one_of(
    st.integers(-3, 12).map(str),
    st.sampled_from(
        ["", "NA", "nan", "inf", "-inf", "1e3", "2.5", "1e400", "x", "é", '"', "0x1", " 3 ", "true", "9" * 25]
    ),
    st.integers(-(2**70), 2**70).map(str),
    st.text(max_size=4),
)
separators = st.sampled_from([",", ",", ",", ";", "\t"])
names = st.lists(st.text(alphabet="abxy <>&\"'$_[],é", min_size=1, max_size=5), min_size=1, max_size=3)


@st.composite
def files(draw):
    """A text file that may or may not hold data."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=60))
    width = draw(st.integers(1, 3))
    separator = draw(separators)
    heading = separator.join((draw(names) * 3)[:width])
    small = st.integers(0, 6).map(str)
    kind = draw(st.sampled_from([small, small, cells]))
    rows = draw(st.lists(st.lists(kind, min_size=1, max_size=width + (kind is cells)), max_size=25))
    lines = [separator.join(row) for row in rows]
    return ("\n".join([heading, *lines] if draw(st.booleans()) else lines) + "\n").encode("utf-8", "replace")


ONE_COLUMN = ["poisson", "cmp", "bernoulli", "poisson-mixture", "nothing"]
MODELS = [*ONE_COLUMN, "ising-network", "poisson-graphical", "ising", "potts"]
LOSSES = ["dfd", "ratio", "ksd", "pseudo", "likelihood", "lost"]
QUICK = ["--sampler", "laplace", "--draws", "50", "--bootstrap", "20"]


def run(*arguments):
    """The command line in this process: its exit code and what it printed."""
    out, err, code = io.StringIO(), io.StringIO(), None
    before, sys.argv = sys.argv, ["dfdbayes", *arguments]
    try:
        with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cli.main()
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        sys.argv = before
    return code, out.getvalue(), err.getvalue()


def finite(parameters, warned):
    """All numbers of a summary are finite, but for a posterior mean that is said to be of no use, beside its median."""
    useless = [text.partition(" has no usable posterior mean")[0] for text in warned if "no usable" in text]
    for name, row in parameters.items():
        said = any(name in text or text.endswith(" more") for text in useless)  # the first of many names are listed
        withheld = {"mean", "sd", "mcse_mean", "mcse_sd"} if said else set()
        assert np.isfinite(np.array([v for k, v in row.items() if k not in {"r_hat"} | withheld], float)).all(), row


def sound(code, out, err):
    """Either a finite summary, or one line that says what is wrong."""
    assert "Traceback" not in err
    if code == 0:
        found = json.loads(out)
        finite(found["parameters"], found["warnings"])
    else:
        COUNTED["refused"] += 1
        assert code == 2
        assert err.startswith("error: ") and len(err.strip()) > len("error: ")


def check_file(folder, content, suffix, model, loss, missing):
    COUNTED["files"] += 1
    path = folder / f"data{suffix}"
    path.write_bytes(content)
    sound(*run("fit", str(path), "--model", model, "--loss", loss, "--missing", missing, "--json", *QUICK))


WORDS = [
    "fit",
    "sales",
    "--model",
    "cmp",
    "--loss",
    "dfd",
    "--beta",
    "--seed",
    "--draws",
    "--chains",
    "--bootstrap",
    "-1",
    "0",
    "1e9",
    "nan",
    "--columns",
    "--weights",
    "--graph",
    "grid:3x3",
    "--states",
    "--rates",
    "1,2",
    "--calibration",
    "summary",
    "models",
    "rerun",
    "compare",
    "coverage",
    "--theta",
    "--n",
    "--replicates",
    "--help",
    "--json",
    "--out",
    "--resume",
    "--dask",
    "--interval",
    "0.5",
    "--sampler",
    "nuts",
    "--calibration",
    "gpc",
    "--missing",
    "drop",
]
words = st.one_of(st.sampled_from(WORDS), st.text(max_size=6))


def check_arguments(arguments):
    """Any words after the command; those that would start real work are stopped by a missing file."""
    COUNTED["arguments"] += 1
    arguments = [word.replace("sales", "nowhere.csv") for word in arguments]
    if arguments and arguments[0] in ("coverage", "reproduce", "demo"):
        arguments = ["fit", *arguments[1:]]
    code, _, err = run(*arguments)
    assert code in (0, 2) and "Traceback" not in err
    COUNTED["refused"] += code == 2


def check_data(model, loss, rows):
    COUNTED["data sets"] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fit = dfd.fit(model, rows, loss=loss, sampler="laplace", draws=50, bootstrap=20, progress=False)
        except dfd.errors.DfdbayesError:
            COUNTED["refused"] += 1
            return
        finite(fit.summary().to_dict(orient="index"), fit.warnings)
        assert fit.beta > 0


def suite(folder, files_wanted, arguments_wanted, data_wanted):
    quiet = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None, "derandomize": True}

    @settings(max_examples=files_wanted, **quiet)
    @given(files(), st.sampled_from([".csv", ".csv", ".tsv", ".txt", ".parquet"]), st.sampled_from(MODELS),
           st.sampled_from(LOSSES), st.sampled_from(["refuse", "drop", "drop"]))  # fmt: skip
    def of_files(content, suffix, model, loss, missing):
        check_file(folder, content, suffix, model, loss, missing)

    @settings(max_examples=arguments_wanted, **quiet)
    @given(st.lists(words, max_size=7))
    def of_arguments(arguments):
        check_arguments(arguments)

    @settings(max_examples=data_wanted, **quiet)
    @given(st.sampled_from(["poisson", "cmp", "bernoulli", "ising-network", "poisson-graphical"]),
           st.sampled_from(LOSSES[:5]), st.integers(0, 2**32 - 1), st.integers(0, 30),
           st.sampled_from([0.05, 0.5, 3.0, 40.0, 1e4]))  # fmt: skip
    def of_data(model, loss, seed, n, scale):
        rng = np.random.default_rng(seed)
        width = 3 if model.endswith(("network", "graphical")) else 1
        rows = rng.poisson(scale, (n, width))
        if model in ("bernoulli", "ising-network"):
            rows = np.minimum(rows, 1)
        check_data(model, loss, rows)

    of_files()
    of_arguments()
    of_data()


def test_a_mean_that_is_of_no_use_is_withheld_with_a_reason(tmp_path):
    """Three rows by a loss without a lower bound: the rate's draws go up to 1e40; its median and interval are shown."""
    (tmp_path / "data.csv").write_text("0\n0\n2\n")
    code, out, err = run("fit", str(tmp_path / "data.csv"), "--model", "cmp", "--loss", "dfd", "--json", *QUICK)
    sound(code, out, err)
    rate = json.loads(out)["parameters"]["rate"]
    assert rate["mean"] is None and rate["eti95_lb"] < rate["median"] < rate["eti95_ub"]


def test_a_few_inputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    suite(tmp_path, 6, 40, 1)


@pytest.mark.slow
def test_ten_thousand_inputs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    before = dict(COUNTED)
    suite(tmp_path, 4000, 5000, 1500)
    done = {name: COUNTED[name] - before[name] for name in COUNTED}
    total = done["files"] + done["arguments"] + done["data sets"]
    with capsys.disabled():
        print(f"\n{total} generated cases ({done}): no traceback, no summary that is not finite")
    assert total >= 10_000
