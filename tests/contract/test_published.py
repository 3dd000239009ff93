"""What is published agrees with itself: one version, one list of requirements, and the pages that a project needs."""

import re
import tomllib
from pathlib import Path

import pytest

import dfdbayes as dfd

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["CITATION.cff", "recipe/recipe.yaml"])
def test_one_version_everywhere(page):
    assert re.search(r"\n *version: ([\d.]+)\n", (ROOT / page).read_text())[1] == dfd.__version__


def test_the_recipe_requires_what_the_package_does():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    wanted = {re.match(r"([a-z0-9-]+)(?:\[.*\])?(.*)", each).groups() for each in wanted}
    told = (ROOT / "recipe" / "recipe.yaml").read_text().split("  run:\n")[1].split("\n\n")[0]
    assert {tuple(line.split()[1:]) for line in told.splitlines()} == wanted | {("python", ">=3.11")}


def test_every_classifier_is_a_python_that_the_workflow_tries():
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {c.rsplit(" ", 1)[1] for c in about["classifiers"] if re.search(r":: 3\.\d+$", c)}
    tried = set(re.findall(r'"(3\.\d+)"', (ROOT / ".github" / "workflows" / "tests.yml").read_text()))
    assert named == tried


@pytest.mark.parametrize("page", ["SECURITY.md", "CODE_OF_CONDUCT.md", "RELEASING.md", "CHANGELOG.md", "LICENSE"])
def test_pages_of_a_project(page):
    assert len((ROOT / page).read_text()) > 500


def test_studies_and_benchmarks_stand_outside_the_package():
    """`.ci/wheel` looks into the wheel itself; here is what it is made of."""
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert asked["packages"]["find"] == {"where": ["src"]}
    assert [path.name for path in (ROOT / "src").iterdir() if path.suffix != ".egg-info"] == ["dfdbayes"]
    folders = {path.name for path in (ROOT / "src" / "dfdbayes").rglob("*") if path.is_dir()}
    assert not folders & {"benchmarks", "studies", "tests", "docs"}
    assert all((ROOT / folder).is_dir() for folder in ("benchmarks", "docs/studies"))
