"""Fits of every family give the numbers that they gave before; see `golden`."""

import json

import pytest

import golden

KEPT = json.loads(golden.FIXTURE.read_text())


@pytest.mark.parametrize("name", golden.CASES)
@pytest.mark.daily(
    "poisson, likelihood",
    "cmp, lyddon",
    "regression, binary",
    "series",
    "binary network, pseudo",
    "network, missing",
    "lattice, pseudo",
    "graph, independent",
    "own, scores",
)
def test_numbers_are_as_they_were(name):
    assert not golden.differences(golden.numbers_of(name), KEPT[name], name)


def test_every_number_that_is_kept_belongs_to_a_case():
    assert list(KEPT) == list(golden.CASES)


def test_a_difference_is_seen():
    one = KEPT["poisson, likelihood"]
    assert golden.differences(one | {"value": one["value"] * (1 + 1e-7)}, one)
    chain = KEPT["poisson, nuts"]
    assert not golden.differences(chain, chain)
    assert golden.differences(chain | {"chain": {"rate": [9.0, 0.01]}}, chain)
    assert golden.differences({name: part for name, part in one.items() if name != "beta"}, one)
