"""One way to save and load every value: by declared fields and registered names, held to declared types."""

import datetime
import json
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any, NamedTuple, TypedDict

import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from jaxtyping import Bool, Float, Int

import dfdbayes as dfd
from dfdbayes._util.codec import (
    APART,
    LackingError,
    UnlikeError,
    UnwritableError,
    by_name,
    cell_from_plain,
    cell_to_plain,
    from_plain,
    plain_or_none,
    to_plain,
)  # fmt: skip
from dfdbayes.core.losses.base import AbstractLoss
from dfdbayes.core.losses.weights import AbstractWeight, Totals
from dfdbayes.core.registry import Registry


class Colour(StrEnum):
    RED = "red"


class Pair(NamedTuple):
    name: str
    number: int


class Shape:
    pass


SHAPES: Registry[type[Shape]] = Registry("shape")
by_name(Shape, SHAPES, tag="kind")


@SHAPES.register("circle")
@dataclass(frozen=True)
class Circle(Shape):
    radius: float
    unit: str = "m"


@dataclass(frozen=True)
class Whole:
    number: float
    pair: Pair
    many: dict[str, tuple[int, ...]]
    points: Float[np.ndarray, "n 2"]
    whole: Int[np.ndarray, " n"]
    truths: Bool[np.ndarray, " n"]
    table: pd.DataFrame | None
    shape: Shape
    colour: Colour = Colour.RED
    note: str | None = None
    model: Any = field(default=None, metadata=APART)


class Settings(TypedDict, total=False):
    seed: int


def whole(**parts):
    given = {
        "number": 1.5, "pair": Pair("a", 2), "many": {"b": (1, 2)}, "points": np.array([[1.0, np.nan], [np.inf, 0.1]]),
        "whole": np.array([1, 2**60]), "truths": np.array([True, False]), "shape": Circle(2.0),
        "table": pd.DataFrame({"x": [1.0, np.nan], "2": ["a", "b"], "none": np.nan}, pd.Index(["3", "c"], name="i")),
    }  # fmt: skip
    return Whole(**(given | parts))


def sent(value):
    return json.loads(json.dumps(to_plain(value)))


def test_a_dataclass_comes_back_as_it_was():
    value, again = whole(model="known"), from_plain(sent(whole(model="known")), Whole, model="known")
    for name in ("number", "pair", "many", "shape", "colour", "note", "model"):
        assert getattr(again, name) == getattr(value, name)
    for name in ("points", "whole", "truths"):
        np.testing.assert_array_equal(getattr(again, name), getattr(value, name))
        assert getattr(again, name).dtype == getattr(value, name).dtype
    pd.testing.assert_frame_equal(again.table, value.table)
    assert isinstance(again.pair, Pair) and isinstance(again.many["b"], tuple)
    assert "model" not in to_plain(value)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("number", "1"), ("number", True), ("number", None), ("pair", ["a"]), ("pair", ["a", 1.5]),
        ("many", {"b": [1.5]}), ("points", "red"), ("points", [1.0]), ("points", [["a", "b"]]), ("whole", [1.5]),
        ("truths", [2.0]), ("table", {"columns": []}), ("table", {"columns": [[]], "index": [0], "data": [[1]]}),
        ("shape", {"kind": "square"}), ("shape", {"kind": ["circle"]}), ("shape", "circle"), ("note", 3),
        ("model", "made by the file"), ("unknown", 1),
    ],
)  # fmt: skip
def test_what_is_of_another_type_is_refused_by_name(name, wrong):
    with pytest.raises(UnlikeError) as told:
        from_plain(sent(whole()) | {name: wrong}, Whole)
    assert told.value.name == name


def test_fields_of_registered_classes_are_held_to_their_types():
    with pytest.raises(UnlikeError, match="radius"):
        from_plain({"kind": "circle", "radius": "2"}, Shape)
    assert from_plain({"kind": "circle", "radius": 2}, Circle) == Circle(2)


def test_what_is_made_already_is_looked_at_and_given_back():
    value = whole()
    assert from_plain(value, Whole) is value
    with pytest.raises(UnlikeError, match="note"):
        from_plain(whole(note=3), Whole)


def test_settings_have_known_names():
    assert from_plain({"seed": 3}, Settings) == {"seed": 3}
    with pytest.raises(UnlikeError, match="speed"):
        from_plain({"speed": 3}, Settings)


@pytest.mark.parametrize(
    "loss",
    [
        dfd.losses.by_name("dfd"), dfd.losses.by_name("likelihood"), dfd.losses.KernelStein(),
        dfd.losses.KernelStein(dfd.kernels.Robust(dfd.kernels.below(90.0), dfd.kernels.OVERLAP)),
        dfd.losses.Robust("ratio", Totals((True,), (1.0,), 3.0, 1.0, 2.0, ((1.0, 2.0, 3.0),), 0.001, ("x",))),
    ],
)  # fmt: skip
def test_losses_come_back(loss):
    again = from_plain(sent(loss), AbstractLoss, model=None)
    assert again == loss and getattr(again, "weight", None) == getattr(loss, "weight", None)


@pytest.mark.parametrize(
    "value",
    [
        dfd.losses.Robust("dfd", weight=lambda rows: np.ones(len(rows))),
        dfd.losses.KernelStein(dfd.kernels.Custom(lambda a, b: np.ones((len(a), len(b))))),
        dfd.losses.KernelStein(dfd.kernels.Robust(lambda rows: np.ones(len(rows)))),
        dfd.losses.LocalLoss("dfd", "mine", np.exp, np.exp, bounded=True),
        len,
    ],
)
def test_functions_of_a_users_own_are_not_written(value):
    assert plain_or_none(value) is None
    with pytest.raises(UnwritableError):
        to_plain(value)


def test_a_weight_that_needs_a_model_says_so():
    plain = {"kind": "tails", "theta": [3.0], "level": 0.1}
    with pytest.raises(LackingError, match="model"):
        from_plain(plain, AbstractWeight)
    model = dfd.models.Poisson()
    assert from_plain(plain, AbstractWeight, model=model).model is model


def test_priors_come_back_and_nothing_else_of_their_library():
    prior = dist.TruncatedNormal(0.0, 1.0, low=0.1).expand([2])
    assert to_plain(from_plain(sent(prior), dist.Distribution)) == to_plain(prior)
    with pytest.raises(TypeError, match="kl_divergence is no"):
        from_plain({"name": "kl_divergence", "arguments": {}}, dist.Distribution)


@pytest.mark.parametrize(
    "value",
    [
        True, None, 2**60, 1.5, "x", (1, "a", pd.Timestamp("2020-01-01")), pd.Timestamp("2020-01-01"),
        pd.Timestamp("2020-10-25 00:30", tz="UTC").tz_convert("Europe/Berlin"), pd.Timedelta("1h"),
        pd.Period("2020-01"),
        pd.Interval(1, 2, closed="left"), pd.Interval(pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")),
        Decimal("1.50"), Fraction(1, 3), datetime.date(2020, 1, 1), datetime.time(3), datetime.datetime(2020, 1, 1),
    ],
    ids=repr,
)  # fmt: skip
def test_cells_of_tables_come_back(value):
    again = cell_from_plain(json.loads(json.dumps(cell_to_plain(value))))
    assert again == value and type(again) is type(value)


def test_cells_of_other_classes_are_refused():
    with pytest.raises(UnwritableError, match="complex"):
        cell_to_plain(1j)
    with pytest.raises(KeyError, match="system"):
        cell_from_plain({"system": "rm"})
