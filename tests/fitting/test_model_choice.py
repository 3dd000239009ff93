"""Cross-validation against fits from scratch, paired errors, verdicts, stacking; losses that disagree."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dfdbayes as dfd
import small_fits
from dfdbayes.core.minimise import mode
from dfdbayes.errors import DisagreementWarning, SettingError
from dfdbayes.fitting.cross_validation import folds_of, held_out, matched, places
from dfdbayes.results.hausman import agreement
from small_fits import QUICK as SETTINGS

QUICK = SETTINGS | {"check": False}
RNG = np.random.default_rng(11)
SPREAD = RNG.negative_binomial(2.0, 0.4, 200)


@pytest.fixture(scope="module")
def fits():
    return {name: dfd.fit(name, SPREAD, loss="likelihood", **QUICK) for name in ("poisson", "cmp")}


@pytest.fixture(scope="module")
def compared(fits):
    return dfd.compare_models(fits, folds=5)


def test_estimates_of_folds_are_those_of_fits_from_scratch(fits):
    """The mode of prior and weighted loss on the rows that are left, sought from the model's own start."""
    fit = fits["cmp"]
    folds = folds_of(fit.data, 5, 0)
    assert folds.observations.sum(axis=0) == pytest.approx(fit.data.counts)
    values, estimates = held_out(fit, folds, np.arange(len(fit.data.rows)), fit.loss)
    for k in range(2):
        left = fit.data.reweighted(fit.data.counts - folds.observations[k])
        objective = dfd.Objective(fit.model, left, fit.loss)  # rows, table and start of its own
        minimum, space = dfd.minimise(objective), fit.model.space
        wanted = space.from_y(mode(objective, fit.beta, minimum, space.to_y(minimum.vector)))
        np.testing.assert_allclose(estimates[k], wanted, rtol=1e-5)
        rate, nu = estimates[k]
        pmf = np.array([j * np.log(rate) - nu * sum(np.log(np.arange(1, j + 1))) for j in range(200)])
        pmf -= np.logaddexp.reduce(pmf)
        np.testing.assert_allclose(values[k], -pmf[fit.data.rows[:, 0]], rtol=1e-6)


def test_the_table_is_its_definition(fits, compared):
    folds = folds_of(fits["cmp"].data, 5, 0)
    held = {name: held_out(fit, folds, np.arange(len(fit.data.rows)), fit.loss)[0] for name, fit in fits.items()}
    each = np.concatenate(
        [np.repeat(held["poisson"][k] - held["cmp"][k], folds.observations[k].astype(int)) for k in range(5)]
    )  # one entry per observation
    row = compared.table.loc["poisson"]
    assert row["worse_by"] == pytest.approx(each.sum(), rel=1e-9)
    assert row["standard_error"] == pytest.approx(np.sqrt(200) * each.std(ddof=1), rel=1e-9)
    assert (
        compared.best == ("cmp",)
        and compared.verdict.startswith("cmp predicts best")
        and compared.score == "likelihood"
    )
    log = stats.poisson.logpmf(SPREAD, SPREAD.mean()).sum()
    assert row["aic"] == pytest.approx(2 - 2 * log, rel=1e-6)
    assert row["bic"] == pytest.approx(np.log(200) - 2 * log, rel=1e-6)
    assert compared.table["weight"].sum() == pytest.approx(1.0) and compared.table.loc["cmp", "weight"] > 0.9
    assert abs(compared.table.loc["cmp", "waic"] - compared.table.loc["cmp", "aic"]) < 5


def test_fits_without_names_have_those_of_their_models(fits, compared):
    poisson, cmp = fits.values()
    found = dfd.compare_models([poisson, cmp], folds=5)
    pd.testing.assert_frame_equal(found.table, compared.table)
    assert "not how sure" in str(found)
    assert list(dfd.compare([poisson, cmp, poisson]).fits) == ["poisson 1", "cmp", "poisson 2"]
    for compare in (dfd.compare, dfd.compare_models):
        with pytest.raises(SettingError, match="give the fits together"):
            compare(poisson, cmp)


def test_data_that_cannot_tell():
    found = dfd.compare_models(["poisson", "cmp"], RNG.poisson(3.0, 100), folds=5, **QUICK)
    assert found.best == ("poisson", "cmp") or found.best == ("cmp", "poisson")
    assert found.verdict.startswith("these data cannot tell")


def test_regressions_with_different_covariates():
    x, z = RNG.integers(0, 3, (2, 240))
    frame = pd.DataFrame({"y": RNG.poisson(np.exp(0.5 + 0.6 * x)), "x": x, "z": z})
    fits = {text: dfd.fit("poisson", frame, formula=text, **QUICK) for text in ("y ~ 1", "y ~ x", "y ~ x + z")}
    found = dfd.compare_models(fits, folds=5)
    assert "y ~ 1" not in found.best and "y ~ x" in found.best
    assert dfd.compare(fits).table.loc["mean[x]"].index.tolist() == ["y ~ x", "y ~ x + z"]
    for name, fit in fits.items():
        place = places(name, fit.data, fits["y ~ x + z"].data)
        np.testing.assert_array_equal(fit.data.rows[place], fits["y ~ x + z"].data.rows)
    other = dfd.fit("poisson", frame, formula="y ~ z", **QUICK)
    assert dfd.compare_models({"x": fits["y ~ x"], "z": other}, folds=5).best == ("x",)
    with pytest.raises(SettingError, match="of other data"):
        dfd.compare_models({"x": fits["y ~ x"], "fewer": dfd.fit("poisson", frame.head(200), formula="y ~ z", **QUICK)})


@pytest.mark.parametrize("more", [{}, {"weights": "w"}, {"weights": "w", "weighting": "sampling"}, {"cluster": "c"}])
@pytest.mark.daily("more0", "more3")
def test_covariates_of_any_part_do_not_make_other_rows(more):
    """Scores and errors are those of rows that are all apart, where they can be matched one by one."""
    rng = np.random.default_rng(3)
    x, z = rng.integers(0, 3, (2, 240))
    frame = pd.DataFrame({"x": x, "z": z, "w": 1 + (x + z) % 2, "c": np.arange(240) % 40})
    frame["y"] = rng.poisson(np.exp(0.3 + 0.4 * x)) * (rng.random(240) > 0.2 * z)
    frame = frame.set_axis(rng.permutation(240))
    zeros = dfd.fit("poisson", frame, formula="y ~ x", zeros="~ z", **more, **QUICK)
    spread = dfd.fit("cmp", frame, formula="y ~ x", nu="~ 1", **more, **QUICK)
    plain = [dfd.fit("poisson", frame, **more, columns=["y"], **QUICK)] if not more else []
    found = dfd.compare_models({"zeros": zeros, "spread": spread}, folds=4)
    assert found.best == ("zeros",)
    base, where = matched({"zeros": zeros, "spread": spread})
    for name, fit in {"zeros": zeros, "spread": spread}.items():
        np.testing.assert_array_equal(fit.data.rows[where[name]], base.rows)
        own = np.bincount(where[name], weights=base.counts, minlength=len(fit.data.rows))
        if more in ({}, {"weights": "w"}):  # equal rows of several clusters, or weights, are matched with one of them
            np.testing.assert_allclose(own, fit.data.counts)
    np.testing.assert_array_equal(base.rows[:, 0], frame["y"])
    if plain:
        assert len(dfd.compare_models([zeros, spread, *plain], folds=4).table) == 3


def test_rows_that_were_counted_are_matched(monkeypatch):
    rng = np.random.default_rng(3)
    x, z = rng.integers(0, 2, (2, 240))
    frame = pd.DataFrame({"x": x, "z": z, "y": (rng.random(240) < 0.2 + 0.5 * x).astype(int)})
    texts = ("y ~ x", "y ~ z")
    apart = dfd.compare_models({text: dfd.fit("bernoulli", frame, formula=text, **QUICK) for text in texts}, folds=5)
    monkeypatch.setattr("dfdbayes.data.formulas.MIN_ROWS_TO_COUNT", 200)
    counted = {text: dfd.fit("bernoulli", frame, formula=text, **QUICK) for text in texts}
    assert len(counted["y ~ x"].model.observed.rows) == 4
    assert apart.best == ("y ~ x",)
    pd.testing.assert_frame_equal(dfd.compare_models(counted, folds=5).table, apart.table, rtol=1e-4)


# -- two losses --------------------------------------------------------------------------------


def found_by(model, data, word):
    objective = dfd.objective(model, data, word)
    return objective.loss, dfd.minimise(objective)


@pytest.mark.slow
def test_losses_agree_about_a_right_model_as_often_as_they_should():
    """Poisson counts, 80 data sets of 300: disagreements at 5 % are binomial, false alarm below 1e-3."""
    model, values, differences, errors = dfd.models.Poisson(), [], [], []
    for seed in range(80):
        data = dfd.Dataset.of(np.random.default_rng([3, seed]).poisson(3.0, 300))
        one = agreement(model, data, found_by(model, data, "likelihood"), found_by(model, data, "dfd"))
        values.append(one.p_value)
        differences.append(one.table["difference"].iloc[0])
        errors.append(one.table["standard_error"].iloc[0])
    assert np.sum(np.array(values) < 0.05) <= 12
    assert 0.8 < np.mean(errors) / np.std(differences) < 1.25  # the joint error is the spread of differences


def test_losses_disagree_about_a_wrong_model(fits):
    with pytest.warns(DisagreementWarning, match="joint standard errors apart"):
        found = fits["poisson"].second_opinion("dfd")
    assert found.attrs["p_value"] < 0.001
    told = found.attrs["sentence"]
    assert (
        f"{found['likelihood'].iloc[0]:.3g} by 'likelihood'" in told and f"{found['dfd'].iloc[0]:.3g} by 'dfd'" in told
    )
    compared = dfd.compare_losses("poisson", SPREAD, by=("likelihood", "dfd"), **QUICK)
    assert compared.agreements["dfd"].sentence == told and not compared.agreements["dfd"].agree


def test_every_check_asks_a_second_loss_and_speaks_where_it_is_far_away(tmp_path):
    fit = small_fits.network()  # by ratio matching, and right
    found = fit.checks.agreement
    pd.testing.assert_frame_equal(found.table, fit.second_opinion("pseudo"), rtol=1e-6)
    assert not found.doubt and "reproduces" in fit.checks.sentence
    again = dfd.load(fit.save(tmp_path / "fit.nc")).checks.agreement
    pd.testing.assert_frame_equal(again.table, found.table)
    assert again.p_value == found.p_value and again.sentence == found.sentence
    far = found.table.assign(standardised=[0, 9, 0, 0, 0, 8, 0, 0, 0, -2.0], shift=[0, 2, 0, 0, 0, 2, 0, 0, 0, 0.1])
    told = replace(fit.checks, agreement=replace(found, table=far, p_value=1e-4)).sentence
    name = far.index[5]
    assert name.startswith("interaction[")  # which an intercept that is a little further away does not hide
    assert told.startswith("The test of fit finds nothing wrong (p = ") and f"disagree about {name}: it is" in told
    assert f"{far['ratio'][name]:.3g} by 'ratio' and {far['pseudo'][name]:.3g} by 'pseudo', 8.0 joint" in told
    assert small_fits.poisson().checks.agreement.doubt  # where the test of fit has said it
    assert "two losses" not in small_fits.poisson().answer
