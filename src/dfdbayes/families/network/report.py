"""What a document says of networks alone: the edges, judged, the nodes, and how groups differ."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...present import html
from ...present.blocks import Block, Interactive, Meanings, Paragraph, Picture, Table, between, cell
from ...results.fitted import Fitted
from . import evidence, figure, groups, interactive
from .nodes import node_table

CHOSEN = "Probability that the edge is there (inclusion, all graphs considered)"
OUTSIDE = "Posterior probability that the interaction does not count as none"


def network(fit: Fitted) -> list[Block]:
    """The network with its edges judged, and what its nodes amount to."""
    chosen, table, most = evidence.chooses(fit), evidence.edges(fit), figure.MOST_EDGES
    nodes = node_table(fit)
    weakens = bool((table["sign"] < 0).all())
    way = "In this model all interactions are negative: much of one goes with little of the other. " if weakens else ""
    few = f" Only the {most} strongest edges are drawn." if len(table) > most else ""
    looks = "Width: strength. Colour: sign. Full line: present; dashed: inconclusive; dotted grey: absent."
    shown = _edges(table, chosen)
    facts = [dict(zip(shown.columns, map(cell, row), strict=True)) for row in shown.to_numpy(dtype=object)]
    chance = (table["inclusion"] if chosen else 1.0 - table["inside"]).to_numpy()
    likely = evidence.STRONG / (1.0 + evidence.STRONG)  # where the Bayes factor is strong, at even prior odds
    slider = (likely, CHOSEN) if chosen else (evidence.LEVEL, OUTSIDE)
    answers = interactive.network(fit.data.columns, table, chance, *slider, facts, _facts(nodes))
    style, script = (html.text_of(name, interactive.HERE) for name in ("network.css", "network.js"))
    still = Picture(lambda: figure.network(fit, table), looks + few)
    return [
        Interactive(answers, style, script, still, "The network as a figure for a paper"),
        Paragraph(way + evidence.rule(fit) + (_chosen(table) if chosen else ""), quiet=True),
        Table(shown, "Edges", "edge", most, "in dfdbayes.evidence.edges(fit)", sortable=True),
        Meanings({"interaction": fit.meanings["interaction"]}),
        *_nodes(fit, nodes),
    ]


def differences(fit: Fitted, factor: str) -> list[Block]:
    """How the networks of the groups of a factor differ."""
    found = groups.group_differences(fit, factor)
    table = found.table
    shown = pd.DataFrame(
        {
            "levels": [f"{a} − {b}" for a, b in zip(table["group"], table["reference"], strict=True)],
            "estimates": [f"{a:.3g}, {b:.3g}" for a, b in zip(table["in_group"], table["in_reference"], strict=True)],
            "difference": table["difference"].to_numpy(),
            "95 % interval": between(table["low"], table["high"]),
            "Bayes factor": [evidence.as_text(b) for b in table["bayes_factor"]],
            "verdict": table["verdict"].to_numpy(),
        },
        index=[f"{a} – {b}" for a, b in zip(table["from"], table["to"], strict=True)],
    )
    caption = (
        f"Networks of {factor} on one scale, and differences from {found.levels[0]}. Width: strength; colour: sign. "
        "Full line: different; dashed: inconclusive; dotted grey: alike."
    )
    return [
        Paragraph(str(found)),
        Picture(lambda: figure.group_networks(fit, factor, found), caption, large=True),
        Paragraph(groups.rule(fit), quiet=True),
        Table(shown, corner="edge", rest=f"in dfdbayes.group_differences(fit, '{factor}').table"),
    ]


def _edges(table: pd.DataFrame, chosen: bool) -> pd.DataFrame:
    """The edges as a page shows them, with what their verdicts rest on."""
    shown = {"interaction": table["mean"].to_numpy(), "95 % interval": between(table["low"], table["high"])}
    if chosen:
        shown["Bayes factor"] = [evidence.as_text(factor) for factor in table["bayes_factor"]]
        shown["inclusion"] = [f"{p:.1%}" for p in table["inclusion"]]
    else:
        shown["none up to"] = table["region"].to_numpy()
        shown["P(none)"] = [f"{p:.1%}" for p in table["inside"]]
        shown["prior P(none)"] = ["unknown" if np.isnan(p) else f"{p:.1%}" for p in table["prior_inside"]]
    shown["evidence"] = table["evidence"].to_numpy()
    return pd.DataFrame(shown, index=[f"{a} – {b}" for a, b in zip(table["from"], table["to"], strict=True)])


def _chosen(table: pd.DataFrame) -> str:
    """What inclusion is, and how many verdicts are expected to be wrong."""
    there = int((table["evidence"] == evidence.PRESENT).sum())
    false = evidence.expected(there, table.attrs["expected_false_edges"])
    return (
        " Inclusion is the probability that the edge is there, as likely as not beforehand; the inclusion Bayes factor "
        "is its odds over those of the prior, which are 1."
        + (f" {there} {'is' if there == 1 else 'are'} present{false}." if there else "")
    )


def _facts(nodes: pd.DataFrame) -> dict[str, dict[str, str]]:
    """What is told of each node."""
    found = {}
    for name, row in nodes.iterrows():
        own = {}
        for key, word in (("strength", "strength"), ("influence", "expected influence"), ("predictability",) * 2):
            (interval,) = between([row[f"{key}_low"]], [row[f"{key}_high"]])
            chance = row.get(f"{key}_by_chance", np.nan)
            also = "" if np.isnan(chance) else f" (by chance alone {chance:.3g})"
            own[word] = "not known" if np.isnan(row[key]) else f"{row[key]:.3g}, 95 % {interval}{also}"
        found[str(name)] = own
    return found


def _nodes(fit: Fitted, nodes: pd.DataFrame) -> list[Block]:
    few = f" Only the {figure.MOST_NODES} strongest are shown." if len(nodes) > figure.MOST_NODES else ""
    chance = not nodes["strength_by_chance"].isna().all()
    grey = " Grey strokes: what a node without any edge would show on average, by chance alone." if chance else ""
    covariates = " and the covariates" if fit.data.given is not None else ""
    caption = f"Nodes, with calibrated 95 % intervals, the strongest on top.{grey}{few}"
    text = (
        "Strength is the sum of a node's absolute interactions; expected influence that of the interactions with their "
        f"signs; predictability the share of the column's variance that the other columns{covariates} explain "
        "(Bayesian R-squared). Strength and predictability are never negative, so that an interval above zero is no "
        f"evidence of an edge{': compare with what chance alone would show' * chance}. All are in fit.nodes()."
    )
    return [
        Picture(lambda: figure.centrality(fit, nodes), caption, large=True),
        Paragraph(text, quiet=True),
    ]
