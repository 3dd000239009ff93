"""Terms of a random graph as a user writes them. Nothing in the text is executed."""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import MISSING, Field, fields
from typing import Any

from ...errors import ModelError
from .terms import TERMS, AbstractTerm

ELSEWHERE = {
    "absdiffcat",
    "asymmetric",
    "balance",
    "concurrent",
    "cycle",
    "degree",
    "density",
    "dgwdsp",
    "dgwesp",
    "dsp",
    "esp",
    "gwdsp",
    "gwnsp",
    "idegree",
    "isolates",
    "mm",
    "nodeicov",
    "nodeifactor",
    "nodemix",
    "nodeocov",
    "nodeofactor",
    "nsp",
    "odegree",
    "receiver",
    "sender",
    "sociality",
    "threetrail",
    "transitiveties",
    "tripercent",
    "twopath",
}  # terms of ergm that are not here, for which no other is meant
GIVEN = {"decay": "0.25", "attribute": "'group'", "matrix": "'distance'", "k": "2"}  # by field, an example,
OF_TYPE = {"int": "2", "float": "0.25", "bool": "True"}  # or by its type; else a text
TRUTH = {"TRUE": True, "T": True, "FALSE": False, "F": False}  # as R writes them
EXAMPLE = "\"edges + gwesp(0.25) + nodematch('grade')\""


def parse(text: Any) -> tuple[AbstractTerm, ...]:
    """The terms of a model such as "edges + gwesp(0.25) + nodematch('grade')"; nothing in the text is executed.

    Examples
    --------
    >>> [term.label for term in parse("edges + gwesp(0.25) + nodematch('grade')")]
    ['edges', 'gwesp(0.25)', 'nodematch(grade)']
    """
    if not isinstance(text, str) or not text.strip():
        raise ModelError(f"the terms of a random graph are a text such as {EXAMPLE}, not {text!r}")
    try:
        tree = ast.parse(re.sub(r"^[\w.]*\s*~", "", text.strip()).strip().replace("\n", " "), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise ModelError(f"the terms {text!r} cannot be read; write them as {EXAMPLE}") from problem
    found = tuple(_term(node) for node in _summands(tree))
    labels = [one.label for one in found]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ModelError(f"{twice} stands twice in {text!r}; leave one of them out")
    return found


def _summands(node: ast.expr) -> list[ast.expr]:
    right: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        right.append(node.right)
        node = node.left
    return [node, *reversed(right)]


def _term(node: ast.expr) -> AbstractTerm:
    called = node.func if isinstance(node, ast.Call) else node
    if not isinstance(called, ast.Name):
        raise ModelError(f"'{ast.unparse(node)}' is not a term; write terms with + between them, as in {EXAMPLE}")
    if called.id not in TERMS:
        close = [] if called.id in ELSEWHERE else difflib.get_close_matches(called.id, TERMS, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else "."
        hint = " here, though ergm has it." if called.id in ELSEWHERE else hint
        raise ModelError(f"there is no term '{called.id}'{hint} Known terms: {', '.join(TERMS)}.")
    kind = TERMS[called.id]
    given = [_value(part, kind) for part in node.args] if isinstance(node, ast.Call) else []
    named = {str(k.arg): _value(k.value, kind) for k in node.keywords} if isinstance(node, ast.Call) else {}
    takes = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    if "decay" in takes and named.pop("fixed", True) is not True:
        raise ModelError(f"'{ast.unparse(node)}': decays are fixed; leave fixed out, {kind.name}(0.25)")
    try:
        return kind(*given, **named)
    except TypeError:
        needed = [f for f in fields(kind) if f.default is MISSING] or list(fields(kind)[:1])  # type: ignore[arg-type]
        shown = ", ".join(_example(f) for f in needed)
        needs = f"{kind.name}({shown})" if takes else f"{kind.name}, with nothing in brackets"
        raise ModelError(f"'{ast.unparse(node)}' cannot be read; write {needs}") from None


def _example(field: Field[Any]) -> str:
    """A value that a field of a term may have, as it is written."""
    kind = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "")
    return GIVEN.get(field.name, OF_TYPE.get(kind, f"'{field.name}'"))


def _value(node: ast.expr, kind: type[AbstractTerm]) -> Any:
    """A number, a text or True or False, as it is written."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = _value(node.operand, kind)
        return -value if isinstance(value, (int, float)) else value
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
        return node.value
    if isinstance(node, ast.Name) and node.id in TRUTH:
        return TRUTH[node.id]
    if isinstance(node, ast.Name):
        raise ModelError(f"{kind.name}({node.id}): put names in quotes, {kind.name}('{node.id}')")
    raise ModelError(f"{kind.name}: '{ast.unparse(node)}' is neither a number nor a name in quotes")
