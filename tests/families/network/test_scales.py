"""Scales: levels with labels and an order, levels that nobody or hardly anybody chose, and what is said of them."""

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd
from dfdbayes.cli.arguments import levels_of
from dfdbayes.cli.printing import show
from dfdbayes.data.read.profile import domain_of
from dfdbayes.errors import DataError, ModelError, SettingError
from dfdbayes.families import named_model
from dfdbayes.families.network import mixed
from dfdbayes.families.network.descriptions import told
from dfdbayes.fitting.runs import again
from dfdbayes.present import sections
from small_fits import quietly

WORDS = ["never", "rarely", "often", "always"]
READING = {"columns": None, "weights": None, "missing": "refuse", "cluster": None}


@pytest.fixture(scope="module")
def codes():
    model = dfd.models.Network(dfd.Ordinal(3, 4))
    theta = {"threshold": [0.5, 0.3, -0.5] * 3, "interaction": [0.3, 0.0, -0.2]}
    return pd.DataFrame(dfd.simulate(model, theta, 300, seed=3).rows, columns=["calm", "happy", "tense"])


@pytest.fixture(scope="module")
def words(codes):
    """The first column as an ordered category, the second as texts, the third as numbers."""
    ordered = pd.Categorical.from_codes(codes["calm"], WORDS, ordered=True)
    return codes.assign(calm=ordered, happy=[WORDS[code] for code in codes["happy"]])


@pytest.fixture(scope="module")
def labelled(words):
    return quietly("network", words, options={"levels": {"happy": WORDS}}, check=False)


def test_labels_change_names_and_nothing_else(codes, labelled):
    plain = quietly("network", codes, check=False)
    np.testing.assert_array_equal(labelled.summary(), plain.summary())
    assert list(labelled.summary().index[:5]) == [
        "interaction[calm,happy]", "interaction[calm,tense]", "interaction[happy,tense]", "threshold[calm,rarely]",
        "threshold[calm,often]",
    ]  # fmt: skip
    assert list(plain.summary().index[-2:]) == ["threshold[tense,2]", "threshold[tense,3]"]


def test_kinds_are_said_by_name(labelled):
    said = (
        "kinds, as guessed: tense ordinal (4 levels, 0 to 3); as given: calm, happy ordinal (4 levels, never to always)"
    )
    assert labelled.settings["kinds"] == said
    override = "override with --kinds NAME=KIND,... or options={'kinds': {NAME: KIND}}"
    assert f"{said}; {override}" in " ".join(str(labelled).split())
    assert "adjacent categories" in labelled.settings["loss_reason"]
    kinds = mixed.for_data(dfd.Dataset.of(np.array([[0, 0], [1, 30]]))).kinds
    assert (
        told(kinds, ["smokes", "visits"], ["kind", "levels"])
        == "kinds, as guessed: smokes binary; as given: visits count"
    )
    many = [f"q{i}" for i in range(25)]
    assert told([kinds[0]] * 25, many, ["kind"] * 25).endswith("q8, q9 and 15 more binary")


def test_the_console_says_kinds_and_shows_interactions_first(labelled, capsys):
    show(labelled, 0.95)
    shown = capsys.readouterr().out
    assert f"{labelled.settings['kinds']}; override with --kinds NAME=KIND,..." in " ".join(shown.split())
    lines = shown.splitlines()
    first, last = (
        next(i for i, line in enumerate(lines) if line.startswith(name)) for name in ("interaction", "threshold")
    )
    assert first < last
    assert "ordinal (4 levels, never to always)" in sections.model(labelled)[-1].rows["kinds"]


def test_a_run_is_repeated_with_the_levels_that_were_declared(words):
    """Its folder keeps codes; a level that nobody chose is part of the model all the same."""
    frame = words[["calm", "tense"]].assign(calm=words["calm"].cat.add_categories(["beyond"]))
    fit = quietly("network", frame, check=False)
    settings = again(fit, {"options": {"kinds": None}})
    assert settings["options"] == {"kinds": None, "levels": {"calm": [*WORDS, "beyond"]}}
    repeated = quietly("network", settings["data"], options=settings["options"], check=False)
    assert repeated.model == fit.model and repeated.settings["kinds"] == fit.settings["kinds"]
    np.testing.assert_array_equal(repeated.summary(), fit.summary())


def test_saved_labels_come_back(labelled, tmp_path):
    loaded = dfd.load(labelled.save(tmp_path / "fit.nc"))
    assert loaded.missing == () and loaded.settings["kinds"] == labelled.settings["kinds"]
    assert loaded.model.space.names == labelled.model.space.names
    assert loaded.model.domain.coordinate(0).labels == tuple(WORDS)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_files_of_labels(words, labelled, tmp_path, suffix):
    """A Parquet file keeps the order of categories; of a CSV file all are texts, and one list serves two columns."""
    path = tmp_path / f"answers.{suffix}"
    frame = words if suffix == "parquet" else words[["calm", "happy"]]
    getattr(frame, f"to_{suffix}")(path, index=False)
    levels = {"happy": WORDS} if suffix == "parquet" else levels_of([",".join(WORDS)])
    domain = domain_of(path, READING, levels)
    data = dfd.Dataset.of(path, domain)
    wanted = labelled.data if suffix == "parquet" else labelled.data._select(["calm", "happy"])
    np.testing.assert_array_equal(data.rows, wanted.rows)


def test_texts_without_an_order_are_refused_with_the_remedy(words, codes):
    frame = words.assign(sleep=words["happy"])
    with pytest.raises(DataError, match=r"'happy' holds texts \('always', .* so do 'sleep'\).*ordered=True.*--levels"):
        domain_of(frame, READING)
    unordered = codes.assign(calm=pd.Categorical.from_codes(codes["calm"], WORDS))
    with pytest.raises(DataError, match="column 'calm' holds texts"):
        dfd.fit("network", unordered, progress=False)
    slip = codes.astype(object)
    slip.loc[7, "calm"] = "x"
    with pytest.raises(DataError, match="row 8, column 'calm' is the text 'x'"):
        dfd.fit("network", slip, progress=False)
    with pytest.raises(DataError, match=r"row \d+, column 'happy' is '[a-z]+'; Ordinal needs one of never, always"):
        dfd.fit("network", words, options={"levels": {"happy": ["never", "always"]}}, progress=False)


def test_levels_that_make_no_sense_are_refused(codes):
    for levels, said in (
        ({"hapy": WORDS}, "did you mean 'happy'"),
        ({"happy": "never"}, "give a list"),
        ("never", "must be a list"),
        ({"happy": [1, 1]}, "all of them different"),
    ):
        with pytest.raises(SettingError, match=said):
            domain_of(codes, READING, levels)
    with pytest.raises(ModelError, match="whole numbers or texts, not both"):
        dfd.Ordinal(1, [0, "often"])
    with pytest.raises(ModelError, match="cannot be of kind 'count'"):
        mixed.for_data(dfd.Dataset.of(codes), kinds={"calm": "count"}, scales=dfd.Ordinal(3, 4))
    constant = dfd.Dataset.of(codes.assign(calm=2))
    with pytest.raises(ModelError, match="column 'calm' has the same value, often, in every row"):
        mixed.for_data(constant, scales=dfd.Ordinal(3, WORDS))


def test_whole_numbers_that_rise_are_their_own_labels(codes):
    declared = codes.assign(calm=pd.Categorical(codes["calm"] + 1, [1, 2, 3, 4, 5], ordered=True))
    assert domain_of(declared, READING).coordinate(0).levels == (1, 2, 3, 4, 5)
    turned = codes.assign(calm=pd.Categorical(codes["calm"], [3, 2, 1, 0], ordered=True))
    domain = domain_of(turned, READING)
    assert domain.coordinate(0).labels == ("3", "2", "1", "0")
    data = dfd.Dataset.of(turned, domain)
    assert data.counts[data.rows[:, 0] == 0].sum() == (codes["calm"] == 3).sum()


@pytest.mark.parametrize("how", ["category", "levels", "kinds", "csv", "formula"])
@pytest.mark.daily("category", "csv", "kinds")
def test_levels_enter_by_rank_whatever_their_numbers_are(codes, tmp_path, how):
    """Household income in brackets is 2500 ... 200000: neighbours see 0, 1, 2, 3, and the names stay the user's."""
    incomes = [2500, 5000, 17500, 200000]
    income, settings = pd.Series([incomes[code] for code in codes["calm"]], name="calm"), {"options": {}}
    source = codes.assign(calm=pd.Categorical(income, incomes, ordered=True))
    if how in ("levels", "csv"):
        source, settings = codes.assign(calm=income), {"options": {"levels": {"calm": incomes}}}
    elif how == "kinds":
        source, settings = codes.assign(calm=income), {"options": {"kinds": {"calm": "ordinal"}}}
    elif how == "formula":
        source = source.assign(age=np.random.default_rng(0).normal(size=len(source)))
        settings = {"formula": "~ age"}
    if how == "csv":
        source.to_csv(tmp_path / "answers.csv", index=False)
        source = tmp_path / "answers.csv"
    fit = quietly("network", source, check=False, **settings)
    if how == "formula":
        assert "interaction[calm,happy]" in fit.summary().index
        assert set(fit.data.rows[:, 0]) == {0, 1, 2, 3}
        return
    plain = quietly("network", codes, check=False)
    np.testing.assert_allclose(fit.summary(), plain.summary(), rtol=1e-6)
    assert "threshold[calm,17500]" in fit.summary().index and "2500 to 200000" in fit.settings["kinds"]
    loaded = dfd.load(fit.save(tmp_path / "fit.nc"))
    assert loaded.model.space.names == fit.model.space.names and loaded.missing == ()


def test_labels_that_are_numbers_are_found_however_they_are_written(tmp_path):
    """A gap makes whole numbers floats: 2500.0 in a frame, and in the file that is written from it."""
    frame = pd.DataFrame({"a": [2500, 5000, None, 2500.0], "b": [0.5, 1.5, 2.0, 0.5], "c": [0, 1, 0, 1]})
    frame.to_csv(tmp_path / "x.csv", index=False)
    domain = domain_of(frame, READING, {"a": [2500, 5000], "b": [0.5, 1.5, 2]})
    assert domain.coordinate(0).names == ("2500", "5000") and domain.coordinate(1).names == ("0.5", "1.5", "2")
    for source in (frame, frame.astype(object), tmp_path / "x.csv"):
        data = dfd.Dataset.of(source, domain, missing="drop")
        assert sorted(map(tuple, data.rows)) == [(0, 0, 0), (0, 0, 1), (1, 1, 1)]


def test_a_parquet_file_without_the_levels_of_its_categories_says_so(codes, tmp_path):
    codes.assign(calm=pd.Categorical(codes["calm"], [3, 2, 1, 0], ordered=True)).to_parquet(tmp_path / "x.parquet")
    (note,) = dfd.Dataset.of(tmp_path / "x.parquet").notes
    assert "'calm' is an ordered category" in note and "--levels" in note
    assert not dfd.Dataset.of(
        tmp_path / "x.parquet", domain_of(tmp_path / "x.parquet", READING, {"calm": [3, 2, 1, 0]})
    ).notes


def test_scores_are_asked_for_by_a_model_of_ones_own(codes):
    model = dfd.models.Network(dfd.Ordinal(1, [1, 10, 100]) * dfd.Ordinal(1, 4))
    np.testing.assert_array_equal(model.kinds[0].edge_statistic(np.array([1, 10, 100])), [0, 9, 99])
    wide = dfd.Dataset.of(codes.assign(calm=codes["calm"] * 1000))
    with pytest.raises(ModelError, match=r"'calm' has levels from 0 to 3000.*dfd\.Ordinal"):
        dfd.fit("network", wide, options={"kinds": {"calm": "ordinal"}}, progress=False)


def test_levels_that_nobody_chose_are_named(codes):
    """Inside a scale that was guessed they are left out; where the scale was declared the prior holds them."""
    frame = codes[codes["calm"] != 2]
    fit = quietly("network", frame, check=False)
    (left_out,) = [text for text in fit.warnings if "nobody chose" in text]
    assert "nobody chose calm = 2: such levels inside a scale are left out" in left_out
    assert "threshold[calm,2]" not in fit.summary().index
    held = quietly("network", frame, options={"levels": {"calm": [0, 1, 2, 3, 4]}}, check=False)
    (prior,) = [text for text in held.warnings if "nobody chose" in text]
    assert "nobody chose calm = 2, calm = 4, though the scale has such a level" in prior
    table = held.summary()
    assert (table.loc[["threshold[calm,2]", "threshold[calm,4]"], "sd"] > 2.0).all()
    edges = [name for name in table.index if name.startswith("interaction")]
    np.testing.assert_allclose(table.loc[edges, "mean"], fit.summary().loc[edges, "mean"], atol=0.03)


def test_levels_that_few_chose_are_named(codes):
    frame = codes.copy()
    frame.loc[frame.index[:2], "tense"] = 4
    model = mixed.for_data(dfd.Dataset.of(frame))
    (remark,) = model.remarks(dfd.Dataset.of(frame))
    assert "fewer than 5 rows (in brackets): tense = 4 (2)" in remark
    assert not mixed.for_data(dfd.Dataset.of(codes)).remarks(dfd.Dataset.of(codes))
    weights = np.where(frame["tense"] == 4, 20.0, 1.0)  # frequencies
    assert not model.remarks(dfd.Dataset.of(frame, weights=weights))
    own = dfd.models.Network(dfd.Ordinal(3, (0, 1, 3)))
    rare = dfd.Dataset.of(frame.replace({2: 1, 4: 3}))
    assert not own.remarks(rare)  # a scale of one's own may well leave out a level


def test_a_network_waits_for_data_unless_all_is_known():
    known = {"levels": [[0, 1], None], "kinds": ["binary", "count"]}
    assert named_model("network").needs_data({}) and named_model("network").needs_data(
        {"levels": WORDS, "kinds": ["ordinal"] * 4}
    )
    assert named_model("network").needs_data({"levels": {"calm": WORDS}}) and not named_model("network").needs_data(
        known
    )
    assert not named_model("cmp").needs_data({})


def test_the_command_line_takes_levels():
    assert levels_of(["mood=never, often", "calm=1,2,3"]) == {"mood": ["never", "often"], "calm": [1, 2, 3]}
    assert levels_of(["never,often"]) == ["never", "often"] and levels_of(None) is None
    with pytest.raises(SettingError, match="either of all columns"):
        levels_of(["never,often", "calm=1,2"])
