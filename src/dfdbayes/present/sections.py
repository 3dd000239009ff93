"""The sections of a document, each a list of blocks from a fit. What they show was computed elsewhere."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..core.dataset import column_summary, pooled_summary
from ..core.samplers.base import kind_of
from ..results.checks import Checks
from ..results.fitted import Fitted
from ..results.forecasts import Forecast
from ..results.predictive import HOW, MOST_CORRELATIONS
from ..results.ratios import ratios
from ..results.uncalibrated import is_calibrated, outweighed, side_by_side
from . import figures as plots
from . import methods
from .blocks import (
    UNMIXED,
    Block,
    Caution,
    Facts,
    Formula,
    Meanings,
    Paper,
    Paragraph,
    Picture,
    Section,
    Table,
    between,
    factors,
)
from .figures.observed import grid_of

MOST_COLUMNS = 40  # that are described one by one; more would be a table that nobody reads
MOST_CHAINS = 12  # entries whose chains are told of: the worst ones, for all others are better


def sections(fit: Fitted, future: Forecast | None = None) -> tuple[Section, ...]:
    """All sections that a fit has, in order; of chains that did not converge there is none about the answer."""
    family, done = fit.narrative, fit.converged
    found: dict[str, list[Block]] = {
        "Warnings": [Caution(text) for text in fit.warnings],
        "Forecast": [] if future is None else forecast(future),
        **(family.findings(fit) if done else {}),
        "Estimates": estimates(fit),
        **(family.comparisons(fit) if done else {}),
        "Coefficients and residuals": regression(fit),
        "Does the model reproduce the data?": predictive(fit) if done else [],
        "How sure, and why: calibration": calibration(fit),
        "Posterior": posterior(fit),
        "Influence of rows": influence(fit),
        "Data": data(fit),
        "How it was found: model, loss and prior": model(fit),
        "Chains": chains(fit),
        "Seeds, versions and times": reproduce(fit),
        "What to report in a paper": [paper(fit)],
    }
    return tuple(Section(title, tuple(blocks)) for title, blocks in found.items() if blocks)


def data(fit: Fitted) -> list[Block]:
    """The data at a glance."""
    own = fit.narrative.data(fit)
    if own is not None:
        return own
    observed, shape = fit.data, grid_of(fit)
    about = {
        "source": observed.source,
        "observations": str(observed.n) + ("" if observed.repeats is None else ", each with a weight"),
        "distinct rows": str(len(observed.rows)),
        "rows left out": f"{observed.dropped} with missing values" if observed.dropped else "none",
        "columns": (f"{observed.d}: " if observed.d > 1 else "") + _listed(observed.columns),
        "missing entries": "" if fit.imputation is None else str(fit.imputation),
        "clusters": "" if fit.clusters is None else str(fit.clusters),
        "time": fit.settings.get("series") or "",
    }
    if shape is not None:
        about["lattice"] = f"{shape[0]} × {shape[1]} sites"
    lattice = shape is not None or observed.d > MOST_COLUMNS
    rows = pooled_summary(observed) if lattice else column_summary(observed)
    rows["zeros"] = [f"{share:.1%}" for share in rows["zeros"]]
    named = rows.rename(columns={"zeros": "share of zeros"})
    if shape is not None:
        caption = "Mean of every site over the observations."
    elif observed.d == 1:
        caption = f"How often each value of {observed.columns[0]} was observed."
    else:
        caption = "Mean of every column" + (", ± one standard deviation." if observed.rows.max() > 1 else ".")
    return [Facts(about), Table(named), Picture(lambda: plots.data(observed, shape), caption)]


def _listed(names: tuple[str, ...], most: int = 30) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def model(fit: Fitted) -> list[Block]:
    """What was fitted, and how."""
    s, m, what = fit.settings, fit.minimum, methods.title(fit)
    graph = None if fit.model is None else fit.model.graph
    pairs = 0 if graph is None else len(graph.pairs)
    about = {
        "model": f"{s['model']}: {what}" if what != s["model"] else what,
        "values": "" if fit.model is None else repr(fit.model.domain),
        "kinds": (s.get("kinds") or "").removeprefix("kinds, "),
        "edges": str(pairs) if pairs else "",
        "priors": methods.priors(fit),
        "loss": methods.loss(fit),
        "chosen because": s["loss_reason"],
        "weights of rows": s.get("loss_weight") or "",
        "minimiser": _first([f"{name} = {v:.5g}" for name, v in zip(m.names, m.vector, strict=True)], 8),
        "search": m.message,
        "parameter space": _first([f"{name} in [{a:.3g}, {b:.3g}]" for name, (a, b) in m.bounds.items()], 4),
        "calibration": s["calibration"] + (f", {s['bootstrap']} bootstrap fits" if s["bootstrap"] else ""),
        "weight": f"beta = {fit.beta:.5g}",
        "sampler": fit.sampling,
    }
    loss = "" if fit.loss is None else fit.loss.formula
    told = [Formula(f"posterior ∝ prior × exp(−β D(θ)), &nbsp; {loss}")] if loss else []
    return [Formula(methods.formula(fit)), *told, Facts(about)]


def _first(texts: list[str], most: int) -> str:
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def estimates(fit: Fitted) -> list[Block]:
    """Calibrated and uncalibrated intervals side by side, of entries that have no table of their own elsewhere."""
    summary = fit.summary()
    elsewhere, where = fit.narrative.elsewhere(fit)
    kept = ~summary.index.isin(elsewhere)
    shown, notes = summary.loc[kept, ["mean", "sd"]].copy(), []
    if summary["mean"].isna().any():
        shown.insert(0, "median", summary.loc[kept, "median"])
        notes.append("Where a few huge draws decide the mean it is left out: read the median.")
    own = pd.Series(between(summary["eti95_lb"], summary["eti95_ub"]), summary.index)[kept]
    if not is_calibrated(fit):
        shown["95 % interval"] = own
        if fit.calibration.curvature is None:
            notes.append("The weight is 1: these are the uncalibrated intervals.")
    else:
        shown["calibrated 95 %"] = own
        if fit.uncalibrated is None:
            notes.append("The uncalibrated intervals (beta = 1) were not computed (check=False).")
        else:
            both = side_by_side(fit)
            shown["uncalibrated, β = 1"] = pd.Series(between(both["beta1_low"], both["beta1_high"]), both.index)
            shown["width ratio"] = [f"{ratio:.2f}" for ratio in both["width_ratio"][shown.index]]
            notes.append(
                "The uncalibrated intervals are those of the same loss and prior with beta = 1, by "
                "the normal approximation. The width ratio says how many times as wide the calibrated interval is."
            )
    if not fit.converged:
        notes.insert(0, "The chains did not converge: these numbers are no estimates.")
    if where:
        notes.insert(0, where)
    multiply = ratios(fit)
    if multiply is not None:
        shown[fit.narrative.ratio] = factors(multiply).reindex(shown.index, fill_value="")
    told = {entry.partition("[")[0] for entry in elsewhere}
    known = {name: text for name, text in fit.meanings.items() if name not in told}
    table = [Table(shown, "Estimates")] if len(shown) else []
    return [*table, Meanings(known), Paragraph(" ".join(notes), quiet=True)]


def posterior(fit: Fitted) -> list[Block]:
    """Densities or intervals, and pairs."""
    size = len(fit.entries)
    many = size > plots.MOST
    if many and not fit.narrative.draws_intervals(fit):
        return []
    text = "Posterior means and 95 % intervals." if many else "Posterior densities; shaded: 95 % interval, line: mean."
    blocks: list[Block] = [Picture(lambda: plots.posterior(fit), text, large=size > 2)]
    if size >= 2:
        few = "" if size <= plots.MOST_PAIRS else f", of the first {plots.MOST_PAIRS} entries"
        blocks.append(Picture(lambda: plots.pairs(fit), f"Posterior draws in pairs{few}.", large=size > 2))
    return blocks


def regression(fit: Fitted) -> list[Block]:
    """Coefficients and residuals of a regression, as far as they were computed."""
    known = None if fit.checks is None else fit.checks.residuals
    if known is None and (fit.model is None or not fit.model.designs):
        return []
    also = " and at beta = 1" if fit.uncalibrated is not None else ""
    caption = f"Coefficients with 95 % intervals, calibrated{also}."
    blocks: list[Block] = [Picture(lambda: plots.coefficients(fit), caption, large=True)]
    if known is not None:
        few = "" if len(known) == fit.data.n else f" of {len(known)} of the {fit.data.n} observations"
        caption = (
            f"Randomised quantile residuals{few} (Dunn and Smyth, 1996), standard normal where the model is right: "
            "against normal quantiles, with two standard errors, and against fitted values."
        )
        blocks.append(Picture(lambda: plots.residuals(fit), caption, large=True))
    return blocks


def forecast(found: Forecast) -> list[Block]:
    """What comes next in a series."""
    caption = (
        f"{found.response} so far and to come: median, and intervals of 50, 80 and 95 % of new observations. These "
        "allow for uncertain parameters, and for all values that come before."
    )
    shown = found.table.rename(columns={"low": f"{found.interval:.0%} from", "high": "to"})
    if shown.index.nlevels > 1:
        shown.index = [", ".join(map(str, key)) for key in shown.index]
    return [Picture(lambda: plots.forecast(found), caption, large=True), Table(shown)]


def calibration(fit: Fitted) -> list[Block]:
    """How the weight came about."""
    blocks: list[Block] = [Paragraph(f"{fit.calibration.message}.")]
    names = outweighed(fit)
    if names:
        where = f"The loss is smallest outside the 95 % interval of {_listed(names, 5)}"
        bounded = fit.loss is None or fit.loss.bounded
        other = "" if bounded else ", or use loss='ratio', whose weight is seldom near zero"
        remedy = f"widen the prior, gather more data{other}."
        blocks.append(Caution(f"{where}: there the prior outweighs the data. What to do: {remedy}"))
    moved = fit.prior_influence
    if moved is not None:
        order = moved["moved"].abs().sort_values(ascending=False).index[:8]
        few = " (the eight that were moved most)" if len(moved) > len(order) else ""
        told = (
            "How far the prior moved each parameter, in posterior standard deviations, and the share of what is known "
            f"that the data gave{few}."
        )
        shown = moved.loc[order].map(lambda value: "–" if np.isnan(value) else f"{value:.2f}")
        shown.columns = ["moved by the prior (sd)", "known from the data"]
        blocks += [Paragraph(told, quiet=True), Table(shown)]
    if fit.imputation is not None:
        lost = pd.Series(fit.imputation.lost).sort_values(ascending=False)
        few = " (the eight with most)" if len(lost) > 8 else ""
        told = f"Share of each parameter's information that is missing with the missing entries{few}."
        shares = pd.DataFrame({"missing information": [f"{share:.0%}" for share in lost[:8]]}, index=lost.index[:8])
        blocks += [Paragraph(told, quiet=True), Table(shares)]
    caption = "Where the loss is smallest on bootstrap data, over draws of the posterior: calibrated means alike."
    if fit.calibration.curvature is not None:
        caption = "What calibration did to each interval; at 1 the loss as it is would have had the right width."
    return [*blocks, Picture(lambda: plots.calibration(fit), caption)]


def influence(fit: Fitted) -> list[Block]:
    """The rows that matter most, where they are known."""
    if fit.influential is None:
        return []
    table = fit.influential.head(10)
    shown = table.assign(shift=[f"{value:+.2f}" for value in table["shift"]]).set_axis(table.index + 1)
    told = (
        "How far one observation of each row moves the parameter that it moves most, in the standard errors that the "
        "others give: from the estimate without it to the estimate with it, by a fit without it where 'refitted' is "
        "true, else by one Newton step. Rows are numbered from 1."
    )
    few = f"Shifts of the {len(fit.influential)} distinct rows that matter most."
    return [Paragraph(told), Table(shown), Picture(lambda: plots.influence(fit), few, large=True)]


def diagnostics(fit: Fitted) -> str:
    """The chains in one clause; nothing where draws are independent."""
    if not kind_of(fit.settings["sampler"]).chained:
        return ""
    summary = fit.summary()
    worst = f"largest R-hat {summary['r_hat'].max():.3f}, " if fit.settings["chains"] > 1 else ""
    return f"{worst}smallest bulk effective sample size {summary['ess_bulk'].min():.0f}"


def chains(fit: Fitted) -> list[Block]:
    """Chain diagnostics and traces."""
    if not kind_of(fit.settings["sampler"]).chained:
        return [Paragraph("The draws are independent, from the normal approximation: there are no chains to check.")]
    stats = fit.groups["sample_stats"].arrays if "sample_stats" in fit.groups else {}
    clauses, summary = [diagnostics(fit)], fit.summary()
    if "diverging" in stats:
        clauses.append(f"{int(stats['diverging'].sum())} divergent transitions")
    for name in ("acceptance_rate", "accepted"):
        if name in stats:
            clauses.append(f"mean acceptance {float(stats[name].mean()):.2f}")
    table = summary[[c for c in ("ess_bulk", "ess_tail", "r_hat", "mcse_mean", "mcse_sd") if c in summary]].copy()
    for name, decimals in (("ess_bulk", 0), ("ess_tail", 0), ("r_hat", 3)):
        if name in table:
            table[name] = [f"{value:.{decimals}f}" for value in table[name]]
    told, few = "; ".join(clauses), ""
    if len(table) > MOST_CHAINS:
        table = table.loc[summary["ess_bulk"].sort_values().index[:MOST_CHAINS]]
        few = f" The {MOST_CHAINS} entries with the smallest effective sample sizes; all are in fit.summary()."
    return [
        Paragraph(f"{told[0].upper()}{told[1:]}.{few}"),
        Table(table),
        Picture(lambda: plots.trace(fit), "Draws in order, one colour per chain.", large=True),
    ]


def predictive(fit: Fitted) -> list[Block]:
    """Whether the model reproduces the data."""
    own, checked = fit.narrative.checks(fit), fit.checks
    if own is not None:
        return own
    if checked is None or checked.goodness is None:
        why = "it was not asked for (check=False)" if checked is None else checked.problem
        return [Paragraph(f"There is no predictive check: {why}")]
    few = f" ({checked.size} of the {fit.data.n}, to save time)" if checked.size < fit.data.n else ""
    told = f"{checked.sets} data sets of {checked.size} observations{few} were simulated from the posterior, "
    told += f"{HOW.get(checked.method, checked.method)}; the p-value is of a test at the estimate."
    told += UNMIXED * (not checked.mixed)
    if fit.imputation is not None:
        told += (
            " The data here are completed rows, with missing entries as the model has them, so that a misfit shows "
            "less than it would in complete data."
        )
    if np.isfinite(checked.p_value):
        told += f" {checked.sentence.rstrip('.')}."
    tails = (
        "A tail is the share of simulated data sets whose statistic is at least the observed one: near 0 or 1 is bad."
    )
    blocks, table = [Paragraph(told), *_misfits(checked), *_predicted(fit, checked)], _statistics(fit, checked)
    if table is not None:
        if "total variation" in table:
            tails += " Total variation is the distance between observed and predicted shares: 0 is equal, 1 is far."
        blocks += [Table(table), Paragraph(tails, quiet=True)]
    return blocks


def _misfits(checked: Checks) -> list[Block]:
    """What differs between model and data beside the first thing, and what to try."""
    if len(checked.misfits) < 2:
        return []
    rows = [(one.sentence, one.remedy) for one in checked.misfits[1:]]
    return [Table(pd.DataFrame(rows, columns=["what differs, too", "what to try"]).set_index("what differs, too"))]


def _predicted(fit: Fitted, checked: Checks) -> list[Block]:
    """Observed beside predicted means, shares and correlations."""
    d, blocks = fit.data.d, list[Block]()
    if grid_of(fit) is not None:
        blocks.append(Picture(lambda: plots.lattice(fit), "Mean of every site, observed and predicted."))
    else:
        few = f" of the first {plots.MOST} columns" if d > plots.MOST else ""
        caption = f"Share of each value{few}: data as bars, the model as points with one standard deviation."
        blocks.append(Picture(lambda: plots.predictive(checked), caption, large=d > 2))
    if checked.pairs is not None and len(checked.pairs) == 1:
        row = checked.pairs.iloc[0].to_dict()
        said = f"The correlation of the two columns is {row['observed']:.2f}; the model predicts {row['predicted']:.2f}"
        blocks.append(Paragraph(f"{said}, with a standard deviation of {row['sd']:.2f} between data sets."))
    elif checked.pairs is not None:
        few = f", the first {MOST_CORRELATIONS}" if d * (d - 1) > 2 * MOST_CORRELATIONS else ""
        caption = f"Correlations of pairs of columns{few}: on the line, the model reproduces them."
        blocks.append(Picture(lambda: plots.correlations(checked), caption))
    return blocks


def _statistics(fit: Fitted, checked: Checks) -> pd.DataFrame | None:
    """Statistics of every column, or of a lattice's edges; none where there are too many columns to read."""
    if checked.equal is not None or checked.table is None:
        return checked.equal
    table = checked.table
    if fit.data.rows.min() < 0 or fit.data.rows.max() <= 1:  # variance over mean says something of counts only
        table = table.drop(columns=["dispersion_index", "predicted_dispersion_index", "dispersion_index_tail"])
    return table.rename(columns=lambda name: name.replace("_", " "))


def reproduce(fit: Fitted) -> list[Block]:
    """Seeds, versions and times."""
    rows = {
        "seed": str(fit.settings["seed"]),
        "versions": ", ".join(f"{name} {number}" for name, number in fit.versions.items()),
        "seconds": ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in fit.timings["seconds"].items()),
        "units resampled": str(fit.settings["units"])
        if fit.settings["bootstrap"] and not fit.calibration.simulated
        else "",
    }
    return [Facts(rows), Paragraph("The same data, settings, seed and versions give the same draws.", quiet=True)]


def paper(fit: Fitted) -> Paper:
    """What to report in a paper: the result, the method with its references, and the software."""
    written = methods.Methods(fit, diagnostics(fit), None if fit.checks is None else fit.checks.goodness)
    tried = "" if fit.checks is None or not fit.checks.misfits else f" {fit.checks.misfits[0].advice}"
    references = tuple(written.references)
    return Paper(fit.answer.removesuffix(tried), written.text, references, methods.citation(fit))
