"""What every experiment takes and gives, and how its pictures look."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

import dfdbayes as dfd

INK, BLUE, ORANGE, GREEN, GREY = "#22303c", "#2a6f97", "#d1495b", "#3a7d44", "#8a9aa5"
COLOURS = {"likelihood": GREY, "pseudo": GREY, "dfd": BLUE, "ksd": ORANGE, "ratio": GREEN, "robust": INK}
TITLES = {
    "likelihood": "standard Bayes",
    "pseudo": "Pseudo-Bayes",
    "dfd": "DFD-Bayes",
    "ksd": "KSD-Bayes",
    "ratio": "ratio matching",
    "robust": "robust DFD-Bayes",
}


@dataclass(frozen=True)
class Settings:
    """How much to spend, and where data that are not part of the package lie."""

    quick: bool = False
    data: Path | None = None

    @property
    def bootstrap(self) -> int:
        """Enough for a Monte-Carlo error of a few percent; the paper uses 100."""
        return 200 if self.quick else 1000

    def walk(self, draws: int, length: int) -> dict[str, Any]:
        """The paper's random walk: ten chains of ``length`` after as many, thinned to ``draws``; or short NUTS."""
        if self.quick:
            return {"sampler": "nuts", "draws": 500, "warmup": 300}
        sampler = dfd.samplers.RandomWalk(step=0.1, thin=length // draws)
        return {"sampler": sampler, "draws": draws, "warmup": length, "chains": 10}


@dataclass(frozen=True)
class Number:
    """One quantity: the paper's value if it prints one, ours, its Monte-Carlo error, and a remark."""

    what: str
    ours: float
    paper: float | None = None
    error: float | None = None
    remark: str = ""

    @property
    def verdict(self) -> str:
        """The remark, or how far the two values are apart in errors of ours."""
        if self.paper is None or self.remark:
            return self.remark
        if self.error is None:
            return "agrees" if np.isclose(self.ours, self.paper, rtol=0.01) else "differs"
        gap = abs(self.ours - self.paper) / self.error
        return f"{'agrees' if gap <= 3 else 'differs'}: {gap:.1f} Monte-Carlo errors apart"


@dataclass(frozen=True)
class Finding:
    """What an experiment found."""

    title: str
    where: str
    """The place in the paper."""
    text: str
    figures: Mapping[str, Figure]
    numbers: tuple[Number, ...] = ()
    skipped: bool = False


def fit(model: Any, data: Any, **settings: Any) -> Any:
    """A fit with the paper's loss, priors and calibration, without bars and with warnings kept in the fit."""
    usual: dict[str, Any] = {"loss": "dfd", "prior": "paper", "check": False}
    if "beta" not in settings:
        usual["calibration"] = "score-matching"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dfd.fit(model, data, progress=False, **(usual | settings))


def with_papers_priors(model: Any) -> Any:
    """The same model under the priors of the paper."""
    return model.with_priors(dfd.models.paper_priors(model))


def draws_of(found: Any, name: str) -> np.ndarray:
    return found.groups["posterior"].arrays[name].reshape(-1)


def figure_of(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, Any]:
    """A figure of so many inches, and its axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns)


def clean(axes: Any, x: str = "", y: str = "", title: str = "", legend: int = 0) -> None:
    """Name the axes; with ``legend`` what is drawn, too, in letters of that size."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8)
    axes.set_xlabel(x, fontsize=9, color=INK)
    axes.set_ylabel(y, fontsize=9, color=INK)
    if title:
        axes.set_title(title, fontsize=9, color=INK)
    if legend:
        axes.legend(frameon=False, fontsize=legend)


def density(axes: Any, values: np.ndarray, **style: Any) -> None:
    """A kernel density estimate of draws."""
    low, high = np.quantile(values, [0.001, 0.999])
    pad = 0.25 * (high - low) + 1e-12
    grid = np.linspace(low - pad, high + pad, 400)
    axes.plot(grid, gaussian_kde(values[:: max(1, len(values) // 4000)])(grid), **style)
    axes.set_ylim(bottom=0)
    axes.set_yticks([])


def region(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """A grid, a kernel density on it, and the height of its 95 % highest-density region."""
    step = max(1, len(x) // 2000)
    points = np.stack([x[::step], y[::step]])
    kernel = gaussian_kde(points)
    pad = 0.3 * np.ptp(points, axis=1)
    axes = [np.linspace(p.min() - e, p.max() + e, 120) for p, e in zip(points, pad, strict=True)]
    heights = kernel(np.stack([g.ravel() for g in np.meshgrid(*axes)])).reshape(120, 120)
    return (*axes, heights, np.quantile(kernel(points), 0.05))


def shortest(action: Callable[[], Any], repeats: int = 3) -> tuple[Any, float]:
    """What an action gives, and the shortest time that it took of several."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        found = action()
        times.append(time.perf_counter() - begin)
    return found, min(times)


def exponent(sizes: Iterable[float], times: Iterable[float]) -> float:
    """The slope of log time against log size."""
    return float(np.polyfit(np.log(list(sizes)), np.log(list(times)), 1)[0])


def gene_data(settings: Settings) -> dfd.Dataset | None:
    """Log-counts of ten genes in 878 patients, if their file is there."""
    path = None if settings.data is None else settings.data / "brca_10.csv"
    return dfd.Dataset.of(path, dfd.Counts(10)) if path is not None and path.is_file() else None


def without_data(title: str, where: str) -> Finding:
    return Finding(
        title,
        where,
        "Skipped: the gene data are not part of the package. They are the ten breast-cancer genes of The Cancer "
        "Genome Atlas as preprocessed by Inouye et al. (2017, repository davidinouye/sqr-graphical-models); give the "
        "folder of "
        "brca_10.csv with --data or the environment variable DFDBAYES_DATA.",
        {},
        skipped=True,
    )


def contaminated(
    model: Any,
    clean_rows: np.ndarray,
    outlier: int,
    robust_below: float,
    reference: str,
    settings: Settings,
    **more: Any,
) -> tuple[Figure, tuple[Number, ...]]:
    """Posteriors of a parameter that is 5, clean and with one row in ten replaced: four losses, the last two robust."""
    dirty = clean_rows.copy()
    dirty[: len(dirty) // 10] = outlier
    robust = dfd.losses.KernelStein(dfd.kernels.Robust(dfd.kernels.below(robust_below)))
    figure = Figure(figsize=(12, 2.8), layout="constrained")
    (parameter,) = model.space.names
    numbers = []
    losses = ((reference, reference), ("dfd", "dfd"), ("ksd", robust), ("robust", dfd.losses.Robust("dfd")))
    for axes, (name, loss) in zip(figure.subplots(1, 4), losses, strict=True):
        for rows, share, style, colour in ((clean_rows, 0.0, "-", BLUE), (dirty, 0.1, "--", ORANGE)):
            weight = {"beta": 1.0} if name == "likelihood" else {}
            found = fit(model, rows, loss=loss, **settings.walk(100, 2000), **weight, **more)
            draws = draws_of(found, parameter)
            density(axes, draws, color=colour, ls=style, label=f"{share:.0%} outliers")
            remark = f"posterior sd {draws.std():.3f}, beta {found.beta:.3g}"
            if name == "robust":
                remark += f"; {found.settings['loss_weight']}"
            numbers.append(Number(f"posterior mean, {TITLES[name]}, {share:.0%}", float(draws.mean()), remark=remark))
        axes.axvline(5.0, color="black", lw=0.8, ls=":")
        clean(axes, parameter, "", TITLES[name] + (" (robust kernel)" if name == "ksd" else ""), legend=8)
    return figure, tuple(numbers)
