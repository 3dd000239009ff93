"""Whether two losses agree about a model: their estimates differ by chance alone where the model is right.

Both estimates are of the same rows and hang together, so the error of their difference is that of each unit's influence
on both (a Hausman test with a joint sandwich).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from .._util.codec import APART
from ..core import losses, resampling
from ..core.dataset import Dataset
from ..core.losses.base import AbstractLoss
from ..core.minimise import Minimum, Outcome, minimise, require
from ..core.model import AbstractModel
from ..core.objective import Objective
from ..core.parameters import EDGE
from ..errors import DfdbayesError, MinimiserError, SettingError
from .goodness_of_fit import total_variation
from .relevance import LEVEL, PROBABILITY, SHIFT


@dataclass(frozen=True)
class Agreement:
    """Two losses' estimates of one model.

    Attributes
    ----------
    table : pandas.DataFrame
        By parameter: the two minimisers, their ``difference``, its ``standard_error``, and the one divided by the other
        (``standardised``; of a positive parameter, that of its logarithm). ``shift`` is the difference in standard
        errors of the first estimate.
    p_value : float
        Of the largest standardised difference, all parameters considered.
    sentence : str
        Whether the losses agree; where they do not, about what, with both numbers.
    apart : float
        Where they do not: by how much the two disagree about the probability of an observation at most (total
        variation). NaN where that is not known.
    edges : tuple of str
        The parameters that are edges of a network, which one asks about first.
    """

    table: pd.DataFrame
    p_value: float
    sentence: str
    apart: float = float("nan")
    edges: tuple[str, ...] = field(default=(), metadata=APART)

    @property
    def agree(self) -> bool:
        """Whether they differ by no more than chance."""
        return not self.p_value < LEVEL

    @property
    def matters(self) -> bool:
        """Whether they differ beyond chance, in an estimate by what matters, and in what they say about data."""
        return not self.agree and bool(_matters(self.table, self.apart).any())

    @property
    def doubt(self) -> str:
        """About which parameter they differ most, with both numbers, where that is far beyond chance and matters."""
        if not (self.p_value < 0.001 and self.matters):  # nobody asked: one right model in a thousand
            return ""
        far = self.table["standardised"].abs()[_matters(self.table, self.apart)]
        edges = far[far.index.isin(self.edges)]
        nearly = 0.7  # as far as the farthest: then an edge is named, which is what one asks about
        name = str(edges.idxmax() if len(edges) and edges.max() > nearly * far.max() else far.idxmax())
        first, second = self.table.columns[:2]
        own, other = (self.table[loss][name] for loss in (first, second))
        return (
            f"two losses disagree about {name}: it is {own:.3g} by '{first}' and {other:.3g} by '{second}', "
            f"{far[name]:.1f} joint standard errors apart{_of_data(self.apart)}"
        )


def _matters(table: pd.DataFrame, apart: float) -> pd.Series:
    """Which parameters differ by what matters: by a standard error, where the two also differ in the data they make."""
    shift = table["shift"].abs() if "shift" in table else pd.Series(np.inf, table.index)  # of an older file
    return (shift >= SHIFT) & (not apart < PROBABILITY)


def _of_data(apart: float) -> str:
    """What a disagreement is on the scale of the data, where that is known."""
    return "" if np.isnan(apart) else f" (their distributions: {apart:.0%} in total variation)"


def second_opinion(model: AbstractModel, data: Dataset, loss: AbstractLoss, minimum: Minimum, asked: Any) -> Agreement:
    """What another loss says of the same model and data; see `Fit.second_opinion`."""
    if not model.sampled:
        raise SettingError("second opinions are not for random graphs: there are no rows that both losses see")
    other = losses.by_name(asked)
    if other.name == loss.name:
        raise SettingError(f"the fit's own loss is '{other.name}'; ask another one, for example loss='dfd'")
    second = _objective(model, data, other)
    return agreement(model, data, (loss, minimum), (other, require(minimise(second), second)))


def another(model: AbstractModel, data: Dataset, loss: AbstractLoss, minimum: Minimum) -> Agreement | None:
    """The opinion of the loss that stands `second` to a fit's own, on a small budget; None where it has none."""
    size = model.space.size  # up to 400 parameters, each with five observations, it takes little beside the fit
    if not loss.second or size > 400 or data.n < 5 * size or minimum.outcome is not Outcome.CONVERGED:
        return None
    try:
        objective = _objective(model, data, losses.by_name(loss.second))
        return agreement(model, data, (loss, minimum), (objective.loss, minimise(objective, minimum.vector)))
    except DfdbayesError:  # no minimum inside, or a model that the other loss is not for: nothing to compare
        return None


def agreement(
    model: AbstractModel, data: Dataset, first: tuple[AbstractLoss, Minimum], second: tuple[AbstractLoss, Minimum]
) -> Agreement:
    """Compare two losses by their minimisers on the same data.

    Raises
    ------
    MinimiserError
        If one of them has no minimum inside.
    """
    for by, found in (first, second):
        if found.outcome is not Outcome.CONVERGED:
            raise MinimiserError(
                f"estimates can be compared where both losses have a minimum, and '{by.name}' has none: {found.message}"
            )
    space = model.space
    objectives = [_objective(model, data, by) for by, _ in (first, second)]
    here, there = (minimum.vector for _, minimum in (first, second))
    moves = [_moves(objective, minimum) for objective, (_, minimum) in zip(objectives, (first, second), strict=True)]
    slope = np.abs(space.slopes_of_y(space.to_y(here))[0])
    number = objectives[0].units.observations
    own, both = _centred(moves[0], number), _centred(moves[0] - moves[1], number)
    error = np.sqrt(number @ both**2)
    differ = error > 1e-6 * np.sqrt(number @ own**2)  # else the two losses are the same in every unit
    away = np.abs(space.to_y(there) - space.to_y(here)) * slope * np.sign(there - here)
    standardised = np.where(differ, away / np.where(differ, error, 1.0), 0.0)
    columns = {first[0].name: here, second[0].name: there, "difference": there - here, "standard_error": error}
    shift = away / np.maximum(np.sqrt(number @ own**2), 1e-300)
    table = pd.DataFrame(columns | {"standardised": standardised, "shift": shift}, index=list(first[1].names))
    p_value = _p_value(standardised[differ], both[:, differ] / error[differ], number)
    apart = total_variation(model, data, here, there) if p_value < LEVEL else float("nan")
    edges = tuple(entry for parameter in space.of_role(EDGE) for entry in parameter.entries)
    return Agreement(table, p_value, _sentence(table, p_value, apart), apart, edges)


def _objective(model: AbstractModel, data: Dataset, loss: AbstractLoss) -> Objective:
    units = resampling.by_name("multinomial", model, data).units(model, data)
    return Objective(model, data, loss, units)


def _moves(objective: Objective, minimum: Minimum) -> Float[np.ndarray, "u p"]:
    """What one more observation of each unit does to the minimiser, but for its sign."""
    gradients = objective.unit_gradients(minimum.vector) * objective.units.each[:, None]
    try:
        return np.linalg.solve(objective.hessian(minimum.vector), gradients.T).T
    except np.linalg.LinAlgError as problem:
        raise MinimiserError("a loss is flat in some direction at its minimum: no standard errors") from problem


def _centred(moves: np.ndarray, number: np.ndarray) -> np.ndarray:
    return moves - number @ moves / number.sum()


def _p_value(standardised: np.ndarray, moves: np.ndarray, number: np.ndarray) -> float:
    """The chance of a larger difference about any parameter, these being as correlated as they are."""
    if not len(standardised):
        return 1.0
    values, vectors = np.linalg.eigh((moves * number[:, None]).T @ moves)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = np.random.default_rng(5).standard_normal((10_000, len(values))) @ root.T
    largest = np.abs(drawn).max(axis=1)
    return float((1 + np.sum(largest >= np.abs(standardised).max())) / (1 + len(largest)))


def _sentence(table: pd.DataFrame, p_value: float, apart: float) -> str:
    first, second = table.columns[:2]
    shown = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"
    if p_value >= LEVEL:
        return f"the losses '{first}' and '{second}' agree up to chance ({shown})"
    matters = _matters(table, apart)
    if not matters.any():
        return (
            f"the losses '{first}' and '{second}' differ by more than chance ({shown}) and by too little to matter: by "
            f"at most {table['shift'].abs().max():.2g} standard errors of an estimate{_of_data(apart)}"
        )
    far = table["standardised"].abs()[matters].sort_values(ascending=False)
    far = far[far > 2.0].head(3) if (far > 2.0).any() else far.head(1)
    told = "; ".join(
        f"{name} is {one:.3g} by '{first}' and {two:.3g} by '{second}', {far[name]:.1f} joint standard errors apart"
        for name, one, two in table.loc[far.index, [first, second]].itertuples()
    )
    return (
        f"two losses disagree by more than chance ({shown}): {told}{_of_data(apart)}. The model is suspect, or a few "
        "rows are. What to do: look at fit.checks, and try another model (dfd.compare_models)."
    )
