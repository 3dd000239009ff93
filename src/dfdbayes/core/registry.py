"""Tables of named things, each filled where a thing is defined."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from ..errors import DfdbayesError, SettingError, close

T = TypeVar("T")
S = TypeVar("S")


class Registry(Generic[T]):
    """Things of one kind by name. A decorator adds them, so that no list elsewhere has to know them.

    Parameters
    ----------
    kind : str
        What they are called in messages, such as "loss".
    error : type of DfdbayesError
        What an unknown name raises.
    hint : str
        What else may be given in place of a name, added to that message.

    Examples
    --------
    >>> from dfdbayes.core.registry import Registry
    >>> SHAPES = Registry("shape")
    >>> @SHAPES.register("circle")
    ... class Circle:
    ...     pass
    >>> SHAPES.by_name("circle") is Circle
    True
    >>> SHAPES.names()
    ('circle',)
    """

    def __init__(self, kind: str, error: type[DfdbayesError] = SettingError, hint: str = "") -> None:
        self.kind, self.error, self.hint = kind, error, hint
        self._known: dict[str, T] = {}

    def register(self, name: str, *more: str) -> Callable[[S], S]:
        """Add what follows (a class, a function or any value) under a name, and under more names if there are any.

        Raises
        ------
        ValueError
            If the name belongs to something that was defined elsewhere. A definition that is run again, as in a
            notebook, replaces itself.
        """

        def add(thing: Any) -> Any:
            for each in (name, *more):
                if each in self._known and _origin(self._known[each]) != _origin(thing):
                    raise ValueError(f"there is a {self.kind} '{each}' already: {_origin(self._known[each])}")
                self._known[each] = thing
            return thing

        return add

    def by_name(self, name: str) -> T:
        """What a name stands for.

        Raises
        ------
        DfdbayesError
            If nothing has that name; the message lists the names that there are, and the nearest one.
        """
        if not isinstance(name, str) or name not in self._known:
            raise self.error(
                f"there is no {self.kind} {name!r}; known: {', '.join(self)}{self.hint}{close(name, self._known)}"
            )
        return self._known[name]

    def names(self) -> tuple[str, ...]:
        """All names in alphabetical order: that in which modules were imported says nothing."""
        return tuple(sorted(self._known))

    def name_of(self, thing: Any) -> str | None:
        """The first name under which something equal was added; None if there is none."""
        return next((name for name, known in self._known.items() if _same(known, thing)), None)

    def items(self) -> tuple[tuple[str, T], ...]:
        """All names with what they stand for, in alphabetical order."""
        return tuple(sorted(self._known.items(), key=lambda item: item[0]))

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"Registry({self.kind!r}: {', '.join(self) or 'nothing'})"


def _same(known: Any, thing: Any) -> bool:
    return known is thing or (type(known) is type(thing) and bool(known == thing))


def _origin(thing: Any) -> tuple[str, str]:
    """Where a class, function or value was defined: of a value, its class and what it prints as but for addresses."""
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}", named.__qualname__ if named is thing else re.sub(r" at 0x\w+", "", repr(thing))


def import_modules(package: str) -> None:
    """Import every module that stands in a package, so that what they register is there: a new file needs no entry.

    Parameters
    ----------
    package : str
        Its ``__name__``; call it at the end of the package's ``__init__``.
    """
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")
