"""Slips in a user's own mass function, told in words: what happened, on which line, and what to write instead."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import checkify
from jax.interpreters import partial_eval as pe

from ..errors import ModelError
from .domain import Coordinate, Domain

_CONVERTED = (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError)
MADE = "dfd.Model(log_mass, domain=dfd.Counts(1), parameters={'rate': dist.Normal(0, 1)})"
_INSTEAD = "write jax.numpy (jnp.log, jnp.exp) in place of math and numpy, and jax.scipy.special in place of scipy"


def told(name: str, function: Callable[..., Any], problem: Exception, declared: Sequence[str], d: int) -> str:
    """Why a mass function could not be traced."""
    said = f"{type(problem).__name__}: {(str(problem).splitlines() or [''])[0]}"
    if isinstance(problem, jax.errors.TracerBoolConversionError):
        said = (
            "it decides by 'if', 'and', 'while', min() or max() on a value that is not known yet; write "
            "jnp.where(condition, a, b), jnp.minimum(a, b) or jnp.maximum(a, b)"
        )
    elif isinstance(problem, _CONVERTED):
        said = f"it calls a function that needs plain numbers; {_INSTEAD}"
    elif _exchanged(problem, declared):
        said = "the parameters come first and the row second: log_mass(theta, x)"
    elif isinstance(problem, TypeError) and "string indexing" in str(problem):
        said = f"columns of a row are taken by position: x[0]{f' to x[{d - 1}]' * (d > 1)}"
    elif isinstance(problem, AttributeError) and problem.name in declared:
        said = f"parameters are taken by name in brackets: theta['{problem.name}']"
    elif isinstance(problem, KeyError):
        said = f"it uses the parameter {problem.args[0]!r}, which is not declared; declared: {', '.join(declared)}"
    elif isinstance(problem, IndexError):
        said = f"it takes an entry of x that is not there; x has {d} entr{'y' if d == 1 else 'ies'}, from x[0] on"
    elif isinstance(problem, TypeError) and not takes(function, 2):
        said = "it must take two arguments: the parameters by name, and one row: log_mass(theta, x)"
    return f"the mass function of '{name}' cannot be evaluated{_where(function, problem)}: {said}"


def _exchanged(problem: Exception, declared: Sequence[str]) -> bool:
    """Whether a parameter was looked for in the row, or a column among the parameters."""
    if isinstance(problem, KeyError):
        return isinstance(problem.args[0], int)
    return isinstance(problem, TypeError) and any(f"got idx='{name}'" in str(problem) for name in declared)


def require_order(log_mass: Any, domain: Any, parameters: Any) -> None:
    """Refuse arguments of a model that are in each other's place."""
    given = [type(part).__name__ for part in (log_mass, domain, parameters)]
    if isinstance(log_mass, Domain) or not callable(log_mass) or isinstance(parameters, Domain):
        raise ModelError(
            f"a model is made of a function, a domain and parameters, in this order, and was given {', '.join(given)}. "
            f"What to do: write {MADE}."
        )


def returned(name: str, value: Any, d: int) -> str:
    """What to say of a mass function that does not return one number."""
    if value is None:
        return f"the mass function of '{name}' returns nothing: is 'return' missing?"
    shape = getattr(value, "shape", None)
    column = "; write x[0] in place of x" if d == 1 and shape == (1,) else "; use .sum()" if shape == (d,) else ""
    return f"the mass function of '{name}' must return one number for one row, not an array of shape {shape}{column}"


def no_real_number(name: str, kind: Any) -> str:
    """What to say of a mass function whose value has no derivatives, as it is complex, whole or a truth value."""
    if jnp.issubdtype(kind, jnp.complexfloating):
        return (
            f"the mass function of '{name}' returns a complex number ({kind}). What to do: return the real log mass; "
            "a root or a logarithm of a negative number is to be avoided, and jnp.real(...) takes the real part."
        )
    said = "a truth value" if jnp.issubdtype(kind, jnp.bool_) else f"a whole number ({kind})"
    return (
        f"the mass function of '{name}' returns {said}, which has no derivatives. What to do: return a log mass that "
        "changes smoothly with the parameters, without jnp.floor, astype(int) or comparisons of parameters."
    )


def require_entries(name: str, function: Callable[..., Any], shapes: dict[str, Any], domain: Domain) -> None:
    """Refuse a function that takes entries beyond the row's end, for which JAX silently gives the last one."""
    theta = {key: jnp.ones(own.shape, own.dtype) for key, own in shapes.items()}
    row = jnp.array([_some_value(domain.coordinate(j)) for j in range(domain.d)], float)
    traced_mass = jax.make_jaxpr(lambda t, x: function(t, x))(theta, row)
    used = pe.dce_jaxpr(traced_mass.jaxpr, [True])[1]
    idle = [f"'{key}'" for key, matters in zip(sorted(theta), used, strict=False) if not matters]
    if idle:
        raise ModelError(
            f"the mass function of '{name}' does not use the parameter{'s' * (len(idle) > 1)} {', '.join(idle)}. "
            "What to do: use what is declared, or leave it out of parameters={...}."
        )
    if not {"dynamic_slice", "gather"} & {each.primitive.name for each in traced_mass.jaxpr.eqns}:
        return
    error, _ = checkify.checkify(lambda t, x: function(t, x), errors=checkify.index_checks)(theta, row)
    if error.get() is not None:
        d = row.shape[0]
        raise ModelError(
            f"the mass function of '{name}' takes an entry of an array that is not there. One row, x, has {d} "
            f"entr{'y: x[0]' if d == 1 else f'ies: x[0] to x[{d - 1}]'}. What to do: correct the index, or declare a "
            "domain with more columns."
        )


def _some_value(coordinate: Coordinate) -> int:
    return coordinate.levels[0] if coordinate.levels else coordinate.end or 0


def in_words(value: Any) -> str:
    """What a user gave in place of something else: short, and a class or function by its name."""
    if isinstance(value, type):
        return f"the class {value.__name__} itself, which is to be called"
    if callable(value) and hasattr(value, "__name__"):
        return "a function" if value.__name__ == "<lambda>" else f"the function {value.__name__}"
    text = " ".join(repr(value).split())
    if " object at 0x" in text:
        text = f"a {type(value).__module__.partition('.')[0]} {type(value).__name__}"
    return f"{type(value).__name__} {text[:40]}..." if len(text) > 60 else text


def without_constant(own: bool) -> str:
    """What to do where a likelihood needs a constant that cannot be summed up: give it, of a function of one's own."""
    others = "loss='dfd', 'ratio' or 'pseudo', which need no such sum"
    if not own:
        return f"What to do: use {others}."
    made = "log_normaliser=lambda theta: ..."
    return (
        f"What to do: give the logarithm of that sum where the model is made, {made} ({made.replace('...', '0.0')} if "
        f"the function is the log of a probability as it stands), or use {others}."
    )


def takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many arguments, as far as that is known."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _where(function: Callable[..., Any], problem: Exception) -> str:
    """The user's own line, where it is known."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    lines = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == file]
    if not lines:
        return ""
    return f" (line {lines[-1].lineno}" + (f", '{lines[-1].line}'" if lines[-1].line else "") + ")"
