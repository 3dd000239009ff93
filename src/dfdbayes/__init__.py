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
    from . import errors, losses, models, plots
    from .data import builtin as datasets
    from .data.dataset import Dataset
    from .data.domain import Binary, Categories, Counts, CountsBelow, Domain, Finite, Integers, Ordinal, Spins
    from .data.lags import lagged
    from .data.observed_graph import ObservedGraph
    from .fitting.comparison import compare, compare_losses
    from .fitting.coverage import Coverage, coverage
    from .fitting.describe import Description, describe, suggest
    from .fitting.fit import fit, sample
    from .fitting.model_choice import ModelComparison, compare_models
    from .fitting.nested import compare_nested
    from .inference import resampling
    from .inference import sampling as samplers
    from .inference.calibration import Calibration, calibrate
    from .inference.minimise import Minimum, Outcome, minimise
    from .inference.objective import Objective, objective
    from .inference.parametric import bootstrap
    from .inference.resampling import Bootstrap
    from .losses import kernels
    from .losses.divergence import divergence
    from .models import ExponentialFamily, Model, graphs
    from .models.parameters import Parameter
    from .report.runs import rerun
    from .results import evidence
    from .results.fit_result import Fit
    from .results.graph_goodness import graph_goodness
    from .results.groups import GroupDifferences, group_differences
    from .results.loading import load
    from .results.predictive import prior_predictive
    from .simulators import simulate

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
    "data.builtin": "datasets",
    "data.dataset": "Dataset",
    "data.lags": "lagged",
    "data.domain": "Binary Categories Counts CountsBelow Domain Finite Integers Ordinal Spins",
    "data.observed_graph": "ObservedGraph",
    "errors": "errors",
    "fitting.comparison": "compare compare_losses",
    "fitting.coverage": "Coverage coverage",
    "fitting.describe": "Description describe suggest",
    "fitting.fit": "fit sample",
    "fitting.model_choice": "ModelComparison compare_models",
    "fitting.nested": "compare_nested",
    "inference.calibration": "Calibration calibrate",
    "inference.minimise": "Minimum Outcome minimise",
    "inference.objective": "Objective objective",
    "inference.parametric": "bootstrap",
    "inference.resampling": "Bootstrap resampling",
    "inference.sampling": "samplers",
    "losses": "losses",
    "losses.divergence": "divergence",
    "losses.kernels": "kernels",
    "models": "ExponentialFamily Model models",
    "models.graphs": "graphs",
    "models.parameters": "Parameter",
    "plots": "plots",
    "report.runs": "rerun",
    "results.evidence": "evidence",
    "results.fit_result": "Fit",
    "results.graph_goodness": "graph_goodness",
    "results.groups": "GroupDifferences group_differences",
    "results.loading": "load",
    "results.predictive": "prior_predictive",
    "simulators": "simulate",
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
