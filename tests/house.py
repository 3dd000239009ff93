"""What the code costs to understand, counted from the code itself.

    python tests/house.py [--walks] [--list]

prints lines and files by folder, questions about a model's class, comparisons with names, imports that run in circles,
numbers that decide something, and with ``--walks`` the modules that a fit enters; ``--list`` says where each is.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import networkx as nx

SOURCE = Path(__file__).parents[1] / "src" / "dfdbayes"
FAMILIES = "families"
NAMED = ("register", "registered")  # decorators and functions whose first argument is the name of what they keep


@cache
def modules() -> dict[str, ast.Module]:
    """The syntax tree of every module, by its dotted name within the package."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text())
    return found


def path_of(name: str) -> Path:
    """The file of a module."""
    base = SOURCE.joinpath(*name.split(".")) if name else SOURCE
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


def lines_by_folder() -> dict[str, tuple[int, int]]:
    """Files and lines of each folder of the package, with its subfolders."""
    found: dict[str, tuple[int, int]] = {}
    for name in modules():
        path = path_of(name)
        inside = path.relative_to(SOURCE).parts
        room = "/".join(inside[:2]) if inside[0] == FAMILIES and len(inside) > 2 else inside[0]
        room = room if len(inside) > 1 else "dfdbayes"
        files, lines = found.get(room, (0, 0))
        found[room] = files + 1, lines + len(path.read_text().splitlines())
    return found


# -- questions ---------------------------------------------------------------------------------


@cache
def model_classes() -> frozenset[str]:
    """Names of the classes that are models, or families of them, but for the class that they all are."""
    bases: dict[str, set[str]] = {}
    for tree in modules().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}
    roots = {"AbstractModel", "AbstractFamily"}
    found: set[str] = set()
    while more := {name for name, own in bases.items() if own & (roots | found)} - found:
        found |= more
    return frozenset(found | {"AbstractFamily"})


def classes_asked() -> list[str]:
    """Where code outside the families asks which class a model is."""
    found = []
    for name, tree in modules().items():
        if name.split(".")[0] == FAMILIES:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                asked = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
                asked |= {part.attr for part in ast.walk(node.args[1]) if isinstance(part, ast.Attribute)}
                if asked & model_classes():
                    found.append(f"{name}:{node.lineno} {ast.unparse(node)}")
    return found


@cache
def names() -> frozenset[str]:
    """What models, losses and parameters are called."""
    from dfdbayes import families
    from dfdbayes.core import losses

    found = {*families.names(), *losses.names()}
    for tree in modules().values():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called == "Parameter" and isinstance(node.args[0].value, str):
                found.add(node.args[0].value)
    return frozenset(found)


def names_compared() -> list[str]:
    """Where code compares something with the name of a model, a loss or a parameter."""
    found = []
    for name, tree in modules().items():
        if name.split(".")[0] == "experiments":  # figures of the paper, of models and losses by their names
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            texts = {
                part.value
                for side in sides
                for part in (side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side])
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            }
            others = " ".join(ast.unparse(side) for side in sides if not isinstance(side, ast.Constant))
            if texts & names() and not any(word in others for word in ("kind", "options", "chosen", "tree", "kept")):
                found.append(f"{name}:{node.lineno} {ast.unparse(node)}")
    return found


# -- imports -----------------------------------------------------------------------------------


def imports(name: str, for_types: bool) -> set[str]:
    """Modules of the package that a module imports: at run time, inside functions, and if asked for types alone."""
    here = list(path_of(name).relative_to(SOURCE).parts[:-1])
    tree, found, skipped = modules()[name], set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not for_types:
            skipped |= {id(part) for inner in node.body for part in ast.walk(inner)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level or id(node) in skipped:
            continue
        base = here[: len(here) - node.level + 1] + (node.module.split(".") if node.module else [])
        for alias in node.names:
            whole = ".".join([*base, alias.name])
            found.add(whole if whole in modules() else ".".join(base))
    return found - {"", name}


@cache
def graph() -> nx.DiGraph:
    """Modules, and which imports which, for type checkers too."""
    found = nx.DiGraph()
    found.add_nodes_from(name for name in modules() if name)
    found.add_edges_from((name, other) for name in modules() if name for other in imports(name, for_types=True))
    return found


def circles() -> list[str]:
    """Imports, for types alone among them, by which a module comes back to itself."""
    return [
        f"{a} -> {b}"
        for part in nx.strongly_connected_components(graph())
        if len(part) > 1
        for a, b in graph().subgraph(part).edges
        if b not in imports(a, for_types=False)
    ]


# -- numbers -----------------------------------------------------------------------------------


def constants() -> list[str]:
    """Numbers at module level that have a name: each is a decision."""
    found = []
    for name, tree in modules().items():
        for node in tree.body:
            value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
            if value is None or not _is_number(value):
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                found.append(f"{name}:{node.lineno} {ast.unparse(node)}")
    return found


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    return isinstance(value, ast.Constant) and isinstance(value.value, (int, float)) and value.value is not True


# -- walks -------------------------------------------------------------------------------------

WALKS = {
    "counts": "dfd.fit('cmp', rng.poisson(3.0, 200), **quick)",
    "regression": "dfd.fit('cmp', pd.DataFrame({'y': rng.poisson(3.0, 200), 'x': rng.normal(size=200)}), "
    "formula='y ~ x', **quick)",
    "graph": "dfd.fit(dfd.models.RandomGraph('edges'), [(i, (i * i + 1) % 17) for i in range(17)], **quick)",
}
"""One call of each kind, which code follows from data to a printed answer."""

_WATCH = """
import sys, json, warnings
warnings.simplefilter("ignore")
import importlib, pkgutil
import numpy as np, pandas as pd
import dfdbayes as dfd
for module in pkgutil.walk_packages(dfd.__path__, "dfdbayes."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
seen = set()
def watch(frame, event, arg):
    if event == "call" and frame.f_code.co_name != "<module>":
        seen.add(frame.f_code.co_filename)
rng, quick = np.random.default_rng(1), {"progress": False, "draws": 200, "chains": 2, "check": False}
sys.setprofile(watch)
WALK
sys.setprofile(None)
json.dump(sorted(seen), open(sys.argv[1], "w"))
"""


def entered(walk: str) -> list[str]:
    """The modules of the package in which something runs while a fit is made."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "seen.json"
        code = _WATCH.replace("WALK", WALKS[walk])
        subprocess.run([sys.executable, "-c", code, str(kept)], check=True, capture_output=True)
        files = json.loads(kept.read_text())
    return sorted(str(Path(file).relative_to(SOURCE)) for file in files if Path(file).is_relative_to(SOURCE))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--walks", action="store_true")
    asked.add_argument("--list", action="store_true", help="every place that is counted")
    given = asked.parse_args()
    rooms = lines_by_folder()
    print("| folder | files | lines |\n|---|---|---|")
    for room, (files, lines) in sorted(rooms.items()):
        print(f"| {room} | {files} | {lines} |")
    print(f"| all | {sum(files for files, _ in rooms.values())} | {sum(lines for _, lines in rooms.values())} |\n")
    counts = {
        "questions about a model's class outside families": classes_asked(),
        "comparisons with the name of a model, a loss or a parameter": names_compared(),
        "imports for types that run in circles": circles(),
        "numbers with a name at module level": constants(),
    }
    print("| counted | number |\n|---|---|")
    for title, places in counts.items():
        print(f"| {title} | {len(places)} |")
        if given.list:
            print("\n".join(f"    {place}" for place in places))
    for walk in WALKS if given.walks else ():
        files = entered(walk)
        print(f"| modules that the walk of {walk} enters | {len(files)} |")
        if given.list:
            print("\n".join(f"    {file}" for file in files))


if __name__ == "__main__":
    main()
