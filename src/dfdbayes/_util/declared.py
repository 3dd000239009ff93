"""Whether values from a file are of the types that are declared: of TypedDicts, dataclasses, and what these hold."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import is_dataclass
from types import UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints, is_typeddict

import pandas as pd


def unlike(value: Any, hint: Any, name: str = "") -> str | None:
    """The name of the first part of a value that is not of its type; None where all are.

    A pair may be a list, as JSON has it; an integer is a number; a truth value is none.
    """
    if hint is Any:
        return None
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in (UnionType, Union):
        return None if any(unlike(value, own) is None for own in inner) else name
    declared = isinstance(kind, type) and is_dataclass(kind)
    if is_typeddict(hint) or (declared and isinstance(value, kind)):
        known = {own: each for own, each in get_type_hints(hint).items() if get_origin(each) is not ClassVar}
        if declared:
            value = {own: getattr(value, own) for own in known if hasattr(value, own)}
        return _unlike_parts(value, known, name) if isinstance(value, dict) else name
    wanted = {float: (float, int), tuple: (tuple, list)}.get(kind, kind)
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind is not bool):
        return name
    if isinstance(value, pd.DataFrame):
        labels = [*value.columns, *value.index]
        return None if all(isinstance(label, Hashable) for label in labels) else name
    if not inner:
        return None
    if isinstance(value, Mapping):
        pairs = [(part, own) for key, one in value.items() for part, own in ((key, inner[0]), (one, inner[1]))]
    elif kind is tuple and inner[-1] is not Ellipsis:
        if len(value) != len(inner):
            return name
        pairs = list(zip(value, inner, strict=True))
    else:
        pairs = [(part, inner[0]) for part in value]
    return name if any(unlike(part, own, name) is not None for part, own in pairs) else None


def _unlike_parts(value: Mapping[str, Any], hints: Mapping[str, Any], name: str) -> str | None:
    wrong = (key if key not in hints else unlike(own, hints[key], str(key)) for key, own in value.items())
    return next((str(part) for part in wrong if part is not None), None)
