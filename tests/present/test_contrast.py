"""Colours of the report can be told apart: contrasts of WCAG 2.2, level AA, in light, in dark and in print."""

import re
from itertools import product
from pathlib import Path

import pytest

import dfdbayes

STYLE = (Path(dfdbayes.__file__).parent / "present" / "templates" / "style.css").read_text()
MEDIA = {
    "light": r"^:root\{([^}]*)\}",
    "dark": r"scheme:dark\)\{:root\{([^}]*)\}",
    "print": r"media print\{.*?:root\{([^}]*)\}",
}


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(2 * c for c in digits) if len(digits) == 3 else digits
    parts = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def colours(medium: str) -> dict[str, str]:
    """The light colours, and what a medium has in their place."""
    found: dict[str, str] = {}
    for name in ("light", medium):
        text = re.search(MEDIA[name], STYLE.replace("\n", ""), re.MULTILINE).group(1)
        found |= dict(re.findall(r"--(\w+):(#\w+)", text))
    return found


def test_known_contrasts():
    assert contrast("#000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("medium", MEDIA)
def test_text_and_lines_stand_out(medium):
    found = colours(medium)
    for text, ground in product(("ink", "quiet", "blue", "red"), ("paper", "tint", "bad")):
        assert contrast(found[text], found[ground]) >= 4.5, (text, ground)
    for line in ("blue", "red", "edge"):
        assert contrast(found[line], found["paper"]) >= 3.0, line
