"""What only some fits offer stands in accessors, which only these have, and which say what there is elsewhere."""

import copy
import pickle
from dataclasses import replace

import jax.numpy as jnp
import networkx as nx
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from jax.scipy.special import gammaln

import dfdbayes as dfd
from dfdbayes.results.accessor import ACCESSORS, AbstractAccessor

QUICK = {"sampler": "laplace", "check": False, "progress": False}


@pytest.fixture(scope="module")
def fits():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (120, 3)), columns=list("abc"))
    series = {"week": range(60), "cases": [3, 4, 2, 5, 6, 4, 3, 2, 4, 5, 3, 4] * 5}
    return {
        "": dfd.fit("poisson", rng.poisson(3.0, 60), **QUICK),
        "regression": dfd.fit(
            "poisson", {"y": rng.poisson(3.0, 60), "x": rng.normal(size=60)}, formula="y ~ x", **QUICK
        ),
        "regression series": dfd.fit("poisson", series, formula="cases ~ log1p(lag(cases))", time="week", **QUICK),
        "network": dfd.fit("ising-network", frame, **QUICK),
        "graph": dfd.fit(dfd.models.RandomGraph("edges"), nx.florentine_families_graph(), **QUICK),
        "map": dfd.fit(dfd.models.Autologistic(), rng.integers(0, 2, (6, 6)), bootstrap=100, **QUICK),
    }


def test_a_fit_has_the_accessors_of_its_family_and_no_others(fits):
    for names, fit in fits.items():
        has = {name for name in ACCESSORS if hasattr(fit, name)}
        assert has == set(names.split()) == set(dir(fit)) & set(ACCESSORS)
        assert all(isinstance(getattr(fit, name), ACCESSORS.by_name(name)) for name in has)


def test_where_there_is_none_the_error_says_what_there_is(fits):
    with pytest.raises(AttributeError, match=r"fit.network is for networks .* 'poisson', and it has fit.regression"):
        _ = fits["regression"].network
    with pytest.raises(AttributeError, match="formula="):
        _ = fits[""].regression
    with pytest.raises(AttributeError, match=r"dfd.load\(path, model=...\)"):
        _ = replace(fits["network"], model=None).network
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = fits[""].nonsense


def test_methods_of_fits_are_those_of_accessors(fits):
    network, graph = fits["network"], fits["graph"]
    pd.testing.assert_frame_equal(network.evidence(), network.network.edges())
    pd.testing.assert_frame_equal(network.nodes(), network.network.nodes())
    pd.testing.assert_frame_equal(graph.effects(), graph.graph.effects())
    pd.testing.assert_frame_equal(fits["map"].predict(), fits["map"].map.sites())
    own = fits["regression series"]
    pd.testing.assert_frame_equal(own.residuals(), own.regression.residuals())
    pd.testing.assert_frame_equal(own.forecast(2).table, own.series.forecast(2).table)
    assert graph.graph.goodness(size=50).size == 50


def test_copies_have_them_too(fits):
    fit = fits["regression"]
    again = pickle.loads(pickle.dumps(fits["graph"]))
    assert hasattr(again, "graph") and not hasattr(again, "regression")
    for again in (copy.copy(fit), copy.deepcopy(fit), replace(fit, warnings=())):
        assert hasattr(again, "regression") and not hasattr(again, "graph")
        pd.testing.assert_frame_equal(again.regression.effects(), fit.regression.effects())


def test_warnings_point_at_the_line_that_asked(fits):
    lost = replace(fits["regression"])
    lost.__dict__.update(converged=False, not_converged="R-hat 2")
    for ask in (lambda: lost.effects(), lambda: lost.regression.effects(), lambda: lost.predict({"x": [0.0]})):
        with pytest.warns(dfd.errors.ConvergenceWarning) as told:
            ask()
        assert told[0].filename == __file__


def test_a_model_of_ones_own_may_name_an_accessor_of_ones_own(monkeypatch):
    class Mine(AbstractAccessor):
        fits = "my model"

        def prepare(self):
            self.fit.timings["prepared"] = {}

        def twice(self):
            return 2 * self.fit.estimate

    class Own(dfd.Model):
        accessors = ("mine",)

    monkeypatch.setitem(ACCESSORS._known, "mine", Mine)
    model = Own(lambda theta, x: theta["rate"] * x[0] - jnp.exp(theta["rate"]) - gammaln(x[0] + 1.0),
                dfd.Counts(1), {"rate": dist.Normal(0, 1)}, name="own")  # fmt: skip
    fit = dfd.fit(model, [2, 3, 1, 4, 2, 0] * 10, loss="ratio", **QUICK)
    assert fit.mine.twice() == 2 * fit.estimate and "prepared" in fit.timings
    assert repr(fit.mine) == "Mine of a fit of 'own': prepare, twice"
    with pytest.raises(dfd.errors.SettingError, match="there are no effects"):
        fit.effects()
