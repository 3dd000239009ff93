"""Arguments and options that several commands take."""

from pathlib import Path
from typing import Annotated

import typer

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
