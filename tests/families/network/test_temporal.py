"""Panels: earlier values as covariates, clustered by person; temporal and contemporaneous networks."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dfdbayes as dfd
from dfdbayes.families.network.temporal import effects_over_time
from dfdbayes.families.network.verdict import by_bayes_factor
from dfdbayes.plots import temporal

BACK = np.array([[1.2, 0.0, 0.0], [0.9, 0.6, 0.0], [0.0, 0.0, 0.0]])  # of the column on the row
TOGETHER = 0.8  # of the last two


@pytest.fixture(scope="module")
def diary():
    """Sixty people on twelve days; the next day is drawn from the network given this one."""
    rng = np.random.default_rng(3)
    days, people = 12, 60
    points = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], float)
    rows, now = [], rng.integers(0, 2, (people, 3)).astype(float)
    for day in range(days):
        field = -0.6 + now @ BACK.T
        log = field @ points.T + TOGETHER * points[:, 1] * points[:, 2]
        chance = np.exp(log) / np.exp(log).sum(axis=1, keepdims=True)
        now = points[(chance.cumsum(axis=1) < rng.random((people, 1))).sum(axis=1)]
        rows += [{"who": f"p{i}", "day": day, "mood": x[0], "sleep": x[1], "walk": x[2]} for i, x in enumerate(now)]
    return pd.DataFrame(rows).astype({"mood": int, "sleep": int, "walk": int})


@pytest.fixture(scope="module")
def fit(diary):
    frame = dfd.lagged(diary, ["mood", "sleep", "walk"], by="who", time="day")
    return dfd.fit(
        "ising-network", frame, columns=["mood", "sleep", "walk"], formula="~ mood_lag1 + sleep_lag1 + walk_lag1",
        cluster="who", sampler="laplace", progress=False,
    )  # fmt: skip


def test_effects_over_time_and_at_one_time_are_found(fit):
    """Each within 3.3 standard deviations: a false alarm in one of eighty such tests (twelve numbers)."""
    table = fit.temporal().set_index(["from", "to"])
    names = ["mood", "sleep", "walk"]
    for i, to in enumerate(names):
        for j, start in enumerate(names):
            row = table.loc[(start, to)]
            sd = (row["high"] - row["low"]) / 3.92
            assert abs(row["mean"] - BACK[i, j]) < 3.3 * sd
    assert table.loc[("mood", "mood"), "evidence"] == "present" and table["lag"].eq(1).all()
    edge = dfd.evidence.edges(fit).set_index(["from", "to"]).loc[("sleep", "walk")]
    assert abs(edge["mean"] - TOGETHER) < 3.3 * (edge["high"] - edge["low"]) / 3.92
    assert fit.clusters.number == 60


def test_effects_over_time_are_judged_as_edges_are(fit):
    """By inclusion Bayes factors, drawn together; one by one against the density of the calibrated normal at zero."""
    table = fit.temporal()
    assert (table["evidence"] == by_bayes_factor(table["bayes_factor"].to_numpy())).all()
    assert set(table["evidence"]) == {"present", "inconclusive"}
    np.testing.assert_allclose(table["inclusion"], table["bayes_factor"] / (1.0 + table["bayes_factor"]), rtol=0.2)
    shape, names = fit.calibration.curvature, list(fit.model.space.names)
    place = [names.index(f"intercept[{to}:{name}_lag1]") for name, to in zip(table["from"], table["to"], strict=True)]
    inverse = np.linalg.inv(shape.information)  # the prior is wide beside it
    mean, sd = (shape.centre - inverse @ shape.pull)[place], np.sqrt(np.diag(inverse)[place])
    width = np.hypot(1.0, sd)  # of binary columns the slab is standard normal
    alone = stats.norm.pdf(mean, 0.0, width) / stats.norm.pdf(mean, 0.0, sd)
    clear = (alone > 30.0) | (alone < 1.0 / 3.0)
    assert clear.sum() >= 6 and ((table["bayes_factor"] > 1.0) == (alone > 1.0))[clear].all()


def test_without_bayes_factors_the_region_judges_both(fit):
    plain = replace(fit, calibration=replace(fit.calibration, curvature=None))
    table = plain.temporal()
    assert table["bayes_factor"].isna().all() and set(table["evidence"]) <= {"present", "absent", "inconclusive"}
    assert table.set_index(["from", "to"]).loc[("mood", "mood"), "evidence"] == "present"
    assert dfd.evidence.edges(plain)["bayes_factor"].isna().all()


def test_the_picture_has_both_networks(fit, tmp_path):
    temporal(fit).savefig(tmp_path / "panel.png", dpi=80)
    assert (tmp_path / "panel.png").stat().st_size > 5000


def test_earlier_values_are_those_of_one_step_before():
    frame = pd.DataFrame({"who": list("aaabb"), "day": [3, 1, 2, 1, 3], "x": [30, 10, 20, 1, 3]})
    found = dfd.lagged(frame, ["x"], by="who", time="day")
    assert found[["who", "day", "x_lag1"]].to_numpy().tolist() == [["a", 2, 10], ["a", 3, 20]]
    two = dfd.lagged(frame[frame["who"] == "a"], ["x"], time="day", lags=2)
    assert two[["x", "x_lag1", "x_lag2"]].to_numpy().tolist() == [[30, 20, 10]]


def test_what_is_no_panel_is_refused(fit, diary):
    twice = pd.concat([diary, diary.iloc[:1]])
    with pytest.raises(dfd.errors.DataError, match="two rows have who p0, day 0"):
        dfd.lagged(twice, ["mood"], by="who", time="day")
    with pytest.raises(dfd.errors.DataError, match="no column 'moods'"):
        dfd.lagged(diary, ["moods"])
    with pytest.raises(dfd.errors.DataError, match="no row has all its earlier values"):
        dfd.lagged(diary.iloc[:1], ["mood"])
    with pytest.raises(dfd.errors.SettingError, match="lags is 0"):
        dfd.lagged(diary, ["mood"], lags=0)
    plain = dfd.fit("ising-network", diary[["mood", "sleep"]], sampler="laplace", progress=False)
    with pytest.raises(dfd.errors.ModelError, match="no intercept depends on earlier values"):
        effects_over_time(plain)
