"""What fell when the mends were attacked with other ideas."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from jax.scipy.special import gammaln

import dfdbayes as dfd
from dfdbayes import graphs

QUICK = ("--bootstrap", "60", "--draws", "100", "--sampler", "laplace")
X = np.random.default_rng(0).poisson(3.0, 200)


def test_identity_is_the_same_in_every_process():
    """Texts hash differently from process to process; what is kept must be found again all the same."""
    code = (
        "import numpyro.distributions as d, dfdbayes as dfd\n"
        "from dfdbayes._util.identity import fingerprint\n"
        "priors = d.Normal(2, 1), d.Normal(1, 2), d.TruncatedNormal(0, 1, low=0), d.Chi2(3.0)\n"
        "seen = [*map(fingerprint, priors), dfd.models.ConwayMaxwellPoisson().identity]\n"
    )
    here: dict = {}
    exec(code, here)
    words = [sys.executable, "-c", f"import jax; jax.config.update('jax_enable_x64', True)\n{code}print(seen)"]
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    there = subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout
    assert there.strip() == str(here["seen"]) and len(set(map(str, here["seen"]))) == 5


def tabulated(table, wrap):
    @wrap
    def log_mass(theta, x):
        return theta["r"] * x[0] + jnp.asarray(table)[jnp.clip(x[0].astype(int), 0, 59)]

    return dfd.Model(log_mass, dfd.Counts(1), {"r": dist.Normal(0, 2)})


@pytest.mark.parametrize("wrap", [jax.jit, lambda function: function])
def test_constants_inside_compiled_functions_count(wrap):
    one = -gammaln(np.arange(60.0) + 1)
    other = np.array(one)
    other[5] -= 0.4
    first, second = tabulated(one, wrap), tabulated(other, wrap)
    assert first != second and first == tabulated(one, wrap)
    values = [dfd.objective(model, X, "pseudo")({"r": 1.0}) for model in (first, second)]
    assert values[0] != values[1]


def test_the_data_are_not_written_over(call, tmp_path, visits):
    out = tmp_path / "run"
    assert call("fit", visits, "--model", "poisson", "--out", out, *QUICK)[0] == 0
    before = (out / "summary.csv").read_bytes()
    code, _, err = call("fit", out / "summary.csv", "--model", "poisson", "--columns", "mean", "--out", out, *QUICK)
    assert code == 2 and "would be written over" in err and (out / "summary.csv").read_bytes() == before
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "report.html").write_text("my report")
    code, _, err = call("fit", visits, "--model", "poisson", "--out", mine, *QUICK)
    assert code == 2 and "not from a run of dfdbayes" in err and (mine / "report.html").read_text() == "my report"
    assert call("fit", visits, "--model", "poisson", "--out", "", *QUICK)[0] == 2


def test_files_beside_the_parts_stay(tmp_path, quick):
    (tmp_path / "thesis.npz").write_bytes(b"three years")
    for resume in (True, False):
        with pytest.raises(dfd.errors.SettingError, match="nothing was touched"):
            quick("poisson", X, checkpoint=tmp_path, resume=resume)
    notes = tmp_path / "notes.txt"
    notes.write_text("mine\n")
    with pytest.raises(dfd.errors.SettingError, match="not touched"):
        dfd.coverage(dfd.models.Poisson(), {"rate": 3.0}, 50, 2, path=notes, progress=False)
    assert notes.read_text() == "mine\n"


def test_a_model_with_a_borrowed_name_is_not_replaced(tmp_path, quick):
    model = dfd.Model(lambda t, x: -t["rate"] * x[0], dfd.Counts(1), {"rate": dist.HalfNormal(2)}, name="poisson")
    fit = quick(model, X, loss="ratio")
    again = dfd.load(fit.save(tmp_path / "f.nc"))
    assert again.model is None and again.missing == ("model",)
    with pytest.raises(dfd.errors.ModelError, match="loaded without its model"):
        again.replicate()
    assert dfd.load(tmp_path / "f.nc", model=model).replicate(draws=3).replicates.shape[0] == 3
    with pytest.raises(dfd.errors.ModelError, match="parameters"):
        dfd.load(tmp_path / "f.nc", model=dfd.models.ConwayMaxwellPoisson())


def test_a_loaded_fit_has_its_priors_and_its_loss(tmp_path, quick):
    prior = {"rate": dist.TruncatedNormal(3.0, 2.0, low=0.5)}
    loss = dfd.losses.KernelStein(dfd.kernels.Robust(dfd.kernels.below(20.0)))
    fit = quick("poisson", X, prior=prior, loss=loss, bootstrap=30, check=True)
    again = dfd.load(fit.save(tmp_path / "f.nc"))
    assert again.missing == () and again.loss == loss
    assert again.model.identity == fit.model.identity
    pd.testing.assert_frame_equal(again.uncalibrated, fit.uncalibrated)
    assert again.checks.goodness == fit.checks.goodness
    own = quick("poisson", X, prior=prior, loss="ratio")
    assert dfd.load(own.save(tmp_path / "g.nc")).loss == dfd.losses.RATIO


def test_a_file_of_the_first_format_is_refused_by_a_sentence(tmp_path):
    from pathlib import Path

    fixture = Path(__file__).parents[1] / "fixtures" / "format-1.netcdf"
    with pytest.raises(dfd.errors.DataError, match=r"saved by dfdbayes 0\.1 \(format 1\).*fit again"):
        dfd.load(fixture)


def test_derived_quantities_get_copies_and_are_numbers(quick):
    def model(derived):
        prior = {"r": dist.Normal(0, 2)}
        return dfd.Model(lambda t, x: t["r"] * x[0] - gammaln(x[0] + 1), dfd.Counts(1), prior, derived=derived)

    def greedy(theta):
        theta["r"] *= 10
        return {"ten": theta["r"]}

    table = quick(model(greedy), X).summary()
    assert table.loc["ten", "mean"] == pytest.approx(10 * table.loc["r", "mean"])
    assert "one" in quick(model(lambda t: {"one": np.ones_like(t["r"])}), X).summary().index
    for wrong in (lambda t: 1 / 0, lambda t: None, lambda t: {"a": 3.0}, lambda t: {"a": np.full(t["r"].shape, "x")}):
        with pytest.raises(dfd.errors.ModelError, match="derived"):
            quick(model(wrong), X)


def test_priors_that_one_parameter_cannot_have():
    uneven = dist.Uniform(jnp.array([0.1, 0.1]), jnp.array([4.6, 10.0]))
    for prior in (dist.Delta(1.0), dist.Normal(0, 1).mask(False), uneven, dist.Normal,
                  dist.ImproperUniform(dist.constraints.real, (), ()).expand([2])):  # fmt: skip
        with pytest.raises(dfd.errors.ModelError):
            dfd.Parameter("m", prior, shape=(2,) if prior is uneven else ())


def test_misreadings(tmp_path):
    (tmp_path / "q.csv").write_text('"3"\n"5"\n"2"\n"3"\n')
    assert dfd.Dataset.of(tmp_path / "q.csv").n == 4
    for weights in (np.ma.array([5, 6, 7], mask=[0, 1, 0]), pd.to_datetime(["2024-01-01"] * 3), np.array([1j, 1, 1])):
        with pytest.raises(dfd.errors.DataError):
            dfd.Dataset.of([0, 1, 2], weights=weights)
    for make in (lambda: dfd.Finite(1, [0.5, 1.5]), lambda: dfd.Counts(1.5), lambda: graphs.grid(2.5, 3)):
        with pytest.raises(dfd.errors.ModelError):
            make()
    with pytest.raises(dfd.errors.DataError, match="two columns"):
        dfd.Dataset.of({1: [1, 2], "1": [2, 3]})
    with pytest.raises(dfd.errors.DataError, match="different indexes"):
        dfd.Dataset.of({"a": pd.Series([1, 2]), "b": pd.Series([1, 2], index=[1, 0])})
    data = dfd.Dataset.of({"a": [1, 2], "b": [3, 4], "ab": [5, 6]})
    assert dfd.Dataset.of(data, columns="ab").columns == ("ab",)
    for columns in ([], 0):
        with pytest.raises(dfd.errors.DataError, match="names of columns"):
            dfd.Dataset.of(data, columns=columns)


def test_numbered_nodes_that_are_no_positions_are_names():
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (50, 3)), columns=[30, 10, 20])
    model = dfd.models.IsingNetwork(nx.Graph([(30, 10), (10, 20)]))
    names = dfd.objective(model, frame, "pseudo").model.space.names
    joined = {frozenset(n[len("interaction[") : -1].split(",")) for n in names if n.startswith("interaction")}
    assert joined == {frozenset(("30", "10")), frozenset(("10", "20"))}
    with pytest.raises(dfd.errors.DataError):
        dfd.objective(dfd.models.IsingNetwork(nx.Graph([("a", 1), (1, "b")])), frame)


def test_settings_of_the_wrong_type_are_sentences(tmp_path, quick):
    fit = quick("poisson", X, seed=np.int64(3), draws=np.int64(100), beta=np.float32(0.5), columns=None)
    fit.save(tmp_path / "f.nc")
    frame = pd.DataFrame({"a": X, "b": X})
    assert quick("poisson", frame, columns=frame.columns[:1]).data.columns == ("a",)
    for settings in ({"draws": 5.5}, {"chains": "2"}, {"bootstrap": 2.5}, {"beta": "x"},
                     {"loss": None}, {"sampler": 42}, {"options": "abc"}, {"seed": 1.5}):  # fmt: skip
        with pytest.raises(dfd.errors.DfdbayesError):
            quick("poisson", X, **settings)
    for model in (dfd.models.Poisson, None, X):
        with pytest.raises(dfd.errors.ModelError, match="the model is"):
            quick(model, X)
    with pytest.raises(dfd.errors.SettingError, match="belong to a model given by name"):
        quick(dfd.models.Poisson(), X, options={"graph": 3})


def test_a_model_that_changed_since_the_fit_does_not_predict(quick):
    class Power:
        value = 1.0

    power = Power()
    model = dfd.Model(
        lambda t, x: t["r"] * x[0] - power.value * gammaln(x[0] + 1), dfd.Counts(1), {"r": dist.Normal(0, 2)}
    )
    fit = quick(model, X)
    fit.replicate(draws=2)
    power.value = 0.5
    with pytest.raises(dfd.errors.ModelError, match="changed since this fit"):
        fit.replicate(draws=2)
