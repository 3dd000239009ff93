"""Random graph models: losses by their definitions, known estimates, refits, and what `fit` does with one graph."""

import warnings

import networkx as nx
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest

import dfdbayes as dfd
import graph_oracles
import small_fits
from dfdbayes._util.checkpoint import Folder
from dfdbayes.core.replicates import minimise_many, refit_many
from dfdbayes.core.resampling import Fits, Parametric
from dfdbayes.families.graph.chains import probabilities


def florence():
    """Marriages of 16 families; one has none, and networkx leaves it out."""
    families = nx.florentine_families_graph()
    families.add_node("Pucci")
    return families


def small(directed, n):
    return dfd.ObservedGraph.of(
        graph_oracles.random_adjacency(np.random.default_rng(8), n, directed),
        nodes={"name": list("uvwxyz"[:n])} | {name: values[:n] for name, values in graph_oracles.NODES.items()},
        directed=directed,
    )


# -- losses ------------------------------------------------------------------------------------

SMALL = {
    "undirected": (False, 5, "edges + triangle + gwesp(0.3) + nodecov('size')", [-0.4, 0.3, 0.5, 0.2]),
    "directed": (True, 4, "edges + mutual + ttriple + nodematch('team')", [-0.5, 0.8, 0.3, 0.4]),
}


@pytest.mark.parametrize("loss", ["dfd", "ratio", "pseudo"])
@pytest.mark.parametrize("kind", SMALL)
def test_losses_are_their_definitions(kind, loss):
    """From the probability of every graph, by listing all of them."""
    directed, n, terms, theta = SMALL[kind]
    graph = small(directed, n)
    objective = dfd.objective(dfd.models.RandomGraph(terms), graph, loss)
    ties, chance = probabilities(objective.model.statistics, objective.model.space.flatten(theta))
    p = {tuple(one): value for one, value in zip(ties, chance, strict=True)}
    here, expected = tuple(graph.tie_of_dyad), 0.0
    for d in range(len(here)):
        there = (*here[:d], not here[d], *here[d + 1 :])
        if loss == "dfd":
            expected += (p[there] / p[here]) ** 2 - 2.0 * p[here] / p[there]
        elif loss == "pseudo":
            expected -= np.log(p[here] / (p[here] + p[there]))
        else:
            s, below = 1.0 / (1.0 + p[there] / p[here]), 1.0 / (1.0 + p[here] / p[there])
            expected += s**2 + below**2 - 2.0 * s
    assert objective(np.array(theta)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("loss", ["dfd", "ratio", "pseudo"])
def test_derivatives_are_differences(loss):
    directed, n, terms, theta = SMALL["undirected"]
    objective = dfd.objective(dfd.models.RandomGraph(terms), small(directed, n), loss)
    theta, step = np.array(theta), 1e-5
    for k in range(len(theta)):
        e = step * np.eye(len(theta))[k]
        slope = (objective(theta + e) - objective(theta - e)) / (2 * step)
        assert objective.gradient(theta)[k] == pytest.approx(slope, rel=1e-6, abs=1e-7)
        bend = (objective.gradient(theta + e) - objective.gradient(theta - e)) / (2 * step)
        np.testing.assert_allclose(objective.hessian(theta)[k], bend, rtol=1e-6, atol=1e-6)
    own = objective.unit_gradients(theta) * objective.units.weights[:, None]
    np.testing.assert_allclose(own.sum(axis=0), objective.gradient(theta), atol=1e-9)


def test_the_likelihood_is_there_where_ties_do_not_depend_on_each_other():
    graph = small(False, 5)
    model = dfd.models.RandomGraph("edges + nodecov('size')")
    theta = np.array([-0.3, 0.4])
    objective = dfd.objective(model, graph, "likelihood")
    ties, chance = probabilities(objective.model.statistics, objective.model.space.flatten(theta))
    own = chance[(ties == graph.tie_of_dyad).all(axis=1)][0]
    assert objective(theta) == pytest.approx(-np.log(own), rel=1e-10)
    with pytest.raises(dfd.errors.ModelError, match="sum over all graphs"):
        dfd.objective(dfd.models.RandomGraph("edges + triangle"), graph, "likelihood")(theta)


# -- known values ------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["dfd", "ratio", "pseudo", "likelihood"])
def test_edges_alone_are_the_log_odds_of_a_tie(loss):
    found = dfd.minimise(dfd.objective(dfd.models.RandomGraph("edges"), florence(), loss))
    assert found.theta["edges"] == pytest.approx(np.log(20 / 100), abs=1e-9)


def test_florentine_marriages():
    """Pseudo-likelihood of edges + triangle, as statnet's ergm gives it."""
    found = dfd.minimise(dfd.objective(dfd.models.RandomGraph("edges + triangle"), florence(), "pseudo"))
    np.testing.assert_allclose(found.vector, [-1.701, 0.221], atol=5e-4)


def test_the_same_from_files(shared_data):
    graph = dfd.ObservedGraph.of(shared_data / "flomarriage_edges.csv", nodes=shared_data / "flomarriage_nodes.csv")
    assert (graph.n, graph.ties) == (16, 20)
    found = dfd.minimise(dfd.objective(dfd.models.RandomGraph("edges + triangle"), graph, "pseudo"))
    np.testing.assert_allclose(found.vector, [-1.701, 0.221], atol=5e-4)


def test_a_school_of_205_pupils(shared_data):
    graph = dfd.ObservedGraph.of(
        shared_data / "faux_mesa_high_edges.csv", nodes=shared_data / "faux_mesa_high_nodes.csv"
    )
    model = dfd.models.RandomGraph("edges + nodefactor('Sex') + nodematch('Grade') + gwesp(0.25)")
    objective = dfd.objective(model, graph, "pseudo")
    assert objective.data.n == 20910 and len(objective.data.rows) < 300  # distinct dyads
    assert objective.model.space.names == ("edges", "nodefactor(Sex)[M]", "nodematch(Grade)", "gwesp(0.25)")
    assert dfd.minimise(objective).usable


# -- priors ------------------------------------------------------------------------------------


def test_priors_are_weak_on_the_scale_of_the_data():
    families = florence()
    nx.set_node_attributes(families, {name: 1000.0 * k for k, name in enumerate(families)}, "florins")
    terms = "edges + triangle + nodecov('florins') + nodematch('florins')"
    nx.set_node_attributes(families, {name: k % 2 for k, name in enumerate(families)}, "side")
    _, model = dfd.models.RandomGraph(terms.replace("match('florins", "match('side")).observe(families)
    priors = {p.name: p.prior for p in model.space.parameters}
    assert priors["edges"].loc == pytest.approx(np.log(20.5 / 100.5)) and priors["edges"].scale > 3.0
    assert priors["triangle"].scale == 3.0 and priors["nodematch(side)"].scale == 3.0
    sd = model.statistics.covariates[:, 2].std()
    assert priors["nodecov(florins)"].scale == pytest.approx(3.0 / sd)


# -- refits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["pseudo", "ratio"])
@pytest.mark.daily("pseudo")
def test_refits_are_modes_of_each_graph(loss):
    """All at once, each is the mode that one search for its graph alone finds; a graph without triangles has one."""
    from dfdbayes.core.minimise import mode

    objective = dfd.objective(dfd.models.RandomGraph("edges + triangle"), florence(), loss)
    minimum = dfd.minimise(objective)
    graphs = dfd.simulate(objective.model, minimum.vector, 60)
    found = refit_many(objective, list(graphs.datasets()), minimum)
    assert found.vectors.shape == (60, 2) and found.usable.all()
    none = np.flatnonzero(graphs.statistics[:, 1] == 0)[:2]
    assert len(none) and np.isfinite(found.vectors[none]).all()
    for k in [0, 1, *none]:
        (data,) = objective.model.statistics.distinct(graphs.ties[[k]])
        alone = mode(dfd.Objective(objective.model, data, objective.loss), 1.0, minimum, minimum.vector)
        np.testing.assert_allclose(found.vectors[k], alone, atol=1e-6)


# -- fit ---------------------------------------------------------------------------------------

QUICK = {"sampler": "laplace", "draws": 400, "progress": False}


@pytest.fixture(scope="module")
def fit():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dfd.fit(dfd.models.RandomGraph("edges + triangle"), florence(), check=True, loss="pseudo", **QUICK)


def test_one_call(fit):
    table = fit.summary()
    assert list(table.index) == ["edges", "triangle"]
    assert fit.settings["loss"] == "pseudo" and fit.data.n == 120
    np.testing.assert_allclose(table["mean"], [-1.7, 0.2], atol=0.35)


def test_the_width_is_that_of_simulated_graphs(fit):
    """By default; graphs are simulated once, and their estimates spread as an independent computation has it.

    The posterior is as wide as they spread, no more and no less, and not as the curvature of the loss: (.31, .43).
    """
    assert fit.calibration.resampling == "parametric" and len(fit.calibration.minimisers) == 400
    low, high = np.quantile(fit.calibration.minimisers, [0.16, 0.84], axis=0)
    spread = 0.5 * (high - low)
    np.testing.assert_allclose(spread, [0.36, 0.75], rtol=0.2)
    sd = np.sqrt(np.diag(fit.calibration.curvature.covariance))
    np.testing.assert_allclose(sd, spread, rtol=0.1)
    np.testing.assert_allclose(sd, [0.36, 0.75], rtol=0.15)
    np.testing.assert_allclose(fit.summary()["sd"], sd, rtol=0.2)  # 400 draws
    assert not any("depend on each other" in text for text in fit.warnings)


def test_widths_that_take_dyads_for_independent_are_told():
    with pytest.warns(dfd.errors.CalibrationWarning, match="depend on each other"):
        dfd.fit(dfd.models.RandomGraph("edges + triangle"), florence(), calibration="lyddon", **QUICK)


def test_ties_that_do_not_depend_on_each_other_need_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dfd.fit("graph", florence(), options={"terms": "edges"}, **QUICK)
    assert found.minimum.theta["edges"] == pytest.approx(np.log(0.2), abs=1e-8)
    sd = np.sqrt(1 / 20 + 1 / 100)
    assert found.settings["loss"] == "likelihood" and "needs no calibration" in found.calibration.message
    assert 1.0 / np.sqrt(found.calibration.curvature.information[0, 0]) == pytest.approx(sd, rel=1e-3)
    assert found.summary().loc["edges", "sd"] == pytest.approx(sd, rel=0.15)  # 400 draws


def test_widths_of_independent_ties_are_those_of_logistic_regression():
    """Not those of a sandwich, which takes dyads for a sample."""
    found = small_fits.random_graph()
    x, p = found.data.given, 1.0 / (1.0 + np.exp(-found.data.given @ found.calibration.curvature.centre))
    expected = (x * (found.data.counts * p * (1.0 - p))[:, None]).T @ x
    np.testing.assert_allclose(found.calibration.curvature.information, expected, rtol=1e-6)


def test_another_loss_of_independent_ties_is_calibrated_by_simulated_graphs():
    found = dfd.fit("graph", florence(), options={"terms": "edges"}, loss="ratio", bootstrap=60, check=False, **QUICK)
    assert found.calibration.resampling == "parametric"


def test_saved_and_read_back(fit, tmp_path):
    back = dfd.load(fit.save(tmp_path / "fit.nc"))
    assert back.model == fit.model and back.missing == ()
    np.testing.assert_array_equal(back.summary()["mean"], fit.summary()["mean"])
    np.testing.assert_array_equal(back.model.observed.adjacency, fit.model.observed.adjacency)
    for name, table in fit.checks.graph.features.items():
        assert back.checks.graph.features[name].index.tolist() == table.index.tolist()
        np.testing.assert_allclose(back.checks.graph.features[name], table)
    again = dfd.simulate(back.model, back.minimum.vector, 5, seed=2)
    np.testing.assert_array_equal(again.ties, dfd.simulate(fit.model, fit.minimum.vector, 5, seed=2).ties)


def test_a_report_shows_the_graph(fit, tmp_path):
    page = fit.report(tmp_path / "page.html").read_text()
    assert "20 of 120 dyads" in page and "100 graphs were simulated" in page


def test_priors_by_name_and_settings_about_rows():
    model = dfd.models.RandomGraph("edges + triangle")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = dfd.fit(model, florence(), prior={"triangle": dist.Normal(0.0, 0.01)}, **QUICK)
    assert found.summary().loc["triangle", "sd"] < 0.012
    with pytest.raises(dfd.errors.ModelError, match="no parameter 'triangles'"):
        dfd.fit(model, florence(), prior={"triangles": dist.Normal(0.0, 1.0)}, **QUICK)
    with pytest.raises(dfd.errors.SettingError, match="columns= is about rows"):
        dfd.fit(model, florence(), columns=["a"], **QUICK)
    with pytest.raises(dfd.errors.SettingError, match="formula= is about rows"):
        dfd.fit(model, florence(), formula="~ x", **QUICK)
    with pytest.raises(dfd.errors.SettingError, match="no setting 'node' for a graph or a map; did you mean 'nodes'"):
        dfd.fit(model, florence(), node=["a"], **QUICK)
    with pytest.raises(dfd.errors.SettingError, match="leave out size="):
        found.replicate(size=3)


def test_replicates_are_graphs_at_posterior_draws(fit):
    graphs = fit.replicate(draws=60, seed=4)
    assert len(graphs) == 60 and graphs.theta.shape == (60, 2)
    np.testing.assert_array_equal(graphs.ties, fit.replicate(draws=60, seed=4).ties)
    # triangles go with the draw's own coefficient
    assert np.corrcoef(graphs.theta[:, 1], graphs.statistics[:, 1])[0, 1] > 0.3
    found = dfd.graph_goodness(graphs)
    assert found.statistics.loc["edges", "low"] <= 20 <= found.statistics.loc["edges", "high"]


def test_graphs_at_coefficients_of_their_own_have_their_own_means():
    """Each chain at its own row: means of many chains at two rows against those simulated at each (4.5 errors)."""
    model = dfd.models.RandomGraph("edges + gwesp(0.3)").bound(dfd.ObservedGraph.of(florence()))
    rows = np.array([[-2.0, 0.3], [-1.0, -0.2]])
    mixed = dfd.simulate(model, np.repeat(rows, 80, axis=0), 160, seed=3)
    for k, theta in enumerate(rows):
        alone, own = dfd.simulate(model, theta, 200, seed=5).statistics, mixed.statistics[80 * k : 80 * (k + 1)]
        error = np.sqrt(alone.var(axis=0) / 150 + own.var(axis=0) / 80)
        assert (np.abs(own.mean(axis=0) - alone.mean(axis=0)) < 4.5 * error).all()


def test_bootstraps_of_graphs_go_on_where_they_were_interrupted(tmp_path):
    """Killed after the second round of graphs: the same minimisers, and the first rounds are not made again."""
    model, advanced = dfd.models.RandomGraph("edges + triangle"), []
    objective = dfd.objective(model, florence(), "pseudo")
    minimum = dfd.minimise(objective)
    whole = dfd.bootstrap(objective, minimum, 130, resampling="parametric", seed=2, advance=advanced.append)
    assert sum(advanced) == 130 and len(advanced) == 3 and whole.kind == "parametric"
    kept = Folder(tmp_path, {"run": 1})

    def stop(done):
        advanced.append(done)
        if len(advanced) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Parametric()(objective, minimum, 130, 2, Fits(minimise_many, kept, stop))
    assert sorted(path.name for path in tmp_path.glob("graphs-*")) == ["graphs-0.npz", "graphs-1.npz"]
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("graphs-*")}
    again = Parametric()(objective, minimum, 130, 2, Fits(minimise_many, Folder(tmp_path, {"run": 1})))
    np.testing.assert_array_equal(again.minima.vectors, whole.minima.vectors)
    assert all((tmp_path / name).stat().st_mtime_ns == then for name, then in before.items())


@pytest.mark.parametrize(
    ("graph", "said"), [(nx.empty_graph(5), "no ties"), (nx.complete_graph(5), "all ties"), ([(1, 1)], "itself")]
)
def test_graphs_that_say_nothing_are_refused(graph, said):
    with pytest.raises(dfd.errors.DataError, match=said):
        dfd.fit(dfd.models.RandomGraph("edges"), graph, **QUICK)


def test_a_model_without_a_graph_says_so():
    model = dfd.models.RandomGraph("edges")
    with pytest.raises(dfd.errors.ModelError, match="has seen no graph"):
        dfd.simulate(model, {"edges": 0.0}, 5)
    with pytest.raises(dfd.errors.ModelError, match="prior="):
        model.with_priors({"edges": dist.Normal(0.0, 1.0)})
    with pytest.raises(dfd.errors.DataError, match="directed"):
        dfd.models.RandomGraph("edges", directed=True).bound(dfd.ObservedGraph.of([(1, 2)]))


# -- degeneracy --------------------------------------------------------------------------------


def test_a_degenerate_model_is_named():
    """Triangles of a graph of dense groups: simulated graphs are complete."""
    groups = nx.relaxed_caveman_graph(3, 6, 0.2, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(dfd.errors.DegeneracyError, match=r"nearly complete.*The term triangle drives it.*gwesp"):
            dfd.fit(dfd.models.RandomGraph("edges + triangle"), groups, bootstrap=50, **QUICK)


@pytest.mark.slow
def test_what_to_do_about_a_degenerate_model_is_not_what_it_has_already():
    for terms, theta, said in [
        ("edges + gwdegree(0.5)", [3.0, 2.0], "give it a smaller decay or leave it out"),
        ("edges + triangle + gwesp(0.25)", [0.0, 2.0, 0.1], "leave it out; or explain"),
    ]:
        model = dfd.models.RandomGraph(terms).bound(dfd.ObservedGraph.of(florence()))
        with pytest.raises(dfd.errors.DegeneracyError, match=said) as told:
            dfd.simulate(model, np.array(theta), 50).require_sound()
        assert "kstar" not in str(told.value)


def test_independent_ties_are_never_degenerate():
    model = dfd.models.RandomGraph("edges").bound(dfd.ObservedGraph.of(florence()))
    dfd.simulate(model, {"edges": 4.0}, 50).require_sound()


# -- goodness of fit ---------------------------------------------------------------------------


def test_goodness_of_fit_has_the_field_s_features(fit):
    features = fit.checks.graph.features
    families = florence()
    shares = np.bincount([d for _, d in families.degree]) / 16
    table = features["degree"]["observed"].to_numpy()
    np.testing.assert_allclose(table[: len(shares)], shares)
    assert not table[len(shares) :].any()
    away = dict(nx.all_pairs_shortest_path_length(families))
    for length, share in features["distance"]["observed"].items():
        count = sum(
            away[a].get(b, None) == (None if length == "none" else int(length))
            for a in families for b in families if a != b
        )  # fmt: skip
        assert share == pytest.approx(count / (16 * 15))
    partners = [len(list(nx.common_neighbors(families, a, b))) for a, b in families.edges]
    np.testing.assert_allclose(features["shared partners"]["observed"].to_numpy()[:2], np.bincount(partners)[:2] / 20)
    assert features["triads"]["observed"]["3"] == pytest.approx(sum(nx.triangles(families).values()) / 3 / 560)
    for table in features.values():
        assert (table["low"] <= table["median"]).all() and (table["median"] <= table["high"]).all()
        assert table["observed"].sum() == pytest.approx(1.0)
    own = fit.checks.graph.statistics
    assert own.loc["edges", "observed"] == 20 and (own["p_value"] > 0.05).all()


def test_an_estimate_that_does_not_reproduce_its_statistics_is_told():
    """A prior that allows hardly any ties."""
    with pytest.warns(dfd.errors.DfdbayesWarning) as told:
        found = dfd.fit("graph", florence(), options={"terms": "edges"}, check=True, **QUICK,
                        prior={"edges": dist.Normal(-5.0, 0.05)})  # fmt: skip
    assert found.checks.graph.away == ("edges",)
    assert any(isinstance(one.message, dfd.errors.MisfitWarning) for one in told)
    assert any(
        "The estimate is off" in text and "Or the terms do not" in text and "(observed 20)" in text
        for text in found.warnings
    )
    assert "are not like the observed one: on average they have edges" in found.answer


def test_graphs_resemble_the_observed_one_in_features_or_not_at_all():
    """Cliques of four, which a model of the number of ties does not make though it has as many ties."""
    graph = nx.disjoint_union_all([nx.complete_graph(4)] * 6)
    model = dfd.models.RandomGraph("edges").bound(dfd.ObservedGraph.of(graph))
    odds = np.log(36 / 240)
    found = dfd.graph_goodness(model, {"edges": odds})
    assert found.away == () and "shared partners" in found.differing and "triads" in found.differing
    assert "differ from this one in" in found.sentence and "gwesp(0.25)" in found.sentence
    triangles = dfd.models.RandomGraph("triangle").bound(dfd.ObservedGraph.of(graph))
    assert "What may be missing: edges." in dfd.graph_goodness(triangles, {"triangle": -1.0}).sentence
    own = dfd.simulate(model, {"edges": odds}, 1, seed=6).graph(0)
    alike = dfd.graph_goodness(model.bound(own), {"edges": odds})
    assert alike.differing == () and min(alike.p_values.values()) > 1 / 101
    least = f"(smallest p = {min(alike.p_values.values()):.2g}, by 100 graphs)."
    told = "Graphs simulated from the model resemble this one in degree, distance, shared partners and triads "
    assert alike.sentence == told + least


def test_goodness_of_a_fit_is_at_its_posterior_mean(fit):
    again = dfd.graph_goodness(fit)
    np.testing.assert_array_equal(again.statistics["observed"], fit.checks.graph.statistics["observed"])
    np.testing.assert_array_equal(again.statistics["mean"], fit.checks.graph.statistics["mean"])
    assert again.statistics["p_value"].min() > 0 and repr(fit.checks) == repr(again)
    assert "edges" in repr(again) and len(repr(again)) < 1200
    with pytest.raises(dfd.errors.SettingError, match="no random graph"):
        dfd.graph_goodness(small_fits.poisson())


def test_effects_are_odds_ratios(fit):
    found = fit.effects()
    draws = fit.entries["triangle"]
    assert list(found.index) == ["edges", "triangle"]
    assert found.loc["triangle", "odds_ratio"] == pytest.approx(np.exp(np.median(draws)))
    assert found.loc["triangle", "above_zero"] == pytest.approx((draws > 0).mean())
    with pytest.raises(dfd.errors.SettingError, match="ties are no rows"):
        fit.residuals()


def test_simulated_graphs_for_networkx(fit):
    graphs = dfd.simulate(fit.model, fit.minimum.vector, 10)
    first = graphs.to_networkx()[0]
    assert len(list(graphs)) == len(graphs) and (graphs[-1].tie_of_dyad == graphs.ties[-1]).all()
    assert first.number_of_edges() == graphs.ties[0].sum() and set(first) == set(florence())
    assert repr(graphs).startswith("Graphs(10 of 16 nodes, from edges + triangle")


def test_nodes_beside_edges_given_to_fit():
    """By the model or by its name, whose other one is ergm; a table may have the names in its index."""
    nodes = pd.DataFrame({"name": list("abcd"), "side": list("uvuv")}).set_index("name")
    edges = [("a", "b"), ("b", "c")]
    terms = "edges + nodematch('side')"
    for model, options in ((dfd.models.RandomGraph(terms), None), ("ergm", {"terms": terms})):
        found = small_fits.quietly(model, edges, nodes=nodes, options=options, check=False)
        assert found.model.graph_observed.names == ("a", "b", "c", "d")


def test_the_triad_census_of_directed_graphs():
    from dfdbayes.families.graph.goodness import TRIADS, _directed_triads

    for seed, n, density in [(1, 4, 0.4), (2, 9, 0.15), (3, 9, 0.5), (4, 12, 0.8)]:
        graph = nx.gnp_random_graph(n, density, seed=seed, directed=True)
        expected = nx.triadic_census(graph)
        found = _directed_triads(nx.to_numpy_array(graph).astype(bool)) * n * (n - 1) * (n - 2) / 6
        np.testing.assert_allclose(found, [expected[kind] for kind in TRIADS], atol=1e-6)


def test_pictures_of_goodness(fit):
    assert len(dfd.plots.graph_goodness(fit).axes) == 4
    with pytest.raises(dfd.errors.SettingError, match="check=True"):
        dfd.plots.graph_goodness(dfd.fit("poisson", [1, 2, 3, 2] * 5, **QUICK))
