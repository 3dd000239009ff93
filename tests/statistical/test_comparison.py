import json

import numpy as np
import pytest

import dfdbayes as dfd
from dfdbayes import plots


@pytest.fixture(scope="module")
def fits():
    settings = {"sampler": "laplace", "prior": "paper", "progress": False, "seed": 2}
    return {loss: dfd.fit("cmp", dfd.datasets.sales(), loss=loss, **settings) for loss in ("dfd", "ksd", "pseudo")}


@pytest.mark.slow
def test_standard_bayes_on_the_sales_data():
    """The exact posterior: mean (0.9765, 0.1293), sd (0.0196, 0.0117), within 5 Monte-Carlo errors and rounding."""
    settings = {"sampler": dfd.samplers.NUTS(target=0.95), "prior": "paper", "progress": False, "seed": 2}
    fit = dfd.fit("cmp", dfd.datasets.sales(), loss="likelihood", calibration="none", **settings)
    table = fit.summary()
    assert fit.beta == 1.0
    for name, mean, sd in (("rate", 0.9765, 0.0196), ("nu", 0.1293, 0.0117)):
        row = table.loc[name]
        assert abs(row["mean"] - mean) < 5 * row["mcse_mean"] + 5e-5
        assert abs(row["sd"] - sd) < 5 * row["mcse_sd"] + 5e-5


def test_pseudo_likelihood_is_calibrated_to_the_likelihood_here(fits):
    """For one column the two losses are the same; the model is close to right, so beta is near one."""
    assert abs(fits["pseudo"].beta - 1) < 0.3


def test_one_table_and_one_plot(fits):
    compared = dfd.compare(fits)
    assert list(compared.table.loc["rate"].index) == list(fits)
    row = compared.table.loc[("rate", "ksd")]
    assert row["width"] == pytest.approx(row["eti95_ub"] - row["eti95_lb"])
    assert row["beta"] == fits["ksd"].beta and row["seconds"] > 0
    figure = plots.comparison(compared)
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == list(fits)
    with pytest.raises(dfd.errors.SettingError, match="nothing to compare"):
        dfd.compare({})
    other = dfd.fit("poisson", [1, 2, 3, 4], beta=1.0, sampler="laplace", progress=False)
    with pytest.raises(dfd.errors.SettingError, match="different data"):
        dfd.compare({"a": fits["dfd"], "b": other})


def test_compare_on_the_command_line(call, visits, tmp_path):
    about = ("compare", visits, "--model", "poisson", "--losses")
    code, out, _ = call(*about, "dfd,likelihood", "--out", tmp_path / "out")
    assert code == 0 and "likelihood" in out and "width" in out
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["comparison.csv", "comparison.png"]
    code, _, err = call(*about, "dfd,liklihood")
    assert code == 2 and "did you mean 'likelihood'" in err


def test_choose_on_the_command_line(call, visits):
    code, out, _ = call("choose", visits, "--models", "poisson,cmp", "--folds", "3", "--json")
    found = json.loads(out)
    assert code == 0 and set(found["best"]) <= {"poisson", "cmp"} and len(found["table"]) == 2
    assert found["score"] == "likelihood" and found["failed"] == {}
    code, _, err = call("choose", visits, "--models", "poisson")
    assert code == 2 and "at least two models" in err


def test_a_robust_kernel_ignores_outliers():
    """One in ten observations replaced by 20: standard Bayes and DFD move, the robust kernel hardly does."""
    x = np.random.default_rng(0).poisson(5.0, 500)
    dirty = x.copy()
    dirty[:50] = 20
    robust = dfd.losses.KernelStein(dfd.kernels.Robust(dfd.kernels.below(15)))
    moved = {}
    for name, loss in (("likelihood", "likelihood"), ("dfd", "dfd"), ("robust", robust)):
        clean, spoilt = (dfd.minimise(dfd.objective(dfd.models.Poisson(), d, loss)).theta["rate"] for d in (x, dirty))
        moved[name] = abs(spoilt - clean)
    assert moved["robust"] < 0.2 < 1.0 < moved["likelihood"] < moved["dfd"]
