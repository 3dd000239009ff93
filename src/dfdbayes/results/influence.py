"""Which rows matter most to a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..core.calibration import Calibration
from ..core.dataset import Dataset
from ..core.influence import is_quick, refitted, shifts
from ..core.minimise import Minimum
from ..core.model import AbstractModel
from ..core.objective import Objective
from ..data.read.profile import MIN_OF_LEVEL
from ..errors import InfluenceWarning, ModelError

if TYPE_CHECKING:
    from .fitted import Fitted

MOVED = 1.0  # standard errors that one row may move an estimate without a word
REFITS = 10  # fits without a row, at most: each takes about as long as the estimate itself


def objective_of(fit: Fitted) -> Objective:
    """The loss of a fit on its data."""
    if fit.model is None or fit.loss is None:
        raise ModelError(f"this fit was loaded without its {' and its '.join(fit.missing)}; fit again")
    found = Objective(fit.model, fit.data, fit.loss)
    if fit.imputation is not None:
        raise ModelError("the influence of rows is not known where entries are missing; use missing='drop'")
    return found


def influences(fit: Fitted, most: int | None) -> pd.DataFrame:
    """See `Fit.influence`."""
    objective = objective_of(fit)
    assert fit.model is not None
    change, found = shifts(objective, fit.minimum, fit.calibration)
    left_out = _leave_out(objective, fit.minimum, fit.calibration, change, found, np.ones(len(found), bool))
    change = fit.model.space.to_data_scale(change)
    order, table = _ordered(fit.model, fit.data, fit.minimum.names, found, left_out, most)
    each = {f"change of {name}": change[order, j] for j, name in enumerate(fit.minimum.names)}
    return pd.concat([table, pd.DataFrame(each, index=table.index)], axis=1)


def _leave_out(
    objective: Objective,
    minimum: Minimum,
    calibration: Calibration,
    change: np.ndarray,
    found: np.ndarray,
    wanted: np.ndarray,
) -> np.ndarray:
    """Fit again without each row that seems to move an estimate by a standard error, the largest first.

    Their lines of ``change`` and ``found`` become those of the fits; returned is which rows they are.
    """
    done, tried = np.zeros(len(found), bool), ~wanted
    for _ in range(REFITS):
        sizes = np.where(tried, 0.0, np.abs(found).max(axis=1))
        row = int(np.argmax(sizes))
        if not sizes[row] > 0.7 * MOVED:  # one step tends to say too little
            break
        tried[row], without = True, refitted(objective, minimum, calibration, row)
        if without is not None:
            done[row] = True
            change[row], found[row] = without
    return done


def _ordered(
    model: AbstractModel,
    data: Dataset,
    names: tuple[str, ...],
    found: np.ndarray,
    left_out: np.ndarray,
    most: int | None,
) -> tuple[np.ndarray, pd.DataFrame]:
    """Places of the rows that move an estimate most, and a table of them with their values."""
    furthest = np.argmax(np.abs(found), axis=1)
    largest = found[np.arange(len(found)), furthest]
    order = np.argsort(-np.abs(largest), kind="stable")[:most]
    table = {"observations": np.round(data.observations[order]).astype(int)}
    table |= {"parameter": np.array(names, dtype=object)[furthest[order]], "shift": largest[order]}
    table["refitted"] = left_out[order]
    given = {}
    if data.given is not None:
        covariates = data.given[order]
        covariates = model.as_given(covariates) if model.designs else covariates
        given = {name: covariates[:, j] for j, name in enumerate(data.given_columns)}
    values = given | {name: data.rows[order, j] for j, name in enumerate(data.columns)}
    own = table | {name: part for name, part in values.items() if name not in table}
    return order, pd.DataFrame(own, index=pd.Index(data.first[order], name="row"))


def of_rows(
    objective: Objective, minimum: Minimum, calibration: Calibration
) -> tuple[pd.DataFrame | None, list[InfluenceWarning]]:
    """The rows that matter most, and one warning where one alone moves an estimate by more than its standard error.

    Only rows that were left out in fact are warned about: one step may be far off for those that matter.

    Nothing where rows have no influence of their own, or are too many to look at each without being asked.
    """
    if calibration.curvature is None or calibration.simulated:
        return None, []
    if not objective.model.independent or objective.data.n < 2 or not is_quick(objective):
        return None, []
    data, (change, found) = objective.data, shifts(objective, minimum, calibration)
    wanted = ~_with_rare_levels(objective)
    left_out = _leave_out(objective, minimum, calibration, change, found, wanted)
    order, table = _ordered(objective.model, data, calibration.names, found, left_out, 200)
    table = table.iloc[:, : 4 + 8]  # eight columns of the values beside what is said of a row
    told = np.abs(found).max(axis=1) * left_out
    number = int(data.observations[told > MOVED].sum())
    if not number:
        return table, []
    first = int(np.argmax(told[order]))
    name, size = table["parameter"].iloc[first], abs(float(table["shift"].iloc[first]))
    moves = "decides" if size > 3.0 else "moves"
    all_of_them = left_out.sum() < REFITS
    others = f"{number} rows move an estimate by more than one" if number > 1 else ""
    others = f"; {'' if all_of_them else 'at least '}{others}" if others else ""
    return table, [
        InfluenceWarning(
            f"row {table.index[first] + 1} ({_shown(data, int(order[first]))}) alone {moves} {name}: by {size:.1f} "
            f"standard errors{others}. What to do: look at fit.influence() and check such rows; loss='robust' gives "
            "rows far from all others less weight."
        )
    ]


def _with_rare_levels(objective: Objective) -> np.ndarray:
    """Rows with a level that hardly any has: they decide what belongs to it, and the model says so by itself."""
    data, domain = objective.data, objective.model.domain
    found = np.zeros(len(data.rows), bool)
    for j in range(domain.d):
        if domain.coordinate(j).levels:
            _, place = np.unique(data.rows[:, j], return_inverse=True)
            found |= np.bincount(place, data.observations)[place] < MIN_OF_LEVEL
    return found


def _shown(data: Dataset, row: int) -> str:
    values = [f"{name} = {value}" for name, value in zip(data.columns, data.rows[row], strict=True)]
    return ", ".join(values[:3]) + (", ..." if len(values) > 3 else "")
