"""Every Python block of the README runs, in order, as one session."""

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_readme_runs(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    monkeypatch.chdir(tmp_path)
    session: dict = {}
    for block in blocks:
        exec(block, session)
    assert list(session["fit"].summary().index) == ["rate", "shape"]
    assert (tmp_path / "sales.html").exists() and (tmp_path / "sales.nc").exists()


def test_readme_names_both_commands():
    assert "make demo" in README.read_text() and "make test" in README.read_text()
