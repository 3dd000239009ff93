"""The command that compares models."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from .arguments import (
    Cluster,
    Columns,
    Data,
    Decimal,
    GraphName,
    Json,
    Kinds,
    Levels,
    Missing,
    MissingCodes,
    Rates,
    Seed,
    States,
    Weights,
)
from .running import codes_of, data_of, options_of, plain_table, say


def choose(
    data: Data,
    models: Annotated[str, typer.Option(help="Models separated by commas: poisson,cmp; also path.py:name.")],
    formula: Annotated[str | None, typer.Option(help="A regression, the same for all: 'visits ~ age'.")] = None,
    score: Annotated[str, typer.Option(help="auto, likelihood, pseudo, ratio or dfd: how all are judged.")] = "auto",
    folds: Annotated[int, typer.Option(help="Parts of the data that are left out in turn.")] = 10,
    seed: Seed = 0,
    columns: Columns = None,
    weights: Weights = None,
    missing: Missing = "refuse",
    missing_codes: MissingCodes = None,
    decimal: Decimal = None,
    cluster: Cluster = None,
    graph: GraphName = None,
    states: States = None,
    rates: Rates = None,
    kinds: Kinds = None,
    levels: Levels = None,
    as_json: Json = False,
) -> None:
    """Say which of several models predicts best what it has not seen, or that these data cannot tell."""
    from ..fitting.model_choice import compare_models
    from ..models.from_file import model_of

    given = options_of(graph, states, rates, kinds, levels)
    found = compare_models(
        {word.strip(): model_of(word.strip()) for word in models.split(",") if word.strip()}, data_of(data),
        score=score, folds=folds, seed=seed, formula=formula, columns=columns.split(",") if columns else None,
        weights=weights, missing=missing, missing_codes=codes_of(missing_codes), decimal=decimal, cluster=cluster,
        options={name: value for name, value in given.items() if value is not None} or None,
    )  # fmt: skip
    checks = {name: one.checks.sentence for name, one in found.fits.items() if one.checks is not None}
    if as_json:
        about: dict[str, Any] = {"verdict": found.verdict, "best": list(found.best), "score": found.score}
        about |= {"table": plain_table(found.table.reset_index()), "checks": checks, "failed": found.failed}
        print(json.dumps(about))
        return
    say(f"{found.verdict}.")
    say()
    say(str(found).partition("\n")[2])
    say()
    for name, told in checks.items():
        say(f"{name}: {told}")
    for name, reason in found.failed.items():
        say(f"warning ({name}): not fitted: {reason}")
