"""Built-in models by class name, and by the short names of the command line."""

from __future__ import annotations

from ..core.exponential import ExponentialFamily
from ..core.model import AbstractModel, Model
from .counts.mixture import PoissonMixture
from .counts.models import Bernoulli, ConwayMaxwellPoisson, Poisson
from .graph import accessor as _graph  # noqa: F401 - accessors put themselves into their table
from .graph.model import RandomGraph
from .lattice.model import Ising, Potts
from .map import accessor as _map  # noqa: F401
from .map.model import Autologistic
from .named import MODELS, by_name, named, named_model, names, paper_priors, plain_options
from .network import narrative as _network  # noqa: F401 - as accessors do
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
