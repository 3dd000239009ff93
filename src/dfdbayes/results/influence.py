"""Which rows matter most to a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..data.dataset import Dataset
from ..errors import InfluenceWarning, ModelError
from ..inference.calibration import Calibration
from ..inference.influence import is_quick, shifts
from ..inference.minimise import Minimum
from ..inference.objective import Objective

if TYPE_CHECKING:
    from .fit_result import Fit

MOVED = 1.0  # standard errors that one row may move an estimate without a word
DECIDED = 3.0  # and from which on it decides it
SHOWN = 3  # columns and rows that are named in a warning


def objective_of(fit: Fit) -> Objective:
    """The loss of a fit on its data."""
    if fit.model is None or fit.loss is None:
        raise ModelError(f"this fit was loaded without its {' and its '.join(fit.missing)}; fit again")
    found = Objective(fit.model, fit.data, fit.loss)
    if fit.incomplete is not None:
        raise ModelError("the influence of rows is not known where entries are missing; use missing='drop'")
    return found


def influences(fit: Fit, most: int | None) -> pd.DataFrame:
    """See `Fit.influence`."""
    names, data = list(fit.minimum.names), fit.data
    change, found = shifts(objective_of(fit), fit.minimum, fit.calibration)
    furthest = np.argmax(np.abs(found), axis=1)
    largest = found[np.arange(len(found)), furthest]
    order = np.argsort(-np.abs(largest), kind="stable")[:most]
    table = {"observations": data.observations[order].astype(int)}
    table |= {"parameter": np.array(names, dtype=object)[furthest[order]], "shift": largest[order]}
    values = {name: data.rows[order, j] for j, name in enumerate(data.columns)}
    given = {} if data.given is None else {n: data.given[order, j] for j, n in enumerate(data.given_columns)}
    each = {f"change of {name}": change[order, j] for j, name in enumerate(names)}
    clash = {name: part for name, part in {**given, **values}.items() if name not in table}
    return pd.DataFrame(table | clash | each, index=pd.Index(data.first[order], name="row"))


def warnings_of_rows(objective: Objective, minimum: Minimum, calibration: Calibration) -> list[InfluenceWarning]:
    """One warning, where single rows move an estimate by more than its standard error."""
    if calibration.curvature is None or calibration.simulated or objective.incomplete is not None:
        return []
    if not objective.model.independent or objective.data.n < 2 or not is_quick(objective):
        return []
    _, found = shifts(objective, minimum, calibration)
    largest = np.abs(found).max(axis=1)
    far = np.flatnonzero(largest > MOVED)
    if not len(far):
        return []
    first = far[np.argmax(largest[far])]
    name, size = calibration.names[int(np.argmax(np.abs(found[first])))], float(largest[first])
    moves = "decides" if size > DECIDED else "moves"
    number = int(objective.data.observations[far].sum())
    others = "" if number == 1 else f"; {number} rows move an estimate by more than one"
    return [
        InfluenceWarning(
            f"row {objective.data.first[first] + 1} ({_shown(objective.data, int(first))}) alone {moves} {name}: by "
            f"{size:.1f} standard errors{others}. What to do: look at fit.influence() and check such rows; "
            "loss='robust' gives rows far from all others less weight."
        )
    ]


def _shown(data: Dataset, row: int) -> str:
    values = [f"{name} = {value}" for name, value in zip(data.columns, data.rows[row], strict=True)]
    return ", ".join(values[:SHOWN]) + (", ..." if len(values) > SHOWN else "")
