import importlib
import json

import numpy as np
import pytest

from browser import opened
from dfdbayes import experiments
from dfdbayes.experiments import Number


def test_every_experiment_has_its_file():
    for name in experiments.NAMES:
        assert callable(importlib.import_module(f"dfdbayes.experiments.{name.replace('-', '_')}").run)


def test_two_experiments_and_their_page(call, tmp_path):
    code, out, _ = call(
        "reproduce", "bernoulli-losses", "stein-domination", "--quick", "--out", str(tmp_path)
    )  # fmt: skip
    assert code == 0 and "[2/2] stein-domination" in out and "index.html" in out
    about = json.loads((tmp_path / "stein-domination.json").read_text())
    assert {n["what"] for n in about["numbers"]} == {"largest ratio of discrepancy to root divergence", "pairs"}
    assert about["numbers"][0]["ours"] < 1.0
    page = (tmp_path / "index.html").read_text()
    for name, label in (("bernoulli-losses", "losses"), ("stein-domination", "pairs")):
        for kind in ("png", "svg"):
            assert (tmp_path / f"{name}-{label}.{kind}").stat().st_size > 1000
        assert f"{name}-{label}.png" in page
    assert "quick settings" in page
    for width in (400, 1200):
        seen = opened(tmp_path / "index.html", width)
        assert seen["images"] == [True, True] and not seen["console"]
        assert seen["wide"] <= max(seen["window"], 500)  # Chromium's smallest window is 500 wide


def test_without_data_an_experiment_says_where_they_come_from(call, monkeypatch, tmp_path):
    monkeypatch.delenv("DFDBAYES_DATA", raising=False)
    code, out, _ = call("reproduce", "gene-beta", "--quick", "--out", str(tmp_path))
    assert code == 0 and "skipped" in out and "sqr-graphical-models" in out and "DFDBAYES_DATA" in out
    assert "Skipped" in (tmp_path / "index.html").read_text()


def test_a_misspelt_experiment(call, tmp_path):
    code, _, err = call("reproduce", "cmp-posterior", "--out", str(tmp_path / "o"))
    assert code == 2 and "did you mean 'cmp-posteriors'?" in err and not (tmp_path / "o").exists()


def test_verdicts():
    assert Number("x", 1.0, 1.2, 0.1).verdict == "agrees: 2.0 Monte-Carlo errors apart"
    assert Number("x", 1.0, 1.5, 0.1).verdict.startswith("differs: 5.0")
    assert Number("x", 1.0, 1.5, 0.1, "because").verdict == "because"
    assert Number("x", 1.0, 1.001).verdict == "agrees" and Number("x", 1.0, 2.0).verdict == "differs"
    assert Number("x", 1.0).verdict == ""


@pytest.mark.slow
def test_everything_quick(call, tmp_path, shared_data):
    """All experiments with quick settings; every picture of the page loads in a browser."""
    code, *_ = call("reproduce", "--quick", "--data", str(shared_data), "--out", str(tmp_path))
    assert code == 0
    found = {name: json.loads((tmp_path / f"{name}.json").read_text()) for name in experiments.NAMES}
    assert not any(about["skipped"] for about in found.values())
    seen = opened(tmp_path / "index.html")
    assert len(seen["images"]) == sum(len(about["pictures"]) for about in found.values()) and all(seen["images"])
    assert not seen["console"]
    curvatures = [n["ours"] for n in found["bernoulli-posteriors"]["numbers"] if n["what"].startswith("curvature")]
    np.testing.assert_allclose(curvatures, [32.0, 16.0, 4.0], rtol=1e-10)
