"""The paper's experiments, one small module each, made with the library's public names.

`run` gives a `Finding`: figures, and numbers with the paper's beside ours. `dfdbayes reproduce` writes them to a page.
"""

from __future__ import annotations

from importlib import import_module

from .base import Finding, Number, Settings

NAMES = (
    "bernoulli-losses",
    "bernoulli-posteriors",
    "poisson-outliers",
    "poisson-mixture",
    "cmp-posteriors",
    "cmp-beta",
    "cmp-coverage",
    "cmp-cost",
    "sales",
    "ising-posteriors",
    "ising-robustness",
    "gene-graphical",
    "gene-beta",
    "stein-domination",
    "bernstein-von-mises",
)


def run(name: str, settings: Settings) -> Finding:
    """Run one experiment."""
    return import_module(f".{name.replace('-', '_')}", __name__).run(settings)


__all__ = ["NAMES", "Finding", "Number", "Settings", "run"]
