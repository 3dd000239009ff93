"""What a network took its columns for, and which of their levels hardly anybody chose, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.dataset import Dataset
from ...data.read.profile import MIN_OF_LEVEL
from .kinds import Kind

KIND, LEVELS, DECLARED = "kind", "levels", "declared"
"""What of a column was read off the data: its kind and its levels, its levels alone, or neither."""


def told(kinds: Sequence[Kind], columns: Sequence[str], origin: Sequence[str]) -> str:
    """The kinds by the names of their columns, those that were guessed first."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for kind, name, source in zip(kinds, columns, origin or [DECLARED] * len(kinds), strict=True):
        groups.setdefault((source == KIND, _text(kind)), []).append(name)
    parts = []
    for guessed, words in ((True, "as guessed"), (False, "as given")):
        own = [f"{_listed(names)} {text}" for (which, text), names in groups.items() if which == guessed]
        parts += [f"{words}: {'; '.join(own)}"] if own else []
    return f"kinds, {'; '.join(parts)}"


def _text(kind: Kind) -> str:
    if not kind.coordinate.ordered:
        return kind.name
    names = kind.coordinate.names
    return f"{kind.name} ({len(names)} levels, {names[0]} to {names[-1]})"


def _listed(names: Sequence[str], most: int = 10) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def about_counts(kinds: Sequence[Kind], data: Dataset, origin: Sequence[str]) -> list[str]:
    """Columns that were guessed to be counts among short scales, and are never zero, as an age is."""
    alone = [j for j, source in enumerate(origin) if source == KIND and kinds[j].counts and data.rows[:, j].min() > 0]
    if not alone or 4 * len(alone) > len(kinds) or sum(kind.counts for kind in kinds) > len(alone):
        return []
    names = [data.columns[j] for j in alone]
    several = len(names) > 1
    looks = "look like covariates, not items" if several else "looks like a covariate, not an item"
    return [
        f"{_listed(names)} {looks}: whole numbers above zero among short scales, taken for counts. What to do: leave "
        f"{'them' if several else 'it'} out (columns=, on the command line --columns) or give "
        f"formula='~ {' + '.join(names)}' (--formula); nothing, where something is counted."
    ]


def about_levels(kinds: Sequence[Kind], data: Dataset, origin: Sequence[str]) -> list[str]:
    """Levels that are left out because nobody chose them, that the prior holds, and that few chose."""
    absent, empty, rare = [], [], []
    for j, (kind, name) in enumerate(zip(kinds, data.columns, strict=True)):
        if not kind.levels:
            continue
        number = data.observations * data.seen[:, j]
        rows = {level: float(number[data.rows[:, j] == level].sum()) for level in kind.levels}
        called = dict(zip(kind.levels, kind.coordinate.names, strict=True))
        if kind.coordinate.ordered and origin and origin[j] != DECLARED:
            absent += [f"{name} = {v}" for v in range(kind.levels[0], kind.levels[-1]) if v not in kind.levels]
        if kind.has_thresholds:
            empty += [f"{name} = {called[level]}" for level, n in rows.items() if not n]
        if kind.has_thresholds or len(kind.levels) == 2:
            few = [level for level, n in rows.items() if 0 < round(n) < MIN_OF_LEVEL]
            rare += [f"{name} = {called[level]} ({rows[level]:.0f})" for level in few]
    found = []
    if absent:
        found.append(
            f"nobody chose {_listed(absent)}: such levels inside a scale are left out, and those above keep their "
            "distance from the lowest. What to do: nothing, if the scale has no such level; otherwise declare its "
            "levels (an ordered pd.Categorical, options={'levels': {...}}, --levels), and the prior holds the "
            "threshold of the empty one."
        )
    if empty:
        found.append(
            f"nobody chose {_listed(empty)}, though the scale has such a level: the prior alone holds its threshold. "
            "What to do: read of its interval the end nearer to zero, which the data know something about; or merge "
            "the level with its neighbour."
        )
    if rare:
        found.append(
            f"levels with fewer than {MIN_OF_LEVEL} rows (in brackets): {_listed(rare)}. The data say little about "
            "what belongs to these alone. What to do: nothing, as the intervals are wide there; or merge such a level "
            "with its neighbour."
        )
    return found
