"""The commands that put fits side by side: by several losses, and of several models."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from .arguments import (
    Bootstrap,
    Cluster,
    Columns,
    Data,
    Decimal,
    Force,
    Formula,
    GraphName,
    Json,
    Kinds,
    Levels,
    Missing,
    MissingCodes,
    ModelName,
    Nu,
    Rates,
    Seed,
    States,
    Weights,
    Zeros,
)
from .running import (
    codes_of,
    data_of,
    draw,
    formulas_of,
    options_of,
    plain_table,
    require_free,
    require_outputs,
    say,
    tell,
    write_text,
)

COMPARISON = ("comparison.csv", "comparison.png")


def compare(
    data: Data,
    model: ModelName,
    losses: Annotated[str, typer.Option(help="Losses separated by commas.")] = "dfd,ratio,ksd,pseudo,likelihood",
    formula: Formula = None,
    nu: Nu = None,
    zeros: Zeros = None,
    bootstrap: Bootstrap = 400,
    seed: Seed = 0,
    columns: Columns = None,
    weights: Weights = None,
    missing: Missing = "refuse",
    missing_codes: MissingCodes = None,
    decimal: Decimal = None,
    graph: GraphName = None,
    states: States = None,
    rates: Rates = None,
    kinds: Kinds = None,
    levels: Levels = None,
    out: Annotated[Path | None, typer.Option(help="Folder for comparison.csv and comparison.png.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Fit by several losses and print them side by side."""
    from .._util.files import require_writable
    from ..families.own.from_file import model_of
    from ..fitting.comparison import compare_losses

    folder = require_writable(out) if out is not None else None
    if folder is not None:
        require_outputs(data, folder, COMPARISON, force=True)
        require_free(folder, COMPARISON, force)
    compared = compare_losses(
        model_of(model), data_of(data), [word.strip() for word in losses.split(",") if word.strip()], seed=seed,
        bootstrap=bootstrap, columns=columns.split(",") if columns else None, weights=weights, missing=missing,
        missing_codes=codes_of(missing_codes), decimal=decimal,
        options=options_of(graph, states, rates, kinds, levels), formula=formula, **formulas_of(nu, zeros), check=False,
    )  # fmt: skip
    if folder is not None:
        from .. import plots

        write_text(folder / "comparison.csv", compared.table.to_csv())
        draw(folder / "comparison.png", plots.comparison(compared))
    if as_json:
        warned = {word: list(result.warnings) for word, result in compared.fits.items()}
        table = plain_table(compared.table.reset_index())
        told = {word: agreement.sentence for word, agreement in compared.agreements.items()}
        print(json.dumps({"table": table, "warnings": warned, "failed": compared.failed, "agreements": told}))
    else:
        say(compared.table.to_string(float_format=lambda value: f"{value:.4f}"))
        for agreement in compared.agreements.values():
            say(agreement.sentence)
        for word, result in compared.fits.items():
            for warning in result.warnings:
                say(f"warning ({word}): {warning}")
        for word, reason in compared.failed.items():
            say(f"warning ({word}): not fitted: {reason}")
    if folder is not None:
        tell(f"written to {folder}{os.sep}: comparison.csv, comparison.png", as_json)


def choose(
    data: Data,
    models: Annotated[str, typer.Option(help="Models separated by commas: poisson,cmp; also path.py:name.")],
    formula: Formula = None,
    nu: Nu = None,
    zeros: Zeros = None,
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
    from ..families.own.from_file import model_of
    from ..fitting.model_choice import compare_models

    given = options_of(graph, states, rates, kinds, levels)
    found = compare_models(
        {word.strip(): model_of(word.strip()) for word in models.split(",") if word.strip()}, data_of(data),
        score=score, folds=folds, seed=seed, formula=formula, columns=columns.split(",") if columns else None,
        weights=weights, missing=missing, missing_codes=codes_of(missing_codes), decimal=decimal, cluster=cluster,
        options={name: value for name, value in given.items() if value is not None} or None, **formulas_of(nu, zeros),
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
