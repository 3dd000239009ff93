"""Built-in models by class name, and by the short names of the command line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ModelError
from ..graphs import Graph, of, parse
from .base import AbstractModel, ExponentialFamily, Model
from .counts import Bernoulli, ConwayMaxwellPoisson, Poisson
from .lattice import Ising, Potts
from .mixture import PoissonMixture
from .pairwise import ConwayMaxwellPoissonGraphical, IsingNetwork, Pairwise, PoissonGraphical

__all__ = [
    "AbstractModel",
    "Bernoulli",
    "ConwayMaxwellPoisson",
    "ConwayMaxwellPoissonGraphical",
    "ExponentialFamily",
    "Ising",
    "IsingNetwork",
    "Model",
    "Pairwise",
    "Poisson",
    "PoissonGraphical",
    "PoissonMixture",
    "Potts",
    "by_name",
    "names",
    "plain_options",
]

Options = Mapping[str, Any]


def _needs(options: Options, key: str, example: str) -> Any:
    if options.get(key) is None:
        raise ModelError(f"this model needs a {key}, for example {example}")
    return options[key]


def _graph(options: Options) -> Graph:
    graph = _needs(options, "graph", "--graph grid:6x6, or dfd.models.Ising(dfd.graphs.grid(6, 6))")
    return parse(graph) if isinstance(graph, str) else of(graph)


def _or_all_pairs(d: int, options: Options) -> Any:
    return d if options.get("graph") is None else _graph(options)


# How each name becomes a model, from the number of columns and options.
_BY_NAME: dict[str, tuple[Callable[..., AbstractModel], Callable[[int, Options], AbstractModel]]] = {
    "bernoulli": (Bernoulli, lambda d, o: Bernoulli()),
    "poisson": (Poisson, lambda d, o: Poisson()),
    "cmp": (ConwayMaxwellPoisson, lambda d, o: ConwayMaxwellPoisson()),
    "ising": (
        Ising,
        lambda d, o: Ising(_graph(o), o.get("states") or "spins", bool(o.get("field"))),
    ),
    "ising-network": (
        IsingNetwork,
        lambda d, o: IsingNetwork(_or_all_pairs(d, o), o.get("states") or "binary"),
    ),
    "potts": (Potts, lambda d, o: Potts(_graph(o), int(o.get("states") or 3))),
    "poisson-graphical": (
        PoissonGraphical,
        lambda d, o: PoissonGraphical(_or_all_pairs(d, o), o.get("prior") or "squared"),
    ),
    "cmp-graphical": (
        ConwayMaxwellPoissonGraphical,
        lambda d, o: ConwayMaxwellPoissonGraphical(_or_all_pairs(d, o), o.get("prior") or "squared"),
    ),
    "poisson-mixture": (
        PoissonMixture,
        lambda d, o: PoissonMixture(_needs(o, "rates", "--rates 5,15")),
    ),
}


def names() -> dict[str, str]:
    """The short name of every built-in model with one line about it."""
    return {name: (make.__doc__ or "").splitlines()[0] for name, (make, _) in _BY_NAME.items()}


def by_name(name: str, d: int, options: Options | None = None) -> AbstractModel:
    """A built-in model for data with ``d`` columns; ``options`` are those of its Python function."""
    if name not in _BY_NAME:
        close = difflib.get_close_matches(name, _BY_NAME, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else "."
        raise ModelError(f"there is no model '{name}'{hint} Known models: {', '.join(_BY_NAME)}.")
    return _BY_NAME[name][1](d, options or {})


def plain_options(model: AbstractModel) -> dict[str, Any]:
    """A model's options in values that JSON can hold; `by_name` takes them back."""
    plain = dict(model.options)
    if isinstance(plain.get("graph"), Graph):
        graph = plain["graph"]
        plain["graph"] = {"size": graph.size, "pairs": [list(p) for p in graph.pairs], "shape": graph.shape}
    return plain
