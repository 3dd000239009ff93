"""Covariates far from zero or of an unusual size, and weights: results are those of ordinary numbers, or words."""

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes import plots
from dfdbayes.data.formulas import FAR_FROM_ZERO

QUICK = {"sampler": "laplace", "draws": 250, "check": False, "progress": False}
RNG = np.random.default_rng(0)
X = RNG.normal(size=200)
X = (X - X.mean()) / X.std()
GROUP = RNG.choice(["a", "b"], 200)
VISITS = RNG.poisson(np.exp(0.5 + 0.4 * X + 0.3 * (GROUP == "b")))
CHANGES = {"stamp": (1.7e9, 1.0), "tiny": (0.0, 1e-13), "huge": (0.0, 1e13), "both": (-5.0, 1e-9), "vast": (0.0, 1e155)}


def frame(shift=0.0, scale=1.0, y=VISITS):
    return pd.DataFrame({"y": y, "v": scale * X + shift, "g": GROUP})


def fitted(shift=0.0, scale=1.0, model="poisson", formula="y ~ v + g", y=VISITS, **more):
    return dfd.fit(model, frame(shift, scale, y), formula=formula, **(QUICK | more))


@pytest.fixture(scope="module")
def ordinary():
    return fitted()


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.daily("stamp", "both")
def test_results_do_not_depend_on_a_covariates_unit_and_origin(ordinary, name):
    shift, scale = CHANGES[name]
    fit = fitted(shift, scale)
    slope, wanted = fit.posterior["mean"][..., 1] * scale, ordinary.posterior["mean"]
    assert fit.minimum.names == ordinary.minimum.names and not fit.warnings
    near = 1e-3 * wanted.std(axis=(0, 1))
    np.testing.assert_allclose(slope, wanted[..., 1], atol=near[1])
    np.testing.assert_allclose(
        fit.posterior["mean"][..., 0] + slope * (shift / scale), wanted[..., 0], atol=max(near[0], abs(shift) * 1e-14)
    )
    low, high = (fit.summary().loc["mean[v]", end] * scale for end in ("eti95_lb", "eti95_ub"))
    assert (low, high) == pytest.approx(tuple(ordinary.summary().loc["mean[v]", ["eti95_lb", "eti95_ub"]]), rel=1e-3)
    own, other = fit.effects().loc["v"], ordinary.effects().loc["v"]
    assert own["effect"] * scale == pytest.approx(other["effect"], rel=1e-4)
    np.testing.assert_allclose(fit.predict()["mean"], ordinary.predict()["mean"], rtol=1e-5)
    assert len(fit.answer) and "nan" not in str(fit)
    new = frame(shift, scale).head(3)
    np.testing.assert_allclose(fit.predict(new)["mean_low"], ordinary.predict(frame().head(3))["mean_low"], rtol=1e-5)


def test_far_covariates_after_saving_and_in_comparisons(tmp_path):
    fit, other = fitted(1.7e9), fitted(1.7e9, formula="y ~ g")
    fit.save(tmp_path / "fit.nc")
    again = dfd.load(tmp_path / "fit.nc")
    np.testing.assert_allclose(again.predict()["mean"], fit.predict()["mean"], rtol=1e-9)
    pd.testing.assert_frame_equal(again.summary(), fit.summary())
    assert dfd.compare_models({"with": fit, "without": other}, folds=5).best == ("with",)
    assert dfd.compare_nested(other, fit).p_value < 1e-4
    table = fit.influence(1)
    assert table["mean:v"].iloc[0] == pytest.approx(frame(1.7e9)["v"].iloc[table.index[0]], abs=1e-5)
    assert plots.coefficients(fit)


@pytest.mark.parametrize(("model", "y"), [("cmp", VISITS), ("bernoulli", (VISITS > 1).astype(int))])
def test_other_families_with_a_time_stamp(model, y):
    far, near = (fitted(shift, model=model, y=y, sampler="auto", draws=None) for shift in (1.7e9, 0.0))
    name = f"{far.model.main_parameters[0]}[v]"
    ends = ["eti95_lb", "eti95_ub"]
    np.testing.assert_allclose(far.summary().loc[name, ends], near.summary().loc[name, ends], rtol=1e-3)


def test_ordinary_covariates_are_used_as_they_are():
    for shift, scale in ((0.0, 1.0), (0.5 * FAR_FROM_ZERO, 1.0), (2019.0, 2.0), (3e5, 1e5), (0.0, 1e-5)):
        fit = fitted(shift, scale)
        assert not any(design.scale for design in fit.model.designs)
        assert (fit.data.given[:, 1].max(), fit.data.given[:, 1].min()) == (
            frame(shift, scale)["v"].max(),
            frame(shift, scale)["v"].min(),
        )


def test_what_cannot_be_scaled_is_said():
    import numpyro.distributions as dist

    with pytest.raises(dfd.errors.ModelError, match=r"'v' is so far from zero.*subtract its mean"):
        fitted(1.7e9, prior={"mean": dist.Normal(0.0, 2.0)})
    rows = pd.DataFrame(RNG.integers(0, 2, (200, 3)), columns=["p", "q", "r"]).assign(v=X + 1.7e9)
    with pytest.raises(dfd.errors.DataError, match=r"'v' of intercept is about 1.7e\+09 ± 1.*subtract its mean"):
        dfd.fit("ising-network", rows, formula="~ v", **QUICK)
    sites = pd.DataFrame([(i, j) for i in range(10) for j in range(20)], columns=["row", "col"])
    sites = sites.assign(there=RNG.integers(0, 2, 200), v=X * 1e155)
    with pytest.raises(dfd.errors.DataError, match=r"'v' of there is about .*1e\+155.*standard deviation"):
        dfd.fit("autologistic", sites, formula="there ~ v", options={"at": ["row", "col"]}, **QUICK)


@pytest.mark.parametrize("weighting", ["auto", "sampling"])
@pytest.mark.parametrize("weights", [np.full(200, 1e-300), np.full(200, 1e308), np.r_[1e308, np.ones(199)]])
@pytest.mark.parametrize("formula", [None, "y ~ v"])
def test_weights_that_cannot_be_summed_are_refused(weights, weighting, formula):
    data = frame() if formula else VISITS
    with pytest.raises(dfd.errors.DataError, match=r"the largest weight is 1e.*divide the weights by their mean"):
        dfd.fit("poisson", data, formula=formula, weights=weights, weighting=weighting, **QUICK)


def test_a_weight_of_almost_nothing_is_almost_nothing():
    tiny = np.r_[1e-300, np.ones(199)]
    one = dfd.fit("poisson", VISITS, weights=tiny, weighting="sampling", **QUICK)
    other = dfd.fit("poisson", VISITS, weights=np.r_[0.0, np.ones(199)], weighting="sampling", **QUICK)
    np.testing.assert_allclose(one.summary()["mean"], other.summary()["mean"], rtol=1e-2)
