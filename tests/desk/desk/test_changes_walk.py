"""Exception reports at the desk in a real browser: the list, by value, a backtest, and their files."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .test_look import WIDER

pytestmark = pytest.mark.walk


def sales(path: Path) -> Path:
    """60 products of 60 months with seasons, two of which lack a month, under names of other programs."""
    rng = np.random.default_rng(2)
    months = np.arange("2020-01", "2025-01", dtype="datetime64[M]").astype(str)
    figures = rng.normal(0, 0.4, (60, 12))[:, np.arange(60) % 12]
    values = np.exp(rng.normal(4, 1, (60, 1)) + figures + rng.normal(0, 0.15, (60, 60)))
    lines = [
        f"p{i:02d},{month},{values[i, k]:.1f}"
        for i in range(60)
        for k, month in enumerate(months)
        if (i, k) not in ((3, 30), (4, 57))
    ]
    path.write_text("\n".join(["unique_id,ds,y", *lines]))
    return path


def test_lists_past_lists_and_files(copied: Any, serve: Any, visit: Any, tmp_path: Path) -> None:
    served, panel = serve(copied()), sales(tmp_path / "sales.csv")
    shown = visit(served.link)
    page = shown.page
    page.set_viewport_size({"width": 1280, "height": 900})
    for kind, heading in (("report", "Large declines ahead"), ("backtest", "Large declines: 6 past lists")):
        page.goto(f"{served.base}/changes")
        page.set_input_files("#panel", panel)
        page.fill("#capacity", "8")
        page.select_option("#by_value", "yes")
        page.select_option("#kind", kind)
        page.fill("#periods", "6")
        page.click("text=Make the report")
        page.wait_for_selector(f"h1:text-is('{heading}')")
        told = page.inner_text("main")
        assert page.evaluate(WIDER) == [] and f"discreet changes {kind}" in told
        if kind == "report":
            assert "ranked without the missing periods" in told and "p03" in told  # one lacks a month long ago
            assert "with gaps that are many or recent" in told and "p04" in told
        saved = {}
        for words, name in (("HTML", "report.html"), ("CSV", "list.csv"), ("JSON", "results.json")):
            with page.expect_download() as loading:
                page.click(f"a:has-text('({words})')")
            assert loading.value.suggested_filename.endswith(name)
            saved[name] = Path(loading.value.path()).read_text(encoding="utf-8")
        numbers, listed = json.loads(saved["results.json"]), list(csv.DictReader(saved["list.csv"].splitlines()))
        assert len(listed) == len(numbers["rows"]) == (6 if kind == "backtest" else len(numbers["rows"]))
        assert saved["report.html"].startswith("<!DOCTYPE html>") and numbers["summary"] in told.replace("\n", " ")
        if os.environ.get("PICTURES"):
            page.screenshot(path=Path(os.environ["PICTURES"]) / f"{kind}.png", full_page=True)
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate(WIDER) == []
        page.set_viewport_size({"width": 1280, "height": 900})
    assert not shown.complaints
