"""What the code costs to understand stays low: counted from the code, with the rule beside each number."""

import ast
import re

import pytest

import house

MOST = {
    "a model's class asked outside families": 0,
    "names compared": 0,
    "imports in circles": 0,
    "numbers with a name": 146,
    "counts": 47,
    "regression": 56,
    "graph": 50,
}
"""Numbers reached, of which each only ever gets smaller; the last three are modules that a fit enters."""


def refuse(places, name):
    assert len(places) <= MOST[name], f"{name}: {len(places)} for at most {MOST[name]}\n" + "\n".join(places)


def test_models_answer_by_their_methods_and_nobody_asks_what_they_are():
    refuse(house.classes_asked(), "a model's class asked outside families")


def test_names_of_models_losses_and_parameters_decide_nothing():
    refuse(house.names_compared(), "names compared")


def test_imports_come_back_nowhere():
    refuse(house.circles(), "imports in circles")


def test_few_numbers_decide():
    refuse(house.constants(), "numbers with a name")


@pytest.mark.parametrize(
    "walk", [pytest.param(walk, marks=() if walk == "counts" else pytest.mark.slow) for walk in house.WALKS]
)
def test_a_fit_enters_few_modules(walk):
    refuse(house.entered(walk), walk)


@pytest.mark.slow
def test_the_walk_that_contributing_tells_is_the_one_that_a_fit_takes(monkeypatch):
    told = (house.SOURCE.parents[1] / "CONTRIBUTING.md").read_text().partition("## The walk")[2]
    lines = [line for line in told.partition("## ")[0].splitlines() if line.startswith("|")]
    named = {path for line in lines for path in re.findall(r"`([\w/]+\.py)`", line)}
    monkeypatch.setitem(house.WALKS, "told", "str(dfd.fit('cmp', rng.poisson(3.0, 200), progress=False))")
    assert len(named) > 25 and named - {"data/read/text.py"} <= set(house.entered("told"))


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(fit.model, Regression)",
        "isinstance(x, (int, Pairwise))",
        "isinstance(x, GROUP)",
        "issubclass(kind, CountFamily)",
        "type(fit.model)",
        "self.model.__class__",
        "hasattr(model, 'edges')",
        "getattr(fit.model, 'family', None)",
    ],
)
def test_questions_are_found_however_they_are_asked(text, monkeypatch):
    tree = ast.parse(f"GROUP = (Regression, RandomGraph)\nfound = {text}")
    monkeypatch.setattr(house, "modules", lambda: {"core.made_up": tree})
    monkeypatch.setattr(house, "model_classes", lambda: {"Regression", "Pairwise", "CountFamily", "RandomGraph"})
    assert len(house.classes_asked()) == 1


def test_questions_by_match_and_dispatch_are_found(monkeypatch):
    tree = ast.parse(
        "match model:\n    case Regression():\n        pass\n"
        "@told.register\ndef of_graph(model: RandomGraph):\n    pass\n"
        "def compare(one: AbstractModel):\n    return type(one)\n"
    )
    monkeypatch.setattr(house, "modules", lambda: {"core.made_up": tree})
    monkeypatch.setattr(house, "model_classes", lambda: {"Regression", "RandomGraph"})
    assert len(house.classes_asked()) == 3


@pytest.mark.parametrize(
    "text",
    [
        "name == 'cmp'",
        "name in ('cmp', 'x')",
        "name in SOME",
        "name == ONE",
        "name.startswith('nu[')",
        "TABLE[name]",
        "TABLE.get(name)",
        "{'cmp': 1}[name]",
    ],
)
def test_names_are_found_however_they_are_compared(text, monkeypatch):
    tree = ast.parse(f"ONE = 'cmp'\nSOME = frozenset(['cmp'])\nTABLE = {{'cmp': 1}}\nfound = {text}")
    monkeypatch.setattr(house, "modules", lambda: {"core.made_up": tree})
    monkeypatch.setattr(house, "names", lambda: {"cmp", "nu"})
    assert len(house.names_compared()) == 1


def test_names_in_match_are_found(monkeypatch):
    tree = ast.parse("match name:\n    case 'cmp' | 'x':\n        pass\n    case _:\n        pass\n")
    monkeypatch.setattr(house, "modules", lambda: {"core.made_up": tree})
    monkeypatch.setattr(house, "names", lambda: {"cmp"})
    assert len(house.names_compared()) == 1


def test_numbers_are_counted_however_they_are_named(monkeypatch):
    numbers = "A = 3\nB, C = 1, 2.0\nD = (0.1, 0.9)\nE = np.log(3.0)\nclass K:\n    H = 5\n"
    text = f"{numbers}    i: int = 5\nF = True\nG = 'x'\n"
    monkeypatch.setattr(house, "modules", lambda: {"core.made_up": ast.parse(text)})
    assert len(house.constants()) == 6
