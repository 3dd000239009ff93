"""A short text that two things share only if they would give the same numbers.

Kept parts of runs and kept replicates of studies are used again only under the same identity. Names are not enough for
that: two priors may print alike, and a function keeps its name when its code changes.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import re
import types
import weakref
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import PurePath
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr
from numpyro.distributions import Distribution

_ADDRESS = re.compile(r"0x[0-9a-f]+")
_LIBRARIES = ("jax", "jaxlib", "numpy", "numpyro", "scipy", "builtins")  # whose functions are known by their names


def fingerprint(value: Any) -> str:
    """Sixteen letters that depend on all that a value holds: numbers, arrays, settings, code, and what code refers to.

    Examples
    --------
    >>> import numpyro.distributions as dist
    >>> fingerprint(dist.Normal(0, 1)) == fingerprint(dist.Normal(0, 1))
    True
    >>> fingerprint(dist.TruncatedNormal(0, 1, low=0.1)) == fingerprint(dist.TruncatedNormal(0, 1, low=0.2))
    False
    """
    digest = hashlib.sha256()
    _add(value, lambda text: digest.update(text + b"\0"), [])
    return digest.hexdigest()[:16]


def code(function: Callable[..., Any], *arguments: Any) -> str:
    """The identity of what a function computes for arguments of these shapes: its operations and its constants."""
    traced = jax.make_jaxpr(lambda *values: function(*values))(*arguments)  # a new function, whose trace is not kept
    return fingerprint([_ADDRESS.sub("", str(traced.jaxpr)), _constants(traced)])


def _constants(part: Any) -> list[Any]:
    """What traced code holds apart from its operations: arrays, also those of functions inside, and callbacks."""
    if isinstance(part, (ClosedJaxpr, Jaxpr)):
        held = [np.asarray(constant) for constant in getattr(part, "consts", ())]
        return held + [found for line in part.eqns for value in line.params.values() for found in _constants(value)]
    if isinstance(part, (list, tuple)):
        return [found for value in part for found in _constants(value)]
    own = callable(part) and not isinstance(part, type)
    inner = getattr(part, "callback_func", part)  # a host function that JAX has wrapped
    return [inner] if own and (getattr(inner, "__module__", "") or "").partition(".")[0] not in _LIBRARIES else []


def _add(value: Any, tell: Callable[[bytes], None], above: list[int]) -> None:
    """Tell the bytes of a value, whatever it is; ``above`` are the values it stands in, so that circles end."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, PurePath, enum.Enum, np.generic)):
        tell(f"{type(value).__name__}:{value!r}".encode("utf-8", "surrogatepass"))
        return
    if id(value) in above:
        tell(b"circle:%d" % above.index(id(value)))
        return
    inside = [*above, id(value)]
    if isinstance(value, (np.ndarray, jax.Array)):
        array = np.ascontiguousarray(value)
        tell(f"array:{array.dtype}:{array.shape}".encode())
        if array.dtype == object:
            _each(array.reshape(-1).tolist(), tell, inside)
        else:
            tell(array.tobytes())
    elif isinstance(value, Mapping):
        tell(b"mapping:%d" % len(value))
        for key in sorted(value, key=repr):
            _add(key, tell, inside)
            _add(value[key], tell, inside)
    elif isinstance(value, Set):
        _each(sorted(map(fingerprint, value)), tell, inside)
    elif isinstance(value, Sequence):
        _each(value, tell, inside)
    elif isinstance(value, functools.partial):
        _each(["partial", value.func, value.args, value.keywords], tell, inside)
    elif isinstance(value, types.MethodType):
        _each(["method", value.__func__, value.__self__], tell, inside)
    elif isinstance(value, types.FunctionType):
        _function(value, tell, inside)
    elif isinstance(value, types.CodeType):
        _each(["code", value.co_code, value.co_names, value.co_varnames, value.co_consts], tell, inside)
    elif isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType, np.ufunc)):
        module = getattr(value, "__module__", "")
        tell(f"name:{module}.{getattr(value, '__qualname__', value.__name__)}".encode())
    else:
        _object(value, tell, inside)


def _each(values: Any, tell: Callable[[bytes], None], above: list[int]) -> None:
    tell(b"sequence:%d" % len(values))
    for value in values:
        _add(value, tell, above)


def _function(function: types.FunctionType, tell: Callable[[bytes], None], above: list[int]) -> None:
    """Code, defaults, what it encloses, and the globals it names; a library's function is known by its name."""
    root = (function.__module__ or "").partition(".")[0]
    if root in _LIBRARIES:
        tell(f"name:{function.__module__}.{function.__qualname__}".encode())
        return
    enclosed = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
    named = {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}
    _each([function.__code__, function.__defaults__, function.__kwdefaults__, enclosed, named], tell, above)


def _filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _names(body: types.CodeType) -> set[str]:
    """Names that code looks up, that of functions inside it too."""
    inner = [_names(constant) for constant in body.co_consts if isinstance(constant, types.CodeType)]
    return set(body.co_names).union(*inner)


def _object(value: Any, tell: Callable[[bytes], None], above: list[int]) -> None:
    """An object is its class and its attributes, without those that it only caches."""
    kind = type(value)
    tell(f"object:{kind.__module__}.{kind.__qualname__}".encode())
    if isinstance(value, Distribution):  # which says itself what it is made of, in an order that differs by process
        names = {*kind.gather_pytree_data_fields(), *kind.gather_pytree_aux_fields()}
        parts = {name: getattr(value, name, None) for name in names}
        _add({name: np.asarray(p) if isinstance(p, (int, float)) else p for name, p in parts.items()}, tell, above)
        return
    if dataclasses.is_dataclass(value):
        held = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    else:
        cached = {name for base in kind.__mro__ for name, made in vars(base).items() if _caches(made)}
        held = {
            name: part
            for name, part in getattr(value, "__dict__", {}).items()
            if name not in cached and name != "_inv" and not isinstance(part, weakref.ref)
        }
        if not held and kind.__repr__ is not object.__repr__:  # type: ignore[comparison-overlap]
            held = {"repr": _ADDRESS.sub("", repr(value))}
    _add(held, tell, above)


def _caches(attribute: Any) -> bool:
    return isinstance(attribute, functools.cached_property) or type(attribute).__name__ == "lazy_property"
