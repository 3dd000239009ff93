"""A model from a user's Python file. The only place where code that is not the package's is executed.

It happens when, and only when, the user names the file: ``path.py:name``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from ..._util.files import misspelt
from ...core.log_mass_errors import MADE, takes
from ...core.model import AbstractModel, Model
from ...errors import ModelError


def is_code(name: str) -> bool:
    """Whether a model is named by a file, ``path.py:name``."""
    return name.rpartition(":")[0].endswith(".py")


@contextmanager
def _importing(name: str, module: Any, folder: str) -> Iterator[None]:
    """As if the file were imported: it is known by its name, and files beside it can be imported."""
    before = sys.modules.get(name)
    sys.modules[name] = module
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        if before is not None:
            sys.modules[name] = before


def model_of(name: str) -> AbstractModel | str:
    """A built-in model's name as it is; or the model that ``path.py:name`` names, for which the file is executed."""
    if name.endswith(".py"):
        raise ModelError(f"'{name}' is a file: write {name}:NAME, the name of a model in it")
    if not is_code(name):
        path, _, attribute = name.rpartition(":")
        if path and Path(f"{path}.py").is_file():
            raise ModelError(f"'{name}' is no model; for one in a file, write {path}.py:{attribute}")
        return name
    path, _, attribute = name.rpartition(":")
    if not Path(path).is_file():
        raise ModelError(f"there is no file '{path}'{misspelt(path)}")
    spec = spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    folder = str(Path(path).resolve().parent)
    try:
        with _importing(spec.name, module, folder):
            spec.loader.exec_module(module)
        found: Any = getattr(module, attribute, None)
        ready = isinstance(found, AbstractModel) or not callable(found) or not takes(found, 0)
        made = found if ready else found()
    except (Exception, SystemExit) as problem:
        raise ModelError(f"{path} ended with {type(problem).__name__}: {problem}") from problem
    if not isinstance(made, AbstractModel):
        known = [key for key, value in vars(module).items() if isinstance(value, AbstractModel)]
        hint = (
            f"; its models: {', '.join(known)}" if known else f"; write NAME = {MADE} there" if callable(made) else ""
        )
        raise ModelError(
            f"'{attribute}' in {path} is not a model, nor a function without arguments that makes one{hint}"
        )
    return replace(made, name=attribute) if isinstance(made, Model) and made.name == "custom" else made
