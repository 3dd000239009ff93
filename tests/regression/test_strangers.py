"""Formulas and files of strangers: nothing in them is executed, nothing is written elsewhere, nothing has no end."""

import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes.data.formulas import Design, alone, as_factor, variables
from dfdbayes.data.grammar import FUNCTIONS, MOST_TERMS, NAMESPACES, context
from dfdbayes.errors import DfdbayesError

QUICK = {"draws": 20, "warmup": 20, "chains": 1, "check": False, "progress": False, "calibration": "none"}


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
    "I(g % 9)", "I(" * 5000 + "x" + ")" * 5000, "I(" + "1+" * 50_000 + "x)",
    "I(" + "-" * 50_000 + "x)", "+".join(["x"] * 150_000), "x:" + "9" * 6000, "x" * 300_000,
    # not closed
    "offset(x", "lag(x", "C(x", "{x", "`x", "'", "x +", "+", "*", ")", "I()", "C()", "lag()", "offset()", "x\0", "\0",
]  # fmt: skip


@pytest.mark.parametrize("right", HOSTILE, ids=lambda right: right[:60])
def test_a_hostile_formula_is_refused_in_words(frame, canary, right):
    before = frame.copy()
    with pytest.raises(DfdbayesError):
        dfd.fit("poisson", frame, formula=f"y ~ {right}", **QUICK)
    for setting in ({"nu": f"~ {right}"}, {"zeros": f"~ {right}"}):
        with pytest.raises(DfdbayesError):
            dfd.fit("cmp", frame, formula="y ~ x", **setting, **QUICK)
    pd.testing.assert_frame_equal(frame, before)


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
    with pytest.raises(DfdbayesError, match=f"more than {MOST_TERMS} terms"):
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
