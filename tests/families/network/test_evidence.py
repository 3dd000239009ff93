from dataclasses import replace

import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest

import dfdbayes as dfd
import small_fits
from dfdbayes.core.dataset import column_summary, frequencies, pooled_summary
from dfdbayes.families.network import evidence, rope, verdict
from dfdbayes.fitting.runs import write_run
from dfdbayes.present import methods
from dfdbayes.present.renderers import page as render
from dfdbayes.results.tree import assemble
from dfdbayes.results.uncalibrated import is_calibrated, outweighed, side_by_side


def with_edges(fit, draws):
    """The same fit with other draws of its edges."""
    name = fit.model.space.parameters[1].name
    node = fit.model.space.parameters[0]
    named = {node.name: np.zeros((1, len(draws), node.size)), name: np.asarray(draws)[None]}
    labels = {p.name: p.labels for p in fit.model.space.parameters[:2]}
    return replace(fit, groups=assemble(named, {}, fit.data, labels))


def by_region(fit):
    """The same fit without the information that graphs are drawn from, so that draws alone decide."""
    return replace(fit, calibration=replace(fit.calibration, curvature=None))


def around(centres, spread, size=2000):
    return np.asarray(centres) + spread * np.random.default_rng(0).standard_normal((size, len(centres)))


def test_columns_at_a_glance_against_the_definition():
    rows = np.array([[0, 2], [0, 5], [3, 2], [0, 2]])
    table = column_summary(dfd.Dataset.of(rows, columns=None))
    np.testing.assert_allclose(table["mean"], rows.mean(axis=0))
    np.testing.assert_allclose(table["variance"], rows.var(axis=0))
    assert table["min"].tolist() == [0, 2] and table["max"].tolist() == [3, 5] and table["zeros"].tolist() == [0.75, 0]
    whole = pooled_summary(dfd.Dataset.of(rows)).iloc[0]
    assert whole["mean"] == pytest.approx(rows.mean()) and whole["variance"] == pytest.approx(rows.var())
    assert whole["zeros"] == pytest.approx((rows == 0).mean())
    values, weight = frequencies(dfd.datasets.sales())
    assert values[0] == 0 and weight[0] == 514 and weight.sum() == 3168


def test_verdicts_of_signed_edges():
    """Clear, clear and negative, certainly small, certainly small but not zero, wide, and at the edge of the region."""
    fit = by_region(small_fits.network())
    draws = around([1.0, -1.0, 0.0, 0.1, 0.2, 0.2], [0.1, 0.1, 0.03, 0.02, 0.5, 0.05])
    table = evidence.edges(with_edges(fit, draws)).set_index(["from", "to"])
    a, b, c, d = small_fits.NAMES
    assert [table.loc[pair, "evidence"] for pair in ((a, b), (a, c), (a, d), (b, c), (b, d), (c, d))] == [
        "present", "present", "absent", "absent", "inconclusive", "present",
    ]  # fmt: skip
    assert table.loc[(a, b), "sign"] == 1 and table.loc[(a, c), "sign"] == -1
    assert (table["region"] == 0.18).all() and table["prior_inside"].iloc[0] == pytest.approx(0.143, abs=0.02)
    assert abs(table["mean"]).is_monotonic_decreasing


def test_spins_have_a_smaller_region():
    """For -1/+1 the log odds ratio of two variables is four times their interaction."""
    spins = replace(small_fits.network(), model=dfd.models.IsingNetwork(4, states="spins"))
    np.testing.assert_allclose(evidence.regions(spins), 0.045)


def test_the_truth_of_a_simulated_network_is_found():
    table = evidence.edges(small_fits.network())
    found = {(row["from"], row["to"]): row for _, row in table.iterrows()}
    a, b, c, _ = small_fits.NAMES
    assert found[a, b]["evidence"] == "present" and found[a, b]["sign"] == 1
    assert found[b, c]["evidence"] == "present" and found[b, c]["sign"] == -1
    assert "Bayes factor is above 10" in evidence.rule(small_fits.network())
    assert "excludes zero, and less than 95% of" in evidence.rule(by_region(small_fits.network()))


def test_verdicts_bayes_factors_and_inclusion_say_the_same():
    """An interval without zero is not enough: of many edges some have one by chance."""
    fit = small_fits.network()
    table = evidence.edges(fit)
    factor, inclusion = table["bayes_factor"], table["inclusion"]
    np.testing.assert_allclose(factor[factor < 1e6], (inclusion / (1 - inclusion))[factor < 1e6], rtol=1e-6)
    assert list(table["evidence"]) == list(verdict.by_bayes_factor(factor.to_numpy()))
    assert verdict.by_bayes_factor(np.array([11.0, 9.0, 0.11, 0.09])).tolist() == [
        "present", "inconclusive", "inconclusive", "absent",
    ]  # fmt: skip
    weak = with_edges(fit, around([0.2] * 6, 0.05))
    assert (evidence.edges(weak)["low"] > 0).all()
    assert (evidence.edges(weak)["evidence"] == "present").sum() == (factor > 10).sum()
    there = (1 - inclusion)[table["evidence"] == "present"].sum()
    assert table.attrs["expected_false_edges"] == pytest.approx(there) and there < 1
    pd.testing.assert_frame_equal(pd.DataFrame(fit.evidence()), pd.DataFrame(table))
    assert "expected to be wrong" in fit.answer and " 0 are" not in fit.answer


def test_people_see_the_strongest_edges_first(tmp_path):
    fit = small_fits.network()
    shown = evidence.edges_first(fit, fit.summary())
    edges = shown[shown.index.str.startswith("interaction[")]
    assert list(shown.index[:6]) == list(edges.index) and edges["mean"].abs().is_monotonic_decreasing
    assert (
        list(edges["evidence"]) == list(evidence.edges(fit)["evidence"]) and edges["Bayes factor"].iloc[0] == "> 1000"
    )
    assert str(fit).index("interaction[") < str(fit).index("intercept[")
    pd.testing.assert_frame_equal(evidence.edges_first(small_fits.counts(), small_fits.counts().summary()),
                                  small_fits.counts().summary())  # fmt: skip
    names = write_run(tmp_path, fit, {"data": "x", "settings": {}})
    assert {"edges.csv", "nodes.csv"} < set(names)
    written = pd.read_csv(tmp_path / "edges.csv")
    assert list(written["evidence"]) == list(fit.evidence()["evidence"]) and "bayes_factor" in written
    assert list(pd.read_csv(tmp_path / "nodes.csv")["node"]) == list(fit.nodes().index)


@pytest.mark.slow
def test_verdicts_of_counts_need_relevance_and_more_than_the_prior():
    fit = small_fits.count_network()
    spread = np.sqrt(column_summary(fit.data)["variance"].to_numpy())
    regions = evidence.regions(fit)
    np.testing.assert_allclose(regions[0], -np.log(0.95) / max(spread[0], spread[1]))
    small = np.abs(around([0.0] * 3, 0.001))
    table = evidence.edges(with_edges(fit, small + np.array([5 * regions[0], 0.0, 1.2 * regions[2]])))
    verdicts = {row["from"] + row["to"]: row["evidence"] for _, row in table.iterrows()}
    assert verdicts == {"wolvesdeer": "present", "wolvesoaks": "absent", "deeroaks": "present"}
    assert (table["sign"] == -1).all() and "lowers the other's rate" in evidence.rule(fit)
    narrow = replace(fit, model=fit.model.with_priors({"interaction": dist.Normal(0.0, 1e-3)}))
    told = {p.name: s for p, s in zip(narrow.model.space.parameters, fit.settings["priors"].values(), strict=True)}
    told["interaction"] = "Normal(loc=0, scale=0.001)"
    narrow = replace(narrow, settings=fit.settings | {"priors": told})
    table = evidence.edges(with_edges(narrow, small))
    assert (table["prior_inside"] == 1).all() and (table["evidence"] == "inconclusive").all()


def test_unknown_priors_never_make_an_edge_absent(tmp_path):
    fit = by_region(small_fits.network())
    other = replace(fit, missing=("prior of interaction",))
    table = evidence.edges(with_edges(other, around([0.0] * 6, 0.01)))
    assert table["prior_inside"].isna().all() and (table["evidence"] == "inconclusive").all()


def test_uncalibrated_intervals_are_those_of_beta_one():
    fit = small_fits.counts()
    plain = small_fits.quietly("cmp", dfd.datasets.sales(), beta=1.0, draws=4000).summary()
    found = fit.uncalibrated
    assert list(found.index) == list(plain.index)
    sd = plain["sd"].to_numpy()
    assert np.all(np.abs(found["low"] - plain["eti95_lb"]) < 0.15 * sd)
    assert np.all(np.abs(found["high"] - plain["eti95_ub"]) < 0.15 * sd)
    both, own = side_by_side(fit), fit.summary()
    np.testing.assert_allclose(both["calibrated_low"], own["eti95_lb"], rtol=1e-6)
    np.testing.assert_allclose(
        both["width_ratio"], (own["eti95_ub"] - own["eti95_lb"]) / (found["high"] - found["low"]), rtol=1e-6
    )


def test_uncalibrated_intervals_of_a_single_lattice():
    model = dfd.models.Ising(dfd.graphs.grid(12, 12))
    fit = small_fits.quietly(model, dfd.simulate(model, {"temperature": 4.0}, 1, method="swendsen-wang").rows, beta=0.5)
    assert np.isfinite(side_by_side(fit).to_numpy()).all()


def test_uncalibrated_intervals_say_what_is_missing(tmp_path):
    fit = small_fits.counts()
    assert is_calibrated(fit) and not is_calibrated(small_fits.quietly("poisson", [1, 2, 3] * 9, beta=1.0))
    assert "were not computed (check=False)" in render(replace(fit, uncalibrated=None))
    again = side_by_side(dfd.load(fit.save(tmp_path / "f.nc")))
    np.testing.assert_allclose(again.to_numpy(), side_by_side(fit).to_numpy(), rtol=1e-6)


def test_where_the_prior_outweighs_the_data():
    fit = small_fits.counts()
    assert outweighed(fit) == ()
    far = replace(fit.minimum, vector=fit.minimum.vector + np.array([9.0, 0.0]))
    assert outweighed(replace(fit, minimum=far)) == ("rate",)
    assert outweighed(replace(fit, minimum=replace(far, edges=("rate",)))) == ()
    text = render(replace(fit, minimum=far))
    assert "outside the 95 % interval of rate: there the prior outweighs the data." in text


def test_a_paper_has_no_fingerprints_of_arrays():
    prior = {"interaction": "Normal(loc=[0, -0.1368094592, 0, ..., 0, #d16cd936], scale=[1, 1, 1, ..., 1, #565cc823])"}
    fit = replace(small_fits.network(), settings=small_fits.network().settings | {"priors": prior})
    assert methods.priors(fit) == "interaction ~ Normal(loc=[0, -0.137, 0, ..., 0], scale=[1, 1, 1, ..., 1])"


REGION = np.full(4, 0.18)
CASES = {  # centre and spread of the posterior, the width of the prior, and the verdict
    "large": (1.0, 0.1, 1.0, "present"),
    "small, and less likely so beforehand": (0.1, 0.02, 1.0, "absent"),
    "small, and as likely so beforehand": (0.1, 0.02, 0.01, "inconclusive"),
    "nothing known": (0.1, 0.5, 1.0, "inconclusive"),
}


@pytest.mark.parametrize("words", [("present", "absent"), ("different", "alike")])
def test_one_rule_judges_by_the_region(words):
    """An interval without zero inside the region says nothing where the prior was inside as well."""
    centres, spreads, widths, wanted = zip(*CASES.values(), strict=True)
    draws, prior = around(centres, np.array(spreads)), around([0.0] * 4, np.array(widths))
    found = verdict.judge(draws, REGION, prior, None, words=words)
    np.testing.assert_allclose(found.low, np.quantile(draws, 0.025, axis=0))
    assert (found.low[:3] > 0).all() and found.inside[2] > 0.95 and found.prior_inside[2] > 0.95
    told = dict(zip(("present", "absent"), words, strict=True))
    assert found.verdict.tolist() == [told.get(word, word) for word in wanted]
    unknown = verdict.judge(draws, REGION, None, None).verdict
    assert unknown.tolist() == ["present", "inconclusive", "inconclusive", "inconclusive"]
    assert set(verdict.judge(draws, REGION, prior, None, converged=False).verdict) == {"not converged"}
    by_factor = verdict.judge(draws, REGION, prior, np.array([11.0, 0.05, 1.0, 1.0])).verdict
    assert by_factor.tolist() == ["present", "absent", "inconclusive", "inconclusive"]


def test_the_rule_says_between_which_values_odds_are_told():
    """Of two ordered levels they are told two standard deviations apart, as of more levels."""
    fit = small_fits.network()
    ordered = replace(fit, model=dfd.models.Network(dfd.Ordinal(4, 2)))
    apart = "between values two standard deviations apart"
    assert not rope.between_two_values(ordered) and apart in evidence.slab(ordered, "an edge is there, its")
    assert apart not in evidence.slab(fit, "an edge is there, its")
