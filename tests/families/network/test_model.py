"""Networks of columns as they are: fast formulas against definitions, and what must not depend on coding."""

import os
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
import oracles
from dfdbayes.families.network import kinds, mixed
from dfdbayes.families.network import terms as network_tables

FINITE = {
    "ordinal": dfd.models.Network(dfd.Ordinal(3, 4)),
    "mixed": dfd.models.Network(dfd.Ordinal(1, (1, 2, 5)) * dfd.Binary(1) * dfd.Ordinal(1, 2) * dfd.Spins(1)),
    "blume-capel": dfd.models.Network(
        dfd.Ordinal(2, 5) * dfd.Ordinal(1, 3), kinds={0: "blume-capel", 2: "blume-capel"}
    ),
    "on a path": dfd.models.Network(dfd.Ordinal(3, 3), graph=[(0, 1), (1, 2)]),
    "two values each": dfd.models.Network(dfd.Binary(1) * dfd.Spins(1) * dfd.Finite(1, [3, 7])),
}
COUNTS = {
    "roots": dfd.models.Network(dfd.Counts(3)),
    "poisson": dfd.models.Network(dfd.Counts(2) * dfd.Ordinal(1, 3), kinds={0: "poisson"}),
}


def data_of(model, n=30, seed=0):
    rng = np.random.default_rng(seed)
    columns = [rng.poisson(2.0, n) if k.counts else rng.choice(k.levels, n) for k in model.kinds]
    return np.column_stack(columns)


def parameters_of(model, seed=1):
    rng = np.random.default_rng(seed)
    theta = 0.4 * rng.standard_normal(model.space.size)
    first, free = model.space.first.get("nu"), sum(kind.name == "count" for kind in model.kinds)
    if first is not None:
        theta[first : first + free] = 0.7 + rng.random(free)
    return theta


def log_mass_of(model, theta):
    """The formula of the module, one node and one edge at a time."""
    named = {name: list(np.ravel(values)) for name, values in model.space.unflatten(theta).items()}

    def log_mass(x):
        left = {name: iter(values) for name, values in named.items()}
        total, seen = 0.0, []
        for kind, value in zip(model.kinds, x, strict=True):
            levels = kind.levels
            away = value - levels[0] if kind.coordinate.ordered else value
            seen.append(np.sqrt(value) if kind.counts else away)
            if kind.name == "ordinal":
                thresholds = [0.0, *(next(left["threshold"]) for _ in levels[1:])]
                total += thresholds[levels.index(value)]
            else:
                total += next(left["intercept"]) * away
            if kind.name == "blume-capel":
                total += next(left["quadratic"]) * (value - levels[len(levels) // 2]) ** 2
            if kind.counts:
                nu = next(left["nu"]) if kind.name == "count" else 1.0
                total -= nu * sum(np.log(i) for i in range(2, value + 1))
        for (i, j), weight in zip(model.graph.pairs, named.get("interaction", []), strict=True):
            total += weight * seen[i] * seen[j]
        return total

    return log_mass


@pytest.mark.parametrize("name", [*FINITE, *COUNTS])
def test_the_log_mass_is_its_formula(name):
    model = (FINITE | COUNTS)[name]
    theta = parameters_of(model)
    log_mass, named = log_mass_of(model, theta), model.space.unflatten(theta)
    fast = jax.jit(lambda x: model.log_mass_at(named, x))
    for x in data_of(model)[:10]:
        found = float(fast(np.array(x, float)))
        assert found == pytest.approx(log_mass(tuple(map(int, x))), abs=1e-10)


@pytest.mark.parametrize("loss", ["ratio", "dfd", "pseudo"])
@pytest.mark.parametrize("name", [*FINITE, *COUNTS])
@pytest.mark.daily("ordinal-ratio", "mixed-dfd", "poisson-pseudo", "two values each-*")
def test_losses_and_their_derivatives_are_their_definitions(name, loss, monkeypatch):
    monkeypatch.setattr(network_tables, "ROWS_IN_BLOCK", 4)
    model = (FINITE | COUNTS)[name]
    rows, theta = data_of(model), parameters_of(model)
    objective = dfd.objective(model, rows, loss)
    counts = objective.data.counts
    if not (loss == "pseudo" and name in COUNTS):
        slow = {"ratio": oracles.ratio_loss, "dfd": oracles.fisher_loss, "pseudo": oracles.pseudo_loss}[loss]
        expected = slow(log_mass_of(model, theta), objective.data.rows, counts, model.domain)
        assert objective(theta) == pytest.approx(expected, rel=1e-11)
    value, gradient, hessian = objective.second_order(theta)
    assert value == pytest.approx(objective(theta), rel=1e-12)
    np.testing.assert_allclose(gradient, objective.gradient(theta), atol=1e-9)
    np.testing.assert_allclose(hessian, jax.jit(jax.hessian(objective.traced))(theta), atol=1e-8)
    np.testing.assert_allclose(counts @ objective.unit_gradients(theta), gradient, atol=1e-9)


def test_conditionals_of_counts_are_sums_far_beyond_the_data():
    model = COUNTS["roots"]
    rows, theta = data_of(model, 8), parameters_of(model)
    log_mass, total = log_mass_of(model, theta), 0.0
    for row in rows:
        x = tuple(map(int, row))
        for j in range(3):
            total += np.logaddexp.reduce([log_mass(oracles.moved(x, j, v)) for v in range(200)]) - log_mass(x)
    assert dfd.objective(model, rows, "pseudo")(theta) == pytest.approx(total, rel=1e-10)


def test_two_values_of_different_distance_are_fitted_as_their_definition():
    """The pseudo-likelihood of 0/1 beside -1/+1 is that of two logistic regressions with their own steps."""
    rows = np.array([[0, -1]] * 40 + [[0, 1]] * 25 + [[1, -1]] * 20 + [[1, 1]] * 45)
    model = dfd.models.Network(dfd.Finite(1, [0, 1]) * dfd.Finite(1, [-1, 1]))
    found = dfd.minimise(dfd.objective(model, rows, "pseudo")).vector
    # Saturated: the conditional probabilities are those of the table, whose log odds the parameters are.
    both, first, second, neither = np.log([45.0, 20.0, 25.0, 40.0])
    interaction = 0.5 * (both - first - second + neither)
    expected = {
        "intercept[0]": 0.5 * (both + first - second - neither), "intercept[1]": 0.5 * (second - neither),
        "interaction[0,1]": interaction,
    }  # fmt: skip
    np.testing.assert_allclose(found, [expected[name] for name in model.space.names], atol=1e-6)


def test_two_values_of_different_distance_are_drawn_as_they_are():
    model = dfd.models.Network(dfd.Binary(1) * dfd.Spins(1) * dfd.Finite(1, [3, 7]))
    theta = model.space.unflatten(np.array([0.3, 0.1, -0.2, 0.4, 0.1, -0.1]))
    points = model.domain.points()
    chance = np.exp([log_mass_of(model, np.array([0.3, 0.1, -0.2, 0.4, 0.1, -0.1]))(tuple(x)) for x in points])
    drawn = dfd.simulate(model, theta, 4000, method="gibbs", seed=1).rows
    often = (drawn[:, None] == points[None]).all(axis=2).mean(axis=0)
    np.testing.assert_allclose(often, chance / chance.sum(), atol=0.03)


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ([[0, 1]] * 2, ": a log odds ratio"),
        ([[-1, 1]] * 2, ": a quarter of a log odds ratio"),
        ([[3, 7]] * 2, ": a log odds ratio divided by 16"),
        ([[0, 1], [-1, 1]], ": a log odds ratio divided by the distances between the two values of each"),
    ],
)
def test_interactions_of_two_values_are_said_in_log_odds(levels, said):
    model = dfd.models.Network(dfd.Finite(1, levels[0]) * dfd.Finite(1, levels[1]))
    assert model.meanings["interaction"].endswith(said)


@pytest.mark.parametrize("kinds", ["count", "poisson", {0: "poisson"}, {1: "poisson"}])
@pytest.mark.parametrize("columns", [2, 3])
def test_the_constant_of_counts_without_edges_is_the_sum_of_their_masses(kinds, columns):
    model = dfd.models.Network(dfd.Counts(columns), graph=dfd.graphs.empty(columns), kinds=kinds)
    theta = parameters_of(model)
    log_mass, total = log_mass_of(model, theta), 0.0
    for j in range(columns):
        total += np.logaddexp.reduce([log_mass(oracles.moved((0,) * columns, j, v)) for v in range(200)])
    found = float(model.log_normaliser(model.space.unflatten(theta)))
    assert found == pytest.approx(total, rel=1e-10)


@pytest.fixture(scope="module")
def answers():
    model = dfd.models.Network(dfd.Ordinal(3, 4))
    theta = {"threshold": [0.5, 0.3, -0.5] * 3, "interaction": [0.3, 0.0, -0.2]}
    rows = dfd.simulate(model, theta, 400, seed=3).rows
    return pd.DataFrame(rows + 1, columns=["calm", "happy", "tense"])


def interactions(frame, **settings):
    fit = dfd.fit("network", frame, sampler="laplace", progress=False, **settings)
    table = fit.summary()
    return fit, table[table.index.str.startswith("interaction")]


def test_reversing_an_item_flips_signs_and_nothing_else(answers):
    _, before = interactions(answers)
    _, after = interactions(answers.assign(happy=5 - answers["happy"]))
    sign = np.array([-1.0, 1.0, -1.0])  # of calm-happy, calm-tense and happy-tense
    # The prior of thresholds is not symmetric: it is all that may differ.
    np.testing.assert_allclose(after["mean"], sign * before["mean"], atol=0.1 * before["sd"].min())
    np.testing.assert_allclose(after["sd"], before["sd"], rtol=0.05)


def test_permuting_columns_permutes(answers):
    first, _ = interactions(answers)
    again, _ = interactions(answers[["tense", "calm", "happy"]])
    before, after = first.minimum.theta["interaction"], again.minimum.theta["interaction"]
    np.testing.assert_allclose(after, before[[1, 2, 0]], atol=1e-7)


@pytest.mark.parametrize("loss", ["ratio", "pseudo"])
def test_a_binary_column_is_an_ordinal_one_with_two_levels(loss):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (300, 3))
    binary, ordinal = (dfd.models.Network(domain) for domain in (dfd.Binary(3), dfd.Ordinal(3, 2)))
    one, other = (dfd.minimise(dfd.objective(model, rows, loss)) for model in (binary, ordinal))
    ising = dfd.minimise(dfd.objective(dfd.models.IsingNetwork(3), rows, loss))
    np.testing.assert_allclose(one.vector, ising.vector, atol=1e-8)
    np.testing.assert_allclose(one.theta["intercept"], other.theta["threshold"], atol=1e-8)
    np.testing.assert_allclose(one.theta["interaction"], other.theta["interaction"], atol=1e-8)


def test_kinds_are_guessed_and_said_and_given(answers):
    frame = answers.assign(smokes=answers["calm"] % 2, visits=np.random.default_rng(0).poisson(9.0, len(answers)))
    data = dfd.Dataset.of(frame)
    model = mixed.for_data(data)
    assert [kind.name for kind in model.kinds] == ["ordinal"] * 3 + ["binary", "count"]
    assert model.title == "a network of 3 ordinal, 1 binary and 1 count columns"
    other = mixed.for_data(data, kinds={"calm": "blume-capel", "visits": "poisson"})
    assert [kind.name for kind in other.kinds] == ["blume-capel", "ordinal", "ordinal", "binary", "poisson"]
    with pytest.raises(dfd.errors.ModelError, match="'visit', which is not a column"):
        mixed.for_data(data, kinds={"visit": "count"})
    with pytest.raises(dfd.errors.ModelError, match="neither levels of a short scale nor counts"):
        mixed.for_data(dfd.Dataset.of(np.array([[-40, 1], [3, 0], [50, 1]])))
    with pytest.raises(dfd.errors.ModelError, match="Binary, Ordinal and Counts"):
        dfd.models.Network(dfd.Finite(2, 3))
    with pytest.raises(dfd.errors.ModelError, match="cannot be of kind 'count'"):
        dfd.models.Network(dfd.Ordinal(2, 3), kinds=["count", "ordinal"])


def test_few_counts_beside_many_are_counts_too():
    assert mixed.guess([(0, 1, 2), (0, 5, 80)], ["rare", "common"], {}) == ["count", "count"]
    assert mixed.guess([(0, 1, 2), (0, 1, 4)], ["a", "b"], {}) == ["ordinal", "ordinal"]


def test_a_level_that_nobody_chose_is_no_level(answers):
    frame = answers[answers["calm"] != 3]
    model = mixed.for_data(dfd.Dataset.of(frame))
    assert model.kinds[0].levels == (1, 2, 4)
    assert list(model.kinds[0].edge_statistic(np.array([1, 2, 4]))) == [0.0, 1.0, 3.0]
    with pytest.warns(dfd.errors.DataWarning, match="nobody chose calm = 3"):
        fit, table = interactions(frame, check=False)
    assert np.isfinite(table.to_numpy(float)[:, :3]).all()
    assert "threshold[calm,4]" in fit.summary().index


def test_counts_that_vary_more_than_geometric_ones_lie_on_the_edge():
    """Gamma mixtures that rise together: nu is zero, the edge is positive, and nothing runs away."""
    rng = np.random.default_rng(1)
    rates = rng.gamma(0.7, 4.0, (400, 1))
    frame = pd.DataFrame(rng.poisson(rates * np.ones(2)), columns=["a", "b"])
    with pytest.warns(dfd.errors.BoundaryWarning, match=r"at the boundary of nu\[a\]"):
        fit, table = interactions(frame, check=False)
    assert fit.minimum.outcome == "at the boundary" and (fit.minimum.theta["nu"] == 0).all()
    nu = fit.summary().filter(like="nu", axis=0)
    assert (nu["eti95_lb"] == 0).all() and (nu["eti95_ub"] < 0.5).all()
    assert table.loc["interaction[a,b]", "eti95_lb"] > 0


def test_a_saved_network_knows_its_columns(answers, tmp_path):
    fit, _ = interactions(answers, check=False)
    fit.save(tmp_path / "run")
    loaded = dfd.load(tmp_path / "run")
    assert loaded.model is not None
    assert [kind.levels for kind in loaded.model.kinds] == [(1, 2, 3, 4)] * 3
    np.testing.assert_allclose(loaded.summary()["mean"], fit.summary()["mean"])


@pytest.mark.skipif("DFDBAYES_DATA" not in os.environ, reason="needs the data of bgms")
def test_boredom_items_have_the_interactions_that_bgms_found():
    """bgms 0.1.6.3 without edge selection; the calibrated deviations are about 1.9 times its own."""
    frame = pd.read_csv(Path(os.environ["DFDBAYES_DATA"]) / "boredom.csv").iloc[:, 1:7]
    _, table = interactions(frame)
    known = {
        "loose_ends,entertain": (0.132, 0.013), "entertain,keep_interest": (0.186, 0.015),
        "stimulation,keep_interest": (0.181, 0.014), "repetitive,keep_interest": (0.029, 0.013),
    }  # fmt: skip
    for pair, (mean, deviation) in known.items():
        found = table.loc[f"interaction[{pair}]"]
        assert found["mean"] == pytest.approx(mean, abs=0.01)
        assert 1.5 < found["sd"] / deviation < 2.3


def test_kinds_have_words():
    assert kinds.by_name("count").coefficients == (kinds.INTERCEPT, kinds.NU)
    assert kinds.by_name("poisson").coefficients == (kinds.INTERCEPT, None)
    with pytest.raises(dfd.errors.ModelError, match="known: binary, blume-capel"):
        kinds.by_name("nominal")
    with pytest.raises(dfd.errors.ModelError, match="needs at least two levels"):
        kinds.by_name("ordinal", (3,))


def test_what_a_network_cannot_use_is_named(answers):
    with pytest.raises(dfd.errors.ModelError, match="column 'calm' has the same value, 3, in every row"):
        mixed.for_data(dfd.Dataset.of(answers.assign(calm=3)))
    with pytest.raises(dfd.errors.ModelError, match="no column can be of kind 'poisson'"):
        mixed.for_data(dfd.Dataset.of(answers), kinds="poisson")
    with pytest.raises(dfd.errors.ModelError, match="has the value 2, and cannot be of kind 'binary'"):
        mixed.for_data(dfd.Dataset.of(answers), kinds={"calm": "binary"})
    with pytest.raises(dfd.errors.ModelError, match="give the model itself"):
        dfd.models.by_name("network", 3)


def test_the_command_line_takes_kinds():
    from dfdbayes.cli.arguments import kinds_of

    assert kinds_of("calm=blume-capel, visits=poisson") == {"calm": "blume-capel", "visits": "poisson"}
    assert kinds_of("blume-capel") == "blume-capel"


def test_the_default_kinds_of_columns_are_not_those_first_in_the_alphabet():
    model = dfd.models.Network(dfd.Ordinal(1, 3) * dfd.Binary(1) * dfd.Counts(1) * dfd.Ordinal(1, 3))
    assert [kind.name for kind in model.kinds] == ["ordinal", "binary", "count", "ordinal"]
    assert [p.name for p in model.space.parameters] == ["intercept", "interaction", "nu", "threshold"]
