"""Choosing graphs: the Gibbs sampler against all graphs, and what stands behind it."""

import itertools

import numpy as np
import pytest
from scipy import stats

import dfdbayes as dfd
import small_fits
from dfdbayes.families.network import selection


def enumerated(b, precision, scale, odds):
    """Inclusion probabilities by going over all graphs, each with the density of the estimate under it."""
    sigma = np.linalg.inv(precision)
    estimate, total, each = sigma @ b, 0.0, np.zeros(len(b))
    for graph in itertools.product([0, 1], repeat=len(b)):
        present = np.array(graph)
        spread = sigma + np.diag(present * scale**2)
        weight = odds ** present.sum() * stats.multivariate_normal(np.zeros(len(b)), spread).pdf(estimate)
        total, each = total + weight, each + weight * present
    return each / total


def log_weight(graph, b, precision, scale, odds):
    """The log posterior probability of a graph up to a constant, as the module states it."""
    at = np.flatnonzero(graph)
    inner = precision[np.ix_(at, at)] + np.diag(1.0 / scale[at] ** 2)
    shape = 0.5 * np.linalg.slogdet(inner)[1] + np.sum(np.log(scale[at]))
    return len(at) * np.log(odds) - shape + 0.5 * b[at] @ np.linalg.solve(inner, b[at])


@pytest.fixture(scope="module")
def statement():
    rng = np.random.default_rng(2)
    root = rng.standard_normal((6, 9))
    precision = 20.0 * root @ root.T / 9
    estimate = np.array([0.5, 0.0, 0.25, -0.4, 0.1, 0.02])
    return precision @ estimate, precision, np.array([1.0, 1.0, 0.5, 1.0, 2.0, 1.0])


@pytest.mark.parametrize("odds", [1.0, 0.25])
def test_joint_selection_is_the_enumeration_of_all_64_graphs(statement, odds):
    found = selection.drawn(*statement, odds, np.random.default_rng(0))
    exact = enumerated(*statement, odds)
    np.testing.assert_allclose(found.inclusion, exact, atol=0.01)
    np.testing.assert_allclose(found.present.mean(axis=0), exact, atol=0.04)
    graphs = np.array(list(itertools.product([0, 1], repeat=6)))
    weights = np.array([log_weight(graph, *statement, odds) for graph in graphs])
    chances = np.exp(weights - weights.max())
    chances /= chances.sum()
    np.testing.assert_allclose(chances @ graphs, exact, atol=1e-8)


def test_bayes_factors_are_ratios_of_what_the_estimate_has_under_either(statement):
    b, precision, scale = statement
    sigma = np.linalg.inv(precision)
    estimate = sigma @ b

    def density(present):
        return stats.multivariate_normal(np.zeros(6), sigma + np.diag(present * scale**2)).pdf(estimate)

    slow = [density(np.ones(6)) / density(np.arange(6) != j) for j in range(6)]
    np.testing.assert_allclose(selection.bayes_factors(b, precision, scale), slow, rtol=1e-8)


def test_the_evidence_of_a_fit():
    fit = small_fits.network()
    table = fit.evidence()
    assert list(table["from"]) == list(dfd.evidence.edges(fit)["from"])
    assert table["inclusion"].between(0, 1).all()
    strong = table.loc[table["mean"].abs().idxmax()]
    assert strong["bayes_factor"] > 1
    assert table.attrs["expected_false_edges"] <= (table["evidence"] == "present").sum()
    fewer = fit.evidence(odds=0.1)
    assert (fewer["inclusion"] <= table["inclusion"] + 0.02).all()
    with pytest.raises(dfd.errors.SettingError, match="positive number"):
        fit.evidence(odds=0.0)


def test_what_is_said_of_edges_is_the_posterior_without_their_prior():
    """With the slab's precision added the mean is that of the calibrated posterior, where the slab is the prior."""
    fit = small_fits.network()
    b, precision = selection.information_of_edges(fit)
    prior = 1.0 / np.asarray(fit.model.space.priors["interaction"].scale) ** 2
    mean = np.linalg.solve(precision + prior * np.eye(len(b)), b)
    shape = fit.calibration.curvature
    mode = shape.centre - np.linalg.solve(shape.information + shape.precision, shape.pull - shape.force)
    first = fit.model.space.first["interaction"]
    np.testing.assert_allclose(mean, mode[first : first + len(b)], atol=1e-6)
