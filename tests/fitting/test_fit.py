import json
import subprocess
import sys
import warnings

import jax
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest

import dfdbayes as dfd

X = np.random.default_rng(0).poisson(3.0, 200)

QUICK = {"draws": 600, "warmup": 200, "bootstrap": 50, "progress": False}


@pytest.fixture(scope="module")
def sales_fit():
    return dfd.fit("cmp", dfd.datasets.sales(), loss="dfd", prior="paper", check=True, progress=False)


def test_summary_has_arviz_columns(sales_fit):
    table = sales_fit.summary()
    assert list(table.index) == ["rate", "nu", "mean", "dispersion_index"]
    for column in ("mean", "sd", "eti95_lb", "eti95_ub", "ess_bulk", "ess_tail", "r_hat"):
        assert np.isfinite(table[column]).all()
    assert (table["eti95_lb"] < table["mean"]).all() and (table["mean"] < table["eti95_ub"]).all()
    assert "eti80_lb" in sales_fit.summary(0.8)
    assert sales_fit.warnings == ()


def test_derived_quantities_are_those_of_the_model(sales_fit):
    from scipy import special

    posterior = sales_fit.posterior
    x = np.arange(4000)
    for i in (0, 50):
        t1, t2 = (float(posterior[name][0, i]) for name in ("rate", "nu"))
        log = x * np.log(t1) - t2 * special.gammaln(x + 1)
        p = np.exp(log - special.logsumexp(log))
        mean = p @ x
        assert float(posterior["mean"][0, i]) == pytest.approx(mean, rel=1e-9)
        assert float(posterior["dispersion_index"][0, i]) == pytest.approx((p @ (x - mean) ** 2) / mean, rel=1e-8)


@pytest.mark.parametrize("theta", [(1e3, 0.2), (0.95, 0.0), (0.9999, 0.001), (4.0, 30.0), (1e-6, 2.0), (1.5, 0.01)])
def test_derived_quantities_are_finite_at_the_extremes(theta):
    from dfdbayes.families.counts.models import moments

    mean, variance = moments(np.array([theta[0]]), np.array([theta[1]]))
    assert np.isfinite(mean).all() and np.isfinite(variance).all() and (variance > 0).all() and (mean > 0).all()


def test_asymptotic_moments_meet_the_sums():
    from dfdbayes.families.counts.models import moments

    nu = np.array([0.5, 1.0, 2.0])
    for edge in (0.99e4, 1.01e4):  # on both sides of the switch
        mean, variance = moments(edge**nu, nu)
        np.testing.assert_allclose(mean, edge - (nu - 1) / (2 * nu), rtol=1e-7)
        np.testing.assert_allclose(variance, edge / nu, rtol=1e-6)


def test_round_trip_through_a_file(sales_fit, tmp_path):
    path = sales_fit.save(tmp_path / "deep" / "fit.nc")
    back = dfd.load(path)
    pd.testing.assert_frame_equal(back.summary(), sales_fit.summary())
    assert back.beta == sales_fit.beta
    assert back.settings == sales_fit.settings and back.timings == sales_fit.timings
    assert back.calibration.tally == sales_fit.calibration.tally
    np.testing.assert_array_equal(back.calibration.minimisers, sales_fit.calibration.minimisers)
    assert back.minimum.theta == sales_fit.minimum.theta and back.minimum.outcome is sales_fit.minimum.outcome
    np.testing.assert_array_equal(back.data.rows, sales_fit.data.rows)
    assert back.model == sales_fit.model
    assert "calibration" not in back.to_arviz().children
    assert list(tmp_path.rglob("*.part")) == []
    back.save(path)  # a loaded fit can be saved again, over itself
    assert dfd.load(path).beta == sales_fit.beta


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "no.nc"
    path.write_bytes(b"not a netCDF file")
    with pytest.raises(dfd.errors.DataError, match="not a fit"):
        dfd.load(path)
    pd.DataFrame({"x": [1]}).to_xarray().to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(dfd.errors.DataError, match="not a fit"):
        dfd.load(tmp_path / "other.nc")
    with pytest.raises(dfd.errors.DataError, match="no file"):
        dfd.load(tmp_path / "missing.nc")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    from dfdbayes._util.files import write_atomically

    path = tmp_path / "kept.txt"
    path.write_text("old")

    def fail(scratch):
        scratch.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(dfd.errors.OutputError, match="No space left"):
        write_atomically(path, fail)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_arviz_reads_the_tree(sales_fit):
    import arviz_stats

    tree = sales_fit.to_arviz()
    assert set(tree.children) >= {"posterior", "sample_stats", "observed_data"}
    assert float(arviz_stats.rhat(tree)["rate"]) < 1.02
    assert tree["observed_data"].sizes["observation"] == 3168


def test_describe_is_plain_json(sales_fit):
    text = json.dumps(sales_fit.describe(), allow_nan=False)
    assert json.loads(text)["parameters"]["rate"]["mean"] == pytest.approx(sales_fit.summary()["mean"]["rate"])


def test_priors_by_name_change_the_posterior():
    x = np.random.default_rng(0).poisson(3.0, 20)
    wide = dfd.fit("poisson", x, loss="dfd", beta=0.5, **QUICK).summary()["mean"]["rate"]
    with pytest.warns(dfd.errors.PriorWarning, match="rate is its prior"):
        tight = dfd.fit("poisson", x, loss="dfd", beta=0.5, prior={"rate": dist.Gamma(4000.0, 1000.0)}, **QUICK)
    assert tight.summary()["mean"]["rate"] == pytest.approx(4.0, abs=0.1) and wide < 3.8
    assert tight.settings["priors"] == {"rate": "Gamma(concentration=4000, rate=1000)"}


def test_a_users_own_model_in_one_call(shared_data):
    from jax.scipy.special import gammaln

    def log_mass(theta, x):
        return theta["rate"] * x[0] - theta["shape"] * gammaln(x[0] + 1)

    model = dfd.Model(log_mass, dfd.Counts(1), {"rate": dist.Normal(0.0, 1.0), "shape": dist.HalfNormal(1.0)})
    fit = dfd.fit(model, shared_data / "cmp_4.0_0.75_n2000.csv", progress=False)
    assert list(fit.summary().index) == ["rate", "shape"]
    assert fit.summary()["eti95_lb"]["shape"] < 0.75 < fit.summary()["eti95_ub"]["shape"]


def test_constant_data_and_single_rows_are_refused():
    with pytest.raises(dfd.errors.DataError, match=r"constant: all 30 rows have x = 0.*minimiser does not exist"):
        dfd.fit("cmp", np.zeros(30, int))
    with pytest.raises(dfd.errors.DataError, match="one row"):
        dfd.fit("cmp", [3])


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"beta": 0.0}, "beta > 0"),
        ({"beta": -2.0}, "beta > 0"),
        ({"draws": 0}, "draws is 0"),
        ({"chains": 0}, "chains is 0"),
        ({"sampler": "gibs"}, "no sampler 'gibs'"),
        ({"missing": "ignore"}, "'refuse', 'drop' or 'impute'"),
    ],
)
def test_impossible_settings_are_refused(settings, match):
    with pytest.raises(dfd.errors.SettingError, match=match):
        dfd.fit("poisson", [1, 2, 3], progress=False, **settings)


def test_dropped_rows_are_on_the_result():
    values = [2.0, 3.0, None, 1.0, 4.0, 0.0, 2.0, None]
    with pytest.warns(dfd.errors.DroppedRowsWarning, match="2 rows with missing values"):
        fit = dfd.fit("poisson", pd.Series(values), beta=1.0, missing="drop", **QUICK)
    assert fit.data.dropped == 2 and fit.data.n == 6
    assert fit.describe()["dropped_rows"] == 2


def caught(*args, **kwargs):
    """A fit and its warnings by class."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit = dfd.fit(*args, **({"progress": False} | kwargs))
    return fit, {type(w.message): str(w.message) for w in found}


def test_chains_that_disagree_are_named():
    sampler = dfd.samplers.RandomWalk(step=1e-4, thin=1)
    fit, found = caught("poisson", [2, 3, 1, 4, 2, 0], beta=1.0, sampler=sampler, draws=500, warmup=0)
    assert "rate has few effective draws" in found[dfd.errors.ConvergenceWarning]
    assert any("R-hat of rate exceeds" in c and "ask for more draws, draws=" in c for c in fit.warnings)


def test_draws_below_the_basin_are_refused():
    """Twenty-five counts leave the unbounded part of the loss within reach: chains fall into it."""
    wide = {"rate": dist.LogNormal(0.0, 5.0), "nu": dist.LogNormal(0.0, 5.0)}
    data = dfd.Dataset.of({1: 7, 2: 5, 3: 4, 4: 4, 5: 4, 6: 1})
    with pytest.raises(dfd.errors.EscapedError, match=r"chains escaped within rate in .*loss='ratio'"):
        dfd.fit("cmp", data, loss="dfd", beta=1.0, prior=wide, sampler="nuts", draws=300, progress=False)
    fit, _ = caught("cmp", data, loss="ratio", beta=1.0, prior=wide, sampler="laplace")
    assert fit.settings["bounds"] is None


@pytest.mark.parametrize("loss", ["dfd", pytest.param("ksd", marks=pytest.mark.slow)])
def test_fits_of_one_shape_compile_once(loss):
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, duration_secs, **_: compiled.append(event) if event.endswith("backend_compile_duration") else None
    )
    rng, quick = np.random.default_rng(0), {"sampler": "nuts", "draws": 50, "warmup": 50, "progress": False}

    def once(seed):
        rows = np.concatenate([rng.poisson(3.0, 200), np.arange(11)])  # other data with the same distinct values
        rows = rows[rows <= 10]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dfd.fit("cmp", rows, loss=loss, seed=seed, prior={"rate": dist.Gamma(2.0 + seed, 1.0)}, **quick)

    once(0)
    before = len(compiled)
    for seed in range(1, 6):
        once(seed)
    assert len(compiled) == before


def test_report_is_one_file_with_every_picture(sales_fit, tmp_path):
    path = sales_fit.report(tmp_path / "report.html")
    page = path.read_text()
    assert page.count("<img ") == page.count("data:image/png;base64,") == 7
    assert "rate ~ Chi2(df=3)" in page and "<script" not in page and "http:" not in page


def test_names_in_data_cannot_inject_into_the_report(tmp_path):
    frame = pd.DataFrame({"<script>alert(1)</script>": [2, 3, 1, 4, 2, 0]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dfd.fit("poisson", frame, beta=1.0, **QUICK)
    assert "<script>" not in fit.report(tmp_path / "r.html").read_text()


def test_importing_does_not_need_a_display():
    code = (
        "import dfdbayes, sys; assert 'matplotlib.figure' not in sys.modules and 'dfdbayes.plots' not in sys.modules; "
        "dfdbayes.plots.trace; assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_loss_that_runs_away_is_replaced_where_the_choice_was_ours():
    """The first choice for these counts is the divergence, which has no minimum on them; asked for, it is an error."""
    x = [20, 20, 20, 21, 20, 20, 21, 20, 21, 20]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dfd.fit("cmp", x, sampler="laplace", draws=200, progress=False)
    assert fit.settings["loss"] == "likelihood" and "no minimum to rely on" in fit.settings["loss_reason"]
    with pytest.raises(dfd.errors.MinimiserError):
        dfd.fit("cmp", x, loss="dfd", progress=False)


def test_prior_predictive_draws_are_the_priors():
    parameters, rows = dfd.prior_predictive("ising-network", 30, 400, columns=3, seed=1)
    assert rows.shape == (400, 30, 3) and set(np.unique(rows)) == {0, 1}
    assert parameters["intercept"].std() == pytest.approx(3.0, rel=0.1)
    assert parameters["interaction"].std() == pytest.approx(1.0, rel=0.1)
    paper, _ = dfd.prior_predictive("poisson-graphical", 2, 300, columns=2, prior="paper")
    assert (paper["interaction"] >= 0).all() and paper["interaction"].mean() == pytest.approx(1.0, rel=0.4)


def test_settings_of_the_wrong_type_are_sentences(tmp_path, quick):
    fit = quick("poisson", X, seed=np.int64(3), draws=np.int64(100), beta=np.float32(0.5), columns=None)
    fit.save(tmp_path / "f.nc")
    frame = pd.DataFrame({"a": X, "b": X})
    assert quick("poisson", frame, columns=frame.columns[:1]).data.columns == ("a",)
    for settings in ({"draws": 5.5}, {"chains": "2"}, {"bootstrap": 2.5}, {"beta": "x"},
                     {"loss": None}, {"sampler": 42}, {"options": "abc"}, {"seed": 1.5}):  # fmt: skip
        with pytest.raises(dfd.errors.DfdbayesError):
            quick("poisson", X, **settings)
    for model in (dfd.models.Poisson, None, X):
        with pytest.raises(dfd.errors.ModelError, match="the model is"):
            quick(model, X)
    with pytest.raises(dfd.errors.SettingError, match="belong to a model given by name"):
        quick(dfd.models.Poisson(), X, options={"graph": 3})
