"""Every block of code in the README and the documentation runs.

- ``python`` blocks run here, each page as one session.
- ``{code-cell}`` blocks run when the documentation is built (`tests/cli/test_docs.py`, slow).
- Lines that call ``dfdbayes`` run here, in a temporary folder, with fewer replicates than a reader would use.

Exempt are R code and the one call of sbi (a ``{code-block}``), as neither is a dependency; ``make``, ``pip`` and
``python docs/...`` lines; and what a command printed.
"""

import re
import shlex
import sys
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes import cli, experiments
from pages import EXTENSIONS, PAGES, ROOT, blocks, commands, extending, python

NEEDS = {"docs/how-to/use-inside-pymc.md": "pymc"}  # tried in tests/statistical/test_ecosystem.py


WARNS = {  # pages that show what a warning is about
    "docs/how-to/dirty-data.md": [dfd.errors.InfluenceWarning],
    "docs/how-to/is-the-model-wrong.md": [dfd.errors.DisagreementWarning, dfd.errors.MisfitWarning],
}


@pytest.mark.parametrize("page", [page for page in PAGES if python(page) and page not in NEEDS])
@pytest.mark.daily("README.md", "docs/how-to/add-a-model.md")
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(dfd.fit.__kwdefaults__, "check", True)  # as a reader has it
    session: dict = {}
    with extending(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for meant in WARNS.get(page, ()):
            warnings.simplefilter("ignore", meant)
        for block in python(page):
            exec(block, session)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that the pages speak of."""
    folder = tmp_path_factory.mktemp("reader")
    rng = np.random.default_rng(0)
    visits = rng.poisson(3.0, 300)
    pd.DataFrame({"visits": visits}).to_csv(folder / "visits.csv", index=False)
    table = pd.Series(visits).value_counts().rename_axis("visits").rename("count")
    table.to_csv(folder / "table.csv")
    pd.DataFrame(rng.integers(0, 2, (300, 3)), columns=["a", "b", "c"]).to_csv(folder / "answers.csv", index=False)
    clinics = pd.DataFrame({"age": rng.normal(40, 12, 300), "clinic": rng.choice(["A", "B"], 300), "days": 30})
    clinics.assign(visits=visits).to_csv(folder / "clinics.csv", index=False)
    students = pd.DataFrame({name: rng.integers(0, 5, 300) for name in ("kids", "prestige", "mentor")})
    students["gender"], students["married"] = rng.choice(["male", "female"], 300), rng.choice(["no", "yes"], 300)
    students.assign(articles=visits).to_csv(folder / "students.csv", index=False)
    pd.DataFrame({"week": np.arange(120), "cases": rng.poisson(4.0, 120)}).to_csv(folder / "cases.csv", index=False)
    row, col = np.divmod(np.arange(64), 8)
    sites = pd.DataFrame({"row": row, "col": col, "altitude": rng.normal(size=64), "present": rng.integers(0, 2, 64)})
    sites.to_csv(folder / "map.csv", index=False)
    families = nx.florentine_families_graph()
    pd.DataFrame(families.edges, columns=["from", "to"]).to_csv(folder / "ties.csv", index=False)
    pd.DataFrame({"name": list(families)}).to_csv(folder / "people.csv", index=False)
    return folder


def _shortened(command: str) -> list[str]:
    """The same call with less to do."""
    words = shlex.split(command)
    if words[1] == "coverage":
        words = [*words, "--replicates", "2", "--bootstrap", "30", "--sampler", "laplace"]
    if words[1] in ("fit", "compare"):
        words += ["--bootstrap", "50"]
    if words[1] == "fit":
        words += ["--sampler", "laplace", "--draws", "100"]
    if words[1] == "compare":
        words += ["--losses", "ratio"]
    if words[1:] == ["reproduce", "--quick"]:
        words.insert(2, "bernoulli-losses")
    return words


@pytest.mark.daily("README")
@pytest.mark.parametrize("pages", [PAGES[:1], PAGES], ids=["README", "all pages"])
def test_commands_run(pages, folder, monkeypatch, capsys):
    """In the order of the pages, since one command reads what another wrote."""
    monkeypatch.chdir(folder)
    lines = list(dict.fromkeys(line for page in pages for line in commands(page)))
    assert len(lines) > (8 if pages is PAGES else 1)
    for line in sorted(lines, key=lambda line: line.startswith("dfdbayes summary")):
        monkeypatch.setattr(sys, "argv", _shortened(line))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        shown = capsys.readouterr()
        assert not ended.value.code, f"{line}: {shown.err}"
        assert shown.out.strip(), line


def test_experiments_named_in_the_text_exist():
    named = {word for page in PAGES for word in re.findall(r"`(?:dfdbayes )?reproduce\s([a-z-]+)", _text(page))}
    assert named and {word for word in named if not word.startswith("-")} <= set(experiments.NAMES)


def _text(page: str) -> str:
    return (ROOT / page).read_text()


def test_no_block_is_left_out():
    """A language that nothing runs would go stale unseen."""
    known = {"", "python", "console", "r", "text", "{code-block} python", "{toctree}", "{eval-rst}",
             "{code-cell} ipython3",
             "{include} ../tables/coverage.md", "{include} ../tables/robust.md",
             "{include} ../../benchmarks/results/robust.md", "{literalinclude} make_gallery.py",
             *(f"{{literalinclude}} extensions/{path.name}" for path in EXTENSIONS.glob("*.py"))}  # fmt: skip
    assert {language for page in PAGES for language, _ in blocks(page)} <= known


def test_readme_names_both_commands():
    assert "make demo" in _text("README.md") and "make test" in _text("README.md")
    assert len(python("README.md")) == 4


def test_reference_has_every_public_name():
    text = "\n".join(_text(page) for page in PAGES if page.startswith("docs/reference/"))
    documented = set(re.findall(r"^\.\. (?:auto\w+|py:data):: dfdbayes\.([\w.]+)", text, flags=re.MULTILINE))
    modules = {
        "errors": "errors",
        "datasets": "data.read.builtin",
        "graphs": "core.graphs",
        "kernels": "core.losses.kernels",
        "evidence": "families.network.evidence",
        "resampling": "core.resampling",
    }  # whole modules
    parts = {f"{name}.{part}" for name in ("models", "losses", "samplers") for part in getattr(dfd, name).__all__}
    again = {"models.Model", "models.ExponentialFamily"}  # under their first names
    wanted = (set(dfd.__all__) - {"models", "losses", "samplers", *modules}) | (parts - again)
    assert set(modules.values()) <= documented
    assert not wanted - documented
