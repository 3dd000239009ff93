"""Networks whose nodes and edges depend on covariates: their table, differences of groups, and what shows them."""

import jax
import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes.backends.local import by_client
from dfdbayes.data.sites import Sites, rows_of
from dfdbayes.fitting.regressions import read_regression
from dfdbayes.models.pairwise_regression import PairwiseRegressionTable
from dfdbayes.models.regression_tables import RegressionTable

ITEMS = ["a", "b", "c"]


def regression(model, frame, options=None, formula=None, **formulas):
    reading = {"columns": ITEMS, "weights": None, "missing": "refuse", "cluster": None}
    source, made = read_regression(
        by_client(None), model, frame, options, formula, formulas, reading, lambda done, total: None
    )
    return made, source.data


def rows(kind, size=30):
    rng = np.random.default_rng(3)
    values = rng.poisson(1.5, (size, 3)) if kind == "counts" else rng.integers(0, 2, (size, 3))
    frame = pd.DataFrame(2 * values - 1 if kind == "spins" else values, columns=ITEMS)
    return frame.assign(group=rng.choice(["x", "y", "z"], size), age=rng.normal(0, 1, size))


@pytest.mark.parametrize(
    ("model", "kind", "settings"),
    [
        ("ising-network", "binary", {"formula": "~ group", "interaction": "~ group + offset(age)"}),
        ("ising-network", "binary", {"formula": "~ group * age + offset(age)"}),
        ("ising-network", "spins", {"interaction": "~ age", "options": {"graph": [(0, 1), (1, 2)], "states": "spins"}}),
        ("poisson-graphical", "counts", {"formula": "~ group"}),
        ("cmp-graphical", "counts", {"formula": "~ 0 + group"}),
    ],
)
def test_the_table_of_a_network_is_the_general_one(model, kind, settings):
    """Value, gradient, Hessian and the gradient of every row, against differentiation of the log mass itself."""
    made, data = regression(model, rows(kind), **settings)
    loss = dfd.losses.by_name("ratio")
    sites = Sites(data, made.domain, rows_of(data), loss.scales)
    quick, slow = (prepared.table for prepared in (made.table(sites), RegressionTable.of(made, sites)))
    assert isinstance(quick, PairwiseRegressionTable)
    rng = np.random.default_rng(1)
    theta, weights = 0.1 + 0.4 * rng.random(made.space.size), rng.random(len(slow.rows))

    def by_row(theta):
        u, v = slow.log_ratios(theta)
        return (slow.minus * loss.minus(u) + slow.plus * loss.plus(v)).sum(axis=1)

    def total(theta):
        return weights @ by_row(theta)

    @jax.jit
    def found(theta):
        return *loss.second_order(theta, quick, weights), loss.lines(theta, quick), quick.row_ratios(theta)

    @jax.jit
    def wanted(theta):
        hessian = jax.jacfwd(jax.grad(total))(theta)
        return total(theta), jax.grad(total)(theta), hessian, jax.jacfwd(by_row)(theta), slow.row_ratios(theta)

    for own, other in zip(found(theta), wanted(theta), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(loss.value(theta, quick, weights), found(theta)[0], rtol=1e-12)


def test_links_that_are_bent_have_the_general_table():
    """Interactions of counts are not negative: with a formula they are exponentials, and no longer linear."""
    made, data = regression("poisson-graphical", rows("counts"), interaction="~ group")
    sites = Sites(data, made.domain, rows_of(data))
    assert isinstance(made.table(sites).table, RegressionTable)
