"""The answer first: what each family of models says of its fits, and what all of them have in common."""

import re
from dataclasses import replace

import numpy as np
import pytest

import small_fits
from dfdbayes.models import AbstractModel
from dfdbayes.results.answers import FAMILIES, answer
from dfdbayes.results.answers.dispersion import _is_edge
from dfdbayes.results.answers.words import Estimate, Ratio, listed, named, rounded
from dfdbayes.results.goodness_of_fit import GoodnessOfFit

SAID = {
    "counts": ("The mean of sales is 3.5", "it varies more than a Poisson count does", "The model reproduces the data"),
    "poisson": ("The mean of visits is 7.0", "does not reproduce the data (p < 0.002)", "predicts a variance of"),
    "binary": ("The share of ones in smokes is 40 % (95 % interval 33 % to 47 %).",),
    "mixture": ("Of calls, 33 %", "with mean 3, the others from the one with mean 9"),
    "regression": (
        "Per unit of age, the mean of visits is multiplied by 1.04",
        "With clinic = B rather than A,",
        "about as Poisson",
    ),
    "binary regression": ("the odds that again is 1 are multiplied by 1.0", "For noise (times "),
    "lattice": ("a neighbour that is +1 rather than -1", "(temperature 3.4, 95 % interval"),
    "potts": ("a neighbour in some state makes the odds",),
    "network": ("Of 6 pairs of variables, 2 are joined", "The strongest edges are sleep – mood & <b> (odds ratio 4.1"),
    "ordinal network": ("The strongest edge is calm – sleep (1.5",),
    "count network": ("The strongest edge is wolves – deer", "much of one goes with little of the other"),
    "incomplete network": ("194 missing entries cost 18 % on average and at most 35 %", "60 clusters tell as much as"),
    "random graph": ("16 nodes, 34 ties", "between nodes of the same colour.", "resemble this one"),
    "map": ("64 sites", "per unit of height"),
    "series": ("Per unit of lag(accidents), the mean of accidents is multiplied by 1.10",),
    "own": ("tilt is 0.2", "and bend -0.0"),
}


@pytest.mark.parametrize("kind", small_fits.ALL)
def test_every_family_begins_with_its_answer(kind):
    fit = small_fits.ALL[kind]()
    for words in SAID[kind]:
        assert words in f"{fit!r}"
    prose, table, *rest = str(fit).split("\n\n")[1:]
    assert prose.replace("\n", " ") == fit.answer and len(answer(fit)) <= 7
    assert "95 % from" in table and "calibration: " in rest[-1] and "Theorem" not in prose
    assert not re.search(r"\bnan\b|\binf\b|\(\(|\)\)|  ", fit.answer) and fit.answer.endswith(".")
    assert set(fit.meanings) == {entry.partition("[")[0] for entry in fit.entries} - {"bend"}
    assert fit.describe()["answer"] == fit.answer


def test_the_most_spread_of_a_count_model_is_its_edge():
    """At nu = 0 the variance is mean + mean^2, that of a geometric distribution."""
    assert _is_edge(6.0, 0.01) and not _is_edge(6.0, 0.2) and not _is_edge(6.0, 2.0)
    assert _is_edge(0.5, 0.05) and not _is_edge(1e6, 0.01)


def test_every_model_names_a_family():
    """Those of this package one with sentences of its own; others are told parameter by parameter."""
    named = {make().model.answers for make in small_fits.ALL.values()}
    assert named == set(FAMILIES) and AbstractModel.answers == "own"


def test_a_fit_without_its_model_is_told_parameter_by_parameter():
    fit = replace(small_fits.network(), model=None)
    assert fit.answer.startswith(
        "Of 10 parameters, 3 have 95 % intervals that exclude zero; the clearest are interaction["
    )


def test_what_was_not_checked_is_not_claimed():
    fit = small_fits.poisson()
    assert "reproduce" not in replace(fit, checks=None).answer
    failed = replace(fit, checks=replace(fit.checks, goodness=None, problem="too many"))
    assert failed.answer.endswith("Whether the model reproduces the data was not checked: too many.")
    good = replace(fit.checks, agreement=None, goodness=GoodnessOfFit("chi-squared", 1.0, 0.83, 0.01))
    assert replace(fit, checks=good).answer.endswith("The model reproduces the data (p = 0.83).")


def test_a_mean_that_overflows_gives_way_to_the_median():
    fit = small_fits.poisson()
    draws = np.linspace(1.0, 2.0, 1000).reshape(4, 250)
    draws[0, :3] = 1e60
    posterior = replace(fit.groups["posterior"], arrays={"rate": draws})
    wild = replace(fit, groups={**fit.groups, "posterior": posterior}, checks=None)
    assert np.isnan(wild.summary().loc["rate", "mean"])
    assert Estimate.of(wild, "rate").value == pytest.approx(np.median(draws))
    assert " - " in str(wild) and "median" in str(wild) and "nan" not in str(wild).lower()


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (3.5566, 0.27, "3.56"),
        (41234.4, 300.0, "41234"),
        (0.123456, 0.0011, "0.1235"),
        (-2.0, 0.0, "-2"),
        (1e9, 1e8, "1e+09"),
    ],
)
def test_numbers_have_the_digits_that_their_interval_leaves(value, spread, text):
    assert rounded(value, spread) == text


@pytest.mark.parametrize(
    ("factor", "text"),
    [
        ((4.03, 1.39, 11.6), "4.0 (1.4 to 12)"),
        ((1.5, 1.04, 2.3), "1.5 (1.04 to 2.3)"),
        ((0.9, 0.5, 0.999), "0.90 (0.50 to 0.999)"),
        ((0.3, 0.23, 0.39), "0.30 (0.23 to 0.39)"),
        ((3.0, 1.0, 9.0), "3.0 (1.0 to 9.0)"),
        ((250.0, 120.0, np.inf), "250 (120 to beyond all bounds)"),
    ],
)
def test_an_end_of_a_factor_reads_as_one_only_where_it_is(factor, text):
    assert Ratio(*factor).brief == text


def test_names_and_lists():
    assert listed(["a"]) == "a" and listed(["a", "b", "c"]) == "a, b and c"
    assert listed(list("abcdefg"), 2) == "a, b and 5 more"
    assert named("  two\nlines ") == "two lines" and len(named("x" * 99)) == 40
