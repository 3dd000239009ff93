"""The text of a formula, taken apart: names, names between backticks, texts, numbers, and single signs.

All who look for something in a formula look at its tokens, so that what stands between backticks or quotes is never
taken for an operator, and a name never for a part of another.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ..errors import SettingError, close

NAME = r"[^\W\d][\w.\u0300-\u036f]*"  # R's names such as body.mass are names; accents may follow their letters
_TOKEN = re.compile(
    rf"""(?P<text>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|`(?P<quoted>[^`]*)`|(?P<name>{NAME})"""
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<space>\s+)|(?P<sign>.)",
    re.DOTALL,
)
WORDS = ("in", "True", "False", "None")  # that mean something in a formula, whatever columns are called


class Token(NamedTuple):
    """A part of a formula: its kind, what it says (a name without its backticks), and where it stands."""

    kind: str
    value: str
    begin: int
    end: int

    @property
    def is_name(self) -> bool:
        return self.kind in ("name", "quoted")


class Call(NamedTuple):
    """A call of a function: where it begins and ends among tokens, and which of them are in its brackets."""

    begin: int
    end: int
    inside: Sequence[Token]
    depth: int


def tokens_of(text: str) -> list[Token]:
    """The parts of a formula but for its spaces."""
    found = [
        Token(part.lastgroup or "", part[part.lastgroup or 0], *part.span())
        for part in _TOKEN.finditer(text)
        if part.lastgroup != "space"
    ]
    return found


def calls_of(word: str, tokens: Sequence[Token], text: str) -> list[Call]:
    """The calls of a function, but for those inside of others of it."""
    found: list[Call] = []
    depth = begin = 0
    at: int | None = None  # the depth outside of the call that is open
    for i, token in enumerate(tokens):
        if at is None and token.kind == "name" and token.value == word and _is(tokens, i + 1, "("):
            begin, at = i, depth
        if token.kind == "sign":
            depth += {"(": 1, ")": -1}.get(token.value, 0)
            if at is not None and token.value == ")" and depth == at:
                found.append(Call(begin, i + 1, tokens[begin + 2 : i], depth))
                at = None
    if at is not None:
        raise SettingError(f"a bracket of {word}(...) is not closed in '{text}'")
    return found


def is_called(tokens: Sequence[Token], i: int) -> bool:
    """Whether a name is that of a function, or of one of a function's arguments."""
    return _is(tokens, i + 1, "(") or (_is(tokens, i + 1, "=") and not _is(tokens, i + 2, "="))


def _is(tokens: Sequence[Token], i: int, sign: str) -> bool:
    return i < len(tokens) and tokens[i].kind == "sign" and tokens[i].value == sign


def split(sign: str, tokens: Sequence[Token], text: str) -> list[tuple[Sequence[Token], str]]:
    """The tokens between signs of a kind, and the text that they are."""
    places = [i for i in range(len(tokens)) if _is(tokens, i, sign)]
    found = []
    for first, last in zip([-1, *places], [*places, len(tokens)], strict=True):
        begin = 0 if first < 0 else tokens[first].end
        end = len(text) if last == len(tokens) else tokens[last].begin
        found.append((tokens[first + 1 : last], text[begin:end].strip()))
    return found


def name_in(tokens: Sequence[Token], text: str) -> str:
    """The name that tokens are, or their text where they are something else."""
    return tokens[0].value if len(tokens) == 1 and tokens[0].is_name else text


def written(name: str) -> str:
    """A column's name as a formula takes it: between backticks where it would be taken for something else."""
    plain = re.fullmatch(NAME, name) and not keyword.iskeyword(name) and not name.startswith(("np.", "contr."))
    return name if plain else f"`{name}`"


OF_NUMPY = (
    "log", "log1p", "log2", "log10", "exp", "expm1", "exp2", "sqrt", "abs", "sign", "floor", "ceil", "round",
    "sin", "cos", "tan",
)  # fmt: skip
"""Functions of one number, which may also be written as ``np.log``."""
COLUMNS: dict[str, tuple[int | str, ...]] = {
    "poly": (1, "degree"), "bs": (1, 3, "df", "degree"), "cs": (1, "df"), "cr": (1, "df"), "cc": (1, "df"),
    "season": (2, "order"),
}  # fmt: skip
"""Functions that make several columns, and which of their arguments say how many."""
CODINGS = ("Treatment", "Sum", "Helmert", "Diff", "Poly")
REGISTERED = ("treatment", "sum", "helmert", "diff", "poly", "SAS", "custom")
"""How factors are coded: ``contr.sum`` and its like."""
OF_FORMULAIC = ("C", "I", "center", "scale", "standardize", "exp10", *(name for name in COLUMNS if name != "season"))
FUNCTIONS = (*OF_FORMULAIC, "season", *OF_NUMPY)
NAMESPACES = {"np": OF_NUMPY, "contr": REGISTERED}
RESERVED = (*FUNCTIONS, *CODINGS, *NAMESPACES)

MAX_TERMS = 5_000  # columns of a matrix as far as formulas say; a*b*...*z has 2^26, which nobody means
MAX_FUNCTION_COLUMNS = 100  # of one spline, polynomial or season
_OPERATORS = {"+", "-", "*", "/", ":", "in", "**", "^"}  # between terms
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod)  # inside functions
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Names(dict[str, Any]):
    """The names that there are besides columns: any other is unknown, also where Python has one of its own."""

    def __contains__(self, name: object) -> bool:
        return True  # or formulaic and Python would go on and look elsewhere

    def __missing__(self, name: str) -> Any:
        raise NameError(f"'{name}' is neither a column nor a function of formulas")


def season(t: Any, period: float, order: int = 1) -> dict[str, Any]:
    """Waves of a period: sine and cosine, and ``order`` - 1 overtones of them (harmonic terms).

    Parameters
    ----------
    t : array
        The time.
    period : float
        In the unit of the time: 52 where weeks are numbered, 1 where the time is in years.
    order : int
        How many sines and cosines; 1 is one wave a period.

    Examples
    --------
    >>> import numpy as np
    >>> from dfdbayes.data.grammar import season
    >>> np.round(season(np.arange(4), 4)["sin"], 9).tolist()
    [0.0, 1.0, 0.0, -1.0]
    """
    if isinstance(order, bool) or int(order) != order or order < 1 or not period > 0:
        raise SettingError(f"season(t, {period}, {order}): the period must be positive and the order a whole number")
    t = np.asarray(t, float)
    found, steps = {}, bool(np.all(t == np.round(t)))
    for k in range(1, int(order) + 1):
        angle, number = 2.0 * np.pi * k * t / period, "" if k == 1 else str(k)
        if not (steps and 2 * k == period):  # this sine is zero at all whole steps
            found[f"sin{number}"] = np.sin(angle)
        found[f"cos{number}"] = np.cos(angle)
    return found


@cache
def context() -> Names:
    """What formulas see besides columns."""
    from formulaic.transforms import TRANSFORMS  # not before a formula is given: it takes a while

    of_numpy = {name: getattr(np, name) for name in OF_NUMPY}
    codings = SimpleNamespace(**{name: getattr(TRANSFORMS["contr"], name) for name in REGISTERED})
    own = {"season": season, "np": SimpleNamespace(**of_numpy), "contr": codings}
    return Names(of_numpy | {name: TRANSFORMS[name] for name in (*OF_FORMULAIC, *CODINGS)} | own)


@dataclass(frozen=True)
class Content:
    """What a formula names.

    Attributes
    ----------
    names : set of str
        All names of columns.
    alone : set of str
        Those that stand as they are, and never inside a function.
    numbers : set of str
        Those that are reckoned with, and have to be numbers.
    """

    names: frozenset[str]
    alone: frozenset[str]
    numbers: frozenset[str]


def read(text: str, shown: str) -> Content:
    """What a right side names; refused is one with anything in it but what formulas may say.

    ``shown`` is what the user wrote.
    """
    from formulaic.parser import DefaultFormulaParser
    from formulaic.parser.types import Token

    shown = shown if len(shown) <= 200 else f"{shown[:200]} ..."
    if len(text) > 200_000:  # thousands of columns with long names
        raise SettingError(f"the formula '~ {shown}' is longer than 200000 letters")
    try:
        tree = DefaultFormulaParser().get_ast(text)
    except Exception as problem:  # of its own parser and of Python's
        said = (str(problem).splitlines() or ["it is nested too deeply"])[0]
        raise SettingError(f"the formula, '~ {shown}', cannot be read: {said}") from problem
    _require_terms("+", [tree], shown)
    plain: set[str] = set()
    inside: list[ast.expr] = []
    sizes: dict[int, float] = {}
    for node in _from_below(tree):
        if not isinstance(node, Token):
            if node.operator.symbol not in _OPERATORS or not node.args:
                raise _refusal(shown, f"'{node.operator.symbol}'")
            _require_terms(node.operator.symbol, node.args, shown)
            sizes[id(node)] = size = _size(node.operator.symbol, node.args, sizes, shown)
            if size > MAX_TERMS:
                raise SettingError(
                    f"the formula '~ {shown}' has more than {MAX_TERMS} terms. What to do: write the interactions "
                    "that are meant, with ':'."
                )
        elif node.kind is Token.Kind.NAME:  # looked up among the columns, and nowhere else
            plain.add(node.token)
        elif node.kind is Token.Kind.PYTHON:
            inside.append(_as_python(node.token, shown))
            _require_allowed(inside[-1], shown)
            sizes[id(node)] = _columns(inside[-1])
        elif not (node.kind is Token.Kind.VALUE and _is_number(node.token)):
            raise _refusal(shown, f"'{node.token}'")
    within = {name for part in inside for name in _names(part)}
    numbers = {name for part in inside for name in _reckoned(part)}
    return Content(frozenset(plain | within), frozenset(plain - within), frozenset(numbers))


def _require_terms(symbol: str, parts: Sequence[Any], shown: str) -> None:
    """Refuse numbers among terms, but for 1 and 0, a constant or none, and for powers."""
    for place, part in enumerate(parts):
        number = getattr(part, "token", "") if getattr(getattr(part, "kind", None), "name", "") == "VALUE" else ""
        power = symbol in ("**", "^") and place == 1
        constant = symbol in ("+", "-") and number in ("0", "1")
        if number and _is_number(number) and not power and not constant:
            raise SettingError(
                f"the formula '~ {shown}' has the number {number} among its terms, where only 1 (a constant) and 0 "
                f"(none) mean anything. What to do: reckon inside I(...), as in I({number} * x); a column that is "
                f"called {number} stands between backticks."
            )


def _from_below(tree: Any) -> Iterator[Any]:
    """The parts of a formula, each after those that it is made of."""
    found, left = [], [tree]
    while left:
        found.append(left.pop())
        left += getattr(found[-1], "args", ())
    return reversed(found)


def _size(symbol: str, parts: Any, sizes: Mapping[int, float], shown: str) -> float:
    """At most how many columns come of an operator, as far as the formula says it."""
    own = [sizes.get(id(part), 1.0) for part in parts]
    if len(own) == 1 or symbol == "-":
        return own[0]
    if symbol in ("**", "^"):
        power = str(getattr(parts[1], "token", ""))
        if not power.isdecimal():
            raise SettingError(f"the formula '~ {shown}' has a power that is no whole number; write (a + b)**2")
        return max(own[0], 2.0) ** min(int(power[:4]), 64)  # as many products are made before equal ones become one
    one, other = own
    return one + other if symbol == "+" else one * other if symbol == ":" else one + other + one * other


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal() and len(text) < 300  # or it is none that a computer holds


def _as_python(text: str, shown: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _refusal(shown, f"'{text}'") from None


def _require_allowed(node: ast.AST, shown: str) -> None:
    """Refuse an expression with anything in it that formulas do not hold."""
    left = [node]
    while left:
        part = left.pop()
        if isinstance(part, ast.Call):
            _require_function(part, shown)
        elif isinstance(part, ast.BinOp) and isinstance(part.op, _ARITHMETIC):
            _require_numbers(part, [part.left, part.right], shown)
        elif isinstance(part, ast.UnaryOp) and isinstance(part.op, (ast.UAdd, ast.USub)):
            _require_numbers(part, [part.operand], shown)
        elif isinstance(part, ast.Constant):
            _require_constant(part, shown)
        elif isinstance(part, ast.Attribute) and _called(part) is not None:
            continue  # contr.sum, without brackets
        elif not (
            isinstance(part, (ast.Name, ast.List, ast.Tuple, ast.keyword))
            or (isinstance(part, ast.Compare) and all(isinstance(op, _COMPARISONS) for op in part.ops))
        ):
            raise _refusal(shown, f"'{ast.unparse(part)}'")
        left += _inner(part)


def _inner(node: ast.AST) -> list[ast.expr | ast.keyword]:
    """What an expression is made of, but for the names of functions."""
    return [
        part
        for part in ast.iter_child_nodes(node)
        if isinstance(part, (ast.expr, ast.keyword))
        and not (isinstance(node, ast.Call) and part is node.func)
        and not isinstance(node, ast.Attribute)
    ]


def _called(function: ast.expr) -> str | None:
    """The name of a function that formulas know; None of any other."""
    if isinstance(function, ast.Name) and function.id in (*FUNCTIONS, *CODINGS):
        return function.id
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        space = function.value.id
        return function.attr if function.attr in NAMESPACES.get(space, ()) else None
    return None


def _require_function(node: ast.Call, shown: str) -> None:
    name, written = _called(node.func), ast.unparse(node.func)
    if name is None:
        raise _refusal(shown, f"'{written}(...)'", close(written.removeprefix("np."), FUNCTIONS))
    if any(isinstance(a, ast.Starred) for a in node.args) or any(
        keyword.arg is None or keyword.arg.startswith("_") for keyword in node.keywords
    ):
        raise _refusal(shown, f"'{ast.unparse(node)}'")
    if name in FUNCTIONS and not node.args:
        raise SettingError(f"the formula '~ {shown}' has {ast.unparse(node)}; {name}(...) needs a column")
    if name in OF_NUMPY and (len(node.args) != 1 or node.keywords):
        raise SettingError(f"the formula '~ {shown}' has {ast.unparse(node)}; {name}(...) is of one column")
    for value in _counts(node):
        if not (isinstance(value, ast.Constant) and (value.value is None or _is_count(value.value))):
            raise SettingError(
                f"the formula '~ {shown}' has {ast.unparse(node)}: how many columns that makes must be a whole number, "
                f"at most {MAX_FUNCTION_COLUMNS}"
            )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_FUNCTION_COLUMNS


def _counts(node: ast.Call) -> list[ast.expr]:
    """The arguments that say how many columns a function makes."""
    places = COLUMNS.get(_called(node.func) or "", ()) if isinstance(node.func, ast.Name) else ()
    given = [*enumerate(node.args), *((keyword.arg, keyword.value) for keyword in node.keywords)]
    return [value for place, value in given if place in places]


def _columns(node: ast.expr) -> float:
    """How many columns a function makes, as far as its arguments say it."""
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    told = [value.value for call in calls for value in _counts(call) if isinstance(value, ast.Constant)]
    lists = [len(part.elts) for part in ast.walk(node) if isinstance(part, (ast.List, ast.Tuple))]  # of knots
    return float(max([1, *(2 * count for count in told if isinstance(count, int)), *lists]))


def _require_numbers(node: ast.expr, parts: list[ast.expr], shown: str) -> None:
    """Refuse to reckon with texts and lists, and powers of numbers alone, which may have no end."""
    for part in parts:
        text = isinstance(part, ast.Constant) and (isinstance(part.value, (str, bool)) or part.value is None)
        if text or isinstance(part, (ast.List, ast.Tuple)):
            raise _refusal(shown, f"'{ast.unparse(node)}'")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not any(_names(node)):
        raise SettingError(f"the formula '~ {shown}' has {ast.unparse(node)}: powers are of columns; write the number")


def _require_constant(node: ast.Constant, shown: str) -> None:
    """Refuse constants that are no numbers or plain texts.

    Formulaic writes texts into code of its own, without regard to quotes that are in them.
    """
    value = node.value
    if isinstance(value, str) and (not value.isprintable() or set(value) & set("\"'`\\{}")):
        raise SettingError(
            f"the formula '~ {shown}' has the text {value!r}, and texts in formulas hold no quotes, braces, "
            "backslashes or control characters. What to do: rename the level."
        )
    if not isinstance(value, (str, int, float, type(None))):
        raise _refusal(shown, f"'{ast.unparse(node)}'")


def _names(node: ast.expr) -> Iterator[str]:
    """The names of columns in an expression."""
    left: list[Any] = [node]
    while left:
        part = left.pop()
        if isinstance(part, ast.Name):
            yield part.id
        left += _inner(part)


def _reckoned(node: ast.expr) -> Iterator[str]:
    """The names of columns whose values an operator gets."""
    left: list[tuple[Any, bool]] = [(node, False)]
    while left:
        part, reckoned = left.pop()
        if isinstance(part, ast.Name) and reckoned:
            yield part.id
        reckoned = isinstance(part, (ast.BinOp, ast.UnaryOp)) or (reckoned and not isinstance(part, ast.Compare))
        left += [(inner, reckoned) for inner in _inner(part)]


def _refusal(shown: str, what: str, hint: str = "") -> SettingError:
    known = ", ".join(FUNCTIONS)
    return SettingError(
        f"the formula '~ {shown}' has {what}, which formulas do not hold{hint or '.'} They hold columns, numbers, "
        f"arithmetic, comparisons, and {known}. What to do: make a column of it before the fit, and name that."
    )
