"""A model of one's own: what the prior decides, what has no sum, and the check's words are said plainly."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from jax.scipy.special import gammaln

import dfdbayes as dfd
from dfdbayes._util.codec import from_plain, to_plain
from dfdbayes._util.words import rounded
from dfdbayes.core.diagnostics import ridges
from dfdbayes.families.own.from_file import model_of
from dfdbayes.present import html, sections
from dfdbayes.results.checks import Checks
from small_fits import QUICK, quietly

X = np.random.default_rng(0).poisson(3.0, 200)

NORMAL, HALF = dist.Normal(0.0, 1.0), dist.HalfNormal(1.0)
COUNTS = pd.DataFrame({"visits": np.random.default_rng(1).poisson(5.0, 300)})


def own(log_mass, domain=None, **priors):
    return dfd.Model(log_mass, dfd.Counts(1) if domain is None else domain, priors)


def cmp(theta, x):
    return theta["rate"] * x[0] - theta["shape"] * gammaln(x[0] + 1)


def sums(theta, x):
    return (theta["a"] + theta["b"]) * x[0] - gammaln(x[0] + 1)


def test_a_posterior_that_the_prior_holds_elsewhere_reproduces_nothing():
    free = quietly(own(cmp, rate=NORMAL, shape=HALF), COUNTS)
    far = quietly(own(cmp, rate=dist.Normal(-5.0, 0.01), shape=HALF), COUNTS)
    assert far.checks.p_value == free.checks.p_value > 0.05
    assert free.checks.sentence.startswith("The model reproduces the data") and not free.checks.held
    assert "at the parameters of this posterior it does not" in far.checks.sentence
    assert f"the data have {COUNTS['visits'].mean():.3g}" in far.checks.sentence
    assert from_plain(to_plain(far.checks), Checks).sentence == far.checks.sentence
    near = float(free.summary()["mean"]["rate"])
    tight = quietly(own(cmp, rate=dist.Normal(near, 0.001), shape=HALF), COUNTS)
    assert not tight.checks.held


def found_ridges(model, data=COUNTS, loss="dfd"):
    objective = dfd.objective(model, data, loss)
    return ridges(objective, dfd.minimise(objective), 1.0)


@pytest.mark.parametrize(
    ("model", "groups"),
    [
        (own(sums, a=NORMAL, b=NORMAL), [["a", "b"]]),
        (own(sums, a=dist.Normal(0.0, 10.0), b=dist.Normal(0.0, 10.0)), [["a", "b"]]),
        (own(lambda t, x: jnp.log(t["a"] * t["b"]) * x[0] - gammaln(x[0] + 1), a=HALF, b=HALF), [["a", "b"]]),
        (
            own(
                lambda t, x: (t["a"] + t["b"]) * x[0] - (t["c"] + t["d"]) * gammaln(x[0] + 1),
                a=NORMAL, b=NORMAL, c=HALF, d=HALF,
            ),
            [["a", "b"], ["c", "d"]],
        ),
        (own(cmp, rate=NORMAL, shape=HALF), []),
        (own(cmp, rate=dist.Normal(1.0, 1e-4), shape=HALF), []),
        (dfd.models.ConwayMaxwellPoisson(), []),
    ],
)  # fmt: skip
def test_parameters_that_only_the_prior_tells_apart_are_named(model, groups):
    assert found_ridges(model) == groups


def test_a_ridge_is_a_warning():
    with pytest.warns(dfd.errors.IdentificationWarning, match="only a combination of a, b, such as their sum"):
        dfd.fit(own(sums, a=NORMAL, b=NORMAL), COUNTS, **QUICK | {"check": False})


def test_few_rows_are_no_praise():
    few = quietly(own(cmp, rate=NORMAL, shape=HALF), [1, 2, 3])
    assert "So few rows (3) cannot tell" in few.checks.sentence
    assert rounded(-0.001, 2.0) == "0.0"


@pytest.mark.slow
def test_the_remedy_goes_the_right_way():
    spread = np.random.default_rng(1).negative_binomial(5, 0.5, 300)
    longer = quietly(own(lambda t, x: t["a"] * x[0], a=NORMAL), spread)
    assert "The model's tail is too long" in longer.checks.sentence and "covariate" not in longer.checks.sentence
    both = pd.DataFrame({"cats": COUNTS["visits"], "dogs": COUNTS["visits"] // 2})
    apart = own(lambda t, x: t["a"] * x[0] + t["b"] * x[1] - gammaln(x + 1).sum(), dfd.Counts(2), a=NORMAL, b=NORMAL)
    fit = quietly(apart, both)
    assert "lacks a term of both x[0] and x[1]" in " ".join(one.remedy for one in fit.checks.misfits)
    page = "".join(map(html.block, sections.predictive(fit)))
    assert "(100 of the 300, to save time) were simulated from the posterior, by Gibbs sampling" in page
    assert "The correlation of the two columns is 0.9" in page


def test_a_mass_without_a_finite_sum_is_said_at_once():
    data = dfd.Dataset.of(COUNTS)
    mass = own(lambda t, x: jnp.exp(cmp(t, x)), rate=NORMAL, shape=HALF)
    assert mass.endless(np.array([0.5, 0.5]), data) == "x[0] (visits)"
    assert not own(cmp, rate=NORMAL, shape=HALF).endless(np.array([0.5, 0.5]), data)
    both = own(lambda t, x: t["c"] * x[0] * x[1] - gammaln(x + 1).sum(), dfd.Counts(2), c=NORMAL)
    pairs = dfd.Dataset.of([[1, 2], [3, 4]])
    assert both.endless(np.array([0.1]), pairs) and not both.endless(np.array([-0.1]), pairs)
    with pytest.warns(dfd.errors.ModelWarning, match="has no finite sum"):
        fit = dfd.fit(mass, COUNTS, **QUICK)
    assert "no finite sum" in fit.checks.problem


NEGATIVE_BINOMIAL = own(
    lambda t, x: (
        gammaln(x[0] + t["size"])
        - gammaln(t["size"])
        - gammaln(x[0] + 1)
        + t["size"] * jnp.log1p(-t["p"])
        + x[0] * jnp.log(t["p"])
    ),
    size=HALF,
    p=dist.Uniform(0.0, 1.0),
)
TAILS = {  # (log mass, whether its sum is finite)
    "geometric": (lambda t, x: x[0] * jnp.log1p(-t["a"]), True),
    "one over x squared": (lambda t, x: -(1.0 + t["a"]) * jnp.log1p(x[0]) - jnp.log1p(x[0]), True),
    "a root in the exponent": (lambda t, x: -t["a"] * jnp.sqrt(x[0]), True),
    "counts with a mode of 1e9": (lambda t, x: x[0] * jnp.log(t["a"] * 1e12) - gammaln(x[0] + 1), True),
    "a square of a logarithm": (lambda t, x: -(1.0 + t["a"]) * 0.01 * jnp.log1p(x[0]) ** 2, True),
    "one over the root of x": (lambda t, x: -0.5 * jnp.log1p(x[0] + t["a"]), False),
    "one over a logarithm": (lambda t, x: -2.0 * jnp.log(jnp.log(x[0] + 2.0 + t["a"])), False),
    "flat": (lambda t, x: -t["a"] * jnp.exp(-x[0]), False),
    "growing beyond all numbers": (lambda t, x: t["a"] * jnp.exp(x[0]), False),
    "growing": (lambda t, x: t["a"] * x[0] ** 2, False),
}


@pytest.mark.parametrize("left", [0.1, 1e-3, 1e-6, 1e-9, 1e-12, 1e-14])
def test_a_geometric_tail_has_a_finite_sum_however_heavy(left):
    theta = np.array([0.6, 1.0 - left])
    assert NEGATIVE_BINOMIAL.endless(theta, dfd.Dataset.of(COUNTS)) == ""


@pytest.mark.parametrize("tail", TAILS)
def test_only_sums_that_diverge_are_said_to(tail):
    log_mass, finite = TAILS[tail]
    for at in (1e-3, 1e-9):
        assert bool(own(log_mass, a=HALF).endless(np.array([at]), dfd.Dataset.of(COUNTS))) is not finite


@pytest.mark.parametrize("formula", [None, "visits ~ 1"])
@pytest.mark.daily("None")
def test_a_likelihood_without_a_constant_says_how_to_give_it(formula):
    asked = {"formula": formula, "loss": "likelihood"} | QUICK
    with pytest.raises(dfd.errors.ModelError, match=r"log_normaliser=lambda theta: 0\.0"):
        dfd.fit(NEGATIVE_BINOMIAL, COUNTS, **asked)
    known = replace(NEGATIVE_BINOMIAL, log_normaliser=lambda theta: 0.0)
    fit = quietly(known, COUNTS, **asked)
    size, p = fit.minimum.vector if formula is None else (np.exp(fit.minimum.vector[0]), fit.minimum.vector[1])
    assert fit.loss.name == "likelihood"
    assert size * p / (1.0 - p) == pytest.approx(COUNTS["visits"].mean(), rel=0.02)


@pytest.mark.parametrize("constant", [0.0, lambda: 0.0, lambda t: t["q"], lambda t: "a", lambda t: jnp.ones(3)])
def test_a_constant_that_is_none_is_refused(constant):
    with pytest.raises(dfd.errors.ModelError, match="log_normaliser"):
        replace(NEGATIVE_BINOMIAL, log_normaliser=constant)


def test_columns_are_used_where_they_are_used_far_out():
    own(lambda t, x: -t["a"] * x[0] - t["a"] * jnp.where(x[1] > 500, 1.0, 0.0), dfd.Counts(2), a=HALF)
    with pytest.raises(dfd.errors.ModelError, match=r"does not depend on x\[1\]"):
        own(lambda t, x: -t["a"] * x[0], dfd.Counts(2), a=HALF)


def test_a_file_with_a_log_mass_and_no_model(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def log_mass(theta, x):\n    return theta['a'] * x[0]\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dfd.errors.ModelError, match=r"not a model.*write NAME = dfd.Model\(log_mass"):
        model_of("mine.py:log_mass")
    with pytest.raises(dfd.errors.ModelError, match=r"write mine.py:log_mass"):
        model_of("mine:log_mass")


def decaying(name, domain=None):
    """A geometric distribution under a name of its own, or under that of a built-in model."""
    return dfd.Model(
        lambda theta, x: x[0] * theta["decay"], dfd.Counts(1) if domain is None else domain,
        {"decay": dist.Normal(0.0, 2.0)}, name=name,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["poisson", "cmp", "bernoulli"])
@pytest.mark.daily("poisson")
def test_a_model_with_the_name_of_a_built_in_one_is_itself_in_a_regression(name, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200)})
    frame["y"] = rng.negative_binomial(1, 1.0 / (1.0 + np.exp(0.3 * frame["x"] - 0.5)))
    settings = {"formula": "y ~ x", "loss": "ratio", "check": False}
    mine, other = (quietly(decaying(own), frame, **settings) for own in (name, "mine"))
    assert mine.minimum.names == other.minimum.names == ("decay[Intercept]", "decay[x]")
    np.testing.assert_array_equal(mine.minimum.vector, other.minimum.vector)
    mine.save(tmp_path / "fit.nc")
    assert dfd.load(tmp_path / "fit.nc").missing == ("model",)
    loaded = dfd.load(tmp_path / "fit.nc", model=decaying(name))
    pd.testing.assert_frame_equal(loaded.predict(frame.head(3)), mine.predict(frame.head(3)))
    with pytest.raises(dfd.errors.ModelError, match="'poisson' and 'cmp'"):
        quietly(decaying(name), frame, zeros="~ 1", **settings)


def test_a_changed_copy_of_a_built_in_model_is_not_that_model_in_a_regression():
    from dataclasses import replace

    frame = pd.DataFrame({"x": np.linspace(-1.0, 1.0, 60), "y": [1, 2, 3] * 20})
    changed = [
        replace(dfd.models.Poisson(), domain=dfd.Counts(1, minimum=1), log_normaliser=None),
        replace(dfd.models.Poisson(), b=lambda x: -2.0 * gammaln(x[0] + 1.0), log_normaliser=None),
    ]
    for model in changed:
        found = quietly(model, frame, formula="y ~ x", loss="ratio", check=False)
        assert found.minimum.names == ("rate[Intercept]", "rate[x]")


@pytest.mark.parametrize("name", ["ising", "potts"])
@pytest.mark.slow
def test_checks_of_a_model_with_the_name_of_a_lattice_need_no_clusters(name):
    model = dfd.Model(
        lambda theta, x: theta["up"] * jnp.sum(x), dfd.Spins(25), {"up": dist.Normal(0.0, 1.0)}, name=name
    )
    rows = np.random.default_rng(0).choice([-1, 1], (60, 25))
    checks = quietly(model, rows).checks
    assert not checks.problem and checks.p_value is not None


def test_remedies_and_priors_of_the_paper_go_by_what_a_model_is():
    rng = np.random.default_rng(4)
    wide = pd.DataFrame({"visits": rng.negative_binomial(1.0, 0.15, 300)})
    model = dfd.Model(
        lambda theta, x: x[0] * theta["log_rate"] - gammaln(x[0] + 1.0), dfd.Counts(1),
        {"log_rate": dist.Normal(0.0, 3.0)}, name="poisson",
    )  # fmt: skip
    mine, other = (quietly(one, wide) for one in (model, replace_name(model, "mine")))
    assert mine.checks.sentence == other.checks.sentence and "does not reproduce" in mine.checks.sentence
    pair = dfd.Model(
        lambda theta, x: theta["a"] * (x[0] + x[1]) - jnp.sum(gammaln(x + 1.0)), dfd.Counts(2), {"a": NORMAL},
        name="poisson-graphical",
    )  # fmt: skip
    assert dfd.models.paper_priors(pair) == {} == dfd.models.paper_priors(model)


def replace_name(model, name):
    return dfd.Model(model.log_mass, model.domain, dict.fromkeys(["log_rate"], dist.Normal(0.0, 3.0)), name=name)


def test_two_models_of_one_name_are_not_nested():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=120), "y": rng.poisson(2.0, 120)})
    models = [
        dfd.Model(lambda t, x: x[0] * t["a"] - gammaln(x[0] + 1), dfd.Counts(1), {"a": NORMAL}),
        dfd.Model(lambda t, x: x[0] * t["a"] - 2.0 * gammaln(x[0] + 1), dfd.Counts(1), {"a": NORMAL}),
    ]
    one, two = (
        quietly(model, frame, formula=text, loss="ratio", check=False)
        for model, text in zip(models, ("y ~ 1", "y ~ x"), strict=True)
    )
    with pytest.raises(dfd.errors.SettingError, match="not nested"):
        dfd.compare_nested(one, two)


def fixed_sum(theta, x):
    return jnp.where(x.sum() == 10, theta["a"] * x[0] + theta["b"] * x[1] - gammaln(x + 1).sum(), -jnp.inf)


def without_the_last(theta, x):
    last = 10 - x[0] - x[1]
    mass = theta["a"] * x[0] + theta["b"] * x[1] - gammaln(x + 1).sum() - gammaln(jnp.maximum(last, 0) + 1)
    return jnp.where(last >= 0, mass, -jnp.inf)


@pytest.mark.parametrize("loss", ["auto", "dfd", "ratio", "pseudo", "ksd", "robust"])
@pytest.mark.daily("dfd")
def test_counts_with_a_fixed_sum_are_refused_in_words(loss):
    """And the advice works: without the column that the others determine they are fitted."""
    counts = pd.DataFrame(np.random.default_rng(0).multinomial(10, [0.2, 0.3, 0.5], 200), columns=["u", "v", "w"])
    first = ", ".join(f"{name} = {value}" for name, value in counts.sort_values(["u", "v"]).iloc[0].items())
    with pytest.raises(dfd.errors.ModelError, match=f"{first}.*probability zero.*leave out the column"):
        dfd.fit(own(fixed_sum, dfd.Counts(3), a=NORMAL, b=NORMAL), counts, loss=loss, **QUICK)
    if loss != "dfd":  # ratios of a possible row to an impossible one are infinite
        fit = quietly(own(without_the_last, dfd.Counts(2), a=NORMAL, b=NORMAL), counts[["u", "v"]], loss=loss)
        np.testing.assert_allclose(fit.minimum.vector, np.log([0.4, 0.6]), atol=0.25)


def test_other_constrained_supports_are_refused_in_words():
    """The remedies that are named work: another loss, or values that follow each other."""
    even = own(lambda t, x: jnp.where(x[0] % 2 == 0, t["a"] * x[0] - gammaln(x[0] + 1), -jnp.inf), a=NORMAL)
    with pytest.raises(dfd.errors.ModelError, match=r"recode the column.*loss='pseudo'"):
        dfd.fit(even, 2 * COUNTS, **QUICK)
    assert np.isfinite(quietly(even, 2 * COUNTS, loss="pseudo").minimum.vector).all()
    two_of_four = own(
        lambda t, x: jnp.where(x.sum() == 2, t["a"] * x[0] + 0.1 * (x[1] + 2 * x[2] + 3 * x[3]), -jnp.inf),
        dfd.Binary(4),
        a=NORMAL,
    )
    rows = np.array([[1, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1], [1, 0, 1, 0]] * 20)
    with pytest.raises(dfd.errors.ModelError, match="loss='likelihood'"):
        dfd.objective(two_of_four, rows, "ratio")
    assert np.isfinite(quietly(two_of_four, rows, loss="likelihood").minimum.vector).all()


@pytest.mark.parametrize("formula", [None, "visits ~ 1"])
@pytest.mark.daily("None")
def test_rows_that_cannot_be_are_refused_by_number(formula):
    from_two = own(lambda t, x: jnp.where(x[0] >= 2, t["a"] * x[0] - gammaln(x[0] + 1), -jnp.inf), a=NORMAL)
    frame = pd.DataFrame({"visits": [3, 4, 2, 5, 1, 6] * 10})
    with pytest.raises(dfd.errors.ModelError, match="row 5 of the data, visits = 1, has probability zero"):
        dfd.fit(from_two, frame, formula=formula, **QUICK)
    quietly(from_two, frame[frame["visits"] > 1], formula=formula)


def test_a_mass_that_is_not_a_number_at_zero_names_the_domain_without_it():
    for log_mass in (lambda t, x: -t["a"] * jnp.log(x[0]), lambda t, x: t["a"] * x[0] - x[0] * jnp.log(x[0])):
        with pytest.raises(dfd.errors.ModelError, match=r"dfd\.Counts\(1, minimum=1\)"):
            own(log_mass, a=HALF)
        own(log_mass, dfd.Counts(1, minimum=1), a=HALF)


@pytest.mark.parametrize(
    ("log_mass", "said"),
    [
        (lambda t, x: t["a"] * x[0] * (1 + 0j) - gammaln(x[0] + 1), "complex number.*jnp.real"),
        (lambda t, x: jnp.floor(t["a"]).astype(int) * x[0].astype(int), "a whole number"),
        (lambda t, x: t["a"] > x[0], "a truth value"),
    ],
)
def test_a_log_mass_that_has_no_derivatives_is_refused_where_it_is_made(log_mass, said):
    with pytest.raises(dfd.errors.ModelError, match=said):
        own(log_mass, a=NORMAL)


@pytest.mark.parametrize("loss", ["dfd", "ratio"])
def test_a_log_mass_that_changes_in_steps_is_refused_in_words(loss):
    model = own(lambda t, x: jnp.floor(t["a"]) * x[0] - gammaln(x[0] + 1), a=dist.Normal(0.0, 5.0))
    with pytest.raises(dfd.errors.CalibrationError, match=r"hardly changes.*jnp\.floor"):
        quietly(model, COUNTS, loss=loss)


def test_derived_quantities_get_copies_and_are_numbers(quick):
    def model(derived):
        prior = {"r": dist.Normal(0, 2)}
        return dfd.Model(lambda t, x: t["r"] * x[0] - gammaln(x[0] + 1), dfd.Counts(1), prior, derived=derived)

    def greedy(theta):
        theta["r"] *= 10
        return {"ten": theta["r"]}

    table = quick(model(greedy), X).summary()
    assert table.loc["ten", "mean"] == pytest.approx(10 * table.loc["r", "mean"])
    assert "one" in quick(model(lambda t: {"one": np.ones_like(t["r"])}), X).summary().index
    for wrong in (lambda t: 1 / 0, lambda t: None, lambda t: {"a": 3.0}, lambda t: {"a": np.full(t["r"].shape, "x")}):
        with pytest.raises(dfd.errors.ModelError, match="derived"):
            quick(model(wrong), X)
