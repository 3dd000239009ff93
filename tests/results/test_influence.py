"""What single rows do to a fit, against leaving them out."""

import warnings

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
import small_fits
from dfdbayes.core.objective import Objective
from dfdbayes.core.replicates import minimise_many

QUICK = {"check": False, "progress": False, "sampler": "laplace", "draws": 250}


def quietly(*arguments, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dfd.fit(*arguments, **(QUICK | settings))


def poisson(seed):
    return quietly("poisson", dfd.simulate(dfd.models.Poisson(), {"rate": 4.0}, 200, seed=seed).rows, loss="dfd")


def cmp(seed):
    model = dfd.models.ConwayMaxwellPoisson()
    return quietly(model, dfd.simulate(model, {"rate": 4.0, "nu": 0.75}, 300, seed=seed).rows, loss="ratio")


def network(seed):
    model = dfd.models.IsingNetwork(4)
    truth = {"intercept": np.full(4, -0.3), "interaction": np.full(6, 0.3)}
    return quietly(model, dfd.simulate(model, truth, 300, seed=seed).rows, loss="pseudo")


def regression(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(120)
    return quietly("poisson", pd.DataFrame({"y": rng.poisson(np.exp(1 + 0.4 * x)), "x": x}), formula="y ~ x")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "make", [poisson, cmp, *(pytest.param(m, marks=pytest.mark.slow) for m in (network, regression))]
)
@pytest.mark.daily("poisson-0", "cmp-1")
def test_influence_agrees_with_leaving_rows_out(make, seed):
    """20 data sets, every distinct row of each: correlation over 0.99, and no error over a quarter of the largest."""
    fit = make(seed)
    objective = Objective(fit.model, fit.data, fit.loss)
    one_less = objective.units.weights[None] - np.eye(len(fit.data.rows))
    left_out = minimise_many(objective, one_less, fit.minimum)
    assert left_out.usable.all()
    exact = fit.minimum.vector - left_out.vectors
    found = fit.influence(None).loc[fit.data.first]
    for j, name in enumerate(fit.minimum.names):
        quick = found[f"change of {name}"].to_numpy()
        assert np.corrcoef(quick, exact[:, j])[0, 1] > 0.99
        assert np.abs(quick - exact[:, j]).max() < 0.25 * np.abs(exact[:, j]).max()


@pytest.fixture(scope="module")
def one_far_row():
    x = np.random.default_rng(0).poisson(4.0, 200)
    x[10] = 40
    return pd.DataFrame({"visits": x})


def test_a_row_that_decides_is_named_once(one_far_row, tmp_path):
    with pytest.warns(dfd.errors.InfluenceWarning, match=r"row 11 \(visits = 40\) alone decides rate") as told:
        fit = dfd.fit("poisson", one_far_row, loss="dfd", **QUICK)
    assert sum(isinstance(w.message, dfd.errors.InfluenceWarning) for w in told) == 1
    first = fit.influence(3).iloc[0]
    assert (first.name, first["visits"], first["observations"], first["parameter"]) == (10, 40, 1, "rate")
    without = quietly("poisson", one_far_row.drop(index=10), loss="dfd").summary().loc["rate"]
    with_it = fit.summary().loc["rate", "mean"]
    assert first["shift"] == pytest.approx((with_it - without["mean"]) / without["sd"], rel=0.35)
    pd.testing.assert_frame_equal(dfd.load(fit.save(tmp_path / "fit.nc")).influential, fit.influential)


def test_ordinary_rows_and_robust_losses_are_not_warned_about(one_far_row):
    with warnings.catch_warnings():
        warnings.simplefilter("error", dfd.errors.InfluenceWarning)
        dfd.fit("poisson", one_far_row.drop(index=10), loss="dfd", **QUICK)
        fit = dfd.fit("poisson", one_far_row, loss="robust", **QUICK)
    found = fit.influence(None)
    assert abs(found.loc[10, "shift"]) < 1e-3


def test_a_weight_by_bootstrap_has_influences_too():
    """There the standard error is the posterior's: H, not the sandwich."""
    fit = small_fits.counts()
    found = fit.influence(None)
    assert len(found) == len(fit.data.rows) and np.isfinite(found["shift"]).all()
    assert found["shift"].abs().is_monotonic_decreasing


def of_counts(model, columns, noise, seed):
    rng = np.random.default_rng(seed)
    means = np.exp(0.5 + 0.5 * rng.normal(size=(50, 1)) + noise * rng.normal(size=(50, columns)))
    frame = pd.DataFrame(rng.poisson(means), columns=[f"v{j}" for j in range(columns)])
    return frame, lambda data: quietly(model, data)


def of_answers(columns, number, seed):
    rng = np.random.default_rng(seed)
    answers = (rng.random((number, columns)) < rng.random(columns)).astype(int)
    frame = pd.DataFrame(answers, columns=[f"v{j}" for j in range(columns)])
    return frame, lambda data: quietly("ising-network", data)


def of_covariates(number, columns, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((number, columns))
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(columns)])
    frame["y"] = rng.poisson(np.exp(1.0 + 0.4 * x[:, 0]))
    frame.loc[3, "y"] = 60
    return frame, lambda data: quietly("poisson", data, formula="y ~ " + " + ".join(frame.columns[:-1]), loss="dfd")


MANY_PARAMETERS = {
    "counts, 55 of 50 rows": lambda: of_counts("poisson-graphical", 10, 0.8, 1),
    "dispersed counts, 54 of 50 rows": lambda: of_counts("cmp-graphical", 9, 0.8, 2),
    "answers, 36 of 25 rows": lambda: of_answers(8, 25, 3),
    "covariates, 6 of 60 rows": lambda: of_covariates(60, 5, 5),
}


@pytest.mark.parametrize("case", MANY_PARAMETERS)
@pytest.mark.daily("covariates, 6 of 60 rows")
def test_rows_that_matter_are_left_out_in_fact(case):
    """Where parameters exceed rows one step said 142 standard errors of a row whose absence makes 1.3."""
    frame, fitted = MANY_PARAMETERS[case]()
    fit = fitted(frame)
    table, names = fit.influence(3), list(fit.minimum.names)
    assert table["refitted"].any() or table["shift"].abs().max() < 0.7
    centre = fit.calibration.curvature.centre
    space = fit.model.space
    low, high = np.where(space.beyond, space.lower, -np.inf), np.where(space.beyond, space.upper, np.inf)
    for row, line in table.iterrows():
        without = fitted(frame.drop(index=row)).calibration.curvature
        moved = np.clip(centre, low, high) - np.clip(without.centre, low, high)
        shift = (moved / np.sqrt(np.diag(without.covariance)))[names.index(line["parameter"])]
        assert line["refitted"] or abs(line["shift"]) < 0.7
        assert line["shift"] == pytest.approx(shift, rel=2e-3) or not line["refitted"]


def test_a_row_alike_to_others_is_left_out_once():
    """40 twice among 200 counts: one of the two is left out, not both."""
    x = np.append(np.random.default_rng(0).poisson(4.0, 200), [40, 40])
    first = quietly("poisson", x, loss="dfd").influence(1).iloc[0]
    whole, less = (quietly("poisson", part, loss="dfd").calibration.curvature for part in (x, x[:-1]))
    assert first["refitted"] and first["observations"] == 2
    assert first["shift"] == pytest.approx((whole.centre - less.centre)[0] / np.sqrt(less.covariance[0, 0]), rel=1e-3)


def test_where_rows_have_no_influence_of_their_own():
    lattice = dfd.simulate(dfd.models.Ising(dfd.graphs.grid(8, 8)), {"temperature": 3.0}, 1, seed=2).rows
    fit = quietly(dfd.models.Ising(dfd.graphs.grid(8, 8)), lattice, loss="pseudo")
    with pytest.raises(dfd.errors.SettingError, match="one observation"):
        fit.influence()


def test_the_picture_and_the_report(tmp_path):
    fit = small_fits.network()
    axes = dfd.plots.influence(fit).axes[0]
    assert 1 <= len(axes.texts) <= 5
    page = fit.report(tmp_path / "page.html").read_text()
    assert "Influence of rows" in page
