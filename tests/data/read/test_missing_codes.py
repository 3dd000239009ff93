"""Codes of missing values: said by the user, or suspected and named; numbers in any notation."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dfdbayes as dfd
from dfdbayes.data.read.text import doubtful, readings, suspects, under

DataError, SettingError = dfd.errors.DataError, dfd.errors.SettingError


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    st.integers(-(10**12), 10**12),
    st.integers(0, 6),
    st.sampled_from(".,"),
    st.sampled_from(["", "other", " ", "'", "\xa0"]),
)
def test_a_number_is_read_as_it_was_written(whole, places, mark, group):
    """Whatever the decimal mark and the groups; under the other mark it is another number or none, never the same."""
    value = whole / 10**places
    group = {".": ",", ",": "."}[mark] if group == "other" else group
    digits, _, rest = f"{abs(value):.{places}f}".partition(".")
    text = ("-" if value < 0 else "") + f"{int(digits):,}".replace(",", group) + (mark + rest if rest else "")
    assert under(text, mark) == pytest.approx(value, abs=0)
    other = under(text, {".": ",", ",": "."}[mark])
    marked = "." in text or "," in text
    assert (other == under(text, mark)) if not marked else (other is None or other != value or value == 0)
    assert doubtful(text) == (len(set(readings(text).values())) == 2)


@pytest.mark.parametrize(
    "text", ["1,23,456", "1.2.3", "12,34.5.6", "1 23", "0x10", "1_000", "5%", "(3)", "1e", "", "-", "٣"]
)
def test_other_texts_are_no_numbers(text):
    assert readings(text) == {}


SUSPECTED = {
    "a code below counts": ({-9: 3, 0: 9, 1: 5, 2: 2}, (-9,)),
    "two codes": ({-99: 2, -98: 3, 0: 9, 1: 5, 4: 4}, (-99, -98)),
    "above ages": ({18: 3, 30: 9, 44: 5, 999: 1}, (999,)),
    "above a scale": ({1: 20, 2: 30, 3: 20, 4: 10, 5: 9, 9: 4}, (9,)),
    "above yes and no": ({0: 40, 1: 50, 7: 3, 9: 4}, (7, 9)),
    "the tail of counts": ({0: 60, 1: 30, 2: 9, 3: 1, 9: 1}, ()),
    "counts that reach it": ({0: 2, 40: 3, 70: 3, 99: 1}, ()),
    "a scale that reaches it": ({1: 5, 5: 5, 7: 5, 8: 5, 9: 5}, ()),
    "negative numbers": ({-9: 2, -5: 2, 0: 3, 4: 1}, ()),
    "spins": ({-1: 5, 1: 5}, ()),
    "one 88": ({0: 5, 1: 3, 2: 1, 88: 1}, ()),
}


@pytest.mark.parametrize(("often", "wanted"), SUSPECTED.values(), ids=SUSPECTED)
def test_suspected_codes(often, wanted):
    assert suspects(np.array(sorted(often), float), np.array([often[v] for v in sorted(often)])) == wanted


@pytest.mark.parametrize("seed", range(5))
def test_counts_and_scales_are_not_suspected(seed):
    """Poisson, geometric and binomial counts: no false alarm in these fixed samples."""
    rng = np.random.default_rng(seed)
    columns = {"a": rng.poisson(3, 400), "b": rng.geometric(0.2, 400) - 1, "c": rng.binomial(6, 0.4, 400)}
    assert dfd.Dataset.of(columns).notes == ()


FRAME = pd.DataFrame({"visits": [0, 3, -9, 2, 1, 4, -9, 2], "age": [30, 41, 52, 999, 28, 33, 61, 47]})


def test_codes_are_taken_out_where_they_are_said_to_be():
    for codes in ([-9, 999], ["-9", "999"], {"visits": -9, "age": [999]}):
        data = dfd.Dataset.of(FRAME, missing="drop", missing_codes=codes)
        assert data.n == 5 and data.dropped == 3 and data.notes == ()
    everywhere = dfd.Dataset.of(FRAME, missing="drop", missing_codes={"visits": [-9]})
    assert everywhere.n == 6 and 999 in everywhere.rows
    with pytest.raises(SettingError, match="names 'visit', which is not a column"):
        dfd.Dataset.of(FRAME, missing_codes={"visit": -9})
    with pytest.raises(SettingError, match="give numbers or texts"):
        dfd.Dataset.of(FRAME, missing_codes=[None])
    with pytest.raises(SettingError, match="part of a Dataset"):
        dfd.Dataset.of(everywhere, missing_codes=[-9])


def test_suspected_codes_are_named_and_read_as_numbers():
    (note,) = dfd.Dataset.of(FRAME).notes
    assert "'visits' holds -9, 'age' holds 999" in note and "missing_codes=[-9, 999]" in note
    assert "--missing-codes=-9,999" in note
    assert dfd.Dataset.of(FRAME).n == 8 and dfd.Dataset.of(FRAME, missing_codes=[]).notes == ()


def test_a_code_outside_the_domain_comes_with_the_way_out():
    with pytest.raises(
        DataError, match=r"row 3, column 'visits' is -9; .* say missing_codes=\[-9\] \(--missing-codes=-9"
    ):
        dfd.Dataset.of(FRAME, dfd.Counts(1), columns=["visits"])


def test_weights_keep_their_rows_beside_codes():
    frame = FRAME.set_axis(list("abcdefgh"))
    weights = pd.Series(range(8), index=list("hgfedcba"))
    data = dfd.Dataset.of(frame, weights=weights, columns=["visits"], missing="drop", missing_codes=[-9])
    assert dict(zip(data.rows[:, 0].tolist(), data.counts.tolist(), strict=True)) == {0: 7, 1: 3, 2: 4, 3: 6, 4: 2}


def test_codes_on_the_command_line(call, tmp_path):
    rows = "\n".join(["visits", *map(str, [0, 1, 2, 3, 4, 2, 1, 3] * 5), "-9", "oh"])
    (tmp_path / "x.csv").write_text(rows)
    quick = ["--model", "poisson", "--sampler", "laplace", "--draws", "50", "--json"]
    code, _, err = call("fit", tmp_path / "x.csv", *quick)
    assert code == 2 and "x.csv has 2 problems" in err and "row 42, column 'visits' is the text 'oh'" in err
    for codes in ("-9,oh", "visits=-9,visits=oh"):
        code, out, _ = call("fit", tmp_path / "x.csv", *quick, "--missing-codes", codes, "--missing", "drop")
        assert code == 0 and json.loads(out)["n"] == 40
    code, _, err = call("fit", tmp_path / "x.csv", *quick, "--missing-codes", "-9,visits=oh")
    assert code == 2 and "NAME=CODE" in err


def test_a_run_with_codes_is_repeated(call, tmp_path):
    (tmp_path / "x.csv").write_text("\n".join(["visits", *map(str, [0, 1, 2, 3, 4, 2, 1, 3] * 5), "-9"]))
    words = ["--model", "poisson", "--sampler", "laplace", "--draws", "50", "--missing-codes=-9", "--missing", "drop"]
    assert call("fit", tmp_path / "x.csv", *words, "--out", tmp_path / "run")[0] == 0
    code, out, _ = call("rerun", tmp_path / "run")
    assert code == 0 and "the draws are the same" in out
