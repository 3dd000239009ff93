"""Proposition 1 and what surrounds it, by enumeration on every kind of domain."""

import numpy as np
import pytest

import dfdbayes as dfd
import oracles
from random_masses import CASES, pair, table_model


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
@pytest.mark.daily(
    "categories and counts-0",
    "ordinal and counts-0",
    "binary-0",
    "counts-0",
    "mirrored-0",
    "integers-0",
    "mixed unbounded-0",
)
def test_computable_formula_equals_the_definition(name, seed):
    domain, p, q = pair(name, seed)
    model = table_model(domain, {x: np.log(v) for x, v in p.items()})
    data = dfd.Dataset.of(np.array(list(q)), weights=np.array(list(q.values())))
    computed = dfd.objective(model, data)({"scale": 1.0}) + oracles.constant(q, domain)
    assert computed == pytest.approx(oracles.divergence(p, q, domain), abs=1e-10, rel=1e-10)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.daily("categories among others", "two by three", "counts", "mixed unbounded")
def test_ratio_matching_is_a_squared_difference_of_chances(name):
    """Of each pair (x, x^+), with s the chance of x: (q(x) + q(x^+)) (s_p - s_q)^2, up to a constant."""
    domain, p, q = pair(name, 2)
    model = table_model(domain, {x: np.log(v) for x, v in p.items()})
    data = dfd.Dataset.of(np.array(list(q)), weights=np.array(list(q.values())))
    slow = free = 0.0
    for x in p:
        for j in range(domain.d):
            for after in oracles.increments(domain.coordinate(j), x[j]):
                there = oracles.moved(x, j, after)
                both = q.get(x, 0.0) + q.get(there, 0.0)
                if both and there in p:
                    chance = q.get(x, 0.0) / both
                    slow += both * (p[x] / (p[x] + p[there]) - chance) ** 2
                    free += both * chance**2
    assert dfd.objective(model, data, "ratio")({"scale": 1.0}) + free == pytest.approx(slow, abs=1e-10, rel=1e-10)


def as_arrays(domain, p, q):
    """Both mass functions on q's window, axes in each coordinate's own order."""
    axes = [sorted({x[j] for x in q}, reverse=domain.coordinate(j).kind == "below") for j in range(domain.d)]
    shape = [len(axis) for axis in axes]
    grid = [tuple(axes[j][i] for j, i in enumerate(index)) for index in np.ndindex(*shape)]
    return tuple(np.array([mass[x] for x in grid]).reshape(shape) for mass in (p, q))


@pytest.mark.parametrize("name", CASES)
def test_divergence_of_arrays_is_the_definition(name):
    domain, p, q = pair(name, 11)
    p = {x: p[x] for x in q}
    value = dfd.divergence(*as_arrays(domain, p, q), domain)
    assert value == pytest.approx(oracles.divergence(p, q, domain), rel=1e-12)
    assert value > 0


@pytest.mark.parametrize("name", CASES)
def test_divergence_is_zero_only_for_equal_mass_functions(name):
    domain, _, q = pair(name, 5)
    _, array = as_arrays(domain, q, q)
    assert dfd.divergence(array, array, domain) == 0.0
    assert dfd.divergence(3 * array, array, domain) == pytest.approx(0.0, abs=1e-20)  # no normalising constant
    other = array.copy()
    other.flat[other.argmax()] *= 1.1
    assert dfd.divergence(other, array, domain) > 1e-6


@pytest.mark.parametrize("name", CASES)
def test_summation_by_parts(name):
    """Sum of p(x) h(x^+) equals the sum of p(x^-) h(x): increments and decrements are inverse, all pairs their own."""
    domain, p, _ = pair(name, 7)
    h = {x: np.cos(sum((j + 1) * v for j, v in enumerate(x))) for x in p}
    for j in range(domain.d):
        coordinate = domain.coordinate(j)
        left = sum(
            v * h.get(oracles.moved(x, j, after), 0.0)
            for x, v in p.items()
            for after in oracles.increments(coordinate, x[j])
        )
        right = sum(
            oracles.mass(p, oracles.moved(x, j, before)) * h[x]
            for x in p
            for before in oracles.decrements(coordinate, x[j])
        )
        assert left == pytest.approx(right, abs=1e-12)


def test_order_preserving_relabelling_changes_nothing():
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 20, 4)
    table = dict(zip(range(4), rng.standard_normal(4), strict=True))
    values = []
    for levels in [(0, 1, 2, 3), (-7, 2, 3, 50)]:
        domain = dfd.Finite(1, levels)
        model = table_model(domain, {(level,): table[i] for i, level in enumerate(levels)})
        data = dfd.Dataset.of(np.array(levels)[:, None], domain, weights=counts)
        values.append(dfd.objective(model, data)({"scale": 1.0}))
    assert values[0] == pytest.approx(values[1], rel=1e-14)
    # and an order-reversing one does change it, so the test can fail
    domain = dfd.Finite(1, 4)
    reversed_model = table_model(domain, {(3 - i,): v for i, v in table.items()})
    data = dfd.Dataset.of(np.array([[3], [2], [1], [0]]), domain, weights=counts)
    assert abs(dfd.objective(reversed_model, data)({"scale": 1.0}) - values[0]) > 1e-3


@pytest.mark.parametrize("theta", [0.1, 0.37, 0.9])
def test_bernoulli_is_symmetric_under_relabelling(theta):
    x = np.array([0, 1, 1, 1, 0, 1, 1])
    model = dfd.models.Bernoulli()
    flipped = dfd.objective(model, 1 - x)({"probability": 1 - theta})
    assert dfd.objective(model, x)({"probability": theta}) == pytest.approx(flipped, rel=1e-13)


def test_ratio_matching_of_ordered_levels_does_not_depend_on_which_end_is_first():
    """It is the Brier score of "x rather than x + 1"; the divergence is not symmetric."""
    domain = dfd.Ordinal(1, 5)
    rng = np.random.default_rng(3)
    log, weights = rng.normal(size=5), rng.random(5)
    for loss, same in (("ratio", True), ("dfd", False)):
        found = []
        for turned in (np.arange(5), np.arange(5)[::-1]):
            model = table_model(domain, {(int(turned[x]),): log[x] for x in range(5)})
            data = dfd.Dataset.of(turned[:, None], weights=weights)
            constant = weights[turned < 4].sum()  # free of the model: what (1 - s)^2 has more than s^2 - 2 s
            found.append(dfd.objective(model, data, loss)({"scale": 1.0}) + constant)
        chances = 1 / (1 + np.exp(log[1:] - log[:-1]))
        brier = weights[:-1] @ (1 - chances) ** 2 + weights[1:] @ chances**2
        assert (abs(found[0] - found[1]) < 1e-12) == same
        assert (abs(found[0] - brier) < 1e-12) == same


def test_bad_arrays_are_refused():
    with pytest.raises(dfd.errors.ModelError, match="same points"):
        dfd.divergence([0.5, 0.5], [1.0])
    with pytest.raises(dfd.errors.ModelError, match="non-negative"):
        dfd.divergence([0.5, -0.5], [0.5, 0.5])
    with pytest.raises(dfd.errors.ModelError, match="axes"):
        dfd.divergence([0.5, 0.5], [0.5, 0.5], dfd.Binary(2))
    assert dfd.divergence([0.0, 1.0], [0.5, 0.5]) == np.inf


def test_half_lines_do_not_wrap():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
    as_dict = [dict(zip([(0,), (1,), (2,)], mass, strict=True)) for mass in (p, q)]
    on_counts = dfd.divergence(p, q, dfd.Counts(1))
    assert on_counts == pytest.approx(oracles.divergence(*as_dict, dfd.Counts(1)), rel=1e-12)
    assert abs(on_counts - dfd.divergence(p, q)) > 0.1
