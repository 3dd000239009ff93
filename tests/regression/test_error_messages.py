"""Sixty mistakes, each of which ends in an error of ours that says what to do; the committed page is what they say."""

import importlib.util

from pages import ROOT


def test_every_mistake_is_told_as_the_page_says():
    spec = importlib.util.spec_from_file_location("mistakes", ROOT / "docs" / "studies" / "mistakes.py")
    study = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(study)
    found = study.told()
    assert len(found) >= 60
    assert not [name for name, (_, said) in found.items() if said == "no error"]
    assert not [name for name, (_, said) in found.items() if "Tracer" in said or "object at 0x" in said]
    page = (ROOT / "docs" / "tables" / "mistakes.md").read_text()
    assert study.page(found) == page, "the page is made by python docs/studies/mistakes.py"
