"""Registries: things by name, added where they are defined."""

import sys

import pytest

from dfdbayes.core.registry import Registry, import_modules
from dfdbayes.errors import ModelError, SettingError


@pytest.fixture
def shapes():
    found = Registry("shape", hint=", or a function")

    @found.register("circle", "disc")
    class Circle:
        pass

    found.register("corners")(4)
    return found


def test_a_name_gives_what_was_registered_and_the_decorator_returns_it_unchanged(shapes):
    @shapes.register("square")
    def square():
        return "square"

    assert square() == "square" and shapes.by_name("square") is square
    assert shapes.by_name("corners") == 4
    assert shapes.by_name("circle") is shapes.by_name("disc")


def test_names_come_in_alphabetical_order_whatever_was_imported_first(shapes):
    assert shapes.names() == tuple(shapes) == ("circle", "corners", "disc")
    assert "disc" in shapes and "line" not in shapes and len(shapes) == 3
    assert dict(shapes.items())["corners"] == 4


def test_a_thing_knows_the_first_name_it_was_given(shapes):
    assert shapes.name_of(shapes.by_name("disc")) == "circle"
    assert shapes.name_of(4) == "corners" and shapes.name_of(5) is None


def test_an_unknown_name_is_answered_with_the_known_ones_and_the_nearest(shapes):
    with pytest.raises(SettingError, match="no shape 'cirkle'; known: circle, corners, disc, or a function; did"):
        shapes.by_name("cirkle")
    with pytest.raises(SettingError, match="no shape 3; known"):
        shapes.by_name(3)
    with pytest.raises(ModelError, match="no model 'x'"):
        Registry("model", ModelError).by_name("x")


def test_a_taken_name_is_refused_and_a_definition_that_runs_again_replaces_itself(shapes):
    with pytest.raises(ValueError, match="a shape 'circle' already"):
        shapes.register("circle")(5)

    def define():
        @shapes.register("again")
        class Again:
            pass

        return Again

    first, second = define(), define()
    assert shapes.by_name("again") is second is not first


def test_every_module_of_a_package_is_imported(tmp_path, monkeypatch):
    package = tmp_path / "shapes_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from dfdbayes.core.registry import Registry, import_modules\n"
        "SHAPES = Registry('shape')\n"
        "import_modules(__name__)\n"
    )
    (package / "line.py").write_text("from . import SHAPES\n\n@SHAPES.register('line')\ndef line(): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import_modules("shapes_of_a_test")
    assert sys.modules["shapes_of_a_test"].SHAPES.names() == ("line",)
