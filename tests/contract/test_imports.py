"""The road has a direction: a module imports only modules that come before it."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "dfdbayes"

ROAD = [
    "errors", "identity", "process", "resources", "files", "state", "timing", "domain", "graphs", "kernels",
    "normaliser", "divergence", "reading", "tally", "data", "datasets", "glance", "parameters", "models", "ratios",
    "losses", "objective", "minimise", "bootstrap", "distributed", "calibration", "adjustment", "posterior", "sampling",
    "simulate", "stein", "goodness", "predictive", "diagnostics", "result", "progress", "fit", "comparison", "coverage",
    "uncalibrated", "evidence", "plots", "report", "runs", "experiments", "usermodel", "cli", "__main__",
]  # fmt: skip

# Methods of a fit that open onto a later module, and are imported only when called.
DOORWAYS = {("result", "report")}


def _package(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def _imports(path: Path) -> set[tuple[str, bool]]:
    """(module of the package, whether it is imported inside a function)."""
    tree = ast.parse(path.read_text())
    inner = {id(node) for function in ast.walk(tree) if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
             for node in ast.walk(function)}  # fmt: skip
    depth = len(path.relative_to(SOURCE).parts)
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
            found |= {(name, id(node) in inner) for name in names}
    return found


def _modules() -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


def test_every_module_is_on_the_road():
    assert {_package(path) for path in _modules()} == set(ROAD)


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_backwards(path):
    here = _package(path)
    for name, inside in _imports(path):
        if name == here or (inside and (here, name) in DOORWAYS):
            continue
        assert ROAD.index(name) < ROAD.index(here), f"{here} must not import {name}"


def test_only_the_command_line_prints():
    for path in _modules():
        if _package(path) == "cli":
            continue
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        assert not [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"], path


def test_modules_stay_short():
    for path in _modules():
        assert len(path.read_text().splitlines()) <= 450, path


def test_experiments_use_public_names_only():
    """What a figure of the paper needs, a user can write: `import dfdbayes as dfd`, and helpers beside it."""
    for path in (SOURCE / "experiments").glob("*.py"):
        if path.stem in ("__init__", "page"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert (node.level, node.module) == (1, "base") or node.level == 0, path
                assert not (node.module or "").startswith("dfdbayes"), path
