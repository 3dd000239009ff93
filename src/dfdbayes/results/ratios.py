"""What the terms of a regression multiply: rate ratios of counts, odds ratios of zeros and ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..core.narrative import main_of, multiplies
from ..data.formulas import INTERCEPT

if TYPE_CHECKING:
    from .fitted import Fitted


def ratios(fit: Fitted, interval: float = 0.95) -> pd.DataFrame | None:
    """A line for each term but the intercept: its name, ``ratio`` (the posterior median) and the interval.

    None where a fit is no regression of one column, or its coefficients add.
    """
    model = fit.model
    main = None if model is None or fit.data.d > 1 else main_of(model)
    if model is None or main is None or main.name not in model.varying or not multiplies(main):
        return None
    design = model.design(main.name)
    labels = [label for label in design.labels if label != INTERCEPT]
    if not labels:
        return None
    whole = fit.summary(interval)
    ends = [column for column in whole.columns if str(column).startswith("eti")]
    own = whole.loc[[f"{design.parameter}[{label}]" for label in labels], ["median", *ends]]
    names = [f"{label} against {against}" if (against := design.reference(label)) else label for label in labels]
    return own.apply(np.exp).rename(columns={"median": "ratio"}).assign(term=names)
