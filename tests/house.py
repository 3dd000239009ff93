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


MODELS = ("model", "family", "base", "law")  # what a variable or an attribute that holds a model is called


def classes_asked() -> list[str]:
    """Where code outside the families asks which class a model is, or what it happens to have."""
    found = []
    for name, tree in modules().items():
        if name.split(".")[0] == FAMILIES:
            continue
        models = _holding_models(tree)
        for node in ast.walk(tree):
            if _asks_for_a_class(node, tree) or _looks_at(node, models):
                found.append(f"{name}:{getattr(node, 'lineno', 0)} {ast.unparse(node)}".splitlines()[0])
    return found


def _asks_for_a_class(node: ast.AST, tree: ast.Module) -> bool:
    """`isinstance`, `issubclass`, `match` and dispatch by the class of a model, by a name that stands for some too."""
    if isinstance(node, ast.Call) and _called(node) in ("isinstance", "issubclass", "singledispatch", "register"):
        asked = _identifiers(*node.args[-1:]) if _called(node) == "register" else _identifiers(*node.args[1:])
    elif isinstance(node, ast.MatchClass):
        asked = _identifiers(node.cls)
    elif isinstance(node, ast.FunctionDef) and any(ast.unparse(d).endswith(".register") for d in node.decorator_list):
        asked = _identifiers(*(a.annotation for a in node.args.args[:1] if a.annotation))
    else:
        return False
    if asked & model_classes():
        return True
    groups = {name: _identifiers(value) for name, value in _assigned(tree).items() if name in asked}
    return bool(set().union(*groups.values()) & model_classes())


def _looks_at(node: ast.AST, models: set[str]) -> bool:
    """`type(model)`, `model.__class__`, and attributes that a model may or may not have."""
    if isinstance(node, ast.Attribute) and node.attr == "__class__":
        return _is_model(node.value, models)
    if not isinstance(node, ast.Call) or not node.args or not _is_model(node.args[0], models):
        return False
    counts = {"type": 1, "hasattr": 2, "getattr": 3}
    return isinstance(node.func, ast.Name) and counts.get(node.func.id) == len(node.args)


def _is_model(node: ast.expr, models: set[str]) -> bool:
    last = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return last.lstrip("_") in MODELS or (isinstance(node, ast.Name) and last in models)


def _holding_models(tree: ast.Module) -> set[str]:
    """Arguments that are declared to be a model or a family."""
    arguments = [node for node in ast.walk(tree) if isinstance(node, ast.arg) and node.annotation is not None]
    kinds = model_classes() | {"AbstractModel"}
    return {a.arg for a in arguments if _identifiers(a.annotation) & kinds} - {"self"}


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _identifiers(*parts: ast.AST | None) -> set[str]:
    """Names and last attributes in some code, also where an annotation is a text."""
    inside = [node for part in parts if part is not None for node in ast.walk(part)]
    found = {node.id for node in inside if isinstance(node, ast.Name)}
    found |= {node.attr for node in inside if isinstance(node, ast.Attribute)}
    texts = [node.value for node in inside if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return found | {word for text in texts if text.isidentifier() for word in [text]}


def _assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """What has a name at module level."""
    found = {}
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    found[target.id] = node.value
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
            if _called(node) == "Parameter" and isinstance(node.args[0].value, str):
                found.add(node.args[0].value)
    return frozenset(found)


NOT_NAMES = {
    "core.losses.kernels",  # a kernel of the Stein discrepancy is called robust
    "families.network.kinds",  # a column's kind is called poisson
}
"""Modules in which a text that is the name of a model or a loss is that of something else."""


def names_compared() -> list[str]:
    """Where code compares something with the name of a model, a loss or a parameter, or looks up by one."""
    found = []
    for name, tree in modules().items():
        if name.split(".")[0] == "experiments" or name in NOT_NAMES:  # figures of the paper, by names
            continue
        known = {key: _texts(value) for key, value in _assigned(tree).items()}
        for node in ast.walk(tree):
            asked = _compared_with(node, known)
            if {text.rstrip("[.-_ ") for text in asked} & names():
                found.append(f"{name}:{getattr(node, 'lineno', 0)} {ast.unparse(node)}".splitlines()[0])
    return found


def _compared_with(node: ast.AST, known: dict[str, set[str]]) -> set[str]:
    """The texts that a piece of code compares something with."""
    if isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
    elif isinstance(node, ast.match_case):
        parts = [part.value for part in ast.walk(node.pattern) if isinstance(part, ast.MatchValue)]
    elif isinstance(node, ast.Call) and _called(node) in ("startswith", "endswith", "removeprefix", "fullmatch"):
        parts = list(node.args)
    elif isinstance(node, ast.Call) and _called(node) in ("get", "pop") and isinstance(node.func, ast.Attribute):
        first = node.args[0] if node.args else None
        parts = [] if isinstance(first, ast.Constant) else [node.func.value]  # a table looked up by a name
    elif isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Constant, ast.Slice)):
        parts = [node.value]
    else:
        return set()
    return set().union(*(known.get(getattr(part, "id", ""), set()) | _texts(part) for part in parts))


def _texts(value: ast.AST) -> set[str]:
    """A text, or those of a collection and the keys of a table."""
    if isinstance(value, ast.Call) and _called(value) in (
        "set",
        "frozenset",
        "tuple",
        "list",
        "dict",
        "MappingProxyType",
    ):
        return set().union(*map(_texts, value.args), {word.arg for word in value.keywords if word.arg})
    if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        return set().union(*map(_texts, value.elts))
    if isinstance(value, ast.Dict):
        return set().union(*(_texts(key) for key in value.keys if key is not None))
    return {value.value} if isinstance(value, ast.Constant) and isinstance(value.value, str) else set()


# -- imports -----------------------------------------------------------------------------------


@cache
def imports(name: str, for_types: bool, without: frozenset[int] = frozenset()) -> set[str]:
    """Modules of the package that a module imports: at run time, inside functions, and if asked for types alone."""
    here = list(path_of(name).relative_to(SOURCE).parts[:-1])
    tree, found, skipped = modules()[name], set(), set(without)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not for_types:
            skipped |= {id(part) for inner in node.body for part in ast.walk(inner)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Call) and _called(node) == "import_module" and isinstance(node.args[0], ast.Constant):
            found.add(node.args[0].value.lstrip(".").removeprefix("dfdbayes."))
        elif isinstance(node, ast.Import):
            found |= {a.name.removeprefix("dfdbayes.") for a in node.names if a.name.split(".")[0] == "dfdbayes"}
        elif isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level + 1] if node.level else []
            parts = (node.module or "").split(".") if node.module else []
            if not node.level and parts[:1] != ["dfdbayes"]:
                continue
            base = [*above, *(parts if node.level else parts[1:])]
            for alias in node.names:
                whole = ".".join([*base, alias.name])
                found.add(whole if whole in modules() else ".".join(base))
    packages = {other[:k] for other in found for k in range(len(other)) if other[k] == "."}  # imported before it
    packages -= {name[:k] for k in range(len(name)) if name[k] == "."}
    return ((found | packages) & set(modules())) - {"", name}


@cache
def graph() -> nx.DiGraph:
    """Modules, and which imports which, for type checkers too."""
    found = nx.DiGraph()
    found.add_nodes_from(name for name in modules() if name)
    found.add_edges_from((name, other) for name in modules() if name for other in imports(name, for_types=True))
    return found


def circles() -> list[str]:
    """Imports by which a module comes back to itself: for types alone, inside functions, or when it is imported."""
    first = nx.DiGraph((name, other) for name in modules() if name for other in at_the_head(name))
    within = {name: k for k, part in enumerate(nx.strongly_connected_components(first)) for name in part}
    return [
        f"{a} -> {b}"
        for part in nx.strongly_connected_components(graph())
        if len(part) > 1
        for a, b in sorted(graph().subgraph(part).edges)
        if b not in at_the_head(a) or within[a] == within[b]
    ]


@cache
def at_the_head(name: str) -> set[str]:
    """What a module imports when it is imported."""
    inside = frozenset(
        id(part)
        for node in ast.walk(modules()[name])
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for part in ast.walk(node)
    )
    return imports(name, for_types=False, without=inside)


# -- numbers -----------------------------------------------------------------------------------


def constants() -> list[str]:
    """Numbers at module level, or in capitals in a class, that have a name: each is a decision."""
    found = []
    for name, tree in modules().items():
        if name == "data.read.builtin":  # data
            continue
        inside = [node for part in ast.walk(tree) if isinstance(part, ast.ClassDef) for node in part.body]
        for node in [*_flat(tree.body), *inside]:
            value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
            if value is None or not _is_number(value):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            told = [part for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            of_class = node in inside
            found += [
                f"{name}:{node.lineno} {ast.unparse(node)}"
                for part in told
                if not (part.id.startswith("__") or (of_class and not part.id.isupper()))
            ]
    return found


def _flat(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements of a module, also those under `if` and `try`."""
    inner = [part for node in body for name in ("body", "orelse") for part in getattr(node, name, [])
             if isinstance(node, (ast.If, ast.Try, ast.With))]  # fmt: skip
    return [*body, *(_flat(inner) if inner else [])]


def _is_number(value: ast.expr) -> bool:
    """Whether code stands for a number, a function of numbers, or numbers in a row."""
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    if isinstance(value, (ast.Tuple, ast.Set)):
        return bool(value.elts) and all(map(_is_number, value.elts))
    if isinstance(value, ast.Call):
        root = ast.unparse(value.func).split(".")[0]
        given = [part for a in value.args for part in (a.elts if isinstance(a, ast.List) else [a])]
        return root in ("np", "jnp", "math", "float", "int") and bool(given) and all(map(_is_number, given))
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


# -- walks -------------------------------------------------------------------------------------

WALKS = {
    "counts": "dfd.fit('cmp', rng.poisson(3.0, 200), **quick)",
    "regression": "dfd.fit('cmp', pd.DataFrame({'y': rng.poisson(3.0, 200), 'x': rng.normal(size=200)}), "
    "formula='y ~ x', **quick)",
    "graph": "dfd.fit(dfd.models.RandomGraph('edges'), [(i, (i * i + 1) % 17) for i in range(17)], **quick)",
}
"""One call of each kind, which code follows from data to a printed answer."""

_WATCH = """
import sys, json, threading, warnings
warnings.simplefilter("ignore")
import importlib, pkgutil
import numpy as np, pandas as pd
import dfdbayes as dfd
import dfdbayes.cli  # in the order that a user's first import has
dfd.fit, dfd.plots
for module in pkgutil.walk_packages(dfd.__path__, "dfdbayes."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
seen = set()
def watch(frame, event, arg):
    if event == "call" and frame.f_code.co_name != "<module>":
        seen.add(frame.f_code.co_filename)
rng, quick = np.random.default_rng(1), {"progress": False, "draws": 200, "chains": 2, "check": False}
threading.setprofile(watch)
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
