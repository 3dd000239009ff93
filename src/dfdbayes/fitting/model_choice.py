"""Which of several models predicts such data best, by cross-validation and with errors of the differences."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import ndtri

from ..core.losses.base import AbstractLoss
from ..core.minimise import minimise
from ..core.mixing import evenly
from ..core.model import AbstractModel
from ..core.parameters import SHAPE, ZEROS
from ..errors import CalibrationError, DfdbayesError, EscapedError, MinimiserError, ModelError, SettingError
from ..families import named_model
from .comparison import by_name
from .cross_validation import Folds, folds_of, held_out, matched, require_comparable, score_of, scored
from .fit import fit
from .fit_result import Fit

TIED = "these data cannot tell"
WEIGHT = "weight: the share of each model in the best mixture of their predictions, which is not how sure its lead is"


@dataclass(frozen=True)
class ModelComparison:
    """Models by how well they predict observations that they have not seen.

    Attributes
    ----------
    table : pandas.DataFrame
        A line for each model, the best first. ``loss`` is the mean score of an observation left out (smaller is
        better); ``worse_by`` the sum of its differences from the best model's over all observations, with its paired
        ``standard_error``. ``weight`` says how to mix the models' predictions (stacking): it is no probability, and may
        be large where models can hardly be told apart; ``parameters`` and, where
        the score is the likelihood, ``log_likelihood``, ``aic``, ``bic`` (at the largest likelihood) and ``waic`` (of
        the calibrated posterior) are the usual criteria.
    verdict : str
        Which model predicts best, or "these data cannot tell".
    best : tuple of str
        The models that predict best as far as these data can tell: one, or several.
    score : str
        By which the models were judged: one that all of them have.
    fits : dict of Fit
    failed : dict of str
        Why other models could not be fitted.
    folds : int
    differences : pandas.DataFrame
        Of every pair of models, ``difference`` (loss of the first less that of the second), ``standard_error``.
    """

    table: pd.DataFrame
    verdict: str
    best: tuple[str, ...]
    score: str
    folds: int
    differences: pd.DataFrame
    fits: dict[str, Fit] = field(repr=False, default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        note = f"\n{WEIGHT}" if self.table["weight"].notna().any() else ""
        return f"{self.verdict}\n{self.table.to_string(float_format=lambda value: f'{value:.4g}')}{note}"


def compare_models(
    candidates: Mapping[str, Fit | AbstractModel | str] | Sequence[Fit | AbstractModel | str],
    data: Any = None,
    *,
    score: str | AbstractLoss = "auto",
    folds: int = 10,
    seed: int = 0,
    **settings: Any,
) -> ModelComparison:
    """Say which model predicts best what it has not seen, and whether these data can tell.

    Observations are left out in turn (cross-validation; clusters as a whole), and each model predicts them from the
    others. All models are judged by the same proper score, whatever losses they were fitted by: the log-likelihood
    where all have one, else the likelihood of each value given the others, else ratio matching, which needs no
    constant. Predictions are at the calibrated posterior's mode.

    Parameters
    ----------
    candidates : mapping of name to Fit, or sequence
        Fits of the same rows, whatever their covariates. With ``data``, models or names of models. In a sequence they
        have the names of models, numbered where equal.
    data, **settings
        As for `fit`, which then fits every model; one that cannot be fitted is in ``failed``.
    score : str or loss
        Another score for all: ``"likelihood"``, ``"pseudo"``, ``"ratio"`` or ``"dfd"``.
    folds : int
    seed : int
        Of the folds.

    Returns
    -------
    ModelComparison

    Examples
    --------
    >>> import dfdbayes as dfd, numpy as np
    >>> x = np.random.default_rng(0).negative_binomial(2, 0.4, 300)
    >>> found = dfd.compare_models(["poisson", "cmp"], x, sampler="laplace", check=False, progress=False)
    >>> found.best
    ('cmp',)
    """
    named = by_name(candidates)
    fits, failed = _fitted(named, data, seed, settings) if len(named) > 1 else ({}, {})
    if len(fits) < 2:
        told = "; ".join(f"{name}: {why}" for name, why in failed.items())
        raise SettingError("comparing needs at least two models that can be fitted" + (f" ({told})" if told else ""))
    for name, one in fits.items():
        require_comparable(name, one)
    base, where = matched(fits)
    dealt = folds_of(base, folds, seed)
    judge = score_of([(one.model, one.data) for one in fits.values() if one.model is not None], score)
    held = {name: held_out(one, dealt, where[name], judge)[0] for name, one in fits.items()}
    return _compared(fits, failed, dealt, held, judge)


def _fitted(
    candidates: dict[str, Any], data: Any, seed: int, settings: dict[str, Any]
) -> tuple[dict[str, Fit], dict[str, str]]:
    if all(isinstance(one, Fit) for one in candidates.values()):
        if data is not None or settings:
            raise SettingError("fits have their data and settings; give nothing else, or give models and data")
        return candidates, {}
    if data is None:
        raise SettingError("give fits, compare_models([fit_a, fit_b]), or models and data")
    fits: dict[str, Fit] = {}
    failed: dict[str, str] = {}
    beside = {one: _beside_location(one, settings) for one in candidates.values() if isinstance(one, str)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are on the fits
        for name, one in candidates.items():
            own = _own(one, settings, beside) if isinstance(one, str) else settings
            try:
                fits[name] = one if isinstance(one, Fit) else fit(one, data, seed=seed, **own)
            except (CalibrationError, EscapedError, MinimiserError, ModelError) as problem:
                failed[name] = str(problem)
    return fits, failed


def _beside_location(model: str, settings: dict[str, Any]) -> frozenset[str]:
    """The parameters of shape and of zeros that formulas of a model may be about, and that other models may lack."""
    try:
        made = named_model(model)(1, named_model(model).own(settings.get("options")))
        space = made.for_covariates(None, made.takes_zeros).space
    except ModelError:  # it looks at its data first, or is none: its fit says so
        return frozenset()
    return frozenset(p.name for role in (SHAPE, ZEROS) for p in space.of_role(role))


def _own(model: str, settings: dict[str, Any], beside: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    """What of the settings of all models is one model's own: options, and no formulas that are for others alone."""
    others = frozenset().union(*beside.values()) - beside[model]
    own = {name: value for name, value in settings.items() if name not in others}
    return own | {"options": named_model(model).own(settings.get("options"))}


def _compared(
    fits: dict[str, Fit], failed: dict[str, str], dealt: Folds, held: dict[str, np.ndarray], judge: AbstractLoss
) -> ModelComparison:
    weights = dealt.observations * dealt.each
    total = {name: float(np.sum(weights * values)) for name, values in held.items()}
    names = sorted(fits, key=lambda name: total[name])
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    differences = pd.DataFrame(
        [{"first": a, "second": b} | _difference(held[a] - held[b], dealt) for a, b in pairs]
    ).set_index(["first", "second"])
    best = names[0]
    errors = [0.0, *(_difference(held[best] - held[name], dealt)["standard_error"] for name in names[1:])]
    table = pd.DataFrame(
        {
            "loss": [total[name] / weights.sum() for name in names],
            "worse_by": [total[name] - total[best] for name in names],
            "standard_error": errors,
        },
        index=pd.Index(names, name="model"),
    )
    table["weight"] = _stacked([held[name] for name in names], weights) if judge.normalised else np.nan
    table["parameters"] = [len(fits[name].minimum.names) for name in names]
    if judge.normalised:
        criteria = pd.DataFrame([_criteria(fits[name], judge) for name in names], index=table.index)
        table = pd.concat([table, criteria], axis=1)
    worse, error = (table[column].to_numpy(dtype=float) for column in ("worse_by", "standard_error"))
    tied = (best, *(name for k, name in enumerate(names) if k and not _sure(worse[k], error[k], judge)))
    return ModelComparison(
        table, _verdict(tied, table, judge), tied, judge.name, len(dealt.observations), differences, fits, failed
    )


def _difference(differences: Float[np.ndarray, "k u"], dealt: Folds) -> dict[str, float]:
    """The sum over observations, and its standard error from the spread between observations, or clusters."""
    own = differences * dealt.each
    if dealt.cluster is not None:
        sums = np.bincount(dealt.cluster, weights=np.sum(own * dealt.observations, axis=0))
        spread = len(sums) * float(np.var(sums, ddof=1))
        return {"difference": float(sums.sum()), "standard_error": float(np.sqrt(spread))}
    n = float(dealt.observations.sum())
    whole = float(np.sum(own * dealt.observations))
    spread = float(np.sum(dealt.observations * (own - whole / n) ** 2)) / (n - 1.0)
    return {"difference": whole, "standard_error": float(np.sqrt(n * spread))}


def _sure(worse: float, error: float, judge: AbstractLoss) -> bool:
    """Whether a model is worse: its sign is known with 95 %, by a sum of log scores whose error is to be trusted.

    Below 4 it is not (Sivula et al., 2020).
    """
    return worse > ndtri(0.975) * error and (worse > 4.0 or not judge.normalised)


def _verdict(tied: tuple[str, ...], table: pd.DataFrame, judge: AbstractLoss) -> str:
    best, other = table.index[0], table.index[1]
    numbers = table.loc[other, ["worse_by", "standard_error"]]
    if len(tied) == 1:
        return (
            f"{best} predicts best: {other}, the next, is worse by {numbers.iloc[0]:.3g} (standard error "
            f"{numbers.iloc[1]:.2g}) in all, by {judge.name} out of sample"
        )
    shown = f"{', '.join(tied[:-1])} and {tied[-1]}"
    last = table.loc[tied[-1], ["worse_by", "standard_error"]]
    rest = "" if len(tied) == len(table) else "; the others are worse"
    return (
        f"{TIED} {shown} apart: {tied[-1]} is worse than {best} by {last.iloc[0]:.3g} (standard error "
        f"{last.iloc[1]:.2g}) in all, by {judge.name} out of sample{rest}"
    )


def _stacked(held: list[Float[np.ndarray, "k u"]], weights: Float[np.ndarray, "k u"]) -> Float[np.ndarray, " m"]:
    """Weights of a mixture of the models' predictions under which what was left out is likeliest (EM)."""
    used = weights > 0
    log = -np.stack([values[used] for values in held], axis=1)
    each, density = weights[used] / weights[used].sum(), np.exp(log - log.max(axis=1, keepdims=True))
    share = np.full(len(held), 1.0 / len(held))
    for _ in range(2000):  # each is a small product of matrices, and weights of weak models fall slowly
        own = density * share
        share = each @ (own / own.sum(axis=1, keepdims=True))
    return share


def _criteria(one: Fit, judge: AbstractLoss) -> dict[str, float]:
    """The log-likelihood at its largest, AIC and BIC there, and WAIC of the calibrated posterior."""
    assert one.model is not None
    objective = scored(one.model, one.data, judge)
    k, n = len(one.minimum.names), one.data.n
    try:
        log = -min(float(minimise(objective, one.estimate).value), objective(one.estimate))
    except DfdbayesError:
        log = float("nan")
    lines = -objective.unit_values(evenly(one.joint_draws, 100))  # for WAIC
    top = lines.max(axis=0)
    mean = top + np.log(np.mean(np.exp(lines - top), axis=0))
    waic = -2.0 * float(one.data.counts @ (mean - lines.var(axis=0, ddof=1)))
    return {"log_likelihood": log, "aic": 2 * k - 2 * log, "bic": k * np.log(n) - 2 * log, "waic": waic}
