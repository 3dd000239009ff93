"""Calibrated generalised Bayesian inference for discrete data with intractable likelihoods."""

import gc
import importlib
import warnings
from typing import TYPE_CHECKING, Any

from ._version import VERSION


def _import_jax() -> Any:
    """JAX, without searches for garbage among the very many objects of its modules, all of which stay."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module("jax")
    finally:
        if collects:
            gc.enable()


_import_jax().config.update("jax_enable_x64", True)

warnings.filterwarnings("ignore", "IProgress not found")  # of bars in notebooks that libraries have and nobody sees

if TYPE_CHECKING:
    from . import errors, plots
    from . import families as models
    from .core import graphs, losses, resampling, samplers
    from .core.calibration import Calibration, calibrate
    from .core.dataset import Dataset
    from .core.domain import Binary, Categories, Counts, CountsBelow, Domain, Finite, Integers, Ordinal, Spins
    from .core.losses import kernels
    from .core.losses.divergence import divergence
    from .core.minimise import Minimum, Outcome, minimise
    from .core.objective import Objective
    from .core.parameters import Parameter
    from .core.resampling import Bootstrap, bootstrap
    from .data.read import builtin as datasets
    from .data.series import lagged
    from .families import ExponentialFamily, Model
    from .families.graph.model import graph_goodness
    from .families.graph.observed import ObservedGraph
    from .families.network import evidence
    from .families.network.groups import GroupDifferences, group_differences
    from .families.simulate import prior_predictive, simulate
    from .fitting.comparison import compare, compare_losses
    from .fitting.coverage import Coverage, coverage
    from .fitting.describe import Description, describe, suggest
    from .fitting.fit import fit, objective, sample
    from .fitting.fit_result import Fit
    from .fitting.loading import load
    from .fitting.model_choice import ModelComparison, compare_models
    from .fitting.nested import compare_nested
    from .fitting.runs import rerun

__all__ = [
    "Binary",
    "Bootstrap",
    "Calibration",
    "Categories",
    "Counts",
    "CountsBelow",
    "Coverage",
    "Dataset",
    "Description",
    "Domain",
    "ExponentialFamily",
    "Finite",
    "Fit",
    "GroupDifferences",
    "Integers",
    "Minimum",
    "Model",
    "ModelComparison",
    "Objective",
    "ObservedGraph",
    "Ordinal",
    "Outcome",
    "Parameter",
    "Spins",
    "bootstrap",
    "calibrate",
    "compare",
    "compare_losses",
    "compare_models",
    "compare_nested",
    "coverage",
    "datasets",
    "describe",
    "divergence",
    "errors",
    "evidence",
    "fit",
    "graph_goodness",
    "graphs",
    "group_differences",
    "kernels",
    "lagged",
    "load",
    "losses",
    "minimise",
    "models",
    "objective",
    "plots",
    "prior_predictive",
    "rerun",
    "resampling",
    "sample",
    "samplers",
    "simulate",
    "suggest",
]

__version__ = VERSION


# The module that each public name is in, or that it is: imported when the name is first used, for together they take
# seconds.
_MODULES = {
    "data.read.builtin": "datasets",
    "data.read.dataset": "Dataset",
    "data.series": "lagged",
    "core.domain": "Binary Categories Counts CountsBelow Domain Finite Integers Ordinal Spins",
    "families.graph.observed": "ObservedGraph",
    "errors": "errors",
    "fitting.comparison": "compare compare_losses",
    "fitting.coverage": "Coverage coverage",
    "fitting.describe": "Description describe suggest",
    "fitting.fit": "fit objective sample",
    "fitting.fit_result": "Fit",
    "fitting.loading": "load",
    "fitting.model_choice": "ModelComparison compare_models",
    "fitting.nested": "compare_nested",
    "core.calibration": "Calibration calibrate",
    "core.minimise": "Minimum Outcome minimise",
    "core.objective": "Objective",
    "core.resampling": "Bootstrap bootstrap resampling",
    "core.samplers": "samplers",
    "core.losses": "losses",
    "core.losses.divergence": "divergence",
    "core.losses.kernels": "kernels",
    "families": "ExponentialFamily Model models",
    "core.graphs": "graphs",
    "core.parameters": "Parameter",
    "plots": "plots",
    "fitting.runs": "rerun",
    "families.network.evidence": "evidence",
    "families.graph.model": "graph_goodness",
    "families.network.groups": "GroupDifferences group_differences",
    "families.simulate": "prior_predictive simulate",
}
_WHERE = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{_WHERE[name]}", __name__)
    found = globals()[name] = getattr(module, name, module)
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
