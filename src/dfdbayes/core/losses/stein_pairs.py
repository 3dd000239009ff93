"""Sums over pairs of distinct rows, which the kernel Stein discrepancy is made of. They are free of the parameters.

Of two rows x and y the Stein kernel is, with x^{j+} the increment of coordinate j and r_j the ratio to its decrement,

    A(x, y) = sum_j k(x^{j+}, y^{j+}) - r_j(x) k(x, y^{j+}) - r_j(y) k(x^{j+}, y) + r_j(x) r_j(y) k(x, y).

Where the ratios take few values q it is a quadratic function of these, and so is w' A w under any weights of the rows:

    w' A w = w' C w - 2 sum_m q_m w' L_m w + sum_mk q_m q_k w' F_mk w,

    C = sum_j k(x^{j+}, y^{j+}),   L_m = sum_j [r_j(x) is q_m] k(x, y^{j+}),
    F_mk = k(x, y) #{j: r_j(x) is q_m and r_j(y) is q_k}.

The counts are products of matrices of ones and zeros. A kernel that depends on the number of differing coordinates has
three values next to a pair of rows, so L_m is made of counts as well. Many weights meet a matrix while it is there, and
where memory allows it stays for the next ones: a bootstrap replicate costs products of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from .kernels import Kernel, Matrix, differing, neighbour_kernels, of_differences, one_hot

MAX_ROWS_PAIRED = 6000  # distinct rows up to which all pairs count, 288 MB for a matrix of these; beyond them only
MAX_ROWS_IN_BLOCK = 2000  # pairs in blocks (`test_the_mean_over_all_blocks_is_the_sum_over_all_pairs`)

Terms = Iterable[tuple[Int[np.ndarray, " g"], Int[np.ndarray, " a"], Float[np.ndarray, "a g b"]]]


@dataclass(frozen=True)
class Blocks:
    """Which pairs of distinct rows count: those within a block, and those of different rows ``scale`` times.

    All pairs count where there is one block. Otherwise the rows are dealt out at random, a pair of different rows meets
    with probability 1 / ``scale``, and so the mean of the sum over all ways to deal is the sum over all pairs: it has
    no bias, whatever the weights. A row always meets itself.
    """

    members: tuple[Int[np.ndarray, " b"], ...]

    @staticmethod
    def of(count: int) -> Blocks:
        """The blocks of so many rows: the same for the same number, and rows are sorted, so their order is nothing."""
        if count <= MAX_ROWS_PAIRED:
            return Blocks((np.arange(count),))
        size = max(2, min(MAX_ROWS_IN_BLOCK, 2**27 // count))  # of very many rows smaller ones
        dealt = np.array_split(np.random.default_rng(0).permutation(count), -(-count // size))
        return Blocks(tuple(np.sort(part) for part in dealt))

    @cached_property
    def scale(self) -> float:
        count = float(sum(map(len, self.members)))
        return 1.0 if len(self.members) == 1 else count * (count - 1.0) / (self.pairs - count)

    @property
    def pairs(self) -> int:
        """How many pairs meet, those of a row with itself among them."""
        return sum(len(part) ** 2 for part in self.members)

    def scaled(self, matrix: Matrix) -> Matrix:
        """A matrix between the rows of a block, with how much each pair counts."""
        if len(self.members) == 1:
            return matrix
        found = self.scale * matrix
        np.fill_diagonal(found, np.diagonal(matrix))
        return found

    @property
    def note(self) -> str:
        """How the sum is computed, to follow "it is"; nothing where all pairs count."""
        if len(self.members) == 1:
            return ""
        count, largest = sum(map(len, self.members)), max(map(len, self.members))
        return (
            f"estimated without bias from the pairs within {len(self.members)} random blocks of at most {largest} of "
            f"the {count} distinct rows"
        )


# -- few ratios --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sums:
    """w' G w for every coefficient matrix G, of one or many weights; with what single rows add to them.

    Attributes
    ----------
    totals : (b, g) floats
        Of C, of all L_m, and of all pairs F_mk with m <= k, in the order of `Values.pairs`.
    halves : (g, u) floats
        (G + G') w / 2 of the first weights.
    diagonal : (g, u) floats
        G of a row with itself.
    """

    totals: Float[np.ndarray, "b g"]
    halves: Float[np.ndarray, "g u"]
    diagonal: Float[np.ndarray, "g u"]


@dataclass(frozen=True)
class Values:
    """Rows whose ratios take few values, and a kernel.

    Attributes
    ----------
    index : (u, d) integers
        Which of ``count`` values each ratio has, -1 where there is none.
    blocks : Blocks
        Which rows meet.
    """

    kernel: Kernel
    rows: Int[np.ndarray, "u d"]
    up: Int[np.ndarray, "u d"]
    index: Int[np.ndarray, "u d"]
    count: int
    blocks: Blocks

    @cached_property
    def taken(self) -> Bool[np.ndarray, "m d"]:
        """Which values each coordinate takes."""
        found = np.zeros((self.count, self.rows.shape[1]), bool)
        u, j = np.nonzero(self.index >= 0)
        found[self.index[u, j], j] = True
        return found

    @cached_property
    def pairs(self) -> Int[np.ndarray, "f 2"]:
        """Pairs of values m <= k that some coordinate takes, in order."""
        return np.argwhere(np.triu(self.taken.astype(np.float32) @ self.taken.T))

    @property
    def size(self) -> int:
        """How many coefficients there are."""
        return 1 + self.count + len(self.pairs)

    @cached_property
    def by_counts(self) -> bool:
        """Whether C and L_m are made of counts."""
        return of_differences(self.kernel) is not None and one_hot(self.rows, self.up) is not None

    @cached_property
    def _kept(self) -> list[Terms] | None:
        """The terms of all blocks, where they fit into memory (512 MB): they stay for the next weights."""
        cells = (self.size if self.by_counts else self.size + 2 * self.rows.shape[1]) * self.blocks.pairs
        return [list(self._terms(part)) for part in self.blocks.members] if cells <= 2**26 else None

    def sums(self, weights: Float[np.ndarray, "b u"]) -> Sums:
        """The sums over the pairs of all blocks."""
        size, s, kept = self.size, self.blocks.scale, self._kept if len(weights) > 1 else None
        totals, halves = np.zeros((len(weights), size)), np.empty((size, len(self.rows)))
        diagonal = np.empty_like(halves)
        for number, part in enumerate(self.blocks.members):
            w = weights[:, part]
            pulled, pushed = np.zeros((len(part), size, len(w))), np.zeros((size, len(part)))
            one = np.zeros_like(pushed)
            for g, here, matrices in self._terms(part) if kept is None else kept[number]:
                found = matrices.reshape(-1, len(part)) @ w.T
                pulled[np.ix_(here, g)] += found.reshape(len(here), len(g), -1)
                pushed[g] += np.einsum("u,ugv->gv", w[0, here], matrices)
                one[np.ix_(g, here)] += matrices[np.arange(len(here)), :, here].T
            totals += s * np.einsum("ugb,bu->bg", pulled, w) + (1.0 - s) * (w**2 @ one.T)
            halves[:, part] = 0.5 * s * (pulled[:, :, 0].T + pushed) + (1.0 - s) * w[0] * one
            diagonal[:, part] = one
        return Sums(totals, halves, diagonal)

    def _terms(self, part: np.ndarray) -> Terms:
        """Between some rows of a block and all of it: which coefficients, which rows, and a term of their matrices."""
        rows, index = self.rows[part], self.index[part]
        yield from self._of_counts(part) if self.by_counts else self._of_coordinates(part)
        chosen = [np.flatnonzero(self.pairs[:, 0] == m) for m in range(self.count)]
        groups = [(m, 1 + self.count + some, self.pairs[some, 1]) for m, some in enumerate(chosen)]
        for here in _slabs(len(part), max((len(others) for _, _, others in groups), default=1)):
            between = self.kernel.between(rows[here], rows)
            for m, g, others in groups:
                at = index[:, self.taken[m]]
                mine, theirs = _ones(at[here] == m), _ones(np.concatenate([at == k for k in others]))
                counts = (mine @ theirs.T).reshape(len(here), len(g), -1)
                yield g, here, between[:, None] * counts

    def _of_coordinates(self, part: np.ndarray) -> Terms:
        """Terms of C and of L_m, of any kernel: coordinate by coordinate."""
        everywhere = np.arange(len(part))
        for j, (one, both) in enumerate(neighbour_kernels(self.kernel, self.rows[part], self.up[part])):
            yield np.array([0]), everywhere, both[:, None]
            for m in np.unique(self.index[part, j]):
                if m >= 0:
                    here = np.flatnonzero(self.index[part, j] == m)
                    yield np.array([1 + m]), here, one[here, None]

    def _of_counts(self, part: np.ndarray) -> Terms:
        """The same at once, of kernels m(x) k(x, y) m(y) with k of differences.

        y^{j+} differs from x in one coordinate more than y where y_j is x_j, and in one less where y_j^+ is.
        """
        rows, up, index = self.rows[part], self.up[part], self.index[part]
        kind, coded = of_differences(self.kernel), one_hot(rows, up)
        assert kind is not None
        assert coded is not None
        table, (x, y, owner) = kind[0].table(rows.shape[1]), coded
        table = np.concatenate([table[:1], table, table[-1:]])  # the ends are never met
        moves = np.asarray(rows != up)
        near, far = _weight(kind[1], rows), _weights_above(kind[1], rows, up)
        after = np.concatenate([(far * moves)[:, owner] * code for code in (x, y)])
        for here in _slabs(len(part), 2):
            count = differing(rows[here], rows) + 1
            k = table[count]
            further, nearer = table[count + 1] - k, table[count - 1] - k
            yield np.array([0]), here, (k * (far[here] @ far.T))[:, None]
            for m, at in enumerate(self.taken):
                on = at[owner]
                mine = _ones(index[here][:, owner[on]] == m) * x[here][:, on]
                more, less = np.split(mine @ after[:, on].T, 2, axis=1)
                moved = k * (_ones(index[here][:, at] == m) @ far[:, at].T)
                moved += further * more
                moved += nearer * less
                yield np.array([1 + m]), here, (near[here, None] * moved if kind[1] else moved)[:, None]


def _ones(where: np.ndarray) -> np.ndarray:
    """Ones and zeros, of which products are exact counts in single precision."""
    return where.astype(np.float32)


def _slabs(count: int, matrices: int) -> list[np.ndarray]:
    """Rows of so many matrices that are made at once, of 64 MB: a product begins and ends slowly."""
    return np.array_split(np.arange(count), -(-(count**2) * matrices // 2**23))


RowWeights = tuple[Callable[[np.ndarray], np.ndarray], ...]


def _weight(weights: RowWeights, rows: np.ndarray) -> Float[np.ndarray, " u"]:
    return np.prod([np.ones(len(rows)), *(weight(rows) for weight in weights)], axis=0)


def _weights_above(weights: RowWeights, rows: np.ndarray, up: np.ndarray) -> Float[np.ndarray, "u d"]:
    """The weight of every row after an increment of each coordinate."""
    if not weights:
        return np.ones(rows.shape, np.float32)  # products of these are counts
    found = np.empty(rows.shape)
    for j in range(rows.shape[1]):
        moved = rows.copy()
        moved[:, j] = up[:, j]
        found[:, j] = _weight(weights, moved)
    return found


# -- many ratios -------------------------------------------------------------------------------


def shifted(
    kernel: Kernel, rows: np.ndarray, up: np.ndarray, weights: Float[np.ndarray, "b u"], blocks: Blocks
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, "b u d"]]:
    """The sum w' C w, and sum_y k(x, y^{j+}) w_y for every row x and coordinate j."""
    c, b = np.zeros(len(weights)), np.empty((len(weights), *rows.shape))
    for part in blocks.members:
        w = weights[:, part]
        same = None
        for j, (one, both) in enumerate(neighbour_kernels(kernel, rows[part], up[part])):
            b[:, part, j] = w @ blocks.scaled(one).T
            if both is not same:
                same, quadratic = both, np.einsum("bu,bu->b", w @ blocks.scaled(both), w)
            c += quadratic
    return c, b


def row_slopes(
    kernel: Kernel, rows: np.ndarray, up: np.ndarray, w: Float[np.ndarray, " u"], blocks: Blocks,
    ratios: Float[np.ndarray, "u d"], slopes: Float[np.ndarray, "u d p"],
) -> tuple[Float[np.ndarray, "u p"], Float[np.ndarray, "u p"]]:  # fmt: skip
    """The slopes of (A w)_x and of A(x, x) for every row x, from those of the ratios."""
    with_all, alone = (np.zeros((len(rows), slopes.shape[2])) for _ in range(2))
    for part in blocks.members:
        x, weight = rows[part], w[part, None]
        between = blocks.scaled(kernel.between(x, x))
        itself = np.diagonal(between)
        for j, (one, _) in enumerate(neighbour_kernels(kernel, x, up[part])):
            one, r, slope = blocks.scaled(one), ratios[part, j, None], slopes[part, j]
            with_all[part] += slope * (between @ (weight * r) - one @ weight)
            with_all[part] += r * (between @ (weight * slope)) - one.T @ (weight * slope)
            alone[part] += 2.0 * slope * (r * itself[:, None] - np.diagonal(one)[:, None])
    return with_all, alone
