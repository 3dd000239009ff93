"""Credible intervals: equal-tailed, but next to an edge that a parameter may lie on they begin there.

Where draws lie on the edge itself, it is part of a 95 % interval if one draw in twenty does: then a parameter on the
edge is in its interval with a probability of 95 %, as one elsewhere is.

Where the posterior is cut off at the edge, an equal-tailed interval of a parameter that is >= 0 would never contain 0,
though the parameter may be 0. If the shortest interval begins at the edge, the interval is the one from the edge; of a
normal posterior cut off at its edge it contains a parameter on the edge with a probability of 95.2 %.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

TOUCHES = 0.005  # share of draws that may lie between the edge and the shortest interval

Edges = Mapping[str, tuple[float, float]]


def interval(draws: np.ndarray, level: float, edge: tuple[float, float] | None = None) -> tuple[float, float, bool]:
    """Lower and upper end, and whether the interval is one-sided; ``edge`` has the ends of a closed support."""
    values = np.sort(np.asarray(draws, float).reshape(-1))
    size = len(values)
    ends = 0.5 * (1 - level), 0.5 * (1 + level)
    if edge is not None and (values[0] == edge[0] or values[-1] == edge[1]):
        low, high = np.quantile(values, ends)
        below, above = np.sum(values == edge[0]), np.sum(values == edge[1])
        if below < (1 - level) * size:  # too few to count the edge in
            low = max(low, values[below])
        if above < (1 - level) * size:
            high = min(high, values[size - 1 - above])
        return float(low), float(high), bool(low == edge[0] or high == edge[1])
    if edge is not None:
        inside = min(size, int(np.ceil(level * size)))
        widths = values[inside - 1 :] - values[: size - inside + 1]
        first = int(np.argmin(widths))
        if np.isfinite(edge[0]) and first <= TOUCHES * size:
            return float(edge[0]), float(values[inside - 1]), True
        if np.isfinite(edge[1]) and size - inside - first <= TOUCHES * size:
            return float(values[size - inside]), float(edge[1]), True
    low, high = np.quantile(values, ends)
    return float(low), float(high), False


def intervals(
    entries: Mapping[str, np.ndarray], level: float, edges: Edges
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], list[str]]:
    """Lower and upper ends of all entries, in order, and which of them are one-sided."""
    found = {name: interval(draws, level, edges.get(name)) for name, draws in entries.items()}
    low, high = (np.array([one[i] for one in found.values()]) for i in (0, 1))
    return low, high, [name for name, one in found.items() if one[2]]
