"""Files that the last release saved still load, and say what they said."""

import json
import warnings

import pytest

import dfdbayes as dfd
import saved_fits

WANTED = json.loads((saved_fits.FOLDER / saved_fits.NUMBERS).read_text())


def test_every_kind_is_kept():
    assert len(WANTED) >= 12
    assert {path.stem for path in saved_fits.FOLDER.glob("*.netcdf")} == set(WANTED)
    assert all(path.stat().st_size < 100_000 for path in saved_fits.FOLDER.glob("*.netcdf"))


@pytest.mark.parametrize("name", WANTED)
@pytest.mark.daily("cmp", "hurdle", "network-missing", "map", "series", "own")
def test_saved_fits_say_what_they_said(name, tmp_path):
    wanted = WANTED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dfd.load(saved_fits.FOLDER / f"{name}.netcdf")
        found = saved_fits.numbers(fit, name)
        new = saved_fits.replicated(fit, name)
        again = dfd.load(fit.save(tmp_path / "again.nc"))
    assert (new is None) == (wanted["replicated"] is None)
    if new is not None:  # another order of random numbers is allowed, other data are not
        assert new == pytest.approx(wanted["replicated"], rel=0.1, abs=0.1)
    unlike(found, {key: value for key, value in wanted.items() if key != "replicated"}, name)
    unlike(saved_fits.numbers(again, name)["summary"], wanted["summary"], "saved once more")
    text = str(fit)
    assert all(line.split("[")[0] in text for line in wanted["summary"])


def unlike(found, wanted, where):
    """Refuse numbers that are not those that the file had when it was saved."""
    if isinstance(wanted, dict):
        missing = set(wanted) - set(found)
        assert not missing, (where, missing)
        for key, value in wanted.items():
            unlike(found[key], value, f"{where}, {key}")
    else:
        assert found == pytest.approx(wanted, rel=1e-8, abs=1e-8, nan_ok=True), where
