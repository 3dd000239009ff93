import numpy as np
import pytest
from arviz_stats.base import array_stats
from matplotlib.figure import Figure

import dfdbayes as dfd
import small_fits
from dfdbayes import plots
from dfdbayes.fitting.coverage import Coverage
from dfdbayes.present.figures.smoothing import smoothed


def texts(figure: Figure) -> str:
    """Everything written in a figure, once it has been drawn."""
    figure.savefig("/dev/null", format="png", dpi=40)
    found = []
    for axes in figure.axes:
        found += [axes.get_title(), axes.get_xlabel(), axes.get_ylabel()]
        found += [label.get_text() for label in (*axes.get_xticklabels(), *axes.get_yticklabels(), *axes.texts)]
        legend = axes.get_legend()
        found += [text.get_text() for text in legend.get_texts()] if legend is not None else []
    found += [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return "\n".join(found)


def test_plots_are_public():
    assert dfd.plots is plots and "plots" in dfd.__all__
    for name in ("posterior", "pairs", "calibration", "predictive", "network", "lattice", "comparison", "coverage"):
        assert name in plots.__all__
    with pytest.raises(AttributeError, match="no attribute 'plot'"):
        dfd.plot  # noqa: B018


@pytest.mark.parametrize("draw", [plots.posterior, plots.pairs, plots.trace, plots.intervals])
def test_every_parameter_has_its_name(draw):
    figure = draw(small_fits.counts())
    assert isinstance(figure, Figure)
    for name in ("rate", "nu", "mean", "dispersion_index"):
        assert name in texts(figure).splitlines()


@pytest.mark.parametrize("draw", [plots.posterior, plots.pairs, plots.trace, plots.calibration])
def test_one_parameter(draw):
    assert "temperature" in texts(draw(small_fits.lattice()))


@pytest.mark.parametrize("draw", [plots.posterior, plots.pairs, plots.trace, plots.calibration])
def test_a_hundred_parameters_with_long_names(draw):
    names = [f"a column with a rather long name\non several lines, worth $many$, {i}" for i in range(100)]
    figure = draw(small_fits.wide(names))
    seen = texts(figure)
    assert "w[a colum" in seen and " 0]" in seen
    assert r"\$many\$" in texts(draw(small_fits.wide(["$many$", "b"])))
    width, height = figure.get_size_inches()
    assert width < 12 and height < 25
    assert len(figure.axes) <= {plots.pairs: 21, plots.trace: 12}.get(draw, 1)


def test_pairs_of_chosen_entries():
    fit = small_fits.counts()
    assert len(plots.pairs(fit, ["mean", "rate"]).axes) == 3
    with pytest.raises(dfd.errors.SettingError, match="no entry 'x'"):
        plots.pairs(fit, ["x"])
    with pytest.raises(dfd.errors.SettingError, match="at most 6"):
        plots.pairs(fit, ["rate"] * 7)


def test_calibration_shows_both_clouds_or_nothing():
    fit = small_fits.counts()
    seen = texts(plots.calibration(fit)).splitlines()
    assert all(word in seen for word in ("rate", "nu", "posterior draws", "bootstrap minimisers"))
    points = plots.calibration(fit).axes[0].lines[1]
    np.testing.assert_allclose(points.get_xdata(), fit.calibration.minimisers[:, 0])
    given = small_fits.quietly("poisson", [1, 2, 3, 4] * 20, beta=1.0)
    assert plots.calibration(given) is None
    ratios = plots.calibration(small_fits.network())
    assert "times that at beta = 1" in texts(ratios) and len(ratios.axes[0].lines[1].get_xdata()) == 10


def test_entries_are_named_as_in_the_summary():
    for fit in (small_fits.counts(), small_fits.network(), small_fits.count_network()):
        assert list(fit.entries) == list(fit.summary().index)
        means = [values.mean() for values in fit.entries.values()]
        np.testing.assert_allclose(means, fit.summary()["mean"], rtol=1e-10)


def test_data_by_kind():
    one = plots.data(small_fits.counts().data)
    assert "sales" in texts(one) and sum(bar.get_height() for bar in one.axes[0].patches) == 3168
    many = texts(plots.data(small_fits.network().data))
    assert "mood & <b>" in many and r"price_\$x\$" in many
    assert "mean by site" in texts(plots.data(small_fits.lattice().data, (3, 4)))
    with_many = dfd.Dataset.of(np.random.default_rng(0).poisson(2.0, (30, 60)))
    assert "60 columns" in texts(plots.data(with_many))


def test_predictions_beside_the_data():
    checked = small_fits.network().replicate(draws=10, size=50)
    seen = texts(plots.predictive(checked))
    assert all(word in seen for word in ("sleep", "mood & <b>", "_hidden", "data", "model"))
    assert "predicted correlation" in texts(plots.correlations(checked))
    single = small_fits.counts().replicate(draws=5, size=50)
    assert "sales" in texts(plots.predictive(single))
    with pytest.raises(dfd.errors.SettingError, match="two columns"):
        plots.correlations(single)


def test_a_lattice_beside_its_predictions():
    fit = small_fits.lattice()
    figure = plots.lattice(fit, fit.replicate(draws=3, size=10, method="swendsen-wang"))
    assert "observed mean by site" in texts(figure) and "predicted mean by site" in texts(figure)
    assert figure.axes[0].images[0].get_array().shape == (3, 4)
    assert "mean by site" in texts(plots.lattice(fit))
    with pytest.raises(dfd.errors.SettingError, match="not on a lattice"):
        plots.lattice(small_fits.counts())


def test_a_network_with_its_evidence():
    figure = plots.network(small_fits.network())
    seen = texts(figure)
    for word in ("sleep", "mood & <b>", "_hidden", "present (2)", "positive", "negative"):
        assert word in seen
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 2]
    assert len(lines) == 6
    assert lines[-1].get_linestyle() == "-" and lines[-1].get_linewidth() == max(line.get_linewidth() for line in lines)
    with pytest.raises(dfd.errors.ModelError, match="no parameter for each edge"):
        plots.network(small_fits.counts())


def test_nodes_with_intervals_and_what_chance_gives():
    fit = small_fits.network()
    table = fit.nodes()
    figure = plots.centrality(fit, table)
    seen = texts(figure).splitlines()
    assert all(word in seen for word in ("strength", "expected influence", "predictability", "mood & <b>", "_hidden"))
    for axes, name in zip(figure.axes, ("strength", "influence", "predictability"), strict=True):
        np.testing.assert_allclose(axes.lines[0].get_xdata(), table[name])
        ends = np.array([segment[:, 0] for segment in axes.collections[0].get_segments()])
        np.testing.assert_allclose(ends, table[[f"{name}_low", f"{name}_high"]])
        if name != "influence":
            np.testing.assert_allclose(axes.lines[1].get_xdata(), table[f"{name}_by_chance"])
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels[0] == table.index[0] and list(figure.axes[0].lines[0].get_ydata()) == [3, 2, 1, 0]
    assert len(plots.centrality(small_fits.count_network()).axes) == 3
    with pytest.raises(dfd.errors.ModelError, match="no parameter for each edge"):
        plots.centrality(small_fits.counts())


def test_comparison_of_losses():
    fits = {"dfd": small_fits.counts(), "_ratio": small_fits.counts()}
    seen = texts(plots.comparison(dfd.compare(fits))).splitlines()
    assert "rate" in seen and "dispersion_index" in seen and "dfd" in seen and " _ratio" in seen


def test_coverage_of_many_parameters():
    levels = {0.5: 0.45, 0.9: 0.88}
    found = Coverage(levels, {f"_w[{i}]": levels for i in range(30)}, 100, {})
    seen = texts(plots.coverage(found))
    assert "joint" in seen and " _w[0]" in seen and "100 data sets" in seen and "_w[20]" not in seen


@pytest.mark.parametrize("kind", ["normal", "skew", "apart", "few", "ties", "far"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_smoothed_densities_are_those_of_arviz(kind):
    rng = np.random.default_rng(5)
    values = {
        "normal": rng.normal(3.0, 0.1, 4000),
        "skew": rng.exponential(2.0, 4000),
        "apart": np.concatenate([rng.normal(0.0, 1.0, 500), rng.normal(9.0, 0.2, 700)]),
        "few": rng.normal(size=9),
        "ties": rng.poisson(4.0, 2000).astype(float),
        "far": np.append(rng.normal(size=500), 1e6),
    }[kind]
    grid, height = smoothed(values)
    theirs, of_theirs, _ = array_stats.kde(values)
    np.testing.assert_allclose(grid, theirs, rtol=1e-12)
    np.testing.assert_allclose(height, of_theirs, rtol=1e-3, atol=1e-5 * of_theirs.max())
