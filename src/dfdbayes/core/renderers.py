"""Who shows what `core` finds.

`present` comes after it, so that nothing here imports that: results ask for a renderer by name, and `present` registers
under these names what shows them. Plotting backends of pandas are found in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from .registry import Registry

RENDERERS: Registry[Callable[..., Any]] = Registry("renderer")
BY = "dfdbayes.present.renderers"  # imported when something is first shown, for what draws and writes pages takes time


def renderer(name: str) -> Callable[..., Any]:
    """What shows a result as a console, a notebook, a page or a picture."""
    import_module(BY)
    return RENDERERS.by_name(name)
