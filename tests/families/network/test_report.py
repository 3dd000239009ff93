"""The network of a report: what stands in the page without a script, and what it does with one."""

import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
import small_fits
from browser import opened
from dfdbayes.families.network import evidence, figure, interactive, selection
from dfdbayes.families.network import report as networks
from dfdbayes.present import html
from dfdbayes.present.figures.base import shortened
from dfdbayes.present.renderers import page as render

EVIL = (
    "<script>hacked=1</script>",
    "' onfocus='hacked=1' autofocus x='",
    '"><img src=x onerror="hacked=1">',
    "</svg></table>&lt;b; estimate: 7",
)


class Elements(HTMLParser):
    """All elements of a page with their attributes, and the text of each table cell."""

    def __init__(self, page):
        super().__init__()
        self.found, self.cells, self.inside = [], [], False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.inside = tag in ("td", "th")
        if self.inside:
            self.cells.append("")

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.cells[-1] += data

    def of(self, word):
        return [attrs for _, attrs in self.found if word in (attrs.get("class") or "").split()]


@cache
def evil():
    """The small network under names that try to be markup."""
    fit = small_fits.network()
    return replace(fit, data=replace(fit.data, columns=EVIL), model=fit.model.labelled(EVIL))


@cache
def page(kind):
    return render({"network": small_fits.network, "counts": small_fits.count_network, "evil": evil}[kind]())


def written(tmp_path, kind):
    path = tmp_path / "report.html"
    path.write_text(page(kind), encoding="utf-8")
    return path


def test_every_edge_and_node_is_in_the_page_with_its_numbers():
    fit = small_fits.network()
    seen, table, nodes = Elements(page("network")), fit.evidence(), fit.nodes()
    edges = seen.of("edge")
    assert [edge["data-name"] for edge in edges] == [
        f"{a} – {b}" for a, b in zip(table["from"], table["to"], strict=True)
    ]
    np.testing.assert_allclose([float(edge["data-chance"]) for edge in edges], table["inclusion"], atol=1e-4)
    for edge, (_, row) in zip(edges, table.iterrows(), strict=True):
        told = dict(fact.split(": ") for fact in edge["data-told"].split("; "))
        assert told["interaction"] == f"{row['mean']:.4g}" and told["evidence"] == row["evidence"]
        assert told["95 % interval"] == f"[{row['low']:.4g}, {row['high']:.4g}]"
        assert (
            told["Bayes factor"] == evidence.as_text(row["bayes_factor"])
            and told["inclusion"] == f"{row['inclusion']:.1%}"
        )
        assert edge["class"].split() == ["edge", row["evidence"], "positive" if row["sign"] >= 0 else "negative"]
        assert edge["tabindex"] == "0" and edge["aria-label"].startswith(edge["data-name"])
    shown = {node["data-name"]: node["data-told"] for node in seen.of("node")}
    assert list(shown) == list(fit.data.columns)
    for name, row in nodes.iterrows():
        assert f"strength: {row['strength']:.3g}, 95 % [{row['strength_low']:.4g}" in shown[name]
        assert f"predictability: {row['predictability']:.3g}" in shown[name] and "by chance alone" in shown[name]


def test_without_a_script_figures_and_table_are_there():
    """The picture that answers is hidden, the figure for a paper is not, and headers of the table are plain text."""
    seen = Elements(page("network"))
    (live,) = seen.of("live")
    assert "hidden" in live
    assert [attrs for tag, attrs in seen.found if tag == "details"] == [{"class": "still", "open": None}]
    assert '<th scope="col">edge</th>' in page("network") and "<button" not in page("network").partition("<script>")[0]
    assert "Nodes, with calibrated 95 % intervals" in page("network")


def test_names_never_become_markup():
    seen = Elements(page("evil"))
    assert [tag for tag, _ in seen.found].count("script") == 1
    assert not [attrs for _, attrs in seen.found if any(key.startswith("on") or key == "autofocus" for key in attrs)]
    assert {node["data-name"] for node in seen.of("node")} == set(EVIL)
    assert any(EVIL[0] in cell for cell in seen.cells)
    assert not [attrs for tag, attrs in seen.found if tag == "img" and not attrs["src"].startswith("data:image/png")]


def test_where_graphs_are_not_chosen_the_slider_is_about_the_null_region():
    fit = small_fits.count_network()
    assert not selection.chooses(fit) and selection.chooses(small_fits.network())
    edges = Elements(page("counts")).of("edge")
    inside = evidence.edges(fit)["inside"]
    np.testing.assert_allclose([float(edge["data-chance"]) for edge in edges], 1.0 - inside, atol=1e-4)
    assert networks.OUTSIDE in page("counts") and networks.CHOSEN in page("network")
    assert all("negative" in edge["class"] for edge in edges)
    assert 'value="95">' in page("counts") and 'value="91">' in page("network")
    with pytest.raises(dfd.errors.ModelError):
        selection.information_of_edges(fit)


def test_only_the_strongest_of_very_many_edges_are_drawn(monkeypatch):
    """None is lost without a word."""
    monkeypatch.setattr(figure, "MOST_EDGES", 4)
    text = "".join(map(html.block, networks.network(small_fits.network())))
    assert len(Elements(text).of("edge")) == 4 and len(Elements(text).of("node")) == 4
    assert "Only the 4 strongest edges are drawn." in text and "2 more rows are in dfdbayes.evidence" in text


def test_names_of_many_nodes_point_outwards_and_never_stand_on_their_heads():
    names = [f"item {j}" for j in range(24)]
    edges = pd.DataFrame({"from": "item 0", "to": names[1:], "mean": 0.5, "sign": 1, "evidence": "present"})
    told = {"estimate": "0.5"}
    text = interactive.network(names, edges, np.ones(23), 0.5, "", [told] * 23, dict.fromkeys(names, told))
    turned = [float(angle) for angle in re.findall(r"rotate\((.*?)\)", text)]
    assert len(turned) == 48 and all(-90 <= (angle + 180) % 360 - 180 <= 90 for angle in turned)
    assert "rotate(" not in page("network")


def test_long_names_are_shortened_in_the_middle():
    assert shortened("half_dead_dull", 10) == "half_…dull" and shortened("a\nb") == "a b" and shortened("$x$") == "$x$"


COUNTED = "const count = () => document.querySelectorAll('.edge:not(.faded)').length;"
SLIDE = """const slider = document.querySelector('figure.live input');
const slide = value => { slider.value = value; slider.dispatchEvent(new Event('input')); return count() };"""


def test_the_slider_fades_edges_and_rows(tmp_path):
    act = f"""{COUNTED} {SLIDE}
    const first = count(), some = [0, 30, 50, 100].map(slide);
    slide(50);
    return {{hidden: document.querySelector('figure.live').hidden, first, some,
        said: document.querySelector('figure.live output').textContent,
        still: document.querySelector('details.still').open,
        rows: [...document.querySelectorAll('.sortable tbody tr')].map(row => row.classList.contains('faded')),
        order: [...document.querySelectorAll('.edge')].map(edge => edge.tabIndex)}}"""
    seen = opened(written(tmp_path, "network"), 1200, act)
    acted, chance = seen["acted"], small_fits.network().evidence()["inclusion"].round(4)
    assert not seen["console"] and not acted["hidden"] and not acted["still"]
    assert acted["some"] == [int((chance >= t).sum()) for t in (0.0, 0.3, 0.5, 1.0)]
    there = (small_fits.network().evidence()["evidence"] == "present").sum()
    assert acted["first"] == there and acted["said"] == f"50 %: {acted['some'][2]} of 6 edges"
    assert acted["rows"] == list(chance < 0.5) and acted["order"] == [-1 if p < 0.5 else 0 for p in chance]


def test_pointing_and_focus_tell_the_numbers(tmp_path):
    act = """const told = () => document.querySelector('.told').innerText;
    const edges = [...document.querySelectorAll('.edge')];
    const found = {before: told()};
    edges[1].focus(); found.edge = told(); found.lit = document.querySelectorAll('.node.lit').length;
    document.querySelector('.node').dispatchEvent(new PointerEvent('pointerover', {bubbles: true}));
    found.node = told(); found.edges = edges.filter(edge => edge.classList.contains('lit')).length;
    document.querySelector('figure.live svg').dispatchEvent(new PointerEvent('pointerleave'));
    found.left = document.querySelectorAll('.lit').length;
    return found"""
    acted = opened(written(tmp_path, "network"), 1200, act)["acted"]
    row = small_fits.network().evidence().iloc[1]
    assert "Point at an edge" in acted["before"]
    for word in (f"{row['from']} – {row['to']}", f"{row['mean']:.4g}", "Bayes factor", f"{row['inclusion']:.1%}"):
        assert word in acted["edge"]
    assert acted["lit"] == 2 and acted["edges"] == 3 and acted["left"] == 0
    assert "sleep" in acted["node"] and "expected influence" in acted["node"]


def test_the_table_is_sorted_by_mouse_and_keyboard(tmp_path):
    act = """const heads = [...document.querySelectorAll('.sortable thead th')];
    const column = i => [...document.querySelectorAll('.sortable tbody tr')].map(row => row.cells[i].textContent);
    const press = i => { heads[i].querySelector('button').focus(); document.activeElement.click(); };
    const found = {heads: heads.map(head => head.textContent), way: []};
    for (const [name, i] of [['down', 1], ['up', 1], ['names', 0], ['factor', 3], ['words', 5]]) {
        press(i); found[name] = column(i); found.way.push(heads.map(head => head.getAttribute('aria-sort'))[i]);
    }
    found.others = heads.filter(head => head.getAttribute('aria-sort') !== 'none').length;
    return found"""
    seen = opened(written(tmp_path, "network"), 1200, act)
    acted = seen["acted"]
    numbers = [float(text) for text in acted["down"]]
    assert not seen["console"] and acted["heads"][:4] == ["edge", "interaction", "95 % interval", "Bayes factor"]
    assert numbers == sorted(numbers, reverse=True) and acted["up"] == acted["down"][::-1]
    factors = [float(text.strip("<> ")) for text in acted["factor"]]
    assert factors == sorted(factors, reverse=True) and acted["words"] == sorted(acted["words"])
    assert [name.partition(" ")[0] for name in acted["names"]] == ["mood"] * 2 + ["price_$x$"] + ["sleep"] * 3
    assert acted["way"] == ["descending", "ascending", "ascending", "descending", "ascending"]
    assert acted["others"] == 1


def test_evil_names_do_nothing_in_a_browser(tmp_path):
    act = """for (const thing of document.querySelectorAll('[data-told]')) thing.focus();
    for (const button of document.querySelectorAll('.sortable button')) button.click();
    document.querySelectorAll('.node')[0].focus();
    return {hacked: typeof hacked, name: document.querySelector('.told strong').textContent,
        inside: document.querySelector('.told strong').children.length}"""
    for width in (400, 1200):
        seen = opened(written(tmp_path, "evil"), width, act, framed=True)
        assert seen["acted"] == {"hacked": "undefined", "name": EVIL[0], "inside": 0}
        assert not seen["console"] and seen["wide"] <= seen["window"] == width
