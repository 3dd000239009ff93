"""Robust losses: weights of rows that leave a loss proper, and the ones that a fit chooses from its data."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
import oracles
from dfdbayes._util.codec import to_plain
from dfdbayes.core.robust_weight import weight_for
from random_masses import CASES, pair, table_model

QUICK = {"check": False, "progress": False, "sampler": "laplace", "draws": 250}


def quietly(*arguments, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dfd.fit(*arguments, **(QUICK | settings))


def m(x):
    """A weight without any symmetry, between 0.1 and 2.1."""
    return 1.1 + math.cos(sum((j + 2) * v for j, v in enumerate(x)))


def by_row(rows):
    return np.array([m(tuple(row)) for row in rows.tolist()])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.daily("ordinal and counts", "binary", "categories among others")
def test_the_weighted_divergence_is_a_weighted_mean_of_squares(name):
    """E_q[m (r_p - r_q)^2] by enumeration: never negative, and zero only for p = q."""
    domain, p, q = pair(name, 3)
    data = dfd.Dataset.of(np.array(list(q)), weights=np.array(list(q.values())))
    loss = dfd.losses.Robust("dfd", weight=by_row)

    def computed(mass):
        """The weighted loss with the constant that makes it a divergence."""
        model = table_model(domain, {x: np.log(v) for x, v in mass.items()})
        return dfd.objective(model, data, loss)({"scale": 1.0}) + constant

    slow = constant = 0.0
    for x, chance in q.items():
        for j in range(domain.d):
            for before in oracles.decrements(domain.coordinate(j), x[j]):
                there = oracles.moved(x, j, before)
                ratio_p, ratio_q = oracles.mass(p, there) / p[x], oracles.mass(q, there) / q[x]
                slow += chance * m(x) * (ratio_p - ratio_q) ** 2
                constant += chance * m(x) * ratio_q**2
    assert slow > 1e-3
    assert computed(p) == pytest.approx(slow, abs=1e-10, rel=1e-10)
    if domain.is_finite:  # elsewhere q ends at its window
        assert computed(q) == pytest.approx(0.0, abs=1e-11)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.daily("ordinal and counts", "binary", "categories among others")
def test_weighted_ratio_matching_is_a_weighted_mean_of_squares(name):
    """Of each pair (x, x^+): M (q(x) + q(x^+)) (s_p - s_q)^2, up to a constant."""
    domain, p, q = pair(name, 4)
    model = table_model(domain, {x: np.log(v) for x, v in p.items()})
    data = dfd.Dataset.of(np.array(list(q)), weights=np.array(list(q.values())))
    slow = free = 0.0
    for x in p:
        for j in range(domain.d):
            for after in oracles.increments(domain.coordinate(j), x[j]):
                there = oracles.moved(x, j, after)
                both = (q.get(x, 0.0) + q.get(there, 0.0)) * math.sqrt(m(x) * m(there))
                if both and there in p:
                    chance = q.get(x, 0.0) / (q.get(x, 0.0) + q.get(there, 0.0))
                    slow += both * (p[x] / (p[x] + p[there]) - chance) ** 2
                    free += both * chance**2
    computed = dfd.objective(model, data, dfd.losses.Robust("ratio", weight=by_row))({"scale": 1.0})
    assert computed + free == pytest.approx(slow, abs=1e-10, rel=1e-10)


@pytest.mark.parametrize("base", ["dfd", "ratio"])
@pytest.mark.parametrize("name", ["poisson", "network", "lattice", "graphical"])
@pytest.mark.daily("poisson-dfd", "lattice-ratio")
def test_a_weighted_loss_is_its_definition(name, base):
    """On the fast table of each family."""
    model, theta = {
        "poisson": (dfd.models.Poisson(), {"rate": 3.0}),
        "network": (dfd.models.IsingNetwork(3), {"intercept": np.full(3, 0.2), "interaction": np.full(3, 0.4)}),
        "lattice": (dfd.models.Ising(dfd.graphs.grid(2, 3)), {"temperature": 3.0}),
        "graphical": (
            dfd.models.PoissonGraphical(2, prior="half-normal"), {"intercept": np.ones(2), "interaction": [0.2]}
        ),
    }[name]  # fmt: skip
    data = dfd.Dataset.of(dfd.simulate(model, theta, 30, seed=1).rows)
    named = model.space.unflatten(model.space.flatten(theta))

    def gap(x, y):
        return float(model.log_mass_at(named, np.array(x, float)) - model.log_mass_at(named, np.array(y, float)))

    def s(x, y):
        return 1 / (1 + math.exp(-gap(x, y)))

    functions = {
        "dfd": (lambda x, y: math.exp(2 * gap(x, y)), lambda x, y: -2 * math.exp(gap(x, y)), False),
        "ratio": (lambda x, y: s(x, y) ** 2, lambda x, y: s(x, y) ** 2 - 2 * s(x, y), True),
    }[base]
    slow = oracles.weighted(functions, m, data.rows, data.counts, model.domain)
    assert dfd.objective(model, data, dfd.losses.Robust(base, weight=by_row))(theta) == pytest.approx(slow, rel=1e-10)


def outliers():
    """The paper's experiment A.3: counts, and one in ten replaced by 20."""
    rows = dfd.simulate(dfd.models.Poisson(), {"rate": 5.0}, 500, seed=0).rows
    return dfd.models.Poisson(), rows, 20


def lattices():
    """D.4 with fewer of them: lattices, and one in ten replaced by all ones."""
    model = dfd.models.Ising(dfd.graphs.grid(10, 10))
    return model, dfd.simulate(model, {"temperature": 5.0}, 300, seed=0, method="swendsen-wang").rows, 1


@pytest.mark.parametrize("base", ["dfd", "ratio"])
@pytest.mark.parametrize("experiment", [outliers, lattices])
@pytest.mark.daily("lattices-ratio")
def test_outliers_move_an_estimate_by_less_than_a_fifth_of_its_sd(experiment, base):
    """Beside the fit of the other nine rows in ten; the plain losses move by more than two sds."""
    model, rows, value = experiment()
    soiled = rows.copy()
    soiled[: len(rows) // 10] = value
    rest = rows[len(rows) // 10 :]
    loss = dfd.losses.Robust(base)
    with_them, without = (quietly(model, data, loss=loss).summary() for data in (soiled, rest))
    sd = float(without["sd"].iloc[0])
    assert abs(with_them["mean"].iloc[0] - without["mean"].iloc[0]) < 0.2 * sd
    plain = quietly(model, soiled, loss=base).summary()
    assert abs(plain["mean"].iloc[0] - without["mean"].iloc[0]) > 2 * sd


@pytest.fixture(scope="module")
def soiled_fit():
    model, rows, value = outliers()
    rows = rows.copy()
    rows[:50] = value
    return rows, quietly(model, rows, loss="robust")


def test_a_fit_says_which_rows_count_less(soiled_fit):
    rows, fit = soiled_fit
    assert fit.settings["loss"] == "robust-dfd"
    told = fit.settings["loss_weight"]
    few = int((rows > 13).sum())
    assert told == f"values above 13 count less; {few} of 500 rows have weight under one half"
    assert told in " ".join(str(fit).split())


def test_a_weight_does_not_depend_on_the_order_of_rows(soiled_fit):
    rows, fit = soiled_fit
    again = quietly(dfd.models.Poisson(), rows[::-1], loss="robust")
    assert to_plain(again.loss) == to_plain(fit.loss)
    assert again.minimum.vector == pytest.approx(fit.minimum.vector, rel=1e-12)


def test_a_weight_is_saved_and_loaded(soiled_fit, tmp_path):
    rows, fit = soiled_fit
    back = dfd.load(fit.save(tmp_path / "fit.nc"))
    points = np.arange(40)[:, None]
    np.testing.assert_allclose(back.loss.weight.at(points, None), fit.loss.weight.at(points, None), rtol=1e-12)
    value = dfd.objective(back.model, rows, back.loss)(fit.minimum.vector)
    assert value == pytest.approx(fit.minimum.value, rel=1e-10)
    model = dfd.models.Ising(dfd.graphs.grid(3, 3))
    rows = dfd.simulate(model, {"temperature": 3.0}, 60, seed=0).rows
    fit = quietly(model, rows, loss="robust")
    assert to_plain(dfd.load(fit.save(tmp_path / "lattice.nc")).loss) == to_plain(fit.loss)
    own = quietly("poisson", rows[:, 0] + 1, loss=dfd.losses.Robust("dfd", weight=lambda rows: np.ones(len(rows))))
    assert dfd.load(own.save(tmp_path / "own.nc")).missing == ("loss",)


def test_a_regression_weights_rows_by_what_their_covariates_lead_to_expect():
    """A count of 30 is far out where 2 are expected, and ordinary where 30 are."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2, 400)
    frame = pd.DataFrame({"visits": rng.poisson(np.where(x, 30.0, 2.0)), "x": x})
    odd = (frame["x"] == 0) & (frame.index < 60)
    frame.loc[odd, "visits"] = 30
    fit = quietly("poisson", frame, formula="visits ~ x", loss="robust")
    weight = fit.loss.weight.at(fit.data.rows, fit.data.given)
    far = (fit.data.rows[:, 0] == 30) & (fit.data.given[:, 1] == 0)
    assert weight[far].max() < 1e-6
    assert weight[(fit.data.rows[:, 0] == 30) & (fit.data.given[:, 1] == 1)].min() > 0.9
    assert np.exp(fit.minimum.vector[0]) == pytest.approx(2.0, abs=0.35)
    assert "than a pilot fit finds" in fit.settings["loss_weight"]


def test_counts_of_a_network_are_cut_one_by_one():
    rng = np.random.default_rng(4)
    rows = rng.poisson([2.0, 9.0], (300, 2))
    rows[0] = 2, 60
    data = dfd.Dataset.of(pd.DataFrame(rows, columns=["wolves", "deer"]))
    weight = weight_for(dfd.models.PoissonGraphical(2), data)
    found = weight.at(rows, None)
    assert found[0] < 1e-6 and np.median(found) > 0.99 and (found > 0).all()
    assert "deer above about" in weight.words


@pytest.mark.parametrize(
    ("model", "data", "settings", "said"),
    [
        ("poisson", [1, 2, 3], {}, "at least 20"),
        ("poisson", [1, 2, 3] * 20, {"loss": dfd.losses.Robust("dfd", weight=lambda r: r)}, "one positive number"),
        ("poisson", [1, 2, 3] * 20, {"loss": dfd.losses.Robust("dfd", weight=lambda r: -np.ones(len(r)))}, "positive"),
        ("ising-network", [[1, 0], [0, np.nan]] * 20, {"missing": "impute"}, "missing entries"),
    ],
)  # fmt: skip
def test_what_cannot_be_weighted_is_refused(model, data, settings, said):
    with pytest.raises(dfd.errors.SettingError, match=said):
        quietly(model, data, **({"loss": "robust"} | settings))


def test_a_loss_without_a_weight_says_where_it_comes_from():
    with pytest.raises(dfd.errors.SettingError, match=r"chosen by dfd\.fit"):
        dfd.objective(dfd.models.Poisson(), [1, 2], "robust")({"rate": 1.0})
    with pytest.raises(dfd.errors.SettingError, match="cannot be weighted"):
        dfd.losses.Robust("pseudo")
