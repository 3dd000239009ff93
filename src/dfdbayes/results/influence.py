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
from ..models.base import AbstractModel
from ..models.regression import Regression
from ..models.remarks import RARE

if TYPE_CHECKING:
    from .fit_result import Fit

MOVED = 1.0  # standard errors that one row may move an estimate without a word
DECIDED = 3.0  # and from which on it decides it
SHOWN = 3  # columns that are named in a warning
KEPT, COLUMNS = 200, 8  # rows, and columns of their values, that a fit keeps


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
    change, found = shifts(objective_of(fit), fit.minimum, fit.calibration)
    assert fit.model is not None
    change = fit.model.to_data_scale(change)
    order, table = _ordered(fit.model, fit.data, fit.minimum.names, found, most)
    each = {f"change of {name}": change[order, j] for j, name in enumerate(fit.minimum.names)}
    return pd.concat([table, pd.DataFrame(each, index=table.index)], axis=1)


def _ordered(
    model: AbstractModel, data: Dataset, names: tuple[str, ...], found: np.ndarray, most: int | None
) -> tuple[np.ndarray, pd.DataFrame]:
    """Places of the rows that move an estimate most, and a table of them with their values."""
    furthest = np.argmax(np.abs(found), axis=1)
    largest = found[np.arange(len(found)), furthest]
    order = np.argsort(-np.abs(largest), kind="stable")[:most]
    table = {"observations": np.round(data.observations[order]).astype(int)}
    table |= {"parameter": np.array(names, dtype=object)[furthest[order]], "shift": largest[order]}
    given = {}
    if data.given is not None:
        covariates = data.given[order]
        covariates = model.as_given(covariates) if isinstance(model, Regression) else covariates
        given = {name: covariates[:, j] for j, name in enumerate(data.given_columns)}
    values = given | {name: data.rows[order, j] for j, name in enumerate(data.columns)}
    own = table | {name: part for name, part in values.items() if name not in table}
    return order, pd.DataFrame(own, index=pd.Index(data.first[order], name="row"))


def of_rows(
    objective: Objective, minimum: Minimum, calibration: Calibration
) -> tuple[pd.DataFrame | None, list[InfluenceWarning]]:
    """The rows that matter most, and one warning where one alone moves an estimate by more than its standard error.

    Nothing where rows have no influence of their own, or are too many to look at each without being asked.
    """
    if calibration.curvature is None or calibration.simulated or objective.incomplete is not None:
        return None, []
    if not objective.model.independent or objective.data.n < 2 or not is_quick(objective):
        return None, []
    data, (_, found) = objective.data, shifts(objective, minimum, calibration)
    order, table = _ordered(objective.model, data, calibration.names, found, KEPT)
    table = table.iloc[:, : 3 + COLUMNS]
    told = np.abs(found).max(axis=1) * ~_with_rare_levels(objective)
    number = int(data.observations[told > MOVED].sum())
    if not number:
        return table, []
    first = int(np.argmax(told[order]))
    name, size = table["parameter"].iloc[first], abs(float(table["shift"].iloc[first]))
    moves = "decides" if size > DECIDED else "moves"
    others = "" if number == 1 else f"; {number} rows move an estimate by more than one"
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
            found |= np.bincount(place, data.observations)[place] < RARE
    return found


def _shown(data: Dataset, row: int) -> str:
    values = [f"{name} = {value}" for name, value in zip(data.columns, data.rows[row], strict=True)]
    return ", ".join(values[:SHOWN]) + (", ..." if len(values) > SHOWN else "")
