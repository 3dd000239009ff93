"""Saved fits read back: what they say of themselves holds, or they are refused."""

import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from jax.scipy.special import gammaln

import dfdbayes as dfd
from pages import ROOT

X = np.random.default_rng(0).poisson(3.0, 200)


def test_a_model_with_a_borrowed_name_is_not_replaced(tmp_path, quick):
    model = dfd.Model(lambda t, x: -t["rate"] * x[0], dfd.Counts(1), {"rate": dist.HalfNormal(2)}, name="poisson")
    fit = quick(model, X, loss="ratio")
    again = dfd.load(fit.save(tmp_path / "f.nc"))
    assert again.model is None and again.missing == ("model",)
    with pytest.raises(dfd.errors.ModelError, match="loaded without its model"):
        again.replicate()
    assert dfd.load(tmp_path / "f.nc", model=model).replicate(draws=3).replicates.shape[0] == 3
    with pytest.raises(dfd.errors.ModelError, match="parameters"):
        dfd.load(tmp_path / "f.nc", model=dfd.models.ConwayMaxwellPoisson())


def test_a_loaded_fit_has_its_priors_and_its_loss(tmp_path, quick):
    prior = {"rate": dist.TruncatedNormal(3.0, 2.0, low=0.5)}
    loss = dfd.losses.KernelStein(dfd.kernels.Robust(dfd.kernels.below(20.0)))
    fit = quick("poisson", X, prior=prior, loss=loss, bootstrap=30, check=True)
    again = dfd.load(fit.save(tmp_path / "f.nc"))
    assert again.missing == () and again.loss == loss
    assert again.model.identity == fit.model.identity
    pd.testing.assert_frame_equal(again.uncalibrated, fit.uncalibrated)
    assert again.checks.goodness == fit.checks.goodness
    own = quick("poisson", X, prior=prior, loss="ratio")
    assert dfd.load(own.save(tmp_path / "g.nc")).loss == dfd.losses.RATIO


def test_a_file_of_the_first_format_is_refused_by_a_sentence(tmp_path):
    fixture = ROOT / "tests" / "fixtures" / "format-1.netcdf"
    with pytest.raises(dfd.errors.DataError, match=r"saved by dfdbayes 0\.1 \(format 1\).*fit again"):
        dfd.load(fixture)


def test_a_model_that_changed_since_the_fit_does_not_predict(quick):
    class Power:
        value = 1.0

    power = Power()
    model = dfd.Model(
        lambda t, x: t["r"] * x[0] - power.value * gammaln(x[0] + 1), dfd.Counts(1), {"r": dist.Normal(0, 2)}
    )
    fit = quick(model, X)
    fit.replicate(draws=2)
    power.value = 0.5
    with pytest.raises(dfd.errors.ModelError, match="changed since this fit"):
        fit.replicate(draws=2)
