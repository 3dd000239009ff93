"""Coverage of 95 % intervals in series of counts and of binary values, and of forecasts.

    python docs/studies/series_coverage.py [--replicates R] [--minutes M] [CASE ...]

Writes docs/tables/series-coverage.md. Finished replicates are kept in runs/series-coverage, so that a run that was
interrupted, or ended after M minutes, goes on. Data set r of a case comes from seed 70000 + r, and so does its fit;
these seeds served nothing else. What a wrong model is about has no formula: it is estimated from a series of 400,000.
Coefficients are covered or not by the normal approximation of each posterior, which needs no draws; forecasts are
those of whole fits, of the first 100 data sets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from keeping import Study, arguments

import dfdbayes as dfd
from dfdbayes import losses
from dfdbayes.backends.local import Local
from dfdbayes.core.calibration import calibrate
from dfdbayes.core.minimise import logarithmic, minimise
from dfdbayes.core.objective import Objective
from dfdbayes.fitting.reading import read_regression

STUDY = Study("series-coverage")
FIRST, QUANTILE, N, AHEAD, BURN, FORECAST = 70_000, 1.959964, 200, 8, 100, 100
LONG, LONG_SEED = 400_000, 69_999


def _smooth(rng: np.random.Generator, n: int) -> np.ndarray:
    """A covariate with a memory: correlation 0.6 from step to step, variance 1."""
    shocks, found = rng.standard_normal(n), np.zeros(n)
    for t in range(1, n):
        found[t] = 0.6 * found[t - 1] + 0.8 * shocks[t]
    return found


def counts(first: float, second: float, spread: float, n: int, seed: int) -> pd.DataFrame:
    """Log-linear autoregressions of counts; ``spread`` is the variance of gamma factors of the means."""
    rng = np.random.default_rng(seed)
    x, y = _smooth(rng, n + BURN), np.zeros(n + BURN)
    intercept = 0.5 if not second else 0.3
    for t in range(2, n + BURN):
        mean = np.exp(intercept + first * np.log1p(y[t - 1]) + second * np.log1p(y[t - 2]) + 0.3 * x[t])
        y[t] = rng.poisson(mean * (rng.gamma(1 / spread, spread) if spread else 1.0))
    return pd.DataFrame({"t": np.arange(n), "y": y[BURN:].astype(int), "x": x[BURN:]})


def hidden(n: int, seed: int) -> pd.DataFrame:
    """Counts whose means share a hidden series."""
    rng = np.random.default_rng(seed)
    x, u = _smooth(rng, n), _smooth(rng, n)
    return pd.DataFrame({"t": np.arange(n), "y": rng.poisson(np.exp(1.0 + 0.3 * x + 0.5 * u)), "x": x})


def binary(n: int, seed: int) -> pd.DataFrame:
    """A logistic autoregression."""
    rng = np.random.default_rng(seed)
    x, y = _smooth(rng, n + BURN), np.zeros(n + BURN, int)
    for t in range(1, n + BURN):
        y[t] = rng.random() < 1 / (1 + np.exp(0.5 - 1.0 * y[t - 1] - 0.5 * x[t]))
    return pd.DataFrame({"t": np.arange(n), "y": y[BURN:], "x": x[BURN:]})


@dataclass(frozen=True)
class Case:
    """How data come about, what is fitted to them, and the truth by term (None: from a long series)."""

    title: str
    source: Callable[[int, int], pd.DataFrame]
    model: str = "poisson"
    formula: str = "y ~ log1p(lag(y)) + x"
    truth: tuple[float, ...] | None = None


CASES = {
    "right": Case("Poisson AR(1), right", lambda n, s: counts(0.4, 0.0, 0.0, n, s), truth=(0.5, 0.4, 0.3)),
    "order": Case("Poisson AR(2) fitted as AR(1)", lambda n, s: counts(0.25, 0.35, 0.0, n, s)),
    "spread": Case("negative binomial AR(1) fitted as Poisson", lambda n, s: counts(0.4, 0.0, 0.5, n, s),
                   truth=(0.5, 0.4, 0.3)),
    "hidden": Case("Poisson means with a hidden series, fitted without lags", hidden, formula="y ~ x",
                   truth=(1.0 + 0.125, 0.3)),
    "binary": Case("logistic AR(1), right", binary, "bernoulli", "y ~ lag(y) + x", (-0.5, 1.0, 0.5)),
}  # fmt: skip
WINDOWS, ROWS, PLAIN = WAYS = ("windows (default)", "rows as independent", "uncalibrated")
READING = dict.fromkeys(("columns", "weights", "cluster")) | {"weighting": "auto", "missing": "refuse", "time": "t"}


@cache
def truth(name: str) -> tuple[float, ...]:
    case = CASES[name]
    if case.truth is not None:
        return case.truth
    frame = case.source(LONG, LONG_SEED)
    y = frame["y"].to_numpy(dtype=float)
    design = np.stack([np.ones(LONG - 1), np.log1p(y[:-1]), frame["x"].to_numpy()[1:]], axis=1)
    return tuple(map(float, logarithmic(design, y[1:], np.ones(LONG - 1), np.zeros(LONG - 1)).reshape(-1)))


def posteriors(case: Case, frame: pd.DataFrame) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Centre and standard deviations of the normal approximation of the posterior, by each way."""
    source, model = read_regression(
        Local(), case.model, frame, None, case.formula, {}, READING, lambda done, total: None
    )
    found, loss = {}, losses.by_name("likelihood")
    for way, how in ((WINDOWS, dfd.resampling.Windows()), (ROWS, dfd.resampling.Rows())):
        objective = Objective(model, source.data, loss, how.units(model, source.data))
        minimum = minimise(objective)
        shape = calibrate(objective, "curvature", minimum=minimum).curvature
        assert shape is not None
        centre = shape.centre + shape.covariance @ (shape.force - shape.pull)
        found[way] = centre, np.sqrt(np.diag(shape.covariance))
    plain = np.linalg.inv(objective.hessian(minimum.vector) + shape.precision)
    return found | {PLAIN: (minimum.vector, np.sqrt(np.diag(plain)))}


def replicate(name: str, seed: int) -> dict[str, Any]:
    """How many standard deviations the truth is from the centre, by each way."""
    case = CASES[name]
    try:
        found = posteriors(case, case.source(N + 1 + AHEAD, seed)[: N + 1])
    except dfd.errors.DfdbayesError as problem:
        return {"failure": type(problem).__name__, "said": str(problem)[:200]}
    return {way: (np.abs(np.array(truth(name)) - centre) / sd).tolist() for way, (centre, sd) in found.items()}


def forecast(name: str, seed: int) -> dict[str, Any]:
    """Whether new observations lie in the intervals that a whole fit forecasts, and what the intervals state."""
    case = CASES[name]
    frame = case.source(N + 1 + AHEAD, seed)
    past, ahead = frame[: N + 1], frame[N + 1 :]
    fit = dfd.fit(case.model, past, formula=case.formula, time="t", seed=seed, check=False, progress=False)
    told = fit.forecast(AHEAD, ahead, seed=seed)
    low, high = (told.table[end].to_numpy() for end in ("low", "high"))
    new = ahead["y"].to_numpy()
    return {
        "inside": ((low <= new) & (new <= high)).astype(int).tolist(),
        "stated": [float(s[a : b + 1].sum()) for s, a, b in zip(told.shares, low, high, strict=True)],
    }


JOBS: dict[str, Callable[[str, int], dict[str, Any]]] = {"coefficients": replicate, "forecasts": forecast}


def run(name: str, job: str, seed: int) -> dict[str, Any]:
    return JOBS[job](name, seed)


def coefficients() -> list[str]:
    lines = [
        "| case | width | data sets (failed) | covered: intercept, earlier value, covariate | mean |",
        "|---|---|---:|---|---:|",
    ]
    for name, case in CASES.items():
        found = STUDY.results(name, "coefficients")
        whole = [result for result in found if WINDOWS in result]
        for way in WAYS:
            if whole:
                held = 100 * (np.array([result[way] for result in whole]) <= QUANTILE).mean(axis=0)
                each = [f"{part:.1f}" for part in held]
                each = each if len(each) == 3 else [each[0], "no lag", each[1]]
                number = f"{len(whole)} ({len(found) - len(whole)})"
                lines.append(f"| {case.title} | {way} | {number} | {', '.join(each)} | {held.mean():.1f} |")
    return lines


def forecasts() -> list[str]:
    lines = [
        "| case | data sets | covered at steps 1, 4, 8 | all steps | stated, all steps |",
        "|---|---:|---|---:|---:|",
    ]
    for name, case in CASES.items():
        whole = STUDY.results(name, "forecasts")
        if whole:
            inside = 100 * np.array([result["inside"] for result in whole]).mean(axis=0)
            stated = 100 * np.mean([result["stated"] for result in whole])
            steps = ", ".join(f"{inside[h - 1]:.1f}" for h in (1, 4, AHEAD))
            lines.append(f"| {case.title} | {len(whole)} | {steps} | {inside.mean():.1f} | {stated:.1f} |")
    return lines


HEADING = f"""# Series: coverage of coefficients and of forecasts

Series of {N} rows with a covariate whose correlation from step to step is 0.6. Coverage in percent of nominal 95 %
intervals; the binomial standard error near 95 % is 1.3 for 300 data sets, 2.6 for 70. The default takes the
long-run variance of windows of neighbouring rows; rows as independent is right where the model of each row given its
past is right; uncalibrated is the likelihood as it is (beta = 1). Where the model is wrong, the truth is what it
estimates from ever longer series. Made by `python docs/studies/series_coverage.py` (data set r from seed 70000 + r).

"""
BETWEEN = f"""
## Forecasts

{AHEAD} steps ahead, each with its covariate known, by the default fit. Intervals of counts hold a little more than
95 %, because quantiles are whole numbers: what they state stands beside what they hold. (Intervals of binary values are
0 to 1 as a rule.)

"""


def main() -> None:
    asked = arguments(__doc__, CASES, 300)
    for job, number in (("coefficients", asked.replicates), ("forecasts", min(asked.replicates, FORECAST))):
        STUDY.run(((name, job, FIRST + r) for r in range(number) for name in asked.cases), run, asked.end)
    STUDY.write(HEADING + "\n".join(coefficients()) + "\n" + BETWEEN + "\n".join(forecasts()))


if __name__ == "__main__":
    main()
