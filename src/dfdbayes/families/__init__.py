"""Built-in models by class name, and by the short names of the command line."""

from __future__ import annotations

from typing import Any

import numpyro.distributions as dist

from .._util.codec import from_plain, plain_or_none
from ..core.exponential import ExponentialFamily
from ..core.log_mass_errors import MADE
from ..core.model import AbstractModel, Model
from ..errors import ModelError, close
from .counts.mixture import PoissonMixture
from .counts.models import Bernoulli, ConwayMaxwellPoisson, CountModel, Poisson
from .graph import accessor as _graph  # noqa: F401 - accessors put themselves into their table
from .graph.model import RandomGraph
from .graph.observed import ObservedGraph
from .lattice.model import Ising, Potts
from .map import accessor as _map  # noqa: F401
from .map.model import Autologistic
from .map.observed import ObservedMap
from .named import GRAPH, MODELS, Named, Option, Options, named
from .network.mixed import Network
from .network.model import ConwayMaxwellPoissonGraphical, IsingNetwork, Pairwise, PoissonGraphical

__all__ = [
    "MODELS",
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
    "named",
    "named_model",
    "names",
    "paper_priors",
    "plain_options",
]


TERMS = Option("terms", "RandomGraph('edges + gwesp(0.25)'), on the command line --terms 'edges + gwesp(0.25)'")


@named("graph", "ergm", takes=(TERMS, "directed", "observed", "nodes"), model=RandomGraph, whole=True)
def _random_graph(columns: int, options: Options) -> AbstractModel:
    """A random graph; one that was bound to a graph where options hold that, as a saved fit has it."""
    model = RandomGraph(TERMS.needed(options), options.get("directed"))
    seen = options.get("observed")
    return model if seen is None else model.bound(from_plain(seen, ObservedGraph))


@named("autologistic", takes=("at", "neighbours", GRAPH, "observed"), model=Autologistic, whole=True)
def _autologistic(columns: int, options: Options) -> AbstractModel:
    """A model of maps; one that was bound to a map where options hold that, as a saved fit has it."""
    own = {name: value for name in ("at", "neighbours", "graph") if (value := options.get(name)) is not None}
    model, seen = Autologistic(**own), options.get("observed")
    return model if seen is None else model.bound(from_plain(seen, ObservedMap))


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


def names() -> dict[str, str]:
    """The short name of every built-in model with one line about it."""
    return {model.name: model.about for name, model in MODELS.items() if name == model.name}


def named_model(name: str) -> Named:
    """How the model is made that a name stands for; an error that says what serves where there is none."""
    if "~" in name:
        raise ModelError(f"'{name}' is a formula and no model: dfd.fit('poisson', data, formula='{name}')")
    if name not in MODELS:
        hint = close(name, MODELS) or _OTHERS.get(str(name).lower().replace(" ", "-").replace("_", "-"), ".")
        raise ModelError(f"there is no model '{name}'{hint} Known models: {', '.join(names())}.")
    return MODELS.by_name(name)


def by_name(name: str, d: int, options: Options | None = None, prior: Any = None) -> AbstractModel:
    """A built-in model for data with ``d`` columns; ``options`` are those of its Python function.

    With ``prior="paper"``, in the form that the paper's priors need.
    """
    return named_model(name)(d, dict(options or {}), prior)


def how_to_make(given: Any) -> str:
    """What to write where a model was wanted and something else was given."""
    name = getattr(given, "__name__", "")
    if given is not Model and name in __all__ and globals()[name] is given:
        return f"write dfd.models.{name}()"
    if given is Model or (callable(given) and not isinstance(given, type)):
        return f"write {MADE}"
    return "give a name such as 'cmp', or dfd.models.Poisson()"


def paper_priors(model: AbstractModel) -> dict[str, Any]:
    """The priors of Matsubara et al. (2024) for a model of theirs; none where the model's own are theirs."""
    names = {p.name for p in model.space.parameters}
    if isinstance(model, CountModel):
        return {name: dist.Chi2(3.0) for name in names}
    if isinstance(model, Pairwise) and model.nonpositive_edges and model.options.get("prior") != "squared":
        raise ModelError("the paper's priors are of roots: make the model with prior='squared'")
    return {}


def plain_options(model: AbstractModel) -> dict[str, Any]:
    """A model's options in values that JSON can hold, as far as it can; `by_name` takes them back."""
    return {name: plain_or_none(value) or value for name, value in model.options.items()}
