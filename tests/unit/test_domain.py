import numpy as np
import pytest

import dfdbayes as dfd
import oracles

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
    "categories": dfd.Categories(1, ["low", "middle", "high"]),
    "mixed": dfd.Counts(1) * dfd.Binary(1) * dfd.Integers(1) * dfd.CountsBelow(1) * dfd.Finite(1, 3),
}


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_neighbours_match_the_definition(domain):
    rows = np.array(oracles.points(domain, 4))
    down, exists = domain.decrement(rows)
    up, up_exists = domain.increment(rows)
    for i, row in enumerate(rows):
        for j in range(domain.d):
            coordinate = domain.coordinate(j)
            before = oracles.decrement(coordinate, int(row[j]))
            assert exists[i, j] == (before is not oracles.STAR)
            if before is not oracles.STAR:
                assert down[i, j] == before
            after = oracles.increment(coordinate, int(row[j]))
            assert up_exists[i, j] == (after is not oracles.STAR)
            if after is not oracles.STAR:
                assert up[i, j] == after


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_increment_undoes_decrement_and_back(domain):
    rows = np.array(oracles.points(domain, 5))
    down, exists = domain.decrement(rows)
    assert (domain.increment(down)[0][exists] == rows[exists]).all()
    up, exists = domain.increment(rows)
    assert (domain.decrement(up)[0][exists] == rows[exists]).all()


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
