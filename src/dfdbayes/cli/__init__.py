"""The command line: the same calls as in Python. The only module that prints."""

from __future__ import annotations

import atexit
import gc
import json
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from .._util.files import misspelt, require_here, require_writable
from ..errors import DfdbayesError, SettingError, close, some
from . import arguments as arg
from .comparing import choose, compare
from .compiled import keep_compiled_code
from .predicting import forecast, predict
from .printing import draw, lasting, plain_table, say, show, show_description, tell, tell_written, write_text
from .running import cluster_at, run_fit

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Calibrated Bayesian inference for discrete data whose likelihood nobody can compute.\n\n"
    "Examples:\n\n"
    "  dfdbayes demo\n\n"
    "  dfdbayes visits.csv    (what is in the file, and which command fits it)\n\n"
    "  dfdbayes fit visits.csv --model cmp --out runs/visits\n\n"
    "  dfdbayes fit table.csv --model cmp --weights count\n\n"
    "  dfdbayes choose visits.csv --models poisson,cmp    (which predicts best)\n\n"
    "  dfdbayes fit answers.csv --model ising-network --loss ratio --json\n\n"
    "  dfdbayes fit ties.csv --model graph --nodes people.csv --terms 'edges + gwesp(0.25)'\n\n"
    "  dfdbayes fit map.csv --model autologistic --formula 'present ~ altitude' --at row,col\n\n"
    "  dfdbayes fit visits.csv --model mymodels.py:hurdle    (runs the code in mymodels.py)\n\n"
    "  dfdbayes fit visits.csv --model cmp --out runs/visits --resume    (after an interruption)\n\n"
    "  dfdbayes rerun runs/visits\n\n"
    "  dfdbayes summary runs/visits/posterior.nc",
)


def _tell_version(asked: bool) -> None:
    """Print the version and end."""
    if asked:
        from .._version import VERSION

        say(f"dfdbayes {VERSION}")
        raise typer.Exit


@app.callback()
def _before(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command("fit")
def fit_command(
    data: arg.Data,
    model: arg.ModelName,
    formula: arg.Formula = None,
    nu: arg.Nu = None,
    zeros: arg.Zeros = None,
    interaction: arg.Interaction = None,
    loss: Annotated[str, typer.Option(help="auto, dfd, ratio, ksd, pseudo, likelihood or robust.")] = "auto",
    beta: Annotated[float | None, typer.Option(help="The weight by hand; nothing is calibrated then.")] = None,
    calibration: Annotated[
        str | None, typer.Option(help="curvature, score-matching, score-matching-invariant, gpc, lyddon, none.")
    ] = None,
    prior: Annotated[str | None, typer.Option(help="paper: the priors of Matsubara et al. (2024).")] = None,
    on_failure: Annotated[
        str, typer.Option(help="raise, or fallback: another calibration if there is no beta.")
    ] = "raise",
    bootstrap: arg.Bootstrap = None,
    resampling: Annotated[
        str, typer.Option(help="multinomial, dirichlet, windows (of a series) or parametric.")
    ] = "multinomial",
    sampler: Annotated[str, typer.Option(help="auto, nuts, hmc, independence, random-walk or laplace.")] = "auto",
    draws: Annotated[int | None, typer.Option(help="Draws a chain.")] = None,
    warmup: Annotated[int | None, typer.Option(help="Warm-up steps a chain.")] = None,
    chains: Annotated[int | None, typer.Option(help="Chains.")] = None,
    seed: arg.Seed = 0,
    columns: arg.Columns = None,
    weights: arg.Weights = None,
    weighting: arg.Weighting = "auto",
    missing: arg.Missing = "refuse",
    missing_codes: arg.MissingCodes = None,
    decimal: arg.Decimal = None,
    cluster: arg.Cluster = None,
    time: arg.Time = None,
    graph: arg.GraphName = None,
    states: arg.States = None,
    rates: arg.Rates = None,
    kinds: arg.Kinds = None,
    levels: arg.Levels = None,
    terms: arg.Terms = None,
    nodes: arg.Nodes = None,
    directed: arg.Directed = None,
    at: arg.At = None,
    neighbours: arg.Neighbours = None,
    dask: arg.Dask = None,
    check: arg.Check = True,
    out: arg.Out = None,
    resume: arg.Resume = False,
    force: arg.Force = False,
    as_json: arg.Json = False,
    timings: arg.Timings = False,
) -> None:
    """Fit a model to data and print the calibrated posterior."""
    run_fit(
        data, out, timings, dask, resume, force, as_json, model=model, loss=loss, beta=beta, calibration=calibration,
        prior=prior, on_failure=on_failure, bootstrap=bootstrap, resampling=resampling, sampler=sampler, draws=draws,
        warmup=warmup, chains=chains, seed=seed, columns=arg.columns_of(columns), weights=weights,
        weighting=weighting, missing=missing, missing_codes=arg.codes_of(missing_codes), decimal=decimal,
        cluster=cluster, time=time, formula=formula, **({} if check else {"check": False}),
        options=arg.options_of(graph, states, rates, kinds, levels, terms, nodes, directed, at, neighbours),
        **arg.formulas_of(nu, zeros, interaction),
    )  # fmt: skip


app.command()(forecast)
app.command()(predict)


@app.command("describe")
def describe_command(
    data: arg.Data, missing_codes: arg.MissingCodes = None, decimal: arg.Decimal = None, as_json: arg.Json = False
) -> None:
    """Say what each column of a file is, what is wrong with it, and which command fits it."""
    from ..fitting.describe import describe

    show_description(describe(arg.data_of(data), missing_codes=arg.codes_of(missing_codes), decimal=decimal), as_json)


@app.command()
def demo(
    out: arg.Out = Path("runs/sales"), seed: arg.Seed = 0, timings: arg.Timings = False, force: arg.Force = False
) -> None:
    """Fit the Conway-Maxwell-Poisson model to the built-in sales data."""
    run_fit("sales", out, timings, force=force, model="cmp", loss="dfd", prior="paper", seed=seed)


app.command()(compare)
app.command()(choose)


@app.command("coverage")
def coverage_command(
    model: arg.ModelName,
    theta: Annotated[str, typer.Option(help="The true parameters in order, separated by commas: 4,0.75.")],
    n: Annotated[int, typer.Option(help="Observations in each data set.")],
    replicates: Annotated[int, typer.Option(help="Data sets.")] = 200,
    loss: Annotated[str, typer.Option(help="auto, dfd, ratio, ksd, pseudo, likelihood or robust.")] = "auto",
    calibration: Annotated[str | None, typer.Option(help="As for fit.")] = None,
    bootstrap: arg.Bootstrap = 400,
    sampler: Annotated[str, typer.Option(help="As for fit.")] = "auto",
    seed: arg.Seed = 0,
    graph: arg.GraphName = None,
    states: arg.States = None,
    rates: arg.Rates = None,
    dask: arg.Dask = None,
    out: Annotated[Path | None, typer.Option(help="Folder for coverage.csv, coverage.png and kept replicates.")] = None,
    as_json: arg.Json = False,
) -> None:
    """Simulate data sets, fit them all, and report how often intervals hold the truth."""
    from .. import families as models
    from .. import plots
    from ..core.graphs import parse
    from ..families.own.from_file import model_of
    from ..fitting.coverage import coverage

    folder = require_writable(out) if out is not None else None
    kept = None if folder is None else require_here(folder / "replicates.jsonl")
    width = parse(graph).size if graph else 1
    named = model_of(model)
    made = models.by_name(named, width, arg.options_of(graph, states, rates)) if isinstance(named, str) else named
    with cluster_at(dask) as client:
        found = coverage(
            made, arg.numbers_of(theta), n, replicates, loss=loss, calibration=calibration, client=client,
            bootstrap=bootstrap, sampler=sampler, seed=seed, path=kept,
        )  # fmt: skip
    if folder is not None:
        write_text(folder / "coverage.csv", found.table.to_csv(index_label="parameter"))
        draw(folder / "coverage.png", plots.coverage(found))
    if as_json:
        table = plain_table(found.table.reset_index(names="parameter"))
        print(json.dumps({"table": table, "fitted": found.replicates, "failures": found.failures}))
    else:
        say(found.table.to_string(float_format=lambda value: f"{value:.3f}"))
        say(f"{found.replicates} of {replicates} data sets were fitted")
        for reason, count in found.failures.items():
            say(f"warning: {count} ended in {reason}")
    tell_written(folder, ("coverage.csv", "coverage.png", "replicates.jsonl"), as_json)


@app.command()
def reproduce(
    experiments: Annotated[list[str] | None, typer.Argument(help="Names of experiments; all by default.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes instead of the paper's full settings.")] = False,
    data: Annotated[
        Path | None, typer.Option(envvar="DFDBAYES_DATA", help="The folder of data that are not in the package.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for index.html, figures and numbers.")] = Path("runs/reproduction"),
    force: Annotated[bool, typer.Option("--force", help="Run experiments anew whose numbers the folder has.")] = False,
) -> None:
    """Run the paper's experiments and write one page with the paper's numbers beside ours.

    Experiments whose numbers the folder has already are kept, so that a run that was interrupted goes on.
    """
    from ..experiments import NAMES, Settings, run
    from ..experiments.page import kept, write_finding, write_page
    from ..results.saving import versions

    for name in experiments or ():
        if name not in NAMES:
            raise SettingError(f"there is no experiment '{name}'{close(name, NAMES) or f'; known: {some(NAMES, 20)}'}")
    folder = require_writable(out)
    chosen = experiments or list(NAMES)
    for number, name in enumerate(chosen, 1):
        if not force and kept(name, folder, quick):
            say(f"[{number}/{len(chosen)}] {name}: there already (--force runs it anew)")
            continue
        print(f"[{number}/{len(chosen)}] {name} ...", end=" ", flush=True)
        began = perf_counter()
        finding = run(name, Settings(quick, data))
        taken = perf_counter() - began
        write_finding(name, finding, folder, taken, quick)
        write_page(NAMES, folder, versions()["dfdbayes"])
        print("skipped: no data" if finding.skipped else f"{taken:.0f} s", flush=True)
        if finding.skipped:
            say(f"  {finding.text}")
    say(f"written to {folder}{os.sep}: index.html, and figures and numbers of each experiment")


@app.command()
def rerun(
    folder: Annotated[Path, typer.Argument(help="A folder written by fit --out.")],
    model: Annotated[
        str | None, typer.Option("--model", help="path.py:name again, if the run used such a model; it is executed.")
    ] = None,
    out: arg.Out = None,
    force: arg.Force = False,
    as_json: arg.Json = False,
) -> None:
    """Repeat a run from its folder, and say whether the draws are the same."""
    from ..fitting.runs import again, read_about, rerun_settings, same_draws, why_different

    about = read_about(folder)
    earlier, settings = rerun_settings(folder, about, model)
    tell(f"the data are those kept in {folder}; {about['data']} is not read again", as_json)
    instead = again(earlier, settings)
    result = run_fit(instead.pop("data"), out, False, None, False, force, as_json, instead, **settings)
    if same_draws(result, earlier):
        tell("the draws are the same as before", as_json)
    else:
        tell(f"warning: the draws differ from before{why_different(about)}", as_json)


@app.command("models")
def models_command(as_json: arg.Json = False) -> None:
    """List the built-in models."""
    from .. import families as models

    if as_json:
        print(json.dumps(models.names()))
        return
    width = max(map(len, models.names()))
    for name, about in models.names().items():
        say(f"{name:<{width}}  {about}")


@app.command()
def summary(
    file: Annotated[Path, typer.Argument(help="A folder written by fit --out, or its posterior.nc.")],
    interval: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.95,
    as_json: arg.Json = False,
) -> None:
    """Print the summary of a saved fit."""
    from ..fitting.runs import read_fit

    if not 0 < interval < 1:
        raise SettingError(f"--interval is {interval}; it must lie between 0 and 1, for example 0.95")
    show(read_fit(file), interval, as_json)


def main() -> None:
    """Run the command line; a user's mistake ends with one line and exit code 2."""
    with lasting() as (out, _):
        code = _ended()
        out.flush()
        if code == 0 and out.problem is not None and not isinstance(out.problem, BrokenPipeError):
            why = getattr(out.problem, "strerror", None) or out.problem
            code = _refused(f"what was found could not be printed ({why}); files that were asked for are written")
    sys.exit(code)


def _ended() -> int:
    """Run the command, and say how it ended."""
    gc.set_threshold(100_000)  # importing makes very many objects, and all of them stay
    atexit.register(gc.freeze)  # what is there at the end goes with the process, and need not be looked through
    keep_compiled_code()

    if len(sys.argv) == 1:
        sys.argv.append("--help")
    first = sys.argv[1]
    if _is_data(first):
        sys.argv.insert(1, "describe")
    elif not first.startswith("-") and (os.sep in first or Path(first).suffix):
        hint = misspelt(first)
        return _refused(f"there is no file '{first}'{hint or ', and no command of that name.'} See 'dfdbayes --help'.")
    try:
        return app(standalone_mode=False) or 0
    except SystemExit as ended:
        return int(ended.code or 0)
    except DfdbayesError as problem:
        return _refused(str(problem))
    except (KeyboardInterrupt, typer.Abort):
        say("interrupted", error=True)
        return 130
    except Exception as problem:
        if not hasattr(problem, "format_message"):  # Typer's own errors: a wrong option or argument
            raise
        if problem.format_message():
            where = getattr(getattr(problem, "ctx", None), "info_name", None)
            command = f"dfdbayes {where}" if where in _commands() else "dfdbayes"
            return _refused(f"{problem.format_message()} See '{command} --help'.")
        return 0  # no command was given, and the help was shown


def _is_data(word: str) -> bool:
    """Whether the first word of a command is a file and no command: then the user wants to know what to do with it."""
    return not word.startswith("-") and word not in _commands() and Path(word).exists()


def _commands() -> set[str]:
    return {str(one.name or getattr(one.callback, "__name__", "")) for one in app.registered_commands}


def _refused(message: str) -> int:
    say(f"error: {message}", error=True)
    return 2
