"""What a notebook shows of results, and the progress bars in it."""

import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import dfdbayes as dfd
import small_fits
from dfdbayes._util import progress
from dfdbayes.families.network.evidence import Evidence

EVIL = "<script>hacked=1</script>"


def coverage() -> dfd.Coverage:
    shares = {0.5: 0.4, 0.95: 0.9}
    return dfd.Coverage(shares, {"rate": shares}, 20, {"escaped": 2})


def shown() -> dict:
    fit = small_fits.counts()
    return {
        "fit": fit,
        "calibration": fit.calibration,
        "curvature": small_fits.poisson().calibration,
        "evidence": small_fits.network().evidence(),
        "comparison": replace(dfd.compare({"one": fit, "other": fit}), failed={"ksd": "too many rows"}),
        "coverage": coverage(),
    }


@pytest.mark.parametrize("kind", ["fit", "calibration", "curvature", "evidence", "comparison", "coverage"])
def test_results_are_a_table_and_a_picture(kind):
    text = shown()[kind]._repr_html_()
    assert (
        text.count("<table>") == text.count("data:image/png;base64,") == 1
        and len(re.findall("<img[^>]* alt=.{4}", text)) == 1
    )
    assert "http:" not in text and "<script" not in text
    words = {
        "fit": ("The mean of sales is 3.5", "<strong>Warning:</strong> beta =", "what it is", "How it was found"),
        "calibration": ("Theorem 3&#39;s condition holds", "mean of minimisers"),
        "curvature": ("ntervals are as wide as estimates vary", "known from the data"),
        "evidence": ("Of 6 pairs of variables, 2 are joined", "mood &amp; &lt;b&gt;", "bayes_factor"),
        "comparison": ("rate · one", "<strong>Warning:</strong> ksd: too many rows"),
        "coverage": ("95% regions hold the truth in 90.0%", "2 fits failed: escaped"),
    }
    for word in words[kind]:
        assert word in text


def test_names_never_become_markup_in_a_notebook():
    fit = small_fits.network()
    names = (EVIL, *fit.data.columns[1:])
    evil = replace(fit, data=replace(fit.data, columns=names, source=EVIL), warnings=(EVIL,))
    for text in (evil._repr_html_(), evil.evidence()._repr_html_()):
        assert "<script" not in text and "&lt;script&gt;hacked" in text


def test_reprs_are_short():
    fit = small_fits.network()
    for thing in (fit, fit.calibration, fit.data, fit.minimum, fit.checks, coverage()):
        assert len(repr(thing)) < 600 and "array(" not in repr(thing)


def test_what_is_taken_out_of_the_evidence_is_a_plain_table():
    table = small_fits.network().evidence()
    assert isinstance(table, Evidence) and table.attrs["expected_false_edges"] < 1.0
    assert type(table.head(2)).__name__ == type(table.sort_values("mean")).__name__ == "DataFrame"


def test_a_table_of_edges_is_drawn_as_it_is(monkeypatch):
    drawn = []
    monkeypatch.setattr("dfdbayes.families.network.figure.network", lambda fit, table=None: drawn.append(table))
    table = dfd.evidence.edges(small_fits.network(), odds=4.0)
    assert "bayes_factor" in table._repr_html_() and drawn[0] is table


def test_figures_show_without_magic():
    data, about = small_fits.counts().plot()._repr_png_()
    assert data.startswith(b"\x89PNG") and about["width"] > 200
    unchecked = replace(small_fits.counts(), checks=None).plot()
    assert len(unchecked.axes) == 4  # densities of the four entries


def test_tab_completion_is_clean():
    public = [name for name in dir(dfd) if not name.startswith("_")]
    assert public == sorted(dfd.__all__) and "plots" in public and "jax" not in public


def test_bars_in_a_notebook(monkeypatch):
    """Nothing at first, a bar after half a second, and nothing again when it is full."""
    drawn = []
    handle = SimpleNamespace(update=lambda made: drawn.append(made.data))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))
    display = SimpleNamespace(
        HTML=lambda text: SimpleNamespace(data=text),
        display=lambda made, display_id=True: drawn.append(made.data) or handle,
    )
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    clock = iter(np.arange(0.0, 99.0, 0.4))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(clock))
    advance = progress.on_screen().begin("sample", 4)
    for _ in range(4):
        advance(1)
    assert "sample 0 of 4" in drawn[0] and any('value="2"' in one for one in drawn) and drawn[-1] == ""


@pytest.mark.slow
def test_a_notebook_runs():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    code = ("import dfdbayes as dfd", "fit = dfd.fit('poisson', [1, 2, 3, 4] * 9)\nfit", "fit.plot()")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in code])
    nbclient.NotebookClient(book, timeout=300).execute()
    assert not book.cells[0].outputs
    assert "The mean of x is 2.5" in book.cells[1].outputs[-1]["data"]["text/html"]
    assert "image/png" in book.cells[2].outputs[-1]["data"]
