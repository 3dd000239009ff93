"""A model of one's own: what the prior decides, what has no sum, and the check's words are said plainly."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from jax.scipy.special import gammaln

import dfdbayes as dfd
from dfdbayes.inference.identification import ridges
from dfdbayes.models.from_file import model_of
from dfdbayes.report import sections
from dfdbayes.results.answers.words import rounded
from dfdbayes.results.checks import Checks
from small_fits import QUICK, quietly

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
    assert Checks.of_plain(far.checks.plain()).sentence == far.checks.sentence
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


def test_the_remedy_goes_the_right_way():
    spread = np.random.default_rng(1).negative_binomial(5, 0.5, 300)
    longer = quietly(own(lambda t, x: t["a"] * x[0], a=NORMAL), spread)
    assert "The model's tail is too long" in longer.checks.sentence and "covariate" not in longer.checks.sentence
    both = pd.DataFrame({"cats": COUNTS["visits"], "dogs": COUNTS["visits"] // 2})
    apart = own(lambda t, x: t["a"] * x[0] + t["b"] * x[1] - gammaln(x + 1).sum(), dfd.Counts(2), a=NORMAL, b=NORMAL)
    fit = quietly(apart, both)
    assert "lacks a term of both x[0] and x[1]" in " ".join(one.remedy for one in fit.checks.misfits)
    page = str(sections.predictive(fit))
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
