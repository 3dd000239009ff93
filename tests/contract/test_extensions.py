"""What users add is one file: a model, a term of graphs, a loss, a sampler, a kind of network column.

Each file of docs/how-to/extensions is imported as a user's own, serves by its name wherever a built-in one does, and
gives the numbers of a slow definition.
"""

import ast
import importlib
import re

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats
from scipy.special import gammaln, logsumexp

import dfdbayes as dfd
from pages import EXTENSIONS, ROOT, extending

NAMES = {
    "negative_binomial": "negative-binomial",
    "graph_term": "isolates",
    "loss": "power-divergence",
    "sampler": "elliptical-slice",
    "column_kind": "zero-inflated",
}
QUICK = {"progress": False, "draws": 300, "chains": 2}


@pytest.fixture(scope="module", autouse=True)
def extensions():
    """The files, imported; what they register is forgotten afterwards."""
    with extending():
        yield {stem: importlib.import_module(stem) for stem in NAMES}


def saved(fit, tmp_path):
    """The fit as a file has it, which must be the same."""
    again = dfd.load(fit.save(tmp_path / "fit.nc"))
    assert again.missing == ()
    pd.testing.assert_frame_equal(again.summary(), fit.summary())
    return again


def reported(fit, tmp_path):
    return fit.report(tmp_path / "report.html").read_text()


# -- one file ----------------------------------------------------------------------------------


def test_every_extension_is_tried():
    assert {path.stem for path in EXTENSIONS.glob("*.py")} == set(NAMES)


@pytest.mark.parametrize("stem", NAMES)
def test_no_file_of_the_package_knows_it(stem):
    """But for hints, which are for names that nobody registered."""
    hints = {"families/named.py", "families/graph/terms.py"}
    source = ROOT / "src" / "dfdbayes"
    known = [path for path in source.rglob("*.py") if re.search(f"[\"']{NAMES[stem]}[\"']", path.read_text())]
    assert {str(path.relative_to(source)) for path in known} <= hints


@pytest.mark.parametrize("stem", NAMES)
def test_it_stands_alone(stem):
    """It imports no file beside it, and changes nothing of the package but for what it registers."""
    tree = ast.parse((EXTENSIONS / f"{stem}.py").read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert not imported & set(NAMES) and not any(isinstance(node, (ast.Global, ast.Delete)) for node in ast.walk(tree))
    assert not [
        target
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if not isinstance(target, (ast.Name, ast.Tuple))
    ]


@pytest.mark.parametrize("stem", NAMES)
def test_the_pages_show_it(stem):
    pages = [page for page in (ROOT / "docs" / "how-to").glob("*.md") if f"extensions/{stem}.py" in page.read_text()]
    assert pages


# -- a count family with two parameters --------------------------------------------------------


@pytest.fixture(scope="module")
def visits():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=800), "clinic": rng.choice(["A", "B"], 800)})
    mean, size = np.exp(1.0 + 0.5 * frame["age"]), np.where(frame["clinic"] == "A", 1.0, 4.0)
    return frame.assign(visits=rng.negative_binomial(size, size / (size + mean)))


@pytest.fixture(scope="module")
def regression(extensions, visits):
    settings = {"formula": "visits ~ age", "size": "~ clinic", "check": True} | QUICK
    return dfd.fit("negative-binomial", visits, **settings)


def maximum_likelihood(frame):
    """The coefficients of log mean and log size, by SciPy's mass function."""
    age, second = frame["age"].to_numpy(), (frame["clinic"] == "B").to_numpy(float)

    def minus_log_likelihood(b):
        mean, size = np.exp(b[0] + b[1] * age), np.exp(b[2] + b[3] * second)
        return -stats.nbinom.logpmf(frame["visits"], size, size / (size + mean)).sum()

    return optimize.minimize(minus_log_likelihood, np.zeros(4), method="BFGS", options={"gtol": 1e-4}).x


def test_the_masses_are_those_of_scipy(extensions):
    model = extensions["negative_binomial"].NegativeBinomial()
    objective = dfd.objective(model, np.arange(60), "likelihood")
    expected = -stats.nbinom.logpmf(np.arange(60), 2.5, 2.5 / (2.5 + 3.0)).sum()
    assert objective({"mean": 3.0, "size": 2.5}) == pytest.approx(expected, rel=1e-12)


def test_both_parameters_may_depend_on_covariates(regression, visits):
    assert regression.settings["loss"] == "likelihood"
    assert list(regression.entries) == ["mean[Intercept]", "mean[age]", "size[Intercept]", "size[clinic=B]"]
    np.testing.assert_allclose(regression.minimum.vector, maximum_likelihood(visits), atol=2e-4)
    assert not regression.checks.problem and regression.checks.goodness.p_value > 0.01


def test_predictions_residuals_and_effects(regression):
    new = pd.DataFrame({"age": [0.0, 1.0], "clinic": ["A", "B"]})
    table, draws = regression.predict(new), regression.joint_draws
    np.testing.assert_allclose(table["mean"], [np.exp(draws[:, 0]).mean(), np.exp(draws[:, :2].sum(axis=1)).mean()])
    mean, size = np.exp(draws[:, 0]), np.exp(draws[:, 2])
    assert stats.nbinom.cdf(table["new_high"][0], size, size / (size + mean)).mean() >= 0.975
    residuals = regression.residuals()
    assert residuals["residual"].mean() == pytest.approx(0.0, abs=0.1)
    assert residuals["residual"].std() == pytest.approx(1.0, abs=0.1)
    assert regression.effects().loc["age", "ratio"] == pytest.approx(np.exp(0.5), abs=0.15)


def test_without_covariates_by_the_loss_that_the_data_ask_for(extensions, tmp_path):
    model = extensions["negative_binomial"].NegativeBinomial()
    x = dfd.simulate(model, {"mean": 4.0, "size": 1.5}, 2000, seed=1).rows
    assert x.mean() == pytest.approx(4.0, abs=4 * np.sqrt((4 + 16 / 1.5) / 2000))
    fit = dfd.fit("negbin", x, check=True, **QUICK)
    low, high = (fit.summary()[f"eti95_{end}"] for end in ("lb", "ub"))
    assert low["mean"] < 4.0 < high["mean"] and low["size"] < 1.5 < high["size"]
    assert "a negative binomial model" in reported(saved(fit, tmp_path), tmp_path)


def test_the_regression_is_saved_reported_and_compared(regression, visits, tmp_path):
    again = saved(regression, tmp_path)
    new = visits[:3].drop(columns="visits")
    pd.testing.assert_frame_equal(again.predict(new), regression.predict(new))
    text = reported(again, tmp_path)
    assert "a negative binomial model with covariates" in text and "the expected count" in text
    settings = {"formula": "visits ~ age", "size": "~ clinic", "sampler": "laplace", "check": False, "progress": False}
    found = dfd.compare_models(["poisson", "cmp", "negative-binomial"], visits, **settings)
    assert found.best == ("negative-binomial",) and not found.failed  # the others have no size


def test_the_command_line_takes_the_names(visits, tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    visits.to_csv("visits.csv", index=False)
    words = ["fit", "visits.csv", "--model", "negative-binomial", "--formula"]
    code, out, err = call(*words, "visits ~ age", "--sampler", "elliptical-slice", "--draws", "100", "--out", "run")
    assert not code, err
    assert "mean[age]" in out and (tmp_path / "run" / "report.html").exists()
    code, out, _ = call("fit", "visits.csv", "--model", "poisson", "--columns", "visits", "--loss", "power-divergence")
    assert not code and "power-divergence" in out
    assert "variance mean + mean^2 / size" in call("models")[1]


# -- a term of random graphs -------------------------------------------------------------------


def test_the_change_statistic_is_the_difference_that_a_tie_makes():
    graph = dfd.ObservedGraph.of(nx.path_graph(8))
    statistics = dfd.models.RandomGraph("edges + isolates").bound(graph).statistics
    ties = np.random.default_rng(0).random((50, 28)) < 0.15
    i, j = np.triu_indices(8, 1)
    for d in range(28):
        there, away = ties.copy(), ties.copy()
        there[:, d], away[:, d] = True, False
        counted = [8 - np.array([len(set(i[row]) | set(j[row])) for row in which], float) for which in (there, away)]
        np.testing.assert_array_equal(statistics.changes(ties)[:, d, 1], counted[0] - counted[1])


def test_a_graph_is_fitted_and_simulated_by_the_term(tmp_path):
    families = nx.florentine_families_graph()
    families.add_nodes_from(["Pucci", "Bardi"])
    fit = dfd.fit(dfd.models.RandomGraph("edges + isolates"), families, check=True, seed=1, **QUICK)
    graphs = dfd.simulate(fit.model, fit.minimum.vector, 2000, seed=2)
    error = 4 * graphs.statistics.std(axis=0) / np.sqrt(400)
    assert (np.abs(graphs.statistics.mean(axis=0) - [20, 2]) < error).all()  # the likelihood's equation
    assert "isolates" in reported(saved(fit, tmp_path), tmp_path)
    assert dfd.fit("graph", families, options={"terms": "edges + isolates"}, check=False, **QUICK).model == fit.model


# -- a loss ------------------------------------------------------------------------------------


def by_definition(x, log_mass, power):
    """The sum over rows, from masses."""

    def ratio(value):
        return np.exp(log_mass(value - 1) - log_mass(value))

    found = [(ratio(v) ** (1 + power) if v else 0.0) - (1 + 1 / power) * ratio(v + 1) ** power for v in x]
    return sum(found)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_the_loss_is_its_definition(extensions, power):
    x = np.random.default_rng(0).poisson(3.0, 200)
    objective = dfd.objective(dfd.models.Poisson(), x, extensions["loss"].PowerDivergence(power))
    expected = by_definition(x, lambda v: stats.poisson.logpmf(v, 2.5), power)
    assert objective({"rate": 2.5}) == pytest.approx(expected, rel=1e-10)


def test_the_fisher_divergence_is_one_of_the_family(extensions):
    rows = np.random.default_rng(1).integers(0, 2, (200, 3))
    model, theta = dfd.models.IsingNetwork(3), np.linspace(-0.3, 0.4, 6)
    for data, other, at in ((rows, model, theta), (rows[:, :1] + 2 * rows[:, 1:2], dfd.models.Poisson(), [1.4])):
        one, two = (dfd.objective(other, data, loss) for loss in (extensions["loss"].PowerDivergence(1.0), "dfd"))
        assert one(np.array(at)) == pytest.approx(two(np.array(at)), rel=1e-12)


def test_the_loss_serves_by_name_and_keeps_its_setting(extensions, tmp_path):
    x = dfd.simulate(dfd.models.ConwayMaxwellPoisson(), {"rate": 4.0, "nu": 1.2}, 2000, seed=3).rows
    fit = dfd.fit("cmp", x, loss="power-divergence", check=True, **QUICK)
    low, high = (fit.summary()[f"eti95_{end}"] for end in ("lb", "ub"))
    assert low["nu"] < 1.2 < high["nu"] and low["rate"] < 4.0 < high["rate"]
    assert fit.checks.goodness.p_value > 0.01
    assert "the power divergence of ratios" in reported(fit, tmp_path)
    other = dfd.fit("cmp", x, loss=extensions["loss"].PowerDivergence(0.25), check=False, **QUICK)
    assert saved(other, tmp_path).loss == extensions["loss"].PowerDivergence(0.25)
    # more of what the likelihood knows than the Fisher divergence uses
    likelihood, fisher = (dfd.fit("cmp", x, loss=name, check=False, **QUICK) for name in ("likelihood", "dfd"))
    sd = [one.summary().loc["nu", "sd"] for one in (likelihood, other, fisher)]
    assert sd[0] < sd[1] * 1.1 and sd[1] < sd[2] * 1.1


# -- a sampler ---------------------------------------------------------------------------------


def test_the_sampler_draws_what_nuts_draws(tmp_path):
    x = np.random.default_rng(4).poisson(3.0, 60)
    long = {"progress": False, "draws": 1500, "check": False, "seed": 2}
    own, known = (dfd.fit("cmp", x, sampler=name, **long).summary() for name in ("elliptical-slice", "nuts"))
    error = np.hypot(own["mcse_mean"], known["mcse_mean"])
    assert (np.abs(own["mean"] - known["mean"]) < 4.5 * error).all()  # of 4 numbers: 3 in 100,000 by chance
    np.testing.assert_allclose(own["sd"], known["sd"], rtol=0.15)
    assert (own["r_hat"] < 1.02).all()
    fit = dfd.fit("cmp", x, sampler="elliptical-slice", check=True, **QUICK)
    assert saved(fit, tmp_path).settings["sampler"] == "elliptical-slice"
    text = reported(fit, tmp_path)
    assert "elliptical slice sampling (Murray et al., 2010)" in text and "Adams, R. P. and MacKay" in text


def test_an_interrupted_run_goes_on_from_its_blocks(tmp_path, monkeypatch):
    x = np.random.default_rng(4).poisson(3.0, 60)
    asked = {"sampler": "elliptical-slice", "check": False} | QUICK
    whole = dfd.fit("poisson", x, **asked)
    dfd.fit("poisson", x, checkpoint=tmp_path / "kept", **asked)
    assert len(list((tmp_path / "kept").glob("ellipses-*"))) == 3
    monkeypatch.setattr("sampler.block", None)  # nothing is drawn again
    again = dfd.fit("poisson", x, checkpoint=tmp_path / "kept", **asked)
    np.testing.assert_array_equal(again.joint_draws, whole.joint_draws)


# -- a kind of network column ------------------------------------------------------------------


@pytest.fixture(scope="module")
def network():
    """Two zero-inflated columns and a binary one, with a parameter vector."""
    model = dfd.models.Network(dfd.Counts(2) * dfd.Binary(1), kinds=["zero-inflated", "zero-inflated", "binary"])
    theta = {"intercept": [0.3, 0.1, -0.2], "interaction": [-0.3, 0.5, 0.2], "inflation": [0.8, -0.5]}
    return model, model.space.flatten(theta)


def log_mass(row, theta):
    """The module's formula, term by term."""
    score = [np.sqrt(row[0]), np.sqrt(row[1]), row[2]]
    found = 0.3 * row[0] + 0.1 * row[1] - 0.2 * row[2] + 0.8 * (row[0] == 0) - 0.5 * (row[1] == 0)
    found -= gammaln(row[0] + 1) + gammaln(row[1] + 1)
    return found - 0.3 * score[0] * score[1] + 0.5 * score[0] * score[2] + 0.2 * score[1] * score[2]


def test_the_log_mass_and_the_conditionals_are_sums(network):
    model, theta = network
    rows = np.array([[0, 0, 0], [0, 3, 1], [2, 1, 1], [5, 0, 0], [1, 1, 0]])
    expected = [log_mass(row, theta) for row in rows]
    np.testing.assert_allclose(np.asarray(model.log_masses(theta, rows.astype(float))), expected, rtol=1e-12)
    total = 0.0
    for row in rows:
        for j, values in enumerate((range(60), range(60), range(2))):
            moved = [log_mass([*row[:j], v, *row[j + 1 :]], theta) for v in values]
            total += logsumexp(moved) - log_mass(row, theta)
    assert dfd.objective(model, rows, "pseudo")(np.asarray(theta)) == pytest.approx(total, rel=1e-10)


def test_ratios_are_differences_of_log_masses(network):
    model, theta = network
    rows, total = np.array([[0, 2, 1], [3, 0, 0], [1, 1, 1]]), 0.0

    def s(u):
        return 1.0 / (1.0 + np.exp(-u))

    for row in rows:
        for j in range(3):
            for step in (-1, 1) if j < 2 else (1 - 2 * row[2],) * 2:
                moved = row.copy()
                moved[j] += step
                if moved[j] >= 0:
                    u = log_mass(moved, theta) - log_mass(row, theta)
                    down = step < 0 if j < 2 else None
                    total += s(u) ** 2 * (down in (True, None)) * (0.5 if down is None else 1.0)
                    total += s(-u) * (s(-u) - 2.0) * (down in (False, None)) * (0.5 if down is None else 1.0)
    assert dfd.objective(model, rows, "ratio")(np.asarray(theta)) == pytest.approx(total, rel=1e-10)


def test_simulated_rows_have_the_probabilities_of_the_model(network):
    """400 cells' worth of mass in three of them; each frequency within 4.5 standard errors (1 in 50,000 by chance)."""
    model, theta = network
    listed = np.array([[a, b, c] for a in range(40) for b in range(40) for c in range(2)])
    log = np.array([log_mass(row, theta) for row in listed])
    chance = np.exp(log - logsumexp(log))
    rows = dfd.simulate(model, np.asarray(theta), 20000, seed=5).rows
    for place in np.argsort(-chance)[:8]:
        share = (rows == listed[place]).all(axis=1).mean()
        assert abs(share - chance[place]) < 4.5 * np.sqrt(chance[place] / 20000)


def test_a_table_is_fitted_by_the_word_for_the_kind(network, tmp_path):
    model, theta = network
    rows = dfd.simulate(model, np.asarray(theta), 3000, seed=6).rows
    frame = pd.DataFrame(rows, columns=["visits", "calls", "smoker"])
    options = {"kinds": {"visits": "zero-inflated", "calls": "zero-inflated"}}
    fit = dfd.fit("network", frame, options=options, check=True, **QUICK)
    table = fit.summary()
    assert set(table.index) > {"inflation[visits]", "inflation[calls]", "interaction[visits,smoker]"}
    truth = dict(zip(model.labelled(frame.columns).space.names, np.asarray(theta), strict=True))
    far = [abs(table.loc[name, "mean"] - value) / table.loc[name, "sd"] for name, value in truth.items()]
    assert max(far) < 4.0  # of eight: 1 in 2000 by chance
    assert fit.checks.goodness.p_value > 0.01 and "zero-inflated" in fit.settings["kinds"]
    again = saved(fit, tmp_path)
    assert again.model.kinds == fit.model.kinds
    assert "inflation[visits]" in reported(again, tmp_path)


@pytest.mark.slow
def test_the_kind_may_depend_on_covariates_and_lack_values(network):
    model, theta = network
    rows = dfd.simulate(model, np.asarray(theta), 1500, seed=7).rows
    frame = pd.DataFrame(rows, columns=["visits", "calls", "smoker"]).astype(float)
    options = {"kinds": {"visits": "zero-inflated", "calls": "zero-inflated"}}
    group = frame.assign(group=np.arange(1500) % 2)
    fit = dfd.fit("network", group, formula="~ group", options=options, check=False, **QUICK)
    table = fit.summary()
    slopes = [name for name in table.index if name.startswith("inflation") and "group" in name]
    assert len(slopes) == 2 and (table.loc[slopes, "mean"].abs() < 4 * table.loc[slopes, "sd"]).all()
    frame.loc[::7, "visits"] = np.nan
    imputed = dfd.fit("network", frame, options=options, missing="impute", check=False, **QUICK)
    assert imputed.summary().loc["inflation[visits]", "mean"] == pytest.approx(0.8, abs=0.8)
