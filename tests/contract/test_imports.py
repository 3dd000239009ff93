"""The road has a direction: a folder imports only folders before it, for type checkers too."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "dfdbayes"

ROAD = [
    "_version", "errors", "_util", "core", "data", "results", "present", "families", "backends", "fitting",
    "plots", "experiments", "cli", "__main__",
]  # fmt: skip


def _modules() -> list[Path]:
    return [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(path: Path) -> set[str]:
    """What a module imports of the package: at run time, inside functions, and for type checkers."""
    here = list(path.relative_to(SOURCE).parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = here[: len(here) - node.level + 1] + (node.module.split(".") if node.module else [])
        for alias in node.names:
            inner = SOURCE.joinpath(*base, alias.name)
            is_module = inner.is_dir() or inner.with_suffix(".py").exists()
            found.add(".".join([*base, alias.name] if is_module else base))
    return found - {""}


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_backwards(path):
    name = _name(path)
    for other in _imports(path):
        backwards = ROAD.index(other.split(".")[0]) <= ROAD.index(name.split(".")[0])
        assert backwards, f"{name} must not import {other}"


def test_every_module_has_its_place():
    assert {_name(path).split(".")[0] for path in _modules()} <= set(ROAD)


def test_no_function_has_the_name_of_a_module():
    """`import dfdbayes.fit` must not give a function."""
    import dfdbayes

    for name in dfdbayes.__all__:
        if callable(getattr(dfdbayes, name)):
            with pytest.raises(ModuleNotFoundError):
                importlib.import_module(f"dfdbayes.{name}")


def test_importing_the_package_imports_little():
    """What is heavy waits for the first name that needs it; `dir` shows all names before."""
    code = "import sys, dfdbayes; print(*dir(dfdbayes)); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shown, loaded = (set(line.split()) for line in done.stdout.splitlines())
    heavy = {"matplotlib", "blackjax", "numpyro", "pandas", "pyarrow", "xarray", "arviz_stats", "scipy.stats"}
    assert not loaded & heavy
    assert not {name for name in loaded if name.startswith("dfdbayes.")} - {"dfdbayes._version"}
    assert set(importlib.import_module("dfdbayes").__all__) <= shown


def test_the_fit_command_imports_little(tmp_path):
    """Of counts in one column: no statistics library beside our own, no tree of tables, no cluster, no sampler."""
    (tmp_path / "counts.csv").write_text("\n".join(["visits", *map(str, [0, 1, 2, 3, 4, 2, 1, 3] * 5)]))
    code = (
        "import sys; sys.argv = ['dfdbayes', 'fit', 'counts.csv', '--model', 'poisson', '--out', 'run']\n"
        "from dfdbayes.cli import main\ntry: main()\nfinally: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert (tmp_path / "run" / "report.html").exists()
    loaded = set(done.stdout.splitlines()[-1].split())
    heavy = {"arviz_base", "arviz_stats", "blackjax", "dask", "distributed", "formulaic", "matplotlib.pyplot"}
    assert not loaded & (heavy | {"networkx", "scipy.optimize", "scipy.signal", "scipy.stats", "xarray"})


def test_public_names_are_what_type_checkers_see():
    """The imports for type checkers, executed, give the names that are found when they are first used."""
    import dfdbayes

    tree = ast.parse((SOURCE / "__init__.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {"__package__": "dfdbayes"}
    exec(compile(ast.Module(block.body, []), "__init__", "exec"), seen)
    assert set(dfdbayes.__all__) == set(dfdbayes._WHERE) == set(seen) - {"__package__", "__builtins__"}
    assert all(getattr(dfdbayes, name) is seen[name] for name in dfdbayes.__all__)


def test_losses_ask_nothing_about_models_and_tables():
    """No `isinstance` on models or tables inside losses, and nobody compares the name of a loss."""
    for path in (SOURCE / "core" / "losses").glob("*.py"):
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        asked = [ast.unparse(c.args[1]) for c in calls if isinstance(c.func, ast.Name) and c.func.id == "isinstance"]
        assert not [kind for kind in asked if "Model" in kind or "Table" in kind or "Family" in kind], path
    for path in _modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                text = ast.unparse(node)
                assert "loss.name ==" not in text and "['loss'] ==" not in text and "['loss'] in" not in text, (
                    path,
                    text,
                )


def test_only_the_command_line_prints():
    for path in _modules():
        if _name(path).split(".")[0] == "cli":
            continue
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        assert not [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"], path


def test_experiments_use_public_names_only():
    """What a figure of the paper needs, a user can write: `import dfdbayes as dfd`, and helpers beside it."""
    for path in (SOURCE / "experiments").glob("*.py"):
        if path.stem in ("__init__", "page"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert (node.level, node.module) == (1, "base") or node.level == 0, path
                assert not (node.module or "").startswith("dfdbayes"), path


def test_experiments_are_imported_by_the_command_line_alone_and_only_when_they_run():
    for path in _modules():
        if _name(path).split(".")[0] == "experiments":
            continue
        tree = ast.parse(path.read_text())
        inside = {id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and "experiments" in (node.module or "").split("."):
                assert _name(path) == "cli" and id(node) in inside, path
    code = "import sys, dfdbayes.cli, dfdbayes as dfd; dfd.fit; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not [name for name in done.stdout.split() if name.startswith("dfdbayes.experiments")]
