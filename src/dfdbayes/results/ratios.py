"""What the terms of a regression multiply: rate ratios of counts, odds ratios of zeros and ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..core.model import AbstractModel
from ..core.parameters import LOCATION, Parameter
from ..data.formulas import INTERCEPT

if TYPE_CHECKING:
    from .fitted import Fitted

ODDS, VALUE = "odds", "value"


def _main(model: AbstractModel) -> Parameter:
    """The parameter that a formula without a name is about, the first one if there are several."""
    return next(p for p in model.row_space.parameters if p.name == model.main_parameters[0])


def multiplies(model: AbstractModel) -> str:
    """What the exponential of a coefficient of the main parameter multiplies; nothing where a coefficient adds."""
    main = _main(model)
    if not np.isfinite(main.support[0]):
        return ""
    return {"logit": ODDS, "log": VALUE}[main.link]


def heading(model: AbstractModel) -> str:
    """What such ratios are called where they are of counts, or of zeros and ones."""
    main = _main(model)
    if main.role != LOCATION:
        return "ratio"
    return {"logit": "odds ratio (OR)", "log": "rate ratio (IRR)"}.get(main.link, "ratio")


def ratios(fit: Fitted, interval: float = 0.95) -> pd.DataFrame | None:
    """A line for each term but the intercept: its name, ``ratio`` (the posterior median) and the interval.

    None where a fit is no regression of one column, or its coefficients add.
    """
    model = fit.model
    if model is None or fit.data.d > 1 or model.main_parameters[0] not in model.varying:
        return None
    design = model.design(model.main_parameters[0])
    labels = [label for label in design.labels if label != INTERCEPT]
    if not labels or not multiplies(model):
        return None
    whole = fit.summary(interval)
    ends = [column for column in whole.columns if str(column).startswith("eti")]
    own = whole.loc[[f"{design.parameter}[{label}]" for label in labels], ["median", *ends]]
    names = [f"{label} against {against}" if (against := design.reference(label)) else label for label in labels]
    return own.apply(np.exp).rename(columns={"median": "ratio"}).assign(term=names)
