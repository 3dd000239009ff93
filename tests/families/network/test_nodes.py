"""What nodes amount to, against definitions: enumeration of every value that a column may have, row by row."""

import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
import oracles
import small_fits
from dfdbayes.families.counts.normaliser import listing
from dfdbayes.families.network import nodes

MODELS = {
    "binary": dfd.models.IsingNetwork(4),
    "spins": dfd.models.IsingNetwork([(0, 1), (1, 2)], states="spins"),
    "ordinal": dfd.models.Network(dfd.Ordinal(3, 4)),
    "blume-capel": dfd.models.Network(dfd.Ordinal(2, 5) * dfd.Binary(1), kinds={0: "blume-capel"}),
    "counts": dfd.models.Network(dfd.Counts(3)),
    "mixed": dfd.models.Network(dfd.Ordinal(1, (1, 2, 5)) * dfd.Binary(1) * dfd.Counts(2), kinds={3: "poisson"}),
    "counts of the paper": dfd.models.ConwayMaxwellPoissonGraphical(3),
    "poisson of the paper": dfd.models.PoissonGraphical(3),
}


def data_of(model, n=25, seed=0):
    rng = np.random.default_rng(seed)
    columns = [rng.poisson(2.0, n) if k.counts else rng.choice(k.levels, n) for k in model.kinds]
    return dfd.Dataset.of(np.column_stack(columns), model.domain)


def parameters_of(model, size=3, seed=1):
    rng = np.random.default_rng(seed)
    theta = 0.5 * rng.standard_normal((size, model.space.size))
    for name in ("nu", *(("interaction",) if model.nonpositive_edges else ())):
        if name in model.space.first:
            first, own = model.space.first[name], next(p for p in model.space.parameters if p.name == name)
            theta[:, first : first + own.size] = (0.7 if name == "nu" else 0.0) + rng.random((size, own.size))
    return theta


def share_explained(log_mass_of_row, data, domain, reach=120):
    """The definition: mean and variance of each column given the others, in every row; the share between rows."""
    found = []
    for j in range(domain.d):
        means, variances = [], []
        for i, row in enumerate(data.rows):
            x = tuple(map(int, row))
            values = oracles.window(domain.coordinate(j), reach)
            logs = [log_mass_of_row(i, oracles.moved(x, j, value)) for value in values]
            chances = [math.exp(log - max(logs)) for log in logs]
            total = sum(chances)
            mean = sum(v * c for v, c in zip(values, chances, strict=True)) / total
            means.append(mean)
            variances.append(sum((v - mean) ** 2 * c for v, c in zip(values, chances, strict=True)) / total)
        average = np.average(means, weights=data.counts)
        between = np.average((np.array(means) - average) ** 2, weights=data.counts)
        found.append(between / (between + np.average(variances, weights=data.counts)))
    return np.array(found)


def log_mass_of(model, theta):
    """The mass of a row in NumPy, from its coefficients; quicker than one compiled call for every value."""
    named = model.space.unflatten(theta)
    eta, edges = np.asarray(model.coefficients(jnp.asarray(theta))), np.asarray(model.interaction_of(named))

    def log_mass(i, x):
        own, score = model.node_statistics(np.array(x)), model.edge_statistics(np.array(x))
        pairs = [score[a] * score[b] for a, b in model.graph.pairs]
        return float((eta * own).sum() + model.sign * edges @ np.array(pairs))

    return log_mass


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.daily("binary", "blume-capel", "mixed", "poisson of the paper")
def test_predictability_is_the_share_explained_of_every_value_enumerated(kind):
    model = MODELS[kind]
    data, thetas = data_of(model), parameters_of(model)
    log_mass, named = log_mass_of(model, thetas[0]), model.space.unflatten(thetas[0])
    for row in data.rows[:2]:  # the mass that is summed is the model's
        assert log_mass(0, row) == pytest.approx(float(model.log_mass_at(named, jnp.asarray(row, float))), abs=1e-9)
    found = nodes.explained(model, thetas, data)
    slow = [share_explained(log_mass_of(model, theta), data, model.domain) for theta in thetas]
    np.testing.assert_allclose(found, slow, rtol=1e-8, atol=1e-10)
    assert (found > 0).all() or kind == "spins"
    assert ((found >= 0) & (found < 1)).all()


def test_nothing_is_explained_without_edges_and_all_by_a_copy():
    model = dfd.models.IsingNetwork(3)
    data = data_of(model)
    theta = np.array([-20.0, -20.0, 0.3, 40.0, 0.0, 0.0])
    np.testing.assert_allclose(nodes.explained(model, np.zeros((1, 6)), data), 0.0, atol=1e-12)
    np.testing.assert_allclose(nodes.explained(model, theta[None], data), [[1.0, 1.0, 0.0]], atol=1e-6)


def test_it_does_not_matter_how_rows_are_cut(monkeypatch):
    model = MODELS["mixed"]
    data, thetas = data_of(model, 300), parameters_of(model)
    whole = nodes.explained(model, thetas, data)
    monkeypatch.setattr(nodes, "CELLS_AT_ONCE", 2000)
    np.testing.assert_allclose(nodes.explained(model, thetas, data), whole, rtol=1e-10)
    monkeypatch.setattr(nodes, "MIN_ROWS", 100)
    monkeypatch.setattr(nodes, "MAX_CELLS", 1.0)
    part = nodes.explained(model, thetas, data)
    assert not np.array_equal(part, whole)
    np.testing.assert_allclose(part, whole, atol=0.1)


def test_very_large_counts_are_integrated_and_endless_ones_left_out():
    model = dfd.models.Network(dfd.Counts(2), kinds="poisson")
    rows = np.random.default_rng(0).poisson(700.0, (4, 2))
    data = dfd.Dataset.of(rows, model.domain)
    theta = np.array([6.4, 6.3, 0.3])
    found = nodes.explained(model, theta[None], data)[0]
    slow = share_explained(log_mass_of(model, theta), data, model.domain, 2500)
    np.testing.assert_allclose(found, slow, rtol=1e-6)
    geometric = dfd.models.Network(dfd.Counts(2))  # without log x! the masses grow for ever
    endless = nodes.explained(geometric, np.array([[0.1, -0.5, 0.2, 0.0, 1.0]]), data_of(geometric))
    assert np.isnan(endless[0, 0]) and np.isfinite(endless[0, 1])


def test_a_listing_sums_as_all_values_do():
    for reach in (200, 300, 5000, 100000):
        x, mass = listing(reach)
        assert x.max() >= 0.98 * reach and len(x) < 2000
        rate, power = 0.3 * reach, np.arange(2.5 * reach)
        height, whole = (np.exp(-0.5 * ((at - rate) / (0.05 * reach)) ** 2) for at in (x, power))
        assert mass @ height == pytest.approx(whole.sum(), rel=1e-8)
        assert (mass * x) @ height == pytest.approx(power @ whole, rel=1e-8)


def grouped(name):
    """Three columns whose intercepts and edges differ between groups."""
    rng = np.random.default_rng(5)
    group = rng.integers(2, size=300)
    if name == "ising-network":
        tea, rain = rng.integers(2, size=(2, 300))
        cake = np.where(rng.random(300) < 0.4 + 0.4 * group, tea, rng.integers(2, size=300))
    else:
        tea, rain = rng.poisson(1.5, size=(2, 300))
        cake = rng.poisson(2.0 / (1.0 + group * tea))
    frame = pd.DataFrame({"tea": tea, "cake": cake, "rain": rain, "group": group})
    return small_fits.quietly(name, frame, formula="~ group", interaction="~ group", check=False)


def of_covariates(fit, theta):
    """The mass of each row at its own intercepts and interactions, from the coefficients by hand."""
    base, named = fit.model.plain, fit.model.space.unflatten(theta)

    def log_mass(i, x):
        own = []
        for p in base.space.parameters:
            term = fit.model.space.predictor(p.name)
            z = fit.data.given[i, term.first : term.first + term.terms]
            predictor = sum(z[q] * named[p.name].reshape(len(z), -1)[q] for q in range(len(z)))
            own.append(np.asarray(p.from_link(predictor)))
        return log_mass_of(base, np.concatenate(own))(i, x)

    return log_mass


@pytest.mark.parametrize("name", ["ising-network", "poisson-graphical"])
@pytest.mark.daily("ising-network")
def test_with_covariates_every_row_has_its_own_parameters(name):
    fit = grouped(name)
    theta = fit.joint_draws[:2]
    few = fit.data.thinned(15)
    found = nodes.explained(fit.model, theta, few)
    part = replace(fit, data=few)
    slow = [share_explained(of_covariates(part, row), few, fit.model.domain, 40) for row in theta]
    np.testing.assert_allclose(found, slow, rtol=1e-7)
    table = fit.nodes()
    assert table["strength_by_chance"].isna().all() and table["predictability_by_chance"].isna().all()
    edges = dfd.evidence.edges(fit)
    own = edges[(edges["from"] == "tea") | (edges["to"] == "tea")]
    assert table.loc["tea", "influence"] == pytest.approx(sum(abs(own["mean"]) * own["sign"]), rel=1e-6)


@pytest.mark.parametrize("kind", ["network", "count_network"])
def test_strength_and_influence_are_sums_over_the_edges_of_draws(kind):
    fit = getattr(small_fits, kind)()
    model, names, table = fit.model, fit.data.columns, fit.nodes()
    first, edges = model.space.first["interaction"], model.graph.pairs
    for j, name in enumerate(names):
        strength, influence = [], []
        for theta in fit.joint_draws:
            own = [theta[first + e] for e, pair in enumerate(edges) if j in pair]
            strength.append(sum(map(abs, own)))
            influence.append(model.sign * sum(own))
        row = table.loc[name]
        assert row["strength"] == pytest.approx(np.mean(strength)) and row["influence"] == pytest.approx(
            np.mean(influence)
        )
        for q, end in ((0.025, "low"), (0.975, "high")):
            assert row[f"strength_{end}"] == pytest.approx(np.quantile(strength, q))
            assert row[f"influence_{end}"] == pytest.approx(np.quantile(influence, q))
        assert 0 <= row["predictability_low"] <= row["predictability"] <= row["predictability_high"] < 1
    assert table["strength"].is_monotonic_decreasing and sorted(table.index) == sorted(names)


def test_what_is_there_by_chance_alone():
    """Independent columns: the sums over 12 nodes are those expected, and 95 % of influences are about zero.

    Over twenty other data sets the ratios were 1.00 and 0.94 on average, with standard deviations of 0.04 and 0.06; a
    ratio more than 0.3 away from 1 is rarer than once in a thousand.
    """
    rng = np.random.default_rng(4)
    rows = np.column_stack([rng.integers(2, size=(500, 8)), rng.integers(1, 5, size=(500, 4))])
    table = small_fits.quietly("network", rows, check=False).nodes()
    for name in ("strength", "predictability"):
        assert table[name].sum() / table[f"{name}_by_chance"].sum() == pytest.approx(1.0, abs=0.3)
    assert (table["strength_low"] > 0).all()  # which is why the other column is there
    assert ((table["influence_low"] < 0) & (table["influence_high"] > 0)).mean() > 0.7


def test_a_strong_node_stands_out_of_chance():
    table = small_fits.network().nodes()
    a, b, c, d = small_fits.NAMES
    assert set(table.index[:3]) == {a, b, c} and table.index[0] == b
    assert table.loc[b, "strength_low"] > 2 * table.loc[b, "strength_by_chance"]
    assert table.loc[b, "predictability_low"] > 5 * table.loc[b, "predictability_by_chance"]
    assert table.loc[d, "strength_low"] < table.loc[d, "strength_by_chance"]


def test_nodes_after_saving_and_of_what_is_no_network(tmp_path):
    fit = small_fits.network()
    again = dfd.load(fit.save(tmp_path / "f.nc")).nodes()
    pd.testing.assert_frame_equal(again, fit.nodes(), rtol=1e-6)
    with pytest.raises(dfd.errors.ModelError, match="no parameter for each edge"):
        small_fits.counts().nodes()
