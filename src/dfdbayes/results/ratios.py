"""What the terms of a regression multiply: rate ratios of counts, odds ratios of zeros and ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..data.formulas import INTERCEPT
from ..families.counts.families import BinaryFamily, CountFamily
from ..families.regression import Regression

if TYPE_CHECKING:
    from .fitted import Fitted

ODDS, VALUE = "odds", "value"


def multiplies(model: Regression) -> str:
    """What the exponential of a coefficient of the main parameter multiplies; nothing where a coefficient adds."""
    main = next(p for p in model.family.parameters if p.name == model.family.main)
    low, high = (np.isfinite(np.asarray(end)).all() for end in main.support)
    return ODDS if low and high else VALUE if low else ""


def heading(model: Regression) -> str:
    """What such ratios are called where they are of counts, or of zeros and ones."""
    if isinstance(model.family, BinaryFamily):
        return "odds ratio (OR)"
    return "rate ratio (IRR)" if isinstance(model.family, CountFamily) else "ratio"


def ratios(fit: Fitted, interval: float = 0.95) -> pd.DataFrame | None:
    """A line for each term but the intercept: its name, ``ratio`` (the posterior median) and the interval.

    None where a fit is no regression of one column, or its coefficients add.
    """
    model = fit.model
    if not isinstance(model, Regression) or fit.data.d > 1 or model.family.main not in model.varying:
        return None
    design = model.design(model.family.main)
    labels = [label for label in design.labels if label != INTERCEPT]
    if not labels or not multiplies(model):
        return None
    whole = fit.summary(interval)
    ends = [column for column in whole.columns if str(column).startswith("eti")]
    own = whole.loc[[f"{model.family.main}[{label}]" for label in labels], ["median", *ends]]
    names = [f"{label} against {against}" if (against := design.reference(label)) else label for label in labels]
    return own.apply(np.exp).rename(columns={"median": "ratio"}).assign(term=names)
