"""The road has a direction: a folder imports only folders before it, and inside a folder files have an order."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "dfdbayes"

ROAD = [
    "_version", "errors", "_util", "data", "models", "losses", "simulators", "inference", "backends", "results",
    "fitting", "plots", "report", "experiments", "cli", "__main__",
]  # fmt: skip

INSIDE = {
    "_util": ["declared", "identity", "process", "resources", "files", "tables", "checkpoint", "timing", "progress"],
    "data": ["domain", "numerals", "encodings", "identifiers", "missing", "problems", "yes_no", "dialect", "text",
             "foreign", "reading", "distinct", "interpreting", "lags", "calendar", "tokens", "series", "survey_weights",
             "dataset", "completions", "sites", "glance", "profile", "builtin", "grammar", "formulas", "levels",
             "observed", "covariates", "scales", "adjacency", "graph_reading", "observed_graph", "map_reading",
             "observed_map"],
    "models": ["graphs", "priors", "slips", "parameters", "normaliser", "tables", "probes", "base",
               "exponential_tables", "exponential", "starts", "mean_table", "mean_form", "families",
               "counts", "lattice", "mixture", "kinds", "remarks", "network_tables", "ordinal_tables", "network",
               "mixed", "regression_tables", "pairwise_regression", "regression", "graph_counts", "graph_terms",
               "graph_parsing", "graph_statistics", "random_graph", "linear_tables", "autologistic", "__init__",
               "from_file"],
    "losses": ["base", "kernels", "divergence", "local", "weights", "robust", "pseudo", "likelihood", "simulated",
               "pairs", "stein", "__init__"],
    "inference": ["incomplete", "windows", "objective", "newton", "minimise", "imputation", "pilot", "replicates",
                  "refits", "map_imputation", "graph_likelihood", "resampling", "parametric", "curvature", "clusters",
                  "edges", "calibration", "posterior", "mixing", "pareto", "sampling", "influence", "identification",
                  "diagnostics"],
    "results": ["regions", "selection", "evidence", "groups", "nodes", "features", "relevance", "goodness_of_fit",
                "predictive", "maps", "ratios", "regression", "remedies", "forecasts", "graph_goodness", "agreement",
                "checks", "intervals", "uncalibrated", "summary", "tree", "for_arviz", "temporal", "answers",
                "influence", "saving", "telling", "shown", "fit_result", "loading"],
    "fitting": ["table_layout", "advice", "describe", "progress", "plan", "regressions", "whole", "fit", "comparison",
                "held_out", "model_choice", "nested", "coverage"],
    "backends": ["local", "dask"],
}  # fmt: skip

# Imported only when called: what shows a result (notebook, report, picture), and the backend that a client asks for.
DOORWAYS = {
    ("inference", "report"),
    ("results", "report"),
    ("results", "plots"),
    ("fitting", "report"),
    ("local", "dask"),
}


def _modules() -> list[Path]:
    return [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]


def _place(path: Path) -> tuple[str, str]:
    """The folder of a module (or its own name), and its name inside that folder."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[0], (parts[1] if len(parts) > 1 else "")


def _imports(path: Path) -> set[tuple[str, str, bool]]:
    """(folder, module inside it, whether it is imported inside a function) of what a module imports at run time."""
    tree = ast.parse(path.read_text())
    functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    inner = {id(node) for function in functions for node in ast.walk(function)}
    branches = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
    typing = {id(node) for branch in branches for node in ast.walk(branch)}
    here = list(path.relative_to(SOURCE).parts[:-1])
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level or id(node) in typing:
            continue
        base = here[: len(here) - node.level + 1] + (node.module.split(".") if node.module else [])
        for alias in node.names:
            parts = base + ([alias.name] if (SOURCE.joinpath(*base, alias.name)).is_dir()
                            or SOURCE.joinpath(*base, f"{alias.name}.py").exists() else [])  # fmt: skip
            if parts:
                found.add((parts[0], parts[1] if len(parts) > 1 else "__init__", id(node) in inner))
    return found


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_backwards(path):
    folder, name = _place(path)
    for other, module, inside in _imports(path):
        if inside and ((folder, other) in DOORWAYS or (name, module) in DOORWAYS):
            continue
        if other != folder:
            assert ROAD.index(other) < ROAD.index(folder), f"{folder} must not import {other}"
        elif folder in INSIDE and name in INSIDE[folder] and module in INSIDE[folder] and module != name:
            order = INSIDE[folder]
            assert order.index(module) < order.index(name), f"{folder}/{name} must not import {folder}/{module}"


def test_every_module_has_its_place():
    for path in _modules():
        folder, name = _place(path)
        assert folder in ROAD
        assert folder not in INSIDE or name in (*INSIDE[folder], "__init__"), path


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
    for path in (SOURCE / "losses").glob("*.py"):
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
        if _place(path)[0] == "cli":
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
