"""Labels without an order: all pairs are neighbours, so nothing depends on the order in which labels are given."""

import itertools
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest

import dfdbayes as dfd
import oracles
from dfdbayes.core import linear as exponential_tables
from dfdbayes.core.dataset import blocks_of, clusters_of
from dfdbayes.core.objective import Objective
from dfdbayes.results.goodness_of_fit import goodness_of_fit

COLOURS = ("red", "green", "blue", "grey")
RNG = np.random.default_rng(8)
PEOPLE = pd.DataFrame(
    {"hat": RNG.choice(COLOURS, 300, p=[0.4, 0.3, 0.2, 0.1]), "coat": RNG.choice(COLOURS, 300, p=[0.1, 0.2, 0.3, 0.4])}
)
PEOPLE["coat"] = np.where(RNG.random(300) < 0.3, PEOPLE["hat"], PEOPLE["coat"])
LOSSES = ("dfd", "ratio", "pseudo", "likelihood")
TRUTH = {"red": 0.3, "blue": -0.4, "alike": 0.5}
QUICK = {"sampler": "laplace", "draws": 200, "progress": False}


def outfits(labels, domain=None):
    """Hats and coats: some colours are liked more than others, and the two may match."""
    red, blue = labels.index("red"), labels.index("blue")

    def log_mass(theta, x):
        liked = theta["red"] * jnp.sum(x == red) + theta["blue"] * jnp.sum(x == blue)
        return liked + theta["alike"] * (x[0] == x[1])

    priors = {name: dist.Normal(0.0, 2.0) for name in ("red", "blue", "alike")}
    return dfd.Model(log_mass, domain or dfd.Categories(2, labels), priors)


ORDERS = [COLOURS, ("grey", "red", "blue", "green")]


@pytest.mark.parametrize("loss", ["dfd", "ratio"])
@pytest.mark.daily("ratio")
def test_the_order_of_labels_changes_no_answer(loss):
    """Estimates and calibrated widths of a user's model, fitted to texts."""
    tables = [dfd.fit(outfits(labels), PEOPLE, loss=loss, **QUICK).summary() for labels in ORDERS]
    np.testing.assert_allclose(tables[1][["mean", "sd"]], tables[0][["mean", "sd"]], rtol=1e-7)


@pytest.mark.parametrize(
    ("domain", "losses", "same"),
    [(dfd.Categories(2, "0123"), LOSSES, True), (dfd.Finite(2, 4), ("dfd", "ratio"), False)],
    ids=["categories", "cycle"],
)
@pytest.mark.daily("cycle")
def test_every_permutation_of_labels_gives_one_loss(domain, losses, same):
    """All 24 of four labels; on the paper's cycle, which `Finite` keeps, they give different ones."""

    def log_mass(theta, x):
        i, j = x.astype(int)
        return theta["hat"][i] + theta["coat"][j] + theta["alike"] * (i == j)

    normal = dist.Normal(jnp.zeros(4), 1.0)
    model = dfd.Model(log_mass, domain, {"hat": normal, "coat": normal, "alike": dist.Normal(0.0, 1.0)})
    hat, coat, rows = RNG.normal(size=4), RNG.normal(size=4), PEOPLE.map(COLOURS.index).to_numpy()
    for loss in losses:
        values = []
        for turned in map(np.array, itertools.permutations(range(4))):
            theta = {"hat": hat[np.argsort(turned)], "coat": coat[np.argsort(turned)], "alike": 0.5}
            values.append(dfd.objective(model, turned[rows], loss)(theta))
        assert (np.ptp(values) < 1e-9) == same


def test_goodness_of_fit_pools_rare_categories_whatever_their_order():
    """Of one column: with rare ones, not with those that happen to stand beside them."""
    shares, found = {"red": 200, "green": 120, "blue": 40, "grey": 2, "black": 3}, []
    data = pd.DataFrame({"hat": np.repeat(list(shares), list(shares.values()))})
    for labels in (tuple(shares), ("grey", "green", "black", "red", "blue")):
        domain, log = dfd.Categories(1, labels), jnp.log(jnp.array([1.0 * shares[label] for label in labels]))
        model = dfd.Model(
            lambda t, x, log=log: t["power"] * log[x[0].astype(int)], domain, {"power": dist.Normal(1.0, 1.0)}
        )
        found.append(goodness_of_fit(model, np.array([1.2]), dfd.Dataset.of(data, domain)).p_value)
    assert found[0] == pytest.approx(found[1], abs=0.06)  # other random numbers: four standard errors


def test_divergence_of_arrays_knows_no_order():
    domain = dfd.Categories(2, COLOURS)
    p, q = RNG.random((2, 4, 4))
    turned = dfd.divergence(p[np.ix_([2, 0, 3, 1], [1, 3, 0, 2])], q[np.ix_([2, 0, 3, 1], [1, 3, 0, 2])], domain)
    assert turned == pytest.approx(dfd.divergence(p, q, domain), rel=1e-12)
    assert turned > dfd.divergence(p, q)  # a cycle is part of all pairs


@pytest.mark.parametrize("loss", [*LOSSES, "ksd"])
@pytest.mark.daily("dfd", "pseudo", "ksd")
def test_two_labels_are_a_flip(loss):
    """All kinds of neighbours are one for two states, factors included."""
    rows = RNG.integers(0, 2, (50, 2))

    def log_mass(theta, x):
        return theta["a"] * x[0] + theta["b"] * x[0] * x[1]

    priors = {"a": dist.Normal(0.0, 1.0), "b": dist.Normal(0.0, 1.0)}
    values = [
        dfd.objective(dfd.Model(log_mass, domain, priors), rows, loss)({"a": 0.4, "b": -0.7})
        for domain in (dfd.Binary(2), dfd.Ordinal(2, 2), dfd.Categories(2, "01"))
    ]
    assert values[0] == values[1] == values[2]


def test_ratio_matching_is_twice_the_brier_score_of_every_pair():
    log, weights = RNG.normal(size=5), RNG.random(5)
    model = dfd.Model(lambda t, x: t["scale"] * jnp.asarray(log)[x[0].astype(int)], dfd.Categories(1, "01234"),
                      {"scale": dist.Normal(0.0, 1.0)})  # fmt: skip
    brier = 0.0
    for a, b in itertools.combinations(range(5), 2):
        chance = 1 / (1 + np.exp(log[b] - log[a]))  # of a rather than b
        brier += weights[a] * (1 - chance) ** 2 + weights[b] * chance**2
    data = dfd.Dataset.of(np.arange(5)[:, None], weights=weights)
    constant = 4 * weights.sum()
    assert dfd.objective(model, data, "ratio")({"scale": 1.0}) + constant == pytest.approx(2 * brier, rel=1e-12)


# -- who owns the moves ------------------------------------------------------------------------

GRID = dfd.graphs.grid(3, 4)
LATTICE = replace(dfd.models.Potts(GRID, states=3), domain=dfd.Categories(12, "012"))
COLD = {"temperature": 1.2}


def slow_lattice(rows, sites=range(12)):
    """The divergence's terms of some sites, by the definition."""

    def log_mass(x):
        return sum(x[i] == x[j] for i, j in GRID.edges) / COLD["temperature"]

    total = 0.0
    for x in (tuple(int(v) for v in row) for row in rows):
        for j in sites:
            for other in {0, 1, 2} - {x[j]}:
                ratio = np.exp(log_mass(oracles.moved(x, j, other)) - log_mass(x))
                total += ratio**2 - 2 / ratio
    return total


def test_blocks_own_all_moves_of_their_sites():
    row, blocks = RNG.integers(0, 3, (1, 12)), np.repeat([0, 1, 2], 4)
    objective = Objective(LATTICE, dfd.Dataset.of(row), dfd.losses.FISHER, blocks_of(blocks))
    for block, weights in enumerate(np.eye(3)):
        assert objective(COLD, weights) == pytest.approx(slow_lattice(row, np.flatnonzero(blocks == block)), rel=1e-12)


def test_clusters_own_all_moves_of_their_rows():
    rows = RNG.integers(0, 3, (6, 12))
    data = replace(dfd.Dataset.of(rows), cluster=np.array([0, 1, 1, 0, 2, 2]))
    objective = Objective(LATTICE, data, dfd.losses.FISHER, clusters_of(data))
    for cluster, weights in enumerate(np.eye(3)):
        assert objective(COLD, weights) == pytest.approx(slow_lattice(data.rows[data.cluster == cluster]), rel=1e-12)


def test_interchangeable_rows_own_the_same_moves(monkeypatch):
    rows = RNG.integers(0, 3, (60, 12))
    rows = np.concatenate([rows, (rows + 1) % 3])  # other labels for the same patterns
    plain = dfd.objective(LATTICE, rows)
    assert len(plain.units.weights) > 100
    monkeypatch.setattr(exponential_tables, "MANY_ROWS", 10)
    classed = dfd.objective(LATTICE, rows)
    assert len(classed.units.weights) <= 60
    assert classed(COLD) == pytest.approx(plain(COLD), rel=1e-12)


# -- covariates, robust weights, advice --------------------------------------------------------


@pytest.mark.parametrize("loss", ["dfd", "ratio"])
@pytest.mark.daily("ratio")
def test_a_regression_of_categories_by_its_definition(loss):
    age = np.linspace(-1.0, 1.0, 30)
    frame = pd.DataFrame(
        {"hat": np.resize(["red", "grey", "blue", "red"], 30), "size": np.resize([0, 1, 2], 30), "age": age}
    )
    made = {}
    for labels in (("red", "blue", "grey"), ("grey", "blue", "red")):
        red = labels.index("red")
        model = dfd.Model(
            lambda t, x, red=red: t["red"] * (x[0] == red) + t["link"] * x[1] * (x[0] == red) - x[1],
            dfd.Categories(1, labels) * dfd.Counts(1),
            {"red": dist.Normal(0, 1), "link": dist.Normal(0, 1)},
            formulas={"red": "~ age"},
        )
        fit = dfd.fit(model, frame, columns=["hat", "size"], loss="ratio", beta=1.0, **QUICK)
        made[labels] = dfd.objective(fit.model, fit.data, loss)([0.2, 0.5, -0.1])
    slow = 0.0
    for hat, size, z in frame.itertuples(index=False):

        def log_mass(x, z=z):
            return (0.2 + 0.5 * z - 0.1 * x[1]) * (x[0] == 0) - x[1]

        row = [(["red", "blue", "grey"].index(hat), size)]
        definition = {"dfd": oracles.fisher_loss, "ratio": oracles.ratio_loss}[loss]
        slow += definition(log_mass, row, [1.0], dfd.Categories(1, "abc") * dfd.Counts(1))
    np.testing.assert_allclose(list(made.values()), slow, rtol=1e-10)


@dataclass(frozen=True)
class Downweighted(dfd.losses.LocalLoss):
    """Hats and coats that match count less."""

    def weight(self, rows):
        return np.where(rows[:, 0] == rows[:, 1], 0.2, 1.0)

    def scales(self, sites):
        plus = np.empty(sites.up.shape)
        for column, j in enumerate(sites.j):
            moved = sites.rows.copy()
            moved[:, j] = sites.up[:, column]
            plus[:, column] = self.weight(moved)
        return np.repeat(self.weight(sites.rows)[:, None], plus.shape[1], axis=1), plus


@dataclass(frozen=True)
class ByCoordinate(Downweighted):
    def scales(self, sites):
        return np.ones(sites.rows.shape), np.ones(sites.rows.shape)


def robust(kind):
    fisher = dfd.losses.FISHER
    return kind("robust", "robust", fisher.minus, fisher.plus, bounded=False)


def test_robust_weights_belong_to_moves():
    values = [dfd.objective(outfits(labels), PEOPLE, robust(Downweighted))(TRUTH) for labels in ORDERS]
    np.testing.assert_allclose(values, values[0], rtol=1e-12)
    assert abs(values[0] - dfd.objective(outfits(COLOURS), PEOPLE)(TRUTH)) > 1.0
    with pytest.raises(dfd.errors.SettingError, match=r"shape \(16, 2\).*6 moves.*domain\.moves"):
        dfd.objective(outfits(COLOURS), PEOPLE, robust(ByCoordinate))(TRUTH)


def test_advice_squares_no_ratio_to_a_rare_category():
    def model(domain):
        return dfd.Model(lambda t, x: t["a"] * x.sum(), domain, {"a": dist.Normal(0.0, 1.0)})

    one, counts = dfd.Categories(1, COLOURS), dfd.Counts(1)
    data = dfd.Dataset.of([[0, 3], [1, 2]])
    advice = {
        domain: model(domain).advise(data)[0] for domain in (one, one * dfd.Binary(1), one * counts, counts * counts)
    }
    assert list(advice.values()) == ["likelihood", "pseudo", "pseudo", "pseudo"]
    assert model(one * counts).advise(dfd.Dataset.of([[0, 3], [1, 10**6]]))[0] == "ratio"
    assert model(dfd.Integers(2)).advise(data)[0] == "ratio"
    assert model(dfd.Categories(2, "01")).advise(data)[0] == model(dfd.Binary(2)).advise(data)[0] == "pseudo"
    assert model(dfd.Ordinal(1, 4)).advise(data)[0] == "likelihood"
    assert model(counts).advise(dfd.Dataset.of([4, 5, 6, 7, 8, 2, 14, 1, 12]))[0] == "dfd"


def test_labels_that_are_numbers_are_found_beside_missing_values():
    """Whole numbers become floats where one is missing, and are the same labels."""
    column = pd.DataFrame({"x": [1.0, 2.0, np.nan, 1.0]})
    rows = dfd.Dataset.of(column, domain=dfd.Categories(1, ["1", "2"]), missing="drop").rows
    assert sorted(rows[:, 0].tolist()) == [0, 1]
    with pytest.raises(dfd.errors.DataError, match=r"'1\.5'"):
        dfd.Dataset.of(column.replace(2.0, 1.5), domain=dfd.Categories(1, ["1", "2"]), missing="drop")
