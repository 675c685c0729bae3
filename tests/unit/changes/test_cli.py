"""`discreet changes` through its command group."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from typer.testing import CliRunner

from discreet.changes.command import app
from discreet.words.errors import DataError

RUN = CliRunner()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("changes")
    rng = np.random.default_rng(1)
    season = rng.normal(0, 0.08, (80, 12))[:, np.arange(41) % 12]
    shocks = rng.standard_t(3, (80, 41)) * 0.05
    drift = np.cumsum(shocks + rng.normal(-0.002, 0.004, (80, 41)), axis=1)
    y = 4000 * np.exp(season + drift + rng.normal(0, 0.05, (80, 41)))
    panel = [{"series": f"S{i:03d}", "t": t + 1, "value": y[i, t]} for i in range(80) for t in range(41)]
    csv.write_csv(pa.Table.from_pylist(panel), folder / "panel.csv")
    rolling = [
        {"series": f"S{i:03d}", "method": method, "t": origin + 1, "horizon": 1, "forecast": forecast}
        for origin in range(33, 42)
        for method, values in forecasts(y[:, :origin]).items()
        for i, forecast in enumerate(values.tolist())
    ]
    csv.write_csv(pa.Table.from_pylist(rolling).drop_columns(["horizon"]), folder / "rolling.csv")
    csv.write_csv(pa.Table.from_pylist([row for row in rolling if row["t"] == 41]), folder / "forecasts.csv")
    return folder


def forecasts(y: np.ndarray) -> dict[str, np.ndarray]:
    """Of the coming month: the last value, the mean of five, and last year's at this year's level."""
    level = y[:, -12:].mean(1) / y[:, -24:-12].mean(1)
    return {"Naive": y[:, -1], "Mean": y[:, -5:].mean(1), "Seasonal": y[:, -12] * level**0.5}


def test_compare_writes_a_report(files, tmp_path):
    arguments = ["compare", str(files / "panel.csv"), str(files / "forecasts.csv"), "--cutoff", "0.9"]
    done = RUN.invoke(app, [*arguments, "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert done.exit_code == 0 and "best" in done.stdout and "report.html" in done.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"report.html", "results.json", "tables", "figures"}
    listed = json.loads(RUN.invoke(app, [*arguments, "--json"], catch_exceptions=False).stdout)
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert listed["methods"] == written["methods"]


def test_report_lists_and_writes(files, tmp_path):
    arguments = ["report", str(files / "panel.csv"), str(files / "rolling.csv"), "--cost-ratio", "20"]
    done = RUN.invoke(app, [*arguments, "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert done.exit_code == 0 and "are flagged for a large decline" in " ".join(done.stdout.split())
    found = json.loads(RUN.invoke(app, [*arguments, "--json"], catch_exceptions=False).stdout)
    assert found["cost_ratio"] == 20 and len(found["rows"]) + len(found["set_aside"]) == 80 and found["set_aside"]
    every = (tmp_path / "out" / "tables" / "every-series.csv").read_text().splitlines()
    assert len(every) == 1 + len(found["rows"])
    apart = (tmp_path / "out" / "tables" / "not-ranked.csv").read_text()
    assert all(row["series"] in apart for row in found["set_aside"])
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Series to look at" in page and "Series that are not ranked" in page


@pytest.mark.parametrize(("verb", "second"), [("compare", "forecasts.csv"), ("report", "rolling.csv")])
def test_columns_may_have_other_names(files, tmp_path, verb, second):
    """The same answer, also where a column of ours is there with another meaning; one that is missing is named."""
    names = {"series": "Shop No", "t": "month", "value": "sales", "method": "who", "forecast": "guess"}
    for name in ("panel.csv", second):
        table = csv.read_csv(files / name)
        other = table.rename_columns([names.get(column, column) for column in table.column_names])
        csv.write_csv(other.append_column("value", pa.array(["x"] * len(other))), tmp_path / name)
    few = ["--resamples", "20"] if verb == "compare" else []
    plain = RUN.invoke(app, [verb, str(files / "panel.csv"), str(files / second), *few, "--json"])
    options = ["--series", "Shop No", "--time", "month", "--value", "sales", "--method-column", "who"]
    renamed = [verb, str(tmp_path / "panel.csv"), str(tmp_path / second), *few, *options, "--json"]
    found = RUN.invoke(app, [*renamed, "--forecast", "guess"], catch_exceptions=False)
    assert (found.exit_code, json.loads(found.stdout)) == (0, json.loads(plain.stdout))
    refused = RUN.invoke(app, [*renamed, "--forecast", "gues"])
    assert isinstance(refused.exception, DataError) and refused.exception.about == "forecasts"
    assert "'guess'" in str(refused.exception)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "PANEL", "nowhere.csv"], "nowhere.csv"),
        (["compare", "PANEL", "FORECASTS", "--horizon", "2"], "No forecast has horizon 2"),
        (["compare", "PANEL", "FORECASTS", "--fpr", "0"], "range"),
        (["report", "PANEL", "FORECASTS"], "coming period"),
        (["report", "PANEL", "ROLLING", "--method", "oracle"], "Methods are: Naive"),
    ],
)
def test_wrong_requests_write_nothing(files, tmp_path, arguments, words):
    names = {"PANEL": "panel.csv", "FORECASTS": "forecasts.csv", "ROLLING": "rolling.csv"}
    filled = [str(files / names[word]) if word in names else word for word in arguments]
    out = tmp_path / "out"
    done = RUN.invoke(app, [*filled, "--out", str(out)])
    assert isinstance(done.exception, DataError) and words in str(done.exception)
    assert not out.exists()


def test_a_foreign_directory_is_refused_first(files, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    done = RUN.invoke(app, ["compare", str(files / "panel.csv"), "nowhere.csv", "--out", str(tmp_path)])
    assert isinstance(done.exception, DataError) and "mine.txt" in str(done.exception)


def test_help_has_examples():
    for command in ("compare", "report", "backtest", "between"):
        assert "Example" in RUN.invoke(app, [command, "--help"]).stdout


def test_backtest_lists_and_writes(files, tmp_path):
    arguments = ["backtest", str(files / "panel.csv"), "--capacity", "5", "--periods", "6", "--methods", "ses, naive"]
    done = RUN.invoke(app, [*arguments, "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert done.exit_code == 0 and "6 periods" in done.stdout
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert len(found["rows"]) == 6 and set(found["precision"]) == {"right", "naive", "last_change", "by_lot"}


def test_a_report_needs_no_forecasts(files, tmp_path):
    arguments = ["report", str(files / "panel.csv"), "--capacity", "5", "--past", "12"]
    done = RUN.invoke(app, [*arguments, "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert done.exit_code == 0 and "5 of" in done.stdout
    assert (tmp_path / "out" / "report.html").read_text().count('class="spark"') == 5
    assert len((tmp_path / "out" / "tables" / "flagged.csv").read_text().splitlines()) == 6


def test_between_two_releases(tmp_path):
    for name, count in (("early", 100), ("late", 140)):
        rows = {"place": ["a", "b"], "count": [count, 50], "lower": [count - 5, 45], "upper": [count + 5, 55]}
        csv.write_csv(pa.table(rows), tmp_path / f"{name}.csv")
    arguments = ["between", str(tmp_path / "early.csv"), str(tmp_path / "late.csv"), "--by", "place"]
    unsaid = RUN.invoke(app, arguments)
    assert isinstance(unsaid.exception, DataError) and unsaid.exception.about == "level"
    arguments += ["--level", "0.95"]
    assert "1 of 2 cells" in " ".join(RUN.invoke(app, arguments, catch_exceptions=False).stdout.split())
    found = json.loads(RUN.invoke(app, [*arguments, "--json"], catch_exceptions=False).stdout)
    assert [row["alarm"] for row in found["rows"]] == [True, False]


def test_compare_at_several_cutoffs(files, tmp_path):
    arguments = ["compare", str(files / "panel.csv"), str(files / "rolling.csv"), "--direction", "both"]
    more = ["--cutoff", "0.8,0.9", "--resample", "series", "--sided", "--by-value", "--resamples", "50"]
    done = RUN.invoke(app, [*arguments, *more, "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert done.exit_code == 0 and "At every cutoff" in done.stdout
    found = json.loads(RUN.invoke(app, [*arguments, *more, "--json"], catch_exceptions=False).stdout)
    assert [each["cutoff"] for each in found["cutoffs"]] == [0.8, 0.9]
    assert "0.8: area" in (tmp_path / "out" / "report.html").read_text()
    two = RUN.invoke(
        app, [*arguments, "--cutoff", "decline=0.9,increase=0.8", "--resamples", "50"], catch_exceptions=False
    )
    assert "0.9 (declines), 0.8 (increases)" in two.stdout
    for wrong in ("much", "decline=0.9", "0.9,"):
        refused = RUN.invoke(app, [*arguments, "--cutoff", wrong])
        assert isinstance(refused.exception, DataError) and refused.exception.about == "cutoff"


def test_a_report_by_levels(files, tmp_path):
    panel = csv.read_csv(files / "panel.csv")
    place = pa.array([f"place {int(name[-1])}" for name in panel["series"].cast(pa.string()).to_pylist()])
    csv.write_csv(panel.append_column("place", place), tmp_path / "placed.csv")
    arguments = ["report", str(tmp_path / "placed.csv"), "--capacity", "5", "--hierarchy", "place", "--past", "8"]
    done = RUN.invoke(app, [*arguments, "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert done.exit_code == 0
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {row["level"] for row in found["rows"]} == {"place", "series"}
    assert ("Not listed twice" in (tmp_path / "out" / "report.html").read_text()) == any(
        row["repeats"] for row in found["rows"]
    )


def test_series_that_cannot_be_read_are_named_at_once(tmp_path):
    """Beside the result, on stderr: two with weeks among months, and one with an infinite value."""
    rng = np.random.default_rng(0)
    months = np.arange("2022-01", "2024-01", dtype="datetime64[M]").astype("datetime64[D]")
    weeks = np.datetime64("2022-01-05") + 7 * np.arange(24)
    dates = {f"s{i:02d}": weeks if i < 2 else months for i in range(12)}
    rows = [(name, str(day), float(rng.poisson(50))) for name, days in dates.items() for day in days]
    rows = [(name, day, np.inf if (name, day) == ("s02", "2022-09-01") else value) for name, day, value in rows]
    csv.write_csv(
        pa.table(dict(zip(("series", "t", "value"), zip(*rows, strict=True), strict=True))), tmp_path / "panel.csv"
    )
    for command in (["report", "--past", "9"], ["backtest", "--periods", "6"]):
        asked = [
            command[0],
            str(tmp_path / "panel.csv"),
            *command[1:],
            "--methods",
            "naive",
            "--capacity",
            "2",
            "--json",
        ]
        done = RUN.invoke(app, asked, catch_exceptions=False)
        assert done.exit_code == 0 and json.loads(done.stdout)
        said = " ".join(done.stderr.split())
        assert (
            "3 series are not ranked: s00, s01 has dates of another frequency" in said and "s02 has an infinite" in said
        )
