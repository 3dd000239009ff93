"""Series on the command line: fitted, forecast, repeated."""

import json

import numpy as np
import pandas as pd

import dfdbayes as dfd


def test_a_series_is_fitted_forecast_and_repeated(call, tmp_path):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"week": pd.date_range("2024-01-01", periods=60, freq="7D"), "cases": rng.poisson(4.0, 60)})
    frame.sample(frac=1.0, random_state=0).to_csv(tmp_path / "cases.csv", index=False)
    run, formula = tmp_path / "run", "cases ~ log1p(lag(cases)) + season(week, 52)"
    code, out, err = call(
        "fit", tmp_path / "cases.csv", "--model", "poisson", "--formula", formula, "--time", "week", "--out", run,
        "--sampler", "laplace",
    )  # fmt: skip
    assert code == 0, err
    assert "a series of 60 rows by 'week', 2024-01-01 to 2025-02-17; 1 without all their earlier values" in out
    code, out, _ = call("forecast", run, "--steps", 3, "--out", tmp_path / "next")
    assert code == 0 and "2025-02-24" in out and "median" in out
    assert sorted(p.name for p in (tmp_path / "next").iterdir()) == ["forecast.csv", "forecast.png", "report.html"]
    code, out, _ = call("forecast", run, "--steps", 3, "--interval", 0.8, "--json")
    told = json.loads(out)
    wanted = dfd.load(run / "posterior.nc").forecast(3, interval=0.8).table
    assert [row["high"] for row in told["steps"]] == wanted["high"].tolist() and told["warnings"] == []
    code, out, _ = call("rerun", run)
    assert code == 0 and "the draws are the same as before" in out
    code, _, err = call("forecast", run)
    assert code == 2 and "how many steps ahead" in err
