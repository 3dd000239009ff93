"""The answer first: what each family of models says of its fits, and what all of them have in common."""

import re
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from jax.scipy.special import gammaln

import dfdbayes as dfd
import small_fits
from dfdbayes._util.tables import Table
from dfdbayes._util.words import Estimate, Ratio, listed, named, rounded
from dfdbayes.core.diagnostics import why_not_converged
from dfdbayes.core.narrative import Narrative
from dfdbayes.families import AbstractModel
from dfdbayes.families.counts.dispersion import _is_edge
from dfdbayes.fitting.runs import write_run
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
    assert prose.replace("\n", " ") == fit.answer and len(fit.sentences) <= 7
    assert "95 % from" in table and "calibration: " in rest[-1] and "Theorem" not in prose
    assert not re.search(r"\bnan\b|\binf\b|\(\(|\)\)|  ", fit.answer) and fit.answer.endswith(".")
    assert set(fit.meanings) == {entry.partition("[")[0] for entry in fit.entries} - {"bend"}
    assert fit.describe()["answer"] == fit.answer


def test_the_most_spread_of_a_count_model_is_its_edge():
    """At nu = 0 the variance is mean + mean^2, that of a geometric distribution."""
    assert _is_edge(6.0, 0.01) and not _is_edge(6.0, 0.2) and not _is_edge(6.0, 2.0)
    assert _is_edge(0.5, 0.05) and not _is_edge(1e6, 0.01)


def test_every_family_has_a_narrative():
    """Those of this package sentences of their own; others are told parameter by parameter."""
    own = {kind for kind, make in small_fits.ALL.items() if type(make().narrative) is Narrative}
    assert own == {"own"} and type(AbstractModel.narrative) is Narrative


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


# -- whether zero is a question ----------------------------------------------------------------


def rates() -> dfd.Fit:
    """A model of one's own for five counts, whose rates are positive, and what the first two have to do."""

    def log_mass(theta, x):
        return jnp.sum(x * jnp.log(theta["rates"]) - gammaln(x + 1.0)) + theta["shift"] * x[0] * x[1]

    parameters = {"rates": dist.Gamma(2.0, 0.5).expand([5]), "shift": dist.Normal(0.0, 1.0)}
    model = dfd.Model(log_mass, domain=dfd.Counts(5), parameters=parameters, name="rates")
    rows = np.random.default_rng(5).poisson(3.0, (300, 5))
    return small_fits.quietly(model, rows, loss="ratio", check=False)


def test_only_parameters_that_may_be_zero_are_counted_as_excluding_it():
    """Positive ones exclude zero whatever the data are."""
    fit = rates()
    assert fit.answer.startswith("Of 1 parameter that may be zero (of 6), ")
    assert list(np.flatnonzero(fit.model.space.may_be_zero)) == [5]
    loaded = replace(fit, model=None)
    assert loaded.answer.startswith("Of 1 parameter that may be zero")
    old = replace(loaded, settings={name: own for name, own in fit.settings.items() if name != "may_be_zero"})
    assert "zero" not in old.answer and "parameters: rates[0]" in old.answer  # of a file that does not say


def test_where_zero_is_on_the_edge_it_is_a_question():
    """Interactions of counts that are not negative: none is what one asks about."""
    space = dfd.models.PoissonGraphical(3, prior="squared").space
    asked = [name for name, one in zip(space.names, space.may_be_zero, strict=True) if one]
    assert sum(name.startswith("interaction[") for name in asked) == 3
    assert not dfd.models.Poisson().space.may_be_zero.any()


# -- chains that did not converge --------------------------------------------------------------


def apart(fit: dfd.Fit) -> dfd.Fit:
    """The same fit by chains, each of which stays at a place of its own."""
    posterior, rng = fit.groups["posterior"], np.random.default_rng(1)
    arrays = {
        name: values + 10.0 * np.arange(len(values)).reshape(-1, *[1] * (values.ndim - 1))
        + 1e-3 * rng.standard_normal(values.shape)
        for name, values in posterior.arrays.items()
    }  # fmt: skip
    diverging = np.ones((posterior.sizes["chain"], posterior.sizes["draw"]), bool)
    stats = Table.of({"diverging": (("chain", "draw"), diverging)})
    groups = {"posterior": replace(posterior, arrays=arrays), "sample_stats": stats}
    settings = fit.settings | {"sampler": "nuts", "warmup": 500}
    return replace(fit, groups={**fit.groups, **groups}, settings=settings)


@pytest.mark.parametrize("kind", small_fits.ALL)
@pytest.mark.daily("counts", "random graph")
def test_of_chains_that_did_not_converge_there_is_no_answer(kind, tmp_path):
    fit = apart(small_fits.ALL[kind]())
    assert not fit.converged and fit.answer.startswith("There is no answer: the chains did not converge (")
    assert "R-hat of" in fit.answer and "transitions diverged" in fit.answer and "What to do:" in fit.answer
    assert "joined by an edge" not in f"{fit}" and "no estimates" in f"{fit}"
    about = fit.describe()
    assert about["converged"] is False and about["answer"] == fit.answer
    assert not fit.summary()["converged"].any()
    assert "There is no answer" in fit._repr_html_() and "False" in fit._repr_html_()
    page = fit.report(tmp_path / "page.html").read_text()
    assert page.count("did not converge") >= 3  # the answer, the table, and what to report in a paper
    assert "there is no result to report" in page
    good = small_fits.ALL[kind]()
    assert good.converged and "converged" not in good.summary() and good.describe()["converged"]


def test_a_network_that_did_not_converge_has_no_verdicts(tmp_path):
    fit = apart(small_fits.network())
    table = fit.evidence()
    assert set(table["evidence"]) == {"not converged"} and table["bayes_factor"].isna().all()
    assert table.attrs["expected_false_edges"] == 0.0 and "There is no answer" in table._repr_html_()
    with pytest.warns(dfd.errors.ConvergenceWarning, match="rest on them"):
        fit.nodes()
    written = write_run(tmp_path, fit, {"data": "x", "settings": {}})
    assert "nodes.csv" not in written and "not converged" in (tmp_path / "edges.csv").read_text()
    assert "converged" in (tmp_path / "summary.csv").read_text().splitlines()[0]
    both = dfd.compare({"good": small_fits.network(), "bad": fit}).table
    assert both.xs("good", level="fit")["converged"].all() and not both.xs("bad", level="fit")["converged"].any()


@pytest.mark.parametrize(
    ("r_hat", "bulk", "diverged", "why"),
    [
        (1.005, 2000.0, 0.0, ""),
        (1.04, 300.0, 0.01, ""),  # worth a warning, and an answer
        (np.inf, 2000.0, 0.0, "infinite"),
        (1.6, 2000.0, 0.0, "R-hat of b is 1.60"),
        (1.005, 7.0, 0.0, "7 effective draws"),
        (1.005, 2000.0, 1.0, "4000 of 4000 transitions"),
        (np.nan, np.nan, 0.0, ""),  # of what does not vary
    ],
)
def test_what_makes_draws_no_sample(r_hat, bulk, diverged, why):
    table = pd.DataFrame({"ess_bulk": [4000.0, bulk], "ess_tail": 4000.0, "r_hat": [1.0, r_hat]}, index=["a", "b"])
    stats = {"diverging": np.arange(4000).reshape(4, 1000) < 4000 * diverged}
    told = why_not_converged(stats, table, 4000)
    assert (why in told) if why else told == ""
    assert why_not_converged({}, table, 4000) == ""  # independent draws


def test_a_posterior_that_no_sampler_can_follow_gets_no_answer(recwarn):
    """Two ridges a hundred standard deviations apart, at one of which each chain stays."""

    def log_mass(theta, x):
        return x[0] * jnp.log(theta["place"] ** 2 + 0.1) - gammaln(x[0] + 1.0)

    model = dfd.Model(log_mass, domain=dfd.Counts(1), parameters={"place": dist.Normal(0.0, 3.0)}, name="two places")
    rows = np.random.default_rng(2).poisson(4.0, 2000)
    fit = dfd.fit(model, rows, sampler=dfd.samplers.RandomWalk(step=1e-6), draws=200, warmup=0, check=False,
                  progress=False)  # fmt: skip
    assert not fit.converged and "There is no answer" in fit.answer and "sampler='nuts'" in fit.answer
    assert dfd.fit(model, rows, sampler="laplace", check=False, progress=False).converged


LATTICES = ("ising", "potts")


def _on_lattice(model, loss, noise, board=False):
    """A fit to rows of a 3 by 3 lattice that is of one value or a checkerboard, up to a share of sites at random."""
    rng = np.random.default_rng(2)
    pattern = np.indices((3, 3)).sum(axis=0).reshape(-1) % 2 if board else np.zeros(9, int)
    levels = 2 if model == "ising" else 3
    rows = (pattern + rng.integers(0, levels, (500, 1))) % levels
    rows = np.where(rng.random((500, 9)) < noise, rng.integers(0, levels, (500, 9)), rows)
    data, options = (2 * rows - 1 if model == "ising" else rows), {"graph": "grid:3x3"}
    return small_fits.quietly(model, data, options=options, loss=loss, check=False)


@pytest.mark.parametrize("loss", ["dfd", "ratio"])
@pytest.mark.parametrize("model", LATTICES)
def test_a_lattice_of_independent_sites_is_not_said_to_be_alike(model, loss):
    found = _on_lattice(model, loss, 1.0).answer
    assert "the data do not show that neighbours tend to be alike" in found and "odds" not in found
    share, chance = re.match(
        r"(\S+) % of neighbouring pairs are alike, and independent sites .* (\S+) %:", found
    ).groups()
    assert abs(float(share) - float(chance)) <= 1 and "is the prior's" in found


@pytest.mark.parametrize("model", LATTICES)
def test_neighbours_that_differ_are_told_as_such(model):
    found = _on_lattice(model, "ratio", 0.6, board=True).answer
    assert "neighbours differ more often" in found and "is the prior's" in found
    assert "tend to be alike" not in found and "odds" not in found


def test_likeness_that_is_there_and_small_is_told_without_odds_that_are_of_the_prior():
    fit = _on_lattice("ising", "ratio", 0.75)
    assert abs(fit.prior_influence.loc["temperature", "moved"]) > 1
    assert fit.answer.startswith("Neighbouring sites tend to be alike: 5") and "the prior's word" in fit.answer
    assert "odds" not in fit.answer
