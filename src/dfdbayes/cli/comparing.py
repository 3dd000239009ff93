"""The commands that put fits side by side: by several losses, and of several models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from . import arguments as arg
from .printing import draw, plain_table, say, tell_written, write_text
from .running import folder_for

COMPARISON = ("comparison.csv", "comparison.png")


def compare(
    data: arg.Data,
    model: arg.ModelName,
    losses: Annotated[str, typer.Option(help="Losses separated by commas.")] = "dfd,ratio,ksd,pseudo,likelihood",
    formula: arg.Formula = None,
    nu: arg.Nu = None,
    zeros: arg.Zeros = None,
    bootstrap: arg.Bootstrap = 400,
    seed: arg.Seed = 0,
    columns: arg.Columns = None,
    weights: arg.Weights = None,
    missing: arg.Missing = "refuse",
    missing_codes: arg.MissingCodes = None,
    decimal: arg.Decimal = None,
    graph: arg.GraphName = None,
    states: arg.States = None,
    rates: arg.Rates = None,
    kinds: arg.Kinds = None,
    levels: arg.Levels = None,
    out: Annotated[Path | None, typer.Option(help="Folder for comparison.csv and comparison.png.")] = None,
    force: arg.Force = False,
    as_json: arg.Json = False,
) -> None:
    """Fit by several losses and print them side by side."""
    from ..families.own.from_file import model_of
    from ..fitting.comparison import compare_losses

    folder = folder_for(data, out, COMPARISON, force, replaces=False)
    compared = compare_losses(
        model_of(model), arg.data_of(data), arg.words_of(losses), seed=seed,
        bootstrap=bootstrap, columns=arg.columns_of(columns), weights=weights, missing=missing,
        missing_codes=arg.codes_of(missing_codes), decimal=decimal,
        options=arg.options_of(graph, states, rates, kinds, levels), formula=formula, check=False,
        **arg.formulas_of(nu, zeros),
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
    tell_written(folder, COMPARISON, as_json)


def choose(
    data: arg.Data,
    models: Annotated[str, typer.Option(help="Models separated by commas: poisson,cmp; also path.py:name.")],
    formula: arg.Formula = None,
    nu: arg.Nu = None,
    zeros: arg.Zeros = None,
    score: Annotated[str, typer.Option(help="auto, likelihood, pseudo, ratio or dfd: how all are judged.")] = "auto",
    folds: Annotated[int, typer.Option(help="Parts of the data that are left out in turn.")] = 10,
    seed: arg.Seed = 0,
    columns: arg.Columns = None,
    weights: arg.Weights = None,
    missing: arg.Missing = "refuse",
    missing_codes: arg.MissingCodes = None,
    decimal: arg.Decimal = None,
    cluster: arg.Cluster = None,
    graph: arg.GraphName = None,
    states: arg.States = None,
    rates: arg.Rates = None,
    kinds: arg.Kinds = None,
    levels: arg.Levels = None,
    as_json: arg.Json = False,
) -> None:
    """Say which of several models predicts best what it has not seen, or that these data cannot tell."""
    from ..families.own.from_file import model_of
    from ..fitting.model_choice import compare_models

    given = arg.options_of(graph, states, rates, kinds, levels)
    found = compare_models(
        {word: model_of(word) for word in arg.words_of(models)}, arg.data_of(data),
        score=score, folds=folds, seed=seed, formula=formula, columns=arg.columns_of(columns),
        weights=weights, missing=missing, missing_codes=arg.codes_of(missing_codes), decimal=decimal, cluster=cluster,
        options={name: value for name, value in given.items() if value is not None} or None,
        **arg.formulas_of(nu, zeros),
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
