"""The text of a formula, taken apart: names, names between backticks, texts, numbers, and single signs.

All who look for something in a formula look at its tokens, so that what stands between backticks or quotes is never
taken for an operator, and a name never for a part of another.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from typing import NamedTuple

from ...errors import SettingError

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
