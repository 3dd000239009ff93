"""The rooms of the package and who imports whom, drawn from the code itself: docs/images/rooms.png.

    python docs/make_rooms.py

A line is a folder, in the order of the road. Its bar is as long as it has lines of code. On the right is how many
imports of its modules are of modules of each folder; imports against the direction of the road would be orange.
"""

import importlib.util
from collections import Counter
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

HERE = Path(__file__).resolve().parent
BLUE, ORANGE, INK, PAPER, FAINT = "#2a78d6", "#d9622b", "#222222", "#dfe9f6", "#eeeeee"
BESIDE = ("_version", "errors", "plots", "__main__")  # single files
BAR, FIRST = 6.0, 9.0  # the longest bar, and where the table begins, in heights of a line


def by_path(name: str, path: Path):
    """A module of the tests, which count what is drawn here."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def imports_between(folders: list[str], house) -> Counter:
    """How many imports of modules there are, by the two folders."""
    pairs = [(a.split(".")[0], b.split(".")[0]) for a, b in house.graph().edges]
    return Counter((a, b) for a, b in pairs if a in folders and b in folders)


def draw(folders: list[str], house, target: Path) -> None:
    rooms, among = house.lines_by_folder(), imports_between(folders, house)
    inside = {name: [room for room in sorted(rooms) if room.split("/")[0] == name] for name in folders}
    longest = max(sum(rooms[room][1] for room in own) for own in inside.values())
    most = max(number for (a, b), number in among.items() if a != b)
    figure, axes = plt.subplots(figsize=(10, 5.4))
    for row, name in enumerate(folders):
        axes.text(-0.15, row, name, ha="right", va="center", fontsize=11, weight="bold", color=INK)
        end = 0.0
        for room in inside[name]:
            length = BAR * rooms[room][1] / longest
            axes.add_patch(Rectangle((end, row - 0.36), length, 0.72, facecolor=PAPER, edgecolor=BLUE, lw=0.8))
            if "/" in room and length > 0.55:
                axes.text(end + length / 2, row, room.split("/")[1], ha="center", va="center", fontsize=7.5, color=INK)
            end += length
        files, lines = (sum(rooms[room][i] for room in inside[name]) for i in (0, 1))
        told = f"{lines:,} lines, {files} files"
        if end > BAR / 2 and len(inside[name]) == 1:
            axes.text(end - 0.12, row, told, ha="right", va="center", fontsize=9, color=INK)
        else:
            axes.text(end + 0.12, row, told, ha="left", va="center", fontsize=9, color=INK)
        for column, other in enumerate(folders):
            number, against = among[name, other], column > row
            strength = 0.12 + 0.88 * min(1.0, number / most) ** 0.5
            face = "white" if against else FAINT if row == column else PAPER
            axes.add_patch(Rectangle((FIRST + column - 0.46, row - 0.4), 0.92, 0.8, facecolor=face, lw=0))
            if not number or row == column:
                continue
            colour = ORANGE if against else BLUE
            cell = (FIRST + column - 0.46, row - 0.4)
            axes.add_patch(Rectangle(cell, 0.92, 0.8, facecolor=colour, alpha=strength, lw=0))
            ink = "white" if strength > 0.55 else INK
            axes.text(FIRST + column, row, str(number), ha="center", va="center", fontsize=9, color=ink)
    for column, name in enumerate(folders):
        place = (FIRST + column - 0.25, -0.6)
        axes.text(*place, name, ha="left", va="bottom", rotation=40, fontsize=9, color=INK)
    told = "how many imports of modules of another folder\n(orange: against the direction of the road)"
    axes.text(FIRST + len(folders) - 0.5, len(folders) - 0.4, told, ha="right", va="top", fontsize=9, color=INK)
    axes.set_xlim(-1.9, FIRST + len(folders) + 0.3)
    axes.set_ylim(len(folders) + 0.6, -2.2)
    axes.axis("off")
    figure.savefig(target, dpi=150, bbox_inches="tight", pad_inches=0.08)


def main() -> None:
    tests = HERE.parent / "tests"
    house = by_path("house", tests / "house.py")
    road = by_path("test_imports", tests / "contract" / "test_imports.py").ROAD
    draw([name for name in road if name not in BESIDE], house, HERE / "images" / "rooms.png")


if __name__ == "__main__":
    main()
