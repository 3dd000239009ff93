"""Values as JSON can hold them, and back: the one way by which everything is saved and loaded.

A dataclass is written as its declared fields, and what is read is held to the types that these are declared to have.
Where a value may be of several classes (a loss, a weight of rows) it is written under a name that was registered for
it. Nothing in a file can name anything else, and none of its text is executed.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, Protocol, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np
import pandas as pd

APART = {"codec": "apart"}
"""Metadata of a field that is not written with the value: it is kept elsewhere, and known when the value is read."""


class UnwritableError(TypeError):
    """A value that could not be made again from what JSON holds: a function of a user's own is part of it."""


class UnlikeError(TypeError):
    """What was read is not of the type that it is declared to have; ``name`` says which part."""

    def __init__(self, name: str) -> None:
        super().__init__(f"'{name}' is of another type than there should be")
        self.name = name


class LackingError(TypeError):
    """What was read is not all that is needed: a field that is kept elsewhere is not known."""


class Table(Protocol):
    """Values, and classes of values, by name: a registry."""

    def items(self) -> Iterable[tuple[str, Any]]: ...


class _Named(NamedTuple):
    table: Table
    tag: str
    inside: str


_NAMED: dict[Any, _Named] = {}


def by_name(base: Any, table: Table, tag: str = "name", inside: str = "") -> None:
    """Values of a class are written under the names that they, or the classes that they are of, have in a table.

    Parameters
    ----------
    base : type
    table : Registry
    tag : str
        The key that the name stands under.
    inside : str
        The key that fields stand under; beside the name where it is empty.
    """
    _NAMED[base] = _Named(table, tag, inside)


_FOREIGN: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {}


def foreign(base: type, write: Callable[[Any], Any], read: Callable[[Any], Any]) -> None:
    """How values of another library's class are written and read."""
    _FOREIGN[base] = write, read


# -- writing -----------------------------------------------------------------------------------


def to_plain(value: Any, kind: Any = None) -> Any:
    """A value as JSON can hold it; `from_plain` makes it again.

    Parameters
    ----------
    value
    kind : type, optional
        The class that it is declared to be of, where it need not inherit from that.

    Raises
    ------
    UnwritableError
        If that could not be made again.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, np.ndarray):
        found = value.astype(object)
        found[value != value] = None  # what is not a number, of which JSON has none
        return found.tolist()
    if isinstance(value, pd.DataFrame):
        table = value.to_dict("tight")
        return {key: to_plain(table[key]) for key in ("columns", "index", "data", "index_names")}
    if isinstance(value, Mapping):
        return {key: to_plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(part) for part in value]
    for base in (kind, *type(value).__mro__):
        if base in _FOREIGN:
            return _FOREIGN[base][0](value)
        if base in _NAMED:
            return _with_name(value, *_NAMED[base])
    if not is_dataclass(value):
        raise UnwritableError(f"{value!r} is not made of declared fields")
    return _state(value)


def plain_or_none(value: Any) -> Any:
    """The same; None for what could not be made again."""
    try:
        return to_plain(value)
    except UnwritableError:
        return None


def _with_name(value: Any, table: Table, tag: str, inside: str) -> dict[str, Any]:
    for name, known in table.items():
        is_kind = known is type(value)
        if is_kind or (type(known) is type(value) and known == value):
            state = _state(value) if is_kind else {}
            return {tag: name} | ({inside: state} if inside else state)
    raise UnwritableError(f"{value!r} has no name to be saved under")


def _state(value: Any) -> dict[str, Any]:
    """What a value is made of: what its `to_state` says, or else its fields."""
    if hasattr(value, "to_state"):
        return {name: to_plain(part) for name, part in value.to_state().items()}
    return {field.name: to_plain(getattr(value, field.name)) for field in _fields(value) if not _is_apart(field)}


def _fields(kind: Any) -> list[Field[Any]]:
    """The fields that a value or a class is made with; none of what is no dataclass."""
    return [field for field in fields(kind) if field.init] if is_dataclass(kind) else []


def _is_apart(field: Field[Any]) -> bool:
    return field.metadata.get("codec") == "apart"


# -- reading -----------------------------------------------------------------------------------


def from_plain(plain: Any, kind: Any, part: str = "", **known: Any) -> Any:
    """A value of a declared type, from what `to_plain` wrote or from a value of that type, whose parts are looked at.

    Parameters
    ----------
    plain
    kind : type
        A type as annotations have it: of numbers, texts, arrays, tables, dataclasses, and collections of these.
    part : str
        What is read, for errors.
    known
        Fields, at any depth, that are not written with the value they are of (`APART`).

    Raises
    ------
    UnlikeError
        If a part is not of the type that it is declared to have.
    LackingError
        If a field that is not written is not known either.

    Examples
    --------
    >>> from_plain([1, 2.5], tuple[float, ...])
    (1, 2.5)
    >>> from_plain({"a": True}, dict[str, int])
    Traceback (most recent call last):
    dfdbayes._util.codec.UnlikeError: 'a' is of another type than there should be
    """
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if kind is Any:
        return plain
    if origin in (UnionType, Union):
        return _one_of(plain, inner, part, known)
    if is_typeddict(kind):
        return _by_hint(plain, get_type_hints(kind), part, known)
    base = origin if origin in _NAMED else next((b for b in getattr(origin, "__mro__", ()) if b in _NAMED), None)
    if base is not None:
        found = plain if isinstance(plain, base) else _of_name(plain, *_NAMED[base], part, known)
        if not isinstance(found, origin):
            raise UnlikeError(part)
        return found
    if origin in _FOREIGN:
        return plain if isinstance(plain, origin) else _FOREIGN[origin][1](plain)
    if not isinstance(origin, type):
        raise UnlikeError(part)
    if is_dataclass(origin):
        if not isinstance(plain, origin):
            return _from_state(plain, origin, known, part)
        for name, hint in _hints(origin).items():
            from_plain(getattr(plain, name), hint, name, **known)
        return plain
    if issubclass(origin, np.ndarray) or hasattr(origin, "array_type"):
        return _array(plain, origin, part)
    if issubclass(origin, pd.DataFrame):
        return _table(plain, part)
    if issubclass(origin, Enum) and isinstance(plain, str):
        return origin(plain)
    if issubclass(origin, tuple):
        return _row(plain, origin, inner, part, known)
    wanted = (float, int) if origin is float else origin
    if not isinstance(plain, wanted) or (isinstance(plain, bool) and origin is not bool):
        raise UnlikeError(part)
    if not inner:
        return plain
    if isinstance(plain, Mapping):
        pairs = [(from_plain(key, inner[0], part, **known), key, one) for key, one in plain.items()]
        return {made: from_plain(one, inner[1], part or str(key), **known) for made, key, one in pairs}
    return [from_plain(one, inner[0], part, **known) for one in plain] if isinstance(plain, Sequence) else plain


def _one_of(plain: Any, kinds: Sequence[Any], part: str, known: Mapping[str, Any]) -> Any:
    if plain is None and NoneType in kinds:
        return None
    found = [kind for kind in kinds if kind is not NoneType]
    for kind in found[:-1]:
        try:
            return from_plain(plain, kind, part, **known)
        except UnlikeError:
            continue
    return from_plain(plain, found[-1], part, **known)


def _by_hint(plain: Any, hints: Mapping[str, Any], part: str, known: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(plain, dict):
        raise UnlikeError(part)
    unknown = [str(name) for name in plain if name not in hints]
    if unknown:
        raise UnlikeError(unknown[0])
    return {name: from_plain(own, hints[name], name, **known) for name, own in plain.items()}


def _of_name(plain: Any, table: Table, tag: str, inside: str, part: str, known: Mapping[str, Any]) -> Any:
    name = plain.get(tag) if isinstance(plain, Mapping) else None
    found = dict(table.items()).get(name) if isinstance(name, str) else None
    if found is None:
        raise UnlikeError(part or tag)
    if not isinstance(found, type):
        return found
    state = plain.get(inside) if inside else {key: value for key, value in plain.items() if key != tag}
    return _from_state(state, found, known, part)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """The declared types of a dataclass's fields."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _from_state(plain: Any, kind: Any, known: Mapping[str, Any], part: str) -> Any:
    if not isinstance(plain, Mapping):
        raise UnlikeError(part)
    if hasattr(kind, "from_state"):
        return kind.from_state(plain, **known)
    own = _fields(kind)
    given = {field.name: known[field.name] for field in own if _is_apart(field) and field.name in known}
    written = {field.name: _hints(kind)[field.name] for field in own if not _is_apart(field)}
    given |= _by_hint(dict(plain), written, part, known)
    for field in own:
        if field.name not in given and field.default is MISSING and field.default_factory is MISSING:
            raise LackingError(f"'{field.name}' of {kind.__name__} is not there")
    return kind(**given)


def _row(plain: Any, kind: type, inner: tuple[Any, ...], part: str, known: Mapping[str, Any]) -> Any:
    """A tuple, of one type however long or of a type for each place; a named one by its fields."""
    if not isinstance(plain, (tuple, list)):
        raise UnlikeError(part)
    if kind is not tuple:
        inner = tuple(get_type_hints(kind).values())
    elif not inner:
        return tuple(plain)
    elif inner[-1] is Ellipsis:
        inner = (inner[0],) * len(plain)
    if len(plain) != len(inner):
        raise UnlikeError(part)
    made = [from_plain(one, own, part, **known) for one, own in zip(plain, inner, strict=True)]
    return tuple(made) if kind is tuple else kind(*made)


def _array(plain: Any, kind: Any, part: str) -> np.ndarray:
    """An array whose numbers and axes are those that its annotation has (`jaxtyping`); null is a missing number."""
    found = plain
    if isinstance(plain, list):
        words = getattr(kind, "dim_str", "").split()
        whole = any(name.startswith(("int", "uint", "bool")) for name in getattr(kind, "dtypes", ()))
        try:
            found = np.array(plain, None if whole and plain else float if not whole else np.int64)
        except (TypeError, ValueError):
            raise UnlikeError(part) from None
        if not found.size and words and found.ndim != len(words):
            found = found.reshape([int(word) if word.isdigit() else 0 for word in words])
    if not isinstance(found, np.ndarray) or not isinstance(found, kind):
        raise UnlikeError(part)
    return found


def _table(plain: Any, part: str) -> pd.DataFrame:
    """A table; of earlier versions it is a text."""
    if isinstance(plain, str):
        plain = json.loads(plain)
    if isinstance(plain, Mapping):
        names = {"columns", "index", "data"}
        if not names <= set(plain) <= names | {"index_names"}:
            raise UnlikeError(part)
        try:
            found = pd.DataFrame(plain["data"], plain["index"], range(len(plain["columns"])))
            unknown = [column for column in found if found[column].dtype.kind == "O" and found[column].isna().all()]
            plain = (
                found.astype(dict.fromkeys(unknown, float))
                .set_axis(plain["columns"], axis=1)
                .rename_axis(index=plain.get("index_names", [None])[0])
            )
        except (TypeError, ValueError):
            raise UnlikeError(part) from None
    if not isinstance(plain, pd.DataFrame) or not all(isinstance(o, Hashable) for o in [*plain.columns, *plain.index]):
        raise UnlikeError(part)
    return plain


# -- cells of tables ---------------------------------------------------------------------------


def cell_to_plain(value: Any) -> Any:
    """What a cell of a user's table holds, as JSON can hold it: a number, a text, a date, an interval, or a few such.

    Raises
    ------
    UnwritableError
        If it is something else.
    """
    if isinstance(value, np.generic):
        value = pd.Timestamp(value) if isinstance(value, np.datetime64) else value.item()
    if value is None or type(value) in (str, bool, int, float):
        return value
    if isinstance(value, str):  # numpy's and others' own
        return str(value)
    if isinstance(value, tuple):
        return {"tuple": [cell_to_plain(part) for part in value]}
    kind = type(value).__name__
    if kind not in _CELLS or type(value) is not _CELLS[kind].kind:
        raise UnwritableError(kind)
    return {kind: _CELLS[kind].write(value)}


def cell_from_plain(plain: Any) -> Any:
    """Back from `cell_to_plain`."""
    if not isinstance(plain, Mapping):
        return plain
    ((kind, said),) = plain.items()
    return tuple(map(cell_from_plain, said)) if kind == "tuple" else _CELLS[kind].read(said)


class _Cell(NamedTuple):
    """A class of values in cells, how one is written, and how it is read."""

    kind: type
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _moment(value: Any) -> list[Any]:
    """A time in universal time, or a duration, as a whole number of its unit; and the zone of a time that has one."""
    zone = getattr(value, "tz", None)
    return [value.to_numpy().astype(np.int64).item(), value.unit, None if zone is None else str(zone)]


def _timestamp(said: Sequence[Any]) -> pd.Timestamp:
    made = pd.Timestamp(np.datetime64(said[0], said[1]))
    return made if said[2] is None else made.tz_localize("UTC").tz_convert(said[2])


_CELLS = {
    "Timestamp": _Cell(pd.Timestamp, _moment, _timestamp),
    "Timedelta": _Cell(pd.Timedelta, _moment, lambda said: pd.Timedelta(np.timedelta64(said[0], said[1]))),
    "Period": _Cell(
        pd.Period, lambda own: [own.ordinal, own.freqstr], lambda said: pd.Period(ordinal=said[0], freq=said[1])
    ),
    "Interval": _Cell(
        pd.Interval,
        lambda own: [cell_to_plain(own.left), cell_to_plain(own.right), own.closed],
        lambda said: pd.Interval(cell_from_plain(said[0]), cell_from_plain(said[1]), closed=said[2]),
    ),
    **{kind.__name__: _Cell(kind, str, kind) for kind in (Decimal, Fraction)},
    **{
        kind.__name__: _Cell(kind, lambda own: own.isoformat(), kind.fromisoformat)
        for kind in (datetime.date, datetime.datetime, datetime.time)
    },
}
