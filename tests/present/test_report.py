"""Every section of a report, for one fit of each kind; and the page as a browser sees it."""

import json
import re
from dataclasses import replace
from functools import cache
from html import unescape

import jax
import numpy as np
import pandas as pd
import pytest
from markupsafe import escape

import dfdbayes as dfd
import small_fits
from browser import opened
from dfdbayes import plots
from dfdbayes.core import diagnostics
from dfdbayes.core.minimise import Outcome
from dfdbayes.present import html, sections
from dfdbayes.present.blocks import Caution
from dfdbayes.present.methods import REFERENCES, Methods
from dfdbayes.present.renderers import page as render
from dfdbayes.results import checking
from dfdbayes.results.tree import assemble

KINDS = {
    "count": small_fits.counts,
    "network": small_fits.network,
    "lattice": small_fits.lattice,
    "count network": small_fits.count_network,
}
SECTIONS = (
    "Warnings", "Network", "Estimates", "Does the model reproduce the data?", "How sure, and why: calibration",
    "Posterior", "Influence of rows", "Data", "How it was found: model, loss and prior", "Chains",
    "Seeds, versions and times", "What to report in a paper",
)  # fmt: skip


@cache
def page(kind: str) -> str:
    return render(KINDS[kind]())


@pytest.mark.parametrize("kind", KINDS)
def test_every_section_is_there(kind):
    text = page(kind)
    left_out = ("" if KINDS[kind]().warnings else "Warnings", "" if "network" in kind else "Network")
    left_out += ("Influence of rows",) if KINDS[kind]().influential is None else ()
    assert re.findall("<h2>(.*?)</h2>", text) == [title for title in SECTIONS if title not in left_out]
    assert text.index(str(escape(KINDS[kind]().answer))) < text.index("<h2>")
    assert text.count("<img ") == text.count("data:image/png;base64,") >= 5
    assert text.count("<script") == text.count('<figure class="live" hidden>') == ("network" in kind)
    assert "http:" not in text and "https:" not in text
    for words in ("share of zeros", "distinct rows", "uncalibrated, β = 1", "width ratio", "References", "seed"):
        assert words in text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            "count",
            (
                "λ<sup>x</sup> / (x!)<sup>ν</sup>",
                "Chi2(df=3)",
                "discrete Fisher divergence",
                "dispersion_index",
                "inversion",
            ),
        ),
        (
            "network",
            ("interaction<sub>ij</sub>", "mood &amp; &lt;b&gt;", "ratio matching", "Bayes factor", "Inclusion"),
        ),
        (
            "lattice",
            ("x<sub>i</sub> x<sub>j</sub> / temperature", "3 × 4 sites", "edges with equal ends", "all 12 sites"),
        ),
        ("count network", ("log x<sub>j</sub>!", "wolves – deer", "√interaction ~ Normal", "lowers the other's rate")),
    ],
)
def test_what_a_kind_has_of_its_own(kind, words):
    for word in words:
        assert word in page(kind).replace("&#39;", "'")


NOTE = "the first line was read as a row. What to do: write a name above the data."


def every_warning(monkeypatch) -> tuple[str, ...]:
    """All that `diagnostics` can say, from a run in which everything went wrong."""
    fit = small_fits.counts()
    objective = dfd.Objective(fit.model, replace(fit.data, dropped=7, notes=(NOTE,)), fit.loss)
    minimum = replace(fit.minimum, outcome=Outcome.BOUNDARY, edges=("nu",))
    bad = (Outcome.ESCAPED,) * 5 + (Outcome.CONVERGED,) * 35
    reason = "score-matching: no beta > 0 fits. What to do: widen the prior."
    calibration = replace(
        fit.calibration, outcomes=bad, used=30, degenerate=3, error=fit.beta, instead_of=reason,
        method="score-matching-invariant",
    )  # fmt: skip
    stuck = np.repeat(np.arange(4.0)[:, None], 250, axis=1) + 1e-3 * np.arange(250.0)
    prior = np.asarray(fit.model.space.priors["nu"].sample(jax.random.key(1), (4, 250)))
    groups = assemble({"rate": 1e3 * stuck, "nu": prior, "huge": np.exp(9 * stuck**2)}, {}, fit.data, {})
    monkeypatch.setattr(diagnostics, "flat_parameters", lambda objective, minimum: ("rate",))
    stats = {"diverging": np.ones((4, 250), bool)}
    found = diagnostics.warnings_of(objective, minimum, calibration, stats, groups["posterior"])
    return tuple(map(str, found))


def test_every_warning_stands_with_its_remedy(monkeypatch):
    warnings = every_warning(monkeypatch)
    assert len(warnings) == 14
    text = unescape("".join(html.block(Caution(warning)) for warning in warnings))
    assert text.count("<strong>What to do:</strong>") == text.count('class="warning"') == 14
    for warning in warnings:
        happened, marked, remedy = warning.partition("What to do:")
        assert marked and len(remedy) > 10 and happened.strip() in text and remedy in text
    assert "<h2>Warnings</h2>" not in render(replace(small_fits.counts(), warnings=()))


def test_names_are_escaped_everywhere():
    name = "<script>alert('x')</script> & \"more\""
    fit = small_fits.quietly("poisson", pd.DataFrame({name: [2, 3, 1, 4, 2, 0] * 5}), beta=1.0)
    text = render(replace(fit, data=replace(fit.data, source=name)))
    assert "<script" not in text and "&lt;script&gt;" in text
    assert "these are the uncalibrated intervals" in text


def test_a_loaded_fit_of_an_own_model_says_what_it_cannot_show(tmp_path):
    model = dfd.Model(
        lambda theta, x: theta["rate"] * x[0] - 2.0 * x[0] ** 2,
        domain=dfd.Finite(1, 3),
        parameters={"rate": dfd.models.IsingNetwork(2).space.parameters[0].prior},
        name="mine",
    )
    fit = small_fits.quietly(model, [0, 1, 1, 0, 2, 0, 0, 1] * 20, loss="ratio")
    text = render(dfd.load(fit.save(tmp_path / "f.nc")))
    assert "uncalibrated, β = 1" in text and "(p &lt; 0.002)" in text  # both are kept with the fit
    assert "a mass function of your own" in text


def test_a_predictive_check_that_fails_does_not_break_the_page(monkeypatch):
    def fail(*arguments, **settings):
        raise dfd.errors.ModelError("counts above 10,000 are likely")

    monkeypatch.setattr(checking, "replicate", fail)
    fit = small_fits.quietly("poisson", [1, 2, 3, 4] * 9)
    assert "There is no predictive check: counts above 10,000 are likely" in render(fit)
    assert "it was not asked for (check=False)" in render(small_fits.quietly("poisson", [1, 2, 3, 4] * 9, check=False))


def test_report_and_plots_compute_nothing(monkeypatch):
    """No sampler, simulator or minimiser is called for a page: everything is on the fit."""
    from dfdbayes.core import minimise, model, objective, replicates
    from dfdbayes.core import samplers as sampling
    from dfdbayes.families import simulate as simulators
    from dfdbayes.fitting import fit as fitting
    from dfdbayes.results import predictive

    kinds = (small_fits.counts(), small_fits.network(), small_fits.lattice(), small_fits.count_network())

    def forbidden(*arguments, **settings):
        pytest.fail("a page must not compute")

    for module, name in (
        (minimise, "minimise"), (replicates, "minimise_many"), (objective, "_second_order"), (objective, "_value"),
        (objective, "_derivatives"), (sampling.base, "centre"), (sampling.nuts, "_block"), (sampling.Laplace, "run"),
        (model, "draw"), (simulators, "simulate"), (predictive, "replicate"), (fitting, "sample"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, forbidden)
    for fit in kinds:
        assert "<h2>Does the model reproduce the data?</h2>" in render(fit)
        plots.posterior(fit)
    plots.predictive(kinds[0].checks)
    plots.lattice(kinds[2])


def cited(**changes) -> Methods:
    """The method text of the count fit with other settings."""
    fit = small_fits.counts()
    known = {k: v for k, v in changes.items() if k in ("method", "resampling")}
    told = {"calibration": known["method"]} if "method" in known else {}
    told |= {k: v for k, v in changes.items() if k not in ("method", "resampling")}
    loss = dfd.losses.by_name(told.get("loss", "dfd"))
    changed = replace(fit, settings=fit.settings | told, calibration=replace(fit.calibration, **known), loss=loss)
    return Methods(changed, "largest R-hat 1.001")


def test_the_result_for_a_paper_has_no_advice():
    fit = small_fits.ALL["poisson"]()
    advice = fit.checks.misfits[0].advice
    told = sections.paper(fit).result
    assert fit.answer.endswith(advice) and advice not in told and fit.checks.misfits[0].sentence in told


def test_method_text_follows_the_settings():
    default = cited()
    assert {"matsubara", "bissiri", "efron"} <= default.cited and "hoffman" not in default.cited
    assert "Theorem 3" in default.text and "3168 observations of 1 variable " in default.text
    assert f"β = {small_fits.counts().beta:.4g}" in default.text
    assert {"hoffman", "blackjax", "vehtari"} <= cited(sampler="nuts").cited
    assert "besag" in cited(loss="pseudo").cited and "hyvarinen" in cited(loss="ratio").cited
    assert "yang" in cited(loss="ksd").cited and "rubin" in cited(resampling="dirichlet").cited
    assert "syring" in cited(method="gpc").cited and "lyddon" in cited(method="lyddon").cited
    assert "chosen by hand" in cited(method="given").text and "shaby" in Methods(small_fits.network()).cited
    plain = cited(loss="likelihood", method="none", sampler="nuts")
    assert "by Bayesian inference." in plain.text and "matsubara" not in plain.cited
    assert "random-walk Metropolis" in cited(sampler="random-walk").text
    assert "kruschke" not in Methods(small_fits.network()).cited  # edges are judged by Bayes factors
    for written in (default, plain):
        assert written.references == sorted(REFERENCES[key] for key in written.cited)


def sound(path, width: int) -> None:
    """Pictures are there and have alternative texts, nothing is asked for outside, and nothing scrolls sideways."""
    seen = opened(path, width, framed=True)
    assert len(seen["images"]) == path.read_text().count("<img ") and all(seen["images"]) and not seen["alts"]
    assert not seen["console"] and not seen["outside"]
    assert seen["wide"] <= seen["window"] == width


@pytest.mark.parametrize("kind", ["count", "network"])
def test_the_page_in_a_browser(kind, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page(kind), encoding="utf-8")
    for width in (400, 1200):
        sound(path, width)


@pytest.mark.slow
@pytest.mark.parametrize("kind", small_fits.ALL)
def test_the_page_of_every_family_in_a_browser(kind, tmp_path):
    for width in (400, 1200):
        sound(small_fits.ALL[kind]().report(tmp_path / "report.html"), width)


def test_a_browser_that_asks_for_something_outside_is_noticed(tmp_path):
    (tmp_path / "bad.html").write_text("<body><img alt=x src='http://example.invalid/x.png'><p>text</body>")
    seen = opened(tmp_path / "bad.html", 400, framed=True)
    assert seen["outside"] == ["http://example.invalid/x.png"] and seen["images"] == [False]


def test_the_same_numbers_stand_beside_the_page(tmp_path):
    fit = small_fits.counts()
    page = fit.report(tmp_path / "sales & more.html").read_text()
    beside = json.loads((tmp_path / "sales & more.json").read_text())
    assert beside["answer"] == fit.answer and beside["parameters"]["nu"]["mean"] == fit.summary().loc["nu", "mean"]
    assert 'href="sales%20%26%20more.json"' in page and "sales &amp; more.json" in page


def test_a_page_says_nothing_twice():
    """Edges stand in one table, and chains of many entries in a short one."""
    text = page("network")
    estimates = text[text.index('<section id="estimates">') : text.index('<section id="does-the')]
    assert "intercept[" in estimates and "interaction[" not in estimates
    wide = small_fits.wide([f"w{j}" for j in range(30)])
    _, many, _ = sections.chains(replace(wide, settings=wide.settings | {"sampler": "nuts"}))
    assert len(many.frame) == sections.MOST_CHAINS
