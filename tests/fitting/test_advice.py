"""Advice works as it is written: each call that a message names is made, is accepted, and is not advised again."""

import ast
import re
import warnings
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes.core.diagnostics import _another_loss, _of_means, _smaller_steps
from dfdbayes.errors import DfdbayesError

QUICK = {"progress": False, "draws": 100, "sampler": "laplace", "check": True, "bootstrap": 40}
QUOTED = r"(model|formula|zeros|nu|loss|missing|resampling|calibration)=('[^']*')"
GRID = r"dfd\.graphs\.grid\(\d+, \d+(?:, periodic=True)?\)"


def said(call: dict[str, Any]) -> tuple[list[str], bool]:
    """What a call says, in its error or its warnings and checks; and whether it was accepted."""
    arguments = dict(call)
    model, data = arguments.pop("model"), arguments.pop("data")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fit = dfd.fit(model, data, **QUICK | arguments)
        except DfdbayesError as problem:
            return [str(problem)], False
    more = [] if fit.checks is None else [one.remedy for one in fit.checks.misfits]
    return [*fit.warnings, *more], True


def advised(text: str) -> list[dict[str, Any]]:
    """Every alternative that a message names, as settings; those with a gap for the reader (...) are none."""
    found = []
    for part in re.split(r"; |\. ", text.partition("What to do: ")[2] or text):
        own: dict[str, Any] = {name: ast.literal_eval(value) for name, value in re.findall(QUOTED, part)}
        for number in re.findall(r"\bdraws=(\d+)", part):
            own["draws"] = int(number)
        for call in re.findall(rf"dfd\.models\.PoissonMixture\(\[.*?\]\)|dfd\.models\.Ising\({GRID}.*?\)", part):
            own["model"] = eval(call)
        for call in [] if "model" in own else re.findall(GRID, part):
            own["model"] = dfd.models.Ising(eval(call))
        for options in re.findall(r"options=(\{.*?\})", part):
            own["options"] = ast.literal_eval(options)
        for names in re.findall(r"frame\.dropna\(subset=(\[.*?\])\)", part):
            own["without"] = ast.literal_eval(names)
        for name in re.findall(r"give the data as \{'(.*?)': \.\.\.\}", part):
            own["named"] = name
        if own and not any("..." in str(value) for value in own.values()):
            found.append(own)
    return found


def followed(call: dict[str, Any], advice: dict[str, Any]) -> dict[str, Any]:
    """The call as the advice has it."""
    new, data = call | advice, call["data"]
    if "without" in advice:
        data = data.dropna(subset=new.pop("without"))
    if "named" in advice:
        data = {new.pop("named"): data}
    return new | {"data": data}


def shown(call: dict[str, Any]) -> dict[str, str]:
    """A call's settings, to compare: models by name and options."""
    model = call["model"]
    own = {name: str(value) for name, value in call.items() if name not in ("model", "data")}
    return own | {"model": model if isinstance(model, str) else f"{model.name} {model.options}"}


RNG = np.random.default_rng(12)


def negative_binomial(size: float, n: int = 400) -> np.ndarray:
    return RNG.negative_binomial(size, size / (size + 4.0), n)


def in_column(x: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"y": x})


def by_covariate(size: float) -> pd.DataFrame:
    x = RNG.normal(size=400)
    return pd.DataFrame({"y": RNG.poisson(np.exp(1.0 + 0.3 * x) * RNG.gamma(size, 1.0 / size, 400)), "x": x})


def in_groups() -> pd.DataFrame:
    spread = np.concatenate(
        [RNG.poisson(5.0 * RNG.gamma(25.0, 0.04, 200)), RNG.poisson(5.0 * RNG.gamma(2.5, 0.4, 200))]
    )
    return pd.DataFrame({"y": spread, "g": np.repeat(["a", "b"], 200)})


def items(lacking: int) -> pd.DataFrame:
    """A questionnaire of 200 rows in which all but ten lack an answer, and some rows their age."""
    frame = pd.DataFrame(RNG.integers(0, 2, (200, 3)).astype(float), columns=["a", "b", "c"])
    frame["age"] = RNG.normal(40.0, 9.0, 200).round()
    for row in range(190):
        frame.loc[row, "abc"[row % 3]] = np.nan
    frame.loc[195 : 194 + lacking, "age"] = np.nan
    return frame


ZEROS = np.where(RNG.random(400) < 0.4, 0, RNG.poisson(4.0, 400))
GROUPS = np.concatenate([RNG.poisson(1.6, 250), RNG.poisson(9.0, 150)])
THREE = np.concatenate([RNG.poisson(1.0, 200), RNG.poisson(7.0, 150), RNG.poisson(20.0, 60)])
GRIDDED = dfd.simulate(dfd.models.Ising(dfd.graphs.grid(3, 4, periodic=True)), {"temperature": 3.0}, 300, seed=2).rows
ITEMS = {"model": "network", "columns": ["a", "b", "c"]}

SITUATIONS = {
    "overdispersed": {"model": "poisson", "data": in_column(negative_binomial(2.5))},
    "beyond geometric": {"model": "poisson", "data": in_column(negative_binomial(0.4))},
    "beyond geometric, cmp": {"model": "cmp", "data": in_column(negative_binomial(0.4))},
    "beyond geometric, without a name": {"model": "cmp", "data": negative_binomial(0.4)},
    "underdispersed": {"model": "poisson", "data": in_column(RNG.binomial(6, 0.6, 400))},
    "two groups": {"model": "poisson", "data": in_column(GROUPS)},
    "three groups": {"model": "poisson", "data": in_column(THREE)},
    "three groups, two asked for": {"model": dfd.models.PoissonMixture([1.6, 12.0]), "data": in_column(THREE)},
    "zeros": {"model": "poisson", "data": in_column(ZEROS)},
    "zeros, without a name": {"model": "poisson", "data": ZEROS},
    "overdispersed regression": {"model": "poisson", "data": by_covariate(3.0), "formula": "y ~ x"},
    "regression beyond geometric": {"model": "poisson", "data": by_covariate(0.4), "formula": "y ~ x"},
    "a group varies more": {"model": "cmp", "data": in_groups(), "formula": "y ~ g"},
    "missing entries": ITEMS | {"data": items(0)},
    "a row without a covariate": ITEMS | {"data": items(1), "formula": "~ age"},
    "a row without a covariate, imputed": ITEMS | {"data": items(1), "formula": "~ age", "missing": "impute"},
    "a regression without a covariate": {"model": "bernoulli", "data": items(3).dropna(subset=["a"]),
                                       "formula": "a ~ age"},
    "a torus": {"model": dfd.models.Ising(dfd.graphs.grid(3, 4)), "data": GRIDDED, "loss": "ratio"},
    "too few draws": {"model": "poisson", "data": in_column(RNG.poisson(3.0, 100)), "draws": 250, "warmup": 0,
                      "sampler": dfd.samplers.RandomWalk(step=0.01), "check": False},
}  # fmt: skip
SILENT = {"regression beyond geometric", "three groups, two asked for"}  # no call would help these


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.daily("zeros", "a regression without a covariate")
def test_advice_is_accepted_and_not_repeated(situation):
    """Whatever is followed, no call comes back that was made before, and the end is reached in a few steps."""
    todo: list[tuple[dict[str, Any], list[dict[str, str]]]] = [(SITUATIONS[situation], [])]
    steps = 0
    while todo:
        call, before = todo.pop()
        texts, accepted = said(call)
        assert accepted or not before, (before, shown(call), texts)
        for advice in {str(one): one for text in texts for one in advised(text)}.values():
            new = followed(call, advice)
            path = [*before, shown(call)]
            assert shown(new) not in path or "without" in advice, (path, advice, texts)
            assert len(path) < 5
            steps += 1
            todo.append((new, path))
    assert steps or situation in SILENT


def test_a_message_says_what_dropping_costs():
    texts, accepted = said(SITUATIONS["a row without a covariate, imputed"])
    assert not accepted and "1 of 200 rows" in texts[0] and "first: row 196" in texts[0]
    assert "the 191 rows that lack anything" in texts[0]


@pytest.mark.parametrize("used", ["dfd", "ratio", "likelihood"])
def test_no_message_advises_the_loss_in_use(used):
    told = _another_loss(used, "ratio", "likelihood")
    assert repr(used) not in told and "loss=" in told
    entries = {"rate": np.append(np.linspace(1.0, 2.0, 799), 1e300).reshape(2, 400)}
    (warned,) = _of_means(entries, used)
    assert repr(used) not in str(warned)


def test_the_target_that_is_advised_is_higher_than_the_one_in_use():
    for target in (0.8, 0.9, 0.95):
        assert float(re.search(r"target=(.*?)\)", _smaller_steps(target))[1]) > target
    assert "target" not in _smaller_steps(0.99)


def test_a_graph_by_likelihood_is_not_told_to_use_it():
    model = dfd.models.RandomGraph("edges")
    fit = dfd.fit(model, nx.florentine_families_graph(), check=False, progress=False, draws=100, sampler="laplace")
    assert fit.loss.normalised and dfd.graph_goodness(fit).by_likelihood
