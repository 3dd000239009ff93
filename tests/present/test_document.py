"""One document of a fit: renderers say the same, families add what they alone have to say, nothing is drawn unseen."""

import re
from dataclasses import replace
from html import unescape

import pandas as pd
import pytest

import small_fits
from dfdbayes.core import losses
from dfdbayes.core.narrative import Narrative
from dfdbayes.core.renderers import RENDERERS, renderer
from dfdbayes.present import blocks, console, html, notebook, page, renderers
from dfdbayes.present.document import Document
from dfdbayes.present.figures import base
from dfdbayes.present.methods import REFERENCES


def line(text: str) -> str:
    return " ".join(text.split())


def words(text: str) -> str:
    """What a person reads of HTML, in one line."""
    return line(unescape(re.sub(r"<[^>]*>", " ", text)))


@pytest.mark.parametrize("kind", ["counts", "regression", "network", "random graph", "map", "series"])
@pytest.mark.daily("counts", "network")
def test_every_renderer_says_what_the_document_says(kind):
    document = Document(replace(small_fits.ALL[kind](), warnings=("it rained. What to do: stay inside.",)))
    text, cell, whole = line(console.rendered(document)), words(notebook.rendered(document)), page.rendered(document)
    for told in (text, cell, words(whole)):
        for sentence in (document.title, document.size, document.answer, *document.warnings):
            assert line(sentence) in told
    assert all(line(how) in told for how in document.found for told in (text, cell))
    assert re.findall("<h2>(.*?)</h2>", whole) == [section.title for section in document.sections]


def test_results_find_what_shows_them():
    fit = small_fits.counts()
    assert str(fit) == console.rendered(Document(fit)) and fit._repr_html_() == notebook.rendered(Document(fit))
    assert fit.calibration._repr_html_() == notebook.of_calibration(fit.calibration)
    assert "calibration" in RENDERERS and renderer("calibration") is renderers.calibration


def test_text_draws_nothing_and_a_page_draws_each_picture_once(monkeypatch):
    drawn = []
    monkeypatch.setattr(base.Figure, "__init__", lambda *arguments, **settings: drawn.append(1))
    document = Document(small_fits.counts())
    assert console.rendered(document) and document.sections and not drawn
    monkeypatch.undo()
    pictures = [one for part in document.sections for one in part.blocks if isinstance(one, blocks.Picture)]
    assert page.rendered(document).count("<img ") == len(pictures) >= 5


class _Tides(Narrative):
    """A family that has more to say of a fit than its parameters."""

    def estimates(self, fit, summary):
        return summary.iloc[::-1].assign(verdict="wet")

    def elsewhere(self, fit):
        return ["bend"], "Of bends see above."

    def findings(self, fit):
        return {"Tides": [blocks.Interactive("<i>live</i>", "i{color: blue}", "tide()", self.still, "For a paper")]}

    still = blocks.Picture(lambda: None, "nothing to see")

    def comparisons(self, fit):
        return {"Ebbs": [blocks.Paragraph("It ebbs.")], "Floods": []}

    def data(self, fit):
        return [blocks.Facts({"sea": "deep", "wind": ""})]

    def checks(self, fit):
        return [blocks.Table(pd.DataFrame({"x": range(9)}), most=2, rest="at sea")]

    def methods(self, fit):
        return "Tides were awaited.", ("besag",)


def test_a_family_says_what_it_alone_has_to_say():
    fit = small_fits.own()
    fit = replace(fit, model=replace(fit.model, narrative=_Tides()), warnings=())
    document = Document(fit)
    titles = [section.title for section in document.sections]
    assert titles[:3] == ["Tides", "Estimates", "Ebbs"] and "Floods" not in titles
    text = page.rendered(document)
    for told in (
        "<i>live</i>", "i{color: blue}", "tide()", "Of bends see above.", "<td>deep</td>", "7 more rows are at sea.",
        "Tides were awaited.", "The Statistician",
    ):  # fmt: skip
        assert told in text
    estimates = text[text.index('id="estimates"') : text.index('id="ebbs"')]
    assert "tilt" in estimates and "bend</th>" not in estimates and "wind" not in text
    assert document.judgements == ["verdict"] and "wet" in notebook.rendered(document)
    assert re.findall(r"^(tilt|bend) +-?\d", console.rendered(document), re.MULTILINE) == ["bend", "tilt"]
    silent = Document(replace(fit, model=replace(fit.model, narrative=Narrative())))
    assert "Tides" not in [section.title for section in silent.sections]


def test_of_chains_that_did_not_converge_no_family_says_anything():
    fit = small_fits.own()
    fit = replace(fit, model=replace(fit.model, narrative=_Tides()), warnings=())
    fit.__dict__["not_converged"] = "R-hat is 2.3"
    titles = [section.title for section in Document(fit).sections]
    assert not {"Tides", "Ebbs", "Does the model reproduce the data?"} & set(titles)


def test_a_kind_of_block_may_be_defined_elsewhere():
    class Bell(str):
        pass

    with pytest.raises(TypeError, match="Bell is no kind of block"):
        html.block(Bell())
    html.block.register(Bell, lambda bell: html.Markup("ding"))
    assert html.block(Bell()) == "ding"


def test_every_loss_cites_works_that_are_listed():
    known = [losses.by_name(name) for name in losses.names() if name != "robust"]  # it cites what its base does
    assert {key for loss in known for key in loss.references} <= set(REFERENCES)
    fit = small_fits.quietly("poisson", [1, 2, 3, 4] * 9, loss="ksd", check=False)
    assert "Yang, J., Liu, Q." in page.rendered(Document(fit))
