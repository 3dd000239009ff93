"""Coverage of 95 % intervals from one map: a lattice of 30 x 30 sites with a covariate at each.

    python docs/studies/map_coverage.py [--replicates R] [--minutes M] [CASE ...]

Writes docs/tables/map-coverage.md. Finished replicates are kept in runs/map-coverage, so that a run that was
interrupted, or ended after M minutes, goes on. Map r of a case comes from seed 70000 + r, and so does its fit; these
seeds served nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from keeping import Study, arguments

import dfdbayes as dfd
from dfdbayes.core.replicates import refit_many

STUDY = Study("map-coverage")
FIRST, LEVEL, SIDE, SWEEPS = 70_000, 0.95, 30, 1000
DEFAULT = "parametric bootstrap (default)"
FORMULA, AT = "present ~ x", ("row", "col")
TRUTH = {"intercept": -0.3, "x": 0.6, "interaction": 0.6}


@dataclass(frozen=True)
class Case:
    """How maps come about, and the ways to fit them."""

    title: str
    lost: float
    ways: dict[str, Callable[[pd.DataFrame, int], Any]]


def _fit(**settings: Any) -> Callable[[pd.DataFrame, int], Any]:
    return lambda frame, seed: dfd.fit(
        "autologistic", frame, formula=FORMULA, options={"at": AT}, seed=seed, check=False, progress=False, **settings
    )


def logistic(frame: pd.DataFrame, seed: int) -> Any:
    """As if sites did not depend on each other."""
    return dfd.fit("bernoulli", frame, formula=FORMULA, calibration="none", seed=seed, check=False, progress=False)


@cache
def sites() -> tuple[pd.DataFrame, Any]:
    """The lattice: a covariate that is smooth in space, and noise; and the model of its sites."""
    row, col = (part.reshape(-1) for part in np.indices((SIDE, SIDE)))
    rng = np.random.default_rng([70, 0])
    x = np.sin(row / 5.0) * np.cos(col / 7.0) + 0.5 * rng.standard_normal(SIDE**2)
    frame = pd.DataFrame({"row": row, "col": col, "x": x, "present": rng.integers(0, 2, SIDE**2)})
    return frame, dfd.models.Autologistic(FORMULA, at=AT).observe(frame)[1]


def drawn(seed: int, lost: float) -> pd.DataFrame:
    """A map; a share of its sites was not visited, more where x is low."""
    frame, model = sites()
    values = dfd.simulate(model, TRUTH, 1, seed=seed, sweeps=SWEEPS).values[0]
    chance = lost * np.where(frame["x"] < frame["x"].median(), 1.5, 0.5)
    unseen = np.random.default_rng([seed, 1]).random(len(frame)) < chance
    return frame.assign(present=np.where(unseen, np.nan, values) if lost else values)


@cache
def cases() -> dict[str, Case]:
    complete = {
        DEFAULT: _fit(),
        "blocks of about 30 sites": _fit(resampling=dfd.resampling.Blocks()),
        "terms as independent (sandwich)": _fit(resampling="dirichlet"),
        "naive pseudo-likelihood (beta = 1)": _fit(calibration="none"),
        "logistic regression without neighbours": logistic,
    }
    title = "30 x 30 sites, a covariate"
    return {
        "complete": Case(title, 0.0, complete),
        "missing": Case(
            f"{title}, a tenth of the sites not visited",
            0.1,
            {"impute": _fit(missing="impute"), "drop": _fit(missing="drop")},
        ),
    }


def replicate(name: str, way: str, seed: int) -> dict[str, Any]:
    case = cases()[name]
    try:
        fit = case.ways[way](drawn(seed, case.lost), seed)
    except dfd.errors.DfdbayesError as problem:
        return {"failure": type(problem).__name__, "said": str(problem)[:200]}
    named = {name.removeprefix("probability[").rstrip("]").lower(): values for name, values in fit.entries.items()}
    found: dict[str, Any] = {"tails": {}, "off": {}, "sd": {}}
    for name, truth in TRUTH.items():
        if name in named:
            values = named[name].reshape(-1)
            found["tails"][name] = float(2 * abs((values < truth).mean() - 0.5))
            found["off"][name], found["sd"][name] = float(values.mean() - truth), float(values.std())
    return found


def table() -> str:
    parameters = " | ".join(TRUTH)
    lines = [f"| case | way | maps (failed) | {parameters} |", "|---|---|---:|" + "---|" * len(TRUTH)]
    for name, case in cases().items():
        for way in case.ways:
            found = STUDY.results(name, way)
            whole = [result for result in found if "tails" in result]
            if whole:
                cells = [_cell(whole, parameter) for parameter in TRUTH]
                number = f"{len(whole)} ({len(found) - len(whole)})"
                lines.append(f"| {case.title} | {way} | {number} | {' | '.join(cells)} |")
    return "\n".join(lines)


def interpolated(maps: int = 2000, at_once: int = 500) -> str:
    """Coverage on many more maps, where widths are a smooth function of the estimates, found from the fits.

    The logarithm of each width is regressed on the estimates and their squares; what that leaves is added as noise.
    """
    whole = [result for result in STUDY.results("complete", DEFAULT) if "tails" in result]
    off, sd = (np.array([[result[part][name] for name in TRUTH] for result in whole]) for part in ("off", "sd"))
    model, truth = sites()[1], np.array(list(TRUTH.values()))
    rng, found = np.random.default_rng([70, 1]), []
    objective = dfd.objective(dfd.models.Autologistic(FORMULA, at=AT), drawn(FIRST, 0.0), "pseudo")
    for first in range(0, maps, at_once):
        drawn_maps = dfd.simulate(model, truth, at_once, seed=FIRST - at_once - first, sweeps=300)
        found.append(refit_many(objective, list(drawn_maps.datasets()), dfd.minimise(objective)).vectors - truth)
    away, cells = np.concatenate(found), []
    for k in range(len(truth)):
        line, *_ = np.linalg.lstsq(_squares(off), np.log(sd[:, k]), rcond=None)
        noise = np.std(np.log(sd[:, k]) - _squares(off) @ line)
        widths = np.exp(_squares(away) @ line + noise * rng.standard_normal(len(away)))
        held = np.mean(np.abs(away[:, k]) < 1.96 * widths)
        cells.append(f"{100 * held:.1f} ({away[:, k].mean():+.3f}, {widths.mean() / away[:, k].std():.2f})")
    number = f"{len(away)}, widths from those {len(whole)} fits"
    return f"| {cases()['complete'].title} | {DEFAULT} | {number} | {' | '.join(cells)} |"


def _squares(away: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(away)), away, away**2])


def _cell(whole: list[dict[str, Any]], parameter: str) -> str:
    """Coverage; bias, and the mean posterior sd over the sd of posterior means."""
    if parameter not in whole[0]["tails"]:
        return "–"
    tails, off, sd = (np.array([result[part][parameter] for result in whole]) for part in ("tails", "off", "sd"))
    return f"{100 * (tails <= LEVEL).mean():.1f} ({off.mean():+.3f}, {sd.mean() / off.std():.2f})"


HEADING = """# Coverage from one map

Coverage in percent of nominal 95 % intervals from one map; in brackets the bias of the posterior mean, and
the posterior's standard deviation over the one that posterior means have between maps (1 is right). The binomial
standard error near 95 % is 1.6 for 180 maps, 1.3 for 300. True values: intercept -0.3, x 0.6, interaction 0.6 (each of
up to four neighbours of the same kind raises the log odds by as much, each of the other kind lowers them). Made by
`python docs/studies/map_coverage.py` (map r from seed 70000 + r).

The last line has so many maps that chance is small: the estimate of each, and widths interpolated between those
of the fits, as a smooth function of the estimates (normal intervals). Among the maps that were fitted themselves
estimates happen to vary more than they do among these.

"""


def main() -> None:
    asked = arguments(__doc__, cases(), 300)
    wanted = [(name, way) for name in asked.cases for way in cases()[name].ways]
    STUDY.run(((*key, FIRST + r) for r in range(asked.replicates) for key in wanted), replicate, asked.end)
    STUDY.write(HEADING + table() + "\n" + interpolated())


if __name__ == "__main__":
    main()
