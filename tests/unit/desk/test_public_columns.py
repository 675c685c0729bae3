"""Formulas at the desk use the columns that its settings declare public, and no others, whatever these hold."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from discreet.desk.drafts import Draft, as_toml, first_draft
from discreet.desk.estimates import _judged, judge
from discreet.plan.run import run


def drafted(desk: Any, formula: str, **unit: str) -> Draft:
    draft = first_draft(desk, desk.sources["flows"])
    draft.release[0]["formula"] = formula
    draft.unit.update(unit)
    return draft


@pytest.mark.parametrize(
    ("formula", "unit", "words"),
    [
        ("y ~ x + (1 | g)", {}, ""),
        ("y ~ z", {}, "'z' is in the formula and is not declared public"),
        ("y ~ x + (1 | g:z)", {}, "'z' is in the formula and is not declared public"),
        ("z ~ y", {"response": "z"}, "'y' is in the formula and is not declared public"),
        ("x ~ g", {"response": "x"}, "'x' is declared public, and one row's 'x' is protected"),
        ("z ~ x", {}, "Write z under 'Protected column'"),
    ],
)
def test_the_settings_decide_what_is_public(make: Callable[..., Any], formula: str, unit: Any, words: str) -> None:
    desk = make()
    (desk.folder / "flows.parquet").unlink(missing_ok=True)  # nothing is read
    found = judge(desk, drafted(desk, formula, **unit), "x")
    told = [desk_told.text for desk_told in found.trouble]
    assert bool(told) == bool(words) and (not words or any(words in text for text in told))
    assert not any("public=" in text or "Rows(" in text or "[data]" in text for text in told)
    if not words:
        assert found.found is not None
        promise = str(found.found.releases[0].request.guarantee)
        assert "The design is public: columns x, g, and the number of rows" in promise
    with pytest.raises(ValidationError, match="extra"):
        Draft.model_validate({**drafted(desk, formula).model_dump(), "data": {"public": ["z"]}})


@pytest.mark.parametrize("odd", [0.5, None, float("nan"), float("inf"), 9.0])
def test_no_response_stops_a_run(make: Callable[..., Any], odd: float | None, tmp_path: Path) -> None:
    """A failed run is on everybody's page and costs nothing."""
    desk = make()
    n = 120
    y = [odd, *(0.2 + i % 7 / 10 for i in range(n - 1))]
    table = {"y": y, "x": [float(i % 11) for i in range(n)], "g": [f"g{i % 5}" for i in range(n)]}
    pq.write_table(pa.table(table), desk.folder / "flows.parquet")
    draft = drafted(desk, "y ~ x + (1 | g)")
    desk.plan_file("x").write_text(as_toml(draft.content(desk, "x")), encoding="utf-8")
    assert len(run(desk.plan_file("x")).publications) == 1


def test_an_estimate_tells_the_expected_error_of_a_model(make: Callable[..., Any]) -> None:
    """From public columns alone, in a form that a process can send back: other responses change nothing."""
    desk, told = make(), []
    for times in (1, -4):
        n = 120
        table = {"y": [times * (i % 7) for i in range(n)], "x": [float(i % 11) for i in range(n)]}
        pq.write_table(pa.table(table | {"g": [f"g{i % 5}" for i in range(n)]}), desk.folder / "flows.parquet")
        asked = drafted(desk, "y ~ x + (1 | g)").model_dump_json()
        found = pickle.loads(pickle.dumps(_judged(desk, asked, "x", None)))
        assert found.can_run and found.to_dict()["releases"][0]["expected"]["fixed"].keys() == {"(Intercept)", "x"}
        told.append(str(found.found.releases[0].expected))
    assert told[0] == told[1] and "Expected standard errors" in told[0]
