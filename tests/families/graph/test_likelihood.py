"""The simulated likelihood of a graph against the sum over all graphs, and against published estimates."""

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import optimize

import dfdbayes as dfd
from dfdbayes.families.graph import likelihood as graph_likelihood
from dfdbayes.families.graph.chains import all_graphs
from small_fits import QUICK, quietly

TERMS = "edges + triangle"


def small():
    """Six nodes: 2^15 graphs, whose sum is the oracle."""
    return nx.Graph([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5)])


def silent(text, total):
    """Nobody is told how far a search is."""
    return lambda done: None


def exact(model):
    """Minus the log posterior and the log-likelihood, by the sum over all graphs."""
    graph = model.graph_observed
    whole, own = (model.statistics.of(ties) for ties in (all_graphs(len(graph.dyads[0])), graph.tie_of_dyad[None]))
    priors = [p.prior for p in model.space.parameters]

    @jax.jit
    def loss(theta):
        return jax.scipy.special.logsumexp(whole @ theta) - own[0] @ theta

    @jax.jit
    def posterior(theta):
        return loss(theta) - sum(prior.log_prob(theta[k]) for k, prior in enumerate(priors))

    return loss, posterior


def test_the_mode_and_the_curvature_are_those_of_the_sum_over_all_graphs():
    """Within 4 Monte-Carlo errors of a mean of 1000 graphs, and 5 of a variance: false alarms below 1e-3."""
    data, model = dfd.models.RandomGraph(TERMS).observe(small())
    found, (loss, posterior) = model.prepare_loss(dfd.losses.by_name("likelihood"), data, 3, silent), exact(model)
    mode = optimize.minimize(posterior, np.zeros(2), jac=jax.jit(jax.grad(posterior)), method="BFGS").x
    at = jnp.asarray(found.at)
    information, errors = np.asarray(jax.jit(jax.hessian(loss))(at)), np.sqrt(np.diag(found.covariance) / found.graphs)
    assert (np.abs(found.gap - jax.jit(jax.grad(loss))(at)) < 4 * errors).all()
    np.testing.assert_allclose(found.covariance, information, rtol=5 * np.sqrt(2 / found.graphs) + 0.1)
    sd = np.sqrt(np.diag(np.linalg.inv(np.asarray(jax.jit(jax.hessian(posterior))(jnp.asarray(mode))))))
    assert (np.abs(found.at - mode) < 0.5 * sd).all()  # as near as the search asks for; the last step is the loss's
    terms = found.prepare(model, None).terms
    for away in (np.array([0.2, -0.1]), np.array([-0.3, 0.1])):
        wanted = float(loss(at + away) - loss(at))
        assert float(terms.value(found, at + away, 1.0)) == pytest.approx(wanted, abs=0.15 * np.abs(away / sd).sum())
        slope = jax.grad(lambda theta: terms.value(found, theta, 1.0))(at + away)
        np.testing.assert_allclose(slope, terms.second_order(found, at + away, 1.0)[1], rtol=1e-10)
    value, gradient, hessian = terms.second_order(found, at, 1.0)
    assert float(value) == 0.0 and (gradient == found.gap).all() and (hessian == found.covariance).all()


@pytest.fixture(scope="module")
def florence(shared_data):
    nodes = pd.read_csv(shared_data / "flomarriage_nodes.csv")
    graph = dfd.ObservedGraph.of(str(shared_data / "flomarriage_edges.csv"), nodes=nodes)
    return quietly(dfd.models.RandomGraph(TERMS), graph, loss="likelihood", draws=1000)


def test_florentine_marriages_are_those_of_ergm(florence):
    """Two runs of ergm gave -1.677 (.350), 0.157 (.583) and -1.651 (.318), 0.108 (.518); the prior is weak."""
    table = florence.summary()
    np.testing.assert_allclose(table["mean"], [-1.66, 0.13], atol=0.1)
    np.testing.assert_allclose(table["sd"], [0.33, 0.53], rtol=0.15)
    assert florence.calibration.beta == 1.0 and "needs no calibration" in str(florence.calibration)
    assert not any("too narrow" in text or "pairs" in text for text in florence.warnings)
    assert florence.checks.graph.by_likelihood and not florence.checks.graph.away


def test_it_is_saved_reported_and_repeated(florence, tmp_path):
    again = dfd.load(florence.save(tmp_path / "fit.nc"))
    pd.testing.assert_frame_equal(again.summary(), florence.summary())
    assert again.checks.graph.by_likelihood
    page = florence.report(tmp_path / "page.html").read_text()
    assert (
        "1000 graphs simulated near its maximum (Hummel et al., 2012)" in page and "Improving simulation-based" in page
    )
    graph = florence.model.graph_observed
    same = quietly(dfd.models.RandomGraph(TERMS), graph, loss="likelihood", draws=1000)
    pd.testing.assert_frame_equal(same.summary(), florence.summary())


def test_a_search_that_does_not_end_says_so(florence, monkeypatch):
    monkeypatch.setattr(graph_likelihood, "MAX_ERRORS_FROM_MODE", 0.0)
    monkeypatch.setattr(graph_likelihood, "MAX_ROUNDS", 1)
    with pytest.raises(dfd.errors.MinimiserError, match="loss='pseudo'"):
        dfd.fit(dfd.models.RandomGraph(TERMS), florence.model.graph_observed, loss="likelihood", **QUICK)


def test_an_objective_alone_says_where_the_likelihood_is():
    with pytest.raises(dfd.errors.ModelError, match="loss='likelihood'"):
        dfd.minimise(dfd.objective(dfd.models.RandomGraph(TERMS), small(), "likelihood"))


def test_what_is_resampled_is_not_the_likelihood():
    graph = small()
    for settings in ({"calibration": "lyddon"}, {"resampling": "parametric", "bootstrap": 20}):
        with pytest.raises(dfd.errors.SettingError, match="loss='pseudo'"):
            dfd.fit(dfd.models.RandomGraph(TERMS), graph, loss="likelihood", **(QUICK | settings))
    found = quietly(dfd.models.RandomGraph(TERMS), graph, calibration="lyddon", check=False)
    assert found.settings["loss"] == "pseudo" and "dyads" in found.settings["loss_reason"]


def test_a_graph_whose_likelihood_is_not_found_has_the_pseudo_likelihood(monkeypatch):
    monkeypatch.setattr(graph_likelihood, "MAX_ERRORS_FROM_MODE", 0.0)
    monkeypatch.setattr(graph_likelihood, "MAX_ROUNDS", 1)
    found = quietly(dfd.models.RandomGraph(TERMS), small(), check=False)
    assert found.settings["loss"] == "pseudo" and "not found by simulation" in found.settings["loss_reason"]


def test_a_likelihood_that_needs_no_calibration_stands_beside_none(florence, tmp_path):
    page = florence.report(tmp_path / "page.html").read_text()
    assert "95 % interval" in page and "width ratio" not in page and "uncalibrated" not in page
