"""The paper's experiments with quick and with the paper's settings: their numbers and times side by side.

    python docs/studies/reproduction.py [--repeats R] [--data FOLDER] [EXPERIMENT ...]

Writes docs/tables/reproduction.md. Each experiment runs R times with either setting (same numbers each time but for
those of times), and the shortest time is shown. Finished ones are kept in runs/reproduction-table.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from keeping import ROOT

from dfdbayes.experiments import NAMES, Settings, run
from dfdbayes.experiments.base import shortest
from dfdbayes.experiments.page import write_finding

KEPT, TABLE = ROOT / "runs" / "reproduction-table", ROOT / "docs" / "tables" / "reproduction.md"
SETTINGS = {"quick": True, "full": False}
SHOWN = 90  # characters of a remark


def made(name: str, which: str, data: Path | None, repeats: int) -> dict[str, Any]:
    """What an experiment found, and its shortest time; from an earlier run where there is one."""
    path = KEPT / which / f"{name}.json"
    if not path.is_file():
        settings = Settings(SETTINGS[which], data)
        finding, seconds = shortest(lambda: run(name, settings), repeats)
        write_finding(name, finding, KEPT / which, seconds, SETTINGS[which])
        print(f"{name}, {which}: {seconds:.0f} s", flush=True)
    return json.loads(path.read_text())


def number(value: float | None, error: float | None = None) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" + (f" ± {error:.2g}" if error is not None else "")


def part(quick: dict[str, Any], full: dict[str, Any]) -> list[str]:
    """One experiment's heading and table."""
    lines = [
        f"## {full['title']}", "",
        f"{full['where']}; `dfdbayes reproduce {full['name']}`: {quick['seconds']:.1f} s with `--quick`, "
        f"{full['seconds']:.1f} s with the paper's settings.", "",
        "| quantity | paper | quick | paper's settings | remark |", "|---|---:|---:|---:|---|",
    ]  # fmt: skip
    beside = {one["what"]: one for one in quick["numbers"]}
    for one in full["numbers"]:
        other = beside.get(one["what"], {"ours": None, "error": None})
        remark = one["verdict"].replace("|", "\\|")
        remark = remark if len(remark) <= SHOWN else remark[:SHOWN].rsplit(" ", 1)[0] + " ..."
        lines.append(
            f"| {one['what']} | {number(one['paper'])} | {number(other['ours'], other['error'])} | "
            f"{number(one['ours'], one['error'])} | {remark} |"
        )
    return [*lines, ""]


HEAD = """# The paper's numbers beside ours

Made by `python docs/studies/reproduction.py`; `dfdbayes reproduce` writes the same with pictures. Seeds are fixed in
each experiment. Times are the shortest of {repeats}, on two cores shared with other work, of whatever compiles once
and stays compiled; those printed in the paper are from its authors' machines. For posterior means of simulated data the
column "paper" holds the true parameter where the remark says so.

"""


def main() -> None:
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("experiments", nargs="*", default=list(NAMES))
    asked.add_argument("--repeats", type=int, default=2)
    asked.add_argument("--data", type=Path, default=os.environ.get("DFDBAYES_DATA"))
    given = asked.parse_args()
    data = None if given.data is None else Path(given.data)
    lines: list[str] = []
    for name in given.experiments:
        found = [made(name, which, data, given.repeats) for which in SETTINGS]
        lines += part(*found)
    TABLE.write_text(HEAD.format(repeats=given.repeats) + "\n".join(lines))


if __name__ == "__main__":
    main()
