"""What speaks against tables, models and posterior summaries is on the desk before anything is paid."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.datastructures import FormData

from discreet.desk.app import create
from discreet.desk.desk import Desk
from discreet.desk.drafts import from_form
from discreet.desk.estimates import judge
from discreet.models.linear.private.generalised import QUASI
from discreet.models.linear.private.term_release import SIZES
from discreet.plan.rules import BY_COUNTS
from discreet.words import caveats

ROWS = {"unit-kind": "rows", "unit-lower": "0", "unit-upper": "2", "unit-response": "y"}
JOBS = {"unit-kind": "establishments", "unit-alpha": "0.1", "unit-strength": "strong"}
MODEL, SUMMARY = {"kind": "model"}, {"kind": "posterior", "formula": "y ~ x", "coefficient": "x"}
TABLES = {"kind": "counts", "tables": "place, sector\nplace", "add_up": "on"}


def form(source: str, asked: dict[str, str]) -> dict[str, str]:
    unit = ROWS if source == "flows" else JOBS
    return {"title": "t", "formats": "csv", "forms": "basic", **unit} | {
        f"release-0-{key}": value for key, value in ({"name": "r", "epsilon": "2"} | asked).items()
    }


@pytest.fixture
def desk(tmp_path: Path, with_data: Callable[[Path], Desk]) -> Desk:
    rng = np.random.default_rng(0)
    g, y = np.arange(4000) % 50, np.clip(1 + 0.1 * rng.normal(size=4000), 0, 2)
    rows = {"y": y, "x": rng.normal(size=4000), "g": [f"g{i}" for i in g]}
    pq.write_table(pa.table(rows), tmp_path / "flows.parquet")
    return with_data(tmp_path)


@pytest.mark.parametrize(
    ("source", "asked", "words"),
    [
        ("flows", MODEL | {"formula": "y ~ x + (1 | g)"}, [caveats.ONE_SLOPE, caveats.NOT_SEEN, caveats.DOUBT]),
        ("flows", MODEL | {"formula": "y ~ x + (1 | g)", "epsilon": "1"}, ["a look with a tenth"]),
        ("flows", MODEL | {"formula": "y ~ x + (1 + x | g)"}, [SIZES, caveats.NOT_SEEN]),
        (
            "flows",
            MODEL | {"formula": "y ~ x + (1 | g)", "family": "poisson"},
            [caveats.ONE_SLOPE, "no finite estimate", QUASI],
        ),
        *(
            ("flows", SUMMARY | {"summary": summary, "at": at}, [caveats.A_LINE, caveats.APART, caveats.SKEWED])
            for summary, at in {"probability": "0", "quantile": "0.5", "interval": "0.95"}.items()
        ),
        ("flows", SUMMARY | {"summary": "probability", "at": "0"}, [caveats.A_TENTH]),
        ("jobs", TABLES, [BY_COUNTS, "at most"]),
        ("jobs", {"kind": "count", "by": "place", "where": "sex: female"}, ["no interval"]),
    ],
)
def test_it_is_said_before_paying(desk: Desk, source: str, asked: dict[str, str], words: list[str]) -> None:
    judged = judge(desk, from_form(FormData(form(source, asked)), source), "new")
    assert judged.found is not None and not judged.trouble, judged.trouble
    [release] = judged.found.releases
    said = [str(release.expected), *(note for table in release.tables for note in (*table.notes, *table.cautions))]
    said += [
        "no interval"
        for table in release.tables
        for ends in table.errors.widths.values()
        if not np.isfinite(ends).any()
    ]
    said += ["at most" for table in release.tables if table.errors.error.at_most]
    found = " ".join(" ".join(said).split())
    assert [word for word in words if word not in found] == []


def test_the_page_shows_it_and_a_fault_is_not_called_absent_data(desk: Desk, client: Any) -> None:
    app = create(desk, entrance="t")
    here = type(client)(app)
    here.get("/enter", params={"token": "t"})
    token = here.get("/").text.split('name="csrf" content="')[1].split('"')[0]

    def shown(asked: dict[str, str], source: str = "flows") -> str:
        sent = {"csrf": token, **form(source, asked)}
        page = here.post(f"/plans/{source}/new/estimate", data=sent, headers={"origin": "http://127.0.0.1"})
        return " ".join(html.unescape(page.text).split())

    assert caveats.ONE_SLOPE in shown(MODEL | {"formula": "y ~ x + (1 | g)"})
    refused = shown(SUMMARY | {"summary": "interval", "at": "0.95", "epsilon": "0.01"})
    assert "keeps this plan from being run" in refused and "where the data are present" not in refused
    filtered = shown({"kind": "count", "by": "place", "where": "sex: female"}, "jobs")
    assert "will have no interval" in filtered and "Every published count has its interval" not in filtered
    assert "Every published count has its interval" in shown({"kind": "count", "by": "place"}, "jobs")
    app.state.here.store.close()
