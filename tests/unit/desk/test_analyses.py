"""Uploads from form to result: what the desk shows is what the functions give, and only to whoever asked."""

from __future__ import annotations

import html
import io
import json
import re
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from starlette.datastructures import FormData, UploadFile

from discreet.changes.backtest import backtest_changes
from discreet.changes.exceptions import exception_report
from discreet.desk import uploads
from discreet.models.linear import mixed
from discreet.words.errors import DataError
from faults_of import about

ORIGIN = {"origin": "http://127.0.0.1"}


@pytest.fixture
def panel() -> dict[str, tuple[str, str]]:
    rng = np.random.default_rng(1)
    values = 100 * np.exp(np.cumsum(rng.normal(0, 0.1, (30, 24)), axis=1))
    rows = [f"s{i},{t},{values[i, t]:.3f}" for i in range(30) for t in range(24)]
    ahead = values * np.exp(rng.normal(0, 0.1, values.shape))
    guesses = [f"s{i},naive,{t + 1},{ahead[i, t]:.3f}" for i in range(30) for t in range(12, 24)]
    return {
        "panel": ("../../panel.csv", "\n".join(["series,t,value", *rows])),
        "forecasts": ("forecasts.csv", "\n".join(["series,method,t,forecast", *guesses])),
    }


def test_an_exception_report(client: Any, staffed: Any, csrf: Any, panel: Any, tmp_path: Any) -> None:
    form = {"csrf": csrf(client), "horizon": "1", "cutoff": "0.9", "cost_ratio": "5", "direction": "increase"}
    answer = client.post("/changes", data=form, files=panel, headers=ORIGIN)
    assert answer.status_code == 303, answer.text
    page = client.get(answer.headers["location"])
    for name, (_, text) in panel.items():
        (tmp_path / f"{name}.csv").write_text(text)
    found = exception_report(
        tmp_path / "panel.csv", tmp_path / "forecasts.csv", cutoff=0.9, cost_ratio=5, direction="increase"
    )
    assert found.summary() in html.unescape(page.text)
    other, _ = staffed("anna")
    assert other.get(answer.headers["location"]).status_code == 404


def test_a_report_and_a_backtest_as_files(client: Any, staffed: Any, csrf: Any, panel: Any, tmp_path: Any) -> None:
    """By value, and past lists: what is downloaded is what the functions give, to whoever asked alone."""
    for name, (_, text) in panel.items():
        (tmp_path / f"{name}.csv").write_text(text)
    both = tmp_path / "panel.csv", tmp_path / "forecasts.csv"
    form = {"csrf": csrf(client), "cutoff": "0.9", "capacity": "5", "direction": "increase", "by_value": "yes"}
    asked = {"cutoff": 0.9, "capacity": 5, "direction": "increase", "by_value": True}
    valued, past = exception_report(*both, **asked), backtest_changes(*both, periods=3, **asked)
    for kind, found, word in (("report", valued, "flagged"), ("backtest", past, "alarms were right")):
        made = client.post("/changes", data=form | {"kind": kind, "periods": "3"}, files=panel, headers=ORIGIN).headers[
            "location"
        ]
        text = html.unescape(client.get(made).text)
        assert found.summary() in text and word in text and f"discreet changes {kind} panel.csv" in text
        assert "--by-value" in text and ("--periods 3" in text) == (kind == "backtest")
        numbers = client.get(f"{made}/results.json")
        assert (
            numbers.json()["rows"] == json.loads(json.dumps(found.to_dict()["rows"])) and "files" not in numbers.json()
        )
        listed = client.get(f"{made}/list.csv")
        assert listed.text.splitlines()[0].startswith("rank," if kind == "report" else "t,")
        assert len(listed.text.splitlines()) == 1 + len(found.rows)
        page = client.get(f"{made}/report.html")
        assert found.summary()[:60] in html.unescape(page.text)
        for each in (numbers, listed, page):
            assert each.headers["content-disposition"].startswith("attachment")
        assert client.get(f"{made}/other.txt").status_code == 404
        assert staffed("anna")[0].get(f"{made}/list.csv").status_code == 404
    for wrong in ({"kind": "guess"}, {"periods": "0"}, {"by_value": "perhaps"}):
        assert client.post("/changes", data=form | wrong, files=panel, headers=ORIGIN).status_code == 409


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"panel": ("panel.exe", "MZ")}, "The desk reads CSV"),
        ({"panel": ("panel.parquet", "not a parquet file")}, ""),
        ({"panel": ("panel.csv", "series,t\na,1\n")}, "value"),
    ],
)
def test_bad_files_are_refused_in_words(client: Any, csrf: Any, panel: Any, change: Any, fault: str) -> None:
    answer = client.post("/changes", data={"csrf": csrf(client)}, files={**panel, **change}, headers=ORIGIN)
    assert answer.status_code == 409
    assert fault in answer.text and "Traceback" not in answer.text and "discreet-upload" not in answer.text


def test_errors_keep_the_form(client: Any, csrf: Any, panel: Any) -> None:
    """What was filled in is there again, with what is wrong above it."""
    form = {"csrf": csrf(client), "horizon": "3", "cutoff": "0.9", "cost_ratio": "none", "direction": "increase"}
    answer = client.post("/changes", data=form, files=panel, headers=ORIGIN)
    assert answer.status_code == 409 and 'role="alert"' in answer.text
    for part in ('name="horizon" value="3"', 'name="cutoff" value="0.9"', 'value="none"', '"increase" selected'):
        assert part in answer.text
    sent = {"csrf": csrf(client), "formula": "y ~ nothing + (1 | g)", "source": "flows"}
    answer = client.post("/models", data=sent, headers=ORIGIN)
    assert answer.status_code == 409 and 'role="alert"' in answer.text and "no stand-in" in html.unescape(answer.text)
    assert 'value="y ~ nothing + (1 | g)"' in html.unescape(answer.text) and '"flows" selected' in answer.text


def packed(kind: str, text: str) -> tuple[str, bytes]:
    if kind == "zip":
        with zipfile.ZipFile(whole := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("folder/panel.csv", text)
        return "panel.zip", whole.getvalue()
    codec = {"gz": "gzip", "zst": "zstd"}[kind]
    return f"panel.csv.{kind}", pa.compress(text.encode(), codec=codec, asbytes=True)


@pytest.mark.parametrize("kind", ["gz", "zst", "zip"])
def test_compressed_tables(panel: Any, kind: str, monkeypatch: Any) -> None:
    """Read as what they hold; a damaged one, one that swells and one with two tables are refused in words."""
    text = panel["panel"][1]
    name, content = packed(kind, text)

    def taken(name: str, content: bytes) -> str:
        form = FormData([("panel", UploadFile(io.BytesIO(content), filename=name))])
        with uploads.kept(form, "panel") as files:
            assert files["panel"].endswith("panel.csv")
            return Path(files["panel"]).read_text()

    assert taken(name, content) == text
    for wrong in (content[: len(content) // 2], b"nothing of the kind"):
        with pytest.raises(DataError, check=about("file")):
            taken(name, wrong)
    with pytest.raises(DataError, check=about("file")):
        taken(f"panel.parquet.{kind}", content)
    monkeypatch.setattr(uploads, "EXPANDED", 1_000)
    with pytest.raises(DataError, check=about("file")):
        taken(name, content)


def test_cells_are_compared_whatever_their_quality(client: Any, monkeypatch: Any) -> None:
    """A flag is no attribute: a count that became mostly noise is still the same cell."""

    def release(count: list[int], quality: list[str]) -> Any:
        ends = {"lower": [n - 1 for n in count], "upper": [n + 1 for n in count]}
        table = pa.table({"place": ["A", "B"], "count": count, **ends, "quality": quality})
        told = {"tables": ["x"], "folder": "nowhere", "about": {"parameters": {"level": "9/10"}}}  # a table alone
        return SimpleNamespace(name="r", table=lambda _: table, **told)

    def answer(least: str) -> Any:
        both = iter([release([10, 50], ["good", "good"]), release([90, 50], ["poor", "good"])])
        monkeypatch.setattr("discreet.desk.pages.changes._chosen", lambda *_: next(both))
        return client.get(f"/changes?before=a&after=b&least={least}")

    text = answer("").text
    assert "2 of 2 cells" in text and "A, good" not in text
    assert "1 of 2 cells changed by more than their noise can explain" in text
    assert "78 to 82" in text and "20.0 % at most" in text.replace(
        "\u00a0", " "
    )  # two intervals that fail in one of ten
    assert "1 of 2 cells changed" in answer("77").text and "0 of 2 cells changed" in answer("78").text
    wrong = answer("many")
    assert wrong.status_code == 409 and 'role="alert"' in wrong.text


@pytest.mark.usefixtures("unfenced")
def test_a_report_by_levels(client: Any, csrf: Any) -> None:
    """Sums of series are ranked with them, and the page says what is not listed twice."""
    rng = np.random.default_rng(0)
    rows = ["series,t,value,region"]
    for k in range(30):
        rows += [f"s{k:02d},{t},{v:.3f},R{k % 3}" for t, v in enumerate(rng.normal(100, 9, 40))]
    data = {"csrf": csrf(client), "hierarchy": "region", "capacity": "4"}
    files = {"panel": ("panel.csv", "\n".join(rows))}
    made = client.post("/changes", data=data, files=files, headers=ORIGIN)
    assert made.status_code == 303, made.text
    assert "Large declines ahead" in client.get(made.headers["location"]).text
    refused = client.post("/changes", data=data | {"hierarchy": "county"}, files=files, headers=ORIGIN)
    assert refused.status_code == 409 and 'value="county"' in refused.text


@pytest.mark.usefixtures("unfenced")
def test_a_report_with_indicators_and_a_calendar(client: Any, csrf: Any, tmp_path: Any) -> None:
    """What the form asks for is what the function gives; a column that does not exist stays in the form."""
    rng = np.random.default_rng(0)
    price = np.where(rng.random((30, 40)) < 0.05, 14.0, 10.0) + rng.normal(0, 0.2, (30, 40))
    value = rng.normal(100, 2, (30, 40))
    value[:, 1:] -= 5 * (price[:, :-1] - 10)
    rows = [f"s{k:02d},{t},{value[k, t]:.3f},{price[k, t]:.3f},R{k % 3}" for k in range(30) for t in range(40)]
    texts = {
        "panel": "\n".join(["series,month,value,price,region", *rows]),
        "calendar": "\n".join(["month,holiday", *(f"{t},{int(t % 9 == 4)}" for t in range(41))]),
    }
    files = {name: (f"{name}.csv", text) for name, text in texts.items()}
    data = {"csrf": csrf(client), "time": "month", "indicators": "price", "known": "holiday", "capacity": "4"}
    made = client.post("/changes", data=data | {"hierarchy": "region"}, files=files, headers=ORIGIN)
    assert made.status_code == 303, made.text
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text.replace("month", "t"))
    asked = {"indicators": ["price"], "known": ["holiday"], "capacity": 4, "hierarchy": ["region"]}
    found = exception_report(tmp_path / "panel.csv", calendar=tmp_path / "calendar.csv", **asked)
    assert found.method.startswith("indicators")
    assert found.summary() in html.unescape(client.get(made.headers["location"]).text)
    for wrong in ({"indicators": "cost"}, {"known": ""}):
        refused = client.post("/changes", data=data | wrong, files=files, headers=ORIGIN)
        assert refused.status_code == 409
        assert f'name="indicators" value="{wrong.get("indicators", "price")}"' in refused.text


def test_a_model_on_a_file_of_ones_own(client: Any, csrf: Any, tmp_path: Any) -> None:
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(12), 10)
    x = rng.random(120)
    y = np.clip(1 + 0.5 * x + 0.2 * rng.normal(size=12)[group] + 0.1 * rng.normal(size=120), 0, 2)
    text = "\n".join(["y,x,g", *(f"{a:.4f},{b:.4f},g{c}" for a, b, c in zip(y, x, group, strict=True))])
    (tmp_path / "data.csv").write_text(text)
    form = {"csrf": csrf(client), "formula": "y ~ x + (1 | g)", "source": "flows"}
    answer = client.post("/models", data=form, files={"data": ("data.csv", text)}, headers=ORIGIN)
    assert answer.status_code == 303, answer.text
    page = html.unescape(client.get(answer.headers["location"]).text)
    assert mixed("y ~ x + (1 | g)", tmp_path / "data.csv").summary().strip() in page


def test_a_formula_is_never_tried_on_a_source(client: Any, csrf: Any) -> None:
    form = {"csrf": csrf(client), "formula": "y ~ x + (1 | g)", "source": "flows"}
    answer = client.post("/models", data=form, headers=ORIGIN)
    assert answer.status_code == 409 and "has no stand-in" in answer.text
    form["formula"] = "y ~ __import__('os').system('true')"
    assert client.post("/models", data=form, headers=ORIGIN).status_code == 409


@pytest.mark.usefixtures("unfenced")
def test_columns_have_any_names(client: Any, csrf: Any, panel: Any) -> None:
    names = {"series": "shop", "time": "month", "value": "sales", "method": "who", "forecast": "guess"}
    heads = {"panel": "shop,month,sales", "forecasts": "shop,who,month,guess"}
    sent = {key: (name, "\n".join([heads[key], *text.split("\n")[1:]])) for key, (name, text) in panel.items()}
    form = {"csrf": csrf(client), "cutoff": "0.9", **names}
    answer = client.post("/changes", data=form, files=sent, headers=ORIGIN)
    assert answer.status_code == 303, answer.text
    again = client.post("/changes", data={**form, "value": "turnover"}, files=sent, headers=ORIGIN)
    told = html.unescape(again.text)
    assert again.status_code == 409 and "'turnover'" in told
    assert all(f'name="{key}" value="{name}"' in told for key, name in names.items() if key != "value")


def test_effects_of_two_models_are_compared(client: Any, monkeypatch: Any) -> None:
    def release(name: str, effect: float, formula: str = "y ~ 1 + (1 | county)") -> Any:
        columns = {"effect": ["fixed", "random"], "group": [None, "county"], "term": ["(Intercept)", "c02"]}
        table = pa.table({**columns, "estimate": [1.0, effect], "std_error": [0.1, 0.1], "flag": [None, None]})
        about = {"parameters": {"kind": "model", "formula": formula}, "files": {"research.csv": ""}}
        return SimpleNamespace(plan="p", name=name, about=about, tables=["x"], table=lambda _: table)

    found = {
        "one": release("one", 0.5),
        "two": release("two", -0.5),
        "odd": release("odd", 0.5, "y ~ 0 + (1 | county)"),
    }
    monkeypatch.setattr("discreet.desk.published.published", lambda _: list(found.values()))
    monkeypatch.setattr("discreet.desk.published.release", lambda _desk, _plan, name: found[name])
    text = client.get("/changes?before=p/one&after=p/two").text
    assert "one: y ~ 1 + (1 | county)" in text and "1 of 2 cells changed by more than" in text
    assert "county, c02" in text and "-1.424 to -0.576" in text
    assert "0 of 2 cells changed" in client.get("/changes?before=p/one&after=p/two&least=0.6").text
    for query in ("before=p/one&after=p/odd", "before=p/one&after=p/two&fdr=0.1", "before=p/one&after=p/two&least=1."):
        assert client.get(f"/changes?{query}").status_code == 409


def test_two_releases_that_cannot_be_compared_stay_chosen(client: Any, monkeypatch: Any) -> None:
    def release(name: str, column: str) -> Any:
        table = pa.table({column: ["A"], "count": [1], "lower": [0], "upper": [2]})
        about = {"parameters": {"kind": "count", "tables": [{"by": [column]}]}}
        return SimpleNamespace(plan="p", name=name, about=about, tables=["x"], table=lambda _: table)

    found = {"one": release("one", "place"), "two": release("two", "sector")}
    monkeypatch.setattr("discreet.desk.published.published", lambda _: list(found.values()))
    monkeypatch.setattr("discreet.desk.published.release", lambda _desk, _plan, name: found[name])
    answer = client.get("/changes?before=p/two&after=p/one")
    assert answer.status_code == 409 and 'role="alert"' in answer.text
    chosen = re.findall(r'<option value="p/(\w+)" selected', answer.text)
    assert chosen == ["two", "one"]


@pytest.mark.usefixtures("unfenced")
def test_forecasts_are_made_here_and_each_series_has_its_picture(client: Any, csrf: Any, panel: Any) -> None:
    form = {"csrf": csrf(client), "capacity": "5", "cutoff": "0.8", "direction": "both", "season": "1"}
    answer = client.post("/changes", data=form, files={"panel": panel["panel"]}, headers=ORIGIN)
    assert answer.status_code == 303, answer.text
    page = client.get(answer.headers["location"]).text
    assert page.count('class="spark"') == 5 and "Past lists by the same rule" in page


@pytest.mark.usefixtures("unfenced")
@pytest.mark.parametrize("ends", [("", ""), ("-5", "5")])
def test_a_curve_has_the_bounds_that_were_typed(client: Any, csrf: Any, ends: tuple[str, str]) -> None:
    rng = np.random.default_rng(1)
    y = rng.normal(0, 1, 400)
    text = "\n".join(["y,x,g", *(f"{y[i]:.3f},{y[i] + rng.normal():.3f},g{i % 20}" for i in range(400))])
    form = {"csrf": csrf(client), "formula": "y ~ x + (1 | g)", "lower": ends[0], "upper": ends[1]}
    answer = client.post("/models", data=form, files={"data": ("a.csv", text)}, headers=ORIGIN)
    assert answer.status_code == 303, answer.text
    page = html.unescape(client.get(answer.headers["location"]).text)
    assert ("Responses lie in [-5, 5]" in page) == bool(ends[0])
    assert ("There is no curve" in page) != bool(ends[0])
    wrong = client.post("/models", data={**form, "lower": "5", "upper": "1"}, headers=ORIGIN)
    assert wrong.status_code == 409 and 'name="lower" value="5"' in wrong.text and 'value="1"' in wrong.text
