"""Networks whose nodes and edges depend on covariates: their table, differences of groups, and what shows them."""

import itertools
from dataclasses import replace

import jax
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from scipy import stats

import dfdbayes as dfd
from dfdbayes.backends.local import Local
from dfdbayes.core.dataset import Sites, rows_of
from dfdbayes.core.terms import Conditionals, Neighbours, View
from dfdbayes.data.formulas import Design
from dfdbayes.errors import ModelError, SettingError
from dfdbayes.families.network import evidence, groups, verdict
from dfdbayes.families.network import terms as network_tables
from dfdbayes.families.network.terms import LevelConditionals, NodeTerms
from dfdbayes.fitting.reading import read_regression
from dfdbayes.present.renderers import page as render
from dfdbayes.results.tree import assemble
from small_fits import quietly

ITEMS = ["a", "b", "c"]


def regression(model, frame, options=None, formula=None, **formulas):
    reading = {"columns": ITEMS, "weights": None, "missing": "refuse", "cluster": None, "weighting": "auto"}
    source, made = read_regression(Local(), model, frame, options, formula, formulas, reading, lambda done, total: None)
    return made, source.data


def rows(kind, size=30):
    rng = np.random.default_rng(3)
    values = rng.poisson(1.5, (size, 3)) if kind == "counts" else rng.integers(0, 2, (size, 3))
    if kind in ("levels", "mixed"):
        values = rng.choice([1, 2, 3, 5], (size, 3))
    if kind == "mixed":
        values[:, 1], values[:, 2] = rng.integers(0, 2, size), rng.poisson(1.5, size) + 20 * (np.arange(size) < 2)
    frame = pd.DataFrame(2 * values - 1 if kind == "spins" else values, columns=ITEMS)
    return frame.assign(group=rng.choice(["x", "y", "z"], size), age=rng.normal(0, 1, size))


BLUME = {"options": {"kinds": {"a": "blume-capel"}}}
NETWORKS = [
    ("network", "levels", {"formula": "~ group + age + offset(age)", "interaction": "~ age + offset(age)"}),
    ("network", "levels", BLUME | {"threshold": "~ 0 + group", "quadratic": "~ age", "interaction": "~ group"}),
    ("network", "mixed", {"formula": "~ age", "interaction": "~ age", "threshold": "~ group"}),
    ("network", "mixed", {"intercept": "~ group", "options": {"kinds": {"c": "poisson"}, "graph": [(0, 1), (1, 2)]}}),
]


@pytest.mark.parametrize(
    ("model", "kind", "settings"),
    [
        ("ising-network", "binary", {"formula": "~ group", "interaction": "~ group + offset(age)"}),
        ("ising-network", "binary", {"formula": "~ group * age + offset(age)"}),
        ("ising-network", "spins", {"interaction": "~ age", "options": {"graph": [(0, 1), (1, 2)], "states": "spins"}}),
        ("poisson-graphical", "counts", {"formula": "~ group"}),
        ("cmp-graphical", "counts", {"formula": "~ 0 + group"}),
        *NETWORKS,
    ],
)
@pytest.mark.daily("network-mixed-settings7")
def test_the_table_of_a_network_is_the_general_one(model, kind, settings):
    """Value, gradient, Hessian and the gradient of every row, against differentiation of the log mass itself."""
    made, data = regression(model, rows(kind), **settings)
    loss = dfd.losses.by_name("ratio")
    sites = Sites(data, made.domain, rows_of(data), loss.scales)
    quick, slow = (p.terms for p in (made.terms_at(sites, View.NEIGHBOURS), Neighbours.of(made, sites)))
    assert isinstance(quick, NodeTerms)
    rng = np.random.default_rng(1)
    theta, weights = 0.1 + 0.4 * rng.random(made.space.size), rng.random(len(slow.rows))

    def by_row(theta):
        return jax.grad(slow.value, argnums=2)(loss, theta, weights)

    def total(theta):
        return slow.value(loss, theta, weights)

    @jax.jit
    def found(theta):
        lines = quick.per_term_gradients(loss, theta, weights, 1)
        return *quick.second_order(loss, theta, weights), lines, quick.row_ratios(theta)

    @jax.jit
    def wanted(theta):
        hessian = jax.jacfwd(jax.grad(total))(theta)
        return total(theta), jax.grad(total)(theta), hessian, jax.jacfwd(by_row)(theta), slow.row_ratios(theta)

    for own, other in zip(found(theta), wanted(theta), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(quick.value(loss, theta, weights), found(theta)[0], rtol=1e-12)


def test_a_layout_is_as_its_example_says(monkeypatch):
    frame = rows("binary").replace({"group": {"z": "x"}})
    monkeypatch.setitem(globals(), "ITEMS", ["a", "b"])
    made, data = regression("ising-network", frame, formula="~ group")
    layout = network_tables.Layout.of(made, made.plain, np.ones((3, len(data.rows))))
    assert data.given.shape[1] == 2 and made.space.names[2] == "intercept[0:group=y]"
    assert layout.statistic.tolist() == [0, 0] and layout.edges == ((2, 4),)
    assert layout.covariate.tolist() == [[0, 0], [1, 1]] and layout.coefficient.tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(("model", "kind", "settings"), NETWORKS)
@pytest.mark.daily("network-levels-settings1", "network-mixed-settings2")
def test_the_conditionals_of_levels_are_the_general_ones(model, kind, settings, monkeypatch):
    """The pseudo-likelihood with its derivatives, in several blocks of rows, against the log mass itself."""
    monkeypatch.setattr(network_tables, "ROWS_IN_BLOCK", 4)
    made, data = regression(model, rows(kind), **settings)
    sites = Sites(data, made.domain, rows_of(data))
    quick, slow = (p.terms for p in (made.terms_at(sites, View.CONDITIONALS), Conditionals.of(made, sites)))
    assert isinstance(quick, LevelConditionals) and len(quick.s) > 1
    loss = dfd.losses.by_name("pseudo")
    rng = np.random.default_rng(1)
    theta, weights = 0.1 + 0.4 * rng.random(made.space.size), rng.random(len(slow.rows))
    weights[len(data.rows) :] = 0.0  # rows that only fill the last block

    def total(theta):
        return slow.value(loss, theta, weights)

    @jax.jit
    def found(theta):
        lines = quick.per_term_gradients(loss, theta, weights, 1)
        return *quick.second_order(loss, theta, weights), weights @ lines, quick.value(loss, theta, weights)

    @jax.jit
    def wanted(theta):
        value, gradient = total(theta), jax.grad(total)(theta)
        return value, gradient, jax.jacfwd(jax.grad(total))(theta), gradient, value

    for own, other in zip(found(theta), wanted(theta), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def two_groups():
    """Scales and a binary column whose thresholds, intercept and edges differ between two groups."""
    model, parts = dfd.models.Network(dfd.Ordinal(2, 3) * dfd.Binary(1)), []
    for level, shift, edges, size in (("x", 0.0, [0.5, 0.0, -0.3], 500), ("y", -0.6, [0.1, 0.4, -0.3], 400)):
        theta = {"threshold": np.array([0.5, -0.3] * 2) + shift, "intercept": [-0.5 - shift], "interaction": edges}
        found = dfd.simulate(model, theta, size, seed=len(parts)).rows
        parts.append(pd.DataFrame(found, columns=ITEMS).assign(group=level))
    return pd.concat(parts, ignore_index=True)


def test_a_network_of_groups_is_the_networks_of_the_groups(two_groups):
    """With terms for every group, and priors that say nothing; kinds are guessed in both."""
    flat = {name: dist.Normal(0.0, 100.0) for name in ("intercept", "interaction", "threshold")}
    terms = {"formula": "~ 0 + group", "interaction": "~ 0 + group", "columns": ITEMS}
    together = quietly("network", two_groups, prior=flat, check=False, draws=2000, **terms)
    assert together.settings["kinds"] == "kinds, as guessed: a, b ordinal (3 levels, 0 to 2); c binary"
    for place, (level, frame) in enumerate(two_groups.groupby("group")):
        alone = quietly("network", frame[ITEMS], prior=flat, check=False, draws=2000)
        for name, values in alone.minimum.theta.items():
            np.testing.assert_allclose(together.minimum.theta[name].reshape(2, -1)[place], values, atol=1e-7)
        own = alone.summary()
        same = together.summary().loc[[f"{name[:-1]}:group={level}]" for name in own.index]]
        # Weights of directions are shrunk to a common one, which the groups share or do not.
        np.testing.assert_allclose(same["sd"], own["sd"], rtol=0.1)
        assert (np.abs(same["mean"].to_numpy() - own["mean"].to_numpy()) < 0.15 * own["sd"].to_numpy()).all()
    differences = dfd.group_differences(together, "group")
    assert differences.levels == ("x", "y") and differences.p_value < 0.01


def test_a_constant_alone_is_the_plain_network(two_groups):
    constant = quietly("network", two_groups, formula="~ 1", interaction="~ 1", columns=ITEMS, check=False, draws=2000)
    plain = quietly("network", two_groups[ITEMS], check=False, draws=2000)
    assert constant.summary().index.equals(plain.summary().index)
    np.testing.assert_allclose(constant.minimum.vector, plain.minimum.vector, atol=1e-9)
    np.testing.assert_allclose(constant.summary()["sd"], plain.summary()["sd"], rtol=0.01)


def test_a_formula_is_about_all_that_nodes_own(two_groups):
    made, _ = regression("network", two_groups, formula="~ group", threshold="~ 1")
    assert made.formulas == {"intercept": "~ group", "threshold": "~ 1"}
    with pytest.raises(SettingError, match="formula= is about intercept, which has a formula of its own"):
        regression("network", two_groups, formula="~ group", threshold="~ 1", intercept="~ 1")


def test_nodes_follow_what_edges_depend_on(two_groups):
    """Groups that differ in their means alone do not differ in their edges."""
    model, parts = dfd.models.IsingNetwork(3), []
    for seed, level in enumerate((-1.0, 1.0)):
        theta = {"intercept": np.full(3, level), "interaction": np.full(3, 0.6)}
        parts.append(pd.DataFrame(dfd.simulate(model, theta, 600, seed=seed).rows, columns=ITEMS).assign(sex=seed + 1))
    frame = pd.concat(parts)
    found = quietly("ising-network", frame, columns=ITEMS, interaction="~ sex", check=False)
    assert found.model.formulas == {"intercept": "~ C(sex)", "interaction": "~ C(sex)"}
    told = " ".join(found.warnings)
    assert "intercept depends on the same as the edges" in told and "'sex' has two values" in told
    differences = dfd.group_differences(found, "sex")
    assert differences.p_value > 0.01 and not (differences.table["verdict"] == "different").any()
    assert "Edges by sex: of 3 comparisons of edges, none is different" in found.answer
    constant, _ = regression("ising-network", frame, formula="~ 1", interaction="~ I(sex)")
    assert constant.formulas == {"intercept": "~ 1", "interaction": "~ I(sex)"}
    many, _ = regression("network", two_groups.assign(wave=np.arange(len(two_groups)) % 3), interaction="~ wave")
    assert many.formulas["interaction"] == "~ wave"


def test_an_age_among_scales_looks_like_a_covariate():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(1, 6, (300, 4)), columns=list("abcd"))
    frame = frame.assign(age=rng.integers(18, 80, 300), visits=rng.poisson(9, 300), group=rng.choice(["x", "y"], 300))

    def told(*columns):
        reading = {"columns": list(columns), "weights": None, "missing": "refuse", "cluster": None, "weighting": "auto"}
        source, made = read_regression(
            Local(), "network", frame, None, "~ group", {}, reading, lambda done, total: None
        )
        return " ".join(made.remarks(source.data))

    assert "age looks like a covariate, not an item" in told(*"abcd", "age")
    assert "formula='~ age'" in told(*"abcd", "age")
    assert "covariate" not in told(*"abcd", "age", "visits") and "covariate" not in told(*"abcd")


def test_links_that_are_bent_have_the_general_table():
    """Interactions of counts are not negative: with a formula they are exponentials, and no longer linear."""
    made, data = regression("poisson-graphical", rows("counts"), interaction="~ group")
    sites = Sites(data, made.domain, rows_of(data))
    assert isinstance(made.terms_at(sites, View.NEIGHBOURS).terms, Neighbours)
    assert isinstance(made.terms_at(sites, View.CONDITIONALS).terms, Conditionals)
    coefficients, terms = np.random.default_rng(0).normal(0, 1, (4, 9)), np.array([1.0, 0.0, 0.5])
    wanted = np.exp(coefficients[:, :3] + 0.5 * coefficients[:, 6:] + 0.1)
    np.testing.assert_allclose(made.parameter_at("interaction", coefficients, terms, 0.1), wanted)


@pytest.fixture(scope="module")
def fit():
    """Three groups of different sizes; the edge a - b is 1.5 in the first, 0 in the second and 1.5 in the third."""
    model, parts = dfd.models.IsingNetwork(3), []
    for seed, (level, edge, size) in enumerate((("old", 1.5, 400), ("young", 0.0, 500), ("<b>", 1.5, 300))):
        theta = {"intercept": np.full(3, -0.3), "interaction": np.array([edge, 0.0, -0.5])}
        found = dfd.simulate(model, theta, size, seed=seed).rows
        parts.append(
            pd.DataFrame(found, columns=ITEMS).assign(**{"my group": level, "age": [-1, 1, -2, 2] * (size // 4)})
        )
    terms = "~ C(`my group`, contr.treatment('old')) + age"
    settings = {"formula": terms, "interaction": terms, "columns": ITEMS, "chains": 4, "check": False}
    return quietly("ising-network", pd.concat(parts), **settings)


def with_coefficients(fit, draws):
    """The same fit with other draws of what the edges depend on."""
    labels = {p.name: p.labels for p in fit.model.space.parameters}
    named = {"intercept": np.zeros((1, len(draws), 12)), "interaction": draws[None]}
    return replace(fit, groups=assemble(named, {}, fit.data, labels))


def enumerated(estimate, covariance, scale):
    """The probability of each difference, by going over all combinations of them."""
    total, each = 0.0, np.zeros(len(estimate))
    for some in itertools.product([0, 1], repeat=len(estimate)):
        spread = covariance + np.diag(np.array(some) * scale**2)
        weight = stats.multivariate_normal(np.zeros(len(estimate)), spread).pdf(estimate)
        total, each = total + weight, each + weight * np.array(some)
    return each / total


def test_differences_by_their_definition(fit):
    """From the names of coefficients alone; priors are normal, and so are those of differences."""
    found = dfd.group_differences(fit, "my group")
    assert found.levels == ("old", "<b>", "young") and found.freedom == 6
    assert len(found.table) == 9 and found.table["difference"].abs().is_monotonic_decreasing
    entries = {name: draws.reshape(-1) for name, draws in fit.entries.items()}
    shape, names = fit.calibration.curvature, list(fit.model.space.names)
    for row in found.table.to_dict("records"):
        edge = f"{row['from']},{row['to']}"
        own, other = (
            np.zeros(1000) if level == "old" else entries[f"interaction[{edge}:my group={level}]"]
            for level in (row["group"], row["reference"])
        )
        base = entries[f"interaction[{edge}]"]  # at the average age, which is zero
        low, high = np.quantile(own - other, [0.025, 0.975])
        wanted = [(own + base).mean(), (other + base).mean(), (own - other).mean(), low, high]
        given = [row[name] for name in ("in_group", "in_reference", "difference", "low", "high")]
        np.testing.assert_allclose(given, wanted, atol=1e-12)
    for level in ("<b>", "young"):  # what is known of the differences, their own prior apart
        own = [names.index(f"interaction[{edge}:my group={level}]") for edge in ("a,b", "a,c", "b,c")]
        free = np.isin(np.arange(len(names)), own)
        precision = shape.information + np.where(free | free[:, None], 0.0, shape.precision)
        covariance = np.linalg.inv(precision)
        mean = shape.centre + covariance @ (np.where(free, 0.0, shape.force) - shape.pull)
        exact = enumerated(mean[own], covariance[np.ix_(own, own)], np.ones(3))
        rows = found.table[(found.table["group"] == level) & (found.table["reference"] == "old")]
        given = rows.set_index(["from", "to"]).loc[[("a", "b"), ("a", "c"), ("b", "c")], "probability"]
        np.testing.assert_allclose(given, exact, atol=0.01)
    factor = found.table["bayes_factor"]
    assert list(found.table["verdict"]) == list(verdict.by_bayes_factor(factor.to_numpy(), ("different", "alike")))
    assert "expected to be wrong" in str(found) and 0 < found.expected_false < 1
    verdicts = found.table.set_index(["from", "to", "group", "reference"])["verdict"]
    assert verdicts["a", "b", "young", "old"] == verdicts["a", "b", "young", "<b>"] == "different"
    inverse = np.linalg.inv(shape.information)
    place = [i for i, name in enumerate(names) if "interaction" in name and ":my group" in name]
    away = (shape.centre - inverse @ shape.pull)[place]
    wald = (1 - 24 / 3 / 300) * away @ np.linalg.solve(inverse[np.ix_(place, place)], away)
    assert found.statistic == pytest.approx(wald, rel=1e-9) and found.p_value == stats.chi2.sf(found.statistic, 6)
    assert "on 6 degrees of freedom, p" in str(found) and found.p_value < 0.01


def test_verdicts_on_differences(fit):
    """Far apart, certainly close, and neither; by draws of all coefficients, where they alone decide."""
    fit = replace(fit, calibration=replace(fit.calibration, curvature=None))
    noise = np.random.default_rng(0).standard_normal((2000, 12))
    centre, spread = np.zeros(12), np.full(12, 1e-3)
    centre[3:6], spread[3:6] = [1.0, 0.0, 0.3], [0.1, 0.03, 0.5]  # of '<b>'
    found = dfd.group_differences(with_coefficients(fit, centre + spread * noise), "my group").table
    own = found[(found["group"] == "<b>")].set_index(["from", "to"])
    assert own["verdict"].to_dict() == {("a", "b"): "different", ("a", "c"): "alike", ("b", "c"): "inconclusive"}
    assert (own["region"] == 0.18).all() and own["prior_inside"].iloc[0] == pytest.approx(0.143, abs=0.02)
    assert "excludes zero, and less than 95% of" in groups.rule(fit)
    centre[3:6], spread[3:6] = 0.1, 0.02
    small = with_coefficients(replace(fit, missing=("prior of interaction",)), centre + spread * noise)
    found = dfd.group_differences(small, "my group").table
    own = found[(found["group"] == "<b>") & (found["reference"] == "old")]
    assert (own["low"] > 0).all() and (own["inside"] > 0.95).all() and (own["verdict"] == "inconclusive").all()
    assert own["bayes_factor"].isna().all()


def test_the_evidence_of_edges_that_vary_is_at_the_average(fit):
    coefficients = fit.posterior["interaction"].values.reshape(-1, 4, 3)
    weights = np.array([1.0, 3 / 12, 5 / 12, 0.0])
    table = evidence.edges(fit).set_index(["from", "to"]).loc[[("a", "b"), ("a", "c"), ("b", "c")]]
    np.testing.assert_allclose(table["mean"], (weights @ coefficients).mean(axis=0), atol=1e-12)
    prior = fit.model.space.parameters[1].prior
    sd = np.sqrt(weights**2 @ np.asarray(prior.scale).reshape(4, 3)[:, 0] ** 2)
    mean = weights @ np.asarray(prior.loc).reshape(4, 3)[:, 0]
    inside = stats.norm.cdf(0.18, mean, sd) - stats.norm.cdf(-0.18, mean, sd)
    assert table["prior_inside"].iloc[0] == pytest.approx(inside, abs=0.02)
    assert "average of the formula's terms" in evidence.rule(fit)


def test_a_report_shows_the_groups(fit):
    page = render(fit)
    assert (
        "Groups" in page
        and "Bayes factor of a difference is above 10" in page
        and "&lt;b&gt; − old" in page
        and "<b> −" not in page
    )
    titles = [axes.get_title() for axes in dfd.plots.group_networks(fit, "my group").axes]
    assert titles == ["old", "<b>", "young", "", "<b> − old", "young − old"]


def test_what_cannot_be_compared_is_said(fit):
    with pytest.raises(SettingError, match="is not in the formula"):
        dfd.group_differences(fit, "sex")
    with pytest.raises(SettingError, match=r"write C\(age\)"):
        dfd.group_differences(fit, "age")
    with pytest.raises(ModelError, match="no edges that depend on a factor"):
        dfd.group_differences(replace(fit, model=None), "my group")
    design = Design.of("interaction", "group * age", rows("binary"))[0]
    assert design.factors == () and groups.factors(fit) == ("my group",)
    with pytest.raises(SettingError, match="depends on other variables"):
        design.of_levels("group")


def test_levels_under_any_coding():
    frame = rows("binary")
    levels, own, terms = Design.of("interaction", "age + C(group, contr.sum)", frame)[0].of_levels("group")
    assert levels == ("x", "y", "z") and own == [2, 3]
    np.testing.assert_array_equal(terms, [[1, 0], [0, 1], [-1, -1]])
    levels, own, terms = Design.of("interaction", "0 + group", frame)[0].of_levels("group")
    assert levels == ("x", "y", "z")
    np.testing.assert_array_equal(terms, np.eye(3))
