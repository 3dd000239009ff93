"""Covariates: published fits, other packages' numbers, formulas and what is wrong with them."""

import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from scipy import special

import dfdbayes as dfd
from dfdbayes.core.calibration import information
from dfdbayes.core.minimise import mode
from dfdbayes.data.formulas import parse, readable, split_offsets
from dfdbayes.errors import DataError, DfdbayesWarning, ModelError, SettingError

pytestmark = pytest.mark.filterwarnings("ignore::dfdbayes.errors.DfdbayesWarning")
QUICK = {"progress": False, "sampler": "laplace"}


@pytest.fixture(scope="module")
def bids(shared_data):
    return pd.read_csv(shared_data / "takeoverbids.csv")


@pytest.fixture(scope="module")
def bids_fit(bids):
    formula = "numbids ~ leglrest + rearest + finrest + whtknght + bidprem + insthold + size + sizesq + regulatn"
    return dfd.fit("cmp", bids, formula=formula, **QUICK)


def errors_of(fit):
    """Model-based and sandwich (HC0) standard errors at the minimum."""
    hessian, squares = information(dfd.Objective(fit.model, fit.data, fit.loss), fit.minimum.vector)
    inverse = np.linalg.inv(hessian)
    return np.sqrt(np.diag(inverse)), np.sqrt(np.diag(inverse @ squares @ inverse))


def test_takeover_bids_are_those_of_mpcmp(bids_fit):
    """Fung, Alwan, Wishart and Huang's R package mpcmp: coefficients, standard errors, nu and log-likelihood."""
    found = dict(zip(bids_fit.minimum.names, bids_fit.minimum.vector, strict=True))
    published = {
        "Intercept": (0.990, 0.435), "leglrest": (0.268, 0.123), "rearest": (-0.173, None), "finrest": (0.068, None),
        "whtknght": (0.481, 0.132), "bidprem": (-0.685, 0.308), "insthold": (-0.368, None), "size": (0.179, 0.048),
        "sizesq": (-0.008, None), "regulatn": (-0.038, None),
    }  # fmt: skip
    errors = dict(zip(bids_fit.minimum.names, errors_of(bids_fit)[0], strict=True))
    for term, (value, error) in published.items():
        assert round(found[f"mean[{term}]"], 3) == value
        assert error is None or abs(errors[f"mean[{term}]"] / error - 1.0) < 0.02
    assert round(float(np.exp(found["nu[Intercept]"])), 3) == 1.754
    assert round(-bids_fit.minimum.value, 3) == -180.088


def test_fewer_bids_terms_and_rows_in_any_order(bids):
    formula = "numbids ~ leglrest + whtknght + bidprem + size"
    fit = dfd.fit("cmp", bids, formula=formula, **QUICK)
    np.testing.assert_array_equal(fit.minimum.vector[:5].round(3), [1.078, 0.251, 0.506, -0.770, 0.033])
    assert round(float(np.exp(fit.minimum.vector[5])), 3) == 1.592
    assert round(-fit.minimum.value, 3) == -184.679
    shuffled = dfd.fit("cmp", bids.sample(frac=1.0, random_state=1), formula=formula, **QUICK)
    np.testing.assert_array_equal(fit.posterior["mean"], shuffled.posterior["mean"])


@pytest.mark.slow
def test_attendance_near_the_geometric_boundary(shared_data):
    frame = pd.read_csv(shared_data / "attendance.csv")
    formula = "daysabs ~ gender + math + C(prog, contr.treatment('General'))"
    fit = dfd.fit("cmp", frame, formula=formula, **QUICK)
    names = ["Intercept", "gender=male", "math", "prog=Academic", "prog=Vocational"]
    assert fit.minimum.names == (*(f"mean[{name}]" for name in names), "nu[Intercept]")
    np.testing.assert_array_equal(fit.minimum.vector[:5].round(4), [2.7147, -0.2147, -0.0063, -0.4253, -1.2540])
    assert round(float(np.exp(fit.minimum.vector[5])), 3) == 0.020
    assert round(2.0 * fit.minimum.value + 2.0 * 6, 3) == 1739.026
    assert (
        "as much as this model allows, or more" in fit.answer and "prog = Vocational rather than General" in fit.answer
    )


def test_a_covariate_on_the_edges_of_a_network(shared_data):
    """Bird parasites (MRFcov): the penalised mode of the joint pseudo-likelihood, and honest widths."""
    frame = pd.read_csv(shared_data / "bird_parasites.csv")
    items = [name for name in frame.columns if name != "scale.prop.zos"]
    fit = dfd.fit(
        "ising-network", frame, columns=items, formula="~ scale.prop.zos", interaction="~ `scale.prop.zos`",
        prior={"intercept": dist.Normal(0, 2), "interaction": dist.Normal(0, 2)}, **QUICK,
    )  # fmt: skip
    assert fit.settings["loss"] == "pseudo"
    objective = dfd.Objective(fit.model, fit.data, fit.loss)
    found = dict(zip(fit.model.space.names, mode(objective, 1.0, fit.minimum, np.zeros(20)), strict=True))
    wanted = {
        "Hzosteropis,Hkillangoi": -3.28, "Plas,Microfilaria": 1.90, "Hzosteropis,Microfilaria": 0.94,
        "Hzosteropis,Microfilaria:scale.prop.zos": -1.04, "Plas,Microfilaria:scale.prop.zos": 0.68,
    }  # fmt: skip
    for pair, value in wanted.items():
        assert abs(found[f"interaction[{pair}]"] - value) < 0.02
    naive = np.sqrt(np.diag(np.linalg.inv(objective.hessian(fit.calibration.curvature.centre) + np.eye(20) / 4.0)))
    ratio = np.sqrt(np.diag(fit.calibration.curvature.covariance)) / naive
    assert 1.0 < np.median(ratio[8:]) < 1.6


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"age": rng.normal(40, 12, 400), "clinic": rng.choice(["A", "B", "C"], 400)})
    frame["days"] = rng.integers(5, 60, 400)
    rate = np.exp(-2.0 + 0.02 * frame["age"] + 0.4 * (frame["clinic"] == "B")) * frame["days"] / 20
    frame["visits"] = rng.poisson(rate * rng.gamma(3.0, 1 / 3.0, 400))
    frame["ill"] = (rng.random(400) < special.expit(-2.0 + 0.03 * frame["age"])).astype(int)
    return frame


def test_poisson_and_logistic_regression_are_those_of_statsmodels(people):
    import statsmodels.formula.api as smf
    from statsmodels.genmod.families import Binomial, Poisson

    fit = dfd.fit("poisson", people, formula="visits ~ age + clinic + offset(log(days))", **QUICK)
    theirs = smf.glm("visits ~ age + clinic", people, offset=np.log(people["days"]), family=Poisson()).fit(
        cov_type="HC0"
    )
    order = theirs.params.index.map(lambda name: readable(name, {}))
    assert set(fit.minimum.names) == {f"mean[{name}]" for name in order}
    own = pd.DataFrame({"at": fit.minimum.vector, "se": errors_of(fit)[1]}, index=fit.minimum.names)
    own = own.loc[[f"mean[{name}]" for name in order]]
    np.testing.assert_allclose(own["at"], theirs.params, atol=1e-6)
    np.testing.assert_allclose(own["se"], theirs.bse, rtol=1e-6)
    fit = dfd.fit("bernoulli", people, formula="ill ~ age", **QUICK)
    theirs = smf.glm("ill ~ age", people, family=Binomial()).fit(cov_type="HC0")
    np.testing.assert_allclose(fit.minimum.vector, theirs.params, atol=1e-6)
    np.testing.assert_allclose(errors_of(fit)[1], theirs.bse, rtol=1e-6)


def test_counted_rows_are_the_rows(people):
    frame = people.assign(old=people["age"] > 40)[["visits", "clinic", "old"]]
    counts = frame.value_counts().rename("times").reset_index()
    settings = {"formula": "visits ~ clinic * old", **QUICK}
    whole = dfd.fit("poisson", frame, **settings)
    short = dfd.fit("poisson", counts, weights="times", **settings)
    np.testing.assert_allclose(whole.minimum.vector, short.minimum.vector, atol=1e-9)
    np.testing.assert_allclose(whole.posterior["mean"], short.posterior["mean"], atol=1e-6)
    assert len(whole.data.rows) == len(short.data.rows) < 100


def test_many_equal_rows_are_counted_before_the_formula(people, monkeypatch):
    from dfdbayes.data import formulas

    frame = pd.concat([people[["visits", "clinic"]]] * 5)
    slow = dfd.fit("poisson", frame, formula="visits ~ clinic", **QUICK)
    monkeypatch.setattr(formulas, "MIN_ROWS_TO_COUNT", 1000)
    monkeypatch.setattr(pd.Series, "nunique", lambda self: 1)
    quick = dfd.fit("poisson", frame, formula="visits ~ clinic", **QUICK)
    assert quick.data.n == slow.data.n == 2000
    np.testing.assert_allclose(quick.minimum.vector, slow.minimum.vector, atol=1e-9)


@pytest.mark.parametrize("loss", ["likelihood", "dfd", "ratio"])
def test_losses_of_a_regression_by_their_definition(people, loss):
    """Every row by itself, with its own Conway-Maxwell-Poisson distribution in the location form."""
    few = people[people["visits"] > 0].head(40)
    fit = dfd.fit(
        "cmp", few, formula="visits ~ age", nu="~ age", loss="likelihood", options={"form": "location"}, **QUICK
    )
    objective = dfd.objective(fit.model, fit.data, loss)
    theta = np.array([0.3, 0.01, -0.2, 0.005])
    total = 0.0
    for x, age in zip(few["visits"], few["age"], strict=True):
        log_location, nu = theta[0] + theta[1] * age, np.exp(theta[2] + theta[3] * age)
        values = np.arange(0, 400)
        log = nu * (values * log_location - special.gammaln(values + 1.0))
        log = log - special.logsumexp(log)
        down, up = log[x - 1] - log[x], log[x] - log[x + 1]
        if loss == "likelihood":
            total -= log[x]
        elif loss == "dfd":
            total += np.exp(2 * down) - 2 * np.exp(up)
        else:
            s, below = special.expit(up), special.expit(down)
            total += s**2 + below**2 - 2 * s
    assert objective(theta) == pytest.approx(total, rel=1e-9)


def test_a_hurdle_at_zero():
    rng = np.random.default_rng(4)
    x = np.where(rng.random(3000) < 0.4, 0, rng.poisson(3.0, 3000))
    fit = dfd.fit("poisson", pd.DataFrame({"x": x}), formula="x ~ 1", zeros="~ 1", **QUICK)
    mean, zeros = np.exp(fit.minimum.theta["mean"][0]), fit.minimum.theta["zeros"][0]
    assert abs(mean - 3.0) < 0.15
    share = 1.0 / (1.0 + np.expm1(mean) * np.exp(-zeros))
    assert abs(share - (x == 0).mean()) < 1e-6


def test_own_models_have_formulas():
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    age = rng.normal(0, 1, 300)
    frame = pd.DataFrame({"x": rng.geometric(1 / (1 + np.exp(0.5 + 0.3 * age))) - 1, "age": age})
    model = dfd.Model(
        lambda theta, x: x[0] * jnp.log(theta["share"]), dfd.Counts(1), {"share": dist.Uniform(0, 1)},
        formulas={"share": "~ age"}, log_normaliser=lambda theta: -jnp.log1p(-theta["share"]),
    )  # fmt: skip
    fit = dfd.fit(model, frame, columns=["x"], **QUICK)
    np.testing.assert_allclose(fit.minimum.vector, [0.5, 0.3], atol=0.25)


def test_a_parameter_that_rows_share_may_have_as_many_entries_as_there_are_rows():
    import jax.numpy as jnp

    model = dfd.Model(
        lambda theta, x: theta["a"][x[0].astype(int)] + theta["b"] * x[0], dfd.Finite(1, list(range(8))),
        {"b": dist.Normal(0, 1), "a": dist.Normal(jnp.zeros(8), 1.0)}, formulas={"b": "~ z"},
    )  # fmt: skip
    z = np.linspace(-1.0, 1.0, 8)
    frame = pd.DataFrame({"x": [0, 3, 1, 7, 2, 5, 4, 6], "z": z})
    fit = dfd.fit(model, frame, columns=["x"], beta=1.0, loss="ratio", **QUICK)
    theta = np.concatenate([[0.1, 0.2], np.linspace(0, 1, 8)])
    log = theta[2:] + (0.1 + 0.2 * z[:, None]) * np.arange(8)
    slow = -np.sum((log - special.logsumexp(log, axis=1)[:, None])[np.arange(8), frame["x"]])
    assert dfd.objective(fit.model, fit.data, "likelihood")(theta) == pytest.approx(slow, rel=1e-12)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"formula": "visits ~ agee"}, "did you mean 'age'"),
        ({"formula": "visit ~ age"}, "did you mean 'visits'"),
        ({"formula": "visits ~ age + twice"}, "collinear"),
        ({"formula": "visits ~ age + empty"}, "no row has 'empty=c'"),
        ({"formula": "visits ~ gap"}, "rows have no 'gap' (first: row 3)"),
        ({"formula": "visits ~ log(zero)"}, "logarithm of zero"),
        ({"formula": "visits ~ age + offset(log(zero))"}, "offset of mean is"),
        ({"formula": "visits age"}, "must look like"),
        ({"formula": "visits ~ age", "nuu": "~ 1"}, "did you mean 'nu'"),
        ({"formula": "visits ~ age", "los": "~ 1"}, "neither a setting nor a parameter"),
        ({"formula": "visits ~ age", "nu": "visits ~ 1"}, "has no left side"),
        ({"formula": "visits ~ age", "prior": "paper"}, "no priors for regressions"),
    ],
)
def test_what_is_wrong_with_a_formula_is_said(people, settings, said):
    frame = people.assign(
        twice=2 * people["age"], zero=0.0, gap=people["age"].where(people.index != 2),
        empty=pd.Categorical(["a", "b"] * 200, categories=["a", "b", "c"]),
    )  # fmt: skip
    with np.errstate(divide="ignore"), pytest.raises((DataError, SettingError), match=r".*") as told:
        dfd.fit("cmp", frame, **settings, **QUICK)
    assert said in str(told.value)


def test_rows_without_a_covariate_may_be_left_out(people):
    frame = people.assign(gap=people["age"].where(people.index != 2))
    fit = dfd.fit("poisson", frame, formula="visits ~ gap", missing="drop", **QUICK)
    assert fit.data.n == 399 and fit.data.dropped == 1


def test_separation_ends_in_an_answer_held_by_the_prior(people):
    frame = people.assign(ill=(people["age"] > 40).astype(int))
    with pytest.warns(DfdbayesWarning, match="probability"):
        fit = dfd.fit("bernoulli", frame, formula="ill ~ age", **QUICK)
    assert np.isfinite(fit.summary()["sd"]).all()


def test_a_regression_is_saved_loaded_and_repeated(people, tmp_path, call):
    people.to_csv(tmp_path / "people.csv", index=False)
    out = tmp_path / "run"
    formula = "visits ~ bs(age, df=3) + clinic + offset(log(days))"
    code, said, _ = call("fit", tmp_path / "people.csv", "--model", "poisson", "--formula", formula, "--out", out)
    assert code == 0 and "mean[clinic=B]" in said
    fit = dfd.load(out / "posterior.nc")
    assert fit.missing == () and fit.model.space.names == fit.minimum.names
    again = dfd.fit("poisson", people, formula=formula, progress=False)
    np.testing.assert_array_equal(fit.posterior["mean"], again.posterior["mean"])
    ages = people.head(3)
    for a, b in zip(fit.model.designs[0].matrix(ages), again.model.designs[0].matrix(ages), strict=True):
        np.testing.assert_array_equal(a, b)
    code, said, _ = call("rerun", out)
    assert code == 0 and "the draws are the same" in said
    ages.to_csv(tmp_path / "new.csv", index=False)
    code, said, _ = call("predict", out, tmp_path / "new.csv", "--out", tmp_path / "ahead")
    assert code == 0 and "mean_low" in said and "clinic" in said
    written = pd.read_csv(tmp_path / "ahead" / "predictions.csv")
    np.testing.assert_allclose(written["mean"], fit.predict(ages)["mean"], rtol=1e-9)


def test_numbers_that_may_be_codes_of_groups_are_told(people):
    frame = people.assign(code=people["clinic"].map({"A": 1, "B": 2, "C": 3}))
    assert "write C(code)" in " ".join(dfd.fit("poisson", frame, formula="visits ~ code", **QUICK).warnings)
    assert not dfd.fit("poisson", frame, formula="visits ~ C(code)", **QUICK).warnings
    with pytest.raises(ModelError, match=r"formula='visits ~ age'"):
        dfd.fit("visits ~ age", frame, **QUICK)


def test_parts_of_formulas():
    assert parse("y ~ a + b") == (("y",), "a + b")
    assert parse("~ a") == ((), "a")
    assert split_offsets("a + offset(log(b)) + c") == ("a + c", ("log(b)",))
    assert split_offsets("offset(b)") == ("1", ("b",))
    assert readable("C(clinic)[T.B]", {}) == "clinic=B"
    assert readable("C(prog, contr.treatment('General'))[T.x]:age", {}) == "prog=x:age"
    assert readable("bs(age, df=3)[2]", {}) == "bs(age, df=3)[2]"
