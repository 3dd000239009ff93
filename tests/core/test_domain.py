import numpy as np
import pytest

import dfdbayes as dfd
import oracles
from dfdbayes.core.domain import beyond, until_negligible

DOMAINS = {
    "integers": dfd.Integers(1),
    "counts": dfd.Counts(1),
    "counts from 3": dfd.Counts(1, minimum=3),
    "mirrored": dfd.CountsBelow(1, maximum=2),
    "binary": dfd.Binary(2),
    "spins": dfd.Spins(2),
    "levels": dfd.Finite(1, (1, 4, 9, 10)),
    "ordinal": dfd.Ordinal(2, 4),
    "two ordered levels": dfd.Ordinal(1, 2),
    "categories": dfd.Categories(1, ["red", "green", "blue"]),
    "categories among others": dfd.Counts(1) * dfd.Categories(2, "abcd") * dfd.Binary(1) * dfd.Categories(1, "abc"),
    "mixed": dfd.Counts(1) * dfd.Binary(1) * dfd.Integers(1) * dfd.CountsBelow(1) * dfd.Finite(1, 3),
}


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_neighbours_match_the_definition(domain):
    rows = np.array(oracles.points(domain, 4))
    for (values, exists), slow in (
        (domain.decrement(rows), oracles.decrements),
        (domain.increment(rows), oracles.increments),
    ):
        for i, row in enumerate(rows):
            for j in range(domain.d):
                columns = domain.moves == j
                found = values[i, columns][exists[i, columns]]
                assert sorted(found) == sorted(slow(domain.coordinate(j), int(row[j])))
                assert (values[i, columns][~exists[i, columns]] == row[j]).all()


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_increment_undoes_decrement_and_back(domain):
    """Move by move: for categories too each of these is one to one."""
    rows = np.array(oracles.points(domain, 5))
    for there, back in ((domain.decrement, domain.increment), (domain.increment, domain.decrement)):
        values, exists = there(rows)
        for column, j in enumerate(domain.moves):
            moved = rows.copy()
            moved[:, j] = values[:, column]
            assert (back(moved)[0][:, column] == rows[:, j])[exists[:, column]].all()


def test_only_categories_have_more_than_one_move():
    for name, domain in DOMAINS.items():
        assert domain.has_categories == ("categories" in name)
        assert (domain.moves[: domain.d] == np.arange(domain.d)).all()
        assert len(domain.moves) == domain.d or domain.has_categories
        assert (domain.wrapped.moves == np.arange(domain.d)).all()
    assert (dfd.Categories(2, "ny").moves == [0, 1]).all()
    assert DOMAINS["categories among others"].moves.tolist() == [0, 1, 2, 3, 4, 1, 2, 4, 1, 2]


def test_two_states_flip_both_ways():
    rows = np.array([[0, 1]])
    assert domain_moves(dfd.Binary(2), rows) == [[1, 0], [1, 0]]


def domain_moves(domain, rows):
    return [domain.decrement(rows)[0][0].tolist(), domain.increment(rows)[0][0].tolist()]


def test_finite_domains_list_their_points():
    domain = dfd.Binary(2) * dfd.Finite(1, 3)
    assert domain.size == 12
    assert domain.points().tolist() == [list(p) for p in oracles.points(domain, 0)]
    with pytest.raises(dfd.errors.ModelError, match="too many"):
        dfd.Spins(40).points()


def test_equal_domains_are_equal_however_they_were_made():
    assert dfd.Counts(1) * dfd.Counts(2) == dfd.Counts(3)
    assert hash(dfd.Counts(1) * dfd.Counts(2)) == hash(dfd.Counts(3))
    assert repr(dfd.Counts(2) * dfd.Spins(1)) == "Counts(2) * Spins(1)"


@pytest.mark.parametrize("make", [lambda: dfd.Finite(1, (3,)), lambda: dfd.Finite(1, (1, 1)), lambda: dfd.Counts(0),
                                  lambda: dfd.Categories(1, ["a", "a"])])  # fmt: skip
def test_nonsense_is_refused(make):
    with pytest.raises(dfd.errors.ModelError):
        make()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: dfd.Categories(4, 3), r"dfd\.Categories\(4, \['0', '1', '2'\]\)"),
        (lambda: dfd.Categories(2, None), "list of their labels"),
        (lambda: dfd.Ordinal(2, None), "levels"),
        (lambda: dfd.Finite(2, 1.5), "levels"),
        (lambda: dfd.Finite(2, ["a", "b"]), "whole numbers"),
        (lambda: dfd.Finite(2, [0, None]), "whole numbers"),
        (lambda: dfd.Counts(1, minimum=1.5), "minimum must be a whole number"),
        (lambda: dfd.Counts(1, minimum="a"), "minimum must be a whole number"),
        (lambda: dfd.CountsBelow(1, None), "maximum must be a whole number"),
    ],
)
def test_domains_that_cannot_be_are_refused(make, said):
    with pytest.raises(dfd.errors.ModelError, match=said):
        make()


def test_categories_that_are_numbers_are_given_as_texts():
    """What the refusal of ``Categories(2, 3)`` advises."""
    answers = np.random.default_rng(0).integers(0, 3, (50, 2))
    assert dfd.Dataset.of(answers, dfd.Categories(2, ["0", "1", "2"])).rows.max() == 2


def test_values_are_listed_from_the_end_on():
    above, below, ordered = (
        domain.coordinate(0) for domain in (dfd.Counts(1, 2), dfd.CountsBelow(1, 3), dfd.Ordinal(1, (1, 4, 9)))
    )
    assert above.listed(3).tolist() == [2, 3, 4] and above.listed(2, first=5).tolist() == [7, 8]
    assert below.listed(3).tolist() == [3, 2, 1] and ordered.listed(100).tolist() == [1, 4, 9]
    assert above.reach(np.array([2, 7]), 1.5, 5) == 14 and below.reach(np.array([-1, 3]), 1.0, 0) == 5
    with pytest.raises(dfd.errors.ModelError, match=r"dfd\.Counts"):
        dfd.Integers(1).coordinate(0).listed(3)


def test_what_lies_beyond_a_list_is_that_of_a_geometric_distribution():
    masses = 0.25 * 0.75 ** np.arange(40)
    assert beyond(masses[-1], masses[-2]) == pytest.approx(0.75**40)
    assert np.isinf(beyond(0.2, 0.1)) and beyond(0.0, 0.0) == 0.0


def test_lists_double_until_what_is_left_out_is_negligible():
    tried = []

    def attempt(number):
        tried.append(number)
        return number, 0.5**number

    assert until_negligible(attempt, 8, 2**10, "too many") == 64 and tried == [8, 16, 32, 64]
    with pytest.raises(dfd.errors.ModelError, match="too many"):
        until_negligible(attempt, 8, 32, "too many")
    assert until_negligible(attempt, 8, 32, None) == 32
