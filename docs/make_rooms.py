"""The rooms of the package and who imports whom, drawn from the code itself: docs/images/rooms.png.

    python docs/make_rooms.py

A box is a folder, as high as it has lines; an arc goes from the folder that imports to the one that is imported, the
thicker the more modules do it. Arcs against the direction of the road would be orange, below.
"""

import importlib.util
from collections import Counter
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, Rectangle

HERE = Path(__file__).resolve().parent
BLUE, ORANGE, INK, PAPER = "#2a78d6", "#d9622b", "#222222", "#dfe9f6"
BESIDE = ("_version", "errors", "__main__", "dfdbayes")  # single files and the list of names, which all use


def by_path(name: str, path: Path):
    """A module of the tests, which count what is drawn here."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw(folders: list[str], house, target: Path) -> None:
    rooms = house.lines_by_folder()
    columns = {name: [room for room in sorted(rooms) if room.split("/")[0] == name] for name in folders}
    tall = max(sum(rooms[room][1] for room in own) for own in columns.values())
    figure, axes = plt.subplots(figsize=(10, 5.2))
    tops = {}
    for place, (name, own) in enumerate(columns.items()):
        base = 0.0
        for room in own:
            files, lines = rooms[room]
            height = lines / tall
            axes.add_patch(Rectangle((place - 0.42, base), 0.84, height, facecolor=PAPER, edgecolor=BLUE, lw=0.8))
            label = room.split("/")[-1] if len(own) > 1 and "/" in room else ""
            if label and height > 0.035:
                axes.text(place, base + height / 2, label, ha="center", va="center", fontsize=7, color=INK)
            base += height
        files, lines = (sum(rooms[room][i] for room in own) for i in (0, 1))
        axes.text(place, -0.03, name, ha="center", va="top", fontsize=9, weight="bold", color=INK)
        axes.text(place, -0.09, f"{files} files\n{lines:,} lines", ha="center", va="top", fontsize=7, color=INK)
        tops[name] = base
    among = Counter(
        (a.split(".")[0], b.split(".")[0]) for a, b in house.graph().edges if a.split(".")[0] != b.split(".")[0]
    )
    for (a, b), number in among.items():
        if a not in columns or b not in columns:
            continue
        i, j = folders.index(a), folders.index(b)
        back = j < i
        ends = ((i, tops[a] + 0.01), (j, tops[b] + 0.01)) if back else ((i, -0.2), (j, -0.2))
        axes.add_patch(
            FancyArrowPatch(
                *ends, connectionstyle=f"arc3,rad={0.25 + 0.03 * abs(i - j)}", arrowstyle="-|>", mutation_scale=8,
                lw=0.3 + number**0.5 / 5, color=BLUE if back else ORANGE, alpha=0.55, shrinkA=0, shrinkB=0,
            )
        )  # fmt: skip
    axes.set_xlim(-0.6, len(columns) - 0.4)
    axes.set_ylim(-0.25, 1.75)
    axes.axis("off")
    figure.savefig(target, dpi=150, bbox_inches="tight")


def main() -> None:
    tests = HERE.parent / "tests"
    house = by_path("house", tests / "house.py")
    road = by_path("test_imports", tests / "contract" / "test_imports.py").ROAD
    draw([name for name in road if name not in BESIDE], house, HERE / "images" / "rooms.png")


if __name__ == "__main__":
    main()
