"""The sections of a report, each a piece of HTML from a fit. What they show was computed elsewhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
from markupsafe import Markup

from ...core.dataset import column_summary, pooled_summary
from ...families.graph.model import RandomGraph
from ...families.map.model import Autologistic
from ...families.network import evidence
from ...families.network import groups as group_differences
from ...results.checks import Checks
from ...results.fitted import Fitted
from ...results.forecasts import Forecast
from ...results.graph_goodness import GraphGoodness
from ...results.predictive import HOW, MOST_CORRELATIONS
from ...results.uncalibrated import is_calibrated, outweighed, side_by_side
from .. import figures as plots
from ..figures.observed import grid_of
from . import html, wording

MOST_COLUMNS = 40
MOST_CHAINS = 12  # entries whose chains are told of


def warnings(fit: Fitted) -> Markup:
    """Every warning of the run, with its remedy apart; nothing where there is none."""
    return html.joined(map(html.warning, fit.warnings))


def data(fit: Fitted) -> Markup:
    """The data at a glance."""
    if isinstance(fit.model, RandomGraph):
        return _graph(fit.model, fit)
    if isinstance(fit.model, Autologistic):
        return _map(fit.model)
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
    return html.facts(about) + html.table(named) + html.figure(plots.data(observed, shape), caption)


def _graph(model: RandomGraph, fit: Fitted) -> Markup:
    """One observed graph at a glance."""
    graph = model.graph_observed
    own = model.statistics.of(graph.tie_of_dyad[None])[0]
    return html.facts(
        {
            "source": graph.source,
            "graph": "directed" if graph.directed else "undirected",
            "nodes": str(graph.n),
            "ties": f"{graph.ties} of {len(graph.dyads[0])} dyads",
            "distinct dyads": f"{len(fit.data.rows)}, by tie and change statistics",
        }
    ) + html.table(pd.DataFrame({"observed": own}, index=pd.Index(model.statistics.names, name="statistic")))


def _map(model: Autologistic) -> Markup:
    """One observed map at a glance."""
    seen = model.map
    values = seen.values[seen.observed]
    number = np.bincount(values, minlength=len(seen.categories))
    shares = pd.DataFrame({"sites": number, "share": [f"{n / len(values):.1%}" for n in number]}, index=seen.categories)
    shares.index.name = seen.response
    lost = int((~seen.observed).sum())
    return html.facts(
        {
            "source": seen.source,
            "sites": f"{seen.n}, of which losses have a term of {len(seen.used)}",
            "without a value": f"{lost}, {'drawn from the model' if seen.missing == 'impute' else 'left out'}"
            if lost
            else "none",
            "pairs of neighbours": f"{len(seen.edges)}, {2 * len(seen.edges) / seen.n:.1f} neighbours for each site",
            "covariates": ", ".join(seen.labels[1:]) or "none",
        }
    ) + html.table(shares)


def _listed(names: tuple[str, ...], most: int = 30) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def model(fit: Fitted) -> Markup:
    """What was fitted, and how."""
    s, m = fit.settings, fit.minimum
    graph = None if fit.model is None else fit.model.graph
    pairs = 0 if graph is None else len(graph.pairs)
    about = {
        "model": f"{s['model']}: {wording.title(fit)}" if wording.title(fit) != s["model"] else s["model"],
        "values": "" if fit.model is None else repr(fit.model.domain),
        "kinds": (s.get("kinds") or "").removeprefix("kinds, "),
        "edges": str(pairs) if pairs else "",
        "priors": wording.priors(fit),
        "loss": wording.loss(fit),
        "chosen because": s["loss_reason"],
        "weights of rows": s.get("loss_weight") or "",
        "minimiser": _first(m.names, [f"{v:.5g}" for v in m.vector], " = ", 8),
        "search": m.message,
        "parameter space": _first(m.bounds, [f"[{a:.3g}, {b:.3g}]" for a, b in m.bounds.values()], " in ", 4),
        "calibration": s["calibration"] + (f", {s['bootstrap']} bootstrap fits" if s["bootstrap"] else ""),
        "weight": f"beta = {fit.beta:.5g}",
        "sampler": fit.sampling,
    }
    mass = html.formula(wording.formula(fit))
    loss = "" if fit.loss is None else fit.loss.formula
    told = html.formula(Markup("posterior ∝ prior × exp(−β D(θ)), &nbsp; " + loss)) if loss else Markup("")
    return mass + told + html.facts(about)


def _first(names: object, texts: list[str], between: str, most: int = 12) -> str:
    listed = [f"{name}{between}{text}" for name, text in zip(list(names), texts, strict=True)]  # type: ignore[call-overload]
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def estimates(fit: Fitted, summary: pd.DataFrame) -> Markup:
    """Calibrated and uncalibrated intervals side by side; the edges of a network have a table of their own."""
    apart = evidence.is_network(fit) and not evidence.varies(fit) and fit.converged
    kept = [not (apart and str(name).startswith("interaction[")) for name in summary.index]
    shown, notes = summary.loc[kept, ["mean", "sd"]].copy(), []
    if summary["mean"].isna().any():
        shown.insert(0, "median", summary.loc[kept, "median"])
        notes.append("Where a few huge draws decide the mean it is left out: read the median.")
    own = pd.Series(html.between(summary["eti95_lb"], summary["eti95_ub"]), summary.index)[kept]
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
            shown["uncalibrated, β = 1"] = pd.Series(html.between(both["beta1_low"], both["beta1_high"]), both.index)
            shown["width ratio"] = [f"{ratio:.2f}" for ratio in both["width_ratio"][shown.index]]
            notes.append(
                "The uncalibrated intervals are those of the same loss and prior with beta = 1, by "
                "the normal approximation. The width ratio says how many times as wide the calibrated interval is."
            )
    if not fit.converged:
        notes.insert(0, "The chains did not converge: these numbers are no estimates.")
    if not all(kept):
        notes.insert(0, "Edges are in the section Network, above.")
    known = {name: text for name, text in fit.meanings.items() if name != "interaction" or all(kept)}
    table = html.table(html.with_ratios(shown, fit), label="Estimates") if len(shown) else Markup("")
    return table + html.meanings(known) + html.paragraph(" ".join(notes), "quiet")


def posterior(fit: Fitted) -> Markup:
    """Densities or intervals, and pairs; nothing for a large network, whose intervals are in the table of its edges."""
    if evidence.is_network(fit) and len(fit.entries) > plots.MOST:
        return Markup("")
    text = "Posterior densities; shaded: 95 % interval, line: mean."
    if len(fit.entries) > plots.MOST:
        text = "Posterior means and 95 % intervals."
    parts = [html.figure(plots.posterior(fit), text, large=len(fit.entries) > 2)]
    if len(fit.entries) >= 2:
        few = "" if len(fit.entries) <= plots.MOST_PAIRS else f", of the first {plots.MOST_PAIRS} entries"
        parts.append(html.figure(plots.pairs(fit), f"Posterior draws in pairs{few}.", large=len(fit.entries) > 2))
    return html.joined(parts)


def regression(fit: Fitted) -> Markup:
    """Coefficients and residuals of a regression, as far as they were computed."""
    known = None if fit.checks is None else fit.checks.residuals
    if known is None and (fit.model is None or not fit.model.designs):
        return Markup("")
    plain = " and at beta = 1" if fit.uncalibrated is not None else ""
    parts = [html.figure(plots.coefficients(fit), f"Coefficients with 95 % intervals, calibrated{plain}.", large=True)]
    if known is not None:
        few = "" if len(known) == fit.data.n else f" of {len(known)} of the {fit.data.n} observations"
        caption = (
            f"Randomised quantile residuals{few} (Dunn and Smyth, 1996), standard normal where the model is right: "
            "against normal quantiles, with two standard errors, and against fitted values."
        )
        parts.append(html.figure(plots.residuals(fit), caption, large=True))
    return html.joined(parts)


def forecast(found: Forecast) -> Markup:
    """What comes next in a series."""
    caption = (
        f"{found.response} so far and to come: median, and intervals of 50, 80 and 95 % of new observations. These "
        "allow for uncertain parameters, and for all values that come before."
    )
    shown = found.table.rename(columns={"low": f"{found.interval:.0%} from", "high": "to"})
    if shown.index.nlevels > 1:
        shown.index = [", ".join(map(str, key)) for key in shown.index]
    return html.joined([html.figure(plots.forecast(found), caption, large=True), html.table(shown)])


def groups(fit: Fitted) -> Markup:
    """How the networks of groups differ, for every factor on the edges."""
    return html.joined(_of_factor(fit, factor) for factor in group_differences.factors(fit))


def _of_factor(fit: Fitted, factor: str) -> Markup:
    found = group_differences.group_differences(fit, factor)
    table = found.table
    shown = pd.DataFrame(
        {
            "levels": [f"{a} − {b}" for a, b in zip(table["group"], table["reference"], strict=True)],
            "estimates": [f"{a:.3g}, {b:.3g}" for a, b in zip(table["in_group"], table["in_reference"], strict=True)],
            "difference": table["difference"].to_numpy(),
            "95 % interval": html.between(table["low"], table["high"]),
            "Bayes factor": [evidence.as_text(b) for b in table["bayes_factor"]],
            "verdict": table["verdict"].to_numpy(),
        },
        index=pd.Index([f"{a} – {b}" for a, b in zip(table["from"], table["to"], strict=True)], name="edge"),
    )
    caption = (
        f"Networks of {factor} on one scale, and differences from {found.levels[0]}. Width: strength; colour: sign. "
        "Full line: different; dashed: inconclusive; dotted grey: alike."
    )
    return (
        html.paragraph(str(found))
        + html.figure(plots.group_networks(fit, factor, found), caption, large=True)
        + html.paragraph(group_differences.rule(fit), "quiet")
        + html.table(shown, rest=f"in dfdbayes.group_differences(fit, '{factor}').table")
    )


def calibration(fit: Fitted) -> Markup:
    """How the weight came about."""
    parts = [html.paragraph(f"{fit.calibration.message}.")]
    names = outweighed(fit)
    if names:
        where = f"The loss is smallest outside the 95 % interval of {_listed(names, 5)}"
        bounded = fit.loss is None or fit.loss.bounded
        other = "" if bounded else ", or use loss='ratio', whose weight is seldom near zero"
        remedy = f"widen the prior, gather more data{other}."
        parts.append(html.warning(f"{where}: there the prior outweighs the data. What to do: {remedy}"))
    influence = fit.prior_influence
    if influence is not None:
        order = influence["moved"].abs().sort_values(ascending=False).index[:8]
        few = " (the eight that were moved most)" if len(influence) > len(order) else ""
        told = (
            "How far the prior moved each parameter, in posterior standard deviations, and the share of what is known"
        )
        shown = influence.loc[order].map(lambda value: "–" if np.isnan(value) else f"{value:.2f}")
        shown.columns = ["moved by the prior (sd)", "known from the data"]
        parts.append(html.paragraph(f"{told} that the data gave{few}.", "quiet") + html.table(shown))
    if fit.imputation is not None:
        lost = pd.Series(fit.imputation.lost).sort_values(ascending=False)
        few = " (the eight with most)" if len(lost) > 8 else ""
        told = f"Share of each parameter's information that is missing with the missing entries{few}."
        table = pd.DataFrame({"missing information": [f"{share:.0%}" for share in lost[:8]]}, index=lost.index[:8])
        parts.append(html.paragraph(told, "quiet") + html.table(table))
    cloud = plots.calibration(fit)
    if cloud is not None:
        caption = "Where the loss is smallest on bootstrap data, over draws of the posterior: calibrated means alike."
        if fit.calibration.curvature is not None:
            caption = "What calibration did to each interval; at 1 the loss as it is would have had the right width."
        parts.append(html.figure(cloud, caption))
    return html.joined(parts)


def influence(fit: Fitted) -> Markup:
    """The rows that matter most, where they are known."""
    if fit.influential is None:
        return html.joined([])
    table = fit.influential.head(10)
    shown = table.assign(shift=[f"{value:+.2f}" for value in table["shift"]]).set_axis(table.index + 1)
    told = (
        "How far one observation of each row moves the parameter that it moves most, in the standard errors that the "
        "others give: from the estimate without it to the estimate with it, by a fit without it where 'refitted' is "
        "true, else by one Newton step. Rows are numbered from 1."
    )
    few = f"Shifts of the {len(fit.influential)} distinct rows that matter most."
    picture = html.figure(plots.influence(fit), few, large=True)
    return html.joined([html.paragraph(told), html.table(shown), picture])


def diagnostics(fit: Fitted, summary: pd.DataFrame) -> str:
    """The chains in one clause; nothing where draws are independent."""
    if fit.settings["sampler"] == "laplace":
        return ""
    worst = f"largest R-hat {summary['r_hat'].max():.3f}, " if fit.settings["chains"] > 1 else ""
    return f"{worst}smallest bulk effective sample size {summary['ess_bulk'].min():.0f}"


def chains(fit: Fitted, summary: pd.DataFrame) -> Markup:
    """Chain diagnostics and traces."""
    if fit.settings["sampler"] == "laplace":
        return html.paragraph("The draws are independent, from the normal approximation: there are no chains to check.")
    stats = fit.groups["sample_stats"].arrays if "sample_stats" in fit.groups else {}
    clauses = [diagnostics(fit, summary)]
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
    return (
        html.paragraph(f"{told[0].upper()}{told[1:]}.{few}")
        + html.table(table)
        + html.figure(plots.trace(fit), "Draws in order, one colour per chain.", large=True)
    )


def predictive(fit: Fitted) -> Markup:
    """Whether the model reproduces the data."""
    checked = fit.checks
    if checked is not None and checked.graph is not None:
        return _graph_goodness(checked.graph)
    if checked is not None and checked.sites is not None:
        return _like_the_map(fit, checked)
    if checked is None or checked.goodness is None:
        why = "it was not asked for (check=False)" if checked is None else checked.problem
        return html.paragraph(f"There is no predictive check: {why}")
    few = f" ({checked.size} of the {fit.data.n}, to save time)" if checked.size < fit.data.n else ""
    told = f"{checked.sets} data sets of {checked.size} observations{few} were simulated from the posterior, "
    told += f"{HOW.get(checked.method, checked.method)}; the p-value is of a test at the estimate."
    if not checked.mixed:
        told += " The simulated chains may not have mixed: treat this check with care."
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
    pictures, table = _predicted_pictures(fit, checked), _checks(fit, checked)
    parts = [html.paragraph(told), *_misfits(checked), *pictures]
    if table is not None:
        if "total variation" in table:
            tails += " Total variation is the distance between observed and predicted shares: 0 is equal, 1 is far."
        parts += [html.table(table), html.paragraph(tails, "quiet")]
    return html.joined(parts)


def _misfits(checked: Checks) -> list[Markup]:
    """What differs between model and data beside the first thing, and what to try."""
    if len(checked.misfits) < 2:
        return []
    rows = [(one.sentence, one.remedy) for one in checked.misfits[1:]]
    return [html.table(pd.DataFrame(rows, columns=["what differs, too", "what to try"]).set_index("what differs, too"))]


def _graph_goodness(found: GraphGoodness) -> Markup:
    """Features of the observed graph beside those of simulated ones."""
    told = f"{found.size} graphs were simulated at the posterior mean ({found.method})."
    if not found.mixed:
        told += " The simulated chains may not have mixed: treat this check with care."
    caption = (
        "Degrees, geodesic distances, edgewise shared partners and triads (Hunter, Goodreau and Handcock, 2008): bands "
        "hold 95 % of the simulated graphs, points are the observed graph, red where they lie outside."
    )
    table = found.statistics.rename(columns={"p_value": "p-value"})
    return html.paragraph(told) + html.figure(plots.graph_goodness(found), caption, large=True) + html.table(table)


def _like_the_map(fit: Fitted, checked: Checks) -> Markup:
    """The observed map beside simulated ones."""
    told = f"{checked.sets} maps were simulated from the posterior ({checked.method})."
    if not checked.mixed:
        told += " The simulated chains may not have mixed: treat this check with care."
    tails = (
        "A tail is the share of simulated maps whose statistic is at least the observed one: near 0 or 1 is bad. How "
        "many neighbours are alike is a join count, as a share."
    )
    parts = [html.paragraph(told)]
    if isinstance(fit.model, Autologistic) and fit.model.map.cells is not None:
        caption = "The observed map, and what the model says of each site with and without knowing the others."
        parts.append(html.figure(plots.sites(fit), caption, large=True))
    table = pd.DataFrame() if checked.equal is None else checked.equal
    return html.joined([*parts, html.table(table), html.paragraph(tails, "quiet")])


def _predicted_pictures(fit: Fitted, checked: Checks) -> list[Markup]:
    d, parts = fit.data.d, []
    if grid_of(fit) is not None:
        parts.append(html.figure(plots.lattice(fit), "Mean of every site, observed and predicted."))
    else:
        few = f" of the first {plots.MOST} columns" if d > plots.MOST else ""
        caption = f"Share of each value{few}: data as bars, the model as points with one standard deviation."
        parts.append(html.figure(plots.predictive(checked), caption, large=d > 2))
    if checked.pairs is not None and len(checked.pairs) == 1:
        row = checked.pairs.iloc[0].to_dict()
        said = f"The correlation of the two columns is {row['observed']:.2f}; the model predicts {row['predicted']:.2f}"
        parts.append(html.paragraph(f"{said}, with a standard deviation of {row['sd']:.2f} between data sets."))
    elif checked.pairs is not None:
        few = f", the first {MOST_CORRELATIONS}" if d * (d - 1) > 2 * MOST_CORRELATIONS else ""
        caption = f"Correlations of pairs of columns{few}: on the line, the model reproduces them."
        parts.append(html.figure(plots.correlations(checked), caption))
    return parts


def _checks(fit: Fitted, checked: Checks) -> pd.DataFrame | None:
    """Statistics of every column, or of a lattice's edges; none where there are too many columns to read."""
    if checked.equal is not None or checked.table is None:
        return checked.equal
    table = checked.table
    if fit.data.rows.min() < 0 or fit.data.rows.max() <= 1:  # variance over mean says something of counts only
        table = table.drop(columns=["dispersion_index", "predicted_dispersion_index", "dispersion_index_tail"])
    return table.rename(columns=lambda name: name.replace("_", " "))


def reproduce(fit: Fitted) -> Markup:
    """Seeds, versions and times."""
    rows = {
        "seed": str(fit.settings["seed"]),
        "versions": ", ".join(f"{name} {number}" for name, number in fit.versions.items()),
        "seconds": ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in fit.timings["seconds"].items()),
        "units resampled": str(fit.settings["units"])
        if fit.settings["bootstrap"] and not fit.calibration.simulated
        else "",
    }
    return html.facts(rows) + html.paragraph("The same data, settings, seed and versions give the same draws.", "quiet")


def methods(fit: Fitted, summary: pd.DataFrame) -> Markup:
    """What to report in a paper: the result, the method with its references, and the software."""
    written = wording.Methods(fit, diagnostics(fit, summary), None if fit.checks is None else fit.checks.goodness)
    tried = "" if fit.checks is None or not fit.checks.misfits else f" {fit.checks.misfits[0].advice}"
    return html.paper(fit.answer.removesuffix(tried), written.text, written.references, wording.citation(fit))
