"""Calibrated generalised Bayesian inference for discrete data with intractable likelihoods."""

import importlib
from typing import TYPE_CHECKING, Any

import jax

jax.config.update("jax_enable_x64", True)

from . import errors, losses, models  # noqa: E402
from ._version import VERSION  # noqa: E402
from .data import builtin as datasets  # noqa: E402
from .data.dataset import Dataset  # noqa: E402
from .data.domain import Binary, Categories, Counts, CountsBelow, Domain, Finite, Integers, Spins  # noqa: E402
from .fitting.comparison import compare, compare_losses  # noqa: E402
from .fitting.coverage import Coverage, coverage  # noqa: E402
from .fitting.fit import fit, sample  # noqa: E402
from .inference import resampling  # noqa: E402
from .inference import sampling as samplers  # noqa: E402
from .inference.calibration import Calibration, calibrate  # noqa: E402
from .inference.minimise import Minimum, Outcome, minimise  # noqa: E402
from .inference.objective import Objective, objective  # noqa: E402
from .inference.resampling import Bootstrap, bootstrap  # noqa: E402
from .losses import kernels  # noqa: E402
from .losses.divergence import divergence  # noqa: E402
from .models import (  # noqa: E402
    ExponentialFamily,
    Model,
    graphs,
)
from .models.parameters import Parameter  # noqa: E402
from .results import evidence  # noqa: E402
from .results.fit_result import Fit, load  # noqa: E402
from .results.predictive import prior_predictive  # noqa: E402
from .simulators import simulate  # noqa: E402

if TYPE_CHECKING:
    from . import plots
    from .report.runs import rerun

__all__ = [
    "Binary",
    "Bootstrap",
    "Calibration",
    "Categories",
    "Counts",
    "CountsBelow",
    "Coverage",
    "Dataset",
    "Domain",
    "ExponentialFamily",
    "Finite",
    "Fit",
    "Integers",
    "Minimum",
    "Model",
    "Objective",
    "Outcome",
    "Parameter",
    "Spins",
    "bootstrap",
    "calibrate",
    "compare",
    "compare_losses",
    "coverage",
    "datasets",
    "divergence",
    "errors",
    "evidence",
    "fit",
    "graphs",
    "kernels",
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
]

__version__ = VERSION


def __getattr__(name: str) -> Any:
    """Pictures are imported when they are first asked for: matplotlib takes a while."""
    if name == "plots":
        return importlib.import_module(".plots", __name__)
    if name == "rerun":
        return importlib.import_module(".report.runs", __name__).rerun
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
