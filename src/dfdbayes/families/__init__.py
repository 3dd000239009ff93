"""Built-in models by class name, and by the short names of the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpyro.distributions as dist

from ..core.dataset import Dataset
from ..core.domain import Domain
from ..core.exponential import ExponentialFamily
from ..core.graphs import Graph, of, parse
from ..core.log_mass_errors import MADE
from ..core.model import AbstractModel, Model
from ..errors import ModelError, close
from .counts.mixture import PoissonMixture
from .counts.models import Bernoulli, ConwayMaxwellPoisson, CountModel, Poisson
from .graph.model import RandomGraph
from .graph.observed import ObservedGraph
from .lattice.model import Ising, Potts
from .map.model import Autologistic
from .map.observed import ObservedMap
from .network import kinds as column
from .network.mixed import Network, for_data
from .network.model import ConwayMaxwellPoissonGraphical, IsingNetwork, Pairwise, PoissonGraphical

__all__ = [
    "AbstractModel",
    "Autologistic",
    "Bernoulli",
    "ConwayMaxwellPoisson",
    "ConwayMaxwellPoissonGraphical",
    "ExponentialFamily",
    "Ising",
    "IsingNetwork",
    "Model",
    "Network",
    "Pairwise",
    "Poisson",
    "PoissonGraphical",
    "PoissonMixture",
    "Potts",
    "RandomGraph",
    "by_name",
    "names",
    "paper_priors",
    "plain_options",
]

Options = Mapping[str, Any]


def _needs(options: Options, key: str, example: str) -> Any:
    if options.get(key) is None:
        raise ModelError(f"this model needs {key if key.endswith('s') else f'a {key}'}, for example {example}")
    return options[key]


def _graph(options: Options) -> Graph:
    graph = _needs(options, "graph", "options={'graph': dfd.graphs.grid(6, 6)}, on the command line --graph grid:6x6")
    return parse(graph) if isinstance(graph, str) else of(graph)


def _or_all_pairs(d: int, options: Options) -> Any:
    return d if options.get("graph") is None else _graph(options)


def _count_of_states(options: Options) -> int:
    given = options.get("states")
    try:
        return 3 if given is None else int(given)
    except (TypeError, ValueError):
        raise ModelError(f"states must be a whole number, for example --states 3, not {given!r}") from None


def _of_levels(d: int, options: Options) -> AbstractModel:
    """A network from what a saved fit knows of its columns."""
    levels, kinds = options.get("levels"), options.get("kinds")
    if levels is None or kinds is None or needs_data("network", options):
        raise ModelError(
            "a network by name guesses the kinds of its columns from data, and there are none here. What to do: give "
            "the model itself, such as dfd.models.Network(dfd.Ordinal(5, 7) * dfd.Binary(2))."
        )
    found = [column.by_name(kind, tuple(own or ())) for kind, own in zip(kinds, levels, strict=True)]
    graph = None if options.get("graph") is None else _graph(options)
    return Network(column.domain_of(tuple(found)), graph, list(kinds))


def _random_graph(options: Options) -> AbstractModel:
    """A random graph; one that was bound to a graph where options hold that, as a saved fit has it."""
    example = "RandomGraph('edges + gwesp(0.25)'), on the command line --terms 'edges + gwesp(0.25)'"
    model = RandomGraph(_needs(options, "terms", example), options.get("directed"))
    seen = options.get("observed")
    return model if seen is None else model.bound(ObservedGraph.of_plain(seen))


def _autologistic(options: Options) -> AbstractModel:
    """A model of maps; one that was bound to a map where options hold that, as a saved fit has it."""
    own = {name: value for name in ("at", "neighbours", "graph") if (value := options.get(name)) is not None}
    model, seen = Autologistic(**own), options.get("observed")
    return model if seen is None else model.bound(ObservedMap.of_plain(seen))


WHOLE = ("graph", "autologistic")  # models of one observation as a whole, which read their own data

# For each name: the model's function, how it is called with a number of columns and options, and the options it takes.
_BY_NAME: dict[str, tuple[Callable[..., AbstractModel], Callable[[int, Options], AbstractModel], tuple[str, ...]]] = {
    "bernoulli": (Bernoulli, lambda d, o: Bernoulli(), ()),
    "poisson": (Poisson, lambda d, o: Poisson(), ()),
    "cmp": (ConwayMaxwellPoisson, lambda d, o: ConwayMaxwellPoisson(), ()),
    "ising": (
        Ising,
        lambda d, o: Ising(_graph(o), o.get("states") or "spins", bool(o.get("intercept"))),
        ("graph", "states", "intercept"),
    ),
    "ising-network": (
        IsingNetwork,
        lambda d, o: IsingNetwork(_or_all_pairs(d, o), o.get("states") or "binary"),
        ("graph", "states"),
    ),
    "potts": (Potts, lambda d, o: Potts(_graph(o), _count_of_states(o)), ("graph", "states")),
    "poisson-graphical": (
        PoissonGraphical,
        lambda d, o: PoissonGraphical(_or_all_pairs(d, o), o.get("prior") or "weak"),
        ("graph", "prior"),
    ),
    "cmp-graphical": (
        ConwayMaxwellPoissonGraphical,
        lambda d, o: ConwayMaxwellPoissonGraphical(_or_all_pairs(d, o), o.get("prior") or "weak"),
        ("graph", "prior"),
    ),
    "network": (Network, lambda d, o: _of_levels(d, o), ("graph", "kinds", "levels")),
    "graph": (RandomGraph, lambda d, o: _random_graph(o), ("terms", "directed", "observed", "nodes")),
    "autologistic": (Autologistic, lambda d, o: _autologistic(o), ("at", "neighbours", "graph", "observed")),
    "poisson-mixture": (
        PoissonMixture,
        lambda d, o: PoissonMixture(_needs(o, "rates", "--rates 5,15")),
        ("rates",),
    ),
}


_SPREAD = (
    ". 'cmp' (Conway-Maxwell-Poisson) is the model for counts that vary more, or less, than Poisson counts: up to a "
    "geometric distribution, a negative binomial with size (theta) 1; data with a smaller size vary more than it can."
)
_OTHERS = {
    "negative-binomial": _SPREAD, "nb": _SPREAD, "nbinom": _SPREAD, "negbin": _SPREAD, "quasi-poisson": _SPREAD,
    "logistic": ". 'bernoulli' with formula='y ~ x' is logistic regression.",
    "logit": ". 'bernoulli' with formula='y ~ x' is logistic regression.",
    "ordinal": ". 'network' takes ordinal columns.", "ggm": ". 'network' takes binary, ordinal and count columns.",
    "zip": ". Too many zeros: 'poisson' or 'cmp' with formula='y ~ x' and zeros='~ 1' (a hurdle).",
    "zero-inflated-poisson": ". Too many zeros: 'poisson' or 'cmp' with formula='y ~ x' and zeros='~ 1' (a hurdle).",
}  # fmt: skip
"""What people call models by elsewhere, and what serves here."""


def known_as(name: str) -> str:
    """A model's short name, by which else it is known too."""
    return "graph" if name == "ergm" else name


def names() -> dict[str, str]:
    """The short name of every built-in model with one line about it."""
    return {name: (make.__doc__ or "").splitlines()[0] for name, (make, *_) in _BY_NAME.items()}


def by_name(name: str, d: int, options: Options | None = None, prior: Any = None) -> AbstractModel:
    """A built-in model for data with ``d`` columns; ``options`` are those of its Python function.

    With ``prior="paper"``, in the form that the paper's priors need.
    """
    if "~" in name:
        raise ModelError(f"'{name}' is a formula and no model: dfd.fit('poisson', data, formula='{name}')")
    name = known_as(name)
    if name not in _BY_NAME:
        hint = close(name, _BY_NAME) or _OTHERS.get(str(name).lower().replace(" ", "-").replace("_", "-"), ".")
        raise ModelError(f"there is no model '{name}'{hint} Known models: {', '.join(_BY_NAME)}.")
    _, make, takes = _BY_NAME[name]
    if isinstance(prior, str) and prior == "paper" and "prior" in takes:
        options = dict(options or {}) | {"prior": "squared"}
    _require_options(name, options or {})
    return make(d, options or {})


def how_to_make(given: Any) -> str:
    """What to write where a model was wanted and something else was given."""
    name = getattr(given, "__name__", "")
    if given is not Model and name in __all__ and globals()[name] is given:
        return f"write dfd.models.{name}()"
    if given is Model or (callable(given) and not isinstance(given, type)):
        return f"write {MADE}"
    return "give a name such as 'cmp', or dfd.models.Poisson()"


def _require_options(name: str, options: Options) -> None:
    takes = _BY_NAME[name][2]
    for key, value in options.items():
        if value is not None and key not in takes:
            known = f"takes {', '.join(takes)}" if takes else "takes no options"
            other = "choose another model"
            if key in ("at", "neighbours"):
                other = "choose 'autologistic', the model of one map with a row for each site"
            raise ModelError(f"'{name}' has no {key}: it {known}. Leave out {key} (--{key}), or {other}.")


def own_options(name: str, options: Options | None) -> dict[str, Any]:
    """Those among the options of several models that a model given by name takes."""
    takes = _BY_NAME[name][2] if name in _BY_NAME else ()
    return {key: value for key, value in (options or {}).items() if key in takes}


def needs_data(name: Any, options: Options | None) -> bool:
    """Whether a model given by name is made from data: a network, unless all is known of its columns."""
    levels, kinds = (options or {}).get("levels"), (options or {}).get("kinds")
    if name != "network" or not isinstance(levels, Sequence) or not isinstance(kinds, Sequence):
        return bool(name == "network")
    return isinstance(kinds, str) or any(isinstance(own, str) or np.ndim(own) == 0 for own in levels if own is not None)


def network_for(data: Dataset, options: Options, scales: Domain) -> AbstractModel:
    """A `Network` of the data's columns; their kinds are guessed where neither options nor scales give them."""
    _require_options("network", options)
    graph = None if options.get("graph") is None else _graph(options)
    return for_data(data, graph, options.get("kinds"), scales)


def paper_priors(model: AbstractModel) -> dict[str, Any]:
    """The priors of Matsubara et al. (2024) for a model of theirs; none where the model's own are theirs."""
    names = {p.name for p in model.space.parameters}
    if isinstance(model, CountModel):
        return {name: dist.Chi2(3.0) for name in names}
    if isinstance(model, Pairwise) and model.lowers and model.options.get("prior") != "squared":
        raise ModelError("the paper's priors are of roots: make the model with prior='squared'")
    return {}


def plain_options(model: AbstractModel) -> dict[str, Any]:
    """A model's options in values that JSON can hold; `by_name` takes them back."""
    plain = dict(model.options)
    if isinstance(plain.get("graph"), Graph):
        graph = plain["graph"]
        plain["graph"] = {"size": graph.size, "pairs": [list(p) for p in graph.pairs], "shape": graph.shape}
        plain["graph"] |= {"names": list(graph.names)} if graph.names else {}
    if isinstance(plain.get("observed"), (ObservedGraph, ObservedMap)):
        plain["observed"] = plain["observed"].plain()
    return plain
