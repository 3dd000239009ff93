"""Formulas and files of strangers: nothing in them is executed, nothing is written elsewhere, nothing has no end."""

import json
import shutil
import warnings
from contextlib import suppress

import h5py
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes._util.codec import from_plain
from dfdbayes.data.formulas import Design, alone, as_factor, variables
from dfdbayes.data.grammar import FUNCTIONS, MAX_TERMS, NAMESPACES, Content, context
from dfdbayes.errors import DfdbayesError
from dfdbayes.fitting import runs

QUICK = {"draws": 20, "warmup": 20, "chains": 1, "check": False, "progress": False, "calibration": "none"}
SHORT = {"draws": 20, "warmup": 20, "chains": 1, "check": False, "calibration": "none"}


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(0)
    x = random.normal(size=60)
    return pd.DataFrame({
        "y": random.poisson(np.exp(1.0 + 0.3 * x)), "x": x, "z": random.uniform(1.0, 3.0, 60),
        "g": random.choice(["a", "b", "c"], 60), "days": random.integers(1, 30, 60),
    })  # fmt: skip


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A file that no formula may make; texts in which CANARY stands are about it."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "canary"
    assert not (tmp_path / "canary").exists()


OPEN = "__import__('pathlib').Path('canary').touch()"
HOSTILE = [
    # code where formulaic takes Python
    f"{{x + 0*{OPEN}}}", f"{{{OPEN}}}", f"I({OPEN})", f"I(x if {OPEN} else x)", f"x + {OPEN}",
    "I(open('canary', 'w'))", "open('canary', 'w')", "{open('canary', 'w')}", "C(x, levels=[open('canary', 'w')])",
    f"poly(x, degree={OPEN})", f"bs(x, knots=[{OPEN}])", f"lag({OPEN})", f"offset({OPEN})", f"offset(x) + I({OPEN})",
    f"season(x, 52, {OPEN})", f"log({OPEN})", f"C(g, contr.treatment({OPEN}))", f"C(g, contr.custom({OPEN}))",
    f"I(exec(\"{OPEN}\"))", f"I(eval(\"{OPEN}\"))", f"I(compile(\"{OPEN}\", '', 'exec'))", "I(breakpoint())",
    f"I([{OPEN} for i in [1]])", f"I((lambda: {OPEN})())", f"I((w := {OPEN}))", f"I(f'{{{OPEN}}}')",
    f"I(x[{OPEN}])", f"I(*[{OPEN}])", f"I(**{{'data': {OPEN}}})", f"I({{1: {OPEN}}})", f"I({{{OPEN}}})",
    f"x:{{{OPEN}}}", f"x*{{{OPEN}}}", f"x - {{{OPEN}}}", f"(x + {{{OPEN}}})**2", f"x %in% {{{OPEN}}}", f"x/{{{OPEN}}}",
    # attributes
    "np.save('canary', x)", "np.fromfile('canary')", "np.lib.npyio.os.system('touch canary')", "x.to_csv('canary')",
    "I(x.to_pickle('canary'))", "I(x.__class__.__mro__)", "I(().__class__.__base__.__subclasses__())",
    "contr.__class__('a')", "C(g, contr.treatment.__init__)", "C(g, contr.treatment.__globals__)",
    "np.log.__class__(x)", "season.__globals__('x')", "log.__self__(x)", "I(x.pipe)", "np.random.seed(0)",
    "getattr(x, 'to_csv')('canary')", "np.log(x).tofile('canary')",
    # texts that formulaic writes into code of its own
    "C(g, levels=['a\"] + [__import__(\"pathlib\").Path(\"canary\").touch()] + [\"b'])",
    "C(g, contr.treatment('\"]*0 or __import__(\"os\").system(\"touch canary\") or [\"'))",
    "C(g, contr.treatment(base='a\\\\\"] + [open(\"canary\", \"w\")] + [\"'))",
    "center(x, '\"] or open(\"canary\", \"w\") or [\"')", "bs(x, extrapolation='{open(\"canary\", \"w\")}')",
    "C(g, contr.treatment('a\\x22] or open(\\x22canary\\x22, \\x22w\\x22) or [\\x22'))",
    # names
    "`__import__('pathlib').Path('canary').touch()`", "__builtins__", "I(__builtins__)", "__FORMULAIC_STATE__",
    "I(__FORMULAIC_CONTEXT__)", "I(__FORMULAIC_SPEC__)", "I(print)", "np", "I(np)", "contr", "C(g, print)", "exit",
    "hashed(g, levels=10)", "Q('x')", "C(x, _state=x)", "center(x, _context=x)", "log(x, z)", "log(x, out=z)",
    "np.exp(x, z)",
    # operators
    "x | z", "x ~ z", "x ~ {open('canary', 'w')}", ".", "x + .", "'x'", "\"x\"", "x + 'x'", "x[0]", "x.y", "x @ z",
    "I(x << 10)", "I(x and z)", "I(not x)", "I(...)", "I(1j)", "I(b'x')", "x; z", "x = z", "I(x in [1])", "~x",
    # no end
    "9**9**9", "I(9**9**9)", "{9**9**9}", "I(x**9**9**9)", "x + I(2**2**99)", "x**99999999", "(x + z)**30",
    "(x + z)**x",
    "*".join("xzgy"[i % 4] + str(i) for i in range(30)), "(x + z + g + y)**9**9", "poly(x, 10**9)", "poly(x, 1000000)",
    "bs(x, df=10**8)", "bs(x, 100000000)", "bs(x, 5, None, 1000000)", "cr(x, df=1000000)", "season(x, 52, 10**8)",
    "season(x, 52, order=100000)", "poly(x, degree=z)", "bs(x, df=100):bs(z, df=100)", "I('a' * 1000000000)",
    "I([1] * 1000000000)", "I((1,) * 1000000000)", "I(g * 1000000000)", "I(I(g) * 1000000000)", "I('%1000000000d' % x)",
    "I(g % 9)", "I(" * 5000 + "x" + ")" * 5000, "I(" + "1+" * 10_000 + "x)",
    "I(" + "-" * 10_000 + "x)", "x +" + " " * 200_000 + "z", "x:" + "9" * 6000, "x" * 300_000,
    # not closed
    "offset(x", "lag(x", "C(x", "{x", "`x", "'", "x +", "+", "*", ")", "I()", "C()", "lag()", "offset()", "x\0", "\0",
]  # fmt: skip


WRITING = [text for text in HOSTILE if "canary" in text]  # a file, if it were code


@pytest.mark.parametrize("right", HOSTILE, ids=lambda right: right[:60])
def test_a_hostile_formula_is_refused_in_words(frame, canary, right):
    before = frame.copy()
    with pytest.raises(DfdbayesError):
        dfd.fit("poisson", frame, formula=f"y ~ {right}", **QUICK)
    for setting in ({"nu": f"~ {right}"}, {"zeros": f"~ {right}"}):
        with pytest.raises(DfdbayesError):
            dfd.fit("cmp", frame, formula="y ~ x", **setting, **QUICK)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.slow
@pytest.mark.parametrize(
    "right", ["I(" + "1+" * 50_000 + "x)", "I(" + "-" * 50_000 + "x)", "+".join(["x"] * 150_000)], ids=len
)
def test_a_formula_of_a_hundred_thousand_terms_is_refused(frame, right):
    with pytest.raises(DfdbayesError):
        dfd.fit("poisson", frame, formula=f"y ~ {right}", **QUICK)


@pytest.mark.parametrize("right", HOSTILE, ids=lambda right: right[:60])
def test_no_way_to_formulaic_passes_the_grammar_by(frame, canary, right):
    for way in (variables, alone):  # which evaluate nothing, and may know nothing against a name
        with suppress(DfdbayesError):
            way(right, frame)
    for way in (
        lambda: Design.of("mean", right, frame),
        lambda: Design("mean", right, (), None, (), {}).matrix(frame),
        lambda: Design.of("mean", as_factor(right, "days"), frame),
    ):
        with pytest.raises(DfdbayesError):
            way()


@pytest.mark.parametrize("right", HOSTILE[:40], ids=lambda right: right[:60])
def test_a_left_side_is_names(frame, canary, right):
    with pytest.raises(DfdbayesError):
        dfd.fit("poisson", frame, formula=f"{right} ~ x", **QUICK)


@pytest.mark.parametrize("right", ["{open('canary', 'w')}", "I(open('canary', 'w'))", "x + lag(y)"])
def test_formulas_of_maps_and_networks_have_the_same_grammar(canary, right):
    random = np.random.default_rng(1)
    cells = pd.DataFrame({"row": np.repeat(range(6), 6), "col": np.tile(range(6), 6), "x": random.normal(size=36)})
    cells["present"] = random.integers(0, 2, 36)
    with pytest.raises(DfdbayesError):
        dfd.fit("autologistic", cells, formula=f"present ~ {right}", options={"at": ["row", "col"]}, **QUICK)
    items = pd.DataFrame(random.integers(0, 2, (50, 3)), columns=list("abc")).assign(x=random.normal(size=50))
    with pytest.raises(DfdbayesError):
        dfd.fit("network", items, interaction=f"~ {right}", **QUICK)


LEGITIMATE = [
    "1", "0 + g", "x - 1", "x + z + g", "x*g", "x:z", "(x + z)**2", "(x + z)^2", "g/x", "x %in% g", "log(z)",
    "np.log(z)",
    "np.sqrt(z) + np.exp(x)", "log1p(z) + sqrt(z) + abs(x)", "I(x**2)", "{x**2}", "I(x > 0)", "I(g == 'a')", "I(x / z)",
    "I(x * (z > 2))", "I(-x)", "I(2**z)", "poly(x, 2)", "bs(x, df=4)", "cr(x, df=3)", "cc(x, df=4)",
    "bs(x, knots=[0.0])",
    "bs(x, 4, extrapolation='clip')", "C(g)", "C(g, contr.sum)", "C(g, contr.treatment('b'))", "C(g, Treatment('b'))",
    "C(g, contr.treatment(base='c'))", "C(g, levels=['c', 'b', 'a'])", "C(g, contr.poly)", "center(x) + scale(z)",
    "season(days, 7)", "season(days, 365.25 / 12, 2)", "x + offset(log(days))", "offset(np.log(days)) + g", "`x` + g",
    "standardize(x)", "sin(x) + cos(x)",
]  # fmt: skip


@pytest.mark.parametrize("right", LEGITIMATE)
def test_formulas_that_people_write_go_on_working(frame, right):
    design, matrix, _ = Design.of("mean", right, frame)
    again, _ = design.matrix(frame.head(7))
    np.testing.assert_allclose(again, matrix[:7], rtol=1e-9, atol=1e-12)


def test_nothing_but_columns_and_listed_functions_has_a_name():
    seen = context()
    assert set(seen) - set(FUNCTIONS) == {"np", "contr", "Treatment", "Sum", "Helmert", "Diff", "Poly"}
    for space, names in NAMESPACES.items():
        assert set(vars(seen[space])) == set(names)
    with pytest.raises(NameError):
        seen["open"]


ODD = [
    "scale", "log", "C", "I", "np", "contr", "class", "in", "lambda", "None", "a b", "a_20_b", "_class", "body.mass",
    "1",
    "x²", "ﬁt", "é", "e\u0301", "__builtins__", "__FORMULAIC_STATE__", "open", "print", "{x}", "x + 1", "a'b", 'a"b',
    "a\\b", "a`b", "%in%", "~", "", " ", "lag(x)", "offset", "__import__('os')", "a:b", "größe",
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in ODD if "`" not in name and name.strip()])
def test_any_name_of_a_column_stands_between_backticks_and_is_itself(frame, name):
    others = {other: np.full(len(frame), 9.0) for other in ODD if other != name}
    table = frame.assign(**others, **{name: np.arange(60.0)})
    design, matrix, _ = Design.of("mean", f"x + `{name}` + log(z)", table)
    assert design.labels == ("Intercept", "x", name, "log(z)")
    np.testing.assert_array_equal(matrix[:, 2], np.arange(60.0))


def test_a_column_called_1_is_no_constant(frame):
    design, matrix, _ = Design.of("mean", "1 + x", frame.assign(**{"1": 7.0}))
    assert design.labels == ("Intercept", "x")
    assert (matrix[:, 0] == 1.0).all()


def test_a_formula_has_as_many_terms_as_a_matrix_can_hold(frame):
    wide = pd.DataFrame(np.ones((5, 1000)), columns=[f"column{i}" for i in range(1000)])
    assert len(variables(" + ".join(wide.columns), wide)) == 1000
    with pytest.raises(DfdbayesError, match=f"more than {MAX_TERMS} terms"):
        variables("(" + " + ".join(wide.columns[:80]) + ")**2", wide)


def test_what_a_formula_may_not_hold_comes_with_what_it_may(frame):
    with pytest.raises(DfdbayesError, match=r"'np.where\(...\)', which formulas do not hold.*make a column of it"):
        Design.of("mean", "np.where(x > 0, 1, 0)", frame)
    with pytest.raises(DfdbayesError, match=r"did you mean 'log'"):
        Design.of("mean", "lgo(z)", frame)
    with pytest.raises(DfdbayesError, match="'g', which holds texts"):
        Design.of("mean", "I(g * 2)", frame)


def test_warnings_do_not_hide_a_refusal(frame, canary):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DfdbayesError):
            Design.of("mean", "I('\\d' + open('canary', 'w'))", frame)


@pytest.fixture(scope="module")
def saved(frame, tmp_path_factory):
    """The folder of a run whose fit has a formula."""
    folder = tmp_path_factory.mktemp("run")
    fit = dfd.fit("poisson", frame, formula="y ~ x + g", prior={"mean": dist.Normal(0.0, 2.0)}, **QUICK)
    about = {"data": "visits.csv", "settings": {"model": "poisson", "formula": "y ~ x + g"} | SHORT}
    runs.write_run(folder, fit, about)
    return folder


@pytest.fixture
def copied(saved, tmp_path):
    """A copy of it, to forge: a function that changes what the saved fit says of itself."""
    folder = tmp_path / "run"
    shutil.copytree(saved, folder)

    def forged(change):
        with h5py.File(folder / "posterior.nc", "r+") as file:
            about = json.loads(file.attrs["dfdbayes"])
            change(about)
            file.attrs["dfdbayes"] = json.dumps(about)
        return folder

    return forged


def _tried(call, folder, frame, tmp_path):
    """All that reads a saved fit; each has to work or to refuse in words."""
    frame.to_csv(tmp_path / "new.csv", index=False)
    found = [call(*words)[0] for words in (
        ["summary", folder], ["summary", folder / "posterior.nc"], ["predict", folder, "--data", tmp_path / "new.csv"],
        ["forecast", folder, "--steps", "2"], ["rerun", folder, "--out", tmp_path / "again"],
    )]  # fmt: skip
    assert set(found) <= {0, 2}
    return found


@pytest.mark.parametrize(
    "right",
    [pytest.param(text, marks=() if k % 5 == 0 else pytest.mark.slow) for k, text in enumerate(WRITING)],
    ids=[text[:60] for text in WRITING],
)
def test_a_saved_fit_with_a_hostile_formula_is_refused(copied, canary, right):
    folder = copied(lambda about: about["settings"].update(formulas={"mean": f"~ {right}"}))
    with pytest.raises(dfd.errors.DataError, match="not a fit saved by dfdbayes, or it is damaged"):
        dfd.load(folder)


def _named(about):
    about["regression"]["columns"][1]["name"] = OPEN
    about["settings"]["formulas"] = {"mean": f"~ {{{OPEN}}} + g"}


def _prior(name, transforms=None):
    def change(about):
        plain = {"name": name, "arguments": {"loc": "canary", "scale": 1.0}}
        plain |= {} if transforms is None else {"transforms": transforms, "base": dict(plain)}
        about["settings"]["prior_arguments"] = dict.fromkeys(about["settings"]["prior_arguments"], plain)

    return change


def _settings(**parts):
    return lambda about: about["settings"].update(parts)


FORGED = {
    "formula of a parameter that there is not": _settings(formulas={"canary": "~ x"}),
    "formula that is a list": _settings(formulas={"mean": ["~ x", OPEN]}),
    "formulas that are a text": _settings(formulas=f"~ {{{OPEN}}}"),
    "column that is called by code": _named,
    "model in a file": _settings(model="evil.py:made"),
    "model by its module": _settings(model="os:system"),
    "model that is a list": _settings(model=["poisson"]),
    "model without a family": _settings(model="network"),
    "prior that is a function": _prior("kl_divergence"),
    "prior that is a module": _prior("transforms"),
    "prior with two underscores": _prior("__loader__"),
    "transformation that is a function": _prior("Normal", [{"name": "vmap", "arguments": {"fun": "canary"}}]),
    "transformation that is a module": _prior("Normal", [{"name": "math", "arguments": {}}]),
    "loss of another kind": _settings(loss_arguments={"name": "robust", "arguments": {"base": OPEN}}),
    "loss that is no name": _settings(loss_arguments={"name": OPEN, "arguments": {}}),
    "kernel that is no name": _settings(loss_arguments={"name": "ksd", "arguments": {"kernel": {"name": OPEN}}}),
    "weight with a function": _settings(loss_arguments={"name": "robust", "arguments": {"weight": {"kind": OPEN}}}),
    "options with a graph that fills the memory": _settings(model="ising", options={"graph": "grid:99999x99999"}),
    "options with a graph of all nodes": _settings(model="ising", options={"graph": "complete:9999999"}),
    "options with a file": _settings(model="graph", options={"terms": "edges", "nodes": "/etc/passwd"}),
    "options with terms that are code": _settings(model="graph", options={"terms": f"edges + {OPEN}"}),
    "minimum that is a text": lambda about: about["minimum"].update(vector=OPEN),
    "series that is a text": lambda about: about["regression"].update(series=OPEN),
    "newer format": lambda about: about.update(format=99),
    "format that is no number": lambda about: about.update(format=OPEN),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED.keys())
@pytest.mark.daily(
    "model by its module",
    "prior that is a function",
    "transformation that is a module",
    "kernel that is no name",
    "options with a graph that fills the memory",
    "options with terms that are code",
    "newer format",
)
def test_a_forged_fit_is_read_or_refused_and_nothing_else_happens(call, copied, canary, frame, tmp_path, change):
    (tmp_path / "evil.py").write_text("open('canary', 'w')\n")
    _tried(call, copied(change), frame, tmp_path)


def _linked(file):
    del file["posterior"]
    file["posterior"] = h5py.ExternalLink("other.nc", "/posterior")


def _soft(file):
    file["more"] = h5py.SoftLink("/posterior")


def _circle(file):
    file["posterior"]["again"] = file["/"]


def _outside(file):
    file["posterior"].create_dataset("more", (10,), "f8", external=[("/etc/passwd", 0, 80)])


def _virtual(file):
    layout = h5py.VirtualLayout((3,), "f8")
    layout[:] = h5py.VirtualSource("other.nc", "numbers", (3,))
    file["posterior"].create_virtual_dataset("more", layout)


def _huge(file):
    file["posterior"].create_dataset("more", (10**13,), "f8", chunks=(1024,), compression="gzip")


@pytest.mark.parametrize("change", [_linked, _soft, _circle, _outside, _virtual, _huge])
def test_a_saved_fit_holds_its_own_numbers_as_many_as_memory_does(copied, tmp_path, change):
    folder = copied(lambda about: None)
    shutil.copy(folder / "posterior.nc", folder / "other.nc")
    with h5py.File(folder / "posterior.nc", "r+") as file:
        change(file)
    with pytest.raises(dfd.errors.DataError, match=r"link to somewhere else|there twice|in another file|GiB"):
        dfd.load(folder)


RUNS = {
    "checkpoint": "elsewhere", "client": "tcp://127.0.0.1:1", "resume": True, "progress": 3, "data": "/etc/passwd",
    "colour": 3, "intercept": "~ x", "threshold": "~ x", "draws": "many", "seed": True, "check": "no", "options": [],
    "beta": "1", "columns": "y", "weights": ["x"], "formula": 3, "missing_codes": {"y": 3}, "model": 3, "chains": [1],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), RUNS.items(), ids=RUNS.keys())
def test_a_run_gives_back_only_the_settings_that_the_command_line_writes(call, copied, tmp_path, name, value):
    folder = copied(lambda about: None)
    about = json.loads((folder / "run.json").read_text())
    about["settings"][name] = str(tmp_path / value) if name == "checkpoint" else value
    (folder / "run.json").write_text(json.dumps(about))
    code, _, err = call("rerun", folder)
    assert (code, "run.json" in err) == (2, True)
    assert name == "model" or f"'{name}'" in err
    with pytest.raises(dfd.errors.DataError):
        dfd.rerun(folder)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "option", [{"checkpoint": "x"}, {"observed": {}}, {"graph": 3}, {"at": "row"}, {"terms": None}]
)
def test_a_run_gives_back_only_the_options_that_the_command_line_writes(call, copied, option):
    folder = copied(lambda about: None)
    about = json.loads((folder / "run.json").read_text())
    about["settings"]["options"] = option
    (folder / "run.json").write_text(json.dumps(about))
    code, _, err = call("rerun", folder)
    assert (code, f"'{next(iter(option))}'" in err) == (2, True)


@pytest.mark.parametrize("formula", [f"y ~ {{{OPEN}}}", f"y ~ x + I({OPEN})", f"{OPEN} ~ x", "y ~ open('canary', 'w')"])
def test_a_run_executes_no_formula(call, copied, canary, formula):
    folder = copied(lambda about: None)
    about = json.loads((folder / "run.json").read_text())
    for setting in ("formula", "nu", "zeros", "interaction"):
        forged = about | {"settings": about["settings"] | {setting: formula}}
        (folder / "run.json").write_text(json.dumps(forged))
        assert call("rerun", folder)[0] == 2


def test_a_run_executes_no_file_that_the_user_does_not_name(call, copied, canary, tmp_path):
    (tmp_path / "evil.py").write_text("open('canary', 'w')\n")
    folder = copied(lambda about: None)
    about = json.loads((folder / "run.json").read_text())
    for model in ("evil.py:made", str(tmp_path / "evil.py") + ":made", "evil.py", "evil:made", "./evil.py:a:b"):
        (folder / "run.json").write_text(json.dumps(about | {"settings": about["settings"] | {"model": model}}))
        assert call("rerun", folder)[0] == 2
    (folder / "run.json").write_text(json.dumps(about | {"settings": about["settings"] | {"model": "evil.py:made"}}))
    assert "if you trust that file" in call("rerun", folder)[2]


def test_the_files_of_a_run_are_of_one_run(call, copied):
    folder = copied(lambda about: None)
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(about | {"settings": about["settings"] | {"model": "cmp"}}))
    code, _, err = call("rerun", folder)
    assert (code, "run.json is about cmp, posterior.nc about poisson" in err) == (2, True)


def test_what_is_written_is_what_can_be_read_back(call, tmp_path, frame):
    """Every setting that the command takes, written and read again."""
    frame.to_csv(tmp_path / "y.csv", index=False)
    written = {}
    words = ["--draws", "20", "--warmup", "20", "--chains", "1", "--no-check", "--calibration", "none"]
    given = ["--formula", "y ~ x", "--nu", "~ 1", "--zeros", "~ 1", "--missing-codes", "-9", "--decimal", ".", *words]
    assert call("fit", tmp_path / "y.csv", "--model", "cmp", "--out", tmp_path / "run", *given)[0] == 0
    written = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    from_plain(written, runs.Settings)
    assert {"formula", "nu", "zeros", "missing_codes", "decimal"} <= set(written)
    code, said, _ = call("rerun", tmp_path / "run", "--out", tmp_path / "again")
    assert (code, "the draws are the same as before" in said) == (0, True)
    again = json.loads((tmp_path / "again" / "run.json").read_text())["settings"]
    assert again == written


def test_nothing_is_written_through_links_in_a_folder(call, visits, tmp_path):
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "run"
    elsewhere.mkdir()
    out.mkdir()
    (out / "checkpoint").symlink_to(elsewhere)
    code, _, err = call("fit", visits, "--model", "poisson", "--out", out, "--no-check")
    assert (code, "is a link" in err) == (2, True)
    (out / "replicates.jsonl").symlink_to(elsewhere / "file")
    words = ["--model", "poisson", "--theta", "3", "--n", "20", "--replicates", "2", "--calibration", "none"]
    code, _, err = call("coverage", *words, "--out", out)
    assert (code, "is a link" in err) == (2, True)
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("right", ["{open('canary', 'w')}", f"I({OPEN})", "exec('canary')", "hashed(g)", "Q('x')"])
def test_without_the_grammar_there_would_still_be_no_name_to_call(frame, canary, monkeypatch, right):
    none = frozenset[str]()
    monkeypatch.setattr("dfdbayes.data.formulas.read", lambda text, shown: Content(none, none, none))
    with pytest.raises(dfd.errors.DataError, match="neither a column nor a function of formulas"):
        Design.of("mean", right, frame)


@pytest.mark.parametrize("described", [
    {"name": "canary", "arguments": {}},
    {"name": "TransformedDistribution", "arguments": {}, "base": {"name": "Normal", "arguments": {}},
     "transforms": [{"name": "canary", "arguments": {}}]},
])  # fmt: skip
def test_a_prior_is_a_distribution_and_no_other_thing_that_a_module_has(monkeypatch, described):
    for module in (dist, dist.transforms):
        monkeypatch.setattr(module, "canary", lambda: pytest.fail("it was called"), raising=False)
    with pytest.raises(TypeError, match="canary is no"):
        from_plain(described, dist.Distribution)


def _put(value, *places):
    def change(about):
        part = about
        for place in places[:-1]:
            part = part[place]
        part[places[-1]] = value

    return change


OF_ANOTHER_TYPE = {
    "kind of a column": _put("x", "regression", "columns", 2, "kind"),
    "weights of rows": _put(-7, "regression", "weights"),
    "series": _put(-7, "settings", "series"),
    "edges": _put({"mean[x]": "red"}, "settings", "edges"),
    "Pareto k": _put([[1]], "settings", "pareto_k"),
    "weight of the loss": _put("red", "calibration", "beta"),
    "p-value": _put([[1]], "checks", "goodness", "p_value"),
    "column of a table": _put([], "checks", "agreement", "table", "columns", 2),
    "name of a parameter": _put(-7, "minimum", "names", 0),
    "names of parameters": _put("red", "minimum", "names"),
    "names of columns": _put({}, "data", "columns"),
    "warnings": _put([2.5], "warnings"),
    "seconds": _put({"seconds": "red"}, "timings"),
}


@pytest.mark.parametrize("change", OF_ANOTHER_TYPE.values(), ids=OF_ANOTHER_TYPE.keys())
def test_a_saved_fit_with_a_value_of_another_type_is_damaged(checked, tmp_path, change):
    path = tmp_path / "posterior.nc"
    shutil.copy(checked, path)
    with h5py.File(path, "r+") as file:
        about = json.loads(file.attrs["dfdbayes"])
        change(about)
        file.attrs["dfdbayes"] = json.dumps(about)
    with pytest.raises(dfd.errors.DataError, match="damaged"):
        dfd.load(path)


@pytest.fixture(scope="module")
def checked(frame, tmp_path_factory):
    """A saved fit with its checks."""
    path = tmp_path_factory.mktemp("checked") / "posterior.nc"
    fit = dfd.fit("poisson", frame, formula="y ~ x + g", loss="likelihood", **QUICK | {"check": True})
    path.write_bytes(fit.to_bytes())
    assert str(dfd.load(path)) == str(fit)
    return path
