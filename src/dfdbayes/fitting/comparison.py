"""Several fits of the same data side by side."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from ..core import losses
from ..core.dataset import Dataset
from ..core.losses.base import AbstractLoss
from ..core.model import AbstractModel
from ..errors import CalibrationError, DfdbayesError, EscapedError, MinimiserError, ModelError, SettingError
from ..results.hausman import Agreement, agreement
from .fit import fit
from .fit_result import Fit

LOSSES = ("dfd", "ratio", "ksd", "pseudo", "likelihood")


@dataclass(frozen=True)
class Comparison:
    """Fits by name, and one table about them.

    Attributes
    ----------
    fits : dict of Fit
    table : pandas.DataFrame
        One row for each parameter and fit: estimate (posterior mean), sd, interval, its width, beta and seconds; and
        ``converged`` where chains of one of them did not.
    failed : dict of str
        Why other fits were not possible, by name.
    agreements : dict of Agreement
        Of `compare_losses`: by name, whether each loss agrees with the first one up to chance; ``sentence`` says it.
    """

    fits: dict[str, Fit]
    table: pd.DataFrame
    failed: dict[str, str] = field(default_factory=dict)
    agreements: dict[str, Agreement] = field(default_factory=dict)

    def __repr__(self) -> str:
        failed = f"; not possible: {', '.join(self.failed)}" if self.failed else ""
        return f"Comparison of {', '.join(self.fits)}{failed}\n{self.table}"

    def _repr_html_(self) -> str:
        from ..present.figures import comparison
        from ..present.notebook import shown

        title = f"{', '.join(self.fits)}, fitted to {next(iter(self.fits.values())).data.source}"
        failed = [f"{name}: {why}" for name, why in self.failed.items()]
        few = self.fits if len(self.fits) < 3 else {}
        answers = " ".join(f"{name}: {fit.answer}" for name, fit in few.items())
        return shown(title, answers, self.table, comparison(self), title, failed, rest="comparison.table")


def compare_losses(
    model: AbstractModel | str, data: Any, by: Sequence[str | AbstractLoss] = LOSSES, **settings: Any
) -> Comparison:
    """Fit a model by several losses and put the fits side by side.

    Parameters
    ----------
    model, data, **settings
        As for `fit`.
    by : sequence of str or loss
        A loss that cannot be used for this model and these data is in ``failed``, with the reason; if none can, its
        error is raised.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> x = [2, 3, 1, 4, 2, 0, 3, 5, 2, 1] * 20
    >>> found = dfd.compare_losses("poisson", x, by=("ratio", "likelihood"), sampler="laplace", progress=False)
    >>> list(found.fits)
    ['ratio', 'likelihood']
    """
    chosen = [losses.by_name(loss) for loss in by]
    fits: dict[str, Fit] = {}
    failed: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are on the fits
        for loss in chosen:
            try:
                fits[loss.name] = fit(model, data, loss=loss, **settings)
            except (CalibrationError, EscapedError, MinimiserError, ModelError) as problem:
                if len(failed) + 1 == len(chosen):
                    raise
                failed[loss.name] = str(problem)
    return replace(compare(fits), failed=failed, agreements=_agreements(fits))


def _agreements(fits: dict[str, Fit]) -> dict[str, Agreement]:
    """Each loss beside the first one, where both have a minimum and rows that they share."""
    found: dict[str, Agreement] = {}
    (_, base), *others = fits.items()
    if base.model is None or not base.model.sampled or base.imputation is not None:
        return found
    for name, one in others:
        if base.loss is None or one.loss is None:
            continue
        with suppress(DfdbayesError):  # no minimum inside: nothing to compare
            found[name] = agreement(base.model, base.data, (base.loss, base.minimum), (one.loss, one.minimum))
    return found


def by_name(candidates: Any) -> dict[str, Any]:
    """Fits or models with names: those given, or else of their models, numbered where these are equal."""
    if isinstance(candidates, Fit):
        raise SettingError("give the fits together: [first, second], or {'first': first, 'second': second}")
    if isinstance(candidates, Mapping):
        return dict(candidates)
    names = [one if isinstance(one, str) else _name(one) for one in candidates]
    own = [f"{name} {names[: i + 1].count(name)}" if names.count(name) > 1 else name for i, name in enumerate(names)]
    return dict(zip(own, candidates, strict=True))


def _name(one: Any) -> str:
    return str(one.settings["model"] if isinstance(one, Fit) else getattr(one, "name", one))


def _values(data: Dataset) -> tuple[Any, ...]:
    """What was observed, whatever covariates stand beside it."""
    rows, where = np.unique(data.rows.astype(np.int64), axis=0, return_inverse=True)
    return data.columns, rows.tobytes(), np.bincount(where.reshape(-1), weights=data.counts).round(9).tobytes()


def compare(fits: Mapping[str, Fit] | Sequence[Fit], interval: float = 0.95) -> Comparison:
    """Put fits of the same data side by side, by the names given, or else by those of their models.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> x = [2, 3, 1, 4, 2, 0, 3, 5, 2, 1] * 20
    >>> fits = {loss: dfd.fit("poisson", x, loss=loss, progress=False) for loss in ("ratio", "likelihood")}
    >>> dfd.compare(fits).table.index.names
    FrozenList(['parameter', 'fit'])
    """
    fits = by_name(fits)
    if not fits:
        raise SettingError("nothing to compare: give at least one fit, for example {'dfd': fit}")
    if len({one.data.digest for one in fits.values()}) > 1 and len({_values(one.data) for one in fits.values()}) > 1:
        shown = ", ".join(f"{name}: {one.data.source}, n = {one.data.n}" for name, one in fits.items())
        raise SettingError(f"the fits are of different data ({shown}); compare fits of the same")
    rows = []
    for name, one in fits.items():
        table = one.summary(interval)
        low, high = (next(c for c in table.columns if c.startswith("eti") and c.endswith(end)) for end in ("lb", "ub"))
        for parameter, row in table.iterrows():
            rows.append(
                {
                    "parameter": parameter,
                    "fit": name,
                    "estimate": row["mean"],
                    "sd": row["sd"],
                    low: row[low],
                    high: row[high],
                    "width": row[high] - row[low],
                    "beta": one.beta,
                    "seconds": sum(one.timings["seconds"].values()),
                }
            )
    frame = pd.DataFrame(rows)
    if not all(one.converged for one in fits.values()):
        frame["converged"] = [fits[name].converged for name in frame["fit"]]
    frame["parameter"] = pd.Categorical(frame["parameter"], categories=frame["parameter"].unique(), ordered=True)
    ordered = frame.set_index(["parameter", "fit"]).sort_index(level="parameter", sort_remaining=False)
    return Comparison(dict(fits), ordered)
