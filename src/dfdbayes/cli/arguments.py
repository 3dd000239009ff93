"""Arguments and options that several commands take, and what their texts say."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import SettingError

Data = Annotated[str, typer.Argument(help="A CSV, TSV, Parquet, Excel, SPSS or Stata file, or built-in data (sales).")]
ModelName = Annotated[
    str,
    typer.Option(
        "--model",
        help="A model's name, see 'dfdbayes models'; or path.py:name, a model in a Python file, which is executed.",
    ),
]
Formula = Annotated[
    str | None, typer.Option(help="A regression: 'visits ~ age + C(clinic) + offset(log(days))', or '~ group'.")
]
Nu = Annotated[str | None, typer.Option(help="What nu of counts depends on: '~ clinic'.")]
Zeros = Annotated[str | None, typer.Option(help="For too many or too few zeros (a hurdle): '~ 1'.")]
Interaction = Annotated[str | None, typer.Option(help="What the edges of a network depend on: '~ group'.")]
Bootstrap = Annotated[int | None, typer.Option(help="Bootstrap replicates; 400, of a map 2000.")]
Columns = Annotated[str | None, typer.Option(help="Columns to use, separated by commas.")]
Weights = Annotated[str | None, typer.Option(help="The column that holds frequencies, or observation weights.")]
Weighting = Annotated[
    str,
    typer.Option(help="What weights are: frequency, or sampling (a survey's); auto: whole numbers are frequencies."),
]
Cluster = Annotated[str | None, typer.Option(help="Column that says which rows belong together, such as school.")]
Time = Annotated[str | None, typer.Option(help="Column of times of a series, for lag(...) and season(...).")]
Missing = Annotated[str, typer.Option(help="Rows with missing values: refuse, drop, or impute.")]
MissingCodes = Annotated[
    str | None,
    typer.Option(help="Values that stand for missing ones: -9,unknown, or by column age=999,age=998; none if none do."),
]
Decimal = Annotated[str | None, typer.Option(help="The decimal mark of a text file, . or , if it cannot be told.")]
GraphName = Annotated[str | None, typer.Option(help="grid:6x6, torus:6x6 or complete:8, for models on graphs.")]
States = Annotated[str | None, typer.Option(help="spins or binary; for potts, how many.")]
Kinds = Annotated[
    str | None,
    typer.Option(help="Kinds of columns of a network: ordinal, or visits=count,mood=blume-capel; guessed otherwise."),
]
Levels = Annotated[
    list[str] | None,
    typer.Option(help="Levels of a scale in their order: mood=never,rarely,often; once for each, or for all columns."),
]
Terms = Annotated[
    str | None,
    typer.Option(help="Of --model graph: 'edges + gwesp(0.25) + nodematch(\"grade\")', as in statnet's ergm."),
]
Nodes = Annotated[
    Path | None,
    typer.Option(help="With --model graph, a table of the nodes and their attributes; DATA holds the edges."),
]
Directed = Annotated[
    bool | None, typer.Option("--directed/--undirected", help="Whether the edges of --model graph have a direction.")
]
At = Annotated[
    str | None,
    typer.Option(help="For maps (autologistic): the two columns with the coordinates of sites, row,col."),
]
Neighbours = Annotated[int | None, typer.Option(help="For maps: 4 neighbours of a cell (sides), or 8 (corners too).")]
Rates = Annotated[str | None, typer.Option(help="Two known rates, such as 5,15, for poisson-mixture.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same draws.")]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for posterior.nc, summary.csv, summary.json, report.html; of networks edges.csv, nodes.csv too."
    ),
]
Dask = Annotated[
    str | None, typer.Option(help="A Dask scheduler's address, or local for workers on this machine's cores.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from what an interrupted run left in --out.")]
Force = Annotated[bool, typer.Option("--force", help="Begin anew: replace the run in --out, finished or interrupted.")]
Check = Annotated[
    bool, typer.Option("--check/--no-check", help="Whether to test by simulation if the model reproduces the data.")
]
Timings = Annotated[bool, typer.Option("--timings", help="Print where the time went.")]


def options_of(
    graph: str | None,
    states: str | None,
    rates: str | None,
    kinds: str | None = None,
    levels: Sequence[str] | None = None,
    terms: str | None = None,
    nodes: Path | None = None,
    directed: bool | None = None,
    at: str | None = None,
    neighbours: int | None = None,
) -> dict[str, Any]:
    """What a model given by name may take."""
    own: dict[str, Any] = {"kinds": kinds_of(kinds), "levels": levels_of(levels)}
    whole: dict[str, Any] = {"terms": terms, "nodes": None if nodes is None else str(nodes), "directed": directed}
    whole |= {"at": None if at is None else [name.strip() for name in at.split(",")], "neighbours": neighbours}
    own |= {name: value for name, value in whole.items() if value is not None}
    return {"graph": graph, "states": states, "rates": numbers_of(rates)} | own


def columns_of(text: str | None) -> list[str] | None:
    """Names of columns separated by commas."""
    return text.split(",") if text else None


def words_of(text: str) -> list[str]:
    """Words separated by commas, without spaces around them."""
    return [word.strip() for word in text.split(",") if word.strip()]


def formulas_of(nu: str | None, zeros: str | None, interaction: str | None = None) -> dict[str, str]:
    """Formulas of parameters, by name; those that were asked for."""
    return {name: text for name, text in {"nu": nu, "zeros": zeros, "interaction": interaction}.items() if text}


def kinds_of(kinds: str | None) -> str | dict[str, str] | None:
    """Kinds of columns: one word for all that can have it, or ``name=word`` for each."""
    if kinds is None or "=" not in kinds:
        return kinds
    pairs = [part.partition("=") for part in kinds.split(",")]
    return {name.strip(): word.strip() for name, _, word in pairs}


def levels_of(levels: Sequence[str] | None) -> dict[str, list[Any]] | list[Any] | None:
    """Levels of scales in their order: ``name=never,often``, once for each, or ``never,often`` for all columns."""
    if not levels:
        return None
    pairs = [part.rpartition("=") for part in levels]
    lists = [[_level(word.strip()) for word in words.split(",")] for _, _, words in pairs]
    if len(pairs) == 1 and not pairs[0][1]:
        return lists[0]
    if not all(equals for _, equals, _ in pairs):
        raise SettingError("--levels is either of all columns, or NAME=LOWEST,...,HIGHEST for each")
    return {name.strip(): own for (name, _, _), own in zip(pairs, lists, strict=True)}


def _level(word: str) -> int | str:
    return int(word) if word.lstrip("-").isdigit() else word


def codes_of(codes: str | None) -> Any:
    """Codes of missing values: one list for all columns, or ``name=code`` for each."""
    if codes is None:
        return None
    parts = [part.strip() for part in codes.split(",") if part.strip()]
    if parts == ["none"] or not parts:
        return []
    pairs = [part.rpartition("=") for part in parts]
    if not any(equals for _, equals, _ in pairs):
        return parts
    if not all(equals for _, equals, _ in pairs):
        raise SettingError(f"--missing-codes is {codes!r}; give codes for all columns, or NAME=CODE for each")
    found: dict[str, list[str]] = {}
    for name, _, code in pairs:
        found.setdefault(name.strip(), []).append(code.strip())
    return found


def data_of(source: Any) -> Any:
    """A file's path, or built-in data of that name if there is no such file; other data as they are."""
    if not isinstance(source, str):
        return source
    from ..data.read import builtin as datasets

    return datasets.BY_NAME[source]() if source in datasets.BY_NAME and not Path(source).exists() else source


def numbers_of(text: str | None) -> list[float] | None:
    """Numbers separated by commas."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise SettingError(f"'{text}' must be numbers separated by commas") from None
